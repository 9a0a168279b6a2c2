//! Whether a lifetime includes the cost of cleaning.
//!
//! A lifetime follows from the bytes the flash programmed for each byte of the host's. Programs use up erased space,
//! and cleaning regains it by moving live data: in a steady state a block is erased for every block that is filled. A
//! run that fills blocks and erases few uses space that was erased before it began. The copies that regain that space
//! later are not among its programs: its write amplification is too low, and its lifetime too long by an unknown
//! factor.
//!
//! So the share of the filled blocks that were erased again shows whether a lifetime can be used. One erase is left
//! out, because which erase falls in a run is an accident: at [`ENOUGH`], the figure is based on ten erases or more,
//! and at most a tenth of the filled space has not been regained.

use super::MediumResult;

/// With a smaller share the cost of cleaning is not in a lifetime.
pub const ENOUGH: f64 = 0.9;

/// The share of the blocks that were used up in a run that it erased again, one erase left out; above 1 it is 1. `None` if nothing was
/// used up.
pub fn regained(media: &[MediumResult]) -> Option<f64> {
    let (filled, erased) = blocks(media);
    (filled > 0.0).then(|| (erased.saturating_sub(1) as f64 / filled).min(1.0))
}

/// Blocks that a run used up, and blocks it erased.
fn blocks(media: &[MediumResult]) -> (f64, u64) {
    let filled = media.iter().map(|medium| medium.cycles * f64::from(medium.blocks)).sum();
    (filled, media.iter().map(|medium| medium.erases).sum())
}

/// A caveat to the lifetime, if it does not include the cost of cleaning.
pub fn caveat(media: &[MediumResult]) -> Option<String> {
    regained(media).filter(|share| *share < ENOUGH)?;
    let (filled, erased) = blocks(media);
    let why = match erased as f64 >= ENOUGH * filled {
        true => "too few to tell",
        false => "the others were erased before the run",
    };
    let (filled, plural) = (filled.ceil(), if filled <= 1.0 { "" } else { "s" });
    Some(format!(
        "the lifetime does not include the cost of cleaning ({filled} block{plural} filled, {erased} erased: {why}); run longer, or \
         start with a device in steady state"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(filled: u64, erased: u64) -> [MediumResult; 1] {
        let cycles = filled as f64 / 1000.0;
        [MediumResult { blocks: 1000, cycles, erases: erased, ..MediumResult::default() }]
    }

    #[test]
    fn ten_erases_and_nine_tenths_of_what_was_filled() {
        for (filled, erased, told) in [
            (100, 0, true),
            (1000, 900, true),
            (1000, 901, false),
            (1200, 1200, false),
            (9, 9, true),
            (9, 10, false),
            (10, 10, false),
        ] {
            let media = with(filled, erased);
            let found = regained(&media);
            assert_eq!(caveat(&media).is_some(), told, "{filled} filled, {erased} erased: {found:?}");
        }
        assert_eq!((regained(&with(0, 0)), caveat(&with(0, 0))), (None, None));
        assert!(caveat(&with(1, 0)).unwrap().contains("(1 block filled, 0 erased: the others"));
    }
}
