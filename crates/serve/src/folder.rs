//! A folder that one server holds: a lock, the files of media, and a record that is replaced whole.
//!
//! | where | what |
//! |---|---|
//! | `DIR/lock` | held by the server |
//! | `DIR/NAME.json` | the record: after a crash the old one or the new one |
//! | `DIR/NAME` | a medium, as large as its device needs |

use crate::WindowError;
use crate::sys::file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How far what is in a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    /// Not complete: nothing in it counts.
    Making,
    /// In use, or its user was killed.
    Open,
    /// Left in good order.
    Closed,
}

/// A folder, locked.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    record: &'static str,
    _lock: File,
}

impl Folder {
    /// Takes a folder, makes it if there is none. `record` is the name of its record.
    pub(crate) fn take(folder: &Path, record: &'static str) -> Result<Folder, WindowError> {
        let failed = |path: &Path| WindowError::io(format!("cannot use {}", path.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
        let path = folder.join("lock");
        let lock = private().open(&path).map_err(failed(&path))?;
        if !file::lock(&lock).map_err(failed(&path))? {
            return Err(WindowError::Busy(folder.to_path_buf()));
        }
        Ok(Folder { path: folder.to_path_buf(), record, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The record, if there is one; `check` says what is wrong with it.
    pub(crate) fn read<R: DeserializeOwned>(
        &self,
        check: impl Fn(&R) -> Result<(), String>,
    ) -> Result<Option<R>, WindowError> {
        let path = self.path.join(self.record);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(WindowError::io(format!("cannot read {}", path.display()))(error)),
        };
        let record = serde_json::from_str(&text).map_err(|error| error.to_string());
        let checked = record.and_then(|record| check(&record).map(|()| record));
        checked.map(Some).map_err(|why| WindowError::State { path, why })
    }

    /// Replaces the record: a crash leaves the old one or the new one.
    pub(crate) fn write(&self, record: &impl Serialize) -> Result<(), WindowError> {
        let path = self.path.join(self.record);
        let failed = || WindowError::io(format!("cannot write {}", path.display()));
        let text = serde_json::to_string_pretty(record).expect("a record has only plain fields");
        let beside = self.path.join(format!("{}.new", self.record));
        let mut file = private().truncate(true).open(&beside).map_err(failed())?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed())?;
        fs::rename(&beside, &path).map_err(failed())?;
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed())
    }

    /// A medium's file of so many bytes: made anew if `fresh`, otherwise found.
    pub(crate) fn medium(&self, name: &str, bytes: u64, fresh: bool) -> Result<File, WindowError> {
        let path = self.path.join(name);
        let failed = || WindowError::io(format!("cannot use {}", path.display()));
        let file = private().truncate(fresh).open(&path).map_err(failed())?;
        let has = file.metadata().map_err(failed())?.len();
        if fresh {
            file.set_len(bytes).map_err(failed())?;
        } else if has != bytes {
            let why = format!("it has {has} B where the device needs {bytes} B");
            return Err(WindowError::State { path, why });
        }
        Ok(file)
    }
}

/// What is wrong with a record's format, if it is not the one known.
pub(crate) fn check_format(found: u32, known: u32) -> Result<(), String> {
    match found == known {
        true => Ok(()),
        false => Err(format!("format {found} is not {known}, the one known")),
    }
}

/// Opens or makes a file that only its owner may use, never through a symbolic link.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}
