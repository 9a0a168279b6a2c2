//! A medium's bytes in mapped memory: writes survive when the process is killed at any instruction.

use crate::slots::Slots;
use nvlab_medium::Store;
use nvlab_os::Mapping;
use nvlab_os::stores::{LINE, copy_past_caches, copy_words};
use prefetch_index::prefetch_index;
use std::sync::atomic::{Ordering, compiler_fence};

/// Tables change at most a sector and the head of its journal record at once.
const IN_WORDS_MAX: usize = 1024;

/// Bytes of a medium, in a file or (without state) in memory.
#[derive(Debug)]
pub struct MappedStore {
    mapping: Mapping,
    /// Payload is written past the processor's caches.
    streams: bool,
    /// Of an array of flash: where the payload of its units is.
    slots: Option<Slots>,
}

impl MappedStore {
    /// A store over a mapping; zeros read as a fresh store.
    pub(crate) fn new(mapping: Mapping) -> MappedStore {
        MappedStore { mapping, streams: false, slots: None }
    }

    /// The same for a medium much larger than the processor's caches: payload is written past them. Before another thread
    /// uses it, call [`nvlab_os::stores::publish`].
    pub(crate) fn streaming(mapping: Mapping) -> MappedStore {
        MappedStore { mapping, streams: true, slots: None }
    }

    /// The store of an array of flash, over a mapping of [`SlotLayout::bytes`](crate::slots::SlotLayout::bytes).
    pub(crate) fn slotted(mapping: Mapping, slots: Slots) -> MappedStore {
        MappedStore { mapping, streams: true, slots: Some(slots) }
    }

    /// The mapping, for tests that change it behind the store's back.
    #[cfg(test)]
    pub(crate) fn mapping_mut(&mut self) -> &mut Mapping {
        &mut self.mapping
    }

    /// Where in the mapping an offset is that has a place of its own.
    #[inline]
    fn rest_at(&self, offset: u64) -> usize {
        self.slots.as_ref().map_or(offset, |slots| slots.rest_at(offset)) as usize
    }
}

/// The slots of a store, if an offset lies in payload.
#[inline]
fn slotted(slots: &Option<Slots>, offset: u64) -> Option<&Slots> {
    slots.as_ref().filter(|slots| slots.unit_at(offset).is_some())
}

/// As `slotted`, to change them.
#[inline]
fn slotted_mut(slots: &mut Option<Slots>, offset: u64) -> Option<&mut Slots> {
    slots.as_mut().filter(|slots| slots.unit_at(offset).is_some())
}

/// Copies payload.
#[inline]
fn copy(into: &mut [u8], data: &[u8], streams: bool) {
    match streams {
        true => copy_past_caches(into, data),
        false => {
            compiler_fence(Ordering::Release);
            into.copy_from_slice(data);
        }
    }
}

impl Store for MappedStore {
    const KEEPS: bool = true;
    const SHOWS: bool = true;

