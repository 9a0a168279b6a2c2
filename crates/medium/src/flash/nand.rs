//! A NAND array: a page is programmed once, in order within its block; a block is erased whole; every unit has
//! a spare area that describes its contents.
//!
//! Invariants
//! 1. Pages of a block are programmed 0, 1, 2, ... and each once between two erases; anything else is an
//!    error, in every build. Under [`CellRules::NandAnyOrder`] the order is free, but still each only once.
//! 2. What a failed or torn program leaves in its page is never returned as good data: the error correction
//!    detects it, or the page holds garbage that a checksum detects (both happen, drawn by seed).
//! 3. Operations of one die take effect in the order they were queued, so a power cut tears at most one
//!    operation per die.
//!
//! Store layout: units in order, then [`SPARE_BYTES`] of spare area per unit, then the records (see `record`).
//! `power` implements power cuts, `payload` knows which payload nobody will ask for again (`dead_units`: of trims), `doubt` which has
//! to be compared with its checksum.

mod dead_units;
mod doubt;
mod payload;
mod power;
mod record;

use super::cells::{Cells, FlashStats, SLC_LEVEL};
use super::config::{CellRules, FlashConfig, SlcMode};
use super::modes::Modes;
use super::planes::{Sense, Slots};
use super::programmed::{Pages, Programmed};
use crate::{MediumError, Store};
pub use dead_units::{Dead, DeadUnits};
use doubt::Doubtful;
use nvlab_units::{BlockId, Die, Geometry, Ppa, Served, Ticket, Time};
use payload::Superseded;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bytes of spare area per unit for the controller (the rest is error correction).
pub const SPARE_BYTES: usize = 28;

/// Why a page cannot be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Damage {
    /// The power failed during its program, and the error correction detects it.
    Torn,
    /// The power failed during the erase of its block.
    HalfErased,
}

/// An operation that a power cut could still undo.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Undo {
    Program { block: BlockId, page: u32 },
    Erase { block: BlockId, slc: bool, pages: Pages, damage: Vec<(u32, Damage)> },
}

/// A block whose erase a power cut could still undo. Its old contents stay in the store until a page is programmed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Erasing {
    block: BlockId,
    /// Old contents of pages programmed since: page number, payload and spare areas.
    overwritten: Vec<(u32, Vec<u8>)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Unsettled {
    die: Die,
    from: Ticket,
    to: Ticket,
    undo: Undo,
}

/// A NAND array with its payload in `S`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Nand<S: Store = ()> {
    cells: Cells,
    store: S,
    /// Pages programmed in each block since its erase.
    programmed: Programmed,
    modes: Modes,
    slots: Slots,
    /// True if block and number within it determine a unit's place: one plane, one page per word line, one mode,
    /// pages programmed in order.
    is_plain: bool,
    unsettled: VecDeque<Unsettled>,
    /// One per erase in `unsettled`, in the same order.
    erasing: VecDeque<Erasing>,
    /// Pages that cannot be trusted, by global page number: few, after a power cut or a failed program.
    damaged: Vec<(u32, Damage)>,
    #[serde(skip)]
    superseded: Superseded,
    #[serde(skip)]
    doubtful: Doubtful,
    /// The latest time passed to the lanes; a cut cannot come earlier.
    latest: Time,
}

impl<S: Store> Nand<S> {
    /// Bytes of the store this array needs.
    pub fn store_bytes(geometry: &Geometry) -> u64 {
        record::end(geometry)
    }

    /// A factory-new array. Panics if the geometry is invalid.
    pub fn new(config: FlashConfig, store: S) -> Nand<S> {
        let mut nand = Nand::new_over(config, store);
        if S::KEEPS {
            let blocks = (0..nand.geometry().blocks()).map(BlockId);
            let bad: Vec<BlockId> = blocks.filter(|&block| nand.cells.is_bad(block)).collect();
            bad.into_iter().for_each(|block| nand.record_block(block));
        }
        nand
    }

