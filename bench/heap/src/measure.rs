//! Fills a store, and measures it: each in a process of its own, so that CPU time is the contender's, its helper threads included.

use crate::Result;
use crate::contenders::{Contender, Kind, Sort, Start};
use crate::workloads::{BankDriver, Driver, GraphDriver, MapDriver, Part, SwapsDriver};
use nvlab_bench_stores::machine::process_cpu_seconds;
use serde::{Deserialize, Serialize};
use std::path::Path;
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

/// A run is cut into so many slices, and another before them that is not counted.
const SLICES: u64 = 8;

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

fn contender(kind: &Kind) -> Result<&'static dyn Contender> {
    kind.contender.ok_or_else(|| "not installed".into())
}

/// Fills a store in an empty folder.
pub fn load(kind: &Kind, workload: Workload, folder: &Path, plan: &Plan) -> Result<()> {
    let (contender, start) = (contender(kind)?, Start::Create);
    let map = |sort| -> Result<()> {
        let map = contender.map(folder, start, sort)?;
        MapDriver::load(map.as_ref())?;
        map.close()
    };
    match workload {
        Workload::Sps => {
            let swaps = contender.swaps(folder, start)?;
            SwapsDriver::load(swaps.as_ref())?;
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
            GraphDriver::load(graph.as_ref())?;
            graph.close()
        }
    }
}

/// Runs a plan on a filled store. Fails if the store is wrong after any run, or after it was closed and opened again.
pub fn measure(kind: &Kind, workload: Workload, folder: &Path, plan: &Plan) -> Result<Vec<Measured>> {
    let (contender, start) = (contender(kind)?, Start::Open);
    match workload {
        Workload::Sps => runs(SwapsDriver::new(), &|| contender.swaps(folder, start), plan),
        Workload::TpcB => {
            runs(BankDriver::new(), &|| contender.bank(folder, start, plan.operations_max()), plan)
        }
        Workload::BTree => runs(MapDriver::new(), &|| contender.map(folder, start, Sort::Sorted), plan),
        Workload::Hash => runs(MapDriver::new(), &|| contender.map(folder, start, Sort::Hashed), plan),
        Workload::SixDegrees => runs(GraphDriver::new(), &|| contender.graph(folder, start), plan),
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
        measured.push(one(&mut driver, store.as_ref(), run, threads, plan)?);
        driver.verify(store.as_ref())?;
    }
    D::close(store)?;
    let reopened = open()?;
    driver.verify(reopened.as_ref())?;
    D::close(reopened)?;
    Ok(measured)
}

fn one<D: Driver>(driver: &mut D, store: &D::Store, run: u64, threads: u64, plan: &Plan) -> Result<Measured> {
    let parts = (0..threads).map(|thread| Part { run, thread, threads });
    let mut workers: Vec<_> = parts.map(|part| (part, driver.worker(part), 0)).collect();
    let (mut costs, mut operations, mut seconds) = (Vec::new(), 0, 0.0);
    for slice in 0..=SLICES {
        let (cpu, began) = (process_cpu_seconds(), Instant::now());
        let limit = (plan.operations / (SLICES + 1), plan.seconds / (SLICES + 1) as f64);
        let done = together::<D>(store, &mut workers, limit)?;
        let (cpu, time) = (process_cpu_seconds() - cpu, began.elapsed().as_secs_f64());
        if slice > 0 {
            costs.push(cpu * 1e9 / done as f64);
            (operations, seconds) = (operations + done, seconds + time);
        }
    }
    for (part, worker, count) in &workers {
        driver.replay(*part, *count, worker)?;
    }
    costs.sort_unstable_by(f64::total_cmp);
    let middle = costs.len() / 2;
    let cpu_ns = (costs[middle] + costs[(costs.len() - 1) / 2]) / 2.0;
    Ok(Measured { threads, operations, seconds, cpu_ns, cpu_ns_spread: [costs[0], costs[costs.len() - 1]] })
}

/// A part, its worker, and how many operations that has done.
type Working<D> = (Part, <D as Driver>::Worker, u64);

/// Lets threads do so many operations each, or work for so many seconds; returns how many were done.
fn together<D: Driver>(
    store: &D::Store,
    workers: &mut [Working<D>],
    (operations, seconds): (u64, f64),
) -> Result<u64> {
    let work = |(_, worker, count): &mut Working<D>| -> Result<u64> {
        let began = Instant::now();
        let mut done = 0;
        // A clock read costs as much as a tenth of a short operation.
        while done < operations && (done % 16 != 0 || began.elapsed().as_secs_f64() < seconds) {
            D::operation(store, worker)?;
            done += 1;
        }
        *count += done;
        Ok(done)
    };
    if let [worker] = workers {
        return work(worker);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(|| work(worker))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")?).sum()
    })
}
