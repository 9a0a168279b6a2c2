//! Detects the first store to each page of some memory, and preserves the page's old contents: page protection and
//! SIGSEGV.
//!
//! The pages are read-only. A store to one raises SIGSEGV; the handler copies the page to its *twin*, makes it writable and
//! returns, so the store is done again and succeeds. Whoever watches compares pages with their twins later.
//!
//! 1. The handler makes system calls and copies memory: no allocation, no lock. Two threads may touch a page at once.
//! 2. Faults elsewhere go to the action that was installed before, so a wild store still ends the process.
//! 3. A system call that stores to a watched page (`read` into it) fails with `EFAULT` instead of raising a signal,
//!    unless the page was touched before.
//! 4. A page that cannot be made writable on its own, since the kernel limits the number of mappings (65,530 by
//!    default), is touched together with all others.
//!
//! Rejected: write protection by userfaultfd, which takes a second thread or newer kernels and no fewer system calls; dirty
//! bits (`/proc/self/pagemap`), which are reset for the whole process and keep no old contents.

use crate::{Mapping, check};
use std::io;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence};

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;
/// Memories that can be watched at a time.
const SLOTS: usize = 64;

/// States of a page: read-only, being copied, copied, writable.
const CLEAN: u8 = 0;
const BUSY: u8 = 1;
const KEPT: u8 = 2;
const TOUCHED: u8 = 3;

/// What the handler needs of a watch.
#[derive(Debug)]
struct Watched {
    start: *mut u8,
    pages: Box<[AtomicU8]>,
    /// Numbers of the touched pages, in the order of their twins.
    order: Box<[AtomicU32]>,
    count: AtomicUsize,
    twins: *mut u8,
}

/// A range of addresses that is watched. `end` is 0 while the slot is free, 1 while it is being filled.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    watched: AtomicPtr<Watched>,
}

static REGISTERED: [Slot; SLOTS] = [const {
    Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), watched: AtomicPtr::new(null_mut()) }
}; SLOTS];
/// The action that was installed before, for faults elsewhere.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

/// Memory under watch. Dropping it makes the memory writable again.
#[derive(Debug)]
pub struct WriteWatch {
    /// Shared with the handler while the slot is taken; owned.
    watched: *mut Watched,
    /// Memory for the old contents of pages.
    twins: Mapping,
    bytes: usize,
    slot: usize,
}

// SAFETY: a watch belongs to the process, not to a thread.
unsafe impl Send for WriteWatch {}
// SAFETY: as above; `&self` only reads what the handler has finished.
unsafe impl Sync for WriteWatch {}

