//! What fills a device.

use super::super::settle::sequential_fill;
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
