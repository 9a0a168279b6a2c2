//! SNIA's Solid State Storage Performance Test Specification (Enterprise): IOPS, throughput, latency and write saturation.
//!
//! Every test begins with a purge: a new device. Then the device is prepared, independently of the workload (written
//! in order) and by the workload, and rounds of cells follow until the tracked value is steady ([`steady`]); the
//! result is the mean over the last five rounds. After 25 rounds a test ends without a steady state, and says so.
//!
//! Differences from the specification, because simulating its hours would take hours: a cell lasts a second of
//! simulated time, not a minute, unless another time is given. To reach the state that hours of rounds leave, the
//! device is prepared by random writes of 4 KiB until its write amplification is constant, instead of by the rounds
//! themselves. Write saturation ends after a number of capacities.
//!
//! | file | what |
//! |---|---|
//! | `cells` | the definition of each test |
//! | [`steady`] | the rule for the steady state |
//! | [`page`] | the report as a page |

mod cells;
pub mod page;
pub mod steady;

use cells::{Cell, OUTSTANDING, Prepared, Rounds};
use nvlab_design::Design;
use nvlab_run::device;
use nvlab_run::drive::{self, DeviceUnderTest, DriveError, Limit, Watch};
use nvlab_run::meter::Meter;
use nvlab_run::plan::Source;
use nvlab_run::{Preparation, State, precondition};
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Histogram, Span, Time};
use nvlab_workload::{Op, Serves, Work};
use serde::Serialize;
use steady::{ROUNDS_MAX, WINDOW, Window};
use thiserror::Error;

/// A test of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Random requests of eight sizes in seven mixes.
    Iops,
    /// Sequential reads and writes of two sizes.
    Throughput,
    /// One random request at a time, of three sizes in three mixes.
    Latency,
    /// Random writes of 4 KiB to a new device.
    WriteSaturation,
}

impl Test {
    /// All of them, in the order of the specification.
    pub const ALL: [Test; 4] = [Test::Iops, Test::Throughput, Test::Latency, Test::WriteSaturation];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Test::Iops => "IOPS",
            Test::Throughput => "Throughput",
            Test::Latency => "Latency",
            Test::WriteSaturation => "Write saturation",
        }
    }
}

/// How the tests are run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PtsPlan {
    /// Simulated time of a cell.
    pub cell: Span,
    /// Capacities written by the test of write saturation.
    pub capacities: f64,
    /// Seed of the requests.
    pub seed: u64,
}

/// Why a test has no result.
#[derive(Clone, Debug, Error)]
pub enum PtsError {
    /// The design cannot be tested.
    #[error("{0}")]
    Design(String),
    /// The device failed.
    #[error("{test}, {what}: {source}")]
    Failed {
        /// The test.
        test: &'static str,
        /// What was done.
        what: String,
        /// Why.
        source: DriveError,
    },
}

impl PtsError {
    /// True if the observer of the test stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self, PtsError::Failed { source: DriveError::Stopped(_), .. })
    }
}

/// One measured cell: the mean over the window; for the longest latency, the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CellResult {
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Share of reads, in percent.
    pub read_percent: u32,
    /// In order; otherwise at random.
    pub is_sequential: bool,
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Latency in microseconds.
    pub latency_mean_us: f64,
    /// Its 99th percentile.
    pub latency_p99_us: f64,
    /// The longest.
    pub latency_max_us: f64,
}

/// The rounds of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundsResult {
    /// How the device was prepared.
    pub preconditioned: String,
    /// What was tracked.
    pub tracked: String,
    /// Its value in each round: IOPS, bytes a second, or microseconds.
    pub tracked_by_round: Vec<f64>,
    /// The last five rounds.
    pub window: Option<Window>,
    /// The cells.
    pub cells: Vec<CellResult>,
}

/// One part of the test of write saturation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SaturationPoint {
    /// Bytes written up to its end.
    pub written_bytes: u64,
    /// Writes a second.
    pub iops: f64,
    /// Mean latency in microseconds.
    pub latency_mean_us: f64,
    /// Units programmed over units written.
    pub write_amplification: f64,
}

