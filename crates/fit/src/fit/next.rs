//! What to measure next: figures on which drives that fit differ most, each with the number of the design that it would tell.

use super::interval::nine_of_ten;
use crate::figures::amount::Unit;
use crate::figures::what::{Requests, State, What};
use crate::model::{Model, Values, forms};
use crate::priors::{KNOBS, Knob};

/// Suggestions at most.
const MOST: usize = 3;
/// What a measurement is off: drives that differ by less are not told apart.
const TOLD_APART: f64 = 0.08;

/// A figure that is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// What it is of.
    pub what: String,
    /// Its unit.
    pub unit: Unit,
    /// Nine of ten drives that fit are between these, by closed forms.
    pub between: (f64, f64),
    /// The number of the design that goes with it most.
    pub number: &'static str,
}

/// The figures that tell most about a drive of the sibling `size`, each about another number.
pub(super) fn next(model: &Model, known: &[What], draws: &[Vec<Values>], size: usize) -> Vec<Next> {
    let logs =
        |of: &dyn Fn(&Values) -> f64| draws.iter().map(|drives| of(&drives[size]).ln()).collect::<Vec<_>>();
    let numbers: Vec<(&'static str, Vec<f64>)> = KNOBS
        .iter()
        .filter(|(knob, ..)| model.priors.of(*knob).is_some_and(|prior| !prior.is_fixed()))
        .map(|&(knob, name, _)| (name, logs(&|values| values.of(knob))))
        .collect();
    let mut found: Vec<(f64, Next)> = Vec::new();
    for what in candidates(model).into_iter().filter(|what| !known.contains(what)) {
        let values = logs(&|values| forms::value(values, what));
        let (low, high) = nine_of_ten(values.clone());
        let goes_with = |(_, of): &&(&'static str, Vec<f64>)| correlation(of, &values).abs();
        let number = numbers.iter().max_by(|a, b| goes_with(a).total_cmp(&goes_with(b)));
        if let (Some((number, _)), true) = (number, high - low > TOLD_APART) {
            let between = (low.exp(), high.exp());
            found.push((high - low, Next { what: what.to_string(), unit: what.unit(), between, number }));
        }
    }
    // The widest first; equally wide ones keep their order.
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut chosen: Vec<Next> = Vec::new();
    for (_, next) in found {
        if chosen.len() < MOST && chosen.iter().all(|before| before.number != next.number) {
            chosen.push(next);
        }
    }
    chosen
}

/// What can be measured with a job of fio.
fn candidates(model: &Model) -> Vec<What> {
    let requests = |is_sequential, is_write, kib: u64, depth, state| {
        let unit = if is_sequential { Unit::BytesPerSecond } else { Unit::PerSecond };
        What::Rate(
            Requests { is_sequential, is_write, mixed: None, block_bytes: kib << 10, depth, state },
            unit,
        )
    };
    let mut all = Vec::new();
    for depth in [1, 4, 16, 64, 256] {
        all.extend([4, 16, 64].map(|kib| requests(false, false, kib, depth, State::Full)));
    }
    all.extend([1, 32].map(|depth| requests(true, false, 128, depth, State::Full)));
    all.extend([1, 32].map(|depth| requests(false, true, 4, depth, State::Steady)));
    match model.priors.of(Knob::Cache) {
        None => all.push(requests(true, true, 128, 32, State::Full)),
        Some(_) => {
            all.extend([State::Cache, State::AfterCache].map(|state| requests(true, true, 128, 32, state)));
            all.push(What::Cache);
        }
    }
    all
}

/// How two quantities go together, from -1 to 1; 0 if one of them does not change.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| of(a - mean_a, b - mean_b)).sum::<f64>();
    let (both, left, right) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    let scale = (left * right).sqrt();
    if scale > 1e-12 && both.is_finite() { both / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figures, template};

    #[test]
    fn a_number_that_drives_differ_in_is_to_be_measured() {
        let figures = Figures::read("d", &template("d")).unwrap();
        let model = Model::new(&figures).unwrap();
        let place = model.variables.iter().position(|variable| variable.knob == Knob::Read).unwrap();
        let drive = |z: f64| {
            let mut at = vec![0.0; model.variables.len()];
            at[place] = z;
            vec![model.values(&at, 0).unwrap()]
        };
        let draws: Vec<_> = (-10..=10).map(|z| drive(f64::from(z) / 5.0)).collect();
        let found = next(&model, &[], &draws, 0);
        assert_eq!(found.len(), 1, "they differ in one number: {found:?}");
        assert_eq!(found[0].number, "read");
        assert!(found[0].what.contains("random read"), "{found:?}");
        assert!(next(&model, &[], &[drive(0.0), drive(0.0)], 0).is_empty(), "no two differ");
    }

    #[test]
    fn quantities_that_go_together() {
        assert!((correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]) - 1.0).abs() < 1e-12);
        assert!((correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), 0.0);
    }
}
