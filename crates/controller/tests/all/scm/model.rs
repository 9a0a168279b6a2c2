//! Against a plain array: random requests, in any state of the gaps.

use crate::array::{Ask, Model, draw, perform, read_all};
use crate::scm::device::setups;
use nvlab_controller::{Background, Controller, Powered, Scm};
use nvlab_medium::{InPlace, PowerCut};
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

fn run<M: InPlace + PowerCut>(mut device: Scm<M>, seed: u64) -> Scm<M> {
    let units = device.capacity_units();
    let mut model = Model::new(units);
    let mut rng = Rng::stream(seed, "model");
    let mut now = Time::ZERO;
    for _ in 0..4000 {
        let ask = match draw(&mut rng, units) {
            // A device that ignores trims returns what was there.
            Ask::Trim(extent) if !device.trims_last() => {
                let end = device.trim(now, extent).unwrap().end;
                assert!(end.since(now) < Span::from_ns(100));
                continue;
            }
            ask => ask,
        };
        let end = perform(&mut device, &mut model, now, ask).unwrap();
        now = if rng.chance(0.5) { end } else { now + Span::from_ns(rng.below(500)) };
        device.settle(now);
    }
    read_all(&mut device, &model, now, &|| format!("seed {seed}"));
    device
}

#[test]
fn every_setup_behaves_like_an_array() {
    for (seed, setup) in setups().iter().enumerate() {
        let plain = run(setup.plain(), seed as u64);
        assert!(plain.stats().written_units > 8000);
        assert_eq!(plain.stats().trimmed_units > 0, setup.trim);
        let levelled = run(setup.levelled(), seed as u64);
        let moved: u64 = levelled.memories().map(|memory| memory.moved()).sum();
        assert!(moved > 1000, "the gaps moved only {moved} times: {setup:?}");
    }
}

#[test]
fn what_is_outside_is_refused() {
    let mut device = setups()[0].plain();
    let beyond = Extent { start: Lpa(device.capacity_units() - 1), count: 2 };
    assert!(device.read(Time::ZERO, beyond, &mut []).is_err());
    assert!(device.write(Time::ZERO, beyond, &[]).is_err());
    assert!(device.trim(Time::ZERO, beyond).is_err());
}

#[test]
fn impossible_configurations_are_refused() {
    let setup = &setups()[3];
    let build = |change: &dyn Fn(&mut nvlab_controller::scm::ScmConfig)| {
        let mut config = setup.config(4096);
        change(&mut config);
        Scm::new(config, vec![setup.pcm(|_| ()), setup.pcm(|_| ())]).map(|_| ())
    };
    assert_eq!(build(&|_| ()), Ok(()));
    assert!(build(&|config| config.logical_units += 1).unwrap_err().contains("do not fit"));
    assert!(build(&|config| config.split_bytes = 48).unwrap_err().contains("whole number of units"));
    assert!(build(&|config| config.tags = 0).unwrap_err().contains("tags"));
}
