//! Shrinks a cut that lost something while it still does: to an earlier moment, then to fewer operations.

use super::journal::Journal;
use super::moment::Moment;
use super::replay::Replayer;

/// Most trials: each replays the remaining operations.
const TRIALS_MAX: u32 = 2000;

/// An earlier moment that fails, too, after `passed`, an operation that is known not to fail: bisection. Failing is not
/// always monotone, so an even earlier one may exist.
pub fn earlier<E>(
    failing: Moment,
    passed: u64,
    mut fails: impl FnMut(&Moment) -> Result<bool, E>,
) -> Result<Moment, E> {
    let (mut low, mut found) = (passed, failing);
    while found.operation - low > 1 {
        let middle = Moment { operation: low + (found.operation - low) / 2, ..failing };
        match fails(&middle)? {
            true => found = middle,
            false => low = middle.operation,
        }
    }
    Ok(found)
}

/// The operations up to a moment at which the device breaks its promise, without those that are not needed for that: delta
/// debugging (Zeller and Hildebrandt, TSE 2002), by complements. The last operation stays. When `go_on` returns false, the
/// fewest found so far are returned.
pub fn fewer(
    replayer: &Replayer<'_>,
    journal: &Journal,
    moment: &Moment,
    go_on: impl Fn() -> bool,
) -> (Journal, Moment) {
    let mut trials = 0;
    let mut breaks = |numbers: &[u64]| {
        trials += 1;
        let part = journal.with_only(numbers);
        let moment = Moment { operation: part.len(), ..*moment };
        // A device that does not recover at all is a different failure.
        let broken = replayer.broken(&part, &moment).is_ok_and(|broken| broken.is_some());
        (broken, trials >= TRIALS_MAX || !go_on())
    };
    let mut kept: Vec<u64> = (1..=moment.operation).collect();
    let mut parts = 2;
    'less: while kept.len() > 1 {
        let size = (kept.len() - 1).div_ceil(parts).max(1);
        let mut from = 0;
        while from < kept.len() - 1 {
            let to = (from + size).min(kept.len() - 1);
            let without = [&kept[..from], &kept[to..]].concat();
            let (broken, enough) = breaks(&without);
            match broken {
                true => kept = without,
                false => from = to,
            }
            if enough {
                break 'less;
            }
        }
        if size == 1 {
            break;
        }
        parts = (parts * 2).min(kept.len());
    }
    let part = journal.with_only(&kept);
    let moment = Moment { operation: part.len(), ..*moment };
    (part, moment)
}
