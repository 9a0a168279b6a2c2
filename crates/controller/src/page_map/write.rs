//! Host writes: wait for a slot, choose a stream and a die, place the unit, program the page when it is full.

use super::buffer::{Held, Oldest};
use super::frontier::{NO_BLOCK, NO_SLOT, Placed, Unit};
use super::spare::Kind;
use super::{PageMap, Streams};
use crate::ControllerError;
use crate::table::BlockState;
use nvlab_medium::Store;
use nvlab_units::{Die, Extent, Lpa, Ppa, Time};
use serde::{Deserialize, Serialize};

/// Without a buffer: when the programs of host units are done, which is what the host waits for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Acknowledged {
    /// Those of the current request.
    request: Time,
    /// Those of all requests.
    pub all: Time,
}

impl Acknowledged {
    #[inline(always)]
    fn note(&mut self, end: Time) {
        self.request = self.request.max(end);
        self.all = self.all.max(self.request);
    }
}

impl<S: Store> PageMap<S> {
    /// Writes units; returns when the write is acknowledged to the host.
    #[inline]
    pub(super) fn write_extent(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
    ) -> Result<Time, ControllerError> {
        if S::KEEPS {
            assert_eq!(data.len() as u64, extent.count as u64 * self.geometry.unit_bytes as u64);
        }
        let (mut now, absorbed) = (at, self.stats.absorbed_units);
        self.acknowledged.request = at;
        for i in 0..extent.count {
            let bytes = self.geometry.unit_bytes as usize;
            let data = if S::KEEPS { &data[i as usize * bytes..][..bytes] } else { &[] };
            let lpa = extent.start + i;
            if self.demand.is_some() {
                now = self.look_up_to_write(now, i == 0, lpa)?;
            }
            now = self.write_unit(now, lpa, data, None)?;
            if self.retired {
                self.replenish(now);
            }
        }
        if self.buffer.config().is_none() {
            // Without a buffer the request itself waits for its staged units.
            if self.geometry.units_per_page > 1 {
                now = self.drain(now)?;
                self.geometry.all_dies().try_for_each(|die| self.pace(now, die, 0))?;
                if self.checkpoint.is_active() {
                    self.step_checkpoint(now)?;
                }
            }
            now = now.max(self.acknowledged.request);
        }
        self.buffer.note_released(at);
        if S::KEEPS {
            // This write may begin long after the request came: the cut may come before it.
            let sure = at.min(self.buffer.sure(self.array.nand().latest()));
            let array = &mut self.array;
            self.buffer.release(|queued| array.is_done(queued, sure));
        }
        if self.demand.is_some() {
            self.rewrite_waiting(now)?;
        }
        // An absorbed write changed nothing in the map.
        let changed = extent.count - (self.stats.absorbed_units - absorbed) as u32;
        if self.checkpoint.is_due(changed) {
            self.begin_piece(now)?;
        }
        Ok(now)
    }

    #[inline]
    fn write_unit(
        &mut self,
        at: Time,
        lpa: Lpa,
        data: &[u8],
        restored: Option<u64>,
    ) -> Result<Time, ControllerError> {
        let mut now = at;
        if let Some(buffer) = self.buffer.config() {
            let stored = at + buffer.store;
            if self.absorb((at, stored), lpa, self.map.find(lpa), data, restored) {
                return Ok(stored);
            }
            now = self.wait_for_slot(at)? + buffer.store;
        }
        let stream = self.stream_of(lpa);
        let index = self.open_for_host(now, stream)?;
        // Only now: opening may have cleaned, which moves the old version.
        let old = self.map.find(lpa);
        let sequence = restored.unwrap_or(self.numbers.sequence);
        let mut slot = NO_SLOT;
        if self.buffer.config().is_some() {
            slot = self.buffer.take(index);
            if S::KEEPS {
                // A restored unit never left the buffer: it survives another cut at any time.
                let admitted = if restored.is_some() { Time::ZERO } else { now };
                self.buffer.hold(slot, lpa, sequence, admitted, data);
            }
        }
        let unit = Unit { kind: Kind::Data, lpa, damaged: false, sequence, slot, data };
        let Placed { block, address, fills_page } = self.place(index, unit, old);
        self.numbers.sequence += restored.is_none() as u64;
        self.stats.cache_units += (self.cache.is_some() && self.array.is_slc(block)) as u64;
        self.note_change(lpa);
        self.table.gain(block);
        self.table.set_birth(block, sequence);
        self.map.point(lpa, old, address);
        if old != Ppa::NONE {
            self.lose(old);
        }
        if fills_page {
            let before = self.before_page(index, address);
            let queued = self.program_pages_inline(now, index, data, true)?;
            if let Some(before) = before
                && self.map.find(lpa) == address
            {
                self.note_waiting(at, address, before);
            }
            let die = self.writers.die_of(index);
            if slot == NO_SLOT {
                self.acknowledged.note(self.array.finish(queued, now));
            } else if self.geometry.units_per_page == 1 {
                self.buffer.queued(slot, queued);
            }
            self.pace(now, die, self.geometry.units_per_page)?;
            self.pass_turn(now, stream)?;
            if self.checkpoint.is_active() {
                self.step_checkpoint(now)?;
            }
        }
        Ok(now)
    }

