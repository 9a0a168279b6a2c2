//! What each layer of software between a program and an instant device costs on this machine.
//!
//! Not a model: requests are made for real, to memory, files, loop devices, file systems and served devices, and timed. What
//! cannot be set up here is listed with the reason.
//!
//! 1. Slices of requests to the layers are interleaved; a layer's time is the median of its slices ([`Series`]). A slice is
//!    repeated if other programs took the processor in it: its threads were preempted, or waited long for one.
//! 2. Processor time is that of the thread that makes the requests, and that of everybody who serves it: other threads of this
//!    process, and the kernel's workers where the layer has some. Other programs' use of those workers is counted too.
//! 3. What a layer adds is the difference between a path with it and one without. A difference may be negative, and is
//!    reported so. The stages of a path come from some rounds and the time of the whole path from the others ([`Budget`]), so
//!    that their sum can miss it.
//! 4. Nothing is left behind: neither loop devices nor mounts, whatever ends the program (`disk`).
//!
//! | module | what |
//! |---|---|
//! | `layer` | the layers |
//! | `probe` | requests to them |
//! | `disk` | loop devices and file systems |
//! | `sampling` | slices, medians, errors |
//! | `bench`, `awake` | sets up and measures, while idle processors poll |
//! | `path` | the stages of a path, their sum, and their file |
//!
//! Rejected: *one layer after the other* (what slows the machine for a while would be taken for a layer); *brd and the kernel's NBD client*
//! (requests would go to a device that may be somebody else's, and a connection outlives a killed program). Idle processors poll if that is
//! permitted (PM QoS, root), because sums of stages missed the whole by up to 58 % without; now by less than 3 % mostly, 9 % at most (reads).
//! More than 10 % is an error, and so is a negative difference beyond its error and 1 % of the whole.

mod awake;
mod bench;
mod disk;
mod layer;
mod path;
mod probe;
mod sampling;

pub use bench::{Measured, StackOptions, measure};
pub use layer::Layer;
pub use path::{Budget, Group, Path, Stage};
pub use sampling::{Part, Rounds, Sample, Series, Stat};
