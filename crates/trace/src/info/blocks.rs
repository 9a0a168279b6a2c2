//! Which addresses are accessed, and how unevenly. Memory is proportional to the footprint.

/// Entries gathered before they are merged.
const GATHERED_MAX: usize = 1 << 21;

/// A set of byte ranges.
#[derive(Default)]
pub(super) struct Intervals {
    /// Sorted and disjoint: start, end.
    merged: Vec<(u64, u64)>,
    gathered: Vec<(u64, u64)>,
}

impl Intervals {
    pub fn add(&mut self, start: u64, end: u64) {
        // Sequential runs grow in place.
        match self.gathered.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => self.gathered.push((start, end)),
        }
        if self.gathered.len() >= GATHERED_MAX.max(self.merged.len()) {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.merged.append(&mut self.gathered);
        self.merged.sort_unstable();
        self.merged.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1;
            if touches {
                kept.1 = kept.1.max(next.1);
            }
            touches
        });
    }

    pub fn total(mut self) -> u64 {
        self.merge();
        self.merged.iter().map(|&(start, end)| end - start).sum()
    }
}

/// How often each block is written.
#[derive(Default)]
pub(super) struct BlockCounts {
    /// Sorted by block, with its count.
    merged: Vec<(u64, u32)>,
    gathered: Vec<u64>,
}

impl BlockCounts {
    pub fn add(&mut self, first: u64, last: u64) {
        for block in first..=last {
            self.gathered.push(block);
            if self.gathered.len() >= GATHERED_MAX.max(self.merged.len()) {
                self.merge();
            }
        }
    }

    fn merge(&mut self) {
        self.gathered.sort_unstable();
        let mut old = std::mem::take(&mut self.merged).into_iter().peekable();
        for run in self.gathered.chunk_by(|a, b| a == b) {
            while let Some(before) = old.next_if(|before| before.0 < run[0]) {
                self.merged.push(before);
            }
            let same = old.next_if(|same| same.0 == run[0]).map_or(0, |same| same.1);
            self.merged.push((run[0], same.saturating_add(run.len() as u32)));
        }
        self.merged.extend(old);
        self.gathered.clear();
    }

    pub fn into_sorted_counts(mut self) -> Vec<u32> {
        self.merge();
        let mut counts: Vec<u32> = self.merged.iter().map(|&(_, count)| count).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }
}

/// The share of all writes that go to the most written fifth of the blocks; `counts` is sorted in descending order.
pub(super) fn hot_share(counts: &[u32]) -> f64 {
    let sum = |counts: &[u32]| counts.iter().map(|&count| count as u64).sum::<u64>();
    super::share(sum(&counts[..counts.len().div_ceil(5)]), sum(counts))
}

/// The most likely Zipf exponent of `counts`, largest first.
///
/// The likelihood is maximal where the mean of ln(rank) over the writes equals its expected value; that decreases
/// with theta, so bisection finds it. Ranks come from the sample itself, which makes an even distribution with few
/// writes per block look slightly skewed: below 8 writes per block on average the result is `None`.
pub(super) fn zipf_theta(counts: &[u32]) -> Option<f64> {
    const WRITES_PER_BLOCK_MIN: f64 = 8.0;
    const BLOCKS_MIN: usize = 16;
    let writes: f64 = counts.iter().map(|&count| count as f64).sum();
    if counts.len() < BLOCKS_MIN || writes / (counts.len() as f64) < WRITES_PER_BLOCK_MIN {
        return None;
    }
    let log_rank = |rank: usize| (rank as f64 + 1.0).ln();
    let seen =
        counts.iter().enumerate().map(|(rank, &count)| count as f64 * log_rank(rank)).sum::<f64>() / writes;
    let (mut low, mut high) = (0.0, 5.0);
    for _ in 0..40 {
        let theta = (low + high) / 2.0;
        if expected_log_rank(counts.len(), theta) > seen {
            low = theta;
        } else {
            high = theta;
        }
    }
    Some((low + high) / 2.0)
}

/// The mean of ln(rank) under Zipf over `n` ranks: exact for the first ranks, by integrals over blocks of
/// ranks for the rest.
fn expected_log_rank(n: usize, theta: f64) -> f64 {
    const EXACT: usize = 1000;
    let (mut weight, mut weighted) = (0.0, 0.0);
    let mut add = |rank: f64, ranks: f64| {
        let log = rank.ln();
        let share = (-theta * log).exp() * ranks;
        weight += share;
        weighted += share * log;
    };
    (1..=n.min(EXACT)).for_each(|rank| add(rank as f64, 1.0));
    let mut rank = EXACT + 1;
    while rank <= n {
        // Blocks grow with rank: the weight changes by 1 % within one.
        let ranks = (rank / 100).min(n - rank + 1);
        add(rank as f64 + (ranks as f64 - 1.0) / 2.0, ranks as f64);
        rank += ranks;
    }
    weighted / weight
}
