//! A persistent heap: blocks of memory allocated and freed within transactions.
//!
//! The heap lies in words of recoverable memory and changes them only through [`Words::set`], which logs the change: so
//! an allocation is kept or dropped with the transaction that made it. All positions are offsets from the beginning of
//! the heap, which may therefore be mapped anywhere.
//!
//! Invariants
//! 1. Blocks follow each other without gaps, from the first block to the end word. A block is a whole number of
//!    *chunks*.
//! 2. A block begins with its header word: its chunks, whether it is used, whether the block before it is free, and a
//!    check of all this and its place. An overwritten header is therefore found before it is believed.
//! 3. A free block also has a link to the next and the previous free block of its list in the two words after the
//!    header, and its chunks in its last word, where the block after it finds them.
//! 4. List `i` of `n` has the free blocks of `i + 1` chunks; the last list has all that are larger as well.
//! 5. Every free block is in exactly one list. A freed block is merged with free neighbours; only blocks made by
//!    [`Heap::preallocate`] lie free beside each other.
//!
//! A large block is split at its end, so that it stays in its list and only its size changes: three or four words are
//! logged for such an allocation, and a block that grows by a freed neighbour in front of which it lies keeps its place
//! as well. Blocks are aligned to 16 bytes and have 8 bytes of overhead.
//!
//! Format, in words of 8 bytes: magic, length in bytes, chunk in bytes, number of lists, counters ([`Statistics`]), the
//! heads of the lists, blocks, and the end word: a used header of 0 chunks.
//!
//! There is no lock: a program that shares a heap between threads admits one at a time, and lets no other transaction
//! change the heap while one that has changed it may still be aborted.

mod blocks;
mod region;
mod words;

use blocks::{FREE, Header, LINKS};
pub use region::InRegion;
pub use words::Words;

impl<W: Words + ?Sized> Words for &mut W {
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn get(&self, at: u64) -> u64 {
        (**self).get(at)
    }

    fn set(&mut self, at: u64, word: u64) -> crate::Result<()> {
        (**self).set(at, word)
    }
}

/// Errors of a heap. After [`Error::Damaged`] and [`Error::Memory`] a change may be incomplete, and the transaction
/// must be aborted; after the others nothing has been changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// There is no heap, or one of another version.
    #[error("there is no heap of this version")]
    Version,
    /// A size or offset out of its limits.
    #[error("{0}")]
    Invalid(String),
    /// The words around a block have been overwritten.
    #[error("the heap is damaged at offset {at}: {why}")]
    Damaged {
        /// Offset of the damaged word in the region.
        at: u64,
        /// What does not fit there.
        why: &'static str,
    },
    /// The block at this offset was freed before.
    #[error("the block at offset {0} is already free")]
    FreedTwice(u64),
    /// No free block is large enough, or the memory for a whole heap.
    #[error("there is no room for {0} B")]
    NoRoom(u64),
    /// The region refused a change: the transaction cannot go on.
    #[error(transparent)]
    Memory(#[from] crate::Error),
}

/// With [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What a heap has done since it was created or its counters were cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Allocations of a block from the list of its size.
    pub hits: u64,
    /// Allocations that split a block of another list, but for the last.
    pub misses: u64,
    /// Blocks of the last list that were allocated whole.
    pub large_hits: u64,
    /// Blocks of the last list that were split.
    pub large_misses: u64,
    /// Free bytes now, with the headers of the blocks. Not cleared.
    pub free_bytes: u64,
    /// Blocks freed, merged or not.
    pub frees: u64,
    /// Free neighbours that were merged with a freed block.
    pub merged: u64,
    /// Freed blocks that had no free neighbour.
    pub unmerged: u64,
    /// Times the last list became empty or ceased to be.
    pub large_changes: u64,
    /// Calls of [`Heap::preallocate`].
    pub preallocations: u64,
    /// Used bytes now, with the headers of the blocks.
    pub used_bytes: u64,
}