    /// Waits until the write buffer has a free slot.
    #[inline]
    fn wait_for_slot(&mut self, at: Time) -> Result<Time, ControllerError> {
        let queued = match self.buffer.oldest() {
            Oldest::Free => return Ok(at),
            Oldest::Queued(queued) => queued,
            Oldest::Staged { frontier } => {
                self.pad(at, frontier, true)?;
                match self.buffer.oldest() {
                    Oldest::Queued(queued) => queued,
                    // The program failed and the unit was no longer needed.
                    Oldest::Free => return Ok(at),
                    _ => panic!("padding frontier {frontier} did not program its staged units"),
                }
            }
        };
        let ready = self.array.finish(queued, at);
        if ready > at {
            self.stats.buffer_wait += ready - at;
            return Ok(ready);
        }
        Ok(at)
    }

    /// The stream of a host write.
    #[inline]
    fn stream_of(&self, lpa: Lpa) -> u32 {
        let Streams::HotColdRelocated { hot_within } = self.config.streams else { return 0 };
        let old = self.map.find(lpa);
        if old == Ppa::NONE {
            return 1;
        }
        let age = self.numbers.sequence.saturating_sub(self.table.birth(self.block_of(old)));
        let hot = (age as f64) < hot_within * self.config.logical_units as f64;
        !hot as u32
    }

    /// The frontier, with an open block, for the next unit of a host stream.
    #[inline]
    fn open_for_host(&mut self, at: Time, stream: u32) -> Result<u32, ControllerError> {
        let index = self.writers.of(self.writers.rounds[stream as usize].die(), stream);
        if self.writers[index].block != NO_BLOCK {
            return Ok(index);
        }
        self.open_slowly(at, stream)
    }

    /// Opens a block on the die whose turn it is, or on the next one with room. If none has room, cleans until one has.
    /// If nothing can be cleaned, the only space to gain is in open blocks: the host continues in the reserve, except
    /// the cleaner's last block.
    #[cold]
    fn open_slowly(&mut self, at: Time, stream: u32) -> Result<u32, ControllerError> {
        let dies = self.geometry.dies_from(self.writers.rounds[stream as usize].die());
        let roomy = dies.clone().find(|&die| self.has_room(die, stream));
        let mut refused = Ok(0);
        for die in roomy.into_iter().chain(dies.clone()) {
            self.writers.rounds[stream as usize].set_turn(die);
            let index = self.writers.of(die, stream);
            match self.make_room(at, die, stream) {
                Ok(()) => return Ok(index),
                Err(error) => refused = Err(error),
            }
        }
        let Some(die) = dies.clone().find(|&die| self.erased_blocks(die) > 1) else {
            return refused;
        };
        self.writers.rounds[stream as usize].set_turn(die);
        self.make_room_in_cache(at, die, stream);
        self.open(at, die, self.writers.of(die, stream))?;
        Ok(self.writers.of(die, stream))
    }

    /// Ensures that the host stream has an open block on the die; cleans until there is room for one.
    fn make_room(&mut self, at: Time, die: Die, stream: u32) -> Result<(), ControllerError> {
        let index = self.writers.of(die, stream);
        // Bounded: if every block was cleaned and there is still no room, there never will be.
        for _ in 0..=2 * self.geometry.blocks_per_die {
            if self.has_room(die, stream) {
                if self.writers[index].block == NO_BLOCK {
                    self.make_room_in_cache(at, die, stream);
                    self.open(at, die, index)?;
                }
                return Ok(());
            }
            self.clean(at, die)?;
        }
        Err(self.end_of_life(die))
    }

    pub(super) fn end_of_life(&self, die: Die) -> ControllerError {
        let (die, bad) = self.array.bad_blocks(die);
        ControllerError::EndOfLife { die, bad, blocks: self.geometry.blocks_per_die }
    }

    /// Opens an erased block of a die for a frontier.
    pub(super) fn open(&mut self, at: Time, die: Die, index: u32) -> Result<(), ControllerError> {
        if self.dies[die.index()].free.is_empty() {
            self.erase_emptied(at, die, true);
        }
        let stream = self.writers.stream_of(index);
        let block = self.take_free(die, self.take_for(stream))?;
        let slc = self.writers.is_host(stream) && self.joins_cache(die, stream);
        let frontier = &mut self.writers[index];
        (frontier.block, frontier.next, frontier.programmed) = (block.0, 0, 0);
        (frontier.slots, frontier.end) = (self.geometry.units_per_page, self.geometry.units_per_block());
        if let (true, Some(cache)) = (slc, &self.cache) {
            (frontier.slots, frontier.end) = (cache.slots, cache.end);
            self.array.set_slc(block, true);
        }
        self.skip_bad_pages(index);
        let frontier = &mut self.writers[index];
        frontier.programmed = frontier.next / self.geometry.units_per_page;
        self.table.set_state(block, BlockState::Open);
        self.table.set_birth(block, 0);
        Ok(())
    }

    /// Calls `keep` with what a protected buffer holds of the writes from number `first` on: place in the buffer,
    /// unit, number, contents. An entry keeps its place until it is programmed, or a newer version of the unit takes
    /// it.
    pub fn held_since(&self, first: u64, keep: impl FnMut(u64, Lpa, u64, &[u8])) {
        self.buffer.held_since(first, self.numbers.sequence - first, keep);
    }

    /// Writes a unit that a protected buffer kept through a power cut, with its original sequence number.
    pub(super) fn rewrite(&mut self, at: Time, held: Held) -> Result<(), ControllerError> {
        self.write_unit(at, held.lpa, &held.data, Some(held.sequence)).map(|_| ())
    }
}
