//! The storage of a heap: a file that grows with it, or storage of fixed size: a block device or a memory window.

use crate::error::{Error, Result};
use crate::layout::Header;
use nvlab_os::{Mapping, file};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// A new heap overwrites a device only if this many bytes at its beginning are zero: file systems and volumes have
/// their signatures there (btrfs at 64 KiB).
pub(crate) const BLANK_BYTES: u64 = 128 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A file, which grows with the heap.
    File,
    /// A block device.
    Device,
    /// A memory window: simulated memory that its server lets this program map (`nvlab serve --mem`). The file that
    /// names it is sealed and empty; it can only be mapped.
    Window,
}

impl Place {
    pub fn of(file: &File, path: &Path) -> Result<Place> {
        let found = file.metadata().map_err(Error::io("examine", &path.display()))?.file_type();
        match found {
            found if found.is_block_device() => Ok(Place::Device),
            found if !found.is_file() => {
                Err(Error::Invalid(format!("{} is neither a file nor a block device", path.display())))
            }
            _ if file::is_sealed(file) => Ok(Place::Window),
            _ => Ok(Place::File),
        }
    }

    pub fn is_fixed(self) -> bool {
        self != Place::File
    }

    /// Maps the first `bytes`.
    pub fn map(self, file: &File, path: &Path, bytes: u64) -> Result<Mapping> {
        Mapping::shared(file, bytes).map_err(|error| match (self, error.kind()) {
            (Place::Window, ErrorKind::PermissionDenied) => Error::NotPersistent(format!(
                "{} is sealed: a memory window is only for the programs that its server runs",
                path.display()
            )),
            _ => Error::io("map", &path.display())(error),
        })
    }

    /// Up to `most` bytes from the beginning.
    pub fn read_start(self, file: &File, path: &Path, most: u64) -> Result<Vec<u8>> {
        let bytes = most.min(bytes(file, path)?);
        if self == Place::Window {
            return Ok(self.map(file, path, bytes)?.as_slice().to_vec());
        }
        let mut start = vec![0; bytes as usize];
        file.read_exact_at(&mut start, 0).map_err(Error::io("read", &path.display()))?;
        Ok(start)
    }

    /// True if a heap may be created here: the storage is blank, or holds one whose creation was interrupted.
    pub fn is_blank(self, file: &File, path: &Path) -> Result<bool> {
        let start = self.read_start(file, path, BLANK_BYTES)?;
        Ok(match self.is_fixed() {
            true => is_blank(path, &start),
            false => start.is_empty() || is_unfinished(path, &start),
        })
    }
}

/// Whether a heap may be created where the first bytes are `start` and the size is fixed.
pub(crate) fn is_blank(path: &Path, start: &[u8]) -> bool {
    is_unfinished(path, start) || start.iter().all(|&byte| byte == 0)
}

fn is_unfinished(path: &Path, start: &[u8]) -> bool {
    Header::find(path, start).is_ok_and(|header| header.root == 0)
}

/// Bytes of a file or device.
pub(crate) fn bytes(mut file: &File, path: &Path) -> Result<u64> {
    // The metadata of a device do not tell.
    file.seek(SeekFrom::End(0)).map_err(Error::io("measure", &path.display()))
}

/// Opens existing storage: a regular file by its own name only, a device or a window also through a symbolic link. A
/// device that is in use is refused.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let follow = || OpenOptions::new().read(true).write(true).custom_flags(file::EXCLUSIVE).open(path);
    match file::private().open(path) {
        Ok(found) if found.metadata()?.file_type().is_block_device() => follow(),
        Err(error) if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) => {
            let target = std::fs::metadata(path)?.file_type();
            let found =
                if target.is_file() || target.is_block_device() { follow()? } else { return Err(error) };
            if target.is_block_device() || file::is_sealed(&found) { Ok(found) } else { Err(error) }
        }
        found => found,
    }
}

/// Creates a file, or opens an existing device or window; also returns whether the file is new.
pub(crate) fn create(path: &Path) -> io::Result<(File, bool)> {
    match file::private().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match open(path) {
            Ok(found) if Place::of(&found, path).is_ok_and(Place::is_fixed) => Ok((found, false)),
            Err(found) if found.kind() == ErrorKind::ResourceBusy => Err(found),
            _ => Err(error),
        },
        created => Ok((created?, true)),
    }
}
