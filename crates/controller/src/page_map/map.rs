//! The map of logical to physical units, its inverse, and which physical units are live.
//!
//! Only the methods here write any of them:
//! 1. A physical unit is live iff `l2p[p2l[unit]] == unit`; a bit per unit records the same, so that finding the live
//!    units of a block needs no look-up for each of them.
//! 2. A unit has an owner from when it is placed in a page ([`Map::place`]); it is live once the owner points to it.
//!
//! At recovery the map is put together first, from entries that may be wrong ([`Map::load`] to [`Map::claim`]); the rest
//! follows from it ([`Map::derive`]).

use super::bit_set::BitSet;
use nvlab_units::{Extent, Lpa, Ppa};
use prefetch_index::prefetch_index;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// An entry of a logical unit that is not mapped.
const UNMAPPED: u32 = Ppa::NONE.0;

/// A live unit being moved out of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moving {
    pub from: Ppa,
    pub lpa: Lpa,
}

/// Where each logical unit is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Map {
    /// Numbers of physical units: stored as their bytes.
    #[serde(with = "nvlab_units::plain")]
    l2p: Vec<u32>,
    #[serde(skip)]
    p2l: Vec<Lpa>,
    live: BitSet,
}

impl Map {
    /// Nothing is mapped.
    pub fn new(logical: u32, physical: u64) -> Map {
        Map {
            l2p: vec![UNMAPPED; logical as usize],
            p2l: vec![Lpa::NONE; physical as usize],
            live: BitSet::new(physical),
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.l2p.len() + self.p2l.len()) as u64 * 4 + self.live.memory_bytes()
    }

    /// Where a logical unit is; [`Ppa::NONE`] if it is unmapped.
    #[inline(always)]
    pub fn find(&self, lpa: Lpa) -> Ppa {
        Ppa(self.l2p[lpa.index()])
    }
    /// [`Map::find`] of a unit that the device may not have.
    #[inline(always)]
    pub fn get(&self, lpa: Lpa) -> Option<Ppa> {
        self.l2p.get(lpa.index()).copied().map(Ppa)
    }
    /// The entries of neighbouring units, as they are stored in flash.
    pub fn entries(&self, of: Extent) -> &[u32] {
        &self.l2p[of.start.index()..of.end() as usize]
    }
    #[inline]
    pub fn prefetch(&self, lpa: Lpa) {
        prefetch_index(&self.l2p, lpa.index());
    }

    /// The logical unit that a physical one holds or held; [`Lpa::NONE`] if it was never anyone's.
    #[inline]
    pub fn owner(&self, unit: Ppa) -> Lpa {
        self.p2l[unit.index()]
    }
    /// The owners of `count` units from `first` on.
    #[inline]
    pub fn owners(&self, first: Ppa, count: u32) -> &[Lpa] {
        &self.p2l[first.index()..(first.0 + count) as usize]
    }
    #[inline]
    pub fn is_live(&self, unit: Ppa) -> bool {
        self.live.holds(unit.0)
    }
    /// Passes the live ones of a range of physical units to `take`, at most `limit` of them; returns the first that it
    /// was not passed, or the end.
    #[inline]
    pub fn each_live(&self, units: Range<Ppa>, limit: u32, mut take: impl FnMut(Ppa)) -> Ppa {
        Ppa(self.live.each(units.start.0, units.end.0, limit, |unit| take(Ppa(unit))))
    }

