//! The folder with a served device's media, or memory that is forgotten.
//!
//! | where | what |
//! |---|---|
//! | `DIR/lock` | held by the server |
//! | `DIR/device.json` | the design with every value, the seed, the stage |
//! | `DIR/nand`, `DIR/nor`, ... | the media, mapped: sparse files as large as the raw array |
//!
//! The media are changed by plain stores into mapped files: a killed server loses nothing that was durable, and its
//! controller finds everything again as after a power cut. The files reach the disk when the kernel pleases, or at an
//! orderly end: a crash of the whole machine may lose more than the device would have.

use crate::WindowError;
use crate::mapped_store::MappedStore;
use crate::sys::file;
use crate::sys::mapping::Mapping;
use nvlab_lab::design::Design;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;

/// How a device was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// There was none: it is new from the factory.
    Fresh,
    /// It had been switched off in good order.
    Closed,
    /// Its server had been killed: as after a power cut.
    Killed,
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
    seed: u64,
    stage: Stage,
    design: Vec<String>,
}

/// A folder, locked; or nothing but memory.
#[derive(Debug)]
pub struct DeviceState {
    kept: Option<Kept>,
    start: Start,
    seed: u64,
}

#[derive(Debug)]
struct Kept {
    folder: PathBuf,
    record: RefCell<Record>,
    media: RefCell<Vec<File>>,
    _lock: File,
}

impl DeviceState {
    /// Takes a folder, makes it if there is none, and says how the device in it was found. `None`: memory. A device that
    /// is there keeps its seed.
    pub fn open(folder: Option<&Path>, design: &Design, seed: u64) -> Result<DeviceState, WindowError> {
        let Some(folder) = folder else {
            return Ok(DeviceState { kept: None, start: Start::Fresh, seed });
        };
        let failed = |path: &Path| WindowError::io(format!("cannot use {}", path.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
        let path = folder.join("lock");
        let lock = private().open(&path).map_err(failed(&path))?;
        if !file::lock(&lock).map_err(failed(&path))? {
            return Err(WindowError::Busy(folder.to_path_buf()));
        }
        let values: Vec<String> = design.canonical_text().lines().map(String::from).collect();
        let found = read_record(folder)?.filter(|record| record.stage != Stage::Making);
        let (record, start) = match found {
            Some(record) => {
                same_design(folder, &record.design, &values)?;
                let start = if record.stage == Stage::Closed { Start::Closed } else { Start::Killed };
                (record, start)
            }
            None => (Record { format: FORMAT, seed, stage: Stage::Making, design: values }, Start::Fresh),
        };
        let (seed, media) = (record.seed, RefCell::default());
        let kept = Kept { folder: folder.into(), record: RefCell::new(record), media, _lock: lock };
        if start == Start::Fresh {
            kept.write_record()?;
        }
        Ok(DeviceState { kept: Some(kept), start, seed })
    }

    /// How it was found.
    pub fn start(&self) -> Start {
        self.start
    }

    /// The seed of the device's random choices.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A medium of so many bytes, made or found.
    pub(crate) fn medium(&self, name: &str, bytes: u64) -> Result<MappedStore, WindowError> {
        let Some(kept) = &self.kept else {
            let mapping = Mapping::anonymous(bytes);
            let failed = format!("cannot have {bytes} B of memory for the medium {name}");
            return mapping.map(MappedStore::new).map_err(WindowError::io(failed));
        };
        let path = kept.folder.join(name);
        let failed = || WindowError::io(format!("cannot use {}", path.display()));
        let fresh = self.start == Start::Fresh;
        let file = private().truncate(fresh).open(&path).map_err(failed())?;
        let has = file.metadata().map_err(failed())?.len();
        if fresh {
            file.set_len(bytes).map_err(failed())?;
        } else if has != bytes {
            let why = format!("it has {has} B where the device needs {bytes} B");
            return Err(WindowError::State { path, why });
        }
        let mapping = Mapping::of_file(&file, bytes).map_err(failed())?;
        kept.media.borrow_mut().push(file);
        Ok(MappedStore::new(mapping))
    }

    /// From now on an end without [`DeviceState::mark_closed`] is a power cut.
    pub(crate) fn mark_open(&self) -> Result<(), WindowError> {
        self.kept.as_ref().map_or(Ok(()), |kept| kept.mark(Stage::Open))
    }

    /// The device was switched off in good order; its files are on disk at the end.
    pub(crate) fn mark_closed(&self) -> Result<(), WindowError> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let media = kept.media.borrow();
        let synced = media.iter().try_for_each(|file| file.sync_data());
        synced.map_err(WindowError::io("cannot write the media files to disk"))?;
        kept.mark(Stage::Closed)
    }
}

impl Kept {
    fn mark(&self, stage: Stage) -> Result<(), WindowError> {
        self.record.borrow_mut().stage = stage;
        self.write_record()
    }

    /// Replaces the record: a crash leaves the old one or the new one.
    fn write_record(&self) -> Result<(), WindowError> {
        let path = self.folder.join("device.json");
        let failed = || WindowError::io(format!("cannot write {}", path.display()));
        let text = serde_json::to_string_pretty(&*self.record.borrow()).expect("plain fields");
        let beside = self.folder.join("device.json.new");
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

fn read_record(folder: &Path) -> Result<Option<Record>, WindowError> {
    let path = folder.join("device.json");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(WindowError::io(format!("cannot read {}", path.display()))(error)),
    };
    let wrong = |why: String| WindowError::State { path: path.clone(), why };
    let record: Record = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match record.format {
        FORMAT => Ok(Some(record)),
        other => Err(wrong(format!("format {other} is not {FORMAT}, the one known"))),
    }
}

/// A device cannot change under its data: names the values that differ.
fn same_design(folder: &Path, found: &[String], asked: &[String]) -> Result<(), WindowError> {
    if found == asked {
        return Ok(());
    }
    let only = |lines: &[String], others: &[String]| {
        let own = lines.iter().filter(|line| !others.contains(line)).take(3);
        own.map(|line| format!("`{line}`")).collect::<Vec<_>>().join(", ")
    };
    let (there, here) = (only(found, asked), only(asked, found));
    let why = format!(
        "it holds a device of another design: there {}, asked for {}; use another folder, or the design it was made with",
        if there.is_empty() { "no such values" } else { &there },
        if here.is_empty() { "no such values" } else { &here },
    );
    Err(WindowError::State { path: folder.into(), why })
}
