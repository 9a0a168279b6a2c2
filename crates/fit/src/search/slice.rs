//! Elliptical slice sampling (Murray, Adams and MacKay, AISTATS 2010): points in proportion to prior times likelihood, for a
//! standard normal prior. It has no step length to choose, and the likelihood may jump, as it does where a count of dies changes.

use nvlab_units::Rng;
use std::f64::consts::TAU;

/// A point and the logarithm of its likelihood.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    /// The point.
    pub at: Vec<f64>,
    /// The logarithm of its likelihood.
    pub log: f64,
}

/// The next point of a chain.
pub fn next(from: &Weighed, log: impl Fn(&[f64]) -> f64, rng: &mut Rng) -> Weighed {
    let other: Vec<f64> = from.at.iter().map(|_| rng.normal(0.0, 1.0)).collect();
    let level = from.log - rng.exponential(1.0);
    let mut angle = TAU * rng.unit();
    let (mut low, mut high) = (angle - TAU, angle);
    loop {
        let (sin, cos) = angle.sin_cos();
        let at: Vec<f64> = from.at.iter().zip(&other).map(|(a, b)| a * cos + b * sin).collect();
        let found = log(&at);
        // The ellipse passes through `from`, which is above the level: the bracket shrinks to it.
        if found >= level || high - low < 1e-9 {
            return if found >= level { Weighed { at, log: found } } else { from.clone() };
        }
        if angle < 0.0 {
            low = angle
        } else {
            high = angle
        }
        angle = low + (high - low) * rng.unit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prior N(0, 1), one observation of 1 with deviation 1: the posterior is N(1/2, 1/2).
    #[test]
    fn a_normal_observation_gives_the_normal_posterior() {
        let log = |at: &[f64]| -0.5 * (at[0] - 1.0).powi(2);
        let mut rng = Rng::new(7);
        let mut point = Weighed { at: vec![0.0, 0.0], log: log(&[0.0]) };
        let (mut sum, mut squares, mut free) = (0.0, 0.0, 0.0);
        let count = 40_000;
        for _ in 0..count {
            point = next(&point, log, &mut rng);
            sum += point.at[0];
            squares += point.at[0] * point.at[0];
            free += point.at[1] * point.at[1];
        }
        let mean = sum / count as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!((squares / count as f64 - mean * mean - 0.5).abs() < 0.03);
        assert!((free / count as f64 - 1.0).abs() < 0.05, "what nothing depends on keeps its prior");
    }
}
