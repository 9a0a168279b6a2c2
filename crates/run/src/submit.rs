//! How a closed stream issues its requests: as fio's main loop does, in which issuing takes no time.
//!
//! 1. A thread issues requests until `depth` of them are in flight, then waits until the number it reaps at once are
//!    done, or until few enough are left ([`Reap`]).
//! 2. A request is done for the stream when the thread reaps it; its latency ends then. A thread that waits for the
//!    first completion, as is usual, reaps it at once.
//! 3. After enough requests, or enough time, it waits for all in flight and pauses ([`Think`]).
//! 4. A rate is a limit before each request, not a schedule: requests that are late follow each other as fast as the
//!    depth allows. A thread that is early waits for all in flight and then for as long as it was early, even if that
//!    wait took long (`io_submit_mode=inline`); if other threads issue its requests, it only waits for the time of
//!    the next ([`Rate::waits_out`]).

use nvlab_units::{Rng, Span, Time};
use nvlab_workload::block::together::{Issue, Rate, RateLimit, Reap};
use nvlab_workload::{Op, Request};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub op: Op,
    pub fua: bool,
    pub bytes: u32,
    pub wanted: Time,
    /// When the thread took it.
    pub at: Time,
}

/// What is in flight, the earliest end first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    end: Time,
    wanted: Time,
    bytes: u32,
    op: Op,
    fua: bool,
}

/// Issues the requests of one stream.
pub(super) struct Submitter {
    issue: Issue,
    depth: usize,
    begin: Time,
    /// The thread's own time: nothing is issued before.
    now: Time,
    in_flight: BinaryHeap<Reverse<InFlight>>,
    issued: u64,
    taken: u64,
    paused: Pause,
    /// Of reads, writes and trims.
    paces: [Pace; 3],
    rng: Rng,
}

/// The last pause: the requests that counted then, and when it ended.
#[derive(Clone, Copy, Debug)]
struct Pause {
    requests: u64,
    at: Time,
}

/// Of requests of one kind; times since the stream began.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    bytes: u64,
    /// The gaps so far.
    gaps: Span,
    /// When the next may be issued.
    next: Span,
}

impl Submitter {
    /// Begins at `begin`.
    pub fn new(issue: Issue, depth: u32, begin: Time) -> Submitter {
        let seed = issue.rate.as_ref().map_or(0, |rate| rate.seed);
        Submitter {
            depth: depth.max(1) as usize,
            begin,
            now: begin,
            in_flight: BinaryHeap::with_capacity(depth.max(1) as usize),
            issued: 0,
            taken: 0,
            paused: Pause { requests: 0, at: begin },
            paces: Default::default(),
            rng: Rng::stream(seed, "rate"),
            issue,
        }
    }

    /// When it issues `request`, which becomes one of another kind if its own is ahead of its rate and that is not. What is
    /// done by then is added to `done`.
    pub fn next(&mut self, request: &mut Request, done: &mut Vec<Done>) -> Time {
        let Some(rate) = &self.issue.rate else { return self.now };
        let (switches, waits_out) = (rate.switches, rate.waits_out);
        let of = |op: Op| (op != Op::Flush).then(|| self.begin + self.paces[op as usize].next);
        let Some(mut at) = of(request.op).filter(|&at| at > self.now) else { return self.now };
        let other = match request.op {
            Op::Read => Op::Write,
            _ => Op::Read,
        };
        if switches && of(other).is_some_and(|other_at| other_at < at) {
            request.op = other;
            at = of(other).expect("a read or a write").max(self.now);
        }
        let early = at.since(self.now);
        if waits_out && !early.is_zero() {
            self.take_all(done);
        }
        self.now += early;
        self.now
    }

    /// `request` was issued at `wanted` and is done at `end`.
    pub fn issued(&mut self, request: &Request, wanted: Time, end: Time, done: &mut Vec<Done>) {
        let Request { op, bytes, fua, .. } = *request;
        self.in_flight.push(Reverse(InFlight { end, wanted, bytes, op, fua }));
        self.issued += (op != Op::Flush) as u64;
        if let (Some(rate), true) = (&self.issue.rate, op != Op::Flush) {
            let pace = &mut self.paces[op as usize];
            pace.bytes += bytes as u64;
            pace.next = pace.following(rate.limits[op as usize], &mut self.rng);
        }
        self.wait_for_room(done);
        self.think(op, done);
    }

    /// Waits, if as many are in flight as there may be.
    fn wait_for_room(&mut self, done: &mut Vec<Done>) {
        if self.in_flight.len() < self.depth {
            return;
        }
        let Reap { at_once, until_left } = self.issue.reap;
        loop {
            let from = done.len();
            for _ in 0..at_once.max(1) {
                self.take_first(done);
            }
            while self.in_flight.peek().is_some_and(|Reverse(first)| first.end <= self.now) {
                self.take_first(done);
            }
            if self.is_own_thread() {
                done[from..].iter_mut().for_each(|one| one.at = self.now);
            }
            if until_left.is_none_or(|left| self.in_flight.len() <= left as usize) {
                break;
            }
        }
    }

