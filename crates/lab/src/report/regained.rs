//! Whether what cleaning costs is in a lifetime.
//!
//! A lifetime follows from what the flash programmed for each byte of the host's. Programs use up erased space, and cleaning regains it,
//! by moving what is live: in a steady state a block is erased for every block that is filled. A run that fills blocks and erases few lives on
//! space that was erased before it began. The copies by which that space is regained later are not among its programs: its write
//! amplification is too low, and its lifetime too long by an unknown factor.
//!
//! So the share of the filled blocks that were erased again says whether a lifetime can be used. One erase is left out, because which
//! erase falls into a run is an accident: at [`ENOUGH`], ten erases or more are behind the figure, and at most a tenth of what was
//! filled has not been regained.

use super::number;
use crate::result::RunResult;

/// With a smaller share the cost of cleaning is not in a lifetime.
pub(crate) const ENOUGH: f64 = 0.9;

/// The share of the blocks filled in a run that it erased again, one erase left out; above 1 it is 1. `None` if nothing was filled.
pub(crate) fn regained(run: &RunResult) -> Option<f64> {
    let (filled, erased) = blocks(run);
    (filled > 0.0).then(|| (erased.saturating_sub(1) as f64 / filled).min(1.0))
}

/// Blocks that a run filled, or erased before they were full, and blocks it erased.
fn blocks(run: &RunResult) -> (f64, u64) {
    // The cycles of a run are the larger of two counts: blocks filled and blocks erased.
    let filled = run.media.iter().map(|medium| medium.cycles * f64::from(medium.blocks)).sum();
    (filled, run.media.iter().map(|medium| medium.erases).sum())
}

/// What a reader of the lifetime must know, if the cost of cleaning is not in it.
pub fn caveat(run: &RunResult) -> Option<String> {
    regained(run).filter(|share| *share < ENOUGH)?;
    run.lifetime.years?;
    let (filled, erased) = blocks(run);
    let why = match erased as f64 >= ENOUGH * filled {
        true => "too few to say",
        false => "the others were erased before the run",
    };
    Some(format!(
        "the cost of cleaning is not in the lifetime ({} filled, {} erased: {why}); run longer, or begin with a device in its \
         steady state",
        number::things(filled.ceil() as u64, "block"),
        number::count(erased),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use crate::result::MediumResult;

    fn with(filled: u64, erased: u64) -> RunResult {
        let cycles = filled.max(erased) as f64 / 1000.0;
        let medium = MediumResult { blocks: 1000, cycles, erases: erased, ..MediumResult::default() };
        RunResult { media: vec![medium], ..sample::run("ssd-tlc", 1) }
    }

    #[test]
    fn ten_erases_and_nine_tenths_of_what_was_filled() {
        for (filled, erased, told) in [
            (100, 0, true),
            (1000, 900, true),
            (1000, 901, false),
            (1000, 1200, false),
            (9, 9, true),
            (2, 9, true),
            (10, 10, false),
        ] {
            let run = with(filled, erased);
            assert_eq!(
                caveat(&run).is_some(),
                told,
                "{filled} filled, {erased} erased: {:?}",
                regained(&run)
            );
        }
        let mut run = with(0, 0);
        assert_eq!((regained(&run), caveat(&run)), (None, None));
        run = with(100, 0);
        run.lifetime.years = None;
        assert_eq!(caveat(&run), None);
    }
}
