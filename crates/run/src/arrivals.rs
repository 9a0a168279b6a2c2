//! Detects whether the host's queue in front of a device grows. In an open loop requests arrive at their own times,
//! served or not: if more are offered than are served, each waits longer than the one before it, and latency depends
//! on the length of the run.
//!
//! A line is fitted to the latency over the arrival times. If `l` requests a second are offered and `m` served, the
//! request that arrives at `t` waits `t (l - m) / m`: the slope is `s = l / m - 1`, and the queue grows by
//! `l - m = l s / (1 + s)` requests a second. It grows if the line explains the latencies, and rises over the run by
//! at least their mean (a queue that grows from the beginning rises by twice the mean; one in balance does not rise).

use crate::result::{ArrivalsResult, TenantResult};
use nvlab_units::{Span, Time};
use nvlab_workload::{Batch, BlockWorkload, Request};

/// With fewer latencies nothing is said.
const SAMPLES_MIN: f64 = 16.0;
/// Growth by a smaller share of the served requests is ignored.
const SLOPE_MIN: f64 = 0.01;
/// The share of the variance of the latencies that the line must explain.
const EXPLAINED_MIN: f64 = 0.3;

/// The requests of an open loop.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    samples: f64,
    /// Sums over the samples: of times and latencies in seconds, of their squares, and of their products.
    times: f64,
    latencies: f64,
    times_squared: f64,
    latencies_squared: f64,
    products: f64,
    /// When the last one was wanted.
    last: Span,
    waiting: u64,
    /// When the loop was ended, if requests still waited then.
    ended: Span,
}

impl Arrivals {
    /// A request that was wanted at `wanted` since the loop began was done `latency` later; one in a few dozens will do, and
    /// the last.
    pub fn note(&mut self, wanted: Span, latency: Span) {
        let (time, latency) = (wanted.seconds(), latency.seconds());
        self.samples += 1.0;
        self.times += time;
        self.latencies += latency;
        self.times_squared += time * time;
        self.latencies_squared += latency * latency;
        self.products += time * latency;
        self.last = wanted;
    }

    /// The last request of a batch, if there is one: when it was wanted, in a loop that began at `origin`, and when it was done.
    pub fn note_last(&mut self, origin: Time, last: Option<(Time, Time)>) {
        if let Some((wanted, end)) = last {
            self.note(wanted.since(origin), end.since(wanted));
        }
    }

    /// Notes requests that had arrived, but were not served, when the loop was ended at this time after its
    /// beginning.
    pub fn leave(&mut self, waiting: u64, ended: Span) {
        self.waiting += waiting;
        self.ended = ended;
    }

    /// Those of another loop, which is reported with this one.
    pub fn add(&mut self, other: &Arrivals) {
        self.samples += other.samples;
        self.times += other.times;
        self.latencies += other.latencies;
        self.times_squared += other.times_squared;
        self.latencies_squared += other.latencies_squared;
        self.products += other.products;
        (self.last, self.ended) = (self.last.max(other.last), self.ended.max(other.ended));
        self.waiting += other.waiting;
    }

    /// What became of the requests, of which `served` were served in `seconds`. `None` for a loop that is not open.
    pub fn result(&self, served: u64, seconds: f64) -> Option<ArrivalsResult> {
        if self.samples == 0.0 {
            return None;
        }
        let offered = served + self.waiting;
        let over = if self.waiting > 0 { self.ended.seconds() } else { self.last.seconds() };
        let offered_per_s = offered as f64 / over.max(1e-12);
        Some(ArrivalsResult {
            offered,
            waiting: self.waiting,
            offered_per_s,
            served_per_s: served as f64 / seconds.max(1e-12),
            growth_per_s: self.slope().map_or(0.0, |slope| offered_per_s * slope / (1.0 + slope)),
        })
    }

    /// Requests per second by which the queue has grown so far, of which `served` were served; 0 if it does not grow.
    pub(super) fn growth(&self, served: u64) -> f64 {
        self.slope().map_or(0.0, |slope| served as f64 / self.last.seconds() * slope / (1.0 + slope))
    }

