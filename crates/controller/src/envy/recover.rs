//! Recovery after a power cut, from the media alone.
//!
//! 1. The table, the slots and the segments are read from SRAM.
//! 2. An open transaction is undone: its pages are restored from its shadows.
//! 3. The active segment of a pool is the one begun last; it continues after its last page that is not blank.
//! 4. The copies out of a segment that was being emptied are completed (`unfinished`).
//! 5. Segments whose erase is not known to be done are erased again.
//!
//! Every step is recorded as in normal operation, so recovery may itself be cut at any moment.

use super::header;
use super::segments::{Pool, Role, Segment};
use super::table::{Record, SramLayout};
use super::{Envy, EnvyConfig, NOTHING, SLOT};
use crate::RecoveryReport;
use nvlab_medium::flash::Nor;
use nvlab_medium::ram::Ram;
use nvlab_medium::{PowerCut, Store};
use nvlab_units::{Geometry, Lpa, Ticket, Time};

/// Counters in records never reach this: a larger one is damaged.
const NUMBER_MAX: u64 = 1 << 62;
const ERASES_MAX: u32 = 1 << 31;

/// What a power cut leaves of a controller.
#[derive(Clone, Debug)]
pub struct EnvyMedia<S: Store> {
    /// The flash array.
    pub nor: Nor<S>,
    /// Write buffer, page table and the controller's state.
    pub sram: Ram<S>,
}

/// The erase count of each segment according to a controller's SRAM, as [`Nor::reopen`] needs it; or why it is
/// unavailable: the SRAM holds no such state, or that of another design.
pub fn erase_counts<S: Store>(
    config: &EnvyConfig,
    geometry: &Geometry,
    sram: &Ram<S>,
) -> Result<Vec<u32>, String> {
    header::check(config, geometry, sram)?;
    let map = config.sram_layout(geometry, sram.config().word_bytes);
    Ok((0..geometry.blocks()).map(|segment| read_segment(sram, &map, segment).1.erases).collect())
}

/// Reads a segment record: its role as a number, and the rest.
pub(super) fn read_segment<S: Store>(sram: &Ram<S>, map: &SramLayout, number: u32) -> (u32, Segment) {
    let mut bytes = [0; 64];
    sram.peek(map.segment(number), &mut bytes);
    let mut record = Record::from(bytes);
    let flags = record.u32();
    let mut segment = Segment::new(0);
    segment.pool = record.u32();
    segment.partner = record.u32();
    segment.done = record.u32();
    segment.order = record.u64();
    segment.birth = record.u64();
    segment.erases = record.u32();
    (segment.erasing, segment.in_place) = (flags & 1 << 8 != 0, flags & 1 << 9 != 0);
    if segment.erasing {
        segment.done = 0;
    }
    (flags & 0xFF, segment)
}

impl<S: Store> Envy<S> {
    /// Cuts the power of both media at `at`, or at the latest time passed to the array. What is left can be recovered.
    pub fn power_cut(mut self, at: Time) -> EnvyMedia<S> {
        let at = at.max(self.nor.latest());
        self.nor.cut(at);
        self.sram.cut(at);
        EnvyMedia { nor: self.nor, sram: self.sram }
    }

    /// Rebuilds the controller from its media, beginning at `at`; or returns why that is impossible: the
    /// configuration is not the one the media were written with, or they hold no such state.
    pub fn recover(
        config: EnvyConfig,
        media: EnvyMedia<S>,
        at: Time,
    ) -> Result<(Envy<S>, RecoveryReport), String> {
        assert!(S::KEEPS, "recovery reads payload");
        header::check(&config, media.nor.geometry(), &media.sram)?;
        let mut envy = Envy::empty(config, media.nor, media.sram)?;
        envy.written = at;
        envy.read_segments()?;
        envy.read_transaction()?;
        let mut now = envy.read_table(at)?;
        now = envy.undo_transaction(now)?;
        envy.read_slots()?;
        envy.rebuild()?;
        envy.check_segments()?;
        now = envy.find_active(now);
        envy.check_pages()?;
        now = envy.erase_unfinished(now);
        now = envy.finish_leaving(now)?;
        envy.assign_all_erased();
        Ok((envy, RecoveryReport { time: now.since(at), nand_reads: 0 }))
    }

