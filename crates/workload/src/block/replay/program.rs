//! The program behind a recorded trace: what each request waited for, and how long the program computed in between.
//!
//! A trace records when a request was issued and when it completed, not why. This model assumes that a request depends
//! on everything completed before: request *i* waits for every request that had completed when *i* was issued, and for
//! no other; then the program computes as long as it did between the last of these completions and the request.
//! Requests still outstanding then stay concurrent. Requests keep their order.
//!
//! Valid for a program that waits for its requests (a database that commits, a compiler that reads), however many of
//! them at a time. Its limits:
//!
//! 1. Independent threads are coupled by chance: if a request of one happened to complete before the other issued its
//!    own, the other waits for it. A prediction for a slower device is therefore no better than the reality, one for a
//!    faster device no worse.
//! 2. Anything that reacts to time itself stays as recorded: timed write-back, time-outs, merging of queued requests,
//!    caches that had time to prefetch.
//! 3. Overheads between device and program during the recording (kernel, NBD or FUSE) count as computing.

use nvlab_trace::Columns;
use nvlab_units::{Span, Time};

/// A recorded program: which completions each of its requests waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Rows in order of recorded completion.
    answered: Vec<u32>,
    /// For each row, how many of `answered` it waits for.
    waits_for: Vec<u32>,
    /// For each row, how long the program computed after the last of them.
    computed: Vec<Span>,
    /// Recorded time from the first request to the last completion.
    pub recorded: Span,
    /// The part of it with a request outstanding.
    pub recorded_waiting: Span,
}

impl Program {
    /// The dependencies of a trace; `None` if it has no response times.
    pub fn of(columns: &Columns) -> Option<Program> {
        let (at, response) = (columns.at_ps(), columns.response_ps()?);
        let end = |row: usize| at[row].saturating_add(response[row]);
        let mut answered: Vec<u32> = (0..columns.len() as u32).collect();
        answered.sort_by_key(|&row| end(row as usize));
        let (mut waits_for, mut computed) = (Vec::with_capacity(at.len()), Vec::with_capacity(at.len()));
        let mut waiting = Waiting::new(Time::ZERO);
        let mut known = 0;
        for (row, &asked) in at.iter().enumerate() {
            // Of simultaneous completions, only those of earlier rows count: rows are in the order of issue.
            let before = |other: usize| end(other) < asked || (end(other) == asked && other < row);
            while answered.get(known).is_some_and(|&other| before(other as usize)) {
                known += 1;
            }
            let since = known.checked_sub(1).map_or(0, |last| end(answered[last] as usize));
            waits_for.push(known as u32);
            computed.push(Span::from_ps(asked - since));
            waiting.add(Time::from_ps(asked), Time::from_ps(end(row)));
        }
        let recorded = Span::from_ps(answered.last().map_or(0, |&last| end(last as usize)));
        Some(Program { answered, waits_for, computed, recorded, recorded_waiting: waiting.waited })
    }
}

/// [`Program`] on a device with other response times: when each request would be issued there.
#[derive(Clone, Debug)]
pub struct Rerun<'a> {
    program: &'a Program,
    /// When the requests were issued in this run.
    asked: Vec<Time>,
    /// When they completed; [`UNANSWERED`] until it is known.
    ends: Vec<Time>,
    /// How many completions, in the recorded order, the program has waited for.
    known: usize,
    /// The last of these.
    told: Time,
}

/// The end of a request whose end is not known yet.
const UNANSWERED: Time = Time::MAX;

impl<'a> Rerun<'a> {
    /// A rerun whose first request may be issued at `origin`.
    pub fn new(program: &'a Program, origin: Time) -> Rerun<'a> {
        let rows = program.answered.len();
        let (asked, ends) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        Rerun { program, asked, ends, known: 0, told: origin }
    }

    /// When the program issues the next request; `None` while it waits for an answer that is not known yet. After the last
    /// request: when it last waited.
    #[inline]
    pub fn asks(&mut self) -> Option<Time> {
        let row = self.ends.len();
        let Some(&waits_for) = self.program.waits_for.get(row) else { return Some(self.told) };
        for &answered in &self.program.answered[self.known..waits_for as usize] {
            let end = self.ends[answered as usize];
            if end == UNANSWERED {
                return None;
            }
            self.told = self.told.max(end);
            self.known += 1;
        }
        Some(self.told + self.program.computed[row])
    }

    /// Notes that the next request was issued at `asked`.
    pub fn issued(&mut self, asked: Time) {
        self.asked.push(asked);
        self.ends.push(UNANSWERED);
    }

    /// Notes that request `row`, counted from 0, completed at `end`.
    pub fn answered(&mut self, row: usize, end: Time) {
        self.ends[row] = end;
    }

    /// Notes that the next request was issued at `asked` and will be complete at `end`.
    #[inline(never)] // Few runs are programs: the loop of all others stays short.
    pub fn served(&mut self, asked: Time, end: Time) {
        self.asked.push(asked);
        self.ends.push(end);
    }

    /// How long a request was outstanding. All that were issued must be complete.
    pub fn waited(&self) -> Span {
        let mut waiting = Waiting::new(Time::ZERO);
        self.asked.iter().zip(&self.ends).for_each(|(asked, end)| waiting.add(*asked, *end));
        waiting.waited
    }
}

/// The length of the union of intervals that arrive in order of their beginnings.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    until: Time,
    waited: Span,
}

