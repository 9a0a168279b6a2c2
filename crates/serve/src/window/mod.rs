//! The memory window: a simulated device as memory, for programs that load and store with plain instructions.
//!
//! A window is a range of memory as large as the device. Part of it is *resident*: real pages, used at the speed of the
//! machine. The rest is in the device, an eNVy controller over NOR flash (section 1 of the paper: "a large linear
//! memory"). A load of an absent page and the first store to a clean one are page faults that the kernel hands to this
//! module (userfaultfd), which loads the page from the controller, or notes the store. When too many pages are resident,
//! the oldest are evicted.
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
//! 1. A store is durable once it is done, against kill -9 of the program, of the server or of both at any moment. If the
//!    machine itself fails, what was neither written back nor synced ([`Window::sync`]) is lost, and reported as lost.
//! 2. No store is lost to an eviction, from whichever thread or process it comes (`engine.rs`, invariant 2).
//! 3. No program waits for ever: if the device fails, accesses to absent pages raise SIGBUS; if the server fails or
//!    is killed, programs are killed.
//! 4. A state has one server. A program that outlived its server keeps the state locked until it ends, because its mapping
//!    holds the lock.
//! 5. A child created by fork does not have the window (its stores would not be watched). It may map it again.
//! 6. Only processes of the same user reach a window; there is no network.
//! 7. A program that removes contents (MADV_REMOVE by a raw system call; the preloaded library refuses the usual one)
//!    is killed when the removed page is touched. A removed page that is evicted untouched keeps what the removal left:
//!    zeros if it was dirty, otherwise the contents that the device has.
//! 8. A program that locks its memory after it mapped the window (mlock, mlockall) loads all of it from the device;
//!    pages are evicted all the same.
//!
//! | module | what |
//! |---|---|
//! | `in_process` | [`Window`]: a window of this process |
//! | `server` | [`WindowServer`]: a window for other programs |
//! | `service` | what both are: device, resident file, state, handler |
//! | `engine` | which pages are resident; what a fault does |
//! | `handler`, `attach` | the two threads: faults, and programs that attach |
//! | `state` | what remains when all processes have ended |
//! | `device` | the controller, its media and its clock |
//! | `stats`, `watched` | counts; the window on a live page |
//! | [`latency`] | what each kind of access costs on this machine |

mod attach;
mod device;
mod engine;
mod handler;
mod in_process;
pub mod latency;
mod server;
mod service;
mod state;
mod stats;
mod watched;

pub use in_process::Window;
pub use server::WindowServer;
pub use service::WindowOptions;
pub use state::Found;
pub use stats::WindowStats;
