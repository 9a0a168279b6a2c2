//! The array as its blocks are allocated: die by die, or as superblocks across all dies.
//!
//! A *superblock* consists of the blocks of the same number on every die, its members. They are opened, filled, cleaned
//! and erased together, so that to the page map the array is one die of long blocks: page `p` of a superblock is on die
//! `p mod dies`. Only here, and in `recover`, which reads each member separately, does a block of the map differ from a
//! block of the medium.
//!
//! A *lane* is a die of the medium: its operations are done in the order they were queued, so a [`Queued`] names its
//! lane. Units moved out of a superblock may go to any die: its erase waits until they are programmed.
//!
//! A bad member is left out: its pages are skipped, the superblock holds less. It is not replaced (drives do so with
//! spare blocks), so nothing besides the bad-block marks must survive a power cut.
//!
//! Simplified: a program of relocated data does not wait for its read on another die; it is queued behind the work of
//! its own die.
//!
//! After a power cut during the erase of a superblock each member is, independently, intact, half erased or erased;
//! recovery examines each and erases the superblock again.

use super::config::Allocation;
use nvlab_medium::flash::Nand;
use nvlab_medium::flash::nand::{Dead, Payload};
use nvlab_medium::{MediumError, Store};
use nvlab_units::geometry::Divider;
use nvlab_units::{BlockId, Die, Geometry, Ppa, Served, Ticket, Time};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A lane: a die of the medium, where the map may have fewer of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct LaneId(pub Die);

impl LaneId {
    /// Its place in a table with an entry for each lane.
    #[inline]
    pub fn index(self) -> usize {
        self.0.index()
    }
}

/// A queued program: its lane and its ticket there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Queued {
    pub lane: LaneId,
    pub ticket: Ticket,
}

/// The result of erasing the members of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Erased {
    /// Blocks of the medium that failed and are now marked bad.
    pub failed: u32,
    /// Blocks of the medium that were erased.
    pub left: u32,
}

/// Flash, and how its blocks are allocated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Array<S: Store> {
    nand: Nand<S>,
    superblocks: Option<Superblocks>,
    /// The ticket of the last program queued on each lane.
    last_program: Vec<Ticket>,
}

/// The address arithmetic of an array of superblocks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Superblocks {
    dies: u32,
    /// Blocks and pages of one die.
    blocks_per_die: u32,
    pages_per_die: u32,
    /// Pages of a superblock and units of a page.
    pages: u32,
    units_per_page: u32,
    by_dies: Divider,
    by_page: Divider,
}

impl Superblocks {
    fn new(geometry: &Geometry) -> Superblocks {
        Superblocks {
            dies: geometry.dies(),
            blocks_per_die: geometry.blocks_per_die,
            pages_per_die: geometry.blocks_per_die * geometry.pages_per_block,
            pages: geometry.pages_per_block * geometry.dies(),
            units_per_page: geometry.units_per_page,
            by_dies: Divider::new(geometry.dies()),
            by_page: Divider::new(geometry.units_per_page),
        }
    }

    /// The lane of a page, given its number in the whole array, and its number on that lane.
    #[inline]
    fn split(&self, page: u32) -> (LaneId, u32) {
        let row = self.by_dies.divide(page);
        (LaneId(Die(page - row * self.dies)), row)
    }

    /// The member of a superblock on a lane.
    #[inline]
    fn member(&self, block: BlockId, lane: LaneId) -> BlockId {
        BlockId(lane.0.0 * self.blocks_per_die + block.0)
    }

    fn members(self, block: BlockId) -> impl Iterator<Item = BlockId> {
        (0..self.dies).map(move |lane| self.member(block, LaneId(Die(lane))))
    }

    /// The address of a unit in the medium.
    #[inline]
    fn place(&self, unit: Ppa) -> Ppa {
        let page = self.by_page.divide(unit.0);
        let (lane, row) = self.split(page);
        let slot = unit.0 - page * self.units_per_page;
        Ppa((lane.0.0 * self.pages_per_die + row) * self.units_per_page + slot)
    }
}

impl Array<()> {
    /// The same array with a store ([`Nand::with_store`]).
    pub fn with_store<S: Store>(self, store: S) -> Array<S> {
        let Array { nand, superblocks, last_program } = self;
        Array { nand: nand.with_store(store), superblocks, last_program }
    }
}

