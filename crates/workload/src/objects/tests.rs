use super::measure::{Clocks, Run, measure};
use super::persistent::{self, Start};
use super::*;
use nvlab_nvheap::{Options, Persistence};

const CLOCKS: Clocks = Clocks { cpu_s: || 0.0, wall_s: || 0.0 };

/// Fills a store, lets one thread and two work on it, one operation in a transaction and several, and verifies it.
fn is_right<D: Driver>(mut driver: D, load: impl Fn(&D, &D::Store) -> Result<()>, store: Box<D::Store>) {
    load(&driver, &store).unwrap();
    driver.verify(&store).unwrap();
    for (number, threads, together) in [(1, 1, 1), (2, 2, 1), (3, 1, 16), (4, 2, 16)] {
        let run = Run { number, threads, operations: 9 * 64, seconds: 1e9, together };
        let took = measure(&mut driver, &*store, &run, CLOCKS).unwrap();
        assert_eq!(took.operations, 8 * 64 * threads, "the first of nine slices does not count");
        driver.verify(&store).unwrap();
    }
    D::close(store).unwrap();
}

const COUNT: u64 = 1 << 10;

#[test]
fn plain_memory_is_right() {
    is_right(SwapsDriver::new(COUNT), |driver, store| driver.load(store), plain::swaps());
    is_right(MapDriver::new(COUNT), |driver, store| driver.load(store), plain::sorted());
    is_right(MapDriver::new(COUNT), |driver, store| driver.load(store), plain::hashed());
    is_right(GraphDriver::new(COUNT), |driver, store| driver.load(store), plain::graph());
}

#[test]
fn persistent_objects_are_right() {
    let _alone = persistent::alone();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    for (number, persistence) in [Persistence::Detect, Persistence::Process].into_iter().enumerate() {
        let at = |name: &str| folder.path().join(format!("{name}-{number}"));
        let options = || Options { persistence: persistence.clone(), ..Options::default() };
        let create = Start::Create;
        let store = persistent::swaps(&at("swaps"), create, options()).unwrap();
        is_right(SwapsDriver::new(COUNT), |driver, store| driver.load(store), store);
        let store = persistent::sorted(&at("sorted"), create, options()).unwrap();
        is_right(MapDriver::new(COUNT), |driver, store| driver.load(store), store);
        let store = persistent::hashed(&at("hashed"), create, options()).unwrap();
        is_right(MapDriver::new(COUNT), |driver, store| driver.load(store), store);
        let store = persistent::graph(&at("graph"), create, options()).unwrap();
        is_right(GraphDriver::new(COUNT), |driver, store| driver.load(store), store);
    }
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
