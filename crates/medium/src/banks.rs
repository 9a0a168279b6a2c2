//! Banks: the parts of an in-place medium that work in parallel. Each is a lane; addresses are striped across
//! them, so a long access keeps several busy. Also the timing and checks that [`crate::ram`] and [`crate::pcm`]
//! share.

use crate::MediumError;
use nvlab_units::{Interruption, Lane, Rate, Served, Span, Time};

/// The time of an access to consecutive words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first word: row access, or an asynchronous access (PRAM 80 ns, system 003 slide 5).
    pub first: Span,
    /// Every further word: burst, or a synchronous access (PRAM 10 ns, system 003 slide 5).
    pub next: Span,
}

impl Access {
    /// Every word takes the same time.
    pub const fn even(each: Span) -> Access {
        Access { first: each, next: each }
    }

    /// The first word takes `first`, the others are transferred at `rate`.
    pub const fn streaming(first: Span, rate: Rate, word_bytes: u32) -> Access {
        Access { first, next: rate.transfer(word_bytes as u64) }
    }

    /// The time an access of `words` words takes.
    #[inline]
    pub fn time(self, words: u64) -> Span {
        match words {
            0 => Span::ZERO,
            1 => self.first,
            _ => self.first + self.next * (words - 1),
        }
    }
}

/// The work of one request in one bank.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Words accessed.
    pub words: u64,
    /// Program steps (only where writing is not just an access).
    pub steps: u64,
    /// When the bank begins the request; advanced to the start of each further piece.
    pub begin: Time,
}

/// The lanes of the banks, and the plan of the current request.
///
/// Invariant: only loads of banks in [`Banks::stripes`] are not clear.
#[derive(Clone, Debug)]
pub(crate) struct Banks {
    lanes: Box<[Lane]>,
    loads: Box<[Load]>,
    stripe_bytes: u64,
    /// log2 of the stripe size, if it is a power of two.
    shift: Option<u32>,
    /// Number of banks less one, if it is a power of two.
    mask: Option<u64>,
    /// The stripes of the current request: the first, and the one after the last. They are in consecutive banks.
    stripes: (u64, u64),
}

impl Banks {
    /// With a single bank, the stripe is the whole medium.
    pub fn new(count: u32, stripe_bytes: u64, capacity_bytes: u64) -> Banks {
        let stripe_bytes = if count == 1 { capacity_bytes } else { stripe_bytes };
        Banks {
            lanes: vec![Lane::new(); count as usize].into(),
            loads: vec![Load::default(); count as usize].into(),
            stripe_bytes,
            shift: match stripe_bytes {
                // Every address is in the first stripe.
                _ if count == 1 => Some(u64::BITS - 1),
                _ => stripe_bytes.is_power_of_two().then(|| stripe_bytes.trailing_zeros()),
            },
            mask: count.is_power_of_two().then(|| count as u64 - 1),
            stripes: (0, 0),
        }
    }

    /// Consecutive bytes in one bank.
    pub fn stripe_bytes(&self) -> u64 {
        self.stripe_bytes
    }

    #[inline]
    fn stripe_of(&self, offset: u64) -> u64 {
        match self.shift {
            Some(shift) => offset >> shift,
            None => offset / self.stripe_bytes,
        }
    }

    #[inline]
    fn bank_of(&self, stripe: u64) -> usize {
        match self.mask {
            Some(mask) => (stripe & mask) as usize,
            None => (stripe % self.loads.len() as u64) as usize,
        }
    }

    /// The current request's work in the bank that holds `offset`. The pieces of a request are planned in address order.
    #[inline]
    pub fn load(&mut self, offset: u64) -> &mut Load {
        let stripe = self.stripe_of(offset);
        let (first, end) = self.stripes;
        self.stripes = if first == end { (stripe, stripe + 1) } else { (first, end.max(stripe + 1)) };
        let bank = self.bank_of(stripe);
        &mut self.loads[bank]
    }

