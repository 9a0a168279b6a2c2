//! redb: a B-tree copied on write, in Rust; `Durability::Immediate`, its default.

use super::Sort;
use super::tables::{Access, Store, Work};
use crate::Result;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("data");

pub fn open(folder: &Path, _: Sort) -> Result<Box<dyn Store>> {
    let database = Database::create(folder.join("data.redb"))?;
    let transaction = database.begin_write()?;
    transaction.open_table(TABLE)?;
    transaction.commit()?;
    Ok(Box::new(database))
}

struct Writing<'a>(redb::Table<'a, u64, &'static [u8]>);
struct Reading(redb::ReadOnlyTable<u64, &'static [u8]>);

fn copied(value: Option<redb::AccessGuard<'_, &'static [u8]>>, into: &mut [u8]) -> Result<bool> {
    let Some(value) = value else { return Ok(false) };
    if value.value().len() != into.len() {
        return Err(format!("a value of {} B", value.value().len()).into());
    }
    into.copy_from_slice(value.value());
    Ok(true)
}

impl Access for Writing<'_> {
    fn get(&mut self, key: u64, into: &mut [u8]) -> Result<bool> {
        copied(self.0.get(key)?, into)
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        self.0.insert(key, value)?;
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<bool> {
        Ok(self.0.remove(key)?.is_some())
    }
}

impl Access for Reading {
    fn get(&mut self, key: u64, into: &mut [u8]) -> Result<bool> {
        copied(self.0.get(key)?, into)
    }

    fn put(&mut self, _: u64, _: &[u8]) -> Result<()> {
        Err("a transaction that only reads".into())
    }

    fn delete(&mut self, _: u64) -> Result<bool> {
        Err("a transaction that only reads".into())
    }
}

impl Store for Database {
    fn update(&self, work: Work<'_>) -> Result<()> {
        let transaction = self.begin_write()?;
        work(&mut Writing(transaction.open_table(TABLE)?))?;
        Ok(transaction.commit()?)
    }

    fn view(&self, work: Work<'_>) -> Result<()> {
        work(&mut Reading(self.begin_read()?.open_table(TABLE)?))
    }

    fn load(&self, rows: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<()> {
        self.update(&mut |access| {
            for (key, row) in &mut *rows {
                access.put(key, &row)?;
            }
            Ok(())
        })
    }

    fn each(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        for row in self.begin_read()?.open_table(TABLE)?.iter()? {
            let (key, value) = row?;
            each(key.value(), value.value())?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
