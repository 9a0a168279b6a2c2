//! Phase-change memory and similar memories (PRAM, STT-MRAM): overwritten in place, slowly, word by word.
//!
//! Reading is as fast as DRAM; writing programs words in steps, and wears them. A write ends when its last word
//! is programmed; hiding the programming time is left to a controller in front.
//!
//! Invariants
//! 1. Steps are programmed in address order within a bank, one at a time; the units of one write are torn
//!    only as [`Tear`] states.
//! 2. A write that is refused changes nothing: no byte, no wear, no lane.
//! 3. Wear counts accepted writes. A power cut does not undo it: the count may be too high by the writes that
//!    the cut dropped, never too low.
//!
//! Store layout: the bytes, in the order of the cells or of the caller ([`Placed`]), then, from the next multiple of
//! 8 on, the write count of each line (u32, little-endian), so that a later process can reopen the memory
//! ([`Pcm::reopen`]).
//!
//! Simplified: a line wears as a whole whenever a write programs a word of it. Pessimistic for smaller writes.

mod config;
mod select;
mod tear;

pub use config::{LineWear, PcmConfig, Selection, Tear};

use crate::banks::{Banks, aligned_count, check_range, pieces};
use crate::tally::Tally;
use crate::undo::Undo;
use crate::{InPlace, MediumError, Place, Placed, PowerCut, Store};
use nvlab_units::{Rng, Served, Time};
use prefetch_index::prefetch_index;
use select::Select;
use tear::{frontier, spoil};

/// Statistics of a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcmStats {
    /// Reads, without the comparing reads of writes.
    pub read: Tally,
    /// Writes, including their comparing reads.
    pub write: Tally,
    /// Program steps.
    pub steps: u64,
    /// Steps skipped because no word in them differed.
    pub steps_spared: u64,
    /// Line writes: a line counts once per write that programmed a word of it.
    pub lines_worn: u64,
}

/// Phase-change memory.
#[derive(Clone, Debug)]
pub struct Pcm<S: Store> {
    config: PcmConfig,
    select: Select,
    word_shift: u32,
    /// The pieces into which a write is split for planning: lines if their wear is counted, otherwise stripes.
    plan_bytes: u64,
    /// True if every step is programmed and no write is ever refused for wear.
    unplanned: bool,
    /// An aligned range of `1 << plan_shift` bytes is inside one such piece.
    plan_shift: u32,
    banks: Banks,
    /// Writes to each line; empty if the cells do not wear.
    wear: Vec<u32>,
    stats: PcmStats,
    undo: Undo<()>,
    rng: Rng,
    /// Scratch: the bytes a write will replace; only with payload.
    held: Vec<u8>,
    store: S,
}

/// The number of lines whose wear is counted.
fn lines(config: &PcmConfig) -> u64 {
    config.wear.map_or(0, |wear| config.capacity_bytes.div_ceil(wear.line_bytes as u64))
}

/// The offset of a line's write count in the store.
fn wear_record(config: &PcmConfig, line: u64) -> u64 {
    config.capacity_bytes.next_multiple_of(8) + 4 * line
}

/// The part of a request's bytes that belongs to one of its pieces.
fn part(slice: &[u8], start: u64, (offset, bytes): (u64, u64)) -> &[u8] {
    &slice[(offset - start) as usize..(offset - start + bytes) as usize]
}

/// Old and new bytes of a range, if known.
type Content<'a> = Option<(&'a [u8], &'a [u8])>;

