//! How a run ends that cannot come to its end: with an error that says why, never with a panic.

use super::*;

fn set(name: &str, sets: &[&str]) -> Design {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Design::load(name, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Why it gave no result.
fn ends(design: Design, workload: &str, until: &str, state: State) -> String {
    match run_on(design, workload, until, state) {
        Ok(result) => panic!("a result after {} s", result.simulated_s),
        Err(error) => error.to_string(),
    }
}

/// A part of a design may take a day, and the clock ends after 213 of them.
#[test]
fn a_run_that_passes_213_days_is_an_error() {
    const UNIFORM: &str = "uniform bs=4KiB";
    let runs: [(&str, &[&str], &str, State); 12] = [
        ("ssd-tlc", &["path.overhead.host=24 h"], UNIFORM, State::Fresh),
        ("ssd-tlc", &["path.overhead.host=24 h"], UNIFORM, State::Full),
        ("ssd-tlc", &["media.tlc.program=24 h"], UNIFORM, State::Fresh),
        ("ssd-tlc", &["media.tlc.program=24 h"], "uniform bs=64KiB rate=10k/s", State::Fresh),
        ("ssd-tlc", &["media.tlc.read=24 h"], "uniform bs=4KiB read=50% rate=10k/s", State::Fresh),
        ("ssd-tlc", &["media.tlc.erase=24 h"], UNIFORM, State::Steady),
        ("mlc-bast", &["media.mlc.program=24 h"], UNIFORM, State::Fresh),
        ("mlc-fast", &["media.mlc.read=24 h"], UNIFORM, State::Fresh),
        ("hftl", &["media.pram.write=24 h"], UNIFORM, State::Fresh),
        ("hftl-fsms", &["media.pram.write=24 h"], "iozone mode=write record=4KiB file=1MiB", State::Fresh),
        ("envy", &["path.overhead.device=24 h"], "tpca branches=3 accounts=1000", State::Fresh),
        ("envy", &["media.flash.program=24 h"], UNIFORM, State::Full),
    ];
    for (name, sets, workload, state) in runs {
        let why = ends(set(name, sets), workload, "100000 io", state);
        assert!(why.contains("simulated time passed 213 days"), "{name} {sets:?} {workload}: {why}");
    }
}

/// What is queued behind the last request belongs to the run, too.
#[test]
fn queued_work_that_passes_213_days_is_an_error() {
    let design = set("ssd-tlc", &["media.tlc.program=24 h", "ftl.buffer.size=128 MiB"]);
    let why = ends(design, "seq bs=1MiB", "100 io", State::Fresh);
    assert!(why.contains("simulated time passed 213 days"), "{why}");
}

/// A run keeps within the time, the mount after it does not.
#[test]
fn a_mount_that_passes_213_days_is_an_error() {
    let why = ends(set("hftl", &["media.nand.read=24 h"]), "seq bs=2KiB", "200 io", State::Fresh);
    assert!(why.contains("simulated time passed 213 days"), "{why}");
}