impl<S: Store> Array<S> {
    pub fn new(nand: Nand<S>, allocation: Allocation) -> Array<S> {
        let geometry = nand.geometry();
        let superblocks = match allocation {
            Allocation::Dynamic => None,
            Allocation::Superblock => Some(Superblocks::new(geometry)),
        };
        let last_program = vec![Ticket::default(); geometry.dies() as usize];
        Array { nand, superblocks, last_program }
    }

    /// The medium, for queries that do not depend on how blocks are allocated.
    #[inline]
    pub fn nand(&self) -> &Nand<S> {
        &self.nand
    }
    pub fn nand_mut(&mut self) -> &mut Nand<S> {
        &mut self.nand
    }
    pub fn into_nand(self) -> Nand<S> {
        self.nand
    }

    pub fn lanes(&self) -> u32 {
        self.last_program.len() as u32
    }

    fn every_lane(&self) -> impl Iterator<Item = LaneId> + use<S> {
        (0..self.lanes()).map(|lane| LaneId(Die(lane)))
    }

    /// The address of a unit in the medium.
    #[inline]
    pub fn place(&self, unit: Ppa) -> Ppa {
        match &self.superblocks {
            None => unit,
            Some(superblocks) => superblocks.place(unit),
        }
    }

    /// The address in the map of a unit of the medium.
    pub fn unit_at(&self, place: Ppa) -> Ppa {
        let Some(sb) = &self.superblocks else { return place };
        let page = place.0 / sb.units_per_page;
        let (lane, row) = (page / sb.pages_per_die, page % sb.pages_per_die);
        Ppa((row * sb.dies + lane) * sb.units_per_page + place.0 % sb.units_per_page)
    }

    /// The block of the map that a block of the medium belongs to.
    pub fn block_with(&self, member: BlockId) -> BlockId {
        match &self.superblocks {
            None => member,
            Some(superblocks) => BlockId(member.0 % superblocks.blocks_per_die),
        }
    }

    pub fn members_per_block(&self) -> u32 {
        self.superblocks.as_ref().map_or(1, |superblocks| superblocks.dies)
    }

    /// The blocks of the medium that make up a block of the map.
    pub fn members(&self, block: BlockId) -> impl Iterator<Item = BlockId> + use<S> {
        let alone = self.superblocks.is_none().then_some(block);
        let several = self.superblocks.into_iter().flat_map(move |superblocks| superblocks.members(block));
        alone.into_iter().chain(several)
    }

    /// The blocks of the medium.
    pub fn every_member(&self) -> impl Iterator<Item = BlockId> + use<S> {
        (0..self.nand.geometry().blocks()).map(BlockId)
    }

    /// The members of a block that are not bad.
    pub fn good(&self, block: BlockId) -> impl Iterator<Item = BlockId> {
        self.members(block).filter(|&member| !self.nand.cells().is_bad(member))
    }

    /// The most bad blocks that a die of the medium has, of those that form a die of the map, and which die that is.
    pub fn bad_blocks(&self, die: Die) -> (Die, u32) {
        let cells = self.nand.cells();
        let blocks_of = |lane: LaneId| self.nand.geometry().blocks_of(lane.0);
        let bad_of = |lane| blocks_of(lane).filter(|&block| cells.is_bad(block)).count() as u32;
        let bad = self.lanes_of(die).map(|lane| (lane.0, bad_of(lane)));
        bad.max_by_key(|&(lane, bad)| (bad, std::cmp::Reverse(lane))).unwrap_or((die, 0))
    }

    /// The lanes of a die of the map.
    fn lanes_of(&self, die: Die) -> impl Iterator<Item = LaneId> + use<S> {
        let lanes = if self.superblocks.is_some() { 0..self.lanes() } else { die.0..die.0 + 1 };
        lanes.map(|lane| LaneId(Die(lane)))
    }

    /// Units a block can hold: those of its good members.
    pub fn capacity(&self, block: BlockId) -> u32 {
        self.good(block).count() as u32 * self.nand.geometry().units_per_block()
    }

    /// How worn a block is ([`Cells::worn`](nvlab_medium::flash::Cells::worn)): as its most worn member.
    pub fn worn(&self, block: BlockId) -> u32 {
        match &self.superblocks {
            None => self.nand.cells().worn(block),
            Some(_) => self.good(block).map(|member| self.nand.cells().worn(member)).max().unwrap_or(0),
        }
    }

