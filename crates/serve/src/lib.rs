//! Serving: simulated devices used by unmodified programs in wall-clock time.
//!
//! The controller and the media are those of a simulation, built from the same design; the media store their bytes in
//! mapped files, and time comes from a clock. A design is served in two ways:
//!
//! ```text
//!   programs       NBD client, kernel   program, loop device    program that loads and stores
//!                          |                   |                          | page faults
//!   front ends        nbd, nvme              fuse                      window (attach, handler)
//!                          +--------+----------+                          |
//!   devices                      served (block device)              window (engine, device)
//!                                   |                                     |
//!   media                  mapped files: mapped_store, in a state folder: state_folder
//! ```
//!
//! 1. *Block devices* ([`served`]): any design, over NBD ([`nbd`]), NVMe/TCP ([`nvme`])
//!    or as files ([`fuse`]). Each request is answered
//!    when the modelled device would answer it ([`TimeMode`]). A killed server is a power cut to the device.
//! 2. *Memory windows* ([`window`]): the design `envy` as memory that a program loads from and stores to.
//! 3. *Power cuts* ([`cuts`]): a recorded run is replayed up to a cut, and the recovered contents are checked.
//! 4. *Management* ([`management`], [`http`]): a control socket, a live page, metrics.
//!
//! Threads and a wall clock exist only here. A device is behind one mutex; requests reach it one after the other.
//!
//! | module | what |
//! |---|---|
//! | [`served`] | a design as a block device with its bytes, a clock and a power switch |
//! | [`nbd`], [`nvme`], [`fuse`] | front ends of block devices |
//! | `answers` | replies over a socket: sent at once, or held until they are due |
//! | [`window`] | a design as memory: in this process, or in programs |
//! | [`cuts`] | recording, replay, allowed contents, minimising failures |
//! | [`management`], [`http`] | control socket; live page and metrics |
//! | [`mod@bench`] | speed of serving a design on this computer |
//! | [`stack`] | cost of the software above an instant device on this computer |
//! | `net` | listeners, and the limit on connections |
//! | `clock` | the wall clock as the device's time |
//! | `mapped_store`, `state_folder` | media in mapped memory; the folder that holds them |
//! | `slots` | the payload of flash, in as much of a file as it needs |
//! | `error` | [`ServeError`] |
//! | `sys` | system calls of serving |
//!
//! Errors: opening, running and closing return [`ServeError`]; a request to a block device returns
//! [`served::DriveError`]. A panic in a controller loses that device: it is never called again, its media stay as they are,
//! and the next start recovers them as after a kill.
//!
//! Safety: `unsafe` is in `sys` only, and in the crates `nvlab-os` and `nvlab-window-preload`.

#[cfg(not(target_os = "linux"))]
compile_error!("userfaultfd exists only on Linux");

mod answers;
pub mod bench;
mod clock;
pub mod cuts;
mod error;
pub mod fuse;
pub mod http;
pub mod management;
mod mapped_store;
pub mod nbd;
mod net;
pub mod nvme;
pub mod served;
mod slots;
pub mod stack;
mod state_folder;
mod sys;
pub mod window;

pub use clock::TimeMode;
pub use error::ServeError;
pub use served::{Aging, Drive, DriveOptions};
pub use state_folder::file_name;
pub use sys::process::{end_with_parent, kill_group};
pub use sys::signals::{Signals, Woken, process_file};
pub use window::{Found, Window, WindowOptions, WindowServer, WindowStats};
