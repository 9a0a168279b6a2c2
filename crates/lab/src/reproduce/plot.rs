//! A figure of an experiment: what was measured, and what it is compared with.

use super::experiment::{Plot, Scale};
use super::judge::Measured;
use crate::report::page::{Axis, COLORS, Curves, Series};
use crate::sweep::space::number_of;

/// The points of a line: value of the x axis as text, and what was measured there.
type Points = Vec<(String, f64)>;

/// Returns the figure; `None` if nothing of it was measured.
pub(super) fn figure(title: &str, plot: &Plot, measured: &Measured<'_>) -> Option<String> {
    let lines = lines(plot, measured);
    let x = X::new(plot, measured, &lines)?;
    let numbers = |points: &Points| -> Vec<(f64, f64)> {
        points.iter().filter_map(|(text, value)| Some((x.value(text)?, *value))).collect()
    };
    if !lines.iter().any(|(_, points)| !points.is_empty()) {
        return None;
    }
    let mut series: Vec<Series> =
        lines.iter().map(|(name, points)| Series::new(name, numbers(points))).collect();
    for (index, curve) in plot.curves.iter().enumerate() {
        // A curve named after a measured line has its colour.
        let same = lines.iter().position(|(name, _)| curve.name.starts_with(name));
        let color = same.unwrap_or((COLORS - 1 + COLORS * 4 - index) % COLORS);
        series.push(Series::new(&curve.name, numbers(&curve.points)).color(color).dash(1).unmarked());
    }
    let y = if plot.y_scale == Scale::Log { Axis::log(&plot.y_label) } else { Axis::linear(&plot.y_label) };
    Some(Curves::new(title, x.axis(&plot.x_label), y, series).html())
}

/// What was measured: a line for each value of the series axis and each measure.
fn lines(plot: &Plot, measured: &Measured<'_>) -> Vec<(String, Points)> {
    let experiment = measured.experiment;
    let series = plot.series.as_ref().and_then(|name| experiment.space.axis(name));
    let values: Vec<Option<&String>> =
        series.map_or(vec![None], |axis| axis.values.iter().map(Some).collect());
    let mut lines = Vec::new();
    for value in values {
        let mut at = plot.at.clone();
        at.extend(series.zip(value).map(|(axis, value)| (axis.name.clone(), value.clone())));
        for (name, measure) in &plot.measures {
            let names = [value.map_or("", String::as_str), name.as_str()];
            let name = names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ");
            let points = experiment.space.line(&at).into_iter();
            let points = points.filter_map(|(x, index)| Some((x, measured.value(index, measure)?))).collect();
            lines.push((if name.is_empty() { "measured".to_string() } else { name }, points));
        }
    }
    lines
}

/// The x axis: its values are texts, which may stand for numbers.
struct X {
    scale: Scale,
    texts: Vec<String>,
}

impl X {
    fn new(plot: &Plot, measured: &Measured<'_>, lines: &[(String, Points)]) -> Option<X> {
        let texts = measured.experiment.space.axis(&plot.x)?.values.clone();
        let curves = plot.curves.iter().map(|curve| &curve.points);
        let points = lines.iter().map(|(_, points)| points).chain(curves).flatten();
        let numbers: Vec<f64> = points.filter_map(|(text, _)| number_of(text)).collect();
        let differ = numbers.iter().any(|number| *number != numbers[0]);
        Some(X { scale: if differ { plot.x_scale } else { Scale::Steps }, texts })
    }

    /// The place of a text; `None` for a text that has none, such as a step of a curve that this run lacks.
    fn value(&self, text: &str) -> Option<f64> {
        match self.scale {
            Scale::Steps => self.texts.iter().position(|known| known == text).map(|index| index as f64),
            _ => number_of(text),
        }
    }

    fn axis(&self, label: &str) -> Axis {
        let axis = match self.scale {
            Scale::Steps => return Axis::names(label, &self.texts),
            Scale::Log => Axis::log(label),
            Scale::Linear => Axis::linear(label),
        };
        let mut ticks: Vec<(f64, String)> =
            self.texts.iter().filter_map(|text| Some((number_of(text)?, text.clone()))).collect();
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        axis.ticks(ticks)
    }
}
