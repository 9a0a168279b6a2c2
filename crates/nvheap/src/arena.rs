//! The private copies of a transaction: memory of a thread that stays in place until the transaction ends.

use std::ptr::null_mut;

const CHUNK_WORDS: usize = 8192;

#[derive(Debug)]
pub(crate) struct Arena {
    chunks: Vec<Box<[u64]>>,
    /// The chunk in use, what is free of it, and how many words that is.
    chunk: usize,
    next: *mut u64,
    left: usize,
}

impl Default for Arena {
    fn default() -> Self {
        Arena { chunks: Vec::new(), chunk: 0, next: null_mut(), left: 0 }
    }
}

impl Arena {
    /// Room for this many words, with arbitrary contents.
    #[inline]
    pub fn take(&mut self, words: usize) -> *mut u64 {
        if words > self.left {
            self.advance(words);
        }
        let at = self.next;
        (self.next, self.left) = (at.wrapping_add(words), self.left - words);
        at
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
