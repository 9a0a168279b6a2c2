//! The open blocks: one per die and stream. Units are staged until a page is full, then programmed.

use super::PageMap;
use super::array::Queued;
use super::spare::{Kind, Spare};
use crate::ControllerError;
use nvlab_medium::flash::SPARE_BYTES;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Geometry, Lpa, Ppa, Time};
use serde::{Deserialize, Serialize};

pub(super) const NO_BLOCK: u32 = u32::MAX;
/// Marks a staged unit without a slot in the write buffer.
pub(super) const NO_SLOT: u64 = u64::MAX;

/// A unit in a page not yet programmed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Staged {
    pub lpa: Lpa,
    /// The slot of the write buffer it takes, or [`NO_SLOT`].
    pub slot: u64,
    /// The address of the version it replaces, or [`Ppa::NONE`].
    pub replaces: Ppa,
}

/// An open block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Frontier {
    pub block: u32,
    /// The next unit of the block to place; units from page `programmed` up to it are staged.
    pub next: u32,
    /// Pages whose program is queued.
    pub programmed: u32,
    /// Units of a page, and the end of the block: less than the geometry's if it is in SLC mode.
    pub slots: u32,
    pub end: u32,
    pub staged: Vec<Staged>,
    pub data: Vec<u8>,
    pub spare: Vec<u8>,
}

impl Frontier {
    pub fn new<S: Store>(geometry: &Geometry) -> Frontier {
        let keeps = S::KEEPS as usize;
        Frontier {
            block: NO_BLOCK,
            next: 0,
            programmed: 0,
            slots: geometry.units_per_page,
            end: geometry.units_per_block(),
            staged: Vec::with_capacity(geometry.units_per_page as usize),
            data: Vec::with_capacity(geometry.page_bytes() as usize * keeps),
            spare: Vec::with_capacity(geometry.units_per_page as usize * SPARE_BYTES * keeps),
        }
    }

    /// True if the next unit to place is the first of a page.
    #[inline]
    fn is_at_page(&self, per_page: u32) -> bool {
        per_page == 1 || self.next.is_multiple_of(per_page)
    }
}

/// A unit to place in a page.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Unit<'a> {
    pub kind: Kind,
    pub lpa: Lpa,
    /// Its data did not match its checksum.
    pub damaged: bool,
    pub sequence: u64,
    pub slot: u64,
    /// Empty if payload is not kept.
    pub data: &'a [u8],
}

/// Where a unit was placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub block: BlockId,
    pub address: Ppa,
    /// It was the last unit of its page, which can be programmed.
    pub fills_page: bool,
}

impl<S: Store> PageMap<S> {
    /// Places a unit in the open block of a frontier (which must have one). Does not program the page: see
    /// [`PageMap::program_pages`].
    #[inline(always)]
    pub(super) fn place(&mut self, index: u32, unit: Unit<'_>, replaces: Ppa) -> Placed {
        let (per_page, per_block) = (self.geometry.units_per_page, self.geometry.units_per_block());
        let frontier = &mut self.writers[index];
        let block = BlockId(frontier.block);
        let address = Ppa(block.0 * per_block + frontier.next);
        frontier.next += 1;
        if frontier.slots != per_page && frontier.next % per_page == frontier.slots {
            frontier.next += per_page - frontier.slots;
        }
        let fills_page = frontier.is_at_page(per_page);
        self.map.place(address, unit.lpa);
        if per_page > 1 || S::KEEPS || self.array.nand().cells().programs_may_fail() {
            frontier.staged.push(Staged { lpa: unit.lpa, slot: unit.slot, replaces });
        }
        if S::KEEPS {
            let Unit { kind, lpa, damaged, sequence, .. } = unit;
            let spare = Spare { kind, damaged, lpa, sequence, stamp: self.numbers.take_stamp() };
            if per_page > 1 {
                frontier.data.extend_from_slice(unit.data);
            }
            frontier.spare.extend_from_slice(&spare.encode(unit.data));
        }
        self.skip_bad_pages(index);
        Placed { block, address, fills_page }
    }

    /// If a page was just filled, moves on to the next page on a good member of the superblock.
    #[inline(always)]
    pub(super) fn skip_bad_pages(&mut self, index: u32) {
        if self.array.members_per_block() > 1 {
            self.skip_bad_members(index);
        }
    }

    fn skip_bad_members(&mut self, index: u32) {
        let frontier = &mut self.writers[index];
        let per_page = self.geometry.units_per_page;
        if frontier.is_at_page(per_page) {
            let page = self.array.next_page(BlockId(frontier.block), frontier.next / per_page);
            frontier.next = (page * per_page).min(frontier.end);
        }
    }

    /// True if the page being filled is full.
    #[inline]
    pub(super) fn page_is_full(&self, index: u32) -> bool {
        self.writers[index].is_at_page(self.geometry.units_per_page)
    }

    /// Programs the full pages of a frontier that are not yet programmed, and closes the block if it is full.
    /// A failed program moves its units and retires the block. Returns the last queued program. `data`: the payload of
    /// the last placed unit, which is not staged if a page holds one unit.
    #[inline(never)]
    pub(super) fn program_pages(
        &mut self,
        at: Time,
        index: u32,
        data: &[u8],
        over_channel: bool,
    ) -> Result<Queued, ControllerError> {
        self.program_pages_inline(at, index, data, over_channel)
    }

