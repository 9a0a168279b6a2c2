//! Files: unnamed ones in memory, holes, free space, and files accessible only to their owner.

use crate::check;
use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a process that is being spawned may have copies of this one's descriptors.
const SPAWNING: Duration = Duration::from_millis(200);

/// The flag of open(2) for transfers past the page cache: their addresses, offsets and lengths are multiples of a sector.
pub const DIRECT: i32 = libc::O_DIRECT;

/// Options for a file that is readable, writable and accessible to its owner only. Opening it follows no symbolic link
/// and never waits (for the other end of a FIFO, say).
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    if !cfg!(miri) {
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    options
}

/// The folder that a file is in: that of the process for a bare name.
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the name of a file durable.
pub fn sync_name(file: &Path) -> io::Result<()> {
    File::open(folder_of(file))?.sync_all()
}

/// Begins to read what the page cache lacks of a part of a file.
pub fn read_ahead(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let [offset, bytes] = [offset, bytes].map(|value| value as libc::off_t);
    // SAFETY: no memory is passed.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, bytes, libc::POSIX_FADV_WILLNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Takes the exclusive lock of an open file, or returns false if somebody else holds it. It is held as long as anybody
/// has this open file description: as a descriptor, in whatever process, or as a mapping. A process that is being spawned
/// has it until it executes its program, so a lock that is held is tried again for 200 ms.
pub fn try_lock(file: &File) -> io::Result<bool> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if start.elapsed() < SPAWNING => sleep(SPAWNING / 100),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Takes a shared lock of an open file, which excludes [`try_lock`] only, or returns false if somebody has that.
pub fn try_lock_shared(file: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A file in memory that exists as long as it is open or mapped.
pub fn anonymous(name: &CStr, sealable: bool) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | if sealable { libc::MFD_ALLOW_SEALING } else { 0 };
    // SAFETY: the name is a C string; the new descriptor is owned by nobody else.
    unsafe { Ok(File::from_raw_fd(check(libc::memfd_create(name.as_ptr(), flags))?)) }
}

/// Forbids for good to write to this anonymous file, change its length, or map it for stores.
pub fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: changes the state of a file that is borrowed for the call.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }).map(|_| ())
}

/// Whether the file has been sealed against writing. Only files in memory can be.
pub fn is_sealed(file: &File) -> bool {
    if cfg!(miri) {
        return false;
    }
    // SAFETY: asks about a file that is borrowed for the call; one that knows no seals refuses.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals >= 0 && seals & libc::F_SEAL_WRITE != 0
}

/// Returns the bytes to the file system; every mapping loses them, and they read as zero.
pub fn punch_hole(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the file is borrowed for the call; what becomes of mappings of it is their owners' contract.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, bytes as i64) }).map(|_| ())
}

/// Reserves space for `bytes` at `offset`, which read as zero where there was nothing before, and lengthens the file if they
/// end beyond it.
pub fn reserve(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    if cfg!(miri) {
        return file.set_len(file.metadata()?.len().max(offset + bytes));
    }
    // SAFETY: changes a file that is borrowed for the call.
    check(unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as i64, bytes as i64) }).map(|_| ())
}

/// Whether the file lies in memory (tmpfs, ramfs, hugetlbfs). A device does not, although its name lies in a tmpfs.
pub fn is_in_memory(file: &File) -> io::Result<bool> {
    const RAMFS: i64 = 0x8584_58f6;
    if cfg!(miri) || !file.metadata()?.is_file() {
        return Ok(false);
    }
    // SAFETY: all-zero is a valid value, which the call overwrites.
    let kind = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        check(libc::fstatfs(file.as_raw_fd(), &mut found))?;
        found.f_type
    };
    Ok([libc::TMPFS_MAGIC, libc::HUGETLBFS_MAGIC, RAMFS].contains(&kind))
}

/// Whether a file in memory has memory for all of its bytes: stores to a mapping of it can then not fail for want of it.
pub fn is_whole(file: &File) -> io::Result<bool> {
    let found = file.metadata()?;
    Ok(cfg!(miri) || found.blocks() * 512 >= found.len())
}

/// The flag of open(2) with which a block device that is in use (mounted, part of a volume) is refused.
pub const EXCLUSIVE: i32 = libc::O_EXCL;

/// A random number from the system.
pub fn random_u64() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // SAFETY: eight bytes, borrowed exclusively for the call; so few are never delivered in part.
    check(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) })?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Calls `found(offset, bytes)` for every range of a file that holds data, in order.
pub fn data_ranges(file: &File, mut found: impl FnMut(u64, u64)) -> io::Result<()> {
    data_ranges_in(file, 0..u64::MAX, |range| found(range.start, range.end - range.start))
}

/// As `data_ranges`, for a part of the file.
pub fn data_ranges_in(file: &File, part: Range<u64>, mut found: impl FnMut(Range<u64>)) -> io::Result<()> {
    let mut offset = part.start;
    while let Some(start) = seek(file, offset, libc::SEEK_DATA)?.filter(|&start| start < part.end) {
        let end = seek(file, start, libc::SEEK_HOLE)?.unwrap_or(start);
        found(start..end.min(part.end));
        offset = end;
    }
    Ok(())
}

/// True if the file holds no data at `offset`.
pub fn is_hole(file: &File, offset: u64) -> io::Result<bool> {
    Ok(seek(file, offset, libc::SEEK_DATA)? != Some(offset))
}

/// Where the first data at or after `offset` begins; `None` beyond the last.
pub(crate) fn next_data(file: &File, offset: u64) -> io::Result<Option<u64>> {
    seek(file, offset, libc::SEEK_DATA)
}

/// The next data or hole at or after `offset`; `None` beyond the last.
fn seek(file: &File, offset: u64, whence: libc::c_int) -> io::Result<Option<u64>> {
    // SAFETY: moves the position of a borrowed descriptor.
    match check(unsafe { libc::lseek(file.as_raw_fd(), offset as i64, whence) }) {
        Ok(offset) => Ok(Some(offset as u64)),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Bytes that files in a folder may still take.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
    // SAFETY: all-zero is a valid value, which the call overwrites.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        check(libc::statvfs(path.as_ptr(), &mut found))?;
        Ok(found.f_bavail as u64 * found.f_frsize as u64)
    }
}
