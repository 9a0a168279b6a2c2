//! Waits for several files at once.

use nvlab_os::check;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, RawFd};
use std::time::Duration;

/// A counter that can be waited for with files.
pub fn event() -> io::Result<File> {
    // SAFETY: the new descriptor is owned by nobody else.
    unsafe { Ok(File::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?)) }
}

/// Waits until one of these is readable, at most for `time`. A signal also ends the wait.
pub fn wait_readable(waiting: &mut [libc::pollfd], time: Option<Duration>) -> io::Result<()> {
    // SAFETY: the slice is borrowed for the call with its length.
    match check(unsafe {
        libc::poll(waiting.as_mut_ptr(), waiting.len() as libc::nfds_t, milliseconds(time))
    }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// An entry for [`wait_readable`].
pub fn readable(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// A time limit as poll(2) takes it.
pub(super) fn milliseconds(time: Option<Duration>) -> libc::c_int {
    time.map_or(-1, |time| time.as_millis().min(i32::MAX as u128) as libc::c_int)
}
