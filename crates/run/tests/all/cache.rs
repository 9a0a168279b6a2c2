//! A cache of blocks in SLC mode from a design's text to a result: counted by hand, and larger runs whose parts add up.

use nvlab_design::Design;
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::RunResult;
use nvlab_run::{Limit, RunPlan, State, run_requests};
use nvlab_units::Time;
use nvlab_workload::{Batch, BlockWorkload, Op, Pacing, Request, Workload};

/// One die of 20 blocks of 8 pages, or 4 in SLC mode; two blocks may be in SLC mode.
const DESIGN: &str = r#"
schema = 1
[media.mlc]
part = "mlc-2010"
block = "32 KiB"
blocks = 20
[media.slc]
part = "slc-2010"
block = "16 KiB"
[media.dram]
part = "dram"
size = "1 MiB"
[ftl]
kind = "page"
medium = "mlc"
spare = "40 %"
[ftl.map]
in = "dram"
[ftl.cache]
kind = "pslc"
in = "slc"
size_max = "10 %"
spared = 0
fold_after = "10 ms"
[path]
kind = "direct"
"#;

/// Writes of single pages, each at a given millisecond.
struct Pages<'a>(std::slice::Iter<'a, (u64, u64)>);

impl BlockWorkload for Pages<'_> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        let before = batch.len();
        while batch.room() > 0
            && let Some(&(ms, page)) = self.0.next()
        {
            let at = Time::from_ns(ms * 1_000_000);
            batch.push(Request { at, offset: page * 4096, bytes: 4096, op: Op::Write, ..Request::default() });
        }
        batch.len() - before
    }
}

impl Workload for Pages<'_> {
    fn pacing(&self) -> Pacing {
        Pacing::Open
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        0..96 * 4096
    }
}

fn by_hand(sets: &[&str], pages: &[(u64, u64)]) -> RunResult {
    by_hand_on(State::Fresh, sets, pages)
}

fn by_hand_on(state: State, sets: &[&str], pages: &[(u64, u64)]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let design = Design::parse("small.toml", DESIGN, &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let plan = RunPlan {
        design_name: "small".into(),
        workload_text: "by hand".into(),
        workload_about: String::new(),
        seed: 1,
        state: state.into(),
        until: None,
        limit: Limit::NONE,
        requests_asked: Some(pages.len() as u64),
    };
    run_requests(&design, &plan, &mut Pages(pages.iter()), None, None, &mut |_, _| true).unwrap()
}

/// Twelve pages, a millisecond apart.
fn twelve() -> Vec<(u64, u64)> {
    (0..12).map(|page| (page, page)).collect()
}

#[test]
fn idle_time_empties_the_cache() {
    // Two blocks in SLC mode take eight pages, MLC the next four. After a second of silence one is overwritten, in the
    // MLC block that is open.
    let mut pages = twelve();
    pages.push((1000, 0));
    let run = by_hand(&[], &pages);
    let cache = run.cache.expect("it has a cache");
    assert_eq!((cache.written_share, cache.folded_blocks, cache.blocks), (8.0 / 13.0, 2, 0));
    let wa = run.write_amplification;
    assert_eq!((wa.total, wa.host, wa.fold, wa.clean), (21.0 / 13.0, 1.0, 8.0 / 13.0, 0.0));
    let [data, slc] = run.media.as_slice() else { panic!("two kinds of blocks: {:?}", run.media) };
    assert_eq!((data.reads, data.programs, data.erases), (0, 13, 0));
    assert_eq!((slc.role.as_str(), slc.reads, slc.programs, slc.erases), ("slc", 8, 8, 2));
    // Table II: 25 us, 200 us and 1.5 ms in SLC mode, 800 us to program MLC.
    let us = |seconds: f64| (seconds * 1e6).round() as u64;
    assert_eq!([slc.read_s, slc.program_s, slc.erase_s].map(us), [200, 1_600, 3_000]);
    assert_eq!([data.read_s, data.program_s, data.erase_s].map(us), [0, 10_400, 0]);
    // The same 20 blocks had two erases of 100,000 cycles in SLC mode, and 13 pages at 8 per block with 10,000 cycles.
    let share = (2.0 / 100_000.0 + 13.0 / 8.0 / 10_000.0) / 20.0;
    let years = run.simulated_s / share / (365.25 * 86_400.0);
    assert!((run.lifetime.years.unwrap() / years - 1.0).abs() < 1e-9, "{:?}", run.lifetime);
    // The thirteenth write does not wait: folding was done before, in idle time.
    assert!(run.write.latency.max_ns < 1_000_000, "{:?}", run.write.latency);
}

#[test]
fn a_run_begins_with_a_folded_cache() {
    // The fill of 96 pages leaves two blocks in SLC mode with the first eight of them. They are folded before the run, whose
    // twelve pages then find the cache empty.
    let run = by_hand_on(State::Full, &[], &twelve());
    // Eight reads of 25 us in SLC mode, eight programs of 800 us, two erases of 1.5 ms; the silence before them has passed
    // by the time the fill is programmed. Each page crosses the channel twice, in 102.4 us: the first one with nothing beside it, and
    // at most all of them.
    let (cells, transfer) = (9.6e-3, 102.4e-6);
    let rested = run.precondition.rested_s;
    assert!(rested >= cells + 2.0 * transfer && rested <= cells + 16.0 * transfer, "{:?}", run.precondition);
    let cache = run.cache.expect("it has a cache");
    assert_eq!((cache.written_share, cache.folded_blocks), (8.0 / 12.0, 0));
    // Without folding in idle time there is nothing to wait for, and no room in the cache.
    let run = by_hand_on(State::Full, &["ftl.cache.fold_after=none"], &twelve());
    assert_eq!((run.precondition.rested_s, run.cache.unwrap().written_share), (0.0, 0.0));
}

/// A driver with a memory beside the controller, neither of which has anything to do: the cache is folded before the run and
/// in its silence, as without them.
#[test]
fn an_idle_memory_beside_it_changes_nothing() {
    let mut pages = twelve();
    pages.push((1000, 0));
    let beside = ["media.pram.part=pram-kps1215ezm", "ftl.route.kind=fsms", "ftl.route.in=pram"];
    for state in [State::Fresh, State::Full, State::Steady] {
        let (alone, beside) = (by_hand_on(state, &[], &pages), by_hand_on(state, &beside, &pages));
        let route = beside.pram.as_ref().and_then(|pram| pram.route.as_ref()).expect("it has a driver");
        assert_eq!((route.written_sectors, route.pram_written_sectors), (13 * 8, 0));
        assert_eq!(beside.precondition, alone.precondition, "{state:?}");
        assert_eq!((beside.cache, beside.write), (alone.cache, alone.write), "{state:?}");
        assert_eq!(beside.write_amplification, alone.write_amplification, "{state:?}");
    }
}

#[test]
fn a_busy_host_bypasses_a_full_cache() {
    let run = by_hand(&[], &twelve());
    let cache = run.cache.expect("it has a cache");
    assert_eq!((cache.written_share, cache.folded_blocks, cache.blocks), (8.0 / 12.0, 0, 2));
    assert_eq!(run.write_amplification.total, 1.0);
}

#[test]
fn with_when_full_fold_the_host_waits_until_the_oldest_block_is_folded() {
    let run = by_hand(&["ftl.cache.when_full=fold"], &twelve());
    let cache = run.cache.expect("it has a cache");
    assert_eq!((cache.written_share, cache.folded_blocks, cache.blocks), (1.0, 1, 2));
    let wa = run.write_amplification;
    assert_eq!((wa.total, wa.fold), (16.0 / 12.0, 4.0 / 12.0));
    // The ninth waits for 4 x (25 + 800) us and an erase of 1.5 ms.
    assert!(run.write.latency.max_ns > 4_800_000, "{:?}", run.write.latency);
}

fn generated(name: &str, sets: &[&str], workload: &str, until: &str) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let design = Design::load(name, &sets).unwrap_or_else(|errors| panic!("{name}: {errors}"));
    let source = Source::read(workload, None).unwrap();
    let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: State::Full.into() };
    Task::new(design, name.into(), &source, settings).unwrap().run(&mut |_, _| true).unwrap()
}

