//! Figures that contradict physics or each other, before anything is fitted.

use super::amount::Unit;
use super::what::{Requests, State, What};
use super::{Figure, Figures};

/// Something that cannot be, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// The figures that it is about, by their places among all.
    pub figures: Vec<usize>,
    /// What is wrong.
    pub text: String,
}

/// Cycles that no cell of this kind has been rated for.
const CYCLES_MAX: f64 = 40_000.0;

/// All that cannot be.
pub fn doubts(all: &Figures) -> Vec<Doubt> {
    let mut found = Vec::new();
    for (at, figure) in all.figures.iter().enumerate() {
        found.extend(alone(all, figure).map(|text| Doubt { figures: vec![at], text }));
        for (other, slower) in all.figures.iter().enumerate() {
            if slower.size == figure.size {
                let text = pair(all, figure, slower);
                found.extend(text.map(|text| Doubt { figures: vec![at, other], text }));
            }
        }
    }
    found
}

/// Bytes a second of a rate.
fn bytes_per_s(requests: &Requests, unit: Unit, value: f64) -> f64 {
    if unit == Unit::BytesPerSecond { value } else { value * requests.block_bytes as f64 }
}

fn alone(all: &Figures, figure: &Figure) -> Option<String> {
    let link = all.drive.link;
    let capacity = all.drive.capacities[figure.size] as f64;
    match figure.what {
        What::Rate(requests, unit) => {
            let rate = bytes_per_s(&requests, unit, figure.value);
            (rate > link.bytes_per_s() * (1.0 + figure.tolerance)).then(|| {
                format!(
                    "{}: {} is more than {link} can carry, {}",
                    all.name(figure),
                    Unit::BytesPerSecond.shown(rate),
                    Unit::BytesPerSecond.shown(link.bytes_per_s())
                )
            })
        }
        What::Endurance(_, years) => {
            let bytes = years.map_or(figure.value, |years| figure.value * capacity * 365.25 * years);
            (bytes > CYCLES_MAX * capacity).then(|| {
                format!(
                    "{}: {} are {:.0} times the capacity: no such cell is rated for so many cycles",
                    all.name(figure),
                    Unit::Bytes.shown(bytes),
                    bytes / capacity
                )
            })
        }
        What::Cache => (figure.value > capacity / f64::from(all.drive.cells.bits())).then(|| {
            format!(
                "{}: {} are more than the whole drive holds in SLC mode",
                all.name(figure),
                Unit::Bytes.shown(figure.value)
            )
        }),
        What::Latency(_) => None,
    }
}

/// What a rate and a latency, or two rates, of one drive say together.
fn pair(all: &Figures, rate: &Figure, other: &Figure) -> Option<String> {
    let What::Rate(fast, unit) = rate.what else { return None };
    let slack = 1.0 + rate.tolerance + other.tolerance;
    match other.what {
        What::Latency(slow) => {
            let same = (fast.is_write, fast.is_sequential, fast.mixed, fast.block_bytes)
                == (slow.is_write, slow.is_sequential, slow.mixed, slow.block_bytes);
            let per_s = bytes_per_s(&fast, unit, rate.value) / fast.block_bytes as f64;
            let most = f64::from(fast.depth) / other.value;
            // A request alone waits for nothing: none is faster with others beside it.
            (same && slow.depth == 1 && per_s > most * slack).then(|| {
                format!(
                    "{}: {} with {} in flight would need a latency of {}, and {} is stated",
                    all.name(rate),
                    Unit::PerSecond.shown(per_s),
                    fast.depth,
                    Unit::Seconds.shown(f64::from(fast.depth) / per_s),
                    Unit::Seconds.shown(other.value)
                )
            })
        }
        What::Rate(slow, other_unit) => {
            let same = (fast.is_write, fast.is_sequential, fast.mixed, fast.block_bytes, fast.depth, unit)
                == (slow.is_write, slow.is_sequential, slow.mixed, slow.block_bytes, slow.depth, other_unit);
            let is_order = slow.state == State::Cache && fast.state != State::Cache && fast.is_write;
            (same && is_order && rate.value > other.value * slack)
                .then(|| format!("{} is faster than {}", all.name(rate), all.name(other)))
        }
        _ => None,
    }
}
