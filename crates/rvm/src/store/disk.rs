//! A disk in memory for tests: it loses power, tears writes, and fails on demand.
//!
//! Writes are cached until a sync of their file. When the power fails, every cached sector independently keeps what was
//! durable or any version written since, or is torn: its first bytes are of one version, the rest of the one before. A
//! sync that fails makes some of them durable in the same way and marks all of them clean, as Linux does: reads still show
//! them, and no later sync writes them, unless they are written again or evicted: then reads show what is durable. A new length stays
//! to be written by the next sync.

use super::{Segments, Store};
use crate::draws::Draws;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are lost, kept or torn on their own.
pub const SECTOR_BYTES: usize = 512;

/// How a planned fault shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The power: this operation and all later ones fail, and part of what is cached is lost.
    Power,
    /// EIO. A failing sync loses part of what it should have made durable.
    Eio,
    /// ENOSPC; a write leaves half of its bytes.
    Enospc,
}

/// Files on one disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, File>,
    operations: u64,
    /// Which operation fails, and how.
    fault: Option<(u64, Failure)>,
    /// Before which operation all that is clean is evicted.
    evicted_at: Option<u64>,
    is_off: bool,
    takes_parts: bool,
    draws: Draws,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// The contents as programs see them.
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors written since the last sync, in order; the length is new as well if it changed.
    cached: Vec<(usize, [u8; SECTOR_BYTES])>,
}

impl File {
    fn cache(&mut self, offset: usize, bytes: usize) {
        for sector in offset / SECTOR_BYTES..(offset + bytes).div_ceil(SECTOR_BYTES) {
            let mut image = [0; SECTOR_BYTES];
            let from = sector * SECTOR_BYTES;
            let has = self.current.len().saturating_sub(from).min(SECTOR_BYTES);
            image[..has].copy_from_slice(&self.current[from..from + has]);
            self.cached.push((sector, image));
        }
    }

    /// Makes all that is cached durable.
    fn settle(&mut self) {
        self.durable.resize(self.current.len(), 0);
        for (sector, image) in std::mem::take(&mut self.cached) {
            let from = (sector * SECTOR_BYTES).min(self.durable.len());
            let to = self.durable.len().min(from + SECTOR_BYTES);
            self.durable[from..to].copy_from_slice(&image[..to - from]);
        }
    }

    /// Forgets what is clean, so that it is read from the disk.
    fn evict(&mut self) {
        let mut read = self.durable.clone();
        read.resize(self.current.len(), 0);
        for &(sector, _) in &self.cached {
            let from = (sector * SECTOR_BYTES).min(read.len());
            let to = read.len().min(from + SECTOR_BYTES);
            read[from..to].copy_from_slice(&self.current[from..to]);
        }
        self.current = read;
    }

    /// Makes any part of what is cached durable, and forgets the rest.
    fn lose(&mut self, draws: &mut Draws) {
        if draws.coin() || self.current.len() < self.durable.len() {
            self.durable.resize(self.current.len(), 0);
        }
        let mut versions: BTreeMap<usize, Vec<[u8; SECTOR_BYTES]>> = BTreeMap::new();
        for (sector, image) in std::mem::take(&mut self.cached) {
            versions.entry(sector).or_default().push(image);
        }
        for (sector, images) in versions {
            let from = (sector * SECTOR_BYTES).min(self.durable.len());
            let to = self.durable.len().min(from + SECTOR_BYTES);
            let kept = draws.next() as usize % (images.len() + 1);
            for image in &images[..kept] {
                self.durable[from..to].copy_from_slice(&image[..to - from]);
            }
            // The version after that got as far as here.
            if let Some(image) = images.get(kept).filter(|_| draws.coin()) {
                let torn = draws.next() as usize % (to - from + 1);
                self.durable[from..from + torn].copy_from_slice(&image[..torn]);
            }
        }
    }
}

impl State {
    /// Counts an operation; says how it fails if it is the one.
    fn begin(&mut self) -> io::Result<Option<Failure>> {
        self.operations += 1;
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        if self.evicted_at == Some(self.operations) {
            self.files.values_mut().for_each(File::evict);
        }
        let failure = self.fault.filter(|(at, _)| *at == self.operations).map(|(_, failure)| failure);
        self.is_off = failure == Some(Failure::Power);
        Ok(failure)
    }

    fn lose(&mut self, name: &str) {
        let mut file = self.files.remove(name).unwrap_or_default();
        file.lose(&mut self.draws);
        self.files.insert(name.into(), file);
    }
}

impl Disk {
    /// Creates a file of zeros, durable at once.
    pub fn create(&self, name: &str, bytes: usize) {
        let file = File { current: vec![0; bytes], durable: vec![0; bytes], cached: Vec::new() };
        self.state().files.insert(name.into(), file);
    }

