//! Keys that are free: `ftl.spare=5%..40%`, `array.channels=2,4,8`, `ftl.clean.kind=*`.

use super::Asked;
use super::hunt::Point;
use nvlab_design::Design;
use nvlab_design::keys;
use nvlab_design::toml_reader::datum::Shape;
use nvlab_design::toml_reader::{FileError, SourceKind};
use nvlab_lab::sweep::file::range;
use nvlab_run::metric::{Better, Metric};
use nvlab_run::plan::Named;
use nvlab_units::suggest::nearest;

/// A key that is free.
#[derive(Clone, Debug, PartialEq)]
pub struct Free {
    /// The key.
    pub key: String,
    /// Its values, as `--set` takes them.
    pub values: Vec<String>,
    /// They have an order: numbers, not names.
    pub is_ordered: bool,
}

/// Values of an interval that says no step.
const STEPS: usize = 16;
/// An interval that spans so many times its beginning is divided by factors, not by steps.
const WIDE: f64 = 8.0;

impl Free {
    /// Reads `KEY=V1,V2,...`, `KEY=LO..HI` (16 values), `KEY=LO..HI:STEP`, `KEY=LO..HI*FACTOR` or `KEY=*`.
    pub fn parse(text: &str) -> Result<Free, String> {
        let wrong = |problem: String| format!("--free {text}: {problem}");
        let (key, values) =
            text.split_once('=').ok_or_else(|| wrong("write KEY=LO..HI, KEY=V1,V2 or KEY=*".to_string()))?;
        let (key, values) = (key.trim(), values.trim());
        let found: Vec<&keys::Key> = keys::all().filter(|known| keys::matches(known.path, key)).collect();
        let Some(first) = found.first() else {
            let near = nearest(key, keys::all().map(|key| key.path));
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(wrong(format!("there is no key `{key}`{near}")));
        };
        let values = match values {
            "*" => match first.shape {
                Shape::OneOf(names) => names.iter().map(|(name, _)| name.to_string()).collect(),
                Shape::Flag => vec!["true".to_string(), "false".to_string()],
                _ => {
                    return Err(wrong(format!(
                        "`{key}` takes {}: give values or an interval",
                        first.shape.allowed()
                    )));
                }
            },
            values if values.contains("..") => {
                let is_whole = matches!(first.shape, Shape::Count { .. });
                interval(values, is_whole).map_err(wrong)?
            }
            values => values.split(',').map(|value| value.trim().to_string()).collect(),
        };
        if values.len() < 2 {
            return Err(wrong("a key that is free has two values or more; --set fixes one".to_string()));
        }
        let is_number = |value: &String| value.starts_with(|c: char| c.is_ascii_digit());
        Ok(Free { key: key.to_string(), is_ordered: values.iter().all(is_number), values })
    }
}

/// The values of an interval.
fn interval(text: &str, is_whole: bool) -> Result<Vec<String>, String> {
    let (low, high) = text.split_once("..").expect("it has two ends");
    if high.contains([':', '*']) {
        return range(text);
    }
    let number = |text: &str| {
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let unit = text[end..].trim().to_string();
        text[..end].parse::<f64>().ok().map(|value| (value, unit))
    };
    let usage = || format!("`{text}` is no interval: write LO..HI, both with the same unit");
    let ((from, unit), (to, other)) =
        (number(low.trim()).ok_or_else(usage)?, number(high.trim()).ok_or_else(usage)?);
    if unit != other || from >= to {
        return Err(usage());
    }
    let is_wide = from > 0.0 && to / from >= WIDE;
    let at = |step: usize| {
        let share = step as f64 / (STEPS - 1) as f64;
        if is_wide { from * (to / from).powf(share) } else { from + (to - from) * share }
    };
    let rounded =
        |value: f64| if is_whole { value.round() } else { format!("{value:.3e}").parse().unwrap_or(value) };
    let blank = if unit.is_empty() { "" } else { " " };
    let mut values: Vec<String> =
        (0..STEPS).map(|step| format!("{}{blank}{unit}", rounded(at(step)))).collect();
    values.dedup();
    Ok(values)
}

