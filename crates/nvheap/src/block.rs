//! Layout of the blocks of a heap: the word of an object's header with its references and its type, and the positions
//! of an array's elements and their locks.
//!
//! An array block: the header, how many elements are still to be destroyed, its capacity, then in a large block a lock for
//! about 1 KiB of elements each; elements begin at a line. A small one has the lock of its header only.

use crate::layout::LINE;
use crate::space::{HEADER, SMALL_MAX};

/// References and type of an object: strong 28 bits, weak 20 bits, type + 1 in 16 bits; 0 if it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta(pub u64);

pub(crate) const STRONG_MAX: u64 = (1 << 28) - 1;
pub(crate) const WEAK_MAX: u64 = (1 << 20) - 1;

impl Meta {
    pub fn new(strong: u64, weak: u64, tag: u16) -> Meta {
        Meta(u64::from(tag) << 48 | weak << 28 | strong)
    }
    pub fn strong(self) -> u64 {
        self.0 & STRONG_MAX
    }
    pub fn weak(self) -> u64 {
        self.0 >> 28 & WEAK_MAX
    }
    /// 0 if the block is free.
    pub fn tag(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

/// Where an array block says how many elements are to be destroyed, and its capacity.
pub(crate) const LIVE_AT: u64 = HEADER;
pub(crate) const CAPACITY_AT: u64 = HEADER + 8;
/// Where the elements of a small array block begin, and the locks of a large one.
pub(crate) const ELEMENTS_AT: u64 = HEADER + 16;
/// Where the elements of an array block begin, how many of them share a lock, and where that lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayShape {
    pub capacity: u64,
    pub element_bytes: u64,
    per_lock: u64,
    elements_at: u64,
}

impl ArrayShape {
    /// Elements that share a lock take about so many bytes.
    const LOCKED_BYTES: u64 = 1024;

    /// `None` if no heap can have such a block.
    #[inline(always)]
    pub fn new(capacity: u64, element_bytes: u64) -> Option<ArrayShape> {
        let bytes =
            capacity.checked_mul(element_bytes)?.checked_add(ELEMENTS_AT).filter(|&bytes| bytes < 1 << 47)?;
        if bytes <= SMALL_MAX {
            return Some(ArrayShape { capacity, element_bytes, per_lock: 0, elements_at: ELEMENTS_AT });
        }
        let per_lock = (Self::LOCKED_BYTES / element_bytes.max(1)).max(1).next_power_of_two();
        let locks = capacity.div_ceil(per_lock);
        Some(ArrayShape {
            capacity,
            element_bytes,
            per_lock,
            elements_at: (ELEMENTS_AT + locks * 8).next_multiple_of(LINE),
        })
    }

    pub fn bytes(&self) -> u64 {
        self.elements_at + (self.capacity * self.element_bytes).next_multiple_of(8)
    }

    /// Where the locks of the elements of the block at `at` lie, if they have their own.
    pub fn locks(&self, at: u64) -> std::ops::Range<u64> {
        let locks = if self.is_small() { 0 } else { self.capacity.div_ceil(self.per_lock) };
        at + ELEMENTS_AT..at + ELEMENTS_AT + locks * 8
    }

    pub fn is_small(&self) -> bool {
        self.per_lock == 0
    }

    /// The lock of an element of the block at `at`, and where the element lies.
    #[inline(always)]
    pub fn element(&self, at: u64, index: u64) -> (u64, u64) {
        let lock = match self.per_lock {
            0 => at,
            per_lock => at + ELEMENTS_AT + (index >> per_lock.trailing_zeros()) * 8,
        };
        (lock, at + self.elements_at + index * self.element_bytes)
    }
}
