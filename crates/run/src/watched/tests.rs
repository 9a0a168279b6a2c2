//! A watched run that nobody changes is the plain run; cuts, other rates and early ends do what they say.

use super::requests::Pace;
use super::*;
use crate::Preparation;
use crate::device::Fill;
use crate::plan::{Named, Settings, Source, Task};
use nvlab_design::Design;
use nvlab_units::{Span, Time};
use nvlab_workload::Request;

const SMALL: [&str; 3] = ["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"];

fn task(workload: &str, until: &str, state: &str) -> Task {
    task_on("ssd-mlc-2010", &SMALL, workload, until, state)
}

fn task_on(design: &str, sets: &[&str], workload: &str, until: &str, state: &str) -> Task {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let named = Named::load(design, &sets).unwrap();
    let source = std::sync::Arc::new(Source::read(workload, None).unwrap());
    let (until, state) = (Some(until.parse().unwrap()), state.parse::<Preparation>().unwrap());
    Task::new(named.design, named.name, &source, Settings { seed: 3, until, state }).unwrap()
}

const CONTROLS: Controls = Controls { plug: true, rate: true };
const NO_CONTROLS: Controls = Controls { plug: false, rate: false };

/// Acts once, before the request of this number; then at another pace, if there is one.
struct Once {
    at: u64,
    step: Step,
    spacing: Option<Span>,
    calls: u64,
    cuts: Vec<(u64, Span)>,
    fullest: u32,
    held_most: u64,
    controls: Controls,
}

impl Once {
    fn new(at: u64, step: Step, spacing: Option<Span>) -> Once {
        Once { at, step, spacing, calls: 0, cuts: Vec::new(), fullest: 0, held_most: 0, controls: CONTROLS }
    }
}

impl Onlooker for Once {
    fn begins(&mut self, controls: Controls) {
        assert_eq!(controls, self.controls);
    }
    fn before(&mut self, sight: Sight<'_>) -> Step {
        if self.calls.is_multiple_of(97) {
            let fill = sight.device.buffered(sight.at).unwrap_or(Fill { used: 0, room: 0, what: "" });
            assert!(fill.used <= fill.room);
            self.fullest = self.fullest.max(fill.used);
            let held: u64 = sight.device.maps().iter().flatten().filter_map(|map| map.live()).sum();
            self.held_most = self.held_most.max(held);
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
        assert!(onlooker.fullest > 0 && onlooker.held_most > 0, "{workload}");
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

#[test]
fn transactions_are_watched_and_nothing_changes() {
    for (design, workload, until, state) in [
        ("envy-128m", "tpca branches=9 rate=5k/s", "20000 io", "full"),
        ("envy-128m", "words", "20000 io", "fresh"),
        // Too large for its bytes to be kept here.
        ("cxl-ms-ssd", "words", "3000 io", "fresh"),
    ] {
        let task = task_on(design, &[], workload, until, state);
        let plain = task.run(&mut |_, _| true).unwrap();
        let controls = Controls { plug: design != "cxl-ms-ssd", rate: true };
        let mut onlooker = Once { controls, ..Once::new(u64::MAX - 1, Step::Go, None) };
        let seen = watched(&task, &mut onlooker);
        assert_eq!(
            RunResult { wall_s: 0.0, ..seen },
            RunResult { wall_s: 0.0, ..plain },
            "{design} {workload}"
        );
        assert!(onlooker.fullest > 0 && onlooker.calls >= 3000, "{design} {workload}");
    }
}

#[test]
fn the_mount_at_the_end_is_that_of_the_plain_run() {
    let source = std::sync::Arc::new(Source::read("iozone mode=write record=4KiB file=1MiB", None).unwrap());
    let settings = Settings { seed: 3, until: None, state: "fresh".parse::<Preparation>().unwrap() };
    let task =
        Task::new(Design::load("hftl-fsms", &[]).unwrap(), "hftl-fsms".into(), &source, settings).unwrap();
    let plain = task.run(&mut |_, _| true).unwrap();
    let seen = watched(&task, &mut Once::new(u64::MAX - 1, Step::Go, None));
    assert!(plain.mount.is_some());
    assert_eq!(RunResult { wall_s: 0.0, ..seen }, RunResult { wall_s: 0.0, ..plain });
}

#[test]
fn a_memory_survives_a_cut_between_two_transactions() {
    let task = task_on("envy-128m", &[], "tpca branches=9 rate=5k/s", "9000 io", "full");
    let mut onlooker = Once::new(5000, Step::Cut, None);
    let result = watched(&task, &mut onlooker);
    let [(requests, recovery)] = onlooker.cuts[..] else { panic!("{:?}", onlooker.cuts) };
    assert_eq!((requests, result.requests_served), (5000, 4000));
    assert!(recovery > Span::ZERO);
    // A thousand transactions a millisecond apart, whatever the workload says.
    let task = task_on("envy-128m", &[], "tpca branches=9 rate=5k/s", "1000 io", "fresh");
    let result = watched(&task, &mut Once::new(0, Step::Go, Some(Span::from_us(1000))));
    assert!((result.simulated_s - 1.0).abs() < 0.01, "{}", result.simulated_s);
}

#[test]
fn streams_programs_and_software_are_watched_and_nothing_changes() {
    for (design, workload, until) in [
        ("bench-4g", "uniform qd=4 until=9000io + zipf rw=randread rate=3k/s until=9000io", None),
        ("moneta", "uniform qd=8", Some("20000 io")),
        ("ssd-mlc-2010", "builtin:raw think=keep wrap", None),
        ("moneta", "builtin:raw think=keep wrap", None),
    ] {
        let source = std::sync::Arc::new(Source::read(workload, None).unwrap());
        let (until, state) =
            (until.map(|until| until.parse().unwrap()), "fresh".parse::<Preparation>().unwrap());
        let settings = Settings { seed: 3, until, state };
        let task = Task::new(Design::load(design, &[]).unwrap(), design.into(), &source, settings).unwrap();
        let plain = task.run(&mut |_, _| true).unwrap();
        assert!(plain.software.is_some() || plain.program.is_some() || plain.tenants.len() == 2, "{design}");
        let mut onlooker = Once { controls: NO_CONTROLS, ..Once::new(u64::MAX - 1, Step::Go, None) };
        let seen = watched(&task, &mut onlooker);
        let served = plain.requests_served;
        assert_eq!(
            RunResult { wall_s: 0.0, ..seen },
            RunResult { wall_s: 0.0, ..plain },
            "{design} {workload}"
        );
        assert!(
            onlooker.calls >= served && served > 1000,
            "{design} {workload}: {} {served}",
            onlooker.calls
        );
        // It ends a few thousand requests after it is told to.
        let mut onlooker = Once { controls: NO_CONTROLS, ..Once::new(700, Step::End, None) };
        let ended = watched(&task, &mut onlooker);
        assert!((700..=8192 + 64).contains(&ended.requests_served), "{design}: {}", ended.requests_served);
        assert_eq!(onlooker.calls, 701);
    }
}

#[test]
fn a_log_has_nothing_to_watch() {
    let task = task_on("rvm-battery-ram", &[], "debit-credit", "100 io", "fresh");
    let why = task.run_watched(&mut Once::new(0, Step::Go, None), &mut |_, _| true).unwrap_err().to_string();
    assert!(why.contains("recoverable memory") && why.contains("--http"), "{why}");
}