impl Waiting {
    fn new(origin: Time) -> Waiting {
        Waiting { until: origin, waited: Span::ZERO }
    }

    #[inline]
    fn add(&mut self, from: Time, to: Time) {
        self.waited += to.since(from.max(self.until).min(to));
        self.until = self.until.max(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, Request};
    use nvlab_trace::columns::Origin;
    use nvlab_units::Rng;

    fn trace(rows: &[(u64, u64)]) -> Columns {
        let mut columns = Columns::new(Origin::default());
        for &(at, response) in rows {
            let request = Request { at: Time::from_ns(at), bytes: 512, op: Op::Write, ..Request::default() };
            columns.push_answered(request, Span::from_ns(response));
        }
        columns
    }

    /// Asked and answered in ns, on a device that takes `latency` of row and moment.
    fn rerun(program: &Program, rows: usize, latency: impl Fn(usize, u64) -> u64) -> Vec<(u64, u64)> {
        let mut rerun = Rerun::new(program, Time::from_ns(1000));
        let mut times = Vec::new();
        let mut last = 0;
        for row in 0..rows {
            let asked = rerun.asks().unwrap().max(Time::from_ns(last));
            last = asked.since(Time::ZERO).ns();
            let end = asked + Span::from_ns(latency(row, last));
            rerun.served(asked, end);
            times.push((last - 1000, end.since(Time::ZERO).ns() - 1000));
        }
        times
    }

    #[test]
    fn the_device_it_was_recorded_on_gives_the_recording_back() {
        let mut rng = Rng::new(5);
        for _ in 0..50 {
            let mut at = 0;
            let rows: Vec<(u64, u64)> = (0..200)
                .map(|_| {
                    at += rng.below(3) * rng.below(500);
                    (at, rng.below(2000) * rng.below(2))
                })
                .collect();
            let program = Program::of(&trace(&rows)).unwrap();
            let again = rerun(&program, rows.len(), |row, _| rows[row].1);
            let recorded: Vec<(u64, u64)> = rows.iter().map(|&(at, took)| (at, at + took)).collect();
            assert_eq!(again, recorded);
            let last = recorded.iter().map(|&(_, end)| end).max().unwrap();
            assert_eq!(program.recorded, Span::from_ns(last));
            let under_way =
                (0..last).filter(|&ns| recorded.iter().any(|&(from, to)| from <= ns && ns < to)).count();
            assert_eq!(program.recorded_waiting, Span::from_ns(under_way as u64));
        }
    }

    #[test]
    fn a_program_that_waits_keeps_what_it_computes() {
        // 10 ns of computing, 100 ns of waiting, and again.
        let rows: Vec<(u64, u64)> = (0..50).map(|n| (10 + n * 110, 100)).collect();
        let program = Program::of(&trace(&rows)).unwrap();
        for latency in [1, 100, 7777] {
            let times = rerun(&program, rows.len(), |_, _| latency);
            assert_eq!(times[49], (50 * 10 + 49 * latency, 50 * (10 + latency)));
        }
    }

    #[test]
    fn what_was_under_way_together_stays_so() {
        // Two at a time; the third request came when the first was answered.
        let program = Program::of(&trace(&[(0, 100), (0, 400), (150, 100)])).unwrap();
        assert_eq!(rerun(&program, 3, |_, _| 1000), [(0, 1000), (0, 1000), (1050, 2050)]);
        // It waits for all that it had been told, not for what came last then.
        let program = Program::of(&trace(&[(0, 100), (0, 120), (130, 10)])).unwrap();
        let slow_first = |row: usize, _| [900, 120, 10][row];
        assert_eq!(rerun(&program, 3, slow_first)[2], (910, 920));
    }

    #[test]
    fn a_request_waits_until_its_answers_are_known() {
        // Two at a time; the third came after the first was answered, the fourth after all.
        let program = Program::of(&trace(&[(0, 100), (0, 400), (150, 100), (500, 10)])).unwrap();
        let mut rerun = Rerun::new(&program, Time::ZERO);
        for _ in 0..2 {
            assert_eq!(rerun.asks(), Some(Time::ZERO));
            rerun.issued(Time::ZERO);
        }
        assert_eq!(rerun.asks(), None);
        rerun.answered(1, Time::from_ns(70));
        assert_eq!(rerun.asks(), None, "it waits for the other one");
        rerun.answered(0, Time::from_ns(90));
        assert_eq!(rerun.asks(), Some(Time::from_ns(140)));
        rerun.issued(Time::from_ns(140));
        assert_eq!(rerun.asks(), None);
        rerun.answered(2, Time::from_ns(200));
        assert_eq!(rerun.asks(), Some(Time::from_ns(300)));
        rerun.issued(Time::from_ns(300));
        rerun.answered(3, Time::from_ns(350));
        assert_eq!(rerun.asks(), Some(Time::from_ns(200)), "there are no more requests");
        assert_eq!(rerun.waited(), Span::from_ns(90 + 60 + 50));
    }

    #[test]
    fn without_response_times_there_is_no_program() {
        let mut columns = Columns::new(Origin::default());
        columns.push(Request { bytes: 512, ..Request::default() });
        assert_eq!(Program::of(&columns), None);
    }
}
