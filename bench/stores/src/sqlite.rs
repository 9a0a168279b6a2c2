//! SQLite: connections with a write-ahead log (`synchronous=FULL`: it is synced at every commit) and prepared statements.

use crate::Result;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

#[repr(C)]
struct Sqlite3(c_void);
#[repr(C)]
struct Stmt(c_void);

const OK: c_int = 0;
const ROW: c_int = 100;
const DONE: c_int = 101;
/// How long a writer waits for another.
const BUSY_MS: c_int = 60_000;

unsafe extern "C" {
    fn sqlite3_open(path: *const c_char, db: *mut *mut Sqlite3) -> c_int;
    fn sqlite3_close_v2(db: *mut Sqlite3) -> c_int;
    fn sqlite3_busy_timeout(db: *mut Sqlite3, milliseconds: c_int) -> c_int;
    fn sqlite3_errmsg(db: *mut Sqlite3) -> *const c_char;
    fn sqlite3_prepare_v2(
        db: *mut Sqlite3,
        sql: *const c_char,
        bytes: c_int,
        statement: *mut *mut Stmt,
        tail: *mut *const c_char,
    ) -> c_int;
    fn sqlite3_bind_int64(statement: *mut Stmt, index: c_int, value: i64) -> c_int;
    fn sqlite3_bind_blob(
        statement: *mut Stmt,
        index: c_int,
        data: *const c_void,
        bytes: c_int,
        destructor: *const c_void,
    ) -> c_int;
    fn sqlite3_step(statement: *mut Stmt) -> c_int;
    fn sqlite3_reset(statement: *mut Stmt) -> c_int;
    fn sqlite3_column_int64(statement: *mut Stmt, column: c_int) -> i64;
    fn sqlite3_column_blob(statement: *mut Stmt, column: c_int) -> *const c_void;
    fn sqlite3_column_bytes(statement: *mut Stmt, column: c_int) -> c_int;
    fn sqlite3_changes(db: *mut Sqlite3) -> c_int;
    fn sqlite3_finalize(statement: *mut Stmt) -> c_int;
}

fn check(db: *mut Sqlite3, code: c_int, wanted: c_int) -> Result<()> {
    if code == wanted {
        return Ok(());
    }
    // SAFETY: the connection is open or null, both of which have a message.
    let message = unsafe { CStr::from_ptr(sqlite3_errmsg(db)) };
    Err(format!("SQLite: {} ({code})", message.to_string_lossy()).into())
}

/// A connection, for one thread at a time. It outlives its statements: the library closes it after the last of them.
pub struct Connection(*mut Sqlite3);

// SAFETY: SQLite is built for use from any thread, by one at a time.
unsafe impl Send for Connection {}

/// A prepared statement, of the thread that has its connection.
pub struct Statement {
    raw: *mut Stmt,
    db: *mut Sqlite3,
}

// SAFETY: as for the connection, beside which it is kept.
unsafe impl Send for Statement {}

/// What is bound to a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Integer(i64),
    Blob(&'a [u8]),
}

/// A row of a result, valid until the next.
pub struct Row<'a>(&'a Statement);

impl Row<'_> {
    pub fn integer(&self, column: usize) -> i64 {
        // SAFETY: the statement has a row; a column that is not there is NULL, which is 0.
        unsafe { sqlite3_column_int64(self.0.raw, column as c_int) }
    }

    pub fn blob(&self, column: usize) -> &[u8] {
        // SAFETY: the statement has a row, which stays until the statement is stepped again; no bytes have no address.
        unsafe {
            let start = sqlite3_column_blob(self.0.raw, column as c_int);
            let bytes = sqlite3_column_bytes(self.0.raw, column as c_int);
            if start.is_null() { &[] } else { std::slice::from_raw_parts(start.cast(), bytes as usize) }
        }
    }
}

impl Connection {
    /// Opens or creates a database file.
    pub fn open(path: &Path) -> Result<Connection> {
        let path = CString::new(path.as_os_str().as_encoded_bytes())?;
        let mut connection = Connection(null_mut());
        // SAFETY: a path that ends with zero, and a place for the connection.
        let code = unsafe { sqlite3_open(path.as_ptr(), &mut connection.0) };
        check(connection.0, code, OK)?;
        // SAFETY: an open connection.
        unsafe { sqlite3_busy_timeout(connection.0, BUSY_MS) };
        connection.prepare("PRAGMA journal_mode=WAL")?.each(&[], &mut |_| Ok(()))?;
        connection.run("PRAGMA synchronous=FULL")?;
        Ok(connection)
    }

    pub fn prepare(&self, sql: &str) -> Result<Statement> {
        let sql = CString::new(sql)?;
        let mut statement = Statement { raw: null_mut(), db: self.0 };
        // SAFETY: an open connection, and a text that ends with zero.
        let code = unsafe { sqlite3_prepare_v2(self.0, sql.as_ptr(), -1, &mut statement.raw, null_mut()) };
        check(self.0, code, OK).map(|()| statement)
    }

    /// Runs a statement once.
    pub fn run(&self, sql: &str) -> Result<()> {
        self.prepare(sql)?.run(&[])
    }

    /// The integer in the first column of the only row.
    pub fn integer(&self, sql: &str) -> Result<i64> {
        let mut found = None;
        self.prepare(sql)?.each(&[], &mut |row| {
            found = Some(row.integer(0));
            Ok(())
        })?;
        found.ok_or_else(|| format!("no row: {sql}").into())
    }

    /// Rows that the last statement changed.
    pub fn changes(&self) -> u64 {
        // SAFETY: an open connection.
        unsafe { sqlite3_changes(self.0) as u64 }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { sqlite3_close_v2(self.0) };
    }
}

impl Statement {
    pub fn run(&self, values: &[Value<'_>]) -> Result<()> {
        self.each(values, &mut |_| Ok(()))
    }

    /// Runs it and calls `each` for every row of its result.
    pub fn each(&self, values: &[Value<'_>], each: &mut dyn FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        let mut visited = Ok(());
        // SAFETY: a statement that is not finalised; blobs outlive its use, which ends with the reset.
        unsafe {
            for (index, value) in (1..).zip(values) {
                match value {
                    Value::Integer(value) => sqlite3_bind_int64(self.raw, index, *value),
                    Value::Blob(bytes) => sqlite3_bind_blob(
                        self.raw,
                        index,
                        bytes.as_ptr().cast(),
                        bytes.len() as c_int,
                        null(),
                    ),
                };
            }
            let mut code = sqlite3_step(self.raw);
            while code == ROW && visited.is_ok() {
                visited = each(&Row(self));
                code = sqlite3_step(self.raw);
            }
            let result = visited.and_then(|()| check(self.db, code, DONE));
            sqlite3_reset(self.raw);
            result
        }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { sqlite3_finalize(self.raw) };
    }
}
