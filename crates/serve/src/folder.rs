//! A folder that one server holds: a lock, the files of media, and a record that is replaced whole.
//!
//! | where | what |
//! |---|---|
//! | `DIR/lock` | held by the server |
//! | `DIR/NAME.json` | the record: after a crash the old one or the new one |
//! | `DIR/NAME` | a medium, as large as its device needs; a sparse file |
//!
//! A folder is taken if it is new, empty, or has the record; any other is somebody else's and stays as it is. Nothing in it
//! is followed that is a symbolic link, and nothing is waited for that is no file.
//!
//! Media take room on the disk as they are written. Reserving all of it at the beginning was rejected: a raw array of 139 GB
//! of which a test writes a hundredth would need a disk of its own. Where the room is less than the media may take that is
//! said at the beginning; on a disk that is full the server ends with an error before it answers what did not fit
//! ([`crate::sys::bus`]), and what it answered before is kept.

use crate::WindowError;
use crate::sys::file;
use crate::sys::mapping::Mapping;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

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
        let others = others(folder, record).map_err(failed(folder))?;
        if !others.is_empty() {
            let why = format!(
                "it holds {} and no {record}, so it is not a state of this kind: name a folder that is new, empty or one",
                others.join(", ")
            );
            return Err(WindowError::State { path: folder.into(), why });
        }
        let path = folder.join(LOCK);
        let lock = open_file(private().create(true), &path)?;
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
        let file = match open_file(private().write(false), &path) {
            Ok(file) => file,
            Err(WindowError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        let read = file.take(RECORD_BYTES_MAX).read_to_string(&mut text);
        read.map_err(WindowError::io(format!("cannot read {}", path.display())))?;
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
        let mut file = open_file(private().create(true).truncate(true), &beside)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed())?;
        fs::rename(&beside, &path).map_err(failed())?;
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed())
    }

    /// A medium of so many bytes, mapped, and its file: made anew if `fresh`, otherwise found.
    pub(crate) fn medium(&self, name: &str, bytes: u64, fresh: bool) -> Result<(Mapping, File), WindowError> {
        let path = self.path.join(name);
        let failed = || WindowError::io(format!("cannot use {}", path.display()));
        let file = open_file(private().create(fresh).truncate(fresh), &path)?;
        let has = file.metadata().map_err(failed())?.len();
        if fresh {
            file.set_len(bytes).map_err(failed())?;
        } else if has != bytes {
            let why = format!("it has {has} B where the device needs {bytes} B");
            return Err(WindowError::State { path, why });
        }
        let mut mapping = Mapping::of_file(&file, bytes).map_err(failed())?;
        let text = format!(
            "nvlab: {}: a page of this file cannot be had: the disk is full, or it failed, or the file was made shorter. What \
             was answered is kept; with room on the disk the next start goes on as after a power cut\n",
            path.display()
        );
        mapping.say_at_fault(text).map_err(failed())?;
        Ok((mapping, file))
    }

    /// Says so if media of so many bytes may outgrow the disk.
    pub(crate) fn warn_of_room(&self, bytes: u64) -> Result<(), WindowError> {
        let failed = WindowError::io(format!("cannot look at {}", self.path.display()));
        let free = file::free_bytes(&self.path).map_err(failed)?;
        if free < bytes {
            eprintln!(
                "nvlab: {}: the media take up to {bytes} B, the disk has {free} B: when it is full, nothing is served any more",
                self.path.display()
            );
        }
        Ok(())
    }
}

const LOCK: &str = "lock";
/// Records have a few kilobytes.
const RECORD_BYTES_MAX: u64 = 1 << 20;
/// Names that are said of a folder of somebody else.
const NAMES_MAX: usize = 3;

/// What lies in a folder that is somebody else's; nothing if it is new, empty or has the record. Who was killed while it
/// took a folder left an empty lock, and perhaps a record that does not count yet.
fn others(folder: &Path, record: &str) -> io::Result<Vec<String>> {
    if folder.join(record).symlink_metadata().is_ok() {
        return Ok(Vec::new());
    }
    let beside = format!("{record}.new");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, about) = (entry.file_name(), entry.metadata()?);
        let begun = name == LOCK && about.len() == 0 || name == beside.as_str();
        if !(begun && about.is_file()) {
            names.push(format!("`{}`", name.display()));
        }
    }
    names.sort();
    if names.len() > NAMES_MAX {
        names.splice(NAMES_MAX.., ["others".to_string()]);
    }
    Ok(names)
}

/// A name as that of one file in a folder, or why it cannot be.
pub fn file_name(name: &str) -> Result<&str, WindowError> {
    let one = Path::new(name).components().eq([Component::Normal(name.as_ref())]);
    match one && name.len() <= NAME_BYTES_MAX && !name.contains(char::is_control) {
        true => Ok(name),
        false => Err(WindowError::Options(format!(
            "a design called `{name}` cannot be a file or folder of this name: that has 1 to {NAME_BYTES_MAX} bytes, no `/`, and \
             is not `.` or `..`"
        ))),
    }
}

const NAME_BYTES_MAX: usize = 255;

/// What is wrong with a record's format, if it is not the one known.
pub(crate) fn check_format(found: u32, known: u32) -> Result<(), String> {
    match found == known {
        true => Ok(()),
        false => Err(format!("format {found} is not {known}, the one known")),
    }
}

/// A file that only its owner may use, never reached through a symbolic link nor waited for.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Opens what must be a file.
pub(crate) fn open_file(options: &OpenOptions, path: &Path) -> Result<File, WindowError> {
    let failed = || WindowError::io(format!("cannot use {}", path.display()));
    let file = options.open(path).map_err(failed())?;
    match file.metadata().map_err(failed())?.is_file() {
        true => Ok(file),
        false => Err(WindowError::State { path: path.into(), why: "it is not a file".into() }),
    }
}
