//! Host writes at the write pointer: a page is programmed as soon as it is full.

use super::layout::Place;
use super::{NO_BLOCK, Staged, ZoneError, ZoneMap, ZoneState};
use crate::ControllerError;
use crate::spare::{Kind, Spare};
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Die, Ticket, Time};

impl<S: Store> ZoneMap<S> {
    /// Writes units from number `unit` of a zone on; returns when the write is acknowledged.
    #[inline(always)]
    pub(super) fn write_zone(
        &mut self,
        at: Time,
        zone: u32,
        unit: u32,
        count: u32,
        data: &[u8],
    ) -> Result<Time, ControllerError> {
        if S::KEEPS {
            assert_eq!(data.len() as u64, count as u64 * self.geometry.unit_bytes as u64);
        }
        let state = &self.zones[zone as usize];
        let is_next = unit == state.written && count <= state.capacity - unit;
        if !is_next || !self.states.of(zone).is_open() {
            if count == 0 {
                return Ok(at);
            }
            self.open_to_write(zone, unit, count)?;
        }
        let ready = self.zones[zone as usize].ready;
        let now = self.put(at.max(ready), zone, count, data, None)?;
        self.stats.host_write_units += count as u64;
        if S::KEEPS {
            self.buffer.release(&mut self.nand, zone, at);
        }
        if self.buffer.config().is_some() {
            return Ok(now);
        }
        // Durable when acknowledged: so is then everything before it.
        Ok(now.max(self.zones[zone as usize].promised))
    }

    /// Opens a zone for a write, or returns why that is refused.
    #[cold]
    fn open_to_write(&mut self, zone: u32, unit: u32, units: u32) -> Result<(), ControllerError> {
        let refused = |source| ControllerError::Zone { zone, source };
        self.states.check_writable(zone).map_err(refused)?;
        let (pointer, capacity) = {
            let state = &self.zones[zone as usize];
            (state.written, state.capacity)
        };
        if unit as u64 + units as u64 > capacity as u64 {
            return Err(refused(ZoneError::Boundary { at: unit, units, capacity }));
        }
        if unit != pointer {
            return Err(refused(ZoneError::NotAtPointer { at: unit, pointer }));
        }
        if !self.states.of(zone).is_open() {
            self.open(zone, ZoneState::ImplicitlyOpen)?;
        }
        Ok(())
    }

    /// Opens a zone that may be opened, or returns why that is refused.
    pub(super) fn open(&mut self, zone: u32, state: ZoneState) -> Result<(), ControllerError> {
        self.states.check_open(zone).map_err(|source| ControllerError::Zone { zone, source })?;
        if self.states.of(zone) == ZoneState::Empty {
            self.take_blocks(zone)?;
        }
        self.stats.implicit_closes += self.states.open(zone, state) as u64;
        Ok(())
    }

    /// Begins a generation of an empty zone.
    pub(super) fn take_blocks(&mut self, zone: u32) -> Result<(), ControllerError> {
        let superblocks = self.zones[zone as usize].superblocks;
        for member in 0..superblocks * self.layout.dies {
            let index = self.index(zone, member);
            self.blocks[index] = self.pool.take(&self.nand, self.layout.die(zone, member))?;
        }
        self.pool.claimed[self.layout.group(zone) as usize] -= superblocks;
        self.generation += 1;
        self.zones[zone as usize].generation = self.generation << 8 | superblocks as u64;
        Ok(())
    }

    /// Writes units at the write pointer of a zone that has room for them. They are in the buffer from `admitted` on, or, by
    /// default, when they are stored. Returns when they are in the buffer; without one, when their programs are queued.
    #[inline(always)]
    pub(super) fn put(
        &mut self,
        at: Time,
        zone: u32,
        count: u32,
        data: &[u8],
        admitted: Option<Time>,
    ) -> Result<Time, ControllerError> {
        let (per_page, bytes) = (self.geometry.units_per_page, self.geometry.unit_bytes as usize);
        let (mut now, mut done) = (at, 0);
        let mut filled = self.filled(zone);
        while done < count {
            let take = (per_page - filled).min(count - done);
            if let Some(buffer) = self.buffer.config() {
                if filled == 0 {
                    now = self.wait_for_page(now);
                }
                now += buffer.store * take as u64;
            }
            if S::KEEPS {
                let data = &data[done as usize * bytes..][..take as usize * bytes];
                self.stage(admitted.unwrap_or(now), zone, data);
            }
            self.zones[zone as usize].written += take;
            done += take;
            if filled + take == per_page {
                self.program_next(now, zone)?;
                filled = 0;
            }
        }
        let state = &self.zones[zone as usize];
        if state.written == state.capacity {
            self.states.set(zone, ZoneState::Full);
        }
        Ok(now)
    }

