//! Errors.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why an operation on a heap was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another thread holds what this transaction needs. [`crate::Heap::transaction`] retries; programs pass it on
    /// with `?`.
    #[error("another transaction holds the object")]
    Conflict,
    /// The program aborted the transaction; it changed nothing.
    #[error("the transaction was aborted: {0}")]
    Aborted(Arc<dyn std::error::Error + Send + Sync>),
    /// This transaction has already borrowed the object mutably.
    #[error("this transaction has already borrowed the object mutably")]
    Borrowed,
    /// The heap has no room for this many bytes and must not grow.
    #[error("no room for {bytes} B: the heap may not grow beyond {bytes_max} B")]
    Full {
        /// Bytes of the object.
        bytes: u64,
        /// The maximum size, set when the heap was created.
        bytes_max: u64,
    },
    /// The changes do not fit in a record: about 32 GiB. Nothing was changed.
    #[error("the transaction needs a record of {needed} B; the maximum is {most} B")]
    TooLarge {
        /// Bytes of the record.
        needed: u64,
        /// Bytes of the largest record.
        most: u64,
    },
    /// An object has the maximum number of references.
    #[error("an object has at most {most} references of each kind")]
    TooManyReferences {
        /// The largest count.
        most: u64,
    },
    /// More threads than the heap has logs.
    #[error("{logs} threads already use the heap, one for each of its logs")]
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
    /// An earlier write failed, so it is unknown what is durable: the heap accepts no work until it is opened again.
    #[error("the heap accepts no work until it is opened again: {0}")]
    Failed(Arc<Error>),
    /// The heap is open: in another program, an inspection, or elsewhere in this program. A program changes the heap
    /// in place, and the order of its changes is in its own memory: nothing else can read the heap without its help.
    #[error("{} is in use; the program that has the heap open can make a copy of it (`Heap::backup_to`)", _0.display())]
    Busy(PathBuf),
    /// This thread runs a transaction on another heap of this brand. To use two heaps at once, give each its own
    /// brand.
    #[error("a transaction on another heap of brand {0} is running")]
    BrandInUse(&'static str),
    /// The file is not a heap, or one of another version of the format.
    #[error("{path} is not a heap that this program can open: {why}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        why: String,
    },
    /// The heap holds objects of other types than the program's.
    #[error("the types of the heap differ from the program's: {why}")]
    Schema {
        /// The first type that differs.
        why: String,
    },
    /// The heap is damaged.
    #[error("the heap is damaged at byte {offset}: {why}")]
    Damaged {
        /// The offset in the file, in bytes.
        offset: u64,
        /// The kind of damage.
        why: String,
    },
    /// The file does not support the requested kind of persistence.
    #[error("{0}")]
    NotPersistent(String),
    /// A pointer made or taken out by another transaction, or one of another heap, was stored, followed or dropped.
    /// This transaction changed nothing.
    #[error("the pointer to byte {offset} does not belong to this transaction: it was kept from another one")]
    Stray {
        /// The offset it points to, in bytes from the beginning of the file.
        offset: u64,
    },
    /// An option out of its limits, or a call out of order.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Aborts a transaction for the program's own reason.
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
