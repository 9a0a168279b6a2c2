//! The payload of units in the store, and when nobody will ask for it again.
//!
//! A controller writes a new version of a unit elsewhere; the older one must stay until no power cut can undo the program of
//! the newer one, and may be given up then ([`Store::discard`]). It says so when it queues that program ([`Nand::supersede`]),
//! and is told when it is settled ([`Nand::take_needless`]). Spare areas and the records of pages are never discarded: a recovery
//! finds which unit a page held, and that it is not the newest version, without its payload.
//!
//! The contents of an erased block are given up when no cut can undo the erase.

use super::dead_units::{Dead, DeadUnits};
use super::{Data, Nand, Payload, SPARE_BYTES};
use crate::{MediumError, Store};
use nvlab_units::{BlockId, Die, Ppa, Ticket, Time};
use std::collections::VecDeque;

/// A version that is needed until a die has done what it was given, and until a time; or many.
#[derive(Clone, Copy, Debug)]
struct Until<D = Dead> {
    dead: D,
    die: Die,
    done: Ticket,
    at: Time,
}

/// The versions that will not be needed any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Superseded {
    /// In the order they were superseded; first those that nothing has to be done for.
    programmed: VecDeque<Until>,
    /// Units of pages that are still to be programmed: few, those of the pages being filled.
    staged: Vec<Until>,
    /// Those that trims left, in the order they were superseded.
    together: VecDeque<Until<DeadUnits>>,
}

impl Superseded {
    /// After a power cut a controller finds anew what is dead.
    pub fn clear(&mut self) {
        self.programmed.clear();
        self.staged.clear();
        self.together.clear();
    }
}

impl<S: Store> Nand<S> {
    /// The version of a unit that is there now, or will be once its page is programmed; it is not the newest.
    #[inline]
    pub fn dead(&self, unit: Ppa) -> Dead {
        let block = self.cells.layout.block_of(unit);
        Dead { unit, block, erases: self.cells.erase_count(block) }
    }

    /// The version of a unit is not needed any more once `die` has done the work of ticket `done`, and no power cut can undo
    /// it: a newer version, or a record that says there is none, is programmed then. With the default ticket it is not needed
    /// now.
    #[inline]
    pub fn supersede(&mut self, dead: Dead, die: Die, done: Ticket) {
        self.supersede_until(Until { dead, die, done, at: Time::ZERO });
    }

    /// The same once no power cut can come before `at`: another medium says then that there is a newer version, or none.
    #[inline]
    pub fn supersede_at(&mut self, dead: Dead, at: Time) {
        self.supersede_until(Until { dead, die: Die(0), done: Ticket::default(), at });
    }

    #[inline]
    fn supersede_until(&mut self, until: Until) {
        let dead = until.dead;
        if !S::KEEPS || self.cells.erase_count(dead.block) != dead.erases {
            return;
        }
        match self.holds_page_of(dead) {
            // It waits for nothing, so not for those before it either.
            true if until.done == Ticket::default() && until.at == Time::ZERO => {
                self.superseded.programmed.push_front(until);
            }
            true => self.superseded.programmed.push_back(until),
            false => self.superseded.staged.push(until),
        }
    }

    /// [`Nand::supersede`] for many versions.
    pub fn supersede_all(&mut self, dead: DeadUnits, die: Die, done: Ticket) {
        self.supersede_together(Until { dead, die, done, at: Time::ZERO });
    }

    /// [`Nand::supersede_at`] for many versions.
    pub fn supersede_all_at(&mut self, dead: DeadUnits, at: Time) {
        self.supersede_together(Until { dead, die: Die(0), done: Ticket::default(), at });
    }

    fn supersede_together(&mut self, mut together: Until<DeadUnits>) {
        let Until { die, done, at, .. } = together;
        for dead in std::mem::take(&mut together.dead.staged) {
            self.supersede_until(Until { dead, die, done, at });
        }
        if !together.dead.is_empty() {
            self.superseded.together.push_back(together);
        }
    }

    /// Bytes of memory that the versions take that trims left and that are still needed.
    pub fn superseded_bytes(&self) -> u64 {
        self.superseded.together.iter().map(|together| together.dead.memory_bytes()).sum()
    }

    /// Gives up the payload of a unit at once: whatever a power cut undoes, nobody reads it again.
    pub fn discard(&mut self, unit: Ppa) {
        let bytes = self.geometry().unit_bytes as u64;
        self.store.discard(self.offset_of(unit), bytes);
    }

