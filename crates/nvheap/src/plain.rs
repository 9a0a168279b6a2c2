//! Values that cannot be stored in a heap as Rust's own types: `Option` of a non-pointer has no layout guaranteed
//! across compilers, and the alignment of `u128` exceeds that of objects.

use crate::Persist;
use std::cmp::Ordering;
use std::fmt;

/// A value or none, with a fixed layout: an `Option` for heaps. A byte for the variant, then the value.
///
/// `Option`s of pointers and of `NonZero` numbers can be stored in heaps directly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Persist)]
#[repr(u8)]
pub enum Maybe<T> {
    /// None.
    #[default]
    None,
    /// A value.
    Some(T),
}

impl<T> Maybe<T> {
    /// The value, borrowed.
    pub fn as_ref(&self) -> Option<&T> {
        match self {
            Maybe::None => None,
            Maybe::Some(value) => Some(value),
        }
    }

    /// The value, borrowed mutably.
    pub fn as_mut(&mut self) -> Option<&mut T> {
        match self {
            Maybe::None => None,
            Maybe::Some(value) => Some(value),
        }
    }

    /// Takes the value out and leaves none.
    pub fn take(&mut self) -> Option<T> {
        std::mem::replace(self, Maybe::None).into()
    }
}

impl<T> From<Option<T>> for Maybe<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Maybe::None, Maybe::Some)
    }
}

impl<T> From<Maybe<T>> for Option<T> {
    fn from(value: Maybe<T>) -> Self {
        match value {
            Maybe::None => None,
            Maybe::Some(value) => Some(value),
        }
    }
}

macro_rules! wide {
    ($name:ident, $type:ty, $text:literal) => {
        #[doc = $text]
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Persist)]
        #[repr(C)]
        pub struct $name {
            low: u64,
            high: u64,
        }

        impl From<$type> for $name {
            fn from(value: $type) -> Self {
                $name { low: value as u64, high: (value >> 64) as u64 }
            }
        }

        impl From<$name> for $type {
            fn from($name { low, high }: $name) -> Self {
                ((high as $type) << 64) | low as $type
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                <$type>::from(*self).cmp(&<$type>::from(*other))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                <$type>::from(*self).fmt(f)
            }
        }
    };
}
wide!(U128, u128, "A `u128`, aligned to 8 bytes.");
wide!(I128, i128, "An `i128`, aligned to 8 bytes.");
