//! The search for the best of many points, each of which costs a run: Bayesian optimisation over a finite space.
//!
//! A point has values: costs to make small, and margins of what is required, at most 0 if it is met. Some are known beforehand (a
//! price), and so is that a point cannot be. A Gaussian process for each other value says what to expect elsewhere; next is run
//! what promises most: the expected improvement (Jones, Schonlau and Welch 1998) times the probability that all is met
//! (Schonlau 1998). Several costs: each pick weighs them anew (ParEGO, Knowles 2006), so that the front is covered.

use crate::fit::Ended;
use crate::search::normal;
use crate::search::process::{Expected, Process};
use nvlab_units::Rng;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The axes of a space.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Values.
    pub count: usize,
    /// They have an order.
    pub is_ordered: bool,
}

/// A point: the number of a value on each axis.
pub type Point = Vec<usize>;

/// What is searched.
pub trait Space: Sync {
    /// The axes.
    fn axes(&self) -> &[Axis];
    /// Of how many values the first are costs.
    fn costs(&self) -> usize;
    /// Values in all: costs, then margins.
    fn values(&self) -> usize;
    /// The point that it is the same as, with what of its values is known without a run; `None`: it cannot be.
    fn known(&self, point: &Point) -> Option<(Point, Vec<Option<f64>>)>;
    /// Runs points. `None`: it has no result.
    fn run(&mut self, points: &[Point]) -> Result<Vec<Option<Vec<f64>>>, Ended>;
}

/// The point that another is the same as, with what of its values is known; `None`: it cannot be.
type Known = Option<(Point, Vec<Option<f64>>)>;

/// Points of a batch: a number that does not depend on the cores, since the next batch depends on all of it.
const BATCH: usize = 4;
/// Points that are weighed for a pick at most.
const POOL: usize = 4096;
/// The search ends when the best pick promises less than this share of the best cost.
const PROMISE: f64 = 5e-4;
/// How far the values of an axis without order are apart.
const APART: f64 = 0.8;

/// What was run.
#[derive(Clone, Debug)]
pub struct Found {
    /// The point.
    pub point: Point,
    /// Its values.
    pub values: Vec<f64>,
}

/// A search.
pub struct Hunt<'a, S: Space> {
    space: &'a mut S,
    /// All points that were run, in order.
    pub found: Vec<Found>,
    failed: BTreeSet<Point>,
    known: BTreeMap<Point, Known>,
    rng: Rng,
    /// Margins that are not looked at.
    waived: Option<usize>,
}

