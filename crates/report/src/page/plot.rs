//! Common to all plots: size, axes with grid and ticks, markers, the figure around them.

use super::axis::{Axis, Range};
use super::{COLORS, STYLE, escape};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

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

    /// The position of a value on the horizontal axis.
    pub fn x(&self, value: f64) -> Option<f64> {
        Some(self.left + self.x.share(value)? * (self.right - self.left))
    }

    /// The position of a value on the vertical axis.
    pub fn y(&self, value: f64) -> Option<f64> {
        Some(self.bottom - self.y.share(value)? * (self.bottom - self.top))
    }

    /// The drawing as a figure.
    pub fn figure(self, title: &str, legend: &[Item]) -> String {
        figure(title, legend, &(self.svg + "</svg>"))
    }
}

/// An item of a legend.
pub(super) struct Item {
    /// A small drawing, 26 by 12.
    pub drawing: String,
    pub name: String,
    /// The number of the group of the plot that it shows or hides.
    pub switches: Option<usize>,
}

impl Item {
    /// An item that only explains.
    pub fn new(drawing: String, name: &str) -> Item {
        Item { drawing, name: name.to_string(), switches: None }
    }

    fn html(&self) -> String {
        let drawing =
            format!("<svg class=\"key\" viewBox=\"0 0 26 12\" aria-hidden=\"true\">{}</svg>", self.drawing);
        let name = escape(&self.name);
        match self.switches {
            None => format!("<li>{drawing}{name}</li>\n"),
            Some(number) => format!(
                "<li><label><input type=\"checkbox\" class=\"s{number}\" checked>{drawing}{name}</label></li>\n"
            ),
        }
    }
}

/// A figure: title, legend, drawing, and the drawing as a file to save.
pub(super) fn figure(title: &str, legend: &[Item], svg: &str) -> String {
    let file = STANDARD.encode(standalone(legend, svg));
    let name: String =
        title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let name = name.trim_matches('-');
    let save = format!(
        "<a class=\"save\" download=\"{}.svg\" href=\"data:image/svg+xml;base64,{file}\">save</a>",
        if name.is_empty() { "plot" } else { name }
    );
    let caption = format!("<figcaption>{} {save}</figcaption>\n", escape(title));
    let items: String = legend.iter().map(Item::html).collect();
    let legend =
        if items.is_empty() { String::new() } else { format!("<ul class=\"legend\">{items}</ul>\n") };
    format!("<figure>{caption}{legend}<div class=\"scroll\" tabindex=\"0\">{svg}</div></figure>\n")
}

/// Height of a line of the legend in a file.
const LEGEND_ROW: f64 = 20.0;

/// A plot as a file of its own, for browsers: an SVG with its style, and the legend below.
pub(super) fn standalone(legend: &[Item], svg: &str) -> String {
    let (head, body) = svg.split_once('>').unwrap_or((svg, ""));
    let tall =
        head.split("viewBox=\"").nth(1).and_then(|rest| rest.split(['"', ' ']).nth(3)?.parse::<f64>().ok());
    let tall = tall.unwrap_or(WIDTH);
    let mut drawn = String::new();
    for (line, item) in legend.iter().enumerate() {
        let top = tall + 10.0 + LEGEND_ROW * line as f64;
        drawn += &format!("<g transform=\"translate(14 {top:.0})\">{}</g>", item.drawing);
        drawn += &format!("<text x=\"48\" y=\"{:.1}\">{}</text>\n", top + 11.0, escape(&item.name));
    }
    let about =
        head.split("aria-label=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let height = if legend.is_empty() { tall } else { tall + 16.0 + LEGEND_ROW * legend.len() as f64 };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"{about}\">\n<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"var(--page)\"/>\n\
         {}{drawn}</svg>\n",
        body.trim_end().strip_suffix("</svg>").unwrap_or(body)
    )
}

/// A marker of a shape and a colour, each by its number; `class` is added to its own. A marker with a title can be
/// reached with the keyboard unless it only serves as a pointer target (`hit`); its title is then shown above the
/// plot.
pub(super) fn marker((shape, color): (usize, usize), class: &str, x: f64, y: f64, title: &str) -> String {
    let shape = match shape % 5 {
        0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
        1 => "m-3.6 -3.6h7.2v7.2h-7.2z",
        2 => "m0 -4.8l4.6 8h-9.2z",
        3 => "m0 -5l5 5l-5 5l-5 -5z",
        _ => "m0 4.8l4.6 -8h-9.2z",
    };
    let (color, title) = (color % COLORS, escape(title));
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