/// The content of one piece of the range.
#[inline]
fn parts(content: Content<'_>, start: u64, piece: (u64, u64)) -> Content<'_> {
    content.map(|(old, new)| (part(old, start, piece), part(new, start, piece)))
}

impl<S: Store> Pcm<S> {
    /// Bytes of the store this memory needs.
    pub fn store_bytes(config: &PcmConfig) -> u64 {
        wear_record(config, lines(config))
    }

    /// A memory as an earlier process left it in `store`. Everything queued then counts as done. Panics if
    /// [`PcmConfig::check`] fails.
    pub fn reopen(config: PcmConfig, store: S) -> Pcm<S> {
        assert!(S::KEEPS, "a memory that keeps nothing cannot be found again");
        let mut pcm = Pcm::new(config, store);
        for (line, writes) in (0..).zip(&mut pcm.wear) {
            let mut record = [0; 4];
            pcm.store.read(wear_record(&pcm.config, line), &mut record);
            // A larger count is damaged: no line is written that often.
            *writes = u32::from_le_bytes(record).min(1 << 31);
        }
        pcm
    }

    /// A new memory over a zeroed store of [`Pcm::store_bytes`]. Panics if [`PcmConfig::check`] fails.
    pub fn new(config: PcmConfig, store: S) -> Pcm<S> {
        config.check().expect("a memory that can exist");
        let banks = Banks::new(config.banks, config.stripe_bytes, config.capacity_bytes);
        let plan_bytes = config.wear.map_or(banks.stripe_bytes(), |wear| wear.line_bytes as u64);
        Pcm {
            select: Select::new(&config),
            word_shift: config.word_bytes.trailing_zeros(),
            plan_bytes,
            unplanned: config.selection == Selection::All && !config.wear.is_some_and(|wear| wear.refuse),
            plan_shift: plan_bytes.trailing_zeros(),
            banks,
            wear: vec![0; lines(&config) as usize],
            stats: PcmStats::default(),
            undo: Undo::new(),
            rng: Rng::stream(config.seed, "pcm"),
            held: Vec::new(),
            config,
            store,
        }
    }

    /// The configuration it was made with.
    pub fn config(&self) -> &PcmConfig {
        &self.config
    }

    /// Statistics since it was made or reset.
    pub fn stats(&self) -> &PcmStats {
        &self.stats
    }

    /// Resets the statistics; wear stays.
    pub fn reset_stats(&mut self) {
        self.stats = PcmStats::default();
    }

    /// The write count of each line; empty if the cells do not wear.
    pub fn wear(&self) -> &[u32] {
        &self.wear
    }

    /// The number of parts of writes that a cut may still undo.
    pub fn unsettled(&self) -> usize {
        self.undo.len()
    }

    /// Rejects a write that would program a worn-out line.
    fn check_wear(&self, offset: u64, bytes: u64, content: Content<'_>) -> Result<(), MediumError> {
        let Some(wear) = self.config.wear.filter(|wear| wear.refuse && bytes > 0) else { return Ok(()) };
        let line_of = |offset: u64| (offset / wear.line_bytes as u64) as usize;
        let lines = &self.wear[line_of(offset)..=line_of(offset + bytes - 1)];
        if lines.iter().all(|&writes| writes < wear.endurance) {
            return Ok(());
        }
        // Rare: the range includes a worn line. The write may not program it, so plan the write as it would be done.
        let mut select = self.select;
        for piece in pieces(offset, bytes, self.plan_bytes) {
            let line = line_of(piece.0);
            let steps = select.steps(piece.0, piece.1, parts(content, offset, piece));
            if steps > 0 && self.wear[line] >= wear.endurance {
                return Err(MediumError::WornOut { line: line as u64, writes: self.wear[line] });
            }
        }
        Ok(())
    }

    /// Adds a write to the loads of the banks, and wears the lines.
    #[inline]
    fn plan(&mut self, offset: u64, bytes: u64, content: Content<'_>) {
        if self.select.all {
            self.banks.plan(offset, bytes, self.word_shift, self.select.step_shift);
            self.wear_all(offset, bytes);
            return;
        }
        // Most updates are inside one piece; that needs no division.
        if bytes > 0 && offset >> self.plan_shift == (offset + bytes - 1) >> self.plan_shift {
            return self.plan_piece((offset, bytes), content);
        }
        for piece in pieces(offset, bytes, self.plan_bytes) {
            self.plan_piece(piece, parts(content, offset, piece));
        }
    }

    /// Wears the lines of a write if every step is programmed, whatever the content; returns the number of steps.
    #[inline(always)]
    fn wear_all(&mut self, offset: u64, bytes: u64) -> u64 {
        let steps = aligned_count(offset, bytes, self.select.step_shift);
        self.stats.steps += steps;
        if bytes == 0 || self.wear.is_empty() {
            return steps;
        }
        // Lines are a power of two, so the shift is that of the line.
        let (mut line, last) = (offset >> self.plan_shift, (offset + bytes - 1) >> self.plan_shift);
        self.stats.lines_worn += last - line + 1;
        // Most writes are inside one line.
        self.wear_line(line);
        while line < last {
            line += 1;
            self.wear_line(line);
        }
        steps
    }

    #[inline(always)]
    fn wear_line(&mut self, line: u64) {
        let writes = &mut self.wear[line as usize];
        *writes = writes.saturating_add(1);
        if S::KEEPS {
            self.store.write(wear_record(&self.config, line), &writes.to_le_bytes());
        }
    }

    #[inline]
    fn plan_piece(&mut self, (offset, bytes): (u64, u64), content: Content<'_>) {
        let steps = self.select.steps(offset, bytes, content);
        if steps > 0 && !self.wear.is_empty() {
            // Lines are a power of two, so the shift is that of the line.
            self.wear_line(offset >> self.plan_shift);
            self.stats.lines_worn += 1;
        }
        self.stats.steps += steps;
        self.stats.steps_spared += aligned_count(offset, bytes, self.select.step_shift) - steps;
        let load = self.banks.load(offset);
        load.words += aligned_count(offset, bytes, self.word_shift);
        load.steps += steps;
    }

    /// A write inside one bank that programs every step and is never refused, without payload. `None`: the general
    /// case applies.
    #[inline(always)]
    fn put_unplanned(&mut self, at: Time, offset: u64, bytes: u64) -> Option<Served> {
        if S::KEEPS || !self.unplanned {
            return None;
        }
        let bank = self.banks.only(offset, bytes)?;
        let busy = self.config.program * self.wear_all(offset, bytes);
        self.stats.write.add(bytes, busy);
        Some(self.banks.serve_one(bank, at, busy))
    }

    /// A write to cells whose range has been checked. `content` is its old and new bytes, if known; with payload they
    /// are stored at `kept`; if unknown, the store does not change.
    fn put(
        &mut self,
        at: Time,
        (offset, bytes): (u64, u64),
        kept: u64,
        content: Content<'_>,
    ) -> Result<Served, MediumError> {
        if let Some(served) = self.put_unplanned(at, offset, bytes) {
            return Ok(served);
        }
        self.check_wear(offset, bytes, content)?;
        self.plan(offset, bytes, content);
        let (read, program, compare) = (self.config.read, self.config.program, !self.select.all);
        let (served, busy) = self.banks.serve(at, |load| {
            let programming = program * load.steps;
            if compare { read.time(load.words) + programming } else { programming }
        });
        if S::KEEPS
            && let Some((old, new)) = content
        {
            self.remember(Place { cells: offset, kept }, old, new);
            self.store.write(kept, new);
        }
        self.banks.clear();
        self.stats.write.add(bytes, busy);
        Ok(served)
    }

    /// Reads cells, whose range has been checked.
    #[inline]
    fn sense(&mut self, at: Time, offset: u64, bytes: u64) -> Served {
        let read = self.config.read;
        // Most requests are inside one bank: they need no plan.
        if let Some(bank) = self.banks.only(offset, bytes) {
            let busy = read.time(aligned_count(offset, bytes, self.word_shift));
            self.stats.read.add(bytes, busy);
            return self.banks.serve_one(bank, at, busy);
        }
        self.banks.plan(offset, bytes, self.word_shift, self.select.step_shift);
        let (served, busy) = self.banks.serve(at, |load| read.time(load.words));
        self.banks.clear();
        self.stats.read.add(bytes, busy);
        served
    }

    /// Records the bytes a write replaces for undo, stripe by stripe, with the time each stripe is programmed.
    fn remember(&mut self, place: Place, old: &[u8], new: &[u8]) {
        let offset = place.cells;
        for piece in pieces(offset, old.len() as u64, self.banks.stripe_bytes()) {
            let content = (part(old, offset, piece), part(new, offset, piece));
            let steps = self.select.steps(piece.0, piece.1, Some(content));
            if steps == 0 {
                continue;
            }
            let load = self.banks.load(piece.0);
            if !self.select.all && load.words > 0 {
                // The bank compares all its words before it programs the first; `words` is no longer needed.
                load.begin += self.config.read.time(load.words);
                load.words = 0;
            }
            let begin = load.begin;
            load.begin += self.config.program * steps;
            let kept = (place.kept + (piece.0 - offset), piece.1);
            self.undo.remember(&self.store, kept, (begin, load.begin), ());
        }
    }
}

impl<S: Store> InPlace for Pcm<S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity(&self) -> u64 {
        self.config.capacity_bytes
    }

    fn atomic_bytes(&self) -> u32 {
        match self.config.tear {
            Tear::Atomic => self.config.atomic_bytes,
            Tear::Garbage => 1,
        }
    }

    #[inline]
    fn read(&mut self, at: Time, offset: u64, bytes: u64, into: &mut [u8]) -> Result<Served, MediumError> {
        self.read_at(at, Place { cells: offset, kept: offset }, bytes, into)
    }

    // Always inlined: see [`crate::StartGap`].
    #[inline(always)]
    fn write(&mut self, at: Time, offset: u64, bytes: u64, data: &[u8]) -> Result<Served, MediumError> {
        self.write_at(at, Place { cells: offset, kept: offset }, bytes, data)
    }

    #[inline]
    fn hold(&mut self, offset: u64, bytes: u64, until: Time) {
        self.banks.hold(offset, bytes, until);
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        if self.config.wear.is_some() {
            prefetch_index(&self.wear, (offset >> self.plan_shift) as usize);
        }
    }

    #[inline]
    fn update(&mut self, at: Time, offset: u64, old: &[u8], new: &[u8]) -> Result<Served, MediumError> {
        self.update_at(at, Place { cells: offset, kept: offset }, old, new)
    }
}

