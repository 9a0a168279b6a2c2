//! Escaping, tables, and what runs are called.

use crate::report::number;
use crate::result::RunResult;
use std::collections::BTreeSet;

/// Text as HTML content or as the value of a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(c),
        }
    }
    escaped
}

/// A JSON document as the content of a script element: still JSON, but without a character that HTML could read.
pub fn script_data(value: &serde_json::Value) -> String {
    let json = value.to_string();
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// A run and what a page calls it.
pub(super) struct Labelled<'a> {
    /// Unique in the page; the design's name if that is enough.
    pub label: String,
    /// Which colour it has.
    pub color: usize,
    pub run: &'a RunResult,
}

/// How many colours there are for runs; more runs than that share them.
pub(super) const COLORS: usize = 7;

impl Labelled<'_> {
    /// A mark in the run's colour and its label, escaped.
    pub fn marked(&self) -> String {
        format!("<span class=\"mark c{}\"></span>{}", self.color, escape(&self.label))
    }
}

/// Runs with unique labels: the design, if need be the seed, if need be a number. Seeds share the colour of their
/// design.
pub(super) fn labelled(results: &[RunResult]) -> Vec<Labelled<'_>> {
    let (mut taken, mut kinds) = (BTreeSet::new(), Vec::new());
    let shared =
        |run: &RunResult| results.iter().filter(|other| other.design.name == run.design.name).count() > 1;
    let label = |run: &RunResult| match shared(run) {
        true => format!("{} · seed {}", run.design.name, run.seed),
        false => run.design.name.clone(),
    };
    results
        .iter()
        .enumerate()
        .map(|(index, run)| {
            let mut label = label(run);
            if !taken.insert(label.clone()) {
                label = format!("{label} · run {}", index + 1);
                taken.insert(label.clone());
            }
            let kind = (&run.design.name, &run.workload);
            let color = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            Labelled { label, color: color % COLORS, run }
        })
        .collect()
}

/// A table. Cells are HTML already; the first column and those in `words` are text, the others numbers.
pub(crate) struct Table {
    words: usize,
    html: String,
}

impl Table {
    /// The heads are escaped here. The first `words` columns hold text.
    pub fn new(caption: &str, words: usize, heads: &[&str]) -> Table {
        let mut html = String::from("<div class=\"scroll\"><table>\n");
        if !caption.is_empty() {
            html += &format!("<caption>{}</caption>\n", escape(caption));
        }
        html += "<thead><tr>";
        for (index, head) in heads.iter().enumerate() {
            let class = if index < words { "" } else { " class=\"n\"" };
            html += &format!("<th scope=\"col\"{class}>{}</th>", escape(head));
        }
        html += "</tr></thead>\n<tbody>\n";
        Table { words, html }
    }

    /// A row of HTML cells.
    pub fn row<S: AsRef<str>>(&mut self, cells: &[S]) {
        self.html += "<tr>";
        for (index, cell) in cells.iter().enumerate() {
            let cell = cell.as_ref();
            self.html += &match index {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                index if index < self.words => format!("<td>{cell}</td>"),
                _ => format!("<td class=\"n\">{cell}</td>"),
            };
        }
        self.html += "</tr>\n";
    }

    /// The whole table.
    pub fn html(self) -> String {
        format!("{}</tbody></table></div>\n", self.html)
    }
}

/// A section with a heading and a line about what is to be seen.
pub(crate) fn section(id: &str, heading: &str, about: &str, content: &str) -> String {
    let about = if about.is_empty() { String::new() } else { format!("<p class=\"about\">{about}</p>\n") };
    format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{about}{content}</section>\n")
}

/// Something behind a disclosure.
pub(crate) fn details(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n{content}</details>\n", escape(summary))
}

/// A value that may be missing.
pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_string())
}

/// Round values for an axis from 0 to at least `max`, about `wanted` of them.
pub(crate) fn ticks(max: f64, wanted: usize) -> Vec<f64> {
    if max <= 0.0 || !max.is_finite() {
        return vec![0.0, 1.0];
    }
    let raw = max / wanted as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= raw * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let count = (max / step - 1e-9).ceil() as usize;
    (0..=count).map(|index| index as f64 * step).collect()
}

/// A value on an axis: as few digits as the step needs.
pub(crate) fn tick_text(value: f64, step: f64) -> String {
    let decimals = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    match decimals {
        0 => number::count(value.round() as u64),
        decimals => format!("{value:.decimals$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_values() {
        assert_eq!(ticks(3.4, 4), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(ticks(0.0, 4), [0.0, 1.0]);
        assert_eq!(ticks(170.0, 5), [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!((tick_text(0.5, 0.5), tick_text(2000.0, 500.0)), ("0.5".into(), "2 000".into()));
        assert_eq!(tick_text(0.25, 0.05), "0.25");
    }

    #[test]
    fn what_html_could_read_is_escaped() {
        assert_eq!(escape("<a href='x' b=\"y\">&"), "&lt;a href=&#39;x&#39; b=&quot;y&quot;&gt;&amp;");
        let value = serde_json::json!({"name": "</script><!--\u{2028}&"});
        let data = script_data(&value);
        assert!(!data.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&data).unwrap(), value);
    }
}
