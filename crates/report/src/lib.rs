//! Results for users and for programs: text, comparison tables, assertions, and one HTML file.
//!
//! 1. A report only reads [`nvlab_run::result::RunResult`]: nothing is simulated here, and equal results give equal bytes.
//! 2. No number mixes simulated time with the time of this computer.
//! 3. Nothing is conveyed by colour alone.
//!
//! | module | what |
//! |---|---|
//! | [`human`] | one run as calm, aligned text |
//! | [`compare`] | several designs side by side: human, md, csv, json, jsonl |
//! | `document` | what programs read, and its JSON Schema |
//! | [`assertion`] | `waf < 2.5`, checked against a run |
//! | [`mod@html`] | results as one self-contained HTML file |
//! | `departure` | whether a run stayed at the write amplification to which its device was prepared |
//! | `warnings` | warnings that no figure shows |
//! | `names` | names of designs side by side: the common part is stated once |
//! | `notes` | caveats to figures |
//! | `timeline` | one run over time, as Chrome's trace events |
//! | [`page`] | the kit that every HTML page is built from: frame, tables, plots |

pub mod assertion;
pub mod compare;
mod departure;
mod document;
pub mod html;
pub mod human;
mod names;
mod notes;
pub mod page;
mod reasons;
mod timeline;
mod times;
mod warnings;

pub use assertion::{Assertion, Verdict};
pub use compare::{compare_parquet, compare_text};
pub use document::{Assertion as AssertionDocument, RunDocument, RunsDocument, schema};
pub use html::html;
pub use human::run_text;
pub use names::NameStyle;
pub use notes::notes;
pub use reasons::reasons;
pub use timeline::timeline;
pub use warnings::warnings;

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for colours may be used.
    pub color: bool,
    /// Columns of the terminal.
    pub width: usize,
}

impl Default for Style {
    /// Without colour, 100 columns.
    fn default() -> Style {
        Style { color: false, width: 100 }
    }
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A table for users.
    Human,
    /// A Markdown table.
    Markdown,
    /// Comma-separated values in base units, the unit in the name of the column.
    Csv,
    /// One JSON document.
    Json,
    /// One JSON document for each design, each on a line.
    JsonLines,
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        Ok(match text {
            "human" => Format::Human,
            "md" => Format::Markdown,
            "csv" => Format::Csv,
            "json" => Format::Json,
            "jsonl" => Format::JsonLines,
            _ => return Err(format!("there is no format `{text}`; formats: human, md, csv, json, jsonl")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names() {
        assert_eq!("md".parse(), Ok(Format::Markdown));
        assert!("xml".parse::<Format>().unwrap_err().contains("human, md, csv"));
    }
}
