//! A medium's bytes in mapped memory: what was written survives when the process is killed at any instruction.

use nvlab_medium::Store;
use nvlab_os::Mapping;
use nvlab_os::stores::{LINE, copy_past_caches, copy_words};
use prefetch_index::prefetch_index;
use std::sync::atomic::{Ordering, compiler_fence};

/// Tables change at most a sector and the head of its journal record at once.
const IN_WORDS_MAX: usize = 1024;

/// Bytes of a medium, in a file or (without state) in memory.
#[derive(Debug)]
pub struct MappedStore {
    mapping: Mapping,
    /// Payload is written past the processor's caches.
    streams: bool,
}

impl MappedStore {
    /// A store over a mapping; zeros read as a fresh store.
    pub(crate) fn new(mapping: Mapping) -> MappedStore {
        MappedStore { mapping, streams: false }
    }

    /// The same for a medium much larger than the processor's caches: payload is written past them. Before another thread
    /// uses it, call [`nvlab_os::stores::publish`].
    pub(crate) fn streaming(mapping: Mapping) -> MappedStore {
        MappedStore { mapping, streams: true }
    }
}

impl Store for MappedStore {
    const KEEPS: bool = true;
    const SHOWS: bool = true;

    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(self.view(offset, into.len()));
    }

    fn view(&self, offset: u64, bytes: usize) -> &[u8] {
        &self.mapping.as_slice()[offset as usize..][..bytes]
    }

    #[inline]
    fn prefetch(&self, offset: u64, bytes: usize) {
        let all = self.mapping.as_slice();
        (0..bytes).step_by(LINE).for_each(|line| prefetch_index(all, offset as usize + line));
    }

    /// Writes reach the memory in the order of the calls, so that a kill leaves those before it and nothing else. Entries
    /// of tables change in one instruction each, as in PRAM and SRAM at a power cut. Payload, which is longer than any
    /// table changes at once, is copied in any order.
    #[inline]
    fn write(&mut self, offset: u64, data: &[u8]) {
        let start = offset as usize;
        let into = &mut self.mapping.as_mut_slice()[start..start + data.len()];
        match data.len() <= IN_WORDS_MAX {
            true => copy_words(into, data),
            false if self.streams => copy_past_caches(into, data),
            false => {
                compiler_fence(Ordering::Release);
                into.copy_from_slice(data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_and_tables_are_written_where_they_belong() {
        for make in [MappedStore::new, MappedStore::streaming] {
            let mut store = make(Mapping::anonymous(8192).unwrap());
            let mut model = vec![0; 8192];
            for bytes in [1, 8, 40, IN_WORDS_MAX, IN_WORDS_MAX + 1, 4096] {
                let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + bytes) as u8).collect();
                store.write(13 * bytes as u64 % 4096, &data);
                model[13 * bytes % 4096..][..bytes].copy_from_slice(&data);
                let mut found = vec![0; model.len()];
                store.read(0, &mut found);
                assert_eq!(found, model, "{bytes} B");
            }
        }
    }
}
