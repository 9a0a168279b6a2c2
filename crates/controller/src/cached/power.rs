//! The flush at a power failure, and recovery.

use super::Cached;
use super::config::{CachedConfig, hold};
use super::table::FILLING;
use crate::{Controller, ControllerError, Powered, RecoveryReport};
use nvlab_medium::ram::{Backup, Ram};
use nvlab_medium::{PowerCut, Store};
use nvlab_units::Time;

impl<F: Controller, S: Store> Cached<F, S> {
    /// A cache over a memory that an earlier process left, in front of a controller recovered from its media: what was dirty
    /// is written back as after a power cut. Returns also when that is done; the device is ready then.
    pub fn reopen(
        config: CachedConfig,
        behind: F,
        ram: Ram<S>,
        at: Time,
    ) -> Result<(Cached<F, S>, Time), String> {
        assert!(S::KEEPS, "a memory that keeps nothing cannot be found again");
        let mut cached = Cached::new(config, behind, ram)?;
        for frame in 0..cached.table.frames() {
            let Some(line) = cached.marked(frame) else { continue };
            // An impossible mark is damage.
            if line < cached.lines && cached.table.may_hold(frame, line) {
                cached.table.insert(frame, line, 0, Time::ZERO);
                cached.table.dirtied(frame);
            }
        }
        let end = cached.write_back_until(at, at).map_err(|error| error.to_string())?;
        cached.clear(end);
        Ok((cached, end))
    }

    /// Writes back dirty lines as long as the energy available after `at` lasts; returns when the last is durable, or
    /// the energy is used up.
    fn write_back_until(&mut self, now: Time, at: Time) -> Result<Time, ControllerError> {
        let backup = self.ram.config().backup;
        if backup == Backup::None {
            return Ok(at);
        }
        let deadline = at + hold(backup);
        // Writes in progress when power failed come first.
        let mut end = at.max(self.accepted).min(deadline);
        while self.table.dirty() > 0 && end < deadline {
            let (begin, accepted) = self.write_back_next(now, at)?;
            if begin >= deadline {
                break;
            }
            end = end.max(accepted).min(deadline);
        }
        Ok(self.behind.flush(end)?.end.min(deadline))
    }

    /// Empties the cache without marking any line dirty.
    fn clear(&mut self, at: Time) {
        for frame in 0..self.table.frames() {
            self.cleaned(frame, at);
            self.table.drop(frame);
        }
    }
}

impl<F: Controller, S: Store> Powered for Cached<F, S> {
    fn power_cycle(mut self, at: Time) -> Result<(Cached<F, S>, RecoveryReport), String> {
        // A word that was accepted is in the memory in time; one that was on its way counts as accepted: nobody was told
        // about it, so new is as good as old.
        self.ram.cut(at.max(self.stored));
        for frame in 0..self.table.frames() {
            // Nobody was told about a store to a line that was not there yet.
            if self.table.is(frame, FILLING) && self.table.there_at(frame, at) > at {
                self.cleaned(frame, at);
                self.table.drop(frame);
            }
        }
        let end = self.write_back_until(at, at).map_err(|error| error.to_string())?;
        self.clear(end);
        let (behind, report) = self.behind.power_cycle(end)?;
        let time = (end + report.time).since(at);
        let cached = Cached::new(self.config, behind, self.ram)?;
        Ok((cached, RecoveryReport { time, ..report }))
    }

    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        let end = Controller::flush(self, at)?.end;
        self.behind.power_down(end)
    }

    fn trims_last(&self) -> bool {
        self.behind.trims_last()
    }
}
