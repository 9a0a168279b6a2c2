//! A new file that replaces another one.
//!
//! It is written in the folder of the old one, under a hidden name, and renamed over it when it is complete and
//! durable. Until then the old file is unchanged, and the rename is atomic: at whatever moment the program or the
//! power fails, the name refers to one of the two. The rest of an interrupted replacement is removed by the next one.

use crate::error::{Error, Result};
use crate::locked::lock;
use nvlab_os::file;
use std::fs::{File, Metadata};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// The replacement of a file. Dropped before it is finished, it removes what was written.
#[derive(Debug)]
pub(crate) struct Replacement<'p> {
    path: &'p Path,
    beside: PathBuf,
    old: Metadata,
    is_finished: bool,
}

impl<'p> Replacement<'p> {
    /// Of a file that the caller has locked.
    pub fn of(old: &File, path: &'p Path) -> Result<Replacement<'p>> {
        let old = old.metadata().map_err(Error::io("examine", &path.display()))?;
        if old.nlink() != 1 {
            let why = format!("{} has hard links, which would keep the old file", path.display());
            return Err(Error::Invalid(why));
        }
        let name =
            path.file_name().ok_or_else(|| Error::Invalid(format!("{} is not a file", path.display())))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".nvheap-new");
        Ok(Replacement { path, beside: path.with_file_name(hidden), old, is_finished: false })
    }

    /// Bytes of the old file.
    pub fn bytes_before(&self) -> u64 {
        self.old.len()
    }

    /// The name of the new file.
    pub fn beside(&self) -> &Path {
        &self.beside
    }

    /// A new file, empty and locked. An earlier, unfinished one loses its name.
    pub fn begin(&self) -> Result<File> {
        // There is one at a time, by whoever has the lock of the old one.
        let _ = std::fs::remove_file(&self.beside);
        let new = file::private().create_new(true).open(&self.beside);
        let new = new.map_err(Error::io("create", &self.beside.display()))?;
        lock(&new, &self.beside)?;
        Ok(new)
    }

    /// Makes the new file durable and replaces the old one by it, with the same owner and permissions; returns its
    /// size in bytes.
    pub fn finish(mut self, new: &File) -> Result<u64> {
        let (beside, path, old) = (&self.beside, self.path, &self.old);
        let own = new.metadata().map_err(Error::io("examine", &beside.display()))?;
        if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
            fchown(new, Some(old.uid()), Some(old.gid()))
                .map_err(Error::io("change the owner of", &beside.display()))?;
        }
        new.set_permissions(old.permissions()).map_err(Error::io("allow", &beside.display()))?;
        new.sync_all().map_err(Error::io("sync", &beside.display()))?;
        std::fs::rename(beside, path).map_err(Error::io("replace", &path.display()))?;
        self.is_finished = true;
        sync_name(path)?;
        Ok(own.len())
    }
}

/// Makes the name of a new file durable.
pub(crate) fn sync_name(path: &Path) -> Result<()> {
    file::sync_name(path).map_err(Error::io("sync", &file::folder_of(path).display()))
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = std::fs::remove_file(&self.beside);
        }
    }
}
