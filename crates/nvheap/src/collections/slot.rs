//! Slots of nodes: places for values that may be free.

use std::mem::{MaybeUninit, needs_drop};

/// Takes the value out of a slot. A free slot is zero if its value could hold pointers: a check of the heap counts them.
///
/// # Safety
/// The slot holds a value, which is not used again.
#[inline]
pub(super) unsafe fn take<T>(slot: &mut MaybeUninit<T>) -> T {
    // SAFETY: passed on.
    let value = unsafe { slot.assume_init_read() };
    if needs_drop::<T>() {
        *slot = MaybeUninit::zeroed();
    }
    value
}