/// A counter in the heap.
#[derive(Clone, Copy)]
enum Counter {
    Hits,
    Misses,
    LargeHits,
    LargeMisses,
    FreeBytes,
    Frees,
    Merged,
    Unmerged,
    LargeChanges,
    Preallocations,
}

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"nvlheap1");
const COUNTERS: u64 = 32;
const COUNTER_COUNT: u64 = 10;
const LISTS: u64 = COUNTERS + 8 * COUNTER_COUNT;
/// Smallest chunk in bytes: a header, two links and the size at the end.
const CHUNK_BYTES_MIN: u64 = 32;

/// A heap: where its parts are. The blocks themselves are only in its words.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    chunk_bytes: u64,
    lists: u64,
    /// Offset of the first block's header.
    first: u64,
    /// Offset of the end word.
    end: u64,
}

impl Heap {
    /// Makes all of `words` an empty heap. `chunk_bytes` is a multiple of 16 from 32; there are `lists`
    /// lists, at least one.
    pub fn create<W: Words>(words: &mut W, chunk_bytes: u64, lists: u64) -> Result<Heap> {
        let heap = Heap::layout(words.bytes(), chunk_bytes, lists)?;
        let head = [MAGIC, words.bytes(), chunk_bytes, lists];
        for (at, word) in (0..).step_by(8).zip(head) {
            words.set(at, word)?;
        }
        for at in (COUNTERS..LISTS + 8 * lists).step_by(8) {
            words.set(at, 0)?;
        }
        let chunks = (heap.end - heap.first) / chunk_bytes;
        words.set(heap.end, Header { chunks: 0, used: true, after_free: true }.encode(heap.end))?;
        heap.put_free(words, heap.first, Header { chunks, used: false, after_free: false })?;
        heap.count(words, Counter::FreeBytes, chunks * chunk_bytes)?;
        Ok(heap)
    }

    /// Opens the heap that [`Heap::create`] made in `words`, if it has the same size.
    pub fn open<W: Words>(words: &W) -> Result<Heap> {
        if words.bytes() < LISTS || words.get(0) != MAGIC || words.get(8) != words.bytes() {
            return Err(Error::Version);
        }
        Heap::layout(words.bytes(), words.get(16), words.get(24)).map_err(|_| Error::Version)
    }

    fn layout(bytes: u64, chunk_bytes: u64, lists: u64) -> Result<Heap> {
        if chunk_bytes < CHUNK_BYTES_MIN || !chunk_bytes.is_multiple_of(16) {
            let limits = format!("a multiple of 16 B from {CHUNK_BYTES_MIN} B");
            return Err(Error::Invalid(format!("a heap's chunk is {limits}, not {chunk_bytes} B")));
        }
        if lists == 0 {
            return Err(Error::Invalid("a heap has at least one free list".into()));
        }
        // Blocks are aligned to 16 bytes, so their headers lie 8 bytes before that.
        let first =
            lists.checked_mul(8).and_then(|bytes| bytes.checked_add(LISTS + 8)?.checked_next_multiple_of(16));
        let first = first.ok_or(Error::NoRoom(u64::MAX))? - 8;
        let chunks = match first.checked_add(chunk_bytes + 8) {
            Some(least) if least <= bytes => (bytes - first - 8) / chunk_bytes,
            least => return Err(Error::NoRoom(least.unwrap_or(u64::MAX))),
        };
        Ok(Heap { chunk_bytes, lists, first, end: first + chunks * chunk_bytes })
    }

    /// The bytes of the heap at the beginning of `words`, which may be longer.
    pub fn length<W: Words>(words: &W) -> Result<u64> {
        (words.get(0) == MAGIC).then(|| words.get(8)).ok_or(Error::Version)
    }