    /// A physical unit was placed in a page, for `owner` or, as padding, for nobody. It is dead until the owner points to it.
    #[inline(always)]
    pub fn place(&mut self, unit: Ppa, owner: Lpa) {
        self.p2l[unit.index()] = owner;
    }
    /// Points a logical unit to the version of it at `to`, instead of that at `old`, which is dead now.
    #[inline(always)]
    pub fn point(&mut self, lpa: Lpa, old: Ppa, to: Ppa) {
        debug_assert_eq!(
            (self.find(lpa), self.owner(to)),
            (old, lpa),
            "what {lpa} points to, and who owns {to}"
        );
        self.l2p[lpa.index()] = to.0;
        self.live.add(to.0);
        if old != Ppa::NONE {
            self.live.remove(old.0);
        }
    }
    /// Moves live units of one block, in ascending order, to the unowned units from `first` on.
    #[inline]
    pub fn relocate(&mut self, run: &[Moving], first: Ppa) {
        let (l2p, owners) = (&mut self.l2p[..], &mut self.p2l[first.index()..][..run.len()]);
        for ((owner, unit), to) in owners.iter_mut().zip(run).zip(first.0..) {
            *owner = unit.lpa;
            l2p[unit.lpa.index()] = to;
        }
        self.live.add_many(first.0, run.len() as u32);
        let (from, to) = (run[0].from.0, run[run.len() - 1].from.0);
        self.live.remove_many(from, to + 1 - from);
    }
    /// Unmaps a logical unit; returns where it was.
    #[inline]
    pub fn unmap(&mut self, lpa: Lpa) -> Ppa {
        let old = self.forget(lpa);
        if old != Ppa::NONE {
            self.live.remove(old.0);
        }
        old
    }
}

/// At recovery.
impl Map {
    /// Enters what a part of the map in flash says. It may point anywhere.
    pub fn load(&mut self, of: Extent, entries: impl Iterator<Item = u32>) {
        let all = &mut self.l2p[of.start.index()..of.end() as usize];
        all.iter_mut().zip(entries).for_each(|(entry, unit)| *entry = unit);
    }
    /// Removes an entry, and returns what it was.
    pub fn forget(&mut self, lpa: Lpa) -> Ppa {
        Ppa(std::mem::replace(&mut self.l2p[lpa.index()], UNMAPPED))
    }
    /// Removes all entries.
    pub fn forget_all(&mut self) {
        self.l2p.fill(UNMAPPED);
    }
    /// A physical unit holds this logical one, and no other that points to it.
    pub fn claim(&mut self, lpa: Lpa, unit: Ppa) {
        let before = std::mem::replace(&mut self.p2l[unit.index()], lpa);
        if before != Lpa::NONE && self.find(before) == unit {
            self.forget(before);
        }
        self.l2p[lpa.index()] = unit.0;
    }
    /// Derives which units are live, and the owners of these, from the entries; passes each to `live`.
    pub fn derive(&mut self, mut live: impl FnMut(Ppa)) {
        self.p2l.fill(Lpa::NONE);
        for (&unit, lpa) in self.l2p.iter().zip(0..).filter(|(unit, _)| **unit != UNMAPPED) {
            self.p2l[unit as usize] = Lpa(lpa);
            self.live.add(unit);
            live(Ppa(unit));
        }
    }
    /// Restores the owners, which a stored map lacks, from the entries and those of `dead` units. Fails if they do not
    /// fit an array of `physical` units.
    pub fn restore_owners(&mut self, dead: &[(Ppa, Lpa)], physical: u64) -> Result<(), String> {
        self.p2l = vec![Lpa::NONE; physical as usize];
        let mapped = self.l2p.iter().zip(0..).map(|(&unit, lpa)| (Ppa(unit), Lpa(lpa)));
        for (unit, lpa) in mapped.filter(|(unit, _)| *unit != Ppa::NONE).chain(dead.iter().copied()) {
            *self.p2l.get_mut(unit.index()).ok_or("a unit of the map is outside the array")? = lpa;
        }
        Ok(())
    }

    /// Checks the invariants; returns the live units. For tests.
    pub fn check(&self) -> impl Iterator<Item = Ppa> {
        let mapped = || (0..).map(Lpa).zip(&self.l2p).filter(|(_, unit)| **unit != UNMAPPED);
        for (lpa, &unit) in mapped() {
            assert_eq!(self.owner(Ppa(unit)), lpa, "unit {unit} of {lpa} belongs to another");
            assert!(self.is_live(Ppa(unit)), "unit {unit} of {lpa} is not marked live");
        }
        let marked = (0..self.p2l.len() as u32).filter(|&unit| self.live.holds(unit)).count();
        assert_eq!(marked, mapped().count(), "dead units are marked live");
        mapped().map(|(_, &unit)| Ppa(unit))
    }
}
