//! Overwrites that the write buffer absorbs: a write to a unit that is still in the buffer replaces it there.
//!
//! A unit is in the buffer while its page is being filled, and then until the program of its page begins: what a die has been
//! given is programmed as it is. The place of the unit on flash, its slot in the buffer and the stamp of its program stay;
//! its number becomes that of the newer write. Only a protected buffer absorbs: it returns the newest version that was
//! acknowledged whenever the power fails (see `buffer`), before its program begins, in the middle of it, or after it.
//!
//! Units are looked for only in blocks written to during the last few buffers' worth of writes: most units are not in
//! the buffer, and that must be found out quickly.
//!
//! A newer version is acknowledged later than the one it replaces. If power fails in between, the older one must come back, so with
//! payload both are kept until no cut can come before the newer one. A process that is killed between the payload and the spare area
//! of a unit leaves neither version on flash; the buffer outside of it holds one of them until the program.

use super::PageMap;
use super::array::Queued;
use super::frontier::NO_SLOT;
use super::spare::Spare;
use crate::spare::Kind;
use nvlab_medium::Store;
use nvlab_medium::flash::SPARE_BYTES;
use nvlab_units::{Lpa, Ppa, Ticket, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A unit is looked for in the buffer if its block was written to in this many buffers' worth of writes. As long as
/// only one write in this many takes a slot, older units have left the buffer.
const BUFFERS: u64 = 16;

/// A page of host units whose program was queued, and may not have begun.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Pending {
    /// Its number over all blocks.
    page: u32,
    /// The background work of its lane that comes before.
    from: Ticket,
}

/// The pages of host units that wait on each lane, oldest first; those in front may have begun.
pub(super) type Waiting = Vec<VecDeque<Pending>>;

/// Where a unit is in the buffer.
enum InBuffer {
    /// In the page that a frontier fills, so many units from its first on.
    Staged { frontier: u32, nth: usize },
    /// In a page that waits for its program.
    Waiting,
}

impl<S: Store> PageMap<S> {
    /// Replaces the version of a unit at `old` if it is still in the buffer; returns false if it is not. The newer version is
    /// admitted at `now`.
    #[inline]
    pub(super) fn absorb(
        &mut self,
        (at, now): (Time, Time),
        lpa: Lpa,
        old: Ppa,
        data: &[u8],
        restored: Option<u64>,
    ) -> bool {
        let Some(buffer) = self.buffer.config().filter(|buffer| buffer.absorb && old != Ppa::NONE) else {
            return false;
        };
        let age = self.numbers.sequence.saturating_sub(self.table.birth(self.block_of(old)));
        age <= BUFFERS * buffer.units as u64 && self.absorb_recent((at, now), lpa, old, data, restored)
    }

    #[inline(never)]
    fn absorb_recent(
        &mut self,
        (at, now): (Time, Time),
        lpa: Lpa,
        old: Ppa,
        data: &[u8],
        restored: Option<u64>,
    ) -> bool {
        let Some(found) = self.in_buffer(at.max(self.buffer.released()), old) else { return false };
        let sequence = restored.unwrap_or(self.numbers.sequence);
        if S::KEEPS {
            self.rewrite_in_buffer(found, old, sequence, data);
            let admitted = if restored.is_some() { Time::ZERO } else { now };
            let latest = self.array.nand().latest();
            self.buffer.replace(lpa, sequence, admitted, data, latest);
        }
        self.numbers.sequence += restored.is_none() as u64;
        self.table.set_birth(self.block_of(old), sequence);
        self.stats.absorbed_units += restored.is_none() as u64;
        true
    }

    /// Where the unit at an address is in the buffer, if it is.
    fn in_buffer(&mut self, at: Time, unit: Ppa) -> Option<InBuffer> {
        let (block, per_page) = (self.block_of(unit), self.geometry.units_per_page);
        let mut on_die = self.writers.on(self.geometry.die_of(block));
        if let Some(frontier) = on_die.find(|&index| self.writers[index].block == block.0) {
            let open = &self.writers[frontier];
            let within = unit - self.geometry.first_unit(block);
            if let Some(nth) = within.checked_sub(open.programmed * per_page) {
                let nth = nth as usize;
                let is_buffered = open.staged.get(nth).is_some_and(|staged| staged.slot != NO_SLOT);
                return is_buffered.then_some(InBuffer::Staged { frontier, nth });
            }
        }
        let lane = self.array.lane_of(unit);
        let waiting = &self.buffer.waiting[lane.index()];
        let Pending { from, .. } = *waiting.iter().rev().find(|pending| pending.page == unit.0 / per_page)?;
        (!self.array.has_begun(lane, from, at)).then_some(InBuffer::Waiting)
    }

    /// Puts data and number of the newer version in the place of the older one.
    fn rewrite_in_buffer(&mut self, found: InBuffer, unit: Ppa, sequence: u64, data: &[u8]) {
        let bytes = self.geometry.unit_bytes as usize;
        let encoded = |old: &[u8]| {
            let spare = Spare { sequence, damaged: false, ..Spare::of_known(old) };
            assert_eq!(spare.kind, Kind::Data, "a unit of the host");
            spare.encode(data)
        };
        match found {
            InBuffer::Staged { frontier, nth } => {
                let open = &mut self.writers[frontier];
                let spare = &mut open.spare[nth * SPARE_BYTES..][..SPARE_BYTES];
                spare.copy_from_slice(&encoded(spare));
                open.data[nth * bytes..][..bytes].copy_from_slice(data);
            }
            InBuffer::Waiting => {
                let place = self.array.place(unit);
                let nand = self.array.nand_mut();
                let spare = nand.spare(place).expect("a unit of a page whose program is queued");
                nand.amend(place, data, &encoded(&spare));
            }
        }
    }

    /// What a lane has to do before the page that a frontier fills with the unit at `address`, if the buffer absorbs overwrites
    /// and all of the page is in it.
    #[inline]
    pub(super) fn before_page(&mut self, frontier: u32, address: Ppa) -> Option<Queued> {
        if !self.buffer.config().is_some_and(|buffer| buffer.absorb) {
            return None;
        }
        let staged = &self.writers[frontier].staged;
        let is_buffered = staged.iter().all(|staged| staged.slot != NO_SLOT);
        is_buffered.then(|| self.array.last_on(self.array.lane_of(address)))
    }

    /// The program of the page of `address` is queued behind `before`.
    pub(super) fn note_waiting(&mut self, at: Time, address: Ppa, before: Queued) {
        let Queued { lane, ticket: from } = before;
        let waiting = &mut self.buffer.waiting[lane.index()];
        while let Some(oldest) = waiting.front()
            && self.array.has_begun(lane, oldest.from, at)
        {
            waiting.pop_front();
        }
        waiting.push_back(Pending { page: address.0 / self.geometry.units_per_page, from });
    }
}
