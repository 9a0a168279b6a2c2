//! A record under construction: the changes of a transaction, as written to the log.

use crate::log::{self, CHANGE_WORDS_MAX, COUNT_BITS, HEAD, LINE_WORDS};
use crate::memory::Memory;
use nvlab_os::stores;

/// Words of room that a record keeps for the next transaction.
const KEPT_WORDS: usize = 64 << 10;

/// Words that are compared at a time: a bit for each.
const PART_WORDS: usize = u64::BITS as usize;

/// Which words differ, of as many on both sides, at most [`PART_WORDS`].
#[inline(always)]
fn differing(old: &[u64], new: &[u64]) -> u64 {
    let words = new.len();
    assert!(old.len() == words && words <= PART_WORDS, "{} and {words} words", old.len());
    if words < LINE_WORDS {
        let pairs = old.iter().zip(new).enumerate();
        return pairs.fold(0, |mask, (k, (old, new))| mask | u64::from(old != new) << k);
    }
    let line = |first: usize| {
        // SAFETY: callers ask for eight words that there are.
        let [old, new] =
            [old, new].map(|words| unsafe { &*words.as_ptr().add(first).cast::<[u64; LINE_WORDS]>() });
        u64::from(stores::differing_words(old, new)) << first
    };
    let (mut mask, mut first) = (0, 0);
    while first + LINE_WORDS <= words {
        mask |= line(first);
        first += LINE_WORDS;
    }
    // The last eight words, of which the first ones may have been compared.
    mask | line(words - LINE_WORDS)
}

/// A gap of one word costs no more than another header.
#[inline(always)]
fn with_gaps(mask: u64) -> u64 {
    mask | (mask << 1) & (mask >> 1)
}

/// Takes the first words of a mask that follow each other out of it: the first, and the one behind the last.
#[inline(always)]
fn first_run(mask: &mut u64) -> (usize, usize) {
    let start = mask.trailing_zeros();
    let end = start + (*mask >> start).trailing_ones();
    *mask &= u64::MAX.checked_shl(end).unwrap_or(0);
    (start as usize, end as usize)
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    words: Vec<u64>,
}

impl Record {
    #[inline]
    pub fn begin(&mut self) {
        self.words.clear();
        self.reserve(0);
        self.append(&[0; HEAD]);
    }

    /// Room for changes of so many words in all, whatever their number, and for what fills up a line.
    #[inline]
    fn reserve(&mut self, words: usize) {
        let needed = words + (words >> (COUNT_BITS - 1)) + 2 + HEAD + LINE_WORDS;
        if self.words.capacity() - self.words.len() < needed {
            self.words.reserve(needed);
        }
    }

    /// Words for which there is room; the compiler knows how many.
    #[inline(always)]
    fn append<const N: usize>(&mut self, words: &[u64; N]) {
        let len = self.words.len();
        assert!(self.words.capacity() - len >= N, "{N} words behind {len}");
        // SAFETY: there is room.
        unsafe {
            self.words.as_mut_ptr().add(len).cast::<[u64; N]>().write(*words);
            self.words.set_len(len + N);
        }
    }

    /// A change for which there is room.
    #[inline(always)]
    fn change(&mut self, home: u64, words: &[u64]) {
        if words.len() > CHANGE_WORDS_MAX {
            return self.change_in_parts(home, words);
        }
        let len = self.words.len();
        assert!(self.words.capacity() - len > words.len(), "{} words behind {len}", words.len());
        // SAFETY: there is room. In whole words: the compiler would call a function for an unknown length.
        unsafe {
            let at = self.words.as_mut_ptr().add(len);
            at.write((home / 8) << COUNT_BITS | words.len() as u64);
            match words {
                // What most changes are.
                &[word] => at.add(1).write(word),
                _ => stores::copy_racing(at.add(1), words.as_ptr(), words.len()),
            }
            self.words.set_len(len + 1 + words.len());
        }
    }

    #[cold]
    fn change_in_parts(&mut self, home: u64, words: &[u64]) {
        for (i, part) in words.chunks(CHANGE_WORDS_MAX).enumerate() {
            self.change(home + (i * CHANGE_WORDS_MAX) as u64 * 8, part);
        }
    }

    /// All of these words.
    #[inline]
    pub fn push(&mut self, home: u64, words: &[u64]) {
        self.reserve(words.len());
        self.change(home, words);
    }

