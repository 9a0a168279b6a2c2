//! A medium's bytes in a mapped file: what was written stays when the process is killed at any instruction.

use crate::sys::mapping::Mapping;
use nvlab_medium::Store;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a medium, in a file or (for a window without state) in memory.
#[derive(Debug)]
pub struct MappedStore(Mapping);

impl MappedStore {
    /// A store over a mapping; zeros read as a fresh store.
    pub fn new(mapping: Mapping) -> MappedStore {
        MappedStore(mapping)
    }
}

impl Store for MappedStore {
    const KEEPS: bool = true;

    fn read(&self, offset: u64, into: &mut [u8]) {
        let start = offset as usize;
        into.copy_from_slice(&self.0.as_slice()[start..start + into.len()]);
    }

    /// An aligned word of 8 B changes in one instruction: a kill leaves it old or new. Longer writes may be cut
    /// between words, as a power cut does.
    fn write(&mut self, offset: u64, data: &[u8]) {
        let start = offset as usize;
        let into = &mut self.0.as_mut_slice()[start..start + data.len()];
        match <[u8; 8]>::try_from(data) {
            Ok(word) if start.is_multiple_of(8) => {
                // SAFETY: eight bytes, borrowed alone, at an aligned address (the mapping begins at a page).
                let cell = unsafe { AtomicU64::from_ptr(into.as_mut_ptr().cast()) };
                cell.store(u64::from_ne_bytes(word), Ordering::Relaxed);
            }
            _ => into.copy_from_slice(data),
        }
    }
}
