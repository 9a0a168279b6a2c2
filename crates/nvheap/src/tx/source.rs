//! What a transaction reads or is about to change: found to lie in the file once, then copied.

use super::{Meta, RawTx, value_at};
use crate::error::Result;
use crate::space::HEADER;
use crate::sync::AtomicU64;
use std::sync::atomic::{Ordering, fence};

/// A lock, the word of a header that has the type if it is that of an object, and words that the lock protects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'m> {
    pub lock: &'m AtomicU64,
    meta: Option<&'m AtomicU64>,
    from: *const u64,
    words: usize,
}

impl<'m> Source<'m> {
    /// The type that the header behind the lock says.
    #[inline(always)]
    pub fn tag(&self) -> Option<u16> {
        self.meta.map(|meta| Meta(meta.load(Ordering::Relaxed)).tag())
    }

    /// The words where they lie.
    #[inline(always)]
    pub fn words(&self) -> &'m [AtomicU64] {
        // SAFETY: they lie in the file, aligned; every access to them is as of `Memory::word`.
        unsafe { std::slice::from_raw_parts(self.from.cast(), self.words) }
    }
}

impl<'t> RawTx<'t> {
    /// What is to be read: the value of an object, if it has a type, or words that a lock protects.
    #[inline(always)]
    pub(super) fn source(
        self,
        lock_at: u64,
        home: u64,
        words: usize,
        tag: Option<u16>,
    ) -> Result<Source<'t>> {
        let memory = &self.core().memory;
        let source = match tag {
            Some(_) => {
                assert_eq!(home, value_at(lock_at), "the value of an object");
                let at = memory.check_object(lock_at, HEADER + words as u64 * 8)?;
                // SAFETY: the lock, the word with the type and the value behind the header are in what was checked; they are accessed as
                // of `Memory::word`.
                unsafe {
                    let (lock, meta) = (&*at.cast::<AtomicU64>(), &*at.add(1).cast::<AtomicU64>());
                    Source { lock, meta: Some(meta), from: at.add(HEADER as usize / 8), words }
                }
            }
            None => {
                let from = memory.check(home, words as u64 * 8)?;
                Source { lock: memory.lock_word(lock_at)?, meta: None, from, words }
            }
        };
        memory.examine_locked(lock_at, home, words).map(|()| source)
    }

    /// Copies the words, and returns the type that the header behind the lock says, if that matters: to be believed if the lock
    /// is what it was before.
    ///
    /// # Safety
    /// `into` has room for the words.
    #[inline(always)]
    pub(super) unsafe fn copy(self, source: &Source<'_>, into: *mut u64) -> Option<u16> {
        let found = source.tag();
        // SAFETY: the source lies in the file; the caller answers for the other side.
        unsafe { self.core().memory.load_checked(source.from, into, source.words) };
        fence(Ordering::Acquire);
        found
    }
}
