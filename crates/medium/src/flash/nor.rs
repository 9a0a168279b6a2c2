//! A NOR array: any byte can be read and programmed individually; programming clears bits and only an erase of
//! the whole block sets them again.
//!
//! Chips that work in lockstep form one *page* ([`Geometry::page_bytes`]: eNVy section 3.3, 256 chips of one
//! byte; system 001, 4 to 64 chips), and a program step writes any part of one page. Programs and erases are
//! background work of their bank and return a ticket; a read suspends them where the part allows it.
//!
//! Invariants
//! 1. A programmed byte is the AND of what it held and what was written; a write that would set a bit is
//!    refused before anything changes. Programming 0xFF changes nothing, but takes as long: the time of an
//!    operation never depends on the bytes.
//! 2. Steps of one bank are done in the order they were queued. A cut keeps those done and drops those not
//!    begun; in the page in progress every byte has some of the bits to be cleared already cleared.
//! 3. After a torn or failed erase a block may hold anything, even 0xFF everywhere, and must be erased again:
//!    until then programs on it are refused.
//!
//! Store layout: the bytes in order, inverted, so that a fresh store of zeros reads as erased.

mod payload;

use super::cells::{Cells, FlashStats};
use super::config::{CellRules, FlashConfig};
use super::planes::Sense;
use super::slowing::Slowing;
use crate::banks::{check_range, pieces};
use crate::{MediumError, PowerCut, Store};
use nvlab_units::{BlockId, Die, Geometry, Interruption, Ppa, Served, Span, Ticket, Time};
use std::collections::{BTreeSet, VecDeque};

/// A NOR array: the parameters of every flash array, and those that only NOR parts have.
#[derive(Clone, Debug, PartialEq)]
pub struct NorConfig {
    /// Shape, times, life and faults; [`FlashConfig::rules`] is [`CellRules::Nor`]. The first read time is
    /// that of one page (eNVy figure 12: 100 ns; 28F016SV: 65 ns), the program time that of one page (4 us; 6
    /// us), the erase time that of one block in every chip (50 ms; 600 ms).
    pub flash: FlashConfig,
    /// How its cells slow down; `None`: they do not.
    pub slowing: Option<Slowing>,
}

impl NorConfig {
    /// Checks that the configuration is possible; otherwise returns the reason.
    pub fn check(&self) -> Result<(), String> {
        self.flash.geometry.check()?;
        if self.flash.rules != CellRules::Nor {
            return Err(format!("a NOR array cannot follow the rules of {:?}", self.flash.rules));
        }
        if self.flash.timing.read.len() != 1 {
            return Err("a NOR array has one read time".into());
        }
        self.slowing.map_or(Ok(()), |slowing| slowing.check(&self.flash))
    }
}

/// An operation that a power cut could still undo: done between two positions in the background work of its die.
#[derive(Clone, Debug)]
struct Unsettled {
    die: Die,
    from: Ticket,
    to: Ticket,
    /// Address of the first byte, and the bytes it replaced.
    offset: u64,
    old: Box<[u8]>,
    erase: Option<UndoErase>,
}

#[derive(Clone, Copy, Debug)]
struct UndoErase {
    block: BlockId,
    was_half_erased: bool,
    programmed: u32,
}

/// A NOR array with its bytes in `S`.
#[derive(Clone, Debug)]
pub struct Nor<S: Store = ()> {
    cells: Cells,
    /// Pages programmed in each block since its erase; a page programmed in parts counts once per part.
    programmed: Vec<u32>,
    half_erased: BTreeSet<BlockId>,
    unsettled: VecDeque<Unsettled>,
    /// The latest time passed to the lanes; a cut cannot come before it (as in [`super::nand`]).
    latest: Time,
    slowing: Option<Slowing>,
    store: S,
}

impl<S: Store> Nor<S> {
    /// Bytes of the store this array needs.
    pub fn store_bytes(geometry: &Geometry) -> u64 {
        geometry.bytes()
    }