    fn new_over(config: FlashConfig, store: S) -> Nand<S> {
        let slots = Slots::new(&config.timing, config.geometry.units_per_page);
        Nand {
            programmed: Programmed::new(&config.geometry, config.rules),
            is_plain: slots.are_alike() && config.rules == CellRules::Nand,
            slots,
            cells: Cells::new(config),
            modes: Modes::default(),
            store,
            unsettled: VecDeque::new(),
            erasing: VecDeque::new(),
            damaged: Vec::new(),
            superseded: Superseded::default(),
            doubtful: Doubtful::default(),
            latest: Time::ZERO,
        }
    }

    /// Allows blocks to be used with one bit per cell. Panics if they would be larger that way.
    pub fn with_slc_mode(mut self, mode: SlcMode) -> Nand<S> {
        self.modes = Modes::new(&mode, self.geometry());
        self.is_plain = false;
        self.cells.allow_slc(mode);
        self
    }
    /// True if the block is used with one bit per cell.
    #[inline]
    pub fn is_slc(&self, block: BlockId) -> bool {
        self.modes.is_slc(block)
    }
    /// Units that one program of the block writes.
    pub fn units_per_page(&self, block: BlockId) -> u32 {
        self.modes.units_per_page(block, self.geometry())
    }
    /// Chooses whether an erased block is used with one bit per cell or with all, until its next erase. Panics if
    /// it is not erased, or if the part has no such mode.
    pub fn set_slc(&mut self, block: BlockId, slc: bool) {
        assert_eq!(self.pages_written(block), 0, "block {} changes its mode while it holds data", block.0);
        self.modes.set(block, slc);
        self.record_block(block);
    }

    /// Shape of the array.
    pub fn geometry(&self) -> &Geometry {
        &self.cells.config.geometry
    }
    /// The die of a block.
    #[inline]
    pub fn die_of(&self, block: BlockId) -> Die {
        self.cells.layout.die_of(block)
    }
    /// The configuration of the array.
    pub fn config(&self) -> &FlashConfig {
        &self.cells.config
    }
    /// Wear and faults.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }
    /// What it has done so far.
    pub fn stats(&self) -> FlashStats {
        self.cells.stats()
    }
    /// Resets the statistics; wear stays.
    pub fn reset_stats(&mut self) {
        self.cells.reset_stats();
    }
    /// Pages programmed in a block since its erase: what a controller would find by searching for the first
    /// erased page. If programmed in any order: one past the highest.
    pub fn pages_written(&self, block: BlockId) -> u32 {
        self.programmed.written(block)
    }
    /// True if the page was programmed since its block's erase.
    #[inline]
    pub fn is_programmed(&self, block: BlockId, page: u32) -> bool {
        self.programmed.holds(block, page) == Some(true)
    }
    /// True if a unit is readable as far as known without reading it.
    pub fn is_readable(&self, unit: Ppa) -> bool {
        self.readable(unit).is_ok()
    }
    /// The latest time passed to the array: a power cut cannot come before it. A controller of several arrays
    /// cuts all of them at the latest of these.
    pub fn latest(&self) -> Time {
        self.latest
    }
    /// Sets a block of an array without payload to a used state: erased as often as that of `like`, in either mode, its first
    /// `pages` programmed since. The block must be erased.
    pub fn assume(&mut self, block: BlockId, pages: u32, like: &Cells) {
        assert!(!S::KEEPS && self.pages_written(block) == 0, "block {} has pages of its own", block.0);
        self.cells.set_erase_count(block, like.erase_count(block));
        if self.cells.slc_mode().is_some() {
            self.cells.set_slc_erase_count(block, like.slc_erase_count(block));
        }
        if pages > 0 {
            self.programmed.set(block, 0, pages);
        }
    }
    /// Marks a block bad, permanently (a mark in its spare area).
    pub fn mark_bad(&mut self, block: BlockId) {
        self.cells.mark_bad(block);
        self.record_block(block);
    }

    #[inline]
    fn split(&self, unit: Ppa) -> (BlockId, u32, u32) {
        self.cells.layout.split(unit)
    }

