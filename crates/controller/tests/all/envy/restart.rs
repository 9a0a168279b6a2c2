//! The program ends between two writes to its stores, as a serving process that is killed: nothing is undone,
//! nothing more is done, and only the bytes are left.

use crate::envy::device::{Ask, Model, Setup, draw, setups};
use crate::mortal::{Mortal, until_killed};
use nvlab_controller::envy::recover::erase_counts;
use nvlab_controller::envy::{EnvyMedia, SegmentCleaning};
use nvlab_controller::{Background, Controller, Envy};
use nvlab_medium::flash::Nor;
use nvlab_medium::ram::{Ram, RamConfig};
use nvlab_units::{Extent, Lpa, Rng, Span, Time};
use std::cell::Cell;
use std::rc::Rc;

struct World {
    nor: Mortal,
    sram: Mortal,
    budget: Rc<Cell<u64>>,
}

impl World {
    fn new(setup: &Setup) -> World {
        let budget = Rc::new(Cell::new(u64::MAX));
        let nor = Mortal::new(Nor::<Mortal>::store_bytes(&setup.geometry()), &budget);
        World { nor, sram: Mortal::new(setup.ram().capacity_bytes, &budget), budget }
    }

    fn restart(&self, setup: &Setup) -> Envy<Mortal> {
        self.budget.set(u64::MAX);
        let sram = Ram::new(setup.ram(), self.sram.clone());
        let erases = erase_counts(&setup.config(), &setup.geometry(), &sram).unwrap();
        let nor = Nor::reopen(setup.nor(), self.nor.clone(), &erases);
        let (device, _) = Envy::recover(setup.config(), EnvyMedia { nor, sram }, Time::ZERO).unwrap();
        device.check();
        device
    }
}

fn ask(device: &mut Envy<Mortal>, model: &mut Model, at: Time, ask: Ask) -> Time {
    match ask {
        Ask::Store { offset, bytes } => {
            let data = model.words(bytes as usize);
            model.bytes[offset as usize..][..bytes as usize].copy_from_slice(&data);
            device.store(at, offset, bytes, &data).unwrap().end
        }
        Ask::Begin => {
            model.before = Some(model.bytes.clone());
            device.begin(at).unwrap().end
        }
        Ask::Commit => {
            model.before = None;
            device.commit(at).unwrap().end
        }
        Ask::Abort => {
            model.bytes = model.before.take().unwrap();
            device.abort(at).unwrap().end
        }
        _ => at,
    }
}

/// A request that the state allows and that cannot be refused half-way.
fn allowed(rng: &mut Rng, setup: &Setup, model: &Model, stores: &mut u32) -> Ask {
    loop {
        let ask = draw(rng, setup);
        match ask {
            Ask::Store { offset, .. } if model.before.is_some() => {
                *stores += 1;
                let end = if *stores >= setup.transaction_pages { Ask::Commit } else { ask };
                return match end {
                    Ask::Store { .. } => Ask::Store { offset: offset & !7, bytes: 8 },
                    other => other,
                };
            }
            Ask::Store { .. } => return ask,
            Ask::Begin if model.before.is_none() && setup.transaction_pages > 0 => {
                *stores = 0;
                return ask;
            }
            Ask::Commit | Ask::Abort if model.before.is_some() => return ask,
            _ => {}
        }
    }
}

#[test]
fn a_program_that_is_killed_anywhere_loses_nothing() {
    for (index, setup) in setups().iter().enumerate().filter(|(_, setup)| setup.page_bytes == 256) {
        let mut rng = Rng::stream(index as u64, "kill");
        let world = World::new(setup);
        let (nor, sram) =
            (Nor::new(setup.nor(), world.nor.clone()), Ram::new(setup.ram(), world.sram.clone()));
        let mut device = Envy::new(setup.config(), nor, sram).unwrap();
        let mut model = Model::new(device.capacity_bytes());
        for life in 0..25 {
            let mut now = Time::ZERO;
            // What each of the last requests may have left: the last one that was done is not known.
            let mut states = vec![model.clone()];
            let mut stores = 0;
            world.budget.set(if life == 24 { u64::MAX } else { 1 + rng.below(3000) });
            let mut killed_in_last = false;
            while !killed_in_last && states.len() < 400 {
                let request = allowed(&mut rng, setup, &model, &mut stores);
                let pause = Span::from_ns(rng.below(30_000)) * rng.below(3);
                let idle = rng.chance(0.02);
                let step = || {
                    now = ask(&mut device, &mut model, now, request) + pause;
                    if idle {
                        now = device.idle_at(now).unwrap();
                    }
                };
                killed_in_last = until_killed(step);
                states.push(model.clone());
            }
            device = world.restart(setup);
            let mut found = vec![0; device.capacity_bytes() as usize];
            device
                .read(Time::ZERO, Extent { start: Lpa(0), count: device.capacity_units() }, &mut found)
                .unwrap();
            let rolled_back = |model: &Model| model.before.clone().unwrap_or_else(|| model.bytes.clone());
            let new = rolled_back(states.last().unwrap());
            let old = if killed_in_last { rolled_back(&states[states.len() - 2]) } else { new.clone() };
            for (i, word) in found.chunks(8).enumerate() {
                let range = i * 8..i * 8 + 8;
                assert!(
                    word == &old[range.clone()] || word == &new[range.clone()],
                    "life {life}, word {i} is {word:x?}, was {:x?}, stored {:x?}: {setup:?}",
                    &old[range.clone()],
                    &new[range]
                );
            }
            (model.bytes, model.before) = (found, None);
        }
    }
}

