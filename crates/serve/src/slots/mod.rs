//! The payload of an array of flash in slots of a file: as much of it as is needed, wherever in the array it lies.
//!
//! An array has a place for every unit, and a controller that writes out of place goes through all of them, so a file with a
//! place for each grows to the size of the array whatever it holds. Here a unit has a slot as long as its payload may be asked
//! for again ([`Store::discard`](nvlab_medium::Store::discard)); slots are used again, those that became free last first. Zeros
//! need no slot. Units that were copied inside the array share the slot of what they were copied from, until either is written again.
//!
//! Layout of the file: slots of a unit each; what the array keeps besides payload, as it lies there; the table, a word of 4 B
//! for each unit of the array, little-endian: 0 no payload, 0xffff_ffff zeros, else one more than its slot.
//!
//! Invariants
//! 1. A slot is filled once, before a word names it, and not again as long as a word names it; the word of a unit is changed in one
//!    store. So a kill between any two instructions leaves every unit with its old payload or with its new one, and which slots are
//!    free follows from the table.
//! 2. What is in no slot and is read by a host although it should have payload is [unverified](Slots::is_unverified) for ever:
//!    its checksum decides. So is what is in a slot that several words of a file that was found name, as long as they do: they may be
//!    copies, or what a crash of the machine left, which wrote one page of the table to the disk and not another. Each unit has a
//!    checksum of its own, which tells.
//! 3. A file that was found is changed by the first write and not before: a state that is refused stays as it is.
//! 4. Of the free slots, as many stay warm (see [`room`]) as a sixteenth of those in use, or 8 MiB. The others are given back
//!    to the host in runs.
//!
//! Rejected: *slots of a page of flash*: one live unit would keep up to 48. *Moving slots to the end of the file to shorten
//! it*: holes do as well, and nothing has to be copied. *A checksum beside the word*: the spare area of the unit has one, over
//! its payload, its address and the number of its program, which the controller computes in any case.

mod names;
mod room;
#[cfg(test)]
pub(crate) mod tests;

use names::Names;
use nvlab_medium::flash::Nand;
use nvlab_medium::{MemStore, is_zero};
use nvlab_os::stores::copy_words;
use nvlab_os::{Mapping, file};
use nvlab_units::Geometry;
use room::{Room, Set};
use std::fs::File;
use std::io;
use std::ops::Range;
#[cfg(test)]
use tests::between_stores;

/// Where a process may be killed: tests do that.
#[cfg(not(test))]
#[inline(always)]
fn between_stores() {}

const WORD: u64 = 4;
const NOTHING: u32 = 0;
const ZEROS: u32 = u32::MAX;
const PAGE: u64 = 4096;
/// Words whose units with payload are counted together: those of a page of the table.
const GROUP: u64 = PAGE / WORD;
/// With one slot more than units, every slot has a word.
const UNITS_MAX: u64 = (ZEROS - 2) as u64;
/// Free slots that stay warm in any case.
const WARM_BYTES_MIN: usize = 8 << 20;

/// Where the parts of the file are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotLayout {
    unit_bytes: u64,
    units: u64,
    slots: u32,
    /// Offset in the file of the part of the array beyond the payload.
    rest_at: u64,
    table_at: u64,
}

impl SlotLayout {
    /// For an array, or why none is possible.
    pub fn new(geometry: &Geometry) -> Result<SlotLayout, String> {
        let (units, unit_bytes) = (geometry.units(), geometry.unit_bytes as u64);
        if units > UNITS_MAX {
            return Err(format!(
                "an array of {units} units of {unit_bytes} B cannot be served, the limit is {UNITS_MAX}: use a larger `ftl.unit`, \
             fewer dies or fewer blocks"
            ));
        }
        // A unit that is written again has its new slot before it gives up the old one.
        let slots = units + 1;
        let rest_at = (slots * unit_bytes).next_multiple_of(PAGE);
        let rest = Nand::<MemStore>::store_bytes(geometry) - geometry.bytes();
        let table_at = (rest_at + rest).next_multiple_of(PAGE);
        Ok(SlotLayout { unit_bytes, units, slots: slots as u32, rest_at, table_at })
    }

    /// Bytes of all slots, in whole pages: what comes first in the file.
    pub fn payload_bytes(&self) -> u64 {
        self.rest_at
    }

    pub fn bytes(&self) -> u64 {
        self.table_at + self.units * WORD
    }
}

/// What a unit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    Zeros,
    Slot(u32),
}

