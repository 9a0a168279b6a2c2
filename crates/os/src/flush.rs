//! Writes cache lines back to memory: makes stores durable if memory is persistent.
//!
//! A store is durable after three steps: the store itself, [`Flush::lines`] over its bytes, and [`Flush::fence`]. The
//! instruction is detected: clwb keeps the line cached; clflushopt evicts it; clflush also waits for the flush before
//! it. A mapping of an ordinary file needs `sync_data` on the file instead.

use crate::stores::{LINE, publish};

/// An instruction that writes a cache line back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Writes a line back and may keep it cached.
    Clwb,
    /// Writes a line back and evicts it; flushes of several lines overlap.
    ClflushOpt,
    /// Writes a line back and evicts it, one line after the other.
    Clflush,
}

impl Flush {
    /// Every instruction, best first.
    pub const ALL: [Flush; 3] = [Flush::Clwb, Flush::ClflushOpt, Flush::Clflush];

    /// The best one; `None` on processors other than x86-64.
    pub fn detect() -> Option<Flush> {
        Flush::ALL.into_iter().find(|flush| flush.is_supported())
    }

    /// Whether this processor has the instruction, by CPUID.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub fn is_supported(self) -> bool {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        // Leaf 1 says clflush in bit 19 of EDX; leaf 7 says the others in EBX.
        let leaves = __cpuid(0).eax;
        let extended = if leaves >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
        match self {
            Flush::Clwb => extended & 1 << 24 != 0,
            Flush::ClflushOpt => extended & 1 << 23 != 0,
            Flush::Clflush => __cpuid(1).edx & 1 << 19 != 0,
        }
    }

    /// Always false: not x86-64, or Miri.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    pub fn is_supported(self) -> bool {
        false
    }

    /// Starts to write back every cache line that holds one of these bytes; complete after [`Flush::fence`]. The
    /// instruction must be supported.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn lines(self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let first = bytes.as_ptr().map_addr(|address| address & !(LINE - 1));
        let lead = bytes.as_ptr().addr() - first.addr();
        for line in (0..lead + bytes.len()).step_by(LINE) {
            // SAFETY: the line holds a byte that is borrowed, so it is mapped.
            unsafe { self.line(first.wrapping_add(line)) };
        }
    }

    /// Starts to write back the cache line that holds this address, which other threads may store to meanwhile.
    ///
    /// # Safety
    /// The address is mapped. The instruction is supported: a processor without it ends the process.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub unsafe fn line(self, at: *const u8) {
        use std::arch::asm;
        // SAFETY: the caller answers for the address; a flush changes no memory.
        unsafe {
            match self {
                Flush::Clwb => asm!("clwb [{}]", in(reg) at, options(nostack, preserves_flags)),
                Flush::ClflushOpt => asm!("clflushopt [{}]", in(reg) at, options(nostack, preserves_flags)),
                Flush::Clflush => asm!("clflush [{}]", in(reg) at, options(nostack, preserves_flags)),
            }
        }
    }

    /// Unreachable: no instruction is supported here.
    ///
    /// # Safety
    /// None.
    #[cfg(not(target_arch = "x86_64"))]
    pub unsafe fn line(self, _: *const u8) {
        unreachable!("{self:?} on a processor without it");
    }

    /// Unreachable: no instruction is supported here.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn lines(self, _: &[u8]) {
        unreachable!("{self:?} on a processor without it");
    }

    /// Waits until the lines flushed before are in memory (sfence).
    #[inline]
    pub fn fence(self) {
        publish();
    }
}
