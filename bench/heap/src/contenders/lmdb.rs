//! LMDB, default flags.

use super::Sort;
use super::tables::{Access, Store, Work};
use crate::Result;
use nvlab_bench_stores::lmdb::{self, Lmdb, Transaction};
use std::path::Path;

pub fn open(folder: &Path, _: Sort) -> Result<Box<dyn Store>> {
    Ok(Box::new(Lmdb::open(folder)?))
}

impl Access for Transaction<'_> {
    fn get(&mut self, key: u64, into: &mut [u8]) -> Result<bool> {
        match Transaction::get(self, &key.to_be_bytes())? {
            Some(value) if value.len() != into.len() => Err(format!("a value of {} B", value.len()).into()),
            Some(value) => {
                into.copy_from_slice(value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        Transaction::put(self, &key.to_be_bytes(), value)
    }

    fn delete(&mut self, key: u64) -> Result<bool> {
        Transaction::delete(self, &key.to_be_bytes())
    }
}

impl Store for Lmdb {
    fn update(&self, work: Work<'_>) -> Result<()> {
        let mut transaction = self.begin(lmdb::Access::Write)?;
        work(&mut transaction)?;
        transaction.commit()
    }

    fn view(&self, work: Work<'_>) -> Result<()> {
        work(&mut self.begin(lmdb::Access::Read)?)
    }

    fn load(&self, rows: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<()> {
        let mut transaction = self.begin(lmdb::Access::Write)?;
        for (key, row) in rows {
            transaction.put(&key.to_be_bytes(), &row)?;
        }
        transaction.commit()
    }

    fn each(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let transaction = self.begin(lmdb::Access::Read)?;
        transaction.each(&mut |key, row| each(u64::from_be_bytes(key.try_into()?), row))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Lmdb::close(*self);
        Ok(())
    }
}
