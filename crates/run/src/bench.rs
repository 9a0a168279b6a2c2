//! Speed of the simulator itself: requests per CPU-second of one core, with full timing, latency histogram and
//! statistics. A command, not a test: wall time is reported, nothing is asserted here.

use crate::device::NoBytes;
use crate::drive::{DeviceUnderTest, Limit, Watch, drive};
use crate::meter::Meter;
use crate::preparation::State;
use crate::{device, precondition};
use cpu_time::ThreadTime;
use nvlab_design::{Design, Ftl, Kind, Payload};
use nvlab_units::Rng;
use nvlab_workload::{Batch, BlockWorkload, Op, Pacing, Request, Workload};

/// One row of the benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchRow {
    /// The design.
    pub design: String,
    /// `write` or `read`.
    pub op: &'static str,
    /// Requests in flight.
    pub depth: u32,
    /// Requests served.
    pub requests: u64,
    /// CPU seconds they took.
    pub cpu_s: f64,
    /// Write amplification during the measurement.
    pub write_amplification: f64,
    /// Bytes of memory per logical unit: the controller's, and for a memory used in place those for each line.
    pub memory_per_unit: f64,
    /// A number that depends on every latency: equal on all computers.
    pub hash: u64,
}

impl BenchRow {
    /// Requests per CPU-second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.cpu_s
    }
    /// Units programmed per CPU-second, whatever the cause.
    pub fn programs_rate(&self) -> f64 {
        let writes = if self.op == Op::Write.name() { self.rate() } else { 0.0 };
        writes * self.write_amplification
    }
}

/// Uniform requests of one unit.
struct Uniform {
    rng: Rng,
    units: u64,
    /// One of them: only the address varies.
    like: Request,
    left: u64,
    depth: u32,
}

impl BlockWorkload for Uniform {
    #[inline]
    fn fill(&mut self, batch: &mut Batch) -> usize {
        let count = (batch.room() as u64).min(self.left) as usize;
        self.left -= count as u64;
        batch.extend(count, || {
            let mut request = self.like;
            request.offset = self.rng.below(self.units) * request.bytes as u64;
            request
        });
        count
    }
}

impl Workload for Uniform {
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: self.depth }
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        0..self.units * self.like.bytes as u64
    }
}

/// Uniform random requests of one unit on one design in steady state: the same number of each operation, at its
/// queue depth. On a memory, page writes are measured, one after the other.
pub fn bench(name: &str, requests: u64, measures: &[(Op, u32)]) -> Result<Vec<BenchRow>, String> {
    let design = Design::load(name, &[]).map_err(|errors| errors.to_string())?;
    if let Ftl::Envy(envy) = &design.ftl {
        let built = device::envy::build(&design, envy, 1, &NoBytes);
        let (mut memory, _) = built.map_err(|why| why.to_string())?;
        let writes = measures.iter().any(|(op, _)| *op == Op::Write).then_some((Op::Write, 1));
        return measure(
            &mut device::envy::Pages::new(&mut memory),
            &design,
            name,
            requests,
            writes.as_slice(),
        );
    }
    let mut device = device::any(&design, 1, None).map_err(|why| why.to_string())?;
    measure(&mut *device, &design, name, requests, measures)
}

fn measure(
    device: &mut dyn DeviceUnderTest,
    design: &Design,
    name: &str,
    requests: u64,
    measures: &[(Op, u32)],
) -> Result<Vec<BenchRow>, String> {
    let unit_bytes = device.unit_bytes();
    let units = design.capacity_bytes() / unit_bytes as u64;
    let uniform = |op, depth, left| Uniform {
        rng: Rng::stream(1, "bench"),
        units,
        like: Request { op, bytes: unit_bytes, ..Request::default() },
        left,
        depth,
    };
    // Their wear: 4 B each; and the lanes of the banks.
    let of_lines = match &design.ftl {
        Ftl::Direct(in_place) => in_place.memory_bytes(design, Payload::Nothing),
        _ => 0,
    };
    let mut own = uniform(Op::Write, 32, u64::MAX);
    let prepared =
        precondition::precondition(device, &State::Steady.into(), Some(&mut own), &mut |_, _| true);
    let (_, mut now) = prepared.map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for &(op, depth) in measures {
        device.reset_stats();
        let mut workload = uniform(op, depth, requests);
        let mut meter = Meter::new(now, device.counters(), Some(requests));
        let watch = Watch { meter: Some(&mut meter), go_on: &mut |_| true };
        let clock = ThreadTime::now();
        let progress = drive(device, &mut workload, now, design.path.queue, &Limit::NONE, watch)
            .map_err(|error| error.to_string())?;
        let cpu_s = clock.elapsed().as_secs_f64();
        let span = progress.now.since(now);
        now = device.flush(progress.now).map_err(|error| error.to_string())?.end + span / 10;
        let (totals, _) = meter.finish(device.counters(), progress.now);
        let buckets = totals[op as usize].latency.buckets();
        let insides = device.insides(span);
        rows.push(BenchRow {
            design: name.into(),
            op: op.name(),
            depth,
            requests: progress.requests,
            cpu_s,
            write_amplification: match insides.causes.host + insides.absorbed_units {
                0 => 0.0,
                host => insides.causes.total() as f64 / host as f64,
            },
            memory_per_unit: (insides.memory_bytes + of_lines) as f64 / units as f64,
            hash: buckets.fold(0, |hash: u64, (bound, count)| {
                (hash ^ bound.ps().wrapping_mul(31).wrapping_add(count)).wrapping_mul(0x0000_0100_0000_01b3)
            }),
        });
    }
    Ok(rows)
}