    /// The block and slot of a readable unit and the page of its word line, or why it cannot be read.
    #[inline(always)]
    fn readable(&self, unit: Ppa) -> Result<(BlockId, u32, u32), MediumError> {
        let (block, page, slot) = self.split(unit);
        match self.level_of(block, slot) {
            Some(level) if self.is_programmed(block, page) && self.damaged.is_empty() => {
                Ok((block, slot, level))
            }
            _ => self.readable_among_damaged(unit),
        }
    }

    /// [`Nand::readable`] when pages are damaged, or this one is not programmed.
    #[cold]
    fn readable_among_damaged(&self, unit: Ppa) -> Result<(BlockId, u32, u32), MediumError> {
        let (block, page, slot) = self.split(unit);
        let Some(programmed) = self.programmed.holds(block, page) else {
            return Err(MediumError::OutOfRange(unit.0 as u64, self.geometry().units()));
        };
        let level = self.level_of(block, slot).filter(|_| programmed).ok_or(MediumError::Erased(unit))?;
        match self.is_damaged(block, page) {
            true => Err(MediumError::Uncorrectable(unit)),
            false => Ok((block, slot, level)),
        }
    }

    /// The page of a word line that holds `slot` of a page of the block; `None` if it has no such slot in its mode.
    #[inline]
    fn level_of(&self, block: BlockId, slot: u32) -> Option<u32> {
        if self.modes.is_slc(block) {
            return (slot < self.modes.units_per_page(block, self.geometry())).then_some(SLC_LEVEL);
        }
        Some(self.slots.level(slot))
    }

    /// The array read that fetches `count` units of a page from `slot` on.
    #[inline]
    fn sense(&self, level: u32, slot: u32, count: u32) -> Sense {
        let (plane, planes) = self.slots.planes(slot, count);
        Sense { level, plane, planes }
    }

    /// The block of readable units and the array read that fetches them, or why they cannot be read.
    #[inline(always)]
    fn sensed(&self, first: Ppa, count: u32) -> Result<(BlockId, Sense), MediumError> {
        let (block, within) = self.cells.layout.split_block(first);
        let per_page = self.geometry().units_per_page;
        if self.is_plain && self.damaged.is_empty() && self.programmed.reaches(block, within, per_page) {
            return Ok((block, Sense::ONLY));
        }
        let (block, slot, level) = self.readable(first)?;
        Ok((block, self.sense(level, slot, count)))
    }

    /// Reads, in the foreground, `count` units that one array read fetches (see [`Nand::units_together`]). `into`
    /// receives the payload if the store keeps bytes; it may be empty: see [`Nand::view`].
    ///
    /// Errors: [`MediumError::Erased`], [`MediumError::Uncorrectable`], [`MediumError::OutOfRange`].
    #[inline(always)]
    pub fn read(&mut self, at: Time, first: Ppa, count: u32, into: &mut [u8]) -> Result<Served, MediumError> {
        let (block, sense) = self.sensed(first, count)?;
        if S::KEEPS {
            self.latest = self.latest.max(at);
        }
        let served = self.cells.read(at, block, sense, count);
        let served = served.map_err(|_| MediumError::Uncorrectable(first))?;
        if S::KEEPS && !into.is_empty() {
            let bytes = count as usize * self.geometry().unit_bytes as usize;
            self.store.read(self.offset_of(first), &mut into[..bytes]);
        }
        Ok(served)
    }

    /// How many units from `first` on are fetched by the same array read.
    #[inline]
    pub fn units_together(&self, first: Ppa) -> u32 {
        let per_read = self.slots.together();
        if per_read <= 1 { 1 } else { per_read - self.split(first).2 % per_read }
    }

    /// Maximum number of units per array read: those of one plane, or of all planes if it senses them together. They
    /// start at a multiple of this number within their page.
    #[inline]
    pub fn units_per_read(&self) -> u32 {
        self.slots.together()
    }

    /// The page of a word line that holds a unit of a full-density page, by its slot in the page.
    #[inline]
    pub fn level(&self, slot: u32) -> u32 {
        self.slots.level(slot)
    }

    /// Copies one unit out without spending time (its read is accounted elsewhere: [`Nand::relocation_reads`],
    /// or a scan's own count): payload and spare area.
    pub fn peek(&self, unit: Ppa, data: &mut [u8], spare: &mut [u8; SPARE_BYTES]) -> Result<(), MediumError> {
        self.readable(unit)?;
        self.store.read(self.offset_of(unit), data);
        self.store.read(self.spare_offset(unit), spare);
        Ok(())
    }

