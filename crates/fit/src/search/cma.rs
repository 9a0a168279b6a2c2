//! CMA-ES, as in Hansen, "The CMA evolution strategy: a tutorial" (arXiv 1604.00772, 2016): (mu/mu_w, lambda) with rank-one and
//! rank-mu updates and cumulative step-size adaptation. For some tens of dimensions.
//!
//! Why not a crate: docs/decisions/0008-fit.md.

use nvlab_units::Rng;

/// The axes are found anew after a generation for each so many dimensions.
const AXES_EVERY: u32 = 8;

/// A search under way: [`Search::ask`] for a generation, evaluate it anywhere and in any order, [`Search::tell`] its costs.
#[derive(Clone, Debug)]
pub struct Search {
    mean: Vec<f64>,
    step: f64,
    /// Row by row.
    covariance: Vec<Vec<f64>>,
    /// Columns are the principal axes; with the lengths along them.
    axes: (Vec<Vec<f64>>, Vec<f64>),
    path_step: Vec<f64>,
    path_covariance: Vec<f64>,
    generation: u32,
    rng: Rng,
    rates: Rates,
    best: Option<(Vec<f64>, f64)>,
}

/// The constants of a dimension.
#[derive(Clone, Debug)]
struct Rates {
    count: usize,
    weights: Vec<f64>,
    effective: f64,
    step: f64,
    damping: f64,
    covariance: f64,
    one: f64,
    mu: f64,
    /// Expected length of a normal vector.
    chi: f64,
}

impl Rates {
    fn of(dimensions: usize) -> Rates {
        let n = dimensions as f64;
        let count = 4 + (3.0 * n.ln()).floor() as usize;
        let parents = count / 2;
        let raw: Vec<f64> =
            (0..parents).map(|i| ((count as f64 + 1.0) / 2.0).ln() - (i as f64 + 1.0).ln()).collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / sum).collect();
        let effective = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
        let step = (effective + 2.0) / (n + effective + 5.0);
        let one = 2.0 / ((n + 1.3).powi(2) + effective);
        let mu = (1.0 - one).min(2.0 * (effective - 2.0 + 1.0 / effective) / ((n + 2.0).powi(2) + effective));
        Rates {
            count,
            effective,
            step,
            damping: 1.0 + 2.0 * (((effective - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0) + step,
            covariance: (4.0 + effective / n) / (n + 4.0 + 2.0 * effective / n),
            one,
            mu,
            chi: n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n)),
            weights,
        }
    }
}

impl Search {
    /// A search that begins around `mean`, with steps of about `step` in each direction.
    pub fn new(mean: Vec<f64>, step: f64, seed: u64) -> Search {
        let n = mean.len();
        let unit = |i: usize| (0..n).map(|j| f64::from(i == j)).collect();
        let identity: Vec<Vec<f64>> = (0..n).map(unit).collect();
        Search {
            step,
            axes: (identity.clone(), vec![1.0; n]),
            covariance: identity,
            path_step: vec![0.0; n],
            path_covariance: vec![0.0; n],
            generation: 0,
            rng: Rng::stream(seed, "cma"),
            rates: Rates::of(n),
            mean,
            best: None,
        }
    }

    /// The points of the next generation.
    pub fn ask(&mut self) -> Vec<Vec<f64>> {
        let (axes, lengths) = &self.axes;
        let rng = &mut self.rng;
        let (mean, step) = (&self.mean, self.step);
        let point = |_| {
            let drawn: Vec<f64> = lengths.iter().map(|length| length * rng.normal(0.0, 1.0)).collect();
            let along = |row: &Vec<f64>| row.iter().zip(&drawn).map(|(a, d)| a * d).sum::<f64>();
            mean.iter().zip(axes).map(|(at, row)| at + step * along(row)).collect()
        };
        (0..self.rates.count).map(point).collect()
    }

    /// What the points of [`Search::ask`] cost, in their order; infinite for those that are not feasible.
    pub fn tell(&mut self, points: &[Vec<f64>], costs: &[f64]) {
        let mut order: Vec<usize> = (0..points.len()).collect();
        // Equal costs keep their order, so that the search is the same everywhere.
        order.sort_by(|&a, &b| costs[a].total_cmp(&costs[b]));
        let (first, cost) = (order[0], costs[order[0]]);
        if self.best.as_ref().is_none_or(|(_, best)| cost < *best) {
            self.best = Some((points[first].clone(), cost));
        }
        let rates = self.rates.clone();
        let old = std::mem::take(&mut self.mean);
        let chosen: Vec<&Vec<f64>> = order.iter().take(rates.weights.len()).map(|&at| &points[at]).collect();
        let weighed = |i: usize| chosen.iter().zip(&rates.weights).map(|(point, w)| w * point[i]).sum();
        self.mean = (0..old.len()).map(weighed).collect();
        let moved: Vec<f64> = self.mean.iter().zip(&old).map(|(new, old)| (new - old) / self.step).collect();
        self.generation += 1;
        let is_stalled = self.adapt_paths(&moved);
        self.adapt_covariance(&chosen, &old, is_stalled);
        let length = norm(&self.path_step);
        let change = (rates.step / rates.damping * (length / rates.chi - 1.0)).clamp(-1.0, 1.0);
        self.step *= change.exp();
        // The axes hardly turn from one generation to the next.
        if self.generation.is_multiple_of(1 + old.len() as u32 / AXES_EVERY) {
            self.axes = principal(&self.covariance);
        }
    }

