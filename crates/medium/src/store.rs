//! Where a medium keeps its bytes, if it keeps any.
//!
//! Timing does not need payload: `()` keeps nothing and every call on it compiles away. [`MemStore`] keeps
//! bytes in memory, for tests and power-cut exploration; the serving edge provides a mapped file.

/// Bytes at offsets. A fresh store reads as zero everywhere.
pub trait Store {
    /// False if nothing is kept: callers skip work whose only purpose is payload.
    const KEEPS: bool;
    /// True if the bytes are in this process's memory and can be borrowed: [`Store::view`].
    const SHOWS: bool = false;
    /// Copies bytes out. Panics if the range is outside the store.
    fn read(&self, offset: u64, into: &mut [u8]);
    /// Bytes in place, without a copy: as many of them, from the first on, as are contiguous in memory; of an array of flash
    /// ([`crate::flash::Nand`]) whole units, at least one. Panics if the range is outside the store, or without
    /// [`Store::SHOWS`].
    fn view(&self, _offset: u64, _bytes: usize) -> &[u8] {
        panic!("a store that does not show what it keeps")
    }
    /// Copies bytes in. Panics if the range is outside the store.
    fn write(&mut self, offset: u64, data: &[u8]);
    /// The bytes at `to` become those at `from`, of as many bytes, all of them in units that were written whole. A store may keep them
    /// once for both, until either is written again.
    fn copy(&mut self, from: u64, to: u64, bytes: usize) {
        let mut copied = vec![0; bytes];
        self.read(from, &mut copied);
        self.write(to, &copied);
    }
    /// Prefetches `bytes` bytes at `offset`, which will be read soon.
    #[inline]
    fn prefetch(&self, _offset: u64, _bytes: usize) {}

    /// These bytes are not needed until they are written again, whenever the power fails: the store may give their room to
    /// others. Until then they read as zeros or as they were.
    #[inline]
    fn discard(&mut self, _offset: u64, _bytes: u64) {}
    /// False if the byte at `offset` has no room of its own: it was never written, or it was discarded.
    #[inline]
    fn holds(&self, _offset: u64) -> bool {
        true
    }
    /// Writes zeros.
    fn write_zeros(&mut self, offset: u64, bytes: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        for start in (0..bytes).step_by(ZEROS.len()) {
            self.write(offset + start, &ZEROS[..(bytes - start).min(ZEROS.len() as u64) as usize]);
        }
    }

    /// True if an earlier program left the unit at `offset` here, or should have, and nobody has compared it with its checksum
    /// since.
    #[inline]
    fn is_unverified(&self, _offset: u64) -> bool {
        false
    }
    /// The unit at `offset` is what its checksum says.
    #[inline]
    fn set_verified(&mut self, _offset: u64) {}
    /// The file in which an earlier program left the byte at `offset`, and where in the file.
    fn place(&self, _offset: u64) -> Option<(&'static str, u64)> {
        None
    }
}

impl Store for () {
    const KEEPS: bool = false;
    #[inline]
    fn read(&self, _: u64, _: &mut [u8]) {}
    #[inline]
    fn write(&mut self, _: u64, _: &[u8]) {}
    fn write_zeros(&mut self, _: u64, _: u64) {}
    #[inline]
    fn copy(&mut self, _: u64, _: u64, _: usize) {}
}

/// A store in memory; pages never written take no memory (the allocation is zeroed lazily).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemStore(Vec<u8>);

impl MemStore {
    /// A store of `bytes` zero bytes.
    pub fn new(bytes: u64) -> MemStore {
        MemStore(vec![0; usize::try_from(bytes).expect("a store in memory fits the address space")])
    }
}

impl Store for MemStore {
    const KEEPS: bool = true;
    const SHOWS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(self.view(offset, into.len()));
    }
    fn view(&self, offset: u64, bytes: usize) -> &[u8] {
        &self.0[offset as usize..][..bytes]
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        let into = &mut self.0[offset as usize..][..data.len()];
        // A device that is filled with zeros takes no memory either.
        if !(is_zero(data) && is_zero(into)) {
            into.copy_from_slice(data);
        }
    }
}

/// Whether all bytes are zero; ends at the first that are not.
#[inline]
pub fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<16>();
    words.iter().all(|word| *word == [0; 16]) && rest.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of this process in memory.
    fn resident_bytes() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        4096 * statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
    }

    #[test]
    fn zeros_take_no_memory_and_overwrite_what_is_there() {
        let (bytes, before) = (1 << 30, resident_bytes());
        let mut store = MemStore::new(bytes);
        store.write(5000, &[7; 3000]);
        store.write_zeros(0, bytes);
        let taken = resident_bytes() - before;
        assert!(taken < 256 << 20, "{taken} bytes");
        let mut found = [1; 9000];
        store.read(0, &mut found);
        assert_eq!(found, [0; 9000]);
    }
}