    /// True if nothing is programmed in a block.
    pub fn is_erased(&self, block: BlockId) -> bool {
        self.good(block).all(|member| self.nand.pages_written(member) == 0)
    }

    /// How many units of a full block, from its first on, include all that are programmed.
    #[inline]
    pub fn units_written(&self, block: BlockId) -> u32 {
        match &self.superblocks {
            None => self.nand.pages_written(block) * self.nand.geometry().units_per_page,
            Some(superblocks) => superblocks.pages * superblocks.units_per_page,
        }
    }

    /// True if a block is used with one bit per cell.
    #[inline]
    pub fn is_slc(&self, block: BlockId) -> bool {
        match &self.superblocks {
            None => self.nand.is_slc(block),
            Some(_) => self.good(block).any(|member| self.nand.is_slc(member)),
        }
    }

    /// See [`Nand::set_slc`].
    pub fn set_slc(&mut self, block: BlockId, slc: bool) {
        for member in self.members(block) {
            if !self.nand.cells().is_bad(member) {
                self.nand.set_slc(member, slc);
            }
        }
    }

    /// The first page of a block from `page` on that can be programmed; if there is none, the block's page count.
    #[inline]
    pub fn next_page(&self, block: BlockId, page: u32) -> u32 {
        match &self.superblocks {
            None => page,
            Some(superblocks) => self.next_good(superblocks, block, page),
        }
    }

    fn next_good(&self, superblocks: &Superblocks, block: BlockId, page: u32) -> u32 {
        let is_good = |&page: &u32| {
            let (lane, _) = superblocks.split(page);
            !self.nand.cells().is_bad(superblocks.member(block, lane))
        };
        (page..superblocks.pages).take(superblocks.dies as usize).find(is_good).unwrap_or(superblocks.pages)
    }

    /// Pages of a block from `page` on that can be programmed.
    pub fn pages_left(&self, block: BlockId, page: u32) -> u32 {
        let pages = self.nand.geometry().pages_per_block;
        let Some(superblocks) = &self.superblocks else { return pages - page };
        let good = self.good(block).map(|member| self.nand.die_of(member).0);
        good.map(|lane| pages - page.saturating_sub(lane).div_ceil(superblocks.dies)).sum()
    }

    /// Pages from `page` on that can be programmed before one that cannot, or the end of the block.
    pub fn pages_in_a_row(&self, block: BlockId, page: u32) -> u32 {
        match &self.superblocks {
            None => self.nand.geometry().pages_per_block - page,
            Some(superblocks) if self.good(block).count() as u32 == superblocks.dies => {
                superblocks.pages - page
            }
            Some(_) => 1,
        }
    }

    /// The lane of a unit.
    #[inline]
    pub fn lane_of(&self, unit: Ppa) -> LaneId {
        match &self.superblocks {
            None => LaneId(self.nand.die_of(self.nand.geometry().block_of(unit))),
            Some(superblocks) => superblocks.split(superblocks.by_page.divide(unit.0)).0,
        }
    }

    /// See [`Nand::read`].
    #[inline(always)]
    pub fn read(&mut self, at: Time, first: Ppa, count: u32, into: &mut [u8]) -> Result<Served, MediumError> {
        self.nand.read(at, self.place(first), count, into)
    }

    /// See [`Nand::units_together`].
    #[inline]
    pub fn units_together(&self, first: Ppa) -> u32 {
        self.nand.units_together(self.place(first))
    }

    /// The version of a unit at an address of the map ([`Nand::dead`]).
    #[inline]
    pub fn dead(&self, unit: Ppa) -> Dead {
        self.nand.dead(self.place(unit))
    }

    /// A version is not needed any more once this is done ([`Nand::supersede`]).
    #[inline]
    pub fn supersede(&mut self, dead: Dead, by: Queued) {
        self.nand.supersede(dead, by.lane.0, by.ticket);
    }

    /// See [`Nand::prefetch`].
    #[inline]
    pub fn prefetch(&self, unit: Ppa, bytes: usize) {
        self.nand.prefetch(self.place(unit), bytes);
    }

    /// Queues programs of the pages of a block from `page` on, except those of bad members; see [`Nand::program`].
    /// Returns the last one.
    #[inline(always)]
    pub fn program(
        &mut self,
        at: Time,
        block: BlockId,
        page: u32,
        count: u32,
        payload: Payload<'_>,
        host: bool,
    ) -> Result<Queued, MediumError> {
        if let Some(superblocks) = self.superblocks {
            return self.program_members(superblocks, at, block, page..page + count, payload, host);
        }
        let ticket = self.nand.program(at, block, page, count, payload, host)?;
        let lane = LaneId(self.nand.die_of(block));
        self.last_program[lane.index()] = ticket;
        Ok(Queued { lane, ticket })
    }

