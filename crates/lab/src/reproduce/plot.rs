//! A figure as SVG: lines with marks, axes with round values, names of lines beside their ends.

use super::experiment::{Plot, Scale};
use super::judge::Measured;
use crate::report::html::text::{escape, tick_text, ticks};
use crate::sweep::space::number_of;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 52.0;
/// Colours there are.
const COLORS: usize = 7;
/// Least distance between two names.
const NAME_HEIGHT: f64 = 15.0;

/// A line to be drawn.
struct Line {
    name: String,
    class: String,
    marks: bool,
    /// Text on the x axis and value.
    points: Vec<(String, f64)>,
}

/// The figure; `None` if nothing of it was measured.
pub(super) fn svg(plot: &Plot, measured: &Measured<'_>) -> Option<String> {
    let lines = lines(plot, measured);
    if !lines.iter().any(|line| line.marks && !line.points.is_empty()) {
        return None;
    }
    let x = X::new(plot, measured, &lines)?;
    let y = Y::new(plot.y_scale, lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y)))?;
    let mut svg = format!(
        "<svg class=\"plot lines\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escape(&plot.title)
    );
    let (right, low) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for (value, text) in y.marks() {
        let at = y.at(value);
        svg += &format!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>");
        svg += &format!(
            "<text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>\n",
            LEFT - 7.0,
            at + 4.0
        );
    }
    for (at, text) in x.marks() {
        svg += &format!("<path class=\"grid\" d=\"M{at:.1} {low}v4\"/>");
        svg +=
            &format!("<text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>\n", low + 18.0, escape(&text));
    }
    svg += &format!("<path class=\"grid\" d=\"M{LEFT} {TOP}V{low}H{right}\"/>\n");
    let middle = (LEFT + right) / 2.0;
    svg += &format!(
        "<text class=\"axis\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>\n",
        low + 40.0,
        escape(&plot.x_label)
    );
    let (axis, upright) = (escape(&plot.y_label), (TOP + low) / 2.0);
    svg +=
        &format!("<text class=\"axis\" transform=\"translate(14 {upright:.1}) rotate(-90)\">{axis}</text>\n");
    for line in &lines {
        svg += &line.draw(&x, &y);
    }
    for (line, at) in lines.iter().zip(name_heights(&lines, &y)) {
        let Some(at) = at else { continue };
        let (from, text, class) = (right + 10.0, escape(&line.name), &line.class);
        svg += &format!("<path class=\"line {class}\" d=\"M{from:.1} {at:.1}h16\"/>");
        svg += &format!("<text x=\"{:.1}\" y=\"{:.1}\">{text}</text>\n", from + 21.0, at + 4.0);
    }
    Some(svg + "</svg>\n")
}

/// What was measured, one line for each value of the series axis and each measure; then what is compared with.
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
            let points = experiment.space.line(&at).into_iter();
            let points = points.filter_map(|(x, index)| Some((x, measured.value(index, measure)?))).collect();
            let class = format!("c{}", lines.len() % COLORS);
            let name = if name.is_empty() { "measured".to_string() } else { name };
            lines.push(Line { name, class, marks: true, points });
        }
    }
    let steps = experiment.space.axis(&plot.x).map_or(&[][..], |axis| &axis.values);
    for (index, curve) in plot.curves.iter().enumerate() {
        // A curve named as a measured line has its colour.
        let same =
            lines.iter().find(|line| curve.name.starts_with(&line.name)).map(|line| line.class.clone());
        let class = same.unwrap_or_else(|| format!("c{}", (COLORS - 1 + COLORS * 4 - index) % COLORS));
        // Of a curve over steps only the steps of this run have a place.
        let has_place = |x: &String| plot.x_scale != Scale::Steps || steps.contains(x);
        let points = curve.points.iter().filter(|(x, _)| has_place(x)).cloned().collect();
        lines.push(Line { name: curve.name.clone(), class: format!("{class} dashed"), marks: false, points });
    }
    lines
}

impl Line {
    fn draw(&self, x: &X, y: &Y) -> String {
        let places: Vec<(f64, f64, f64)> =
            self.points.iter().filter_map(|(at, value)| Some((x.at(at)?, y.at(*value), *value))).collect();
        if places.is_empty() {
            return String::new();
        }
        let path: Vec<String> = places.iter().map(|(x, y, _)| format!("{x:.1} {y:.1}")).collect();
        let mut svg = format!("<path class=\"line {}\" d=\"M{}\"/>", self.class, path.join("L"));
        if self.marks {
            for (x, y, value) in places {
                let (class, name) = (&self.class, escape(&self.name));
                svg += &format!(
                    "<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{name}: {value:.4}</title></circle>"
                );
            }
        }
        svg + "\n"
    }
}

