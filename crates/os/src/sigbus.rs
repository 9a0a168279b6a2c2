//! SIGBUS: a page of a mapped file that cannot be read or allocated because the disk is full or failed. The store
//! that needs it cannot return an error, so the process reports why and ends: to a later recovery this is a kill at
//! this instruction.

use crate::check;
use std::io;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Exit status after a failure of the machine.
const STATUS: libc::c_int = 4;
/// Mappings that can have a message at a time; faults in others end the process without one.
const SLOTS: usize = 64;

/// A range of addresses and the message for a fault there. `end` is 0 while the slot is free, 1 while it is being filled.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    text: AtomicPtr<u8>,
    length: AtomicUsize,
}

static REGISTERED: [Slot; SLOTS] = [const {
    Slot {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        text: AtomicPtr::new(null_mut()),
        length: AtomicUsize::new(0),
    }
}; SLOTS];
/// The action that was installed before, for faults elsewhere.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

/// A registered message; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct FaultMessage(usize);

/// From now on, a fault at these addresses writes `text` to stderr and ends the process. `None`: every slot is taken.
pub(crate) fn on_fault(addresses: Range<usize>, text: String) -> io::Result<Option<FaultMessage>> {
    if cfg!(miri) {
        return Ok(None);
    }
    static INSTALLED: Once = Once::new();
    let mut installed = Ok(());
    INSTALLED.call_once(|| installed = install());
    installed?;
    let free = |slot: &Slot| slot.end.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let Some(index) = REGISTERED.iter().position(free) else { return Ok(None) };
    let slot = &REGISTERED[index];
    // Never freed: the handler may read it at any time.
    let text = String::leak(text);
    slot.start.store(addresses.start, Ordering::Relaxed);
    slot.text.store(text.as_mut_ptr(), Ordering::Relaxed);
    slot.length.store(text.len(), Ordering::Relaxed);
    slot.end.store(addresses.end, Ordering::Release);
    Ok(Some(FaultMessage(index)))
}

impl Drop for FaultMessage {
    fn drop(&mut self) {
        REGISTERED[self.0].end.store(0, Ordering::Release);
    }
}

fn install() -> io::Result<()> {
    // SAFETY: all-zero is a valid action, which the first call overwrites and the second reads, completed. The handler makes
    // only async-signal-safe calls.
    unsafe {
        let mut previous: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(libc::SIGBUS, null_mut(), &mut previous))?;
        PREVIOUS.store(Box::into_raw(Box::new(previous)), Ordering::Release);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as extern "C" fn(_, _, _) as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        check(libc::sigaction(libc::SIGBUS, &action, null_mut())).map(|_| ())
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a complete `siginfo_t`, which holds the address of a fault.
    let (address, sent) = unsafe { ((*info).si_addr().addr(), (*info).si_code <= 0) };
    for slot in REGISTERED.iter().filter(|_| !sent) {
        let end = slot.end.load(Ordering::Acquire);
        if end > 1 && (slot.start.load(Ordering::Relaxed)..end).contains(&address) {
            let (text, length) = (slot.text.load(Ordering::Relaxed), slot.length.load(Ordering::Relaxed));
            // SAFETY: the text is never freed, and both calls are async-signal-safe.
            unsafe {
                libc::write(2, text.cast(), length);
                libc::_exit(STATUS);
            }
        }
    }
    // Not ours: the previous action applies. The access faults again; a signal that was sent is sent again.
    // SAFETY: the action is never freed; both calls are async-signal-safe.
    unsafe {
        libc::sigaction(libc::SIGBUS, PREVIOUS.load(Ordering::Acquire), null_mut());
        if sent {
            libc::raise(signal);
        }
    }
}