fn adds_up(run: &RunResult) {
    let wa = &run.write_amplification;
    let parts: f64 = wa.parts().iter().sum();
    assert!((wa.total - parts).abs() < 1e-9, "{wa:?}");
    assert_eq!((wa.merge, wa.transfer), (0.0, 0.0));
    let of = |figure: fn(&nvlab_run::result::MediumResult) -> u64| run.media.iter().map(figure).sum::<u64>();
    let flash = run.flash.as_ref().unwrap();
    assert_eq!(
        (of(|m| m.reads), of(|m| m.programs), of(|m| m.erases)),
        (flash.reads, flash.programs, flash.erases)
    );
}

#[test]
fn a_drive_with_pauses_folds_in_them_and_its_parts_add_up() {
    // A small drive with static wear levelling and a protected buffer; 200 requests a second leave pauses.
    let small = [
        "media.tlc.blocks=40",
        "array.channels=1",
        "ftl.spare=40 %",
        "ftl.map.checkpoint=none",
        "ftl.buffer.size=1 MiB",
        "ftl.cache.fold_after=3 ms",
    ];
    let run = generated("tlc-pslc", &small, "uniform rw=randwrite bs=256KiB rate=200/s", "6000 io");
    adds_up(&run);
    let cache = run.cache.expect("it has a cache");
    assert!(cache.written_share > 0.2 && cache.folded_blocks > 10, "{cache:?}");
    assert!(run.write_amplification.fold > 0.0, "{:?}", run.write_amplification);
}

#[test]
fn hot_data_goes_to_slc() {
    let small = ["media.mlc.blocks=64"];
    let workload = "hotcold hot=5/95 rw=randwrite bs=4KiB";
    let hybrid = generated("hot-cold", &small, workload, "200k io");
    let plain = generated("hot-cold", &[small[0], "ftl.cache.kind=none"], workload, "200k io");
    adds_up(&hybrid);
    adds_up(&plain);
    let cache = hybrid.cache.expect("it has a cache");
    assert!(cache.written_share > 0.9, "95 % of the writes are hot: {cache:?}");
    let data = |run: &RunResult| run.media[0].programs;
    assert!(data(&hybrid) < data(&plain), "MLC is spared: {} of {}", data(&hybrid), data(&plain));
}
