//! A phase-change memory is found again in its store as it was left, its wear with it.

use super::pram;
use crate::kept::Kept;
use nvlab_medium::pcm::{Pcm, PcmConfig, Selection, Tear};
use nvlab_medium::{InPlace, PowerCut};
use nvlab_units::{Rng, Span, Time};

#[test]
fn a_memory_is_found_again_in_its_store() {
    for seed in 0..40 {
        // Lines that do not fill the capacity: their counts lie behind it.
        let selection = Selection::Differing { share: 1.0 };
        let config = PcmConfig { capacity_bytes: 500, ..pram(selection, Tear::Atomic, 1, seed) };
        let store = Kept::new(Pcm::<Kept>::store_bytes(&config));
        let mut pcm = Pcm::new(config.clone(), store.clone());
        let mut rng = Rng::new(seed);
        let mut now = Time::ZERO;
        for step in 0..60 {
            let bytes = 1 + rng.below(60);
            let offset = rng.below(501 - bytes);
            let data = vec![rng.bits() as u8; bytes as usize];
            pcm.write(now, offset, bytes, &data).unwrap();
            if rng.chance(0.1) {
                pcm.cut(now);
            }
            now += Span::from_us(rng.below(1000));
            let mut again = Pcm::reopen(config.clone(), store.clone());
            let (mut there, mut here) = ([0; 500], [1; 500]);
            again.read(Time::ZERO, 0, 500, &mut there).unwrap();
            pcm.clone().read(now, 0, 500, &mut here).unwrap();
            assert_eq!(there, here, "seed {seed}, step {step}");
            assert_eq!(again.wear(), pcm.wear(), "seed {seed}, step {step}");
        }
        assert!(pcm.wear().iter().any(|&writes| writes > 1), "seed {seed}: nothing was worn");
    }
}
