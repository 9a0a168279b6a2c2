//! A Gaussian process: from values at some points, what to expect at others and how surely (Rasmussen and Williams 2006,
//! algorithm 2.1). The kernel is Matérn 5/2 with one length for each coordinate; lengths and noise are those of the greatest
//! likelihood, found by coordinate steps. For some hundreds of points.

/// What is expected at a point, and its standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// The value.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

/// A process that knows values at points.
#[derive(Clone, Debug)]
pub struct Process {
    points: Vec<Vec<f64>>,
    lengths: Vec<f64>,
    /// Mean and standard deviation of the values.
    scale: (f64, f64),
    /// The lower triangle of Cholesky.
    factor: Vec<Vec<f64>>,
    weights: Vec<f64>,
}

/// Lengths that are tried, in units of the range of a coordinate.
const LENGTHS: [f64; 6] = [0.15, 0.3, 0.6, 1.2, 2.5, 6.0];
/// Variance of the noise that is allowed for, as a share of that of the values.
const NOISE: f64 = 1e-4;

impl Process {
    /// Learns from values at points, whose coordinates are from 0 to 1. There must be at least one.
    pub fn learn(points: &[Vec<f64>], values: &[f64]) -> Process {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let spread = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt().max(1e-12);
        let scaled: Vec<f64> = values.iter().map(|v| (v - mean) / spread).collect();
        let dimensions = points[0].len();
        let mut lengths = vec![0.6; dimensions];
        let mut best = f64::NEG_INFINITY;
        for _ in 0..3 {
            let before = best;
            for axis in 0..dimensions {
                for length in LENGTHS {
                    let tried = {
                        let mut tried = lengths.clone();
                        tried[axis] = length;
                        tried
                    };
                    let Some((factor, weights)) = solved(points, &scaled, &tried) else { continue };
                    let evidence = evidence(&factor, &weights, &scaled);
                    if evidence > best + 1e-9 {
                        (best, lengths) = (evidence, tried);
                    }
                }
            }
            if best <= before + 1e-9 {
                break;
            }
        }
        let (factor, weights) =
            solved(points, &scaled, &lengths).expect("the noise makes the matrix positive definite");
        Process { points: points.to_vec(), lengths, scale: (mean, spread), factor, weights }
    }

    /// What is expected at a point.
    pub fn at(&self, point: &[f64]) -> Expected {
        let near: Vec<f64> = self.points.iter().map(|known| kernel(known, point, &self.lengths)).collect();
        let mean: f64 = near.iter().zip(&self.weights).map(|(k, w)| k * w).sum();
        let solved = forward(&self.factor, &near);
        let variance = (1.0 + NOISE - solved.iter().map(|v| v * v).sum::<f64>()).max(1e-12);
        let (center, spread) = self.scale;
        Expected { mean: center + spread * mean, deviation: spread * variance.sqrt() }
    }
}

fn kernel(a: &[f64], b: &[f64], lengths: &[f64]) -> f64 {
    let square: f64 = a.iter().zip(b).zip(lengths).map(|((a, b), l)| ((a - b) / l).powi(2)).sum();
    let r = (5.0 * square).sqrt();
    (1.0 + r + r * r / 3.0) * (-r).exp()
}

/// The factor of the matrix of all points, and the weights of the values.
fn solved(points: &[Vec<f64>], values: &[f64], lengths: &[f64]) -> Option<(Vec<Vec<f64>>, Vec<f64>)> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(points.len());
    for point in points {
        let mut row: Vec<f64> = Vec::with_capacity(factor.len() + 1);
        for (other, above) in points.iter().zip(&factor) {
            let sum: f64 = row.iter().zip(above).map(|(a, b)| a * b).sum();
            row.push((kernel(point, other, lengths) - sum) / above[row.len()]);
        }
        let rest = 1.0 + NOISE - row.iter().map(|v| v * v).sum::<f64>();
        if rest <= 0.0 {
            return None;
        }
        row.push(rest.sqrt());
        factor.push(row);
    }
    let n = factor.len();
    let mut weights = forward(&factor, values);
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| factor[k][i] * weights[k]).sum();
        weights[i] = (weights[i] - sum) / factor[i][i];
    }
    Some((factor, weights))
}

/// Solves the lower triangle.
fn forward(factor: &[Vec<f64>], values: &[f64]) -> Vec<f64> {
    let mut solved: Vec<f64> = Vec::with_capacity(values.len());
    for (row, value) in factor.iter().zip(values) {
        let sum: f64 = row.iter().zip(&solved).map(|(a, b)| a * b).sum();
        solved.push((value - sum) / row[solved.len()]);
    }
    solved
}

/// The logarithm of the likelihood of the values, up to a constant.
fn evidence(factor: &[Vec<f64>], weights: &[f64], values: &[f64]) -> f64 {
    let fit: f64 = weights.iter().zip(values).map(|(w, v)| w * v).sum();
    let volume: f64 = factor.iter().enumerate().map(|(i, row)| row[i].ln()).sum();
    -0.5 * fit - volume
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_function_is_learned_and_what_is_far_is_unsure() {
        let f = |x: f64, y: f64| (3.0 * x).sin() + 0.2 * y;
        let points: Vec<Vec<f64>> =
            (0..36).map(|i| vec![(i % 6) as f64 / 5.0, (i / 6) as f64 / 5.0]).collect();
        let values: Vec<f64> = points.iter().map(|p| f(p[0], p[1])).collect();
        let process = Process::learn(&points, &values);
        for (x, y) in [(0.13, 0.4), (0.5, 0.9), (0.77, 0.05)] {
            let expected = process.at(&[x, y]);
            assert!((expected.mean - f(x, y)).abs() < 0.02, "{x} {y}: {expected:?}");
        }
        let (near, far) = (process.at(&[0.2, 0.2]), process.at(&[4.0, 4.0]));
        assert!(near.deviation < 0.05 && far.deviation > 0.3, "{near:?} {far:?}");
    }

    #[test]
    fn one_point_is_enough_to_begin() {
        let process = Process::learn(&[vec![0.5]], &[2.0]);
        assert!((process.at(&[0.5]).mean - 2.0).abs() < 1e-6);
    }
}
