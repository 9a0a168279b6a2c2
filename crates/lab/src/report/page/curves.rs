//! Lines and steps over one axis.

use super::axis::Axis;
use super::plot::{Frame, key, marker};
use super::{COLORS, Table, details, escape};

/// Lines with more points than this have markers on some of them only.
const MARKED_MAX: usize = 24;
/// Lines with more points than this have tooltips on some of them only.
const TITLED_MAX: usize = 200;

/// Named series over one axis of numbers, powers or names.
pub struct Curves {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
}

/// One line of [`Curves`].
pub struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    color: Option<usize>,
    dash: usize,
    marked: bool,
    steps: bool,
}

impl Series {
    /// A solid line with markers at its points. A point that is not a number interrupts it.
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.to_string(), points, color: None, dash: 0, marked: true, steps: false }
    }

    /// Colour and marker of this number instead of those of its position.
    pub fn color(mut self, number: usize) -> Series {
        self.color = Some(number);
        self
    }

    /// Solid (0), dashed (1), dotted (2) or both (3).
    pub(crate) fn dash(mut self, dash: usize) -> Series {
        self.dash = dash;
        self
    }

    /// Without markers: for theory and what others measured.
    pub(crate) fn unmarked(mut self) -> Series {
        self.marked = false;
        self
    }

    /// A value holds from the point before it up to its own, as in a distribution with buckets.
    pub fn steps(mut self) -> Series {
        self.steps = true;
        self
    }
}

impl Curves {
    /// Draws the series in this order; their colours follow it. A linear axis upwards starts at 0.
    pub fn new(title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Curves {
        let y = y.including(0.0);
        Curves { title: title.to_string(), x, y, series }
    }

    /// The figure and, behind a disclosure, its values as a table: a row for each value of the axis to the right.
    pub(crate) fn html_and_table(&self) -> String {
        let mut across: Vec<f64> =
            self.series.iter().flat_map(|series| &series.points).map(|(x, _)| *x).collect();
        across.sort_by(f64::total_cmp);
        across.dedup();
        let names = self.series.iter().map(|series| match series.name.as_str() {
            "" => self.y.label.as_str(),
            name => name,
        });
        let heads: Vec<&str> = std::iter::once(self.x.label.as_str()).chain(names).collect();
        let mut table = Table::new(&self.title, 1, &heads);
        for x in &across {
            let value = |series: &Series| {
                let point = series.points.iter().find(|(at, y)| at == x && y.is_finite());
                point.map_or("–".to_string(), |(_, y)| escape(&self.y.shown(*y)))
            };
            let cells = std::iter::once(escape(&self.x.shown(*x))).chain(self.series.iter().map(value));
            table.row(&cells.collect::<Vec<_>>());
        }
        format!("<div>{}{}</div>\n", self.html(), details("Table", &table.html()))
    }

    /// The figure; a sentence if there is nothing to show.
    pub fn html(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let across = self.x.range(points().map(|(x, _)| *x), 7, false);
        let up = self.y.range(points().map(|(_, y)| *y), 6, true);
        let (Some(across), Some(up)) = (across, up) else {
            return format!("<p class=\"about\">{}: nothing to show.</p>\n", escape(&self.title));
        };
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let about =
            format!("{}. Plot of {} by {}: {}", self.title, self.y.label, self.x.label, names.join("; "));
        let mut frame = Frame::new(&about, [&self.x, &self.y], [across, up], 270.0);
        for (index, series) in self.series.iter().enumerate() {
            frame.svg += &self.line(&frame, series, series.color.unwrap_or(index));
        }
        let item = |(index, series): (usize, &Series)| {
            let number = series.color.unwrap_or(index);
            let line = format!("<path class=\"line c{} d{}\" d=\"M0 6h26\"/>", number % COLORS, series.dash);
            let mark = if series.marked { marker(number, "dot", 13.0, 6.0, "") } else { String::new() };
            key(&(line + &mark), &series.name)
        };
        let legend: String = match self.series.as_slice() {
            [_] => String::new(),
            series => series.iter().enumerate().map(item).collect(),
        };
        frame.figure(&self.title, &legend)
    }

    fn line(&self, frame: &Frame, series: &Series, number: usize) -> String {
        let place = |(x, y): &(f64, f64)| Some((frame.x(*x)?, frame.y(*y)?));
        let (mut path, mut drawn) = (String::new(), None);
        for point in &series.points {
            let at = place(point);
            path += &match (drawn, at) {
                (_, None) => String::new(),
                (None, Some((x, y))) => format!("M{x:.1} {y:.1}"),
                (Some(_), Some((x, y))) if series.steps => format!("V{y:.1}H{x:.1}"),
                (Some(_), Some((x, y))) => format!("L{x:.1} {y:.1}"),
            };
            drawn = at;
        }
        let class = format!("c{} d{}", number % COLORS, series.dash);
        let mut svg = format!("<path class=\"line {class}\" d=\"{path}\"/>\n");
        let count = series.points.len();
        let every = if count > MARKED_MAX { count / 8 } else { 1 };
        for (index, point) in series.points.iter().enumerate() {
            let seen = series.marked && index % every == every / 2;
            let Some((x, y)) = place(point).filter(|_| seen || index % count.div_ceil(TITLED_MAX) == 0)
            else {
                continue;
            };
            let name = if series.name.is_empty() { String::new() } else { format!("{}: ", series.name) };
            let title = format!("{name}{} at {}", self.y.shown(point.1), self.x.shown(point.0));
            svg += &marker(number, if seen { "dot" } else { "hit" }, x, y, &title);
        }
        svg + "\n"
    }
}
