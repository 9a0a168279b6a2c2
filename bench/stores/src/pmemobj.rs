//! libpmemobj: pools, and transactions with an undo log.

use crate::{Error, Result};
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::null_mut;

#[repr(C)]
struct RawPool(c_void);

#[repr(C)]
struct Oid {
    pool: u64,
    offset: u64,
}

const PARAM_NONE: c_int = 0;
const CANCELLED: c_int = 125;

unsafe extern "C" {
    fn pmemobj_create(
        path: *const c_char,
        layout: *const c_char,
        bytes: usize,
        mode: libc::mode_t,
    ) -> *mut RawPool;
    fn pmemobj_open(path: *const c_char, layout: *const c_char) -> *mut RawPool;
    fn pmemobj_close(pool: *mut RawPool);
    fn pmemobj_root(pool: *mut RawPool, bytes: usize) -> Oid;
    fn pmemobj_direct(oid: Oid) -> *mut c_void;
    fn pmemobj_persist(pool: *mut RawPool, start: *const c_void, bytes: usize);
    fn pmemobj_tx_begin(pool: *mut RawPool, jump: *mut c_void, ...) -> c_int;
    fn pmemobj_tx_add_range_direct(start: *const c_void, bytes: usize) -> c_int;
    fn pmemobj_tx_xadd_range_direct(start: *const c_void, bytes: usize, flags: u64) -> c_int;
    fn pmemobj_tx_alloc(bytes: usize, kind: u64) -> Oid;
    fn pmemobj_tx_free(oid: Oid) -> c_int;
    fn pmemobj_tx_abort(code: c_int);
    fn pmemobj_tx_stage() -> c_int;
    fn pmemobj_tx_commit();
    fn pmemobj_tx_end() -> c_int;
    fn pmemobj_errormsg() -> *const c_char;
}

/// `POBJ_XADD_NO_SNAPSHOT`.
const NO_SNAPSHOT: u64 = 1 << 2;
/// `TX_STAGE_WORK`.
const WORK: c_int = 1;

fn failure() -> Error {
    // SAFETY: a text, perhaps empty, of this thread.
    let text = unsafe { CStr::from_ptr(pmemobj_errormsg()) };
    format!("libpmemobj: {}", text.to_string_lossy()).into()
}

/// An open pool. Offsets count from its start; 0 is nothing.
pub struct Pool {
    raw: *mut RawPool,
    start: *mut u8,
    id: u64,
    root: u64,
}

// SAFETY: a pool serves any thread; what protects its memory is the matter of whoever uses `at`.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// The transaction of this thread.
pub struct Transaction<'a> {
    pool: &'a Pool,
    of_this_thread: PhantomData<Cell<*mut ()>>,
}

impl Transaction<'_> {
    /// Keeps the bytes at an offset for undoing; returns their address, for changing them.
    pub fn add(&mut self, offset: u64, bytes: usize) -> Result<*mut u8> {
        let start = self.pool.at(offset);
        // SAFETY: a transaction is under way in this thread; the library refuses what is not in a pool.
        match unsafe { pmemobj_tx_add_range_direct(start.cast(), bytes) } {
            0 => Ok(start),
            _ => Err(failure()),
        }
    }

    /// The address of bytes at an offset that mean nothing if the transaction is undone: their old values are not kept.
    pub fn add_without_old(&mut self, offset: u64, bytes: usize) -> Result<*mut u8> {
        let start = self.pool.at(offset);
        // SAFETY: as in `add`.
        match unsafe { pmemobj_tx_xadd_range_direct(start.cast(), bytes, NO_SNAPSHOT) } {
            0 => Ok(start),
            _ => Err(failure()),
        }
    }

    /// Allocates; it need not be kept for undoing.
    pub fn allocate(&mut self, bytes: usize) -> Result<u64> {
        // SAFETY: a transaction is under way in this thread.
        let oid = unsafe { pmemobj_tx_alloc(bytes, 1) };
        if oid.offset == 0 { Err(failure()) } else { Ok(oid.offset) }
    }

    /// Frees at the commit.
    pub fn free(&mut self, offset: u64) -> Result<()> {
        // SAFETY: a transaction is under way in this thread; the library refuses what is not an object.
        match unsafe { pmemobj_tx_free(Oid { pool: self.pool.id, offset }) } {
            0 => Ok(()),
            _ => Err(failure()),
        }
    }
}

impl Pool {
    pub fn create(path: &Path, pool_bytes: u64, root_bytes: u64) -> Result<Pool> {
        let path = CString::new(path.as_os_str().as_encoded_bytes())?;
        // SAFETY: texts that end with zero.
        let raw = unsafe { pmemobj_create(path.as_ptr(), c"nvlab".as_ptr(), pool_bytes as usize, 0o600) };
        Pool::with_root(raw, root_bytes)
    }

    pub fn open(path: &Path, root_bytes: u64) -> Result<Pool> {
        let path = CString::new(path.as_os_str().as_encoded_bytes())?;
        // SAFETY: texts that end with zero.
        let raw = unsafe { pmemobj_open(path.as_ptr(), c"nvlab".as_ptr()) };
        Pool::with_root(raw, root_bytes)
    }

    fn with_root(raw: *mut RawPool, root_bytes: u64) -> Result<Pool> {
        if raw.is_null() {
            return Err(failure());
        }
        let mut pool = Pool { raw, start: null_mut(), id: 0, root: 0 };
        // SAFETY: the pool is open; its root object is at an offset from its start.
        unsafe {
            let root = pmemobj_root(raw, root_bytes as usize);
            if root.offset == 0 {
                return Err(failure());
            }
            (pool.id, pool.root) = (root.pool, root.offset);
            pool.start = pmemobj_direct(root).cast::<u8>().wrapping_sub(pool.root as usize);
        }
        Ok(pool)
    }

    /// The offset of the root object, which was zeroed when it was created.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// The address of an offset.
    pub fn at(&self, offset: u64) -> *mut u8 {
        self.start.wrapping_add(offset as usize)
    }

    /// Does a transaction: durable when this returns, undone if `work` fails. Transactions of other threads are not kept from
    /// its memory.
    pub fn transact<R>(&self, work: impl FnOnce(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        // SAFETY: begin and end are paired; without a jump buffer errors are returned, and have aborted the transaction.
        unsafe {
            if pmemobj_tx_begin(self.raw, null_mut(), PARAM_NONE) != 0 {
                let error = failure();
                pmemobj_tx_end();
                return Err(error);
            }
            let result = work(&mut Transaction { pool: self, of_this_thread: PhantomData });
            if result.is_ok() {
                pmemobj_tx_commit();
            } else if pmemobj_tx_stage() == WORK {
                pmemobj_tx_abort(CANCELLED);
            }
            if pmemobj_tx_end() != 0 && result.is_ok() { Err(failure()) } else { result }
        }
    }

    /// Makes bytes durable that were changed outside transactions.
    pub fn persist(&self, offset: u64, bytes: usize) {
        // SAFETY: the pool is open.
        unsafe { pmemobj_persist(self.raw, self.at(offset).cast(), bytes) };
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { pmemobj_close(self.raw) };
    }
}
