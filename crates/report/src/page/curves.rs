//! Lines and steps over one axis.

use super::axis::Axis;
use super::plot::{Frame, Item, marker};
use super::{COLORS, Table, details, escape};

/// Lines with more points than this have markers on some of them only.
const MARKED_MAX: usize = 24;
/// Lines with more points than this have tooltips on some of them only.
const TITLED_MAX: usize = 200;

/// Lines that the legend shows and hides; the style sheet has a rule for each.
const SWITCHES: usize = 16;

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
    /// Of the markers; by default that of the colour.
    shape: Option<usize>,
    dash: usize,
    marked: bool,
    joined: bool,
    steps: Steps,
}

/// The course of a line between two points.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// Straight.
    None,
    /// At the value of the second one.
    Before,
    /// At the value of the first one.
    After,
}

impl Series {
    /// A solid line with markers at its points. A point that is not a number interrupts it.
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Series {
        let name = name.to_string();
        Series {
            name,
            points,
            color: None,
            shape: None,
            dash: 0,
            marked: true,
            joined: true,
            steps: Steps::None,
        }
    }

    /// Colour and marker of this number instead of those of its position.
    pub fn color(mut self, number: usize) -> Series {
        self.color = Some(number);
        self
    }

    /// Markers of this shape, whatever the colour.
    pub fn shape(mut self, number: usize) -> Series {
        self.shape = Some(number);
        self
    }

    /// Solid (0), dashed (1), dotted (2) or both (3).
    pub fn dash(mut self, dash: usize) -> Series {
        self.dash = dash;
        self
    }

    /// Without markers: for theory and for measurements of others.
    pub fn unmarked(mut self) -> Series {
        self.marked = false;
        self
    }

    /// Large markers without lines: for single measurements of others.
    pub fn scattered(mut self) -> Series {
        self.joined = false;
        self
    }

    /// A value holds from the point before it up to its own, as for requests that took at least as long.
    pub fn steps(mut self) -> Series {
        self.steps = Steps::Before;
        self
    }

    /// A value holds from its own point up to the next, as for requests that took at most as long.
    pub(crate) fn steps_up(mut self) -> Series {
        self.steps = Steps::After;
        self
    }
}

impl Series {
    fn mark_class(&self) -> &'static str {
        if self.joined { "dot" } else { "dot stated" }
    }

    /// True if it has the same points as another one, and more than one.
    fn covers(&self, other: &Series) -> bool {
        let is_same =
            |(a, b): (&(f64, f64), &(f64, f64))| a.0.total_cmp(&b.0).is_eq() && a.1.total_cmp(&b.1).is_eq();
        let (points, others) = (&self.points, &other.points);
        points.len() > 1 && points.len() == others.len() && points.iter().zip(others).all(is_same)
    }
}

impl Curves {
    /// Draws the series in this order; their colours follow it. A linear axis upwards starts at 0.
    pub fn new(title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Curves {
        let y = y.including(0.0);
        Curves { title: title.to_string(), x, y, series }
    }

    /// The figure and, behind a disclosure, its values as a table: a row for each value of the axis to the right.
    pub fn html_and_table(&self) -> String {
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
        let has_legend = self.series.len() > 1;
        let mut legend = Vec::new();
        for (index, series) in self.series.iter().enumerate() {
            let number = series.color.unwrap_or(index);
            // A line that lies on one before it would hide it: it is dashed, and its name says so.
            let twin = self.series[..index].iter().position(|other| series.covers(other));
            let dash = if twin.is_some() && series.dash == 0 { 1 } else { series.dash };
            let svg = self.line(&frame, series, (number, dash));
            let switches = Some(index).filter(|&index| has_legend && index < SWITCHES);
            frame.svg += &match switches {
                Some(index) => format!("<g class=\"g{index}\">{svg}</g>\n"),
                None => svg,
            };
            let line = match series.joined {
                true => format!("<path class=\"line c{} d{dash}\" d=\"M0 6h26\"/>", number % COLORS),
                false => String::new(),
            };
            let mark = match series.marked {
                true => marker((series.shape.unwrap_or(number), number), series.mark_class(), 13.0, 6.0, ""),
                false => String::new(),
            };
            let name = match twin {
                Some(twin) => format!("{} (same as {})", series.name, self.series[twin].name),
                None => series.name.clone(),
            };
            legend.push(Item { switches, ..Item::new(line + &mark, &name) });
        }
        frame.figure(&self.title, if has_legend { &legend } else { &[] })
    }

    fn line(&self, frame: &Frame, series: &Series, (number, dash): (usize, usize)) -> String {
        let place = |(x, y): &(f64, f64)| Some((frame.x(*x)?, frame.y(*y)?));
        let (mut path, mut drawn) = (String::new(), None);
        for point in &series.points {
            let at = place(point);
            path += &match (drawn, at) {
                (_, None) => String::new(),
                (None, Some((x, y))) => format!("M{x:.1} {y:.1}"),
                (Some(_), Some((x, y))) => match series.steps {
                    Steps::None => format!("L{x:.1} {y:.1}"),
                    Steps::Before => format!("V{y:.1}H{x:.1}"),
                    Steps::After => format!("H{x:.1}V{y:.1}"),
                },
            };
            drawn = at;
        }
        let class = format!("c{} d{dash}", number % COLORS);
        let mut svg = match series.joined {
            true => format!("<path class=\"line {class}\" d=\"{path}\"/>\n"),
            false => String::new(),
        };
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
            let shape = series.shape.unwrap_or(number);
            svg += &marker((shape, number), if seen { series.mark_class() } else { "hit" }, x, y, &title);
        }
        svg + "\n"
    }
}
