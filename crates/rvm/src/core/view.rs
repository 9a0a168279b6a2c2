//! A log in memory, read while others append to it: without its lock, and without a copy.

use nvlab_os::Mapping;
use nvlab_os::stores::LINE;

/// The records of a log in memory.
#[derive(Debug)]
pub struct View {
    /// Another one than that which is written to.
    mapping: Mapping,
    /// Where the area of records begins in it, and its bytes: multiples of a line.
    start: u64,
    capacity: u64,
}

impl View {
    /// Of an area of `capacity` bytes from `start` on.
    pub(crate) fn new(mapping: Mapping, start: u64, capacity: u64) -> View {
        assert!(start + capacity <= mapping.len() as u64, "{capacity} B at {start}");
        assert!(start.is_multiple_of(LINE as u64) && capacity.is_multiple_of(LINE as u64));
        View { mapping, start, capacity }
    }

    /// Bytes of forced records, from `position` on up to `end` at most. It ends where the area of records does, and before the
    /// line that `end` is in: that one is written again. None of them may be truncated meanwhile.
    pub(crate) fn get(&self, position: u64, end: u64) -> &[u8] {
        let at = position % self.capacity;
        let end = end / LINE as u64 * LINE as u64;
        let bytes = end.saturating_sub(position).min(self.capacity - at);
        let first = self.mapping.start().wrapping_add((self.start + at) as usize);
        // SAFETY: within the mapping, and nobody writes to these lines until they are truncated.
        unsafe { std::slice::from_raw_parts(first, bytes as usize) }
    }
}
