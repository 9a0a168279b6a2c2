//! A locked folder with the state of something served: the files of its media, and a record in JSON.
//!
//! | where | what |
//! |---|---|
//! | `DIR/lock` | held by the server |
//! | `DIR/NAME.json` | the record: after a crash the old one or the new one |
//! | `DIR/NAME` | a medium, as large as its device needs; a sparse file |
//!
//! Media take space on the disk as they are written. Reserving all of it at the start was rejected: a raw array of 139 GB
//! of which a test writes a hundredth would need a disk of its own. If the disk has less space than the media may take, a
//! warning says so at the start; when it is full, the server ends with an error before it answers what did not fit
//! ([`Mapping::report_fault`]), and what it answered before is kept.

use crate::ServeError;
use nvlab_os::{LockedFolder, Mapping};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Component, Path};

/// How complete the contents of a folder are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    Making,
    /// In use, or its user was killed.
    Open,
    /// Closed in good order.
    Closed,
}

/// A folder, locked.
#[derive(Debug)]
pub(crate) struct StateFolder {
    folder: LockedFolder,
    record: &'static str,
}

impl StateFolder {
    /// Locks a folder, which is created if there is none. `record` is the name of its record.
    pub(crate) fn open(folder: &Path, record: &'static str) -> Result<StateFolder, ServeError> {
        Ok(StateFolder { folder: LockedFolder::open(folder, record)?, record })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The record, if there is one; `check` returns what is wrong with it.
    pub(crate) fn read<R: DeserializeOwned>(
        &self,
        check: impl Fn(&R) -> Result<(), String>,
    ) -> Result<Option<R>, ServeError> {
        let Some(text) = self.folder.read(self.record, RECORD_BYTES_MAX)? else { return Ok(None) };
        let record = serde_json::from_slice(&text).map_err(|error| error.to_string());
        let checked = record.and_then(|record| check(&record).map(|()| record));
        checked.map(Some).map_err(|why| ServeError::State { path: self.path().join(self.record), why })
    }

    /// Replaces the record: a crash leaves the old one or the new one.
    pub(crate) fn write(&self, record: &impl Serialize) -> Result<(), ServeError> {
        let text = serde_json::to_vec_pretty(record).expect("a record has only plain fields");
        Ok(self.folder.replace(self.record, &text)?)
    }

    /// A medium of this many bytes, mapped, and its file: created if `fresh`, otherwise found.
    pub(crate) fn medium(&self, name: &str, bytes: u64, fresh: bool) -> Result<(Mapping, File), ServeError> {
        let file = self.folder.sized_file(name, bytes, fresh)?;
        let path = self.path().join(name);
        let failed = || ServeError::io(format!("cannot use {}", path.display()));
        let mut mapping = Mapping::shared(&file, bytes).map_err(failed())?;
        let text = format!(
            "nvlab: {}: cannot access a page of this file: the disk is full or failed, or the file was truncated. Acknowledged \
             data is kept; with room on the disk, the next start recovers as after a power cut\n",
            path.display()
        );
        mapping.report_fault(text).map_err(failed())?;
        Ok((mapping, file))
    }

    /// Warns if media of this many bytes may outgrow the disk.
    pub(crate) fn warn_of_space(&self, bytes: u64) -> Result<(), ServeError> {
        let free = self.folder.free_bytes()?;
        if free < bytes {
            eprintln!(
                "nvlab: {}: the media take up to {bytes} B, the disk has {free} B free: when it is full, serving stops",
                self.path().display()
            );
        }
        Ok(())
    }
}

const RECORD_BYTES_MAX: u64 = 1 << 20;
const NAME_BYTES_MAX: usize = 255;

/// A name, if it can be that of one file in a folder.
pub fn file_name(name: &str) -> Result<&str, ServeError> {
    let one = Path::new(name).components().eq([Component::Normal(name.as_ref())]);
    match one && name.len() <= NAME_BYTES_MAX && !name.contains(char::is_control) {
        true => Ok(name),
        false => Err(ServeError::Options(format!(
            "the design name `{name}` cannot be used as a file name: 1 to {NAME_BYTES_MAX} bytes, no `/`, not `.` or `..`"
        ))),
    }
}

/// What is wrong with the format of a record, if it is not the known one.
pub(crate) fn check_format(found: u32, known: u32) -> Result<(), String> {
    match found == known {
        true => Ok(()),
        false => Err(format!(
            "format {found} is not {known}, the only one supported: another version of nvlab wrote it. Serve it with that \
             version, or use a new folder"
        )),
    }
}
