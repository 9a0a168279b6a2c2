//! Changes of the reference counts of objects less the changes of the pointers to them ([`super::audit`]).

use super::shadow::{Shadow, private_words};
use crate::core::Core;
use crate::persist::TypeEntry;
use crate::pointer::offset;
use std::num::NonZeroU64;

/// Objects, each once for either kind of reference, and what is added to their balances.
pub(super) type Balances = Vec<(u64, i64)>;

pub(super) fn key(at: u64, is_weak: bool) -> u64 {
    at << 1 | u64::from(is_weak)
}

/// Adds `sign` for every pointer of a value.
pub(super) fn add_pointers(entry: &TypeEntry, words: &[u64], sign: i64, into: &mut Balances) {
    for pointer in &entry.pointers {
        if let Some(word) = words.get(pointer.word as usize).copied().and_then(NonZeroU64::new) {
            into.push((key(offset(word), pointer.is_weak), sign));
        }
    }
}

/// A private copy is about to be forgotten: the value has been dropped, or moved to another block.
pub(super) fn forgotten(core: &Core, shadow: &Shadow, into: &mut Balances, is_moved: bool) {
    let Some(entry) = core.entry(shadow.kind()) else { return };
    let words = shadow.words as usize;
    if !shadow.is_new()
        && let Ok(old) = core.memory.held(shadow.home, words)
    {
        add_pointers(entry, old, 1, into);
    }
    if is_moved {
        add_pointers(entry, private_words(shadow.data, words), -1, into);
    }
}
