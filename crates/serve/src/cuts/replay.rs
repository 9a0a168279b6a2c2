//! Replays a recording on a new device up to a moment where the power fails.

use super::journal::{Journal, Kind};
use super::moment::Moment;
use super::promise::{Atoms, Broken, Promise};
use super::recovered::Recovered;
use crate::ServeError;
use crate::served::{DeviceState, ServedDevice, build};
use nvlab_controller::fsms::Update;
use nvlab_design::{Design, Ftl};
use nvlab_units::{Rng, Span, Time};

/// What PRAM writes atomically where metadata is updated in place.
const WORD_IN_PLACE_BYTES: u32 = 8;
/// Replays on new devices of a design.
#[derive(Clone, Copy, Debug)]
pub struct Replayer<'a> {
    /// Each replay makes a new device of it.
    pub design: &'a Design,
    /// The device lies: flushes are acknowledged and not performed.
    pub ignore_flush: bool,
}

impl Replayer<'_> {
    /// Replays up to a moment, and cuts the power. The inner error is that of a device that does not recover.
    pub fn cut(&self, journal: &Journal, moment: &Moment) -> Result<Result<Recovered, String>, ServeError> {
        let (mut device, now) = self.device(moment.seed)?;
        let mut done = now;
        let mut begun = now;
        for number in 1..=moment.operation {
            (begun, done) = self.step(device.as_mut(), journal, number, done)?;
        }
        let within = Rng::stream(moment.seed, "power cuts").below(done.since(begun).ps() + 1);
        let at = if moment.after { done } else { begun + Span::from_ps(within) };
        Ok(device.power_cycle(at).map(|now| Recovered { device, now }))
    }

    /// Replays everything, and powers the device off in good order.
    pub fn whole(&self, journal: &Journal, seed: u64) -> Result<Recovered, ServeError> {
        let (mut device, mut now) = self.device(seed)?;
        for number in 1..=journal.len() {
            (_, now) = self.step(device.as_mut(), journal, number, now)?;
        }
        let now = device.power_down(now).map_err(|error| ServeError::Failed(error.to_string()))?;
        Ok(Recovered { device, now })
    }

    /// The promise of a new device of this design.
    pub fn promise(&self) -> Result<Promise, ServeError> {
        let (device, _) = self.device(0)?;
        Ok(Promise::new(device.unit_bytes(), device.trims_last(), self.atoms()))
    }

    /// What a design writes atomically, if less than a unit: words of eNVy, 8 B of FSMS in place, atoms of a memory or sectors.
    fn atoms(&self) -> Option<Atoms> {
        let bytes = match (&self.design.ftl, &self.design.route) {
            (Ftl::Envy(envy), _) => envy.config.word_bytes,
            (Ftl::Cached(lines), _) => lines.config.word_bytes,
            (Ftl::RamDisk(disk), _) => disk.config(self.design, 0).word_bytes,
            (Ftl::Direct(direct), _) => direct.atomic_bytes(self.design),
            (_, Some(route)) if route.update == Update::InPlace => WORD_IN_PLACE_BYTES,
            _ => return None,
        };
        let posted = match &self.design.ftl {
            Ftl::Direct(direct) => direct.config.posted.is_some_and(|posting| !posting.protected),
            _ => false,
        };
        Some(Atoms { bytes: bytes as usize, posted })
    }

    /// Whether the promise is broken at a moment.
    pub fn broken(&self, journal: &Journal, moment: &Moment) -> Result<Option<Broken>, String> {
        let mut promise = self.promise().map_err(|error| error.to_string())?;
        promise.advance(journal, moment);
        promise.check(&mut self.cut(journal, moment).map_err(|error| error.to_string())??)
    }

    fn device(&self, seed: u64) -> Result<(Box<dyn ServedDevice>, Time), ServeError> {
        let built = build(self.design, &DeviceState::open(None, self.design, seed)?, None)?;
        Ok((built.device, built.ready))
    }

    /// Replays one operation, not before the reply to the one before at `done`; returns when it began and was answered.
    fn step(
        &self,
        device: &mut dyn ServedDevice,
        journal: &Journal,
        number: u64,
        done: Time,
    ) -> Result<(Time, Time), ServeError> {
        let entry = journal.entry(number);
        let at = entry.at.max(done);
        device.settle(at);
        let end = match entry.kind {
            Kind::Write => device.write(at, entry.offset, journal.data(entry)),
            Kind::Trim => device.trim(at, entry.offset, entry.bytes),
            Kind::Flush if self.ignore_flush => Ok(at),
            Kind::Flush => device.flush(at),
        };
        let end = end.map_err(|error| ServeError::Failed(format!("operation {number}: {error}")))?;
        Ok((at, end.max(at)))
    }
}