impl<'a, S: Space> Hunt<'a, S> {
    /// A search that has run nothing yet.
    pub fn new(space: &'a mut S, seed: u64) -> Hunt<'a, S> {
        let rng = Rng::stream(seed, "choose");
        Hunt { space, found: Vec::new(), failed: BTreeSet::new(), known: BTreeMap::new(), rng, waived: None }
    }

    /// Runs up to `runs` points in all.
    pub fn go(&mut self, runs: usize) -> Result<(), Ended> {
        let first = (2 * self.space.axes().len() + 4).min(runs);
        if self.found.is_empty() {
            let points = self.spread(first);
            self.run(points)?;
        }
        while self.found.len() + self.failed.len() < runs {
            let left = runs - self.found.len() - self.failed.len();
            let picks = self.picks(left.min(BATCH));
            if picks.is_empty() {
                break;
            }
            self.run(picks)?;
        }
        Ok(())
    }

    /// Goes on without one of the requirements, for `runs` more; returns the cheapest point that meets the others.
    pub fn waiving(&mut self, margin: usize, runs: usize) -> Result<Option<usize>, Ended> {
        self.waived = Some(margin);
        let asked = self.found.len() + self.failed.len() + runs;
        let went = self.go(asked);
        let best = self.best().first().copied();
        self.waived = None;
        went.map(|()| best)
    }

    fn run(&mut self, points: Vec<Point>) -> Result<(), Ended> {
        let ran = self.space.run(&points)?;
        for (point, values) in points.into_iter().zip(ran) {
            match values {
                Some(values) => self.found.push(Found { point, values }),
                None => drop(self.failed.insert(point)),
            }
        }
        Ok(())
    }

    /// Points that cover every axis evenly: a Latin hypercube, as far as the points can be.
    fn spread(&mut self, count: usize) -> Vec<Point> {
        let axes = self.space.axes().to_vec();
        let mut points = Vec::new();
        for _ in 0..8 {
            let mut columns = Vec::new();
            for axis in &axes {
                let mut column: Vec<usize> = (0..count).map(|number| number * axis.count / count).collect();
                for at in (1..count).rev() {
                    column.swap(at, self.rng.below(at as u64 + 1) as usize);
                }
                columns.push(column);
            }
            for number in 0..count {
                let point: Point = columns.iter().map(|column| column[number]).collect();
                if let Some((point, _)) = self.look(&point)
                    && !points.contains(&point)
                    && points.len() < count
                {
                    points.push(point);
                }
            }
            if points.len() == count {
                break;
            }
        }
        points
    }

    /// What is known of a point without a run.
    fn look(&mut self, point: &Point) -> Known {
        let space = &*self.space;
        self.known.entry(point.clone()).or_insert_with(|| space.known(point)).clone()
    }

    fn is_done(&self, point: &Point) -> bool {
        self.failed.contains(point) || self.found.iter().any(|found| found.point == *point)
    }

    /// The points that are weighed: all, or some at random and the neighbours of the best.
    fn pool(&mut self) -> Vec<(Point, Vec<Option<f64>>)> {
        let axes = self.space.axes().to_vec();
        let total = axes.iter().fold(1u64, |total, axis| total.saturating_mul(axis.count as u64));
        let mut points: BTreeSet<Point> = BTreeSet::new();
        let decoded = |mut number: u64| -> Point {
            let place = |axis: &Axis| {
                let at = (number % axis.count as u64) as usize;
                number /= axis.count as u64;
                at
            };
            axes.iter().map(place).collect()
        };
        match total <= POOL as u64 {
            true => points.extend((0..total).map(decoded)),
            false => points.extend((0..POOL).map(|_| decoded(self.rng.below(total)))),
        }
        let best: Vec<Point> =
            self.best().into_iter().take(4).map(|at| self.found[at].point.clone()).collect();
        for point in best {
            for (at, axis) in axes.iter().enumerate() {
                let near = match axis.is_ordered {
                    true => point[at].saturating_sub(2)..(point[at] + 3).min(axis.count),
                    false => 0..axis.count,
                };
                points.extend(near.map(|value| {
                    let mut other = point.clone();
                    other[at] = value;
                    other
                }));
            }
        }
        let unknown: Vec<Point> =
            points.iter().filter(|point| !self.known.contains_key(*point)).cloned().collect();
        let space = &*self.space;
        let looked: Vec<_> = unknown.par_iter().map(|point| space.known(point)).collect();
        self.known.extend(unknown.into_iter().zip(looked));
        let same: BTreeMap<Point, Vec<Option<f64>>> =
            points.iter().filter_map(|point| self.known[point].clone()).collect();
        same.into_iter().filter(|(point, _)| !self.is_done(point)).collect()
    }

    /// The points that were run and meet all that is looked at, the cheapest first.
    pub fn best(&self) -> Vec<usize> {
        let mut all: Vec<usize> =
            (0..self.found.len()).filter(|at| self.meets(&self.found[*at].values)).collect();
        all.sort_by(|a, b| self.found[*a].values[0].total_cmp(&self.found[*b].values[0]));
        all
    }

    /// True if all margins that are looked at are met.
    pub fn meets(&self, values: &[f64]) -> bool {
        let costs = self.space.costs();
        values[costs..].iter().enumerate().all(|(margin, value)| Some(margin) == self.waived || *value <= 0.0)
    }

    /// The next points.
    fn picks(&mut self, count: usize) -> Vec<Point> {
        let pool = self.pool();
        let axes = self.space.axes().to_vec();
        if self.found.is_empty() || pool.is_empty() {
            return pool.into_iter().take(count).map(|(point, _)| point).collect();
        }
        let points: Vec<Vec<f64>> = self.found.iter().map(|found| placed(&axes, &found.point)).collect();
        let learn = |value: usize| {
            let is_known = pool.iter().all(|(_, known)| known[value].is_some());
            let values: Vec<f64> =
                self.found.iter().map(|found| found.values[value].clamp(-40.0, 40.0)).collect();
            (!is_known).then(|| Process::learn(&points, &values))
        };
        let processes: Vec<Option<Process>> = (0..self.space.values()).into_par_iter().map(learn).collect();
        let expect = |(point, known): &(Point, Vec<Option<f64>>)| -> Vec<Expected> {
            let place = placed(&axes, point);
            let one = |(process, known): (&Option<Process>, &Option<f64>)| match (known, process) {
                (Some(value), _) => Expected { mean: *value, deviation: 0.0 },
                (None, Some(process)) => process.at(&place),
                (None, None) => Expected { mean: 0.0, deviation: 1.0 },
            };
            processes.iter().zip(known).map(one).collect()
        };
        let expected: Vec<Vec<Expected>> = pool.par_iter().map(expect).collect();
        let mut picks: Vec<Point> = Vec::new();
        for _ in 0..count {
            let weights = self.weights();
            let bar = Bar::of(self, weights);
            let promise = |at: usize| (at, self.promise(&expected[at], &bar));
            let apart = |at: &usize| {
                picks.iter().all(|pick| distance(&placed(&axes, pick), &placed(&axes, &pool[*at].0)) > 0.12)
            };
            let weighed: Vec<(usize, f64)> = (0..pool.len()).filter(apart).map(promise).collect();
            let Some((at, promise)) =
                weighed.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
            else {
                break;
            };
            if promise < PROMISE && self.space.costs() == 1 && !self.best().is_empty() {
                break;
            }
            picks.push(pool[at].0.clone());
        }
        picks
    }

    /// The weights of the costs, for one pick.
    fn weights(&mut self) -> Vec<f64> {
        match self.space.costs() {
            1 => vec![1.0],
            costs => {
                let drawn: Vec<f64> = (0..costs).map(|_| self.rng.exponential(1.0)).collect();
                let sum: f64 = drawn.iter().sum();
                drawn.iter().map(|weight| weight / sum).collect()
            }
        }
    }

    /// What a point promises: the improvement that is expected, times the probability that it meets all.
    fn promise(&self, expected: &[Expected], bar: &Bar) -> f64 {
        let costs = bar.weights.len();
        let met = |(margin, expected): (usize, &Expected)| match (
            Some(margin) == self.waived,
            expected.deviation,
        ) {
            (true, _) => 1.0,
            (_, 0.0) => f64::from(expected.mean <= 0.0),
            (_, deviation) => normal::below(-expected.mean / deviation),
        };
        let meets: f64 = expected[costs..].iter().enumerate().map(met).product();
        let Some(least) = bar.least else {
            // Nothing meets all yet: look for what does, the cheaper the better.
            return meets + 1e-4 * normal::below(-expected[0].mean);
        };
        let mean = bar.weighed(|cost| expected[cost].mean);
        let deviation = (0..costs)
            .map(|cost| (bar.weights[cost] * expected[cost].deviation / bar.scale(cost)).powi(2))
            .sum::<f64>()
            .sqrt();
        meets * improvement(least - mean, deviation)
    }
}

/// What a pick must improve on: the best that was found, with the costs weighed as for this pick.
struct Bar {
    weights: Vec<f64>,
    /// Of several costs, the least and the greatest of each among the points that meet all.
    ranges: Vec<(f64, f64)>,
    /// The least of what those points cost; `None`: there is none.
    least: Option<f64>,
}

impl Bar {
    fn of<S: Space>(hunt: &Hunt<'_, S>, weights: Vec<f64>) -> Bar {
        let best = hunt.best();
        let of = |at: usize, cost: usize| hunt.found[at].values[cost];
        let widened = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let range = |cost: usize| {
            best.iter().map(|&at| of(at, cost)).fold((f64::INFINITY, f64::NEG_INFINITY), widened)
        };
        let ranges = (0..weights.len()).map(range).collect();
        let mut bar = Bar { weights, ranges, least: None };
        bar.least = best.iter().map(|&at| bar.weighed(|cost| of(at, cost))).reduce(f64::min);
        bar
    }

