//! Stores of any kind, as one type.

use crate::Store;

/// A store of any kind that keeps bytes in this process's memory, behind a pointer: whatever keeps them, a medium and its controller
/// are compiled once.
pub struct AnyStore(Box<dyn Kept + Send>);

impl AnyStore {
    /// Puts a store behind a pointer.
    pub fn new<S: Store + Send + 'static>(store: S) -> AnyStore {
        const { assert!(S::KEEPS && S::SHOWS) };
        AnyStore(Box::new(store))
    }
}

/// What [`AnyStore`] calls: every method of [`Store`].
trait Kept {
    fn read(&self, offset: u64, into: &mut [u8]);
    fn view(&self, offset: u64, bytes: usize) -> &[u8];
    fn write(&mut self, offset: u64, data: &[u8]);
    fn copy(&mut self, from: u64, to: u64, bytes: usize);
    fn prefetch(&self, offset: u64, bytes: usize);
    fn discard(&mut self, offset: u64, bytes: u64);
    fn holds(&self, offset: u64) -> bool;
    fn write_zeros(&mut self, offset: u64, bytes: u64);
    fn is_unverified(&self, offset: u64) -> bool;
    fn set_verified(&mut self, offset: u64);
    fn place(&self, offset: u64) -> Option<(&'static str, u64)>;
}

impl<S: Store> Kept for S {
    fn read(&self, offset: u64, into: &mut [u8]) {
        Store::read(self, offset, into);
    }
    fn view(&self, offset: u64, bytes: usize) -> &[u8] {
        Store::view(self, offset, bytes)
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        Store::write(self, offset, data);
    }
    fn copy(&mut self, from: u64, to: u64, bytes: usize) {
        Store::copy(self, from, to, bytes);
    }
    fn prefetch(&self, offset: u64, bytes: usize) {
        Store::prefetch(self, offset, bytes);
    }
    fn discard(&mut self, offset: u64, bytes: u64) {
        Store::discard(self, offset, bytes);
    }
    fn holds(&self, offset: u64) -> bool {
        Store::holds(self, offset)
    }
    fn write_zeros(&mut self, offset: u64, bytes: u64) {
        Store::write_zeros(self, offset, bytes);
    }
    fn is_unverified(&self, offset: u64) -> bool {
        Store::is_unverified(self, offset)
    }
    fn set_verified(&mut self, offset: u64) {
        Store::set_verified(self, offset);
    }
    fn place(&self, offset: u64) -> Option<(&'static str, u64)> {
        Store::place(self, offset)
    }
}

impl Store for AnyStore {
    const KEEPS: bool = true;
    const SHOWS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        self.0.read(offset, into);
    }
    fn view(&self, offset: u64, bytes: usize) -> &[u8] {
        self.0.view(offset, bytes)
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        self.0.write(offset, data);
    }
    fn copy(&mut self, from: u64, to: u64, bytes: usize) {
        self.0.copy(from, to, bytes);
    }
    fn prefetch(&self, offset: u64, bytes: usize) {
        self.0.prefetch(offset, bytes);
    }
    fn discard(&mut self, offset: u64, bytes: u64) {
        self.0.discard(offset, bytes);
    }
    fn holds(&self, offset: u64) -> bool {
        self.0.holds(offset)
    }
    fn write_zeros(&mut self, offset: u64, bytes: u64) {
        self.0.write_zeros(offset, bytes);
    }
    fn is_unverified(&self, offset: u64) -> bool {
        self.0.is_unverified(offset)
    }
    fn set_verified(&mut self, offset: u64) {
        self.0.set_verified(offset);
    }
    fn place(&self, offset: u64) -> Option<(&'static str, u64)> {
        self.0.place(offset)
    }
}
