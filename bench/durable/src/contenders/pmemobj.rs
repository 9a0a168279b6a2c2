//! libpmemobj: the tables are its root object; a transaction keeps old rows in an undo log.

use super::{Contender, Scale, Start, tables};
use crate::Result;
use crate::tpcb::{Balances, History, ROW_BYTES, Row, Table, Transfer};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zerocopy::IntoBytes;

#[repr(C)]
struct Pool(c_void);

#[repr(C)]
struct Oid {
    pool: u64,
    offset: u64,
}

/// Bytes for the undo log and the library's own data.
const EXTRA_BYTES: u64 = 64 << 20;
/// The old bytes are not needed: a row of the history is written once.
const NO_SNAPSHOT: u64 = 1 << 2;
const PARAM_NONE: c_int = 0;

unsafe extern "C" {
    fn pmemobj_create(
        path: *const c_char,
        layout: *const c_char,
        bytes: usize,
        mode: libc::mode_t,
    ) -> *mut Pool;
    fn pmemobj_open(path: *const c_char, layout: *const c_char) -> *mut Pool;
    fn pmemobj_close(pool: *mut Pool);
    fn pmemobj_root(pool: *mut Pool, bytes: usize) -> Oid;
    fn pmemobj_direct(oid: Oid) -> *mut c_void;
    fn pmemobj_persist(pool: *mut Pool, start: *const c_void, bytes: usize);
    fn pmemobj_tx_begin(pool: *mut Pool, jump: *mut c_void, ...) -> c_int;
    fn pmemobj_tx_xadd_range_direct(start: *const c_void, bytes: usize, flags: u64) -> c_int;
    fn pmemobj_tx_commit();
    fn pmemobj_tx_end() -> c_int;
    fn pmemobj_errormsg() -> *const c_char;
}

fn failure() -> Box<dyn std::error::Error + Send + Sync> {
    // SAFETY: a text, perhaps empty, of this thread.
    let text = unsafe { CStr::from_ptr(pmemobj_errormsg()) };
    format!("libpmemobj: {}", text.to_string_lossy()).into()
}

/// The root object; used under one lock.
struct Root {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: its memory is the pool's, which any thread may use.
unsafe impl Send for Root {}

pub struct Pmemobj {
    pool: *mut Pool,
    root: Mutex<Root>,
}

// SAFETY: a pool serves any thread.
unsafe impl Sync for Pmemobj {}

impl Pmemobj {
    pub fn make(folder: &Path, start: Start, scale: Scale) -> Result<Pmemobj> {
        let path = CString::new(folder.join("pool").as_os_str().as_encoded_bytes())?;
        let bytes = tables::region_bytes(scale);
        // SAFETY: texts that end with zero; the root object has as many bytes as were asked for.
        let (pool, start_of_root) = unsafe {
            let pool = match start {
                Start::Create => {
                    let with_overhead = bytes + bytes / 16 + EXTRA_BYTES;
                    pmemobj_create(path.as_ptr(), c"tpcb".as_ptr(), with_overhead as usize, 0o600)
                }
                Start::Open => pmemobj_open(path.as_ptr(), c"tpcb".as_ptr()),
            };
            if pool.is_null() {
                return Err(failure());
            }
            let root = pmemobj_root(pool, bytes as usize);
            if root.offset == 0 {
                return Err(failure());
            }
            (pool, pmemobj_direct(root).cast::<u8>())
        };
        let root = Root { start: start_of_root, bytes: bytes as usize };
        if start == Start::Create {
            let fixed = tables::offset(Table::History, 0);
            // SAFETY: the rows are within the root object, and nobody else has it yet.
            unsafe {
                let rows = std::slice::from_raw_parts_mut(root.start, fixed);
                rows.chunks_exact_mut(ROW_BYTES).for_each(|row| row.copy_from_slice(Row::NEW.as_bytes()));
                pmemobj_persist(pool, root.start.cast(), fixed);
            }
        }
        Ok(Pmemobj { pool, root: Mutex::new(root) })
    }

    fn root(&self) -> MutexGuard<'_, Root> {
        self.root.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Root {
    /// Announces a row to the transaction of this thread and returns it.
    ///
    /// # Safety
    /// A transaction is under way, and nobody else uses the row.
    unsafe fn row(&mut self, table: Table, number: u64, flags: u64) -> Result<*mut u8> {
        let offset = tables::offset(table, number);
        assert!(offset + ROW_BYTES <= self.bytes, "the root object has room");
        // SAFETY: as the caller promises; the row is within the root object.
        unsafe {
            let row = self.start.add(offset);
            match pmemobj_tx_xadd_range_direct(row.cast(), ROW_BYTES, flags) {
                0 => Ok(row),
                _ => Err(failure()),
            }
        }
    }

    /// # Safety
    /// A transaction is under way.
    unsafe fn change(&mut self, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        // SAFETY: as the caller promises; rows begin at multiples of 8 and have `ROW_BYTES`.
        unsafe {
            for (table, row) in
                [(Table::Accounts, account), (Table::Tellers, teller), (Table::Branches, branch)]
            {
                *self.row(table, row, 0)?.cast::<i64>() += delta;
            }
            let row = self.row(Table::History, number, NO_SNAPSHOT)?;
            row.copy_from_nonoverlapping(History::new(transfer).as_bytes().as_ptr(), ROW_BYTES);
        }
        Ok(())
    }
}

impl Contender for Pmemobj {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let mut root = self.root();
        // SAFETY: begin and end are paired; without a jump buffer errors are returned, and have aborted the transaction.
        unsafe {
            let begun = pmemobj_tx_begin(self.pool, null_mut(), PARAM_NONE);
            let mut changed = if begun == 0 { root.change(transfer) } else { Err(failure()) };
            if changed.is_ok() {
                pmemobj_tx_commit();
            }
            if pmemobj_tx_end() != 0 && changed.is_ok() {
                changed = Err(failure());
            }
            changed
        }
    }

    fn branch_balance(&self) -> Result<i64> {
        let root = self.root();
        // SAFETY: the row is within the root object, which is locked.
        Ok(unsafe { root.start.add(tables::offset(Table::Branches, 0)).cast::<i64>().read() })
    }

    fn balances(&self) -> Result<Balances> {
        let root = self.root();
        // SAFETY: the root object has these bytes and is locked.
        tables::balances(unsafe { std::slice::from_raw_parts(root.start, root.bytes) })
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: it is not used again.
        unsafe { pmemobj_close(self.pool) };
        Ok(())
    }
}
