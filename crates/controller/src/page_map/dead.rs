//! What payload the controller's store may forget: that of versions that no power cut can bring back.
//!
//! 1. A version that a newer one replaces is needed until that is programmed and settled
//!    ([`nvlab_medium::flash::Nand::supersede`]).
//! 2. A trimmed version is needed until the record of the trim is programmed; not so long if the buffer is protected, because it
//!    keeps the record. Without records, where a trim is advice, it may come back as long as its block is not erased. Of a unit
//!    whose trimmed version is erased, older ones are found then, whose payload is gone: so that none of them comes back, a
//!    version that was replaced is marked as padding when its payload is forgotten.
//! 3. A version that a recovery finds dead is not needed: what it lost against is on flash, or in the protected buffer.
//! 4. A piece of an unfinished turn of checkpoints may tell of a trim whose record the cut took. Recovery erases that piece, and
//!    the turn before has the trimmed version still: the trim is pending again, and the version needed as by 2.
//! 5. Only the payload of host data and of padding is forgotten, never that of the map or of the journal of trims, and no spare
//!    area: a second recovery decides as the first did.

use super::PageMap;
use super::array::Queued;
use super::pieces::Checkpoint;
use super::spare::{Kind, Spare};
use super::trim::{self, Record, Trimmed};
use crate::ControllerError;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Extent, Lpa, Ppa, Time};

/// Trims whose records a cut took, and the places of what they left.
#[derive(Debug, Default)]
pub(super) struct Unrecorded {
    records: Vec<Record>,
    /// What each left: the number of its record, and the version.
    left: Vec<(usize, Ppa)>,
    pub places: Vec<Ppa>,
}

impl<S: Store> PageMap<S> {
    /// The trim with number `sequence` left this version.
    pub(super) fn note_trimmed(&mut self, sequence: u64, unit: Ppa) {
        let place = self.array.place(unit);
        self.array.nand().add_dead(&mut self.journal.trimmed.dead, place);
        self.journal.trimmed.last = sequence;
    }

    /// The program of the records of all trims up to this one is queued.
    pub(super) fn trims_recorded(&mut self, upto: u64, queued: Queued) {
        if self.journal.trimmed.last <= upto && !self.journal.trimmed.dead.is_empty() {
            let Trimmed { dead, .. } = std::mem::take(&mut self.journal.trimmed);
            self.array.nand_mut().supersede_all(dead, queued.lane.0, queued.ticket);
        }
    }

    /// What staged units replace in a block that is about to be erased is gone with it: other versions will be there when they
    /// are programmed.
    pub(super) fn forget_replaced(&mut self, victim: BlockId) {
        let staged = self.writers.all_mut().iter_mut().flat_map(|frontier| &mut frontier.staged);
        for unit in staged.filter(|unit| unit.replaces != Ppa::NONE) {
            if self.layout.block_of(unit.replaces) == victim {
                unit.replaces = Ppa::NONE;
            }
        }
    }

    /// Forgets the payload of versions that no cut can bring back, as none comes before `upto`.
    pub(super) fn forget_needless(&mut self, upto: Time) {
        while let Some(place) = self.array.nand_mut().take_needless(upto) {
            self.forget(place);
        }
    }

    /// Forgets the payload of a unit of the medium.
    fn forget(&mut self, place: Ppa) {
        // Of a live unit whose data is damaged only the payload goes: it stays the newest version.
        if self.config.trim && !self.checkpoint.is_on() && !self.map.is_live(self.array.unit_at(place)) {
            let nand = self.array.nand_mut();
            if let Ok(spare) = nand.spare(place) {
                nand.relabel(place, Spare::label_of_padding(spare));
            }
        }
        self.array.nand_mut().discard(place);
    }

    /// The trims that only pieces of an unfinished turn tell of, by their numbers. What they left is needed until they are
    /// recorded.
    pub(super) fn unrecorded_trims(&mut self, checkpoint: Option<&Checkpoint>) -> Unrecorded {
        let mut found = Unrecorded::default();
        // A protected buffer kept the records.
        let Some(checkpoint) = checkpoint.filter(|_| !self.buffer.is_protected()) else { return found };
        let mut trims: Vec<(u64, Lpa, Ppa)> = (checkpoint.trimmed_since.iter())
            .filter(|&&(lpa, unit)| {
                self.map.find(lpa) == Ppa::NONE && (unit.0 as u64) < self.geometry.units()
            })
            // Its number is not known. It was the last before the moment of the piece, or earlier.
            .map(|&(lpa, unit)| (checkpoint.moment_of(lpa).sequence.saturating_sub(1), lpa, unit))
            .collect();
        trims.sort_unstable();
        for (sequence, lpa, unit) in trims {
            match found.records.last_mut() {
                Some(last) if last.sequence == sequence && last.extent.end() == lpa.0 as u64 => {
                    last.extent.count += 1;
                }
                _ => found.records.push(Record { extent: Extent::one(lpa), sequence }),
            }
            let place = self.array.place(unit);
            let spare = self.array.nand().spare(place).ok().and_then(|spare| Spare::of_damaged(&spare));
            if spare.is_some_and(|spare| spare.kind == Kind::Data && spare.lpa == lpa) {
                found.left.push((found.records.len() - 1, unit));
                found.places.push(place);
            }
        }
        found.places.sort_unstable();
        found
    }

    /// Makes trims that were found pending. What they left is noted with each, not before: what is noted is forgotten when what is
    /// pending was recorded.
    pub(super) fn hold_trims(&mut self, at: Time, found: Unrecorded) -> Result<(), ControllerError> {
        let mut left = found.left.into_iter().peekable();
        for (number, record) in found.records.into_iter().enumerate() {
            if self.journal.pending.len() + 1 >= trim::trims_pending_max(&self.geometry) {
                self.record_all_trims(at)?;
            }
            while let Some((_, unit)) = left.next_if(|(of, _)| *of == number) {
                self.note_trimmed(record.sequence, unit);
            }
            self.journal.pending.push(record);
        }
        Ok(())
    }

    /// Forgets the payload of every version that a recovery found dead, except at these places.
    pub(super) fn forget_dead(&mut self, needed: &[Ppa]) {
        for block in self.array.every_member() {
            for place in self.written_units(block) {
                let nand = self.array.nand();
                if self.map.is_live(self.array.unit_at(place)) || !nand.holds(place) {
                    continue;
                }
                let needless = match nand.spare(place) {
                    Ok(spare) => Spare::of_damaged(&spare)
                        .is_some_and(|spare| matches!(spare.kind, Kind::Data | Kind::Padding)),
                    Err(error) => matches!(error, MediumError::Uncorrectable(_)),
                };
                if needless && needed.binary_search(&place).is_err() {
                    self.forget(place);
                }
            }
        }
    }
}