    /// A factory-new array over a store of zeros. Panics if [`NorConfig::check`] fails.
    pub fn new(config: NorConfig, store: S) -> Nor<S> {
        config.check().expect("a NOR array that can exist");
        Nor {
            programmed: vec![0; config.flash.geometry.blocks() as usize],
            cells: Cells::new(config.flash),
            half_erased: BTreeSet::new(),
            unsettled: VecDeque::new(),
            latest: Time::ZERO,
            slowing: config.slowing,
            store,
        }
    }

    /// An array as an earlier run left it in `store`, with the erase counts `erases`. Everything queued then
    /// counts as done: a process that exits between two calls leaves nothing half done.
    pub fn reopen(config: NorConfig, store: S, erases: &[u32]) -> Nor<S> {
        let mut nor = Nor::new(config, store);
        nor.cells.set_erase_counts(erases);
        nor
    }

    /// Shape of the array.
    pub fn geometry(&self) -> &Geometry {
        &self.cells.config.geometry
    }
    /// Capacity in bytes.
    pub fn capacity(&self) -> u64 {
        self.geometry().bytes()
    }
    /// Wear and faults.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }
    /// The configuration it was made with.
    pub fn config(&self) -> NorConfig {
        NorConfig { flash: self.cells.config.clone(), slowing: self.slowing }
    }
    /// What it has done so far.
    pub fn stats(&self) -> FlashStats {
        self.cells.stats()
    }
    /// The time of a program in a block.
    #[inline]
    pub fn program_time(&self, block: BlockId) -> Span {
        match &self.slowing {
            None => self.cells.config.timing.program,
            Some(slowing) => slowing.program(&self.cells, block),
        }
    }
    /// The time of the next erase of a block.
    #[inline]
    pub fn erase_time(&self, block: BlockId) -> Span {
        match &self.slowing {
            None => self.cells.config.timing.erase,
            Some(slowing) => slowing.erase(&self.cells, block),
        }
    }
    /// Resets the statistics; wear stays.
    pub fn reset_stats(&mut self) {
        self.cells.reset_stats();
    }
    /// Marks a block bad, permanently.
    pub fn mark_bad(&mut self, block: BlockId) {
        self.cells.mark_bad(block);
    }
    /// True if the last erase of the block was torn or failed. A real part does not report this: for tests.
    pub fn is_half_erased(&self, block: BlockId) -> bool {
        self.half_erased.contains(&block)
    }
    /// Number of steps and erases that a cut may still undo.
    pub fn unsettled(&self) -> usize {
        self.unsettled.len()
    }

    /// The block that holds a byte.
    #[inline]
    pub(crate) fn block_at(&self, offset: u64) -> BlockId {
        BlockId((offset / self.geometry().block_bytes()) as u32)
    }

    /// Reads bytes in the foreground. Every page overlapped takes one read; blocks on several dies are read in
    /// parallel. A byte being programmed reads as its new value.
    ///
    /// Errors: [`MediumError::OutOfRange`], [`MediumError::Uncorrectable`] with the first unit of the part
    /// that could not be read.
    pub fn read(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u64,
        into: &mut [u8],
    ) -> Result<Served, MediumError> {
        check_range(offset, bytes, self.capacity())?;
        if S::KEEPS {
            assert_eq!(into.len() as u64, bytes, "a read of {bytes} B into {} B", into.len());
            self.latest = self.latest.max(at);
        }
        let mut all: Option<Served> = None;
        for (offset, bytes) in pieces(offset, bytes, self.geometry().block_bytes()) {
            let one = self.read_in_block(at, offset, bytes)?;
            all = Some(match all {
                None => one,
                Some(all) => Served { start: all.start.min(one.start), end: all.end.max(one.end) },
            });
        }
        self.peek(offset, into);
        Ok(all.unwrap_or(Served { start: at, end: at }))
    }

