//! Implicit logging: transactions without explicit ranges, as in the persistent heap Sidney (system 001).
//!
//! [`crate::Transaction::implicit`] makes a whole region writable. Its pages are read-only until they are first stored to;
//! then the page is copied (`nvlab_os::WriteWatch`). At the commit the pages that were touched are compared with their
//! copies, and the changed runs of bytes are logged; an abort copies them back.
//!
//! 1. The first store to a page in a transaction raises a signal; later ones cost nothing. The first implicit
//!    transaction of a region protects all of it; from then on, only pages that were touched.
//! 2. A system call that stores to the region (`read` into it) fails with `EFAULT` where the page was not touched
//!    before.
//! 3. The handler of SIGSEGV is installed with the first implicit transaction. Faults elsewhere go to the handler
//!    that was there. Programs that install their own later must chain, or use [`crate::typed`] instead.
//! 4. Within an implicit part [`crate::Transaction::set_range`] only returns the bytes. Ranges that were set before
//!    stay.
//!
//! Costs: debit-credit as in Sidney (80 B in 7 ranges, slide 29) on 100,000 accounts, without waiting for the log
//! (`cargo run --release -p nvlab-rvm --example implicit`; Linux 6.18 in a virtual machine). Bytes are those of the
//! changed ranges; a record has the compact headers.
//!
//! | ranges found by | ranges | bytes | record | CPU time |
//! |---|---|---|---|---|
//! | the program ([`crate::Transaction::set_range`]) | 7 | 80 | 144 B | 0.5 us |
//! | the same, [`crate::Options::diff`] | 7 | 80 | 114 B | 0.9 us |
//! | objects ([`crate::typed`]) | 6 | 156 | 212 B | 0.5 us |
//! | the same, [`crate::Options::diff`] | 6 | 156 | 114 B | 0.9 us |
//! | page protection | 6.7 | 51 | 114 B | 40 us |
//!
//! With the original's headers, explicit ranges make records of 548 B and page protection 474 B. A transaction touches 5
//! pages, so a touched page costs 8 us: the fault, its signal, one `mprotect`, the copy, the comparison, and a share of
//! the `mprotect` that begins the next transaction. There a loop that does nothing but protect a page, store to it and
//! unprotect it in a handler takes 12.8 us. So page protection suits transactions that change much on few pages, or
//! programs that cannot be changed; the typed heap with `diff` logs as little for a fiftieth of the time.

use crate::core::{Memory, RawTransaction};
use crate::{Error, Result};
use nvlab_os::WriteWatch;
use std::sync::Arc;

/// Bytes of a page.
const PAGE_BYTES: usize = crate::PAGE_BYTES as usize;

/// The watch over the memory of a region.
#[derive(Debug)]
pub(crate) struct Watch {
    pages: WriteWatch,
    is_active: bool,
}

impl Watch {
    /// Begins to notice changes, with the watch of an earlier transaction if there is one.
    ///
    /// # Safety
    /// As for [`WriteWatch::new`].
    pub(crate) unsafe fn begin(watch: &mut Option<Watch>, memory: &Memory) -> Result<()> {
        let failed = |error| Error::io("protect", &"a region")(error);
        match watch {
            Some(watch) if watch.is_active => return Ok(()),
            // Pages that were changed explicitly since.
            Some(watch) => watch.pages.clear().map_err(failed)?,
            None => {
                let bytes = memory.bytes().next_multiple_of(PAGE_BYTES);
                // SAFETY: as the caller promises; the mapping has whole pages.
                let pages = unsafe { WriteWatch::new(memory.start(), bytes) }.map_err(failed)?;
                *watch = Some(Watch { pages, is_active: false });
            }
        }
        if let Some(watch) = watch {
            watch.is_active = true;
        }
        Ok(())
    }

    /// Whether a transaction uses it.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active
    }

    /// Makes ranges of what was changed. An error leaves the watch as it was.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub(crate) unsafe fn commit(&mut self, memory: &Arc<Memory>, raw: &mut RawTransaction) -> Result<()> {
        for (page, before) in self.pages.touched() {
            let start = page * PAGE_BYTES;
            let bytes = before.len().min(memory.bytes() - start);
            // SAFETY: as the caller promises.
            unsafe { raw.set_changed(memory, start, &before[..bytes])? };
        }
        // Until the next transaction clears them, touched pages stay writable and known.
        self.is_active = false;
        Ok(())
    }

    /// Copies the old contents back.
    ///
    /// # Safety
    /// Nobody else uses the memory.
    pub(crate) unsafe fn undo(&mut self, memory: &Memory) {
        for (page, before) in self.pages.touched() {
            let start = page * PAGE_BYTES;
            let bytes = before.len().min(memory.bytes() - start);
            // SAFETY: as the caller promises.
            unsafe { memory.slice_mut(start..start + bytes) }.copy_from_slice(&before[..bytes]);
        }
        self.is_active = false;
    }
}
