//! What fills a device.

use super::super::writes::sequential_fill;
use super::*;
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
