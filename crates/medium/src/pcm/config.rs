//! The configuration of a phase-change (or spin-torque) memory. Plain data, filled from a datasheet.

use crate::banks::{Access, check_banks, check_power_of_two};
use nvlab_units::Span;

/// A phase-change memory.
///
/// System 003 (slide 5): words of 2 B, read 80 ns then 10 ns, program 10 us, one word at a time. System 004
/// (slide 9): words of 64 B (a line), read 67 ns, program 215 ns, many banks.
#[derive(Clone, Debug, PartialEq)]
pub struct PcmConfig {
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Bytes that one access reads or programs. A power of two.
    pub word_bytes: u32,
    /// Time to read words.
    pub read: Access,
    /// Time of one program step of [`PcmConfig::words_per_step`] words.
    pub program: Span,
    /// Neighbouring (aligned) words programmed at the same time. A power of two.
    pub words_per_step: u32,
    /// Which words a write programs.
    pub selection: Selection,
    /// Endurance of the cells; `None`: they do not wear.
    pub wear: Option<LineWear>,
    /// The size of an aligned write that a power cut never tears, see [`Tear::Atomic`]. A power of two.
    pub atomic_bytes: u32,
    /// What a power cut does to the atomic unit in progress.
    pub tear: Tear,
    /// Banks that operate in parallel.
    pub banks: u32,
    /// Consecutive bytes in one bank; a multiple of the step, the line and the atomic unit. Ignored with one
    /// bank.
    pub stripe_bytes: u64,
    /// Seed of the random contents after a cut.
    pub seed: u64,
}

/// Which words of a write are programmed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Selection {
    /// All of them.
    All,
    /// Those that differ from what the cells hold; the write reads them first (system 003 slides 11, 12).
    Differing {
        /// Without payload nothing can be compared: the share of words then assumed to differ (system 003
        /// slide 12: 0.16 of a metadata block). Words of one step are assumed to differ independently.
        share: f64,
    },
}

/// Endurance of the cells, counted per line: every write that programs a word of a line wears it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineWear {
    /// Bytes of a line; a multiple of the step. A power of two.
    pub line_bytes: u32,
    /// Writes a line endures (system 003 slide 5: 1 M).
    pub endurance: u32,
    /// True: a write that would exceed the endurance is refused. False: it is only counted.
    pub refuse: bool,
}

/// What a power cut does to the atomic unit in progress. Units before it are new, units after it are old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tear {
    /// The part guarantees its atomic unit, by stored energy or by a shadow copy: old or new, drawn by seed. Where
    /// a step programs several units at once, any number of them, from the first on, are new.
    Atomic,
    /// The part guarantees nothing: words done are new, the words of the step in progress may hold anything (even
    /// in bytes that the write did not cover), the rest is old.
    Garbage,
}

impl PcmConfig {
    /// Bytes of one program step.
    pub const fn step_bytes(&self) -> u64 {
        self.word_bytes as u64 * self.words_per_step as u64
    }

    /// Checks that the configuration is possible; otherwise returns the reason.
    pub fn check(&self) -> Result<(), String> {
        if self.capacity_bytes == 0 {
            return Err("a memory of 0 bytes".into());
        }
        check_power_of_two(self.word_bytes as u64, "word bytes")?;
        check_power_of_two(self.words_per_step as u64, "words per step")?;
        check_power_of_two(self.atomic_bytes as u64, "atomic bytes")?;
        let step = self.step_bytes();
        if !self.capacity_bytes.is_multiple_of(step) {
            return Err(format!(
                "capacity ({} B) must be a multiple of a program step ({step} B)",
                self.capacity_bytes
            ));
        }
        check_banks(self.banks, self.stripe_bytes, step, "the program step")?;
        check_banks(self.banks, self.stripe_bytes, self.atomic_bytes as u64, "the atomic unit")?;
        if let Some(LineWear { line_bytes, .. }) = self.wear {
            let line = line_bytes as u64;
            check_power_of_two(line, "line bytes")?;
            if line < step {
                return Err(format!("a line ({line} B) is smaller than a program step ({step} B)"));
            }
            check_banks(self.banks, self.stripe_bytes, line, "the line")?;
        }
        match self.selection {
            Selection::Differing { share } if !(0.0..=1.0).contains(&share) => {
                Err(format!("the share of words that differ must be in 0..=1, not {share}"))
            }
            _ => Ok(()),
        }
    }
}