    /// Plans a whole request of consecutive bytes: in every bank it touches, the words of `1 << word_shift` bytes and
    /// the steps of `1 << step_shift` bytes it overlaps, both of which divide a stripe.
    #[inline]
    pub fn plan(&mut self, offset: u64, bytes: u64, word_shift: u32, step_shift: u32) {
        if let Some(bank) = self.only(offset, bytes) {
            let stripe = self.stripe_of(offset);
            self.stripes = (stripe, stripe + 1);
            let load = &mut self.loads[bank];
            load.words = aligned_count(offset, bytes, word_shift);
            load.steps = aligned_count(offset, bytes, step_shift);
            return;
        }
        if bytes == 0 {
            return;
        }
        let last = offset + bytes - 1;
        let (first_stripe, last_stripe) = (self.stripe_of(offset), self.stripe_of(last));
        self.stripes = (first_stripe, last_stripe + 1);
        let mut bank = self.bank_of(first_stripe);
        let count = self.loads.len() as u64;
        let touched = last_stripe - first_stripe + 1;
        for nth in 0..touched.min(count) {
            // The stripes of this bank, all taken as whole.
            let stripes = (touched - nth).div_ceil(count);
            let load = &mut self.loads[bank];
            load.words = stripes * (self.stripe_bytes >> word_shift);
            load.steps = stripes * (self.stripe_bytes >> step_shift);
            bank = if bank + 1 == self.loads.len() { 0 } else { bank + 1 };
        }
        // The parts of the first and last stripe outside the request.
        let before = offset - first_stripe * self.stripe_bytes;
        let behind = (last_stripe + 1) * self.stripe_bytes - 1 - last;
        for (stripe, outside) in [(first_stripe, before), (last_stripe, behind)] {
            let bank = self.bank_of(stripe);
            self.loads[bank].words -= outside >> word_shift;
            self.loads[bank].steps -= outside >> step_shift;
        }
    }

    /// The banks of the current request: the first, and how many.
    #[inline]
    fn touched(&self) -> (usize, usize) {
        let (first, end) = self.stripes;
        (self.bank_of(first), (end - first).min(self.loads.len() as u64) as usize)
    }

    /// Runs every bank's load, which takes `time(load)`. Returns when the first bank started and when the last was
    /// done, and the total work. The loads keep their `begin`; clear them with [`Banks::clear`].
    #[inline]
    pub fn serve(&mut self, at: Time, mut time: impl FnMut(&Load) -> Span) -> (Served, Span) {
        let (mut bank, banks) = self.touched();
        let mut all: Option<Served> = None;
        let mut busy = 0u64;
        for _ in 0..banks {
            let next = if bank + 1 == self.loads.len() { 0 } else { bank + 1 };
            let (lane, load) = (&mut self.lanes[bank], &mut self.loads[bank]);
            bank = next;
            if load.words == 0 {
                continue;
            }
            let span = time(load);
            let one = lane.foreground(at, span, &Interruption::Wait);
            load.begin = one.start;
            busy = busy.saturating_add(span.ps());
            all = Some(match all {
                None => one,
                Some(all) => Served { start: all.start.min(one.start), end: all.end.max(one.end) },
            });
        }
        (all.unwrap_or(Served { start: at, end: at }), Span::from_ps(busy))
    }

    /// The bank of a request that is inside one stripe; `None` if it touches several.
    #[inline(always)]
    pub fn only(&self, offset: u64, bytes: u64) -> Option<usize> {
        if bytes == 0 {
            return None;
        }
        let last = offset + bytes - 1;
        let (stripe, of_last) = match self.shift {
            Some(shift) => (offset >> shift, last >> shift),
            None => (offset / self.stripe_bytes, last / self.stripe_bytes),
        };
        (stripe == of_last).then(|| self.bank_of(stripe))
    }

    /// Runs work on one bank.
    #[inline(always)]
    pub fn serve_one(&mut self, bank: usize, at: Time, span: Span) -> Served {
        self.lanes[bank].foreground(at, span, &Interruption::Wait)
    }

    /// Keeps the banks of a range busy at least until `until`.
    #[inline]
    pub fn hold(&mut self, offset: u64, bytes: u64, until: Time) {
        for (offset, _) in pieces(offset, bytes, self.stripe_bytes) {
            let bank = self.bank_of(self.stripe_of(offset));
            let free_at = self.lanes[bank].free_at();
            self.serve_one(bank, free_at, until.since(free_at));
        }
    }

    /// Clears the loads of the current request.
    #[inline]
    pub fn clear(&mut self) {
        let (mut bank, banks) = self.touched();
        for _ in 0..banks {
            self.loads[bank] = Load::default();
            bank = if bank + 1 == self.loads.len() { 0 } else { bank + 1 };
        }
        self.stripes = (0, 0);
    }

    /// Makes every lane idle.
    pub fn reset(&mut self) {
        self.lanes.fill(Lane::new());
        self.loads.fill(Load::default());
        self.stripes = (0, 0);
    }
}

/// A byte range split at every multiple of a size: (offset, bytes) of each piece in address order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    offset: u64,
    limit: u64,
    size: u64,
}

