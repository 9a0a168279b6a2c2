//! DRAM and SRAM: overwritten in place as fast as read, and lost without power.
//!
//! Not a cache and not a bus: a word takes the time the datasheet states, on the bank that holds it.
//!
//! Invariants
//! 1. Words (aligned, [`RamConfig::word_bytes`]) are written in address order within a bank, each atomically:
//!    after a cut a word of a backed-up memory is old or new, never a mixture.
//! 2. Without backup, or after an outage longer than the backup lasts, the contents are random bytes: this
//!    exposes a recovery that trusts them, which zeros might not.

use crate::banks::{Access, Banks, aligned_count, check_banks, check_power_of_two, check_range, pieces};
use crate::tally::Tally;
use crate::undo::{Entry, Undo};
use crate::{InPlace, MediumError, PowerCut, Store};
use nvlab_units::{Rng, Served, Span, Time};

/// What preserves the contents while the power is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backup {
    /// Nothing.
    None,
    /// A battery (eNVy section 3.3: the page table; section 3.2: the write buffer).
    Battery {
        /// How long it lasts; `None`: longer than any outage.
        hold: Option<Span>,
    },
    /// A capacitor.
    Capacitor {
        /// How long it lasts.
        hold: Span,
    },
}

impl Backup {
    /// True if the contents survive an outage of this length.
    pub(crate) fn survives(self, outage: Span) -> bool {
        match self {
            Backup::None => false,
            Backup::Battery { hold } => hold.is_none_or(|hold| outage <= hold),
            Backup::Capacitor { hold } => outage <= hold,
        }
    }
}

/// A random-access memory.
#[derive(Clone, Debug, PartialEq)]
pub struct RamConfig {
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Bytes one access moves: the width of the data path (eNVy section 3.3: 256). A power of two.
    pub word_bytes: u32,
    /// Time to read words (eNVy figure 12: 100 ns; the way to the host adds 60 ns).
    pub read: Access,
    /// Time to write words.
    pub write: Access,
    /// What preserves the contents without power.
    pub backup: Backup,
    /// Banks that operate in parallel.
    pub banks: u32,
    /// Consecutive bytes in one bank; a multiple of the word. Ignored with one bank.
    pub stripe_bytes: u64,
    /// Seed of the random contents after a cut.
    pub seed: u64,
}

impl RamConfig {
    /// Checks that the configuration is possible; otherwise returns the reason.
    pub fn check(&self) -> Result<(), String> {
        if self.capacity_bytes == 0 {
            return Err("a memory of 0 bytes".into());
        }
        check_power_of_two(self.word_bytes as u64, "word bytes")?;
        check_banks(self.banks, self.stripe_bytes, self.word_bytes as u64, "the word")
    }
}

/// Statistics of a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RamStats {
    /// Reads, by requests.
    pub read: Tally,
    /// Writes, by requests.
    pub write: Tally,
    /// Number of power cuts that lost the contents.
    pub losses: u64,
}

/// The timing of the words of a recorded write: the first is done at `first_done`, each further one `next` later.
#[derive(Clone, Copy, Debug)]
struct Pace {
    first_done: Time,
    next: Span,
}

/// DRAM or SRAM.
#[derive(Clone, Debug)]
pub struct Ram<S: Store> {
    config: RamConfig,
    word_shift: u32,
    banks: Banks,
    stats: RamStats,
    undo: Undo<Pace>,
    rng: Rng,
    store: S,
}

impl<S: Store> Ram<S> {
    /// A memory over a store of at least its capacity. Panics if [`RamConfig::check`] fails.
    pub fn new(config: RamConfig, store: S) -> Ram<S> {
        config.check().expect("a memory that can exist");
        Ram {
            word_shift: config.word_bytes.trailing_zeros(),
            banks: Banks::new(config.banks, config.stripe_bytes, config.capacity_bytes),
            stats: RamStats::default(),
            undo: Undo::new(),
            rng: Rng::stream(config.seed, "ram"),
            config,
            store,
        }
    }

    /// Its configuration.
    pub fn config(&self) -> &RamConfig {
        &self.config
    }

    /// Consecutive bytes in one bank; with a single bank, the capacity.
    pub fn stripe_bytes(&self) -> u64 {
        self.banks.stripe_bytes()
    }

    /// What it has done so far.
    pub fn stats(&self) -> &RamStats {
        &self.stats
    }

    /// Number of writes that a cut may still undo.
    pub fn unsettled(&self) -> usize {
        self.undo.len()
    }

    /// Copies bytes out without spending time.
    pub fn peek(&self, offset: u64, into: &mut [u8]) {
        self.store.read(offset, into);
    }

    /// Writes bytes in cycles the caller accounts for, because the memory works in parallel with something else
    /// (eNVy section 5.1: the page table is updated during the transfer of the page). The words are written one
    /// after the other from `start`, the last is done at `end`. Panics if the bytes are outside the memory.
    pub fn write_during(&mut self, (start, end): (Time, Time), offset: u64, data: &[u8]) {
        let bytes = data.len() as u64;
        check_range(offset, bytes, self.config.capacity_bytes).expect("a write inside the memory");
        if S::KEEPS {
            let each = (end - start) / aligned_count(offset, bytes, self.word_shift).max(1);
            if self.config.backup != Backup::None {
                let pace = Pace { first_done: start + each, next: each };
                self.undo.remember(&self.store, (offset, bytes), (start, end), pace);
            }
            self.store.write(offset, data);
        }
        self.stats.write.add(bytes, end - start);
    }

