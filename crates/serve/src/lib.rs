//! The memory window: a simulated device as memory, for programs that load and store with plain instructions.
//!
//! A window is a range of memory as large as the device. Part of it is *resident*: real pages, used at the speed of the
//! machine. The rest is in the device, an eNVy controller over NOR flash (section 1 of the paper: "a large linear
//! memory"). A load of an absent page and the first store to a clean one are page faults that the kernel hands to this
//! crate (userfaultfd), which brings the page from the controller, or takes note of the store. When too much is
//! resident, the oldest pages go back.
//!
//! ```text
//!   program (or this process)              server                                  DIR/ (state)
//!   +-------------------------+   faults   +------------------+    load, store    +-------------+
//!   | mapping, watched by a   |----------->| handler          |------------------>| nor   (map) |
//!   | userfaultfd             |<-----------| engine: clean,   |   eNVy controller | sram  (map) |
//!   +-----------+-------------+   answers  | dirty, absent    |                   | state.json  |
//!               |                          +--------+---------+                   | lock        |
//!               |  loads, stores                    | reads, punches holes        +-------------+
//!               v                                   v
//!   +----------------------------------------------------------+
//!   | resident file: /dev/shm/nvlab-window-ID, or unnamed       |  stands for battery-backed memory:
//!   +----------------------------------------------------------+  outlives every process, not the machine
//! ```
//!
//! What is promised
//! 1. A store is durable when it is done, against kill -9 of the program, of the server or of both at any moment. The
//!    machine itself may fail: then what was neither written back nor synced ([`Window::sync`]) is lost, and said to be.
//! 2. No store is lost to an eviction, from whichever thread or process it comes (`engine.rs`, invariant 2).
//! 3. No program waits for ever: if the device fails, absent pages give SIGBUS; if the server fails or
//!    is killed, programs are killed.
//! 4. One server has a state. A program that outlived its server keeps the state busy until it is gone, because the lock
//!    is held by its mapping.
//! 5. A child by fork does not have the window (its stores would not be watched). It may map it again.
//! 6. Only processes of the same user reach a window; there is no network.
//! 7. A program that removes contents (MADV_REMOVE by a raw system call; the preloaded library refuses the usual one)
//!    is killed when the removed page is touched. What of it is not touched before it leaves is as the removal left it: zeros
//!    if it had been stored to since it came, otherwise what the device has.
//! 8. A program that locks its memory after it mapped the window (mlock, mlockall) brings all of it through the device;
//!    pages leave all the same.
//!
//! | module | what |
//! |---|---|
//! | [`window`], [`server`] | a window of this process; a window for other programs |
//! | `service` | what both are: device, resident file, state, handler |
//! | `engine` | which pages are resident; what a fault does |
//! | `handler`, `door` | the two threads: faults, and programs that dial in |
//! | [`state`] | what stays when all processes are gone |
//! | [`device`], [`clock`], [`mapped_store`] | the controller and its media; the wall clock; bytes in files |
//! | [`latency`] | what each kind of access costs on this machine |
//! | [`served`], [`nbd`] | a design as a block device with its bytes; a server for it |
//! | [`fuse`] | the same as files |
//! | [`cuts`] | a recorded run, done again up to a power cut |
//! | [`control`], [`http`] | its control socket; its live page and metrics |
//! | `net` | the sockets that callers of all of these come to |
//! | [`abi`], `sys` | kernel and handshake; system calls (all of `unsafe`) |

#[cfg(not(target_os = "linux"))]
compile_error!("userfaultfd is Linux");

pub mod abi;
pub mod clock;
pub mod control;
pub mod cuts;
pub mod device;
mod door;
mod engine;
mod folder;
pub mod fuse;
mod handler;
pub mod http;
pub mod latency;
pub mod mapped_store;
pub mod nbd;
mod net;
pub mod served;
pub mod server;
mod service;
pub mod state;
pub mod stats;
mod sys;
pub mod window;

pub use clock::TimeMode;
pub use folder::file_name;
pub use served::{Drive, DriveOptions};
pub use server::Server;
pub use service::WindowOptions;
pub use state::Found;
pub use stats::WindowStats;
pub use sys::process::{end_with_parent, kill_group};
pub use sys::signals::{Signals, Woken, process_file};
pub use window::Window;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no window.
#[derive(Debug, Error)]
pub enum WindowError {
    /// This machine, or this user on it, has no userfaultfd with shared memory and write protection.
    #[error(
        "userfaultfd is not permitted here ({0}): it needs Linux 5.19 or later, and root, or read and write access to \
         /dev/userfaultfd, or `sysctl vm.unprivileged_userfaultfd=1`; a container must also allow the system call"
    )]
    NotPermitted(#[source] io::Error),
    /// A system call failed that a window cannot do without.
    #[error("{what}: {source}")]
    Io {
        /// What was to be done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program cannot be started.
    #[error("cannot run {}: {source}", program.display())]
    Program {
        /// The program.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// What was asked for cannot be.
    #[error("{0}")]
    Options(String),
    /// This machine has no memory for the device.
    #[error("{0}")]
    Memory(String),
    /// A file of the state is not what it should be.
    #[error("{}: {why}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The state has another size.
    #[error(
        "{} holds a window of {found} B, {asked} B were asked for: leave out the size, or use another folder",
        folder.display()
    )]
    Size {
        /// The state.
        folder: PathBuf,
        /// Bytes asked for.
        asked: u64,
        /// Bytes it has.
        found: u64,
    },
    /// Somebody else serves this state, or a program that outlived its server still maps it.
    #[error("{} is in use: another server has it, or a program that its last server left behind", _0.display())]
    Busy(PathBuf),
    /// The controller could not find everything again in its media.
    #[error("the device cannot be recovered from its state: {0}")]
    Recovery(String),
    /// The device failed; nothing was written back after that.
    #[error("the device failed: {0}")]
    Failed(String),
    /// This program is wrong: it panicked, and did nothing more to what it served then.
    #[error("this is a fault of nvlab, not of your input: {0}")]
    Fault(String),
}

impl WindowError {
    /// A failed system call, and what it was for.
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> WindowError {
        let what = what.into();
        move |source| WindowError::Io { what, source }
    }
}
