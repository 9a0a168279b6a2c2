//! A memory-semantic drive, run as words and as blocks: latencies by hand, hits as there is room, and what is written back.

use nvlab_design::Design;
use nvlab_run::State;
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::RunResult;

/// 4 MiB of lines in front of a drive of 172 MiB.
const SMALL: &[&str] = &[
    "media.tlc.pages=48",
    "media.tlc.blocks=24",
    "ftl.spare=40 %",
    "ftl.buffer.size=2 MiB",
    "media.cache.size=4 MiB",
];

fn run(more: &[&str], workload: &str, until: &str) -> RunResult {
    let sets: Vec<String> = SMALL.iter().chain(more).map(|set| set.to_string()).collect();
    let design = Design::load("cxl-ms-ssd", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source::read(workload, None).unwrap();
    let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: State::Full.into() };
    Task::new(design, "cxl-ms-ssd".into(), &source, settings).unwrap().run(&mut |_, _| true).unwrap()
}

/// 120 ns for the link, 2.3 for 64 B on it, 60 for the first access of the memory, 2.5 for the word on its data bus.
const LOAD_NS: f64 = 184.8;
const STORE_NS: f64 = 122.3;

#[test]
fn words_that_hit() {
    // 1,024 lines, used by words of 512 of them.
    let run = run(&[], "words page=4KiB span=2MiB load=50%", "100000 io");
    let lines = run.lines.unwrap();
    assert_eq!(lines.fetched + lines.ahead_used, 512, "each line once: {lines:?}");
    assert!((run.read.latency.p50_ns as f64 / LOAD_NS - 1.0).abs() < 0.02, "{:?}", run.read.latency);
    assert!((run.write.latency.p50_ns as f64 / STORE_NS - 1.0).abs() < 0.02, "{:?}", run.write.latency);
    // 40 % of the lines may be dirty, and 512 are: the rest is written back.
    assert!(lines.dirty <= 409 && lines.written_back > 0, "{lines:?}");
}

/// Every line is as likely: hits are the share of lines that have room. A miss is 2 us of firmware, 45 to 75 us of cells
/// (60 on average), 4 KiB at 1.2 GB/s (3.4 us) and 5 us to decode them, more if the die is busy with what is written back.
#[test]
fn words_that_miss() {
    let run = run(&["ftl.cache.prefetch.kind=none"], "words page=4KiB load=100%", "200000 io");
    let lines = run.lines.unwrap();
    let pages = (run.design.capacity_bytes / 4096) as f64;
    assert!((lines.hit_share() - 1024.0 / pages).abs() < 0.003, "{lines:?} of {pages}");
    let miss = 2_000.0 + 60_000.0 + 3_413.0 + 5_000.0 + 64.0 * 2.5;
    let mean = LOAD_NS + (1.0 - lines.hit_share()) * miss;
    assert!((run.read.latency.mean_ns / mean - 1.0).abs() < 0.02, "{} for {mean}", run.read.latency.mean_ns);
    assert_eq!((lines.written_back, lines.dirty, lines.fetched_ahead), (0, 0, 0));
    assert_eq!(lines.hits + lines.fetched, 200_000);
}

/// Blocks of a scan are fetched ahead: by lines of one page of one plane at a time, with the link and its software on top.
#[test]
fn a_scan_is_fetched_ahead() {
    let scan = "sequential rw=read bs=4KiB qd=1";
    let (ahead, alone) =
        (run(&[], scan, "10000 io"), run(&["ftl.cache.prefetch.kind=none"], scan, "10000 io"));
    let lines = ahead.lines.unwrap();
    assert!(lines.fetched < 10 && lines.ahead_used > 9_000, "{lines:?}");
    assert_eq!(alone.lines.unwrap().hits, 0);
    let (ahead, alone) = (ahead.read.latency.mean_ns, alone.read.latency.mean_ns);
    // Alone: 4.1 us to the device, 70.4 for the flash, 4 KiB in and out of the memory and over the link.
    assert!((alone / (4_120.0 + 70_413.0 + 160.0 + 220.0 + 146.0) - 1.0).abs() < 0.02, "{alone}");
    assert!(ahead < alone * 0.6, "{ahead} ahead, {alone} alone");
}

/// 2 % of the pages, 880 of 4,096 lines, take 95 % of the stores, and 1,638 may be dirty: the hot ones nearly always, so 758
/// cold ones. Each cold line that is stored to replaces one, dirty in 758 of 3,216 cases; in the other 76 % a cold line is
/// written back by the sweep, and with it the hot ones on the way: 880 for 758 cold ones if those lay as densely everywhere,
/// fewer because they are densest where the sweep has not been for longest. So from 1 to 1 + 0.76 x 880 / 758 = 1.9 each.
#[test]
fn hot_lines_are_written_back_less_often_than_they_are_stored_to() {
    let run = run(&["media.cache.size=16 MiB"], "words page=4KiB hot=2/95 load=0%", "200000 io");
    let (lines, wa) = (run.lines.unwrap(), run.write_amplification);
    assert!((0.94..0.96).contains(&lines.hit_share()), "{lines:?}");
    let for_each = lines.written_back as f64 / lines.fetched as f64;
    assert!((1.0..1.9).contains(&for_each) && lines.dirty == 1638, "{for_each}: {lines:?}");
    assert!(wa.total >= 1.0, "{wa:?}");
    assert_eq!(lines.stores, 200_000);
}