    /// False if other threads issue and take the requests.
    fn is_own_thread(&self) -> bool {
        self.issue.rate.as_ref().is_none_or(|rate| rate.waits_out)
    }

    /// Waits for the first completion, if a request is in flight, and reaps it.
    fn take_first(&mut self, done: &mut Vec<Done>) {
        let Some(Reverse(InFlight { end, wanted, bytes, op, fua })) = self.in_flight.pop() else { return };
        self.now = self.now.max(end);
        self.taken += (op != Op::Flush) as u64;
        done.push(Done { op, fua, bytes, wanted, at: end });
    }

    /// Waits for all in flight.
    pub fn take_all(&mut self, done: &mut Vec<Done>) {
        while !self.in_flight.is_empty() {
            self.take_first(done);
        }
    }

    /// Pauses after a request, if it is time.
    fn think(&mut self, op: Op, done: &mut Vec<Done>) {
        let Some(think) = self.issue.think.filter(|_| op != Op::Flush) else { return };
        let requests = if think.when_issued { self.issued } else { self.taken };
        let is_many = think.every.is_some_and(|every| requests >= self.paused.requests + every as u64);
        let is_long = think.after.is_some_and(|after| self.now.since(self.paused.at) >= after);
        if !is_many && !is_long {
            return;
        }
        self.take_all(done);
        self.now += think.time;
        self.paused = Pause { requests, at: self.now };
        if let Some(rate) = self.issue.rate.as_ref().filter(|rate| rate.ignores_thinking) {
            self.paces[op as usize].skip(rate, op, think.time);
        }
    }
}

impl Pace {
    /// When the next request may be issued after those so far.
    fn following(&mut self, limit: Option<RateLimit>, rng: &mut Rng) -> Span {
        match limit {
            None => Span::ZERO,
            Some(RateLimit::Bytes { per_s }) => {
                let ps = self.bytes as u128 * 1_000_000_000_000 / per_s.max(1) as u128;
                Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
            }
            Some(RateLimit::Gaps { mean, is_poisson }) => {
                let gap = if is_poisson { rng.exponential(mean.ps() as f64) as u64 } else { mean.ps() };
                self.gaps = Span::from_ps(self.gaps.ps().saturating_add(gap));
                self.gaps
            }
        }
    }

