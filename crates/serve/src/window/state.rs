//! What remains of a window when its processes have ended.
//!
//! | where | what |
//! |---|---|
//! | `DIR/lock` | held by the server |
//! | `DIR/nor`, `DIR/sram` | the device's media, mapped |
//! | `DIR/state.json` | size, stage, name of the resident file |
//! | `/dev/shm/nvlab-window-ID` | the resident pages, newer than the media |
//!
//! The stage is `making` until the device is complete, `open` while the resident file may hold what the media do not,
//! and `closed` after everything was written back. A killed process leaves `open`, and the resident file: memory that
//! outlives programs stands for the battery-backed memory of the paper. It does not outlive the machine. The media files
//! are written to disk whenever the kernel chooses: after an orderly restart they are whole, after a crash of the machine
//! they may be torn beyond what the controller can recover.

use crate::ServeError;
use crate::state_folder::{Stage, StateFolder, check_format};
use nvlab_os::Mapping;
use nvlab_os::file::{private, try_lock};
use nvlab_os::folder::open_regular;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The folder of resident files: a file system in memory.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
const FORMAT: u32 = 1;

/// What was in the state when the window was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: the window is new.
    Fresh,
    /// It had been closed in good order.
    Closed,
    /// Its processes had been killed; the resident pages are complete.
    Resident,
    /// Its processes had been killed and the resident pages are lost: what had not been written back is gone.
    Lost {
        /// Whether the machine was restarted since; if not, the file was removed.
        restarted: bool,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format: u32,
    window_bytes: u64,
    stage: Stage,
    id: String,
    boot: String,
}

/// A state folder, locked.
#[derive(Debug)]
pub(crate) struct WindowState {
    folder: StateFolder,
    record: Record,
}

impl WindowState {
    /// Locks a folder, creates it if there is none, and returns how it was found. Without `window_bytes` the size is that
    /// of the state, or `default_bytes` for a new one.
    pub(crate) fn open(
        folder: &Path,
        window_bytes: Option<u64>,
        default_bytes: u64,
    ) -> Result<(WindowState, Found), ServeError> {
        let locked = StateFolder::open(folder, "state.json")?;
        let record = locked.read(check)?;
        let boot = boot().map_err(ServeError::io("cannot read the boot id of this machine"))?;
        let (record, found) = match record {
            Some(record) => {
                if let Some(asked) = window_bytes.filter(|&asked| asked != record.window_bytes) {
                    return Err(ServeError::Size {
                        folder: folder.into(),
                        asked,
                        found: record.window_bytes,
                    });
                }
                let resident = resident_path(&record.id).exists();
                let found = match record.stage {
                    Stage::Making => Found::Fresh,
                    Stage::Closed => Found::Closed,
                    Stage::Open if resident => Found::Resident,
                    Stage::Open => Found::Lost { restarted: record.boot != boot },
                };
                (Record { boot, ..record }, found)
            }
            None => {
                let id = random_id().map_err(ServeError::io("cannot get random numbers"))?;
                let window_bytes = window_bytes.unwrap_or(default_bytes);
                (Record { format: FORMAT, window_bytes, stage: Stage::Making, id, boot }, Found::Fresh)
            }
        };
        let state = WindowState { folder: locked, record };
        if found == Found::Fresh {
            state.folder.write(&state.record)?;
        }
        Ok((state, found))
    }

    /// Bytes of the window.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.record.window_bytes
    }

    /// A medium, created or found, and its file.
    pub(crate) fn medium(
        &self,
        name: &str,
        bytes: u64,
        found: &Found,
    ) -> Result<(Mapping, File), ServeError> {
        self.folder.medium(name, bytes, *found == Found::Fresh)
    }

    /// The resident file, locked: what was found, or an empty one.
    pub(crate) fn resident(&self, found: &Found) -> Result<File, ServeError> {
        let path = resident_path(&self.record.id);
        let failed = || ServeError::io(format!("cannot use {}", path.display()));
        let file = open_regular(private().create(true), &path)?;
        // A program that outlived its server may still map it: it must not store while another server has it.
        if !try_lock(&file).map_err(failed())? {
            return Err(ServeError::Busy(self.folder.path().to_path_buf()));
        }
        if *found != Found::Resident {
            file.set_len(0).map_err(failed())?;
        }
        file.set_len(self.record.window_bytes).map_err(failed())?;
        Ok(file)
    }

    /// Warns if media of this many bytes may outgrow the disk.
    pub(crate) fn warn_of_space(&self, bytes: u64) -> Result<(), ServeError> {
        self.folder.warn_of_space(bytes)
    }

    /// From now on the resident file may hold what the media do not.
    pub(crate) fn mark_open(&mut self) -> Result<(), ServeError> {
        self.record.stage = Stage::Open;
        self.folder.write(&self.record)
    }

    /// Everything was written back and is in the media's files: the resident file is removed.
    pub(crate) fn mark_closed(&mut self) -> Result<(), ServeError> {
        self.record.stage = Stage::Closed;
        self.folder.write(&self.record)?;
        let path = resident_path(&self.record.id);
        fs::remove_file(&path).map_err(ServeError::io(format!("cannot remove {}", path.display())))
    }
}

fn resident_path(id: &str) -> PathBuf {
    Path::new(SHARED_MEMORY).join(format!("nvlab-window-{id}"))
}

fn check(record: &Record) -> Result<(), String> {
    check_format(record.format, FORMAT)?;
    match record.id.len() == 32 && record.id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(()),
        false => Err(format!("`id` must be 32 hexadecimal digits, not \"{}\"", record.id)),
    }
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_string())
}

/// 32 hexadecimal digits.
pub(crate) fn random_id() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
