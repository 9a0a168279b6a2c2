//! The error type of this crate: why something cannot be served.

use nvlab_os::FolderError;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why something cannot be served, or no longer.
#[derive(Debug, Error)]
pub enum ServeError {
    /// This machine, or this user on it, has no userfaultfd with shared memory and write protection.
    #[error(
        "userfaultfd is not permitted here ({0}): it needs Linux 5.19 or later, and root, or read and write access to \
         /dev/userfaultfd, or `sysctl vm.unprivileged_userfaultfd=1`; a container must also allow the system call"
    )]
    NotPermitted(#[source] io::Error),
    /// A system call failed, and nothing more is known.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted, such as "cannot create an eventfd".
        what: String,
        /// The errno it failed with.
        source: io::Error,
    },
    /// The program to run on a window cannot be started.
    #[error("cannot run {}: {source}", program.display())]
    Program {
        /// As given on the command line.
        program: OsString,
        /// Why exec failed.
        source: io::Error,
    },
    /// Options contradict each other, or a value is out of range.
    #[error("{0}")]
    Options(String),
    /// This machine has not enough memory for the device.
    #[error("{0}")]
    Memory(String),
    /// A file of the state is not what it should be.
    #[error("{}: {why}", path.display())]
    State {
        /// A file in the folder of the state.
        path: PathBuf,
        /// What was expected, and what it holds.
        why: String,
    },
    /// The state belongs to a window of another size.
    #[error(
        "{} holds a window of {found} B, not {asked} B: leave out the size, or use another folder",
        folder.display()
    )]
    Size {
        /// Folder of the state.
        folder: PathBuf,
        /// Bytes that the options say.
        asked: u64,
        /// Bytes of the stored window.
        found: u64,
    },
    /// Another server has this state, or a program that outlived its server still maps it.
    #[error("{} is in use: by another server, or by a program its last server left behind", _0.display())]
    Busy(PathBuf),
    /// The controller could not recover from its media.
    #[error("the device cannot be recovered from its state: {0}")]
    Recovery(String),
    /// The device failed; nothing was written back after that.
    #[error("the device failed: {0}")]
    Failed(String),
    /// A bug in nvlab: it panicked, and did nothing more to what it served then.
    #[error("this is a bug in nvlab, not in your input: {0}")]
    Bug(String),
}

impl ServeError {
    /// A failed system call, and the operation it was part of.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServeError {
        let what = what.into();
        move |source| ServeError::Io { what, source }
    }
}

impl From<FolderError> for ServeError {
    fn from(error: FolderError) -> ServeError {
        match error {
            FolderError::Io { what, source } => ServeError::Io { what, source },
            FolderError::Unusable { path, why } => ServeError::State { path, why },
            FolderError::Busy(folder) => ServeError::Busy(folder),
        }
    }
}
