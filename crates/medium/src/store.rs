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
    /// Bytes in place, without a copy. Panics if the range is outside the store, or without [`Store::SHOWS`].
    fn view(&self, _offset: u64, _bytes: usize) -> &[u8] {
        panic!("a store that does not show what it keeps")
    }
    /// Copies bytes in. Panics if the range is outside the store.
    fn write(&mut self, offset: u64, data: &[u8]);
    /// Prefetches `bytes` bytes at `offset`, which will be read soon.
    #[inline]
    fn prefetch(&self, _offset: u64, _bytes: usize) {}
}

impl Store for () {
    const KEEPS: bool = false;
    #[inline]
    fn read(&self, _: u64, _: &mut [u8]) {}
    #[inline]
    fn write(&mut self, _: u64, _: &[u8]) {}
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
        let start = offset as usize;
        self.0[start..start + data.len()].copy_from_slice(data);
    }
}
