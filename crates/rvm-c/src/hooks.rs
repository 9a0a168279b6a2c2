//! What Coda's libraries export besides what their public headers declare, as its own programs use it (the stress program
//! `rvm_basher`, which declares it itself or includes Coda's `rvm_pthread.h`).

use crate::types::{RVM_FALSE, rvm_bool_t, rvm_region_def_t};
use libc::{pthread_mutex_t, pthread_t};
use std::ffi::{c_int, c_ulong, c_void};
use std::ptr::null_mut;

/// The regions that `rds_load_heap` has mapped, the heap and the static one; null if there are none. The program may pass it to
/// `rvm_release_segment`, which sets it to null; not a copy of it, or `rds_unload_heap` would free the array again.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut RegionDefs: *mut rvm_region_def_t = null_mut();

/// Length of `RegionDefs`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut NRegionDefs: c_ulong = 0;

/// Coda's switch for tests of the heap. Nothing reads it, there neither.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut rds_testsw: rvm_bool_t = RVM_FALSE;

/// Where the macro `cthread_fork` stores the thread it makes, and `cthread_self` the one that runs.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut rvm_pthreadid: pthread_t = 0;

/// Where the macro `cthread_join` stores what the thread returned.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut rvm_ptstat: *mut c_void = null_mut();

/// And whether it could be joined: 0 or a number of an error.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut rvm_join_res: c_int = 0;

/// 1 if nobody holds the mutex, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_lock_free(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the program passes a mutex.
    unsafe {
        let is_free = libc::pthread_mutex_trylock(mutex) == 0;
        if is_free {
            libc::pthread_mutex_unlock(mutex);
        }
        is_free.into()
    }
}

/// Frees records that the library keeps for reuse: it keeps none.
#[unsafe(no_mangle)]
pub extern "C" fn clear_free_lists() {}

/// Takes note of what `rds_load_heap` has mapped, an array that `free` frees.
pub(crate) fn set_loaded(count: c_ulong, regions: *mut rvm_region_def_t) {
    // SAFETY: the program loads a heap before it starts threads that use it.
    unsafe { (NRegionDefs, RegionDefs) = (count, regions) };
}

/// Frees what [`set_loaded`] was told, unless the program has.
pub(crate) fn free_loaded() {
    // SAFETY: as there; the array was allocated by C, and nobody uses it once the heap is unloaded.
    unsafe {
        libc::free(RegionDefs.cast());
        (NRegionDefs, RegionDefs) = (0, null_mut());
    }
}
