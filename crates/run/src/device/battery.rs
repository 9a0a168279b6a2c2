//! The contents of a protected write buffer, in a mapped file: it stands for the memory behind the capacitor, so that
//! acknowledged writes survive the death of this process, too.
//!
//! Layout, little-endian: entries for units (sequence u64, lpa u32, crc32c u32, the data), then a ring of entries
//! for trims (sequence u64, first unit u32, units u32, crc32c u32, 4 zero bytes). The checksum is over everything else.
//!
//! Invariants
//! 1. A sequence of 0 marks an empty entry. The sequence of an entry is cleared first and written last, so that a kill leaves
//!    no partial entry. One with a sequence and a wrong checksum was not written here: the file is refused.
//! 2. There is an entry for each place in the controller's buffer, and one more. A place is taken again only after the unit in it
//!    was programmed, or by a newer version of it that the buffer absorbs; and no more trims are pending than a page of its
//!    journal holds.
//! 3. What an entry held is cleared only when what takes its place is kept, in the entry that was free; the same is true of a
//!    trim that merges with the next.
//!
//! Entries beyond what the controller still holds are harmless: recovery knows by the sequences which are older than the
//! array, so clearing it may be interrupted anywhere, and a trim may be there twice.

use nvlab_controller::page_map::{PageMapMedia, trims_pending_max};
use nvlab_medium::Store;
use nvlab_units::checksum::crc32c;
use nvlab_units::{Extent, Geometry, Lpa};

const UNIT_HEAD: u64 = 16;
const TRIM: u64 = 24;

/// The places.
pub struct Battery<S: Store> {
    store: S,
    unit_bytes: u64,
    units: u64,
    /// The entry of each place in the buffer, and the one that is free.
    entries: Vec<u64>,
    free_entry: u64,
    /// The slots for trims, in the order in which they were filled from `next_trim` on.
    trims: Vec<u64>,
    next_trim: usize,
    last_trim: Option<(Extent, u64)>,
}

impl<S: Store> Battery<S> {
    /// Bytes for this many units, and for the trims of a controller over such an array.
    pub fn bytes(units: u32, geometry: &Geometry) -> u64 {
        (units as u64 + 1) * (UNIT_HEAD + geometry.unit_bytes as u64) + trim_slots(geometry) * TRIM
    }

    /// A battery over a store of [`Battery::bytes`].
    pub fn new(store: S, units: u32, geometry: &Geometry) -> Battery<S> {
        Battery {
            store,
            unit_bytes: geometry.unit_bytes as u64,
            units: units as u64,
            entries: (0..units as u64).collect(),
            free_entry: units as u64,
            trims: (0..trim_slots(geometry)).collect(),
            next_trim: 0,
            last_trim: None,
        }
    }

    fn unit_at(&self, slot: u64) -> u64 {
        slot * (UNIT_HEAD + self.unit_bytes)
    }

    fn trim_at(&self, slot: u64) -> u64 {
        self.unit_at(self.units + 1) + slot * TRIM
    }

    /// Keeps the unit in a place of the buffer, which was written as number `sequence`.
    pub(super) fn keep(&mut self, place: u64, lpa: Lpa, sequence: u64, data: &[u8]) {
        let at = self.unit_at(self.free_entry);
        let sequence = sequence.to_le_bytes();
        let crc = crc32c(&[&sequence, &lpa.0.to_le_bytes(), data]);
        self.store.write(at + 8, &(lpa.0 as u64 | (crc as u64) << 32).to_le_bytes());
        self.store.write(at + UNIT_HEAD, data);
        self.store.write(at, &sequence);
        // Only now.
        std::mem::swap(&mut self.entries[place as usize], &mut self.free_entry);
        self.forget(self.unit_at(self.free_entry));
        self.last_trim = None;
    }

