//! Each workload on each layer of safety, by name; and what it does to memory, counted.

use super::persistent::{self, Start, alone};
use super::{Driver, GraphDriver, MapDriver, Part, Result, SwapsDriver, measure, plain};
use nvlab_nvheap::{Counts, Delays, Options, Persistence, Simulated};
use std::path::Path;

/// What stands between a program and the memory that its objects lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Plain memory: the standard library's collections, one lock each.
    Base,
    /// Objects of nvheap that need not survive the program: checked relative pointers, reference counts, locks and copies of what
    /// is changed. nvheap has no access outside of transactions, so [`TOGETHER`] operations share one, which makes its
    /// beginning and its commit a small part.
    Pointers,
    /// The same with a transaction for each operation: a record in a log, neither flushed nor fenced.
    Transactions,
    /// The same made durable: one fence a transaction, lines written back.
    Durable,
}

/// Operations that share a transaction in [`Layer::Pointers`].
pub const TOGETHER: u64 = 32;

impl Layer {
    /// From the lowest layer up, each on top of the one before it.
    pub const ALL: [Layer; 4] = [Layer::Base, Layer::Pointers, Layer::Transactions, Layer::Durable];

    /// As in texts and tables: `base`, `pointers`, ...
    pub fn name(self) -> &'static str {
        match self {
            Layer::Base => "base",
            Layer::Pointers => "pointers",
            Layer::Transactions => "transactions",
            Layer::Durable => "durable",
        }
    }

    /// How many operations share a transaction: 1 except in [`Layer::Pointers`].
    pub fn together(self) -> u64 {
        if self == Layer::Pointers { TOGETHER } else { 1 }
    }
}

/// The workloads of slide 37 (Coburn et al., NV-heaps, ASPLOS 2011).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Swaps of two random elements of an array.
    Sps,
    /// Inserts and deletes of random keys in a B-tree.
    BTree,
    /// Inserts and deletes of random keys in a hash table.
    Hash,
    /// Searches for paths of at most six edges in a graph that changes.
    SixDegrees,
}

/// Creates or opens the heap of a store.
type Persistent<S> = fn(&Path, Start, Options) -> Result<Box<S>>;

/// The stores that a workload can be run on.
#[derive(Debug)]
pub struct Stores<D: Driver> {
    plain: fn() -> Box<D::Store>,
    persistent: Persistent<D::Store>,
}

impl<D: Driver> Stores<D> {
    /// An empty store of a layer, in a new file if it needs one.
    pub fn create(&self, layer: Layer, path: &Path) -> Result<Box<D::Store>> {
        let persistence = match layer {
            Layer::Base => return Ok((self.plain)()),
            Layer::Pointers | Layer::Transactions => Persistence::Process,
            Layer::Durable => Persistence::Detect,
        };
        (self.persistent)(path, Start::Create, Options { persistence, ..Options::default() })
    }
}

/// Something that is done with any workload.
pub trait Visit {
    /// What the caller gets for any driver.
    type Output;
    /// Called once, with the driver of the workload and its stores.
    fn visit<D: Driver>(self, driver: D, stores: Stores<D>) -> Result<Self::Output>;
}

impl Workload {
    /// The four of slide 37.
    pub const ALL: [Workload; 4] = [Workload::Sps, Workload::BTree, Workload::Hash, Workload::SixDegrees];

    /// As in texts and tables: `sps`, `b-tree`, ...
    pub fn name(self) -> &'static str {
        match self {
            Workload::Sps => "sps",
            Workload::BTree => "b-tree",
            Workload::Hash => "hash",
            Workload::SixDegrees => "six-degrees",
        }
    }

    /// Calls `visit` with this workload at a size: elements, keys, or, rounded down to a power of two, nodes.
    pub fn visit<V: Visit>(self, elements: u64, visit: V) -> Result<V::Output> {
        match self {
            Workload::Sps => visit.visit(
                SwapsDriver::new(elements),
                Stores { plain: plain::swaps, persistent: persistent::swaps },
            ),
            Workload::BTree => visit.visit(
                MapDriver::new(elements),
                Stores { plain: plain::sorted, persistent: persistent::sorted },
            ),
            Workload::Hash => visit.visit(
                MapDriver::new(elements),
                Stores { plain: plain::hashed, persistent: persistent::hashed },
            ),
            Workload::SixDegrees => visit.visit(
                GraphDriver::new(1 << elements.ilog2()),
                Stores { plain: plain::graph, persistent: persistent::graph },
            ),
        }
    }

    /// Runs `operations` operations of one thread on [`Layer::Durable`] with a simulated cache, and passes on what each did to
    /// memory; then what closing the heap did, which writes home what the logs still hold. The heap lies in `folder` meanwhile.
    /// The store is verified before it is closed.
    pub fn count(
        self,
        elements: u64,
        operations: u64,
        delays: Delays,
        folder: &Path,
        each: &mut dyn FnMut(Counts),
    ) -> Result<()> {
        let _alone = alone();
        let folder = tempfile::tempdir_in(folder)?;
        self.visit(elements, Counting { operations, delays, path: &folder.path().join("heap"), each })
    }
}

struct Counting<'a> {
    operations: u64,
    delays: Delays,
    path: &'a Path,
    each: &'a mut dyn FnMut(Counts),
}

impl Visit for Counting<'_> {
    type Output = ();
    fn visit<D: Driver>(self, mut driver: D, stores: Stores<D>) -> Result<()> {
        // Where things lie is to be the same each time.
        let options = |persistence| Options { persistence, identity: Some(1), ..Options::default() };
        let store = (stores.persistent)(self.path, Start::Create, options(Persistence::Process))?;
        driver.load(&store)?;
        D::close(store)?;
        let simulated = Simulated::new(self.delays);
        let persistence = Persistence::Simulated(simulated.clone());
        let store = (stores.persistent)(self.path, Start::Open, options(persistence))?;
        let part = Part { run: 1, thread: 0, threads: 1 };
        let mut worker = driver.worker(part);
        let mut before = simulated.counts();
        for _ in 0..self.operations {
            measure::one::<D>(&store, &mut worker)?;
            let now = simulated.counts();
            (self.each)(now.since(&before));
            before = now;
        }
        driver.replay(part, self.operations, &worker)?;
        driver.verify(&store)?;
        before = simulated.counts();
        D::close(store)?;
        (self.each)(simulated.counts().since(&before));
        Ok(())
    }
}
