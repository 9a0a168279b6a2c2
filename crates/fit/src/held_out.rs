//! Leave one out: fits all figures of a drive and its siblings but one, and predicts that one.
//!
//! What a simulation measures over its closed form is taken from the fit of all figures: it is a property of the simulation near
//! that design, and what is stated of the figure is not in it. The figure itself is predicted by a simulation of the design that
//! was found without it.

use crate::figures::Figures;
use crate::figures::amount::Unit;
use crate::fit::posterior::{self, Posterior};
use crate::fit::{FitError, Runs, drives, fit, nine_of_ten, simulate};
use crate::model::Model;
use nvlab_design::toml_reader::FileError;
use nvlab_units::Rng;

/// A figure, and what is predicted of it from the others.
#[derive(Clone, Debug)]
pub struct Row {
    /// The drive.
    pub drive: String,
    /// The figure.
    pub figure: String,
    /// Where it is stated.
    pub source: String,
    /// Its unit.
    pub unit: Unit,
    /// What is stated.
    pub stated: f64,
    /// What is predicted.
    pub predicted: f64,
    /// Nine of ten statements of drives that fit the others are between these.
    pub interval: (f64, f64),
}

impl Row {
    /// Predicted over stated, less 1.
    pub fn difference(&self) -> f64 {
        self.predicted / self.stated - 1.0
    }

    /// True if what is stated is inside the interval.
    pub fn is_covered(&self) -> bool {
        self.interval.0 <= self.stated && self.stated <= self.interval.1
    }
}

/// What is predicted of every figure of a drive; only of those with these numbers if there are any.
pub fn rows(figures: &Figures, only: &[usize], seed: u64, runs: &dyn Runs) -> Result<Vec<Row>, FitError> {
    let model = Model::new(figures)?;
    let fitted = fit(&model, figures, seed, runs)?;
    let mut rows = Vec::new();
    let all = 0..figures.figures.len();
    for number in all.filter(|number| only.is_empty() || only.contains(number)) {
        let figure = &figures.figures[number];
        let without = Posterior { without: Some(number), ..fitted.posterior.clone() };
        let modes = without.modes(Some(&fitted.modes[0].at));
        let found = drives(&without, &modes[0].at)?;
        let title = format!("{} without one", figures.drive.name);
        let predicted = simulate(&without, &found, &[number], &title, runs)?[0].value;
        let draws = without.draws(&modes);
        let mut rng = Rng::stream(seed, &format!("held out {number}"));
        // What is stated is not exactly what the drive does: the interval is of the statement.
        let spread = draws.iter().filter_map(|at| {
            let does = without.predicted(&without.drives(at)?, number);
            Some(does * (posterior::deviation(figure) * posterior::residual(&mut rng)).exp())
        });
        rows.push(Row {
            drive: figures.drive.name.clone(),
            figure: figures.name(figure),
            source: figure.source.clone(),
            unit: figure.what.unit(),
            stated: figure.value,
            predicted,
            interval: nine_of_ten(spread.collect()),
        });
    }
    Ok(rows)
}

/// The median of the errors, and the share of rows that are off by at most a quarter.
pub fn summary(rows: &[Row]) -> (f64, f64) {
    let mut errors: Vec<f64> = rows.iter().map(|row| row.difference().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let middle = errors.len() / 2;
    let median = match errors.len() {
        0 => f64::NAN,
        n if n.is_multiple_of(2) => 0.5 * (errors[middle - 1] + errors[middle]),
        _ => errors[middle],
    };
    let near = errors.iter().filter(|error| **error <= 0.25).count();
    (median, near as f64 / errors.len().max(1) as f64)
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// The drives whose figures are published: name of the file and its text.
        pub const PUBLISHED: &[(&str, &str)] = &[$((
            concat!("experiments/drives/figures/", $name, ".toml"),
            include_str!(concat!("../../../experiments/drives/figures/", $name, ".toml"))
        )),*];
    };
}
built_in!(
    "p4500",
    "d5-p4320",
    "970-evo-plus",
    "970-evo",
    "980",
    "980-pro",
    "870-qvo",
    "sn850",
    "sn750",
    "t700",
    "micron-4600",
    "gold-p31",
    "dc600m",
    "exceria",
);

/// The figures of every published drive.
pub fn published() -> Result<Vec<Figures>, FileError> {
    PUBLISHED.iter().map(|(file, text)| Figures::read(file, text)).collect()
}
