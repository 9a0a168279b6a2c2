//! The command line of `nvlab log`: logs and segments of recoverable memory.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The files of a log.
#[derive(Args)]
pub struct LogFiles {
    /// Log file; of a hybrid log, the large part
    pub file: PathBuf,
    /// Small part of a hybrid log
    #[arg(long, value_name = "FILE")]
    pub small: Option<PathBuf>,
}

/// The files of a log, or a segment.
#[derive(Args)]
pub struct FoundFiles {
    /// A log, or a segment with a heap
    pub file: PathBuf,
    /// Small part of a hybrid log, whose large part is the file above
    #[arg(long, value_name = "FILE")]
    pub small: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum LogVerb {
    /// Print statistics of a log or segment
    Stat {
        #[command(flatten)]
        log: FoundFiles,
    },
    /// List the records of a log and their ranges
    Dump {
        #[command(flatten)]
        log: LogFiles,
        /// Print the first N bytes of each range
        #[arg(long, value_name = "N", default_value_t = 16)]
        bytes: usize,
    },
    /// Check a log or segment; exits with status 1 if it is damaged
    Check {
        #[command(flatten)]
        log: FoundFiles,
    },
    /// Apply a log to its segments and empty it, as the program that uses it does on opening it
    Recover {
        #[command(flatten)]
        log: LogFiles,
        /// Folder of the segments with relative names [default: the folder of the log]
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
        /// Look for the segments of folder OLD in NEW, for a log copied together with them. Repeatable; each segment
        /// of the log must be in some OLD
        #[arg(long, value_name = "OLD=NEW", value_parser = moved)]
        relocate: Vec<(PathBuf, PathBuf)>,
    },
    /// Truncate a damaged log at the damage and report what is lost; the original is kept as FILE.damaged
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
