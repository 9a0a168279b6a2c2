//! An axis: which values it spans, where its ticks lie, how they read.

use nvlab_run::number::{self, Shown};

/// An axis of a plot. Ticks have round values unless they are set.
pub struct Axis {
    pub(super) label: String,
    log: bool,
    names: bool,
    include: Vec<f64>,
    ticks: Vec<(f64, String)>,
    text: Option<Box<dyn Fn(f64) -> String>>,
    /// The unit in which a value is shown, in base units.
    unit: Option<Box<dyn Fn(f64) -> f64>>,
}

impl Axis {
    /// A linear axis. It starts at 0 if the least value is less than half of the largest one.
    pub fn linear(label: &str) -> Axis {
        let (include, ticks) = (Vec::new(), Vec::new());
        Axis { label: label.to_string(), log: false, names: false, include, ticks, text: None, unit: None }
    }

    /// A logarithmic axis. Values that are not positive are not shown on it.
    pub fn log(label: &str) -> Axis {
        Axis { log: true, ..Axis::linear(label) }
    }

    /// An axis of names: value 0 is the position of the first, 1 that of the second.
    pub fn names<S: AsRef<str>>(label: &str, names: &[S]) -> Axis {
        let ticks = names.iter().enumerate().map(|(index, name)| (index as f64, name.as_ref().to_string()));
        Axis { names: true, ticks: ticks.collect(), ..Axis::linear(label) }
    }

    /// Makes the axis include this value, so that several plots can share a range.
    pub fn including(mut self, value: f64) -> Axis {
        self.include.push(value);
        self
    }

    /// Ticks at these values instead of round ones; those without room for their text are left out.
    pub fn ticks(mut self, ticks: impl IntoIterator<Item = (f64, String)>) -> Axis {
        self.ticks = ticks.into_iter().collect();
        self
    }

    /// Formats values, with their unit: `number::time_ns(ns).to_string()`.
    pub fn text(mut self, text: impl Fn(f64) -> String + 'static) -> Axis {
        self.text = Some(Box::new(text));
        self
    }

    /// Formats values whose unit depends on the value: ticks of a linear axis are round in the unit of its largest
    /// value. 100 GB are 93.1 GiB.
    pub fn units(self, shown: impl Fn(f64) -> Shown + Clone + 'static) -> Axis {
        let text = shown.clone();
        let axis = self.text(move |value| text(value).to_string());
        Axis { unit: Some(Box::new(move |value| shown(value).factor())), ..axis }
    }

    /// Whether values are shown in KiB, MiB and so on.
    fn is_binary(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit(1024.0) == 1024.0)
    }

    pub(super) fn is_names(&self) -> bool {
        self.names
    }

    /// A value as tooltips show it.
    pub(super) fn shown(&self, value: f64) -> String {
        let name = self.ticks.iter().find(|(at, _)| *at == value).map(|(_, name)| name.clone());
        name.unwrap_or_else(|| self.text.as_ref().map_or_else(|| number::three(value), |text| text(value)))
    }

    /// The range that holds all values, and its ticks, about `wanted` of them. A `round` range ends at ticks.
    /// `None` if there is no value to show.
    pub(super) fn range(
        &self,
        values: impl Iterator<Item = f64>,
        wanted: usize,
        round: bool,
    ) -> Option<Range> {
        let usable = |value: &f64| value.is_finite() && (!self.log || *value > 0.0);
        let values: Vec<f64> = values.filter(usable).collect();
        values.first()?;
        let values = values.iter().chain(self.include.iter().filter(|value| usable(value)));
        let (mut from, mut to) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(*value), most.max(*value))
        });
        let mut step = 1.0;
        if self.names {
            (from, to) = (-0.5, self.ticks.len() as f64 - 0.5);
        } else if self.log {
            if from == to {
                (from, to) = (from / 2.0, to * 2.0);
            }
            if round && self.is_binary() {
                (from, to) = ((from.log2() + 1e-4).floor().exp2(), (to.log2() - 1e-4).ceil().exp2());
            } else if round {
                (from, to) = (power_steps(from).0, power_steps(to).1);
            }
        } else {
            if from >= 0.0 && from < to / 2.0 {
                from = 0.0;
            }
            if from == to {
                (from, to) =
                    if to == 0.0 { (0.0, 1.0) } else { (from - from.abs() / 2.0, to + to.abs() / 2.0) };
            }
            let unit = self.unit.as_ref().map_or(1.0, |unit| unit(from.abs().max(to.abs())));
            step = round_step((to - from) / unit, wanted) * unit;
            if round {
                (from, to) = ((from / step + 1e-9).floor() * step, (to / step - 1e-9).ceil() * step);
            }
        }
        let mut range = Range { log: self.log, from, to, ticks: self.ticks.clone() };
        if range.ticks.is_empty() {
            let (values, step) = match (self.log, self.is_binary()) {
                (true, true) => (powers_of_two(&range, wanted), 1.0),
                (true, false) => powers(&range, wanted),
                (false, _) => (multiples(from, to, step), step),
            };
            let text = |value: f64| match &self.text {
                Some(_) if value == 0.0 => "0".to_string(),
                Some(text) => short(&text(value)),
                None => tick_text(value, if self.log { value } else { step }),
            };
            range.ticks = values.into_iter().map(|value| (value, text(value))).collect();
        }
        range.ticks.retain(|(value, _)| range.from <= *value && *value <= range.to);
        Some(range)
    }
}

