//! Programs that keep objects, on phase-change memory on a memory channel: what they wait for, by hand.

use nvlab_design::Design;
use nvlab_run::State;
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::{ProgramResult, RunResult};

const MEMORY: &str = "ddr-scm";

fn run(design: &str, program: &str) -> RunResult {
    let source = Source::read(&format!("heap:{program} think=keep"), None).unwrap();
    let settings = Settings { seed: 1, until: None, state: State::Fresh.into() };
    // Of a memory, no software above a block device and no wear levelling.
    let memory = ["ftl.unit=64B", "path.overhead.host=0 ns", "media.pcm.level.kind=none"].map(String::from);
    let sets = if design == MEMORY { &memory[..] } else { &[] };
    let named = Design::load(design, sets).unwrap_or_else(|errors| panic!("{errors}"));
    Task::new(named, design.into(), &source, settings).unwrap().run(&mut |_, _| true).unwrap()
}

fn program(run: &RunResult) -> &ProgramResult {
    run.program.as_ref().unwrap()
}

/// 67 ns of the cells and 10 ns of the bus for each line opened, 215 and 10 for each written, one after the other.
#[test]
fn every_line_is_waited_for() {
    let run = run(MEMORY, "durable-sps");
    let (reads, writes) = (run.read.count as f64, run.write.count as f64);
    assert_eq!(run.read.count, 3 * 2000, "two elements, and where they are");
    assert!((9900.0..10100.0).contains(&writes), "three of the log and two at home: {writes}");
    let wanted = (reads * 77.0 + writes * 225.0) * 1e-9;
    assert!((program(&run).waiting_s / wanted - 1.0).abs() < 1e-3, "{:?} {wanted}", program(&run));
}

/// Plain memory computes what was measured and waits for nothing.
#[test]
fn plain_memory_waits_for_nothing() {
    let base = run(MEMORY, "base-hash");
    assert!(program(&base).waiting_s < 1e-8, "{:?}", program(&base));
    assert_eq!(program(&base).computing_s, 2000.0 * 137e-9);
}

/// The log of a database is one write and one flush a transaction: on disks most of a turn of 6 ms, on memory a page.
#[test]
fn a_forced_log_waits_for_a_turn_of_the_disk() {
    let disk = run("disk-2010", "berkeley-db-b-tree");
    assert_eq!((disk.read.count, disk.write.count, disk.flush.count), (0, 2000, 2000));
    let waited = program(&disk).waiting_s / 2000.0;
    assert!((3e-3..7e-3).contains(&waited), "{waited} s a transaction");
    let memory = run(MEMORY, "berkeley-db-b-tree");
    let waited = program(&memory).waiting_s / 2000.0;
    assert!((0.8e-6..2e-6).contains(&waited), "{waited} s: 4 KiB at 6.4 GB/s and 215 ns");
}