    /// [`PageMap::program_pages`] for every page of the host.
    #[inline(always)]
    pub(super) fn program_pages_inline(
        &mut self,
        at: Time,
        index: u32,
        data: &[u8],
        over_channel: bool,
    ) -> Result<Queued, ControllerError> {
        let frontier = &self.writers[index];
        let (block, page) = (BlockId(frontier.block), frontier.programmed);
        let full = if self.geometry.units_per_page == 1 {
            frontier.next
        } else {
            frontier.next / self.geometry.units_per_page
        };
        let held = if self.geometry.units_per_page == 1 { data } else { &frontier.data };
        let payload = Payload::new(held, &frontier.spare);
        let queued = self.array.program(at, block, page, full - page, payload, over_channel);
        match queued {
            Ok(queued) => {
                let frontier = &mut self.writers[index];
                let is_full = frontier.next == frontier.end;
                if frontier.staged.is_empty() {
                    frontier.programmed = full;
                } else {
                    self.unstage(index, full, queued);
                }
                if is_full {
                    self.close(index);
                }
                Ok(queued)
            }
            Err(MediumError::ProgramFailed(_)) => {
                if self.geometry.units_per_page == 1 {
                    self.writers[index].data.extend_from_slice(data);
                }
                self.program_failed(at, index)
            }
            Err(other) => panic!("frontier {index} broke a rule of the medium: {other}"),
        }
    }

    /// The program of the staged units is queued.
    fn unstage(&mut self, index: u32, programmed: u32, queued: Queued) {
        let (per_page, frontier) = (self.geometry.units_per_page, &mut self.writers[index]);
        let first = self.geometry.first_unit(BlockId(frontier.block)) + frontier.programmed * per_page;
        for (nth, staged) in (0..).zip(frontier.staged.drain(..)) {
            if S::KEEPS && Spare::says_damaged(&frontier.spare[nth as usize * SPARE_BYTES..]) {
                let place = self.array.place(first + nth);
                self.array.nand_mut().doubt(place);
            }
            if S::KEEPS && staged.replaces != Ppa::NONE {
                self.array.supersede(self.array.dead(staged.replaces), queued);
            }
            if staged.slot != NO_SLOT {
                self.buffer.queued(staged.slot, queued);
                if S::KEEPS {
                    self.buffer.held_queued(staged.slot, queued);
                }
            }
        }
        frontier.programmed = programmed;
        frontier.data.clear();
        frontier.spare.clear();
    }

    fn close(&mut self, index: u32) {
        let block = BlockId(std::mem::replace(&mut self.writers[index].block, NO_BLOCK));
        self.offer(block);
        self.cache_filled(block);
    }

    /// Fills the rest of a page with padding and programs it. Does nothing if no page is partly filled.
    pub(super) fn pad(
        &mut self,
        at: Time,
        index: u32,
        over_channel: bool,
    ) -> Result<Queued, ControllerError> {
        if self.writers[index].block == NO_BLOCK || self.page_is_full(index) {
            return Ok(Queued::default());
        }
        let nothing = vec![0; if S::KEEPS { self.geometry.unit_bytes as usize } else { 0 }];
        while !self.page_is_full(index) {
            let padding = Unit {
                kind: Kind::Padding,
                lpa: Lpa::NONE,
                damaged: false,
                sequence: 0,
                slot: NO_SLOT,
                data: &nothing,
            };
            self.place(index, padding, Ppa::NONE);
            self.stats.padding_units += 1;
        }
        if over_channel {
            // The page uses up space like one that the host filled: its data was not counted when it was placed.
            let die = self.writers.die_of(index);
            self.dies[die.index()].owed += self.geometry.units_per_page;
        }
        let queued = self.program_pages(at, index, &[], over_channel)?;
        if over_channel {
            self.pass_turn_of(at, index)?;
        }
        Ok(queued)
    }

    /// Pads all partly filled pages.
    pub(super) fn pad_all(&mut self, at: Time) -> Result<(), ControllerError> {
        (0..self.writers.all().len() as u32).try_for_each(|index| self.pad(at, index, true).map(|_| ()))
    }

    /// The payload of a staged unit; or, if that did not match its checksum when it was moved, the place it was moved from.
    pub(super) fn staged(&self, unit: Ppa) -> Result<&[u8], Ppa> {
        let block = self.block_of(unit).0;
        let frontier = self.writers.all().iter().find(|frontier| frontier.block == block);
        let frontier = frontier.unwrap_or_else(|| panic!("unit {unit:?} is neither programmed nor staged"));
        let within = unit - self.geometry.first_unit(BlockId(block));
        let slot = (within - frontier.programmed * self.geometry.units_per_page) as usize;
        if Spare::says_damaged(&frontier.spare[slot * SPARE_BYTES..]) {
            let from = frontier.staged[slot].replaces;
            return Err(self.array.place(if from == Ppa::NONE { unit } else { from }));
        }
        let bytes = self.geometry.unit_bytes as usize;
        Ok(&frontier.data[slot * bytes..][..bytes])
    }
}
