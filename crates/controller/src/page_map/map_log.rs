//! The log of translation pages: blocks of their own, in which changed pages are appended, a full page of the array at a
//! time.
//!
//! A translation page is a unit with the map entries of neighbouring logical units. When it is written again, its older copy
//! is dead; a turn of the directory ([`super::directory`]) rewrites what is left in the emptiest blocks and erases them. The
//! log keeps a fixed number of blocks, so that appending to it never has to clean. Blocks that are erased are exchanged for
//! less worn ones: the log is written far more often than an equal number of other blocks.
//!
//! Invariants
//! 1. `live[block]` is the number of entries of `places` that lie in the block.
//! 2. A block leaves the log only in [`super::directory`], when no complete directory refers to it.

use super::PageMap;
use super::spare::Kind;
use crate::ControllerError;
use crate::table::BlockState;
use crate::wear::Take;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Die, Lpa, Ppa, Time};
use serde::{Deserialize, Serialize};

/// A block being filled, and its next page.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Open {
    block: BlockId,
    page: u32,
}

/// The blocks of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MapLog {
    /// Where each translation page is; [`Ppa::NONE`]: it was never written.
    pub places: Vec<Ppa>,
    /// Translation pages in each block of the array.
    pub live: Vec<u32>,
    /// Erased blocks.
    pub pool: Vec<BlockId>,
    /// Blocks that are not written to any more, with the page whose program failed.
    pub closed: Vec<(BlockId, Option<u32>)>,
    /// Blocks being filled, a page each in turn.
    open: Vec<Option<Open>>,
    turn: usize,
    /// Pages of erased and open blocks that can still be programmed.
    pub left: u32,
}

impl MapLog {
    /// An empty log of `pages` translation pages in an array of `blocks`, of which `open` are filled at a time.
    pub fn new(pages: u32, blocks: u32, open: u32) -> MapLog {
        MapLog {
            places: vec![Ppa::NONE; pages as usize],
            live: vec![0; blocks as usize],
            pool: Vec::new(),
            closed: Vec::new(),
            open: vec![None; open as usize],
            turn: 0,
            left: 0,
        }
    }

    /// Blocks of the log.
    pub fn blocks(&self) -> usize {
        self.pool.len() + self.closed.len() + self.open.iter().flatten().count()
    }

    /// The blocks being filled.
    pub fn open_blocks(&self) -> impl Iterator<Item = BlockId> {
        self.open.iter().flatten().map(|open| open.block)
    }
}

impl<S: Store> PageMap<S> {
    /// Adds an erased block, which the caller has marked as one of the map, to the log.
    pub(super) fn add_to_log(&mut self, block: BlockId) {
        let pages = self.array.pages_left(block, 0);
        let log = &mut self.demand_mut().log;
        log.pool.push(block);
        log.left += pages;
    }

    /// Takes an erased block of the log, on `die` if there is one. If there is none, the log grows.
    pub(super) fn take_from_log(&mut self, die: Die) -> Result<BlockId, ControllerError> {
        let geometry = self.geometry;
        let log = &mut self.demand_mut().log;
        let on_die = log.pool.iter().position(|&block| geometry.die_of(block) == die);
        if let Some(block) = on_die.or_else(|| log.pool.len().checked_sub(1)) {
            return Ok(log.pool.swap_remove(block));
        }
        let block = self.take_erased(None).ok_or_else(|| self.end_of_life(die))?;
        let pages = self.array.pages_left(block, 0);
        self.demand_mut().log.left += pages;
        Ok(block)
    }

