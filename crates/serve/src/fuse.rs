//! A directory with served devices as files, by FUSE: for programs that open a file, and for loop devices.
//!
//! Files are opened for direct I/O: none of their pages is cached by the kernel, so that a flush reaches the device and a
//! loop device (`losetup --direct-io=on`) is the only cache. `fallocate` with PUNCH_HOLE is TRIM where trimmed bytes read as
//! zero for ever; with ZERO_RANGE it is WRITE_ZEROES. A file that was open when the power failed returns EIO from then on;
//! opened again it shows what survived.
//!
//! A held reply blocks its thread: there are as many as a deep queue needs.

use crate::ServeError;
use crate::served::{Drive, DriveError, Due, Session, Zero};
use crate::sys::process;
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Names and sizes never change.
const FOREVER: Duration = Duration::from_secs(3600);
/// Threads when replies are sent at once, and when they are held.
const THREADS_FAST: usize = 2;
const THREADS_HELD: usize = 32;
/// The first file; the root is 1.
const FIRST: u64 = 2;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A mounted folder with a file for each device.
#[derive(Debug)]
pub struct FuseMount {
    session: Option<BackgroundSession>,
    folder: PathBuf,
}

impl FuseMount {
    /// Mounts it: a file for each device, with its name. The folder is created if there is none.
    pub fn open(folder: &Path, devices: Vec<(String, Arc<Drive>)>) -> Result<FuseMount, ServeError> {
        if !Path::new("/dev/fuse").exists() {
            let why = io::Error::new(io::ErrorKind::NotFound, "there is no /dev/fuse");
            return Err(ServeError::io("cannot mount by FUSE (see nvlab doctor)")(why));
        }
        make(folder)?;
        let held = devices.iter().any(|(_, drive)| drive.holds_answers());
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("nvlab".into()), MountOption::NoSuid];
        config.n_threads = Some(if held { THREADS_HELD } else { THREADS_FAST });
        config.clone_fd = true;
        let mounted = fuser::spawn_mount(Files { devices }, folder, &config);
        let what = format!(
            "cannot mount at {} (it must be an empty directory of yours; FUSE needs root, or fusermount3 and \
             /dev/fuse; see nvlab doctor)",
            folder.display()
        );
        let session = mounted.map_err(ServeError::io(what))?;
        Ok(FuseMount { session: Some(session), folder: folder.to_path_buf() })
    }

    /// Unmounts it. Files that are still open keep it busy: that is an error.
    pub fn close(mut self) -> Result<(), ServeError> {
        let Some(session) = self.session.take() else { return Ok(()) };
        let what = format!("cannot unmount {}", self.folder.display());
        session.umount_and_join().map_err(ServeError::io(what))
    }
}

/// Creates the folder, unless a killed server left its mount there.
fn make(folder: &Path) -> Result<(), ServeError> {
    if let Err(error) = std::fs::metadata(folder)
        && error.raw_os_error() == Some(libc::ENOTCONN)
    {
        let why = format!(
            "{0} is still mounted by a server that was killed; unmount it: `fusermount3 -u {0}`, as root `umount {0}`",
            folder.display()
        );
        return Err(ServeError::Options(why));
    }
    std::fs::create_dir_all(folder).map_err(ServeError::io(format!("cannot create {}", folder.display())))
}

struct Files {
    devices: Vec<(String, Arc<Drive>)>,
}

fn errno(fault: &DriveError) -> Errno {
    match fault {
        DriveError::Range => Errno::EINVAL,
        DriveError::NotFast => Errno::EOPNOTSUPP,
        DriveError::NoRoom(_) => Errno::ENOSPC,
        DriveError::Device(_) | DriveError::TimeIsOver | DriveError::PowerLost | DriveError::Lost(_) => {
            Errno::EIO
        }
    }
}

impl Files {
    fn drive(&self, file: INodeNo) -> Option<&Drive> {
        let number = u64::from(file).checked_sub(FIRST)?;
        self.devices.get(number as usize).map(|(_, drive)| &**drive)
    }