    /// How far the values of a cost are apart; 1 if there is only one cost.
    fn scale(&self, cost: usize) -> f64 {
        let (low, high) = self.ranges[cost];
        if self.weights.len() == 1 { 1.0 } else { (high - low).max(1e-9) }
    }

    /// Costs as one.
    fn weighed(&self, values: impl Fn(usize) -> f64) -> f64 {
        if self.weights.len() == 1 {
            return self.weights[0] * values(0);
        }
        let scaled = |cost: usize| (values(cost) - self.ranges[cost].0) / self.scale(cost);
        let parts = (0..self.weights.len()).map(|cost| self.weights[cost] * scaled(cost));
        parts.clone().fold(f64::NEG_INFINITY, f64::max) + 0.05 * parts.sum::<f64>()
    }
}

/// The expected improvement of a normal variable that is better by `gain` on average.
fn improvement(gain: f64, deviation: f64) -> f64 {
    if deviation < 1e-12 {
        return gain.max(0.0);
    }
    let z = gain / deviation;
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    gain * normal::below(z) + deviation * density
}

/// Where a point lies: a coordinate for an axis with an order, one for each value of one without.
fn placed(axes: &[Axis], point: &Point) -> Vec<f64> {
    let mut place = Vec::new();
    for (axis, &at) in axes.iter().zip(point) {
        match axis.is_ordered {
            true => place.push(at as f64 / (axis.count.max(2) - 1) as f64),
            false => place.extend((0..axis.count).map(|value| if value == at { APART } else { 0.0 })),
        }
    }
    place
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spare, cleaner, channels and buffer, as designs have them: the cost is known, life and latency are not.
    struct Made {
        axes: Vec<Axis>,
        runs: usize,
    }

    impl Made {
        fn new() -> Made {
            let axis = |count, is_ordered| Axis { count, is_ordered };
            Made { axes: vec![axis(20, true), axis(5, false), axis(4, true), axis(5, true)], runs: 0 }
        }

        /// Cost, margin of life, margin of latency.
        fn values(point: &Point) -> Vec<f64> {
            let spare = 0.03 + 0.02 * point[0] as f64;
            let cleaner = [1.0, 1.4, 1.15, 1.05, 2.0][point[1]];
            let (channels, buffer) = (f64::from(1 << point[2]), f64::from(1 << point[3]));
            let price = (10.0 / (1.0 - spare) + 0.4 * channels + 0.2 * buffer).ln();
            let wa = cleaner * (0.5 / spare).max(0.6);
            let latency = wa / channels + 0.8 / buffer;
            vec![price, (wa / 4.0).ln(), (latency / 1.0).ln()]
        }

        fn all(&self) -> Vec<Point> {
            let mut points: Vec<Point> = vec![Vec::new()];
            for axis in &self.axes {
                let with = |point: &Point, at: usize| point.iter().copied().chain([at]).collect::<Point>();
                points = points.iter().flat_map(|p| (0..axis.count).map(move |at| with(p, at))).collect();
            }
            points
        }
    }

    impl Space for Made {
        fn axes(&self) -> &[Axis] {
            &self.axes
        }
        fn costs(&self) -> usize {
            1
        }
        fn values(&self) -> usize {
            3
        }
        fn known(&self, point: &Point) -> Option<(Point, Vec<Option<f64>>)> {
            // With the largest buffer there is no room for the least spare; the third cleaner has no channels to choose.
            let mut same = point.clone();
            if point[1] == 2 {
                same[2] = 0;
            }
            let is_possible = !(same[3] == 4 && same[0] == 0);
            is_possible.then(|| (same.clone(), vec![Some(Made::values(&same)[0]), None, None]))
        }
        fn run(&mut self, points: &[Point]) -> Result<Vec<Option<Vec<f64>>>, Ended> {
            self.runs += points.len();
            Ok(points.iter().map(|point| Some(Made::values(point))).collect())
        }
    }

    /// Of 2,000 points the best one within 2 %, with a twentieth of the runs, whatever the seed.
    #[test]
    fn a_twentieth_of_the_runs_finds_the_best() {
        let all = Made::new();
        let met = |values: &[f64]| values[1] <= 0.0 && values[2] <= 0.0;
        let possible =
            all.all().into_iter().filter_map(|point| all.known(&point)).map(|(p, _)| Made::values(&p));
        let best = possible.filter(|v| met(v)).map(|v| v[0]).fold(f64::INFINITY, f64::min);
        for seed in 1..=5 {
            let mut made = Made::new();
            let mut hunt = Hunt::new(&mut made, seed);
            hunt.go(100).unwrap();
            let first = hunt.best()[0];
            let found = hunt.found[first].values[0];
            assert!(found - best < 0.02, "seed {seed}: {} for {}", found.exp(), best.exp());
            assert!(made.runs <= 100);
        }
    }
}
