//! Results for people and for other programs: text, comparison tables, assertions, and one HTML file.
//!
//! 1. A report only reads [`RunResult`]: nothing is simulated here, and equal results give equal bytes.
//! 2. No number mixes simulated time with the time of this computer.
//! 3. Nothing is conveyed by colour alone.
//!
//! | module | what |
//! |---|---|
//! | [`human`] | one run as calm, aligned text |
//! | [`compare`] | several designs side by side: human, md, csv, json, jsonl |
//! | [`mod@metric`] | the one table of metrics: names, units, which way is better |
//! | `document` | what programs read, and its JSON Schema |
//! | [`assertion`] | `waf < 2.5`, checked against a run |
//! | [`mod@html`] | results as one self-contained HTML file |
//! | `departure` | whether a run stayed at the write amplification that its device was prepared to |
//! | `warnings` | what a reader must know that no figure shows |
//! | `names` | designs side by side: what all share is said once |
//! | `notes` | what must be known before figures are used |
//! | `timeline` | one run over time, as Chrome's trace events |
//! | [`page`] | the kit that every HTML page is built from: frame, tables, plots |
//! | [`number`] | numbers with units for people; `stats`: mean and 95 % interval |

pub mod assertion;
pub mod compare;
mod departure;
mod document;
pub mod html;
pub mod human;
pub mod metric;
mod names;
mod notes;
pub mod number;
pub mod page;
mod reasons;
pub(crate) mod stats;
mod timeline;
mod times;
mod warnings;

#[cfg(test)]
pub(crate) mod sample;

pub use assertion::{Assertion, Verdict};
pub use compare::{compare_parquet, compare_text};
pub use document::{Assertion as AssertionDocument, RunDocument, RunsDocument, schema};
pub use html::html;
pub use human::run_text;
pub use metric::metric;
pub use names::NameStyle;
pub use notes::notes;
pub use reasons::reasons;
pub use timeline::timeline;
pub use warnings::warnings;

use crate::result::RunResult;

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
    /// A table for people.
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

/// Returns the command that produces the same result again, quoted for a shell.
pub(crate) fn repeat_command(run: &RunResult) -> String {
    let mut words = run.design.name.split(' ');
    let mut command = vec!["nvlab".to_string(), "run".to_string(), quoted(words.next().unwrap_or(""))];
    // `ssd-tlc ftl.spare=12 % path.queue=8`: a word without `=` belongs to the value before it.
    let mut changes: Vec<String> = Vec::new();
    for word in words {
        match changes.last_mut() {
            Some(last) if !word.contains('=') => *last = format!("{last} {word}"),
            _ => changes.push(word.to_string()),
        }
    }
    for change in changes {
        command.extend(["--set".to_string(), quoted(&change)]);
    }
    command.extend(["-w".to_string(), quoted(&run.workload)]);
    command.extend(["--seed".to_string(), run.seed.to_string()]);
    command.extend(["--precondition".to_string(), quoted(&run.precondition.kind)]);
    if let Some(until) = &run.until {
        command.extend(["--until".to_string(), quoted(until)]);
    }
    command.join(" ")
}

/// Quotes a word for a POSIX shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_repeat_is_quoted() {
        let mut run = sample::run("ssd-tlc ftl.spare=12 % path.queue=8", 7);
        run.workload = "zipf theta=0.9 it's".to_string();
        assert_eq!(
            repeat_command(&run),
            "nvlab run ssd-tlc --set 'ftl.spare=12 %' --set path.queue=8 -w 'zipf theta=0.9 it'\\''s' --seed 7 \
             --precondition steady"
        );
    }

    #[test]
    fn formats_have_names() {
        assert_eq!("md".parse(), Ok(Format::Markdown));
        assert!("xml".parse::<Format>().unwrap_err().contains("human, md, csv"));
    }
}
