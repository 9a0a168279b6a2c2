//! The private copies of a transaction, and the copies of what it reads: memory of a thread that stays in place until
//! the transaction ends. The space of the last copy made for reading is reused once it is no longer borrowed, so a
//! loop that reads one value after the other needs no additional memory.

use std::ptr::null_mut;

const CHUNK_WORDS: usize = 8192;

#[derive(Debug)]
pub(crate) struct Arena {
    chunks: Vec<Box<[u64]>>,
    /// The current chunk, and its free part.
    chunk: usize,
    next: *mut u64,
    end: *mut u64,
    /// Where the last copy for reading begins, if nothing has been taken since: a word that says how many read it.
    lent: *mut u64,
}

impl Default for Arena {
    fn default() -> Self {
        Arena { chunks: Vec::new(), chunk: 0, next: null_mut(), end: null_mut(), lent: null_mut() }
    }
}

impl Arena {
    /// Room for this many words, with arbitrary contents.
    #[inline]
    pub fn take(&mut self, words: usize) -> *mut u64 {
        self.keep_lent();
        self.take_next(words)
    }

    /// The place of the last copy that is read is not used again: something lies behind it.
    #[inline]
    fn keep_lent(&mut self) {
        // A store behind a fence waits for it, and there is room for a few dozen.
        if !self.lent.is_null() {
            self.lent = null_mut();
        }
    }

    #[inline]
    fn take_next(&mut self, words: usize) -> *mut u64 {
        if words * size_of::<u64>() > self.end.addr() - self.next.addr() {
            self.advance(words);
        }
        let at = self.next;
        self.next = at.wrapping_add(words);
        at
    }

    /// Room for a copy of so many words that is read, and a word in front of it that says so. `is_read` finds out whether the
    /// last one still is.
    #[inline]
    pub fn lend(&mut self, words: usize, is_read: impl FnOnce(*mut u64) -> bool) -> *mut u64 {
        if !self.lent.is_null() && !is_read(self.lent) {
            // Both are in the same chunk.
            self.next = self.lent;
        }
        self.lent = self.take_next(words + 1);
        self.lent
    }

    /// Goes on to a chunk with room for so many words.
    #[cold]
    fn advance(&mut self, words: usize) {
        let next = if self.next.is_null() { 0 } else { self.chunk + 1 };
        let found = (next..self.chunks.len()).find(|&chunk| self.chunks[chunk].len() >= words);
        self.chunk = found.unwrap_or_else(|| {
            self.chunks.push(vec![0; words.max(CHUNK_WORDS)].into_boxed_slice());
            self.chunks.len() - 1
        });
        self.use_chunk();
    }

    #[inline]
    fn use_chunk(&mut self) {
        (self.next, self.end) = match self.chunks.get_mut(self.chunk) {
            Some(chunk) => (chunk.as_mut_ptr(), chunk.as_mut_ptr().wrapping_add(chunk.len())),
            None => (null_mut(), null_mut()),
        };
    }

    /// Whether a word of it is here.
    pub fn contains(&self, place: *const u64) -> bool {
        self.chunks.iter().any(|chunk| chunk.as_ptr_range().contains(&place))
    }

    /// Everything is free again; what a large transaction needed is returned to the system.
    #[inline]
    pub fn clear(&mut self) {
        self.keep_lent();
        if self.chunk > 0 || self.chunks.first().is_some_and(|first| first.len() > CHUNK_WORDS) {
            self.release();
        }
        self.use_chunk();
    }

    #[cold]
    fn release(&mut self) {
        if self.chunks.len() > 4 || self.chunks.iter().any(|chunk| chunk.len() > CHUNK_WORDS) {
            self.chunks.clear();
        }
        self.chunk = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_of_reads_takes_no_memory_and_nothing_that_is_read_is_used_again() {
        let mut arena = Arena::default();
        let kept = arena.lend(5, |_| unreachable!("there is none"));
        let first = arena.lend(3, |last| last == kept);
        assert!(first >= kept.wrapping_add(6), "one that is read");
        for _ in 0..100_000 {
            assert_eq!(arena.lend(3, |last| last != first), first);
        }
        let longer = arena.lend(CHUNK_WORDS - 1, |_| false);
        assert!(arena.chunks.len() == 2 && longer != first);
        let private = arena.take(2);
        assert!(arena.lend(3, |_| unreachable!()) >= private.wrapping_add(2), "a private copy stays");
        arena.clear();
        assert_eq!(arena.lend(5, |_| unreachable!()), kept);
    }
}
