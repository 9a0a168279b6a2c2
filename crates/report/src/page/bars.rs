//! Bars: stacked ones in rows, and a histogram.

use super::axis::Axis;
use super::plot::{Frame, Item, WIDTH, figure, standalone, wide};
use super::{COLORS, escape};

/// The number of the colour for unimportant parts, such as idle time.
pub const MUTED: usize = COLORS;

/// Height of one row with its label, and of the bar alone.
const ROW: f64 = 50.0;
const BAR: f64 = 22.0;

/// Rows of bars, each made of the same parts.
pub struct Bars {
    title: String,
    axis: Axis,
    parts: Vec<(&'static str, usize)>,
    rows: Vec<(String, Vec<f64>, String)>,
}

impl Bars {
    /// No rows yet. A part is a name and the number of its colour.
    pub fn new(title: &str, axis: Axis, parts: &[(&'static str, usize)]) -> Bars {
        Bars { title: title.to_string(), axis: axis.including(0.0), parts: parts.to_vec(), rows: Vec::new() }
    }

    /// Appends a row: its label, the value of each part, and a text behind the bar.
    pub fn row(&mut self, label: &str, values: &[f64], total: &str) {
        self.rows.push((label.to_string(), values.to_vec(), total.to_string()));
    }

    /// The figure.
    pub fn html(&self) -> String {
        self.svg().map_or(String::new(), |svg| figure(&self.title, &self.legend(), &svg))
    }

    fn svg(&self) -> Option<String> {
        let sums = self.rows.iter().map(|(_, values, _)| values.iter().sum());
        let range = self.axis.range(sums, 6, true)?;
        let room = self.rows.iter().map(|(.., total)| wide(total) + 8.0).fold(24.0, f64::max);
        let x = |value: f64| 14.0 + range.share(value).unwrap_or(1.0) * (WIDTH - 14.0 - room);
        let bottom = ROW * self.rows.len() as f64 + 6.0;
        let mut svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\">\n",
            bottom + 42.0,
            escape(&self.about())
        );
        for (value, text) in &range.ticks {
            let at = x(*value);
            svg += &format!("<path class=\"grid\" d=\"M{at:.1} 22V{bottom:.1}\"/>");
            svg += &format!("<text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\">{text}</text>\n", bottom + 16.0);
        }
        for (index, (label, values, total)) in self.rows.iter().enumerate() {
            let top = ROW * index as f64;
            svg +=
                &format!("<text class=\"label\" x=\"14\" y=\"{:.1}\">{}</text>\n", top + 18.0, escape(label));
            let mut from = 0.0;
            for ((name, color), value) in self.parts.iter().zip(values).filter(|(_, value)| **value > 0.0) {
                svg += &part(name, *color, &self.axis.shown(*value), [x(from), x(from + value)], top + 24.0);
                from += value;
            }
            let (at, middle) = (x(from) + 7.0, top + 24.0 + BAR / 2.0 + 4.5);
            svg += &format!("<text x=\"{at:.1}\" y=\"{middle:.1}\">{}</text>\n", escape(total));
        }
        let middle = (WIDTH - room) / 2.0;
        let label = escape(&self.axis.label);
        svg += &format!(
            "<text class=\"axis\" x=\"{middle:.1}\" y=\"{:.1}\">{label}</text>\n</svg>",
            bottom + 36.0
        );
        Some(svg)
    }

    /// The plot as a file of its own, for browsers: an SVG with its style, and the legend below; empty if there is nothing to
    /// show.
    pub fn file(&self) -> String {
        self.svg().map_or(String::new(), |svg| standalone(&self.legend(), &svg))
    }

    fn about(&self) -> String {
        let row = |(label, values, _): &(String, Vec<f64>, String)| {
            let parts = self.parts.iter().zip(values).filter(|(_, value)| **value > 0.0);
            let parts: Vec<String> =
                parts.map(|((name, _), value)| format!("{name} {}", self.axis.shown(*value))).collect();
            format!("{label}: {}", parts.join(", "))
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        format!("{}. {}", self.axis.label, rows.join("; "))
    }

    /// The parts that any bar has, each with its colour.
    fn seen(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let seen = |index: usize| self.rows.iter().any(|(_, values, _)| values[index] > 0.0);
        self.parts.iter().enumerate().filter(move |(index, _)| seen(*index)).map(|(_, part)| *part)
    }

    fn legend(&self) -> Vec<Item> {
        let item = |(name, color): (&str, usize)| {
            Item::new(format!("<path class=\"part c{color}\" d=\"M7 0h12v12h-12z\"/>"), name)
        };
        self.seen().map(item).collect()
    }
}

fn part(name: &str, color: usize, text: &str, [from, to]: [f64; 2], top: f64) -> String {
    let width = to - from;
    let mut svg = format!(
        "<path class=\"part c{color}\" d=\"M{from:.1} {top:.1}h{width:.1}v{BAR}h-{width:.1}z\"><title>{name} {text}</title></path>\n"
    );
    if width > wide(text) + 4.0 {
        let (x, y) = (from + width / 2.0, top + BAR / 2.0 + 4.5);
        svg += &format!("<text class=\"on c{color}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n");
    }
    svg
}

/// The number of things in each range of a value.
pub struct Histogram<'a> {
    /// The title.
    pub title: &'a str,
    /// The value.
    pub x: Axis,
    /// How many.
    pub y: Axis,
    /// From, to, how many, and the tooltip.
    pub bars: Vec<(f64, f64, f64, String)>,
    /// The number of its colour.
    pub color: usize,
    /// A marked value, and its name.
    pub mark: (f64, String),
}

impl Histogram<'_> {
    /// The figure; a sentence if there is nothing to show.
    pub fn html(self) -> String {
        let across = self.x.range(self.bars.iter().flat_map(|(from, to, ..)| [*from, *to]), 7, false);
        let y = self.y.including(0.0);
        let up = y.range(self.bars.iter().map(|(_, _, count, _)| *count), 4, true);
        let (Some(across), Some(up)) = (across, up) else {
            return format!("<p class=\"about\">{}: nothing to show.</p>\n", escape(self.title));
        };
        let about = format!("{}. Histogram: {} by {}; {}", self.title, y.label, self.x.label, self.mark.1);
        let mut frame = Frame::new(&about, [&self.x, &y], [across, up], 150.0);
        for (from, to, count, title) in &self.bars {
            let (Some(from), Some(to), Some(top)) = (frame.x(*from), frame.x(*to), frame.y(*count)) else {
                continue;
            };
            let (left, width, bottom) = (from + 0.5, (to - from - 1.0).max(0.8), frame.bottom);
            frame.svg += &format!(
                "<path class=\"part c{}\" d=\"M{left:.1} {bottom}V{top:.1}h{width:.1}V{bottom}z\"><title>{}</title></path>\n",
                self.color,
                escape(title)
            );
        }
        let (mark, right, top, bottom) = (frame.x(self.mark.0), frame.right, frame.top, frame.bottom);
        if let Some(at) = mark {
            frame.svg += &format!("<path class=\"mean\" d=\"M{at:.1} {top}V{bottom}\"/>");
        }
        frame.svg +=
            &format!("<text class=\"axis end\" x=\"{right:.1}\" y=\"14\">{}</text>\n", escape(&self.mark.1));
        frame.figure(self.title, &[])
    }
}
