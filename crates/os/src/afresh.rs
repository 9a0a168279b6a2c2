//! Values that the compiler must not compute in advance.
//!
//! A value that the compiler can compute from a reference before the first pass through a loop is stored for the next
//! pass, and stores behind a fence are scarce: each waits for it, and a processor holds a few dozen.

/// Returns the reference after hiding from the compiler where it came from.
#[inline(always)]
#[cfg_attr(not(miri), expect(clippy::pointers_in_nomem_asm_block, reason = "it accesses nothing"))]
pub fn afresh<T>(value: &T) -> &T {
    #[cfg(miri)]
    return value;
    #[cfg(not(miri))]
    {
        let mut at = std::ptr::from_ref(value);
        // SAFETY: does nothing.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) at, options(nomem, nostack, preserves_flags));
        }
        // SAFETY: it is what it was.
        unsafe { &*at }
    }
}

/// The same reference, of which and of whose value the compiler knows nothing.
#[inline(always)]
pub fn afresh_mut<T>(value: &mut T) -> &mut T {
    #[cfg(miri)]
    return value;
    #[cfg(not(miri))]
    {
        let mut at = std::ptr::from_mut(value);
        // SAFETY: does nothing.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) at, options(nostack, preserves_flags));
        }
        // SAFETY: it is what it was.
        unsafe { &mut *at }
    }
}
