//! The recoverable heap of C programs: [`nvlab_rvm::heap`] in a mapped region.
//!
//! One lock for the whole heap, held while a function runs. A transaction of the heap's own begins and ends within it.

use crate::failure::Outcome;
use crate::hooks;
use crate::library::engine;
use crate::offsets::from_bytes;
use crate::records::fresh_tid;
use crate::segment::{load, release_loaded, rvm_create_segment};
use crate::trace;
use crate::transaction::{abort, begin, end, set_range};
use crate::types::{
    Code, FLUSH, NO_FLUSH, RESTORE, intentionList_t, rds_stats_t, rvm_length_t, rvm_mode_t, rvm_offset_t,
    rvm_region_def_t, rvm_tid_t,
};
use nvlab_rvm::heap::{Error, Heap, Words};
use std::ffi::{c_char, c_int, c_uint, c_ulong};
use std::mem::size_of;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The codes of `rds.h`; those of `rvm.h` are positive.
const EBAD_SEGMENT_HDR: c_int = -3;
const EHEAP_VERSION_SKEW: c_int = -4;
const EHEAP_INIT: c_int = -5;
const EBAD_ARGS: c_int = -6;
const ECORRUPT: c_int = -7;
const EFREED_TWICE: c_int = -8;
const ENO_ROOM: c_int = -9;

/// The heap in use.
pub(crate) struct Started {
    heap: Heap,
    base: usize,
    bytes: u64,
    /// What was loaded with it, to be released.
    loaded: Vec<rvm_region_def_t>,
}

// SAFETY: the pointers are addresses of regions, which belong to the process.
unsafe impl Send for Started {}

static STARTED: Mutex<Option<Started>> = Mutex::new(None);

fn started() -> MutexGuard<'static, Option<Started>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The words of a heap in mapped memory, within a transaction.
struct Mapped {
    base: *mut u8,
    bytes: u64,
    /// Null: nothing is changed.
    tid: *const rvm_tid_t,
    /// Why a change was refused.
    refused: Code,
}

impl Words for Mapped {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn get(&self, at: u64) -> u64 {
        assert!(at < self.bytes && at.is_multiple_of(8), "a word at {at} of {}", self.bytes);
        // SAFETY: within mapped memory, which is aligned to a page or, by `rds_init_heap`, to a word.
        unsafe { u64::from_le(self.base.add(at as usize).cast::<u64>().read()) }
    }

    fn set(&mut self, at: u64, word: u64) -> nvlab_rvm::Result<()> {
        assert!(at < self.bytes && at.is_multiple_of(8), "a word at {at} of {}", self.bytes);
        // SAFETY: as above; the lock of the heap keeps others away.
        unsafe {
            let place = self.base.add(at as usize).cast::<u64>();
            if let Err(code) = set_range(self.tid, place.addr(), size_of::<u64>()) {
                self.refused = code;
                return Err(nvlab_rvm::Error::Invalid("the range cannot be declared".into()));
            }
            place.write(word.to_le());
        }
        Ok(())
    }
}

impl Mapped {
    fn new(base: usize, bytes: u64, tid: *const rvm_tid_t) -> Mapped {
        Mapped { base: std::ptr::with_exposed_provenance_mut(base), bytes, tid, refused: Code::EINTERNAL }
    }

    fn code(&self, error: &Error) -> c_int {
        match error {
            Error::Version => EHEAP_VERSION_SKEW,
            Error::Invalid(_) => EBAD_ARGS,
            Error::Damaged { .. } => ECORRUPT,
            Error::FreedTwice(_) => EFREED_TWICE,
            Error::NoRoom(_) => ENO_ROOM,
            Error::Memory(_) => self.refused as c_int,
        }
    }
}

impl Started {
    fn words(&self, tid: *const rvm_tid_t) -> Mapped {
        Mapped::new(self.base, self.bytes, tid)
    }

    /// The offset of an address in the heap; one that no block can have for addresses outside.
    fn offset(&self, address: *const c_char) -> u64 {
        (address.addr() as u64).wrapping_sub(self.base as u64)
    }
}

