//! Devices built from designs: a file for each kind of controller. What a run does with one is generic over
//! [`Observed`], so that the inner loop calls the controller it was made for.

pub mod envy;
pub mod page_map;

use crate::design::{Design, Ftl};
use crate::result::MemoryResult;
use nvlab_medium::flash::{Cells, FlashStats};
use nvlab_units::{Geometry, Span, Time, Total};

/// Counts a meter follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Units the host wrote; of a memory, pages that left its write buffer.
    pub host_units: u64,
    /// Units programmed for whatever cause.
    pub programmed_units: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// Units programmed, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// What the host wrote.
    pub host: u64,
    /// Moved by cleaning.
    pub clean: u64,
    /// Moved between partitions.
    pub transfer: u64,
    /// Moved by wear levelling.
    pub wear: u64,
    /// Moved because a block was retired or a program failed.
    pub retire: u64,
    /// Checkpoints of the map, records of trims.
    pub map: u64,
    /// Pages programmed before they were full.
    pub padding: u64,
}

impl Causes {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.host + self.clean + self.transfer + self.wear + self.retire + self.map + self.padding
    }
}

/// What a device did since its counts were reset.
#[derive(Clone, Debug)]
pub struct Insides<'a> {
    /// Units programmed.
    pub causes: Causes,
    /// Blocks cleaned, and the live units in them.
    pub cleaned_blocks: u64,
    /// See `cleaned_blocks`.
    pub cleaned_live_units: u64,
    /// Blocks retired.
    pub retired_blocks: u64,
    /// Bytes moved for each byte asked to write, where parts of units or blocks were written; 0 if nothing was.
    pub unaligned: f64,
    /// Bytes the host asked to write; `None`: what its requests say.
    pub host_bytes: Option<u64>,
    /// Cycles that the mean block went through.
    pub cycles: f64,
    /// Wear and rated life of the array.
    pub cells: &'a Cells,
    /// What the array counted.
    pub flash: FlashStats,
    /// Shape of the array.
    pub geometry: Geometry,
    /// Bytes of the controller's tables in this program.
    pub memory_bytes: u64,
    /// Host time spent waiting for room in the write buffer.
    pub buffer_wait: Total,
    /// What only a memory has.
    pub memory: Option<MemoryResult>,
}

/// A device whose insides can be counted.
pub trait Observed {
    /// What it counted so far.
    fn counters(&self) -> Counters;
    /// Begins counting anew; wear stays.
    fn reset_stats(&mut self);
    /// When everything queued will be done; a promise.
    fn idle_at(&mut self, at: Time) -> Time;
    /// Bytes of a mapping unit.
    fn unit_bytes(&self) -> u32;
    /// Blocks of the array.
    fn blocks(&self) -> u32;
    /// What it did in a run of this length.
    fn insides(&self, span: Span) -> Insides<'_>;
}

/// Builds the device a design describes and throws it away: says whether it can be built.
pub fn try_build(design: &Design, seed: u64) -> Result<(), String> {
    match &design.ftl {
        Ftl::Page(page) => page_map::build(design, page, seed).map(drop),
        Ftl::Envy(envy) => envy::build(design, envy, seed).map(drop),
    }
}