    /// Appends translation pages, at most as many as a page of the array has units, as they are now.
    pub(super) fn append(&mut self, at: Time, pages: &[u32]) -> Result<(), ControllerError> {
        loop {
            let Open { block, page } = self.open_in_log()?;
            let (data, spare) = if S::KEEPS { self.encode_pages(pages) } else { Default::default() };
            self.stats.map_units += self.geometry.units_per_page as u64;
            self.stats.map.padding_units += self.geometry.units_per_page as u64 - pages.len() as u64;
            let written = self.array.program(at, block, page, 1, Payload::new(&data, &spare), true);
            let next = self.array.next_page(block, page + 1);
            let rest =
                if next < self.geometry.pages_per_block { self.array.pages_left(block, next) } else { 0 };
            let log = &mut self.demand_mut().log;
            log.left = log.left.saturating_sub(1);
            let turn = log.turn;
            log.turn = (turn + 1) % log.open.len();
            match written {
                Ok(_) if rest > 0 => log.open[turn] = Some(Open { block, page: next }),
                Ok(_) => {
                    log.open[turn] = None;
                    log.closed.push((block, None));
                }
                Err(MediumError::ProgramFailed(_)) => {
                    log.left = log.left.saturating_sub(rest);
                    log.open[turn] = None;
                    log.closed.push((block, Some(page)));
                    continue;
                }
                Err(other) => panic!("the log of the map broke a rule of the medium: {other}"),
            }
            let first = self.geometry.first_unit(block) + page * self.geometry.units_per_page;
            for (&page, nth) in pages.iter().zip(0..) {
                self.place_page(page, first + nth);
            }
            return Ok(());
        }
    }

    /// The block of the log whose turn it is.
    fn open_in_log(&mut self) -> Result<Open, ControllerError> {
        let turn = self.demand_mut().log.turn;
        if let Some(open) = self.demand_mut().log.open[turn] {
            return Ok(open);
        }
        let block = self.take_from_log(Die(turn as u32))?;
        let open = Open { block, page: self.array.next_page(block, 0) };
        self.demand_mut().log.open[turn] = Some(open);
        Ok(open)
    }

    /// A translation page is now at `place`, and clean.
    pub(super) fn place_page(&mut self, page: u32, place: Ppa) {
        let layout = self.layout;
        let demand = self.demand_mut();
        let old = std::mem::replace(&mut demand.log.places[page as usize], place);
        demand.log.live[layout.block_of(place).0 as usize] += 1;
        if old != Ppa::NONE {
            demand.log.live[layout.block_of(old).0 as usize] -= 1;
        }
        demand.residency.cleaned(page);
    }

    /// A page of the array with translation pages: data and spare areas.
    fn encode_pages(&mut self, pages: &[u32]) -> (Vec<u8>, Vec<u8>) {
        let (mut data, mut spare) = (Vec::new(), Vec::new());
        for slot in 0..self.geometry.units_per_page as usize {
            let start = data.len();
            let (kind, lpa) = match pages.get(slot) {
                Some(&page) => {
                    let units = self.demand_mut().units(page);
                    let entries = self.map.entries(units);
                    data.extend(entries.iter().flat_map(|unit| unit.to_le_bytes()));
                    (Kind::Map, Lpa(page))
                }
                None => (Kind::Padding, Lpa::NONE),
            };
            data.resize(start + self.geometry.unit_bytes as usize, 0);
            let beside = self.numbers.beside(kind, lpa, self.numbers.sequence);
            spare.extend_from_slice(&beside.encode(&data[start..]));
        }
        (data, spare)
    }

    /// Queues the reads of translation pages that will be rewritten and are not in memory.
    pub(super) fn read_for_rewrite(&mut self, at: Time, pages: &[u32]) {
        for &page in pages {
            let demand = self.demand_mut();
            let place = demand.log.places[page as usize];
            if place == Ppa::NONE || demand.residency.is_resident(page) {
                continue;
            }
            self.stats.map.rewrite_reads += 1;
            let mut senses = [0; nvlab_medium::flash::cells::LEVELS_MAX + 1];
            let level = self.array.nand().level(place.0 % self.geometry.units_per_page);
            senses[level as usize] = 1;
            let lane = self.array.lane_of(place).0;
            self.array.nand_mut().relocation_reads(at, lane, &senses, 1);
        }
    }

    /// Erases a block that left the log, and puts the least worn erased block of its die in its place.
    pub(super) fn recycle(&mut self, at: Time, block: BlockId, failed: Option<u32>) {
        let die = self.geometry.die_of(block);
        match failed {
            Some(page) => self.retire(at, block, page),
            None => self.erase_from(at, block),
        }
        if self.table.state(block) == BlockState::Free
            && let Ok(block) = self.take_free(die, Take::LeastWorn)
        {
            self.table.set_state(block, BlockState::Map);
            self.add_to_log(block);
        }
    }
}
