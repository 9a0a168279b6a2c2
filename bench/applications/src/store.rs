//! Updates of a Berkeley DB 5.3 store much larger than its cache, a B-tree or a hash table: each transaction reads a
//! random record, changes it and commits, which forces the log. See `store.c`.
//!
//! A record counts its updates; a table in memory (4 bytes a record) says what each transaction must find.

use crate::Result;
use nvlab_units::Rng;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

/// The cache of the run; Berkeley DB adds a quarter to a cache this small.
pub const CACHE_BYTES: u32 = 4 << 20;
/// The cache while the store is made and verified.
pub const LOAD_CACHE_BYTES: u32 = 256 << 20;

const KEY_BYTES: usize = 8;
const VALUE_BYTES: usize = 240;

/// As in `store.c`.
#[repr(C)]
struct Handles {
    env: *mut c_void,
    db: *mut c_void,
}

type Change = unsafe extern "C" fn(*mut c_void, *mut u8) -> c_int;

unsafe extern "C" {
    fn store_open(folder: *const c_char, hash: c_int, cache_bytes: u32, store: *mut Handles) -> c_int;
    fn store_put(
        store: *mut Handles,
        keys: *mut u8,
        key_bytes: usize,
        values: *mut u8,
        bytes: usize,
        count: usize,
    ) -> c_int;
    fn store_update(
        store: *mut Handles,
        key: *mut u8,
        key_bytes: usize,
        record: *mut u8,
        bytes: usize,
        change: Change,
        context: *mut c_void,
    ) -> c_int;
    fn store_get(store: *mut Handles, key: *mut u8, key_bytes: usize, record: *mut u8, bytes: usize)
    -> c_int;
    fn store_checkpoint(store: *mut Handles) -> c_int;
    fn store_close(store: *mut Handles) -> c_int;
    fn store_error(code: c_int) -> *const c_char;
}