/// Splits the range of `bytes` at `offset` at every multiple of `size`.
#[inline]
pub(crate) fn pieces(offset: u64, bytes: u64, size: u64) -> Pieces {
    Pieces { offset, limit: offset + bytes, size }
}

impl Iterator for Pieces {
    type Item = (u64, u64);
    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        if self.offset >= self.limit {
            return None;
        }
        let offset = self.offset;
        self.offset = ((offset / self.size + 1) * self.size).min(self.limit);
        Some((offset, self.offset - offset))
    }
}

/// How many aligned pieces of `1 << shift` bytes the range touches.
#[inline]
pub(crate) fn aligned_count(offset: u64, bytes: u64, shift: u32) -> u64 {
    match bytes {
        0 => 0,
        _ => ((offset + bytes - 1) >> shift) - (offset >> shift) + 1,
    }
}

/// Rejects a range that is not inside the medium; the error names the first byte outside.
#[inline]
pub(crate) fn check_range(offset: u64, bytes: u64, capacity: u64) -> Result<(), MediumError> {
    match offset.checked_add(bytes) {
        Some(limit) if limit <= capacity => Ok(()),
        _ => Err(MediumError::OutOfRange(offset.max(capacity), capacity)),
    }
}

/// Checks that a number is a power of two; the error uses `name`.
pub(crate) fn check_power_of_two(value: u64, name: &str) -> Result<(), String> {
    match value.is_power_of_two() {
        true => Ok(()),
        false => Err(format!("{name} must be a power of two, not {value}")),
    }
}

/// Checks the number of banks, and that a stripe is a multiple of `unit` bytes.
pub(crate) fn check_banks(banks: u32, stripe_bytes: u64, unit: u64, name: &str) -> Result<(), String> {
    if banks == 0 {
        return Err("banks must be at least 1".into());
    }
    if banks > 1 && (stripe_bytes == 0 || !stripe_bytes.is_multiple_of(unit)) {
        return Err(format!("a stripe of {stripe_bytes} B is not a multiple of {name} ({unit} B)"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_tile_the_range() {
        assert_eq!(pieces(10, 20, 8).collect::<Vec<_>>(), [(10, 6), (16, 8), (24, 6)]);
        assert_eq!(pieces(16, 8, 8).collect::<Vec<_>>(), [(16, 8)]);
        assert_eq!(pieces(5, 0, 8).count(), 0);
    }

    #[test]
    fn partly_touched_words_count() {
        assert_eq!((aligned_count(0, 2, 1), aligned_count(1, 2, 1), aligned_count(7, 0, 1)), (1, 2, 0));
    }

    /// A request planned whole loads every bank as it would stripe by stripe.
    #[test]
    fn a_request_is_planned_as_its_pieces_are() {
        let mut rng = nvlab_units::Rng::new(8);
        for (count, stripe) in [(1, 0), (2, 64), (3, 192), (8, 64), (5, 4096)] {
            let capacity = 15 * 4096;
            let mut whole = Banks::new(count, stripe, capacity);
            let mut by_pieces = whole.clone();
            for _ in 0..2000 {
                let offset = rng.below(capacity);
                let bytes = 1 + rng.below(capacity - offset);
                whole.plan(offset, bytes, 4, 6);
                for (offset, bytes) in pieces(offset, bytes, by_pieces.stripe_bytes()) {
                    let load = by_pieces.load(offset);
                    load.words += aligned_count(offset, bytes, 4);
                    load.steps += aligned_count(offset, bytes, 6);
                }
                let loads =
                    |banks: &Banks| banks.loads.iter().map(|l| (l.words, l.steps)).collect::<Vec<_>>();
                assert_eq!(
                    loads(&whole),
                    loads(&by_pieces),
                    "{bytes} B at {offset}, {count} banks of {stripe} B"
                );
                assert_eq!(whole.touched(), by_pieces.touched());
                whole.clear();
                by_pieces.clear();
                assert!(whole.loads.iter().all(|load| load.words == 0 && load.steps == 0));
            }
        }
    }

    #[test]
    fn ranges_past_the_end_are_refused() {
        assert!(check_range(0, 64, 64).is_ok() && check_range(64, 0, 64).is_ok());
        assert_eq!(check_range(63, 2, 64), Err(MediumError::OutOfRange(64, 64)));
        assert_eq!(check_range(100, 1, 64), Err(MediumError::OutOfRange(100, 64)));
        assert_eq!(check_range(u64::MAX, 2, 64), Err(MediumError::OutOfRange(u64::MAX, 64)));
    }
}
