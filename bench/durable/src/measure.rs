//! Measures one contender in one place. Runs in a process of its own, so that CPU time and written bytes are the contender's.

use crate::Result;
use crate::contenders::{Contender, Counters, Kind, Scale, Start};
use crate::machine::{self, RawFile};
use nvlab_bench_stores::machine::{process_cpu_seconds, thread_cpu_seconds};
use nvlab_bench_stores::tpcb::Transfer;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How much to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Numbers of threads, one run each.
    pub threads: Vec<u64>,
    /// A run ends after so many commits or seconds, whichever comes first.
    pub commits: u64,
    pub seconds: f64,
    /// Seconds of raw fdatasync in a run, in slices between the contender's.
    pub raw_seconds: f64,
    /// Transactions before the first run, which are not measured.
    pub warm_up: u64,
}

/// Raw fdatasync and the contender take turns so often in a run, so that a disturbance hits both.
const SLICES: u32 = 8;
/// A force past the page cache takes .75 to .85 of raw fdatasync's time, which writes through it; and noise of two
/// measurements one after the other.
const FASTER_FORCE: f64 = 1.4;
/// More than this share of raw fdatasync's time spent waiting for a processor, and it is no yardstick.
const WAIT_MAX: f64 = 0.1;

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub threads: u64,
    pub commits: u64,
    pub seconds: f64,
    pub commits_per_second: f64,
    /// Raw fdatasync a second: all slices together, the slowest and the fastest.
    pub raw_per_second: f64,
    pub raw_spread: [f64; 2],
    /// Share of its time that raw fdatasync was ready to run and had no processor.
    pub raw_processor_wait: f64,
    /// Commits a second divided by raw fdatasync a second.
    pub per_fdatasync: f64,
    /// Whether this ratio says anything: other programs kept no processor from raw fdatasync, and it is not far above the number
    /// of threads. (A thread has one commit under way, so a force serves at most as many commits as there are threads.)
    pub is_valid: bool,
    /// CPU time of the process a transaction, and of the committing threads alone, in ns.
    pub cpu_ns: f64,
    pub committer_cpu_ns: f64,
    /// Bytes a transaction: passed to write calls; in records of the log.
    pub written_bytes: f64,
    pub logged_bytes: Option<f64>,
    /// A transaction.
    pub forces: Option<f64>,
    pub fences: Option<f64>,
    pub lines: Option<f64>,
    /// In the run.
    pub truncations: Option<u64>,
}

/// Runs a plan in an empty folder. Fails if the balances are wrong after any run, or after reopening.
pub fn measure(kind: &Kind, folder: &Path, plan: &Plan) -> Result<Vec<Measured>> {
    let make = kind.make.ok_or("not installed")?;
    let history_rows = plan.warm_up + plan.commits * plan.threads.len() as u64;
    let scale = Scale { history_rows, region_bytes_min: 0 };
    let contender = make(folder, Start::Create, scale)?;
    let raw_file = RawFile::create(folder)?;
    let mut done =
        run(&|number| contender.transaction(&Transfer::new(number)), 1, 0, plan.warm_up, 1e6)?.count;
    contender.balances()?.check_exactly(done)?;
    let mut measured = Vec::new();
    for &threads in &plan.threads {
        measured.push(measure_run(contender.as_ref(), &raw_file, plan, threads, &mut done)?);
        contender.balances()?.check_exactly(done)?;
    }
    contender.close()?;
    let reopened = make(folder, Start::Open, scale)?;
    reopened.balances()?.check_exactly(done)?;
    reopened.close()?;
    Ok(measured)
}

