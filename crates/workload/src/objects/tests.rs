//! Every workload on every layer, with its model; lines and fences by hand.

use super::measure::{Clocks, Run, measure};
use super::*;
use nvlab_nvheap::{Counts, Delays};
use std::path::PathBuf;

const CLOCKS: Clocks = Clocks { cpu_s: || 0.0, wall_s: || 0.0 };

const COUNT: u64 = 1 << 10;

/// Fills a store, lets one thread and two work on it, one operation in a transaction and several, and verifies it.
struct IsRight(Layer, PathBuf);

impl Visit for IsRight {
    type Output = ();
    fn visit<D: Driver>(self, mut driver: D, stores: Stores<D>) -> Result<()> {
        let store = stores.create(self.0, &self.1)?;
        driver.load(&store)?;
        driver.verify(&store)?;
        for (number, threads, together) in [(1, 1, 1), (2, 2, 1), (3, 1, 16), (4, 2, 16)] {
            let run = Run { number, threads, operations: 9 * 64, seconds: 1e9, together };
            let took = measure(&mut driver, &*store, &run, CLOCKS)?;
            assert_eq!(took.operations, 8 * 64 * threads, "the first of nine slices does not count");
            driver.verify(&store)?;
        }
        D::close(store)
    }
}

#[test]
fn every_layer_does_every_workload() {
    let _alone = persistent::alone();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    for layer in Layer::ALL {
        for workload in Workload::ALL {
            let path = folder.path().join(format!("{}-{}", layer.name(), workload.name()));
            let done = workload.visit(COUNT, IsRight(layer, path));
            done.unwrap_or_else(|error| panic!("{} {}: {error}", layer.name(), workload.name()));
        }
    }
}

/// One fence an operation that changes something, none for a search; the lines of an SPS operation by hand.
#[test]
fn lines_and_fences_are_counted() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut all = Vec::new();
    Workload::Sps.count(COUNT, 1000, Delays::PCM, folder.path(), &mut |counts| all.push(counts)).unwrap();
    let closing = all.pop().unwrap();
    // 2,000 draws of 1,024 elements find 879 different ones, each a line.
    assert!((860..900).contains(&closing.flushed_lines) && closing.streamed_lines < 16, "{closing:?}");
    assert_eq!(all.len(), 1000);
    assert!(all.iter().all(|counts| counts.fences == 1), "one fence an operation");
    // Two elements of a line each, read and changed; the root and the header of the array say where they are.
    assert!(all.iter().all(|counts| counts.read_lines >= 2 && counts.streamed_lines >= 2), "{:?}", all[0]);
    let charged = |c: &Counts| 67 * c.read_lines + 215 * (c.streamed_lines + c.flushed_lines);
    assert!(all.iter().all(|counts| counts.charged_ns == charged(counts)), "{:?}", all[0]);

    let mut fences = 0;
    let mut all = Vec::new();
    Workload::SixDegrees
        .count(COUNT, 1000, Delays::PCM, folder.path(), &mut |counts| all.push(counts))
        .unwrap();
    for counts in &all[..1000] {
        assert!(counts.fences <= 1 && (counts.fences == 1) == (counts.streamed_lines > 0), "{counts:?}");
        fences += counts.fences;
    }
    assert!((400..600).contains(&fences), "half are searches: {fences}");
}

/// One change that the model does not know.
#[test]
fn wrong_contents_are_noticed() {
    let (mut swaps, store) = (SwapsDriver::new(COUNT), plain::swaps());
    swaps.load(&*store).unwrap();
    store.swap(3, 5).unwrap();
    assert!(swaps.verify(&*store).is_err());

    let (mut map, store) = (MapDriver::new(COUNT), plain::sorted());
    map.load(&*store).unwrap();
    store.insert(scramble(COUNT), 1).unwrap();
    assert!(map.verify(&*store).is_err());

    let (mut graph, store) = (GraphDriver::new(COUNT), plain::graph());
    graph.load(&*store).unwrap();
    store.toggle(1, 9).unwrap();
    assert!(graph.verify(&*store).is_err());
}
