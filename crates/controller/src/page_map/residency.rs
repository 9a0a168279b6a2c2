//! Which translation pages are in memory: a list from the most to the least recently used one, in fixed arrays.
//!
//! The first of the list are on the controller's chip, the others in the host's memory: a page that is used moves to the
//! front, and what it pushes over the boundary moves to the host. So a page is in one of the two memories.
//!
//! Rejected: single entries, as in DFTL, which need a search or a word for each unit of the device; drives fetch and keep
//! whole pages.

use nvlab_units::Time;
use serde::{Deserialize, Serialize};

/// No slot of memory, or no page.
const NONE: u32 = u32::MAX;

/// Where a translation page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// On the chip; a load in progress ends at this time.
    OnChip(Time),
    /// In the host's memory; the same.
    InHost(Time),
    Absent,
}

/// The pages in memory. All arrays but `slots` are indexed by slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Residency {
    /// The slot of each page, or `NONE`.
    slots: Vec<u32>,
    pages: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    dirty: Vec<bool>,
    on_chip: Vec<bool>,
    /// When the page has arrived.
    ready: Vec<Time>,
    /// The most and the least recently used slot.
    head: u32,
    tail: u32,
    /// The last slot of the list that is on the chip.
    boundary: u32,
    chip: u32,
    chip_max: u32,
    dirty_count: u32,
    capacity: u32,
}

impl Residency {
    /// None of `pages` in memory; `chip_max` of them fit on the chip, `host_max` into the host's memory.
    pub fn new(pages: u32, chip_max: u32, host_max: u32) -> Residency {
        let capacity = (chip_max as u64 + host_max as u64).min(pages as u64) as u32;
        Residency {
            slots: vec![NONE; pages as usize],
            pages: Vec::with_capacity(capacity as usize),
            next: Vec::with_capacity(capacity as usize),
            previous: Vec::with_capacity(capacity as usize),
            dirty: Vec::with_capacity(capacity as usize),
            on_chip: Vec::with_capacity(capacity as usize),
            ready: Vec::with_capacity(capacity as usize),
            head: NONE,
            tail: NONE,
            boundary: NONE,
            chip: 0,
            chip_max,
            dirty_count: 0,
            capacity,
        }
    }

    /// Bytes of its arrays when all slots are in use, besides four for each page of the map.
    pub fn memory_bytes(&self) -> u64 {
        22 * self.capacity as u64
    }
    /// Slots in use.
    pub fn slots(&self) -> u32 {
        self.pages.len() as u32
    }
    /// Pages that have changed since they were programmed.
    pub fn dirty_count(&self) -> u32 {
        self.dirty_count
    }
    pub fn is_resident(&self, page: u32) -> bool {
        self.slots[page as usize] != NONE
    }
    /// The page in a slot, if it is dirty.
    pub fn dirty_in(&self, slot: u32) -> Option<u32> {
        self.dirty[slot as usize].then(|| self.pages[slot as usize])
    }

    /// Finds a page and makes it the most recently used one.
    pub fn touch(&mut self, page: u32) -> Found {
        let slot = self.slots[page as usize];
        if slot == NONE {
            return Found::Absent;
        }
        let (ready, on_chip) = (self.ready[slot as usize], self.on_chip[slot as usize]);
        if slot != self.head {
            self.unlink(slot);
            self.push_front(slot);
        }
        if on_chip { Found::OnChip(ready) } else { Found::InHost(ready) }
    }

    /// The page that must leave before another comes, and whether it is dirty.
    pub fn victim(&self) -> Option<(u32, bool)> {
        let full = self.slots() == self.capacity;
        full.then(|| (self.pages[self.tail as usize], self.dirty[self.tail as usize]))
    }

    /// Adds a page that arrives at `ready`, in the place of the clean victim if there is one.
    pub fn insert(&mut self, page: u32, ready: Time) {
        let slot = match self.victim() {
            None => {
                self.pages.push(page);
                self.next.push(NONE);
                self.previous.push(NONE);
                self.dirty.push(false);
                self.on_chip.push(false);
                self.ready.push(ready);
                self.slots() - 1
            }
            Some((old, dirty)) => {
                assert!(!dirty, "translation page {old} would be lost");
                let slot = self.tail;
                self.unlink(slot);
                self.slots[old as usize] = NONE;
                (self.pages[slot as usize], self.ready[slot as usize]) = (page, ready);
                slot
            }
        };
        self.slots[page as usize] = slot;
        self.push_front(slot);
    }

