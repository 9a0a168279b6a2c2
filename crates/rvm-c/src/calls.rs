//! The functions of `rvm.h` that concern the library as a whole.

use crate::failure::{self, Outcome, returned};
use crate::library::{self, engine};
use crate::records::{fresh_tid, is_record};
use crate::transaction::as_timeval;
use crate::types::{Code, RVM_TRUE, rvm_offset_t, rvm_options_t, rvm_region_t, rvm_statistics_t, rvm_tid_t};
use std::ffi::{CStr, c_char, c_int, c_long};
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

const VERSION: &CStr = c"RVM Interface Version 1.3  7 Mar 1994";
const STATISTICS_VERSION: &CStr = c"RVM Statistics Version 1.1 8 Dec 1992";

/// Whether a program was compiled with the header of this version.
///
/// # Safety
/// `version` is null or points to a string.
unsafe fn is_version(version: *const c_char, expected: &CStr) -> bool {
    // SAFETY: as the caller promises.
    !version.is_null() && unsafe { CStr::from_ptr(version) } == expected
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_initialize(version: *const c_char, options: *const rvm_options_t) -> c_int {
    // SAFETY: the program passes strings and records, or null.
    unsafe {
        if !is_version(version, VERSION) {
            return Code::EVERSION_SKEW as c_int;
        }
        returned(library::start(options))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_relocate(old_folder: *const c_char, new_folder: *const c_char) -> c_int {
    // SAFETY: the program passes strings, or null.
    returned(unsafe { library::relocate(old_folder, new_folder) })
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_terminate() -> c_int {
    returned(library::terminate())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_create_log(
    options: *const rvm_options_t,
    log_len: *const rvm_offset_t,
    mode: c_long,
) -> c_int {
    // SAFETY: the program passes records, or null.
    returned(unsafe { library::create_log(options, log_len, mode) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_set_options(options: *const rvm_options_t) -> c_int {
    // SAFETY: the program passes a record, or null.
    returned(unsafe { library::change(options) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_query(options: *mut rvm_options_t, region: *const rvm_region_t) -> c_int {
    // SAFETY: the program passes records, or null.
    returned(unsafe { query(options, region) })
}

/// # Safety
/// Both are null or point to records; the array of `options` is one made by an earlier query, or null.
unsafe fn query(options: *mut rvm_options_t, region: *const rvm_region_t) -> Outcome {
    library::check_running()?;
    // SAFETY: as the caller promises.
    let (region, options) = unsafe {
        if !region.is_null() && !is_record(region) {
            return Err(Code::EREGION);
        }
        if !is_record(options) {
            return Err(Code::EOPTIONS);
        }
        (region.as_ref(), &mut *options)
    };
    let settings = library::settings();
    (options.truncate, options.flags) = (settings.truncate, settings.flags);
    [options.recovery_buf_len, options.flush_buf_len, options.max_read_len] = settings.buffers;
    (options.pager, options.log_empty, options.n_uncommit) = (std::ptr::null_mut(), RVM_TRUE, 0);
    let engine = match engine() {
        Ok(engine) => engine,
        Err(_) => return Ok(()),
    };
    if !options.log_dev.is_null() {
        let path = engine.log_path.as_os_str().as_bytes();
        // SAFETY: the program's buffer has room for the longest path.
        unsafe {
            options.log_dev.copy_from_nonoverlapping(path.as_ptr().cast(), path.len());
            options.log_dev.add(path.len()).write(0);
        }
    }
    options.log_empty = (engine.rvm.statistics().live_bytes == 0).into();
    let within = match region {
        Some(region) => {
            let address = region.vmaddr.addr();
            let regions = engine.regions();
            let (&start, found) = regions.range(..=address).next_back().ok_or(Code::ENOT_MAPPED)?;
            if address + region.length as usize > start + found.memory.bytes() {
                return Err(Code::ENOT_MAPPED);
            }
            Some(start)
        }
        None => None,
    };
    let as_record = |(number, began)| {
        let tid = std::ptr::without_provenance_mut(number);
        rvm_tid_t { uname: as_timeval(began), tid, ..fresh_tid() }
    };
    let uncommitted: Vec<rvm_tid_t> = engine.uncommitted(within).into_iter().map(as_record).collect();
    if !uncommitted.is_empty() {
        let bytes = uncommitted.len() * size_of::<rvm_tid_t>();
        // SAFETY: the old array is one of `malloc` or null, and the new one has room for all.
        unsafe {
            let array = libc::realloc(options.tid_array.cast(), bytes).cast::<rvm_tid_t>();
            if array.is_null() {
                return Err(Code::ENO_MEMORY);
            }
            array.copy_from_nonoverlapping(uncommitted.as_ptr(), uncommitted.len());
            options.tid_array = array;
        }
        options.n_uncommit = uncommitted.len() as c_long;
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_flush() -> c_int {
    let flush = || {
        let (engine, began) = (engine()?, Instant::now());
        engine.rvm.flush().map_err(|error| failure::of(&error))?;
        engine.counters().asked_to_flush(began.elapsed());
        Ok(())
    };
    returned(flush())
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_truncate() -> c_int {
    let truncate = || {
        let (engine, began) = (engine()?, Instant::now());
        let before = engine.rvm.statistics();
        engine.rvm.truncate().map_err(|error| failure::of(&error))?;
        engine.counters().truncated(began.elapsed(), before, engine.rvm.statistics());
        Ok(())
    };
    returned(truncate())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_statistics(version: *const c_char, statistics: *mut rvm_statistics_t) -> c_int {
    // SAFETY: the program passes a string and a record, or null.
    let store = || unsafe {
        library::check_running()?;
        if !is_version(version, STATISTICS_VERSION) {
            return Err(Code::ESTAT_VERSION_SKEW);
        }
        if !is_record(statistics) {
            return Err(Code::ESTATISTICS);
        }
        let engine = engine()?;
        let uncommitted = engine.transactions().under_way();
        let now = engine.counters().record(engine.rvm.statistics(), engine.capacity, uncommitted);
        *statistics = rvm_statistics_t { from_heap: (*statistics).from_heap, ..now };
        Ok(())
    };
    returned(store())
}
