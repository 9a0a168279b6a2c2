//! The standard normal distribution: the share below a value, and its inverse.

/// The share of the standard normal distribution below `x`, to 1e-7 (Abramowitz and Stegun 7.1.26 is less exact; this is the
/// continued fraction of Numerical Recipes' `erfc`).
pub fn below(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    const TERMS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let polynomial = TERMS.iter().rev().fold(0.0, |sum, term| sum * t + term);
    let tail = 0.5 * t * (-z * z + polynomial).exp();
    if x > 0.0 { 1.0 - tail } else { tail }
}

/// The value that `share` of the distribution lies below: bisection of [`below`], which is monotone.
pub fn quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (x, share) in [(0.0, 0.5), (1.0, 0.841_344_746), (-1.644_853_627, 0.05), (3.0, 0.998_650_102)] {
            assert!((below(x) - share).abs() < 2e-7, "{x}: {}", below(x));
            assert!((quantile(share) - x).abs() < 2e-5, "{share}: {}", quantile(share));
        }
    }
}
