//! The life of records: allocated with `malloc`, so that a C program may look at them with its own tools.

use crate::types::{
    OPTIONS_ID, REGION_ID, RVM_FALSE, RVM_TRUE, STATISTICS_ID, TID_ID, rvm_bool_t, rvm_options_t,
    rvm_region_t, rvm_statistics_t, rvm_struct_id_t, rvm_tid_t,
};
use std::mem::size_of;
use std::ptr::{null_mut, write};

/// What all records have in common.
///
/// # Safety
/// All-zero bytes are a valid record, and its first fields are its kind and whether it is from the heap.
pub(crate) unsafe trait Record: Copy {
    /// The kind in its first field.
    const ID: rvm_struct_id_t;
    /// Sets the fields whose default is not zero.
    fn set_defaults(&mut self) {}
}

// SAFETY: numbers, pointers and nothing else, and the first fields are those.
unsafe impl Record for rvm_tid_t {
    const ID: rvm_struct_id_t = TID_ID;
}

// SAFETY: as above.
unsafe impl Record for rvm_region_t {
    const ID: rvm_struct_id_t = REGION_ID;
}

// SAFETY: as above.
unsafe impl Record for rvm_statistics_t {
    const ID: rvm_struct_id_t = STATISTICS_ID;
}

// SAFETY: as above.
unsafe impl Record for rvm_options_t {
    const ID: rvm_struct_id_t = OPTIONS_ID;
    fn set_defaults(&mut self) {
        self.truncate = 50;
        (self.recovery_buf_len, self.flush_buf_len, self.max_read_len) = (256 << 10, 256 << 10, 512 << 10);
        self.create_log_mode = 0o600;
    }
}

/// The first fields of every record.
#[repr(C)]
struct Head {
    struct_id: rvm_struct_id_t,
    from_heap: rvm_bool_t,
}

/// Makes the record at `at` a fresh one.
///
/// # Safety
/// `at` is null or has room for one.
unsafe fn initialize<R: Record>(at: *mut R, from_heap: rvm_bool_t) {
    if at.is_null() {
        return;
    }
    // SAFETY: there is room, and a record begins with its head and may be zero.
    unsafe {
        at.write_bytes(0, 1);
        write(at.cast(), Head { struct_id: R::ID, from_heap });
        (*at).set_defaults();
    }
}

/// A new record, or null.
fn allocate<R: Record>() -> *mut R {
    // SAFETY: what is returned has room for a record, or is null.
    unsafe {
        let at = libc::malloc(size_of::<R>()).cast::<R>();
        initialize(at, RVM_TRUE);
        at
    }
}

/// A copy of a record, or null.
///
/// # Safety
/// `of` is null or points to a record.
unsafe fn copy<R: Record>(of: *const R) -> *mut R {
    // SAFETY: both are records where they are not null, and the copy's head is its own.
    unsafe {
        if !is_record(of) {
            return null_mut();
        }
        let at = allocate::<R>();
        if !at.is_null() {
            at.copy_from_nonoverlapping(of, 1);
            write(at.cast(), Head { struct_id: R::ID, from_heap: RVM_TRUE });
        }
        at
    }
}

/// Frees a record that [`allocate`] or [`copy`] made, and nothing else.
///
/// # Safety
/// `at` is null or points to a record, which is not used again if it is from the heap.
unsafe fn release<R: Record>(at: *mut R) {
    // SAFETY: a record says whether it is from the heap; its kind is cleared so that a second release finds none.
    unsafe {
        if is_record(at) && (*at.cast::<Head>()).from_heap == RVM_TRUE {
            write(at.cast(), Head { struct_id: 0, from_heap: RVM_FALSE });
            libc::free(at.cast());
        }
    }
}

/// Whether a record of this kind is there.
///
/// # Safety
/// `at` is null or points to initialized memory of its size.
pub(crate) unsafe fn is_record<R: Record>(at: *const R) -> bool {
    // SAFETY: a record begins with its head.
    !at.is_null() && unsafe { (*at.cast::<Head>()).struct_id } == R::ID
}

/// A transaction record that has not begun.
pub(crate) fn fresh_tid() -> rvm_tid_t {
    // SAFETY: all-zero is a valid record.
    unsafe {
        let mut tid = std::mem::zeroed();
        initialize(&raw mut tid, RVM_FALSE);
        tid
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_malloc_tid() -> *mut rvm_tid_t {
    allocate()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_init_tid(tid: *mut rvm_tid_t) {
    // SAFETY: the caller's memory is large enough.
    unsafe { initialize(tid, RVM_FALSE) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_copy_tid(tid: *const rvm_tid_t) -> *mut rvm_tid_t {
    // SAFETY: the caller's record, or null.
    unsafe { copy(tid) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_free_tid(tid: *mut rvm_tid_t) {
    // SAFETY: the caller's record, or null.
    unsafe { release(tid) }
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_malloc_region() -> *mut rvm_region_t {
    allocate()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_init_region(region: *mut rvm_region_t) {
    // SAFETY: the caller's memory is large enough.
    unsafe { initialize(region, RVM_FALSE) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_copy_region(region: *const rvm_region_t) -> *mut rvm_region_t {
    // SAFETY: the caller's record, or null.
    unsafe { copy(region) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_free_region(region: *mut rvm_region_t) {
    // SAFETY: the caller's record, or null.
    unsafe { release(region) }
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_malloc_options() -> *mut rvm_options_t {
    allocate()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_init_options(options: *mut rvm_options_t) {
    // SAFETY: the caller's memory is large enough.
    unsafe { initialize(options, RVM_FALSE) }
}

/// The array of transactions is copied too, because a record from the heap owns its array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_copy_options(options: *const rvm_options_t) -> *mut rvm_options_t {
    // SAFETY: the caller's record, or null; its array has as many records as it says.
    unsafe {
        let made = copy(options);
        if !made.is_null() && !(*made).tid_array.is_null() {
            let transactions = usize::try_from((*made).n_uncommit).unwrap_or(0);
            let array = libc::calloc(transactions.max(1), size_of::<rvm_tid_t>()).cast::<rvm_tid_t>();
            if array.is_null() {
                (*made).n_uncommit = 0;
            } else {
                array.copy_from_nonoverlapping((*made).tid_array, transactions);
            }
            (*made).tid_array = array;
        }
        made
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_free_options(options: *mut rvm_options_t) {
    // SAFETY: the caller's record, or null; one from the heap owns its array.
    unsafe {
        if is_record(options) && (*options).from_heap == RVM_TRUE {
            libc::free((*options).tid_array.cast());
        }
        release(options);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_malloc_statistics() -> *mut rvm_statistics_t {
    allocate()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_init_statistics(statistics: *mut rvm_statistics_t) {
    // SAFETY: the caller's memory is large enough.
    unsafe { initialize(statistics, RVM_FALSE) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_copy_statistics(statistics: *const rvm_statistics_t) -> *mut rvm_statistics_t {
    // SAFETY: the caller's record, or null.
    unsafe { copy(statistics) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_free_statistics(statistics: *mut rvm_statistics_t) {
    // SAFETY: the caller's record, or null.
    unsafe { release(statistics) }
}
