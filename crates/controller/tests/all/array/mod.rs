//! A plain array that knows every version of its units, and random requests: what a controller is held against.

use nvlab_controller::{Controller, ControllerError};
use nvlab_units::{Extent, Lpa, Rng, Time};

pub const UNIT: usize = 32;

/// What the host may ask.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    Read(Extent),
    Write(Extent),
    Trim(Extent),
    Flush,
}

/// Draws a request: overwrites mostly, in a small hot range half of the time.
pub fn draw(rng: &mut Rng, units: u32) -> Ask {
    let space = if rng.chance(0.5) { units / 5 } else { units };
    let start = rng.below(space as u64) as u32;
    let count = (1 + rng.below(6) as u32).min(units - start);
    let extent = Extent { start: Lpa(start), count };
    match rng.below(20) {
        0..=3 => Ask::Read(extent),
        4 => Ask::Trim(extent),
        5 | 6 => Ask::Flush,
        _ => Ask::Write(extent),
    }
}

/// The bytes of version `version` of a unit; version 0 is zero.
pub fn content(lpa: u32, version: u64) -> [u8; UNIT] {
    let mut bytes = [0; UNIT];
    if version > 0 {
        let mut rng = Rng::new(version << 32 | lpa as u64);
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&rng.bits().to_le_bytes());
        }
    }
    bytes
}

/// Every version each unit had, and from which on it may not be lost.
#[derive(Clone, Debug)]
pub struct Model {
    pub versions: Vec<Vec<u64>>,
    durable_from: Vec<usize>,
    next: u64,
}

impl Model {
    pub fn new(units: u32) -> Model {
        Model { versions: vec![vec![0]; units as usize], durable_from: vec![0; units as usize], next: 1 }
    }
    pub fn current(&self, lpa: u32) -> u64 {
        *self.versions[lpa as usize].last().unwrap()
    }
    pub fn write(&mut self, extent: Extent) -> Vec<u8> {
        let mut data = Vec::new();
        for lpa in extent.units() {
            self.versions[lpa.index()].push(self.next);
            data.extend(content(lpa.0, self.next));
            self.next += 1;
        }
        data
    }
    pub fn trim(&mut self, extent: Extent) {
        for lpa in extent.units() {
            self.versions[lpa.index()].push(0);
            self.durable_from[lpa.index()] = 0;
        }
    }
    /// The current versions of these units may not be lost any more; a trim only if `trims` are durable.
    pub fn durable(&mut self, extent: Extent, trims: bool) {
        for lpa in extent.units() {
            if trims || self.current(lpa.0) != 0 {
                self.durable_from[lpa.index()] = self.versions[lpa.index()].len() - 1;
            }
        }
    }
    /// The version these bytes are, which must be an allowed one.
    pub fn identify(&self, lpa: u32, bytes: &[u8], context: &dyn Fn() -> String) -> u64 {
        let versions = &self.versions[lpa as usize];
        let from = self.durable_from[lpa as usize];
        let found = versions.iter().rposition(|&version| content(lpa, version) == bytes);
        match found {
            Some(index) if index >= from => versions[index],
            Some(index) => panic!(
                "{}: unit {lpa} went back to version {} of {versions:?}, durable is {}",
                context(),
                versions[index],
                versions[from]
            ),
            None => panic!("{}: unit {lpa} reads as something never written (torn?)", context()),
        }
    }
    /// After a power cut: what was found is all there is.
    pub fn settle_on(&mut self, found: &[u64]) {
        for (lpa, &version) in found.iter().enumerate() {
            self.versions[lpa] = vec![version];
            self.durable_from[lpa] = 0;
        }
    }
}

/// Carries out a request and checks what a read returns; returns when it was done.
pub fn perform(
    device: &mut impl Controller,
    model: &mut Model,
    at: Time,
    ask: Ask,
) -> Result<Time, ControllerError> {
    let served = match ask {
        Ask::Read(extent) => {
            let mut bytes = vec![0xee; extent.count as usize * UNIT];
            // What can be seen need not be read into a buffer.
            let in_place = device.view(extent).is_some() && extent.start.0.is_multiple_of(2);
            let served = device.read(at, extent, if in_place { &mut [] } else { &mut bytes })?;
            if in_place {
                bytes = seen(device, extent);
            }
            for (lpa, bytes) in extent.units().zip(bytes.chunks(UNIT)) {
                assert_eq!(bytes, content(lpa.0, model.current(lpa.0)), "unit {lpa} at {at}");
            }
            served
        }
        Ask::Write(extent) => {
            let data = model.write(extent);
            device.write(at, extent, &data)?
        }
        Ask::Trim(extent) => {
            model.trim(extent);
            device.trim(at, extent)?
        }
        Ask::Flush => device.flush(at)?,
    };
    assert!(served.start >= at && served.end >= served.start);
    Ok(served.end)
}

/// The bytes of units that a controller shows.
pub fn seen(device: &impl Controller, extent: Extent) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), extent);
    while rest.count > 0 {
        let part = device.view(rest).unwrap_or_else(|| panic!("{rest:?} cannot be seen"));
        let units = (part.len() / UNIT) as u32;
        assert!(units > 0 && units <= rest.count && part.len() == units as usize * UNIT, "{rest:?}");
        bytes.extend_from_slice(part);
        rest = Extent { start: rest.start + units, count: rest.count - units };
    }
    bytes
}

/// Reads every unit after a cut and returns the version of each, which must be an allowed one.
pub fn read_all(
    device: &mut impl Controller,
    model: &Model,
    at: Time,
    context: &dyn Fn() -> String,
) -> Vec<u64> {
    let mut bytes = vec![0; UNIT];
    (0..device.capacity_units())
        .map(|lpa| {
            let read = device.read(at, Extent::one(Lpa(lpa)), &mut bytes);
            read.unwrap_or_else(|error| panic!("{}: {error}", context()));
            model.identify(lpa, &bytes, context)
        })
        .collect()
}
