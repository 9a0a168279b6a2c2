//! Berkeley DB 5.3: one B-tree for all tables, with locks and a log.

use super::{Contender, Scale, Start};
use crate::Result;
use nvlab_bench_stores::berkeley_db::{BerkeleyDb, Method};
use nvlab_bench_stores::tpcb::{Balances, History, ROW_BYTES, Row, Table, Transfer, key, keys};
use std::path::Path;
use zerocopy::{FromZeros, IntoBytes};

const CACHE_BYTES: u32 = 128 << 20;

pub fn make(folder: &Path, start: Start, _: Scale) -> Result<BerkeleyDb> {
    let bdb = BerkeleyDb::open(folder, Method::BTree, CACHE_BYTES)?;
    if start == Start::Create {
        bdb.load(keys().map(|key| (key, Row::NEW.as_bytes().to_vec())))?;
    }
    Ok(bdb)
}

impl Contender for BerkeleyDb {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        let balances = [(Table::Accounts, account), (Table::Tellers, teller), (Table::Branches, branch)];
        self.transact(|transaction| {
            for (table, row) in balances {
                let (key, mut row) = (key(table, row), Row::new_zeroed());
                transaction.get(&key, row.as_mut_bytes(), true)?.ok_or("the row is there")?;
                row.balance += delta;
                transaction.put(&key, row.as_bytes())?;
            }
            transaction.put(&key(Table::History, number), History::new(transfer).as_bytes())
        })
    }

    fn branch_balance(&self) -> Result<i64> {
        let (key, mut row) = (key(Table::Branches, 0), Row::new_zeroed());
        let bytes = self.transact(|transaction| transaction.get(&key, row.as_mut_bytes(), false))?;
        if bytes == Some(ROW_BYTES) { Ok(row.balance) } else { Err("the branch has no row".into()) }
    }

    fn balances(&self) -> Result<Balances> {
        let mut balances = Balances::default();
        self.each(&mut |key, row| balances.add_key(key, row))?;
        Ok(balances)
    }

    fn close(self: Box<Self>) -> Result<()> {
        BerkeleyDb::close(*self)
    }
}
