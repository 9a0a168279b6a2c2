//! Recovery after a power cut: the zones from the spare areas of their blocks.
//!
//! 1. Of every block the first page says which zone, which generation of it and which member it is, the last one programmed
//!    that all before it are there: pages of a block are programmed in order. Only where that page is not complete are the
//!    others read.
//! 2. A zone is the generation whose first page is there, unless the log records its reset; otherwise it is empty. Of two
//!    blocks for one member (it was being replaced) that with more pages is taken, or the one programmed later.
//! 3. The write pointer is at the first page that is not there. What dies have programmed beyond it is of no use: a block that
//!    has any is replaced by a copy of what it holds before that.
//! 4. Units of the log, then those of a protected buffer, follow at the write pointer. What is then being filled goes to a new
//!    block of the log, and everything else is erased. Only then is the host served, so that nothing old can be
//!    mistaken for what it writes next.
//!
//! Recovery erases nothing before what replaces it is programmed, so it may itself be cut at any operation. Open zones are
//! closed; zones whose last units a volatile buffer lost are closed again, even beyond the limit of active zones.

use super::buffer::Surviving;
use super::layout::Place;
use super::{NO_BLOCK, ZoneConfig, ZoneMap, ZoneState};
use crate::spare::{self, Kind, Spare};
use crate::{ControllerError, RecoveryReport};
use nvlab_medium::flash::Nand;
use nvlab_medium::{PowerCut, Store};
use nvlab_units::{BlockId, Ppa, Time};

/// What a power cut leaves of a controller: its array, and what a protected buffer holds.
#[derive(Clone, Debug)]
pub struct ZoneMedia<S: Store> {
    nand: Nand<S>,
    held: Surviving,
}

impl<S: Store> ZoneMedia<S> {
    /// An array that an earlier process left behind ([`Nand::reopen`]).
    pub fn new(nand: Nand<S>) -> ZoneMedia<S> {
        ZoneMedia { nand, held: Surviving::new() }
    }
}

/// A block of a zone.
#[derive(Clone, Copy, Debug)]
struct Found {
    block: u32,
    zone: u32,
    member: u32,
    generation: u64,
    /// Of its first page.
    stamp: u64,
    /// Pages that are there, from the first on.
    pages: u32,
}

/// A unit of the log, or of the buffer.
struct Beside {
    zone: u32,
    generation: u64,
    unit: u32,
    data: Vec<u8>,
}

/// What the array holds.
#[derive(Default)]
struct Scanned {
    found: Vec<Found>,
    logged: Vec<Beside>,
    /// Zones that the log says were reset, each with the generation.
    resets: Vec<(u32, u64)>,
    /// The blocks of the log, each with the stamp of its first unit.
    log: Vec<(u64, u32)>,
}

impl<S: Store> ZoneMap<S> {
    /// Cuts the power at `at`. What is left can be recovered.
    pub fn power_cut(mut self, at: Time) -> ZoneMedia<S> {
        let at = at.max(self.nand.latest());
        let held = self.buffer.survive(&mut self.nand, at);
        self.nand.cut(at);
        ZoneMedia { nand: self.nand, held }
    }

    /// Rebuilds the controller from its media, beginning at `at`; or returns why that is impossible.
    pub fn recover(
        config: ZoneConfig,
        media: ZoneMedia<S>,
        at: Time,
    ) -> Result<(ZoneMap<S>, RecoveryReport), String> {
        assert!(S::KEEPS, "recovery reads payload");
        let mut map = ZoneMap::empty(config, media.nand)?;
        let before = map.nand.stats().reads;
        let (scanned, now) = map.scan(at);
        let failed = |error: ControllerError| error.to_string();
        let now = map.rebuild(now, scanned, media.held).map_err(failed)?;
        let nand_reads = map.nand.stats().reads - before;
        Ok((map, RecoveryReport { time: now.since(at), nand_reads }))
    }