fn measure_run(
    contender: &dyn Contender,
    raw_file: &RawFile,
    plan: &Plan,
    threads: u64,
    done: &mut u64,
) -> Result<Measured> {
    let slices = f64::from(SLICES);
    let (mut sum, mut raw, mut raw_spread) = (Done::default(), Done::default(), [f64::INFINITY, 0.0]);
    let (mut cpu, mut written) = (0.0, 0);
    let before = contender.counters();
    for _ in 0..SLICES {
        // By the same means as the contenders: how a thread is woken counts as much as the device on a busy machine.
        let slice = run(&|n| raw_file.write_and_sync(n), 1, raw.count, u64::MAX, plan.raw_seconds / slices)?;
        let rate = slice.count as f64 / slice.seconds;
        raw_spread = [rate.min(raw_spread[0]), rate.max(raw_spread[1])];
        raw.add(&slice);
        let (written_before, cpu_before) = (machine::written_bytes()?, process_cpu_seconds());
        let commit = |number| contender.transaction(&Transfer::new(number));
        let count = plan.commits / u64::from(SLICES);
        let slice = run(&commit, threads, *done, count, plan.seconds / slices)?;
        cpu += process_cpu_seconds() - cpu_before;
        written += machine::written_bytes()? - written_before;
        *done += slice.count;
        sum.add(&slice);
    }
    let after = contender.counters();
    let commits = sum.count as f64;
    let counted = |field: fn(&Counters) -> Option<u64>| Some(field(&after)? - field(&before)?);
    let each = |field| counted(field).map(|count| count as f64 / commits);
    let (commits_per_second, raw_per_second) = (commits / sum.seconds, raw.count as f64 / raw.seconds);
    let (per_fdatasync, raw_processor_wait) = (commits_per_second / raw_per_second, raw.wait / raw.seconds);
    Ok(Measured {
        threads,
        commits: sum.count,
        seconds: sum.seconds,
        commits_per_second,
        raw_per_second,
        raw_spread,
        raw_processor_wait,
        per_fdatasync,
        is_valid: per_fdatasync <= threads as f64 * FASTER_FORCE && raw_processor_wait <= WAIT_MAX,
        cpu_ns: cpu * 1e9 / commits,
        committer_cpu_ns: sum.cpu * 1e9 / commits,
        written_bytes: written as f64 / commits,
        logged_bytes: each(|counters| counters.logged_bytes),
        forces: each(|counters| counters.forces),
        fences: each(|counters| counters.fences),
        lines: each(|counters| counters.lines),
        truncations: counted(|counters| counters.truncations),
    })
}

/// What threads have done, in how many seconds; their CPU seconds, and seconds they waited for a processor.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    count: u64,
    seconds: f64,
    cpu: f64,
    wait: f64,
}

impl Done {
    fn add(&mut self, other: &Done) {
        self.count += other.count;
        self.seconds += other.seconds;
        self.cpu += other.cpu;
        self.wait += other.wait;
    }
}

/// Calls `work` with the numbers from `first` on, in so many threads, until `count` are done or the time is over. Nothing
/// else runs beside the threads.
fn run(
    work: &(dyn Fn(u64) -> Result<()> + Sync),
    threads: u64,
    first: u64,
    count: u64,
    seconds: f64,
) -> Result<Done> {
    let (next, is_over) = (AtomicU64::new(first), AtomicBool::new(false));
    let end = first.saturating_add(count);
    let one = &|| {
        let (cpu, wait) = (thread_cpu_seconds(), machine::processor_wait_seconds()?);
        let mut count = 0;
        while !is_over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end {
                break;
            }
            if let Err(error) = work(number) {
                is_over.store(true, Ordering::Relaxed);
                return Err(error);
            }
            count += 1;
        }
        let (cpu, wait) = (thread_cpu_seconds() - cpu, machine::processor_wait_seconds()? - wait);
        Ok(Done { count, seconds: 0.0, cpu, wait })
    };
    std::thread::scope(|scope| {
        let began = Instant::now();
        // Nothing is sent: the channel closes when the last thread ends.
        let (running, ended) = channel::<()>();
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let running = running.clone();
                scope.spawn(move || {
                    let result = one();
                    drop(running);
                    result
                })
            })
            .collect();
        drop(running);
        if ended.recv_timeout(Duration::from_secs_f64(seconds)) == Err(RecvTimeoutError::Timeout) {
            is_over.store(true, Ordering::Relaxed);
        }
        let mut sum = Done::default();
        for worker in workers {
            sum.add(&worker.join().map_err(|_| "a thread panicked")??);
        }
        sum.seconds = began.elapsed().as_secs_f64();
        Ok(sum)
    })
}
