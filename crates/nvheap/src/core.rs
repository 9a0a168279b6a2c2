//! The state of an open heap that all its threads share.

use crate::error::{Error, Result};
use crate::layout::{HEADERS, Header, Layout};
use crate::memory::Memory;
use crate::mutex::locked;
use crate::persist::TypeEntry;
use crate::snapshot::Snapshot;
use crate::space::Space;
use crate::sync::{AtomicBool, AtomicU64, Mutex, yield_now};
use crate::wait::back_off;
use nvlab_os::barrier;
use std::any::TypeId;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

/// Clocks that are reserved at a time: a generation uses at least as many.
pub(crate) const CLOCK_STEP: u64 = 1 << 32;

/// State of a thread's log that the others read. It has its own cache line, and the next one for the processor's
/// prefetcher.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Slot {
    pub is_leased: AtomicBool,
    /// Odd while a transaction runs; changes with each.
    pub runs: AtomicU64,
    /// The epoch in which a commit is in progress; 0: none is.
    pub committing: AtomicU64,
    /// The clock of the last commit.
    pub clock: AtomicU64,
    /// For each half: the epoch of its records and their bytes.
    pub epochs: [AtomicU64; 2],
    pub tails: [AtomicU64; 2],
}

impl Slot {
    pub fn new(clock: u64) -> Slot {
        Slot { clock: AtomicU64::new(clock), ..Slot::default() }
    }

    /// A transaction has ended.
    #[inline(always)]
    pub fn end_run(&self) {
        self.runs.store((self.runs.load(Ordering::Relaxed) | 1) + 1, Ordering::Release);
    }
}

#[derive(Debug)]
pub(crate) struct Core {
    pub memory: Memory,
    pub header: Mutex<Header>,
    pub layout: Layout,
    pub identity: u64,
    /// No clock above it was used before this generation.
    pub base: u64,
    /// Clocks up to it may be used.
    pub limit: AtomicU64,
    /// Where commits write.
    pub epoch: AtomicU64,
    /// Commits wait before they begin.
    pub is_held_up: AtomicBool,
    /// Held while a snapshot is begun.
    pub beginning: Mutex<()>,
    pub slots: Box<[Slot]>,
    pub space: Space,
    pub types: Vec<TypeEntry>,
    pub brand: TypeId,
    pub brand_name: &'static str,
    /// Set when a write failed.
    pub failed: OnceLock<Error>,
    /// Volatile references: objects that live without persistent ones.
    pub handles: Mutex<HashMap<u64, u64>>,
    pub this: Weak<Core>,
}

/// Writes both copies, one after the other.
pub(crate) fn write_header(memory: &Memory, header: &Header) -> Result<()> {
    for at in HEADERS {
        memory.persist(at, &header.encode())?;
    }
    Ok(())
}

impl Core {
    /// The type with a number.
    #[inline]
    pub fn entry(&self, number: u16) -> Option<&TypeEntry> {
        self.types.get(usize::from(number).checked_sub(1)?)
    }

    /// Refuses work after a failure.
    #[inline]
    pub fn check_failed(&self) -> Result<()> {
        if self.failed.get().is_none() { Ok(()) } else { Err(self.failure()) }
    }

    #[cold]
    fn failure(&self) -> Error {
        let error = self.failed.get().expect("there was one");
        Error::Failed(error.clone().into())
    }