/// The table and the free slots of a mapping, which is passed in.
#[derive(Debug)]
pub(crate) struct Slots {
    layout: SlotLayout,
    room: Room,
    /// Units with payload, of each group.
    held: Vec<u16>,
    /// Slots with what an earlier program left, not compared with checksums since.
    unverified: Set,
    names: Names,
    /// Whether an earlier program left something.
    found: bool,
    /// Offset and bytes of what was discarded in a file that was found, until it may be changed.
    postponed: Option<Vec<(u64, u64)>>,
    /// The file and its name; without one the mapping is memory.
    file: Option<(File, &'static str)>,
    /// The host can take slots back.
    gives_back: bool,
    zeros: Vec<u8>,
}

impl Slots {
    /// Over memory or a file, which are zero.
    pub fn fresh(layout: SlotLayout, file: Option<(File, &'static str)>) -> Slots {
        Slots {
            layout,
            room: Room::new(layout.slots),
            held: vec![0; layout.units.div_ceil(GROUP) as usize],
            unverified: Set::default(),
            names: Names::default(),
            found: false,
            postponed: None,
            file,
            gives_back: true,
            zeros: vec![0; layout.unit_bytes as usize],
        }
    }

    /// Over a file, with what an earlier program left in it if it `is_used`.
    pub fn of_file(
        layout: SlotLayout,
        mapping: &Mapping,
        (file, name): (File, &'static str),
        is_used: bool,
    ) -> io::Result<Slots> {
        // Otherwise slots that were given back would take room on the disk again with the next store beside them.
        mapping.use_single_pages(layout.payload_bytes() as usize);
        match is_used {
            true => Slots::found(layout, mapping, file, name),
            false => Ok(Slots::fresh(layout, Some((file, name)))),
        }
    }

    /// Over a file that an earlier program left.
    fn found(layout: SlotLayout, mapping: &Mapping, file: File, name: &'static str) -> io::Result<Slots> {
        let mut slots = Slots { found: true, ..Slots::fresh(layout, None) };
        let mut written = Vec::new();
        file::data_ranges_in(&file, layout.table_at..layout.bytes(), |range| written.push(range))?;
        let mut used = Set::default();
        let units = |range: &Range<u64>| {
            (range.start - layout.table_at) / WORD..(range.end - layout.table_at).div_ceil(WORD)
        };
        for unit in written.iter().flat_map(units) {
            let held = slots.get(mapping, unit);
            slots.held[(unit / GROUP) as usize] += (held != Held::Nothing) as u16;
            match held {
                Held::Slot(slot) if used.holds(slot) => slots.names.add_found(slot),
                Held::Slot(slot) => used.insert(slot),
                Held::Zeros | Held::Nothing => {}
            }
        }
        slots.room = Room::found(layout.slots, &used);
        slots.unverified = used;
        slots.file = Some((file, name));
        slots.postponed = Some(Vec::new());
        Ok(slots)
    }

    /// The file may be changed from now on.
    #[inline]
    pub fn begin(&mut self, mapping: &mut Mapping) {
        if let Some(postponed) = self.postponed.take() {
            self.catch_up(mapping, postponed);
        }
    }

    #[cold]
    fn catch_up(&mut self, mapping: &mut Mapping, discarded: Vec<(u64, u64)>) {
        discarded.into_iter().for_each(|(offset, bytes)| self.discard(mapping, offset, bytes));
        // Without holes the slots are used again all the same.
        self.gives_back = self.give_back_unused().is_ok();
    }

    /// The unit of an offset in the array's payload; `None` beyond it.
    #[inline]
    pub fn unit_at(&self, offset: u64) -> Option<u64> {
        let unit = offset / self.layout.unit_bytes;
        (unit < self.layout.units).then_some(unit)
    }

    /// Offset in the file of an offset beyond the payload.
    #[inline]
    pub fn rest_at(&self, offset: u64) -> u64 {
        offset - self.layout.units * self.layout.unit_bytes + self.layout.rest_at
    }

    #[inline]
    fn word_at(&self, unit: u64) -> usize {
        (self.layout.table_at + unit * WORD) as usize
    }

    #[inline]
    fn get(&self, mapping: &Mapping, unit: u64) -> Held {
        let word = &mapping.as_slice()[self.word_at(unit)..][..WORD as usize];
        match u32::from_le_bytes(word.try_into().expect("4 B")) {
            ZEROS => Held::Zeros,
            // Of a file that somebody changed: no such slot.
            word if word > self.layout.slots => Held::Nothing,
            NOTHING => Held::Nothing,
            word => Held::Slot(word - 1),
        }
    }

    /// Changes the word of a unit, after every store before, in one store.
    #[inline]
    fn set(&self, mapping: &mut Mapping, unit: u64, word: u32) {
        let at = self.word_at(unit);
        copy_words(&mut mapping.as_mut_slice()[at..at + WORD as usize], &word.to_le_bytes());
    }

    /// Where in the mapping the byte at an offset of the payload is; `None` if it is zero.
    #[inline]
    pub fn place(&self, mapping: &Mapping, offset: u64) -> Option<usize> {
        let (unit, within) = (offset / self.layout.unit_bytes, offset % self.layout.unit_bytes);
        match self.get(mapping, unit) {
            Held::Slot(slot) => Some((slot as u64 * self.layout.unit_bytes + within) as usize),
            Held::Zeros | Held::Nothing => None,
        }
    }

    /// The bytes from an offset of the payload on that are contiguous, at most `bytes`.
    #[inline]
    pub fn view<'a>(&'a self, mapping: &'a Mapping, offset: u64, bytes: usize) -> &'a [u8] {
        let unit_bytes = self.layout.unit_bytes;
        let (first, within) = (offset / unit_bytes, offset % unit_bytes);
        let Held::Slot(slot) = self.get(mapping, first) else {
            return &self.zeros[within as usize..][..bytes.min((unit_bytes - within) as usize)];
        };
        let units = (within + bytes as u64).div_ceil(unit_bytes);
        let next_to_it = |&i: &u64| self.get(mapping, first + i) == Held::Slot(slot + i as u32);
        let together = 1 + (1..units).take_while(next_to_it).count() as u64;
        let start = (slot as u64 * unit_bytes + within) as usize;
        &mapping.as_slice()[start..][..bytes.min((together * unit_bytes - within) as usize)]
    }

    /// Writes whole units: each into a free slot first, then its word. `copy` copies payload.
    #[inline]
    pub fn write(
        &mut self,
        mapping: &mut Mapping,
        offset: u64,
        data: &[u8],
        copy: impl Fn(&mut [u8], &[u8]),
    ) {
        let unit_bytes = self.layout.unit_bytes as usize;
        assert!(
            offset.is_multiple_of(unit_bytes as u64) && data.len().is_multiple_of(unit_bytes),
            "payload is written in whole units"
        );
        self.begin(mapping);
        self.room.line_up(data.len() / unit_bytes);
        for (unit, data) in (offset / unit_bytes as u64..).zip(data.chunks_exact(unit_bytes)) {
            if is_zero(data) {
                self.replace(mapping, unit, ZEROS);
                continue;
            }
            let slot = self.room.take();
            self.unverified.remove(slot);
            copy(&mut mapping.as_mut_slice()[slot as usize * unit_bytes..][..unit_bytes], data);
            between_stores();
            self.replace(mapping, unit, slot + 1);
        }
    }

    /// Makes units read as zeros.
    pub fn write_zeros(&mut self, mapping: &mut Mapping, offset: u64, bytes: u64) {
        self.begin(mapping);
        let first = offset / self.layout.unit_bytes;
        for unit in first..first + bytes / self.layout.unit_bytes {
            self.replace(mapping, unit, ZEROS);
        }
    }

    /// Units become what others hold, each in the slot of the other.
    pub fn copy(&mut self, mapping: &mut Mapping, from: u64, to: u64, bytes: usize) {
        self.begin(mapping);
        let unit_bytes = self.layout.unit_bytes;
        for within in (0..bytes as u64).step_by(unit_bytes as usize) {
            let (from, to) = (from + within, to + within);
            match self.get(mapping, from / unit_bytes) {
                Held::Slot(slot) if self.names.add(slot) => self.replace(mapping, to / unit_bytes, slot + 1),
                Held::Slot(_) => {
                    let held = self.view(mapping, from, unit_bytes as usize).to_vec();
                    self.write(mapping, to, &held, |into, data| into.copy_from_slice(data));
                }
                Held::Zeros | Held::Nothing => self.replace(mapping, to / unit_bytes, ZEROS),
            }
        }
    }

    #[inline]
    fn replace(&mut self, mapping: &mut Mapping, unit: u64, word: u32) {
        let old = self.get(mapping, unit);
        self.set(mapping, unit, word);
        between_stores();
        match old {
            Held::Slot(slot) => self.release(slot),
            Held::Zeros => {}
            Held::Nothing => self.held[(unit / GROUP) as usize] += 1,
        }
    }

    /// A word no longer names a slot, which is free if it was the only one.
    #[inline]
    fn release(&mut self, slot: u32) {
        if !self.names.remove(slot) {
            self.room.release(slot);
        }
    }

    /// Drops the payload of units.
    pub fn discard(&mut self, mapping: &mut Mapping, offset: u64, bytes: u64) {
        if let Some(postponed) = &mut self.postponed {
            return postponed.push((offset, bytes));
        }
        let first = offset / self.layout.unit_bytes;
        let (mut unit, end) = (first, first + bytes / self.layout.unit_bytes);
        while unit < end {
            let group = (unit / GROUP) as usize;
            if self.held[group] == 0 {
                unit = (unit / GROUP + 1) * GROUP;
                continue;
            }
            let held = self.get(mapping, unit);
            if held != Held::Nothing {
                self.set(mapping, unit, NOTHING);
                between_stores();
                self.held[group] -= 1;
            }
            if let Held::Slot(slot) = held {
                self.release(slot);
            }
            unit += 1;
        }
        self.give_back(mapping);
    }

    /// False if the unit at an offset has no payload.
    #[inline]
    pub fn holds(&self, mapping: &Mapping, offset: u64) -> bool {
        let unit = offset / self.layout.unit_bytes;
        self.held[(unit / GROUP) as usize] > 0 && self.get(mapping, unit) != Held::Nothing
    }

    /// True if what the unit at an offset holds must be compared with its checksum.
    #[inline]
    pub fn is_unverified(&self, mapping: &Mapping, offset: u64) -> bool {
        match self.get(mapping, offset / self.layout.unit_bytes) {
            Held::Slot(slot) => self.found && self.unverified.holds(slot),
            // Its word may be wrong.
            Held::Zeros => self.found,
            Held::Nothing => true,
        }
    }

    /// The unit at an offset holds what its checksum says.
    pub fn set_verified(&mut self, mapping: &Mapping, offset: u64) {
        match self.get(mapping, offset / self.layout.unit_bytes) {
            Held::Slot(slot) if !self.names.are_several(slot) => self.unverified.remove(slot),
            _ => {}
        }
    }

    /// The file, and the place in it of the unit at an offset: of its payload, or of its word if that names none.
    pub fn place_in_file(&self, mapping: &Mapping, offset: u64) -> Option<(&'static str, u64)> {
        let (_, name) = self.file.as_ref()?;
        let word = self.word_at(offset / self.layout.unit_bytes) as u64;
        Some((name, self.place(mapping, offset).map_or(word, |at| at as u64)))
    }

    /// Gives slots back to the host if too many are warm.
    #[inline]
    fn give_back(&mut self, mapping: &mut Mapping) {
        let least = WARM_BYTES_MIN / self.layout.unit_bytes as usize;
        let runs = self.room.cool(least.max(self.room.used() as usize / 16));
        for run in runs {
            let run = self.pages(run);
            if !self.gives_back || run.is_empty() {
                continue;
            }
            let given = match &self.file {
                Some((file, _)) => file::punch_hole(file, run.start, run.end - run.start),
                None => mapping.forget(run),
            };
            // A file system that knows no holes: slots are used again all the same.
            self.gives_back = given.is_ok();
        }
    }

    /// The pages that lie in cold slots all over, of a run of them and those around.
    fn pages(&self, run: Range<u32>) -> Range<u64> {
        let unit_bytes = self.layout.unit_bytes;
        let (mut start, mut end) = (run.start, run.end);
        while start > 0 && !(start as u64 * unit_bytes).is_multiple_of(PAGE) && self.room.is_cold(start - 1) {
            start -= 1;
        }
        while end < self.layout.slots
            && !(end as u64 * unit_bytes).is_multiple_of(PAGE)
            && self.room.is_cold(end)
        {
            end += 1;
        }
        let (start, end) = (start as u64 * unit_bytes, end as u64 * unit_bytes);
        let (start, end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
        start..end.max(start)
    }

    /// Gives back what a process that was killed left in slots that are free.
    fn give_back_unused(&mut self) -> io::Result<()> {
        let Some((file, _)) = &self.file else { return Ok(()) };
        let unit_bytes = self.layout.unit_bytes;
        let mut unused = Vec::new();
        file::data_ranges_in(file, 0..self.layout.rest_at, |range| {
            let slots =
                range.start / unit_bytes..range.end.div_ceil(unit_bytes).min(self.layout.slots as u64);
            let mut slot = slots.start as u32;
            while (slot as u64) < slots.end {
                let free =
                    (slot..slots.end as u32).take_while(|&slot| self.room.is_cold(slot)).count() as u32;
                if free > 0 {
                    unused.push(slot..slot + free);
                }
                slot += free + 1;
            }
        })?;
        let mut runs = unused.into_iter().map(|run| self.pages(run)).filter(|run| !run.is_empty());
        runs.try_for_each(|run| file::punch_hole(file, run.start, run.end - run.start))
    }
}
