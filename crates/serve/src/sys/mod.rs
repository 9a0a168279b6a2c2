//! System calls, each behind a safe face. Nothing here knows what a window is.
//!
//! | module | what |
//! |---|---|
//! | [`faults`] | userfaultfd: who faulted, and the answers |
//! | [`file`] | files in shared memory: locks, holes |
//! | [`mapping`] | memory mapped from files |
//! | [`process`] | cores, and ends |
//! | [`signals`] | ends, and pulled plugs |
//! | [`socket`] | packets with a descriptor |

pub mod faults;
pub mod file;
pub mod mapping;
pub mod process;
pub mod signals;
pub mod socket;

use std::io;
use std::os::fd::AsRawFd;

/// Asks for room for so many bytes that the other side of a socket has not taken yet; the system may give less.
pub fn send_buffer(socket: &impl AsRawFd, bytes: usize) -> io::Result<()> {
    let bytes = bytes as libc::c_int;
    let length = size_of_val(&bytes) as libc::socklen_t;
    let (socket, value) = (socket.as_raw_fd(), (&raw const bytes).cast());
    // SAFETY: the option is an `int`, which outlives the call.
    check(unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, value, length) }).map(|_| ())
}

/// The result of a system call that answers -1 for an error.
fn check<T: PartialEq + From<i8>>(result: T) -> io::Result<T> {
    match result == T::from(-1) {
        true => Err(io::Error::last_os_error()),
        false => Ok(result),
    }
}
