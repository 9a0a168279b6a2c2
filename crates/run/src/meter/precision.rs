//! Precision of a run's figures: 95 % intervals by batch means.
//!
//! The windows of a run are joined to a few batches, each so long that it hardly depends on the one before; the spread of the
//! batches is that of the figure (Law, Simulation Modeling and Analysis, 9.5.3). Both 16 and 8 batches are tried, and the wider
//! interval counts: where batches still depend on each other, as while a device drifts, eight show more of it. A figure that is a
//! quotient of two sums (units programmed over units written) has the interval of a ratio estimator.
//!
//! Cleaning comes in bursts: the dies of a device clean nearly at the same time. A short run counts one burst more or
//! less, so its write amplification deviates by a burst over its length; the batches differ by as much, so the
//! interval contains that. It cannot contain how the device reached its state: repeated runs prepare the device anew
//! for that.

use super::{OpTotals, Stretch, TRANSACTION, Totals};
use crate::device::{Busy, Counters};
use crate::result::Precision;
use nvlab_units::Time;
use nvlab_workload::Op;

/// Batches, and the quantile 97.5 % of Student's t with one degree of freedom less.
const BATCHES: [(usize, f64); 2] = [(16, 2.131), (8, 2.365)];
/// With fewer erases in the run its write amplification has no interval.
const ERASES_MIN: u64 = 10;
/// A batch must hold so many requests beyond a percentile.
const BEYOND_MIN: f64 = 5.0;

/// A figure whose exactness the windows of a run tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Requests per second.
    Iops,
    /// Bytes read and written per second.
    Throughput,
    /// Units programmed per unit the host wrote, and the host bytes that may be written.
    Waf,
    /// Units programmed per second, and the time until the flash is worn out.
    Wear,
    /// A part of [`Figure::Waf`], or a share of the time in which flash is busy: its place in `PARTS`.
    Part(usize),
    /// Of one kind of request ([`TRANSACTION`]: of transactions).
    Of(usize, OfOp),
}

/// A figure of one kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfOp {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency.
    Mean,
    /// A percentile of latency: the name of its metric without the `p`, as 99_99.
    Percentile(&'static str),
}

