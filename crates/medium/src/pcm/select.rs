//! Which steps of a write are programmed: all of them, or those with a word that differs.

use super::config::{PcmConfig, Selection};
use crate::banks::{aligned_count, pieces};

/// Finds the steps that differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Select {
    pub all: bool,
    pub step_shift: u32,
    /// Share of steps assumed to differ when nothing can be compared, and the fraction carried over from earlier
    /// writes.
    share: f64,
    carry: f64,
}

impl Select {
    pub fn new(config: &PcmConfig) -> Select {
        let share = match config.selection {
            Selection::All => 1.0,
            // A step is skipped only if none of its words differs.
            Selection::Differing { share } => 1.0 - (1.0 - share).powi(config.words_per_step as i32),
        };
        Select {
            all: config.selection == Selection::All,
            step_shift: config.step_bytes().trailing_zeros(),
            share,
            carry: 0.0,
        }
    }

    /// Steps to program in a range; `content` is its old and new bytes, where known.
    #[inline]
    pub fn steps(&mut self, offset: u64, bytes: u64, content: Option<(&[u8], &[u8])>) -> u64 {
        let steps = aligned_count(offset, bytes, self.step_shift);
        if self.all {
            return steps;
        }
        match content {
            Some((old, new)) if self.is_whole(offset, bytes) => self.whole_differing(old, new),
            Some((old, new)) => self.differing(offset, old, new).count() as u64,
            None => {
                // Exact in the long run and deterministic: no random number is drawn.
                let owed = self.carry + steps as f64 * self.share;
                self.carry = owed - owed.floor();
                owed as u64
            }
        }
    }

    /// True if the range consists of whole steps of at most 8 bytes: typical of tables of numbers.
    #[inline]
    fn is_whole(&self, offset: u64, bytes: u64) -> bool {
        self.step_shift <= 3 && (offset | bytes) & ((1 << self.step_shift) - 1) == 0
    }

    /// How many steps of a whole range differ, compared eight bytes at a time: comparing step by step took a fifth of
    /// hFTL's simulation time.
    #[inline]
    fn whole_differing(&self, old: &[u8], new: &[u8]) -> u64 {
        let step_bits = 8 << self.step_shift;
        // The highest bit of every step of 8 bytes.
        let high =
            (0..64 / step_bits).fold(0u64, |high, step| high | 1 << (step * step_bits + step_bits - 1));
        let differing = |old: u64, new: u64| {
            let differ = old ^ new;
            // A carry reaches the highest bit of a step iff any of its lower bits differs.
            ((differ & !high).wrapping_add(!high) | differ) & high
        };
        let (olds, news) = (old.chunks_exact(8), new.chunks_exact(8));
        let rest = differing(number(olds.remainder()), number(news.remainder()));
        let whole = olds.zip(news).map(|(old, new)| differing(number(old), number(new)).count_ones() as u64);
        whole.sum::<u64>() + rest.count_ones() as u64
    }

    /// The steps of a range to program, in address order, as (offset, bytes) of the part inside the range.
    pub fn differing<'a>(
        &self,
        offset: u64,
        old: &'a [u8],
        new: &'a [u8],
    ) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let all = self.all;
        pieces(offset, old.len() as u64, 1 << self.step_shift).filter(move |&(at, bytes)| {
            let inside = (at - offset) as usize..(at - offset + bytes) as usize;
            all || old[inside.clone()] != new[inside]
        })
    }
}

/// At most 8 bytes as a number.
#[inline]
fn number(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(bytes) => u64::from_le_bytes(bytes),
        Err(_) => bytes.iter().rev().fold(0, |number, &byte| number << 8 | byte as u64),
    }
}
