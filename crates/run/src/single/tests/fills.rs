//! What fills a device.

use super::*;
use crate::writes::sequential_fill;
use nvlab_workload::{Batch, BlockWorkload, Op, Workload};

/// A unit that two requests shared would be written twice, and its dead version would stay among data that is never written again.
#[test]
fn a_fill_writes_every_unit_once() {
    for unit in [4096u32, 48 << 10, 192 << 10, 1536 << 10] {
        let bytes = |units: u64| units * unit as u64;
        let mut fill = sequential_fill(unit, bytes(1001), bytes(1010)..bytes(1077));
        let (mut batch, mut written) = (Batch::new(), Vec::new());
        while fill.fill(&mut batch) > 0 {
            written
                .extend(batch.requests().iter().map(|request| (request.offset, request.bytes, request.op)));
            batch.clear();
        }
        assert_eq!(fill.footprint(), 0..bytes(1077));
        let mut next = 0;
        for (offset, bytes_written, op) in written {
            if next == bytes(1001) {
                next = bytes(1010);
            }
            assert_eq!((offset, op), (next, Op::Write), "units of {unit} B");
            assert!(bytes_written > 0 && bytes_written.is_multiple_of(unit), "{bytes_written} B of {unit} B");
            next += bytes_written as u64;
        }
        assert_eq!(next, bytes(1077));
    }
}

/// Within a pass over all addresses write amplification rises and falls: what is settled are whole passes.
#[test]
fn passes_are_settled_whole() {
    let sets = ["media.nand.blocks=96", "ftl.spare=25 %"].map(String::from);
    let design = Design::load("bench-4g", &sets).unwrap();
    let capacity = design.capacity_bytes();
    let result = run_on(design, "shuffled bs=4KiB qd=4 span=48MiB", "1000 io", State::Steady).unwrap();
    // Windows are of 256 MiB at least, which is no multiple.
    let written = result.precondition.host_bytes - capacity;
    assert!(result.precondition.converged && written > 0, "{:?}", result.precondition);
    assert!(written.is_multiple_of(48 << 20), "{written} B are no whole passes");
}

/// A log that begins empty takes writes for nothing: the same writes cost merges once it is full.
#[test]
fn a_log_that_is_full_merges_at_once() {
    let run = |kind: &str, state: State| {
        let design = Design::load(kind, &["media.mlc.blocks=256".to_string()]);
        let design = design.unwrap_or_else(|errors| panic!("{errors}"));
        run_on(design, "uniform rw=randwrite bs=4KiB qd=4", "500 io", state).unwrap()
    };
    for kind in ["mlc-fast", "mlc-bast", "hybrid-slc-mlc"] {
        let (empty, full) = (run(kind, State::Full), run(kind, State::LogFull));
        let about = &full.precondition.about;
        assert!(full.precondition.converged && about.contains("until its log was full"), "{kind}: {about}");
        let [before, after] = [&empty, &full].map(|run| run.write_amplification.merge);
        assert!(after > before + 2.0, "{kind}: {before}, then {after}");
        // A log is a tenth of the device or so: it takes no more than that to fill it, each page with its own block at worst.
        let written = full.precondition.host_bytes - full.precondition.fill_bytes;
        assert!(written > 0 && written < full.design.capacity_bytes / 2, "{kind}: {written} B");
    }
    let design = Design::load("bench-4g", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source::read("uniform", None).unwrap();
    let settings = Settings { seed: 1, until: None, state: State::LogFull.into() };
    let why = Task::new(design, "bench-4g".into(), &source, settings).unwrap_err().to_string();
    assert!(why.contains("bench-4g': it has no log blocks"), "{why}");
}