/// Refuses what cannot be searched before anything is run.
pub(super) fn check(asked: &Asked) -> Result<(), String> {
    if asked.free.is_empty() {
        return Err("--free is missing: which keys may be changed?".to_string());
    }
    if let Some((at, free)) =
        asked.free.iter().enumerate().find(|(at, free)| asked.free[..*at].iter().any(|f| f.key == free.key))
    {
        return Err(format!("--free {}: it is free twice (the {}th time here)", free.key, at + 1));
    }
    if let Some(goal) = asked.goals.iter().find(|metric| metric.better == Better::Neither) {
        return Err(format!("--best {}: neither more nor less of it is better", goal.name));
    }
    if let Some(need) = asked.needs.iter().find(|need| need.limit().is_none()) {
        return Err(format!("--need {}: a bound is < <= > or >= and a value", need.text()));
    }
    // Called for its message if there is no such design.
    Named::load(&asked.design, &asked.sets).map(drop).map_err(|errors| errors.to_string())
}

/// Designs of a space.
pub(super) struct Trial<'a> {
    /// The design.
    pub design: &'a str,
    /// Changes of all.
    pub sets: &'a [String],
    /// Keys that are free.
    pub free: &'a [Free],
}

impl Trial<'_> {
    /// The design at a point, and the point it is the same as: keys that it does not have are at their first value. `None`: no
    /// such design can be.
    pub(super) fn design(&self, point: &Point) -> Option<(Point, Named)> {
        let mut same = point.clone();
        let mut has: Vec<usize> = (0..self.free.len()).collect();
        loop {
            let set =
                |&axis: &usize| format!("{}={}", self.free[axis].key, self.free[axis].values[point[axis]]);
            let sets: Vec<String> = self.sets.iter().cloned().chain(has.iter().map(set)).collect();
            match Named::load(self.design, &sets) {
                Ok(named) => return Some((same, named)),
                Err(errors) => {
                    // A key of another kind is none of this design.
                    let is_of = |error: &FileError, key: &str| {
                        let place = error.at.as_ref().filter(|at| at.source.kind == SourceKind::Set);
                        place.is_some_and(|at| at.source.text.starts_with(key))
                    };
                    let is_conditional = |axis: &usize| {
                        let key = &self.free[*axis].key;
                        let of_kinds = keys::all()
                            .filter(|known| keys::matches(known.path, key))
                            .any(|known| !known.kinds.is_empty());
                        of_kinds
                            && errors
                                .0
                                .iter()
                                .any(|error| is_of(error, key) && error.message.contains("kind"))
                    };
                    let place = has.iter().position(is_conditional)?;
                    same[has.remove(place)] = 0;
                }
            }
        }
    }

    /// The changes at a point, of keys that the design has.
    pub(super) fn sets_of(&self, point: &Point) -> Vec<String> {
        self.design(point).map_or(Vec::new(), |(_, named)| {
            let own = named.changes.iter().filter(|change| !self.sets.contains(change));
            own.cloned().collect()
        })
    }
}

/// A metric that is known without a run.
pub(super) fn known(metric: &Metric, design: &Design) -> Option<f64> {
    match metric.name.as_str() {
        "price" => design.price().total_usd(),
        "price.gib" => design.price().usd_per_gib(),
        "capacity" => Some(design.capacity_bytes() as f64),
        "raw" => Some(design.raw_bytes() as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free() {
        let spare = Free::parse("ftl.spare=5%..40%").unwrap();
        assert_eq!((spare.values.len(), spare.is_ordered), (16, true));
        assert_eq!((spare.values[0].as_str(), spare.values[15].as_str()), ("5 %", "40 %"));
        let channels = Free::parse("array.channels=2,4,8").unwrap();
        assert_eq!(channels.values, ["2", "4", "8"]);
        let cleaner = Free::parse("ftl.clean.kind=*").unwrap();
        assert!(!cleaner.is_ordered && cleaner.values.contains(&"greedy".to_string()));
        assert!(Free::parse("ftl.spar=5%..40%").unwrap_err().contains("did you mean `ftl.spare`?"));
        assert!(Free::parse("ftl.spare=40%..5%").is_err());
    }

    #[test]
    fn keys_of_another_kind_are_not_free_there() {
        let free =
            ["ftl.clean.kind=greedy,d-choices", "ftl.clean.d=4,8,16"].map(|text| Free::parse(text).unwrap());
        let trial = Trial { design: "ssd-tlc", sets: &[], free: &free };
        let same = |point: [usize; 2]| trial.design(&point.to_vec()).map(|(point, _)| point);
        assert_eq!(same([0, 2]), Some(vec![0, 0]), "greedy draws no blocks");
        assert_eq!(same([1, 2]), Some(vec![1, 2]));
        assert_eq!(trial.sets_of(&vec![0, 2]), ["ftl.clean.kind=greedy"]);
    }
}
