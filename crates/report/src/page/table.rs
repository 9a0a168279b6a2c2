//! Tables.

use super::escape;

/// A table. Cells are HTML already; the first columns hold text, the others numbers, which are right-aligned.
pub struct Table {
    words: usize,
    html: String,
}

impl Table {
    /// An empty table. Caption and heads are escaped here; the first `words` columns hold text.
    pub fn new(caption: &str, words: usize, heads: &[&str]) -> Table {
        let mut html = String::from("<div class=\"scroll\" tabindex=\"0\"><table>\n");
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

    /// Appends a row of HTML cells.
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

    /// The table as HTML.
    pub fn html(self) -> String {
        format!("{}</tbody></table></div>\n", self.html)
    }
}
