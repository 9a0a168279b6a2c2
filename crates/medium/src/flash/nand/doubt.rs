//! Units whose payload is verified when they are read: those written by an earlier process and not verified since
//! ([`Store::is_unverified`]), and those noted here.
//!
//! 1. A controller notes a unit that it copied although it did not match its checksum ([`Nand::doubt`]). The spare
//!    area of the
//!    copy says so too, for the next process that opens the array; the store itself cannot tell that its contents are
//!    wrong.
//! 2. What a power cut restores is noted: it may have been in doubt, or discarded, before it was overwritten.
//! 3. A note is dropped when the unit was verified, when its page is programmed again, or when no cut can undo the
//!    erase of its
//!    block. A superfluous note costs one verification.
//!
//! Rejected: *a mark on the page as for torn ones* (`damaged`): every read would search all of them.

use super::Nand;
use crate::{MediumError, Store};
use nvlab_units::{BlockId, Ppa};
use std::collections::BTreeSet;

/// Units in doubt: few, whatever the size of the array.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubtful {
    units: BTreeSet<u32>,
}

impl Doubtful {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    #[cold]
    fn holds_any(&self, first: u32, count: u32) -> bool {
        self.units.range(first..first + count).next().is_some()
    }

    #[cold]
    fn remove_all(&mut self, first: u32, count: u32) {
        while let Some(&unit) = self.units.range(first..first + count).next() {
            self.units.remove(&unit);
        }
    }
}

impl<S: Store> Nand<S> {
    /// Marks the payload of a unit as unreliable: every reader must verify it, until its page is programmed again.
    pub fn doubt(&mut self, unit: Ppa) {
        self.doubtful.units.insert(unit.0);
    }

    /// Marks a page that was restored.
    pub(super) fn doubt_page(&mut self, block: BlockId, page: u32) {
        let (first, ..) = self.page_place(block, page);
        self.doubtful.units.extend(first.0..first.0 + self.geometry().units_per_page);
    }

    /// Removes the marks of a page that is programmed.
    #[inline]
    pub(super) fn trust_page(&mut self, block: BlockId, page: u32) {
        if !self.doubtful.is_empty() {
            let (first, ..) = self.page_place(block, page);
            self.doubtful.remove_all(first.0, self.geometry().units_per_page);
        }
    }

    /// Removes the marks of a block: its old contents will not return, and nothing was programmed in it since.
    pub(super) fn trust_block(&mut self, block: BlockId) {
        if !self.doubtful.is_empty() {
            let first = self.geometry().first_unit(block);
            self.doubtful.remove_all(first.0, self.geometry().units_per_block());
        }
    }

    /// True if one of these units must be verified when it is read.
    #[inline]
    pub fn is_unverified(&self, first: Ppa, count: u32) -> bool {
        let in_store = |unit| self.store.is_unverified(self.offset_of(Ppa(unit)));
        let noted = !self.doubtful.is_empty() && self.doubtful.holds_any(first.0, count);
        S::KEEPS && (noted || (first.0..first.0 + count).any(in_store))
    }

    /// The unit matches its checksum.
    pub fn set_verified(&mut self, unit: Ppa) {
        self.store.set_verified(self.offset_of(unit));
        if !self.doubtful.is_empty() {
            self.doubtful.units.remove(&unit.0);
        }
    }

    /// Counts a failed read: the controller found that the unit does not hold what was programmed.
    pub fn reject(&mut self, unit: Ppa) -> MediumError {
        self.cells.count_failed_read();
        match self.store.place(self.offset_of(unit)).filter(|_| self.is_unverified(unit, 1)) {
            Some((file, at)) => MediumError::Changed { unit, file, at },
            None => MediumError::Uncorrectable(unit),
        }
    }
}
