//! A map that does not fit into the controller's memory: its entries lie in translation pages in flash, and those used last
//! are in memory (DFTL: Gupta, Kim and Urgaonkar, ASPLOS 2009; the host memory buffer of NVMe 1.2).
//!
//! This program holds the whole map. The model covers which pages a controller would have in memory, the time to
//! fetch the others, and the load that reads and programs of the map put on the flash.
//!
//! * A host request needs the page of each unit it touches. A page on the chip costs nothing, one in the host's
//!   memory a fixed time, any other a read of the flash, and possibly the program of changed pages that must leave
//!   memory: the least recently used are programmed together, as many as fill a page of the array.
//! * A buffered write is acknowledged before its page has arrived; the read occupies its die all the same. An unbuffered
//!   one waits.
//! * Units moved by the cleaner change entries too: at once where the page is in memory; other pages wait in a queue, so
//!   that those of many units are rewritten once, together (DFTL's lazy copying and batch update).
//!
//! What is in memory is lost when the power fails, and is not needed: see [`super::directory`].
//!
//! Simplified: trims need no look-up, entries changed by the cleaner wait in memory beyond the cache until they are
//! rewritten, and reads of host memory do not occupy the link. A read that misses books the read of its data on
//! arrival, for the time when its map entry will be known, and nothing else uses the plane until then. At depth 1
//! that is exact; at depth 64 `dramless-hmb-512gb` reads 181,000 units a second over its whole span, where a closed
//! queueing network of its planes would read about 267,000.
//!
//! Rejected: translation pages among the host's data (no power-cut rule of the log of its own, but they die sooner than data,
//! and the order of programs on two dies would matter); one open block for the log (all map traffic on one die).

use super::directory::Turn;
use super::map_log::MapLog;
use super::residency::{Found, Residency};
use super::{PageMap, PageMapConfig};
use crate::ControllerError;
use nvlab_medium::Store;
use nvlab_units::geometry::Divider;
use nvlab_units::{Extent, Geometry, Lpa, Ppa, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Minimum number of changed pages not in memory that are rewritten together, in pages of the array.
const WAITING_PAGES: usize = 4;

/// The state of a map that is read on demand.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Demand {
    entries: u32,
    by_entries: Divider,
    logical_units: u32,
    pub residency: Residency,
    pub log: MapLog,
    pub turn: Turn,
    /// Changed pages that are not in memory, in the order they changed; an entry counts while `waits` is set.
    pub queue: VecDeque<u32>,
    waits: Vec<bool>,
    /// Scratch: pages to append.
    pub batch: Vec<u32>,
}

/// What the host does with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
}

impl Demand {
    /// For a new controller, if its configuration asks for a map on demand.
    pub fn new(config: &PageMapConfig, geometry: &Geometry) -> Option<Box<Demand>> {
        let map = config.demand.as_ref()?;
        let pages = map.pages(config.logical_units);
        Some(Box::new(Demand {
            entries: map.entries,
            by_entries: Divider::new(map.entries),
            logical_units: config.logical_units,
            residency: Residency::new(pages, map.cache_pages, map.host_pages),
            log: MapLog::new(pages, geometry.blocks(), geometry.dies()),
            turn: Turn::new(),
            queue: VecDeque::new(),
            waits: vec![false; pages as usize],
            batch: Vec::with_capacity(geometry.units_per_page as usize),
        }))
    }

    /// Bytes of its tables.
    pub fn memory_bytes(&self) -> u64 {
        let pages = self.waits.len() as u64;
        9 * pages + 4 * self.log.live.len() as u64 + self.residency.memory_bytes()
    }

    /// The translation page with the entry of a unit.
    #[inline]
    pub fn page_of(&self, lpa: Lpa) -> u32 {
        self.by_entries.divide(lpa.0)
    }
    /// The units whose entries a translation page holds.
    pub fn units(&self, page: u32) -> Extent {
        let start = page * self.entries;
        Extent { start: Lpa(start), count: self.entries.min(self.logical_units - start) }
    }

    /// The entry of a unit has changed.
    #[inline]
    fn changed(&mut self, lpa: Lpa) {
        let page = self.page_of(lpa);
        if !self.residency.soil(page) && !std::mem::replace(&mut self.waits[page as usize], true) {
            self.queue.push_back(page);
        }
    }

    /// Takes pages off the queue, of its first `entries` entries, until `limit` are found.
    pub fn take_waiting(&mut self, entries: &mut usize, limit: usize) {
        while *entries > 0 && self.batch.len() < limit {
            let Some(page) = self.queue.pop_front() else { return };
            *entries -= 1;
            if std::mem::replace(&mut self.waits[page as usize], false) {
                self.batch.push(page);
            }
        }
    }
}

impl<S: Store> PageMap<S> {
    /// The state of its map on demand, which it must have.
    pub(super) fn demand_mut(&mut self) -> &mut Demand {
        self.demand.as_mut().expect("a map that is read on demand")
    }

    /// Notes that the map entry of a unit has changed.
    #[inline(always)]
    pub(super) fn note_change(&mut self, lpa: Lpa) {
        if let Some(demand) = &mut self.demand {
            demand.changed(lpa);
        }
    }

