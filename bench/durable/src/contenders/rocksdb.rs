//! RocksDB: one key space, sync=true. Balances are changed by a merge operator that adds: a transaction that read them under a
//! lock would hold the lock over the sync, and no two could share one.

use super::{Contender, Scale, Start};
use crate::Result;
use nvlab_bench_stores::tpcb::{Balances, History, ROW_BYTES, Row, Table, Transfer, key, keys};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::null_mut;
use zerocopy::{FromBytes, IntoBytes};

/// Any of the library's objects.
type Object = *mut c_void;
type Merge = extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
type PartialMerge = extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

unsafe extern "C" {
    fn rocksdb_options_create() -> Object;
    fn rocksdb_options_set_create_if_missing(options: Object, value: c_uchar);
    fn rocksdb_options_set_merge_operator(options: Object, operator: Object);
    fn rocksdb_mergeoperator_create(
        state: *mut c_void,
        destructor: extern "C" fn(*mut c_void),
        full: Merge,
        partial: PartialMerge,
        delete: Option<extern "C" fn(*mut c_void, *const c_char, usize)>,
        name: extern "C" fn(*mut c_void) -> *const c_char,
    ) -> Object;
    fn rocksdb_open(options: Object, path: *const c_char, error: *mut *mut c_char) -> Object;
    fn rocksdb_close(db: Object);
    fn rocksdb_writeoptions_create() -> Object;
    fn rocksdb_writeoptions_set_sync(options: Object, value: c_uchar);
    fn rocksdb_readoptions_create() -> Object;
    fn rocksdb_writebatch_create() -> Object;
    fn rocksdb_writebatch_destroy(batch: Object);
    fn rocksdb_writebatch_put(
        batch: Object,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        bytes: usize,
    );
    fn rocksdb_writebatch_merge(
        batch: Object,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        bytes: usize,
    );
    fn rocksdb_write(db: Object, options: Object, batch: Object, error: *mut *mut c_char);
    fn rocksdb_get(
        db: Object,
        options: Object,
        key: *const u8,
        key_bytes: usize,
        bytes: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut u8;
    fn rocksdb_create_iterator(db: Object, options: Object) -> Object;
    fn rocksdb_iter_destroy(iterator: Object);
    fn rocksdb_iter_seek_to_first(iterator: Object);
    fn rocksdb_iter_valid(iterator: Object) -> c_uchar;
    fn rocksdb_iter_next(iterator: Object);
    fn rocksdb_iter_key(iterator: Object, bytes: *mut usize) -> *const u8;
    fn rocksdb_iter_value(iterator: Object, bytes: *mut usize) -> *const u8;
    fn rocksdb_iter_get_error(iterator: Object, error: *mut *mut c_char);
}

/// Adds the sums of operands to the balance at the beginning of `value`, and returns a copy that RocksDB frees.
///
/// # Safety
/// The operands are as RocksDB passes them.
unsafe fn merged(
    value: &[u8],
    operands: *const *const c_char,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    bytes: *mut usize,
) -> *mut c_char {
    // SAFETY: as the caller promises; the copy has room for the value, which begins with 8 B of balance.
    unsafe {
        let mut sum = i64::from_le_bytes(value[..8].try_into().expect("8 bytes"));
        for index in 0..count as usize {
            if *lengths.add(index) != 8 {
                (*success, *bytes) = (0, 0);
                return null_mut();
            }
            sum += (*operands.add(index)).cast::<i64>().read_unaligned();
        }
        let copy = libc::malloc(value.len()).cast::<u8>();
        copy.copy_from_nonoverlapping(value.as_ptr(), value.len());
        copy.copy_from_nonoverlapping(sum.to_le_bytes().as_ptr(), 8);
        (*success, *bytes) = (1, value.len());
        copy.cast()
    }
}

extern "C" fn full_merge(
    _: *mut c_void,
    _: *const c_char,
    _: usize,
    existing: *const c_char,
    existing_bytes: usize,
    operands: *const *const c_char,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    bytes: *mut usize,
) -> *mut c_char {
    // SAFETY: the arguments are RocksDB's.
    unsafe {
        if existing.is_null() || existing_bytes != ROW_BYTES {
            (*success, *bytes) = (0, 0);
            return null_mut();
        }
        let value = std::slice::from_raw_parts(existing.cast(), existing_bytes);
        merged(value, operands, lengths, count, success, bytes)
    }
}

extern "C" fn partial_merge(
    _: *mut c_void,
    _: *const c_char,
    _: usize,
    operands: *const *const c_char,
    lengths: *const usize,
    count: c_int,
    success: *mut c_uchar,
    bytes: *mut usize,
) -> *mut c_char {
    // SAFETY: the arguments are RocksDB's.
    unsafe { merged(&[0; 8], operands, lengths, count, success, bytes) }
}

extern "C" fn nothing(_: *mut c_void) {}

extern "C" fn name(_: *mut c_void) -> *const c_char {
    c"add-to-balance".as_ptr()
}

pub struct RocksDb {
    db: Object,
    write_options: Object,
    read_options: Object,
}

// SAFETY: a database serves any thread.
unsafe impl Sync for RocksDb {}

/// A transaction: its changes become visible and durable together.
struct Batch(Object);

impl Batch {
    fn new() -> Batch {
        // SAFETY: no condition.
        Batch(unsafe { rocksdb_writebatch_create() })
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        // SAFETY: both are copied.
        unsafe { rocksdb_writebatch_put(self.0, key.as_ptr(), key.len(), value.as_ptr(), value.len()) };
    }

    fn add(&self, key: &[u8], delta: i64) {
        let value = delta.to_le_bytes();
        // SAFETY: both are copied.
        unsafe { rocksdb_writebatch_merge(self.0, key.as_ptr(), key.len(), value.as_ptr(), value.len()) };
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { rocksdb_writebatch_destroy(self.0) };
    }
}

/// Calls with a place for an error, and checks it.
fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    let mut error = null_mut();
    let value = call(&mut error);
    if error.is_null() {
        return Ok(value);
    }
    // SAFETY: RocksDB returned a text from malloc.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        libc::free(error.cast());
        text
    };
    Err(format!("RocksDB: {text}").into())
}

