//! A recording done again to a new device, up to a moment where the power fails.

use super::journal::{Journal, Kind};
use super::promise::{Broken, Promise};
use crate::ServeError;
use crate::served::{DeviceState, ServedDevice, build};
use nvlab_controller::fsms::Update;
use nvlab_lab::design::{Design, Ftl};
use nvlab_units::{Rng, Span, Time};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What PRAM keeps whole where metadata is updated in place.
const WORD_IN_PLACE_BYTES: u32 = 8;
/// Bytes that are copied at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// When the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// During this operation, counted from 1.
    pub operation: u64,
    /// When it was answered, rather than before.
    pub after: bool,
    /// Of the device's random choices, and of the moment within the operation.
    pub seed: u64,
}

impl Moment {
    /// The last operation that was answered.
    pub fn answered(&self) -> u64 {
        self.operation - u64::from(!self.after)
    }
}

/// Moments of a recording, from operation `first` on, in their order: `cuts` drawn evenly during operations, and those
/// during and right after each flush; of more than `cuts` of these, so many are drawn. Each has a seed of its own.
pub fn moments(journal: &Journal, first: u64, cuts: u64, seed: u64) -> Vec<Moment> {
    let mut rng = Rng::stream(seed, "moments");
    let count = (journal.len() + 1).saturating_sub(first);
    let during = |operation| (operation, false);
    let mut chosen: Vec<(u64, bool)> = match count {
        0 => Vec::new(),
        count => (0..cuts).map(|_| during(first + rng.below(count))).collect(),
    };
    let flushes = (first..=journal.len()).filter(|&number| journal.entry(number).kind == Kind::Flush);
    let mut boundaries: Vec<(u64, bool)> =
        flushes.flat_map(|number| [(number, false), (number, true)]).collect();
    while boundaries.len() as u64 > cuts {
        let number = rng.below(boundaries.len() as u64) as usize;
        boundaries.swap_remove(number);
    }
    chosen.append(&mut boundaries);
    chosen.sort_unstable();
    chosen.dedup();
    let moment =
        |(number, (operation, after))| Moment { operation, after, seed: seed.wrapping_add(number as u64) };
    chosen.into_iter().enumerate().map(moment).collect()
}

/// Devices of a design, each as new.
#[derive(Clone, Copy, Debug)]
pub struct Replayer<'a> {
    /// The design.
    pub design: &'a Design,
    /// The device lies: what is flushed is not passed on.
    pub ignore_flush: bool,
}

/// A device that found everything again, or says that it did.
pub struct Recovered {
    device: Box<dyn ServedDevice>,
    now: Time,
}

impl Replayer<'_> {
    /// Does what was recorded up to a moment, and cuts the power. The inner error is what the device says that does not
    /// come back.
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

    /// Does all that was recorded, and switches the device off in good order.
    pub fn whole(&self, journal: &Journal, seed: u64) -> Result<Recovered, ServeError> {
        let (mut device, mut now) = self.device(seed)?;
        for number in 1..=journal.len() {
            (_, now) = self.step(device.as_mut(), journal, number, now)?;
        }
        let now = device.power_down(now).map_err(|error| ServeError::Failed(error.to_string()))?;
        Ok(Recovered { device, now })
    }

    /// A promise of a device of this design.
    pub fn promise(&self) -> Result<Promise, ServeError> {
        let (device, _) = self.device(0)?;
        Ok(Promise::new(device.unit_bytes(), device.trims_last(), self.atom_bytes()))
    }

    /// What a design writes whole or not at all, if that is less than a unit: DESIGN.md, eNVy 1 and PRAM beside NAND 3.
    fn atom_bytes(&self) -> Option<u32> {
        match (&self.design.ftl, &self.design.route) {
            (Ftl::Envy(envy), _) => Some(envy.config(self.design).word_bytes),
            (_, Some(route)) if route.update == Update::InPlace => Some(WORD_IN_PLACE_BYTES),
            _ => None,
        }
    }

    /// What of the promise was not kept at a moment.
    pub fn broken(&self, journal: &Journal, moment: &Moment) -> Result<Option<Broken>, String> {
        let mut promise = self.promise().map_err(|error| error.to_string())?;
        promise.advance(journal, moment);
        promise.check(&mut self.cut(journal, moment).map_err(|error| error.to_string())??)
    }

    fn device(&self, seed: u64) -> Result<(Box<dyn ServedDevice>, Time), ServeError> {
        build(self.design, &DeviceState::open(None, self.design, seed)?)
    }

    /// One operation, not before the one above it was answered at `done`: when it began and was answered.
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

impl Recovered {
    /// Bytes of the device.
    pub fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    /// Reads bytes; the error says what cannot be read.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), String> {
        let read = self.device.read(self.now, offset, into.len() as u32, into);
        self.now = read.map_err(|error| format!("byte {offset} cannot be read: {error}"))?;
        self.device.settle(self.now);
        Ok(())
    }

    /// Writes all it holds to a file, which becomes as long as the device; what it does not hold stays a hole.
    pub fn copy_to(&mut self, file: &File) -> Result<(), String> {
        let failed = |error: io::Error| format!("the copy of the device cannot be written: {error}");
        let (capacity, unit) = (self.capacity_bytes(), self.device.unit_bytes() as u64);
        file.set_len(0).and_then(|()| file.set_len(capacity)).map_err(failed)?;
        let (mut offset, mut bytes) = (0, Vec::new());
        while offset < capacity {
            let mut end = offset;
            while end < capacity && end - offset < PIECE_BYTES && self.device.is_mapped(end) {
                end += unit;
            }
            let end = end.min(capacity);
            if end > offset {
                bytes.resize((end - offset) as usize, 0);
                self.read(offset, &mut bytes)?;
                file.write_all_at(&bytes, offset).map_err(failed)?;
                offset = end;
            } else {
                offset += unit;
            }
        }
        Ok(())
    }
}