    /// Waits until the buffer has room for a page.
    #[inline(always)]
    pub(super) fn wait_for_page(&mut self, at: Time) -> Time {
        let ready = self.buffer.begin_page(&mut self.nand, at);
        if ready > at {
            self.stats.buffer_wait += ready - at;
        }
        ready
    }

    /// Adds units to the page being filled (payload only).
    fn stage(&mut self, admitted: Time, zone: u32, data: &[u8]) {
        let (unit, generation) = {
            let state = &self.zones[zone as usize];
            (state.written, state.generation)
        };
        self.buffer.hold(zone, generation, unit, admitted, data);
        for (nth, data) in (unit..).zip(data.chunks_exact(self.geometry.unit_bytes as usize)) {
            self.stage_unit(zone, nth, Kind::Data, data);
        }
    }

    pub(super) fn stage_unit(&mut self, zone: u32, unit: u32, kind: Kind, data: &[u8]) {
        let sequence = self.zones[zone as usize].generation;
        let (lpa, stamp) = (self.layout.start(zone) + unit, self.take_stamp());
        let spare = Spare { kind, damaged: false, lpa, sequence, stamp };
        let staged = &mut self.staged[zone as usize];
        staged.data.extend_from_slice(data);
        staged.spare.extend_from_slice(&spare.encode(data));
    }

    pub(super) fn take_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp - 1
    }

    /// Programs the next page of a zone, which is full.
    #[inline(always)]
    pub(super) fn program_next(&mut self, at: Time, zone: u32) -> Result<(), ControllerError> {
        let Place { member, page } = self.layout.place(self.zones[zone as usize].programmed);
        let block = BlockId(self.blocks[self.index(zone, member)]);
        debug_assert_ne!(block.0, NO_BLOCK, "member {member} of zone {zone}");
        let payload = match self.staged.get(zone as usize) {
            Some(Staged { data, spare }) => Payload::new(data, spare),
            None => Payload::default(),
        };
        match self.nand.program(at, block, page, 1, payload, true) {
            Ok(ticket) => {
                self.page_programmed(at, zone, self.nand.die_of(block), ticket);
                Ok(())
            }
            Err(MediumError::ProgramFailed(_)) => self.program_elsewhere(at, zone, Place { member, page }),
            Err(other) => panic!("zone {zone} broke a rule of the medium: {other}"),
        }
    }

    /// The program of the next page of a zone is queued.
    #[inline(always)]
    fn page_programmed(&mut self, at: Time, zone: u32, die: Die, ticket: Ticket) {
        self.last[die.index()] = ticket;
        let state = &mut self.zones[zone as usize];
        state.programmed += 1;
        if self.buffer.config().is_some() {
            self.buffer.page_queued(die, ticket);
        } else {
            state.promised = state.promised.max(self.nand.finish(die, ticket, at));
        }
        if S::KEEPS {
            self.buffer.held_queued(zone, state.generation, die, ticket);
            let staged = &mut self.staged[zone as usize];
            staged.data.clear();
            staged.spare.clear();
        }
    }

    /// The program of a page failed: takes another block in place of its block until one does not.
    #[cold]
    fn program_elsewhere(&mut self, at: Time, zone: u32, place: Place) -> Result<(), ControllerError> {
        loop {
            if self.replace(at, zone, place).is_err() {
                self.states.set(zone, ZoneState::ReadOnly);
                return Err(ControllerError::Zone { zone, source: ZoneError::ReadOnly });
            }
            let block = BlockId(self.blocks[self.index(zone, place.member)]);
            let payload = match self.staged.get(zone as usize) {
                Some(Staged { data, spare }) => Payload::new(data, spare),
                None => Payload::default(),
            };
            match self.nand.program(at, block, place.page, 1, payload, true) {
                Ok(ticket) => {
                    self.page_programmed(at, zone, self.nand.die_of(block), ticket);
                    return Ok(());
                }
                Err(MediumError::ProgramFailed(_)) => {}
                Err(other) => panic!("zone {zone} broke a rule of the medium: {other}"),
            }
        }
    }
}