    /// A pause does not count: nothing is to be caught up after it but one request.
    fn skip(&mut self, rate: &Rate, op: Op, pause: Span) {
        match rate.limits[op as usize] {
            None => {}
            Some(RateLimit::Bytes { per_s }) => {
                let missed = (per_s as u128 * pause.ps() as u128 / 1_000_000_000_000) as u64;
                self.bytes += missed.saturating_sub(rate.least_bytes[op as usize] as u64);
            }
            Some(RateLimit::Gaps { .. }) => self.gaps += pause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_workload::block::together::Think;

    const US: fn(u64) -> Span = Span::from_us;

    /// When requests of 1000 B are issued, in microseconds, and how long each is in flight, in the order in which they are done,
    /// on a device that takes as long for each as the next of `takes_us`.
    fn issues(issue: Issue, depth: u32, takes_us: &[u64], requests: usize) -> (Vec<u64>, Vec<u64>) {
        let (begin, mut done, mut at) = (Time::from_ns(7000), Vec::new(), Vec::new());
        let mut submitter = Submitter::new(issue, depth, begin);
        for nth in 0..requests {
            let mut request = Request { bytes: 1000, op: Op::Read, ..Request::default() };
            let wanted = submitter.next(&mut request, &mut done);
            at.push(wanted.since(begin).ns() / 1000);
            let end = wanted + US(takes_us[nth % takes_us.len()]);
            submitter.issued(&request, wanted, end, &mut done);
        }
        submitter.take_all(&mut done);
        assert_eq!(done.len(), requests);
        (at, done.iter().map(|one| one.at.since(one.wanted).ns() / 1000).collect())
    }

    fn rate(limit: RateLimit) -> Rate {
        let limits = [Some(limit), None, None];
        let least_bytes = [1000; 3];
        Rate { limits, least_bytes, waits_out: true, ignores_thinking: false, switches: false, seed: 1 }
    }

    /// 1000 requests a second.
    const RATE: RateLimit = RateLimit::Bytes { per_s: 1_000_000 };

    #[test]
    fn a_depth_is_kept() {
        assert_eq!(issues(Issue::default(), 1, &[10], 3), (vec![0, 10, 20], vec![10; 3]));
        let (at, took) = issues(Issue::default(), 2, &[10, 30], 6);
        assert_eq!((at, took), (vec![0, 0, 10, 20, 30, 40], vec![10, 10, 30, 10, 30, 30]));
    }

    #[test]
    fn what_is_done_may_be_taken_together() {
        let reap = Reap { at_once: 2, until_left: None };
        // Of 10 and 30 us the earlier is taken with the later.
        let (at, took) = issues(Issue { reap, ..Issue::default() }, 2, &[10, 30], 4);
        assert_eq!((at, took), (vec![0, 0, 30, 30], vec![30; 4]));
        let reap = Reap { at_once: 1, until_left: Some(1) };
        let (at, took) = issues(Issue { reap, ..Issue::default() }, 4, &[10, 20, 30, 40], 7);
        assert_eq!(at, [0, 0, 0, 0, 30, 30, 30]);
        assert_eq!(took[..3], [10, 20, 30]);
    }

    #[test]
    fn pauses_come_after_enough_requests_or_time() {
        let think = Think { time: US(100), every: Some(3), after: None, when_issued: true };
        let paused = |think, depth, count| {
            issues(Issue { think: Some(think), ..Issue::default() }, depth, &[10], count).0
        };
        assert_eq!(paused(think, 8, 7), [0, 0, 0, 110, 110, 110, 220]);
        assert_eq!(paused(think, 1, 5), [0, 10, 20, 130, 140]);
        // Requests that are done are counted when the depth is reached: four at a time.
        let think = Think { when_issued: false, ..think };
        assert_eq!(paused(think, 4, 9), [0, 0, 0, 0, 110, 110, 110, 110, 220]);
        let think = Think { every: None, after: Some(US(25)), ..think };
        assert_eq!(paused(think, 1, 5), [0, 10, 20, 130, 140]);
    }

    #[test]
    fn who_is_early_waits_for_those_in_flight_and_then_for_its_time() {
        let paced = Issue { rate: Some(rate(RATE)), ..Issue::default() };
        assert_eq!(issues(paced.clone(), 8, &[10], 4), (vec![0, 1010, 2010, 3010], vec![10; 4]));
        // Too slow for its rate: as without one.
        let late = issues(paced.clone(), 2, &[5000], 6);
        assert_eq!(late.0[..2], [0, 6000], "early once");
        assert_eq!(late.0[2..], [6000, 11_000, 11_000, 16_000]);
        let threads = Rate { waits_out: false, ..rate(RATE) };
        let issue = Issue { rate: Some(threads), ..Issue::default() };
        assert_eq!(issues(issue, 8, &[2500], 4), (vec![0, 1000, 2000, 3000], vec![2500; 4]));
    }

    #[test]
    fn gaps_may_be_random() {
        let gaps = RateLimit::Gaps { mean: US(1000), is_poisson: true };
        let issue = Issue { rate: Some(rate(gaps)), ..Issue::default() };
        let (at, _) = issues(issue, 1, &[1], 20_000);
        let mean = *at.last().unwrap() as f64 / 19_999.0;
        assert!((mean / 1000.0 - 1.0).abs() < 0.03, "{mean}");
        let short = at.windows(2).filter(|two| two[1] - two[0] < 500).count() as f64 / 19_999.0;
        assert!((short - (1.0 - (-0.5f64).exp())).abs() < 0.02, "{short} are shorter than half the mean");
    }

    #[test]
    fn a_pause_is_caught_up_unless_it_is_ignored() {
        let think = Some(Think { time: US(10_000), every: Some(5), after: None, when_issued: true });
        let last = |ignores_thinking| {
            let rate = Some(Rate { ignores_thinking, ..rate(RATE) });
            let issue = Issue { think, rate, ..Issue::default() };
            *issues(issue, 1, &[10], 101).0.last().unwrap() as f64
        };
        // Five requests in 10 ms are all the pauses leave; ignored, each five take their own 5 ms too.
        assert!((last(false) / (20.0 * 10_050.0) - 1.0).abs() < 0.03, "{}", last(false));
        assert!((last(true) / (20.0 * 14_000.0) - 1.0).abs() < 0.03, "{}", last(true));
    }

    #[test]
    fn a_kind_that_is_early_gives_way_to_the_other() {
        let limits =
            [Some(RateLimit::Bytes { per_s: 300_000 }), Some(RateLimit::Bytes { per_s: 100_000 }), None];
        let rate = Rate { limits, switches: true, ..rate(RATE) };
        let mut submitter = Submitter::new(Issue { rate: Some(rate), ..Issue::default() }, 4, Time::ZERO);
        let (mut done, mut counts) = (Vec::new(), [0; 2]);
        loop {
            // Reads are all it is asked for.
            let mut request = Request { bytes: 1000, op: Op::Read, ..Request::default() };
            let wanted = submitter.next(&mut request, &mut done);
            if wanted >= Time::from_ns(2_000_000_000) {
                break;
            }
            counts[request.op as usize] += 1;
            submitter.issued(&request, wanted, wanted + US(10), &mut done);
        }
        assert!((599..=601).contains(&counts[0]) && (199..=201).contains(&counts[1]), "{counts:?}");
    }
}
