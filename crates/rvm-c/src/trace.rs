//! The trace of allocations on the heap: whether it is on, and its C stream.

use std::ffi::{CString, c_int};
use std::fmt::Arguments;
use std::ptr::null_mut;

/// Whether allocations are traced; programs read it through `RDS_LOG`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut rds_tracing: c_int = 0;

/// The C stream that the trace goes to; null: nowhere.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut rds_tracing_file: *mut libc::FILE = null_mut();

/// Prints a line on a C stream; returns whether that worked.
///
/// # Safety
/// `stream` is an open stream.
pub(crate) unsafe fn print(stream: *mut libc::FILE, text: Arguments<'_>) -> bool {
    let Ok(line) = CString::new(format!("{text}\n")) else { return false };
    // SAFETY: a string, and the stream the caller promises.
    unsafe { libc::fputs(line.as_ptr(), stream) >= 0 }
}

/// Prints a line of the trace, if it is on.
pub(crate) fn line(text: Arguments<'_>) {
    // SAFETY: the program sets both before it starts threads that allocate, and the stream is open while tracing is on.
    unsafe {
        if rds_tracing != 0 && !rds_tracing_file.is_null() {
            print(rds_tracing_file, text);
            libc::fflush(rds_tracing_file);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_trace_on(file: *mut libc::FILE) -> c_int {
    // SAFETY: as for `line`.
    unsafe { (rds_tracing_file, rds_tracing) = (file, 1) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn rds_trace_off() -> c_int {
    // SAFETY: as for `line`.
    unsafe { (rds_tracing_file, rds_tracing) = (null_mut(), 0) };
    0
}
