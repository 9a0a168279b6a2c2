//! How probable a drive is, given its figures; the most probable ones, and those nearly as probable.

use crate::figures::{Figure, Figures};
use crate::model::{Model, Values, forms};
use crate::priors::{Knob, Shape};
use crate::search::cma::Search;
use crate::search::normal;
use crate::search::slice::{self, Weighed};
use nvlab_units::Rng;
use rayon::prelude::*;

/// What a figure may be off besides its tolerance: what the models do not model.
const MODEL: f64 = 0.04;
/// Where a search of a number without choices begins.
const STARTS: [f64; 5] = [-1.4, -0.7, 0.0, 0.7, 1.4];
/// Degrees of freedom of the residuals: with so few, a figure that fits with no others is left alone.
const FREEDOM: f64 = 4.0;
/// Generations of a search at most, and the length of its steps when it has ended.
const GENERATIONS: usize = 260;
const REACH_END: f64 = 0.01;
/// Chains of the sampler; points of each that are left out first, that are kept, and of how many one is kept.
const CHAINS: usize = 8;
const WARM: usize = 150;
const DRAWS: usize = 60;
const THIN: usize = 8;

/// What is known of a drive, as a function of the variables of its model.
#[derive(Clone, Debug)]
pub struct Posterior<'a> {
    /// The model.
    pub model: &'a Model,
    /// The figures.
    pub figures: &'a Figures,
    /// Of each figure, the logarithm of what a simulation measures over its closed form.
    pub corrections: Vec<f64>,
    /// A figure that is not known.
    pub without: Option<usize>,
    /// Seed of the searches.
    pub seed: u64,
}

/// A mode: a kind of flash, and the most probable drive made of it.
#[derive(Clone, Debug)]
pub struct Mode {
    /// The variables.
    pub at: Vec<f64>,
    /// How improbable it is: less is more probable; a difference of 1 is a factor of e.
    pub cost: f64,
}

/// Choices that are held fast while one mode is searched.
type Held = Vec<(usize, f64)>;

