//! Reference model of a lane, picosecond by picosecond: slow, but it simulates what [`Lane`] computes in closed form.
//! The two are compared call by call.
//!
//! 1. In each picosecond in which the lane does not stand still, the first unfinished operation that may start by
//!    then advances by
//!    one picosecond.
//! 2. An operation is in progress once it has started, or once its end was promised.
//! 3. An access that meets no operation in progress makes the lane stand still until it ends. Otherwise it suspends
//!    the operation
//!    and makes it stand still until the resume wait is over; the suspend latency is not spent if it stands still
//!    already. Or it
//!    waits until the operation is done, and the lane stands still from then until the access ends.
//! 4. Accesses that cannot suspend wait for all promised work.
//! 5. An access that arrives earlier than the previous call (allowed while no promised work is in progress) is
//!    treated as arriving after
//!    the work done until then.
//!
//! Promised operations must follow each other without a gap and, if suspensions are limited, have equal length:
//! otherwise a lane is only an approximation.

use super::{Interruption, Lane, Ticket};
use crate::time::{Span, Time};
use proptest::prelude::*;

/// A background operation.
#[derive(Clone, Debug)]
struct Operation {
    length: u64,
    not_before: u64,
    done: u64,
    told: Option<u64>,
    suspensions: u32,
}

impl Operation {
    fn is_done(&self) -> bool {
        self.done == self.length
    }
}

#[derive(Clone, Debug, Default)]
struct Model {
    now: u64,
    free_at: u64,
    /// When an operation was last advanced.
    worked_until: u64,
    operations: Vec<Operation>,
    /// When an operation stands still: from, until.
    still: Vec<(u64, u64)>,
}

impl Model {
    /// The operation that advances in the picosecond starting at `at`.
    fn worked_on(&self, at: u64) -> Option<usize> {
        let first = self.operations.iter().position(|operation| !operation.is_done())?;
        let stands_still = self.still.iter().any(|&(from, until)| (from..until).contains(&at));
        (!stands_still && self.operations[first].not_before <= at).then_some(first)
    }

    fn run(&mut self, to: u64) {
        while self.now < to {
            if let Some(operation) = self.worked_on(self.now) {
                self.operations[operation].done += 1;
                self.worked_until = self.now + 1;
            }
            self.now += 1;
        }
    }

    /// When an operation is done if nothing else arrives.
    fn end_of(&self, operation: usize) -> u64 {
        let mut ahead = self.clone();
        while !ahead.operations[operation].is_done() {
            ahead.run(ahead.now + 1);
        }
        ahead.now
    }

    fn last_told(&self) -> Option<usize> {
        self.operations.iter().rposition(|operation| operation.told.is_some() && !operation.is_done())
    }

    fn access(&mut self, at: u64, ready: u64, span: u64, interruption: &Interruption) -> (u64, u64) {
        self.run(at);
        let at = at.max(self.free_at.max(self.worked_until).min(self.now));
        let mut start = at.max(ready).max(self.free_at);
        let first = self.operations.iter().position(|operation| !operation.is_done());
        let under_way = first.filter(|&first| {
            let operation = &self.operations[first];
            operation.done > 0 || operation.told.is_some()
        });
        let (mut from, mut resume_ps) = (at, 0);
        if let Some(operation) = under_way {
            let stands_still = self.worked_on(at).is_none();
            let suspensions = self.operations[operation].suspensions;
            match *interruption {
                Interruption::Suspend { resume, .. } if stands_still => resume_ps = resume.ps(),
                Interruption::Suspend { latency, resume, limit } if suspensions < limit => {
                    self.operations[operation].suspensions += 1;
                    start += latency.ps();
                    resume_ps = resume.ps();
                }
                Interruption::Suspend { .. } => from = self.tell(operation),
                Interruption::Wait => from = self.tell(self.last_told().unwrap_or(operation)),
            }
        }
        start = start.max(from);
        self.still.push((from, start + span + resume_ps));
        (start, start + span)
    }

    /// Promises the ends of all operations up to this one; returns the end of this one.
    fn tell(&mut self, operation: usize) -> u64 {
        let ends: Vec<u64> = (0..=operation).map(|operation| self.end_of(operation)).collect();
        for (operation, &end) in self.operations.iter_mut().zip(&ends) {
            if !operation.is_done() {
                operation.told.get_or_insert(end);
            }
        }
        ends[operation]
    }

    /// The end promised to a caller who waits for an operation.
    fn finish(&mut self, operation: usize, at: u64) -> u64 {
        self.run(at);
        self.tell(operation);
        self.operations[operation].told.map_or(at, |end| at.max(end))
    }

    fn is_done(&mut self, operation: usize, at: u64) -> bool {
        self.run(at);
        let operation = &self.operations[operation];
        operation.told.map_or(operation.is_done(), |end| end <= at)
    }

    /// True if all operations up to this one follow each other without a gap.
    fn is_gapless(&self, operation: usize) -> bool {
        let mut ahead = self.clone();
        let mut has_begun = self.last_told().is_some();
        while !ahead.operations[operation].is_done() {
            let works = ahead.worked_on(ahead.now).is_some();
            let stands_still = ahead.still.iter().any(|&(from, until)| (from..until).contains(&ahead.now));
            if has_begun && !works && !stands_still {
                return false;
            }
            has_begun |= works;
            ahead.run(ahead.now + 1);
        }
        true
    }

