//! Text and other bytes.

use crate::error::{Error, Result};
use crate::persist::{Brand, Persist, Shape};
use crate::tx::Tx;
use crate::vec::PVec;
use std::fmt;

/// Text in the heap. It is replaced as a whole.
#[repr(C)]
pub struct PString<H: Brand> {
    words: PVec<u64, H>,
    bytes: u64,
}

impl<H: Brand> PString<H> {
    /// An empty text, which takes no block.
    pub const fn empty() -> Self {
        PString { words: PVec::new(), bytes: 0 }
    }

    /// A copy of this text.
    pub fn new(tx: &Tx<'_, H>, text: &str) -> Result<Self> {
        let word = |i: usize| {
            let mut word = [0; 8];
            let part = &text.as_bytes()[i * 8..text.len().min(i * 8 + 8)];
            word[..part.len()].copy_from_slice(part);
            Ok(u64::from_le_bytes(word))
        };
        let words = PVec::from_fn(tx, text.len().div_ceil(8), word)?;
        Ok(PString { words, bytes: text.len() as u64 })
    }

    /// Replaces the text.
    pub fn set(&mut self, tx: &Tx<'_, H>, text: &str) -> Result<()> {
        *self = PString::new(tx, text)?;
        Ok(())
    }

    /// Bytes of the text.
    pub fn len(&self) -> usize {
        self.bytes as usize
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The text.
    pub fn get(&self, tx: &Tx<'_, H>) -> Result<String> {
        self.words.trust(tx)?;
        self.text(tx)
    }

    /// The same of one that is known to be one of this transaction's.
    pub(crate) fn text(&self, tx: &Tx<'_, H>) -> Result<String> {
        let damaged = |why: &str| tx.raw.distrust(Error::damaged(0, why));
        if self.words.len() != self.len().div_ceil(8) {
            return Err(damaged("a text whose length is not that of its words"));
        }
        let mut bytes = Vec::with_capacity(self.words.len().min(1 << 20) * 8);
        for index in 0..self.words.len() {
            bytes.extend(self.words.get(tx, index)?.to_le_bytes());
        }
        bytes.truncate(self.len());
        String::from_utf8(bytes).map_err(|_| damaged("a text that is not UTF-8"))
    }
}

impl<H: Brand> Default for PString<H> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<H: Brand> fmt::Debug for PString<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PString(len {})", self.bytes)
    }
}

// SAFETY: an array and a word, both checked when they are used.
unsafe impl<H: Brand> Persist<H> for PString<H> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.begin(".text", 0, size_of::<Self>());
        shape.field::<PVec<u64, H>, H>("words", 0);
        shape.field::<u64, H>("bytes", std::mem::offset_of!(Self, bytes));
        shape.end();
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}