impl Posterior<'_> {
    /// The drives of all siblings; `None` if one cannot be.
    pub fn drives(&self, at: &[f64]) -> Option<Vec<Values>> {
        (0..self.model.drive.capacities.len()).map(|size| self.model.values(at, size)).collect()
    }

    /// What a figure is by its closed form and its correction.
    pub fn predicted(&self, drives: &[Values], number: usize) -> f64 {
        let figure = &self.figures.figures[number];
        forms::value(&drives[figure.size], figure.what) * self.corrections[number].exp()
    }

    /// The logarithm of the likelihood.
    fn log(&self, at: &[f64]) -> f64 {
        let Some(drives) = self.drives(at) else { return f64::NEG_INFINITY };
        let figures = self.figures.figures.iter().enumerate();
        let known = figures.filter(|(number, _)| Some(*number) != self.without);
        known.map(|(number, figure)| log_of(figure, self.predicted(&drives, number))).sum()
    }

    /// How improbable a point is: its prior and its likelihood.
    fn cost(&self, at: &[f64]) -> f64 {
        0.5 * at.iter().map(|z| z * z).sum::<f64>() - self.log(at)
    }

    /// The modes, the most probable first. `near`: where another search of the same drive ended.
    pub fn modes(&self, near: Option<&[f64]>) -> Vec<Mode> {
        let kinds = self.kinds();
        let search = |(number, held): (usize, &Held)| self.mode(held, near, self.seed + number as u64);
        let mut modes: Vec<Mode> = kinds.par_iter().enumerate().map(search).collect();
        // Equally probable ones keep their order.
        modes.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        modes
    }

    /// Every combination of the choices that all siblings share, and of dies of one size for all.
    fn kinds(&self) -> Vec<Held> {
        let mut kinds: Vec<Held> = vec![Vec::new()];
        for knob in [Knob::Planes, Knob::Independent] {
            let Some(place) = self.model.variables.iter().position(|variable| variable.knob == knob) else {
                continue;
            };
            let middles = self.model.priors.of(knob).map_or(Vec::new(), |prior| middles(&prior.shape));
            let with = |kind: &Held, z: f64| kind.iter().copied().chain([(place, z)]).collect();
            kinds = kinds.iter().flat_map(|kind| middles.iter().map(move |&z| with(kind, z))).collect();
        }
        kinds
    }

    fn mode(&self, held: &Held, near: Option<&[f64]>, seed: u64) -> Mode {
        let mut best = near.map_or_else(|| vec![0.0; self.model.variables.len()], <[f64]>::to_vec);
        held.iter().for_each(|&(place, z)| best[place] = z);
        let mut cost = self.cost(&best);
        let free: Vec<usize> =
            (0..best.len()).filter(|at| held.iter().all(|(place, _)| place != at)).collect();
        // Dies of one size for all are tried, each as a start: to change all of them at once is a step that no search makes.
        let starts = if near.is_some() { vec![best.clone()] } else { self.starts(&best) };
        for (number, start) in starts.into_iter().enumerate() {
            let from: Vec<f64> = free.iter().map(|&place| start[place]).collect();
            let step = if near.is_some() { 0.3 } else { 0.6 };
            let mut search = Search::new(from, step, seed.wrapping_mul(31) + number as u64);
            let whole = |part: &[f64]| {
                let mut at = start.clone();
                free.iter().zip(part).for_each(|(&place, z)| at[place] = *z);
                at
            };
            for _ in 0..GENERATIONS {
                let points = search.ask();
                let costs: Vec<f64> = points.iter().map(|part| self.cost(&whole(part))).collect();
                search.tell(&points, &costs);
                if search.reach() < REACH_END {
                    break;
                }
            }
            let found = search.best().map(|(part, cost)| (whole(part), cost));
            if let Some((at, found)) = found.filter(|(_, found)| *found < cost) {
                (best, cost) = (at, found);
            }
        }
        Mode { at: best, cost }
    }

    fn starts(&self, from: &[f64]) -> Vec<Vec<f64>> {
        let die = self.model.priors.of(Knob::Die).map_or(Vec::new(), |prior| middles(&prior.shape));
        let start = |z: f64| {
            let pairs = self.model.variables.iter().zip(from);
            pairs.map(|(variable, old)| if variable.knob == Knob::Die { z } else { *old }).collect()
        };
        match die.len() {
            0 | 1 => vec![from.to_vec()],
            _ => die.into_iter().map(start).collect(),
        }
    }

    /// Drives in proportion to their probability, from chains that begin at the modes, each in proportion to its own.
    pub fn draws(&self, modes: &[Mode]) -> Vec<Vec<f64>> {
        let least = modes[0].cost;
        let weights: Vec<f64> = modes.iter().map(|mode| (least - mode.cost).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let start = |chain: usize| {
            let mut left = (chain as f64 + 0.5) / CHAINS as f64 * sum;
            let reached = |weight: &f64| {
                left -= weight;
                left <= 0.0
            };
            weights.iter().position(reached).unwrap_or(0)
        };
        let chain = |chain: usize| {
            let at = modes[start(chain)].at.clone();
            let mut rng = Rng::stream(self.seed + chain as u64, "draws");
            let mut point = Weighed { log: self.log(&at), at };
            let mut kept = Vec::with_capacity(DRAWS);
            for number in 0..WARM + DRAWS * THIN {
                point = slice::next(&point, |at| self.log(at), &mut rng);
                if number >= WARM && (number - WARM).is_multiple_of(THIN) {
                    kept.push(point.at.clone());
                }
            }
            kept
        };
        (0..CHAINS).into_par_iter().flat_map(chain).collect()
    }
}

/// The standard deviation that the logarithm of a figure is taken to have: its tolerance is two of them.
pub(crate) fn deviation(figure: &Figure) -> f64 {
    (0.5 * figure.tolerance).hypot(MODEL)
}

/// A residual in such deviations: Student's t, whose degrees of freedom are [`FREEDOM`].
pub(crate) fn residual(rng: &mut Rng) -> f64 {
    let square: f64 = (0..FREEDOM as usize).map(|_| rng.normal(0.0, 1.0).powi(2)).sum();
    rng.normal(0.0, 1.0) / (square / FREEDOM).sqrt()
}

fn log_of(figure: &Figure, predicted: f64) -> f64 {
    let residual = (predicted / figure.value).ln() / deviation(figure);
    match residual.is_finite() {
        true => -0.5 * (FREEDOM + 1.0) * (residual * residual / FREEDOM).ln_1p(),
        false => f64::NEG_INFINITY,
    }
}

/// The middle of each choice, as a standard normal variable; of an interval, points over it.
fn middles(shape: &Shape) -> Vec<f64> {
    let Shape::One(values) = shape else { return STARTS.to_vec() };
    let mut below = 0.0;
    let middle = |(_, weight): &(f64, f64)| {
        below += weight;
        normal::quantile(below - 0.5 * weight)
    };
    values.iter().map(middle).collect()
}