impl<S: Store> Placed for Pcm<S> {
    #[inline]
    fn read_at(
        &mut self,
        at: Time,
        place: Place,
        bytes: u64,
        into: &mut [u8],
    ) -> Result<Served, MediumError> {
        check_range(place.cells, bytes, self.config.capacity_bytes)?;
        if S::KEEPS {
            assert_eq!(into.len() as u64, bytes, "a read of {bytes} B into {} B", into.len());
            self.store.read(place.kept, into);
        }
        Ok(self.sense(at, place.cells, bytes))
    }

    // Always inlined: see [`crate::StartGap`].
    #[inline(always)]
    fn write_at(&mut self, at: Time, place: Place, bytes: u64, data: &[u8]) -> Result<Served, MediumError> {
        let Place { cells: offset, kept } = place;
        check_range(offset, bytes, self.config.capacity_bytes)?;
        if let Some(served) = self.put_unplanned(at, offset, bytes) {
            return Ok(served);
        }
        if !S::KEEPS {
            return self.put(at, (offset, bytes), kept, None);
        }
        assert_eq!(data.len() as u64, bytes, "a write of {bytes} B from {} B", data.len());
        let mut held = std::mem::take(&mut self.held);
        held.resize(bytes as usize, 0);
        self.store.read(kept, &mut held);
        let served = self.put(at, (offset, bytes), kept, Some((&held, data)));
        self.held = held;
        served
    }

