//! The private copies of a transaction, and those of what it reads: memory of a thread that stays in place until the transaction
//! ends. The place of the copy that was read last is used again once nobody reads it any more, so a loop that reads one value
//! after the other takes no memory.

use std::ptr::null_mut;

const CHUNK_WORDS: usize = 8192;

#[derive(Debug)]
pub(crate) struct Arena {
    chunks: Vec<Box<[u64]>>,
    /// The chunk in use, what is free of it, and how many words that is.
    chunk: usize,
    next: *mut u64,
    left: usize,
    /// Where the last copy for reading begins, if nothing has been taken since: a word that says how many read it.
    lent: *mut u64,
}

impl Default for Arena {
    fn default() -> Self {
        Arena { chunks: Vec::new(), chunk: 0, next: null_mut(), left: 0, lent: null_mut() }
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
        if words > self.left {
            self.advance(words);
        }
        let at = self.next;
        (self.next, self.left) = (at.wrapping_add(words), self.left - words);
        at
    }

    /// Room for a copy of so many words that is read, behind a word that counts who does: one.
    #[inline]
    pub fn lend(&mut self, words: usize) -> *mut u64 {
        // SAFETY: the word is in a chunk, and only this thread knows it.
        if !self.lent.is_null() && unsafe { *self.lent } == 0 {
            // SAFETY: both are in the same chunk.
            self.left += unsafe { self.next.offset_from(self.lent) } as usize;
            self.next = self.lent;
        }
        let start = self.take_next(words + 1);
        self.lent = start;
        // SAFETY: the arena has this word in front of the others.
        unsafe {
            *start = 1;
            start.add(1)
        }
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
        (self.next, self.left) = match self.chunks.get_mut(self.chunk) {
            Some(chunk) => (chunk.as_mut_ptr(), chunk.len()),
            None => (null_mut(), 0),
        };
    }

    /// Everything is free again; what a large transaction needed is returned to the system.
    #[inline]
    pub fn clear(&mut self) {
        self.keep_lent();
        self.use_chunk();
        if self.chunk > 0 || self.left > CHUNK_WORDS {
            self.release();
        }
    }

    #[cold]
    fn release(&mut self) {
        if self.chunks.len() > 4 || self.chunks.iter().any(|chunk| chunk.len() > CHUNK_WORDS) {
            self.chunks.clear();
        }
        self.chunk = 0;
        self.use_chunk();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(copy: *mut u64, readers: u64) {
        // SAFETY: the word in front of a copy that was lent.
        unsafe { *copy.sub(1) = readers }
    }

    #[test]
    fn a_loop_of_reads_takes_no_memory_and_nothing_that_is_read_is_used_again() {
        let mut arena = Arena::default();
        let kept = arena.lend(5);
        let first = arena.lend(3);
        assert!(first >= kept.wrapping_add(5), "one that is read");
        for _ in 0..100_000 {
            is_read(first, 0);
            assert_eq!(arena.lend(3), first);
        }
        is_read(first, 0);
        let longer = arena.lend(CHUNK_WORDS);
        assert!(arena.chunks.len() == 2 && longer != first);
        is_read(longer, 0);
        let private = arena.take(2);
        assert!(arena.lend(3) >= private.wrapping_add(2), "a private copy stays");
        is_read(kept, 0);
        arena.clear();
        assert_eq!(arena.lend(5), kept);
    }
}