impl RocksDb {
    pub fn make(folder: &Path, start: Start, _: Scale) -> Result<RocksDb> {
        let path = CString::new(folder.join("rocksdb").as_os_str().as_encoded_bytes())?;
        // SAFETY: options are created before they are used and live as long as the program.
        let rocks = unsafe {
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, u8::from(start == Start::Create));
            let operator =
                rocksdb_mergeoperator_create(null_mut(), nothing, full_merge, partial_merge, None, name);
            rocksdb_options_set_merge_operator(options, operator);
            let write_options = rocksdb_writeoptions_create();
            rocksdb_writeoptions_set_sync(write_options, 1);
            RocksDb {
                db: checked(|error| rocksdb_open(options, path.as_ptr(), error))?,
                write_options,
                read_options: rocksdb_readoptions_create(),
            }
        };
        if start == Start::Create {
            let batch = Batch::new();
            keys().for_each(|key| batch.put(&key, Row::NEW.as_bytes()));
            rocks.write(&batch)?;
        }
        Ok(rocks)
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        // SAFETY: an open database.
        checked(|error| unsafe { rocksdb_write(self.db, self.write_options, batch.0, error) })
    }
}

impl Contender for RocksDb {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        let batch = Batch::new();
        batch.add(&key(Table::Accounts, account), delta);
        batch.add(&key(Table::Tellers, teller), delta);
        batch.add(&key(Table::Branches, branch), delta);
        batch.put(&key(Table::History, number), History::new(transfer).as_bytes());
        self.write(&batch)
    }

    fn branch_balance(&self) -> Result<i64> {
        let (key, mut bytes) = (key(Table::Branches, 0), 0);
        // SAFETY: an open database; what it returns is from malloc, of the length it says, and freed once.
        unsafe {
            let value = checked(|error| {
                rocksdb_get(self.db, self.read_options, key.as_ptr(), key.len(), &mut bytes, error)
            })?;
            if value.is_null() {
                return Err("RocksDB: no branch".into());
            }
            let row = Row::read_from_bytes(std::slice::from_raw_parts(value, bytes));
            libc::free(value.cast());
            row.map(|row| row.balance).map_err(|_| format!("RocksDB: a row of {bytes} B").into())
        }
    }

    fn balances(&self) -> Result<Balances> {
        let mut balances = Balances::default();
        // SAFETY: an open database; keys and values are used before the iterator moves.
        unsafe {
            let iterator = rocksdb_create_iterator(self.db, self.read_options);
            rocksdb_iter_seek_to_first(iterator);
            let mut added = Ok(());
            while rocksdb_iter_valid(iterator) != 0 && added.is_ok() {
                let (mut key_bytes, mut bytes) = (0, 0);
                let key = rocksdb_iter_key(iterator, &mut key_bytes);
                let value = rocksdb_iter_value(iterator, &mut bytes);
                let key = std::slice::from_raw_parts(key, key_bytes);
                added = balances.add_key(key, std::slice::from_raw_parts(value, bytes));
                rocksdb_iter_next(iterator);
            }
            let read = checked(|error| rocksdb_iter_get_error(iterator, error));
            rocksdb_iter_destroy(iterator);
            added.and(read)?;
        }
        Ok(balances)
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: it is not used again.
        unsafe { rocksdb_close(self.db) };
        Ok(())
    }
}
