//! LMDB: one tree for all tables, default flags.

use super::{Contender, Scale, Start};
use crate::Result;
use crate::tpcb::{Balances, History, Row, Table, Transfer, key, keys};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use zerocopy::{FromBytes, IntoBytes};

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

impl Value {
    fn new(bytes: &[u8]) -> Value {
        Value { bytes: bytes.len(), data: bytes.as_ptr().cast() }
    }

    const EMPTY: Value = Value { bytes: 0, data: null() };

    /// # Safety
    /// LMDB filled it in, and its transaction is under way and has not written since.
    unsafe fn slice(&self) -> &[u8] {
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.bytes) }
    }
}

pub struct Lmdb {
    env: *mut Environment,
    dbi: c_uint,
}

// SAFETY: an environment serves any thread.
unsafe impl Sync for Lmdb {}

/// A transaction of this thread; undone unless it is committed.
struct Transaction<'a>(*mut Txn, &'a Lmdb);

impl Transaction<'_> {
    fn get(&self, key: &[u8]) -> Result<Row> {
        let mut value = Value::EMPTY;
        // SAFETY: a transaction under way; the row is copied before anything is written.
        unsafe {
            check(mdb_get(self.0, self.1.dbi, &Value::new(key), &mut value))?;
            Row::read_from_bytes(value.slice()).map_err(|error| error.to_string().into())
        }
    }

    fn put(&self, key: &[u8], row: &[u8]) -> Result<()> {
        // SAFETY: a transaction under way.
        check(unsafe { mdb_put(self.0, self.1.dbi, &Value::new(key), &Value::new(row), 0) })
    }

    fn commit(self) -> Result<()> {
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
    pub fn make(folder: &Path, start: Start, _: Scale) -> Result<Lmdb> {
        let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
        let mut lmdb = Lmdb { env: null_mut(), dbi: 0 };
        // SAFETY: a path that ends with zero, and a place for the environment.
        unsafe {
            check(mdb_env_create(&mut lmdb.env))?;
            check(mdb_env_set_mapsize(lmdb.env, MAP_BYTES))?;
            check(mdb_env_open(lmdb.env, path.as_ptr(), 0, 0o600))?;
        }
        let transaction = lmdb.begin(0)?;
        let mut dbi = 0;
        // SAFETY: a transaction under way, and a place for the handle.
        check(unsafe { mdb_dbi_open(transaction.0, null(), 0, &mut dbi) })?;
        transaction.commit()?;
        lmdb.dbi = dbi;
        if start == Start::Create {
            let load = lmdb.begin(0)?;
            keys().try_for_each(|key| load.put(&key, Row::NEW.as_bytes()))?;
            load.commit()?;
        }
        Ok(lmdb)
    }

    fn begin(&self, flags: c_uint) -> Result<Transaction<'_>> {
        let mut txn = null_mut();
        // SAFETY: an open environment, and a place for the transaction.
        check(unsafe { mdb_txn_begin(self.env, null_mut(), flags, &mut txn) })?;
        Ok(Transaction(txn, self))
    }
}

impl Contender for Lmdb {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        let transaction = self.begin(0)?;
        for (table, row) in [(Table::Accounts, account), (Table::Tellers, teller), (Table::Branches, branch)]
        {
            let key = key(table, row);
            let mut row = transaction.get(&key)?;
            row.balance += delta;
            transaction.put(&key, row.as_bytes())?;
        }
        transaction.put(&key(Table::History, number), History::new(transfer).as_bytes())?;
        transaction.commit()
    }

    fn branch_balance(&self) -> Result<i64> {
        Ok(self.begin(READ_ONLY)?.get(&key(Table::Branches, 0))?.balance)
    }

    fn balances(&self) -> Result<Balances> {
        let (transaction, mut cursor) = (self.begin(READ_ONLY)?, null_mut());
        let (mut key, mut row, mut balances) = (Value::EMPTY, Value::EMPTY, Balances::default());
        // SAFETY: a transaction that only reads; the cursor is closed before it ends.
        unsafe {
            check(mdb_cursor_open(transaction.0, self.dbi, &mut cursor))?;
            let mut code = mdb_cursor_get(cursor, &mut key, &mut row, FIRST);
            let mut added = Ok(());
            while code == 0 && added.is_ok() {
                added = balances.add_key(key.slice(), row.slice());
                code = mdb_cursor_get(cursor, &mut key, &mut row, NEXT);
            }
            mdb_cursor_close(cursor);
            added?;
            if code != NOT_FOUND {
                check(code)?;
            }
        }
        Ok(balances)
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: no transaction is under way, and it is not used again.
        unsafe { mdb_env_close(self.env) };
        Ok(())
    }
}
