//! LMDB: one tree for all tables, default flags.

use super::{Contender, Scale, Start};
use crate::Result;
use nvlab_bench_stores::lmdb::{Access, Lmdb, Transaction};
use nvlab_bench_stores::tpcb::{Balances, History, Row, Table, Transfer, key, keys};
use std::path::Path;
use zerocopy::{FromBytes, IntoBytes};

pub fn make(folder: &Path, start: Start, _: Scale) -> Result<Lmdb> {
    let lmdb = Lmdb::open(folder)?;
    if start == Start::Create {
        let mut load = lmdb.begin(Access::Write)?;
        keys().try_for_each(|key| load.put(&key, Row::NEW.as_bytes()))?;
        load.commit()?;
    }
    Ok(lmdb)
}

fn row(transaction: &Transaction<'_>, key: &[u8]) -> Result<Row> {
    let bytes = transaction.get(key)?.ok_or("the row is there")?;
    Row::read_from_bytes(bytes).map_err(|error| error.to_string().into())
}

impl Contender for Lmdb {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        let mut transaction = self.begin(Access::Write)?;
        for (table, number) in
            [(Table::Accounts, account), (Table::Tellers, teller), (Table::Branches, branch)]
        {
            let key = key(table, number);
            let mut row = row(&transaction, &key)?;
            row.balance += delta;
            transaction.put(&key, row.as_bytes())?;
        }
        transaction.put(&key(Table::History, number), History::new(transfer).as_bytes())?;
        transaction.commit()
    }

    fn branch_balance(&self) -> Result<i64> {
        Ok(row(&self.begin(Access::Read)?, &key(Table::Branches, 0))?.balance)
    }

    fn balances(&self) -> Result<Balances> {
        let mut balances = Balances::default();
        self.begin(Access::Read)?.each(&mut |key, row| balances.add_key(key, row))?;
        Ok(balances)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Lmdb::close(*self);
        Ok(())
    }
}