    /// False if the payload of a unit was discarded, or never written.
    pub fn holds(&self, unit: Ppa) -> bool {
        self.store.holds(self.offset_of(unit))
    }

    pub(super) fn holds_page_of(&self, dead: Dead) -> bool {
        let (_, page, _) = self.split(dead.unit);
        self.is_programmed(dead.block, page)
    }

    /// A page was programmed, with versions of units that were superseded while it was being filled.
    #[inline]
    pub(super) fn note_programmed(&mut self, block: BlockId, page: u32) {
        if !self.superseded.staged.is_empty() {
            let first = self.geometry().first_unit(block).0 + page * self.geometry().units_per_page;
            let units = first..first + self.geometry().units_per_page;
            let Superseded { programmed, staged, .. } = &mut self.superseded;
            programmed.extend(staged.extract_if(.., |until| units.contains(&until.dead.unit.0)));
        }
    }

    /// A block was erased: what was to be programmed in it will not be.
    pub(super) fn forget_staged(&mut self, block: BlockId) {
        self.superseded.staged.retain(|until| until.dead.block != block);
    }

    /// The next superseded version that is not needed any more, as no power cut comes before `upto`; the controller discards it.
    #[inline]
    pub fn take_needless(&mut self, upto: Time) -> Option<Ppa> {
        while let Some(&until) = self.superseded.programmed.front() {
            if !self.is_over(&until, upto) {
                break;
            }
            self.superseded.programmed.pop_front();
            let Until { dead, .. } = until;
            if self.cells.erase_count(dead.block) == dead.erases {
                return Some(dead.unit);
            }
        }
        self.take_of_trims(upto)
    }

    /// Whether no power cut from `upto` on can make it needed again.
    #[inline]
    fn is_over<D>(&mut self, until: &Until<D>, upto: Time) -> bool {
        until.at <= upto && self.cells.die(until.die).is_done(until.done, upto)
    }

    #[inline]
    fn take_of_trims(&mut self, upto: Time) -> Option<Ppa> {
        while let Some(mut together) = self.superseded.together.pop_front() {
            let is_over = self.is_over(&together, upto);
            let found = if is_over { self.take_dead(&mut together.dead) } else { None };
            if !is_over || found.is_some() {
                self.superseded.together.push_front(together);
                return found;
            }
        }
        None
    }

    /// Replaces the first bytes of the spare area of a programmed unit, all together: 4 of them at most.
    pub fn relabel(&mut self, unit: Ppa, label: [u8; 4]) {
        self.store.write(self.spare_offset(unit), &label);
    }

    /// No cut can undo the erase of a block any more: discards what its pages held, except those programmed since.
    pub(super) fn discard_erased(&mut self, block: BlockId, programmed: &[(u32, Vec<u8>)]) {
        if self.erasing.iter().any(|erasing| erasing.block == block) {
            // It was erased once more meanwhile. Which pages were programmed since is known of that erase.
            return;
        }
        let pages = self.geometry().pages_per_block;
        if programmed.is_empty() {
            self.trust_block(block);
            return self.discard_pages(block, 0, pages);
        }
        let mut next = 0;
        // In the order in which they were programmed, which need not be that of the pages.
        let mut kept: Vec<u32> = programmed.iter().map(|&(page, _)| page).collect();
        kept.sort_unstable();
        for page in kept {
            self.discard_pages(block, next, page);
            self.discard_beyond(block, page);
            next = page + 1;
        }
        self.discard_pages(block, next, pages);
    }

    /// Discards what a page that is used with one bit per cell has no room for.
    fn discard_beyond(&mut self, block: BlockId, page: u32) {
        let (here, most) = (self.units_per_page(block), self.geometry().units_per_page);
        let first = self.geometry().first_unit(block).0 + page * most;
        (first + here..first + most).for_each(|unit| self.discard(Ppa(unit)));
    }

    /// Discards the pages of a block that are not programmed.
    pub(super) fn discard_unprogrammed(&mut self, block: BlockId) {
        let pages = self.geometry().pages_per_block;
        let written = self.pages_written(block);
        for page in 0..written {
            match self.is_programmed(block, page) {
                true => self.discard_beyond(block, page),
                false => self.discard_pages(block, page, page + 1),
            }
        }
        self.discard_pages(block, written, pages);
    }

