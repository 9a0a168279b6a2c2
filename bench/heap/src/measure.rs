//! Fills a store, and measures it: each in a process of its own, so that CPU time is the contender's, its helper threads included.

use crate::Result;
use crate::contenders::{Contender, Kind, Sort, Start, in_place};
use crate::workloads::{
    BankDriver, Driver, ELEMENTS, GraphDriver, KEYS, MapDriver, NODES, Part, SwapsDriver,
};
use nvlab_bench_stores::machine::process_cpu_seconds;
use nvlab_workload::objects::measure::{self, Clocks, Run, Took, one};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Instant;

/// How much to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Numbers of threads, one run each.
    pub threads: Vec<u64>,
    /// A run ends after so many operations a thread or so many seconds, whichever comes first.
    pub operations: u64,
    pub seconds: f64,
}

impl Plan {
    /// Operations of all runs at most.
    fn operations_max(&self) -> u64 {
        self.threads.iter().sum::<u64>() * self.operations
    }
}

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    Sps,
    TpcB,
    BTree,
    Hash,
    SixDegrees,
}

impl Workload {
    pub const ALL: [Workload; 5] =
        [Workload::Sps, Workload::TpcB, Workload::BTree, Workload::Hash, Workload::SixDegrees];

    pub fn name(self) -> &'static str {
        match self {
            Workload::Sps => "sps",
            Workload::TpcB => "tpc-b",
            Workload::BTree => "b-tree",
            Workload::Hash => "hash",
            Workload::SixDegrees => "six-degrees",
        }
    }

    pub fn find(name: &str) -> Result<Workload> {
        let found = Workload::ALL.into_iter().find(|workload| workload.name() == name);
        found.ok_or_else(|| {
            let names = Workload::ALL.map(Workload::name).join(", ");
            format!("no workload is called {name}; there are {names}").into()
        })
    }
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub threads: u64,
    pub operations: u64,
    pub seconds: f64,
    /// CPU time of the process an operation, in ns: the median of the slices, the lowest and the highest.
    pub cpu_ns: f64,
    pub cpu_ns_spread: [f64; 2],
}

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
const CLOCKS: Clocks = Clocks { cpu_s: process_cpu_seconds, wall_s: || BEGAN.elapsed().as_secs_f64() };

fn contender(kind: &Kind) -> Result<&'static dyn Contender> {
    kind.contender.ok_or_else(|| "not installed".into())
}

/// Fills a store in an empty folder.
pub fn load(kind: &Kind, workload: Workload, folder: &Path, plan: &Plan) -> Result<()> {
    let (contender, start) = (contender(kind)?, Start::Create);
    let map = |sort| -> Result<()> {
        let map = contender.map(folder, start, sort)?;
        MapDriver::new(KEYS).load(map.as_ref())?;
        map.close()
    };
    match workload {
        Workload::Sps => {
            let swaps = contender.swaps(folder, start)?;
            SwapsDriver::new(ELEMENTS).load(swaps.as_ref())?;
            swaps.close()
        }
        Workload::TpcB => {
            let bank = contender.bank(folder, start, plan.operations_max())?;
            bank.load()?;
            bank.close()
        }
        Workload::BTree => map(Sort::Sorted),
        Workload::Hash => map(Sort::Hashed),
        Workload::SixDegrees => {
            let graph = contender.graph(folder, start)?;
            GraphDriver::new(NODES).load(graph.as_ref())?;
            graph.close()
        }
    }
}

/// Calls a function for the driver of a workload, and what opens its filled store.
trait Each {
    type Result;
    fn of<D: Driver>(self, driver: D, open: &dyn Fn() -> Result<Box<D::Store>>) -> Result<Self::Result>;
}

fn each<E: Each>(
    kind: &Kind,
    workload: Workload,
    folder: &Path,
    history_rows: u64,
    each: E,
) -> Result<E::Result> {
    let (contender, start) = (contender(kind)?, Start::Open);
    match workload {
        Workload::Sps => each.of(SwapsDriver::new(ELEMENTS), &|| contender.swaps(folder, start)),
        Workload::TpcB => each.of(BankDriver::new(), &|| contender.bank(folder, start, history_rows)),
        Workload::BTree => each.of(MapDriver::new(KEYS), &|| contender.map(folder, start, Sort::Sorted)),
        Workload::Hash => each.of(MapDriver::new(KEYS), &|| contender.map(folder, start, Sort::Hashed)),
        Workload::SixDegrees => each.of(GraphDriver::new(NODES), &|| contender.graph(folder, start)),
    }
}

/// Runs a plan on a filled store. Fails if the store is wrong after any run, or after it was closed and opened again.
pub fn measure(kind: &Kind, workload: Workload, folder: &Path, plan: &Plan) -> Result<Vec<Measured>> {
    each(kind, workload, folder, plan.operations_max(), plan)
}

impl Each for &Plan {
    type Result = Vec<Measured>;
    fn of<D: Driver>(self, driver: D, open: &dyn Fn() -> Result<Box<D::Store>>) -> Result<Vec<Measured>> {
        runs(driver, open, self)
    }
}

/// Does so many operations on a filled store that was read as a whole, between writing 1 and 0 to the switch of a recorder, and
/// verifies the store. Says how many cache lines an operation wrote back, of contenders that count them.
pub fn record(
    kind: &Kind,
    workload: Workload,
    folder: &Path,
    operations: u64,
    switch: &Path,
) -> Result<String> {
    each(kind, workload, folder, operations, Recording { operations, switch })
}

struct Recording<'a> {
    operations: u64,
    switch: &'a Path,
}

impl Each for Recording<'_> {
    type Result = String;
    fn of<D: Driver>(self, mut driver: D, open: &dyn Fn() -> Result<Box<D::Store>>) -> Result<String> {
        let (store, part) = (open()?, Part { run: 1, thread: 0, threads: 1 });
        driver.verify(store.as_ref())?;
        let mut worker = driver.worker(part);
        in_place::count_lines();
        // Reading has changed the files of the cache, which the system would write back meanwhile.
        std::process::Command::new("sync").status()?;
        std::fs::write(self.switch, "1")?;
        for _ in 0..self.operations {
            one::<D>(store.as_ref(), &mut worker)?;
        }
        std::fs::write(self.switch, "0")?;
        let lines = in_place::lines() as f64 / self.operations as f64;
        driver.replay(part, self.operations, &worker)?;
        driver.verify(store.as_ref())?;
        D::close(store)?;
        Ok(format!("{} operations, {lines:.3} lines each", self.operations))
    }
}

fn runs<D: Driver>(
    mut driver: D,
    open: &dyn Fn() -> Result<Box<D::Store>>,
    plan: &Plan,
) -> Result<Vec<Measured>> {
    let store = open()?;
    let mut measured = Vec::new();
    for (run, &threads) in (1..).zip(&plan.threads) {
        let run =
            Run { number: run, threads, operations: plan.operations, seconds: plan.seconds, together: 1 };
        let took = measure::measure(&mut driver, store.as_ref(), &run, CLOCKS)?;
        let Took { operations, seconds, cpu_ns, cpu_ns_spread } = took;
        measured.push(Measured { threads, operations, seconds, cpu_ns, cpu_ns_spread });
        driver.verify(store.as_ref())?;
    }
    D::close(store)?;
    let reopened = open()?;
    driver.verify(reopened.as_ref())?;
    D::close(reopened)?;
    Ok(measured)
}
