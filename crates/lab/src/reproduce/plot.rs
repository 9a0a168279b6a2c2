//! A figure of an experiment: measured lines, and lines to compare with.

use super::experiment::{Plot, Scale};
use super::judge::Measured;
use super::row::{Check, Class, Measure, Row};
use crate::sweep::space::{Space, number_of};
use nvlab_report::page::{Axis, COLORS, Curves, Series};

/// The points of a line: value of the x axis as text, and the value there.
type Points = Vec<(String, f64)>;

/// A line that was measured.
struct Line {
    name: String,
    points: Points,
    /// Values stated by the sources.
    stated: Points,
}

/// Returns the figure; `None` if none of it was measured.
pub(super) fn figure(title: &str, plot: &Plot, measured: &Measured<'_>) -> Option<String> {
    let lines = lines(plot, measured);
    let x = X::new(plot, measured, &lines)?;
    let numbers = |points: &Points| -> Vec<(f64, f64)> {
        points.iter().filter_map(|(text, value)| Some((x.value(text)?, *value))).collect()
    };
    if !lines.iter().any(|line| !line.points.is_empty()) {
        return None;
    }
    let mut series: Vec<Series> =
        lines.iter().map(|line| Series::new(&line.name, numbers(&line.points))).collect();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.stated.is_empty()) {
        let name = format!("{}, stated", line.name);
        series.push(Series::new(&name, numbers(&line.stated)).color(index).scattered());
    }
    for (index, curve) in plot.curves.iter().enumerate() {
        // A curve named after a measured line has its colour.
        let same = lines.iter().position(|line| curve.name.starts_with(&line.name));
        let color = same.unwrap_or((COLORS - 1 + COLORS * 4 - index) % COLORS);
        series.push(Series::new(&curve.name, numbers(&curve.points)).color(color).dash(1).unmarked());
    }
    let y = if plot.y_scale == Scale::Log { Axis::log(&plot.y_label) } else { Axis::linear(&plot.y_label) };
    Some(Curves::new(title, x.axis(&plot.x_label), y, series).html())
}

/// What was measured: a line for each value of the series axis and each measure.
fn lines(plot: &Plot, measured: &Measured<'_>) -> Vec<Line> {
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
            let name = if name.is_empty() { "measured".to_string() } else { name };
            let places = experiment.space.line(&at);
            let stated = places.iter().filter_map(|(x, index)| {
                Some((x.clone(), stated(&experiment.rows, &experiment.space, *index, measure)?))
            });
            let stated = stated.collect();
            let points = places.into_iter();
            let points = points.filter_map(|(x, index)| Some((x, measured.value(index, measure)?))).collect();
            lines.push(Line { name, points, stated });
        }
    }
    lines
}

/// What a source states of a measure at a point, whether a number of the design was set from it or not.
fn stated(rows: &[Row], space: &Space, index: usize, measure: &Measure) -> Option<f64> {
    let row = rows.iter().find(|row| {
        let is_of_source = matches!(row.class, Class::Claim | Class::Held | Class::Calibrated);
        let is_same = row.measure.metric == measure.metric && row.measure.over == measure.over;
        is_of_source && row.check == Check::Value && is_same && space.index(&row.at) == Some(index)
    })?;
    row.expected.map(|expected| expected / row.measure.times * measure.times)
}

/// The x axis: its values are texts, which may stand for numbers.
struct X {
    scale: Scale,
    texts: Vec<String>,
}

impl X {
    fn new(plot: &Plot, measured: &Measured<'_>, lines: &[Line]) -> Option<X> {
        let texts = measured.experiment.space.axis(&plot.x)?.values.clone();
        let curves = plot.curves.iter().map(|curve| &curve.points);
        let points = lines.iter().map(|line| &line.points).chain(curves).flatten();
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
