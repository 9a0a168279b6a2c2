//! How often a read must be repeated because of bit errors.

use super::config::BitErrors;
use serde::{Deserialize, Serialize};

/// Steps of wear between a new block and one at its rated life; probabilities are computed once for each.
const STEPS: f64 = 256.0;
/// Wear beyond this many times the rated life counts as this much.
const WEAR_MAX: f64 = 8.0;

/// The probabilities that a codeword can be corrected, by wear and attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Retries {
    errors: BitErrors,
    /// Attempt `a` at step `s` of wear at `s * (retries + 1) + a`; negative: not computed yet.
    good: Vec<f64>,
}

impl Retries {
    pub fn new(errors: BitErrors) -> Retries {
        let attempts = errors.retries as usize + 1;
        Retries { errors, good: vec![-1.0; ((WEAR_MAX * STEPS) as usize + 1) * attempts] }
    }

    /// Maximum number of retries of a read.
    pub fn most(&self) -> u32 {
        self.errors.retries
    }

    /// Number of codewords for this many bytes.
    pub fn codewords(&self, bytes: u32) -> u32 {
        (bytes * 8).div_ceil(self.errors.codeword_bits)
    }

    /// Draws how often a read of `codewords` codewords is repeated; `None`: even the last retry fails. `wear` is the
    /// block's erases over its rated cycles; `draw` returns numbers from 0 to 1.
    #[inline]
    pub fn draw(&mut self, wear: f64, codewords: u32, mut draw: impl FnMut() -> f64) -> Option<u32> {
        let step = (wear.min(WEAR_MAX) * STEPS).round() as usize;
        let first = step * (self.errors.retries as usize + 1);
        for attempt in 0..=self.errors.retries {
            if self.good[first + attempt as usize] < 0.0 {
                self.compute(step, first);
            }
            let good = self.good[first + attempt as usize].powi(codewords as i32);
            if good == 1.0 || draw() < good {
                return Some(attempt);
            }
        }
        None
    }

    #[cold]
    fn compute(&mut self, step: usize, first: usize) {
        let errors = &self.errors;
        let growth = (errors.rate_worn / errors.rate_fresh).ln() * step as f64 / STEPS;
        let mut rate = errors.rate_fresh * growth.exp();
        for good in &mut self.good[first..=first + errors.retries as usize] {
            *good = poisson_at_most(errors.correctable, rate * errors.codeword_bits as f64);
            rate *= errors.retry_factor;
        }
    }
}

/// Probability that a Poisson variable of the given mean is at most `k`.
fn poisson_at_most(k: u32, mean: f64) -> f64 {
    if mean <= 0.0 {
        return 1.0;
    }
    // Each term is computed from its logarithm, so that nothing underflows at large means.
    let ln_mean = mean.ln();
    let mut ln_factorial = 0.0;
    let mut sum = 0.0;
    for i in 0..=k {
        if i > 1 {
            ln_factorial += (i as f64).ln();
        }
        sum += (i as f64 * ln_mean - mean - ln_factorial).exp();
    }
    f64::min(sum, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_tail_matches_known_values() {
        assert!((poisson_at_most(0, 1.0) - 0.367_879_441).abs() < 1e-9);
        assert!((poisson_at_most(5, 2.5) - 0.957_978_963).abs() < 1e-6);
        assert!((poisson_at_most(72, 72.0) - 0.531_276).abs() < 1e-3);
        assert!(poisson_at_most(72, 1000.0) < 1e-200);
    }

    /// 160 correctable bits of 36,864: against the Poisson tail, worn to the rated life and beyond.
    #[test]
    fn retries_are_drawn_with_the_probability_of_the_wear() {
        let errors = BitErrors {
            rate_fresh: 1e-4,
            rate_worn: 4.5e-3,
            codeword_bits: 36_864,
            correctable: 160,
            retries: 3,
            retry_factor: 0.5,
        };
        let mut retries = Retries::new(errors);
        assert_eq!(retries.codewords(16 * 1024), 4);
        let mut rng = nvlab_units::Rng::new(5);
        let mut share_repeated = |wear: f64| {
            let draws = 20_000;
            let repeated = (0..draws).filter(|_| retries.draw(wear, 4, || rng.unit()) != Some(0)).count();
            repeated as f64 / draws as f64
        };
        assert_eq!(share_repeated(0.0), 0.0);
        let expected = 1.0 - poisson_at_most(160, 4.5e-3 * 36_864.0).powi(4);
        let found = share_repeated(1.0);
        assert!((0.8..1.0).contains(&expected) && (found - expected).abs() < 0.01, "{found}, {expected}");
        assert_eq!(share_repeated(2.0), 1.0);
    }
}