    fn attributes(&self, file: INodeNo) -> Option<FileAttr> {
        let root = file == INodeNo::ROOT;
        let size = if root { 0 } else { self.drive(file)?.capacity_bytes() };
        Some(FileAttr {
            ino: file,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if root { FileType::Directory } else { FileType::RegularFile },
            perm: if root { 0o700 } else { 0o600 },
            nlink: 1,
            uid: process::user(),
            gid: process::group(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Serves a request for an open file, and holds the reply.
    fn with(
        &self,
        file: INodeNo,
        handle: FileHandle,
        act: impl FnOnce(&Drive, Session) -> Result<Due, DriveError>,
    ) -> Result<(), Errno> {
        let drive = self.drive(file).ok_or(Errno::EISDIR)?;
        let session = Session { power: handle.0 };
        let due = act(drive, session).map_err(|fault| errno(&fault))?;
        drive.hold(due);
        // The power may have failed while the reply was held.
        if drive.is_current(session) { Ok(()) } else { Err(Errno::EIO) }
    }
}

fn answer(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // An older kernel sends one request at a time.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(1 << 20);
        let _ = config.set_max_background(256);
        Ok(())
    }

    fn lookup(&self, _: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let number = self.devices.iter().position(|(own, _)| OsStr::new(own) == name);
        let found = number.and_then(|number| self.attributes(INodeNo(number as u64 + FIRST)));
        match found {
            Some(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, file: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(file) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Programs set times, and truncate files before they write: the device stays as it is.
    fn setattr(
        &self,
        _: &Request,
        file: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<fuser::TimeOrNow>,
        _: Option<fuser::TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(file) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let files = self.devices.iter().zip(FIRST..);
        let files = files.map(|((name, _), number)| (INodeNo(number), FileType::RegularFile, name.as_str()));
        let own = [(INodeNo::ROOT, FileType::Directory, "."), (INodeNo::ROOT, FileType::Directory, "..")];
        for (i, (number, kind, name)) in own.into_iter().chain(files).enumerate().skip(offset as usize) {
            if reply.add(number, i as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, file: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        match self.drive(file) {
            Some(drive) => reply.opened(FileHandle(drive.session().power), direct),
            None => reply.error(Errno::EISDIR),
        }
    }

    fn read(
        &self,
        _: &Request,
        file: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(drive) = self.drive(file) else { return reply.error(Errno::EISDIR) };
        let bytes = drive.capacity_bytes().saturating_sub(offset).min(size as u64) as usize;
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < bytes {
                buffer.resize(bytes, 0);
            }
            let into = &mut buffer[..bytes];
            let read = match bytes {
                0 => Ok(()),
                _ => self.with(file, handle, |drive, session| drive.read(session, offset, into)),
            };
            match read {
                Ok(()) => reply.data(&buffer[..bytes]),
                Err(error) => reply.error(error),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        file: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(drive) = self.drive(file) else { return reply.error(Errno::EISDIR) };
        let bytes = drive.capacity_bytes().saturating_sub(offset).min(data.len() as u64);
        if bytes == 0 {
            return reply.error(Errno::ENOSPC);
        }
        let data = &data[..bytes as usize];
        let fua = flags.0 & libc::O_DSYNC != 0;
        match self.with(file, handle, |drive, session| drive.write(session, offset, data, fua)) {
            Ok(()) => reply.written(bytes as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // A file that is closed need not be durable.
        reply.ok();
    }

    fn fsync(&self, _: &Request, file: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.with(file, handle, |drive, session| drive.flush(session)));
    }

    fn fallocate(
        &self,
        _: &Request,
        file: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = mode & !libc::FALLOC_FL_KEEP_SIZE;
        let done = self.with(file, handle, |drive, session| match mode {
            // A punched hole must read as zero for ever. A device that cannot promise that refuses: writing zeros would wear it
            // for nothing where only a discard was meant.
            libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE => {
                let fast = mode == libc::FALLOC_FL_PUNCH_HOLE;
                let how = Zero { may_trim: true, fast, ..Zero::default() };
                drive.zero(session, (offset, length), how)
            }
            // The space is allocated already.
            0 => Ok(None),
            _ => Err(DriveError::NotFast),
        });
        answer(reply, done);
    }

    fn lseek(
        &self,
        _: &Request,
        file: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let Some(drive) = self.drive(file) else { return reply.error(Errno::EISDIR) };
        let session = Session { power: handle.0 };
        let wants_data = match whence {
            libc::SEEK_DATA => true,
            libc::SEEK_HOLE => false,
            _ => return reply.error(Errno::EINVAL),
        };
        let end = drive.capacity_bytes();
        let mut at = offset.max(0) as u64;
        while at < end {
            let mut found = false;
            let seen = drive.mapped(session, (at, end - at), |bytes, mapped| {
                found = mapped == wants_data;
                at += if found { 0 } else { bytes };
                !found
            });
            match seen {
                Err(fault) => return reply.error(errno(&fault)),
                Ok(()) if found => return reply.offset(at as i64),
                Ok(()) => {}
            }
        }
        match wants_data {
            true => reply.error(Errno::ENXIO),
            false => reply.offset(end as i64),
        }
    }
}
