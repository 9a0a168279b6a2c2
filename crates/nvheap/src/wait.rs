//! Waiting for another thread.

#[cfg(not(test))]
use std::time::Duration;

/// Waits before retrying after a conflict with another thread: longer each time, and for a different time than others
/// that collided with it. A conflict that lasts long is a wait for a disk: then this thread sleeps.
#[cfg(not(test))]
pub(crate) fn back_off(tries: u32) {
    let mut here = 0_u8;
    let noise = (&raw mut here).addr() as u32 >> 4 ^ std::process::id();
    for _ in 0..(1_u32 << tries.min(10)) + noise % (1 << tries.min(10)) {
        std::hint::spin_loop();
    }
    match tries {
        0..=3 => {}
        4..=9 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(10 << (tries - 10).min(6))),
    }
}

/// Lets another thread continue.
#[cfg(test)]
pub(crate) fn back_off(_: u32) {
    crate::sync::yield_now();
}