    /// All pages but the last only occupy the die; the last read also transfers everything over the channel.
    fn read_in_block(&mut self, at: Time, offset: u64, bytes: u64) -> Result<Served, MediumError> {
        let (block, page) = (self.block_at(offset), self.geometry().page_bytes());
        let units = touched(offset, bytes, self.geometry().unit_bytes as u64) as u32;
        let before = touched(offset, bytes, page) - 1;
        let timing = &self.cells.config.timing;
        let (sense, interruption) = (timing.read[0] * before, timing.interruption);
        let mut start = None;
        let mut ready = at;
        if before > 0 {
            let die = self.geometry().die_of(block);
            let served = self.cells.die(die).foreground(at, sense, &interruption);
            self.cells.stats.reads += before;
            self.cells.stats.read_time += sense;
            self.cells.stats.read_busy += sense;
            (start, ready) = (Some(served.start), served.end);
        }
        let unit = Ppa((offset / self.geometry().unit_bytes as u64) as u32);
        let last = self
            .cells
            .read(ready, block, Sense::ONLY, units)
            .map_err(|_| MediumError::Uncorrectable(unit))?;
        Ok(Served { start: start.unwrap_or(last.start), end: last.end })
    }

    /// Queues the programming of `bytes` bytes within one block, page after page. `data` holds them if the store
    /// keeps bytes; otherwise it may be empty.
    ///
    /// Errors: [`MediumError::OutOfRange`] (also for bytes beyond the first byte's block);
    /// [`MediumError::BadBlock`]; [`MediumError::BitsSet`]; [`MediumError::ProgramFailed`]: the steps before the
    /// failing one are done, that one cannot be trusted, the rest was not tried; also on a half-erased block,
    /// where nothing changes.
    pub fn program(&mut self, at: Time, offset: u64, bytes: u64, data: &[u8]) -> Result<Ticket, MediumError> {
        check_range(offset, bytes, self.capacity())?;
        let block = self.block_at(offset);
        let block_end = (block.0 as u64 + 1) * self.geometry().block_bytes();
        // An empty program at the very end of the array lies in no block.
        if bytes == 0 {
            return Ok(Ticket::default());
        }
        check_range(offset, bytes, block_end)?;
        if self.cells.is_bad(block) {
            return Err(MediumError::BadBlock(block));
        }
        if S::KEEPS {
            assert_eq!(data.len() as u64, bytes, "a program of {bytes} B from {} B", data.len());
            self.check_bits(offset, data)?;
            if self.half_erased.contains(&block) {
                return Err(MediumError::ProgramFailed(block));
            }
            self.latest = self.latest.max(at);
        }
        let (die, page) = (self.geometry().die_of(block), self.geometry().page_bytes());
        let mut last = self.cells.die(die).last();
        for (at_byte, count) in pieces(offset, bytes, page) {
            let from = last;
            last = match self.slowing {
                None => self.cells.program(at, die, 1, true),
                Some(slowing) => self.cells.program_for(at, die, slowing.program(&self.cells, block)),
            };
            self.programmed[block.0 as usize] += 1;
            let fails = self.program_fails(block);
            if S::KEEPS {
                let new = &data[(at_byte - offset) as usize..(at_byte - offset + count) as usize];
                self.clear_bits((die, from, last), at_byte, new, fails);
            }
            if fails {
                return Err(MediumError::ProgramFailed(block));
            }
        }
        Ok(last)
    }

    /// Whether the program just queued fails: by chance, or because it takes longer than a program may.
    fn program_fails(&mut self, block: BlockId) -> bool {
        if self.slowing.is_some_and(|slowing| slowing.is_program_late(&self.cells, block)) {
            self.cells.stats.failures[1] += 1;
            return true;
        }
        self.cells.programs_may_fail() && self.cells.program_fails(block)
    }