    /// Reads the spare area of one unit (and with it the page) in the foreground.
    pub fn read_spare(&mut self, at: Time, unit: Ppa) -> (Time, Result<[u8; SPARE_BYTES], MediumError>) {
        let (block, _, slot) = self.split(unit);
        let level = self.level_of(block, slot).unwrap_or(SLC_LEVEL);
        let end = match self.cells.read(at, block, self.sense(level, slot, 1), 1) {
            Ok(served) => served.end,
            Err(end) => return (end, Err(MediumError::Uncorrectable(unit))),
        };
        if let Err(error) = self.readable(unit) {
            return (end, Err(error));
        }
        let mut spare = [0; SPARE_BYTES];
        self.store.read(self.spare_offset(unit), &mut spare);
        (end, Ok(spare))
    }

    /// The spare area of a readable unit, without spending time (it is read together with the unit).
    pub fn spare(&self, unit: Ppa) -> Result<[u8; SPARE_BYTES], MediumError> {
        self.readable(unit)?;
        let mut spare = [0; SPARE_BYTES];
        self.store.read(self.spare_offset(unit), &mut spare);
        Ok(spare)
    }

    /// Offset of a unit's payload in the store.
    #[inline]
    fn offset_of(&self, unit: Ppa) -> u64 {
        unit.0 as u64 * self.geometry().unit_bytes as u64
    }

    fn spare_offset(&self, unit: Ppa) -> u64 {
        self.geometry().bytes() + unit.0 as u64 * SPARE_BYTES as u64
    }

    /// Queues the reads of a relocation: `reads[i]` reads of page `i` of a word line ([`SLC_LEVEL`]: of a block
    /// in SLC mode), `units` units in total.
    pub fn relocation_reads(&mut self, at: Time, die: Die, reads: &[u32], units: u32) {
        self.cells.relocation_reads(at, die, reads, units);
    }

    /// Queues programs of `count` pages from `page` on. With a store, `count` is 1 and `data` and `spare` hold
    /// the units of the page. `host` is false for relocated data.
    ///
    /// Errors: [`MediumError::OutOfOrder`], [`MediumError::Programmed`], [`MediumError::BadBlock`];
    /// [`MediumError::ProgramFailed`]: the page is used up, the pages before it stay readable, the data
    /// must be written elsewhere.
    #[inline(always)]
    pub fn program(
        &mut self,
        at: Time,
        block: BlockId,
        page: u32,
        count: u32,
        payload: Payload<'_>,
        host: bool,
    ) -> Result<Ticket, MediumError> {
        if self.cells.is_bad(block) {
            return Err(MediumError::BadBlock(block));
        }
        let slc = self.modes.is_slc(block);
        if slc {
            self.modes.check_pages(block, page, count, self.programmed.written(block))?;
        }
        self.programmed.program(block, page, count)?;
        let die = self.cells.layout.die_of(block);
        let from = if S::KEEPS { self.cells.die(die).last() } else { Ticket::default() };
        let to = match slc {
            true => self.cells.program_slc(at, die, count, host),
            false => self.cells.program(at, die, count, host),
        };
        if S::KEEPS {
            assert_eq!(count, 1, "payload is programmed page by page");
            self.latest = self.latest.max(at);
            self.keep_overwritten(block, page);
            self.trust_page(block, page);
            self.put(block, page, payload);
            self.record_page(block, page, None);
            self.unsettled.push_back(Unsettled { die, from, to, undo: Undo::Program { block, page } });
            self.note_programmed(block, page);
        }
        if self.cells.programs_may_fail() && self.cells.program_fails(block) {
            self.damage(block, page, Damage::Torn);
            self.record_page(block, page, Some(Damage::Torn));
            if S::KEEPS {
                self.discard_pages(block, page, page + 1);
            }
            return Err(MediumError::ProgramFailed(block));
        }
        Ok(to)
    }

