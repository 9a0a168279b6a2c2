//! Exclusive use of the file of a heap.

use crate::error::{Error, Result};
use crate::place::{self, Place};
use nvlab_os::file;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Takes the lock of an open file.
pub(crate) fn lock(file: &File, path: &Path) -> Result<()> {
    match file::try_lock(file).map_err(Error::io("lock", &path.display()))? {
        true => Ok(()),
        false => Err(Error::Busy(path.into())),
    }
}

/// Opens a file, block device or memory window and takes its lock.
pub(crate) fn open_locked(path: &Path) -> Result<File> {
    let examine = || Error::io("examine", &path.display());
    loop {
        let file = place::open(path).map_err(Error::io("open", &path.display()))?;
        lock(&file, path)?;
        if Place::of(&file, path)?.is_fixed() {
            return Ok(file);
        }
        // Compacting replaces the file: this may be the old one.
        let mine = file.metadata().map_err(examine())?;
        let named = std::fs::symlink_metadata(path).map_err(examine())?;
        if (mine.dev(), mine.ino()) == (named.dev(), named.ino()) {
            return Ok(file);
        }
    }
}
