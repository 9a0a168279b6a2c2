//! What was read of a trace, and what was skipped.

use crate::format::Format;
use std::fmt;

/// What was read, and what was skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// The format that was given or detected.
    pub format: Option<Format>,
    /// `gzip` or `zstd`, if it was compressed.
    pub compression: Option<&'static str>,
    /// Lines or rows read; 0 for a column file.
    pub lines: u64,
    /// Requests that the trace has now.
    pub requests: u64,
    /// Requests of volumes that were not selected.
    pub other_volumes: u64,
    /// Reads, writes and trims of 0 bytes.
    pub without_bytes: u64,
    /// Lines that are not requests: other blkparse actions, opening a file, summaries.
    pub other_lines: u64,
    /// blkparse requests without data (RWBS `N`): write zeroes and passed-through commands. Whether they discard
    /// contents depends on the command, which the text does not include.
    pub without_data: u64,
    /// Requests listed after a later one; they were sorted.
    pub reordered: u64,
    /// Trims of more than 2 GiB, split into pieces.
    pub trims_cut: u64,
    /// Lines that fit no request, left out as `skip_bad` allows.
    pub bad_lines: u64,
    /// The last line was cut off, and was left out.
    pub ends_cut: bool,
    /// Requests whose completion was recorded as an event of its own, and others of such a recording.
    pub answered: u64,
    /// Those whose completion was not recorded.
    pub unanswered: u64,
    /// What the columns of a table were taken to be, and how that is known.
    pub columns: Option<String>,
}

impl ReadReport {
    /// Adds the counts of a part.
    pub(crate) fn add(&mut self, part: &ReadReport) {
        for (count, added) in [
            (&mut self.other_volumes, part.other_volumes),
            (&mut self.without_bytes, part.without_bytes),
            (&mut self.other_lines, part.other_lines),
            (&mut self.without_data, part.without_data),
            (&mut self.reordered, part.reordered),
            (&mut self.trims_cut, part.trims_cut),
        ] {
            *count += added;
        }
    }

    /// ` (12 left out: other volumes; ...)`, or nothing.
    pub(crate) fn left_out(&self) -> String {
        let parts: Vec<String> = [
            (self.other_volumes, "of other volumes"),
            (self.without_bytes, "of 0 bytes"),
            (self.without_data, "without data (RWBS N: write zeroes or commands)"),
            (self.bad_lines, "bad (skip-bad)"),
            (u64::from(self.ends_cut), "cut off at the end"),
            (self.other_lines, "without a request"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if parts.is_empty() { String::new() } else { format!(" (left out: {})", parts.join(", ")) }
    }
}

impl fmt::Display for ReadReport {
    /// One line: `msr, gzip: 1000 requests from 1002 lines (left out: 2 of 0 bytes); 5 out of order, sorted`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.format.map_or("trace", Format::name))?;
        if let Some(compression) = self.compression {
            write!(f, ", {compression}")?;
        }
        write!(f, ": {} requests", self.requests)?;
        if self.lines > 0 {
            let of = if self.format.is_some_and(Format::is_text) { "lines" } else { "rows" };
            write!(f, " from {} {of}", self.lines)?;
        }
        f.write_str(&self.left_out())?;
        if self.reordered > 0 {
            write!(f, "; {} out of order, sorted", self.reordered)?;
        }
        if self.trims_cut > 0 {
            write!(f, "; {} trims over 2 GiB split", self.trims_cut)?;
        }
        match (self.answered, self.unanswered) {
            (0, _) => {}
            (_, 0) => f.write_str("; response times from completions")?,
            (answered, missing) => write!(f, "; {answered} completions, {missing} missing")?,
        }
        if let Some(columns) = &self.columns {
            write!(f, "; {columns}")?;
        }
        Ok(())
    }
}