    fn read_segments(&mut self) -> Result<(), String> {
        for number in 0..self.segments.len() as u32 {
            let (role, mut segment) = read_segment(&self.sram, &self.map, number);
            segment.role = match role {
                0 => Role::Erased,
                1 => Role::InService,
                2 => Role::Leaving,
                _ => return Err(format!("the record of segment {number} is damaged: role {role}")),
            };
            let die = self.die_of_segment(number);
            let pool = self.pools.get(segment.pool as usize);
            let named = segment.role == Role::Erased || pool.is_some_and(|pool| pool.die == die);
            let partner = segment.role != Role::Leaving
                || segment.partner < self.segments.len() as u32
                    && segment.partner != number
                    && self.die_of_segment(segment.partner) == die;
            let counted = segment.done <= self.nor.geometry().pages_per_block
                && (segment.erases as u64).max(segment.order).max(segment.birth) < NUMBER_MAX
                && segment.erases < ERASES_MAX;
            if !named || !partner || !counted {
                return Err(format!("the record of segment {number} is damaged: {segment:?}"));
            }
            self.begun = self.begun.max(segment.order + 1);
            self.flushes = self.flushes.max(segment.birth);
            segment.next = self.nor.geometry().pages_per_block;
            self.segments[number as usize] = segment;
        }
        for number in 0..self.pools.len() as u32 {
            let mut bytes = [0; 64];
            self.sram.peek(self.map.pool(number), &mut bytes);
            let mut record = Record::from(bytes);
            let history = &mut self.pools[number as usize].history;
            history.interval = f64::from_bits(record.u64());
            history.cost = f64::from_bits(record.u64());
            history.cleaned_at = record.u64();
            let good = |value: f64| value.is_finite() && value >= 0.0;
            if !good(history.interval) || !good(history.cost) || history.cleaned_at >= NUMBER_MAX {
                return Err(format!("the record of partition {number} is damaged: {history:?}"));
            }
            self.flushes = self.flushes.max(history.cleaned_at);
        }
        Ok(())
    }

    fn read_transaction(&mut self) -> Result<(), String> {
        let mut bytes = [0; 64];
        self.sram.peek(self.map.transaction(), &mut bytes);
        let mut record = Record::from(bytes);
        self.transaction.number = record.u64();
        self.transaction.open = record.u32() != 0;
        match self.transaction.number < NUMBER_MAX {
            true => Ok(()),
            false => Err(format!("the record of the transaction is damaged: {}", self.transaction.number)),
        }
    }

    fn read_table(&mut self, at: Time) -> Result<Time, String> {
        for lpa in (0..self.config.logical_pages).map(Lpa) {
            let location = self.durable_entry(lpa);
            self.check_location(lpa, location)?;
            self.l2p[lpa.index()] = location;
        }
        let (word, cycle) = (self.sram.config().word_bytes as u64, self.sram.config().read.first);
        Ok(at + cycle * self.map.data(0).div_ceil(word))
    }

    fn check_location(&self, lpa: Lpa, location: u32) -> Result<(), String> {
        let good = match location {
            NOTHING => true,
            slot if slot & SLOT != 0 => ((slot & !SLOT) as usize) < self.buffer.slots.len(),
            page => (page as usize) < self.p2l.len(),
        };
        match good {
            true => Ok(()),
            false => Err(format!("the page table is damaged: page {lpa} is at {location:#x}")),
        }
    }

    fn undo_transaction(&mut self, at: Time) -> Result<Time, String> {
        if !self.transaction.open {
            return Ok(at);
        }
        let cycle = self.sram.config().write.first;
        let mut now = at;
        for (lpa, old) in self.durable_shadows() {
            self.check_location(lpa, old)?;
            if lpa.0 >= self.config.logical_pages {
                return Err(format!("a shadow of the transaction is damaged: it is of page {lpa}"));
            }
            self.l2p[lpa.index()] = old;
            self.publish_entry((now, now + cycle), lpa, old);
            now += cycle;
        }
        self.transaction.open = false;
        self.publish_transaction((now, now + cycle));
        Ok(now + cycle)
    }

