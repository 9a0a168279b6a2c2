//! Removes pointers from unreachable objects, and references that no pointer holds.

use super::{LIVE_AT, Meta, RawTx, value_at};
use crate::error::{Error, Result};
use crate::pointer::{offset, tag};
use std::num::NonZeroU64;

/// A pointer to be removed: one that may be none, or an array's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The object, the number of its type, and the words of its value.
    pub at: u64,
    pub tag: u16,
    pub words: usize,
    /// Which of the words.
    pub word: usize,
    pub is_array: bool,
}

impl RawTx<'_> {
    /// Subtracts forgotten references from the counts of an object. If none is left, it is destroyed.
    pub fn take_forgotten(self, at: u64, strong: u64, weak: u64) -> Result<()> {
        let header = self.header(at)?;
        let meta = header.meta();
        let left = meta.strong().checked_sub(strong).zip(meta.weak().checked_sub(weak));
        let (strong_left, weak_left) =
            left.ok_or_else(|| self.doom(Error::damaged(at, "more references were forgotten than counted")))?;
        header.set_meta(Meta::new(strong_left, weak_left, meta.tag()));
        self.allow(at, false, -(strong as i64));
        self.allow(at, true, -(weak as i64));
        if strong_left == 0 && strong > 0 {
            self.context.state().dead.push(at);
        } else if strong_left == 0 && weak_left == 0 && header.link() == at {
            // Destroyed already. One that a handle keeps is on a list, and goes with that.
            self.free(at)?;
        }
        Ok(())
    }

    /// Replaces a pointer by none, or an array by an empty one, as if the program dropped it. Nothing is done if the object has
    /// been destroyed.
    pub fn cut(self, cut: Cut) -> Result<()> {
        let meta = self.header(cut.at)?.meta();
        if meta.tag() != cut.tag || meta.strong() == 0 {
            return Ok(());
        }
        let data = self.change(cut.at, value_at(cut.at), cut.words, cut.tag)?.data;
        assert!(cut.word + if cut.is_array { 3 } else { 1 } <= cut.words, "{cut:?}");
        // SAFETY: words of the value, which nobody has borrowed: this transaction is the library's own.
        let Some(pointer) = NonZeroU64::new(unsafe { data.add(cut.word).replace(0) }) else { return Ok(()) };
        let at = offset(pointer);
        if cut.is_array {
            // SAFETY: as above: the length and the capacity.
            let (len, _) = unsafe { (data.add(cut.word + 1).replace(0), data.add(cut.word + 2).replace(0)) };
            if self.core().entry(tag(pointer)).is_some_and(|entry| entry.needs_drop) {
                // SAFETY: the private copy has a word.
                unsafe { *self.change(at, at + LIVE_AT, 1, 0)?.data = len };
            }
        }
        self.release_strong(at);
        Ok(())
    }
}
