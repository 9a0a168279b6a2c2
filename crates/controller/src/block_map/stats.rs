//! Statistics of a block-mapped controller: requests, merges, and every operation on a medium by its cause.

use nvlab_units::Total;

/// Why an operation on a medium was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host's own reads and programs.
    Host,
    /// A log block became the data block without copies.
    Switch,
    /// A log block became the data block after the rest was copied into it.
    Partial,
    /// Every page was copied into a new data block.
    Full,
    /// A sequential run was merged into a new block of the data array.
    Sequential,
    /// A page stayed in the log.
    SecondChance,
    /// Wear levelling.
    Wear,
    /// A block went bad.
    Retire,
    /// Whole blocks were trimmed.
    Trim,
    /// After a power cut.
    Recovery,
}

impl Cause {
    /// All causes, in the order of [`ByCause`].
    pub const ALL: [Cause; 10] = [
        Cause::Host,
        Cause::Switch,
        Cause::Partial,
        Cause::Full,
        Cause::Sequential,
        Cause::SecondChance,
        Cause::Wear,
        Cause::Retire,
        Cause::Trim,
        Cause::Recovery,
    ];
}

/// Operations on one medium for one cause, without read retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Pages read.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// The operations on one medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByCause([Operations; Cause::ALL.len()]);

impl ByCause {
    /// The operations for one cause.
    pub fn of(&self, cause: Cause) -> Operations {
        self.0[cause as usize]
    }
    #[inline]
    pub(super) fn at(&mut self, cause: Cause) -> &mut Operations {
        &mut self.0[cause as usize]
    }
    /// All of them.
    pub fn total(&self) -> Operations {
        self.0.iter().fold(Operations::default(), |sum, one| Operations {
            reads: sum.reads + one.reads,
            programs: sum.programs + one.programs,
            erases: sum.erases + one.erases,
        })
    }
}

/// Counts since creation, or since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockMapStats {
    /// Pages the host read, wrote and trimmed.
    pub host_read_units: u64,
    /// See `host_read_units`.
    pub host_write_units: u64,
    /// See `host_read_units`.
    pub host_trim_units: u64,
    /// Of the units read, those that hold no data: never written, or trimmed. No cell was read for them.
    pub unwritten_read_units: u64,
    /// Flushes.
    pub flushes: u64,
    /// Pages written at their own offset in the data block.
    pub in_place_units: u64,
    /// Pages written to the sequential log block, or by a sequential run to a new data block.
    pub sequential_units: u64,
    /// Pages appended to other log blocks.
    pub log_units: u64,
    /// Merges without a copy.
    pub switch_merges: u64,
    /// Merges that copied the rest into a log block.
    pub partial_merges: u64,
    /// Data blocks merged into a new block.
    pub full_merges: u64,
    /// Sequential runs merged into a new block of the data array.
    pub sequential_merges: u64,
    /// Pages copied to another log block instead of being merged.
    pub second_chances: u64,
    /// Log blocks emptied for reuse.
    pub victims: u64,
    /// Data blocks moved to level wear.
    pub wear_moves: u64,
    /// Blocks retired.
    pub retired_blocks: u64,
    /// Operations on the data array.
    pub data: ByCause,
    /// Operations on the array of the log, if it has its own.
    pub log: ByCause,
    /// Host time spent waiting for a log page while log blocks were merged.
    pub merge_wait: Total,
}

impl BlockMapStats {
    /// Pages programmed for every page the host wrote; 0 if it wrote none.
    pub fn write_amplification(&self) -> f64 {
        match self.host_write_units {
            0 => 0.0,
            host => (self.data.total().programs + self.log.total().programs) as f64 / host as f64,
        }
    }
}