    /// Reads the slots that hold a page, and their places in the ring.
    fn read_slots(&mut self) -> Result<(), String> {
        let mut places = vec![0; self.buffer.slots.len()];
        for slot in 0..self.buffer.slots.len() as u32 {
            let mut bytes = [0; 16];
            self.sram.peek(self.map.slot(slot), &mut bytes);
            let mut record = Record::from(bytes);
            let (_, origin, place) = (record.u32(), record.u32(), record.u64());
            let used = place > 0;
            let good = origin < self.pools.len() as u32 && place < NUMBER_MAX;
            if used && (!good || self.buffer.index(place - 1) != slot) {
                return Err(format!("the record of slot {slot} is damaged"));
            }
            places[slot as usize] = place;
            let held = &mut self.buffer.slots[slot as usize];
            (held.origin, held.ticket) = (origin, Ticket::default());
            self.buffer.taken = self.buffer.taken.max(place);
        }
        self.buffer.flushed = self.buffer.taken;
        for lpa in (0..self.config.logical_pages).map(Lpa) {
            let location = self.l2p[lpa.index()];
            if location == NOTHING || location & SLOT == 0 {
                continue;
            }
            let slot = (location & !SLOT) as usize;
            let held = &mut self.buffer.slots[slot];
            if held.owner != NOTHING || places[slot] == 0 {
                return Err(format!("the page table is damaged: slot {slot} holds page {lpa} and another"));
            }
            (held.owner, held.ticket) = (lpa.0, Ticket::NEVER);
            self.buffer.flushed = self.buffer.flushed.min(places[slot] - 1);
        }
        if self.buffer.waiting() > self.buffer.slots.len() as u64 {
            return Err(format!("the slots are damaged: they span {} places", self.buffer.waiting()));
        }
        Ok(())
    }

    /// Rebuilds the reverse table, live pages and pools from the table.
    fn rebuild(&mut self) -> Result<(), String> {
        for lpa in (0..self.config.logical_pages).map(Lpa) {
            let location = self.l2p[lpa.index()];
            if location == NOTHING {
                continue;
            }
            if location & SLOT != 0 {
                let origin = self.buffer.slots[(location & !SLOT) as usize].origin;
                self.pools[origin as usize].occupied += 1;
                continue;
            }
            let number = self.segment_of(location);
            let segment = &mut self.segments[number as usize];
            let before = std::mem::replace(&mut self.p2l[location as usize], lpa.0);
            if before != NOTHING || segment.role == Role::Erased {
                return Err(format!("the page table is damaged: page {location} of {lpa}, {segment:?}"));
            }
            segment.live += 1;
            self.pools[segment.pool as usize].occupied += 1;
        }
        self.put_partners_in_service();
        let mut in_service: Vec<u32> = (0..self.segments.len() as u32)
            .filter(|&segment| self.segments[segment as usize].role == Role::InService)
            .collect();
        in_service.sort_by_key(|&segment| self.segments[segment as usize].order);
        for segment in in_service {
            let pool = self.segments[segment as usize].pool;
            self.pools[pool as usize].closed.push_back(segment);
        }
        Ok(())
    }

    /// Puts the partner of a segment being emptied into service, if that was not recorded.
    fn put_partners_in_service(&mut self) {
        for number in 0..self.segments.len() {
            let leaving = self.segments[number];
            if leaving.role == Role::Leaving && self.segments[leaving.partner as usize].role == Role::Erased {
                let order = if leaving.in_place { leaving.order } else { self.begun };
                self.begun += 1;
                let partner = &mut self.segments[leaving.partner as usize];
                (partner.role, partner.pool, partner.order) = (Role::InService, leaving.pool, order);
                partner.done = 0;
                self.record_segment(self.written, leaving.partner);
            }
        }
    }

