//! Streams that run together, each with its pace, delays and figures.

use crate::plan::{Settings, Source, Task};
use crate::result::{RunResult, TenantResult};
use crate::{RunError, State as Condition};
use nvlab_design::Design;

/// Runs a job file, or a text, on a small device.
fn run(text: &str) -> RunResult {
    tried(text).unwrap()
}

fn tried(text: &str) -> Result<RunResult, RunError> {
    let source = Source::read(text, None).unwrap();
    let design = Design::load("bench-4g", &[]).unwrap();
    let settings = Settings { seed: 1, until: None, state: Condition::Fresh.into() };
    let task = Task::new(design, "bench-4g".into(), &source, settings).unwrap();
    task.run(&mut |_, _| true)
}

fn job(name: &str, text: &str) -> RunResult {
    let file = std::env::temp_dir().join(format!("nvlab-tenants-{}-{name}.fio", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let result = run(&file.display().to_string());
    std::fs::remove_file(&file).unwrap();
    result
}

#[test]
fn one_stream_of_several_is_what_it_would_be_alone() {
    let alone = run("uniform qd=4 until=5000io");
    let pause = "[a]\nrw=randwrite\nnorandommap\nioengine=libaio\niodepth=4\nnumber_ios=5000\n";
    let paused = job("alone", &format!("{pause}thinktime=1\nthinktime_blocks=4000000\n"));
    assert_eq!(paused.tenants.len(), 1);
    assert_eq!((paused.write.count, alone.write.count), (5000, 5000));
    assert!((paused.write.per_s / alone.write.per_s - 1.0).abs() < 0.01);
}

#[test]
fn stonewall_waits_and_pauses_are_kept() {
    let text = "[global]\nrw=randwrite\nbs=4k\nnumber_ios=1000\n[a]\n[b]\nthinktime=1000\n[c]\nstonewall\n\
                startdelay=2\n[d]\nwait_for=c\n";
    let result = job("phases", text);
    let [a, b, c, d] = &result.tenants[..] else { panic!("{:?}", result.tenants) };
    assert_eq!((a.from_s, b.from_s), (0.0, 0.0));
    // One write after the other, with a pause of a millisecond between two of them.
    let writes = |tenant: &TenantResult| tenant.write.latency.mean_ns * 1000e-9;
    assert!((a.to_s - writes(a)).abs() < 1e-6, "{} of {}", writes(a), a.to_s);
    assert!((b.to_s - writes(b) - 0.999).abs() < 1e-6, "{} of {}", writes(b), b.to_s);
    assert!((c.from_s - b.to_s - 2.0).abs() < 1e-9, "{} after {}", c.from_s, b.to_s);
    assert!((d.from_s - c.to_s).abs() < 1e-9);
    assert_eq!(result.write.count, 4000);
}

/// A rate that cannot be kept leaves the closed loop behind it: its depth, its latency, its end.
#[test]
fn a_rate_is_a_limit_in_front_of_a_closed_loop() {
    let text = "[a]\nrw=randwrite\nnorandommap\nioengine=libaio\niodepth=4\ntime_based\nruntime=1\n";
    let (plain, fast) = (job("plain", text), job("fast", &format!("{text}rate_iops=1000k\n")));
    assert!(fast.simulated_s < 1.01 && fast.closed_loop, "{}", fast.simulated_s);
    assert!((fast.write.per_s / plain.write.per_s - 1.0).abs() < 0.01, "{}", fast.write.per_s);
    let in_flight = fast.write.per_s * fast.write.latency.mean_ns * 1e-9;
    assert!((in_flight / 4.0 - 1.0).abs() < 0.02, "{in_flight}");
    let slow = job("slow", &format!("{text}rate_iops=100\n"));
    assert!((slow.write.per_s - 100.0).abs() < 2.0, "{}", slow.write.per_s);
    let alone = run("uniform qd=1 until=100io").write.latency.mean_ns;
    assert!((slow.write.latency.mean_ns / alone - 1.0).abs() < 0.02, "it waits for no other");
}

#[test]
fn what_ramps_up_is_not_measured() {
    let text = "[a]\nrw=randwrite\nnorandommap\nrate_iops=1000\ntime_based\nruntime=2\n";
    let (plain, ramped) = (job("without", text), job("ramped", &format!("{text}ramp_time=3\n")));
    assert!((plain.write.count as i64 - 2000).abs() < 5, "{}", plain.write.count);
    assert!((ramped.write.count as i64 - 2000).abs() < 5, "{}", ramped.write.count);
    assert!((ramped.simulated_s - 2.0).abs() < 0.01, "{}", ramped.simulated_s);
}

#[test]
fn a_group_is_one_row() {
    let text = "[global]\nrw=randread\nnumber_ios=100\nnumjobs=3\n[a]\n[b]\n";
    let apart = job("apart", text);
    let group = job("group", &text.replace("[a]", "group_reporting\n[a]"));
    assert_eq!((apart.tenants.len(), group.tenants.len()), (6, 1));
    let [row] = &group.tenants[..] else { panic!("{:?}", group.tenants) };
    assert_eq!((row.name.as_str(), row.read.count), ("a", 600));
    assert_eq!(row.read.latency, group.read.latency);
    let last = apart.tenants.iter().map(|tenant| tenant.to_s).fold(0.0, f64::max);
    assert_eq!((row.from_s, row.to_s), (0.0, last));
}

#[test]
fn each_stream_has_its_own_rate_and_the_device_serves_both() {
    let text = "uniform rate=1000/s arrivals=regular until=2s + uniform rw=randread rate=3000/s until=2s arrivals=regular";
    let result = run(text);
    let [writes, reads] = &result.tenants[..] else { panic!("{:?}", result.tenants) };
    assert_eq!((writes.write.count, reads.read.count), (2000, 6000));
    assert_eq!((result.write.count, result.read.count), (2000, 6000));
    assert_eq!((writes.read.count, reads.write.count), (0, 0));
    let again = run(text);
    assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&result).unwrap());
}

