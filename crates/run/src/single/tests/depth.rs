//! Little's law for a closed loop that is deeper than the device's queue, whoever issues it: requests in flight are
//! throughput times mean latency. What the device does not take waits in the host.

use super::*;
use crate::held::Opening;
use crate::watched::{Controls, Onlooker, Sight, Step};
use nvlab_trace::columns::{Columns, Origin};
use nvlab_workload::Op;
use nvlab_workload::replay::{Replay, ReplaySpec};

const DEPTH: u32 = 16;
const REQUESTS: u32 = 20_000;
const SETS: [&str; 2] = ["media.nand.blocks=64", "path.queue=4"];

fn task(sets: &[&str], workload: &str) -> Task {
    let sets: Vec<String> = SETS.iter().chain(sets).map(|set| set.to_string()).collect();
    let design = Design::load("bench-4g", &sets).unwrap();
    let until = Some(format!("{REQUESTS} io").parse().unwrap());
    let settings = Settings { seed: 1, until, state: State::Full.into() };
    Task::new(design, "bench-4g".into(), &Source::read(workload, None).unwrap(), settings).unwrap()
}

fn in_flight(result: &RunResult) -> f64 {
    let sum = |op: &crate::result::OpResult| op.count as f64 * op.latency.mean_ns * 1e-9;
    (sum(&result.read) + sum(&result.write)) / result.simulated_s
}

/// In flight are those of a closed loop; the last of a run end one by one, a share of depth in requests.
fn check(who: &str, result: &RunResult) {
    let found = in_flight(result);
    assert!((found / DEPTH as f64 - 1.0).abs() < 0.02, "{who}: {found} requests in flight");
}

fn file(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("nvlab-depth-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The offset of a request of a list.
fn offset(nth: u32) -> u64 {
    nth.wrapping_mul(2_654_435_761) as u64 % 4096 * 4096
}

struct Looks;

impl Onlooker for Looks {
    fn begins(&mut self, _: Controls) {}
    fn before(&mut self, _: Sight<'_>) -> Step {
        Step::Go
    }
    fn cut(&mut self, _: nvlab_units::Time, _: u64, _: nvlab_units::Span) {}
    fn spacing(&self) -> Option<nvlab_units::Span> {
        None
    }
}

#[test]
fn a_closed_loop_may_be_deeper_than_the_devices_queue() {
    let line = |nth: u32| format!("{},h,0,Read,{},4096,0\n", nth as u64 * 10, offset(nth));
    let trace = file("trace.csv", &(0..REQUESTS).map(line).collect::<String>());
    let job =
        "[global]\nioengine=libaio\nrw=randread\nnorandommap\ntime_based\nruntime=1h\niodepth=8\n[a]\n[b]\n";
    let job = file("job.fio", job);
    let trace_workload = format!("{trace}:msr qd=16");
    for (who, sets, workload) in [
        ("generator", &[][..], "uniform rw=randread bs=4KiB qd=16"),
        ("mix", &[], "uniform rw=randrw read=50% bs=4KiB qd=16"),
        ("trace", &[], &trace_workload),
        ("together", &[], "uniform rw=randread bs=4KiB qd=10 + zipf rw=randread bs=8KiB qd=6"),
        ("jobs", &[], &job),
        ("stages", &["path.stages=moneta-baseline"], "uniform rw=randread bs=4KiB qd=16"),
    ] {
        check(who, &task(sets, workload).run(&mut |_, _| true).unwrap());
    }
    for path in [trace, job] {
        std::fs::remove_file(path).unwrap();
    }

    let task = task(&[], "uniform rw=randread bs=4KiB qd=16");
    let (plain, watched) =
        (task.run(&mut |_, _| true).unwrap(), task.run_watched(&mut Looks, &mut |_, _| true).unwrap());
    check("watched", &watched);
    assert_eq!((plain.read, plain.simulated_s), (watched.read, watched.simulated_s));
}

/// What a deeper queue of the host changes is how long its requests wait.
#[test]
fn the_device_does_the_same_whatever_waits_in_the_host() {
    let run = |depth: u32| {
        let workload = format!("uniform rw=randread bs=4KiB qd={depth}");
        task(&[], &workload).run(&mut |_, _| true).unwrap()
    };
    let (four, sixteen) = (run(4), run(16));
    assert_eq!(four.simulated_s, sixteen.simulated_s);
    let times = sixteen.read.latency.mean_ns / four.read.latency.mean_ns;
    assert!((times - 4.0).abs() < 0.02, "{times}");
}

#[test]
fn lists_of_requests_have_a_depth() {
    let sets = SETS.map(String::from);
    let named = crate::plan::Named::load("bench-4g", &sets).unwrap();
    let opening = Opening { preparation: State::Full.into(), seed: 1, keeps: false, shelf: None };
    let mut held = crate::held::HeldDevice::open(&named, opening, &mut |_, _| true).unwrap();
    let offsets: Vec<u64> = (0..REQUESTS).map(offset).collect();
    let (ops, bytes) = (vec![Op::Read; offsets.len()], vec![4096; offsets.len()]);
    let columns = Columns::of_lists(None, &ops, &offsets, &bytes, Origin::default()).unwrap();
    let spec = ReplaySpec { depth: Some(DEPTH), ..ReplaySpec::new("requests") };
    let mut replay = Replay::new(columns, &spec, named.design.capacity_bytes(), 1).unwrap();
    held.serve(&mut replay, &Limit::NONE, false, &mut |_| true).unwrap();
    check("list", &held.result().unwrap());
}
