//! Objects read in place, word by word: a search needs a few words of a node, and a copy of it costs as many stores as it has words,
//! which wait behind the fence of the commit before.
//!
//! What is read counts only if the lock is afterwards what it was before, as with a copy: words are loaded atomically, and what they
//! say is not used before [`InPlace::is_unchanged`] has been asked.

use super::{RawTx, value_at};
use crate::error::Result;
use crate::layout::LINE;
use crate::lock::{self, Word};
use crate::sync::AtomicU64;
use nvlab_os::stores;
use std::sync::atomic::{Ordering, fence};

/// An object of the file that nobody had locked when this was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPlace<'t> {
    tx: RawTx<'t>,
    lock: &'t AtomicU64,
    before: Word,
    words: &'t [AtomicU64],
}

impl<'t> RawTx<'t> {
    /// The value of an object of type `tag`, the first `words` words of it. `None`: it must be copied, as this transaction or another
    /// changes it, or reads are from a snapshot, or it is of another type.
    #[inline(always)]
    pub fn in_place(self, at: u64, words: usize, tag: u16) -> Result<Option<InPlace<'t>>> {
        self.value_in_place(at, value_at(at), words, Some(tag))
    }

    /// The same of words that a lock protects, of an object's value if `tag` says of which type.
    #[inline(always)]
    pub fn value_in_place(
        self,
        lock: u64,
        home: u64,
        words: usize,
        tag: Option<u16>,
    ) -> Result<Option<InPlace<'t>>> {
        let source = self.source(lock, home, words, tag).map_err(|error| self.doom(error))?;
        let before = lock::load(source.lock);
        if !before.is_free() || self.context.is_past.get() || source.tag() != tag {
            return Ok(None);
        }
        Ok(Some(InPlace { tx: self, lock: source.lock, before, words: source.words() }))
    }
}

impl InPlace<'_> {
    /// The word of this index, as it is now.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }

    /// Whether all words read so far are of one moment.
    #[inline(always)]
    pub fn is_unchanged(&self) -> bool {
        fence(Ordering::Acquire);
        lock::load(self.lock) == self.before
    }

    /// Starts to load all of it: which word is read next may depend on the last.
    #[inline(always)]
    pub fn prefetch(&self) {
        let (first, bytes) = (self.words.as_ptr().cast::<u8>(), self.words.len() * 8);
        let mut at = LINE as usize;
        while at < bytes {
            stores::prefetch_for_load(first.wrapping_add(at));
            at += LINE as usize;
        }
        stores::prefetch_for_load(first.wrapping_add(bytes - 1));
    }

    /// What was read of it counts as read by the transaction, if nobody has changed it; false: it must be copied.
    #[inline(always)]
    pub fn has_read(self) -> Result<bool> {
        if !self.is_unchanged() {
            return Ok(false);
        }
        self.tx.core().memory.has_read(self.words.len());
        self.tx.has_read(&mut self.tx.context.state(), self.lock, self.before).map(|()| true)
    }

    /// Words of it, if nobody has changed them meanwhile; they count as read.
    #[inline(always)]
    pub fn read<const N: usize>(self, indices: [usize; N]) -> Result<Option<[u64; N]>> {
        let words = indices.map(|index| self.word(index));
        Ok(self.has_read()?.then_some(words))
    }
}
