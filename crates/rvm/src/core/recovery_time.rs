//! Estimated time to recover the current log, and the start of truncation derived from it.
//!
//! The estimate consists of a fixed part (status, syncs, the search after the last record), the bytes of the log,
//! which are read, checked and written once more, and the distinct pages of the segments that its records change.
//! Syncs are measured when the log is opened, the other costs by each truncation, the first of which therefore comes
//! early; until then they are constants.
//!
//! 1. A page counts once, however many records change it: in the epoch that is being truncated, in the next one, or
//!    in both.
//! 2. Truncation begins so early that the estimate stays below the target until it has ended: it leaves as much margin as
//!    the estimate has grown by during earlier truncations; at first, and at most, half of the target less the fixed part.
//! 3. If recovery of an empty log takes nearly as long as the target, or longer, truncation begins when the contents
//!    of the log take as long again: truncating with every commit would not help.

use crate::core::PAGE_BYTES;
use crate::log::status::MARK_BYTES;
use std::time::Duration;

/// A set of pages of one segment.
#[derive(Debug, Default)]
struct PageSet {
    /// A bit for each page.
    words: Vec<u64>,
    /// Indices of the words that are not 0.
    used: Vec<u32>,
}

impl PageSet {
    fn contains(&self, page: u64) -> bool {
        self.words.get((page / 64) as usize).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// Whether it was not there yet.
    fn insert(&mut self, page: u64) -> bool {
        let index = (page / 64) as usize;
        if index >= self.words.len() {
            self.words.resize((index + 1).next_power_of_two(), 0);
        }
        let (word, bit) = (&mut self.words[index], 1 << (page % 64));
        if *word == 0 {
            self.used.push(index as u32);
        }
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn clear(&mut self) {
        self.used.drain(..).for_each(|index| self.words[index as usize] = 0);
    }
}

/// The measured time of one operation, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Cost {
    ns: f64,
    is_measured: bool,
}

impl Cost {
    /// An assumption until something is measured.
    const fn initial(ns: f64) -> Cost {
        Cost { ns, is_measured: false }
    }

    /// Moves towards what was measured: to what the shortest fifth takes, as nobody commits during recovery. Four steps up take as much
    /// as one down. The first measurement counts as a whole.
    fn note(&mut self, ns: f64) {
        self.ns = match self.is_measured {
            false => ns,
            true if ns < self.ns => self.ns * 15.0 / 16.0,
            true => self.ns * 65.0 / 64.0,
        };
        self.is_measured = true;
    }
}

/// Nanoseconds for a byte of the log. On a device it is read at 1 GB/s, and written as fast; in memory it is checked, and what it
/// changes stored, at 1 GB/s.
const DEVICE_BYTE: Cost = Cost::initial(2.0);
const MEMORY_BYTE: Cost = Cost::initial(1.0);
/// For a page that is changed and written: a drive does 100,000 of them a second.
const PAGE: Cost = Cost::initial(1e4);
/// Recovery syncs what it writes once more, each segment, and the status twice; mapping a region syncs its segment.
const SYNCS: u32 = 5;
/// To open files and begin a thread.
const OPENING: Duration = Duration::from_micros(300);
/// From this many bytes and pages on, their time is a useful measurement.
const MEASURED_BYTES_MIN: u64 = 64 << 10;
const MEASURED_PAGES_MIN: u64 = 32;
/// Pages applied early if none have been: the time of one differs a thousandfold.
const FIRST_PAGES: u64 = 256;

/// What the parts of a truncation took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Took {
    /// To read the log and check it.
    pub log: Duration,
    /// To change pages and sync them.
    pub pages: Duration,
}

/// See the module. Times are nanoseconds.
#[derive(Debug)]
pub(super) struct RecoveryTime {
    target: f64,
    /// Time to recover an empty log.
    fixed: f64,
    log_byte: Cost,
    page: Cost,
    /// Changed pages of each segment: in the epoch that is being truncated, and since.
    old: Vec<PageSet>,
    new: Vec<PageSet>,
    old_count: u64,
    new_count: u64,
    /// Changed pages that are in `new` and not in `old`.
    only_new_count: u64,
    /// The estimate and the bytes of the log when the truncation under way began.
    began_at: (f64, u64),
    /// Growth of the estimate during earlier truncations.
    growth: f64,
}

