//! Stores on files and raw devices.

use super::{Segments, Store};
use crate::{Error, Result};
use nvlab_os::file::try_lock;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file or block device, locked while it is open.
#[derive(Debug)]
pub struct FileStore {
    file: File,
}

impl FileStore {
    /// Opens what is there. `flags` are added to those of open(2).
    pub fn open(path: &Path, flags: i32) -> Result<FileStore> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(flags).open(path);
        FileStore::lock(file.map_err(Error::io("open", &path.display()))?, path)
    }

    /// Opens what is there for reading.
    pub fn open_to_read(path: &Path) -> Result<FileStore> {
        let file = File::open(path).map_err(Error::io("open", &path.display()))?;
        FileStore::lock(file, path)
    }

    /// Creates a file, which must not exist, of `bytes` zero bytes with space reserved for them; readable by its owner
    /// only. It is durable when this returns.
    pub fn create(path: &Path, bytes: u64) -> Result<FileStore> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path);
        let store = FileStore::lock(file.map_err(Error::io("create", &path.display()))?, path)?;
        let made = store.set_len(bytes).and_then(|()| store.file.sync_all()).and_then(|()| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        });
        if let Err(error) = made {
            // Half a file would be in the way of the next attempt.
            let _ = std::fs::remove_file(path);
            return Err(Error::io("create", &path.display())(error));
        }
        Ok(store)
    }

    fn lock(file: File, path: &Path) -> Result<FileStore> {
        match try_lock(&file) {
            Ok(true) => Ok(FileStore { file }),
            Ok(false) => Err(Error::Busy(path.into())),
            Err(error) => Err(Error::io("lock", &path.display())(error)),
        }
    }
}

impl Store for FileStore {
    fn len(&self) -> io::Result<u64> {
        // A device has no length but has an end.
        (&self.file).seek(SeekFrom::End(0))
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        reserve(&self.file, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn file(&self) -> Option<&File> {
        Some(&self.file)
    }
}

/// Sets the length. The space of new bytes is reserved, so that no later write fails for want of it; where the file system
/// cannot reserve, they are written.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let old = file.metadata()?.len();
    if bytes <= old {
        return file.set_len(bytes);
    }
    match nvlab_os::file::reserve(file, old, bytes - old) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let zeros = vec![0; 1 << 20];
            let mut at = old;
            while at < bytes {
                let piece = (bytes - at).min(zeros.len() as u64);
                file.write_all_at(&zeros[..piece as usize], at)?;
                at += piece;
            }
            Ok(())
        }
        result => result,
    }
}

/// Segments that are files of a folder; their names are paths, relative to it unless they begin with `/`.
#[derive(Clone, Debug)]
pub struct SegmentFolder(PathBuf);

impl SegmentFolder {
    /// The segments of this folder.
    pub fn new(folder: impl Into<PathBuf>) -> SegmentFolder {
        SegmentFolder(folder.into())
    }

    /// The file of a segment.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates a segment of `bytes` zero bytes; one of that name must not exist.
    pub fn create(&self, name: &str, bytes: u64) -> Result<()> {
        FileStore::create(&self.path(name), bytes).map(|_| ())
    }
}

impl Segments for SegmentFolder {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(FileStore::open(&self.path(name), 0)?))
    }
}