impl WriteWatch {
    /// Watches `bytes` bytes from `start` on, both multiples of the page size. Needs memory for as many twins as
    /// pages are touched at a time, and 5 bytes a page.
    ///
    /// # Safety
    /// The memory is private to the process, mapped for loads and stores, and stays so, in its place, as long as the watch
    /// lives.
    pub unsafe fn new(start: *mut u8, bytes: usize) -> io::Result<WriteWatch> {
        static INSTALLED: Once = Once::new();
        let mut installed = Ok(());
        INSTALLED.call_once(|| installed = install());
        installed?;
        assert!(start.addr().is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES), "whole pages");
        let pages = bytes / PAGE_BYTES;
        let twins = Mapping::anonymous(bytes as u64)?;
        twins.refuse_huge_pages(0);
        let free = |slot: &Slot| slot.end.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let Some(slot) = REGISTERED.iter().position(free) else {
            return Err(io::Error::other(format!("{SLOTS} memories are already watched")));
        };
        let watched = Box::into_raw(Box::new(Watched {
            start,
            pages: (0..pages).map(|_| AtomicU8::new(CLEAN)).collect(),
            order: (0..pages).map(|_| AtomicU32::new(0)).collect(),
            count: AtomicUsize::new(0),
            twins: twins.start(),
        }));
        REGISTERED[slot].start.store(start.addr(), Ordering::Relaxed);
        REGISTERED[slot].watched.store(watched, Ordering::Relaxed);
        REGISTERED[slot].end.store(start.addr() + bytes, Ordering::Release);
        let watch = WriteWatch { watched, twins, bytes, slot };
        // SAFETY: the caller promises that the memory is mapped and private.
        unsafe { protect(start, bytes, libc::PROT_READ)? };
        Ok(watch)
    }

    fn watched(&self) -> &Watched {
        // SAFETY: owned by `self`; everything the handler changes in it is atomic.
        unsafe { &*self.watched }
    }

    /// How many pages were touched since it began or was cleared.
    pub fn count(&self) -> usize {
        self.watched().count.load(Ordering::Acquire)
    }

    /// The touched pages by number, each with its contents before; in the order of the pages.
    pub fn touched(&self) -> Vec<(usize, &[u8])> {
        let order = &self.watched().order[..self.count()];
        let twins = self.twins.as_slice().as_chunks::<PAGE_BYTES>().0;
        let number = |page: &AtomicU32| page.load(Ordering::Acquire) as usize;
        let mut pages: Vec<(usize, &[u8])> =
            order.iter().zip(twins).map(|(page, twin)| (number(page), &twin[..])).collect();
        pages.sort_unstable_by_key(|&(page, _)| page);
        pages
    }

    /// Forgets the touched pages: each is read-only again until the next store. One system call.
    pub fn clear(&mut self) -> io::Result<()> {
        let watched = self.watched();
        let order = &watched.order[..self.count()];
        let numbers = || order.iter().map(|page| page.load(Ordering::Acquire) as usize);
        let (Some(first), Some(last)) = (numbers().min(), numbers().max()) else { return Ok(()) };
        // SAFETY: the range is inside the watched memory. The pages between two touched ones are read-only already.
        unsafe {
            let start = watched.start.add(first * PAGE_BYTES);
            protect(start, (last + 1 - first) * PAGE_BYTES, libc::PROT_READ)?;
        }
        numbers().for_each(|page| watched.pages[page].store(CLEAN, Ordering::Release));
        watched.count.store(0, Ordering::Release);
        Ok(())
    }
}

impl Drop for WriteWatch {
    fn drop(&mut self) {
        // SAFETY: the memory is still mapped, as the creator promised. A failure leaves it read-only, so that the next
        // store to it ends the process: nothing is lost silently.
        let _ = unsafe { protect(self.watched().start, self.bytes, libc::PROT_READ | libc::PROT_WRITE) };
        REGISTERED[self.slot].end.store(0, Ordering::Release);
        // SAFETY: it came from a box, and a fault in the memory, which alone leads the handler to it, is over: its thread
        // would be using memory that the owner of the watch gives up.
        drop(unsafe { Box::from_raw(self.watched) });
    }
}

/// # Safety
/// The range is mapped, and nobody relies on another protection.
unsafe fn protect(start: *mut u8, bytes: usize, protection: libc::c_int) -> io::Result<()> {
    // SAFETY: as the caller promises.
    check(unsafe { libc::mprotect(start.cast(), bytes, protection) }).map(|_| ())
}

fn install() -> io::Result<()> {
    // SAFETY: all-zero is a valid action, which the first call overwrites and the second reads, completed. The handler makes
    // only calls that are safe in a handler.
    unsafe {
        let mut previous: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(libc::SIGSEGV, null_mut(), &mut previous))?;
        PREVIOUS.store(Box::into_raw(Box::new(previous)), Ordering::Release);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as extern "C" fn(_, _, _) as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        check(libc::sigaction(libc::SIGSEGV, &action, null_mut())).map(|_| ())
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a complete `siginfo_t`, which holds the address of a fault; `errno` belongs to this thread.
    let (address, sent, errno) =
        unsafe { ((*info).si_addr().addr(), (*info).si_code <= 0, *libc::__errno_location()) };
    // SAFETY: as above.
    let is_ours =
        !sent && unsafe { is_store(context) } && find(address).is_some_and(|watched| watched.touch(address));
    if !is_ours {
        // SAFETY: as the kernel called this handler.
        unsafe { chain(signal, info, context, sent) };
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Whether a fault was a store: a jump into watched memory must not be taken for one, or it would fault forever.
///
/// # Safety
/// `context` is what the kernel passed to the handler.
unsafe fn is_store(context: *mut libc::c_void) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let context = context.cast::<libc::ucontext_t>();
        // SAFETY: as the caller promises. Bit 1 of the page fault's error code is set for a store.
        unsafe { (*context).uc_mcontext.gregs[libc::REG_ERR as usize] & 2 != 0 }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = context;
        true
    }
}

