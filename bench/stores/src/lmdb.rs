//! LMDB: one tree, default flags.

use crate::Result;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

#[repr(C)]
struct Environment(c_void);
#[repr(C)]
struct Txn(c_void);
#[repr(C)]
struct Cursor(c_void);

#[repr(C)]
struct Value {
    bytes: usize,
    data: *const c_void,
}

const READ_ONLY: c_uint = 0x20000;
const FIRST: c_int = 0;
const NEXT: c_int = 8;
const NOT_FOUND: c_int = -30798;
/// Address space, not memory; the file has the bytes that are used.
const MAP_BYTES: usize = 4 << 30;

unsafe extern "C" {
    fn mdb_env_create(env: *mut *mut Environment) -> c_int;
    fn mdb_env_set_mapsize(env: *mut Environment, bytes: usize) -> c_int;
    fn mdb_env_open(env: *mut Environment, path: *const c_char, flags: c_uint, mode: libc::mode_t) -> c_int;
    fn mdb_env_close(env: *mut Environment);
    fn mdb_txn_begin(env: *mut Environment, parent: *mut Txn, flags: c_uint, txn: *mut *mut Txn) -> c_int;
    fn mdb_txn_commit(txn: *mut Txn) -> c_int;
    fn mdb_txn_abort(txn: *mut Txn);
    fn mdb_dbi_open(txn: *mut Txn, name: *const c_char, flags: c_uint, dbi: *mut c_uint) -> c_int;
    fn mdb_get(txn: *mut Txn, dbi: c_uint, key: *const Value, data: *mut Value) -> c_int;
    fn mdb_put(txn: *mut Txn, dbi: c_uint, key: *const Value, data: *const Value, flags: c_uint) -> c_int;
    fn mdb_del(txn: *mut Txn, dbi: c_uint, key: *const Value, data: *const Value) -> c_int;
    fn mdb_cursor_open(txn: *mut Txn, dbi: c_uint, cursor: *mut *mut Cursor) -> c_int;
    fn mdb_cursor_get(cursor: *mut Cursor, key: *mut Value, data: *mut Value, operation: c_int) -> c_int;
    fn mdb_cursor_close(cursor: *mut Cursor);
    fn mdb_strerror(code: c_int) -> *const c_char;
}

fn check(code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: every code has a text.
    let text = unsafe { CStr::from_ptr(mdb_strerror(code)) };
    Err(format!("LMDB: {}", text.to_string_lossy()).into())
}

fn is_found(code: c_int) -> Result<bool> {
    if code == NOT_FOUND { Ok(false) } else { check(code).map(|()| true) }
}

impl Value {
    fn new(bytes: &[u8]) -> Value {
        Value { bytes: bytes.len(), data: bytes.as_ptr().cast() }
    }

    const EMPTY: Value = Value { bytes: 0, data: null() };

    /// # Safety
    /// LMDB filled it in, and its transaction is under way and does not write while the slice lives.
    unsafe fn slice<'a>(&self) -> &'a [u8] {
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.bytes) }
    }
}

/// What a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

pub struct Lmdb {
    env: *mut Environment,
    dbi: c_uint,
}

// SAFETY: an environment serves any thread.
unsafe impl Send for Lmdb {}
// SAFETY: as above.
unsafe impl Sync for Lmdb {}

/// A transaction of this thread; undone unless it is committed.
pub struct Transaction<'a>(*mut Txn, &'a Lmdb);

impl Transaction<'_> {
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let mut value = Value::EMPTY;
        // SAFETY: a transaction under way, which writes only through `&mut self`.
        unsafe {
            let code = mdb_get(self.0, self.1.dbi, &Value::new(key), &mut value);
            Ok(is_found(code)?.then(|| value.slice()))
        }
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: a transaction under way.
        check(unsafe { mdb_put(self.0, self.1.dbi, &Value::new(key), &Value::new(value), 0) })
    }

    /// Whether there was one.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: a transaction under way.
        is_found(unsafe { mdb_del(self.0, self.1.dbi, &Value::new(key), null()) })
    }

    /// Calls `each` for every row in order.
    pub fn each(&self, each: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let (mut cursor, mut key, mut value) = (null_mut(), Value::EMPTY, Value::EMPTY);
        // SAFETY: a transaction that does not write meanwhile; the cursor is closed before it ends.
        unsafe {
            check(mdb_cursor_open(self.0, self.1.dbi, &mut cursor))?;
            let mut code = mdb_cursor_get(cursor, &mut key, &mut value, FIRST);
            let mut visited = Ok(());
            while code == 0 && visited.is_ok() {
                visited = each(key.slice(), value.slice());
                code = mdb_cursor_get(cursor, &mut key, &mut value, NEXT);
            }
            mdb_cursor_close(cursor);
            visited?;
            is_found(code).map(|_| ())
        }
    }

    /// Makes it durable, if it writes.
    pub fn commit(self) -> Result<()> {
        let txn = self.0;
        std::mem::forget(self);
        // SAFETY: it is not used again.
        check(unsafe { mdb_txn_commit(txn) })
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { mdb_txn_abort(self.0) };
    }
}

impl Lmdb {
    pub fn open(folder: &Path) -> Result<Lmdb> {
        let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
        let mut lmdb = Lmdb { env: null_mut(), dbi: 0 };
        // SAFETY: a path that ends with zero, and a place for the environment.
        unsafe {
            check(mdb_env_create(&mut lmdb.env))?;
            check(mdb_env_set_mapsize(lmdb.env, MAP_BYTES))?;
            check(mdb_env_open(lmdb.env, path.as_ptr(), 0, 0o600))?;
        }
        let transaction = lmdb.begin(Access::Write)?;
        let mut dbi = 0;
        // SAFETY: a transaction under way, and a place for the handle.
        check(unsafe { mdb_dbi_open(transaction.0, null(), 0, &mut dbi) })?;
        transaction.commit()?;
        lmdb.dbi = dbi;
        Ok(lmdb)
    }

    pub fn begin(&self, access: Access) -> Result<Transaction<'_>> {
        let flags = if access == Access::Read { READ_ONLY } else { 0 };
        let mut txn = null_mut();
        // SAFETY: an open environment, and a place for the transaction.
        check(unsafe { mdb_txn_begin(self.env, null_mut(), flags, &mut txn) })?;
        Ok(Transaction(txn, self))
    }

    pub fn close(self) {
        // SAFETY: no transaction is under way, as each borrows it, and it is not used again.
        unsafe { mdb_env_close(self.env) };
    }
}
