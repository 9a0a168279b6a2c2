//! Pointers as values in the heap: what happens to a reference that is dropped.

use super::{PBox, Strong, Weak, offset};
use crate::persist::Brand;
use crate::tx::with_current;
use std::any::TypeId;
use std::fmt;

/// A pointer that lies in the heap, and how its reference is given back. What makes it `Persist` is written out, as the compiler's
/// messages about wrong programs would name the macro.
macro_rules! value {
    ($pointer:ident, $release:ident, $is_weak:literal) => {
        impl<T, H: Brand> Drop for $pointer<T, H> {
            fn drop(&mut self) {
                let (word, place) = (self.word, (&raw mut self.word).cast());
                with_current(TypeId::of::<H>(), |tx| {
                    // SAFETY: the word is not used again: the pointer is being dropped.
                    if unsafe { tx.trust_dropped(place, word, $is_weak) } {
                        tx.$release(offset(word));
                    }
                });
            }
        }

        impl<T, H: Brand> fmt::Debug for $pointer<T, H> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($pointer), "({:#x})"), offset(self.word))
            }
        }
    };
}

value!(PBox, release_strong, false);
value!(Strong, release_strong, false);
value!(Weak, release_weak, true);
