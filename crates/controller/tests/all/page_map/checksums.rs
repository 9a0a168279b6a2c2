//! Bits of the medium change behind the controller's back. With `verify_reads` a unit reads as what was written or not at all,
//! wherever it was moved meanwhile and whatever a recovery found.

use crate::array::{Ask, Model, UNIT, content, draw};
use crate::page_map::device::{Setup, setups};
use nvlab_controller::page_map::PageMapMedia;
use nvlab_controller::{Background, Controller, ControllerError, PageMap};
use nvlab_medium::flash::{Nand, SPARE_BYTES};
use nvlab_medium::{MemStore, Store};
use nvlab_units::{Extent, Lpa, Rng, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Clones are the same bytes.
#[derive(Clone, Debug)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Store for Shared {
    const KEEPS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow()[offset as usize..][..into.len()]);
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        self.0.borrow_mut()[offset as usize..][..data.len()].copy_from_slice(data);
    }
}

/// A device under a medium that lies, and what it should hold.
struct Lab {
    device: PageMap<Shared>,
    bytes: Shared,
    model: Model,
    rng: Rng,
    now: Time,
    wrong: u64,
    unreadable: u64,
}

impl Lab {
    fn new(setup: &Setup, verify_reads: bool, seed: u64) -> Lab {
        let flash = setup.flash();
        let bytes =
            Shared(Rc::new(RefCell::new(vec![0; Nand::<Shared>::store_bytes(&flash.geometry) as usize])));
        let config = nvlab_controller::page_map::PageMapConfig { verify_reads, ..setup.config() };
        let device = PageMap::new(config, Nand::new(flash, bytes.clone())).unwrap();
        let model = Model::new(device.capacity_units());
        let rng = Rng::stream(seed, "checksums");
        Lab { device, bytes, model, rng, now: Time::ZERO, wrong: 0, unreadable: 0 }
    }

    fn write(&mut self, requests: u32) {
        for _ in 0..requests {
            let ask = draw(&mut self.rng, self.device.capacity_units());
            let served = match ask {
                Ask::Write(extent) => {
                    let data = self.model.write(extent);
                    self.device.write(self.now, extent, &data)
                }
                Ask::Flush => self.device.flush(self.now),
                Ask::Trim(_) | Ask::Read(_) => continue,
            };
            self.now = served.unwrap().end;
        }
        self.now = self.device.flush(self.now).unwrap().end;
        self.now = self.device.idle_at(self.now).unwrap();
    }

    /// Changes a bit of each of `count` units, or of their spare areas.
    fn damage(&mut self, count: u32, spares: bool) {
        let geometry = *self.device.nand().geometry();
        for _ in 0..count {
            let unit = self.rng.below(geometry.units());
            let place = match spares {
                true => geometry.bytes() + unit * SPARE_BYTES as u64 + self.rng.below(SPARE_BYTES as u64),
                false => unit * UNIT as u64 + self.rng.below(UNIT as u64),
            };
            self.bytes.0.borrow_mut()[place as usize] ^= 1 << self.rng.below(8);
        }
    }

    fn read(&mut self) {
        let mut found = vec![0; UNIT];
        for lpa in 0..self.device.capacity_units() {
            match self.device.read(self.now, Extent::one(Lpa(lpa)), &mut found) {
                Ok(_) => self.wrong += (found != content(lpa, self.model.current(lpa))) as u64,
                Err(ControllerError::Unreadable { .. }) => self.unreadable += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Units read wrong and not at all, over all set-ups: after damage, after more writes, after a recovery.
fn explore(verify_reads: bool, spares: bool) -> [(u64, u64); 3] {
    let mut sums = [(0, 0); 3];
    for (seed, setup) in setups().iter().enumerate() {
        let mut lab = Lab::new(setup, verify_reads, seed as u64);
        lab.write(300);
        lab.damage(12 * setup.units_per_page, spares);
        lab.read();
        let failures = lab.device.nand().stats().failures[0];
        assert_eq!(failures, lab.unreadable, "{setup:?}");
        let first = (lab.wrong, lab.unreadable);
        lab.write(100);
        lab.read();
        let second = (lab.wrong - first.0, lab.unreadable - first.1);
        let cut = lab.device.clone().power_cut(lab.now);
        let config = lab.device.config().clone();
        let third = match PageMap::recover(config, None, cut, lab.now) {
            Ok((device, report)) => {
                (lab.device, lab.now) = (device, lab.now + report.time);
                lab.read();
                (lab.wrong - second.0 - first.0, lab.unreadable - second.1 - first.1)
            }
            Err(why) => {
                assert!(why.contains("does not match its checksum"), "{why}");
                (0, 0)
            }
        };
        for (sum, one) in sums.iter_mut().zip([first, second, third]) {
            *sum = (sum.0 + one.0, sum.1 + one.1);
        }
    }
    sums
}

#[test]
fn damaged_data_are_unreadable_and_stay_so() {
    let sums = explore(true, false);
    assert!(sums.iter().all(|&(wrong, unreadable)| wrong == 0 && unreadable > 20), "{sums:?}");
}

#[test]
fn damaged_spare_areas_make_their_units_unreadable() {
    let sums = explore(true, true);
    assert!(sums[..2].iter().all(|&(wrong, unreadable)| wrong == 0 && unreadable > 20), "{sums:?}");
}

/// The tests above must be able to fail: without the key the same damage is returned, unless the unit was moved, which is always
/// verified.
#[test]
fn what_is_not_verified_is_returned_as_it_is() {
    let sums = explore(false, false);
    assert!(sums[0].0 > 20 && sums[0].1 == 0, "{sums:?}");
    assert!(sums[1..].iter().all(|&(wrong, unreadable)| wrong > 20 && unreadable > 20), "{sums:?}");
}

#[test]
fn a_buffer_that_held_what_cannot_be_is_refused() {
    let setup = setups().into_iter().find(|setup| setup.buffer == Some(true)).unwrap();
    let refusal = |hold: &dyn Fn(&mut PageMapMedia<MemStore>)| {
        let mut media = setup.device().power_cut(Time::ZERO);
        hold(&mut media);
        PageMap::recover(setup.config(), None, media, Time::ZERO).map(|_| ()).unwrap_err()
    };
    let units = setup.config().logical_units;
    for (lpa, sequence, bytes) in [(units, 1, UNIT), (0, 0, UNIT), (0, u64::MAX, UNIT), (0, 1, UNIT - 1)] {
        let why = refusal(&|media| media.hold(Lpa(lpa), sequence, vec![0; bytes]));
        assert!(why.contains(&format!("held unit {lpa} as write {sequence} with {bytes} B")), "{why}");
    }
    for (start, count, sequence) in [(units, 1, 1), (0, 0, 1), (1, u32::MAX, 1), (0, 1, 0), (0, 1, u64::MAX)]
    {
        let why = refusal(&|media| media.hold_trim(Extent { start: Lpa(start), count }, sequence));
        assert!(why.contains(&format!("a trim of {count} units from {start} on")), "{why}");
    }
}