/// Another design over an old state is told what differs, and changes nothing.
#[test]
fn another_design_is_refused_by_name() {
    let setup = Setup { cleaning: SegmentCleaning::gathering(3), ..setups()[4].clone() };
    let world = World::new(&setup);
    let (nor, sram) = (Nor::new(setup.nor(), world.nor.clone()), Ram::new(setup.ram(), world.sram.clone()));
    let mut device = Envy::new(setup.config(), nor, sram).unwrap();
    let mut now = Time::ZERO;
    for lpa in 0..device.capacity_units() {
        now = device
            .write(now, Extent::one(Lpa(lpa)), &vec![lpa as u8; setup.page_bytes as usize])
            .unwrap()
            .end;
    }
    drop(device);
    let before = (world.nor.bytes.borrow().clone(), world.sram.bytes.borrow().clone());
    let (die, dies) = (setup.segments, setup.dies);
    let others = [
        (Setup { dies: dies * 2, ..setup.clone() }, format!("dies: stored {dies}, given {}", dies * 2)),
        (
            Setup { dies: 1, segments: die * dies, ..setup.clone() },
            format!("segments of a die: stored {die}, given {}; dies: stored {dies}, given 1", die * dies),
        ),
        (
            Setup { cleaning: SegmentCleaning::gathering(1), ..setup.clone() },
            "partitions: stored 4, given 12".into(),
        ),
        (Setup { buffer: 40, ..setup.clone() }, "pages of the buffer: stored 6, given 40".into()),
        (Setup { transaction_pages: 0, ..setup.clone() }, "pages of a transaction: stored 5, given 0".into()),
        (Setup { pages: 800, ..setup.clone() }, "logical pages".into()),
        (Setup { utilization: 0.3, ..setup.clone() }, "logical pages".into()),
    ];
    for (other, differs) in others {
        // The memory that is there: a larger one is not needed to see what it holds.
        let ram = RamConfig { capacity_bytes: setup.ram().capacity_bytes, ..other.ram() };
        let sram = Ram::new(ram, world.sram.clone());
        let error = erase_counts(&other.config(), &other.geometry(), &sram).unwrap_err();
        assert!(error.contains("another design") && error.contains(&differs), "{error}; not {differs}");
        let nor = Nor::new(other.nor(), world.nor.clone());
        assert_eq!(Envy::recover(other.config(), EnvyMedia { nor, sram }, Time::ZERO).unwrap_err(), error);
    }
    let wide = RamConfig { word_bytes: 1024, ..setup.ram() };
    let sram = Ram::new(wide, world.sram.clone());
    let error = erase_counts(&setup.config(), &setup.geometry(), &sram).unwrap_err();
    assert!(error.ends_with("bytes of a word of the SRAM: stored 256, given 1024"), "{error}");
    assert!(before == (world.nor.bytes.borrow().clone(), world.sram.bytes.borrow().clone()));
    world.restart(&setup);

    world.sram.bytes.borrow_mut()[7] = b'1';
    let error = erase_counts(&setup.config(), &setup.geometry(), &Ram::new(setup.ram(), world.sram.clone()));
    assert!(error.unwrap_err().contains("nvlenvy1; this one reads nvlenvy2"));
    world.sram.bytes.borrow_mut()[0] = 0;
    let error = erase_counts(&setup.config(), &setup.geometry(), &Ram::new(setup.ram(), world.sram.clone()));
    assert!(error.unwrap_err().contains("no state"));
}
