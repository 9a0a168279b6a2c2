//! A plain model of zones: what each holds, in which state it is, and how much of it may not be lost; and random requests.

use super::device::{Buffered, Setup};
use crate::array::{UNIT, content};
use nvlab_controller::zoned::{ZoneAction, ZoneError, ZoneState};
use nvlab_controller::{Controller, ControllerError, ZoneMap, Zoned};
use nvlab_medium::MemStore;
use nvlab_units::{Extent, Lpa, Rng, Time};

/// What the host may ask.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// Units at the write pointer.
    Write {
        zone: u32,
        units: u32,
    },
    Append {
        zone: u32,
        units: u32,
    },
    /// A write elsewhere, or of more than there is room for.
    Wrong {
        zone: u32,
        unit: u32,
        units: u32,
    },
    Manage {
        zone: u32,
        action: ZoneAction,
    },
    Trim(Extent),
    Read(Extent),
    Flush,
}

/// A zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// The version of each unit written.
    pub versions: Vec<u64>,
    pub state: ZoneState,
    /// So many of them are not lost in a cut.
    pub durable: usize,
    /// It was finished, for good.
    pub finished: bool,
}

/// All zones, in the order in which they were opened implicitly.
#[derive(Clone, Debug)]
pub struct Model {
    pub zones: Vec<Zone>,
    pub capacity: u32,
    size: u32,
    implicit: Vec<u32>,
    open_max: usize,
    active_max: usize,
    buffer: Buffered,
    next: u64,
}

impl Model {
    pub fn new(setup: &Setup) -> Model {
        let zone = Zone { versions: Vec::new(), state: ZoneState::Empty, durable: 0, finished: false };
        let config = setup.config();
        Model {
            zones: vec![zone; setup.zones as usize],
            capacity: config.capacity_units,
            size: config.size_units,
            implicit: Vec::new(),
            open_max: config.open_max.unwrap_or(u32::MAX) as usize,
            active_max: config.active_max.unwrap_or(u32::MAX) as usize,
            buffer: setup.buffer,
            next: 1,
        }
    }

    /// A random request; mostly one that is allowed.
    pub fn draw(&self, rng: &mut Rng) -> Ask {
        let zone = rng.below(self.zones.len() as u64) as u32;
        let left = self.capacity - self.zones[zone as usize].versions.len() as u32;
        let units = (1 + rng.below(5) as u32).min(left.max(1));
        match rng.below(24) {
            0..=9 => Ask::Write { zone, units },
            10..=12 => Ask::Append { zone, units },
            13 => {
                let unit = rng.below(self.size as u64) as u32;
                Ask::Wrong { zone, unit, units: (1 + rng.below(9) as u32).min(self.size - unit) }
            }
            14 | 15 => Ask::Flush,
            16 => Ask::Manage { zone, action: ZoneAction::Finish },
            17 | 18 => Ask::Manage { zone, action: ZoneAction::Reset },
            19 => Ask::Manage { zone, action: ZoneAction::ALL[rng.below(2) as usize] },
            20 => {
                let start = rng.below(self.zones.len() as u64 * self.size as u64 - 1) as u32;
                let most = self.zones.len() as u32 * self.size - start;
                Ask::Trim(Extent {
                    start: Lpa(start),
                    count: (1 + rng.below(2 * self.size as u64) as u32).min(most),
                })
            }
            _ => {
                let start = rng.below(self.zones.len() as u64 * self.size as u64 - 8) as u32;
                Ask::Read(Extent { start: Lpa(start), count: 1 + rng.below(8) as u32 })
            }
        }
    }

    fn count(&self, is: fn(ZoneState) -> bool) -> usize {
        self.zones.iter().filter(|zone| is(zone.state)).count()
    }

    fn set(&mut self, zone: u32, state: ZoneState) {
        self.implicit.retain(|&other| other != zone);
        if state == ZoneState::ImplicitlyOpen {
            self.implicit.push(zone);
        }
        self.zones[zone as usize].state = state;
    }