/// Runs `change` in the given transaction, or for null in one of its own that ends in `mode`.
///
/// # Safety
/// `tid` is null or points to a record.
unsafe fn within<T>(
    tid: *mut rvm_tid_t,
    mode: rvm_mode_t,
    change: impl FnOnce(*const rvm_tid_t) -> Result<T, c_int>,
) -> Result<T, c_int> {
    if !tid.is_null() {
        return change(tid);
    }
    let code = |code: Code| code as c_int;
    let mut own = fresh_tid();
    // SAFETY: a record of this function.
    unsafe {
        begin(&raw mut own, RESTORE).map_err(code)?;
        match change(&raw const own) {
            Ok(done) => match end(&raw mut own, mode) {
                Ok(()) => Ok(done),
                Err(failed) => {
                    // A transaction that is too large has not ended.
                    let _ = abort(&raw mut own);
                    Err(code(failed))
                }
            },
            Err(failed) => {
                abort(&raw mut own).map_err(code)?;
                Err(failed)
            }
        }
    }
}

/// Changes the heap in use.
///
/// # Safety
/// `tid` is null or points to a record.
unsafe fn change<T>(
    tid: *mut rvm_tid_t,
    mode: rvm_mode_t,
    change: impl FnOnce(&Started, &mut Mapped) -> Result<T, Error>,
) -> Result<T, c_int> {
    let started = started();
    let heap = started.as_ref().ok_or(EHEAP_INIT)?;
    // SAFETY: as the caller promises.
    unsafe {
        within(tid, mode, |tid| {
            let mut words = heap.words(tid);
            change(heap, &mut words).map_err(|error| words.code(&error))
        })
    }
}

/// Stores a code for the program and returns the value of the function.
///
/// # Safety
/// `err` is null or points to a place for it.
unsafe fn answer(outcome: Result<(), c_int>, err: *mut c_int) -> c_int {
    // SAFETY: as the caller promises.
    if let Some(err) = unsafe { err.as_mut() } {
        *err = outcome.err().unwrap_or(0);
    }
    if outcome.is_ok() { 0 } else { -1 }
}

fn code(outcome: Outcome) -> Result<(), c_int> {
    outcome.map_err(|code| code as c_int)
}

/// Makes mapped memory a heap.
///
/// # Safety
/// `tid` points to a record.
unsafe fn initialize(
    base: usize,
    bytes: u64,
    chunk: u64,
    lists: u64,
    tid: *const rvm_tid_t,
) -> Result<(), c_int> {
    if !base.is_multiple_of(16) {
        return Err(EBAD_ARGS);
    }
    mapped_bytes(base).filter(|&has| has >= bytes).ok_or(Code::ENOT_MAPPED as c_int)?;
    let mut words = Mapped::new(base, bytes / 8 * 8, tid);
    match Heap::create(&mut words, chunk, lists) {
        Ok(_) => Ok(()),
        Err(error) => Err(words.code(&error)),
    }
}

/// Bytes from an address to the end of its region.
fn mapped_bytes(address: usize) -> Option<u64> {
    let engine = engine().ok()?;
    let regions = engine.regions();
    let (&start, region) = regions.range(..=address).next_back()?;
    (start + region.memory.bytes()).checked_sub(address).filter(|&bytes| bytes > 0).map(|bytes| bytes as u64)
}

