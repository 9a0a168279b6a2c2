//! Files: locks, holes, and files without a name.

use super::check;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::Path;
use std::time::Duration;

/// A file in memory that goes with its last user.
pub fn anonymous(name: &CStr, sealable: bool) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | if sealable { libc::MFD_ALLOW_SEALING } else { 0 };
    // SAFETY: the name is a C string; the new descriptor is owned by nobody else.
    unsafe { Ok(File::from_raw_fd(check(libc::memfd_create(name.as_ptr(), flags))?)) }
}

/// From now on nobody writes to this anonymous file, nor changes its length, nor maps it for stores.
pub fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: changes the state of a file that is borrowed for the call.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }).map(|_| ())
}

/// Takes the lock of an open file, or says that somebody else has it. It is held as long as anybody has this opening of
/// the file: as a descriptor, in whatever process, or as a mapping.
pub fn lock(file: &File) -> io::Result<bool> {
    // SAFETY: changes the state of a file that is borrowed for the call.
    match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives the bytes back to the system; they are gone from every mapping and read as zero.
pub fn punch_hole(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the file is borrowed for the call; what becomes of mappings of it is their owners' contract.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, bytes as i64) }).map(|_| ())
}

/// The stretches of a file that hold data: (offset, bytes) in order.
pub fn data_ranges(file: &File, mut found: impl FnMut(u64, u64)) -> io::Result<()> {
    let seek = |offset: u64, whence: libc::c_int| -> io::Result<Option<u64>> {
        // SAFETY: moves the position of a borrowed descriptor.
        match check(unsafe { libc::lseek(file.as_raw_fd(), offset as i64, whence) }) {
            Ok(offset) => Ok(Some(offset as u64)),
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let mut offset = 0;
    while let Some(start) = seek(offset, libc::SEEK_DATA)? {
        let end = seek(start, libc::SEEK_HOLE)?.unwrap_or(start);
        found(start, end - start);
        offset = end;
    }
    Ok(())
}

/// True if nothing is in the file at `offset`.
pub fn is_hole(file: &File, offset: u64) -> io::Result<bool> {
    // SAFETY: moves the position of a borrowed descriptor.
    match check(unsafe { libc::lseek(file.as_raw_fd(), offset as i64, libc::SEEK_DATA) }) {
        Ok(data) => Ok(data as u64 != offset),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Bytes that files in a folder may still take.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let path = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes())?;
    // SAFETY: all-zero is a valid value, which the call overwrites.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        check(libc::statvfs(path.as_ptr(), &mut found))?;
        Ok(found.f_bavail as u64 * found.f_frsize as u64)
    }
}

/// A counter that can be waited for with files.
pub fn event() -> io::Result<File> {
    // SAFETY: the new descriptor is owned by nobody else.
    unsafe { Ok(File::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?)) }
}

/// Waits until one of these can be read.
pub fn wait_readable(waiting: &mut [libc::pollfd]) -> io::Result<()> {
    wait_readable_for(waiting, None)
}

/// The same, for so long.
pub fn wait_readable_for(waiting: &mut [libc::pollfd], time: Option<Duration>) -> io::Result<()> {
    let milliseconds = time.map_or(-1, |time| time.as_millis().min(i32::MAX as u128) as libc::c_int);
    // SAFETY: the slice is borrowed for the call with its length.
    match check(unsafe { libc::poll(waiting.as_mut_ptr(), waiting.len() as libc::nfds_t, milliseconds) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// An entry for [`wait_readable`].
pub fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}