impl RecoveryTime {
    /// For an empty log of `capacity` bytes, in memory or not, whose sync takes `sync`.
    pub fn new(target: Duration, is_memory: bool, capacity: u64, sync: Duration) -> RecoveryTime {
        let ns = |time: Duration| time.as_nanos() as f64;
        let log_byte = if is_memory { MEMORY_BYTE } else { DEVICE_BYTE };
        // Behind the last record so many bytes are read and searched.
        let search = log_byte.ns / 2.0 * MARK_BYTES.min(capacity) as f64;
        let fixed = ns(OPENING) + ns(sync * SYNCS) + search;
        let mut time = RecoveryTime {
            target: ns(target),
            fixed,
            log_byte,
            page: PAGE,
            old: Vec::new(),
            new: Vec::new(),
            old_count: 0,
            new_count: 0,
            only_new_count: 0,
            began_at: (fixed, 0),
            growth: 0.0,
        };
        time.growth = time.room() / 2.0;
        time
    }

    /// The part of the target that is left for the contents of the log.
    fn room(&self) -> f64 {
        (self.target - self.fixed).max(self.fixed)
    }

    /// A record changes these bytes of a segment.
    #[inline]
    pub fn add(&mut self, segment: u32, offset: u64, bytes: usize) {
        let first = offset / PAGE_BYTES;
        let last = (offset + bytes as u64).saturating_sub(1) / PAGE_BYTES;
        (first..=last).for_each(|page| self.add_page(segment as usize, page));
    }

    #[inline]
    fn add_page(&mut self, segment: usize, page: u64) {
        if segment >= self.new.len() {
            self.new.resize_with(segment + 1, PageSet::default);
        }
        if self.new[segment].insert(page) {
            self.new_count += 1;
            let is_old = self.old.get(segment).is_some_and(|old| old.contains(page));
            self.only_new_count += u64::from(!is_old);
        }
    }

    /// Distinct pages that the log changes.
    #[inline]
    fn pages(&self) -> u64 {
        self.old_count + self.only_new_count
    }

    /// The estimate for a log with `live_bytes`, in nanoseconds.
    #[inline]
    fn estimate(&self, live_bytes: u64) -> f64 {
        self.fixed + self.log_byte.ns * live_bytes as f64 + self.page.ns * self.pages() as f64
    }

    /// How long recovery of a log with `live_bytes` would take.
    pub fn of(&self, live_bytes: u64) -> Duration {
        Duration::from_nanos(self.estimate(live_bytes) as u64)
    }

    /// Whether it is time to truncate.
    #[inline]
    pub fn is_due(&self, live_bytes: u64) -> bool {
        let room = self.room();
        let is_first = !self.page.is_measured && self.pages() >= FIRST_PAGES;
        (is_first && self.target < f64::from(u32::MAX) * 1e9)
            || self.estimate(live_bytes) > self.fixed + room - self.growth.min(room / 2.0)
    }

    /// A truncation of all of the log begins.
    pub fn begin(&mut self, live_bytes: u64) {
        self.began_at = (self.estimate(live_bytes), live_bytes);
        std::mem::swap(&mut self.old, &mut self.new);
        (self.old_count, self.new_count, self.only_new_count) = (self.new_count, 0, 0);
    }

