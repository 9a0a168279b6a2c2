//! The software between a program and a device, as stages: the cost of each, locks shared between threads, and
//! whether the processor spins for a completion or is interrupted by it.
//!
//! A [`Stack`] is data; [`Machine`] runs requests through it: threads on cores, locks, waits. It does not call the
//! device: it tells the caller when to, and is told the completion time.

mod machine;

pub use machine::{Event, Machine, Spent, StageTime};

use nvlab_units::Span;

/// On which side of the device a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// On the way to the device.
    Submit,
    /// On the way back to the program.
    Complete,
}

/// How a thread learns of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It releases its core, and an interrupt wakes it.
    Interrupt,
    /// It keeps its core and polls, which takes processor time.
    Spin,
}

/// One stage of the software above a device, such as a system call or a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// As reports show it.
    pub name: String,
    /// Whether requests pass it before or after the device.
    pub when: When,
    /// Processor time of the calling thread per request, independent of its size.
    pub cpu: Span,
    /// Additional processor time per 4 KiB of data, in proportion: for stages that copy.
    pub per_4k: Span,
    /// Time after it in which the request waits without a processor.
    pub wait: Span,
    /// The lock that is held for its processor time: an index into [`Stack::locks`].
    pub lock: Option<usize>,
    /// Only requests with this completion run it; `None`: all.
    pub only: Option<Completion>,
    /// True if it is above the driver: in a recording made at the driver, its time is part of the program's
    /// computing.
    pub above_driver: bool,
}

impl Stage {
    /// Its processor time for a request of `bytes`.
    pub fn cost(&self, bytes: u32) -> Span {
        let copied = self.per_4k.ps() as u128 * bytes as u128 / 4096;
        Span::from_ps(self.cpu.ps().saturating_add(copied.min(u64::MAX as u128) as u64))
    }
}

/// The software above a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The stages, in the order in which a request passes those before the device and those after it.
    pub stages: Vec<Stage>,
    /// Names of the locks, by index.
    pub locks: Vec<String>,
    /// Cores that the threads share; `None`: one each.
    pub cores: Option<u32>,
    /// How a thread learns of completions.
    pub completion: Completion,
    /// With `Spin`: only for requests of at most this many bytes; `None`: all.
    pub spin_below: Option<u64>,
}

impl Stack {
    /// How a request of `bytes` completes.
    fn completion_of(&self, bytes: u32) -> Completion {
        match self.spin_below {
            Some(limit) if bytes as u64 > limit => Completion::Interrupt,
            _ => self.completion,
        }
    }

    /// The part of the stack that a recorded program runs: the driver and what is below it. The rest is in the
    /// recording.
    pub fn below_recording(&self) -> Stack {
        let mut stack = self.clone();
        stack.stages.retain(|stage| !stage.above_driver);
        stack
    }

    /// True if some requests complete in this way.
    pub fn has(&self, completion: Completion) -> bool {
        self.completion == completion || (completion == Completion::Interrupt && self.spin_below.is_some())
    }
}
