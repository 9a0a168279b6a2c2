//! The kit for every page that nvlab writes: the report, a reproduction, a sweep. (The live page of a device has a
//! script and does not use it.)
//!
//! 1. A page is one file without scripts and without network access. Its Content-Security-Policy allows nothing but
//!    its one style sheet, named by SHA-256; so there are no `style` attributes, and plots are SVG with classes.
//! 2. Every text from outside passes through [`escape`]. Parameters that take HTML are documented as such; titles,
//!    headings, labels and names are plain text and are escaped here.
//! 3. Every plot has a text alternative. Lines differ in marker or dash as well as in colour; the colours are those
//!    of Okabe and Ito, in a light and a dark variant.
//! 4. The same input produces the same bytes.
//!
//! ```
//! use nvlab_report::page::{Axis, Curves, Dot, Page, Scatter, Series, Table, escape};
//! use nvlab_run::number;
//!
//! let mut page = Page::new("Spare space and queue depth");
//! page.lead("<p class=\"about\">nvlab 0.1, seed 1</p>\n");
//!
//! let mut table = Table::new("", 1, &["design", "IOPS"]);
//! table.row(&[escape("ssd-tlc <spare 7 %>"), number::count(81_000)]);
//! page.section("points", "Points", "Each row is one run.", &table.html());
//!
//! // Lines over an axis of numbers, of powers, or of names (the x of a point is then the index of its name).
//! let iops = Axis::log("queue depth").ticks([1.0, 8.0, 64.0].map(|depth| (depth, depth.to_string())));
//! let lines = vec![
//!     Series::new("spare 7 %", vec![(1.0, 9e3), (8.0, 40e3), (64.0, 81e3)]),
//!     Series::new("theory", vec![(1.0, 9e3), (64.0, 80e3)]),
//! ];
//! let plot = Curves::new("Throughput", iops, Axis::linear("IOPS"), lines).html();
//! page.section("curves", "Curves", "", &plot);
//!
//! // Two objectives. `front` marks the points that no other point beats in both.
//! let dots = vec![Dot::new("7 %", 1.10, 3.1).front(true), Dot::new("28 %", 1.40, 1.6).front(true)];
//! let cost = Axis::linear("USD/GiB").text(|usd| format!("{usd:.2}"));
//! let plot = Scatter::new("Cost and wear", cost, Axis::linear("write amplification"), dots);
//! page.section("front", "Trade-off", "", &plot.html());
//!
//! assert!(page.html().contains("ssd-tlc &lt;spare 7 %&gt;"));
//! ```
//!
//! | module | what |
//! |---|---|
//! | this one | the frame of a page, sections, disclosures |
//! | `escape`, `table` | text and tables as HTML |
//! | `axis` | [`Axis`]: range, round tick values, texts with units |
//! | `plot` | the frame of a plot: size, grid, labels, legend |
//! | `curves`, `scatter`, `bars`, `heat` | the kinds of plots |

mod axis;
mod bars;
mod curves;
mod escape;
mod heat;
mod plot;
mod scatter;
mod table;

pub use axis::Axis;
pub use bars::{Bars, Histogram, MUTED};
pub use curves::{Curves, Series};
pub use escape::escape;
pub use heat::Heat;
pub use scatter::{Dot, Scatter};
pub use table::Table;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");

/// Number of colours; class names `c0` to `c6`. A page with more items than that reuses them.
pub const COLORS: usize = 7;

/// A page under construction.
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<(String, String)>,
    body: String,
}

impl Page {
    /// An empty page; the title is also its heading.
    pub fn new(title: &str) -> Page {
        let (lead, body) = (String::new(), String::new());
        Page { title: title.to_string(), lead, sections: Vec::new(), body }
    }

    /// Appends HTML to the head of the page, below the title and above the links to the sections.
    pub fn lead(&mut self, html: &str) {
        self.lead += html;
    }

    /// Appends a section; `about` is a line of HTML under the heading, or empty. Pages with several sections link to
    /// them at the top.
    pub fn section(&mut self, id: &str, heading: &str, about: &str, html: &str) {
        let about =
            if about.is_empty() { String::new() } else { format!("<p class=\"about\">{about}</p>\n") };
        let (id, heading) = (escape(id), escape(heading));
        self.body += &format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{about}{html}</section>\n");
        self.sections.push((id, heading));
    }

    /// The whole page.
    pub fn html(&self) -> String {
        let link = |(id, heading): &(String, String)| format!("<a href=\"#{id}\">{heading}</a>\n");
        let links: String = self.sections.iter().map(link).collect();
        let links = if self.sections.len() > 1 { format!("<nav>\n{links}</nav>\n") } else { String::new() };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<h1>{title}</h1>\n{lead}{links}</header>\n{body}</main>\n</body>\n</html>\n",
            policy = policy(),
            title = escape(&self.title),
            lead = self.lead,
            body = self.body,
        )
    }
}

/// The resources a page may use: only its own style sheet.
fn policy() -> String {
    format!("default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'", digest(STYLE))
}

/// The notation in a policy for a style sheet or script with exactly this text.
pub fn digest(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// HTML behind a disclosure.
pub fn details(summary: &str, html: &str) -> String {
    format!("<details><summary>{}</summary>\n{html}</details>\n", escape(summary))
}

#[cfg(test)]
mod tests;
