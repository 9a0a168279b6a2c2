//! A case small enough to work out by hand, from a design's text to a result: system 002 with MLC blocks of 8
//! pages and SLC blocks of 4. The controller's own cases are in `crates/controller/tests/all/block_map/counts.rs`.

use nvlab_design::Design;
use nvlab_run::result::RunResult;
use nvlab_run::{Limit, RunPlan, State, run_requests};
use nvlab_workload::{Batch, BlockWorkload, Op, Pacing, Request, Workload};

const DESIGN: &str = r#"
schema = 1
[media.mlc]
part = "mlc-2010"
block = "32 KiB"
blocks = 5
[media.slc]
part = "slc-2010"
block = "16 KiB"
[media.dram]
part = "dram"
size = "1 MiB"
[ftl]
kind = "fast"
medium = "mlc"
data_area = "part"
merge_blocks = 2
[ftl.log]
in = "slc"
blocks = 3
[ftl.map]
in = "dram"
[path]
kind = "direct"
"#;

/// Writes of single pages, one after the other.
struct Pages<'a>(std::iter::Copied<std::slice::Iter<'a, u64>>);

impl BlockWorkload for Pages<'_> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        let before = batch.len();
        while batch.room() > 0
            && let Some(page) = self.0.next()
        {
            batch.push(Request { offset: page * 4096, bytes: 4096, op: Op::Write, ..Request::default() });
        }
        batch.len() - before
    }
}

impl Workload for Pages<'_> {
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: 1 }
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        0..40 * 4096
    }
}

fn result(sets: &[&str], pages: &[u64]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let design = Design::parse("small.toml", DESIGN, &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let plan = RunPlan {
        design_name: "small".into(),
        workload_text: "by hand".into(),
        workload_about: String::new(),
        seed: 1,
        state: State::Full.into(),
        until: None,
        limit: Limit::NONE,
        requests_asked: Some(pages.len() as u64),
    };
    run_requests(&design, &plan, &mut Pages(pages.iter().copied()), None, None, &mut |_, _| true).unwrap()
}

/// Twelve overwrites fill three log blocks; the first holds pages of the logical blocks 0 1 0 2.
const PAGES: [u64; 13] = [1, 9, 3, 17, 25, 33, 25, 33, 25, 33, 25, 33, 19];

#[test]
fn the_thirteenth_overwrite_merges_three_blocks() {
    let run = result(&[], &PAGES);
    let [data, log] = run.media.as_slice() else { panic!("two media: {:?}", run.media) };
    // 8 copies for each of three blocks: 20 pages come from MLC, pages 1 3 9 17 from SLC. Three old MLC blocks are
    // erased and the victim.
    assert_eq!((data.reads, data.programs, data.erases), (20, 24, 3));
    assert_eq!((log.reads, log.programs, log.erases), (4, 13, 1));
    // Table II: 60, 800, 1500 us and 25, 200, 1500 us.
    let us = |seconds: f64| (seconds * 1e6).round() as u64;
    assert_eq!([data.read_s, data.program_s, data.erase_s].map(us), [1_200, 19_200, 4_500]);
    assert_eq!([log.read_s, log.program_s, log.erase_s].map(us), [100, 2_600, 1_500]);
    let flash = run.flash.as_ref().unwrap();
    assert_eq!((flash.reads, flash.programs, flash.erases), (24, 37, 4));
    let wa = run.write_amplification;
    assert_eq!((wa.total, wa.host, wa.merge, wa.clean), (37.0 / 13.0, 1.0, 24.0 / 13.0, 0.0));
    // The price covers 5 blocks of 32 KiB and 3 of 16 KiB, not the two blocks for merges.
    assert_eq!((data.bytes, log.bytes, run.design.raw_bytes), (163_840, 49_152, 212_992));
    // 24 pages, and three that wait in the log for their merge (25, 33, 19), are 27 / 8 cycles over 7 blocks of 10,000; 13 pages
    // need 3.25 erases of 4 pages over 3 blocks of 100,000, of which one was done: MLC is worn out first.
    let [data_years, log_years] = [data.years, log.years].map(|years| years.expect("it was erased"));
    let ratio = log_years / data_years;
    assert!((ratio - (100_000.0 * 3.0 / 3.25) / (10_000.0 * 7.0 / (27.0 / 8.0))).abs() < 1e-9, "{ratio}");
    assert_eq!(run.lifetime.years, Some(data_years));
}

#[test]
fn the_same_log_in_mlc_holds_eight_pages_to_a_block() {
    // Two blocks of 8 pages hold 16: none is merged. Without the sequential block only the log is written.
    let run = result(&["ftl.log.in=mlc", "ftl.log.blocks=2", "ftl.log.sequential=false"], &PAGES);
    let [data] = run.media.as_slice() else { panic!("one medium: {:?}", run.media) };
    assert_eq!((data.reads, data.programs, data.erases), (0, 13, 0));
    // 13 pages of 8 to a block over the 9 blocks there are with those for merges: nothing was erased yet.
    assert_eq!((data.bytes, data.cycles), (7 * 32 * 1024, 13.0 / 8.0 / 9.0));
    let seconds = run.lifetime.years.unwrap() * 365.25 * 86_400.0;
    assert!((seconds / (10_000.0 / data.cycles * run.simulated_s) - 1.0).abs() < 1e-9);
}

#[test]
fn without_a_log_every_overwrite_copies_its_block() {
    let sets =
        ["ftl.kind=block", "ftl.medium=mlc", "ftl.data_area=part", "ftl.merge_blocks=2", "ftl.map.in=dram"];
    let run = result(&sets, &PAGES);
    let [data] = run.media.as_slice() else { panic!("one medium: {:?}", run.media) };
    assert_eq!((data.reads, data.programs, data.erases), (13 * 7, 13 * 8, 13));
}
