//! Random requests on a device and on the model: contents, states and write pointers are the same at every step.

use super::device::setups;
use super::model::Model;
use nvlab_controller::{Background, Powered};
use nvlab_units::{Rng, Time};

#[test]
fn zones_are_as_the_model_has_them() {
    for (index, setup) in (0..).zip(setups()) {
        for seed in 0..4 {
            let mut rng = Rng::stream(seed, "zones");
            let (mut device, mut model) = (setup.device(), Model::new(&setup));
            let mut now = Time::ZERO;
            for nth in 0..1500 {
                let ask = model.draw(&mut rng);
                // Some are issued before the last one is done.
                let at = now;
                let end = model.perform(&mut device, at, ask);
                now = if rng.chance(0.7) { end } else { now };
                if nth % 100 == 0 {
                    device.check();
                    device.settle(now);
                }
            }
            let stats = device.stats();
            assert!(stats.resets > 20 && stats.finishes > 5, "set-up {index}: {stats:?}");
            let down = device.power_down(now).unwrap();
            let (device, _) = device.power_cycle(down).unwrap();
            device.check();
        }
    }
}
