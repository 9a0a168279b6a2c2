//! A medium's bytes in a mapped file: what was written stays when the process is killed at any instruction.

use crate::sys::mapping::Mapping;
use nvlab_medium::Store;
use prefetch_index::prefetch_index;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

const WORD: usize = 8;
const HALF: usize = WORD / 2;
/// Tables change at most a sector and the head of its journal record at once.
const IN_WORDS_MAX: usize = 1024;
const LINE: usize = 64;

/// Bytes of a medium, in a file or (for a window without state) in memory.
#[derive(Debug)]
pub struct MappedStore {
    mapping: Mapping,
    /// Payload is written past the processor's caches.
    streams: bool,
}

impl MappedStore {
    /// A store over a mapping; zeros read as a fresh store.
    pub fn new(mapping: Mapping) -> MappedStore {
        MappedStore { mapping, streams: false }
    }

    /// The same for a medium much larger than the processor's caches: payload is written past them. Whoever lets another
    /// thread use it calls `publish` before.
    pub fn streaming(mapping: Mapping) -> MappedStore {
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

    /// Writes reach the memory in the order of the calls, so that a kill leaves what was written before it and nothing else.
    /// Every aligned word of 8 B, or of 4 B where a write covers no more of it, changes in one instruction: a kill leaves
    /// it old or new, as a power cut leaves the entries of tables in PRAM and SRAM. Payload, which is longer than any
    /// table changes at once, is copied as the machine pleases.
    #[inline]
    fn write(&mut self, offset: u64, data: &[u8]) {
        compiler_fence(Ordering::Release);
        let start = offset as usize;
        let into = &mut self.mapping.as_mut_slice()[start..start + data.len()];
        if data.len() > IN_WORDS_MAX {
            return if self.streams { copy_past_caches(into, data) } else { into.copy_from_slice(data) };
        }
        let lead = (start.next_multiple_of(WORD) - start).min(data.len());
        let (head, data) = data.split_at(lead);
        let (head_into, into) = into.split_at_mut(lead);
        write_part(head_into, start, head);
        let (words, tail) = data.as_chunks::<WORD>();
        let (words_into, tail_into) = into.as_chunks_mut::<WORD>();
        for (into, &word) in words_into.iter_mut().zip(words) {
            // SAFETY: eight bytes, borrowed alone, at an aligned address (the mapping begins at a page).
            let cell = unsafe { AtomicU64::from_ptr(into.as_mut_ptr().cast()) };
            cell.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        write_part(tail_into, start + lead + words.len() * WORD, tail);
    }
}

/// Copies without first reading the lines that are written, and without driving others out of the caches: what a device
/// was given is seldom wanted back at once.
#[cfg(target_arch = "x86_64")]
fn copy_past_caches(into: &mut [u8], data: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    let lead = into.as_ptr().align_offset(LINE).min(into.len());
    let (head, data) = data.split_at(lead);
    let (head_into, into) = into.split_at_mut(lead);
    head_into.copy_from_slice(head);
    let (lines, tail) = data.as_chunks::<LINE>();
    let (lines_into, tail_into) = into.as_chunks_mut::<LINE>();
    for (into, line) in lines_into.iter_mut().zip(lines) {
        let (into, line) = (into.as_mut_ptr().cast::<__m128i>(), line.as_ptr().cast::<__m128i>());
        for i in 0..LINE / size_of::<__m128i>() {
            // SAFETY: both have the bytes of a line, and `into` begins at a multiple of one. SSE2 is part of x86-64.
            unsafe { _mm_stream_si128(into.add(i), _mm_loadu_si128(line.add(i))) };
        }
    }
    tail_into.copy_from_slice(tail);
}

#[cfg(not(target_arch = "x86_64"))]
fn copy_past_caches(into: &mut [u8], data: &[u8]) {
    into.copy_from_slice(data);
}

/// What this thread wrote to streaming stores is seen by a thread that it lets use them from now on. Once for a request: a
/// fence for each page would wait for its bytes to reach memory.
#[inline]
pub(crate) fn publish() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence. SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Less than a word, at `start`.
#[inline]
fn write_part(into: &mut [u8], start: usize, data: &[u8]) {
    match <[u8; HALF]>::try_from(data) {
        Ok(half) if start.is_multiple_of(HALF) => {
            // SAFETY: four bytes, borrowed alone, at an aligned address (the mapping begins at a page).
            let cell = unsafe { AtomicU32::from_ptr(into.as_mut_ptr().cast()) };
            cell.store(u32::from_ne_bytes(half), Ordering::Relaxed);
        }
        _ => into.copy_from_slice(data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_at_every_place_is_written_and_nothing_else() {
        for make in [MappedStore::new, MappedStore::streaming] {
            let mut store = make(Mapping::anonymous(4096).unwrap());
            let mut model = vec![0; 4096];
            for (round, start) in (16..90).enumerate() {
                for bytes in (0..40).chain(IN_WORDS_MAX..IN_WORDS_MAX + 70) {
                    let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + round + bytes) as u8).collect();
                    store.write(start as u64, &data);
                    model[start..start + bytes].copy_from_slice(&data);
                    let mut found = vec![0; model.len()];
                    store.read(0, &mut found);
                    assert_eq!(found, model, "{bytes} B at {start}");
                }
            }
        }
    }
}
