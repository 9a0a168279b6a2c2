//! The folder with a served device's media, or memory.
//!
//! | where | what |
//! |---|---|
//! | `DIR/lock` | held by the server |
//! | `DIR/device.json` | the design with every value, the seed, the stage |
//! | `DIR/nand`, `DIR/log` | arrays of flash, mapped: sparse files with the payload in slots (`slots`) |
//! | `DIR/pram`, `DIR/nor`, ... | other media, mapped: sparse files as large as the medium |
//! | `DIR/battery` | what a protected write buffer holds ([`nvlab_run::device::battery`]) |
//! | `DIR/life` | what was asked of the device since it was new (`life`) |
//!
//! The media are changed by plain stores into mapped files: a killed server loses nothing that was durable, and its
//! controller recovers as after a power cut. The kernel writes the files to disk when it chooses, and an orderly end does: a
//! crash of the machine may lose more than the device would have.

use super::life::Life;
use crate::ServeError;
use crate::mapped_store::MappedStore;
use crate::slots::{SlotLayout, Slots};
use crate::state_folder::{Stage, StateFolder, check_format};
use nvlab_design::{Design, Payload};
use nvlab_medium::AnyStore;
use nvlab_os::Mapping;
use nvlab_run::device::backed::Backed;
use nvlab_run::device::{Backing, BuildError};
use nvlab_units::Geometry;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::path::Path;

/// 4: an entry of the battery for each place in the buffer, and one more.
const FORMAT: u32 = 4;
/// The file of the device's life.
const LIFE: &str = "life";

/// What was in the state when the device was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing: the device is new from the factory.
    Fresh,
    /// It had been powered off in good order.
    Closed,
    /// Its server had been killed: as after a power cut.
    Killed,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format: u32,
    seed: u64,
    stage: Stage,
    design: Vec<String>,
}

/// Where the media of a device are: in a locked folder, or in memory that is forgotten.
#[derive(Debug)]
pub struct DeviceState {
    kept: Option<Kept>,
    start: Start,
    seed: u64,
    /// Whether all of the device will be written.
    filled: Cell<bool>,
}

#[derive(Debug)]
struct Kept {
    folder: StateFolder,
    record: RefCell<Record>,
    media: RefCell<Vec<Medium>>,
}

#[derive(Debug)]
struct Medium {
    name: String,
    bytes: u64,
    file: File,
}

impl DeviceState {
    /// Locks a folder, creates it if there is none, and finds the device in it. `None`: memory. An existing device keeps its
    /// seed.
    pub fn open(folder: Option<&Path>, design: &Design, seed: u64) -> Result<DeviceState, ServeError> {
        let Some(folder) = folder else {
            return Ok(DeviceState { kept: None, start: Start::Fresh, seed, filled: Cell::default() });
        };
        let locked = StateFolder::open(folder, "device.json")?;
        let values: Vec<String> = design.canonical_text().lines().map(String::from).collect();
        let found = locked.read(|record: &Record| check_format(record.format, FORMAT))?;
        let found = found.filter(|record| record.stage != Stage::Making);
        let (record, start) = match found {
            Some(record) => {
                same_design(folder, &record.design, &values)?;
                let start = if record.stage == Stage::Closed { Start::Closed } else { Start::Killed };
                (record, start)
            }
            None => (Record { format: FORMAT, seed, stage: Stage::Making, design: values }, Start::Fresh),
        };
        let (seed, media) = (record.seed, RefCell::default());
        let kept = Kept { folder: locked, record: RefCell::new(record), media };
        if start == Start::Fresh {
            kept.folder.write(&*kept.record.borrow())?;
        }
        Ok(DeviceState { kept: Some(kept), start, seed, filled: Cell::default() })
    }

    /// What was in it when it was opened.
    pub fn start(&self) -> Start {
        self.start
    }

    /// The seed of the device's random choices.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether all of a new device will be written before it is served.
    pub(crate) fn will_be_written(&self, filled: bool) {
        self.filled.set(filled);
    }

    /// From now on an end without [`DeviceState::mark_closed`] is a power cut.
    pub(crate) fn mark_open(&self) -> Result<(), ServeError> {
        let Some(kept) = &self.kept else { return Ok(()) };
        if self.start == Start::Fresh {
            kept.folder.warn_of_space(kept.media.borrow().iter().map(|medium| medium.bytes).sum())?;
        }
        kept.mark(Stage::Open)
    }

    /// The counts of an existing device's life, if its folder has them: looked for before anything in it is changed.
    pub(crate) fn find_life(&self) -> Result<Option<Mapping>, ServeError> {
        let kept = self.kept.as_ref().filter(|_| self.is_used());
        let kept = kept.filter(|kept| kept.folder.path().join(LIFE).symlink_metadata().is_ok());
        kept.map(|kept| Ok(kept.folder.medium(LIFE, Life::BYTES, false)?.0)).transpose()
    }

    /// The counts of the device's life, which was just switched on; new ones if none were found.
    pub(crate) fn life(&self, found: Option<Mapping>) -> Result<Life, ServeError> {
        let mapping = match (found, &self.kept) {
            (Some(found), _) => found,
            (None, Some(kept)) => kept.folder.medium(LIFE, Life::BYTES, true)?.0,
            (None, None) => anonymous(LIFE, Life::BYTES)?,
        };
        Ok(Life::new(mapping, self.start == Start::Killed))
    }

