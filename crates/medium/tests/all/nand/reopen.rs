//! An array is found again in its store as it was left, also after a power cut.

use super::{BLOCK, UNIT, config};
use crate::kept::Kept;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::flash::{CellRules, Nand, SPARE_BYTES};
use nvlab_medium::{MediumError, PowerCut};
use nvlab_units::{BlockId, Ppa, Rng, Span, Time};

/// A unit's bytes, its block's erases, and whether that is bad.
type Seen = Result<([u8; UNIT], u32, bool), MediumError>;

/// Everything that can be asked of an array without time.
fn seen(nand: &Nand<Kept>) -> Vec<Seen> {
    let units = nand.geometry().units() as u32;
    let look = |unit: u32| {
        let block = nand.geometry().block_of(Ppa(unit));
        let (mut data, mut spare) = ([0; UNIT], [0; SPARE_BYTES]);
        nand.peek(Ppa(unit), &mut data, &mut spare)?;
        Ok((data, nand.cells().erase_count(block), nand.cells().is_bad(block)))
    };
    (0..units).map(look).collect()
}

#[test]
fn an_array_is_found_again_in_its_store() {
    for seed in 0..200 {
        let rules = if seed % 2 == 0 { CellRules::Nand } else { CellRules::NandAnyOrder };
        let config = config(rules, 2, seed);
        let store = Kept::new(Nand::<Kept>::store_bytes(&config.geometry));
        let mut nand = Nand::new(config.clone(), store.clone());
        let mut rng = Rng::new(seed);
        let mut now = Time::ZERO;
        for step in 0..60u8 {
            let block = BlockId(rng.below(2) as u32);
            match rng.below(12) {
                0 => drop(nand.erase(now, block)),
                1 => nand.cut(now),
                2 if block != BLOCK => nand.mark_bad(block),
                _ => {
                    let (data, spare) = ([step; 2 * UNIT], [step; 2 * SPARE_BYTES]);
                    let page = match rules {
                        CellRules::NandAnyOrder => rng.below(8) as u32,
                        _ => nand.pages_written(block),
                    };
                    // A page that is taken, or a block that is bad, is refused and nothing changes.
                    let _ = nand.program(now, block, page, 1, Payload::new(&data, &spare), false);
                }
            }
            now += Span::from_us(rng.below(1000));
            let again = Nand::reopen(config.clone(), store.clone(), None);
            assert_eq!(seen(&again), seen(&nand), "seed {seed}, step {step}");
            for block in [BlockId(0), BLOCK] {
                assert_eq!(again.cells().erase_count(block), nand.cells().erase_count(block));
                assert_eq!(again.cells().is_bad(block), nand.cells().is_bad(block));
                assert_eq!(again.pages_written(block), nand.pages_written(block), "seed {seed}, {step}");
            }
        }
    }
}