    /// Keeps the trim with number `sequence`. One directly after the last merges with it, as in the controller's journal.
    pub(super) fn keep_trim(&mut self, extent: Extent, sequence: u64) {
        let merges =
            |&(last, before): &(Extent, u64)| last.end() == extent.start.0 as u64 && before + 1 == sequence;
        let merged = self.last_trim.filter(merges);
        let whole = merged.map_or(extent, |(last, _)| Extent { count: last.count + extent.count, ..last });
        let slots = self.trims.len();
        let (next, last) = (self.next_trim, (self.next_trim + slots - 1) % slots);
        self.write_trim(self.trim_at(self.trims[next]), whole, sequence);
        if merged.is_some() {
            // Only now: the slot becomes free, and the next to be used.
            self.forget(self.trim_at(self.trims[last]));
            self.trims.swap(last, next);
        } else {
            self.next_trim = (next + 1) % slots;
        }
        self.last_trim = Some((whole, sequence));
    }

    fn write_trim(&mut self, at: u64, extent: Extent, sequence: u64) {
        let sequence = sequence.to_le_bytes();
        let extent = (extent.start.0 as u64 | (extent.count as u64) << 32).to_le_bytes();
        let crc = crc32c(&[&sequence, &extent]);
        self.forget(at);
        self.store.write(at + 8, &extent);
        self.store.write(at + 16, &(crc as u64).to_le_bytes());
        self.store.write(at, &sequence);
    }

    fn forget(&mut self, at: u64) {
        self.store.write(at, &0u64.to_le_bytes());
    }

    fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.store.read(at, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Passes everything to a controller that will be recovered, in the order in which it was written; the error names the
    /// byte of an entry that was not written here.
    pub fn give<M: Store>(&self, media: &mut PageMapMedia<M>) -> Result<(), String> {
        let mut data = vec![0; self.unit_bytes as usize];
        for (sequence, at) in self.filled((0..=self.units).map(|slot| self.unit_at(slot))) {
            let lpa_and_crc = self.word(at + 8);
            let lpa = Lpa(lpa_and_crc as u32);
            self.store.read(at + UNIT_HEAD, &mut data);
            let crc = crc32c(&[&sequence.to_le_bytes(), &lpa.0.to_le_bytes(), &data]);
            check(at, crc, lpa_and_crc >> 32, "unit")?;
            media.hold(lpa, sequence, data.clone());
        }
        for (sequence, at) in self.filled(self.trims.iter().map(|&slot| self.trim_at(slot))) {
            let extent = self.word(at + 8);
            let crc = crc32c(&[&sequence.to_le_bytes(), &extent.to_le_bytes()]);
            check(at, crc, self.word(at + 16), "trim")?;
            media.hold_trim(Extent { start: Lpa(extent as u32), count: (extent >> 32) as u32 }, sequence);
        }
        Ok(())
    }

    /// Sequence and offset of the entries that are not empty, oldest first.
    fn filled(&self, places: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let entries = places.map(|at| (self.word(at), at));
        let mut filled: Vec<(u64, u64)> = entries.filter(|&(sequence, _)| sequence != 0).collect();
        filled.sort_unstable();
        filled
    }

    /// Clears every entry, oldest first: all units are programmed.
    pub(super) fn clear(&mut self) {
        let units = (0..=self.units).map(|slot| self.unit_at(slot));
        let trims = (0..self.trims.len() as u64).map(|slot| self.trim_at(slot));
        for (_, at) in self.filled(units.chain(trims)) {
            self.forget(at);
        }
        self.last_trim = None;
    }
}

/// One more than can be pending: a trim that grows is kept in a new entry before the old one is cleared.
fn trim_slots(geometry: &Geometry) -> u64 {
    trims_pending_max(geometry) as u64 + 1
}

fn check(at: u64, crc: u32, found: u64, what: &str) -> Result<(), String> {
    match found == crc as u64 {
        true => Ok(()),
        false => Err(format!(
            "the entry of a {what} at byte {at} does not match its checksum (stored 0x{found:08x}, computed 0x{crc:08x}): \
             something else wrote to the file, and the contents of the write buffer are lost"
        )),
    }
}
