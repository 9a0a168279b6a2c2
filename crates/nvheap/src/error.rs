//! What can go wrong.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why an operation on a heap was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another thread has what this transaction needs. [`crate::Heap::transaction`] retries; programs pass it on with `?`.
    #[error("another transaction holds the object")]
    Conflict,
    /// The program gave the transaction up; nothing of it has happened.
    #[error("the transaction was aborted: {0}")]
    Aborted(Arc<dyn std::error::Error + Send + Sync>),
    /// The object is borrowed for a change by this transaction already.
    #[error("the object is borrowed for a change by this transaction already")]
    Borrowed,
    /// The heap has no room for this many bytes and may not grow.
    #[error("no room for {bytes} B: the heap may not grow beyond {bytes_max} B")]
    Full {
        /// Bytes of the object.
        bytes: u64,
        /// The size the heap was created for.
        bytes_max: u64,
    },
    /// More changes than a record holds: some 32 GiB. Nothing has been changed.
    #[error("the transaction needs a record of {needed} B, and one has at most {most} B")]
    TooLarge {
        /// Bytes of the record.
        needed: u64,
        /// Bytes of the largest record.
        most: u64,
    },
    /// More references to one object than its header counts.
    #[error("an object has at most {most} references of a kind")]
    TooManyReferences {
        /// The largest count.
        most: u64,
    },
    /// More threads than the heap has logs.
    #[error("{logs} threads use the heap already, as many as it has logs")]
    TooManyThreads {
        /// Logs of the heap.
        logs: u32,
    },
    /// The file or the memory behind it failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation and its object.
        what: String,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// An earlier write failed, so nobody knows what is durable: the heap takes no more work until it is opened again.
    #[error("the heap takes no more work until it is opened again: {0}")]
    Failed(Arc<Error>),
    /// Something has the heap open: another program, an inspection, or this program elsewhere. What a program changes it brings home
    /// in place, and the order of its changes is known to its own memory only: nobody else can read them without its help.
    #[error("{} is in use; a program that has the heap open can make a copy of one moment for others (`Heap::backup_to`)", _0.display())]
    Busy(PathBuf),
    /// This thread runs a transaction on another heap of this brand. To use two heaps at once, give each a brand of its own.
    #[error("a transaction on another heap of brand {0} is running")]
    BrandInUse(&'static str),
    /// It is no heap, or one of another version of the format.
    #[error("{path} is no heap that this program can open: {why}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is there and what was expected.
        why: String,
    },
    /// The heap holds objects of other types than the program's.
    #[error("the heap holds other types than the program: {why}")]
    Schema {
        /// The first type that differs.
        why: String,
    },
    /// The heap is damaged.
    #[error("the heap is damaged at byte {offset}: {why}")]
    Damaged {
        /// Where, in bytes from the beginning of the file.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// The file cannot keep what is written in the way that was asked for.
    #[error("{0}")]
    NotPersistent(String),
    /// A pointer that was made or taken out by another transaction, or one of another heap, was stored, followed or dropped.
    /// Nothing of this transaction has happened.
    #[error("the pointer to byte {offset} is not one of this transaction's: it was kept beyond its own")]
    Stray {
        /// Where it leads, in bytes from the beginning of the file.
        offset: u64,
    },
    /// An option out of its limits, or a call out of order.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Gives up a transaction for a reason of the program's own.
    pub fn abort(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Aborted(Arc::from(why.into()))
    }

    pub(crate) fn io(verb: &str, object: &dyn std::fmt::Display) -> impl FnOnce(io::Error) -> Error + use<> {
        let what = format!("{verb} {object}");
        move |source| Error::Io { what, source: Arc::new(source) }
    }

    pub(crate) fn damaged(offset: u64, why: impl Into<String>) -> Error {
        Error::Damaged { offset, why: why.into() }
    }
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