    /// Queues the programming of `count` whole pages from `first` on, in one block, each after `transfer`, the
    /// time its data takes to reach the cells. `data` holds them if the store keeps bytes; otherwise it may be
    /// empty. Programs do not fail here: use [`Nor::program`] to simulate faults.
    ///
    /// Errors: [`MediumError::BitsSet`], where nothing changes; [`MediumError::ProgramFailed`] on a
    /// half-erased block, where nothing changes.
    #[inline]
    pub fn program_pages(
        &mut self,
        at: Time,
        first: Ppa,
        count: u32,
        transfer: Span,
        data: &[u8],
    ) -> Result<Ticket, MediumError> {
        let block = self.cells.layout.block_of(first);
        let die = self.cells.layout.die_of(block);
        if S::KEEPS {
            self.check_pages(block, first, data)?;
        }
        let mut last = Ticket::default();
        let program = self.program_time(block);
        // With payload each page has its own undo record: a cut may keep some of them.
        let (steps, pages) = if S::KEEPS { (count, 1) } else { (1, count) };
        for step in 0..steps {
            let from = self.cells.die(die).last();
            last = self.cells.die(die).background(at, program + transfer, pages);
            if S::KEEPS {
                let page = self.geometry().page_bytes();
                let new = &data[(step as u64 * page) as usize..][..page as usize];
                self.clear_bits((die, from, last), (first.0 + step) as u64 * page, new, false);
            }
        }
        self.programmed[block.0 as usize] += count;
        self.cells.stats.programs += count as u64;
        self.cells.stats.program_time.add_many(program, count as u64);
        self.cells.stats.transfer_time.add_many(transfer, count as u64);
        Ok(last)
    }

    fn check_pages(&self, block: BlockId, first: Ppa, data: &[u8]) -> Result<(), MediumError> {
        let offset = first.0 as u64 * self.geometry().page_bytes();
        let block_end = (block.0 as u64 + 1) * self.geometry().block_bytes();
        check_range(offset, data.len() as u64, block_end)?;
        self.check_bits(offset, data)?;
        match self.half_erased.contains(&block) {
            true => Err(MediumError::ProgramFailed(block)),
            false => Ok(()),
        }
    }

    /// Occupies a die in the foreground for `span`, counting `reads` reads. The operation in progress is suspended as by a
    /// read even if `reads` is 0: the controller then uses the path to the die for something else. Queued work resumes
    /// only after the part's resume wait, whether or not it had started (eNVy section 3.4).
    #[inline]
    pub fn occupy(&mut self, at: Time, die: Die, reads: u64, span: Span) -> Served {
        self.latest = self.latest.max(at);
        let interruption = self.cells.config.timing.interruption;
        self.cells.stats.reads += reads;
        self.cells.stats.read_time.add_many(span, (reads > 0) as u64);
        self.cells.stats.read_busy.add_many(span, (reads > 0) as u64);
        let lane = self.cells.die(die);
        let served = lane.foreground(at, span, &interruption);
        if let Interruption::Suspend { resume, .. } = interruption {
            lane.hold(served.end + resume);
        }
        served
    }

    /// Queues an erase.
    ///
    /// Errors: [`MediumError::OutOfRange`]; [`MediumError::BadBlock`]; [`MediumError::EraseFailed`]: the block
    /// should be marked bad, what it holds is undefined.
    pub fn erase(&mut self, at: Time, block: BlockId) -> Result<Ticket, MediumError> {
        if block.0 >= self.geometry().blocks() {
            return Err(MediumError::OutOfRange(block.0 as u64, self.geometry().blocks() as u64));
        }
        if self.cells.is_bad(block) {
            return Err(MediumError::BadBlock(block));
        }
        let die = self.geometry().die_of(block);
        let from = self.cells.die(die).last();
        let programmed = std::mem::take(&mut self.programmed[block.0 as usize]);
        let skipped = self.geometry().pages_per_block.saturating_sub(programmed);
        let is_late = self.slowing.is_some_and(|slowing| slowing.is_erase_late(&self.cells, block));
        let to = self.cells.erase_for(at, die, self.erase_time(block), skipped);
        let fails = self.erase_fails(block, is_late);
        if S::KEEPS {
            self.latest = self.latest.max(at);
            let (offset, bytes) = self.range_of(block);
            let old = self.bytes_at(offset, bytes);
            let was_half_erased = self.half_erased.remove(&block);
            match fails {
                true => self.half_erase(block, &old),
                false => self.fill_erased(offset, bytes),
            }
            let erase = Some(UndoErase { block, was_half_erased, programmed });
            self.unsettled.push_back(Unsettled { die, from, to, offset, old, erase });
        }
        match fails {
            true => Err(MediumError::EraseFailed(block)),
            false => Ok(to),
        }
    }