    /// Marks a page dirty; returns false if it is not in memory.
    #[inline]
    pub fn soil(&mut self, page: u32) -> bool {
        let slot = self.slots[page as usize];
        if slot == NONE {
            return false;
        }
        self.dirty_count += !self.dirty[slot as usize] as u32;
        self.dirty[slot as usize] = true;
        true
    }

    /// Notes that a page, if it is in memory, is programmed as it is now.
    pub fn cleaned(&mut self, page: u32) {
        let slot = self.slots[page as usize];
        if slot != NONE && std::mem::replace(&mut self.dirty[slot as usize], false) {
            self.dirty_count -= 1;
        }
    }

    /// At most `limit` dirty pages of the less recently used half, the least recently used first.
    pub fn oldest_dirty(&self, limit: usize, into: &mut Vec<u32>) {
        let mut slot = self.tail;
        for _ in 0..self.slots().div_ceil(2) {
            if slot == NONE || into.len() == limit {
                return;
            }
            into.extend(self.dirty_in(slot));
            slot = self.previous[slot as usize];
        }
    }

    fn unlink(&mut self, slot: u32) {
        let (before, after) = (self.previous[slot as usize], self.next[slot as usize]);
        match before {
            NONE => self.head = after,
            before => self.next[before as usize] = after,
        }
        match after {
            NONE => self.tail = before,
            after => self.previous[after as usize] = before,
        }
        if self.on_chip[slot as usize] {
            self.chip -= 1;
            if self.boundary == slot {
                self.boundary = before;
            }
        }
    }

    fn push_front(&mut self, slot: u32) {
        (self.previous[slot as usize], self.next[slot as usize]) = (NONE, self.head);
        match self.head {
            NONE => self.tail = slot,
            head => self.previous[head as usize] = slot,
        }
        self.head = slot;
        self.on_chip[slot as usize] = true;
        if self.chip == 0 {
            self.boundary = slot;
        }
        self.chip += 1;
        if self.chip > self.chip_max {
            self.on_chip[self.boundary as usize] = false;
            self.boundary = self.previous[self.boundary as usize];
            self.chip -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Rng;

    /// A plain list, most recently used first, with a mark for dirty pages.
    #[test]
    fn residency_agrees_with_a_plain_lru_list() {
        for (chip, host) in [(1, 0), (3, 0), (1, 4), (4, 7), (40, 0), (10, 90)] {
            let (pages, mut list) = (30, Vec::<(u32, bool)>::new());
            let mut residency = Residency::new(pages, chip, host);
            let mut rng = Rng::new(chip as u64 * 100 + host as u64);
            for i in 0..5000 {
                let page = rng.below(pages as u64) as u32;
                let at = list.iter().position(|&(other, _)| other == page);
                let found = match at {
                    None => Found::Absent,
                    Some(i) if i < chip as usize => Found::OnChip(Time::ZERO),
                    Some(_) => Found::InHost(Time::ZERO),
                };
                assert_eq!(residency.touch(page), found, "{chip} {host}, step {i}");
                let mut entry = at.map_or((page, false), |at| list.remove(at));
                if at.is_none() {
                    let full = list.len() as u32 == (chip + host).min(pages);
                    let victim = full.then(|| *list.last().unwrap());
                    assert_eq!(residency.victim(), victim);
                    if let Some((old, _)) = victim {
                        let mut dirty = Vec::new();
                        residency.oldest_dirty(3, &mut dirty);
                        let half = list.iter().rev().take(list.len().div_ceil(2));
                        let expected: Vec<u32> =
                            half.filter(|page| page.1).map(|page| page.0).take(3).collect();
                        assert_eq!(dirty, expected);
                        residency.cleaned(old);
                        list.pop();
                    }
                    residency.insert(page, Time::ZERO);
                }
                if rng.chance(0.3) {
                    assert!(residency.soil(page));
                    entry.1 = true;
                }
                list.insert(0, entry);
                assert_eq!(residency.dirty_count() as usize, list.iter().filter(|page| page.1).count());
            }
        }
    }
}
