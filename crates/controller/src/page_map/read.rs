//! Host reads: as many units at a time as one read of the cells fetches, or a unit still staged in the controller.
//!
//! A unit whose program is queued but not done is sensed from the cells, not returned from the buffer: pessimistic.

use super::PageMap;
use crate::ControllerError;
use crate::spare;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{Extent, Lpa, Ppa, Time};

/// Bytes of a unit prefetched while the one before it is copied: the hardware prefetcher does the rest.
const PREFETCH_NEXT: usize = 1024;
/// Bytes prefetched of each unit of a request that is read in place: enough to have its address translated.
const PREFETCH_EACH: usize = 256;

impl<S: Store> PageMap<S> {
    /// Reads units; returns when the last of them has arrived.
    #[inline(always)]
    pub(super) fn read_extent(
        &mut self,
        start: Time,
        extent: Extent,
        into: &mut [u8],
    ) -> Result<Time, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_units)?;
        if S::SHOWS && into.is_empty() {
            self.prefetch_in_place(extent);
        }
        let (mut done, mut end) = (0, start);
        while done < extent.count {
            let rest = if S::KEEPS && !into.is_empty() {
                &mut into[done as usize * self.geometry.unit_bytes as usize..]
            } else {
                &mut []
            };
            let (run, ready) = self.read_run(start, extent.start + done, extent.count - done, rest)?;
            done += run;
            end = end.max(ready);
        }
        Ok(end)
    }

    /// Reads one unit without payload: most requests of most workloads.
    #[inline(always)]
    pub(super) fn read_one(&mut self, start: Time, extent: Extent) -> Result<Time, ControllerError> {
        let Some(unit) = self.map.get(extent.start) else {
            return Err(ControllerError::OutOfRange { extent, capacity: self.config.logical_units });
        };
        if unit == Ppa::NONE {
            self.stats.unwritten_read_units += 1;
            return Ok(start);
        }
        match self.array.read(start, unit, 1, &mut []) {
            Ok(served) => Ok(served.end),
            Err(MediumError::Erased(_)) => {
                self.stats.buffer_hits += 1;
                Ok(start)
            }
            Err(source) => Err(ControllerError::Unreadable { lpa: extent.start, source }),
        }
    }

    /// How many of the units from `lpa` on, which is at `unit`, the same read of the cells fetches.
    #[inline]
    pub(super) fn run_from(&self, lpa: Lpa, unit: Ppa, left: u32) -> u32 {
        let together = self.array.units_together(unit).min(left);
        let next_to_it = |&i: &u32| self.map.find(lpa + i) == unit + i;
        1 + (1..together).take_while(next_to_it).count() as u32
    }

    fn read_run(
        &mut self,
        at: Time,
        lpa: Lpa,
        left: u32,
        into: &mut [u8],
    ) -> Result<(u32, Time), ControllerError> {
        let unit = self.map.find(lpa);
        let (bytes, copies) = (self.geometry.unit_bytes as usize, S::KEEPS && !into.is_empty());
        if unit == Ppa::NONE {
            self.stats.unwritten_read_units += 1;
            if copies {
                into[..bytes].fill(0);
            }
            return Ok((1, at));
        }
        let run = self.run_from(lpa, unit, left);
        if copies && run < left {
            let next = self.map.find(lpa + run);
            if next != Ppa::NONE {
                self.array.prefetch(next, PREFETCH_NEXT);
            }
        }
        match self.array.read(at, unit, run, into) {
            Ok(served) => {
                let place = self.array.place(unit);
                if spare::is_to_verify(self.array.nand(), self.config.verify_reads, place, run) {
                    self.verify_run(lpa, unit, run, into)?;
                }
                Ok((run, served.end))
            }
            Err(MediumError::Erased(_)) => {
                // Not yet programmed: its page is still being filled in the controller.
                if S::KEEPS {
                    match self.staged(unit) {
                        Ok(staged) if copies => into[..bytes].copy_from_slice(staged),
                        Ok(_) => {}
                        Err(from) => {
                            let source = self.array.nand_mut().reject(from);
                            return Err(ControllerError::Unreadable { lpa, source });
                        }
                    }
                }
                self.stats.buffer_hits += 1;
                Ok((1, at))
            }
            Err(source) => Err(ControllerError::Unreadable { lpa, source }),
        }
    }

    /// Prefetches units that will be viewed after their reads are booked. In a separate loop, so that several addresses
    /// are translated at a time: between the calls of a view each would wait for the one before.
    fn prefetch_in_place(&self, extent: Extent) {
        let mapped = self.map.entries(extent).iter().map(|&unit| Ppa(unit)).filter(|unit| *unit != Ppa::NONE);
        mapped.for_each(|unit| self.array.prefetch(unit, PREFETCH_EACH));
    }

    /// Verifies the checksums of the units read.
    fn verify_run(&mut self, first: Lpa, unit: Ppa, run: u32, data: &[u8]) -> Result<(), ControllerError> {
        let bytes = self.geometry.unit_bytes as usize;
        for i in 0..run {
            let data = if data.is_empty() { data } else { &data[i as usize * bytes..][..bytes] };
            let place = self.array.place(unit + i);
            let verified = spare::verify(self.array.nand_mut(), place, first + i, data);
            verified.map_err(|source| ControllerError::Unreadable { lpa: first + i, source })?;
        }
        Ok(())
    }
}
