//! Two objectives: a point for each candidate, and the front of those that nothing beats in both.

use super::axis::Axis;
use super::plot::{Frame, Item, marker, wide};
use super::{Table, details, escape};

/// Points by two objectives.
pub struct Scatter {
    title: String,
    x: Axis,
    y: Axis,
    dots: Vec<Dot>,
    less: [bool; 2],
}

/// A candidate.
pub struct Dot {
    name: String,
    x: f64,
    y: f64,
    front: bool,
}

impl Dot {
    /// A candidate that is not on the front.
    pub fn new(name: &str, x: f64, y: f64) -> Dot {
        Dot { name: name.to_string(), x, y, front: false }
    }

    /// True if no other candidate is better in both objectives.
    pub fn front(mut self, front: bool) -> Dot {
        self.front = front;
        self
    }
}

impl Scatter {
    /// More is better in both, unless `less_is_better` is called.
    pub fn new(title: &str, x: Axis, y: Axis, dots: Vec<Dot>) -> Scatter {
        Scatter { title: title.to_string(), x, y, dots, less: [false; 2] }
    }

    /// Marks the axes on which less is better.
    pub fn less_is_better(mut self, x: bool, y: bool) -> Scatter {
        self.less = [x, y];
        for (axis, less) in [(&mut self.x, x), (&mut self.y, y)] {
            axis.label += if less { " (less is better)" } else { " (more is better)" };
        }
        self
    }

    /// The figure and, behind a disclosure, its points as a table, those on the front first.
    pub fn html_and_table(&self) -> String {
        let mut dots: Vec<&Dot> = self.dots.iter().collect();
        dots.sort_by(|a, b| (b.front, a.x).partial_cmp(&(a.front, b.x)).expect("values are numbers"));
        let mut table = Table::new(&self.title, 2, &["point", "front", &self.x.label, &self.y.label]);
        for dot in dots {
            let front = if dot.front { "★" } else { "" };
            let places = [self.x.shown(dot.x), self.y.shown(dot.y)].map(|text| escape(&text));
            table.row(&[&escape(&dot.name), front, &places[0], &places[1]]);
        }
        format!("<div>{}{}</div>\n", self.html(), details("Table", &table.html()))
    }

    /// The figure; a sentence if there is nothing to show. Points on the front carry their names, others as far as there
    /// is room; every point has a tooltip.
    pub fn html(&self) -> String {
        let across = self.x.range(self.dots.iter().map(|dot| dot.x), 6, true);
        let up = self.y.range(self.dots.iter().map(|dot| dot.y), 6, true);
        let (Some(across), Some(up)) = (across, up) else {
            return format!("<p class=\"about\">{}: nothing to show.</p>\n", escape(&self.title));
        };
        let names: Vec<&str> =
            self.dots.iter().filter(|dot| dot.front).map(|dot| dot.name.as_str()).collect();
        let about = format!(
            "{}. Plot of {} points, {} by {}; on the front: {}",
            self.title,
            self.dots.len(),
            self.y.label,
            self.x.label,
            names.join("; ")
        );
        let mut frame = Frame::new(&about, [&self.x, &self.y], [across, up], 330.0);
        let mut placed: Vec<(f64, f64, &Dot)> =
            self.dots.iter().filter_map(|dot| Some((frame.x(dot.x)?, frame.y(dot.y)?, dot))).collect();
        placed.sort_by(|a, b| (b.2.front, a.0).partial_cmp(&(a.2.front, b.0)).expect("places are numbers"));
        frame.svg += &self.front(&placed);
        // Those on the front are drawn last, on top.
        for (x, y, dot) in placed.iter().rev() {
            let title = format!("{}: {}, {}", dot.name, self.x.shown(dot.x), self.y.shown(dot.y));
            let class = if dot.front { "dot" } else { "off" };
            frame.svg += &marker((0, 0), class, *x, *y, &title);
        }
        let labels = labels(&frame, &placed);
        frame.svg += &labels;
        let line = format!("<path class=\"line c0\" d=\"M0 6h26\"/>{}", marker((0, 0), "dot", 13.0, 6.0, ""));
        let mut legend = vec![Item::new(line, "front: no point is better in both")];
        if placed.iter().any(|(.., dot)| !dot.front) {
            legend.push(Item::new(marker((0, 0), "off", 13.0, 6.0, ""), "others"));
        }
        frame.figure(&self.title, &legend)
    }

    /// The boundary of the region dominated by the front, as steps from left to right.
    fn front(&self, placed: &[(f64, f64, &Dot)]) -> String {
        let mut path = String::new();
        for (x, y, _) in placed.iter().filter(|(.., dot)| dot.front) {
            path += &match (path.is_empty(), self.less[0]) {
                (true, _) => format!("M{x:.1} {y:.1}"),
                (_, true) => format!("H{x:.1}V{y:.1}"),
                (_, false) => format!("V{y:.1}H{x:.1}"),
            };
        }
        format!("<path class=\"line c0\" d=\"{path}\"/>\n")
    }
}

/// The names of points, each at the first free position beside it: a name covers neither another name nor a point.
fn labels(frame: &Frame, placed: &[(f64, f64, &Dot)]) -> String {
    const HEIGHT: f64 = 15.0;
    /// Left, top, right and bottom.
    type Area = [f64; 4];
    let mut taken: Vec<Area> = placed.iter().map(|(x, y, _)| [x - 4.0, y - 4.0, x + 4.0, y + 4.0]).collect();
    let mut svg = String::new();
    for (x, y, dot) in placed {
        let width = wide(&dot.name);
        let (beside, above) = (width / 2.0 + 9.0, HEIGHT / 2.0 + 5.0);
        let around = [
            (beside, -above),
            (beside, 0.0),
            (beside, above),
            (0.0, -above),
            (0.0, above),
            (-beside, -above),
            (-beside, 0.0),
            (-beside, above),
        ];
        let area = |(dx, dy): &(f64, f64)| {
            [x + dx - width / 2.0, y + dy - HEIGHT / 2.0, x + dx + width / 2.0, y + dy + HEIGHT / 2.0]
        };
        let free = |area: &Area| {
            let [left, top, right, bottom] = *area;
            let inside = left >= frame.left
                && right <= frame.right + 10.0
                && top >= frame.top - 10.0
                && bottom <= frame.bottom;
            inside
                && !taken
                    .iter()
                    .any(|other| left < other[2] && other[0] < right && top < other[3] && other[1] < bottom)
        };
        let Some(area) = around.iter().map(area).find(free) else { continue };
        let (class, middle, low) =
            (if dot.front { "label" } else { "tick" }, (area[0] + area[2]) / 2.0, area[3] - 3.5);
        svg += &format!(
            "<text class=\"{class} middle\" x=\"{middle:.1}\" y=\"{low:.1}\">{}</text>\n",
            escape(&dot.name)
        );
        taken.push(area);
    }
    svg
}