fn check(code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: every code has a text.
    let text = unsafe { CStr::from_ptr(store_error(code)) };
    Err(format!("Berkeley DB: {}", text.to_string_lossy()).into())
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Method {
    BTree,
    Hash,
}

/// An open store, of one thread.
pub struct Store(std::cell::RefCell<Handles>);

impl Store {
    pub fn open(folder: &Path, method: Method, cache_bytes: u32) -> Result<Store> {
        let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
        let store = Store(Handles { env: null_mut(), db: null_mut() }.into());
        let hash = c_int::from(method == Method::Hash);
        // SAFETY: a path that ends with zero, and a place for the handles.
        check(unsafe { store_open(path.as_ptr(), hash, cache_bytes, &mut *store.0.borrow_mut()) })?;
        Ok(store)
    }

    fn put(&self, keys: &mut [[u8; KEY_BYTES]], values: &mut [[u8; VALUE_BYTES]]) -> Result<()> {
        assert_eq!(keys.len(), values.len());
        let (count, keys, values) = (keys.len(), keys.as_mut_ptr().cast(), values.as_mut_ptr().cast());
        // SAFETY: so many keys and values.
        check(unsafe { store_put(&mut *self.0.borrow_mut(), keys, KEY_BYTES, values, VALUE_BYTES, count) })
    }

    /// Changes a record from one count to the next, if it has the first.
    fn update(&self, record: u64, from: u32) -> Result<()> {
        let (mut key, mut value) = (key(record), [0; VALUE_BYTES]);
        let mut change = NextCount { record, from, found: true };
        let context = (&raw mut change).cast();
        // SAFETY: a key, room for a record, and the context that the function expects.
        let code = unsafe {
            let (key, value) = (key.as_mut_ptr(), value.as_mut_ptr());
            store_update(&mut *self.0.borrow_mut(), key, KEY_BYTES, value, VALUE_BYTES, next_count, context)
        };
        if !change.found {
            return Err(format!("record {record} is not that of {from} updates").into());
        }
        check(code)
    }

    fn get(&self, record: u64) -> Result<[u8; VALUE_BYTES]> {
        let (mut key, mut value) = (key(record), [0; VALUE_BYTES]);
        // SAFETY: a key, and room for a record.
        check(unsafe {
            let (key, value) = (key.as_mut_ptr(), value.as_mut_ptr());
            store_get(&mut *self.0.borrow_mut(), key, KEY_BYTES, value, VALUE_BYTES)
        })?;
        Ok(value)
    }

    fn checkpoint(&self) -> Result<()> {
        // SAFETY: the store is open.
        check(unsafe { store_checkpoint(&mut *self.0.borrow_mut()) })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        if let Err(error) = check(unsafe { store_close(self.0.get_mut()) }) {
            eprintln!("closing: {error}");
        }
    }
}

struct NextCount {
    record: u64,
    from: u32,
    found: bool,
}

/// # Safety
/// The context is a [`NextCount`], and the value a record.
unsafe extern "C" fn next_count(context: *mut c_void, bytes: *mut u8) -> c_int {
    // SAFETY: as the caller promises.
    let (change, bytes) =
        unsafe { (&mut *context.cast::<NextCount>(), &mut *bytes.cast::<[u8; VALUE_BYTES]>()) };
    change.found = *bytes == value(change.record, change.from);
    *bytes = value(change.record, change.from + 1);
    c_int::from(!change.found)
}

/// The key of a record: numbers in an order without meaning, as hashes or names are.
fn key(record: u64) -> [u8; KEY_BYTES] {
    // An odd factor: one to one.
    record.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// A record after so many updates.
fn value(record: u64, count: u32) -> [u8; VALUE_BYTES] {
    let mut value = [count as u8; VALUE_BYTES];
    value[..8].copy_from_slice(&record.to_be_bytes());
    value[8..12].copy_from_slice(&count.to_be_bytes());
    value
}

pub struct Updates {
    records: u64,
    transactions: u64,
    seed: u64,
}

impl Updates {
    /// About 128 MiB, 1/128 of the talk's 16 GB.
    pub const RECORDED: Updates = Updates { records: 350_000, transactions: 2_000, seed: 16 };

    pub fn load(&self, store: &Store) -> Result<String> {
        // A tree is filled in the order of its keys, and its pages are full.
        let mut records: Vec<u64> = (0..self.records).collect();
        records.sort_by_key(|&record| key(record));
        for some in records.chunks(1000) {
            let mut keys: Vec<_> = some.iter().map(|&record| key(record)).collect();
            let mut values: Vec<_> = some.iter().map(|&record| value(record, 0)).collect();
            store.put(&mut keys, &mut values)?;
        }
        store.checkpoint()?;
        Ok(format!("{} records of {} bytes", self.records, KEY_BYTES + VALUE_BYTES))
    }

    pub fn run(&self, store: &Store) -> Result<String> {
        let mut counts = vec![0; self.records as usize];
        for record in self.chosen() {
            let count = &mut counts[record as usize];
            store.update(record, *count)?;
            *count += 1;
        }
        Ok(format!("{} transactions", self.transactions))
    }

    /// Every record has the updates that the run made.
    pub fn verify(&self, store: &Store) -> Result<String> {
        let mut counts = vec![0; self.records as usize];
        self.chosen().for_each(|record| counts[record as usize] += 1);
        for (record, &count) in (0..).zip(&counts) {
            if store.get(record)? != value(record, count) {
                return Err(format!("record {record} is not that of {count} updates").into());
            }
        }
        Ok(format!("all {} records are right", self.records))
    }

    fn chosen(&self) -> impl Iterator<Item = u64> {
        let (mut rng, records) = (Rng::new(self.seed), self.records);
        (0..self.transactions).map(move |_| rng.below(records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Updates = Updates { records: 500, transactions: 300, seed: 2 };

    #[test]
    fn updates_survive_and_a_lost_one_is_noticed() {
        for method in [Method::BTree, Method::Hash] {
            let folder = tempfile::tempdir_in(".").unwrap();
            let open = || Store::open(folder.path(), method, CACHE_BYTES).unwrap();
            SMALL.load(&open()).unwrap();
            assert!(SMALL.verify(&open()).is_err(), "nothing was updated");
            SMALL.run(&open()).unwrap();
            SMALL.verify(&open()).unwrap();
            assert!(SMALL.run(&open()).is_err(), "records are no longer those of the beginning");
        }
    }
}