    /// Programs the pages of each lane in one run.
    fn program_members(
        &mut self,
        superblocks: Superblocks,
        at: Time,
        block: BlockId,
        pages: Range<u32>,
        payload: Payload<'_>,
        host: bool,
    ) -> Result<Queued, MediumError> {
        let mut last = Queued::default();
        let base = block.0 * superblocks.pages;
        for page in pages.clone().take(superblocks.dies as usize) {
            let (lane, row) = superblocks.split(base + page);
            let member = superblocks.member(block, lane);
            if self.nand.cells().is_bad(member) {
                continue;
            }
            let within = row - block.0 * self.nand.geometry().pages_per_block;
            let count = (pages.end - page).div_ceil(superblocks.dies);
            let ticket = self.nand.program(at, member, within, count, payload, host)?;
            self.last_program[lane.index()] = ticket;
            last = Queued { lane, ticket };
        }
        Ok(last)
    }

    /// Queues the erase of all members of a block, none before `at`. Members that fail are marked bad.
    pub fn erase(&mut self, at: Time, block: BlockId) -> Erased {
        let mut erased = Erased { failed: 0, left: 0 };
        for member in self.members(block) {
            if self.nand.cells().is_bad(member) {
                continue;
            }
            if self.nand.erase(at, member).is_ok() {
                erased.left += 1;
            } else {
                self.nand.mark_bad(member);
                erased.failed += 1;
            }
        }
        erased
    }

    /// Marks the member of a block that holds `page` bad.
    pub fn mark_bad(&mut self, block: BlockId, page: u32) {
        let member = match &self.superblocks {
            None => block,
            Some(superblocks) => superblocks.member(block, superblocks.split(page).0),
        };
        self.nand.mark_bad(member);
    }

    /// When a queued program will be done; a promise (see [`nvlab_units::Lane::finish`]).
    #[inline(always)]
    pub fn finish(&mut self, queued: Queued, at: Time) -> Time {
        self.nand.finish(queued.lane.0, queued.ticket, at)
    }

    /// Promises the end of all queued programs and returns it.
    pub fn finish_programs(&mut self, at: Time) -> Time {
        let mut end = at;
        for (die, &ticket) in (0..).map(Die).zip(&self.last_program) {
            end = end.max(self.nand.finish(die, ticket, at));
        }
        end
    }

    /// The ticket of the last program of each lane.
    pub fn last_programs(&self) -> Vec<Ticket> {
        self.last_program.clone()
    }

    /// Promises the end of everything queued and returns it.
    pub fn finish_all(&mut self, at: Time) -> Time {
        let mut end = at;
        for lane in self.every_lane() {
            let last = self.last_on(lane);
            end = end.max(self.finish(last, at));
        }
        end
    }

    /// When all lanes are idle; a promise.
    pub fn idle_at(&mut self, at: Time) -> Time {
        self.every_lane().map(|lane| self.nand.idle_at(lane.0, at)).fold(at, Time::max)
    }

    /// The ticket of everything queued on a lane so far.
    pub fn last_on(&mut self, lane: LaneId) -> Queued {
        Queued { lane, ticket: self.nand.last(lane.0) }
    }

    /// True if every lane has reached its ticket.
    pub fn passed(&mut self, places: &[Ticket], at: Time) -> bool {
        (0..).map(Die).zip(places).all(|(die, &ticket)| self.nand.is_done(die, ticket, at))
    }

    /// True if a queued program is done.
    pub fn is_done(&mut self, queued: Queued, at: Time) -> bool {
        self.nand.is_done(queued.lane.0, queued.ticket, at)
    }

    /// True if a lane has begun what follows the work up to a ticket.
    pub fn has_begun(&mut self, lane: LaneId, from: Ticket, at: Time) -> bool {
        self.nand.has_begun(lane.0, from, at)
    }

    /// True if the lanes of a die of the map have nothing left to do.
    pub fn is_idle(&mut self, die: Die, at: Time) -> bool {
        self.lanes_of(die).all(|lane| {
            let last = self.last_on(lane);
            self.is_done(last, at)
        })
    }
}