    /// A host read: each translation page is looked up, then its units are read.
    #[cold]
    #[inline(never)]
    pub(super) fn read_on_demand(
        &mut self,
        start: Time,
        extent: Extent,
        into: &mut [u8],
    ) -> Result<Time, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_units)?;
        let (mut done, mut end) = (0, start);
        while done < extent.count {
            let first = extent.start + done;
            let demand = self.demand_mut();
            let of_page = demand.units(demand.page_of(first));
            let count = of_page.end().min(extent.end()) as u32 - first.0;
            let ready = self.look_up(start, first, Use::Read)?;
            let rest = match S::KEEPS && !into.is_empty() {
                true => &mut into[done as usize * self.geometry.unit_bytes as usize..],
                false => &mut [],
            };
            let bytes = rest.len().min(count as usize * self.geometry.unit_bytes as usize);
            let part = Extent { start: first, count };
            end = end.max(self.read_extent(ready, part, &mut rest[..bytes])?);
            done += count;
        }
        Ok(end)
    }

    /// Looks up the entry of a unit that is about to be written, the first one of its request or of its translation page.
    /// Returns when the write goes on.
    #[inline(never)]
    pub(super) fn look_up_to_write(
        &mut self,
        at: Time,
        first: bool,
        lpa: Lpa,
    ) -> Result<Time, ControllerError> {
        let demand = self.demand_mut();
        if !first && demand.units(demand.page_of(lpa)).start != lpa {
            return Ok(at);
        }
        let ready = self.look_up(at, lpa, Use::Write)?;
        Ok(if self.buffer.config().is_some() { at } else { ready })
    }

    /// Looks up the entry of a unit; returns when it is known.
    fn look_up(&mut self, at: Time, lpa: Lpa, purpose: Use) -> Result<Time, ControllerError> {
        let demand = self.demand.as_mut().expect("a map that is read on demand");
        let page = demand.page_of(lpa);
        let found = demand.residency.touch(page);
        let map = &mut self.stats.map;
        let (lookups, hits) = match purpose {
            Use::Read => (&mut map.reads, &mut map.read_hits),
            Use::Write => (&mut map.writes, &mut map.write_hits),
        };
        *lookups += 1;
        *hits += (found != Found::Absent) as u64;
        let ready = match found {
            Found::OnChip(ready) => at.max(ready),
            Found::InHost(ready) => {
                map.host_hits += 1;
                let host_read = self.config.demand.as_ref().map_or(Default::default(), |map| map.host_read);
                at.max(ready) + host_read
            }
            Found::Absent => self.load(at, page, lpa)?,
        };
        match purpose {
            Use::Read => self.stats.map.read_wait += ready - at,
            Use::Write if self.buffer.config().is_none() => self.stats.map.write_wait += ready - at,
            Use::Write => {}
        }
        Ok(ready)
    }

    /// Reads a translation page into memory; returns when it has arrived.
    #[cold]
    fn load(&mut self, at: Time, page: u32, lpa: Lpa) -> Result<Time, ControllerError> {
        if let Some((victim, true)) = self.demand_mut().residency.victim() {
            self.write_back(at, victim)?;
        }
        let place = self.demand_mut().log.places[page as usize];
        let mut ready = at;
        if place != Ppa::NONE {
            self.stats.map.loads += 1;
            let read = self.array.read(at, place, 1, &mut []);
            ready = read.map_err(|source| ControllerError::Unreadable { lpa, source })?.end;
        }
        let demand = self.demand_mut();
        demand.residency.insert(page, ready);
        // Entries changed since the page was programmed are applied now.
        if std::mem::replace(&mut demand.waits[page as usize], false) {
            demand.residency.soil(page);
        }
        Ok(ready)
    }

    /// Programs a dirty page that must leave memory, together with others used long ago.
    fn write_back(&mut self, at: Time, victim: u32) -> Result<(), ControllerError> {
        let per_page = self.geometry.units_per_page as usize;
        self.make_room_in_log(at)?;
        let demand = self.demand_mut();
        let mut batch = std::mem::take(&mut demand.batch);
        batch.clear();
        demand.residency.oldest_dirty(per_page, &mut batch);
        // The turn that made room may have programmed it.
        let written = if batch.contains(&victim) {
            self.stats.map.write_backs += batch.len() as u64;
            self.append(at, &batch)
        } else {
            Ok(())
        };
        self.demand_mut().batch = batch;
        written?;
        if self.checkpoint.is_active() { self.step_turn(at) } else { Ok(()) }
    }

    /// Rewrites pages of the queue once it is long enough.
    pub(super) fn rewrite_waiting(&mut self, at: Time) -> Result<(), ControllerError> {
        let per_page = self.geometry.units_per_page as usize;
        while self.demand_mut().queue.len() > WAITING_PAGES * per_page {
            self.make_room_in_log(at)?;
            let mut all = usize::MAX;
            self.rewrite_batch(at, &mut all)?;
        }
        Ok(())
    }

    /// Rewrites a page of the array full of pages that are among the first `entries` entries of the queue. Returns false if
    /// there is none.
    pub(super) fn rewrite_batch(&mut self, at: Time, entries: &mut usize) -> Result<bool, ControllerError> {
        let per_page = self.geometry.units_per_page as usize;
        let demand = self.demand_mut();
        demand.batch.clear();
        demand.take_waiting(entries, per_page);
        let batch = std::mem::take(&mut demand.batch);
        let mut written = Ok(());
        if !batch.is_empty() {
            self.read_for_rewrite(at, &batch);
            self.stats.map.rewrites += batch.len() as u64;
            written = self.append(at, &batch);
        }
        let some = !batch.is_empty();
        self.demand_mut().batch = batch;
        written.map(|()| some)
    }
}
