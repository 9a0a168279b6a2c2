//! How fast the simulator itself is: requests per CPU-second of one core, full timing, latency histogram and
//! statistics on. A command, not a test: wall time informs, nothing is asserted here.

use crate::design::Design;
use crate::run::device::Observed;
use crate::run::drive::{Limit, Progress, drive};
use crate::run::meter::Meter;
use crate::run::{State, build, precondition};
use cpu_time::ThreadTime;
use nvlab_access::BlockDevice;
use nvlab_units::Rng;
use nvlab_workload::{Batch, Op, Pacing, Request, Workload};

/// One row of the benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchRow {
    /// The design.
    pub design: String,
    /// `write` or `read`.
    pub op: &'static str,
    /// Requests under way.
    pub depth: u32,
    /// Requests served.
    pub requests: u64,
    /// CPU seconds they took.
    pub cpu_s: f64,
    /// Write amplification on the way.
    pub write_amplification: f64,
    /// Bytes of controller memory per logical unit.
    pub memory_per_unit: f64,
    /// A number that depends on every latency: the same on every machine.
    pub hash: u64,
}

impl BenchRow {
    /// Requests per CPU-second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.cpu_s
    }
}

/// Uniform requests of one 4 KiB unit.
struct Uniform {
    rng: Rng,
    units: u64,
    left: u64,
    op: Op,
    depth: u32,
}

impl Workload for Uniform {
    #[inline]
    fn fill(&mut self, batch: &mut Batch) -> usize {
        let count = (batch.room() as u64).min(self.left) as usize;
        self.left -= count as u64;
        batch.extend(count, || Request {
            offset: self.rng.below(self.units) * 4096,
            bytes: 4096,
            op: self.op,
            ..Request::default()
        });
        count
    }
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: self.depth }
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        0..self.units * 4096
    }
}

/// Uniform random requests of 4 KiB on one design in steady state: of each operation with its depth, as many.
pub fn bench(name: &str, requests: u64, measures: &[(Op, u32)]) -> Result<Vec<BenchRow>, String> {
    let design = Design::load(name, &[]).map_err(|errors| errors.to_string())?;
    let mut device = build(&design, 1)?;
    let units = design.capacity_bytes() / 4096;
    let uniform = |op, depth, left| Uniform { rng: Rng::stream(1, "bench"), units, left, op, depth };
    let own = Some(uniform(Op::Write, 32, u64::MAX));
    let prepared = precondition::precondition(&mut device, State::Steady, own, 1, |_, _| true);
    let (_, mut now) = prepared.map_err(|error| error.to_string())?;
    let memory_per_unit = device.controller().memory_bytes() as f64 / units as f64;
    let mut rows = Vec::new();
    for &(op, depth) in measures {
        device.controller_mut().reset_stats();
        let mut workload = uniform(op, depth, requests);
        let mut meter = Meter::new(now, device.counters(), Some(requests), |_: &Progress| true);
        let clock = ThreadTime::now();
        let progress = drive(&mut device, &mut workload, now, design.path.queue, &Limit::NONE, &mut meter)
            .map_err(|error| error.to_string())?;
        let cpu_s = clock.elapsed().as_secs_f64();
        let span = progress.now.since(now);
        now = device.flush(progress.now).map_err(|error| error.to_string())?.end + span / 10;
        let (totals, _) = meter.finish(device.counters(), progress.now);
        let buckets = totals[op as usize].latency.buckets();
        rows.push(BenchRow {
            design: name.into(),
            op: op.name(),
            depth,
            requests: progress.requests,
            cpu_s,
            write_amplification: device.controller().stats().write_amplification(),
            memory_per_unit,
            hash: buckets.fold(0, |hash: u64, (bound, count)| {
                (hash ^ bound.ps().wrapping_mul(31).wrapping_add(count)).wrapping_mul(0x0000_0100_0000_01b3)
            }),
        });
    }

    Ok(rows)
}