    fn free_at(&self) -> u64 {
        self.free_at.max(self.last_told().map_or(0, |last| self.end_of(last)))
    }

    fn idle_from(&self) -> u64 {
        let last = self.operations.iter().rposition(|operation| !operation.is_done());
        let still_until = self.still.iter().map(|&(_, until)| until).max().unwrap_or(0);
        self.free_at.max(still_until).max(last.map_or(0, |last| self.end_of(last)))
    }
}

/// A call to the lane, relative to the previous call, in picoseconds.
#[derive(Clone, Debug)]
enum Call {
    /// An access of one plane or of the whole die, `earlier` than the previous call and `ready` that much later.
    Access { whole: bool, earlier: u64, ready: u64, span: u64 },
    /// Operations that may start `later`.
    Background { later: u64, length: u64, count: u32 },
    /// The end of an operation, given as a share of all, is requested.
    Finish { nth: usize },
    /// Queries whether it is done, and when the lane is idle.
    Look { nth: usize },
}

fn calls() -> impl Strategy<Value = Vec<(u64, Call)>> {
    let after = prop_oneof![Just(0u64), 0u64..12, 0u64..60];
    let call = prop_oneof![
        4 => (any::<bool>(), prop_oneof![2 => Just(0u64), 1 => 0u64..40], prop_oneof![Just(0u64), 0u64..9], 1u64..9)
            .prop_map(|(whole, earlier, ready, span)| Call::Access { whole, earlier, ready, span }),
        3 => (prop_oneof![3 => Just(0u64), 1 => 0u64..25], 1u64..20, 1u32..4)
            .prop_map(|(later, length, count)| Call::Background { later, length, count }),
        2 => (0usize..1000).prop_map(|nth| Call::Finish { nth }),
        1 => (0usize..1000).prop_map(|nth| Call::Look { nth }),
    ];
    proptest::collection::vec((after, call), 1..24)
}

fn interruptions() -> impl Strategy<Value = Interruption> {
    let limits = prop_oneof![Just(u32::MAX), 0u32..3];
    let suspend = (0u64..4, 0u64..6, limits).prop_map(|(latency, resume, limit)| Interruption::Suspend {
        latency: Span::from_ps(latency),
        resume: Span::from_ps(resume),
        limit,
    });
    prop_oneof![1 => Just(Interruption::Wait), 3 => suspend]
}

/// Makes the same calls to lane and model.
fn compare(interruption: &Interruption, calls: &[(u64, Call)]) -> Result<(), TestCaseError> {
    let limited = matches!(interruption, Interruption::Suspend { limit, .. } if *limit < u32::MAX);
    let (mut lane, mut model, mut tickets) = (Lane::new(), Model::default(), Vec::new());
    let time = Time::from_ps;
    for (after, call) in calls {
        let at = model.now + after;
        model.run(at);
        match *call {
            Call::Access { whole, earlier, ready, span } => {
                let earlier = if model.last_told().is_none() { earlier.min(at) } else { 0 };
                if earlier > 0 {
                    // Up to now, as the model.
                    lane.progress(time(at));
                }
                let at = at - earlier;
                let (t, ready, long) = (time(at), time(at + ready), Span::from_ps(span));
                let (start, end) = model.access(at, ready.ps(), span, interruption);
                let served = if whole {
                    model.free_at = end;
                    lane.foreground_from(t, ready, long, interruption)
                } else {
                    lane.overlapping(t, ready, long, interruption)
                };
                prop_assert_eq!((served.start.ps(), served.end.ps()), (start, end), "{:?} at {}", call, at);
            }
            Call::Background { later, length, count } => {
                let length = if limited { 10 } else { length };
                let ticket = lane.background(time(at + later), Span::from_ps(length), count);
                for nth in 1..=count {
                    let operation =
                        Operation { length, not_before: at + later, done: 0, told: None, suspensions: 0 };
                    model.operations.push(operation);
                    tickets.push(Ticket(ticket.0 - (count - nth) as u64 * length));
                }
            }
            Call::Finish { nth } if !tickets.is_empty() => {
                let nth = nth % tickets.len();
                if model.is_gapless(nth) {
                    let end = lane.finish(tickets[nth], time(at)).ps();
                    prop_assert_eq!(end, model.finish(nth, at), "end of {} at {}", nth, at);
                }
            }
            Call::Look { nth } if !tickets.is_empty() => {
                let nth = nth % tickets.len();
                prop_assert_eq!(
                    lane.is_done(tickets[nth], time(at)),
                    model.is_done(nth, at),
                    "{} at {}",
                    nth,
                    at
                );
            }
            _ => {}
        }
        let occupied = (lane.free_at().ps().max(at), lane.idle_from().ps().max(at));
        let expected = (model.free_at().max(at), model.idle_from().max(at));
        prop_assert_eq!(occupied, expected, "free and idle after {:?} at {}", call, at);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_lane_is_its_model(interruption in interruptions(), calls in calls()) {
        compare(&interruption, &calls)?;
    }
}
