//! The storage of a heap.

/// Words of recoverable memory, within a transaction.
pub trait Words {
    /// Size of the memory that the heap is in.
    fn bytes(&self) -> u64;
    /// The word at an offset, a multiple of 8 below [`Words::bytes`].
    fn get(&self, at: u64) -> u64;
    /// Changes a word as part of the transaction.
    fn set(&mut self, at: u64, word: u64) -> crate::Result<()>;
}
