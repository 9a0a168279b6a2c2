//! A space of runs: the run at every point, and the axes.

use super::SEED;
use super::scale::Scale;
use nvlab_design::DesignErrors;
use nvlab_run::Preparation;
use nvlab_run::plan::{Named, Until};
use nvlab_units::quantity;

/// The run and its axes.
#[derive(Clone, Debug)]
pub struct Space {
    /// What is run at every point.
    pub run: RunSpec,
    /// What is varied.
    pub axes: Vec<Axis>,
}

/// The run at a point; `{NAME}` in any text stands for the point's value on that axis.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// Name of a design.
    pub design: String,
    /// Changes to it.
    pub sets: Vec<String>,
    /// The workload.
    pub workload: String,
    /// How the device is prepared.
    pub state: Preparation,
    /// When the run ends; `None` as for `run`.
    pub until: Option<String>,
    /// Seed.
    pub seed: String,
}

/// What is varied.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its values, as they stand in texts.
    pub values: Vec<String>,
    /// Changes to the design for each value, if a value means more than its text.
    pub sets: Vec<(String, Vec<String>)>,
}

/// The name of the axis of designs.
pub(super) const DESIGN: &str = "design";

/// An axis of designs.
pub(super) fn design_axis(values: Vec<String>) -> Axis {
    Axis { name: DESIGN.to_string(), values, sets: Vec::new() }
}

/// An axis whose values stand for `{NAME}`.
pub(super) fn list_axis(name: &str, values: Vec<String>) -> Option<Axis> {
    (!values.is_empty()).then(|| Axis { name: name.to_string(), values, sets: Vec::new() })
}

/// An axis of the values of a key of the design.
pub(super) fn key_axis(key: &str, values: Vec<String>) -> Axis {
    let sets = values.iter().map(|value| (value.clone(), vec![format!("{key}={value}")])).collect();
    Axis { name: key.to_string(), values, sets }
}

/// An axis of the values of several keys that vary together: a value of each in every row.
pub(super) fn keys_axis(keys: &[String], rows: &[Vec<String>]) -> Axis {
    let set = |row: &Vec<String>| keys.iter().zip(row).map(|(key, value)| format!("{key}={value}")).collect();
    let sets = rows.iter().map(|row| (row.join(", "), set(row))).collect();
    let values = rows.iter().map(|row| row.join(", ")).collect();
    Axis { name: keys.join(", "), values, sets }
}

/// A point, or a line if one axis is free: axis and value.
pub type At = Vec<(String, String)>;

/// One run of a space.
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
    /// How the device is prepared.
    pub state: Preparation,
    /// When the run ends.
    pub until: Option<Until>,
    /// Seed.
    pub seed: u64,
}

impl Point {
    /// Its design, by name or path.
    pub fn load(&self) -> Result<Named, DesignErrors> {
        Named::load(&self.design, &self.sets)
    }

    /// The name of the point in progress and messages: `fig08 20/80 greedy`.
    pub fn title(&self, space: &str) -> String {
        std::iter::once(space).chain(self.values.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }
}

impl Axis {
    /// What it varies: the keys it sets, or its name.
    pub fn keys(&self) -> Vec<&str> {
        match self.sets.first() {
            None => vec![&self.name],
            Some((_, sets)) => sets.iter().filter_map(|set| Some(set.split_once('=')?.0)).collect(),
        }
    }

    /// The value of a key that it varies, at this value of the axis.
    fn value_of<'a>(&'a self, value: &'a str, key: &str) -> Option<&'a str> {
        if self.name == key {
            return Some(value);
        }
        let (_, sets) = self.sets.iter().find(|(of, _)| of == value)?;
        sets.iter()
            .filter_map(|set| set.split_once('='))
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }
}

impl Space {
    /// What the axes vary.
    pub fn keys(&self) -> Vec<String> {
        self.axes.iter().flat_map(Axis::keys).map(str::to_string).collect()
    }

    /// The value of a key at a point.
    pub fn value_at(&self, point: &Point, key: &str) -> Option<String> {
        let mut pairs = self.axes.iter().zip(&point.values);
        pairs.find_map(|(axis, value)| axis.value_of(value, key)).map(str::to_string)
    }

    /// All values of a key.
    pub(super) fn values_of(&self, key: &str) -> Vec<&str> {
        self.axes
            .iter()
            .flat_map(|axis| axis.values.iter().filter_map(|value| axis.value_of(value, key)))
            .collect()
    }

    /// What the values of a key are in a table for programs.
    pub fn scale(&self, key: &str) -> Scale {
        Scale::of(key, &self.values_of(key))
    }

    /// Refuses axes that do not identify points uniquely.
    pub(super) fn check(&self) -> Result<(), String> {
        let keys = self.keys();
        if let Some((at, key)) = keys.iter().enumerate().find(|(at, key)| keys[..*at].contains(key)) {
            return Err(format!(
                "`{key}` is varied by {} axes",
                1 + keys[..at].iter().filter(|k| *k == key).count()
            ));
        }
        for axis in &self.axes {
            let values = &axis.values;
            let twice = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value));
            if let Some((_, value)) = twice {
                return Err(format!("`{}` has the value `{value}` twice", axis.name));
            }
        }
        Ok(())
    }

    /// How many points there are.
    pub fn count(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// Every point; the last axis varies fastest.
    pub fn points(&self) -> Result<Vec<Point>, String> {
        (0..self.count()).map(|index| self.point(index)).collect()
    }

    /// The axis with this name.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name)
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
        let seed = filled(&self.run.seed);
        // Points that differ only in their seed repeat one another.
        let number = self.axis(SEED).and_then(|axis| axis.values.iter().position(|value| *value == seed));
        Ok(Point {
            sets,
            design: filled(&self.run.design),
            workload: filled(&self.run.workload),
            state: self.run.state.repeated(number.unwrap_or(0) as u64),
            until: until.transpose().map_err(|problem| format!("until: {problem}"))?,
            seed: seed.parse().map_err(|_| format!("seed: `{seed}` is not a whole number"))?,
            values,
        })
    }

    /// The index of a point in [`Space::points`], if `at` names a value of every axis.
    pub fn index(&self, at: &At) -> Option<usize> {
        let mut index = 0;
        for axis in &self.axes {
            let (_, value) = at.iter().find(|(name, _)| *name == axis.name)?;
            index = index * axis.values.len() + axis.values.iter().position(|known| known == value)?;
        }
        Some(index)
    }

    /// The points of a line, in the order of the free axis: its values and their indexes as in
    /// [`Space::index`]. Empty unless exactly one axis is free.
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
pub(crate) fn number_of(value: &str) -> Option<f64> {
    let text = value.split('/').next().unwrap_or_default().trim();
    if let Some(percent) = text.strip_suffix('%') {
        return percent.trim().parse().ok();
    }
    let plain = text.parse().ok();
    plain
        .or_else(|| quantity::count(text).ok().map(|n| n as f64))
        .or_else(|| quantity::bytes(text).ok().map(|n| n as f64))
}
