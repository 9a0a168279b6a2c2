//! Berkeley DB 5.3: a B-tree, or a hash table where a workload wants one.

use super::Sort;
use super::tables::{Access, Store, Work};
use crate::Result;
use nvlab_bench_stores::berkeley_db::{BerkeleyDb, Method, Transaction};
use std::path::Path;

const CACHE_BYTES: u32 = 512 << 20;

pub fn open(folder: &Path, sort: Sort) -> Result<Box<dyn Store>> {
    let method = if sort == Sort::Hashed { Method::Hash } else { Method::BTree };
    Ok(Box::new(BerkeleyDb::open(folder, method, CACHE_BYTES)?))
}

fn copied(bytes: Option<usize>, wanted: usize) -> Result<bool> {
    match bytes {
        Some(bytes) if bytes != wanted => Err(format!("a value of {bytes} B").into()),
        bytes => Ok(bytes.is_some()),
    }
}

impl Access for Transaction<'_> {
    fn get(&mut self, key: u64, into: &mut [u8]) -> Result<bool> {
        copied(Transaction::get(self, &key.to_be_bytes(), into, false)?, into.len())
    }

    fn get_to_change(&mut self, key: u64, into: &mut [u8]) -> Result<bool> {
        copied(Transaction::get(self, &key.to_be_bytes(), into, true)?, into.len())
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        Transaction::put(self, &key.to_be_bytes(), value)
    }

    fn delete(&mut self, key: u64) -> Result<bool> {
        Transaction::delete(self, &key.to_be_bytes())
    }
}

impl Store for BerkeleyDb {
    fn update(&self, work: Work<'_>) -> Result<()> {
        self.transact(|transaction| work(transaction))
    }

    fn view(&self, work: Work<'_>) -> Result<()> {
        self.transact_unforced(|transaction| work(transaction))
    }

    fn load(&self, rows: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<()> {
        BerkeleyDb::load(self, rows.map(|(key, row)| (key.to_be_bytes(), row)))
    }

    fn each(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        BerkeleyDb::each(self, &mut |key, row| each(u64::from_be_bytes(key.try_into()?), row))
    }

    fn close(self: Box<Self>) -> Result<()> {
        BerkeleyDb::close(*self)
    }
}
