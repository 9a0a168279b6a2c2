//! A 95 % interval contains the truth in about 95 % of all cases: of one run by its parts, and of three runs.

use super::*;
use crate::device::Counters;
use crate::sample;
use crate::stats::Estimate;

/// Requests of a run, and those before it, after which the state of the device is another one.
const RUN: u64 = 4096;
const BETWEEN: u64 = 3000;
const TRIALS: usize = 200;

const SMALL: [&str; 3] = ["media.nand.blocks=24", "array.channels=4", "ftl.spare=20%"];
const MIXED: &str = "zipf theta=0.9 rw=randrw read=30% bs=8KiB qd=4";

/// A run goes on until its figure is known, and not much longer; a shorter one says that it is too short.
#[test]
fn a_run_ends_when_its_figure_is_known() {
    let design = Design::load("bench-4g", &SMALL.map(String::from)).unwrap();
    let source = Source::read(MIXED, None).unwrap();
    let of = |until: &str| {
        let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: State::Steady.into() };
        let task = Task::new(design.clone(), "bench-4g".into(), &source, settings).unwrap();
        task.run(&mut |_, _| true).unwrap()
    };
    let within = |run: &RunResult| run.precision_of("waf").unwrap().within.unwrap();
    let (rough, exact) = (of("waf within 5 %"), of("2 %"));
    assert!(within(&rough) <= 0.05 && within(&exact) <= 0.02, "{} {}", within(&rough), within(&exact));
    assert!(rough.requests_served < exact.requests_served, "{} requests", rough.requests_served);
    assert!(exact.doubts("waf").is_empty() && !rough.doubts("waf").is_empty(), "{:?}", rough.doubts("waf"));
    let short = of(&format!("{} io", exact.requests_served / 8));
    assert!(within(&short) > 0.02, "{}", within(&short));
    let doubts = short.doubts("waf");
    assert!(doubts[0].starts_with("± ") && doubts[0].ends_with(" %: too short"), "{doubts:?}");
    // Too few erases to say anything, and nothing that is by chance.
    assert_eq!(of("300 io").precision_of("waf").map(|waf| waf.within), Some(None));
    assert_eq!(exact.precision_of("price"), None);
}

/// Write amplification between two counts.
fn waf(before: &Counters, after: &Counters) -> f64 {
    let counted = after.since(before);
    counted.programmed_units() as f64 / counted.host_units as f64
}

/// Four dies that clean nearly at the same time: a run holds about 12 bursts of 4 blocks.
#[test]
fn intervals_contain_the_truth() {
    let design = Design::load("bench-4g", &SMALL.map(String::from)).unwrap();
    let source = Source::read(MIXED, None).unwrap();
    let capacity = design.capacity_bytes();
    let work = source.open(capacity, design.ftl.kind().serves(), 1).unwrap().work;
    let mut workload = work.requests().unwrap();
    let mut device = device::any(&design, 1, None).unwrap();
    let steady = Preparation::from(State::Steady);
    let (_, mut now) = precondition::precondition(&mut *device, &steady, None, &mut |_, _| true).unwrap();
    let mut serve = |now: &mut Time, requests: u64, meter: Option<&mut Meter>| {
        let limit = Limit { requests, ..Limit::NONE };
        let watch = Watch { meter, go_on: &mut |_| true };
        *now =
            drive::drive(&mut *device, &mut *workload, *now, design.path.queue, &limit, watch).unwrap().now;
        device.counters()
    };
    let first = serve(&mut now, 100 * BETWEEN, None);
    let (mut last, mut runs) = (first, Vec::new());
    for _ in 0..3 * TRIALS {
        let before = serve(&mut now, BETWEEN, None);
        let mut meter = Meter::new(now, before, Some(RUN));
        last = serve(&mut now, RUN, Some(&mut meter));
        let mut run = sample::run("bench-4g", 1);
        run.write_amplification.total = waf(&before, &last);
        run.precision = meter.precision();
        runs.push(run);
    }
    let truth = waf(&first, &last);
    let waf = crate::metric::find("waf").unwrap();
    let alone: Vec<Estimate> =
        runs.iter().map(|run| Estimate::of_runs(&waf, std::slice::from_ref(run)).unwrap()).collect();
    let three: Vec<Estimate> = runs.chunks(3).map(|runs| Estimate::of_runs(&waf, runs).unwrap()).collect();
    contain("one run", &alone[..TRIALS], truth);
    contain("three runs", &three, truth);
}

/// Of 200 trials 190 are expected, and 184 or more in all but one case in 40. Wide intervals contain everything, and say nothing.
#[track_caller]
fn contain(what: &str, estimates: &[Estimate], truth: f64) {
    let count = estimates.len() as f64;
    let inside = |estimate: &&Estimate| (estimate.mean - truth).abs() <= estimate.interval;
    let share = estimates.iter().filter(inside).count() as f64 / count;
    let error = (estimates.iter().map(|one| (one.mean - truth).powi(2)).sum::<f64>() / count).sqrt();
    let wide = estimates.iter().map(|one| one.interval).sum::<f64>() / count / (1.96 * error);
    assert!(
        share >= 0.95 - 2.0 * (0.95 * 0.05 / count).sqrt(),
        "{what}: {share} of {count} contain {truth}, {wide} times as wide as they must be"
    );
    assert!(wide < 3.5, "{what}: {wide} times as wide as they must be, {share} contain {truth}");
}

/// Each run on a device of its own, prepared anew; three of them are repetitions.
#[test]
fn intervals_contain_the_truth_whatever_the_preparation() {
    let design = Design::load("bench-4g", &SMALL.map(String::from)).unwrap();
    let source = Source::read(MIXED, None).unwrap();
    let run = |number: u64| {
        let state = Preparation::from(State::Steady).repeated(number);
        let until = Some(format!("{RUN} io").parse().unwrap());
        let task = Task::new(
            design.clone(),
            "bench-4g".into(),
            &source,
            Settings { seed: 1 + number, until, state },
        );
        task.unwrap().run(&mut |_, _| true).unwrap()
    };
    let half = |odd: u64| move || (0..TRIALS as u64 / 2).map(|number| run(2 * number + odd)).collect();
    let runs: Vec<RunResult> = std::thread::scope(|scope| {
        let halves: [std::thread::ScopedJoinHandle<'_, Vec<RunResult>>; 2] =
            [0, 1].map(|odd| scope.spawn(half(odd)));
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    for name in ["waf", "iops", "waf.clean", "busy.flash", "busy.program", "busy.channel"] {
        let metric = crate::metric::find(name).unwrap();
        let of = |runs: &[RunResult]| Estimate::of_runs(&metric, runs).unwrap();
        let truth = of(&runs).mean;
        let alone: Vec<Estimate> = runs.chunks(1).map(of).collect();
        let three: Vec<Estimate> = runs.chunks_exact(3).map(of).collect();
        contain(&format!("{name} of one run"), &alone, truth);
        contain(&format!("{name} of three runs"), &three, truth);
    }
}