    /// The same error, with the names of the media files.
    pub(crate) fn blame(&self, error: ServeError) -> ServeError {
        match (&self.kept, error) {
            (Some(kept), ServeError::Recovery(why)) => {
                let media = kept.media.borrow();
                let names: Vec<&str> = media.iter().map(|medium| medium.name.as_str()).collect();
                let folder = kept.folder.path().display();
                ServeError::Recovery(format!("{folder} ({}): {why}", names.join(", ")))
            }
            (_, error) => error,
        }
    }

    /// The device was powered off in good order; its files are on disk when this returns.
    pub(crate) fn mark_closed(&self) -> Result<(), ServeError> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let media = kept.media.borrow();
        let synced = media.iter().try_for_each(|medium| medium.file.sync_data());
        synced.map_err(ServeError::io("cannot write the media files to disk"))?;
        kept.mark(Stage::Closed)
    }
}

impl DeviceState {
    fn mapping(&self, medium: &str, bytes: u64) -> Result<Mapping, ServeError> {
        let Some(kept) = &self.kept else { return anonymous(medium, bytes) };
        let (mapping, file) = kept.folder.medium(medium, bytes, !self.is_used())?;
        kept.media.borrow_mut().push(Medium { name: medium.to_string(), bytes, file });
        Ok(mapping)
    }
}

impl Backing for DeviceState {
    type Store = AnyStore;
    type PageMap = Backed<AnyStore>;

    fn store(&self, medium: &str, bytes: u64) -> Result<AnyStore, BuildError> {
        Ok(AnyStore::new(MappedStore::streaming(self.mapping(medium, bytes)?)))
    }
    /// In memory without huge pages: each first write to one would take 2 MiB, and fill them.
    fn store_in_place(&self, medium: &str, bytes: u64) -> Result<AnyStore, BuildError> {
        let mapping = self.mapping(medium, bytes)?;
        mapping.refuse_huge_pages(0);
        Ok(AnyStore::new(MappedStore::streaming(mapping)))
    }
    fn array_store(&self, name: &'static str, geometry: &Geometry) -> Result<AnyStore, BuildError> {
        let layout = SlotLayout::new(geometry).map_err(ServeError::Options)?;
        let mapping = self.mapping(name, layout.bytes())?;
        let slots = match &self.kept {
            None => {
                // Payload fills slot after slot. What lies at its place in the array does not.
                mapping.refuse_huge_pages(layout.payload_bytes());
                Slots::fresh(layout, None)
            }
            Some(kept) => {
                let media = kept.media.borrow();
                let file = media.last().expect("the medium that was just mapped").file.try_clone();
                let slots =
                    file.and_then(|file| Slots::of_file(layout, &mapping, (file, name), self.is_used()));
                let failed = format!("cannot use {}", kept.folder.path().join(name).display());
                slots.map_err(ServeError::io(failed))?
            }
        };
        Ok(AnyStore::new(MappedStore::slotted(mapping, slots)))
    }
    fn is_used(&self) -> bool {
        self.start != Start::Fresh
    }
    fn payload(&self) -> Payload {
        // Files need not fit in memory.
        if self.filled.get() && self.kept.is_none() { Payload::All } else { Payload::AsWritten }
    }
    fn outlives_the_program(&self) -> bool {
        true
    }
    fn damaged(&self, medium: &str, why: String) -> BuildError {
        let path = self.kept.as_ref().map_or(medium.into(), |kept| kept.folder.path().join(medium));
        ServeError::State { path, why }.into()
    }
}

impl From<ServeError> for BuildError {
    fn from(error: ServeError) -> BuildError {
        BuildError::Media(Box::new(error))
    }
}

impl From<BuildError> for ServeError {
    fn from(error: BuildError) -> ServeError {
        match error {
            BuildError::Design(why) => ServeError::Options(why),
            BuildError::Recovery(why) => ServeError::Recovery(why),
            BuildError::Memory(_) => ServeError::Memory(error.to_string()),
            BuildError::Media(error) => match error.downcast::<ServeError>() {
                Ok(error) => *error,
                Err(error) => ServeError::Failed(error.to_string()),
            },
        }
    }
}

impl Kept {
    fn mark(&self, stage: Stage) -> Result<(), ServeError> {
        self.record.borrow_mut().stage = stage;
        self.folder.write(&*self.record.borrow())
    }
}

/// Memory for a medium.
fn anonymous(medium: &str, bytes: u64) -> Result<Mapping, ServeError> {
    let failed = format!("cannot allocate {bytes} B of memory for the medium {medium}");
    Mapping::anonymous(bytes).map_err(ServeError::io(failed))
}

/// The design must be that of the existing device: the error names the values that differ.
fn same_design(folder: &Path, found: &[String], asked: &[String]) -> Result<(), ServeError> {
    if found == asked {
        return Ok(());
    }
    let only = |lines: &[String], others: &[String]| {
        let own = lines.iter().filter(|line| !others.contains(line)).take(3);
        own.map(|line| format!("`{line}`")).collect::<Vec<_>>().join(", ")
    };
    let (there, here) = (only(found, asked), only(asked, found));
    let why = format!(
        "it holds a device of another design: stored {}, given {}; use another folder, or the design it was made with",
        if there.is_empty() { "no such values" } else { &there },
        if here.is_empty() { "no such values" } else { &here },
    );
    Err(ServeError::State { path: folder.into(), why })
}