    /// Records a failure after which it is unknown what is durable.
    pub fn fail<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| {
            let _ = self.failed.set(error.clone());
        })
    }

    /// Reserves more clocks.
    pub fn raise_limit(&self, clock: u64) -> Result<()> {
        let mut header = locked(&self.header);
        if clock > header.clock_limit {
            header.clock_limit += CLOCK_STEP;
            self.fail(write_header(&self.memory, &header))?;
            self.limit.store(header.clock_limit, Ordering::Release);
        }
        Ok(())
    }

    /// Ends `epoch`, unless it has ended: changes of its commits are written home, and its halves of the logs become
    /// free.
    ///
    /// The caller is not in the middle of a commit. Records of the next epoch may be written at the same time; those
    /// of the one after it wait.
    pub fn checkpoint(&self, epoch: u64) -> Result<()> {
        if self.memory.region().is_some() {
            // Its log keeps commits in order.
            return Ok(());
        }
        let mut header = locked(&self.header);
        self.check_failed()?;
        if self.epoch.load(Ordering::Relaxed) != epoch {
            return Ok(());
        }
        self.epoch.store(epoch + 1, Ordering::SeqCst);
        barrier::heavy();
        for slot in &self.slots {
            let mut tries = 0;
            while slot.committing.load(Ordering::Acquire) == epoch {
                back_off(tries);
                tries += 1;
            }
        }
        self.fail(self.write_home(epoch))?;
        header.epoch_done = epoch;
        self.fail(write_header(&self.memory, &header))
    }

    /// A snapshot of the heap between two commits, until it is ended; `None` if the maximum number of snapshots
    /// exists.
    pub fn take_snapshot(&self) -> Result<Option<Arc<Snapshot>>> {
        self.check_failed()?;
        let _alone = locked(&self.beginning);
        // Nobody else begins one meanwhile, so commits are not held up for nothing.
        if self.memory.snapshots.is_full() {
            return Ok(None);
        }
        let prepared = loop {
            let prepared = self.memory.snapshots.prepare(self.memory.bytes());
            if self.hold_up(&prepared) {
                break prepared;
            }
        };
        let snapshot = self.memory.snapshots.begin(prepared);
        self.is_held_up.store(false, Ordering::Release);
        Ok(Some(snapshot))
    }

    /// Makes commits wait until the caller lets them continue; none is in progress then. `false`: commits do not
    /// wait, because the heap has become longer than the prepared snapshot.
    fn hold_up(&self, prepared: &Snapshot) -> bool {
        self.is_held_up.store(true, Ordering::SeqCst);
        barrier::heavy();
        for slot in &self.slots {
            let mut tries = 0;
            while slot.committing.load(Ordering::Acquire) != 0 {
                back_off(tries);
                tries += 1;
            }
        }
        let is_whole = prepared.bytes() == self.memory.bytes();
        if !is_whole {
            self.is_held_up.store(false, Ordering::Release);
        }
        is_whole
    }

    /// Ends a snapshot when no commit saves data for it any longer.
    pub fn end_snapshot(&self, snapshot: Arc<Snapshot>) {
        self.memory.snapshots.end(&snapshot);
        barrier::heavy();
        for slot in &self.slots {
            let (runs, mut tries) = (slot.runs.load(Ordering::Acquire), 0);
            while slot.committing.load(Ordering::Acquire) != 0 && slot.runs.load(Ordering::Acquire) == runs {
                back_off(tries);
                tries += 1;
            }
        }
        self.memory.snapshots.free(snapshot);
    }

    /// Gives a log the hints of free blocks. No transaction is running.
    pub fn keep_hints(&self) -> Result<()> {
        const PIECE: u64 = 4096;
        self.check_failed()?;
        if self.memory.region().is_none() {
            return Ok(());
        }
        let hints = self.layout.hints()..self.layout.data();
        let mut pieces = hints.clone().step_by(PIECE as usize);
        pieces.try_for_each(|at| self.memory.fence(&[(at, PIECE.min(hints.end - at))]))
    }

    fn write_home(&self, epoch: u64) -> Result<()> {
        let half = (epoch & 1) as usize;
        for (log, slot) in self.slots.iter().enumerate() {
            if slot.epochs[half].load(Ordering::Acquire) == epoch {
                let bytes = slot.tails[half].load(Ordering::Acquire);
                crate::log::write_back(&self.memory, self.layout.half(log, epoch), bytes)?;
            }
        }
        self.memory.fence(&[(0, self.memory.bytes())])
    }

    /// Waits, for a limited time, until the heap is the only owner. A thread that ends returns its pages during this
    /// time. Afterwards file and brand are free to be opened again.
    pub fn wait_until_alone(&self) {
        const TRIES: u32 = 1000;
        let mut tries = 0;
        while self.this.strong_count() > 1 && tries < TRIES {
            tries += 1;
            back_off(tries);
        }
    }

    /// Waits until all transactions of other threads that run now have ended; false if that takes too long.
    pub fn is_quiet(&self, mine: usize) -> bool {
        barrier::heavy();
        for (log, slot) in self.slots.iter().enumerate() {
            let runs = slot.runs.load(Ordering::Acquire);
            if log == mine || runs & 1 == 0 {
                continue;
            }
            let ended = (0..1000).any(|_| {
                yield_now();
                slot.runs.load(Ordering::Acquire) != runs
            });
            if !ended {
                return false;
            }
        }
        true
    }
}