    /// Opens a file that [`Disk::create`] made.
    pub fn store(&self, name: &str) -> Box<dyn Store> {
        Box::new(DiskFile { disk: self.clone(), name: name.into() })
    }

    /// Lets segments be written in parts, as behind a page cache ([`Store::prepare_parts`]).
    pub fn take_parts(&self) {
        self.state().takes_parts = true;
    }

    /// Operations (reads, writes, changes of length, syncs) so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// From now on operations are counted from 1, and the one of the fault fails; `seed` decides what is lost.
    pub fn plan(&self, fault: Option<(u64, Failure)>, seed: u64) {
        let mut state = self.state();
        (state.operations, state.fault, state.draws) = (0, fault, Draws::new(seed, 0));
    }

    /// Evicts all that is clean before the operation with this number.
    pub fn evict_at(&self, operation: u64) {
        self.state().evicted_at = Some(operation);
    }

    /// The power fails now, if it has not yet, and comes back: the disk as it is found.
    pub fn restart(&self) -> Disk {
        let mut state = self.state();
        let names: Vec<String> = state.files.keys().cloned().collect();
        names.iter().for_each(|name| state.lose(name));
        let found = |(name, file): (&String, &File)| {
            let durable = file.durable.clone();
            (name.clone(), File { current: durable.clone(), durable, cached: Vec::new() })
        };
        let files = state.files.iter().map(found).collect();
        let takes_parts = state.takes_parts;
        Disk(Arc::new(Mutex::new(State { files, takes_parts, ..State::default() })))
    }

    /// Another disk in the same state: the one that programs find which are started after others ended.
    pub fn copy(&self) -> Disk {
        let State { files, takes_parts, .. } = &*self.state();
        let (files, takes_parts) = (files.clone(), *takes_parts);
        Disk(Arc::new(Mutex::new(State { files, takes_parts, ..State::default() })))
    }

    /// Changes a file as damage does: durably and without an operation.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut [u8])) {
        let mut state = self.state();
        let file = state.files.get_mut(name).expect("a file of this disk");
        file.settle();
        change(&mut file.current);
        file.durable.clone_from(&file.current);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Segments for Disk {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        match self.state().files.contains_key(name) {
            true => Ok(self.store(name)),
            false => Err(Error::io("open", &name)(io::ErrorKind::NotFound.into())),
        }
    }
}

#[derive(Debug)]
struct DiskFile {
    disk: Disk,
    name: String,
}

impl DiskFile {
    fn change<T>(&self, change: impl FnOnce(&mut File, bool) -> T) -> io::Result<T> {
        let mut state = self.disk.state();
        let failure = state.begin()?;
        if failure == Some(Failure::Eio) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let file = state.files.get_mut(&self.name).ok_or(io::ErrorKind::NotFound)?;
        let done = change(file, failure == Some(Failure::Enospc));
        match failure {
            Some(Failure::Enospc) => Err(io::ErrorKind::StorageFull.into()),
            Some(Failure::Power) => Err(io::Error::other("the power fails")),
            _ => Ok(done),
        }
    }
}

impl Store for DiskFile {
    fn len(&self) -> io::Result<u64> {
        self.change(|file, _| file.current.len() as u64)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let from = offset as usize;
        self.change(|file, _| match file.current.get(from..from + into.len()) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        })?
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let from = offset as usize;
        self.change(|file, half| {
            let bytes = if half { data.len() / 2 } else { data.len() };
            assert!(from + bytes <= file.current.len(), "a write at {offset} beyond the end");
            file.current[from..from + bytes].copy_from_slice(&data[..bytes]);
            file.cache(from, bytes);
        })
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.change(|file, half| {
            if !half {
                file.current.resize(bytes as usize, 0);
            }
        })
    }

    /// Sometimes it has all been written when it returns.
    fn start_sync(&self) -> io::Result<bool> {
        let is_done = self.disk.state().draws.coin();
        self.change(|file, half| {
            if is_done && !half {
                file.settle();
            }
            file.cached.is_empty()
        })
    }

    fn prepare_parts(&self, _offset: u64, _bytes: usize) -> bool {
        self.disk.state().takes_parts
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        match state.begin()? {
            None | Some(Failure::Enospc) => {
                state.files.get_mut(&self.name).ok_or(io::ErrorKind::NotFound)?.settle();
                Ok(())
            }
            Some(Failure::Power) => Err(io::Error::other("the power fails")),
            Some(Failure::Eio) => {
                state.lose(&self.name);
                Err(io::Error::from_raw_os_error(5))
            }
        }
    }
}
