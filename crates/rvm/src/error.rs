//! The error type of the library: what failed or was refused, and on which log or segment.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why an operation on recoverable memory was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The device under a log or segment failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// Verb and object, such as "read" and the path of the log.
        what: String,
        /// The error of the operating system or the device.
        source: Arc<io::Error>,
    },
    /// An earlier write or force failed, so it is unknown what is durable: the log accepts no work until it is opened
    /// again, which recovers it.
    #[error("the log accepts no work until it is opened again: {0}")]
    Failed(Arc<Error>),
    /// Another program, or another place in this one, has the log open.
    #[error("{} is in use", _0.display())]
    Busy(PathBuf),
    /// The file is not a log, or one of another version.
    #[error("{what} at byte {offset}: {why}")]
    Format {
        /// Name of the log or segment.
        what: String,
        /// The offset, in bytes from its beginning.
        offset: u64,
        /// What was found and what was expected.
        why: String,
    },
    /// An acknowledged record can no longer be read. Nothing has been changed.
    #[error("{what} is damaged at byte {offset}: {why}")]
    Damaged {
        /// Name of the log: of a hybrid one, of the file that is damaged.
        what: String,
        /// The offset, in bytes from its beginning.
        offset: u64,
        /// What does not check.
        why: String,
    },
    /// A transaction does not fit in the log. Nothing has been changed.
    #[error("the transaction needs a record of {needed} B, and the log takes at most {most} B")]
    TooLarge {
        /// Bytes of its record, headers included.
        needed: u64,
        /// Bytes of the largest record that the log takes.
        most: u64,
    },
    /// A range that is not in its region, an option out of its limits, or a call out of order.
    #[error("{0}")]
    Invalid(String),
    /// Memory was changed outside the ranges of the transaction (debug mode).
    #[error("{bytes} B at offset {offset} of {segment} were changed outside every range of the transaction")]
    MissedRange {
        /// Name of the segment.
        segment: String,
        /// The first changed byte, from the beginning of the segment.
        offset: u64,
        /// Number of consecutive changed bytes.
        bytes: u64,
    },
}

impl Error {
    /// Turns an I/O error of `verb`ing `object` into an [`Error::Io`].
    pub fn io(verb: &str, object: &dyn std::fmt::Display) -> impl FnOnce(io::Error) -> Error + use<> {
        let what = format!("{verb} {object}");
        move |source| Error::Io { what, source: Arc::new(source) }
    }
}

/// With [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;