    /// Discards what pages hold that cannot be read any more.
    pub(super) fn discard_damaged(&mut self) {
        let pages = self.geometry().pages_per_block;
        for i in 0..self.damaged.len() {
            let (block, page) = (BlockId(self.damaged[i].0 / pages), self.damaged[i].0 % pages);
            if self.is_programmed(block, page) {
                self.discard_pages(block, page, page + 1);
            }
        }
    }

    pub(super) fn discard_pages(&mut self, block: BlockId, from: u32, to: u32) {
        if from < to {
            let page_bytes = self.geometry().page_bytes();
            let first = self.offset_of(self.geometry().first_unit(block));
            self.store.discard(first + from as u64 * page_bytes, (to - from) as u64 * page_bytes);
        }
    }

    /// Enters what a programmed unit holds, without a program and in no time: for an array that was used without payload
    /// ([`Nand::with_store`]). Without data: zeros.
    pub fn inscribe(&mut self, unit: Ppa, data: &[u8], spare: &[u8; SPARE_BYTES]) {
        debug_assert!(self.readable(unit).is_ok(), "unit {unit:?} is not programmed");
        let (offset, bytes) = (self.offset_of(unit), self.geometry().unit_bytes as u64);
        match data.is_empty() {
            true => self.store.write_zeros(offset, bytes),
            false => self.store.write(offset, data),
        }
        self.store.write(self.spare_offset(unit), spare);
    }

    /// Replaces the payload of a unit whose program is queued and has not begun ([`Nand::has_begun`]).
    pub fn amend(&mut self, unit: Ppa, data: &[u8], spare: &[u8; SPARE_BYTES]) {
        self.store.write(self.offset_of(unit), data);
        self.store.write(self.spare_offset(unit), spare);
    }

    pub(super) fn put(&mut self, block: BlockId, page: u32, payload: Payload<'_>) {
        let first = Ppa(self.geometry().first_unit(block).0 + page * self.geometry().units_per_page);
        let units = self.modes.units_per_page(block, self.geometry()) as usize;
        let unit_bytes = self.geometry().unit_bytes as usize;
        assert_eq!(payload.spare.len(), units * SPARE_BYTES);
        match payload.data {
            Data::Bytes(data) => {
                assert_eq!(data.len(), units * unit_bytes, "a page of payload");
                self.store.write(self.offset_of(first), data);
            }
            Data::Copies(from) => {
                assert_eq!(from.len(), units, "a page of payload");
                for (to, &from) in (first.0..).zip(from) {
                    self.store.copy(self.offset_of(from), self.offset_of(Ppa(to)), unit_bytes);
                }
            }
        }
        self.store.write(self.spare_offset(first), payload.spare);
    }

    /// The payload of units of a page in place, without spending time: of `count` from `first` on, as many as the store has
    /// together, at least one. Panics if it cannot lend them ([`Store::SHOWS`]).
    ///
    /// Errors: as [`Nand::read`].
    pub fn view(&self, first: Ppa, count: u32) -> Result<&[u8], MediumError> {
        self.readable(first)?;
        let bytes = count as usize * self.geometry().unit_bytes as usize;
        Ok(self.store.view(self.offset_of(first), bytes))
    }

    /// Prefetches the first `bytes` of the payload of a unit that will be read soon.
    #[inline]
    pub fn prefetch(&self, unit: Ppa, bytes: usize) {
        self.store.prefetch(self.offset_of(unit), bytes);
    }

    /// First unit of a page, payload bytes of a page and bytes of its spare areas.
    pub(super) fn page_place(&self, block: BlockId, page: u32) -> (Ppa, usize, usize) {
        let geometry = self.geometry();
        let units = geometry.units_per_page as usize;
        let first = Ppa(geometry.first_unit(block).0 + page * geometry.units_per_page);
        (first, units * geometry.unit_bytes as usize, units * SPARE_BYTES)
    }

    /// Keeps the old contents of a page about to be programmed, if a power cut could undo the last erase of its block.
    #[inline]
    pub(super) fn keep_overwritten(&mut self, block: BlockId, page: u32) {
        if let Some(i) = self.erasing.iter().rposition(|erasing| erasing.block == block) {
            let (first, data_bytes, spare_bytes) = self.page_place(block, page);
            let mut held = vec![0; data_bytes + spare_bytes];
            let (data, spare) = held.split_at_mut(data_bytes);
            self.store.read(self.offset_of(first), data);
            self.store.read(self.spare_offset(first), spare);
            self.erasing[i].overwritten.push((page, held));
        }
    }
}
