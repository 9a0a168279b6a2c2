//! What stays of a window when its processes are gone.
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
//! are written by the kernel when it pleases: after an orderly restart they are whole, after a crash of the machine
//! they may be torn beyond what the controller can recover.

use crate::WindowError;
use crate::sys::file;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where resident files live: a file system in memory.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
const FORMAT: u32 = 1;

/// How a window was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing was there.
    Fresh,
    /// It had been closed in good order.
    Closed,
    /// Its processes had been killed; the resident pages are all there.
    Resident,
    /// Its processes had been killed and the resident pages are lost: what had not been written back is gone.
    Lost {
        /// The machine was restarted since; otherwise somebody removed the file.
        restarted: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    Making,
    Open,
    Closed,
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
pub(crate) struct State {
    folder: PathBuf,
    record: Record,
    _lock: File,
}

impl State {
    /// Takes a folder, makes it if there is none, and says how it was found. Without `window_bytes` the size is that
    /// of the state, or `default_bytes` for a new one.
    pub(crate) fn open(
        folder: &Path,
        window_bytes: Option<u64>,
        default_bytes: u64,
    ) -> Result<(State, Found), WindowError> {
        let failed = |path: &Path| WindowError::io(format!("cannot use {}", path.display()));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
        let path = folder.join("lock");
        let lock = private().open(&path).map_err(failed(&path))?;
        if !file::lock(&lock).map_err(failed(&path))? {
            return Err(WindowError::Busy(folder.to_path_buf()));
        }
        let record = read_record(folder)?;
        let boot = boot().map_err(WindowError::io("cannot tell one start of this machine from the next"))?;
        let (record, found) = match record {
            Some(record) => {
                if let Some(asked) = window_bytes.filter(|&asked| asked != record.window_bytes) {
                    return Err(WindowError::Size {
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
                let id = random_id().map_err(WindowError::io("no random numbers"))?;
                let window_bytes = window_bytes.unwrap_or(default_bytes);
                (Record { format: FORMAT, window_bytes, stage: Stage::Making, id, boot }, Found::Fresh)
            }
        };
        let state = State { folder: folder.to_path_buf(), record, _lock: lock };
        if found == Found::Fresh {
            state.write_record()?;
        }
        Ok((state, found))
    }

    /// Bytes of the window.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.record.window_bytes
    }

    /// A medium's file, made or found.
    pub(crate) fn medium(&self, name: &str, bytes: u64, found: &Found) -> Result<File, WindowError> {
        let path = self.folder.join(name);
        let failed = || WindowError::io(format!("cannot use {}", path.display()));
        let file = private().truncate(*found == Found::Fresh).open(&path).map_err(failed())?;
        let has = file.metadata().map_err(failed())?.len();
        if *found == Found::Fresh {
            file.set_len(bytes).map_err(failed())?;
        } else if has != bytes {
            return Err(WindowError::State {
                path,
                why: format!("it has {has} B where the device needs {bytes} B"),
            });
        }
        Ok(file)
    }

    /// The resident file, locked: what was found, or an empty one.
    pub(crate) fn resident(&self, found: &Found) -> Result<File, WindowError> {
        let path = resident_path(&self.record.id);
        let failed = || WindowError::io(format!("cannot use {}", path.display()));
        let file = private().open(&path).map_err(failed())?;
        // A program that outlived its server still has it: it must not store while somebody else serves.
        if !file::lock(&file).map_err(failed())? {
            return Err(WindowError::Busy(self.folder.clone()));
        }
        if *found != Found::Resident {
            file.set_len(0).map_err(failed())?;
        }
        file.set_len(self.record.window_bytes).map_err(failed())?;
        Ok(file)
    }

    /// From now on the resident file may hold what the media do not.
    pub(crate) fn mark_open(&mut self) -> Result<(), WindowError> {
        self.record.stage = Stage::Open;
        self.write_record()
    }

    /// Everything was written back and is in the media's files: the resident file goes.
    pub(crate) fn mark_closed(&mut self) -> Result<(), WindowError> {
        self.record.stage = Stage::Closed;
        self.write_record()?;
        let path = resident_path(&self.record.id);
        fs::remove_file(&path).map_err(WindowError::io(format!("cannot remove {}", path.display())))
    }

    /// Replaces the record: a crash leaves the old one or the new one.
    fn write_record(&self) -> Result<(), WindowError> {
        let path = self.folder.join("state.json");
        let failed = || WindowError::io(format!("cannot write {}", path.display()));
        let text = serde_json::to_string_pretty(&self.record).expect("a record has only plain fields");
        let beside = self.folder.join("state.json.new");
        let mut file = private().truncate(true).open(&beside).map_err(failed())?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed())?;
        fs::rename(&beside, &path).map_err(failed())?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed())
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

fn resident_path(id: &str) -> PathBuf {
    Path::new(SHARED_MEMORY).join(format!("nvlab-window-{id}"))
}

fn read_record(folder: &Path) -> Result<Option<Record>, WindowError> {
    let path = folder.join("state.json");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(WindowError::io(format!("cannot read {}", path.display()))(error)),
    };
    let wrong = |why: String| WindowError::State { path: path.clone(), why };
    let record: Record = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if record.format != FORMAT {
        return Err(wrong(format!("format {} is not {FORMAT}, the one known", record.format)));
    }
    if record.id.len() != 32 || !record.id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong(format!("`id` must be 32 hexadecimal digits, not \"{}\"", record.id)));
    }
    Ok(Some(record))
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