/// What a test found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestResult {
    /// Which one.
    pub test: Test,
    /// Its rounds; one for each size of the test of throughput.
    pub rounds: Vec<RoundsResult>,
    /// The points of write saturation.
    pub saturation: Vec<SaturationPoint>,
}

impl TestResult {
    /// True if every part reached the steady state of the specification; write saturation has none to reach.
    pub fn is_steady(&self) -> bool {
        self.rounds.iter().all(|rounds| rounds.window.is_some_and(|window| window.is_steady))
    }
}

/// What tests of a design found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PtsResult {
    /// `nvlab.pts/1`.
    pub schema: &'static str,
    /// The design.
    pub design: String,
    /// Bytes for the host.
    pub capacity_bytes: u64,
    /// Simulated time of a cell, in seconds.
    pub cell_s: f64,
    /// Seed of the requests.
    pub seed: u64,
    /// The tests.
    pub tests: Vec<TestResult>,
}

/// Called with the activity and its progress (0 to 1); returns false to stop.
pub type OnProgress<'a> = &'a mut dyn FnMut(&str, f64) -> bool;

/// Runs one test on new devices of a design.
pub fn run(
    design: &Design,
    plan: &PtsPlan,
    test: Test,
    on_progress: OnProgress<'_>,
) -> Result<TestResult, PtsError> {
    if design.path.software.is_some() {
        return Err(PtsError::Design("the specification tests devices: leave out path.stages".into()));
    }
    let mut result = TestResult { test, rounds: Vec::new(), saturation: Vec::new() };
    let bench = |rounds| Bench { design, plan, test, rounds };
    // Purged: as new.
    let device = || device::any(design, plan.seed, None).map_err(|why| PtsError::Design(why.to_string()));
    match test {
        Test::WriteSaturation => {
            result.saturation = Saturating(bench(None), on_progress).measure(&mut *device()?)?;
        }
        _ => {
            for rounds in cells::rounds(test) {
                let rounding = Rounding(bench(Some(rounds)), &mut *on_progress);
                result.rounds.push(rounding.measure(&mut *device()?)?);
            }
        }
    }
    Ok(result)
}

/// One device under one test.
struct Bench<'a> {
    design: &'a Design,
    plan: &'a PtsPlan,
    test: Test,
    rounds: Option<Rounds>,
}

/// What was measured in a while.
struct Measured {
    now: Time,
    /// Requests that were answered; as many as the loop is deep are still in flight.
    completed: u64,
    /// Bytes of all.
    bytes: u64,
    span: Span,
    latency: Histogram,
}

impl Measured {
    fn of(&self, cell: &Cell) -> CellResult {
        let seconds = self.span.seconds().max(1e-12);
        let us = |span: Span| span.ns() as f64 / 1e3;
        CellResult {
            block_bytes: cell.block_bytes,
            read_percent: cell.read_percent,
            is_sequential: cell.is_sequential,
            iops: self.completed as f64 / seconds,
            bytes_per_s: (self.completed * cell.block_bytes) as f64 / seconds,
            latency_mean_us: nvlab_run::meter::latency(&self.latency).mean_ns / 1e3,
            latency_p99_us: us(self.latency.quantile(0.99)),
            latency_max_us: us(self.latency.max()),
        }
    }
}