/// Heights of the names: beside the last point of each line, pushed apart.
fn name_heights(lines: &[Line], y: &Y) -> Vec<Option<f64>> {
    let mut heights: Vec<Option<f64>> =
        lines.iter().map(|line| line.points.last().map(|(_, value)| y.at(*value))).collect();
    let mut order: Vec<usize> = (0..lines.len()).filter(|&index| heights[index].is_some()).collect();
    order.sort_by(|&a, &b| heights[a].partial_cmp(&heights[b]).expect("heights are numbers"));
    let mut least = TOP;
    for &index in &order {
        let at = heights[index].unwrap_or(least).max(least);
        heights[index] = Some(at);
        least = at + NAME_HEIGHT;
    }
    // What was pushed below the figure is pushed back up.
    let mut most = HEIGHT - BOTTOM;
    for &index in order.iter().rev() {
        let at = heights[index].unwrap_or(most).min(most);
        heights[index] = Some(at);
        most = at - NAME_HEIGHT;
    }
    heights
}

/// The axis to the right.
struct X {
    scale: Scale,
    /// Texts in order, for [`Scale::Steps`].
    texts: Vec<String>,
    from: f64,
    to: f64,
}

impl X {
    fn new(plot: &Plot, measured: &Measured<'_>, lines: &[Line]) -> Option<X> {
        let texts = measured.experiment.space.axis(&plot.x)?.values.clone();
        let numbers: Vec<f64> =
            lines.iter().flat_map(|line| line.points.iter()).filter_map(|(x, _)| number_of(x)).collect();
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let scale = if least < most { plot.x_scale } else { Scale::Steps };
        let from = if scale == Scale::Linear && least > 0.0 && least < most / 2.0 { 0.0 } else { least };
        Some(X { scale, texts, from, to: most })
    }

    /// Where a value lies; `None` for a value that has no place.
    fn at(&self, text: &str) -> Option<f64> {
        let number = || number_of(text);
        let share = match self.scale {
            Scale::Linear => (number()? - self.from) / (self.to - self.from),
            Scale::Log => (number()? / self.from).ln() / (self.to / self.from).ln(),
            Scale::Steps => {
                let index = self.texts.iter().position(|known| known == text)?;
                (index as f64 + 0.5) / self.texts.len() as f64
            }
        };
        Some(LEFT + share * (WIDTH - RIGHT - LEFT))
    }

    fn marks(&self) -> Vec<(f64, String)> {
        // Values that would be written over each other are left out.
        let mut last = f64::NEG_INFINITY;
        let mut marks = Vec::new();
        let mut places: Vec<(f64, &String)> =
            self.texts.iter().filter_map(|text| Some((self.at(text)?, text))).collect();
        places.sort_by(|a, b| a.0.partial_cmp(&b.0).expect("places are numbers"));
        for (at, text) in places {
            if at - last > 8.0 * text.chars().count() as f64 + 4.0 {
                marks.push((at, text.clone()));
                last = at;
            }
        }
        marks
    }
}

/// The axis upwards.
struct Y {
    scale: Scale,
    from: f64,
    to: f64,
    step: f64,
}

impl Y {
    fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Option<Y> {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let most = values.iter().copied().reduce(f64::max)?;
        let least = values.iter().copied().reduce(f64::min)?;
        if scale == Scale::Log && least > 0.0 {
            let decade = |value: f64| 10f64.powf(value);
            let (from, to) = (decade(least.log10().floor()), decade(most.log10().ceil()));
            return Some(Y { scale, from, to: to.max(from * 10.0), step: 1.0 });
        }
        let marks = ticks(most, 6);
        Some(Y { scale: Scale::Linear, from: 0.0, to: marks[marks.len() - 1], step: marks[1] })
    }

    fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Log => (value / self.from).ln() / (self.to / self.from).ln(),
            _ => (value - self.from) / (self.to - self.from),
        };
        let low = HEIGHT - BOTTOM;
        low - share * (low - TOP)
    }

    fn marks(&self) -> Vec<(f64, String)> {
        if self.scale == Scale::Log {
            let decades = (self.to / self.from).log10().round() as i32;
            let value = |decade: i32| self.from * 10f64.powi(decade);
            return (0..=decades)
                .map(|decade| (value(decade), tick_text(value(decade), value(decade))))
                .collect();
        }
        ticks(self.to, 6).into_iter().map(|value| (value, tick_text(value, self.step))).collect()
    }
}