    /// Checks the segments: a partition has no more than its share, each segment being emptied has its own partner, and
    /// none that holds data is being erased.
    fn check_segments(&self) -> Result<(), String> {
        let mut partners = vec![false; self.segments.len()];
        for (number, segment) in self.segments.iter().enumerate() {
            let leaving = segment.role == Role::Leaving;
            let alone = leaving && {
                let partner = segment.partner as usize;
                self.segments[partner].role != Role::InService
                    || std::mem::replace(&mut partners[partner], true)
            };
            if alone || segment.erasing && segment.live > 0 {
                return Err(format!("the record of segment {number} is damaged: {segment:?}"));
            }
        }
        let many = |pool: &&Pool| pool.closed.len() > pool.size as usize || pool.occupied > pool.limit;
        match self.pools.iter().find(many) {
            Some(pool) => Err(format!("the segments are damaged: {pool:?} is overfull")),
            None => Ok(()),
        }
    }

    /// Checks that the pages in the table are programmed.
    fn check_pages(&self) -> Result<(), String> {
        for (page, &lpa) in self.p2l.iter().enumerate().filter(|(_, lpa)| **lpa != NOTHING) {
            let segment = self.segment_of(page as u32);
            if page as u32 - self.layout_first(segment) >= self.segments[segment as usize].next {
                return Err(format!("the page table is damaged: page {lpa} is at {page}, which is erased"));
            }
        }
        Ok(())
    }

    /// Finds the active segment of each pool and reads it to find its last page that is not blank.
    fn find_active(&mut self, at: Time) -> Time {
        let mut now = at;
        for pool in 0..self.pools.len() {
            let Some(active) = self.pools[pool].closed.pop_back() else { continue };
            self.pools[pool].active = active;
            now = self.find_end(now, active);
        }
        // The others are full, except the partners of segments being emptied.
        let is_partner = |number: u32, segments: &[Segment]| {
            segments.iter().any(|segment| segment.role == Role::Leaving && segment.partner == number)
        };
        for number in 0..self.segments.len() as u32 {
            let active = self.pools.iter().any(|pool| pool.active == number);
            let segment = self.segments[number as usize];
            if segment.role != Role::Erased && !active && !is_partner(number, &self.segments) {
                self.segments[number as usize].done = self.nor.geometry().pages_per_block;
            }
        }
        now
    }

    /// Finds where to continue in a segment.
    fn find_end(&mut self, at: Time, number: u32) -> Time {
        let pages = self.nor.geometry().pages_per_block;
        if self.segments[number as usize].erasing {
            self.segments[number as usize].next = 0;
            return at;
        }
        let first = self.layout_first(number);
        let known = self.segments[number as usize].done;
        let mut page = std::mem::take(&mut self.page);
        let last = (known..pages).rev().find(|i| {
            self.peek(first + i, 0, &mut page);
            page.iter().any(|&byte| byte != 0xFF)
        });
        self.page = page;
        let end = last.map_or(known, |last| last + 1);
        let segment = &mut self.segments[number as usize];
        (segment.next, segment.done) = (end, end);
        let span = self.nor.cells().config.timing.read[0] * (pages - known) as u64;
        self.nor.occupy(at, self.die_of_segment(number), (pages - known) as u64, span).end
    }

    /// Erases segments again whose erase may not have finished.
    fn erase_unfinished(&mut self, at: Time) -> Time {
        for number in 0..self.segments.len() as u32 {
            let segment = &self.segments[number as usize];
            if !segment.erasing {
                continue;
            }
            self.segments[number as usize].erases += 1;
            self.record_segment(at, number);
            self.queue_erase(at, number);
        }
        self.finish_all(at)
    }

    /// Promises the end of everything queued, records it and returns it.
    pub(super) fn finish_all(&mut self, at: Time) -> Time {
        let mut end = at;
        for die in self.nor.geometry().all_dies() {
            let last = self.nor.last(die);
            end = end.max(self.nor.finish(die, last, at));
        }
        self.complete(end);
        end
    }

    /// Distributes the erased segments to the pools and the dies.
    fn assign_all_erased(&mut self) {
        for die in self.nor.geometry().all_dies() {
            let all = self.nor.geometry().blocks_of(die).map(|block| block.0);
            let erased = all.filter(|&segment| self.segments[segment as usize].role == Role::Erased);
            let erased: Vec<u32> = erased.collect();
            for &segment in &erased {
                let segment = &mut self.segments[segment as usize];
                (segment.next, segment.done, segment.pool) = (0, 0, NOTHING);
                segment.unseen = true;
            }
            self.assign_erased(die, erased);
        }
    }
}
