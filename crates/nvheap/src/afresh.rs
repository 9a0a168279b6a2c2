//! What the compiler is not to compute in advance.

/// The same, of which the compiler knows nothing. What it could compute from a reference before the first try of a transaction it would
/// store for the next one, and stores behind the fence of a commit are scarce.
#[inline(always)]
pub(crate) fn afresh<T>(value: &T) -> &T {
    let mut at = std::ptr::from_ref(value);
    #[cfg(not(miri))]
    // SAFETY: does nothing.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) at, options(nomem, nostack, preserves_flags));
    }
    #[cfg(miri)]
    let _ = &mut at;
    // SAFETY: it is what it was.
    unsafe { &*at }
}
