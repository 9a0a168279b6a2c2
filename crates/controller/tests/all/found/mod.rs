//! A medium that an earlier program left and somebody changed since: whatever a controller does with a damaged unit, its reads
//! fail until it is written again.

use crate::array::{Ask, Model, UNIT, content, draw};
use nvlab_controller::{Background, Controller, ControllerError, Powered};
use nvlab_medium::Store;
use nvlab_medium::flash::SPARE_BYTES;
use nvlab_units::{Extent, Geometry, Lpa, Rng, Span, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// What was forgotten reads as these.
const FORGOTTEN: u8 = 0xdb;
/// The first bytes of spare areas of what the host wrote.
const DATA: [u8; 2] = [0xd1, 0xe1];

/// Bytes of which a unit is unverified until it is written, or compared with its checksum. Clones are the same bytes.
#[derive(Clone, Debug)]
pub struct Found(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    bytes: Vec<u8>,
    /// Of each unit: it was written or compared since the store was found.
    is_known: Vec<bool>,
    /// Of each unit: it was written and not discarded.
    is_held: Vec<bool>,
    forgets: bool,
}

impl Found {
    /// A fresh store; one that `forgets` loses what is discarded.
    pub fn new(bytes: u64, forgets: bool) -> Found {
        let units = bytes as usize / UNIT + 1;
        let (is_known, is_held) = (vec![true; units], vec![false; units]);
        Found(Rc::new(RefCell::new(Inner { bytes: vec![0; bytes as usize], is_known, is_held, forgets })))
    }

    /// The program ends and another finds what it left.
    pub fn find(&self) {
        self.0.borrow_mut().is_known.fill(false);
    }

    /// Changes a bit of about one in `one_in` of the units of the host.
    pub fn damage(&self, geometry: &Geometry, rng: &mut Rng, one_in: u64) {
        let Inner { bytes, is_held, .. } = &mut *self.0.borrow_mut();
        for unit in 0..geometry.units() as usize {
            let spare = geometry.bytes() as usize + unit * SPARE_BYTES;
            if is_held[unit] && DATA.contains(&bytes[spare]) && rng.below(one_in) == 0 {
                bytes[unit * UNIT + rng.below(UNIT as u64) as usize] ^= 1 << rng.below(8);
            }
        }
    }
}

impl Store for Found {
    const KEEPS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow().bytes[offset as usize..][..into.len()]);
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        let inner = &mut *self.0.borrow_mut();
        let (start, end) = (offset as usize, offset as usize + data.len());
        inner.bytes[start..end].copy_from_slice(data);
        inner.is_known[start / UNIT..end / UNIT].fill(true);
        inner.is_held[start / UNIT..end / UNIT].fill(true);
    }
    fn discard(&mut self, offset: u64, bytes: u64) {
        let inner = &mut *self.0.borrow_mut();
        if inner.forgets {
            let (start, end) = (offset as usize, (offset + bytes) as usize);
            inner.bytes[start..end].fill(FORGOTTEN);
            inner.is_known[start / UNIT..end / UNIT].fill(false);
            inner.is_held[start / UNIT..end / UNIT].fill(false);
        }
    }
    fn holds(&self, offset: u64) -> bool {
        self.0.borrow().is_held[offset as usize / UNIT]
    }
    fn is_unverified(&self, offset: u64) -> bool {
        !self.0.borrow().is_known[offset as usize / UNIT]
    }
    fn set_verified(&mut self, offset: u64) {
        self.0.borrow_mut().is_known[offset as usize / UNIT] = true;
    }
}

/// A device over such a medium, and what it should hold.
struct Lab<D> {
    device: D,
    model: Model,
    rng: Rng,
    now: Time,
    /// Units that could not be read and were not written since.
    lost: Vec<bool>,
    what: String,
}

impl<D: Controller + Background + Powered> Lab<D> {
    /// False at the end of its life.
    fn write(&mut self, requests: u32) -> bool {
        for _ in 0..requests {
            let served = match draw(&mut self.rng, self.device.capacity_units()) {
                Ask::Write(extent) => {
                    extent.units().for_each(|lpa| self.lost[lpa.index()] = false);
                    let data = self.model.write(extent);
                    self.device.write(self.now, extent, &data)
                }
                Ask::Flush => self.device.flush(self.now),
                Ask::Trim(_) | Ask::Read(_) => continue,
            };
            // As a server does: no cut comes before the time of the request that was answered last.
            self.device.settle(self.now);
            self.now = match served {
                Ok(served) => served.end,
                Err(ControllerError::EndOfLife { .. }) => return false,
                Err(error) => panic!("{}: {error}", self.what),
            };
        }
        true
    }

    /// Returns how many units cannot be read.
    fn read(&mut self, when: &str) -> usize {
        let mut found = vec![0; UNIT];
        for lpa in 0..self.device.capacity_units() {
            let lost = &mut self.lost[lpa as usize];
            match self.device.read(self.now, Extent::one(Lpa(lpa)), &mut found) {
                Ok(_) => {
                    let is_right = found == content(lpa, self.model.current(lpa));
                    assert!(is_right, "{}, {when}: unit {lpa} reads as something else", self.what);
                    assert!(!*lost, "{}, {when}: unit {lpa} is back", self.what);
                }
                Err(ControllerError::Unreadable { .. }) => *lost = true,
                Err(error) => panic!("{}, {when}: {error}", self.what),
            }
        }
        self.lost.iter().filter(|lost| **lost).count()
    }
}

/// Damages a device over `store` and uses it, through power cuts. Returns how many units could not be read after the cuts, all added up.
pub fn stays_unreadable<D: Controller + Background + Powered>(
    device: D,
    stores: &[(&Found, Geometry)],
    seed: u64,
    what: String,
) -> usize {
    let units = device.capacity_units();
    let (model, rng) = (Model::new(units), Rng::stream(seed, "found"));
    let mut lab = Lab { device, model, rng, now: Time::ZERO, lost: vec![false; units as usize], what };
    if !lab.write(300) {
        return 0;
    }
    let Ok(flushed) = lab.device.flush(lab.now) else { return 0 };
    lab.now = flushed.end;
    lab.now = lab.device.idle_at(lab.now).unwrap();
    lab.device.settle(lab.now);
    for (store, geometry) in stores {
        store.find();
        store.damage(geometry, &mut lab.rng, 9);
    }
    let mut left = 0;
    for round in 0..12 {
        // In some rounds nothing is read before it is moved.
        for part in 0..8 {
            if !lab.write(4) {
                return left;
            }
            if round % 3 > 0 {
                lab.read(&format!("round {round}.{part}"));
            }
        }
        let Ok(flushed) = lab.device.flush(lab.now) else { return left };
        lab.now = flushed.end;
        lab.read(&format!("round {round}, flushed"));
        let cut = lab.now + Span::from_us(lab.rng.below(300));
        let (device, report) = match lab.device.power_cycle(cut) {
            Ok(found) => found,
            Err(why) if why.contains("end of its life") => return left,
            Err(why) => panic!("{}: {why}", lab.what),
        };
        (lab.device, lab.now) = (device, cut + report.time);
        left += lab.read(&format!("round {round}, cut"));
    }
    left
}