    #[inline]
    fn update_at(&mut self, at: Time, place: Place, old: &[u8], new: &[u8]) -> Result<Served, MediumError> {
        assert_eq!(old.len(), new.len(), "{} B are to replace {} B", new.len(), old.len());
        if S::KEEPS {
            return self.write_at(at, place, new.len() as u64, new);
        }
        check_range(place.cells, new.len() as u64, self.config.capacity_bytes)?;
        self.put(at, (place.cells, new.len() as u64), place.kept, Some((old, new)))
    }

    fn move_cells(&mut self, at: Time, from: u64, to: u64, bytes: u64) -> Result<Served, MediumError> {
        check_range(from, bytes, self.config.capacity_bytes)?;
        check_range(to, bytes, self.config.capacity_bytes)?;
        let read = self.sense(at, from, bytes);
        self.put(read.end, (to, bytes), to, None)
    }
}

impl<S: Store> PowerCut for Pcm<S> {
    fn settle(&mut self, upto: Time) {
        self.undo.settle(upto);
    }

    fn cut(&mut self, at: Time) {
        self.banks.reset();
        let (config, select, rng) = (&self.config, self.select, &mut self.rng);
        self.undo.cut(&mut self.store, at, |store, entry| {
            let (done, under_way) = frontier((config, select), store, entry, at);
            match config.tear {
                Tear::Atomic => {
                    let unit = config.atomic_bytes as u64;
                    let (low, high) = (done / unit * unit, under_way.next_multiple_of(unit));
                    entry.restore_from(store, low + unit * rng.below((high - low) / unit + 1));
                }
                Tear::Garbage => {
                    spoil(config.word_bytes as u64, select.all, store, entry, (done, under_way), rng);
                    entry.restore_from(store, under_way);
                }
            }
        });
    }
}
