//! Signals that can be waited for together with files: stop (SIGINT, SIGTERM) and power failure (SIGUSR1).

use super::poll;
use nvlab_os::check;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static BELL: AtomicI32 = AtomicI32::new(-1);
static END: AtomicBool = AtomicBool::new(false);
static PLUG: AtomicBool = AtomicBool::new(false);
static DEADLY: AtomicBool = AtomicBool::new(false);

extern "C" fn note(signal: libc::c_int) {
    if signal != libc::SIGUSR1 && DEADLY.load(Ordering::Acquire) {
        // SAFETY: both calls are async-signal-safe. The signal is delivered again after this handler, and ends the process.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    match signal {
        libc::SIGUSR1 => PLUG.store(true, Ordering::Release),
        _ => END.store(true, Ordering::Release),
    }
    ring();
}

fn ring() {
    let one = 1u64.to_ne_bytes();
    // SAFETY: eight bytes that live until the call returns; the call is async-signal-safe. It changes
    // `errno` only if it fails, which an event counter that is open does not.
    unsafe { libc::write(BELL.load(Ordering::Acquire), one.as_ptr().cast(), one.len()) };
}

/// Requests the end, as SIGTERM does.
pub fn end() {
    END.store(true, Ordering::Release);
    ring();
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The program ended.
    Program,
    /// The end was requested.
    End,
    /// A power failure was requested.
    Plug,
}

/// The installed handlers; one for a process.
#[derive(Debug)]
pub struct Signals {
    bell: File,
}

impl Signals {
    /// Installs them: from now on these signals only wake [`Signals::wait`].
    pub fn install() -> io::Result<Signals> {
        let bell = poll::event()?;
        BELL.store(bell.as_raw_fd(), Ordering::Release);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
            // SAFETY: all-zero is a valid action, completed below; the handler makes only async-signal-safe calls.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                check(libc::sigaction(signal, &action, std::ptr::null_mut()))?;
            }
        }
        Ok(Signals { bell })
    }

    /// Until the result is dropped, SIGINT and SIGTERM end the process at once, as they would without a handler: for work
    /// that takes long and may be killed.
    pub fn deadly(&self) -> Deadly {
        DEADLY.store(true, Ordering::Release);
        Deadly(())
    }

    /// True if the end was requested and [`Signals::wait`] has not reported it yet.
    pub fn end_was_asked(&self) -> bool {
        END.load(Ordering::Acquire)
    }

    /// Waits for a signal, or for a process to end.
    pub fn wait(&self, program: Option<&OwnedFd>) -> io::Result<Woken> {
        loop {
            if PLUG.swap(false, Ordering::AcqRel) {
                return Ok(Woken::Plug);
            }
            if END.swap(false, Ordering::AcqRel) {
                return Ok(Woken::End);
            }
            let mut waiting = vec![poll::readable(self.bell.as_raw_fd())];
            waiting.extend(program.map(|program| poll::readable(program.as_raw_fd())));
            poll::wait_readable(&mut waiting, None)?;
            if waiting.get(1).is_some_and(|entry| entry.revents != 0) {
                return Ok(Woken::Program);
            }
            // A signal wrote it; signals are checked first.
            let _ = (&self.bell).read(&mut [0; 8]);
        }
    }
}

/// See [`Signals::deadly`].
#[derive(Debug)]
pub struct Deadly(());

impl Drop for Deadly {
    fn drop(&mut self) {
        DEADLY.store(false, Ordering::Release);
    }
}

/// A descriptor that becomes readable when the process ends.
pub fn process_file(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes integers; the new descriptor is owned by nobody else.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0))?;
        Ok(OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}
