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

/// The result of a system call that answers -1 for an error.
fn check<T: PartialEq + From<i8>>(result: T) -> io::Result<T> {
    match result == T::from(-1) {
        true => Err(io::Error::last_os_error()),
        false => Ok(result),
    }
}
