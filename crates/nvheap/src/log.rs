//! Records: what a commit writes to its thread's log before it changes anything at home.
//!
//! ```text
//! word 0   hash of the others, seeded with the heap's identity and the position of the record
//! word 1   clock of the commit
//! word 2   epoch << 32 | words of the record
//! then     changes: home / 8 << 20 | words, and the words; 0 where the last line is filled up
//! ```
//!
//! A record begins at a line, so that no line of a durable record is written again. One half of a log holds the records of
//! one epoch, one after the other; each is durable before the next is written. So the tail is where the next record does
//! not check, and a record of the same epoch behind the tail means damage.
//!
//! What order records are replayed in: by their clocks. Two transactions that changed the same object have clocks in the order
//! in which they held it, whatever their threads; others may be replayed in any order. No line is shared by commits of
//! different threads for it.
//!
//! When records may go: all records of an epoch together, when everything they changed is durable at home. Were one log
//! truncated alone, an older record of the same object in another log would undo the change. Commits read the epoch
//! while they hold their locks, so an object's later change is never in an earlier epoch.

use crate::error::{Error, Result};
use crate::hash::hash_words;
use crate::layout::LINE;
use crate::memory::Memory;

pub(crate) const LINE_WORDS: usize = LINE as usize / 8;
const HEAD: usize = 3;
const COUNT_BITS: u32 = 20;
/// The most words of one change.
const CHANGE_WORDS_MAX: usize = (1 << COUNT_BITS) - 1;

fn seed(identity: u64, at: u64) -> u64 {
    identity ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A record under construction.
#[derive(Debug, Default)]
pub(crate) struct Record {
    words: Vec<u64>,
}

impl Record {
    #[inline]
    pub fn begin(&mut self) {
        self.words.clear();
        self.words.extend([0; HEAD]);
    }

    #[inline]
    pub fn push(&mut self, home: u64, words: &[u64]) {
        let (part, rest) = words.split_at(words.len().min(CHANGE_WORDS_MAX));
        self.words.reserve(part.len() + 1);
        self.words.push((home / 8) << COUNT_BITS | part.len() as u64);
        self.words.extend_from_slice(part);
        if !rest.is_empty() {
            self.push(home + part.len() as u64 * 8, rest);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.words.len() == HEAD
    }

    /// Bytes in the log.
    #[inline]
    pub fn bytes(&self) -> u64 {
        (self.words.len().next_multiple_of(LINE_WORDS) * 8) as u64
    }

    /// The words to be written at `at`.
    #[inline]
    pub fn finish(&mut self, identity: u64, at: u64, clock: u64, epoch: u64) -> &[u64] {
        self.words.resize(self.words.len().next_multiple_of(LINE_WORDS), 0);
        self.words[1] = clock;
        self.words[2] = epoch << 32 | self.words.len() as u64;
        self.words[0] = hash_words(seed(identity, at), &self.words[1..]);
        &self.words
    }

    /// Brings the changes home.
    #[inline]
    pub fn apply(&self, memory: &Memory) -> Result<()> {
        for_each(&self.words, |home, words| memory.store(home, words))
    }
}

/// Calls `change(home, words)` for each change of a whole record.
#[inline]
pub(crate) fn for_each(record: &[u64], mut change: impl FnMut(u64, &[u64]) -> Result<()>) -> Result<()> {
    let mut rest = &record[HEAD..];
    while let Some((&head, after)) = rest.split_first() {
        let count = head as usize & CHANGE_WORDS_MAX;
        if count == 0 {
            break;
        }
        let Some((words, next)) = after.split_at_checked(count) else {
            return Err(Error::damaged((head >> COUNT_BITS) * 8, "a change is longer than its record"));
        };
        change((head >> COUNT_BITS) * 8, words)?;
        rest = next;
    }
    Ok(())
}

/// A record that was read: its clock and its words.
pub(crate) struct Found {
    pub clock: u64,
    pub words: Vec<u64>,
}

/// The epoch that a record at `at` would be of.
pub(crate) fn epoch_at(memory: &Memory, at: u64) -> Result<u64> {
    Ok(memory.load_words(at, HEAD)?[2] >> 32)
}

/// The record at `at`, if a whole one of the epoch is there that ends before `end`.
pub(crate) fn read(memory: &Memory, identity: u64, at: u64, end: u64, epoch: u64) -> Result<Option<Found>> {
    if at + LINE > end {
        return Ok(None);
    }
    let mut head = [0; HEAD];
    memory.copy_words(at, &mut head)?;
    let count = (head[2] & u64::from(u32::MAX)) as usize;
    let fits = count >= LINE_WORDS && count.is_multiple_of(LINE_WORDS) && count as u64 * 8 <= end - at;
    if head[2] >> 32 != epoch & u64::from(u32::MAX) || !fits {
        return Ok(None);
    }
    let words = memory.load_words(at, count)?;
    let is_whole = words[0] == hash_words(seed(identity, at), &words[1..]);
    Ok(is_whole.then_some(Found { clock: words[1], words }))
}

/// Starts to write back every line that the records of a half changed at home.
pub(crate) fn write_back(memory: &Memory, half: u64, bytes: u64) -> Result<()> {
    // Lines that many transactions change are flushed once; a filter of constant size finds most of them.
    const FILTER: usize = 2048;
    let mut seen = [u64::MAX; FILTER];
    let mut at = half;
    while at < half + bytes {
        let count = memory.settled(at, HEAD)?[2] as u32 as usize;
        assert!(
            count >= LINE_WORDS && at + count as u64 * 8 <= half + bytes,
            "a record of {count} words at {at}"
        );
        for_each(memory.settled(at, count)?, |home, words| {
            for line in home / LINE..=(home + words.len() as u64 * 8 - 1) / LINE {
                let place = &mut seen[line as usize % FILTER];
                if *place != line {
                    *place = line;
                    memory.write_back(line * LINE, LINE);
                }
            }
            Ok(())
        })?;
        at += count as u64 * 8;
    }
    Ok(())
}
