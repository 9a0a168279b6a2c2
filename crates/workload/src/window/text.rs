//! Keys shared by programs on a memory.

use crate::WorkloadError;
use crate::generator::{Limits, Pace, hot_zone};
use crate::words::Words;
use nvlab_units::quantity::{self, QuantityError};

/// `hot=20/80`.
pub(crate) fn hot(words: &Words) -> Result<Option<(f64, f64)>, WorkloadError> {
    let Some(value) = words.value("hot") else { return Ok(None) };
    let allowed = "SPACE/ACCESSES in percent, both above 0 and below 100, as in 20/80: \
                   20 % of the space gets 80 % of the accesses";
    hot_zone(value).map(Some).ok_or_else(|| words.wrong("hot", allowed))
}

/// A share; nothing of it may be written `0`.
pub(crate) fn share(text: &str) -> Result<f64, QuantityError> {
    match text {
        "0" => Ok(0.0),
        text => quantity::fraction(text),
    }
}

/// `rate=` and `arrivals=`; without a rate a closed loop of one processor.
pub(crate) fn pace(words: &Words) -> Result<Pace, WorkloadError> {
    let rate = words.quantity("rate", quantity::rate_per_second)?;
    match (rate, words.value("arrivals")) {
        (None, None) => Ok(Pace::Closed { depth: 1 }),
        (None, Some(_)) => Err(words.error("arrivals= needs rate=, as in rate=10k/s")),
        (Some(per_second), _) if per_second <= 0.0 => Err(words.wrong("rate", "more than 0 per second")),
        (Some(per_second), None | Some("poisson")) => Ok(Pace::Poisson { per_second }),
        (Some(per_second), Some("regular")) => Ok(Pace::Regular { per_second }),
        (Some(_), Some(_)) => Err(words.wrong("arrivals", "poisson or regular")),
    }
}

/// `until=60s` or a number of `things`.
pub(crate) fn limits(words: &Words, things: &str) -> Result<Limits, WorkloadError> {
    let mut limits = Limits::default();
    let Some(value) = words.value("until") else { return Ok(limits) };
    match value.strip_suffix(things) {
        Some(count) => match quantity::count(count.trim()) {
            Ok(count) => limits.requests = Some(count),
            Err(error) => return Err(words.error(format!("until: {error}"))),
        },
        None => match quantity::span(value) {
            Ok(time) => limits.time = Some(time),
            Err(_) => {
                return Err(words.wrong("until", &format!("a time (60 s) or a number (1e6 {things})")));
            }
        },
    }
    Ok(limits)
}
