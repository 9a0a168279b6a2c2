//! Zones: shares of the accesses go to shares of the space, evenly within each. Hot/cold is two of them.

use super::{Ranks, Scatter};
use crate::WorkloadError;
use crate::words::Words;
use nvlab_units::Rng;

/// One zone: weights, not normalized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Share of the accesses; the shares of all zones need not sum to 1, they are weights.
    pub accesses: f64,
    /// Share of the space: a weight too.
    pub space: f64,
}

impl Zone {
    /// A share `accesses` of the accesses to a share `space` of the space, the rest to the rest.
    pub(crate) fn hot_cold(space: f64, accesses: f64) -> [Zone; 2] {
        [Zone { accesses, space }, Zone { accesses: 1.0 - accesses, space: 1.0 - space }]
    }
}

/// `hot=20/80`: the share of the space and the share of the accesses it receives.
pub(crate) fn hot(words: &Words) -> Result<Option<(f64, f64)>, WorkloadError> {
    let Some(value) = words.value("hot") else { return Ok(None) };
    let percent = |text: &str| {
        let number: f64 = text.trim().trim_end_matches('%').trim().parse().ok()?;
        (number > 0.0 && number < 100.0).then_some(number / 100.0)
    };
    let shares = value.split_once('/').and_then(|(space, rest)| Some((percent(space)?, percent(rest)?)));
    let allowed = "SPACE/ACCESSES in percent, both above 0 and below 100, e.g. 20/80: \
                   20 % of the space gets 80 % of the accesses";
    shares.map(Some).ok_or_else(|| words.wrong("hot", allowed))
}

#[derive(Clone, Copy, Debug)]
struct Part {
    /// 64 random bits below this (and not below the previous limit) select this zone.
    below: u64,
    start: u64,
    slots: u64,
}

/// Addresses by zone, in the order given from the first slot on.
#[derive(Clone, Debug)]
pub struct Zones {
    rng: Rng,
    parts: Vec<Part>,
    scatter: Option<Scatter>,
}

impl Zones {
    /// Over `0..slots`. Every zone has at least one slot. Panics if there are fewer slots than zones, or no zone
    /// has accesses.
    pub fn new(slots: u64, zones: &[Zone], scatter: bool, seed: u64) -> Zones {
        assert!(!zones.is_empty() && slots >= zones.len() as u64, "{} zones in {slots} slots", zones.len());
        let all_accesses: f64 = zones.iter().map(|zone| zone.accesses).sum();
        let all_space: f64 = zones.iter().map(|zone| zone.space).sum();
        let (mut accesses, mut space, mut start) = (0.0, 0.0, 0);
        let mut parts = Vec::new();
        for (index, zone) in zones.iter().enumerate() {
            accesses += zone.accesses / all_accesses;
            space += zone.space / all_space;
            let zones_left = (zones.len() - 1 - index) as u64;
            let end = ((slots as f64 * space).round() as u64).clamp(start + 1, slots - zones_left);
            let end = if zones_left == 0 { slots } else { end };
            parts.push(Part { below: (accesses * (1u128 << 64) as f64) as u64, start, slots: end - start });
            start = end;
        }
        // The last zone with accesses takes the remaining rounding error of the probabilities.
        let last = zones.iter().rposition(|zone| zone.accesses > 0.0).expect("some zone is accessed");
        parts[last..].iter_mut().for_each(|part| part.below = u64::MAX);
        parts.truncate(last + 1);
        let scatter = scatter.then(|| Scatter::new(slots, 0));
        Zones { rng: Rng::stream(seed, "addresses"), parts, scatter }
    }
}

impl Ranks for Zones {
    #[inline]
    fn rank(&mut self) -> u64 {
        let bits = self.rng.bits();
        let last = &self.parts[self.parts.len() - 1];
        let part = self.parts.iter().find(|part| bits < part.below).unwrap_or(last);
        part.start + self.rng.below(part.slots)
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    #[inline]
    fn slot_of(&self, rank: u64) -> u64 {
        self.scatter.map_or(rank, |scatter| scatter.place(rank))
    }

    fn is_in_order(&self) -> bool {
        self.scatter.is_none()
    }
}
