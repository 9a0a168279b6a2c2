//! The CPU time of an operation: the median of the slices of a run. The clocks are the caller's.

use super::{Driver, Part, Result};

/// The clocks to measure with, in seconds from any origin.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// CPU time of all threads of this process.
    pub cpu_s: fn() -> f64,
    /// Elapsed time from any origin; it must not jump.
    pub wall_s: fn() -> f64,
}

/// How long a workload is run, and by how many threads.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Number of the run, which determines its operations.
    pub number: u64,
    /// Threads that operate at the same time.
    pub threads: u64,
    /// Operations after which a thread stops.
    pub operations: u64,
    /// Seconds after which it stops even with fewer operations.
    pub seconds: f64,
    /// Operations in one transaction, where the store can; 0 and 1: each on its own.
    pub together: u64,
}

/// What a run took. The first slice is not counted.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Operations of all threads in the slices that count.
    pub operations: u64,
    /// Elapsed seconds of these slices.
    pub seconds: f64,
    /// CPU time of an operation, in nanoseconds: the median of the slices.
    pub cpu_ns: f64,
    /// The lowest and the highest `cpu_ns` of a slice.
    pub cpu_ns_spread: [f64; 2],
}

/// A run has this many slices, and one more before them that is not counted.
const SLICES: u64 = 8;

/// Runs a workload on a filled store and replays it on the workload's model, so that the store can be verified.
pub fn measure<D: Driver>(driver: &mut D, store: &D::Store, run: &Run, clocks: Clocks) -> Result<Took> {
    let parts = (0..run.threads).map(|thread| Part { run: run.number, thread, threads: run.threads });
    let mut workers: Vec<_> = parts.map(|part| (part, driver.worker(part), 0)).collect();
    let (mut costs, mut operations, mut seconds) = (Vec::new(), 0, 0.0);
    for slice in 0..=SLICES {
        let (cpu, began) = ((clocks.cpu_s)(), (clocks.wall_s)());
        let done = slice_of::<D>(store, &mut workers, run, clocks)?;
        let (cpu, time) = ((clocks.cpu_s)() - cpu, (clocks.wall_s)() - began);
        if slice > 0 {
            costs.push(cpu * 1e9 / done.max(1) as f64);
            (operations, seconds) = (operations + done, seconds + time);
        }
    }
    for (part, worker, count) in &workers {
        driver.replay(*part, *count, worker)?;
    }
    costs.sort_unstable_by(f64::total_cmp);
    let middle = costs.len() / 2;
    let cpu_ns = (costs[middle] + costs[(costs.len() - 1) / 2]) / 2.0;
    Ok(Took { operations, seconds, cpu_ns, cpu_ns_spread: [costs[0], costs[costs.len() - 1]] })
}

/// A part, its worker, and how many operations that has done.
type Working<D> = (Part, <D as Driver>::Worker, u64);

/// Lets threads do their share of a slice; returns how many operations were done.
fn slice_of<D: Driver>(
    store: &D::Store,
    workers: &mut [Working<D>],
    run: &Run,
    clocks: Clocks,
) -> Result<u64> {
    let (operations, seconds) = (run.operations / (SLICES + 1), run.seconds / (SLICES + 1) as f64);
    let work = |(_, worker, count): &mut Working<D>| -> Result<u64> {
        let began = (clocks.wall_s)();
        let mut done = 0;
        // A clock read costs as much as a tenth of a short operation.
        while done < operations && (done % 16 != 0 || (clocks.wall_s)() - began < seconds) {
            match run.together {
                0 | 1 => one::<D>(store, worker)?,
                // A multiple of 16, or the clock would be read too rarely or too often.
                together => several::<D>(store, worker, together)?,
            }
            done += run.together.max(1);
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

/// Draws the next operation and applies it.
pub fn one<D: Driver>(store: &D::Store, worker: &mut D::Worker) -> Result<()> {
    let operation = D::draw(worker);
    D::apply(store, worker, &operation)
}

/// Does the next `count` operations in one transaction. They are drawn beforehand: the transaction may be done again.
fn several<D: Driver>(store: &D::Store, worker: &mut D::Worker, count: u64) -> Result<()> {
    let operations: Vec<_> = (0..count).map(|_| D::draw(worker)).collect();
    D::together(store, &mut || operations.iter().try_for_each(|operation| D::apply(store, worker, operation)))
}