/// The metric of a part, and what it counts; over units written if true, else over time.
type Part = (&'static str, fn(&Counters) -> f64, bool);
#[rustfmt::skip]
const PARTS: [Part; 15] = [
    ("waf.host", |counted| counted.causes.host as f64, true),
    ("waf.clean", |counted| counted.causes.clean as f64, true),
    ("waf.merge", |counted| counted.causes.merge as f64, true),
    ("waf.fold", |counted| counted.causes.fold as f64, true),
    ("waf.transfer", |counted| counted.causes.transfer as f64, true),
    ("waf.wear", |counted| counted.causes.wear as f64, true),
    ("waf.retire", |counted| counted.causes.retire as f64, true),
    ("waf.map", |counted| counted.causes.map as f64, true),
    ("waf.trim", |counted| counted.causes.trim as f64, true),
    ("waf.padding", |counted| counted.causes.padding as f64, true),
    ("busy.flash", |counted| { let Busy { read, program, erase, .. } = counted.busy; (read + program + erase) as f64 }, false),
    ("busy.read", |counted| counted.busy.read as f64, false),
    ("busy.program", |counted| counted.busy.program as f64, false),
    ("busy.erase", |counted| counted.busy.erase as f64, false),
    ("busy.channel", |counted| counted.busy.channel as f64, false),
];

const KINDS: [&str; TRANSACTION + 1] = ["read", "write", "trim", "flush", "transaction"];
const OF_OP: [OfOp; 8] = [
    OfOp::Iops,
    OfOp::Bandwidth,
    OfOp::Mean,
    OfOp::Percentile("50"),
    OfOp::Percentile("95"),
    OfOp::Percentile("99"),
    OfOp::Percentile("99_9"),
    OfOp::Percentile("99_99"),
];

impl Figure {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Figure> {
        let each = (0..KINDS.len()).flat_map(|kind| OF_OP.map(|of| Figure::Of(kind, of)));
        let parts = (0..PARTS.len()).map(Figure::Part);
        [Figure::Iops, Figure::Throughput, Figure::Waf, Figure::Wear].into_iter().chain(parts).chain(each)
    }

    /// The names of the metrics that are as exact, the one to call it by first.
    pub fn metrics(self) -> Vec<String> {
        let names: &[&str] = match self {
            Figure::Iops => &["iops"],
            Figure::Throughput => &["throughput"],
            Figure::Waf => &["waf", "lifetime.bytes", "lifetime.dwpd", "data.endurance"],
            Figure::Wear => &["lifetime", "lifetime.days", "lifetime.worst", "data.lifetime"],
            Figure::Part(part) => &[PARTS[part].0],
            Figure::Of(TRANSACTION, OfOp::Iops) => &["tps", "transaction.iops"],
            Figure::Of(kind, of) => {
                let of = match of {
                    OfOp::Iops => "iops".to_string(),
                    OfOp::Bandwidth => "bandwidth".to_string(),
                    OfOp::Mean => "mean".to_string(),
                    OfOp::Percentile(name) => format!("p{name}"),
                };
                return vec![format!("{}.{of}", KINDS[kind])];
            }
        };
        names.iter().map(|name| name.to_string()).collect()
    }

    /// True if it counts what is programmed, which cleaning makes come in bursts.
    fn is_of_wear(self) -> bool {
        match self {
            Figure::Waf | Figure::Wear => true,
            Figure::Part(part) => PARTS[part].2,
            _ => false,
        }
    }

    /// The figure with this metric; `None` if windows give no interval for it.
    pub fn of_metric(name: &str) -> Option<Figure> {
        Figure::all().find(|figure| figure.metrics().iter().any(|metric| metric == name))
    }
}

/// What the device counted in windows that follow each other.
fn counted(stretches: &[Stretch]) -> Counters {
    match stretches {
        [first, ..] => stretches[stretches.len() - 1].after.since(&first.before),
        [] => Counters::default(),
    }
}

/// Windows joined.
struct Batch {
    from: Time,
    to: Time,
    ops: Totals,
    counted: Counters,
}

impl Batch {
    fn of(stretches: &[Stretch]) -> Batch {
        let mut ops = Totals::default();
        for stretch in stretches {
            ops.iter_mut().zip(&stretch.ops).for_each(|(total, part)| total.add(part));
        }
        Batch {
            from: stretches[0].from,
            to: stretches[stretches.len() - 1].to,
            ops,
            counted: counted(stretches),
        }
    }

    fn seconds(&self) -> f64 {
        self.to.since(self.from).seconds()
    }

    /// Numerator and denominator of a figure; `None` if the batch holds too little to say.
    fn terms(&self, figure: Figure) -> Option<(f64, f64)> {
        let requests = || self.ops[..TRANSACTION].iter();
        Some(match figure {
            Figure::Iops => (requests().map(OpTotals::count).sum::<u64>() as f64, self.seconds()),
            Figure::Throughput => {
                let [read, write] = [Op::Read, Op::Write].map(|op| self.ops[op as usize].bytes);
                ((read + write) as f64, self.seconds())
            }
            Figure::Waf => (self.counted.programmed_units() as f64, self.counted.host_units as f64),
            Figure::Wear => (self.counted.programmed_units() as f64, self.seconds()),
            Figure::Part(part) => {
                let (_, count, is_of_units) = PARTS[part];
                let over = if is_of_units { self.counted.host_units as f64 } else { self.seconds() };
                (count(&self.counted), over)
            }
            Figure::Of(kind, of) => {
                let op = &self.ops[kind];
                let count = op.count() as f64;
                match of {
                    OfOp::Iops => (count, self.seconds()),
                    OfOp::Bandwidth => (op.bytes as f64, self.seconds()),
                    OfOp::Mean => (op.latency.mean().ps() as f64 * count, count),
                    OfOp::Percentile(name) => {
                        let share = 0.01 * name.replace('_', ".").parse::<f64>().expect("a percentile");
                        if count * (1.0 - share) < BEYOND_MIN {
                            return None;
                        }
                        (op.latency.quantile(share).ps() as f64, 1.0)
                    }
                }
            }
        })
    }
}

/// A run in batches of each number that is tried; none if it is too short for that.
pub(super) struct Batches(Vec<(Vec<Batch>, f64)>);

impl Batches {
    /// Of windows of equally many requests.
    pub fn of(stretches: &[Stretch]) -> Batches {
        let batches = |(count, t): (usize, f64)| {
            let at = |number: usize| number * stretches.len() / count;
            let batch = |number| Batch::of(&stretches[at(number)..at(number + 1)]);
            (stretches.len() >= BATCHES[0].0).then(|| ((0..count).map(batch).collect(), t))
        };
        Batches(BATCHES.into_iter().filter_map(batches).collect())
    }

    /// Half the 95 % interval of a figure over its value; `None` if that cannot be said yet.
    pub fn within(&self, figure: Figure) -> Option<f64> {
        let one = |(batches, t): &(Vec<Batch>, f64)| {
            if figure.is_of_wear()
                && batches.iter().map(|batch| batch.counted.erases).sum::<u64>() < ERASES_MIN
            {
                return None;
            }
            let terms: Option<Vec<(f64, f64)>> = batches.iter().map(|batch| batch.terms(figure)).collect();
            relative(&terms?, *t)
        };
        // Half as many batches may hold enough where all do not.
        self.0.iter().filter_map(one).reduce(f64::max)
    }
}

/// Half the interval of the quotient of two sums, over the quotient.
fn relative(terms: &[(f64, f64)], t: f64) -> Option<f64> {
    let (numerators, denominators) =
        terms.iter().fold((0.0, 0.0), |sums, term| (sums.0 + term.0, sums.1 + term.1));
    if numerators <= 0.0 || denominators <= 0.0 {
        return None;
    }
    let (count, mean) = (terms.len() as f64, numerators / denominators);
    let squares: f64 =
        terms.iter().map(|(numerator, denominator)| (numerator - mean * denominator).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    Some(t * deviation * count.sqrt() / numerators)
}

/// The precision of each figure of a run for which windows give an interval.
pub(super) fn precision(stretches: &[Stretch]) -> Vec<Precision> {
    let batches = Batches::of(stretches);
    let has = |kind: usize| stretches.iter().any(|stretch| stretch.ops[kind].latency.count() > 0);
    let counted = counted(stretches);
    let meant = |figure: &Figure| match figure {
        // Without an erase nothing of it is by chance.
        Figure::Waf | Figure::Wear => counted.erases > 0,
        Figure::Part(part) => PARTS[*part].1(&counted) > 0.0 && (counted.erases > 0 || !figure.is_of_wear()),
        Figure::Of(kind, OfOp::Bandwidth) => *kind < Op::Trim as usize && has(*kind),
        Figure::Of(kind, _) => has(*kind),
        Figure::Iops => (0..TRANSACTION).any(has),
        Figure::Throughput => has(Op::Read as usize) || has(Op::Write as usize),
    };
    let of = |figure: Figure| {
        let within = batches.within(figure);
        figure.metrics().into_iter().map(move |metric| Precision { metric, within })
    };
    Figure::all().filter(meant).flat_map(of).collect()
}
