//! Where a run ends: `60 s`, `1e6 io`, `2 TiB`, `3 x capacity`, `2%`, `write.p99 within 5%`.

use crate::metric;
use crate::{Figure, Goal, Limit};
use nvlab_units::Span;
use nvlab_units::quantity::{self, display_bytes, display_fraction};
use nvlab_workload::Workload;
use std::fmt;
use std::str::FromStr;

/// Where a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// After this much simulated time.
    Time(Span),
    /// After this many requests.
    Requests(u64),
    /// After this many bytes, read and written.
    Bytes(u64),
    /// After the capacity was written this many times.
    Capacities(f64),
    /// When half of the 95 % interval of a figure over its value is so small. `None`: of write amplification; of requests per
    /// second, if the workload hardly writes.
    Within(Option<Figure>, f64),
}

/// A run until a figure is precise ends in any case when the capacity was written this many times, or after this many
/// requests.
const CAPACITIES_MAX: f64 = 100.0;
const REQUESTS_MAX: u64 = 1_000_000_000;

/// Ends a workload that hardly writes and has no end of its own.
const REQUESTS_DEFAULT: u64 = 1_000_000;
/// A workload that writes less than this share of its requests is ended by their number.
const WRITES_MIN: f64 = 0.1;

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Until, String> {
        let text = text.trim();
        let nothing = |until| format!("`{text}` is not a limit: the run would serve nothing{until}");
        let until = if text.ends_with('%') {
            within(text)?
        } else if let Some(number) = text.strip_suffix("io") {
            let count = quantity::count(number.trim_end());
            Until::Requests(count.map_err(|error| format!("`{text}` is not a limit: {error}"))?)
        } else if let Some(number) = text.strip_suffix("capacity") {
            let number = number.trim_end().strip_suffix('x').unwrap_or(number).trim_end();
            match number.parse::<f64>() {
                Ok(times) if times.is_finite() && times >= 0.0 => Until::Capacities(times),
                _ => {
                    return Err(format!(
                        "`{text}` is not a limit: write a number of capacities, e.g. 3 x capacity"
                    ));
                }
            }
        } else if let Some(span) = time(text)? {
            Until::Time(span)
        } else if let Ok(bytes) = quantity::bytes(text) {
            Until::Bytes(bytes)
        } else {
            return Err(format!(
                "`{text}` is not a limit: write simulated time (60 s), requests (1e6 io), data read and written \
             (2 TiB), data written (3 x capacity), or the precision of a metric (2%, write.p99 within 5%)"
            ));
        };
        match until {
            Until::Time(Span::ZERO) | Until::Requests(0) | Until::Bytes(0) => Err(nothing("")),
            Until::Capacities(times) if times <= 0.0 => Err(nothing("")),
            until => Ok(until),
        }
    }
}

/// A time, if the text is one; an error if it is longer than simulated time.
fn time(text: &str) -> Result<Option<Span>, String> {
    match quantity::span(text) {
        Ok(span) => Ok(Some(span)),
        Err(error) if error.is_too_large() => {
            Err(format!("`{text}` is not a limit: {}; {}", error.problem, error.allowed))
        }
        Err(_) => Ok(None),
    }
}

/// `waf within 2%`, or `2%` alone.
fn within(text: &str) -> Result<Until, String> {
    let wrong = |why: String| format!("`{text}` is not a limit: {why}");
    let (name, share) = match text.split_once("within") {
        Some((name, share)) => (Some(name.trim()), share.trim()),
        None => (None, text),
    };
    let share = match quantity::fraction(share) {
        Ok(share) if share > 0.0 && share < 1.0 => share,
        Ok(_) => return Err(wrong("write a share between 0 % and 100 %".into())),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let figure = |name| {
        let metric = metric::find(name).map_err(wrong)?;
        let known = Figure::of_metric(&metric.name);
        known.ok_or_else(|| {
            wrong(format!("the precision of {} cannot be estimated from one run", metric.name))
        })
    };
    Ok(Until::Within(name.map(figure).transpose()?, share))
}

impl fmt::Display for Until {
    /// `for 60 s`, `until 1000000 requests`, `until 3 x capacity is written`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Time(span) => write!(f, "for {span}"),
            Until::Requests(1) => f.write_str("until 1 request"),
            Until::Requests(count) => write!(f, "until {count} requests"),
            Until::Bytes(bytes) => write!(f, "until {} are read and written", display_bytes(*bytes)),
            Until::Capacities(times) => write!(f, "until {times} x capacity is written"),
            Until::Within(..) => write!(f, "until {}", self.argument()),
        }
    }
}

impl Until {
    /// In the form `--until` accepts.
    pub fn argument(self) -> String {
        match self {
            Until::Time(span) => quantity::exact_span(span),
            Until::Requests(count) => format!("{count} io"),
            Until::Bytes(bytes) => quantity::exact_bytes(bytes),
            Until::Capacities(times) => format!("{times} x capacity"),
            Until::Within(figure, share) => {
                let name = figure.map_or(String::new(), |figure| format!("{} within ", figure.metrics()[0]));
                format!("{name}{}", display_fraction(share))
            }
        }
    }

    fn limit(self, capacity_bytes: u64, writes: bool) -> Limit {
        match self {
            Until::Within(figure, within) => {
                let usual = if writes { Figure::Waf } else { Figure::Iops };
                let goal = Some(Goal { figure: figure.unwrap_or(usual), within });
                let all = Until::Capacities(CAPACITIES_MAX).limit(capacity_bytes, writes);
                Limit { goal, requests: REQUESTS_MAX, ..all }
            }
            Until::Time(time) => Limit { time, ..Limit::NONE },
            Until::Requests(requests) => Limit { requests, ..Limit::NONE },
            Until::Bytes(bytes) => Limit { bytes, ..Limit::NONE },
            // A share of a capacity is at least one byte, so that the run serves something.
            Until::Capacities(times) => {
                let written_bytes = ((capacity_bytes as f64 * times) as u64).max(1);
                Limit { written_bytes, ..Limit::NONE }
            }
        }
    }
}

/// Where a run will end, and what it must serve until then.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Promise {
    pub limit: Limit,
    /// How many requests that is, if nothing else can end it earlier.
    pub requests: Option<u64>,
    /// For people: `to its end`, `until 1 x capacity is written`.
    pub about: String,
}

impl Promise {
    /// Where a run of `workload` ends. `write_share` of its requests write; what it counts as one is called `unit`.
    pub fn new(
        until: Option<Until>,
        workload: &dyn Workload,
        write_share: f64,
        unit: &str,
        capacity_bytes: u64,
    ) -> Promise {
        let until = match until {
            Some(until) => Some(until),
            None if workload.has_end() => None,
            None if write_share >= WRITES_MIN => Some(Until::Capacities(1.0)),
            None => Some(Until::Requests(REQUESTS_DEFAULT)),
        };
        let mut limit =
            until.map_or(Limit::NONE, |until| until.limit(capacity_bytes, write_share >= WRITES_MIN));
        if let Some(own) = workload.time_limit() {
            limit.time = limit.time.min(own);
        }
        let only_requests = limit == Limit { requests: limit.requests, ..Limit::NONE };
        let requests = match workload.len_hint() {
            _ if !only_requests => None,
            Some(own) => Some(own.min(limit.requests)),
            None => Some(limit.requests).filter(|&requests| requests != u64::MAX),
        };
        let about = match until {
            Some(until) => until.to_string().replace("request", unit),
            None => "to its end".to_string(),
        };
        Promise { limit, requests, about }
    }
}