    /// Opens a zone as the limits allow.
    fn open(&mut self, zone: u32, state: ZoneState) -> Result<(), ZoneError> {
        let before = self.zones[zone as usize].state;
        if !before.is_active() && self.count(ZoneState::is_active) >= self.active_max {
            return Err(ZoneError::TooManyActive { max: self.active_max as u32 });
        }
        if !before.is_open() && self.count(ZoneState::is_open) >= self.open_max {
            let Some(&first) = self.implicit.first() else {
                return Err(ZoneError::TooManyOpen { max: self.open_max as u32 });
            };
            self.set(first, ZoneState::Closed);
        }
        self.set(zone, state);
        Ok(())
    }

    /// What a write does, or why it is refused; the data it carries.
    fn write(&mut self, zone: u32, unit: u32, units: u32) -> Result<Vec<u8>, ZoneError> {
        let pointer = self.zones[zone as usize].versions.len() as u32;
        match self.zones[zone as usize].state {
            ZoneState::Full => return Err(ZoneError::Full),
            ZoneState::ReadOnly => return Err(ZoneError::ReadOnly),
            ZoneState::Offline => return Err(ZoneError::Offline),
            _ => {}
        }
        if unit + units > self.capacity {
            return Err(ZoneError::Boundary { at: unit, units, capacity: self.capacity });
        }
        if unit != pointer {
            return Err(ZoneError::NotAtPointer { at: unit, pointer });
        }
        if !self.zones[zone as usize].state.is_open() {
            self.open(zone, ZoneState::ImplicitlyOpen)?;
        }
        let mut data = Vec::new();
        for unit in unit..unit + units {
            self.zones[zone as usize].versions.push(self.next);
            data.extend(content(zone * self.size + unit, self.next));
            self.next += 1;
        }
        if pointer + units == self.capacity {
            self.set(zone, ZoneState::Full);
        }
        if self.buffer != Buffered::Volatile {
            self.zones[zone as usize].durable = self.zones[zone as usize].versions.len();
        }
        Ok(data)
    }

    fn manage(&mut self, zone: u32, action: ZoneAction) -> Result<(), ZoneError> {
        let state = self.zones[zone as usize].state;
        let after = action.after(state).ok_or(ZoneError::Transition { state, action })?;
        if after == state {
            return Ok(());
        }
        match action {
            ZoneAction::Open => return self.open(zone, after),
            ZoneAction::Finish => {
                let zone = &mut self.zones[zone as usize];
                (zone.durable, zone.finished) = (zone.versions.len(), true);
            }
            ZoneAction::Reset => {
                let zone = &mut self.zones[zone as usize];
                (zone.durable, zone.finished) = (0, false);
                zone.versions.clear();
            }
            ZoneAction::Close | ZoneAction::Offline => {}
        }
        self.set(zone, after);
        Ok(())
    }

    fn flush(&mut self) {
        self.zones.iter_mut().for_each(|zone| zone.durable = zone.versions.len());
    }

    fn version(&self, lpa: Lpa) -> u64 {
        let (zone, unit) = (lpa.0 / self.size, lpa.0 % self.size);
        self.zones[zone as usize].versions.get(unit as usize).copied().unwrap_or(0)
    }

