//! The private copies of a transaction: memory of a thread that stays in place until the transaction ends.

const CHUNK_WORDS: usize = 8192;

#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Box<[u64]>>,
    /// The chunk in use, and the words of it that are taken.
    chunk: usize,
    used: usize,
}

impl Arena {
    /// Room for this many words, with arbitrary contents.
    #[inline]
    pub fn take(&mut self, words: usize) -> *mut u64 {
        loop {
            match self.chunks.get_mut(self.chunk) {
                Some(chunk) if chunk.len() - self.used >= words => {
                    let at = chunk.as_mut_ptr().wrapping_add(self.used);
                    self.used += words;
                    return at;
                }
                Some(_) => (self.chunk, self.used) = (self.chunk + 1, 0),
                None => self.chunks.push(vec![0; words.max(CHUNK_WORDS)].into_boxed_slice()),
            }
        }
    }

    /// Everything is free again. What a large transaction needed is returned to the system.
    #[inline]
    pub fn clear(&mut self) {
        if self.chunks.len() > 4 || self.chunks.first().is_some_and(|chunk| chunk.len() > CHUNK_WORDS) {
            self.chunks.clear();
        }
        (self.chunk, self.used) = (0, 0);
    }
}
