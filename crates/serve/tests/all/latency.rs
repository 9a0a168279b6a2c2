//! The measurement of latencies measures something.

use nvlab_serve::ServeError;
use nvlab_serve::window::latency::{Placement, measure};

#[test]
fn a_fault_costs_more_than_a_hit() {
    for placement in [Placement::Free, Placement::Same, Placement::Apart] {
        let found = match measure(1000, placement) {
            Ok(found) => found,
            Err(ServeError::NotPermitted(error)) => {
                eprintln!("SKIPPED: userfaultfd is not permitted on this machine: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        eprintln!("{placement:?}: {found:?}");
        assert!(found.resident.median_ns < found.first_store.median_ns, "{found:?}");
        assert!(found.resident.median_ns < found.miss_clean.median_ns, "{found:?}");
        assert!(found.resident.median_ns < found.miss_dirty.median_ns, "{found:?}");
    }
}
