//! A bucket: at most fifteen entries, each with a byte of its hash, and the bucket behind it if they are not enough.

use crate::collections::guard::Lends;
use crate::collections::order::SLOTS;
use crate::collections::slot;
use crate::error::Result;
use crate::persist::{Brand, Pair, Persist, Shape};
use crate::pointer::{PBox, Write};
use std::mem::{MaybeUninit, offset_of};

/// Bytes of hashes: 0 marks a free slot. The last one is not used.
type Tags = [u8; SLOTS + 1];

/// Invariant: the slots whose tag is not 0 hold an entry.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Bucket<K, V, H: Brand> {
    tags: Tags,
    pub next: Option<PBox<Bucket<K, V, H>, H>>,
    entries: [MaybeUninit<Pair<K, V>>; SLOTS],
}

/// The byte of a hash: its upper bits, which the number of a bucket does not use.
#[inline]
pub(super) fn tag(hash: u64) -> u8 {
    (hash >> 57) as u8 | 0x80
}

impl<K, V, H: Brand> Bucket<K, V, H> {
    pub fn new() -> Self {
        Bucket { tags: [0; SLOTS + 1], next: None, entries: [const { MaybeUninit::zeroed() }; SLOTS] }
    }

    #[inline]
    pub fn is_used(&self, slot: usize) -> bool {
        self.tags[slot] != 0
    }

    pub fn is_empty(&self) -> bool {
        self.tags == [0; SLOTS + 1]
    }

    #[inline]
    pub fn entry(&self, slot: usize) -> &Pair<K, V> {
        assert!(self.is_used(slot), "slot {slot}");
        // SAFETY: a slot in use.
        unsafe { self.entries[slot].assume_init_ref() }
    }

    #[inline]
    pub fn entry_mut(&mut self, slot: usize) -> &mut Pair<K, V> {
        assert!(self.is_used(slot), "slot {slot}");
        // SAFETY: a slot in use.
        unsafe { self.entries[slot].assume_init_mut() }
    }

    /// The slot of the key that has this tag and that `is_equal` recognises.
    #[inline]
    pub fn find(&self, tag: u8, mut is_equal: impl FnMut(&K) -> Result<bool>) -> Result<Option<usize>> {
        let mut candidates = matches(&self.tags, tag);
        while candidates != 0 {
            let slot = candidates.trailing_zeros() as usize / 8;
            if is_equal(&self.entry(slot).0)? {
                return Ok(Some(slot));
            }
            candidates &= candidates - 1;
        }
        Ok(None)
    }

    /// A slot that is free.
    #[inline]
    pub fn free(&self) -> Option<usize> {
        let slot = matches(&self.tags, 0).trailing_zeros() as usize / 8;
        (slot < SLOTS).then_some(slot)
    }

    /// Puts an entry into a free slot.
    pub fn put(&mut self, slot: usize, tag: u8, key: K, value: V) {
        assert!(!self.is_used(slot) && tag != 0, "slot {slot}");
        self.entries[slot] = MaybeUninit::new(Pair(key, value));
        self.tags[slot] = tag;
    }

    /// Takes an entry out.
    pub fn take(&mut self, slot: usize) -> (K, V) {
        assert!(self.is_used(slot), "slot {slot}");
        self.tags[slot] = 0;
        // SAFETY: the slot was in use and is no more: this is the only value.
        let Pair(key, value) = unsafe { slot::take(&mut self.entries[slot]) };
        (key, value)
    }
}

/// The bytes that are equal to one, each as the highest bit of its place.
#[inline]
fn matches(tags: &Tags, tag: u8) -> u128 {
    const LOW: u128 = u128::MAX / 0xff * 0x7f;
    let different = u128::from_le_bytes(*tags) ^ (u128::from(tag) * (u128::MAX / 0xff));
    // The highest bit of a byte stays clear if the byte is 0; no carry leaves a byte.
    !(((different & LOW) + LOW) | different | LOW)
}

impl<K, V, H: Brand> Drop for Bucket<K, V, H> {
    fn drop(&mut self) {
        for slot in 0..SLOTS {
            if self.is_used(slot) {
                self.take(slot);
            }
        }
    }
}

// SAFETY: the fields are described; the slots in use are checked.
unsafe impl<H: Brand, K: Persist<H>, V: Persist<H>> Persist<H> for Bucket<K, V, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.begin(".bucket", SLOTS as u32, size_of::<Self>());
        shape.field::<Option<PBox<Self, H>>, H>("next", offset_of!(Self, next));
        shape.field::<[Pair<K, V>; SLOTS], H>("entries", offset_of!(Self, entries));
        shape.end();
    }
    #[inline]
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: initialised bytes, of which every pattern is a value.
        let tags = unsafe { (*at).tags };
        let is_entry = |slot: usize| {
            // SAFETY: an entry inside the bucket.
            tags[slot] == 0
                || unsafe { <Pair<K, V> as Persist<H>>::is_valid((&raw const (*at).entries[slot]).cast()) }
        };
        tags[SLOTS] == 0 && (K::ANY_BYTES && V::ANY_BYTES || (0..SLOTS).all(is_entry))
    }
}

impl<K, V, H: Brand> Lends<V> for Write<'_, Bucket<K, V, H>> {
    fn value(&self, index: usize) -> &V {
        &self.entry(index).1
    }

    fn value_mut(&mut self, index: usize) -> &mut V {
        &mut self.entry_mut(index).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_all_at_once() {
        let mut tags: Tags = std::array::from_fn(|slot| 0x80 | slot as u8);
        (tags[3], tags[9], tags[15]) = (0, 0x81, 0);
        let slots = |tag| {
            let found = matches(&tags, tag);
            (0..16).filter(|slot| found >> (slot * 8) & 0x80 != 0).collect::<Vec<_>>()
        };
        assert_eq!(
            (slots(0x81), slots(0), slots(0x83), slots(0x8e)),
            (vec![1, 9], vec![3, 15], vec![], vec![14])
        );
        assert_eq!(matches(&tags, 0x81).count_ones(), 2);
    }
}
