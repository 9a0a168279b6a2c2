//! Statistics common to all media: number of operations, bytes, time.

use nvlab_units::Span;

/// Totals of one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of operations.
    pub count: u64,
    /// Bytes requested.
    pub bytes: u64,
    /// Time the lanes worked on it, summed over the lanes (so it may exceed the length of the run). Saturates
    /// at 213 days: a statistic must not end a run.
    pub busy: Span,
}

impl Tally {
    /// Adds one operation.
    #[inline]
    pub fn add(&mut self, bytes: u64, busy: Span) {
        self.count += 1;
        self.bytes += bytes;
        self.busy = Span::from_ps(self.busy.ps().saturating_add(busy.ps()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_saturates_instead_of_panicking() {
        let mut tally = Tally::default();
        tally.add(4096, Span::from_us(10));
        tally.add(512, Span::from_us(5));
        assert_eq!(tally, Tally { count: 2, bytes: 4608, busy: Span::from_us(15) });
        tally.add(0, Span::from_ps(u64::MAX));
        assert_eq!(tally.busy, Span::from_ps(u64::MAX));
    }
}
