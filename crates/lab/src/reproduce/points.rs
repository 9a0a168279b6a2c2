//! The runs an experiment needs: every combination of the values of its axes.

use super::experiment::{At, Experiment};
use crate::plan::Until;
use crate::run::State;
use nvlab_units::quantity;

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its value on every axis.
    pub values: Vec<String>,
    /// Name of the design.
    pub design: String,
    /// Changes to it.
    pub sets: Vec<String>,
    /// The workload.
    pub workload: String,
    /// State of the device before.
    pub state: State,
    /// How far.
    pub until: Option<Until>,
    /// Seed.
    pub seed: u64,
}

impl Point {
    /// For progress and messages: `fig08 20/80 greedy`.
    pub fn title(&self, experiment: &Experiment) -> String {
        std::iter::once(experiment.name.as_str())
            .chain(self.values.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl Experiment {
    /// Every point; the last axis varies fastest.
    pub fn points(&self) -> Result<Vec<Point>, String> {
        let count = self.axes.iter().map(|axis| axis.values.len()).product();
        (0..count).map(|index| self.point(index)).collect()
    }

    fn point(&self, index: usize) -> Result<Point, String> {
        let mut rest = index;
        let mut values = Vec::new();
        for axis in self.axes.iter().rev() {
            values.push(axis.values[rest % axis.values.len()].clone());
            rest /= axis.values.len();
        }
        values.reverse();
        let filled = |text: &str| {
            let pairs = self.axes.iter().zip(&values);
            pairs.fold(text.to_string(), |text, (axis, value)| {
                text.replace(&format!("{{{}}}", axis.name), value)
            })
        };
        let mut sets: Vec<String> = self.run.sets.iter().map(|set| filled(set)).collect();
        for (axis, value) in self.axes.iter().zip(&values) {
            let own = axis.sets.iter().filter(|(of, _)| of == value);
            sets.extend(own.flat_map(|(_, sets)| sets.iter().map(|set| filled(set))));
        }
        let until = self.run.until.as_ref().map(|text| filled(text).parse::<Until>());
        Ok(Point {
            sets,
            design: filled(&self.run.design),
            workload: filled(&self.run.workload),
            state: self.run.state,
            until: until.transpose().map_err(|problem| format!("{}: until: {problem}", self.name))?,
            seed: self.run.seed,
            values,
        })
    }

    /// The number of a point in [`Experiment::points`], if `at` names a value of every axis.
    pub fn index(&self, at: &At) -> Option<usize> {
        let mut index = 0;
        for axis in &self.axes {
            let (_, value) = at.iter().find(|(name, _)| *name == axis.name)?;
            index = index * axis.values.len() + axis.values.iter().position(|known| known == value)?;
        }
        Some(index)
    }

    /// The points of a line, in the order of the free axis: its values and their numbers as in
    /// [`Experiment::index`]. Empty unless exactly one axis is free.
    pub fn line(&self, at: &At) -> Vec<(String, usize)> {
        let mut free = self.axes.iter().filter(|axis| !at.iter().any(|(name, _)| *name == axis.name));
        let (Some(axis), None) = (free.next(), free.next()) else { return Vec::new() };
        let place = |value: &String| {
            let mut at = at.clone();
            at.push((axis.name.clone(), value.clone()));
            Some((value.clone(), self.index(&at)?))
        };
        axis.values.iter().filter_map(place).collect()
    }
}

/// The number an axis value stands for: `80 %`, `10k`, `16 MiB`, and the first one of `20/80`.
pub fn number_of(value: &str) -> Option<f64> {
    let text = value.split('/').next().unwrap_or_default().trim();
    if let Some(percent) = text.strip_suffix('%') {
        return percent.trim().parse().ok();
    }
    let plain = text.parse().ok();
    plain
        .or_else(|| quantity::count(text).ok().map(|n| n as f64))
        .or_else(|| quantity::bytes(text).ok().map(|n| n as f64))
}
