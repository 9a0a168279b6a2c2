//! Berkeley DB 5.3: one B-tree for all tables, with locks and a log. See `berkeley_db.c`.

use super::{Contender, Scale, Start};
use crate::Result;
use crate::tpcb::{Balances, History, ROW_BYTES, Row, Table, Transfer, key, keys};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use zerocopy::{FromZeros, IntoBytes};

/// As in `berkeley_db.c`.
#[repr(C)]
struct Handles {
    env: *mut c_void,
    db: *mut c_void,
}

type Each = unsafe extern "C" fn(*mut c_void, *const c_void, usize, *const c_void, usize) -> c_int;

unsafe extern "C" {
    fn bdb_open(folder: *const c_char, bdb: *mut Handles) -> c_int;
    fn bdb_load(
        bdb: *const Handles,
        keys: *const u8,
        key_bytes: usize,
        count: usize,
        row: *const u8,
        bytes: usize,
    ) -> c_int;
    fn bdb_transfer(
        bdb: *const Handles,
        keys: *const [u8; 8],
        delta: i64,
        history: *const u8,
        bytes: usize,
    ) -> c_int;
    fn bdb_get(bdb: *const Handles, key: *const u8, key_bytes: usize, row: *mut u8, bytes: usize) -> c_int;
    fn bdb_each(bdb: *const Handles, each: Each, context: *mut c_void) -> c_int;
    fn bdb_close(bdb: *const Handles) -> c_int;
    fn bdb_error(code: c_int) -> *const c_char;
}

fn check(code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: every code has a text.
    let text = unsafe { CStr::from_ptr(bdb_error(code)) };
    Err(format!("Berkeley DB: {}", text.to_string_lossy()).into())
}

pub struct BerkeleyDb(Handles);

// SAFETY: the handles were opened with DB_THREAD.
unsafe impl Sync for BerkeleyDb {}

impl BerkeleyDb {
    pub fn make(folder: &Path, start: Start, _: Scale) -> Result<BerkeleyDb> {
        let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
        let mut bdb = BerkeleyDb(Handles { env: null_mut(), db: null_mut() });
        // SAFETY: a path that ends with zero, and a place for the handles.
        check(unsafe { bdb_open(path.as_ptr(), &mut bdb.0) })?;
        if start == Start::Create {
            let (keys, row) = (keys().flatten().collect::<Vec<u8>>(), Row::NEW);
            // SAFETY: so many keys, and a row.
            check(unsafe {
                bdb_load(&bdb.0, keys.as_ptr(), 8, keys.len() / 8, row.as_bytes().as_ptr(), ROW_BYTES)
            })?;
        }
        Ok(bdb)
    }
}

/// What [`add_row`] adds to.
#[derive(Default)]
struct Sum {
    balances: Balances,
    failed: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// # Safety
/// The context is a [`Sum`], and the slices are valid.
unsafe extern "C" fn add_row(
    context: *mut c_void,
    key: *const c_void,
    key_bytes: usize,
    row: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        let sum = &mut *context.cast::<Sum>();
        let key = std::slice::from_raw_parts(key.cast::<u8>(), key_bytes);
        let row = std::slice::from_raw_parts(row.cast::<u8>(), bytes);
        sum.failed = sum.balances.add_key(key, row).err();
        c_int::from(sum.failed.is_some())
    }
}

impl Contender for BerkeleyDb {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        let keys = [
            key(Table::Accounts, account),
            key(Table::Tellers, teller),
            key(Table::Branches, branch),
            key(Table::History, number),
        ];
        let history = History::new(transfer);
        // SAFETY: four keys, and a row.
        check(unsafe { bdb_transfer(&self.0, keys.as_ptr(), delta, history.as_bytes().as_ptr(), ROW_BYTES) })
    }

    fn branch_balance(&self) -> Result<i64> {
        let (key, mut row) = (key(Table::Branches, 0), Row::new_zeroed());
        // SAFETY: a key, and room for a row.
        check(unsafe {
            bdb_get(&self.0, key.as_ptr(), key.len(), row.as_mut_bytes().as_mut_ptr(), ROW_BYTES)
        })?;
        Ok(row.balance)
    }

    fn balances(&self) -> Result<Balances> {
        let mut sum = Sum::default();
        // SAFETY: the context is what the function expects.
        let code = unsafe { bdb_each(&self.0, add_row, (&raw mut sum).cast()) };
        match sum.failed {
            Some(error) => Err(error),
            None => check(code).map(|()| sum.balances),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: it is not used again.
        check(unsafe { bdb_close(&self.0) })
    }
}