/// What an axis spans.
pub(super) struct Range {
    log: bool,
    pub from: f64,
    pub to: f64,
    /// Values and texts.
    pub ticks: Vec<(f64, String)>,
}

impl Range {
    /// The position of a value, from 0 to 1; `None` if it has none.
    pub fn share(&self, value: f64) -> Option<f64> {
        let share = match self.log {
            true => (value / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        (-1e-9..=1.0 + 1e-9).contains(&share).then_some(share)
    }
}

/// The least of 1, 2, 5, 10 times a power of ten that divides a span into about `wanted` parts.
fn round_step(span: f64, wanted: usize) -> f64 {
    let raw = span / wanted as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|m| m * power).into_iter().find(|step| *step >= raw * 0.999);
    step.unwrap_or(10.0 * power)
}

/// The neighbours of a value among 1, 2 and 5 times powers of ten: the next at or below it, the next at or above.
fn power_steps(value: f64) -> (f64, f64) {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    let below = steps.into_iter().rev().find(|step| *step <= value * 1.0001).unwrap_or(power);
    let above = steps.into_iter().find(|step| *step >= value * 0.9999).unwrap_or(10.0 * power);
    (below, above)
}

/// The multiples of a step in a range.
fn multiples(from: f64, to: f64, step: f64) -> Vec<f64> {
    let (first, last) = ((from / step - 1e-9).ceil() as i64, (to / step + 1e-9).floor() as i64);
    (first..=last).map(|index| (index as f64 * step).clamp(from, to)).collect()
}

/// Round values on a logarithmic axis, and the step between them if it is even: 1, 2, 5, 10, ..., only powers of ten if
/// there are many of them, evenly spaced values if there are few.
fn powers(range: &Range, wanted: usize) -> (Vec<f64>, f64) {
    let (from, to) = (range.from, range.to);
    let decades = (to / from).log10();
    let every = (decades / (1.5 * wanted as f64)).ceil().max(1.0) as i32;
    let dense: &[f64] = if decades * 3.0 <= wanted as f64 + 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let exponents = from.log10().floor() as i32..=to.log10().ceil() as i32;
    let values = exponents
        .filter(|exponent| exponent.rem_euclid(every) == 0)
        .flat_map(|exponent| dense.iter().map(move |m| m * 10f64.powi(exponent)))
        .filter(|value| (from * 0.9999..=to * 1.0001).contains(value));
    let values: Vec<f64> = values.map(|value| value.clamp(from, to)).collect();
    if values.len() > 2 {
        return (values, 1.0);
    }
    let step = round_step(to - from, wanted);
    (multiples(from, to, step), step)
}

/// Powers of two in a range: every one, or every second, fifth or tenth.
fn powers_of_two(range: &Range, wanted: usize) -> Vec<f64> {
    let (from, to) = (range.from.log2(), range.to.log2());
    let every =
        [1.0, 2.0, 5.0].into_iter().find(|every| (to - from) / every <= 1.5 * wanted as f64).unwrap_or(10.0);
    multiples(from, to, every).into_iter().map(f64::exp2).collect()
}

/// A value on an axis: as few digits as the step needs.
pub(super) fn tick_text(value: f64, step: f64) -> String {
    let decimals = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    match decimals {
        0 if value >= 0.0 => number::count(value.round() as u64),
        decimals => format!("{value:.decimals$}"),
    }
}

/// A number with its unit, without needless zeros: `1.50 ms` becomes `1.5 ms`.
pub(super) fn short(text: &str) -> String {
    let (number, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()));
    match number.contains('.') {
        true => format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.')),
        false => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, values: &[f64], round: bool) -> Vec<String> {
        let range = axis.range(values.iter().copied(), 5, round).unwrap();
        range.ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn linear_axes_have_round_values() {
        let axis = Axis::linear("");
        assert_eq!(texts(&axis, &[0.5, 3.4], true), ["0", "1", "2", "3", "4"]);
        assert_eq!(texts(&axis, &[1000.0, 2400.0], true), ["0", "500", "1 000", "1 500", "2 000", "2 500"]);
        assert_eq!(texts(&axis, &[2.9, 3.05], true), ["2.90", "2.95", "3.00", "3.05"]);
        assert_eq!(texts(&axis, &[0.0], true), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            texts(&axis, &[0.0, 0.33], false),
            ["0.0", "0.1", "0.2", "0.3"],
            "a range that is not rounded"
        );
        assert_eq!(texts(&axis.including(0.0), &[2.9, 3.0], true), ["0", "1", "2", "3"]);
        assert!(Axis::linear("").range([f64::NAN].into_iter(), 5, true).is_none());
    }

    /// Not 93.1, 186 and 279 GiB.
    #[test]
    fn ticks_are_round_in_the_unit_that_is_shown() {
        let axis = Axis::linear("").units(number::bytes);
        assert_eq!(texts(&axis, &[0.0, 4e11], true), ["0", "100 GiB", "200 GiB", "300 GiB", "400 GiB"]);
        let axis = Axis::linear("").units(number::time_ns);
        assert_eq!(
            texts(&axis, &[0.0, 1.3e12], true),
            ["0", "300 s", "10 min", "15 min", "20 min", "25 min"]
        );
    }

    #[test]
    fn logarithmic_axes_have_powers() {
        let axis = Axis::log("").text(|ns| number::time_ns(ns).to_string());
        assert_eq!(texts(&axis, &[0.0, 1100.0, 19_000.0], true), ["1 us", "2 us", "5 us", "10 us", "20 us"]);
        assert_eq!(texts(&axis, &[110.0, 19e6], false), ["1 us", "10 us", "100 us", "1 ms", "10 ms"]);
        let bytes = || Axis::log("").units(number::bytes);
        assert_eq!(
            texts(&bytes(), &[1e3, 2e4], true),
            ["512 B", "1 KiB", "2 KiB", "4 KiB", "8 KiB", "16 KiB", "32 KiB"]
        );
        assert_eq!(
            texts(&bytes(), &[1e3, 2e6], false),
            ["1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"]
        );
        assert_eq!(texts(&bytes(), &[1e6, 1e13], false), ["1 MiB", "32 MiB", "1 GiB", "32 GiB", "1 TiB"]);
        let names = Axis::names("", &["a", "b"]).range([0.0].into_iter(), 5, true).unwrap();
        assert_eq!((names.share(0.0), names.share(1.0)), (Some(0.25), Some(0.75)));
    }

    #[test]
    fn needless_zeros_are_cut() {
        let texts = ["1.50 ms", "100 us", "2.00", "10 %"].map(short);
        assert_eq!(texts, ["1.5 ms", "100 us", "2", "10 %"]);
    }
}