    fn read(&self, offset: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let part = self.view(offset + done as u64, into.len() - done);
            into[done..done + part.len()].copy_from_slice(part);
            done += part.len();
        }
    }

    fn view(&self, offset: u64, bytes: usize) -> &[u8] {
        match slotted(&self.slots, offset) {
            Some(slots) => slots.view(&self.mapping, offset, bytes),
            None => &self.mapping.as_slice()[self.rest_at(offset)..][..bytes],
        }
    }

    #[inline]
    fn prefetch(&self, offset: u64, bytes: usize) {
        let start = match slotted(&self.slots, offset) {
            Some(slots) => slots.place(&self.mapping, offset),
            None => Some(self.rest_at(offset)),
        };
        let all = self.mapping.as_slice();
        if let Some(start) = start {
            (0..bytes).step_by(LINE).for_each(|line| prefetch_index(all, start + line));
        }
    }

    /// Writes reach the memory in the order of the calls, so that a kill leaves those before it and nothing else. Entries
    /// of tables change in one instruction each, as in PRAM and SRAM at a power cut. Payload, which is longer than any
    /// table changes at once, is copied in any order; a unit of flash is old or new.
    #[inline]
    fn write(&mut self, offset: u64, data: &[u8]) {
        let streams = self.streams;
        if let Some(slots) = slotted_mut(&mut self.slots, offset) {
            return slots.write(&mut self.mapping, offset, data, |into, data| copy(into, data, streams));
        }
        if let Some(slots) = &mut self.slots {
            slots.begin(&mut self.mapping);
        }
        let start = self.rest_at(offset);
        let into = &mut self.mapping.as_mut_slice()[start..start + data.len()];
        match data.len() <= IN_WORDS_MAX {
            true => copy_words(into, data),
            false => copy(into, data, streams),
        }
    }

    fn write_zeros(&mut self, offset: u64, bytes: u64) {
        match slotted_mut(&mut self.slots, offset) {
            Some(slots) => slots.write_zeros(&mut self.mapping, offset, bytes),
            None => {
                let start = self.rest_at(offset);
                self.mapping.as_mut_slice()[start..start + bytes as usize].fill(0);
            }
        }
    }

    fn copy(&mut self, from: u64, to: u64, bytes: usize) {
        match slotted_mut(&mut self.slots, to) {
            Some(slots) => slots.copy(&mut self.mapping, from, to, bytes),
            None => {
                let (from, to) = (self.rest_at(from), self.rest_at(to));
                self.mapping.as_mut_slice().copy_within(from..from + bytes, to);
            }
        }
    }

    fn discard(&mut self, offset: u64, bytes: u64) {
        if let Some(slots) = slotted_mut(&mut self.slots, offset) {
            slots.discard(&mut self.mapping, offset, bytes);
        }
    }

    fn holds(&self, offset: u64) -> bool {
        slotted(&self.slots, offset).is_none_or(|slots| slots.holds(&self.mapping, offset))
    }

    #[inline]
    fn is_unverified(&self, offset: u64) -> bool {
        slotted(&self.slots, offset).is_some_and(|slots| slots.is_unverified(&self.mapping, offset))
    }

    fn set_verified(&mut self, offset: u64) {
        if let Some(slots) = slotted_mut(&mut self.slots, offset) {
            slots.set_verified(&self.mapping, offset);
        }
    }

    fn place(&self, offset: u64) -> Option<(&'static str, u64)> {
        slotted(&self.slots, offset)?.place_in_file(&self.mapping, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::SlotLayout;
    use nvlab_medium::MemStore;
    use nvlab_medium::flash::Nand;
    use nvlab_units::{Geometry, Rng};

    /// An array of flash in memory: 2 blocks of 4 pages of 2 units.
    fn array(unit_bytes: u32) -> (MappedStore, MemStore, Geometry) {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: 2,
            pages_per_block: 4,
            units_per_page: 2,
            unit_bytes,
        };
        let layout = SlotLayout::new(&geometry).unwrap();
        let mapping = Mapping::anonymous(layout.bytes()).unwrap();
        let whole = MemStore::new(Nand::<MemStore>::store_bytes(&geometry));
        (MappedStore::slotted(mapping, Slots::fresh(layout, None)), whole, geometry)
    }

    /// Whatever is written and discarded, what is held reads as in a store with a place for everything, in place and copied.
    #[test]
    fn slots_hold_what_a_place_for_each_unit_holds() {
        for unit_bytes in [512, 1536, 4096] {
            let (mut store, mut whole, geometry) = array(unit_bytes);
            let (units, unit) = (geometry.units(), unit_bytes as u64);
            let mut rng = Rng::new(unit);
            for round in 0..3000 {
                let first = rng.below(units);
                let count = 1 + rng.below((units - first).min(4));
                match rng.below(10) {
                    8..10 => {
                        let to = rng.below(units - count + 1);
                        for nth in 0..count {
                            let (from, to) = ((first + nth) * unit, (to + nth) * unit);
                            store.copy(from, to, unit as usize);
                            whole.copy(from, to, unit as usize);
                        }
                    }
                    0 => {
                        store.discard(first * unit, count * unit);
                        whole.write_zeros(first * unit, count * unit);
                    }
                    1 => {
                        store.write_zeros(first * unit, count * unit);
                        whole.write_zeros(first * unit, count * unit);
                    }
                    2 => {
                        let at = units * unit + rng.below(400);
                        store.write(at, &[round as u8; 28]);
                        whole.write(at, &[round as u8; 28]);
                    }
                    _ => {
                        let data: Vec<u8> = (0..count * unit).map(|_| rng.bits() as u8).collect();
                        store.write(first * unit, &data);
                        whole.write(first * unit, &data);
                    }
                }
                let (mut one, mut other) =
                    (vec![1; (units * unit) as usize + 428], vec![2; (units * unit) as usize + 428]);
                for (store, into) in [(&store as &dyn Fetch, &mut one), (&whole, &mut other)] {
                    let (payload, rest) = into.split_at_mut((units * unit) as usize);
                    store.fetch(0, payload);
                    store.fetch(units * unit, rest);
                }
                assert!(one == other, "round {round}");
                store.slots.as_ref().unwrap().check(&store.mapping);
                let part = store.view(first * unit + 5, (unit * count) as usize - 5);
                assert!(!part.is_empty() && part == &other[(first * unit) as usize + 5..][..part.len()]);
            }
        }
    }

    /// [`Store::read`], for any store.
    trait Fetch {
        fn fetch(&self, offset: u64, into: &mut [u8]);
    }

    impl<S: Store> Fetch for S {
        fn fetch(&self, offset: u64, into: &mut [u8]) {
            self.read(offset, into);
        }
    }

    #[test]
    fn payload_and_tables_are_written_where_they_belong() {
        for make in [MappedStore::new, MappedStore::streaming] {
            let mut store = make(Mapping::anonymous(8192).unwrap());
            let mut model = vec![0; 8192];
            for bytes in [1, 8, 40, IN_WORDS_MAX, IN_WORDS_MAX + 1, 4096] {
                let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + bytes) as u8).collect();
                store.write(13 * bytes as u64 % 4096, &data);
                model[13 * bytes % 4096..][..bytes].copy_from_slice(&data);
                let mut found = vec![0; model.len()];
                store.read(0, &mut found);
                assert_eq!(found, model, "{bytes} B");
            }
        }
    }
}
