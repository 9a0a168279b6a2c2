//! `nvlab log`: logs and segments of recoverable memory.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum LogVerb {
    /// Count what is in it
    Stat {
        /// A log, or a segment with a heap
        file: PathBuf,
    },
    /// List its records and their ranges
    Dump {
        /// The log
        file: PathBuf,
        /// Show the first N bytes of each range
        #[arg(long, value_name = "N", default_value_t = 16)]
        bytes: usize,
    },
    /// Check it; status 1 if it is damaged
    Check {
        /// A log, or a segment with a heap
        file: PathBuf,
    },
    /// Apply it to its segments and empty it, as the program that uses it does when it opens it
    Recover {
        /// The log
        file: PathBuf,
        /// Segments whose names are no absolute paths are in this folder [default: that of the log]
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
        /// Segments that were in folder OLD are in NEW: the log was copied together with them. Repeatable; then every segment of
        /// the log must be in an OLD
        #[arg(long, value_name = "OLD=NEW", value_parser = moved)]
        relocate: Vec<(PathBuf, PathBuf)>,
    },
    /// Keep of a damaged log what is before the damage, and say what is lost; the log as it was stays in FILE.damaged
    Salvage {
        /// The log
        file: PathBuf,
    },
}

/// Two folders, as `OLD=NEW`.
fn moved(text: &str) -> Result<(PathBuf, PathBuf), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.into(), new.into())),
        _ => Err("two folders are expected, OLD=NEW".into()),
    }
}