    /// The words that differ from the `old` ones, of which there are as many.
    #[inline]
    pub fn push_changed(&mut self, home: u64, old: &[u64], words: &[u64]) {
        self.reserve(words.len());
        match (old, words) {
            // A count, mostly.
            (&[old], &[word]) => {
                if old != word {
                    self.change(home, &[word]);
                }
            }
            _ if words.len() <= PART_WORDS => {
                let mut mask = with_gaps(differing(old, words));
                while mask != 0 {
                    let (start, end) = first_run(&mut mask);
                    self.change(home + start as u64 * 8, &words[start..end]);
                }
            }
            _ => self.push_changed_parts(home, old, words),
        }
    }

    /// The same of many words.
    #[inline(never)]
    fn push_changed_parts(&mut self, home: u64, old: &[u64], words: &[u64]) {
        // What differs last and is to be recorded, with what follows it if no more than one word lies between.
        let mut last = 0..0;
        for (i, (old, new)) in old.chunks(PART_WORDS).zip(words.chunks(PART_WORDS)).enumerate() {
            let mut mask = with_gaps(differing(old, new));
            while mask != 0 {
                let (start, end) = first_run(&mut mask);
                let run = i * PART_WORDS + start..i * PART_WORDS + end;
                if run.start > last.end + 1 || last.is_empty() {
                    if !last.is_empty() {
                        self.change(home + last.start as u64 * 8, &words[last]);
                    }
                    last = run;
                } else {
                    last.end = run.end;
                }
            }
        }
        if !last.is_empty() {
            self.change(home + last.start as u64 * 8, &words[last]);
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.len() == HEAD
    }

    /// Bytes it takes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        (self.words.len().next_multiple_of(LINE_WORDS) * 8) as u64
    }

    /// The words to be written at `at`.
    #[inline(always)]
    pub fn finish(&mut self, identity: u64, at: u64, clock: u64, epoch: u64) -> &[u64] {
        while !self.words.len().is_multiple_of(LINE_WORDS) {
            self.append(&[0]);
        }
        log::seal(&mut self.words, identity, at, clock, epoch);
        &self.words
    }

    /// The changes: where they lie, and the words.
    #[inline(always)]
    fn changes(&self) -> impl Iterator<Item = (u64, &[u64])> + Clone {
        let mut rest = &self.words[HEAD..];
        std::iter::from_fn(move || {
            let (&head, after) = rest.split_first().filter(|&(&head, _)| head != 0)?;
            let (words, next) = after.split_at(head as usize & CHANGE_WORDS_MAX);
            rest = next;
            Some(((head >> COUNT_BITS) * 8, words))
        })
    }

    /// Where the changes lie: first byte and bytes.
    pub fn homes(&self) -> impl Iterator<Item = (u64, u64)> + Clone {
        self.changes().map(|(home, words)| (home, words.len() as u64 * 8))
    }

    /// Brings the changes home.
    ///
    /// # Safety
    /// They lie in the file.
    #[inline(always)]
    pub unsafe fn apply(&self, memory: &Memory) {
        // SAFETY: passed on.
        self.changes().for_each(|(home, words)| unsafe { memory.store_checked(home, words) });
    }

    /// Whether it takes more memory than is kept for the next one.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.words.capacity() > KEPT_WORDS
    }

    /// Returns the memory of a large one to the system.
    pub fn release(&mut self) {
        if self.is_large() {
            self.words = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a record says is what has changed, whatever has: as a plain copy would.
    #[test]
    fn every_difference_is_recorded() {
        let mut seed = 88_172_645_463_325_252_u64;
        for round in 0..20_000_usize {
            let len = round % 147;
            let old: Vec<u64> = (0..len as u64).collect();
            let mut new = old.clone();
            for word in &mut new {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *word ^= u64::from(seed >> 33 & 3 <= (round / 147) as u64 % 4) << (seed >> 58);
            }
            let mut record = Record::default();
            record.begin();
            record.push_changed(8000, &old, &new);
            assert_eq!(record.is_empty(), old == new);
            let (mut found, mut end) = (old, 0);
            log::for_each(&record.words, |home, words| {
                let first = (home - 8000) as usize / 8;
                assert!(end == 0 || first > end + 1, "a gap of {} words", first - end);
                found[first..first + words.len()].copy_from_slice(words);
                end = first + words.len();
                Ok(())
            })
            .unwrap();
            assert_eq!(found, new);
        }
    }
}
