//! When requests arrive.

use crate::{Pacing, Span, Time};
use nvlab_units::Rng;

/// When requests arrive, as configured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// When an earlier one completes: `depth` are outstanding.
    Closed {
        /// The number of outstanding requests.
        depth: u32,
    },
    /// Poisson arrivals.
    Poisson {
        /// Mean number per second.
        per_second: f64,
    },
    /// Equal gaps, the first at zero.
    Regular {
        /// Number per second.
        per_second: f64,
    },
}

/// The stream of arrival times.
#[derive(Clone, Debug)]
pub struct Arrivals {
    pace: Pace,
    rng: Rng,
    now_ps: u64,
    limit_ps: u64,
    count: u64,
    /// Gap in 2^-20 ps, so that a million requests do not drift by rounding.
    gap_q20: u128,
    gap_ps: f64,
}

impl Arrivals {
    /// The arrival times of `pace` up to `limit`.
    pub fn new(pace: Pace, limit: Option<Span>, seed: u64) -> Arrivals {
        let gap_ps = match pace {
            Pace::Closed { .. } => 0.0,
            Pace::Poisson { per_second } | Pace::Regular { per_second } => {
                assert!(per_second > 0.0, "{per_second} requests per second");
                1e12 / per_second
            }
        };
        Arrivals {
            pace,
            rng: Rng::stream(seed, "arrivals"),
            now_ps: 0,
            limit_ps: limit.map_or(u64::MAX, Span::ps),
            count: 0,
            gap_q20: (gap_ps * (1u64 << 20) as f64).round() as u128,
            gap_ps,
        }
    }

    /// The next arrival time; `None` beyond the limit (or beyond 213 days).
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Time> {
        match self.pace {
            Pace::Closed { .. } => return Some(Time::ZERO),
            Pace::Poisson { .. } => {
                // A saturating cast: a gap of more than 213 days ends the workload below.
                let gap = self.rng.exponential(self.gap_ps) as u64;
                self.now_ps = self.now_ps.checked_add(gap).filter(|&now| now < self.limit_ps)?;
            }
            Pace::Regular { .. } => {
                // Rounded to the nearest picosecond, so that requests due at whole seconds arrive exactly then.
                let now = (self.gap_q20.checked_mul(self.count as u128)? + (1 << 19)) >> 20;
                self.now_ps = u64::try_from(now).ok().filter(|&now| now < self.limit_ps)?;
                self.count += 1;
            }
        }
        Some(Time::from_ps(self.now_ps))
    }

    /// The last arrival time.
    pub(super) fn now(&self) -> Time {
        Time::from_ps(self.now_ps)
    }

    pub(crate) fn pacing(&self) -> Pacing {
        match self.pace {
            Pace::Closed { depth } => Pacing::Closed { depth },
            _ => Pacing::Open,
        }
    }
}