    fn scan(&mut self, at: Time) -> (Scanned, Time) {
        let (mut scanned, mut end) = (Scanned::default(), at);
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if self.nand.pages_written(block) == 0 || self.nand.cells().is_bad(block) {
                continue;
            }
            let Some([first, _]) = self.page_spares(at, block, 0, &mut end) else { continue };
            let is_cut = self.nand.pages_written(block) == self.geometry.pages_per_block;
            match first.kind {
                Kind::Logged | Kind::Trim if is_cut => {}
                Kind::Logged | Kind::Trim => self.scan_log(at, (block, first), &mut scanned, &mut end),
                Kind::Data | Kind::Padding => {
                    scanned.found.extend(self.scan_block(at, block, first, &mut end));
                }
                _ => {}
            }
        }
        self.count_doubles(at, &mut scanned.found, &mut end);
        let generations = scanned.found.iter().map(|found| found.generation);
        let logged = scanned.logged.iter().map(|logged| logged.generation);
        let resets = scanned.resets.iter().map(|reset| reset.1);
        self.generation = generations.chain(logged).chain(resets).max().unwrap_or(0) >> 8;
        (scanned, end)
    }

    /// A block whose first page begins with `first`.
    fn scan_block(&mut self, at: Time, block: BlockId, first: Spare, end: &mut Time) -> Option<Found> {
        if first.lpa.0 >= self.config.zones * self.config.size_units {
            return None;
        }
        let (zone, unit) = self.layout.split(first.lpa);
        let (number, slot) = self.layout.page_of(unit);
        if slot != 0 || unit >= self.config.capacity_units {
            return None;
        }
        let (Place { member, page }, written) = (self.layout.place(number), self.nand.pages_written(block));
        let is_home = page == 0 && self.layout.die(zone, member) == self.nand.die_of(block);
        let is_whole = self.layout.number(member, written - 1).is_some();
        if !is_home || !is_whole {
            return None;
        }
        let (generation, stamp) = (first.sequence, first.stamp);
        let mut found = Found { block: block.0, zone, member, generation, stamp, pages: written };
        if !self.is_there(at, &found, written - 1, end) {
            self.count_pages(at, &mut found, end);
        }
        Some(found)
    }

    /// True if a page of a block is complete and is what it should be.
    fn is_there(&mut self, at: Time, found: &Found, page: u32, end: &mut Time) -> bool {
        let Some([_, last]) = self.page_spares(at, BlockId(found.block), page, end) else { return false };
        self.stamp = self.stamp.max(last.stamp + 1);
        let Some(number) = self.layout.number(found.member, page) else { return false };
        let lpa = self.layout.start(found.zone) + ((number + 1) * self.geometry.units_per_page - 1);
        let is_of_zone = matches!(last.kind, Kind::Data | Kind::Padding) && last.lpa == lpa;
        is_of_zone && last.sequence == found.generation
    }

    /// Counts the pages that are there, from the first on.
    fn count_pages(&mut self, at: Time, found: &mut Found, end: &mut Time) {
        let written = self.nand.pages_written(BlockId(found.block));
        found.pages = (0..written).take_while(|&page| self.is_there(at, found, page, end)).count() as u32;
    }

    /// Of several blocks for one member, all but one are old, and the erase of any of them may have been cut: its last page may be
    /// there although others are not.
    fn count_doubles(&mut self, at: Time, found: &mut [Found], end: &mut Time) {
        found.sort_by_key(|found| (found.zone, found.member, found.generation));
        let same =
            |a: &Found, b: &Found| (a.zone, a.member, a.generation) == (b.zone, b.member, b.generation);
        for doubles in found.chunk_by_mut(same).filter(|doubles| doubles.len() > 1) {
            doubles.iter_mut().for_each(|found| self.count_pages(at, found, end));
        }
    }

    fn scan_log(
        &mut self,
        at: Time,
        (block, first): (BlockId, Spare),
        scanned: &mut Scanned,
        end: &mut Time,
    ) {
        scanned.log.push((first.stamp, block.0));
        for page in 0..self.nand.pages_written(block) {
            if self.page_spares(at, block, page, end).is_none() {
                continue;
            }
            for slot in 0..self.geometry.units_per_page {
                let unit = self.geometry.first_unit(block) + (page * self.geometry.units_per_page + slot);
                let mut data = vec![0; self.geometry.unit_bytes as usize];
                let Ok(spare) = spare::peek(&self.nand, unit, &mut data) else { continue };
                self.stamp = self.stamp.max(spare.stamp + 1);
                let is_inside = spare.lpa.0 < self.config.zones * self.config.size_units;
                let (zone, unit) = self.layout.split(spare.lpa);
                match spare.kind {
                    Kind::Logged if is_inside && !spare.damaged => {
                        scanned.logged.push(Beside { zone, generation: spare.sequence, unit, data });
                    }
                    Kind::Trim if is_inside => scanned.resets.push((zone, spare.sequence)),
                    _ => {}
                }
            }
        }
    }

    fn rebuild(&mut self, at: Time, scanned: Scanned, held: Surviving) -> Result<Time, ControllerError> {
        let Scanned { mut found, logged, resets, mut log } = scanned;
        let mut reset = vec![0; self.zones.len()];
        for (zone, generation) in resets {
            let last: &mut u64 = &mut reset[zone as usize];
            *last = generation.max(*last);
        }
        found.retain(|found| found.generation > reset[found.zone as usize]);
        self.assign(at, &found, &log);
        for zone in 0..self.config.zones {
            if self.states.of(zone) == ZoneState::Closed {
                self.find_pointer(at, zone, &found);
            }
        }
        for zone in 0..self.config.zones {
            // Without a block to copy to, the zone can only be read.
            if self.states.of(zone) == ZoneState::Closed && self.drop_beyond(at, zone).is_err() {
                self.states.set(zone, ZoneState::ReadOnly);
            }
        }
        let held = held.into_iter().map(|(zone, held)| Beside {
            zone,
            generation: held.generation,
            unit: held.unit,
            data: held.data,
        });
        let mut beside: Vec<Beside> = logged.into_iter().chain(held).collect();
        beside.sort_by_key(|beside| (beside.zone, beside.generation, beside.unit));
        beside.retain(|beside| beside.generation > reset[beside.zone as usize]);
        let mut now = at;
        for beside in beside {
            now = self.put_back(now, beside)?;
        }
        now = self.log_staged(now)?;
        // What the log says was reset is erased before the log is, and of that the oldest first: a later block says what
        // of an earlier one was reset.
        now = self.finish_all(now);
        log.sort_unstable();
        for (_, block) in log {
            now = self.pool.release(&mut self.nand, now, block);
        }
        (0..self.layout.groups()).for_each(|group| self.shrink_empty(group));
        Ok(self.finish_all(now))
    }

    /// When everything queued is done; a promise.
    fn finish_all(&mut self, at: Time) -> Time {
        let dies = self.geometry.all_dies();
        dies.fold(at, |end, die| {
            let last = self.nand.last(die);
            end.max(self.nand.finish(die, last, at))
        })
    }

    /// Gives zones their blocks and erases all others but those of the log.
    fn assign(&mut self, at: Time, found: &[Found], log: &[(u64, u32)]) {
        let better = |a: &&Found, b: &&Found| (a.pages, a.stamp).cmp(&(b.pages, b.stamp));
        let mut uses = vec![false; self.geometry.blocks() as usize];
        log.iter().for_each(|&(_, block)| uses[block as usize] = true);
        for of_zone in found.chunk_by(|a, b| a.zone == b.zone) {
            // The last generation with a first page: the others were reset.
            let firsts = of_zone.iter().filter(|found| found.member == 0 && found.pages > 0);
            let Some(generation) = firsts.map(|found| found.generation).max() else { continue };
            let zone = of_zone[0].zone;
            self.begin_again(zone, generation);
            for member in 0..self.width {
                let fits = |found: &&Found| found.member == member && found.generation == generation;
                if let Some(best) = of_zone.iter().filter(fits).max_by(better) {
                    let index = self.index(zone, member);
                    self.blocks[index] = best.block;
                    uses[best.block as usize] = true;
                }
            }
        }
        for block in (0..self.geometry.blocks()).filter(|&block| !uses[block as usize]) {
            if !self.nand.cells().is_bad(BlockId(block)) {
                self.pool.release(&mut self.nand, at, block);
            }
        }
    }

    /// An empty zone is in a generation that was found.
    fn begin_again(&mut self, zone: u32, generation: u64) {
        let group = self.layout.group(zone) as usize;
        let superblocks = ((generation & 0xff) as u32).clamp(1, self.width / self.layout.dies);
        let capacity = self.config.capacity_units.min(self.layout.units_in(superblocks));
        let state = &mut self.zones[zone as usize];
        self.pool.claimed[group] -= state.superblocks;
        (state.superblocks, state.capacity, state.generation) = (superblocks, capacity, generation);
        self.states.set(zone, ZoneState::Closed);
    }

    /// Finds the write pointer of a zone: the first page that is not there, or where it was finished.
    fn find_pointer(&mut self, at: Time, zone: u32, found: &[Found]) {
        let per_page = self.geometry.units_per_page;
        let superblocks = self.zones[zone as usize].superblocks;
        let mut pages = self.zones[zone as usize].capacity / per_page;
        for member in 0..superblocks * self.layout.dies {
            let block = self.blocks[self.index(zone, member)];
            let there = found.iter().find(|found| found.block == block).map_or(0, |found| found.pages);
            pages = pages.min(self.layout.number(member, there).unwrap_or(pages));
        }
        let mut end = at;
        let mut is_data = |map: &mut Self, page: u32| {
            let place = map.layout.place(page);
            let block = BlockId(map.blocks[map.index(zone, place.member)]);
            let spares = map.page_spares(at, block, place.page, &mut end);
            spares.is_none_or(|[_, last]| last.kind == Kind::Data)
        };
        let (mut whole, mut rest) = (0, pages);
        if is_data(self, pages - 1) {
            (whole, rest) = (pages, 0);
        }
        while rest > 0 {
            let half = rest / 2;
            match is_data(self, whole + half) {
                true => (whole, rest) = (whole + half + 1, rest - half - 1),
                false => rest = half,
            }
        }
        let state = &mut self.zones[zone as usize];
        (state.programmed, state.written) = (pages, whole * per_page);
        let is_finished = whole < pages;
        if is_finished {
            self.zones[zone as usize].written += self.data_in(zone, whole);
        }
        if is_finished || self.zones[zone as usize].written == self.zones[zone as usize].capacity {
            self.states.set(zone, ZoneState::Full);
        }
    }

    /// Units of the host in the page where a zone was finished.
    fn data_in(&self, zone: u32, page: u32) -> u32 {
        let place = self.layout.place(page);
        let block = BlockId(self.blocks[self.index(zone, place.member)]);
        let first: Ppa = self.geometry.first_unit(block) + place.page * self.geometry.units_per_page;
        let is_data = |slot: &u32| {
            let spare = self.nand.spare(first + *slot).ok();
            spare.and_then(|bytes| Spare::alone(&bytes)).is_some_and(|spare| spare.kind == Kind::Data)
        };
        (0..self.geometry.units_per_page).take_while(is_data).count() as u32
    }

    /// Gives every member of a zone a block that holds the pages before the write pointer, and no more.
    fn drop_beyond(&mut self, at: Time, zone: u32) -> Result<(), ControllerError> {
        let end = self.zones[zone as usize].programmed;
        for member in 0..self.zones[zone as usize].superblocks * self.layout.dies {
            let index = self.index(zone, member);
            let block = self.blocks[index];
            if block == NO_BLOCK {
                self.blocks[index] = self.pool.take(&self.nand, self.layout.die(zone, member))?;
                continue;
            }
            let is_before = |&page: &u32| self.layout.number(member, page).is_some_and(|number| number < end);
            let pages = (0..self.geometry.pages_per_block).take_while(is_before).count() as u32;
            if self.nand.pages_written(BlockId(block)) > pages {
                let old = self.move_pages(at, zone, Place { member, page: pages })?;
                self.pool.release(&mut self.nand, at, old);
            }
        }
        Ok(())
    }

    /// Puts a unit back that follows at the write pointer of its zone; others are not needed.
    fn put_back(&mut self, at: Time, beside: Beside) -> Result<Time, ControllerError> {
        let Beside { zone, generation, unit, data } = beside;
        let bytes = self.geometry.unit_bytes as usize;
        let units = (data.len() / bytes) as u32;
        if self.states.of(zone) == ZoneState::Empty && unit == 0 && self.zones[zone as usize].superblocks > 0
        {
            self.begin_again(zone, generation);
            for member in 0..self.zones[zone as usize].superblocks * self.layout.dies {
                let index = self.index(zone, member);
                self.blocks[index] = self.pool.take(&self.nand, self.layout.die(zone, member))?;
            }
        }
        let state = self.zones[zone as usize];
        let is_next = (unit..unit + units).contains(&state.written) && state.generation == generation;
        if !is_next || self.states.of(zone) != ZoneState::Closed {
            return Ok(at);
        }
        let known = state.written - unit;
        // It never left the buffer: it survives another cut at any time.
        self.put(at, zone, units - known, &data[known as usize * bytes..], Some(Time::ZERO))
    }
}