    /// True if the page cannot be trusted.
    fn is_damaged(&self, block: BlockId, page: u32) -> bool {
        let number = block.0 * self.geometry().pages_per_block + page;
        self.damaged.iter().any(|&(damaged, _)| damaged == number)
    }

    fn damage(&mut self, block: BlockId, page: u32, damage: Damage) {
        self.damaged.push((block.0 * self.geometry().pages_per_block + page, damage));
    }

    /// Queues an erase.
    ///
    /// Errors: [`MediumError::BadBlock`]; [`MediumError::EraseFailed`]: the block should be marked bad, its
    /// content is undefined.
    pub fn erase(&mut self, at: Time, block: BlockId) -> Result<Ticket, MediumError> {
        if self.cells.is_bad(block) {
            return Err(MediumError::BadBlock(block));
        }
        let die = self.geometry().die_of(block);
        let from = self.cells.die(die).last();
        let slc = self.modes.is_slc(block);
        let skipped = self.skipped_pages(block);
        let to = match slc {
            true => self.cells.erase_slc(at, die, skipped),
            false => self.cells.erase(at, die, skipped),
        };
        self.modes.set(block, false);
        let held = self.programmed.take(block, S::KEEPS);
        let pages = self.geometry().pages_per_block;
        let range = block.0 * pages..(block.0 + 1) * pages;
        if S::KEEPS {
            let damage = self.damaged.iter().filter(|(page, _)| range.contains(page)).copied().collect();
            self.erasing.push_back(Erasing { block, overwritten: Vec::new() });
            let undo = Undo::Erase { block, slc, pages: held, damage };
            self.unsettled.push_back(Unsettled { die, from, to, undo });
            self.forget_staged(block);
        }
        self.damaged.retain(|(page, _)| !range.contains(page));
        let failed = self.cells.erase_fails(block, slc);
        self.record_erased(block);
        self.record_block(block);
        if failed {
            return Err(MediumError::EraseFailed(block));
        }
        Ok(to)
    }

    /// When a queued operation will be done; a promise (see [`nvlab_units::Lane::finish`]).
    #[inline(always)]
    pub fn finish(&mut self, die: Die, ticket: Ticket, at: Time) -> Time {
        self.cells.die(die).finish(ticket, at)
    }

    /// When a die has done everything queued and its relocated data has crossed the channel, including the time that
    /// reads took from both ([`nvlab_units::Lane::idle_at`]).
    pub fn idle_at(&mut self, die: Die, at: Time) -> Time {
        self.cells.idle_at(die, at)
    }

    /// The ticket of everything queued on a die so far.
    pub fn last(&mut self, die: Die) -> Ticket {
        self.cells.die(die).last()
    }

    /// When a die will have done everything queued, if nothing else arrives: an estimate.
    #[inline]
    pub fn idle_from(&self, die: Die) -> Time {
        self.cells.idle_from(die)
    }

    /// True if a die has started work queued after `from` by `at`; promises nothing.
    pub fn has_begun(&mut self, die: Die, from: Ticket, at: Time) -> bool {
        self.cells.die(die).progress(at) > from
    }

    /// True if a queued operation is done at `at`; promises nothing.
    pub fn is_done(&mut self, die: Die, ticket: Ticket, at: Time) -> bool {
        self.cells.die(die).is_done(ticket, at)
    }
}

/// Payload and spare areas of a page; empty if the store keeps no bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Payload<'a> {
    /// Those of its units.
    pub data: Data<'a>,
    /// [`SPARE_BYTES`] per unit.
    pub spare: &'a [u8],
}

impl<'a> Payload<'a> {
    /// Bytes, and the spare areas beside them.
    #[inline]
    pub fn new(data: &'a [u8], spare: &'a [u8]) -> Payload<'a> {
        Payload { data: Data::Bytes(data), spare }
    }
}

/// The payload of a page.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// [`Geometry::page_bytes`] bytes.
    Bytes(&'a [u8]),
    /// What these units of the same array hold now, in the order of the page: the store may keep it once for both
    /// ([`Store::copy`]).
    Copies(&'a [Ppa]),
}

impl Default for Data<'_> {
    fn default() -> Self {
        Data::Bytes(&[])
    }
}
