//! A cache of lines in DRAM in front of a controller of blocks: flash that a processor loads from and stores to (a
//! memory-semantic SSD, behind CXL.mem), and the same bytes as blocks.
//!
//! Sets of lines, with clock replacement in each set. A missing line is read from the controller below; a dirty
//! victim is written back first. Lines are also written back when too many are dirty, in order of frames, and by a
//! flush. When a program strides through memory, lines are prefetched.
//!
//! # Time
//!
//! With c = [`CachedConfig::control`], r the first read of the memory, x its transfer of a word, X of a line:
//!
//! | access | time |
//! |---|---|
//! | load of a word that hits | c + r + x |
//! | store of a word that hits | c: it is posted, the word crosses to the memory afterwards |
//! | load or store that misses | the same, after the read of the controller behind and X; the line it replaces was accepted by then |
//! | store when too many lines are dirty | the same, not before one of [`CachedConfig::write_backs`] is free for another line |
//! | whole lines as blocks | read: r + X; write: posted |
//!
//! Words are accessed one after the other; blocks share the data bus of the memory in the order of its gaps ([`Bus`]).
//! Simplified: a missing line is whole in the memory before its word is read (pessimistic by less than a microsecond of a
//! flash read); a store that misses waits for its line, since no part of a line is known to be new by itself.
//!
//! On `cxl-ms-ssd`, full, a load that hits takes 185 ns and a store 122. A miss takes 65.8 us more on average: 2 us
//! of firmware, 60 of array read (45, 60 or 75 by the page of the word line), 3.4 for 4 KiB on the channel, 0.2 on
//! the data bus. Uniform words hit in proportion to the cache: 16 of 114 GiB are 14.0 %, measured 14.0 %, and a load
//! takes 55.8 us on average. A controller below that cleans with write amplification A needs A times the energy for
//! the dirty lines.
//!
//! # What a power cut leaves
//!
//! 1. Stored energy ([`nvlab_medium::ram::Backup`]) keeps memory, controller and flash working for a time. Dirty lines are
//!    written back in order of frames, beginning after the last that was written back, until it is over: CXL's global
//!    persistent flush. What was acknowledged is durable if its line was written back in time, or was before the cut.
//! 2. A line that was not in time reads as it was last written back. All of a line is of one time, but that a cut leaves
//!    each word of a store of several words old or new.
//! 3. After a flush everything written before is durable, whatever the energy.
//! 4. What a process leaves behind that is killed is what a cut leaves: the lines are in the memory, and each dirty one is
//!    marked there ([`CachedConfig::ram_bytes`]) after its bytes, until the controller behind has accepted it. A line of
//!    several words that was being overwritten then has old and new ones.
//!
//! | file | what |
//! |---|---|
//! | `config` | its configuration |
//! | `table` | tags, states, clocks |
//! | `stride` | what to fetch ahead |
//! | `lines` | fetching, replacing, writing back |
//! | `host` | words and blocks |
//! | `power` | the flush when the power fails; recovery |

mod config;
mod host;
mod lines;
mod power;
mod stride;
mod table;

pub use config::CachedConfig;

use crate::Controller;
use nvlab_medium::Store;
use nvlab_medium::ram::Ram;
use nvlab_units::{Bus, Time};
use stride::Streams;
use table::Table;

/// Counts since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedStats {
    /// Words loaded, and lines read as blocks.
    pub loads: u64,
    /// Words stored, and lines written as blocks.
    pub stores: u64,
    /// Loads and stores whose line was in the cache or being fetched.
    pub hits: u64,
    /// Lines read from the controller below on misses.
    pub fetched: u64,
    /// Lines prefetched.
    pub fetched_ahead: u64,
    /// Prefetched lines that were used.
    pub ahead_used: u64,
    /// Lines written back.
    pub written_back: u64,
    /// Bytes stored, or written as blocks.
    pub written_bytes: u64,
}

/// A controller behind a line cache.
#[derive(Clone, Debug)]
pub struct Cached<F, S: Store = ()> {
    config: CachedConfig,
    behind: F,
    ram: Ram<S>,
    /// The data bus of the memory.
    bus: Bus,
    table: Table,
    streams: Streams,
    /// When each write-back in progress is accepted; the next one takes the place `next_back`.
    backs: Box<[Time]>,
    next_back: usize,
    /// When the last word that was accepted is in the memory, and the last line behind the cache.
    stored: Time,
    accepted: Time,
    /// log2 of the bytes of a line; units of the controller behind in a line.
    line_shift: u32,
    line_units: u32,
    lines: u32,
    /// Scratch: lines on their way in or out; empty if no bytes are kept.
    scratch: Vec<u8>,
    stats: CachedStats,
}

impl<F: Controller, S: Store> Cached<F, S> {
    /// An empty cache in front of a controller, or the reason why there cannot be one.
    pub fn new(config: CachedConfig, behind: F, ram: Ram<S>) -> Result<Cached<F, S>, String> {
        config.check(ram.config(), behind.unit_bytes())?;
        let line_units = config.line_bytes / behind.unit_bytes();
        Ok(Cached {
            bus: Bus::new(),
            table: Table::new(config.sets, config.ways),
            streams: Streams::default(),
            backs: vec![Time::ZERO; config.write_backs as usize].into(),
            next_back: 0,
            stored: Time::ZERO,
            accepted: Time::ZERO,
            line_shift: config.line_bytes.trailing_zeros(),
            line_units,
            lines: behind.capacity_units() / line_units,
            scratch: Vec::new(),
            stats: CachedStats::default(),
            config,
            behind,
            ram,
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &CachedConfig {
        &self.config
    }
    /// The controller behind.
    pub fn behind(&self) -> &F {
        &self.behind
    }
    /// The controller behind, to reset its statistics.
    pub fn behind_mut(&mut self) -> &mut F {
        &mut self.behind
    }
    /// Returns the memory, as a process that is killed leaves it.
    pub fn into_ram(self) -> Ram<S> {
        self.ram
    }
    /// Counts since creation or the last reset.
    pub fn stats(&self) -> &CachedStats {
        &self.stats
    }
    /// Resets the statistics.
    pub fn reset_stats(&mut self) {
        self.stats = CachedStats::default();
    }
    /// Number of dirty lines.
    pub fn dirty_lines(&self) -> u32 {
        self.table.dirty()
    }
    /// Bytes of its tables in this program.
    pub fn memory_bytes(&self) -> u64 {
        self.table.bytes()
    }
    /// Bytes of the memory that programs see.
    pub fn capacity_bytes(&self) -> u64 {
        (self.lines as u64) << self.line_shift
    }
    /// Panics if an invariant is broken.
    pub fn check(&self) {
        self.table.check();
    }
}