impl Bench<'_> {
    fn open(&self, text: &str, seed: u64) -> Result<Work, PtsError> {
        let wrong = |error: nvlab_workload::WorkloadError| PtsError::Design(error.to_string());
        let source = Source::read(text, None).map_err(wrong)?;
        Ok(source.open(self.design.capacity_bytes(), Serves::Blocks, seed).map_err(wrong)?.work)
    }

    fn failed(&self, what: &str) -> impl FnOnce(DriveError) -> PtsError {
        let (test, what) = (self.test.title(), what.to_string());
        move |source| PtsError::Failed { test, what, source }
    }

    /// Serves a workload from `now` on, within a limit.
    fn serve(
        &self,
        device: &mut dyn DeviceUnderTest,
        text: &str,
        (seed, now): (u64, Time),
        limit: &Limit,
        go_on: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Measured, PtsError> {
        let Work::Requests(mut work) = self.open(text, seed)? else {
            unreachable!("{text} is a workload of blocks")
        };
        let mut meter = Meter::new(now, device.counters(), None);
        let share = |progress: &drive::Progress| progress.written_bytes as f64 / limit.written_bytes as f64;
        let go_on = &mut |progress: &drive::Progress| go_on(share(progress));
        let watch = Watch { meter: Some(&mut meter), go_on };
        let driven = drive::drive(device, &mut *work, now, self.design.path.queue, limit, watch);
        let progress = driven.map_err(self.failed(text))?;
        let (totals, _) = meter.finish(device.counters(), progress.now);
        let [read, write] = [&totals[Op::Read as usize], &totals[Op::Write as usize]];
        let mut latency = read.latency.clone();
        latency.merge(&write.latency);
        let (completed, bytes) = (read.count() + write.count(), read.bytes + write.bytes);
        Ok(Measured { now: progress.now, completed, bytes, span: progress.now.since(now), latency })
    }

    /// Prepares a purged device; returns when it is ready, and how it was done.
    fn prepare(
        &self,
        device: &mut dyn DeviceUnderTest,
        prepared: Prepared,
        on_progress: OnProgress<'_>,
    ) -> Result<(Time, String), PtsError> {
        let capacity = device.capacity_bytes();
        match prepared {
            Prepared::Sequential(block_bytes) => {
                let limit = Limit { written_bytes: 2 * capacity, ..Limit::NONE };
                let text = format!("sequential rw=write bs={block_bytes}B qd={OUTSTANDING}");
                let go_on = &mut |share: f64| on_progress("preconditioning: sequential writes", share);
                let written = self.serve(device, &text, (self.plan.seed, Time::ZERO), &limit, go_on)?;
                let about = format!(
                    "purged, written {:.1} x sequentially ({})",
                    written.bytes as f64 / capacity as f64,
                    display_bytes(block_bytes)
                );
                Ok((written.now, about))
            }
            Prepared::Random => {
                let Work::Requests(mut own) =
                    self.open("uniform rw=randwrite bs=4KiB", self.plan.seed ^ 1)?
                else {
                    unreachable!("uniform writes are a workload of blocks")
                };
                let steady = Preparation::from(State::Steady);
                let (report, ready) =
                    precondition::precondition(device, &steady, Some(&mut *own), on_progress)
                        .map_err(self.failed("while preconditioning"))?;
                let times = report.host_bytes as f64 / capacity as f64;
                let about = match (report.host_bytes, report.converged) {
                    (0, _) => "purged; needs no preconditioning".to_string(),
                    (_, true) => format!(
                        "purged, written sequentially and by random 4 KiB until steady: {times:.1} x the capacity"
                    ),
                    (_, false) => format!(
                        "purged, written sequentially and by random 4 KiB, {times:.1} x the capacity: NOT steady"
                    ),
                };
                Ok((ready, about))
            }
        }
    }
}

/// Rounds of cells until the tracked value is steady.
struct Rounding<'a, 'b>(Bench<'a>, OnProgress<'b>);

