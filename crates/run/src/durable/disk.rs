//! A rotating disk below the host's cache: writes stay in the cache until a sync writes their sectors in order, reads
//! are served by the cache (the host of system 001 has 384 MB of memory, slide 32; a log has 16). A started sync
//! proceeds in parallel with the host.

use super::clock::{Activity, Clock, power_failed};
use nvlab_medium::disk::{Disk, DiskConfig};
use nvlab_medium::{InPlace, MediumError, MemStore, PowerCut, Store as _};
use nvlab_rvm::Store;
use nvlab_units::Time;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
struct State {
    disk: Disk<MemStore>,
    /// The contents as the host sees them: those of the disk with the writes that have not reached it.
    cache: MemStore,
    /// Sectors that differ from what was queued to the disk.
    dirty: BTreeSet<u64>,
    /// When the last queued write ends, if it has not been waited for.
    under_way: Option<Time>,
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
        let cache = MemStore::new(length);
        let state = State { disk, cache, dirty, under_way: None, length, written: 0, buffer };
        DiskStore { state: Arc::new(Mutex::new(state)), clock, activity }
    }

    /// Bytes written to the disk, in whole sectors.
    pub fn written(&self) -> u64 {
        self.state().written
    }

    /// After a power failure: the cache is empty, and is filled again from the disk.
    pub fn restart(&self) -> Result<(), MediumError> {
        let State { disk, cache, dirty, under_way, length, .. } = &mut *self.state();
        dirty.clear();
        if under_way.take().is_some() {
            // Nobody noticed the power failure here: the clock has stopped at it.
            disk.cut(self.clock.now());
        }
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

    /// Queues every dirty sector at once: the drive takes up the next run without the host.
    fn queue(&mut self, now: Time) -> io::Result<()> {
        while let Some((offset, bytes)) = self.next_run() {
            let State { disk, cache, buffer, written, under_way, .. } = self;
            buffer.resize(bytes as usize, 0);
            cache.read(offset, buffer);
            let queued = disk.write(now, offset, bytes, buffer);
            let served = queued.map_err(|error| io::Error::other(error.to_string()))?;
            *under_way = Some(served.end);
            *written += bytes;
        }
        Ok(())
    }

    /// The first run of dirty sectors, which are marked clean: offset and bytes.
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
        state.queue(self.clock.now())?;
        let Some(end) = state.under_way else { return Ok(()) };
        if self.clock.is_aside() {
            // The program has not got there: see `start_sync`.
            return self.clock.until(self.activity, end).map_err(|_| power_failed());
        }
        state.under_way = None;
        match self.clock.until(self.activity, end) {
            Ok(()) => state.disk.settle(end),
            Err(cut) => {
                state.disk.cut(cut);
                return Err(power_failed());
            }
        }
        Ok(())
    }

    fn start_sync(&self) -> io::Result<bool> {
        self.clock.check()?;
        let (mut state, now) = (self.state(), self.clock.now());
        state.queue(now)?;
        state.disk.settle(now);
        state.under_way = state.under_way.filter(|&end| end > now);
        Ok(state.under_way.is_none())
    }
}