    /// Whether the erase just queued fails: by chance, because the block is worn out, or because it takes longer than an
    /// erase may.
    fn erase_fails(&mut self, block: BlockId, is_late: bool) -> bool {
        let fails = self.cells.erase_fails(block, false);
        self.cells.stats.failures[2] += (is_late && !fails) as u64;
        fails || is_late
    }

    /// When a queued operation will be done; a promise (see [`nvlab_units::Lane::finish`]).
    #[inline]
    pub fn finish(&mut self, die: Die, ticket: Ticket, at: Time) -> Time {
        self.latest = self.latest.max(at);
        self.cells.die(die).finish(ticket, at)
    }
    /// When a die has done everything queued, including the time that reads took from it
    /// ([`nvlab_units::Lane::idle_at`]).
    pub fn idle_at(&mut self, die: Die, at: Time) -> Time {
        self.cells.die(die).idle_at(at)
    }

    /// The ticket of everything queued on a die so far.
    pub fn last(&mut self, die: Die) -> Ticket {
        self.cells.die(die).last()
    }
    /// True if a queued operation is done at `at`; promises nothing.
    #[inline]
    pub fn is_done(&mut self, die: Die, ticket: Ticket, at: Time) -> bool {
        if S::KEEPS {
            self.latest = self.latest.max(at);
        }
        self.cells.die(die).is_done(ticket, at)
    }

    /// The earliest time of a cut: the latest time passed to the lanes. A caller that cuts other media together
    /// with this one must not cut them earlier.
    pub fn latest(&self) -> Time {
        self.latest
    }
}

/// How many aligned pieces of `size` bytes a range of at least one byte overlaps.
#[inline]
fn touched(offset: u64, bytes: u64, size: u64) -> u64 {
    (offset + bytes - 1) / size - offset / size + 1
}

impl<S: Store> PowerCut for Nor<S> {
    fn settle(&mut self, upto: Time) {
        while let Some(oldest) = self.unsettled.front() {
            if !self.cells.die(oldest.die).is_done(oldest.to, upto) {
                break;
            }
            self.unsettled.pop_front();
        }
    }

    /// A cut before the last operation requested is treated as one at the time of that request.
    fn cut(&mut self, at: Time) {
        let at = at.max(self.latest);
        while let Some(Unsettled { die, from, to, offset, old, erase }) = self.unsettled.pop_back() {
            let progress = self.cells.die(die).progress(at);
            if to <= progress {
                continue;
            }
            match (from < progress, erase) {
                (true, None) => {
                    let new = self.bytes_at(offset, old.len() as u64);
                    self.half_program(offset, &old, &new);
                }
                (false, None) => {
                    self.put(offset, &old);
                    let block = self.block_at(offset);
                    self.programmed[block.0 as usize] -= 1;
                }
                (true, Some(UndoErase { block, .. })) => self.half_erase(block, &old),
                (false, Some(UndoErase { block, was_half_erased, programmed })) => {
                    self.put(offset, &old);
                    self.programmed[block.0 as usize] = programmed;
                    self.cells.unerase(block, self.geometry().pages_per_block.saturating_sub(programmed));
                    self.half_erased.remove(&block);
                    if was_half_erased {
                        self.half_erased.insert(block);
                    }
                }
            }
        }
        self.cells.reset_lanes(at);
    }
}
