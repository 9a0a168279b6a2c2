//! Arithmetic on offsets and pages.
//!
//! An offset is one number in two words; sums and differences wrap at its end.

use crate::types::{rvm_length_t, rvm_offset_t};
use std::ffi::c_long;

const WORD: u32 = rvm_length_t::BITS;

fn number(offset: rvm_offset_t) -> u128 {
    u128::from(offset.high) << WORD | u128::from(offset.low)
}

fn offset(number: u128) -> rvm_offset_t {
    rvm_offset_t { high: (number >> WORD) as rvm_length_t, low: number as rvm_length_t }
}

/// The bytes of an offset, or `None` if that is beyond the largest file.
pub(crate) fn bytes(offset: rvm_offset_t) -> Option<u64> {
    u64::try_from(number(offset)).ok()
}

/// The offset of a number of bytes.
pub(crate) fn from_bytes(bytes: u64) -> rvm_offset_t {
    offset(bytes.into())
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_mk_offset(high: rvm_length_t, low: rvm_length_t) -> rvm_offset_t {
    rvm_offset_t { high, low }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_add_offsets(x: *const rvm_offset_t, y: *const rvm_offset_t) -> rvm_offset_t {
    // SAFETY: the macro passes the addresses of two offsets.
    let (x, y) = unsafe { (*x, *y) };
    offset(number(x).wrapping_add(number(y)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_sub_offsets(x: *const rvm_offset_t, y: *const rvm_offset_t) -> rvm_offset_t {
    // SAFETY: the macro passes the addresses of two offsets.
    let (x, y) = unsafe { (*x, *y) };
    offset(number(x).wrapping_sub(number(y)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_add_length_to_offset(
    x: *const rvm_offset_t,
    length: rvm_length_t,
) -> rvm_offset_t {
    // SAFETY: the macro passes the address of an offset.
    offset(number(unsafe { *x }).wrapping_add(length.into()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_sub_length_from_offset(
    x: *const rvm_offset_t,
    length: rvm_length_t,
) -> rvm_offset_t {
    // SAFETY: the macro passes the address of an offset.
    offset(number(unsafe { *x }).wrapping_sub(length.into()))
}

/// Bytes of a page of this machine.
#[unsafe(no_mangle)]
pub extern "C" fn rvm_page_size() -> rvm_length_t {
    // SAFETY: no arguments that could be wrong.
    let bytes: c_long = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    bytes as rvm_length_t
}

/// What a page boundary has in common with an address in its page.
#[unsafe(no_mangle)]
pub extern "C" fn rvm_page_mask() -> rvm_length_t {
    !(rvm_page_size() - 1)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_rnd_offset_up_to_page(x: *const rvm_offset_t) -> rvm_offset_t {
    // SAFETY: the macro passes the address of an offset.
    let rounded = number(unsafe { *x }).wrapping_add(u128::from(rvm_page_size() - 1));
    offset(rounded & !u128::from(rvm_page_size() - 1))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_rnd_offset_dn_to_page(x: *const rvm_offset_t) -> rvm_offset_t {
    // SAFETY: the macro passes the address of an offset.
    offset(number(unsafe { *x }) & !u128::from(rvm_page_size() - 1))
}
