//! Words and blocks of one device against a plain array.

use crate::cached::device::{AMPLE, Ask, LINE, Model, Setup, WORD, draw, perform, read_all, setups};
use nvlab_controller::{Background, Cached, Controller, ControllerError, Powered};
use nvlab_units::{Lpa, Rng, Span, Time};

#[test]
fn every_setup_behaves_like_an_array() {
    let (mut hits, mut backs, mut ahead) = (0, 0, 0);
    for (seed, setup) in setups(AMPLE).into_iter().enumerate() {
        let mut device = setup.device();
        let lines = device.capacity_units();
        let (mut model, mut rng) = (Model::new(lines), Rng::stream(seed as u64, "model"));
        let mut now = Time::ZERO;
        for nth in 0..3000 {
            let end = perform(&mut device, &mut model, now, draw(&mut rng, lines, nth)).unwrap();
            // Sometimes before the request before is done.
            now = if rng.chance(0.5) { end } else { now + Span::from_ns(rng.below(3000)) };
            if nth % 64 == 0 {
                device.check();
                assert!(device.dirty_lines() <= setup.dirty_lines_max);
                device.settle(now);
            }
        }
        now = device.idle_at(now).unwrap();
        let found = read_all(&mut device, now);
        assert!(
            (0..).zip(&found).all(|(word, &found)| found == model.current(word)),
            "seed {seed}, {setup:?}"
        );
        let stats = device.stats();
        (hits, backs, ahead) = (hits + stats.hits, backs + stats.written_back, ahead + stats.ahead_used);
        assert!(stats.hits <= stats.loads + stats.stores && stats.ahead_used <= stats.fetched_ahead);
        // What an orderly end leaves is all behind the cache.
        now = device.power_down(now).unwrap();
        assert_eq!(device.dirty_lines(), 0);
        let mut behind = vec![0; LINE as usize];
        for line in 0..lines {
            let units = nvlab_units::Extent { start: Lpa(line * setup.line_units), count: setup.line_units };
            device.behind_mut().read(now, units, &mut behind).unwrap();
            let first = u64::from_le_bytes(behind[..8].try_into().unwrap());
            assert_eq!(first, model.current(line * LINE / WORD), "line {line}");
        }
    }
    assert!(hits > 10_000 && backs > 5_000 && ahead > 20, "{hits} {backs} {ahead}");
}

#[test]
fn the_same_requests_give_the_same_device() {
    let setup = setups(AMPLE)[8];
    let run = || {
        let mut device = setup.device();
        let (mut model, mut rng) = (Model::new(device.capacity_units()), Rng::new(7));
        let mut now = Time::ZERO;
        for nth in 0..500 {
            let ask = draw(&mut rng, device.capacity_units(), nth);
            now = perform(&mut device, &mut model, now, ask).unwrap();
        }
        (now, *device.stats(), device.behind().nand().stats())
    };
    assert_eq!(run(), run());
}

#[test]
fn bytes_past_the_end_and_impossible_caches_are_refused() {
    let setup = setups(AMPLE)[0];
    let mut device = setup.device();
    let capacity = device.capacity_bytes();
    let outside = ControllerError::OutsideWindow { offset: capacity - 4, bytes: 8, capacity };
    assert_eq!(device.load(Time::ZERO, capacity - 4, 8, &mut [0; 8]).unwrap_err(), outside);
    assert!(device.store(Time::ZERO, u64::MAX, 8, &[0; 8]).is_err());
    let wrong = |change: fn(&mut Setup)| {
        let mut changed = setup;
        change(&mut changed);
        Cached::new(changed.cached(), setup.behind(), setup.ram()).unwrap_err()
    };
    assert!(wrong(|s| s.sets = 3).contains("power of two"));
    assert!(wrong(|s| s.ways = 300).contains("from 1 to 255"));
    assert!(wrong(|s| s.ways = 60).contains("too small"));
    assert!(wrong(|s| s.prefetch_lines = 1).contains("evict each other"));
    assert!(wrong(|s| s.dirty_lines_max = 0).contains("dirty"));
}

/// A line that is replaced is read again as it was changed.
#[test]
fn a_dirty_line_that_is_replaced_is_written_back() {
    let setup = Setup { prefetch_lines: 0, ..setups(AMPLE)[3] };
    let mut device = setup.device();
    let mut model = Model::new(device.capacity_units());
    let mut now = perform(&mut device, &mut model, Time::ZERO, Ask::Store(0, 1)).unwrap();
    // One line for each set: the next of the same set replaces the first.
    now = perform(&mut device, &mut model, now, Ask::Load(8 * 8, 1)).unwrap();
    assert_eq!(device.stats().written_back, 1);
    perform(&mut device, &mut model, now, Ask::Load(0, 1)).unwrap();
}