/// Uses the heap at an address.
fn start(base: usize, loaded: Vec<rvm_region_def_t>) -> Result<(), c_int> {
    let has = mapped_bytes(base).ok_or(Code::ENOT_MAPPED as c_int)?;
    let words = Mapped::new(base, has / 8 * 8, null_mut());
    if !base.is_multiple_of(16) || words.bytes < 4096 {
        return Err(EHEAP_VERSION_SKEW);
    }
    let opened = Heap::length(&words).and_then(|bytes| {
        if bytes > has {
            return Err(Error::Version);
        }
        Ok((Heap::open(&Mapped::new(base, bytes, null_mut()))?, bytes))
    });
    let (heap, bytes) = opened.map_err(|error| words.code(&error))?;
    *started() = Some(Started { heap, base, bytes, loaded });
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_zap_heap(
    dev_name: *const c_char,
    dev_length: rvm_offset_t,
    start_addr: *mut c_char,
    static_length: rvm_length_t,
    heap_length: rvm_length_t,
    n_lists: c_ulong,
    chunk_size: c_ulong,
    err: *mut c_int,
) -> c_int {
    let region = |length, vmaddr| rvm_region_def_t { offset: from_bytes(0), length, vmaddr };
    let statics = match start_addr.is_null() {
        true => null_mut(),
        false => start_addr.wrapping_add(heap_length as usize),
    };
    let mut regions = [region(heap_length, start_addr), region(static_length, statics)];
    // SAFETY: the program passes a string and where to store the code.
    let mut zap = || unsafe {
        match rvm_create_segment(dev_name, dev_length, null_mut(), 2, regions.as_mut_ptr()) {
            0 => {}
            failed => return Err(failed),
        }
        let (mut count, mut loaded) = (0, null_mut());
        code(load(dev_name, dev_length, null_mut(), &raw mut count, &raw mut loaded))?;
        let base = (*loaded).vmaddr.expose_provenance();
        let made = within(null_mut(), FLUSH, |tid| initialize(base, heap_length, chunk_size, n_lists, tid));
        made.and(code(release_loaded(count, &raw mut loaded)))
    };
    let outcome = zap();
    // SAFETY: as above.
    unsafe { answer(outcome, err) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_init_heap(
    base: *mut c_char,
    length: rvm_length_t,
    chunk_size: c_ulong,
    n_lists: c_ulong,
    tid: *mut rvm_tid_t,
    err: *mut c_int,
) -> c_int {
    // SAFETY: the program passes mapped memory, a record, and where to store the code.
    unsafe { answer(initialize(base.expose_provenance(), length, chunk_size, n_lists, tid), err) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_load_heap(
    dev_name: *const c_char,
    dev_length: rvm_offset_t,
    static_addr: *mut *mut c_char,
    err: *mut c_int,
) -> c_int {
    // SAFETY: the program passes a string and where to store the results.
    let load = || unsafe {
        let (mut count, mut loaded) = (0, null_mut());
        code(load(dev_name, dev_length, null_mut(), &raw mut count, &raw mut loaded))?;
        let regions = std::slice::from_raw_parts(loaded, count as usize).to_vec();
        let outcome = match regions[..] {
            [heap, _] => start(heap.vmaddr.expose_provenance(), regions.clone()),
            _ => Err(EBAD_SEGMENT_HDR),
        };
        if outcome.is_err() {
            code(release_loaded(count, &raw mut loaded))?;
            return outcome;
        }
        hooks::set_loaded(count, loaded);
        *static_addr = regions[1].vmaddr;
        Ok(())
    };
    // SAFETY: as above.
    unsafe { answer(load(), err) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_unload_heap(err: *mut c_int) -> c_int {
    let unload = || {
        let Some(Started { loaded, .. }) = started().take() else { return Err(EHEAP_INIT) };
        let engine = engine().map_err(|code| code as c_int)?;
        if !loaded.is_empty() {
            hooks::free_loaded();
        }
        for region in loaded {
            code(crate::mapping::unmap(&engine, region.vmaddr.addr(), region.length as usize, false))?;
        }
        Ok(())
    };
    // SAFETY: the program passes where to store the code.
    unsafe { answer(unload(), err) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_start_heap(start_addr: *mut c_char, err: *mut c_int) -> c_int {
    // SAFETY: the program passes where to store the code.
    unsafe { answer(start(start_addr.expose_provenance(), Vec::new()), err) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_stop_heap(err: *mut c_int) -> c_int {
    let stopped = started().take().map(|_| ()).ok_or(EHEAP_INIT);
    // SAFETY: the program passes where to store the code.
    unsafe { answer(stopped, err) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_prealloc(
    size: c_ulong,
    n_blocks: c_ulong,
    tid: *mut rvm_tid_t,
    err: *mut c_int,
) -> c_int {
    // SAFETY: the program passes a record or null, and where to store the code.
    unsafe { answer(change(tid, NO_FLUSH, |used, words| used.heap.preallocate(words, size, n_blocks)), err) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_malloc(size: c_ulong, tid: *mut rvm_tid_t, err: *mut c_int) -> *mut c_char {
    // SAFETY: the program passes a record or null, and where to store the code.
    unsafe {
        let allocated = change(tid, NO_FLUSH, |used, words| {
            let at = used.heap.allocate(words, size)?;
            Ok(words.base.wrapping_add(at as usize).cast::<c_char>())
        });
        answer(allocated.map(|_| ()), err);
        let block = allocated.unwrap_or(null_mut());
        trace::line(format_args!("rdstrace: malloc addr {block:p} size {size:x}"));
        block
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_free(addr: *mut c_char, tid: *mut rvm_tid_t, err: *mut c_int) -> c_int {
    trace::line(format_args!("rdstrace: free addr {addr:p}"));
    // SAFETY: the program passes a record or null, and where to store the code.
    unsafe { answer(change(tid, NO_FLUSH, |used, words| used.heap.free(words, used.offset(addr))), err) }
}

#[unsafe(no_mangle)]
pub extern "C" fn rds_maxblock(size: c_ulong) -> c_int {
    match started().as_ref() {
        Some(used) => used.heap.fits(&used.words(null_mut()), size).unwrap_or(false).into(),
        None => 0,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_fake_free(addr: *mut c_char, list: *mut intentionList_t) -> c_int {
    const FIRST_BYTES: c_ulong = 128;
    let started = started();
    let Some(used) = started.as_ref() else { return EHEAP_INIT };
    if addr.is_null() {
        return 0;
    }
    let words = used.words(null_mut());
    if let Err(error) = used.heap.usable(&words, used.offset(addr)) {
        return words.code(&error);
    }
    // SAFETY: the program passes a list it has zeroed, or one that this function has filled.
    unsafe {
        let Some(list) = list.as_mut() else { return EBAD_ARGS };
        let is_full = list.count as usize * size_of::<*mut c_char>() >= list.size as usize;
        if list.table.is_null() || is_full {
            let bytes = if list.table.is_null() { FIRST_BYTES } else { list.size * 2 };
            let table = libc::realloc(list.table.cast(), bytes as usize).cast::<*mut c_char>();
            if table.is_null() {
                return Code::ENO_MEMORY as c_int;
            }
            list.count = if list.table.is_null() { 0 } else { list.count };
            (list.table, list.size) = (table, bytes);
        }
        list.table.add(list.count as usize).write(addr);
        list.count += 1;
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_do_free(list: *mut intentionList_t, mode: rvm_mode_t) -> c_int {
    // SAFETY: the program passes a list it has zeroed, or one that `rds_fake_free` has filled.
    unsafe {
        let Some(list) = list.as_mut() else { return EBAD_ARGS };
        let blocks = match list.table.is_null() {
            true => &[],
            false => std::slice::from_raw_parts(list.table, list.count as usize),
        };
        let freed = change(null_mut(), mode, |used, words| {
            blocks.iter().try_for_each(|&block| {
                trace::line(format_args!("rdstrace: free addr {block:p}"));
                used.heap.free(words, used.offset(block))
            })
        });
        libc::free(list.table.cast());
        (list.table, list.count, list.size) = (null_mut(), 0, 0);
        freed.err().unwrap_or(0)
    }
}

/// The statistics as C has them.
pub(crate) fn statistics() -> Result<rds_stats_t, c_int> {
    let started = started();
    let used = started.as_ref().ok_or(EHEAP_INIT)?;
    let counted = used.heap.statistics(&used.words(null_mut()));
    let malloc = counted.hits + counted.misses + counted.large_hits + counted.large_misses;
    Ok(rds_stats_t {
        malloc: malloc as c_uint,
        prealloc: counted.preallocations as c_uint,
        free: counted.frees as c_uint,
        coalesce: 0,
        hits: counted.hits as c_uint,
        misses: counted.misses as c_uint,
        large_list: counted.large_changes as c_uint,
        large_hits: counted.large_hits as c_uint,
        large_misses: counted.large_misses as c_uint,
        merged: counted.merged as c_uint,
        unmerged: counted.unmerged as c_uint,
        freebytes: counted.free_bytes as c_uint,
        mallocbytes: counted.used_bytes as c_uint,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_get_stats(stats: *mut rds_stats_t) -> c_int {
    // SAFETY: the program passes where to store them, or null.
    match (statistics(), unsafe { stats.as_mut() }) {
        (Err(code), _) => code,
        (Ok(_), None) => EBAD_ARGS,
        (Ok(now), Some(stats)) => {
            *stats = now;
            0
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rds_clear_stats(err: *mut c_int) -> c_int {
    // SAFETY: the program passes where to store the code.
    unsafe { answer(change(null_mut(), NO_FLUSH, |used, words| used.heap.clear_statistics(words)), err) }
}

/// Calls `see` with the address, bytes and use of every block of the heap.
pub(crate) fn for_each_block(mut see: impl FnMut(usize, u64, bool)) -> c_int {
    let started = started();
    let Some(used) = started.as_ref() else { return EHEAP_INIT };
    let words = used.words(null_mut());
    let seen =
        used.heap.for_each_block(&words, |at, bytes, is_used| see(used.base + at as usize, bytes, is_used));
    seen.map_or_else(|error| words.code(&error), |()| 0)
}
