//! Records: written by a commit to its thread's log before it changes anything at home.
//!
//! ```text
//! word 0   hash of the record as if this word were 0, seeded with the heap's identity and the position of the record
//! word 1   clock of the commit
//! word 2   epoch << 32 | words of the record
//! then     changes: home / 8 << 20 | words, and the words; 0 where the last line is filled up;
//!          or instead, where the changes are: position / 8 << 20, and the words of the record there
//! ```
//!
//! A record that half a log cannot hold lies in free pages, and one of a line in the log names them. Both wait for memory
//! together: if any line of either is missing, neither counts. The page table does not mention the pages, so a crash gives them
//! back; they are used again only after the epoch has ended, as freed pages are.
//!
//! A record begins at a line, so that no line of a durable record is written again. One half of a log holds the records of
//! one epoch, one after the other; each is durable before the next is written. So the tail is where the next record does
//! not check, and a record of the same epoch behind the tail means damage.
//!
//! What damage can be told from a torn record: a record is torn if the power fails before its fence, and then nothing of the
//! same epoch is behind it in its half. So a record of which a bit was lost later is reported, unless it is the last one of
//! its half: that one is taken for torn, and its transaction for one that did not commit. With two epochs in the logs, at
//! most one transaction in each half of each log can be lost like that. The same holds if the record lies in pages and
//! either it or the line that names it is damaged. A header of which one copy is damaged is found in the other.
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
use crate::renewal::Renewal;
use std::cell::RefCell;

pub(crate) const LINE_WORDS: usize = LINE as usize / 8;
pub(crate) const HEAD: usize = 3;
pub(crate) const COUNT_BITS: u32 = 20;
/// The most words of one change.
pub(crate) const CHANGE_WORDS_MAX: usize = (1 << COUNT_BITS) - 1;
/// The most words of a record.
pub(crate) const RECORD_WORDS_MAX: u64 = u32::MAX as u64 / LINE_WORDS as u64 * LINE_WORDS as u64;

fn seed(identity: u64, at: u64) -> u64 {
    identity ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Writes the head of a record that is to lie at `at`.
#[inline(always)]
pub(crate) fn seal(words: &mut [u64], identity: u64, at: u64, clock: u64, epoch: u64) {
    (words[0], words[1], words[2]) = (0, clock, epoch << 32 | words.len() as u64);
    words[0] = hash_words(seed(identity, at), words);
}

/// The record in a log that says where the changes are: in a record of `words` words that lies at `body`.
pub(crate) fn continued(body: u64, words: u64) -> [u64; LINE_WORDS] {
    let mut line = [0; LINE_WORDS];
    (line[HEAD], line[HEAD + 1]) = ((body / 8) << COUNT_BITS, words);
    line
}

/// Where the changes of a record are, if not in itself: the position and the words of another.
#[inline]
fn continues(record: &[u64]) -> Option<(u64, u64)> {
    let head = record[HEAD];
    (head != 0 && head as usize & CHANGE_WORDS_MAX == 0).then(|| ((head >> COUNT_BITS) * 8, record[HEAD + 1]))
}

/// Calls `change(home, words)` for each change of a whole record.
#[inline(always)]
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

/// A record that was read: its clock, its words, and the bytes that it takes in the log.
pub(crate) struct Found {
    pub clock: u64,
    pub words: Vec<u64>,
    pub log_bytes: u64,
}

/// The epoch that a record at `at` would be of.
pub(crate) fn epoch_at(memory: &Memory, at: u64) -> Result<u64> {
    Ok(memory.load_words(at, HEAD)?[2] >> 32)
}

/// The record at `at`, if a whole one of the epoch is there that ends before `end`.
pub(crate) fn read(memory: &Memory, identity: u64, at: u64, end: u64, epoch: u64) -> Result<Option<Found>> {
    let Some(words) = read_one(memory, identity, at, end, epoch)? else { return Ok(None) };
    let (clock, log_bytes) = (words[1], words.len() as u64 * 8);
    let Some((body, count)) = continues(&words) else {
        return Ok(Some(Found { clock, words, log_bytes }));
    };
    let body_end = count.checked_mul(8).and_then(|bytes| body.checked_add(bytes));
    let Some(body_end) = body_end.filter(|&end| end <= memory.bytes()) else {
        return Err(Error::damaged(at, "a record continues outside the file"));
    };
    let words = read_one(memory, identity, body, body_end, epoch)?;
    let words = words.filter(|words| words[1] == clock && words.len() as u64 == count);
    Ok(words.map(|words| Found { clock, words, log_bytes }))
}

fn read_one(memory: &Memory, identity: u64, at: u64, end: u64, epoch: u64) -> Result<Option<Vec<u64>>> {
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
    let mut words = memory.load_words(at, count)?;
    let hash = std::mem::take(&mut words[0]);
    Ok((hash == hash_words(seed(identity, at), &words)).then_some(words))
}

/// Starts to write back every line that the records of a half changed at home, with the checksums of these lines.
pub(crate) fn write_back(memory: &Memory, half: u64, bytes: u64) -> Result<()> {
    match memory.sums() {
        None => write_back_changes(
            memory,
            half,
            bytes,
            |_, _| Ok(()),
            |line| {
                memory.write_back_line(line);
                Ok(())
            },
        ),
        Some(sums) => {
            let renewal = RefCell::new(Renewal::new(sums, memory));
            let entries = |home, words| renewal.borrow_mut().entries(home, words);
            write_back_changes(memory, half, bytes, entries, |line| renewal.borrow_mut().changed(line))?;
            renewal.into_inner().finish()
        }
    }
}

/// Calls `changed(home, words)` for every change of the records of a half, and `line` for every line of it: once for most of those that
/// many transactions change.
#[inline(always)]
fn write_back_changes(
    memory: &Memory,
    half: u64,
    bytes: u64,
    changed: impl Fn(u64, usize) -> Result<()>,
    line: impl Fn(u64) -> Result<()>,
) -> Result<()> {
    // A filter of constant size.
    const FILTER: usize = 2048;
    const AHEAD_BYTES: u64 = 1024;
    let mut seen = [u64::MAX; FILTER];
    let (mut rest, mut ahead) = (memory.settled(half, (bytes / 8) as usize)?, half + AHEAD_BYTES);
    while !rest.is_empty() {
        let count = rest[2] as u32 as usize;
        assert!(
            count >= LINE_WORDS && count <= rest.len(),
            "a record of {count} words, {} before the end",
            rest.len()
        );
        let (record, next) = rest.split_at(count);
        // Stored past the caches, they come from memory.
        for _ in 0..count / LINE_WORDS {
            memory.prefetch_to_read(ahead);
            ahead += LINE;
        }
        let record = match continues(record) {
            Some((body, count)) => memory.settled(body, count as usize)?,
            None => record,
        };
        for_each(record, |home, words| {
            changed(home, words.len())?;
            let (mut at, end) = (home / LINE * LINE, home + words.len() as u64 * 8);
            while at < end {
                let place = &mut seen[(at / LINE) as usize % FILTER];
                if *place != at {
                    *place = at;
                    line(at)?;
                }
                at += LINE;
            }
            Ok(())
        })?;
        rest = next;
    }
    Ok(())
}
