//! How a trace is read.

use crate::format::Format;
use crate::table::TableSpec;

/// What to read of a trace, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; `None`: told from name and contents.
    pub format: Option<Format>,
    /// The volumes to keep, by name; empty for all.
    pub volumes: Vec<String>,
    /// blkparse only: the action to keep. `D`, issued to the driver, is what a device sees.
    pub action: u8,
    /// Lines that fit no request are left out, up to this many; the next is an error.
    pub skip_bad: u64,
    /// Stop after this many lines or a little later: enough for a look at the beginning; `None`: read all.
    pub lines_max: Option<u64>,
    /// How the columns of a text table are to be read.
    pub table: TableSpec,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            volumes: Vec::new(),
            action: b'D',
            skip_bad: 0,
            lines_max: None,
            table: TableSpec::default(),
        }
    }
}
