//! The mix of operations, and drawing the next one.

use crate::Op;
use nvlab_units::Rng;

/// Which operations there are, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    /// Drawn independently: shares of all requests; the rest are writes.
    Share {
        /// 0 to 1; `read + trim` is at most 1.
        read: f64,
        /// 0 to 1.
        trim: f64,
    },
    /// Each block is trimmed and then written (fio's `trimwrite`).
    TrimThenWrite,
}

/// The mix, prepared for drawing: limits to compare 64 random bits with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    only: Option<Op>,
    read_below: u64,
    trim_below: u64,
    then_write: bool,
}

impl Mix {
    pub(super) fn drawn(self) -> Drawn {
        let (read, trim) = match self {
            Mix::TrimThenWrite => {
                return Drawn { only: None, read_below: 0, trim_below: 0, then_write: true };
            }
            Mix::Share { read, trim } => (read, trim),
        };
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        assert!(is_share(read) && is_share(trim) && is_share(read + trim), "{self:?}");
        let only = if read == 1.0 {
            Some(Op::Read)
        } else if trim == 1.0 {
            Some(Op::Trim)
        } else if read + trim == 0.0 {
            Some(Op::Write)
        } else {
            None
        };
        // The cast saturates at 2^64 - 1: if both shares sum to 1, the limit is too low by 5e-20.
        let limit = |share: f64| (share * (1u128 << 64) as f64) as u64;
        Drawn { only, read_below: limit(read), trim_below: limit(read + trim), then_write: false }
    }
}

impl Drawn {
    /// The operation, if there is only one.
    pub fn only(&self) -> Option<Op> {
        self.only
    }

    /// The share of writes, if the others are reads: above 0, at most 1.
    pub fn write_share(&self) -> Option<f64> {
        let trims = self.then_write || self.trim_below > self.read_below;
        match self.only {
            Some(op) => (op == Op::Write).then_some(1.0),
            None => (!trims).then(|| 1.0 - self.read_below as f64 / (1u128 << 64) as f64),
        }
    }

    /// The mean number of bytes written if `bytes` are accessed; all of them if each is trimmed and then written.
    pub fn written_of(&self, bytes: u64) -> u64 {
        match self.only {
            Some(op) => (op == Op::Write) as u64 * bytes,
            None => ((bytes as u128 * ((1 << 64) - self.trim_below as u128)) >> 64) as u64,
        }
    }

    /// The next operation, and whether a write to the same place follows.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> (Op, bool) {
        if let Some(op) = self.only {
            return (op, false);
        }
        if self.then_write {
            return (Op::Trim, true);
        }
        // By table: a branch on a random number would be mispredicted for a third of the requests.
        let bits = rng.bits();
        let index = usize::from(bits >= self.read_below) + usize::from(bits >= self.trim_below);
        ([Op::Read, Op::Trim, Op::Write][index], false)
    }
}
