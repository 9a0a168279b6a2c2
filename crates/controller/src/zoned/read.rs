//! Host reads: as many units at a time as one read of the cells fetches, or those of a page still being filled.
//!
//! A unit whose program is queued but not done is sensed from the cells, not returned from the buffer: pessimistic.

use super::{ZoneError, ZoneMap, ZoneState};
use crate::ControllerError;
use crate::spare;
use nvlab_medium::Store;
use nvlab_units::{Extent, Lpa, Ppa, Time};

/// Where units of a zone are.
enum Where {
    /// Nowhere: nothing was written.
    Nowhere,
    /// In the page being filled, from this slot on.
    Staged(u32),
    /// In the array.
    At(Ppa),
}

impl<S: Store> ZoneMap<S> {
    /// Where a unit is, and how many of the `left` units from it on are together there.
    #[inline(always)]
    fn find(&self, lpa: Lpa, left: u32) -> (Where, u32) {
        let (zone, unit) = self.layout.split(lpa);
        let state = &self.zones[zone as usize];
        if unit >= state.written {
            return (Where::Nowhere, left.min(self.config.size_units - unit));
        }
        let left = left.min(state.written - unit);
        let (page, slot) = self.layout.page_of(unit);
        if page >= state.programmed {
            return (Where::Staged(slot), left);
        }
        let place = self.layout.place(page);
        let block = self.blocks[self.index(zone, place.member)];
        let first = block * self.geometry.units_per_block() + place.page * self.geometry.units_per_page;
        let unit = Ppa(first + slot);
        (Where::At(unit), left.min(self.nand.units_together(unit)))
    }

    /// Reads units; returns when the last of them has arrived.
    #[inline(always)]
    pub(super) fn read_extent(
        &mut self,
        start: Time,
        extent: Extent,
        into: &mut [u8],
    ) -> Result<Time, ControllerError> {
        let (mut done, mut end) = (0, start);
        let bytes = self.geometry.unit_bytes as usize;
        while done < extent.count {
            let lpa = extent.start + done;
            let (place, count) = self.find(lpa, extent.count - done);
            let into: &mut [u8] = if S::KEEPS && !into.is_empty() {
                &mut into[done as usize * bytes..][..count as usize * bytes]
            } else {
                &mut []
            };
            match place {
                Where::At(unit) => {
                    let served = self.nand.read(start, unit, count, into);
                    let served = served.map_err(|source| ControllerError::Unreadable { lpa, source })?;
                    if spare::is_to_verify(&self.nand, self.config.verify_reads, unit, count) {
                        self.verify(lpa, unit, count, into)?;
                    }
                    end = end.max(served.end);
                }
                Where::Staged(slot) => {
                    if S::KEEPS && !into.is_empty() {
                        let staged = &self.staged[self.layout.split(lpa).0 as usize].data;
                        into.copy_from_slice(&staged[slot as usize * bytes..][..into.len()]);
                    }
                    self.stats.buffer_hits += count as u64;
                }
                Where::Nowhere => self.read_nothing(lpa, count, into)?,
            }
            done += count;
        }
        Ok(end)
    }

    #[cold]
    fn read_nothing(&mut self, lpa: Lpa, count: u32, into: &mut [u8]) -> Result<(), ControllerError> {
        let zone = self.layout.split(lpa).0;
        if self.states.of(zone) == ZoneState::Offline {
            return Err(ControllerError::Zone { zone, source: ZoneError::Offline });
        }
        into.fill(0);
        self.stats.unwritten_read_units += count as u64;
        Ok(())
    }

    /// Verifies the checksums of units that were read.
    fn verify(&mut self, first: Lpa, unit: Ppa, count: u32, data: &[u8]) -> Result<(), ControllerError> {
        let bytes = self.geometry.unit_bytes as usize;
        for nth in 0..count {
            let data = if data.is_empty() { data } else { &data[nth as usize * bytes..][..bytes] };
            let verified = spare::verify(&mut self.nand, unit + nth, first + nth, data);
            verified.map_err(|source| ControllerError::Unreadable { lpa: first + nth, source })?;
        }
        Ok(())
    }

    /// See [`crate::Controller::view`].
    pub(super) fn view_extent(&self, extent: Extent) -> Option<&[u8]> {
        if !S::SHOWS
            || ControllerError::check_extent(extent, self.zones.len() as u32 * self.config.size_units)
                .is_err()
        {
            return None;
        }
        let bytes = self.geometry.unit_bytes as usize;
        match self.find(extent.start, extent.count) {
            (Where::Nowhere, _) => Some(&self.zeros),
            (Where::At(unit), count) => self.nand.view(unit, count).ok(),
            (Where::Staged(slot), count) => {
                let staged = &self.staged[self.layout.split(extent.start).0 as usize].data;
                Some(&staged[slot as usize * bytes..][..count as usize * bytes])
            }
        }
    }
}
