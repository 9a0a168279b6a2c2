//! SQLite: WAL, synchronous=FULL, one connection behind a lock.

use super::{Contender, Scale, Start};
use crate::Result;
use crate::tpcb::{ACCOUNTS, BRANCHES, Balances, History, Row, TELLERS, Transfer};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use zerocopy::IntoBytes;

#[repr(C)]
struct Sqlite3(c_void);
#[repr(C)]
struct Statement(c_void);

const OK: c_int = 0;
const ROW: c_int = 100;
const DONE: c_int = 101;

unsafe extern "C" {
    fn sqlite3_open(path: *const c_char, db: *mut *mut Sqlite3) -> c_int;
    fn sqlite3_close(db: *mut Sqlite3) -> c_int;
    fn sqlite3_errmsg(db: *mut Sqlite3) -> *const c_char;
    fn sqlite3_prepare_v2(
        db: *mut Sqlite3,
        sql: *const c_char,
        bytes: c_int,
        statement: *mut *mut Statement,
        tail: *mut *const c_char,
    ) -> c_int;
    fn sqlite3_bind_int64(statement: *mut Statement, index: c_int, value: i64) -> c_int;
    fn sqlite3_bind_blob(
        statement: *mut Statement,
        index: c_int,
        data: *const c_void,
        bytes: c_int,
        destructor: *const c_void,
    ) -> c_int;
    fn sqlite3_step(statement: *mut Statement) -> c_int;
    fn sqlite3_reset(statement: *mut Statement) -> c_int;
    fn sqlite3_column_int64(statement: *mut Statement, column: c_int) -> i64;
    fn sqlite3_finalize(statement: *mut Statement) -> c_int;
}

/// A connection and its statements; all are used under one lock.
struct Connection {
    db: *mut Sqlite3,
    begin: *mut Statement,
    commit: *mut Statement,
    add: [*mut Statement; 3],
    append: *mut Statement,
}

// SAFETY: SQLite is built for use from any thread, by one at a time.
unsafe impl Send for Connection {}

pub struct Sqlite(Mutex<Connection>);

const TABLES: [(&str, u64); 3] = [("account", ACCOUNTS), ("teller", TELLERS), ("branch", BRANCHES)];

