//! Private copies of what a transaction changes.

/// The private copy of a header. No heap has so many types.
pub(super) const HEADER_KIND: u16 = u16::MAX;

/// A private copy. The word in front of it says who has borrowed it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shadow {
    pub home: u64,
    pub data: *mut u64,
    pub words: u32,
    /// The next of the same lock.
    pub next: u32,
    /// The kind, and whether it is new: one store.
    pub what: u32,
}

impl Shadow {
    pub const NEW: u32 = 1 << 16;

    /// The number of the type whose value it is, if that has pointers; or that it is a header.
    #[inline(always)]
    pub fn kind(&self) -> u16 {
        self.what as u16
    }

    /// Everything is logged, whatever the file holds.
    #[inline(always)]
    pub fn is_new(&self) -> bool {
        self.what & Self::NEW != 0
    }
}

/// The words of a private copy, those between fields included.
pub(super) fn private_words<'a>(data: *mut u64, words: usize) -> &'a [u64] {
    freeze(data);
    // SAFETY: the arena has them until the transaction ends; no guard of them is left when it commits.
    unsafe { std::slice::from_raw_parts(data, words) }
}

/// From here on the compiler takes the memory behind a pointer to be initialised, with whatever it holds: the gaps between
/// fields become bytes like others.
#[inline]
pub(crate) fn freeze(data: *mut u64) {
    #[cfg(not(miri))]
    // SAFETY: does nothing; as far as the compiler knows, it writes to the memory.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) data, options(nostack, preserves_flags));
    }
    #[cfg(miri)]
    let _ = data;
}
