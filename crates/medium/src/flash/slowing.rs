//! NOR cells that slow down: every cycle of a block lengthens its next program and erase, and one that takes longer
//! than the part's limit is a failure (eNVy section 2).
//!
//! The paper says that times degrade "slightly" with each operation and names no function. Here they grow by the same
//! amount with each cycle, from those of a fresh part to those at its rated cycles and on beyond them. A data sheet that
//! guarantees its limits for the rated cycles promises no more than that the two are reached there at the earliest.
//!
//! An operation that would take longer ends at its limit and has failed. A real one "might still succeed if more time is
//! allowed", and what the block holds stays readable; no controller here waits for that.

use super::cells::Cells;
use super::config::FlashConfig;
use nvlab_units::{BlockId, Span};

/// How the cells of a NOR part slow down, and when that is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowing {
    /// Time of a program at the rated cycles.
    pub program: Span,
    /// Time of an erase at the rated cycles.
    pub erase: Span,
    /// The longest a program may take; `None`: any time.
    pub program_max: Option<Span>,
    /// The longest an erase may take; `None`: any time.
    pub erase_max: Option<Span>,
    /// Cycles that every block has done before the erases counted here.
    pub cycles_done: u32,
}

impl Slowing {
    /// Checks that the times fit those of a fresh part; otherwise returns the reason.
    pub(super) fn check(&self, flash: &FlashConfig) -> Result<(), String> {
        let times = [
            ("program", flash.timing.program, self.program, self.program_max),
            ("erase", flash.timing.erase, self.erase, self.erase_max),
        ];
        for (what, fresh, worn, most) in times {
            if worn < fresh {
                return Err(format!(
                    "cells slow down: {what} takes {fresh} when fresh, but {worn} when worn"
                ));
            }
            if let Some(most) = most.filter(|&most| most < fresh) {
                return Err(format!("{what} of a fresh part takes {fresh}, more than its limit of {most}"));
            }
        }
        Ok(())
    }

    /// For an operation of the controller that takes `step` where one of the part takes `part`.
    pub fn of_step(self, part: Span, step: Span) -> Slowing {
        let scaled = |time: Span| {
            let ps = time.ps() as u128 * step.ps() as u128 / part.ps().max(1) as u128;
            Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
        };
        Slowing { program: scaled(self.program), program_max: self.program_max.map(scaled), ..self }
    }

    /// True if operations may fail for taking too long.
    pub fn has_limits(&self) -> bool {
        self.program_max.is_some() || self.erase_max.is_some()
    }

    /// The time of the next program in a block.
    pub(super) fn program(&self, cells: &Cells, block: BlockId) -> Span {
        limited(self.programming(cells, block), self.program_max)
    }

    /// The time of the next erase of a block.
    pub(super) fn erase(&self, cells: &Cells, block: BlockId) -> Span {
        limited(self.erasing(cells, block), self.erase_max)
    }

    /// Whether the next program in a block would take longer than it may.
    pub(super) fn is_program_late(&self, cells: &Cells, block: BlockId) -> bool {
        self.program_max.is_some_and(|most| self.programming(cells, block) > most)
    }

    /// Whether the next erase of a block would take longer than it may.
    pub(super) fn is_erase_late(&self, cells: &Cells, block: BlockId) -> bool {
        self.erase_max.is_some_and(|most| self.erasing(cells, block) > most)
    }

    fn programming(&self, cells: &Cells, block: BlockId) -> Span {
        self.grown(cells, block, cells.config.timing.program, self.program)
    }

    fn erasing(&self, cells: &Cells, block: BlockId) -> Span {
        self.grown(cells, block, cells.config.timing.erase, self.erase)
    }

    fn grown(&self, cells: &Cells, block: BlockId, fresh: Span, worn: Span) -> Span {
        let cycles = cells.erase_count(block) as u128 + self.cycles_done as u128;
        let growth = (worn.ps() - fresh.ps()) as u128 * cycles / cells.config.endurance.cycles.max(1) as u128;
        Span::from_ps(fresh.ps().saturating_add(u64::try_from(growth).unwrap_or(u64::MAX)))
    }
}

fn limited(time: Span, most: Option<Span>) -> Span {
    most.map_or(time, |most| time.min(most))
}