impl Sqlite {
    pub fn make(folder: &Path, start: Start, _: Scale) -> Result<Sqlite> {
        let path = CString::new(folder.join("tpcb.sqlite").as_os_str().as_encoded_bytes())?;
        let none = null_mut();
        let mut connection =
            Connection { db: null_mut(), begin: none, commit: none, add: [none; 3], append: none };
        // SAFETY: a path that ends with zero, and a place for the connection.
        let code = unsafe { sqlite3_open(path.as_ptr(), &mut connection.db) };
        connection.check(code, OK)?;
        connection.run("PRAGMA journal_mode=WAL", &[])?;
        connection.run("PRAGMA synchronous=FULL", &[])?;
        if start == Start::Create {
            connection.load()?;
        }
        connection.begin = connection.prepare("BEGIN IMMEDIATE")?;
        connection.commit = connection.prepare("COMMIT")?;
        for (index, (table, _)) in TABLES.iter().enumerate() {
            let sql = format!("UPDATE {table} SET balance = balance + ?1 WHERE id = ?2");
            connection.add[index] = connection.prepare(&sql)?;
        }
        connection.append = connection.prepare(
            "INSERT INTO history (id, delta, account, teller, branch, filler) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        Ok(Sqlite(Mutex::new(connection)))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn check(&self, code: c_int, wanted: c_int) -> Result<()> {
        if code == wanted {
            return Ok(());
        }
        // SAFETY: the connection is open or null, both of which have a message.
        let message = unsafe { CStr::from_ptr(sqlite3_errmsg(self.db)) };
        Err(format!("SQLite: {} ({code})", message.to_string_lossy()).into())
    }

    fn prepare(&self, sql: &str) -> Result<*mut Statement> {
        let (sql, mut statement) = (CString::new(sql)?, null_mut());
        // SAFETY: an open connection, and a text that ends with zero.
        let code = unsafe { sqlite3_prepare_v2(self.db, sql.as_ptr(), -1, &mut statement, null_mut()) };
        self.check(code, OK).map(|()| statement)
    }

    /// Runs a prepared statement; returns the integers of its first row.
    fn step(
        &self,
        statement: *mut Statement,
        integers: &[i64],
        blob: &[u8],
        columns: usize,
    ) -> Result<Vec<i64>> {
        let mut row = Vec::new();
        // SAFETY: a statement of this connection; the blob outlives its use, which ends with the reset.
        let code = unsafe {
            for (index, value) in integers.iter().enumerate() {
                sqlite3_bind_int64(statement, index as c_int + 1, *value);
            }
            if !blob.is_empty() {
                let index = integers.len() as c_int + 1;
                sqlite3_bind_blob(statement, index, blob.as_ptr().cast(), blob.len() as c_int, null());
            }
            let mut code = sqlite3_step(statement);
            if code == ROW {
                row.extend((0..columns).map(|column| sqlite3_column_int64(statement, column as c_int)));
                while code == ROW {
                    code = sqlite3_step(statement);
                }
            }
            code
        };
        let result = self.check(code, DONE);
        // SAFETY: as above.
        unsafe { sqlite3_reset(statement) };
        result.map(|()| row)
    }

    fn run(&self, sql: &str, integers: &[i64]) -> Result<()> {
        self.query(sql, integers, 0).map(|_| ())
    }

    fn query(&self, sql: &str, integers: &[i64], columns: usize) -> Result<Vec<i64>> {
        let statement = self.prepare(sql)?;
        let result = self.step(statement, integers, &[], columns);
        // SAFETY: a statement of this connection, not used again.
        unsafe { sqlite3_finalize(statement) };
        result
    }

    fn load(&self) -> Result<()> {
        self.run("BEGIN", &[])?;
        for (table, rows) in TABLES {
            self.run(
                &format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY, balance INTEGER, filler BLOB)"),
                &[],
            )?;
            let insert =
                self.prepare(&format!("INSERT INTO {table} (id, balance, filler) VALUES (?1, 0, ?2)"))?;
            for id in 0..rows {
                self.step(insert, &[id as i64], &Row::NEW.filler, 0)?;
            }
            // SAFETY: a statement of this connection, not used again.
            unsafe { sqlite3_finalize(insert) };
        }
        self.run(
            "CREATE TABLE history (id INTEGER PRIMARY KEY, delta INTEGER, account INTEGER, teller INTEGER, branch INTEGER, filler BLOB)",
            &[],
        )?;
        self.run("COMMIT", &[])
    }

    fn sum(&self, sql: &str) -> Result<i64> {
        self.query(sql, &[], 1)?.first().copied().ok_or_else(|| format!("no row: {sql}").into())
    }
}

impl Contender for Sqlite {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        let connection = self.connection();
        connection.step(connection.begin, &[], &[], 0)?;
        for (add, id) in connection.add.iter().zip([account, teller, branch]) {
            connection.step(*add, &[delta, id as i64], &[], 0)?;
        }
        // Five integers have columns of their own; the rest of a row of the history is filler.
        let history = History::new(transfer);
        let filler = &history.as_bytes()[40..];
        let values = [number as i64, delta, account as i64, teller as i64, branch as i64];
        connection.step(connection.append, &values, filler, 0)?;
        connection.step(connection.commit, &[], &[], 0).map(|_| ())
    }

    fn branch_balance(&self) -> Result<i64> {
        self.connection().sum("SELECT balance FROM branch WHERE id = 0")
    }

    fn balances(&self) -> Result<Balances> {
        let connection = self.connection();
        Ok(Balances {
            accounts: connection.sum("SELECT sum(balance) FROM account")?,
            tellers: connection.sum("SELECT sum(balance) FROM teller")?,
            branches: connection.sum("SELECT sum(balance) FROM branch")?,
            history: connection.sum("SELECT coalesce(sum(delta), 0) FROM history")?,
            history_rows: connection.sum("SELECT count(*) FROM history")? as u64,
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        let connection = self.connection();
        let [first, second, third] = connection.add;
        // SAFETY: statements and connection are not used again.
        let code = unsafe {
            for statement in [connection.begin, connection.commit, first, second, third, connection.append] {
                sqlite3_finalize(statement);
            }
            sqlite3_close(connection.db)
        };
        if code == OK { Ok(()) } else { Err(format!("SQLite does not close ({code})").into()) }
    }
}
