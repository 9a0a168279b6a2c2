//! Transactions. A record names its transaction by a number, so that a stale or damaged one is found out.

use crate::failure::{self, Outcome, returned};
use crate::library::{Engine, Transaction, engine};
use crate::records::is_record;
use crate::types::{Code, FLUSH, NO_FLUSH, NO_RESTORE, RESTORE, rvm_length_t, rvm_mode_t, rvm_tid_t};
use libc::timeval;
use nvlab_rvm::{Flush, Restore};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970 as C has them.
pub(crate) fn as_timeval(microseconds: i64) -> timeval {
    timeval { tv_sec: microseconds.div_euclid(1_000_000), tv_usec: microseconds.rem_euclid(1_000_000) }
}

fn from_timeval(time: timeval) -> i64 {
    time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_usec)
}

/// The time, or somewhat later if another transaction began in this microsecond.
fn unique_time() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_micros() as i64);
    let later = |last: i64| Some(now.max(last + 1));
    match LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later) {
        Ok(last) | Err(last) => now.max(last + 1),
    }
}

fn locked(transaction: &Mutex<Transaction>) -> MutexGuard<'_, Transaction> {
    transaction.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transaction under way that a record names.
///
/// # Safety
/// `tid` is null or points to a record.
unsafe fn find(engine: &Engine, tid: *const rvm_tid_t) -> Result<Arc<Mutex<Transaction>>, Code> {
    // SAFETY: as the caller promises.
    let record = unsafe { is_record(tid).then(|| &*tid).ok_or(Code::ETID)? };
    let found = engine.transactions().get(record.tid.addr()).ok_or(Code::ETID)?;
    let began = locked(&found).began;
    if began != 0 && began == from_timeval(record.uname) { Ok(found) } else { Err(Code::ETID) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_begin_transaction(tid: *mut rvm_tid_t, mode: rvm_mode_t) -> c_int {
    // SAFETY: the program passes a record, or null.
    returned(unsafe { begin(tid, mode) })
}

/// # Safety
/// `tid` is null or points to a record.
pub(crate) unsafe fn begin(tid: *mut rvm_tid_t, mode: rvm_mode_t) -> Outcome {
    let engine = engine()?;
    // SAFETY: as the caller promises.
    if !unsafe { is_record(tid) } {
        return Err(Code::ETID);
    }
    let restore = match mode {
        RESTORE => Restore::Yes,
        NO_RESTORE => Restore::No,
        _ => return Err(Code::EMODE),
    };
    let began = unique_time();
    let number = engine.begin(restore, began);
    // SAFETY: a record, as checked.
    unsafe { ((*tid).uname, (*tid).tid) = (as_timeval(began), std::ptr::without_provenance_mut(number)) };
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_set_range(
    tid: *const rvm_tid_t,
    dest: *mut c_void,
    length: rvm_length_t,
) -> c_int {
    // SAFETY: the program passes a record, or null, and keeps others from the range until the transaction ends.
    returned(unsafe { set_range(tid, dest.addr(), length as usize) })
}

/// # Safety
/// `tid` is null or points to a record; nobody else uses the range until the transaction ends.
pub(crate) unsafe fn set_range(tid: *const rvm_tid_t, address: usize, length: usize) -> Outcome {
    let engine = engine()?;
    // SAFETY: as the caller promises.
    let transaction = unsafe { find(&engine, tid)? };
    if length == 0 {
        return Ok(());
    }
    let regions = engine.regions();
    let (&start, region) = regions.range(..=address).next_back().ok_or(Code::ENOT_MAPPED)?;
    let from = address - start;
    let end =
        from.checked_add(length).filter(|&end| end <= region.memory.bytes()).ok_or(Code::ENOT_MAPPED)?;
    let mut transaction = locked(&transaction);
    // SAFETY: as the caller promises.
    unsafe { transaction.raw.set_range(&region.memory, from..end) }.map_err(|error| failure::of(&error))?;
    transaction.declared.push(length);
    if !transaction.regions.contains(&start) {
        transaction.regions.push(start);
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_modify_bytes(
    tid: *const rvm_tid_t,
    dest: *mut c_void,
    src: *const c_void,
    length: rvm_length_t,
) -> c_int {
    if src.is_null() && length != 0 {
        return returned(engine().and(Err(Code::ESRC)));
    }
    // SAFETY: the range is mapped once it has been declared, and the program passes as many bytes.
    returned(unsafe {
        set_range(tid, dest.addr(), length as usize).map(|()| {
            dest.cast::<u8>().copy_from(src.cast(), length as usize);
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_end_transaction(tid: *mut rvm_tid_t, mode: rvm_mode_t) -> c_int {
    // SAFETY: the program passes a record, or null.
    returned(unsafe { end(tid, mode) })
}

/// # Safety
/// `tid` is null or points to a record; nobody else uses the ranges of the transaction.
pub(crate) unsafe fn end(tid: *mut rvm_tid_t, mode: rvm_mode_t) -> Outcome {
    let engine = engine()?;
    // SAFETY: as the caller promises.
    let found = unsafe { find(&engine, tid)? };
    let flush = match mode {
        FLUSH => Flush::Yes,
        NO_FLUSH => Flush::No,
        _ => return Err(Code::EMODE),
    };
    let mut transaction = locked(&found);
    let (coalesced, began) = (transaction.raw.size(), Instant::now());
    // SAFETY: as the caller promises.
    let committed = unsafe { engine.rvm.commit_raw(&mut transaction.raw, flush) };
    if let Err(error @ nvlab_rvm::Error::TooLarge { .. }) = &committed {
        return Err(failure::of(error));
    }
    let took = (flush == Flush::Yes).then(|| began.elapsed());
    if committed.is_err() {
        // A commit that was refused has not cleared it.
        transaction.raw = engine.rvm.begin_raw(transaction.raw.restore());
    } else {
        engine.counters().committed(&transaction.declared, coalesced, took);
    }
    // SAFETY: as the caller promises.
    unsafe { forget(&engine, &mut transaction, tid) };
    committed.map_err(|error| failure::of(&error))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_abort_transaction(tid: *mut rvm_tid_t) -> c_int {
    // SAFETY: the program passes a record, or null.
    returned(unsafe { abort(tid) })
}

/// # Safety
/// `tid` is null or points to a record; nobody else uses the ranges of the transaction.
pub(crate) unsafe fn abort(tid: *mut rvm_tid_t) -> Outcome {
    let engine = engine()?;
    // SAFETY: as the caller promises.
    let found = unsafe { find(&engine, tid)? };
    let mut transaction = locked(&found);
    match transaction.raw.restore() {
        Restore::Yes => {
            // SAFETY: as the caller promises.
            let undone = unsafe { engine.rvm.abort_raw(&mut transaction.raw) };
            undone.map_err(|error| failure::of(&error))?
        }
        // There is nothing to undo.
        Restore::No => transaction.raw = engine.rvm.begin_raw(Restore::No),
    }
    // SAFETY: as the caller promises.
    unsafe { forget(&engine, &mut transaction, tid) };
    engine.counters().aborted();
    Ok(())
}

/// Ends the transaction a record names.
///
/// # Safety
/// `tid` points to a record.
unsafe fn forget(engine: &Engine, transaction: &mut Transaction, tid: *mut rvm_tid_t) {
    transaction.began = 0;
    // SAFETY: as the caller promises.
    let number = unsafe { std::mem::replace(&mut (*tid).tid, std::ptr::null_mut()) }.addr();
    engine.transactions().note_end(number, transaction.raw.restore());
}