impl Rounding<'_, '_> {
    fn measure(self, device: &mut dyn DeviceUnderTest) -> Result<RoundsResult, PtsError> {
        let Rounding(bench, on_progress) = self;
        let Rounds { prepared, cells, tracked } = bench.rounds.as_ref().expect("this test has rounds");
        let (mut now, preconditioned) = bench.prepare(device, *prepared, on_progress)?;
        let limit = Limit { time: bench.plan.cell, ..Limit::NONE };
        let (mut rounds, mut values): (Vec<Vec<CellResult>>, Vec<f64>) = (Vec::new(), Vec::new());
        let is_done = |values: &[f64]| steady::window(values).is_some_and(|window| window.is_steady);
        while !is_done(&values) && rounds.len() < ROUNDS_MAX {
            let mut round = Vec::with_capacity(cells.len());
            for (number, cell) in cells.iter().enumerate() {
                let text = format!("{}: round {}", bench.test.title(), rounds.len() + 1);
                let share = number as f64 / cells.len() as f64;
                let go_on = &mut |_| on_progress(&text, share);
                let seed =
                    bench.plan.seed.wrapping_mul(1_000_003) + (rounds.len() * cells.len() + number) as u64;
                let measured = bench.serve(device, &cell.workload(), (seed, now), &limit, go_on)?;
                now = measured.now;
                round.push(measured.of(cell));
            }
            values.push(bench.test.value(&round[*tracked]));
            rounds.push(round);
        }
        let last = &rounds[rounds.len().saturating_sub(WINDOW)..];
        Ok(RoundsResult {
            preconditioned,
            tracked: bench.test.tracked(&cells[*tracked]),
            window: steady::window(&values),
            tracked_by_round: values,
            cells: (0..cells.len()).map(|number| mean(last.iter().map(|round| &round[number]))).collect(),
        })
    }
}

impl Test {
    /// The value of a cell that this test is about.
    pub fn value(self, cell: &CellResult) -> f64 {
        match self {
            Test::Iops | Test::WriteSaturation => cell.iops,
            Test::Throughput => cell.bytes_per_s,
            Test::Latency => cell.latency_mean_us,
        }
    }

    fn tracked(self, cell: &Cell) -> String {
        let what = match self {
            Test::Iops | Test::WriteSaturation => "IOPS",
            Test::Throughput => "bytes per second",
            Test::Latency => "mean latency",
        };
        let order = if cell.is_sequential { "sequential" } else { "random" };
        format!("{what} of {order} writes of {}", display_bytes(cell.block_bytes))
    }
}

/// The mean of a cell over rounds.
fn mean<'a>(rounds: impl Iterator<Item = &'a CellResult> + Clone) -> CellResult {
    let count = rounds.clone().count().max(1) as f64;
    let of = |value: fn(&CellResult) -> f64| rounds.clone().map(value).sum::<f64>() / count;
    let first = rounds.clone().next().expect("a test has a round");
    CellResult {
        iops: of(|cell| cell.iops),
        bytes_per_s: of(|cell| cell.bytes_per_s),
        latency_mean_us: of(|cell| cell.latency_mean_us),
        latency_p99_us: of(|cell| cell.latency_p99_us),
        latency_max_us: rounds.clone().map(|cell| cell.latency_max_us).fold(0.0, f64::max),
        ..*first
    }
}

/// Points of write saturation.
const POINTS: u64 = 100;

/// Random writes of 4 KiB to a new device.
struct Saturating<'a, 'b>(Bench<'a>, OnProgress<'b>);

impl Saturating<'_, '_> {
    fn measure(self, device: &mut dyn DeviceUnderTest) -> Result<Vec<SaturationPoint>, PtsError> {
        let Saturating(bench, on_progress) = self;
        let text = format!("uniform rw=randwrite bs=4KiB qd={OUTSTANDING}");
        let step = (device.capacity_bytes() as f64 * bench.plan.capacities / POINTS as f64) as u64;
        let limit = Limit { written_bytes: step.max(1), ..Limit::NONE };
        let (mut now, mut written, mut points) = (Time::ZERO, 0, Vec::new());
        for number in 0..POINTS {
            let before = device.counters();
            let go_on =
                &mut |share: f64| on_progress("write saturation", (number as f64 + share) / POINTS as f64);
            let seed = bench.plan.seed.wrapping_mul(1_000_003) + number;
            let measured = bench.serve(device, &text, (seed, now), &limit, go_on)?;
            let after = device.counters();
            now = measured.now;
            written += measured.bytes;
            let units = (after.host_units - before.host_units).max(1);
            points.push(SaturationPoint {
                written_bytes: written,
                iops: measured.completed as f64 / measured.span.seconds().max(1e-12),
                latency_mean_us: nvlab_run::meter::latency(&measured.latency).mean_ns / 1e3,
                write_amplification: (after.programmed_units() - before.programmed_units()) as f64
                    / units as f64,
            });
        }
        Ok(points)
    }
}
