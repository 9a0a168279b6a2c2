//! Mean and 95 % interval of a few runs, each with its own preparation and seed (Student's t, two-sided).
//!
//! The spread of the runs contains both their measurements and how their devices reached their state, but three runs
//! may agree by accident. Each run also has its own `precision`: the wider of the two intervals counts, and for a
//! single run there is only the second.

use crate::metric::{Metric, Unit};
use crate::number::Shown;
use crate::result::RunResult;

/// A mean and half the width of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Half the width of the interval; 0 if the value is not random, infinite if the runs are too short.
    pub interval: f64,
    /// The number of values.
    pub count: usize,
}

/// Quantiles 97.5 % of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Beyond the table: the first terms of the expansion in 1/n, good to 0.001.
fn t_quantile(freedom: usize) -> f64 {
    T.get(freedom - 1)
        .copied()
        .unwrap_or_else(|| 1.96 + 2.372 / freedom as f64 + 2.8 / (freedom * freedom) as f64)
}

/// Half the interval of a metric that one run knows of itself, infinite if it is too short to say; `None`: it does not tell.
pub fn own_interval(metric: &Metric, run: &RunResult) -> Option<f64> {
    let (value, precision) = (metric.of(run)?, run.precision_of(&metric.name)?);
    Some(precision.within.map_or(f64::INFINITY, |within| within * value.abs()))
}

impl Estimate {
    /// The mean of these values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        if values.iter().all(|value| *value == values[0]) {
            return Some(Estimate { mean: values[0], interval: 0.0, count });
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1) as f64).sqrt();
        Some(Estimate { mean, interval: t_quantile(count - 1) * deviation / (count as f64).sqrt(), count })
    }

    /// The mean of the values of a metric in these runs; `None` if none has one.
    pub fn of_runs(metric: &Metric, runs: &[RunResult]) -> Option<Estimate> {
        let values: Vec<f64> = runs.iter().filter_map(|run| metric.of(run)).collect();
        let own: Vec<f64> = runs.iter().filter_map(|run| own_interval(metric, run)).collect();
        Estimate::of_known(&values, &own)
    }

    /// The mean of values of which the `own` intervals are known, if there are any.
    pub fn of_known(values: &[f64], own: &[f64]) -> Option<Estimate> {
        let estimate = Estimate::of(values)?;
        // What some runs are too short to say, others may. If none can say, they may all be wrong by as much: each of a part of
        // a pass, or too short to have cleaned.
        let known = || own.iter().filter(|interval| interval.is_finite());
        let within = match known().count() {
            0 => own.first().copied().unwrap_or(0.0),
            count => known().map(|interval| interval.powi(2)).sum::<f64>().sqrt() / count as f64,
        };
        Some(Estimate { interval: estimate.interval.max(within), ..estimate })
    }

    /// As text after the mean, which is `shown`: `± 0.02`; empty for a value that is not random.
    pub fn plus_minus(&self, shown: &Shown) -> String {
        match self.interval {
            0.0 => String::new(),
            interval if interval.is_infinite() => "± ?".to_string(),
            interval => format!("± {}", shown.same_way(interval)),
        }
    }

    /// As text: `2.97 ± 0.02`, with its unit.
    pub fn shown(&self, unit: Unit) -> String {
        let shown = unit.shown(self.mean);
        let parts = [shown.number.clone(), self.plus_minus(&shown), shown.unit.to_string()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Half the interval over the mean.
    pub fn within(&self) -> f64 {
        if self.interval == 0.0 { 0.0 } else { self.interval / self.mean.abs() }
    }

    /// True if the intervals share a point: the difference may be chance. An infinite one shares every point.
    pub fn overlaps(&self, other: &Estimate) -> bool {
        (self.mean - other.mean).abs() <= self.interval + other.interval
    }

    /// The ratio of this to the other, its interval by propagation of relative errors. `None` if a mean is 0.
    pub fn over(&self, other: &Estimate) -> Option<Estimate> {
        if self.mean == 0.0 || other.mean == 0.0 {
            return None;
        }
        let mean = self.mean / other.mean;
        let relative = (self.interval / self.mean).hypot(other.interval / other.mean);
        Some(Estimate { mean, interval: mean.abs() * relative, count: self.count.min(other.count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_known_samples() {
        // Mean 3, deviation sqrt(2.5), t(4) = 2.776.
        let five = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((five.mean - 3.0).abs() < 1e-12 && (five.interval - 1.963).abs() < 1e-3, "{five:?}");
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[2.0]), Some(Estimate { mean: 2.0, interval: 0.0, count: 1 }));
        assert_eq!(Estimate::of(&[0.1; 3]).unwrap().interval, 0.0);
        for (freedom, t) in [(30, 2.042), (31, 2.0395), (40, 2.021), (120, 1.980)] {
            assert!((t_quantile(freedom) - t).abs() < 0.001, "{freedom}");
        }
    }

    /// Three runs of the same part of a pass agree, and are all wrong.
    #[test]
    fn runs_of_which_none_can_say_how_exact_it_is_cannot_together() {
        let values = [3.45, 3.46, 3.44];
        let of = |own: [f64; 3]| Estimate::of_known(&values, &own).unwrap().interval;
        assert_eq!(of([f64::INFINITY; 3]), f64::INFINITY);
        assert!((of([0.6, f64::INFINITY, 0.8]) - 0.5).abs() < 1e-12);
        assert!((of([0.0; 3]) - 4.303 * 0.01 / 3_f64.sqrt()).abs() < 1e-4);
    }

    #[test]
    fn overlap_and_ratio() {
        let estimate = |mean, interval| Estimate { mean, interval, count: 5 };
        assert!(estimate(1.0, 0.1).overlaps(&estimate(1.2, 0.1)));
        assert!(!estimate(1.0, 0.1).overlaps(&estimate(1.21, 0.1)));
        let ratio = estimate(3.0, 0.3).over(&estimate(2.0, 0.0)).unwrap();
        assert!((ratio.mean - 1.5).abs() < 1e-12 && (ratio.interval - 0.15).abs() < 1e-12);
        assert_eq!(estimate(1.0, 0.0).over(&estimate(0.0, 0.0)), None);
    }
}