    /// Both evolution paths; true if the one of the covariance waits because the step length is growing.
    fn adapt_paths(&mut self, moved: &[f64]) -> bool {
        let (rates, n) = (&self.rates, moved.len());
        let (axes, lengths) = &self.axes;
        // C^-1/2 times the move.
        let along: Vec<f64> =
            (0..n).map(|j| (0..n).map(|i| axes[i][j] * moved[i]).sum::<f64>() / lengths[j]).collect();
        let whitened = |i: usize| (0..n).map(|j| axes[i][j] * along[j]).sum::<f64>();
        let gain = (rates.step * (2.0 - rates.step) * rates.effective).sqrt();
        for (i, path) in self.path_step.iter_mut().enumerate() {
            *path = (1.0 - rates.step) * *path + gain * whitened(i);
        }
        let faded = (1.0 - (1.0 - rates.step).powi(2 * self.generation as i32)).sqrt();
        let is_stalled = norm(&self.path_step) / faded >= (1.4 + 2.0 / (n as f64 + 1.0)) * rates.chi;
        let gain = match is_stalled {
            true => 0.0,
            false => (rates.covariance * (2.0 - rates.covariance) * rates.effective).sqrt(),
        };
        for (path, moved) in self.path_covariance.iter_mut().zip(moved) {
            *path = (1.0 - rates.covariance) * *path + gain * moved;
        }
        is_stalled
    }

    fn adapt_covariance(&mut self, chosen: &[&Vec<f64>], old: &[f64], is_stalled: bool) {
        let (rates, path, length) = (&self.rates, &self.path_covariance, self.step);
        let held = if is_stalled { rates.one * rates.covariance * (2.0 - rates.covariance) } else { 0.0 };
        let kept = 1.0 - rates.one - rates.mu + held;
        let step = |point: &&Vec<f64>| point.iter().zip(old).map(|(new, old)| (new - old) / length).collect();
        let steps: Vec<Vec<f64>> = chosen.iter().map(step).collect();
        for (i, row) in self.covariance.iter_mut().enumerate() {
            for (j, value) in row.iter_mut().enumerate() {
                let mu: f64 = steps.iter().zip(&rates.weights).map(|(step, w)| w * step[i] * step[j]).sum();
                *value = kept * *value + rates.one * path[i] * path[j] + rates.mu * mu;
            }
        }
    }

    /// The best point so far and its cost.
    pub fn best(&self) -> Option<(&[f64], f64)> {
        self.best.as_ref().map(|(at, cost)| (at.as_slice(), *cost))
    }

    /// The length of a step along the longest axis: small when the search has found its point.
    pub fn reach(&self) -> f64 {
        self.step * self.axes.1.iter().copied().fold(0.0, f64::max)
    }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Principal axes, as columns, and the lengths along them, of a symmetric matrix: Jacobi's rotations.
fn principal(matrix: &[Vec<f64>]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let n = matrix.len();
    let mut a = matrix.to_vec();
    let mut axes: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(i == j)).collect()).collect();
    for _ in 0..30 {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j].powi(2)).sum();
        if off < 1e-22 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut axes, p, q);
            }
        }
    }
    let lengths = (0..n).map(|i| a[i][i].max(1e-20).sqrt()).collect();
    (axes, lengths)
}

/// Makes the element `p`, `q` zero.
fn rotate(a: &mut [Vec<f64>], axes: &mut [Vec<f64>], p: usize, q: usize) {
    if a[p][q].abs() < 1e-300 {
        return;
    }
    let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let t = if theta == 0.0 { 1.0 } else { t };
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for row in a.iter_mut().chain(axes.iter_mut()) {
        let (x, y) = (row[p], row[q]);
        (row[p], row[q]) = (c * x - s * y, s * x + c * y);
    }
    let [p, q] = a.get_disjoint_mut([p, q]).expect("two rows");
    for (x, y) in p.iter_mut().zip(q) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(dimensions: usize, generations: usize, cost: impl Fn(&[f64]) -> f64) -> f64 {
        let mut search = Search::new(vec![0.7; dimensions], 0.5, 3);
        for _ in 0..generations {
            let points = search.ask();
            let costs: Vec<f64> = points.iter().map(|point| cost(point)).collect();
            search.tell(&points, &costs);
        }
        search.best().unwrap().1
    }

    #[test]
    fn standard_functions() {
        let sphere = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        assert!(searched(10, 250, sphere) < 1e-9);
        let ellipsoid =
            |x: &[f64]| x.iter().enumerate().map(|(i, x)| 1e6f64.powf(i as f64 / 9.0) * x * x).sum::<f64>();
        assert!(searched(10, 600, ellipsoid) < 1e-9);
        let rosenbrock = |x: &[f64]| {
            x.windows(2).map(|w| 100.0 * (w[1] - w[0] * w[0]).powi(2) + (1.0 - w[0]).powi(2)).sum::<f64>()
        };
        assert!(searched(8, 900, rosenbrock) < 1e-9);
    }

    #[test]
    fn points_that_are_not_feasible_are_left_behind() {
        let cost = |x: &[f64]| if x[0] < 1.0 { f64::INFINITY } else { x.iter().map(|x| x * x).sum() };
        let found = searched(5, 300, cost);
        assert!((found - 1.0).abs() < 1e-3, "{found}");
    }

    #[test]
    fn the_same_seed_asks_the_same() {
        let ask = || Search::new(vec![0.0; 4], 1.0, 9).ask();
        assert_eq!(ask(), ask());
    }
}