    /// Carries out a request on both and compares what they answer; returns when it was done.
    pub fn perform(&mut self, device: &mut ZoneMap<MemStore>, at: Time, ask: Ask) -> Time {
        let of_zone = |zone: u32| move |source| ControllerError::Zone { zone, source };
        let bytes = |units: u32| vec![0xee; units as usize * UNIT];
        let served = match ask {
            Ask::Write { zone, units } | Ask::Append { zone, units } => {
                let unit = self.zones[zone as usize].versions.len() as u32;
                let start = Lpa(zone * self.size + unit);
                let wanted = self.write(zone, unit, units).map_err(of_zone(zone));
                let data = wanted.clone().unwrap_or(bytes(units));
                let served = match ask {
                    Ask::Append { .. } => device.append(at, zone, units, &data).map(|(served, place)| {
                        assert_eq!(place, start, "{ask:?}");
                        served
                    }),
                    _ => device.write(at, Extent { start, count: units }, &data),
                };
                assert_eq!(served.map(|_| ()), wanted.map(|_| ()), "{ask:?}");
                served
            }
            Ask::Wrong { zone, unit, units } => {
                let wanted = self.write(zone, unit, units).map_err(of_zone(zone));
                let data = wanted.clone().unwrap_or(bytes(units));
                let extent = Extent { start: Lpa(zone * self.size + unit), count: units };
                let served = device.write(at, extent, &data);
                assert_eq!(served.map(|_| ()), wanted.map(|_| ()), "{ask:?}");
                served
            }
            Ask::Manage { zone, action } => {
                let wanted = self.manage(zone, action).map_err(of_zone(zone));
                let served = device.manage(at, zone, action);
                assert_eq!(served.map(|_| ()), wanted, "{ask:?}");
                served
            }
            Ask::Trim(extent) => {
                let (first, end) = (extent.start.0.div_ceil(self.size), extent.end() as u32 / self.size);
                (first..end).for_each(|zone| self.manage(zone, ZoneAction::Reset).unwrap());
                device.trim(at, extent)
            }
            Ask::Read(extent) => {
                let mut data = bytes(extent.count);
                let served = device.read(at, extent, &mut data);
                for (lpa, data) in extent.units().zip(data.chunks(UNIT)) {
                    assert_eq!(data, content(lpa.0, self.version(lpa)), "unit {lpa}");
                }
                served
            }
            Ask::Flush => {
                self.flush();
                device.flush(at)
            }
        };
        self.compare(device);
        served.map_or(at, |served| served.end.max(at))
    }

    /// The device reports every zone as the model has it.
    pub fn compare(&self, device: &ZoneMap<MemStore>) {
        for (number, zone) in (0..).zip(&self.zones) {
            let report = device.report(number);
            let written = zone.versions.len() as u32;
            assert_eq!((report.state, report.written), (zone.state, written), "zone {number}");
            assert_eq!(report.extent, Extent { start: Lpa(number * self.size), count: self.size });
        }
    }

    /// Reads a zone after a cut and compares it with what it may be: `before` the last request, which may not have been done, or
    /// after it. Returns what it is.
    pub fn found(
        &self,
        device: &mut ZoneMap<MemStore>,
        (at, zone): (Time, u32),
        before: Option<&Model>,
        context: &dyn Fn() -> String,
    ) -> Zone {
        let report = device.report(zone);
        let mut data = vec![0; report.written as usize * UNIT];
        device.read(at, Extent { start: report.extent.start, count: report.written }, &mut data).unwrap();
        let (after, before) = (&self.zones[zone as usize], before.map(|model| &model.zones[zone as usize]));
        // A part of the last write.
        let part = before.filter(|before| after.versions.starts_with(&before.versions) && !after.finished);
        let part = part.map(|before| Zone { durable: before.durable, ..after.clone() });
        for wanted in [Some(after), part.as_ref(), before].into_iter().flatten() {
            let written = report.written as usize;
            let holds = |(unit, data): (usize, &[u8])| {
                wanted
                    .versions
                    .get(unit)
                    .is_some_and(|&version| data == content(zone * self.size + unit as u32, version))
            };
            let state = match written {
                _ if wanted.finished => ZoneState::Full,
                0 => ZoneState::Empty,
                _ if report.written == self.capacity => ZoneState::Full,
                _ => ZoneState::Closed,
            };
            let is_enough =
                written >= wanted.durable && (!wanted.finished || written == wanted.versions.len());
            // A zone that became full may have lost its end.
            if is_enough && state == report.state && data.chunks(UNIT).enumerate().all(holds) {
                return Zone {
                    versions: wanted.versions[..written].to_vec(),
                    state,
                    durable: written,
                    finished: wanted.finished,
                };
            }
        }
        panic!("{}: zone {zone} is {report:?}, allowed: {after:?}, before: {before:?}", context());
    }

    /// After a cut: what was found is all there is.
    pub fn settle_on(&mut self, zones: Vec<Zone>) {
        self.implicit.clear();
        self.zones = zones;
    }
}
