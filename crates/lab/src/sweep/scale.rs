//! What the values of an axis are, for tables that programs read: numbers in a base unit, or texts.

use nvlab_run::metric::Unit;
use nvlab_units::quantity;
use serde_json::Value;

/// How a value is read.
type Read = fn(&str) -> Option<f64>;

/// The ways to read a value, the plainest first. An axis is numeric if all of its values can be read in one of them.
const SCALES: [(Unit, Read); 5] = [
    (Unit::Ratio, |text| {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.or_else(|| Some(quantity::count(text).ok()? as f64))
    }),
    (Unit::Share, |text| quantity::fraction(text).ok()),
    (Unit::Bytes, |text| Some(quantity::bytes(text).ok()? as f64)),
    (Unit::Seconds, |text| Some(quantity::span(text).ok()?.seconds())),
    (Unit::PerSecond, |text| quantity::rate_per_second(text).ok()),
];

/// The column of an axis, or of a key that it sets.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Its name, with the unit of its numbers: `ftl.spare`, `ftl.unit_bytes`.
    pub column: String,
    number: Option<Read>,
}

impl Scale {
    /// Of all values of `key`.
    pub(super) fn of(key: &str, values: &[&str]) -> Scale {
        let fits = |read: Read| values.iter().all(|value| read(value.trim()).is_some());
        let found = SCALES.iter().find(|(_, read)| !values.is_empty() && fits(*read));
        let suffix = found.map_or("", |(unit, _)| unit.suffix());
        Scale { column: format!("{key}{suffix}"), number: found.map(|(_, read)| *read) }
    }

    /// True if its values are numbers.
    pub(super) fn is_numeric(&self) -> bool {
        self.number.is_some()
    }

    /// The number that a value stands for, in the base unit; `None` for a text.
    pub(super) fn number(&self, text: &str) -> Option<f64> {
        self.number.and_then(|read| read(text.trim()))
    }

    /// A value as it stands in a document.
    pub fn value(&self, text: &str) -> Value {
        match self.number(text) {
            Some(number) if number.fract() == 0.0 && number.abs() < 2f64.powi(53) => (number as i64).into(),
            Some(number) => number.into(),
            None => text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_in_base_units_or_texts() {
        for (values, column, documents) in [
            (&["7 %", "28%", "0.5"][..], "key", [json!(0.07), json!(0.28), json!(0.5)]),
            (&["1", "10k", "2.5"], "key", [json!(1), json!(10_000), json!(2.5)]),
            (&["4 KiB", "1MB", "512 B"], "key_bytes", [json!(4096), json!(1_000_000), json!(512)]),
            (&["1 ms", "2 s", "1min"], "key_s", [json!(0.001), json!(2), json!(60)]),
            (&["2k/s", "6/min", "1/s"], "key_per_s", [json!(2000), json!(0.1), json!(1)]),
            (&["greedy", "1", "2"], "key", [json!("greedy"), json!("1"), json!("2")]),
            (&["4 KiB", "1 s", "1"], "key", [json!("4 KiB"), json!("1 s"), json!("1")]),
        ] {
            let scale = Scale::of("key", values);
            assert_eq!(scale.column, column, "{values:?}");
            assert_eq!(values.iter().map(|value| scale.value(value)).collect::<Vec<_>>(), documents);
        }
    }
}
