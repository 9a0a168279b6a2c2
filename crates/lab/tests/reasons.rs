//! What limits a run is said, truly, and only where a bound decides.

use nvlab_lab::design::Design;
use nvlab_lab::plan::{Settings, Source, Task};
use nvlab_lab::report::{Style, compare_text, reasons, run_text};
use nvlab_lab::result::RunResult;
use nvlab_lab::run::State;

fn run(design: &str, sets: &[&str], workload: &str, until: &str, state: State) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let resolved = Design::load(design, &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source::read(workload, None).unwrap();
    let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: state.into() };
    Task::new(resolved, design.into(), &source, settings).unwrap().run(&mut |_, _| true).unwrap()
}

const SMALL: &[&str] = &["media.tlc.blocks=24", "ftl.spare=30 %", "ftl.map.checkpoint=256 MiB"];

#[track_caller]
fn says(run: &RunResult, what: &str) {
    let found = reasons(run);
    assert!(found.iter().any(|reason| reason.contains(what)), "`{what}` is not among {found:?}");
}

#[test]
fn few_requests_in_flight_leave_dies_idle() {
    let one = run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB qd=1", "20k io", State::Full);
    // One of four dies at most.
    let flash = one.flash.as_ref().unwrap();
    assert!(flash.busy_read <= 0.25);
    says(&one, "requests in flight on average keep at most as many of 4 busy");
    let eight = run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB qd=6", "20k io", State::Full);
    let busy = eight.flash.as_ref().unwrap().busy_read;
    match busy < 0.75 {
        true => says(&eight, "wait for one die while others have none"),
        false => assert!(reasons(&eight).iter().all(|reason| !reason.contains("idle"))),
    }
}

#[test]
fn dies_that_may_not_program_at_the_same_time_are_idle() {
    let rate = |programs: &str| {
        let sets = [SMALL, &[programs]].concat();
        run("ssd-tlc", &sets, "sequential rw=write bs=128KiB qd=8", "2 x capacity", State::Full)
    };
    let (all, two) = (rate("array.programs=4"), rate("array.programs=2"));
    says(&two, "dies idle 49.");
    says(&two, "of 4 no more than 2 program at the same time");
    assert!(reasons(&all).iter().all(|reason| !reason.contains("idle")), "{:?}", reasons(&all));
    let share = two.write.bytes_per_s / all.write.bytes_per_s;
    assert!((share - 0.5).abs() < 0.02, "{share}");
}

#[test]
fn what_is_saturated_is_the_limit() {
    let deep = run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB qd=128", "50k io", State::Full);
    says(&deep, "the dies are busy");
    let writes = run("ssd-tlc", SMALL, "uniform rw=randwrite bs=4KiB qd=32", "3 x capacity", State::Full);
    says(&writes, "the write buffer was full");
    let narrow = [SMALL, &["path.rate=100 MB/s"]].concat();
    let narrow = run("ssd-tlc", &narrow, "sequential rw=read bs=1MiB qd=8", "2000 io", State::Full);
    assert!((narrow.read.bytes_per_s - 100e6).abs() < 5e6, "{}", narrow.read.bytes_per_s);
    says(&narrow, "the link is busy");
    let slow = [SMALL, &["path.overhead.host=500 us"]].concat();
    let slow = run("ssd-tlc", &slow, "uniform rw=randread bs=4KiB qd=1", "5000 io", State::Full);
    says(&slow, "the host's software and the link's protocol");
}

#[test]
fn a_workload_that_asks_for_little_is_the_limit() {
    let few = run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB rate=500/s", "5000 io", State::Full);
    // 500 requests a second of about 80 us each: in flight 4 % of the time.
    says(&few, "the workload is the limit");
    assert!(reasons(&few)[0].contains("at least 9"), "{:?}", reasons(&few));
    let style = Style { color: false, width: 100 };
    assert!(run_text(&few, style).contains("Why"));
    let text = compare_text::<&str>(&[vec![few]], &[], nvlab_lab::report::Format::Human).unwrap();
    assert!(text.contains("the workload is the limit"), "{text}");
}

#[test]
fn a_full_slc_cache_is_named() {
    let sets = ["media.tlc.blocks=100"];
    let full = run("tlc-pslc", &sets, "sequential rw=write bs=1MiB qd=8", "1 x capacity", State::Full);
    match full.cache.as_ref().unwrap().written_share < 0.5 {
        true => says(&full, "the SLC cache was full"),
        false => panic!("{:?}", full.cache),
    }
}

#[test]
fn years_beyond_retention_are_of_wear_alone() {
    let rare = run("ssd-tlc", SMALL, "uniform rw=randwrite bs=4KiB rate=1/s", "200 io", State::Full);
    assert!(rare.lifetime.years.unwrap() > 100.0, "{:?}", rare.lifetime);
    assert_eq!(rare.lifetime.limited_by_retention(), Some(10));
    let text = run_text(&rare, Style { color: false, width: 200 });
    assert!(text.contains("limited by retention"), "{text}");
    let busy = run("ssd-tlc", SMALL, "uniform rw=randwrite bs=4KiB qd=32", "1 x capacity", State::Full);
    assert_eq!(busy.lifetime.limited_by_retention(), None);
}

/// Within what memory covers of the map reads are as fast as with all of it; beyond, a miss is another read of the flash.
#[test]
fn reads_beyond_what_the_memory_covers_wait_for_the_map() {
    const DEMAND: &[&str] = &[
        "array.ways=1",
        "media.tlc.blocks=32",
        "ftl.capacity=4 GiB",
        "ftl.buffer.size=2 MiB",
        "ftl.map.cache=32 KiB",
        "ftl.map.host_buffer=992 KiB",
    ];
    let read = |span: &str, sets: &[&str]| {
        let sets = [DEMAND, sets].concat();
        let workload = format!("uniform rw=randread bs=4KiB qd=1 span={span}");
        run("dramless-hmb-512gb", &sets, &workload, "40k io", State::Full)
    };
    // 1 MiB of memory covers 1 GiB: a quarter of the device.
    let (all, within, host) =
        (read("4GiB", &[]), read("512MiB", &[]), read("512MiB", &["ftl.map.cache=1 MiB"]));
    says(&all, "the map does not fit in memory");
    assert!(reasons(&within).iter().all(|reason| !reason.contains("map")), "{:?}", reasons(&within));
    let hits = |run: &RunResult| run.map.unwrap().hit_share();
    assert!((hits(&all) - 0.25).abs() < 0.02 && hits(&within) > 0.99, "{} {}", hits(&all), hits(&within));
    let mean = |run: &RunResult| run.read.latency.mean_ns;
    // 65 us to read and decode a unit on average, 2.56 us to transfer it; all is on the chip in one, nearly all in the host's
    // memory in the other.
    let (missing, fetching) = (mean(&all) - mean(&within), mean(&within) - mean(&host));
    assert!(
        (missing / (0.75 * 67_560.0 - 1000.0 * 0.75) - 1.0).abs() < 0.05,
        "{missing} ns more with misses"
    );
    assert!((fetching / 1000.0 - 1.0).abs() < 0.1, "{fetching} ns more from the host's memory");
}
