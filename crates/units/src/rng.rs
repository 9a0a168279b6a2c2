//! Reproducible random numbers: xoshiro256++ (fixed by its paper) and our own distributions.
//!
//! A library release must not change results, so the distributions are implemented here, with golden values in the
//! tests. Streams are split by name: the same seed yields independent numbers for "arrivals" and "faults".

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
use serde::{Deserialize, Serialize};

/// A seeded generator of random numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The generator for `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// An independent generator for one purpose of a run, from the run's seed and the name of the purpose.
    pub fn stream(seed: u64, name: &str) -> Rng {
        // FNV-1a: it never changes, and names are few and short.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Rng::new(seed ^ hash)
    }

    /// A generator whose numbers start 2^128 steps further in the sequence of this one, so the two never overlap.
    pub fn apart(&self) -> Rng {
        let mut other = self.clone();
        other.0.jump();
        other
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`, every one equally likely up to a bias below `bound / 2^64`.
    ///
    /// Multiply-shift without the rejection step: at the sizes used here (bound < 2^33) the bias is below
    /// 5e-10 and the step would cost a branch per request.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with `probability`.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponentially distributed with the given mean: the gap between Poisson arrivals.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Normally distributed (Box-Muller, one of the pair).
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        mean + deviation * radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Zipf over `0..n`: rank `k` has probability proportional to `1 / (k + 1)^theta`, `0 < theta`, `theta != 1`
/// handled as the limit.
///
/// Rejection-inversion after Hörmann and Derflinger (ACM TOMACS 6(3), 1996): exact, no tables, so that a
/// volume of a billion pages costs nothing to set up.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    theta: f64,
    h_x1: f64,
    h_n: f64,
    s: f64,
}

impl Zipf {
    /// A Zipf distribution over `0..n` with exponent `theta > 0`. Panics if `n` is 0 or `theta` is not positive.
    pub fn new(n: u64, theta: f64) -> Zipf {
        assert!(n > 0 && theta > 0.0, "Zipf over {n} values with exponent {theta}");
        let mut zipf = Zipf { n: n as f64, theta, h_x1: 0.0, h_n: 0.0, s: 0.0 };
        zipf.h_x1 = zipf.h_integral(1.5) - 1.0;
        zipf.h_n = zipf.h_integral(n as f64 + 0.5);
        zipf.s = 2.0 - zipf.h_integral_inverse(zipf.h_integral(2.5) - zipf.h(2.0));
        zipf
    }

    fn h(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    fn h_integral(&self, x: f64) -> f64 {
        let log_x = x.ln();
        let t = (1.0 - self.theta) * log_x;
        // (e^t - 1) / t, continued through t = 0.
        let ratio = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 * (1.0 + t / 3.0) };
        ratio * log_x
    }

    fn h_integral_inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.theta)).max(-1.0);
        let ratio = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t * (0.5 - t / 3.0) };
        (ratio * x).exp()
    }

    /// One rank, `0` the most likely.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.h_n + rng.unit() * (self.h_x1 - self.h_n);
            let x = self.h_integral_inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.s || u >= self.h_integral(k + 0.5) - self.h(k) {
                return k as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values_of_the_generator() {
        let mut rng = Rng::new(1);
        assert_eq!([rng.bits(), rng.bits()], [14_971_601_782_005_023_387, 13_781_649_495_232_077_965]);
        let mut rng = Rng::stream(1, "faults");
        assert_eq!((0..6).map(|_| rng.below(1000)).collect::<Vec<_>>(), GOLDEN_BELOW);
        let zipf = Zipf::new(1000, 0.99);
        let mut rng = Rng::new(7);
        assert_eq!((0..8).map(|_| zipf.sample(&mut rng)).collect::<Vec<_>>(), GOLDEN_ZIPF);
    }
    const GOLDEN_BELOW: [u64; 6] = [430, 804, 109, 629, 23, 688];
    const GOLDEN_ZIPF: [u64; 8] = [669, 285, 4, 42, 0, 32, 4, 89];

    #[test]
    fn zipf_matches_its_definition() {
        for theta in [0.5, 0.99, 1.0, 1.5] {
            let (n, draws) = (50, 400_000);
            let zipf = Zipf::new(n, theta);
            let mut rng = Rng::new(3);
            let mut counts = vec![0u32; n as usize];
            for _ in 0..draws {
                counts[zipf.sample(&mut rng) as usize] += 1;
            }
            let norm: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
            for (k, &count) in counts.iter().enumerate() {
                let expected = draws as f64 * ((k + 1) as f64).powf(-theta) / norm;
                let deviation = (count as f64 - expected) / expected.sqrt();
                assert!(
                    deviation.abs() < 5.0,
                    "theta {theta} rank {k}: {count} drawn, {expected:.0} expected"
                );
            }
        }
    }

    #[test]
    fn moments_of_the_continuous_ones() {
        let mut rng = Rng::new(5);
        let n = 200_000;
        let mean = (0..n).map(|_| rng.exponential(3.0)).sum::<f64>() / n as f64;
        assert!((mean - 3.0).abs() < 0.03, "{mean}");
        let draws: Vec<f64> = (0..n).map(|_| rng.normal(10.0, 2.0)).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        assert!((mean - 10.0).abs() < 0.03 && (variance - 4.0).abs() < 0.06, "{mean} {variance}");
    }
}
