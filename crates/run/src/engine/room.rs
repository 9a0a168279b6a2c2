//! Memory for parallel runs: a run begins when its device fits in memory together with those of the current runs, or
//! alone.
//!
//! The check that a device makes when it is built sees only the memory that other devices have written by then: two
//! that begin together would both pass it, and the system would kill the program when both are full.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The memory that runs share.
#[derive(Debug)]
pub(super) struct Room {
    /// Bytes in all; `None` if the machine does not say.
    all: Option<u64>,
    taken: Mutex<u64>,
    freed: Condvar,
}

/// Memory of a run, until it is dropped.
#[derive(Debug)]
pub(super) struct Taken<'r> {
    room: &'r Room,
    bytes: u64,
}

impl Room {
    pub fn new(all: Option<u64>) -> Room {
        Room { all, taken: Mutex::new(0), freed: Condvar::new() }
    }

    fn taken(&self) -> MutexGuard<'_, u64> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for so many bytes, or nothing else is left.
    pub fn take(&self, bytes: u64) -> Taken<'_> {
        let is_full = |taken: &mut u64| self.all.is_some_and(|all| *taken > 0 && *taken + bytes > all);
        let taken = self.freed.wait_while(self.taken(), is_full);
        *taken.unwrap_or_else(PoisonError::into_inner) += bytes;
        Taken { room: self, bytes }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.room.taken() -= self.bytes;
        self.room.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn what_does_not_fit_beside_others_waits_and_what_never_fits_is_alone() {
        let (room, now, most) = (Room::new(Some(10)), AtomicU64::new(0), AtomicU64::new(0));
        let one = |bytes: u64| {
            let _taken = room.take(bytes);
            let sum = now.fetch_add(bytes, Ordering::SeqCst) + bytes;
            if bytes <= 10 {
                most.fetch_max(sum, Ordering::SeqCst);
            }
            assert!(sum <= 10 || sum == bytes, "{bytes} beside {}", sum - bytes);
            std::thread::yield_now();
            now.fetch_sub(bytes, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let one = &one;
                scope.spawn(move || {
                    (0..500).for_each(|round| one([6, 4, 25, 3][(thread + round) as usize % 4]))
                });
            }
        });
        assert_eq!((now.into_inner(), *room.taken()), (0, 0));
        assert!(most.into_inner() > 6, "several are side by side where they fit");
        // Nothing is known of the memory: nothing waits.
        let unknown = Room::new(None);
        drop([unknown.take(u64::MAX / 2), unknown.take(u64::MAX / 2)]);
    }
}
