//! Berkeley DB 5.3: one table, a B-tree or a hash table, with locks and a log. See `berkeley_db.c`.

use crate::{Error, Result};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

/// As in `berkeley_db.c`.
#[repr(C)]
struct Handles {
    env: *mut c_void,
    db: *mut c_void,
}

type Txn = *mut c_void;
type Each = unsafe extern "C" fn(*mut c_void, *const c_void, usize, *const c_void, usize) -> c_int;

unsafe extern "C" {
    fn bdb_open(folder: *const c_char, hash: c_int, cache_bytes: u32, bdb: *mut Handles) -> c_int;
    fn bdb_begin(bdb: *const Handles, txn: *mut Txn) -> c_int;
    fn bdb_commit(bdb: *const Handles, txn: Txn, durable: c_int) -> c_int;
    fn bdb_abort(txn: Txn) -> c_int;
    fn bdb_get(
        bdb: *const Handles,
        txn: Txn,
        key: *const u8,
        key_bytes: usize,
        data: *mut u8,
        room: usize,
        bytes: *mut usize,
        change: c_int,
    ) -> c_int;
    fn bdb_put(
        bdb: *const Handles,
        txn: Txn,
        key: *const u8,
        key_bytes: usize,
        data: *const u8,
        bytes: usize,
    ) -> c_int;
    fn bdb_delete(bdb: *const Handles, txn: Txn, key: *const u8, key_bytes: usize) -> c_int;
    fn bdb_is_deadlock(code: c_int) -> c_int;
    fn bdb_checkpoint(bdb: *const Handles) -> c_int;
    fn bdb_each(bdb: *const Handles, each: Each, context: *mut c_void) -> c_int;
    fn bdb_close(bdb: *const Handles) -> c_int;
    fn bdb_error(code: c_int) -> *const c_char;
}

/// A transaction was chosen to end a deadlock.
#[derive(Debug)]
struct Deadlock;

impl std::fmt::Display for Deadlock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Berkeley DB: deadlock")
    }
}

impl std::error::Error for Deadlock {}

fn check(code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: every code has a text.
    let (is_deadlock, text) = unsafe { (bdb_is_deadlock(code) != 0, CStr::from_ptr(bdb_error(code))) };
    if is_deadlock {
        return Err(Box::new(Deadlock));
    }
    Err(format!("Berkeley DB: {}", text.to_string_lossy()).into())
}

/// 1: there is no such key.
fn is_found(code: c_int) -> Result<bool> {
    if code == 1 { Ok(false) } else { check(code).map(|()| true) }
}

/// How the table is organised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    BTree,
    Hash,
}

pub struct BerkeleyDb(Handles);

// SAFETY: the handles were opened with DB_THREAD.
unsafe impl Send for BerkeleyDb {}
// SAFETY: as above.
unsafe impl Sync for BerkeleyDb {}

/// A transaction of this thread; undone unless it is committed.
pub struct Transaction<'a>(Txn, &'a BerkeleyDb);

impl Transaction<'_> {
    /// Copies a value and returns its bytes; `None`: there is none. `change`: it will be changed.
    pub fn get(&mut self, key: &[u8], into: &mut [u8], change: bool) -> Result<Option<usize>> {
        let mut bytes = 0;
        // SAFETY: a transaction under way, a key and room for a value.
        let code = unsafe {
            let (data, room) = (into.as_mut_ptr(), into.len());
            bdb_get(&self.1.0, self.0, key.as_ptr(), key.len(), data, room, &mut bytes, c_int::from(change))
        };
        Ok(is_found(code)?.then_some(bytes))
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: a transaction under way, a key and a value.
        check(unsafe { bdb_put(&self.1.0, self.0, key.as_ptr(), key.len(), value.as_ptr(), value.len()) })
    }

    /// Whether there was one.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: a transaction under way, and a key.
        is_found(unsafe { bdb_delete(&self.1.0, self.0, key.as_ptr(), key.len()) })
    }

    fn commit(self, durable: bool) -> Result<()> {
        let (txn, bdb) = (self.0, self.1);
        std::mem::forget(self);
        // SAFETY: it is not used again.
        check(unsafe { bdb_commit(&bdb.0, txn, c_int::from(durable)) })
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { bdb_abort(self.0) };
    }
}

impl BerkeleyDb {
    pub fn open(folder: &Path, method: Method, cache_bytes: u32) -> Result<BerkeleyDb> {
        let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
        let mut bdb = BerkeleyDb(Handles { env: null_mut(), db: null_mut() });
        let hash = c_int::from(method == Method::Hash);
        // SAFETY: a path that ends with zero, and a place for the handles.
        check(unsafe { bdb_open(path.as_ptr(), hash, cache_bytes, &mut bdb.0) })?;
        Ok(bdb)
    }

    /// Does a transaction, again whenever it was chosen to end a deadlock. It is durable when this returns.
    pub fn transact<R>(&self, work: impl FnMut(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        self.retried(work, true)
    }

    /// The same; it may be lost until another is durable.
    pub fn transact_unforced<R>(&self, work: impl FnMut(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        self.retried(work, false)
    }

    fn retried<R>(
        &self,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<R>,
        durable: bool,
    ) -> Result<R> {
        loop {
            let mut txn = null_mut();
            // SAFETY: an open environment, and a place for the transaction.
            check(unsafe { bdb_begin(&self.0, &mut txn) })?;
            let mut transaction = Transaction(txn, self);
            match work(&mut transaction) {
                Ok(result) => return transaction.commit(durable).map(|()| result),
                Err(error) if error.is::<Deadlock>() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts rows in transactions of a thousand.
    pub fn load(&self, rows: impl Iterator<Item = ([u8; 8], Vec<u8>)>) -> Result<()> {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let some: Vec<_> = rows.by_ref().take(1000).collect();
            self.transact_unforced(|transaction| {
                some.iter().try_for_each(|(key, row)| transaction.put(key, row))
            })?;
        }
        // SAFETY: the environment is open.
        check(unsafe { bdb_checkpoint(&self.0) })
    }

    /// Calls `each` for every row.
    pub fn each(&self, each: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut visit = Visit { each, failed: None };
        // SAFETY: the context is what the function expects.
        let code = unsafe { bdb_each(&self.0, visit_row, (&raw mut visit).cast()) };
        match visit.failed {
            Some(error) => Err(error),
            None => check(code),
        }
    }

    pub fn close(self) -> Result<()> {
        // SAFETY: it is not used again.
        check(unsafe { bdb_close(&self.0) })
    }
}

/// The context of [`visit_row`].
struct Visit<'a> {
    each: &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>,
    failed: Option<Error>,
}

/// # Safety
/// The context is a [`Visit`], and the slices are valid.
unsafe extern "C" fn visit_row(
    context: *mut c_void,
    key: *const c_void,
    key_bytes: usize,
    row: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        let visit = &mut *context.cast::<Visit<'_>>();
        let key = std::slice::from_raw_parts(key.cast::<u8>(), key_bytes);
        let row = std::slice::from_raw_parts(row.cast::<u8>(), bytes);
        visit.failed = (visit.each)(key, row).err();
        c_int::from(visit.failed.is_some())
    }
}