/// The watch whose memory has this address.
fn find(address: usize) -> Option<&'static Watched> {
    for slot in &REGISTERED {
        let end = slot.end.load(Ordering::Acquire);
        let (start, watched) = (slot.start.load(Ordering::Relaxed), slot.watched.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        // A slot that was filled anew in between is not the one of this address, whose watch is alive.
        if end > 1 && slot.end.load(Ordering::Relaxed) == end && (start..end).contains(&address) {
            // SAFETY: the watch is alive, since this thread stores to its memory.
            return Some(unsafe { &*watched });
        }
    }
    None
}

impl Watched {
    /// Keeps the page at an address and makes it writable. Returns whether it is.
    fn touch(&self, address: usize) -> bool {
        let page = (address - self.start.addr()) / PAGE_BYTES;
        let state = &self.pages[page];
        if !self.keep(page) {
            // Another thread does it.
            while state.load(Ordering::Acquire) != TOUCHED {
                std::hint::spin_loop();
            }
            return true;
        }
        // SAFETY: the page belongs to the watched memory.
        let opened = unsafe {
            let start = self.start.add(page * PAGE_BYTES);
            protect(start, PAGE_BYTES, libc::PROT_READ | libc::PROT_WRITE)
        };
        let opened = opened.is_ok() || self.touch_all();
        state.store(TOUCHED, Ordering::Release);
        opened
    }

    /// Copies a clean page to the next twin. Returns whether it was clean.
    fn keep(&self, page: usize) -> bool {
        let state = &self.pages[page];
        if state.compare_exchange(CLEAN, BUSY, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        let index = self.count.fetch_add(1, Ordering::AcqRel);
        // SAFETY: there is a twin for every page, each page is kept once, and a read-only page does not change.
        unsafe {
            let (from, to) = (self.start.add(page * PAGE_BYTES), self.twins.add(index * PAGE_BYTES));
            std::ptr::copy_nonoverlapping(from, to, PAGE_BYTES);
        }
        self.order[index].store(page as u32, Ordering::Release);
        state.store(KEPT, Ordering::Release);
        true
    }

    /// Keeps every page that is not, and makes all of them writable.
    fn touch_all(&self) -> bool {
        for (page, state) in self.pages.iter().enumerate() {
            self.keep(page);
            while state.load(Ordering::Acquire) == BUSY {
                std::hint::spin_loop();
            }
        }
        let bytes = self.pages.len() * PAGE_BYTES;
        // SAFETY: the range is the watched memory.
        let opened = unsafe { protect(self.start, bytes, libc::PROT_READ | libc::PROT_WRITE) };
        self.pages.iter().for_each(|state| state.store(TOUCHED, Ordering::Release));
        opened.is_ok()
    }
}

/// Leaves a fault to the previous action.
///
/// # Safety
/// The arguments are those of the handler.
unsafe fn chain(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void, sent: bool) {
    // SAFETY: the action is never freed; it was installed with the function and flags that are used here; the calls are
    // async-signal-safe.
    unsafe {
        let previous = PREVIOUS.load(Ordering::Acquire);
        let function = (*previous).sa_sigaction;
        if function == libc::SIG_DFL || function == libc::SIG_IGN {
            // The access faults again and ends the process; a signal that was sent is sent again.
            libc::sigaction(libc::SIGSEGV, previous, null_mut());
            if sent {
                libc::raise(signal);
            }
        } else if (*previous).sa_flags & libc::SA_SIGINFO != 0 {
            type Action = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<libc::sighandler_t, Action>(function)(signal, info, context);
        } else {
            type Action = extern "C" fn(libc::c_int);
            std::mem::transmute::<libc::sighandler_t, Action>(function)(signal);
        }
    }
}
