//! `nvlab log`: logs and segments of recoverable memory.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The files of a log.
#[derive(Args)]
pub struct LogFiles {
    /// The log; the large part of a hybrid one
    pub file: PathBuf,
    /// The small part of a hybrid log
    #[arg(long, value_name = "FILE")]
    pub small: Option<PathBuf>,
}

/// The files of a log, or a segment.
#[derive(Args)]
pub struct FoundFiles {
    /// A log, or a segment with a heap
    pub file: PathBuf,
    /// The small part of a hybrid log, whose large part is the other file
    #[arg(long, value_name = "FILE")]
    pub small: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum LogVerb {
    /// Count what is in it
    Stat {
        #[command(flatten)]
        log: FoundFiles,
    },
    /// List its records and their ranges
    Dump {
        #[command(flatten)]
        log: LogFiles,
        /// Show the first N bytes of each range
        #[arg(long, value_name = "N", default_value_t = 16)]
        bytes: usize,
    },
    /// Check it; status 1 if it is damaged
    Check {
        #[command(flatten)]
        log: FoundFiles,
    },
    /// Apply it to its segments and empty it, as the program that uses it does when it opens it
    Recover {
        #[command(flatten)]
        log: LogFiles,
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
        #[command(flatten)]
        log: LogFiles,
    },
}

/// Two folders, as `OLD=NEW`.
fn moved(text: &str) -> Result<(PathBuf, PathBuf), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.into(), new.into())),
        _ => Err("two folders are expected, OLD=NEW".into()),
    }
}
