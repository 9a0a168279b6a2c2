//! SQLite: a table each, one connection behind a lock, as there is one writer at a time.

use super::{Contender, Scale, Start};
use crate::Result;
use nvlab_bench_stores::sqlite::Value::{Blob, Integer};
use nvlab_bench_stores::sqlite::{Connection, Statement};
use nvlab_bench_stores::tpcb::{ACCOUNTS, BRANCHES, Balances, History, Row, TELLERS, Transfer};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zerocopy::IntoBytes;

/// Statements of a connection; all are used under one lock.
struct Statements {
    begin: Statement,
    commit: Statement,
    add: [Statement; 3],
    append: Statement,
    connection: Connection,
}

pub struct Sqlite(Mutex<Statements>);

const TABLES: [(&str, u64); 3] = [("account", ACCOUNTS), ("teller", TELLERS), ("branch", BRANCHES)];

impl Sqlite {
    pub fn make(folder: &Path, start: Start, _: Scale) -> Result<Sqlite> {
        let connection = Connection::open(&folder.join("tpcb.sqlite"))?;
        if start == Start::Create {
            load(&connection)?;
        }
        let add = |index: usize| {
            let table = TABLES[index].0;
            connection.prepare(&format!("UPDATE {table} SET balance = balance + ?1 WHERE id = ?2"))
        };
        let append = "INSERT INTO history (id, delta, account, teller, branch, filler) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        Ok(Sqlite(Mutex::new(Statements {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            add: [add(0)?, add(1)?, add(2)?],
            append: connection.prepare(append)?,
            connection,
        })))
    }

    fn statements(&self) -> MutexGuard<'_, Statements> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(connection: &Connection) -> Result<()> {
    connection.run("BEGIN")?;
    for (table, rows) in TABLES {
        connection
            .run(&format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY, balance INTEGER, filler BLOB)"))?;
        let sql = format!("INSERT INTO {table} (id, balance, filler) VALUES (?1, 0, ?2)");
        let insert = connection.prepare(&sql)?;
        for id in 0..rows {
            insert.run(&[Integer(id as i64), Blob(&Row::NEW.filler)])?;
        }
    }
    connection.run(
        "CREATE TABLE history (id INTEGER PRIMARY KEY, delta INTEGER, account INTEGER, teller INTEGER, branch INTEGER, filler BLOB)",
    )?;
    connection.run("COMMIT")
}

impl Contender for Sqlite {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        let statements = self.statements();
        statements.begin.run(&[])?;
        for (add, id) in statements.add.iter().zip([account, teller, branch]) {
            add.run(&[Integer(delta), Integer(id as i64)])?;
        }
        // Five integers have columns of their own; the rest of a row of the history is filler.
        let history = History::new(transfer);
        let [number, account, teller, branch] =
            [number, account, teller, branch].map(|id| Integer(id as i64));
        let filler = Blob(&history.as_bytes()[40..]);
        statements.append.run(&[number, Integer(delta), account, teller, branch, filler])?;
        statements.commit.run(&[])
    }

    fn branch_balance(&self) -> Result<i64> {
        self.statements().connection.integer("SELECT balance FROM branch WHERE id = 0")
    }

    fn balances(&self) -> Result<Balances> {
        let statements = self.statements();
        let sum = |sql| statements.connection.integer(sql);
        Ok(Balances {
            accounts: sum("SELECT sum(balance) FROM account")?,
            tellers: sum("SELECT sum(balance) FROM teller")?,
            branches: sum("SELECT sum(balance) FROM branch")?,
            history: sum("SELECT coalesce(sum(delta), 0) FROM history")?,
            history_rows: sum("SELECT count(*) FROM history")? as u64,
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
