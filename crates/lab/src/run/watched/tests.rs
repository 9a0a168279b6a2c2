//! A watched run that nobody changes is the plain run; cuts, other rates and early ends do what they say.

use super::*;
use crate::plan::{Named, Settings, Source, Task};
use crate::run::Preparation;

const SMALL: [&str; 3] = ["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"];

fn task(workload: &str, until: &str, state: &str) -> Task {
    let named = Named::load("ssd-mlc-2010", &SMALL.map(String::from)).unwrap();
    let source = std::sync::Arc::new(Source::read(workload, None).unwrap());
    let (until, state) = (Some(until.parse().unwrap()), state.parse::<Preparation>().unwrap());
    Task::new(named.design, named.name, &source, Settings { seed: 3, until, state }).unwrap()
}

/// Acts once, before the request of this number; then at another pace, if there is one.
struct Once {
    at: u64,
    step: Step,
    spacing: Option<Span>,
    calls: u64,
    cuts: Vec<(u64, Span)>,
    fullest: u32,
}

impl Once {
    fn new(at: u64, step: Step, spacing: Option<Span>) -> Once {
        Once { at, step, spacing, calls: 0, cuts: Vec::new(), fullest: 0 }
    }
}

impl Onlooker for Once {
    fn begins(&mut self, has_plug: bool) {
        assert!(has_plug);
    }
    fn before(&mut self, sight: Sight<'_>) -> Step {
        if self.calls.is_multiple_of(97) {
            let (used, room) = sight.device.buffered(sight.at).unwrap();
            assert!(used <= room);
            self.fullest = self.fullest.max(used);
            let shares = sight.device.live_shares().unwrap();
            assert!(shares.len() == sight.device.blocks() as usize);
            assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
        }
        self.calls += 1;
        if self.calls == self.at + 1 { self.step } else { Step::Go }
    }
    fn cut(&mut self, _: Time, requests: u64, recovery: Span) {
        self.cuts.push((requests, recovery));
    }
    fn spacing(&self) -> Option<Span> {
        self.spacing.filter(|_| self.calls >= self.at)
    }
}

fn watched(task: &Task, onlooker: &mut Once) -> RunResult {
    task.run_watched(onlooker, &mut |_, _| true).unwrap()
}

#[test]
fn who_only_looks_changes_nothing() {
    for (workload, until, state) in [
        ("zipf qd=8 read=30%", "20000 io", "fresh"),
        ("uniform rate=900/s", "3000 io", "full"),
        ("uniform qd=32", "1 x capacity", "steady"),
        ("zipf rate=2k/s", "2 s", "scattered"),
    ] {
        let task = task(workload, until, state);
        let plain = task.run(&mut |_, _| true).unwrap();
        let mut onlooker = Once::new(u64::MAX - 1, Step::Go, None);
        let seen = watched(&task, &mut onlooker);
        assert_eq!(RunResult { wall_s: 0.0, ..seen }, RunResult { wall_s: 0.0, ..plain }, "{workload}");
        assert!(onlooker.fullest > 0, "{workload}");
    }
}

#[test]
fn after_a_cut_what_is_measured_begins_anew() {
    let task = task("uniform qd=8 flush=100", "9000 io", "full");
    let mut onlooker = Once::new(5000, Step::Cut, None);
    let result = watched(&task, &mut onlooker);
    let [(requests, recovery)] = onlooker.cuts[..] else { panic!("{:?}", onlooker.cuts) };
    assert_eq!((requests, result.requests_served), (5000, 4000));
    assert!(recovery > Span::ZERO && result.write_amplification.total >= 1.0);
}

#[test]
fn another_rate_holds_until_it_is_taken_back() {
    // A thousand requests a millisecond apart.
    let task = task("uniform qd=1", "1000 io", "fresh");
    let result = watched(&task, &mut Once::new(0, Step::Go, Some(Span::from_us(1000))));
    assert!((result.simulated_s - 1.0).abs() < 0.01, "{}", result.simulated_s);
    // An open loop goes on with the distances of its workload.
    let mut pace = Pace {
        closed: false,
        base: Time::from_ns(100).ps() as i128,
        last: (Time::from_ns(100), Time::ZERO),
        changed: false,
    };
    let at = |ns| Request { at: Time::from_ns(ns), ..Request::default() };
    assert_eq!(pace.wanted(&at(10), Time::ZERO, None), Time::from_ns(110));
    assert_eq!(pace.wanted(&at(20), Time::ZERO, Some(Span::from_ns(500))), Time::from_ns(610));
    assert_eq!(pace.wanted(&at(50), Time::ZERO, None), Time::from_ns(640));
}

#[test]
fn an_early_end_has_a_result() {
    let result = watched(&task("uniform qd=4", "9000 io", "fresh"), &mut Once::new(700, Step::End, None));
    assert_eq!(result.requests_served, 700);
}
