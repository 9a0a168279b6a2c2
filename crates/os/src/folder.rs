//! A folder with one owner: a lock, files of a fixed length, and a record that identifies the folder.
//!
//! 1. `DIR/lock` is locked as long as the owner lives; a second one is refused ([`FolderError::Busy`]).
//! 2. A folder is accepted if it is new, empty, or has the record; any other is left unchanged.
//! 3. [`LockedFolder::replace`] is atomic and durable: after a crash a file has its old or its new contents, and its
//!    new ones once the call has returned.
//! 4. Symbolic links in it are not followed, and files that are not regular are not opened. All of it is accessible
//!    to its owner alone (modes 0700 and 0600).

use crate::file::{free_bytes, private, try_lock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

const LOCK: &str = "lock";
/// Names listed of a folder that belongs to somebody else.
const NAMES_MAX: usize = 3;

/// Why a folder or one of its files cannot be used.
#[derive(Debug, Error)]
pub enum FolderError {
    /// A system call failed on the folder or one of its files.
    #[error("{what}: {source}")]
    Io {
        /// Verb and path, such as "cannot lock /state".
        what: String,
        /// The errno it failed with.
        source: io::Error,
    },
    /// A file or the folder is not what it should be.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// The folder, or the file in it.
        path: PathBuf,
        /// What it holds or lacks, and what can be done.
        why: String,
    },
    /// Another process, or another handle in this one, holds the lock.
    #[error("{} is in use", _0.display())]
    Busy(PathBuf),
}

impl FolderError {
    fn io(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> FolderError + use<> {
        let what = format!("cannot {verb} {}", path.display());
        move |source| FolderError::Io { what, source }
    }
}

/// A folder, locked until this is dropped.
#[derive(Debug)]
pub struct LockedFolder {
    path: PathBuf,
    _lock: File,
}

impl LockedFolder {
    /// Locks a folder, which is created if there is none. `record` is the name of the file that identifies it.
    pub fn open(folder: &Path, record: &str) -> Result<LockedFolder, FolderError> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        created.map_err(FolderError::io("use", folder))?;
        let others = foreign_names(folder, record).map_err(FolderError::io("use", folder))?;
        if !others.is_empty() {
            let why = format!(
                "it holds {} and no {record}, so it is not a state of this kind: name a new or empty folder, or one with such a state",
                others.join(", ")
            );
            return Err(FolderError::Unusable { path: folder.into(), why });
        }
        let path = folder.join(LOCK);
        let lock = open_regular(private().create(true), &path)?;
        match try_lock(&lock).map_err(FolderError::io("use", &path))? {
            true => Ok(LockedFolder { path: folder.to_path_buf(), _lock: lock }),
            false => Err(FolderError::Busy(folder.to_path_buf())),
        }
    }

    /// As it was opened: not made absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of a file, at most `bytes_max` of them; `None` if there is no such file.
    pub fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, FolderError> {
        let path = self.path.join(name);
        let file = match open_regular(private().write(false), &path) {
            Err(FolderError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            opened => opened?,
        };
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes).map_err(FolderError::io("read", &path))?;
        Ok(Some(bytes))
    }

    /// Replaces the contents of a file, or creates it: atomic, and durable when it returns.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let (path, temporary) = (self.path.join(name), self.path.join(temporary(name)));
        let failed = |error| FolderError::io("write", &path)(error);
        let mut file = open_regular(private().create(true).truncate(true), &temporary)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&temporary, &path).map_err(failed)?;
        // The new name is durable only with its folder.
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// A file of exactly `bytes`: created or emptied, and sparse, if `fresh`; otherwise it must exist with this length.
    pub fn sized_file(&self, name: &str, bytes: u64, fresh: bool) -> Result<File, FolderError> {
        let path = self.path.join(name);
        let failed = |error| FolderError::io("use", &path)(error);
        let file = open_regular(private().create(fresh).truncate(fresh), &path)?;
        let found = file.metadata().map_err(failed)?.len();
        if fresh {
            file.set_len(bytes).map_err(failed)?;
        } else if found != bytes {
            let why = format!("it has {found} B where the device needs {bytes} B");
            return Err(FolderError::Unusable { path, why });
        }
        Ok(file)
    }

    /// Bytes that its files may still take on the disk.
    pub fn free_bytes(&self) -> Result<u64, FolderError> {
        free_bytes(&self.path).map_err(FolderError::io("look at", &self.path))
    }
}

/// Opens what must be a regular file.
pub fn open_regular(options: &OpenOptions, path: &Path) -> Result<File, FolderError> {
    let failed = |error| FolderError::io("use", path)(error);
    let file = options.open(path).map_err(failed)?;
    match file.metadata().map_err(failed)?.is_file() {
        true => Ok(file),
        false => Err(FolderError::Unusable { path: path.into(), why: "it is not a file".into() }),
    }
}

fn temporary(name: &str) -> String {
    format!("{name}.new")
}

/// What a folder holds that belongs to somebody else; nothing if it is new, empty or has the record. An owner that was
/// killed while it took the folder left an empty lock, and perhaps a record that does not count yet.
fn foreign_names(folder: &Path, record: &str) -> io::Result<Vec<String>> {
    if folder.join(record).symlink_metadata().is_ok() {
        return Ok(Vec::new());
    }
    let unfinished = temporary(record);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, metadata) = (entry.file_name(), entry.metadata()?);
        let begun = name == LOCK && metadata.len() == 0 || name == unfinished.as_str();
        if !(begun && metadata.is_file()) {
            names.push(format!("`{}`", name.display()));
        }
    }
    names.sort();
    if names.len() > NAMES_MAX {
        names.splice(NAMES_MAX.., ["others".to_string()]);
    }
    Ok(names)
}
