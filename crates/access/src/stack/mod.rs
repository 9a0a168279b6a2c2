//! The software between a program and a device, as stages: what each costs, where threads meet at a lock, and whether
//! the processor waits for a completion or is interrupted by it.
//!
//! A [`Stack`] is data; [`Machine`] runs requests through it: threads on cores, locks, waits. It calls no device: it says
//! when to call one, and is told when the device will be done.

mod machine;

pub use machine::{Event, Machine, Spent, StageTime};

use nvlab_units::Span;

/// On which side of the device a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before it.
    Submit,
    /// After it.
    Complete,
}

/// How a thread learns that the device is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It leaves its core to others meanwhile, and an interrupt wakes it.
    Interrupt,
    /// It occupies its core and polls.
    Spin,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name, for people.
    pub name: String,
    /// On which side of the device.
    pub when: When,
    /// Processor time of the calling thread for a request, whatever its size.
    pub cpu: Span,
    /// Processor time for every 4 KiB of data, in proportion: of a stage that copies.
    pub per_4k: Span,
    /// Time after it in which the request waits without a processor.
    pub wait: Span,
    /// The lock that is held for its processor time: an index into [`Stack::locks`].
    pub lock: Option<usize>,
    /// Only requests that complete in this way pass it; `None`: all.
    pub only: Option<Completion>,
    /// It lies above the driver: a recording of a driver's requests counts its time as the program's computing.
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
    /// The names of the locks.
    pub locks: Vec<String>,
    /// Cores; `None`: as many as threads.
    pub cores: Option<u32>,
    /// How a thread learns of completions.
    pub completion: Completion,
    /// It spins only for requests of at most this many bytes; `None`: any.
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

    /// What a recorded program passes: the driver and what is below it. The recording contains the rest.
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
