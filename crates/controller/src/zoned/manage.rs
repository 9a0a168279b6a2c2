//! What the host does to whole zones: open, close, finish, reset.

use super::{NO_BLOCK, Staged, ZoneAction, ZoneError, ZoneMap, ZoneState};
use crate::ControllerError;
use crate::spare::Kind;
use nvlab_medium::Store;
use nvlab_units::Time;

impl<S: Store> ZoneMap<S> {
    /// Does something to a zone; returns when it is done, and durable.
    pub(super) fn act(&mut self, at: Time, zone: u32, action: ZoneAction) -> Result<Time, ControllerError> {
        let state = self.states.of(zone);
        let Some(after) = action.after(state) else {
            return Err(ControllerError::Zone { zone, source: ZoneError::Transition { state, action } });
        };
        match action {
            _ if after == state => Ok(at),
            ZoneAction::Open => self.open(zone, after).map(|()| at),
            ZoneAction::Close => {
                self.states.set(zone, after);
                Ok(at)
            }
            ZoneAction::Finish => self.finish(at, zone),
            ZoneAction::Reset => self.reset(at, zone),
            ZoneAction::Offline => {
                let end = self.erase(at, zone)?;
                self.states.set(zone, after);
                (self.zones[zone as usize].capacity, self.zones[zone as usize].superblocks) = (0, 0);
                Ok(end)
            }
        }
    }

    /// Fills the rest of a zone with padding, so that all of its pages are programmed: the wear of a whole zone, and the time to
    /// write what was left of it.
    fn finish(&mut self, at: Time, zone: u32) -> Result<Time, ControllerError> {
        if self.states.of(zone) == ZoneState::Empty {
            self.take_blocks(zone)?;
        }
        let per_page = self.geometry.units_per_page;
        let mut now = at.max(self.zones[zone as usize].ready);
        let mut filled = self.filled(zone);
        let pages = self.zones[zone as usize].capacity / per_page;
        while self.zones[zone as usize].programmed < pages {
            if filled == 0 && self.buffer.config().is_some() {
                now = self.wait_for_page(now);
            }
            if S::KEEPS {
                let first = self.zones[zone as usize].programmed * per_page;
                let zeros = std::mem::take(&mut self.zeros);
                for unit in first + filled..first + per_page {
                    self.stage_unit(zone, unit, Kind::Padding, &zeros);
                }
                self.zeros = zeros;
            }
            self.stats.padding_units += (per_page - filled) as u64;
            self.program_next(now, zone)?;
            filled = 0;
        }
        self.states.set(zone, ZoneState::Full);
        self.stats.finishes += 1;
        Ok(self.finish_programs_of(now, zone))
    }

    /// When the programs of a zone's dies are done; a promise.
    pub(super) fn finish_programs_of(&mut self, at: Time, zone: u32) -> Time {
        let dies = self.layout.dies_of(self.layout.group(zone));
        dies.fold(at, |end, die| end.max(self.nand.finish(die, self.last[die.index()], at)))
    }

    /// Erases a zone, which takes other blocks when it is written again.
    fn reset(&mut self, at: Time, zone: u32) -> Result<Time, ControllerError> {
        let end = self.erase(at, zone)?;
        self.stats.resets += 1;
        let group = self.layout.group(zone);
        let superblocks = self.config.superblocks(&self.geometry);
        let capacity = self.config.capacity_units;
        let state = &mut self.zones[zone as usize];
        (state.superblocks, state.capacity) = (superblocks, capacity);
        self.pool.claimed[group as usize] += superblocks;
        self.states.set(zone, ZoneState::Empty);
        while self.zones[zone as usize].superblocks > 0 && self.is_short(group) {
            self.shrink(zone);
        }
        self.shrink_empty(group);
        Ok(end)
    }

    /// Erases the blocks of a zone, the first one before all others, and forgets what it holds; returns when they are erased.
    fn erase(&mut self, at: Time, zone: u32) -> Result<Time, ControllerError> {
        let is_logged = self.zones[zone as usize].in_log;
        let at = if is_logged { self.log_reset(at, zone)? } else { at };
        if self.filled(zone) > 0 && self.buffer.config().is_some() {
            self.buffer.page_dropped();
        }
        let (mut begin, mut end) = (at, at);
        for member in 0..self.width {
            let index = self.index(zone, member);
            let block = std::mem::replace(&mut self.blocks[index], NO_BLOCK);
            if block != NO_BLOCK {
                end = end.max(self.pool.release(&mut self.nand, begin, block));
            }
            begin = if member == 0 { end } else { begin };
        }
        if let Some(staged) = self.staged.get_mut(zone as usize) {
            *staged = Staged::default();
        }
        let state = &mut self.zones[zone as usize];
        (state.written, state.programmed, state.logged, state.in_log) = (0, 0, 0, false);
        (state.ready, state.promised) = (end, Time::ZERO);
        self.buffer.held_until(zone, end);
        self.log.keep_until(end);
        Ok(end)
    }
}
