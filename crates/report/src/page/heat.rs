//! A map of values by row and column, as the wear of blocks by die.

use super::escape;
use super::plot::{WIDTH, figure, wide};

/// Number of colours, from the smallest to the largest value; classes `h0` to `h9`.
const LEVELS: usize = 10;
/// Maximum cells in a line; longer rows take several lines, as far as [`LINES_MAX`] allows.
const COLUMNS_MAX: usize = 256;
/// Maximum lines of a map.
const LINES_MAX: usize = 256;
const RIGHT: f64 = 550.0;
const TOP: f64 = 34.0;

/// A map of values; all rows are equally long.
pub struct Heat<'a> {
    /// The title.
    pub title: &'a str,
    /// What a row is: `die`. They are numbered.
    pub row: &'a str,
    /// What a value in it is: `block`. They are numbered.
    pub column: &'a str,
    /// What is counted: `erases`.
    pub unit: &'a str,
    /// The values, row by row.
    pub values: &'a [u32],
    /// How many rows there are.
    pub rows: usize,
    /// The values of the first and the last colour.
    pub range: [u32; 2],
}

impl Heat<'_> {
    /// The figure; empty if there are no values. A cell shows the largest of the values that share it.
    pub fn html(&self) -> String {
        let long = self.values.len() / self.rows.max(1);
        if long == 0 {
            return String::new();
        }
        let lines = long.div_ceil(COLUMNS_MAX).min((LINES_MAX / self.rows).max(1));
        let line = long.div_ceil(lines);
        let shared = line.div_ceil(COLUMNS_MAX);
        let (columns, all) = (line.div_ceil(shared), (self.rows * lines) as f64);
        let tall = (if self.rows <= 8 { 20.0 } else { 9.0 } / lines as f64).max(3.0).min(600.0 / all);
        let (left, bottom) = (wide(&format!("{} {}", self.row, self.rows)) + 10.0, TOP + tall * all);
        let (width, height) = (RIGHT - left, bottom - TOP);
        let [least, most] = self.range;
        let about = escape(&format!("{}: {least} to {most} {}", self.title, self.unit));
        let svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{about}\">\n{}\
             <svg class=\"heat\" x=\"{left:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             viewBox=\"0 0 {columns} {all}\" preserveAspectRatio=\"none\">\n{}</svg>\n",
            bottom + 40.0,
            self.key(),
            self.cells([long, line, lines, shared])
        );
        let mut svg = svg + &self.row_names(left, tall * lines as f64);
        let step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].into_iter().find(|step| line / step <= 8);
        for value in (0..line).step_by(step.unwrap_or(line)) {
            let x = left + (value as f64 + 0.5) / (columns * shared) as f64 * width;
            svg += &format!("<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{value}</text>\n", bottom + 15.0);
        }
        let mut label = self.column.to_string();
        if lines > 1 {
            label += &format!(" ({line} in a line, {lines} lines for each {})", self.row);
        }
        if shared > 1 {
            label += &format!(", {shared} in a cell: their largest value");
        }
        let (x, y) = (left + width / 2.0, bottom + 33.0);
        svg += &format!("<text class=\"axis\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n</svg>", escape(&label));
        figure(self.title, &[], &svg)
    }

    /// One path for each colour. Given are the values in a row, the values in a line, the lines of a row, and the values
    /// in a cell.
    fn cells(&self, [long, line, lines, shared]: [usize; 4]) -> String {
        let mut paths = vec![String::new(); LEVELS];
        for (row, values) in self.values.chunks(long).take(self.rows).enumerate() {
            for (index, values) in values.chunks(line).enumerate() {
                let cells: Vec<usize> = values.chunks(shared).map(|cell| self.level(cell)).collect();
                let mut from = 0;
                for equal in cells.chunk_by(|a, b| a == b) {
                    let y = (row * lines + index) as f64 + 0.5;
                    paths[equal[0]] += &format!("M{from} {y}h{}", equal.len());
                    from += equal.len();
                }
            }
        }
        let path = |(level, path): (usize, &String)| {
            format!("<path class=\"h{level}\" d=\"{path}\"><title>{}</title></path>\n", self.name(level))
        };
        paths.iter().enumerate().filter(|(_, path)| !path.is_empty()).map(path).collect()
    }

    fn row_names(&self, left: f64, tall: f64) -> String {
        let every = (14.0 / tall).ceil() as usize;
        let name = |row: usize| {
            let (x, y) = (left - 7.0, TOP + (row as f64 + 0.5) * tall + 4.5);
            format!("<text class=\"tick end\" x=\"{x:.1}\" y=\"{y:.1}\">{} {row}</text>\n", escape(self.row))
        };
        (0..self.rows).step_by(every).map(name).collect()
    }

    fn level(&self, cell: &[u32]) -> usize {
        let [least, most] = self.range;
        let value = cell.iter().copied().max().unwrap_or(least).clamp(least, most);
        // The nearest of the colours: the last one is that of the largest value.
        let (over, span) = ((value - least) as usize, (most - least).max(1) as usize);
        (over * (LEVELS - 1) * 2 + span) / (span * 2)
    }

    /// The values that a colour stands for.
    fn name(&self, level: usize) -> String {
        let [least, most] = self.range;
        let span = (most - least).max(1) as usize;
        let first = |level: usize| ((2 * level).saturating_sub(1) * span).div_ceil(2 * (LEVELS - 1));
        let (from, to) = (least as usize + first(level), least as usize + first(level + 1) - 1);
        match to.min(most as usize) {
            to if to > from => format!("{from} to {to} {}", self.unit),
            _ => format!("{from} {}", self.unit),
        }
    }

    /// The colours, with the values of the first and the last.
    fn key(&self) -> String {
        let [least, most] = self.range;
        let text = format!("{most} {}", self.unit);
        let (to, from) = (RIGHT - wide(&text) - 8.0, RIGHT - wide(&text) - 8.0 - 16.0 * LEVELS as f64);
        let mut svg = format!("<text class=\"tick end\" x=\"{:.1}\" y=\"15\">{least}</text>", from - 7.0);
        for level in 0..LEVELS {
            let x = from + 16.0 * level as f64;
            svg += &format!(
                "<path class=\"h{level} key\" d=\"M{x:.1} 10.5h16\"><title>{}</title></path>",
                self.name(level)
            );
        }
        svg + &format!("<text class=\"tick start\" x=\"{:.1}\" y=\"15\">{}</text>\n", to + 7.0, escape(&text))
    }
}
