//! What all plots share: size, axes with grid and ticks, markers, the figure around them.

use super::axis::{Axis, Range};
use super::{COLORS, escape};

/// Width of every plot, in the units of its drawing; style sheet and reader's window scale it.
pub(super) const WIDTH: f64 = 560.0;
/// About the width of a character.
pub(super) const CHARACTER: f64 = 7.8;
const TOP: f64 = 32.0;
/// Names on the axis to the right that are longer than this are cut when they are slanted.
const NAME_MAX: usize = 24;

/// The width of a text, roughly.
pub(super) fn wide(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// A drawing with two axes.
pub(super) struct Frame {
    x: Range,
    y: Range,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub svg: String,
}

impl Frame {
    /// Draws axes and grid. `about` is the text alternative; `height` is that of the area between the axes.
    pub fn new(about: &str, [x, y]: [&Axis; 2], [across, up]: [Range; 2], height: f64) -> Frame {
        let widest = |range: &Range| range.ticks.iter().map(|(_, text)| wide(text)).fold(0.0, f64::max);
        let half = |tick: Option<&(f64, String)>| tick.map_or(0.0, |(_, text)| wide(text) / 2.0);
        let left = (widest(&up) + 12.0).max(half(across.ticks.first()).min(60.0));
        let right = WIDTH - half(across.ticks.last()).clamp(12.0, 60.0);
        let slanted =
            x.is_names() && widest(&across) + 8.0 > (right - left) / across.ticks.len().max(1) as f64;
        let (top, bottom) = (TOP, TOP + height);
        let below =
            if slanted { 24.0 + widest(&across).min(NAME_MAX as f64 * CHARACTER) * 0.46 } else { 24.0 };
        let mut frame = Frame { x: across, y: up, left, right, top, bottom, svg: String::new() };
        frame.svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"group\" aria-label=\"{}\">\n\
             <text class=\"axis start\" x=\"2\" y=\"14\">{}</text>\n",
            bottom + below + 22.0,
            escape(about),
            escape(&y.label)
        );
        frame.grid(slanted);
        let middle = (left + right) / 2.0;
        frame.svg += &format!(
            "<text class=\"axis\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>\n",
            bottom + below + 16.0,
            escape(&x.label)
        );
        frame
    }

    fn grid(&mut self, slanted: bool) {
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        let mut svg = String::new();
        for (value, text) in &self.y.ticks {
            let Some(at) = self.y(*value) else { continue };
            svg += &format!("<path class=\"grid\" d=\"M{left:.1} {at:.1}H{right:.1}\"/>");
            let (x, y) = (left - 7.0, at + 4.5);
            svg += &format!("<text class=\"tick end\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escape(text));
        }
        let mut free = f64::NEG_INFINITY;
        for (value, text) in &self.x.ticks {
            let Some(at) = self.x(*value) else { continue };
            let half = wide(text) / 2.0;
            if !slanted && at - half < free {
                continue;
            }
            free = at + half + 6.0;
            svg += &format!("<path class=\"grid\" d=\"M{at:.1} {top}V{:.1}\"/>", bottom + 5.0);
            if slanted {
                let y = bottom + 16.0;
                let text: String = text.chars().take(NAME_MAX).collect();
                let place = format!("transform=\"translate({:.1} {y:.1}) rotate(-30)\"", at + 6.0);
                svg += &format!("<text class=\"tick end\" {place}>{}</text>\n", escape(&text));
            } else {
                let y = bottom + 20.0;
                svg += &format!("<text class=\"tick\" x=\"{at:.1}\" y=\"{y:.1}\">{}</text>\n", escape(text));
            }
        }
        svg += &format!("<path class=\"frame\" d=\"M{left:.1} {top}V{bottom}H{right:.1}\"/>\n");
        self.svg += &svg;
    }

    /// Where a value lies on the axis to the right.
    pub fn x(&self, value: f64) -> Option<f64> {
        Some(self.left + self.x.share(value)? * (self.right - self.left))
    }

    /// Where a value lies on the axis upwards.
    pub fn y(&self, value: f64) -> Option<f64> {
        Some(self.bottom - self.y.share(value)? * (self.bottom - self.top))
    }

    /// The drawing as a figure.
    pub fn figure(self, title: &str, legend: &str) -> String {
        figure(title, legend, &(self.svg + "</svg>"))
    }
}

/// A figure; its legend is a list of HTML items.
pub(super) fn figure(title: &str, legend: &str, svg: &str) -> String {
    let caption = if title.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>\n", escape(title))
    };
    let legend =
        if legend.is_empty() { String::new() } else { format!("<ul class=\"legend\">{legend}</ul>\n") };
    format!("<figure>{caption}{legend}<div class=\"scroll\" tabindex=\"0\">{svg}</div></figure>\n")
}

/// An item of a legend: a small drawing, then a name.
pub(super) fn key(drawing: &str, name: &str) -> String {
    format!(
        "<li><svg class=\"key\" viewBox=\"0 0 26 12\" aria-hidden=\"true\">{drawing}</svg>{}</li>\n",
        escape(name)
    )
}

/// A marker whose shape and colour follow from a number; `class` is added to its own. One with a title can be reached with the
/// keyboard unless it is only there to be pointed at (`hit`); its title is then shown above the plot.
pub(super) fn marker(number: usize, class: &str, x: f64, y: f64, title: &str) -> String {
    let shape = match number % 5 {
        0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
        1 => "m-3.6 -3.6h7.2v7.2h-7.2z",
        2 => "m0 -4.8l4.6 8h-9.2z",
        3 => "m0 -5l5 5l-5 5l-5 -5z",
        _ => "m0 4.8l4.6 -8h-9.2z",
    };
    let (color, title) = (number % COLORS, escape(title));
    let path = format!("<path class=\"{class} c{color}\" d=\"M{x:.1} {y:.1}{shape}\"");
    match (title.is_empty(), class) {
        (true, _) => path + "/>",
        (false, "hit") => format!("{path}><title>{title}</title></path>"),
        (false, _) => format!(
            "{path} tabindex=\"0\" role=\"img\"><title>{title}</title></path><text class=\"tip end\" x=\"{:.0}\" y=\"28\" \
             aria-hidden=\"true\">{title}</text>",
            WIDTH - 4.0
        ),
    }
}