    /// Like [`PowerCut::cut`], for an outage of a given length: the backup may run out.
    pub fn cut_for(&mut self, at: Time, outage: Span) {
        self.banks.reset();
        if self.config.backup.survives(outage) {
            let (rng, shift) = (&mut self.rng, self.word_shift);
            self.undo.cut(&mut self.store, at, |store, entry| {
                let mut words = words_done(entry, at, shift);
                if word_under_way(entry, at, words) && rng.chance(0.5) {
                    words += 1;
                }
                entry.restore_from(store, ((entry.offset >> shift) + words) << shift);
            });
            return;
        }
        self.undo = Undo::new();
        self.stats.losses += 1;
        self.fill_with_garbage();
    }

    fn fill_with_garbage(&mut self) {
        if !S::KEEPS {
            return;
        }
        let mut garbage = [0; 4096];
        for (offset, bytes) in pieces(0, self.config.capacity_bytes, garbage.len() as u64) {
            for eight in garbage.chunks_exact_mut(8) {
                eight.copy_from_slice(&self.rng.bits().to_le_bytes());
            }
            self.store.write(offset, &garbage[..bytes as usize]);
        }
    }

    /// Occupies the banks for a request.
    #[inline]
    fn serve(&mut self, at: Time, offset: u64, bytes: u64, access: Access) -> (Served, Span) {
        for (offset, bytes) in pieces(offset, bytes, self.banks.stripe_bytes()) {
            self.banks.load(offset).words += aligned_count(offset, bytes, self.word_shift);
        }
        self.banks.serve(at, |load| access.time(load.words))
    }

    /// Records the bytes a write replaces for undo, stripe by stripe, with the time each stripe is written.
    fn remember(&mut self, offset: u64, bytes: u64) {
        let access = self.config.write;
        for (offset, bytes) in pieces(offset, bytes, self.banks.stripe_bytes()) {
            let words = aligned_count(offset, bytes, self.word_shift);
            let load = self.banks.load(offset);
            // `steps` counts the words of earlier stripes: only the very first word is a first access.
            let first = if load.steps == 0 { access.first } else { access.next };
            let (start, first_done) = (load.begin, load.begin + first);
            load.begin = first_done + access.next * (words - 1);
            load.steps += words;
            let times = (start, load.begin);
            self.undo.remember(&self.store, (offset, bytes), times, Pace { first_done, next: access.next });
        }
    }
}

/// How many words of the write were done at `at`.
fn words_done(entry: &Entry<Pace>, at: Time, shift: u32) -> u64 {
    let words = aligned_count(entry.offset, entry.old.len() as u64, shift);
    if at < entry.how.first_done {
        return 0;
    }
    let further = (at - entry.how.first_done).ps().checked_div(entry.how.next.ps());
    further.map_or(words, |further| words.min(1 + further))
}

/// True if the word after the first `done` had begun at `at`, given that the write had begun.
fn word_under_way(entry: &Entry<Pace>, at: Time, done: u64) -> bool {
    done == 0 || at > entry.how.first_done + entry.how.next * (done - 1)
}

impl<S: Store> InPlace for Ram<S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity(&self) -> u64 {
        self.config.capacity_bytes
    }

    /// Nothing survives in a memory without backup, so it guarantees only 1.
    fn atomic_bytes(&self) -> u32 {
        if self.config.backup == Backup::None { 1 } else { self.config.word_bytes }
    }

    fn read(&mut self, at: Time, offset: u64, bytes: u64, into: &mut [u8]) -> Result<Served, MediumError> {
        check_range(offset, bytes, self.config.capacity_bytes)?;
        if S::KEEPS {
            assert_eq!(into.len() as u64, bytes, "a read of {bytes} B into {} B", into.len());
            self.store.read(offset, into);
        }
        let (served, busy) = self.serve(at, offset, bytes, self.config.read);
        self.banks.clear();
        self.stats.read.add(bytes, busy);
        Ok(served)
    }

    fn write(&mut self, at: Time, offset: u64, bytes: u64, data: &[u8]) -> Result<Served, MediumError> {
        check_range(offset, bytes, self.config.capacity_bytes)?;
        if S::KEEPS {
            assert_eq!(data.len() as u64, bytes, "a write of {bytes} B from {} B", data.len());
        }
        let (served, busy) = self.serve(at, offset, bytes, self.config.write);
        if S::KEEPS {
            if self.config.backup != Backup::None {
                self.remember(offset, bytes);
            }
            self.store.write(offset, data);
        }
        self.banks.clear();
        self.stats.write.add(bytes, busy);
        Ok(served)
    }

    #[inline]
    fn hold(&mut self, offset: u64, bytes: u64, until: Time) {
        self.banks.hold(offset, bytes, until);
    }
}

impl<S: Store> PowerCut for Ram<S> {
    fn settle(&mut self, upto: Time) {
        self.undo.settle(upto);
    }

    /// A short outage: a memory with any backup survives it.
    fn cut(&mut self, at: Time) {
        self.cut_for(at, Span::ZERO);
    }
}