    /// Allocates a block of at least `bytes` bytes and returns its offset. Its contents are undefined.
    pub fn allocate<W: Words>(&self, words: &mut W, bytes: u64) -> Result<u64> {
        let chunks = self.chunks(bytes)?;
        let (at, list) = self.find(words, chunks)?.ok_or(Error::NoRoom(bytes))?;
        let found = self.header(words, at)?;
        let is_whole = found.chunks == chunks;
        let counter = match (list == self.lists - 1, is_whole) {
            (false, true) => Counter::Hits,
            (false, false) => Counter::Misses,
            (true, true) => Counter::LargeHits,
            (true, false) => Counter::LargeMisses,
        };
        let block = at + (found.chunks - chunks) * self.chunk_bytes;
        let after_free = if is_whole {
            self.unlink(words, at, found)?;
            found.after_free
        } else {
            self.resize(words, at, found, found.chunks - chunks)?;
            true
        };
        words.set(block, Header { chunks, used: true, after_free }.encode(block))?;
        self.tell_next(words, block, chunks, false)?;
        self.count(words, counter, 1)?;
        self.count(words, Counter::FreeBytes, (chunks * self.chunk_bytes).wrapping_neg())?;
        Ok(block + 8)
    }

    /// Frees a block by the offset that [`Heap::allocate`] returned.
    pub fn free<W: Words>(&self, words: &mut W, at: u64) -> Result<()> {
        let (mut block, mut header) = self.used_block(words, at)?;
        let freed_bytes = header.chunks * self.chunk_bytes;
        let next = block + freed_bytes;
        let next_free = Some(self.header(words, next)?).filter(|next| !next.used);
        let before = match header.after_free {
            true => Some(self.free_before(words, block)?),
            false => None,
        };
        // Marks it for `FreedTwice`, also where it becomes the inside of a larger block.
        let (freed, mut merged) = (block, 0);
        if let Some(found) = next_free {
            self.unlink(words, next, found)?;
            header.chunks += found.chunks;
            merged += 1;
        }
        if let Some((at, found)) = before {
            words.set(freed, Header { used: false, ..header }.encode(freed))?;
            self.resize(words, at, found, found.chunks + header.chunks)?;
            (block, header.chunks) = (at, found.chunks + header.chunks);
            merged += 1;
        } else {
            self.put_free(words, block, Header { used: false, ..header })?;
        }
        self.tell_next(words, block, header.chunks, true)?;
        self.count(words, Counter::FreeBytes, freed_bytes)?;
        self.count(words, Counter::Frees, 1)?;
        match merged {
            0 => self.count(words, Counter::Unmerged, 1),
            _ => self.count(words, Counter::Merged, merged),
        }
    }

    /// Puts `blocks` free blocks of at least `bytes` bytes each on the list of their size. They stay there until they are
    /// allocated or a neighbour is freed.
    pub fn preallocate<W: Words>(&self, words: &mut W, bytes: u64, blocks: u64) -> Result<()> {
        let mut made = Vec::new();
        let outcome = loop {
            if made.len() as u64 == blocks {
                break Ok(());
            }
            match self.allocate(words, bytes) {
                Ok(block) => made.push(block),
                Err(error @ Error::NoRoom(_)) => break Err(error),
                Err(error) => return Err(error),
            }
        };
        for at in made {
            if outcome.is_err() {
                self.free(words, at)?;
                continue;
            }
            let (block, header) = self.used_block(words, at)?;
            self.put_free(words, block, Header { used: false, ..header })?;
            self.tell_next(words, block, header.chunks, true)?;
            self.count(words, Counter::FreeBytes, header.chunks * self.chunk_bytes)?;
        }
        self.count(words, Counter::Preallocations, 1)?;
        outcome
    }

    /// Whether a block of `bytes` bytes could be allocated now.
    pub fn fits<W: Words>(&self, words: &W, bytes: u64) -> Result<bool> {
        Ok(self.find(words, self.chunks(bytes)?)?.is_some())
    }

    /// The bytes that may be used of a block, at least those it was allocated with.
    pub fn usable<W: Words>(&self, words: &W, at: u64) -> Result<u64> {
        Ok(self.used_block(words, at)?.1.chunks * self.chunk_bytes - 8)
    }

    /// The counters, which lie in the heap and are as durable as it is.
    pub fn statistics<W: Words>(&self, words: &W) -> Statistics {
        let of = |counter: Counter| words.get(COUNTERS + 8 * counter as u64);
        Statistics {
            hits: of(Counter::Hits),
            misses: of(Counter::Misses),
            large_hits: of(Counter::LargeHits),
            large_misses: of(Counter::LargeMisses),
            free_bytes: of(Counter::FreeBytes),
            frees: of(Counter::Frees),
            merged: of(Counter::Merged),
            unmerged: of(Counter::Unmerged),
            large_changes: of(Counter::LargeChanges),
            preallocations: of(Counter::Preallocations),
            used_bytes: (self.end - self.first).saturating_sub(of(Counter::FreeBytes)),
        }
    }

