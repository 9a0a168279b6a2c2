//! A run that cannot finish ends with an error that says why, never with a panic.

use super::*;
use crate::device::{Counters, Device, Insides, Maps, Observed};
use nvlab_access::BlockDevice;
use nvlab_controller::{Background, ControllerError, Powered, RecoveryReport};
use nvlab_units::{Die, Served, Span};
use nvlab_workload::Serves;

fn set(name: &str, sets: &[&str]) -> Design {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Design::load(name, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Why it has no result.
fn ends(design: Design, workload: &str, until: &str, state: State) -> String {
    match run_on(design, workload, until, state) {
        Ok(result) => panic!("a result after {} s", result.simulated_s),
        Err(error) => error.to_string(),
    }
}

/// An operation of a part may take a day, and the clock ends after 213 of them.
#[test]
fn a_run_that_passes_213_days_is_an_error() {
    const UNIFORM: &str = "uniform bs=4KiB";
    let runs: [(&str, &[&str], &str, State); 12] = [
        ("ssd-tlc", &["path.overhead.host=24 h"], UNIFORM, State::Fresh),
        ("ssd-tlc", &["path.overhead.host=24 h"], UNIFORM, State::Full),
        ("ssd-tlc", &["media.tlc.program=24 h"], UNIFORM, State::Fresh),
        ("ssd-tlc", &["media.tlc.program=24 h"], "uniform bs=64KiB rate=10k/s", State::Fresh),
        ("ssd-tlc", &["media.tlc.read=24 h"], "uniform bs=4KiB read=50% rate=10k/s", State::Full),
        ("ssd-tlc", &["media.tlc.erase=24 h"], UNIFORM, State::Steady),
        ("mlc-bast", &["media.mlc.program=24 h"], UNIFORM, State::Fresh),
        ("mlc-fast", &["media.mlc.read=24 h"], "uniform bs=4KiB read=50%", State::Full),
        ("hftl", &["media.pram.write=24 h"], UNIFORM, State::Fresh),
        ("hftl-fsms", &["media.pram.write=24 h"], "iozone mode=write record=4KiB file=1MiB", State::Fresh),
        ("envy", &["path.overhead.device=24 h"], "tpca branches=3 accounts=1000", State::Fresh),
        ("envy", &["media.flash.program=24 h"], UNIFORM, State::Full),
    ];
    for (name, sets, workload, state) in runs {
        let why = ends(set(name, sets), workload, "100000 io", state);
        assert!(
            why.contains("simulated time exceeded its maximum of 213 days"),
            "{name} {sets:?} {workload}: {why}"
        );
    }
}

/// Work queued behind the last request belongs to the run, too.
#[test]
fn queued_work_that_passes_213_days_is_an_error() {
    let design = set("ssd-tlc", &["media.tlc.program=24 h", "ftl.buffer.size=128 MiB", "array.channels=1"]);
    let why = ends(design, "sequential bs=1MiB", "100 io", State::Fresh);
    assert!(why.contains("simulated time exceeded its maximum of 213 days"), "{why}");
}

/// A run that ends in time: 57,844 reads one after the other, most of them while the volume is made. The 2,048 reads of a
/// die in the mount after it do not.
#[test]
fn a_mount_that_passes_213_days_is_an_error() {
    let why = ends(
        set("mlc-bast", &["media.mlc.read=312 s"]),
        "iozone mode=write record=4KiB file=1MiB",
        "200 io",
        State::Fresh,
    );
    assert!(why.contains("simulated time exceeded its maximum of 213 days"), "{why}");
    assert!(why.contains("after 200 requests"), "not in the mount: {why}");
}

/// A device that serves everything and fails at the very end.
#[derive(Debug)]
struct Failing;

impl BlockDevice for Failing {
    fn capacity_bytes(&self) -> u64 {
        4096
    }
    fn read(&mut self, at: Time, _: u64, _: u32, _: &mut [u8]) -> Result<Served, ControllerError> {
        Ok(Served { start: at, end: at })
    }
    fn write(&mut self, at: Time, _: u64, _: u32, _: &[u8]) -> Result<Served, ControllerError> {
        Ok(Served { start: at, end: at })
    }
    fn trim(&mut self, at: Time, _: u64, _: u32) -> Result<Served, ControllerError> {
        Ok(Served { start: at, end: at })
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        Ok(Served { start: at, end: at })
    }
}

impl Background for Failing {
    fn idle_at(&mut self, _: Time) -> Result<Time, ControllerError> {
        Err(ControllerError::EndOfLife { die: Die(0), bad: 3, blocks: 8 })
    }
    fn settle(&mut self, _: Time) {}
}

impl Powered for Failing {
    fn power_cycle(self, _: Time) -> Result<(Self, RecoveryReport), String> {
        Err("no root page is whole".into())
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        Ok(at)
    }
    fn trims_last(&self) -> bool {
        false
    }
}

impl Observed for Failing {
    fn counters(&self) -> Counters {
        Counters::default()
    }
    fn reset_stats(&mut self) {}
    fn expect_scattered_fill(&mut self) {}
    fn unit_bytes(&self) -> u32 {
        4096
    }
    fn blocks(&self) -> u32 {
        1
    }
    fn maps(&self) -> Maps {
        Err("a run that fails is not looked into")
    }
    fn insides(&self, _: Span) -> Insides<'_> {
        unreachable!("a run that fails is not looked into")
    }
}

impl Device for Failing {
    const KEEPS: bool = true;

    fn is_mapped(&self, _: u64) -> bool {
        false
    }
}

#[test]
fn work_that_cannot_be_finished_is_an_error() {
    let source = Source::read("uniform bs=4KiB", None).unwrap();
    let settings = Settings { seed: 1, until: Some("10 io".parse().unwrap()), state: State::Fresh.into() };
    let design = set("ssd-tlc", &[]);
    let task = Task::new(design.clone(), "x".into(), &source, settings).unwrap();
    let mut workload = source.open(4096, Serves::Blocks, 1).unwrap().work.requests().unwrap();
    let (plan, workload, on_progress) = (&task.plan, &mut *workload, &mut |_: &str, _| true);
    let requests = Requests {
        design: &design,
        plan,
        workload,
        own: None,
        begin: kept::Begin::default(),
        shelf: None,
        on_progress,
    };
    let ran = requests.on(Box::new(Failing));
    let why = ran.unwrap_err().to_string();
    assert!(
        why.starts_with("x: background work accepted at 0 of simulated time cannot be finished: die 0"),
        "{why}"
    );

    let why = mount(Box::new(Failing), &task.plan, &Progress::default()).unwrap_err().to_string();
    assert_eq!(why, "x: the mount after a power cut failed: no root page is whole");
}

/// Reads of nothing, where neither host nor link take time: they were repeated for ever.
#[test]
fn requests_that_take_no_time_are_an_error() {
    let both = "uniform rw=randread bs=4KiB until=1s + uniform rw=randread bs=8KiB until=1s";
    for (workload, until) in [("uniform rw=randread bs=4KiB qd=4", "1 s"), (both, "1e15 io")] {
        let why = ends(set("bench-4g", &[]), workload, until, State::Fresh);
        assert!(why.contains("took no time"), "{why}");
    }
}
