//! SIGBUS: a page of a mapped file that cannot be had, because the disk is full or failed. The store that needs it cannot
//! return an error, so the process says why and ends: to whoever finds the files again that is a kill at this instruction.

use super::check;
use std::io;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// How a program ends that its machine fails.
const STATUS: libc::c_int = 4;
/// Mappings at a time that say something; more end without a word.
const PLACES: usize = 64;

/// Addresses, and what is said of a fault there. They end at 0 while the place is free, at 1 while it is being filled.
struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
    text: AtomicPtr<u8>,
    length: AtomicUsize,
}

static TOLD: [Place; PLACES] = [const {
    Place {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        text: AtomicPtr::new(null_mut()),
        length: AtomicUsize::new(0),
    }
}; PLACES];
/// What was done before about faults elsewhere.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

/// A place in the table; given back when this goes.
#[derive(Debug)]
pub struct Told(usize);

/// From now on `text` is said on stderr before a fault at these addresses ends the process.
pub fn say_at_fault(addresses: Range<usize>, text: String) -> io::Result<Option<Told>> {
    static INSTALLED: Once = Once::new();
    let mut installed = Ok(());
    INSTALLED.call_once(|| installed = install());
    installed?;
    let free = |place: &Place| place.end.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let Some(index) = TOLD.iter().position(free) else { return Ok(None) };
    let place = &TOLD[index];
    // Never freed: the handler may look at it at any time.
    let text = String::leak(text);
    place.start.store(addresses.start, Ordering::Relaxed);
    place.text.store(text.as_mut_ptr(), Ordering::Relaxed);
    place.length.store(text.len(), Ordering::Relaxed);
    place.end.store(addresses.end, Ordering::Release);
    Ok(Some(Told(index)))
}

impl Drop for Told {
    fn drop(&mut self) {
        TOLD[self.0].end.store(0, Ordering::Release);
    }
}

fn install() -> io::Result<()> {
    // SAFETY: all-zero is a valid action, which the first call overwrites and the second reads, completed. The handler makes
    // only calls that are allowed in one.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(libc::SIGBUS, null_mut(), &mut before))?;
        BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = fault as extern "C" fn(_, _, _) as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        check(libc::sigaction(libc::SIGBUS, &action, null_mut())).map(|_| ())
    }
}

extern "C" fn fault(signal: libc::c_int, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands out a complete `siginfo_t`, which of a fault has the address.
    let (address, sent) = unsafe { ((*about).si_addr().addr(), (*about).si_code <= 0) };
    for place in TOLD.iter().filter(|_| !sent) {
        let end = place.end.load(Ordering::Acquire);
        if end > 1 && (place.start.load(Ordering::Relaxed)..end).contains(&address) {
            let (text, length) = (place.text.load(Ordering::Relaxed), place.length.load(Ordering::Relaxed));
            // SAFETY: the text is never freed, and both calls may be made in a handler.
            unsafe {
                libc::write(2, text.cast(), length);
                libc::_exit(STATUS);
            }
        }
    }
    // Somebody else's: as before. The access faults again; a signal that was sent is sent again.
    // SAFETY: an action that is never freed; both calls may be made in a handler.
    unsafe {
        libc::sigaction(libc::SIGBUS, BEFORE.load(Ordering::Acquire), null_mut());
        if sent {
            libc::raise(signal);
        }
    }
}
