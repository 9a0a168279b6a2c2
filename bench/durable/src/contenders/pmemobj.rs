//! libpmemobj: the tables are its root object; a transaction keeps old rows in an undo log.

use super::{Contender, Scale, Start, tables};
use crate::Result;
use nvlab_bench_stores::pmemobj::{Pool, Transaction};
use nvlab_bench_stores::tpcb::{Balances, History, ROW_BYTES, Row, Table, Transfer};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zerocopy::IntoBytes;

/// Bytes for the undo log and the library's own data.
const EXTRA_BYTES: u64 = 64 << 20;

/// The rows are used under one lock.
pub struct Pmemobj {
    pool: Mutex<Pool>,
    bytes: usize,
}

impl Pmemobj {
    pub fn make(folder: &Path, start: Start, scale: Scale) -> Result<Pmemobj> {
        let (path, bytes) = (folder.join("pool"), tables::region_bytes(scale));
        let pool = match start {
            Start::Create => Pool::create(&path, bytes + bytes / 16 + EXTRA_BYTES, bytes)?,
            Start::Open => Pool::open(&path, bytes)?,
        };
        if start == Start::Create {
            let fixed = tables::offset(Table::History, 0);
            // SAFETY: the rows are within the root object, and nobody else has it yet.
            let rows = unsafe { std::slice::from_raw_parts_mut(pool.at(pool.root()), fixed) };
            rows.chunks_exact_mut(ROW_BYTES).for_each(|row| row.copy_from_slice(Row::NEW.as_bytes()));
            pool.persist(pool.root(), fixed);
        }
        Ok(Pmemobj { pool: Mutex::new(pool), bytes: bytes as usize })
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, root: u64, transaction: &mut Transaction<'_>, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        let mut row = |table, number| -> Result<*mut u8> {
            let offset = tables::offset(table, number);
            assert!(offset + ROW_BYTES <= self.bytes, "the root object has room");
            transaction.add(root + offset as u64, ROW_BYTES)
        };
        // SAFETY: rows begin at multiples of 8 within the root object, which is locked.
        unsafe {
            *row(Table::Accounts, account)?.cast::<i64>() += delta;
            *row(Table::Tellers, teller)?.cast::<i64>() += delta;
            *row(Table::Branches, branch)?.cast::<i64>() += delta;
            // With its old bytes: what marks a row as written must be gone if the transaction is undone.
            let row = row(Table::History, number)?;
            row.copy_from_nonoverlapping(History::new(transfer).as_bytes().as_ptr(), ROW_BYTES);
        }
        Ok(())
    }
}

impl Contender for Pmemobj {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let pool = self.pool();
        pool.transact(|transaction| self.change(pool.root(), transaction, transfer))
    }

    fn branch_balance(&self) -> Result<i64> {
        let pool = self.pool();
        let offset = pool.root() + tables::offset(Table::Branches, 0) as u64;
        // SAFETY: the row is within the root object, which is locked.
        Ok(unsafe { pool.at(offset).cast::<i64>().read() })
    }

    fn balances(&self) -> Result<Balances> {
        let pool = self.pool();
        // SAFETY: the root object has these bytes and is locked.
        tables::balances(unsafe { std::slice::from_raw_parts(pool.at(pool.root()), self.bytes) })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
