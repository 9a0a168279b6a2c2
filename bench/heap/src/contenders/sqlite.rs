//! SQLite: a table with an integer key; a connection for each of the threads, as writers wait for each other anyway.

use super::Sort;
use super::tables::{Access, Store, Work};
use crate::Result;
use nvlab_bench_stores::sqlite::Value::{Blob, Integer};
use nvlab_bench_stores::sqlite::{Connection, Statement};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A connection and its statements.
struct Session {
    begin: Statement,
    begin_reading: Statement,
    commit: Statement,
    rollback: Statement,
    get: Statement,
    put: Statement,
    delete: Statement,
    each: Statement,
    connection: Connection,
}

/// Sessions that no thread uses at the moment. Reuse begins with the last, so that a thread finds its own.
struct Sqlite {
    path: PathBuf,
    idle: Mutex<Vec<Session>>,
}

pub fn open(folder: &Path, _: Sort) -> Result<Box<dyn Store>> {
    let sqlite = Sqlite { path: folder.join("data.sqlite"), idle: Mutex::default() };
    sqlite.give_back(Session::open(&sqlite.path)?);
    Ok(Box::new(sqlite))
}

/// Unsigned keys as the integers of SQLite, in the same order.
fn signed(key: u64) -> i64 {
    (key ^ 1 << 63) as i64
}

impl Session {
    fn open(path: &Path) -> Result<Session> {
        let connection = Connection::open(path)?;
        connection.run("CREATE TABLE IF NOT EXISTS data (id INTEGER PRIMARY KEY, value BLOB)")?;
        Ok(Session {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            begin_reading: connection.prepare("BEGIN")?,
            commit: connection.prepare("COMMIT")?,
            rollback: connection.prepare("ROLLBACK")?,
            get: connection.prepare("SELECT value FROM data WHERE id = ?1")?,
            put: connection.prepare("INSERT OR REPLACE INTO data (id, value) VALUES (?1, ?2)")?,
            delete: connection.prepare("DELETE FROM data WHERE id = ?1")?,
            each: connection.prepare("SELECT id, value FROM data")?,
            connection,
        })
    }

    fn transact(&mut self, is_reading: bool, work: Work<'_>) -> Result<()> {
        if is_reading { &self.begin_reading } else { &self.begin }.run(&[])?;
        match work(self) {
            Ok(()) => self.commit.run(&[]),
            Err(error) => {
                self.rollback.run(&[])?;
                Err(error)
            }
        }
    }
}

impl Access for Session {
    fn get(&mut self, key: u64, into: &mut [u8]) -> Result<bool> {
        let mut is_found = false;
        self.get.each(&[Integer(signed(key))], &mut |row| {
            let value = row.blob(0);
            if value.len() != into.len() {
                return Err(format!("a value of {} B", value.len()).into());
            }
            into.copy_from_slice(value);
            is_found = true;
            Ok(())
        })?;
        Ok(is_found)
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        self.put.run(&[Integer(signed(key)), Blob(value)])
    }

    fn delete(&mut self, key: u64) -> Result<bool> {
        self.delete.run(&[Integer(signed(key))])?;
        Ok(self.connection.changes() == 1)
    }
}

impl Sqlite {
    fn session(&self) -> Result<Session> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| Session::open(&self.path), Ok)
    }

    fn give_back(&self, session: Session) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    fn transact(&self, is_reading: bool, work: Work<'_>) -> Result<()> {
        let mut session = self.session()?;
        let result = session.transact(is_reading, work);
        self.give_back(session);
        result
    }
}

impl Store for Sqlite {
    fn update(&self, work: Work<'_>) -> Result<()> {
        self.transact(false, work)
    }

    fn view(&self, work: Work<'_>) -> Result<()> {
        self.transact(true, work)
    }

    fn load(&self, rows: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<()> {
        self.transact(false, &mut |access| {
            for (key, row) in &mut *rows {
                access.put(key, &row)?;
            }
            Ok(())
        })
    }

    fn each(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let session = self.session()?;
        session.each.each(&[], &mut |row| each(row.integer(0) as u64 ^ 1 << 63, row.blob(1)))?;
        self.give_back(session);
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
