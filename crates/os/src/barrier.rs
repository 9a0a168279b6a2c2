//! A memory barrier that is free on the frequent side.
//!
//! Two threads that each store and then load the other's variable need a full barrier between the two, or both may
//! see the old value. If one side is rare it can pay for both: [`heavy`] interrupts every running thread of the
//! process (membarrier(2)), so that [`light`] only restrains the compiler. On a kernel without it, `light` is a full
//! fence.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Whether the kernel runs barriers for us.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: takes no pointers; it orders memory accesses and changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Registers the process with the kernel. Called before any [`light`] that is to be cheap.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        IS_REGISTERED.store(!cfg!(miri) && membarrier(REGISTER_PRIVATE_EXPEDITED), Ordering::SeqCst);
    });
}

/// The frequent side: between a store and a load of the same thread.
#[inline]
pub fn light() {
    match IS_REGISTERED.load(Ordering::Relaxed) {
        true => compiler_fence(Ordering::SeqCst),
        false => fence(Ordering::SeqCst),
    }
}

/// The rare side: between a store and a load of the same thread; every other thread passes a full barrier meanwhile.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if IS_REGISTERED.load(Ordering::Relaxed) {
        assert!(membarrier(PRIVATE_EXPEDITED), "membarrier failed after it was registered");
    }
    fence(Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::sync::{Arc, Barrier};

    /// Dekker: at least one of the two sees the other.
    #[test]
    fn two_sides_never_both_miss_each_other() {
        register();
        let flags = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let gate = Arc::new(Barrier::new(2));
        let other = {
            let (flags, gate) = (flags.clone(), gate.clone());
            std::thread::spawn(move || {
                let seen = (1..=2000).map(|round| {
                    gate.wait();
                    flags[1].store(round, Ordering::Relaxed);
                    light();
                    flags[0].load(Ordering::Relaxed)
                });
                seen.collect::<Vec<u32>>()
            })
        };
        let mine = (1..=2000).map(|round| {
            gate.wait();
            flags[0].store(round, Ordering::Relaxed);
            heavy();
            flags[1].load(Ordering::Relaxed)
        });
        let mine: Vec<u32> = mine.collect();
        for (i, (mine, theirs)) in mine.iter().zip(other.join().unwrap()).enumerate() {
            let round = i as u32 + 1;
            assert!(*mine >= round || theirs >= round, "round {round}: {mine} and {theirs}");
        }
    }
}