    /// Ends a truncation; the log has had `live_bytes` until now.
    pub fn end(&mut self, live_bytes: u64, took: Took) {
        let (estimate, bytes) = self.began_at;
        self.growth = (self.estimate(live_bytes) - estimate).max(self.growth * 7.0 / 8.0);
        let each = |time: Duration, count: u64| time.as_nanos() as f64 / count as f64;
        if !took.log.is_zero() && bytes >= MEASURED_BYTES_MIN {
            // Recovery writes once more what it reads.
            self.log_byte.note(2.0 * each(took.log, bytes));
        }
        if !took.pages.is_zero() && self.old_count >= MEASURED_PAGES_MIN {
            self.page.note(each(took.pages, self.old_count));
        }
        self.old.iter_mut().for_each(PageSet::clear);
        (self.old_count, self.only_new_count) = (0, self.new_count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SYNC: Duration = Duration::from_micros(100);

    /// What happens to a log.
    #[derive(Clone, Debug)]
    enum Step {
        Commit(u32, u64, usize),
        Begin,
        End(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..3u32, 0..3_000_000u64, 1..20_000usize).prop_map(|(segment, offset, bytes)| Step::Commit(segment, offset, bytes)),
            1 => Just(Step::Begin),
            1 => (1..5_000u64, 1..50_000u64).prop_map(|(log, pages)| Step::End(log, pages)),
        ]
    }

    type Epoch = (u64, BTreeSet<(u32, u64)>);

    proptest! {
        /// The estimate is that of the bytes and of the distinct pages of both epochs, whatever the order of commits and truncations,
        /// and a cost is never beyond what was measured and what it began with.
        #[test]
        fn bytes_and_distinct_pages_count(steps in prop::collection::vec(step(), 1..200)) {
            let mut time = RecoveryTime::new(Duration::from_secs(1), false, 1 << 26, SYNC);
            let fixed = time.fixed;
            let (mut old, mut new, mut is_truncating) = (Epoch::default(), Epoch::default(), false);
            for step in steps {
                match step {
                    Step::Commit(segment, offset, bytes) => {
                        time.add(segment, offset, bytes);
                        new.0 += bytes as u64 + 40;
                        let last = (offset + bytes as u64 - 1) / PAGE_BYTES;
                        new.1.extend((offset / PAGE_BYTES..=last).map(|page| (segment, page)));
                    }
                    Step::Begin if !is_truncating => {
                        time.begin(new.0);
                        (old, new, is_truncating) = (new, Epoch::default(), true);
                    }
                    Step::End(log, pages) if is_truncating => {
                        let [log, pages] = [log, pages].map(Duration::from_micros);
                        time.end(old.0 + new.0, Took { log, pages });
                        (old, is_truncating) = (Epoch::default(), false);
                    }
                    Step::Begin | Step::End(..) => {}
                }
                let (bytes, pages) = (old.0 + new.0, old.1.union(&new.1).count());
                let expected = fixed + time.log_byte.ns * bytes as f64 + time.page.ns * pages as f64;
                let found = time.of(bytes).as_nanos() as f64;
                prop_assert!((found - expected).abs() <= 1.0 + expected * 1e-9, "{} for {}", found, expected);
            }
        }

        /// What truncations take decides, whatever the costs were first; what some of them take because they are disturbed does not.
        #[test]
        fn costs_are_those_of_the_shortest_fifth(page_us in 1u64..100, disturbed in 2u64..50) {
            let mut time = RecoveryTime::new(Duration::from_secs(1), false, 1 << 26, SYNC);
            for round in 0..600u64 {
                (0..100).for_each(|page| time.add(0, page * PAGE_BYTES, 8));
                time.begin(100 << 10);
                let times = if round % 3 == 0 { 1 } else { disturbed };
                let took = Took { log: Duration::from_micros(100 * times), pages: Duration::from_micros(100 * page_us * times) };
                time.end(100 << 10, took);
            }
            let (page, expected) = (time.page.ns / 1e3, page_us as f64);
            prop_assert!((expected * 0.9..expected * 1.1).contains(&page), "{} us for {}", page, expected);
            let byte = time.log_byte.ns / (2.0 * 1e5 / f64::from(100 << 10));
            prop_assert!((0.9..1.1).contains(&byte), "{} times", byte);
        }

    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        /// Commits go on at a steady rate, and a truncation takes a part of the time that recovery would: the estimate stays below the
        /// target, and not needlessly far. The first truncations find out how much it grows meanwhile.
        #[test]
        fn the_target_is_kept_under_a_steady_load(target_ms in 5u64..100, page_us in 2u64..20, load in 0.02..0.45) {
            let target = Duration::from_millis(target_ms);
            let mut time = RecoveryTime::new(target, false, 1 << 26, SYNC);
            let (mut now_us, mut number, mut head, mut tail, mut truncations) = (0.0, 0u64, 0u64, 0u64, 0);
            // Each commit changes another page.
            let each_us = page_us as f64 / load;
            let (mut until, mut highest, mut took, mut end) = (None, Duration::ZERO, Took::default(), 0);
            while truncations < 60 {
                now_us += each_us;
                time.add(0, number % (1 << 22) * PAGE_BYTES, 100);
                (number, tail) = (number + 1, tail + 160);
                if truncations >= 40 {
                    highest = highest.max(time.of(tail - head));
                }
                if until.is_some_and(|until| now_us >= until) {
                    time.end(tail - head, took);
                    (head, until, truncations) = (end, None, truncations + 1);
                } else if until.is_none() && time.is_due(tail - head) {
                    time.begin(tail - head);
                    let pages = Duration::from_micros(time.old_count * page_us);
                    took = Took { log: Duration::from_nanos((tail - head) / 2), pages };
                    (end, until) = (tail, Some(now_us + (took.log + pages).as_micros() as f64 + 500.0));
                }
            }
            let least = target.max(Duration::from_nanos((time.fixed * 2.0) as u64));
            prop_assert!(highest <= least * 11 / 10, "{highest:?} of {least:?}");
            prop_assert!(highest >= least * 8 / 10, "{highest:?} of {least:?}");
        }
    }

    /// A target that not even an empty log meets does not lead to truncation by every commit.
    #[test]
    fn a_target_that_cannot_be_met_truncates_when_it_saves_half() {
        let mut time = RecoveryTime::new(Duration::ZERO, false, 1 << 26, SYNC);
        let mut commits = 0;
        while !time.is_due(commits * 100) {
            time.add(0, commits * PAGE_BYTES, 8);
            commits += 1;
        }
        let fixed = Duration::from_nanos(time.fixed as u64);
        assert!(time.of(commits * 100) >= fixed * 3 / 2 && commits > 20, "after {commits} commits");
    }
}
