//! Latencies in logarithmic buckets: 64 buckets per factor of two, so every percentile is at most 1.6 % above the
//! true value, and adding a value costs one increment.

use crate::time::Span;

/// Buckets per factor of two, as a power of two.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
/// Values are nanoseconds; 2^48 ns (3.3 days) and above share the last bucket.
const BITS: u32 = 48;
const BUCKETS: usize = ((BITS - SUB_BITS + 1) as usize) << SUB_BITS;

/// A histogram of spans with nanosecond resolution and exact count, sum and maximum.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    sum_ps: u128,
    max: Span,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Box::new([0; BUCKETS]), sum_ps: 0, max: Span::ZERO }
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Histogram {{ count: {}, mean: {}, max: {} }}", self.count(), self.mean(), self.max)
    }
}

/// A histogram at rest: only its non-empty buckets, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedHistogram {
    counts: Box<[(u16, u64)]>,
    sum_ps: u128,
    max: Span,
}

impl PackedHistogram {
    /// Number of added values.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    let shift = (u64::BITS - (ns | SUB).leading_zeros()) - SUB_BITS - 1;
    let bucket = (((shift as u64) << SUB_BITS) + (ns >> shift)) as usize;
    bucket.min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper_ns(bucket: usize) -> u64 {
    let (bucket, sub) = (bucket as u64, SUB);
    if bucket < 2 * sub {
        return bucket;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    (((bucket & (sub - 1)) + sub + 1) << shift) - 1
}

impl Histogram {
    /// A histogram without values.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Adds one value, truncated to whole nanoseconds.
    #[inline]
    pub fn add(&mut self, span: Span) {
        self.add_all(&[span]);
    }

    /// Adds values: faster than one by one, since their sum and maximum stay in registers.
    #[inline]
    pub fn add_all(&mut self, spans: &[Span]) {
        let (mut sum, mut max) = (0, self.max);
        for &span in spans {
            self.counts[bucket_of(span.ns())] += 1;
            sum += span.ps() as u128;
            max = max.max(span);
        }
        self.sum_ps += sum;
        self.max = max;
    }

    /// Adds all values of another histogram: the result is exactly that of adding them one by one.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.sum_ps += other.sum_ps;
        self.max = self.max.max(other.max);
    }

    /// Adds all values of a histogram at rest.
    pub fn merge_packed(&mut self, other: &PackedHistogram) {
        for &(bucket, count) in &other.counts {
            self.counts[bucket as usize] += count;
        }
        self.sum_ps += other.sum_ps;
        self.max = self.max.max(other.max);
    }

    /// Packs the histogram and empties it.
    pub fn take_packed(&mut self) -> PackedHistogram {
        let counts = self.counts.iter_mut().enumerate().filter(|(_, count)| **count > 0);
        let counts = counts.map(|(bucket, count)| (bucket as u16, std::mem::take(count))).collect();
        PackedHistogram {
            counts,
            sum_ps: std::mem::take(&mut self.sum_ps),
            max: std::mem::take(&mut self.max),
        }
    }

    /// Number of added values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
    /// The exact mean; zero for an empty histogram.
    pub fn mean(&self) -> Span {
        match self.count() {
            0 => Span::ZERO,
            count => Span::from_ps((self.sum_ps / count as u128) as u64),
        }
    }
    /// The exact maximum.
    pub fn max(&self) -> Span {
        self.max
    }
    /// The smallest bucket bound that at least `fraction` of the values do not exceed, capped at the maximum.
    pub fn quantile(&self, fraction: f64) -> Span {
        let wanted = ((self.count() as f64 * fraction).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Span::from_ns(upper_ns(bucket)).min(self.max);
            }
        }
        self.max
    }
    /// Every non-empty bucket as (upper bound, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (Span, u64)> {
        let counts = self.counts.iter().enumerate();
        counts
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, &count)| (Span::from_ns(upper_ns(bucket)), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_line() {
        let mut last = 0;
        for ns in (0..5000).chain((13..BITS).flat_map(|b| [(1 << b) - 1, 1 << b, (1 << b) + 1])) {
            let bucket = bucket_of(ns);
            assert!(bucket >= last && ns <= upper_ns(bucket), "{ns}");
            assert!(bucket == 0 || ns > upper_ns(bucket - 1), "{ns}");
            assert!(upper_ns(bucket) - ns <= ns / SUB, "{ns} is further than 1.6 % from its bound");
            last = bucket;
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_of_a_ramp_and_merge() {
        let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for us in 1..=10_000 {
            let half = if us % 2 == 0 { &mut a } else { &mut b };
            half.add(Span::from_us(us));
            both.add(Span::from_us(us));
        }
        for (fraction, us) in [(0.5, 5_000.0), (0.99, 9_900.0), (0.999, 9_990.0), (1.0, 10_000.0)] {
            let found = both.quantile(fraction).ps() as f64 / 1e6;
            assert!((found / us - 1.0).abs() < 0.016, "{fraction}: {found}");
        }
        assert_eq!(both.mean().ps(), 5_000_500_000);
        assert_eq!(both.quantile(1.0), Span::from_us(10_000));
        let (before, packed) = (a.clone(), b.clone().take_packed());
        assert_eq!(packed.count(), 5_000);
        a.merge(&b);
        assert!(a == both);
        let mut unpacked = before;
        unpacked.merge_packed(&packed);
        assert!(unpacked == both && both.take_packed() == unpacked.take_packed() && both == Histogram::new());
    }
}
