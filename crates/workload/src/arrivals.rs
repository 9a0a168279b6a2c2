//! When requests or transactions arrive, and after how many the workload ends.

use crate::words::Words;
use crate::{Pacing, Span, Time, WorkloadError};
use nvlab_units::{Rng, quantity};

/// When a workload ends; without any limit, never.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// After this many requests, not counting flushes, or transactions.
    pub requests: Option<u64>,
    /// After this many bytes, computed from the mean size.
    pub bytes: Option<u64>,
    /// After this much simulated time; whoever runs a closed loop has to stop it.
    pub time: Option<Span>,
}

impl Limits {
    /// `until=60s` or a number of `things`.
    pub(crate) fn parse(words: &Words, things: &str) -> Result<Limits, WorkloadError> {
        let Some(value) = words.value("until") else { return Ok(Limits::default()) };
        if let Some(count) = value.strip_suffix(things) {
            let count = quantity::count(count.trim());
            let requests = Some(count.map_err(|error| words.error(format!("until: {error}")))?);
            return Ok(Limits { requests, ..Limits::default() });
        }
        let allowed = || words.wrong("until", &format!("a time (60 s) or a number (1e6 {things})"));
        let time = quantity::span(value).map_err(|error| match error.is_too_large() {
            true => words.error(format!("until: {error}")),
            false => allowed(),
        })?;
        Ok(Limits { time: Some(time), ..Limits::default() })
    }
}

/// What `qd=`, `rate=` and `arrivals=` say; a rate is above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// When an earlier one completes: `depth` are outstanding.
    Closed {
        /// At least 1.
        depth: u32,
    },
    /// An open loop with exponentially distributed gaps.
    Poisson {
        /// Mean number of arrivals per second.
        per_second: f64,
    },
    /// An open loop with equal gaps, the first arrival at zero.
    Regular {
        /// Arrivals per second.
        per_second: f64,
    },
}

impl Pace {
    /// `qd=`, or `rate=` (such as `example`) and `arrivals=`; without them a closed loop of depth 1.
    pub(crate) fn parse(words: &Words, example: &str) -> Result<Pace, WorkloadError> {
        let depth = words.number("qd", 1..=65_536)?;
        let rate = words.quantity("rate", quantity::rate_per_second)?;
        match (rate, words.value("arrivals")) {
            (None, None) => Ok(Pace::Closed { depth: depth.unwrap_or(1) as u32 }),
            (None, Some(_)) => Err(words.error(format!("arrivals= needs rate=, e.g. rate={example}"))),
            (Some(_), _) if depth.is_some() => {
                Err(words.error("qd= is a closed loop and rate= an open one: give only one"))
            }
            (Some(per_second), _) if per_second <= 0.0 => Err(words.wrong("rate", "more than 0 per second")),
            (Some(per_second), None | Some("poisson")) => Ok(Pace::Poisson { per_second }),
            (Some(per_second), Some("regular")) => Ok(Pace::Regular { per_second }),
            (Some(_), Some(_)) => Err(words.wrong("arrivals", "poisson or regular")),
        }
    }
}

impl Pace {
    /// The pace of all threads together, if a closed loop has this depth in each of them.
    pub(crate) fn of_each(self, threads: u32) -> Pace {
        match self {
            Pace::Closed { depth } => Pace::Closed { depth: depth * threads },
            open => open,
        }
    }
}

/// Draws arrival times: they never decrease, and are all zero in a closed loop.
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
    /// At the end of simulated time they begin again at its beginning.
    restarts: bool,
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
            restarts: false,
        }
    }

    /// Takes the limit away; if it `restarts`, what comes at the end of simulated time comes at its beginning.
    pub(crate) fn go_on(&mut self, restarts: bool) {
        (self.limit_ps, self.restarts) = (u64::MAX, restarts);
    }

    /// The next arrival time; `None` beyond the limit (or beyond 213 days).
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Time> {
        let next = self.next_within();
        if next.is_none() && self.restarts {
            (self.now_ps, self.count) = (0, 0);
            return Some(Time::ZERO);
        }
        next
    }

    #[inline]
    fn next_within(&mut self) -> Option<Time> {
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
    pub(crate) fn now(&self) -> Time {
        Time::from_ps(self.now_ps)
    }

    pub(crate) fn pace(&self) -> Pace {
        self.pace
    }

    pub(crate) fn pacing(&self) -> Pacing {
        match self.pace {
            Pace::Closed { depth } => Pacing::Closed { depth },
            _ => Pacing::Open,
        }
    }
}