    /// Sets every counter to 0, but for the free bytes.
    pub fn clear_statistics<W: Words>(&self, words: &mut W) -> Result<()> {
        for counter in (0..COUNTER_COUNT).filter(|&counter| counter != Counter::FreeBytes as u64) {
            words.set(COUNTERS + 8 * counter, 0)?;
        }
        Ok(())
    }

    /// Calls `see` with each block: its offset, its bytes without the header, and whether it is used.
    pub fn for_each_block<W: Words>(&self, words: &W, mut see: impl FnMut(u64, u64, bool)) -> Result<()> {
        let mut at = self.first;
        while at != self.end {
            let header = self.header(words, at)?;
            see(at + 8, header.chunks * self.chunk_bytes - 8, header.used);
            at += header.chunks * self.chunk_bytes;
        }
        Ok(())
    }

    /// Checks the whole heap against its invariants.
    pub fn check<W: Words>(&self, words: &W) -> Result<()> {
        let (mut at, mut free, mut free_chunks, mut after_free) = (self.first, 0, 0, false);
        while at != self.end {
            let header = self.header(words, at)?;
            let last = at + header.chunks * self.chunk_bytes - 8;
            let damaged = |why| Err(Error::Damaged { at, why });
            if header.after_free != after_free {
                return damaged("a block disagrees with the one before it");
            }
            if !header.used && words.get(last) != header.chunks {
                return damaged("the two sizes of a free block differ");
            }
            after_free = !header.used;
            free += u64::from(after_free);
            free_chunks += if after_free { header.chunks } else { 0 };
            at = last + 8;
        }
        let damaged = |at, why| Err(Error::Damaged { at, why });
        if self.header(words, self.end)?.after_free != after_free {
            return damaged(self.end, "the end disagrees with the block before it");
        }
        for list in 0..self.lists {
            let (mut at, mut previous) = (words.get(LISTS + 8 * list), FREE);
            while at != FREE {
                let header = self.free_header(words, at)?;
                if self.list(header.chunks) != list || words.get(at + 16) != previous || free == 0 {
                    return damaged(at, "a free list is damaged");
                }
                (previous, at, free) = (at, words.get(at + LINKS), free - 1);
            }
        }
        match free_chunks * self.chunk_bytes == self.statistics(words).free_bytes {
            _ if free != 0 => damaged(self.end, "a free block is in no list"),
            false => damaged(COUNTERS, "the free bytes are miscounted"),
            true => Ok(()),
        }
    }

    fn count<W: Words>(&self, words: &mut W, counter: Counter, by: u64) -> Result<()> {
        let at = COUNTERS + 8 * counter as u64;
        Ok(words.set(at, words.get(at).wrapping_add(by))?)
    }

    fn chunks(&self, bytes: u64) -> Result<u64> {
        match bytes.checked_add(8 + self.chunk_bytes - 1) {
            Some(bytes) => Ok(bytes / self.chunk_bytes),
            None => Err(Error::NoRoom(bytes)),
        }
    }

    fn list(&self, chunks: u64) -> u64 {
        chunks.min(self.lists) - 1
    }

    /// A free block of at least `chunks` chunks, and its list.
    fn find<W: Words>(&self, words: &W, chunks: u64) -> Result<Option<(u64, u64)>> {
        for list in self.list(chunks)..self.lists {
            let mut at = words.get(LISTS + 8 * list);
            let mut steps = 0;
            while at != FREE {
                if self.free_header(words, at)?.chunks >= chunks {
                    return Ok(Some((at, list)));
                }
                (at, steps) = (words.get(at + LINKS), steps + 1);
                if steps > (self.end - self.first) / self.chunk_bytes {
                    return Err(Error::Damaged { at, why: "a free list does not end" });
                }
            }
        }
        Ok(None)
    }
}
