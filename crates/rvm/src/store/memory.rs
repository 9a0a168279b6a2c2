//! A disk in memory: the model for tests of whatever must survive power failures on sectors.
//!
//! A clone is another handle of the same disk, so that a test keeps the disk when it drops the log on it.
//!
//! 1. Reads see every write. What is durable is what was there at the last sync.
//! 2. Writes, syncs and changes of length are counted from 1. The one that [`MemoryStore::cut_at`] names fails with the power,
//!    and so does every call from then on until [`MemoryStore::power_on`].
//! 3. A power failure keeps, drops, or tears each sector of each write since the last sync, in any order. A torn sector has
//!    its first bytes from the write and the rest from before. Changes of length are durable at once.
//! 4. What is kept depends on the seed and the number of the operation alone.

use super::Store;
use crate::draws::Draws;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SECTOR: usize = 512;

#[derive(Debug)]
struct State {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Since the last sync: offset and data.
    writes: Vec<(usize, Vec<u8>)>,
    seed: u64,
    operations: u64,
    bytes_written: u64,
    cut_at: Option<u64>,
    is_off: bool,
}

/// A disk in memory.
#[derive(Clone, Debug)]
pub struct MemoryStore(Arc<Mutex<State>>);

impl MemoryStore {
    /// A disk of so many zero bytes.
    pub fn new(bytes: u64, seed: u64) -> MemoryStore {
        let (bytes, durable) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        let (writes, operations, bytes_written) = (Vec::new(), 0, 0);
        let state =
            State { bytes, durable, writes, seed, operations, bytes_written, cut_at: None, is_off: false };
        MemoryStore(Arc::new(Mutex::new(state)))
    }

    /// Writes, syncs and changes of length so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.state().bytes_written
    }

    /// Cuts the power during the operation with this number, counted from the first of the disk.
    pub fn cut_at(&self, operation: u64) {
        self.state().cut_at = Some(operation);
    }

    /// Cuts the power now, unless it is off.
    pub fn cut(&self) {
        let mut state = self.state();
        if !state.is_off {
            state.cut();
        }
    }

    /// Whether the power has been cut.
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// Ends a power cut; none is planned any more.
    pub fn power_on(&self) {
        let mut state = self.state();
        (state.is_off, state.cut_at) = (false, None);
    }

    /// Flips bits, as damage does: those that are set in `mask`.
    pub fn damage(&self, offset: u64, mask: u8) {
        let mut state = self.state();
        state.bytes[offset as usize] ^= mask;
        state.durable[offset as usize] ^= mask;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check_power(&self) -> io::Result<()> {
        match self.is_off {
            true => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the power is off")),
            false => Ok(()),
        }
    }

    /// Does an operation, unless the power is cut during it.
    fn operate(&mut self, operation: impl FnOnce(&mut State), is_sync: bool) -> io::Result<()> {
        self.check_power()?;
        self.operations += 1;
        let is_cut = self.cut_at == Some(self.operations);
        if !(is_cut && is_sync) {
            operation(self);
        }
        if is_cut {
            self.cut();
        }
        self.check_power()
    }

    fn cut(&mut self) {
        let mut draws = Draws::new(self.seed, self.operations);
        let mut sectors = Vec::new();
        for (offset, data) in self.writes.drain(..) {
            let mut done = 0;
            while done < data.len() {
                let at = offset + done;
                let length = (SECTOR - at % SECTOR).min(data.len() - done);
                sectors.push((draws.next(), at, data[done..done + length].to_vec()));
                done += length;
            }
        }
        // Half of the power failures keep what was written later in its place.
        if draws.next().is_multiple_of(2) {
            sectors.sort_by_key(|&(order, ..)| order);
        }
        for (_, at, data) in sectors {
            let kept = match draws.next() % 3 {
                0 => 0,
                1 => data.len(),
                _ => draws.next() as usize % data.len(),
            };
            self.durable[at..at + kept].copy_from_slice(&data[..kept]);
        }
        self.bytes.clone_from(&self.durable);
        self.is_off = true;
    }
}

fn check_range(state: &State, offset: u64, bytes: usize) -> io::Result<()> {
    match offset.checked_add(bytes as u64) {
        Some(end) if end <= state.bytes.len() as u64 => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{bytes} B at offset {offset}"))),
    }
}

impl Store for MemoryStore {
    fn len(&self) -> io::Result<u64> {
        let state = self.state();
        state.check_power().map(|()| state.bytes.len() as u64)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.state();
        state.check_power()?;
        check_range(&state, offset, into.len())?;
        into.copy_from_slice(&state.bytes[offset as usize..][..into.len()]);
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        check_range(&state, offset, data.len())?;
        let write = |state: &mut State| {
            state.bytes_written += data.len() as u64;
            state.bytes[offset as usize..][..data.len()].copy_from_slice(data);
            state.writes.push((offset as usize, data.to_vec()));
        };
        state.operate(write, false)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let resize = |state: &mut State| {
            state.bytes.resize(bytes as usize, 0);
            state.durable.resize(bytes as usize, 0);
            state.writes.retain_mut(|(offset, data)| {
                data.truncate((bytes as usize).saturating_sub(*offset));
                !data.is_empty()
            });
        };
        self.state().operate(resize, false)
    }

    fn sync(&self) -> io::Result<()> {
        let sync = |state: &mut State| {
            state.writes.clear();
            state.durable.clone_from(&state.bytes);
        };
        self.state().operate(sync, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_cut_keeps_any_sectors_of_what_was_not_synced_and_all_of_the_rest() {
        let mut outcomes = BTreeSet::new();
        for seed in 0..300 {
            let disk = MemoryStore::new(2048, seed);
            disk.write(&[1; 2048], 0).unwrap();
            disk.sync().unwrap();
            disk.write(&[2; 1024], 0).unwrap();
            disk.cut_at(4);
            disk.sync().unwrap_err();
            assert!(disk.is_off() && disk.len().is_err());
            disk.power_on();
            let mut bytes = [0; 2048];
            disk.read(&mut bytes, 0).unwrap();
            assert_eq!(bytes[1024..], [1; 1024]);
            for sector in bytes[..1024].chunks(SECTOR) {
                let new = sector.iter().take_while(|&&byte| byte == 2).count();
                assert!(sector[new..].iter().all(|&byte| byte == 1));
            }
            outcomes.insert((bytes[0], bytes[511], bytes[512], bytes[1023]));
        }
        assert_eq!(outcomes.len(), 9, "{outcomes:?}");
    }
}
