//! Pointers that do not keep objects alive.

use super::{Strong, Weak, offset, tag};
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist, Shape};
use crate::tx::Tx;

impl<T: Persist<H>, H: Brand> Weak<T, H> {
    /// A pointer that keeps the object, if it still exists.
    pub fn upgrade(&self, tx: &Tx<'_, H>) -> Result<Option<Strong<T, H>>> {
        tx.raw.trust(self, self.word, true)?;
        let header = tx.raw.header(offset(self.word))?;
        let meta = header.meta();
        if meta.tag() != tag(self.word) || meta.weak() == 0 {
            return Err(tx.raw.distrust(Error::damaged(
                offset(self.word),
                "a weak pointer points to no object of its type",
            )));
        }
        (meta.strong() > 0).then(|| Strong::counted(tx.raw, header, self.word)).transpose()
    }
}

// SAFETY: eight bytes, not all of them zero; where they lead is checked when they are followed.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for Weak<T, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.points_to::<T, H>("weak");
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: eight initialised bytes, aligned.
        unsafe { *at.cast::<u64>() != 0 }
    }
}

// SAFETY: the same bytes, where zero stands for `None`: the pointer is a transparent `NonZeroU64`.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for Option<Weak<T, H>> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.points_to::<T, H>("weak?");
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}
