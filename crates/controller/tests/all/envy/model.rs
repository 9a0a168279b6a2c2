//! eNVy against a plain array: random requests and transactions, every policy, several shapes.

use crate::envy::device::{Model, Setup, draw, perform, read_all, setups};
use nvlab_controller::{Background, ControllerError, Envy};
use nvlab_medium::MemStore;
use nvlab_units::{Rng, Span, Time};

fn run(setup: &Setup, seed: u64, requests: u32) -> Envy<MemStore> {
    let mut device = setup.device();
    let mut model = Model::new(device.capacity_bytes());
    let mut rng = Rng::stream(seed, "model");
    let mut now = Time::ZERO;
    for i in 0..requests {
        let ask = draw(&mut rng, setup);
        let end = perform(&mut device, &mut model, now, ask);
        now = match rng.below(4) {
            0 | 1 => end,
            2 => end + Span::from_ns(rng.below(9000)),
            _ => end + Span::from_us(rng.below(60_000)),
        };
        if i % 16 == 0 {
            device.check();
        }
        if i % 256 == 0 {
            device.settle(now);
        }
    }
    device.check();
    assert_eq!(read_all(&mut device, now), model.bytes, "seed {seed}, {setup:?}");
    now = device.idle_at(now).unwrap();
    device.check();
    assert_eq!(read_all(&mut device, now), model.bytes, "seed {seed}, {setup:?}");
    device
}

#[test]
fn every_setup_behaves_like_an_array() {
    let (mut swaps, mut commits, mut aborts, mut moved) = (0, 0, 0, 0);
    for setup in setups() {
        for seed in 0..2 {
            let device = run(&setup, seed, 2000);
            let stats = device.stats();
            assert!(stats.cleans > 20, "the cleaner was not tried: {stats:?} {setup:?}");
            swaps += stats.wear_swaps;
            commits += stats.commits;
            aborts += stats.aborts;
            moved += stats.transfer_pages;
        }
    }
    assert!(swaps > 50 && commits > 500 && aborts > 500 && moved > 200, "{swaps} {commits} {aborts} {moved}");
}

#[test]
fn bytes_past_the_end_are_refused() {
    let mut device = setups()[0].device();
    let capacity = device.capacity_bytes();
    let error = device.load(Time::ZERO, capacity - 4, 8, &mut [0; 8]).unwrap_err();
    assert_eq!(error, ControllerError::OutsideWindow { offset: capacity - 4, bytes: 8, capacity });
    assert!(device.store(Time::ZERO, u64::MAX, 8, &[0; 8]).is_err());
}

#[test]
fn impossible_configurations_are_refused() {
    let setup = setups()[4].clone();
    let wrong = |change: &dyn Fn(&mut Setup)| {
        let mut setup = setup.clone();
        change(&mut setup);
        setup.config().check(&setup.nor(), &setup.ram()).unwrap_err()
    };
    assert!(wrong(&|s| s.utilization = 0.99).contains("do not fit"));
    assert!(wrong(&|s| s.flush_at = 7).contains("flushing begins above 7 pages"));
    assert!(
        wrong(&|s| s.cleaning = nvlab_controller::envy::SegmentCleaning::gathering(9))
            .contains("1 to 6 segments")
    );
    let small = nvlab_medium::ram::RamConfig { capacity_bytes: 1024, ..setup.ram() };
    assert!(setup.config().check(&setup.nor(), &small).unwrap_err().contains("need"));
}

#[test]
fn the_same_requests_give_the_same_device() {
    let setup = &setups()[40];
    let (a, b) = (run(setup, 4, 1000), run(setup, 4, 1000));
    assert_eq!((a.stats(), a.nor().stats()), (b.stats(), b.nor().stats()));
}