/// The time of an overloaded stream ends whether another runs beside it or not.
#[test]
fn a_stream_ends_with_its_time_whatever_waits() {
    let alone = run("uniform rate=1M/s arrivals=regular until=100ms");
    let beside =
        run("uniform rate=1M/s arrivals=regular until=100ms + uniform rw=randread rate=10/s until=200ms");
    let (one, both) = (alone.arrivals.unwrap(), beside.tenants[0].arrivals.unwrap());
    assert_eq!(one.offered, 100_000, "{one:?}");
    assert_eq!(both.offered, one.offered);
    let [served, with] = [&alone.write, &beside.tenants[0].write].map(|write| write.count as f64);
    assert!(served < 90_000.0 && (with / served - 1.0).abs() < 0.05, "{served} alone, {with}");
    assert!(beside.tenants[0].to_s < 0.11, "{:?}", beside.tenants[0]);
}

/// Without an end in time, a run that does not come to its own end in time says why.
#[test]
fn pauses_beyond_the_end_of_time_are_an_error() {
    let text = "[a]\nrw=randwrite\nbs=4k\nioengine=libaio\niodepth=4\nsize=1g\nthinktime=100s\n";
    let file = std::env::temp_dir().join(format!("nvlab-tenants-{}-over.fio", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let ran = tried(&file.display().to_string());
    std::fs::remove_file(&file).unwrap();
    let why = ran.unwrap_err().to_string();
    assert!(why.contains("simulated time exceeded its maximum of 213 days"), "{why}");
}

/// As in fio, whose figures begin with the first request.
#[test]
fn a_delay_before_all_is_not_of_the_run() {
    let text = |delay: &str| {
        format!("[a]\nrw=randwrite\nioengine=libaio\niodepth=4\nruntime=1\ntime_based\nsize=1m\n{delay}")
    };
    let (now, later) = (job("now", &text("")), job("later", &text("startdelay=3\n")));
    assert_eq!((now.simulated_s, now.write.per_s), (later.simulated_s, later.write.per_s));
    let both = job("both", &(text("startdelay=3\n") + "[b]\nrw=read\nnumber_ios=10\nstartdelay=3500ms\n"));
    assert_eq!((both.tenants[0].from_s, both.tenants[1].from_s), (0.0, 0.5));
}
