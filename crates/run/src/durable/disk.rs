//! A rotating disk below the host's cache: writes stay in the cache until a sync writes their sectors in order, reads are
//! served by the cache (the host of system 001 has 384 MB of memory, slide 32; a log has 16).

use super::clock::{Activity, Clock, power_failed};
use nvlab_medium::disk::{Disk, DiskConfig};
use nvlab_medium::{InPlace, MediumError, MemStore, PowerCut, Store as _};
use nvlab_rvm::Store;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
struct State {
    disk: Disk<MemStore>,
    /// What the host sees: the disk's contents with what was not yet written to it.
    cache: MemStore,
    /// Sectors that differ from the disk.
    dirty: BTreeSet<u64>,
    length: u64,
    /// Bytes written to the disk.
    written: u64,
    buffer: Vec<u8>,
}

/// A disk, or the beginning of one. Clones are the same device.
#[derive(Clone, Debug)]
pub struct DiskStore {
    state: Arc<Mutex<State>>,
    clock: Clock,
    activity: Activity,
}

impl DiskStore {
    /// A disk of zeros, of which `bytes` are used for what `activity` says.
    pub fn new(config: DiskConfig, bytes: u64, activity: Activity, clock: Clock) -> DiskStore {
        let length = bytes.next_multiple_of(config.sector_bytes as u64);
        assert!(length <= config.capacity_bytes, "{length} B on a disk of {} B", config.capacity_bytes);
        let store = MemStore::new(length);
        let (dirty, buffer) = (BTreeSet::new(), Vec::new());
        let disk = Disk::new(config, store);
        let state = State { disk, cache: MemStore::new(length), dirty, length, written: 0, buffer };
        DiskStore { state: Arc::new(Mutex::new(state)), clock, activity }
    }

    /// Bytes written to the disk, in whole sectors.
    pub fn written(&self) -> u64 {
        self.state().written
    }

    /// After a power failure: the cache is empty, and is filled again from the disk.
    pub fn restart(&self) -> Result<(), MediumError> {
        let State { disk, cache, dirty, length, .. } = &mut *self.state();
        dirty.clear();
        let mut bytes = vec![0; *length as usize];
        disk.read(self.clock.now(), 0, *length, &mut bytes)?;
        cache.write(0, &bytes);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check(&self, offset: u64, bytes: usize) -> io::Result<()> {
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= self.length => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
    }

    /// The first run of dirty sectors, which are dirty no more: offset and bytes.
    fn next_run(&mut self) -> Option<(u64, u64)> {
        let sector = self.disk.config().sector_bytes as u64;
        let first = self.dirty.pop_first()?;
        let mut end = first + 1;
        while self.dirty.remove(&end) {
            end += 1;
        }
        Some((first * sector, (end - first) * sector))
    }
}

impl Store for DiskStore {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().length)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.clock.check()?;
        let state = self.state();
        state.check(offset, into.len())?;
        state.cache.read(offset, into);
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.clock.check()?;
        let mut state = self.state();
        state.check(offset, data.len())?;
        state.cache.write(offset, data);
        let sector = state.disk.config().sector_bytes as u64;
        state.dirty.extend(offset / sector..(offset + data.len() as u64).div_ceil(sector));
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn sync(&self) -> io::Result<()> {
        self.clock.check()?;
        let mut state = self.state();
        // All are queued at once: the drive takes up the next one without the host.
        let queued = self.clock.now();
        while let Some((offset, bytes)) = state.next_run() {
            let State { disk, cache, buffer, written, .. } = &mut *state;
            buffer.resize(bytes as usize, 0);
            cache.read(offset, buffer);
            let served = disk
                .write(queued, offset, bytes, buffer)
                .map_err(|error| io::Error::other(error.to_string()))?;
            match self.clock.until(self.activity, served.end) {
                Ok(()) => disk.settle(served.end),
                Err(cut) => {
                    disk.cut(cut);
                    return Err(power_failed());
                }
            }
            *written += bytes;
        }
        Ok(())
    }
}
