//! Synchronisation primitives of a heap: the standard library's; in unit tests, those of [shuttle], which explores
//! one schedule after the other.
//!
//! An atomic is eight bytes, or one, in both, so a word of the heap's memory is one. In tests each access to it is a
//! point at which another thread may continue.
//!
//! [shuttle]: https://docs.rs/shuttle

#[cfg(test)]
pub(crate) use explored::{AtomicBool, AtomicU64, step, yield_now};
#[cfg(test)]
pub(crate) use shuttle::{sync::Mutex, sync::MutexGuard, thread_local};
#[cfg(not(test))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(not(test))]
pub(crate) use std::sync::{Mutex, MutexGuard};
#[cfg(not(test))]
pub(crate) use std::thread::yield_now;
#[cfg(not(test))]
pub(crate) use std::thread_local;

#[cfg(test)]
mod explored {
    use std::sync::atomic::{self, Ordering};

    /// Another thread may go on here. Nothing outside an exploration.
    pub fn step() {
        if shuttle::current::try_get_current_task().is_some() {
            shuttle::thread::sleep(std::time::Duration::ZERO);
        }
    }

    /// This thread waits for another.
    pub fn yield_now() {
        if shuttle::current::try_get_current_task().is_some() {
            shuttle::thread::yield_now();
        }
    }

    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct AtomicU64(atomic::AtomicU64);

    impl AtomicU64 {
        pub const fn new(value: u64) -> Self {
            AtomicU64(atomic::AtomicU64::new(value))
        }

        pub fn load(&self, order: Ordering) -> u64 {
            step();
            self.0.load(order)
        }

        pub fn store(&self, value: u64, order: Ordering) {
            step();
            self.0.store(value, order);
        }

        pub fn compare_exchange(
            &self,
            old: u64,
            new: u64,
            done: Ordering,
            failed: Ordering,
        ) -> Result<u64, u64> {
            step();
            self.0.compare_exchange(old, new, done, failed)
        }

        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            step();
            self.0.fetch_add(value, order)
        }

        pub fn fetch_update(
            &self,
            stored: Ordering,
            loaded: Ordering,
            change: impl FnMut(u64) -> Option<u64>,
        ) -> Result<u64, u64> {
            step();
            self.0.fetch_update(stored, loaded, change)
        }
    }

    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct AtomicBool(atomic::AtomicBool);

    impl AtomicBool {
        pub fn load(&self, order: Ordering) -> bool {
            step();
            self.0.load(order)
        }

        pub fn store(&self, value: bool, order: Ordering) {
            step();
            self.0.store(value, order);
        }

        pub fn swap(&self, value: bool, order: Ordering) -> bool {
            step();
            self.0.swap(value, order)
        }
    }
}