    /// The slope of the latency, if the queue grows.
    fn slope(&self) -> Option<f64> {
        let (count, time, latency) = (self.samples, self.times / self.samples, self.latencies / self.samples);
        let variance = self.times_squared / count - time * time;
        let scatter = self.latencies_squared / count - latency * latency;
        let together = self.products / count - time * latency;
        let slope = together / variance;
        let explained = together * together / (variance * scatter);
        let grows = count >= SAMPLES_MIN
            && slope >= SLOPE_MIN
            && explained >= EXPLAINED_MIN
            && slope * self.last.seconds() >= latency;
        grows.then_some(slope)
    }
}

impl ArrivalsResult {
    /// Of several open loops together; `None` if there is none among the streams.
    pub(super) fn of_all(streams: &[TenantResult]) -> Option<ArrivalsResult> {
        streams.iter().filter_map(|stream| stream.arrivals).reduce(|all, one| ArrivalsResult {
            offered: all.offered + one.offered,
            waiting: all.waiting + one.waiting,
            offered_per_s: all.offered_per_s + one.offered_per_s,
            served_per_s: all.served_per_s + one.served_per_s,
            growth_per_s: all.growth_per_s + one.growth_per_s,
        })
    }
}

/// So many requests are counted one by one; how many more there are follows from how much of the time they take.
const COUNTED: u64 = 1 << 24;

/// How many requests of an open loop are wanted before `limit`: of `rest`, then those in `coming`, then those of the workload. None
/// if there is no limit: then nothing but the end of simulated time ended the run.
pub(super) fn still_wanted(
    rest: &[Request],
    coming: &mut Batch,
    workload: &mut dyn BlockWorkload,
    limit: Span,
) -> u64 {
    let mut requests = rest.to_vec();
    let mut next = 0;
    let next = || {
        while next == requests.len() {
            if coming.is_empty() && workload.fill(coming) == 0 {
                return None;
            }
            requests.clear();
            requests.extend_from_slice(coming.requests());
            coming.clear();
            next = 0;
        }
        next += 1;
        Some(requests[next - 1].at)
    };
    count_before(limit, next)
}

/// Number of transactions of an open loop that arrive before `limit`, from the one at `first` on; none if there is no limit.
pub(super) fn still_arriving(first: Time, limit: Span, mut next: impl FnMut() -> Option<Time>) -> u64 {
    let mut first = Some(first);
    count_before(limit, || first.take().or_else(&mut next))
}

fn count_before(limit: Span, mut next: impl FnMut() -> Option<Time>) -> u64 {
    if limit.ps() == u64::MAX {
        return 0;
    }
    let (mut count, mut from) = (0, None);
    while let Some(at) = next().map(|at| at.since(Time::ZERO)).filter(|at| *at < limit) {
        let from = *from.get_or_insert(at);
        count += 1;
        if count == COUNTED && at > from {
            let share = limit.saturating_sub(from).seconds() / at.saturating_sub(from).seconds();
            return (count as f64 * share) as u64;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Rng;

    /// A single server: `offered` requests a second come at random, each takes `1 / served` seconds.
    fn queue(offered: f64, served: f64, requests: u64) -> ArrivalsResult {
        let (mut arrivals, mut rng) = (Arrivals::default(), Rng::new(7));
        let (mut wanted, mut free) = (0.0f64, 0.0f64);
        for _ in 0..requests {
            wanted += rng.exponential(1.0 / offered);
            free = free.max(wanted) + 1.0 / served;
            arrivals
                .note(Span::from_ps((wanted * 1e12) as u64), Span::from_ps(((free - wanted) * 1e12) as u64));
        }
        arrivals.result(requests, free).unwrap()
    }

    #[test]
    fn a_queue_grows_by_what_is_offered_and_not_served() {
        let twice = queue(2000.0, 1000.0, 20_000);
        assert!((twice.growth_per_s / 1000.0 - 1.0).abs() < 0.03, "{twice:?}");
        assert!(
            (twice.offered_per_s / 2000.0 - 1.0).abs() < 0.03 && (twice.served_per_s - 1000.0).abs() < 1.0
        );
        let little = queue(1050.0, 1000.0, 200_000);
        assert!((little.growth_per_s / 50.0 - 1.0).abs() < 0.2, "{little:?}");
        for load in [0.1, 0.5, 0.8, 0.95] {
            let stable = queue(1000.0 * load, 1000.0, 200_000);
            assert_eq!(stable.growth_per_s, 0.0, "load {load}: {stable:?}");
        }
    }
}
