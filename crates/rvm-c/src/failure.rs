//! From the errors of the library to the codes, `errno` and the message of C.

use crate::types::Code;
use nvlab_rvm::Error;
use std::ffi::{c_char, c_int};
use std::ptr::addr_of_mut;
use std::sync::{Mutex, PoisonError};

/// Bytes of the longest message, with its final zero.
const MESSAGE_BYTES: usize = 512;

static mut MESSAGE: [c_char; MESSAGE_BYTES] = [0; MESSAGE_BYTES];
static MESSAGE_LOCK: Mutex<()> = Mutex::new(());

/// The message of the last failure in any thread, for C programs to read.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut rvm_errmsg: *mut c_char = addr_of_mut!(MESSAGE).cast();

/// What C functions of this crate come to.
pub(crate) type Outcome = Result<(), Code>;

/// The return value of a C function.
pub(crate) fn returned(outcome: Outcome) -> c_int {
    outcome.err().unwrap_or(Code::SUCCESS) as c_int
}

/// Sets this thread's `errno`.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe { *libc::__errno_location() = value }
}

/// Leaves a message for the program.
fn set_message(text: &str) {
    let _guard = MESSAGE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = text.bytes().filter(|&byte| byte != 0).take(MESSAGE_BYTES - 1).chain([0]);
    for (at, byte) in bytes.enumerate() {
        // SAFETY: within the buffer, whose last byte is always 0. A program that reads while another thread fails may see
        // a mixture of two messages.
        unsafe { *addr_of_mut!(MESSAGE).cast::<c_char>().add(at) = byte as c_char };
    }
}

/// The code of an I/O error, which also sets `errno`.
pub(crate) fn of_io(what: &str, error: &std::io::Error) -> Code {
    set_message(&format!("cannot {what}: {error}"));
    let number = error.raw_os_error().unwrap_or(libc::EIO);
    set_errno(number);
    if number == libc::ENOMEM { Code::ENO_MEMORY } else { Code::EIO }
}

/// The code of an error.
pub(crate) fn of(error: &Error) -> Code {
    match error {
        Error::Io { what, source } => return of_io(what, source),
        error => set_message(&error.to_string()),
    }
    match error {
        Error::Io { .. } => Code::EIO,
        Error::Failed(_) => Code::ETERMINATED,
        Error::Busy(_) => {
            set_errno(libc::EBUSY);
            Code::ELOG
        }
        Error::Format { .. } => Code::ELOG_VERSION_SKEW,
        Error::Damaged { .. } => Code::ELOG,
        Error::TooLarge { .. } => Code::ETOO_BIG,
        Error::Invalid(_) => Code::ERANGE,
        Error::MissedRange { .. } => Code::EINTERNAL,
    }
}
