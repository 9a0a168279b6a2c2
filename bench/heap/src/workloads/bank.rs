//! TPC-B (debit-credit): a transaction changes the balances of an account, its teller and its branch, and appends a row to the
//! history. Rows of balances have 112 B, rows of the history 64 B.

use super::{Driver, Part, Several};
use crate::Result;
use nvlab_bench_stores::tpcb::{ACCOUNTS, BRANCHES, Balances, TELLERS, Table, Transfer};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const HISTORY_BYTES: usize = 64;

/// A row of the history.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HistoryRow {
    pub delta: i64,
    pub account: u64,
    pub teller: u64,
    pub branch: u64,
    /// The number of the transaction.
    pub number: u64,
    filler: [u8; 24],
}

impl HistoryRow {
    pub fn new(transfer: &Transfer) -> HistoryRow {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        HistoryRow { delta, account, teller, branch, number, filler: [b' '; 24] }
    }
}

/// The tables.
pub trait Bank: Sync {
    /// Creates the rows of accounts, tellers and branches, as [`nvlab_bench_stores::tpcb::Row::NEW`].
    fn load(&self) -> Result<()>;
    fn transfer(&self, transfer: &Transfer) -> Result<()>;
    /// Passes on every balance, in any order, as (table, number, balance); then every row of the history.
    fn each(
        &self,
        balance: &mut dyn FnMut(Table, u64, i64) -> Result<()>,
        history: &mut dyn FnMut(&HistoryRow) -> Result<()>,
    ) -> Result<()>;
    fn close(self: Box<Self>) -> Result<()>;
}

pub struct BankDriver {
    accounts: Vec<i64>,
    sum: Balances,
    /// A checksum of the transactions' numbers.
    numbers: u64,
}

/// A part's next transaction.
pub struct Next {
    number: u64,
    step: u64,
}

impl BankDriver {
    pub fn new() -> BankDriver {
        BankDriver { accounts: vec![0; ACCOUNTS as usize], sum: Balances::default(), numbers: 0 }
    }
}

impl Driver for BankDriver {
    type Store = dyn Bank;
    type Worker = Next;
    type Operation = Transfer;

    fn load(&self, store: &dyn Bank) -> Result<()> {
        store.load()
    }

    fn worker(&self, part: Part) -> Next {
        // Runs have numbers of their own: keys have 56 bits for them.
        Next { number: part.run << 40 | part.thread, step: part.threads }
    }

    fn draw(worker: &mut Next) -> Transfer {
        let transfer = Transfer::new(worker.number);
        worker.number += worker.step;
        transfer
    }

    fn apply(store: &dyn Bank, _: &mut Next, transfer: &Transfer) -> Result<()> {
        store.transfer(transfer)
    }

    fn together(_: &dyn Bank, operations: Several<'_>) -> Result<()> {
        operations()
    }

    fn replay(&mut self, part: Part, count: u64, _: &Next) -> Result<()> {
        let Next { mut number, step } = self.worker(part);
        for _ in 0..count {
            let transfer = Transfer::new(number);
            self.accounts[transfer.account as usize] += transfer.delta;
            self.sum.history += transfer.delta;
            self.sum.history_rows += 1;
            self.numbers = self.numbers.wrapping_add(super::scramble(number));
            number += step;
        }
        Ok(())
    }

    fn verify(&mut self, store: &dyn Bank) -> Result<()> {
        let (mut found, mut numbers, mut rows) = (Balances::default(), 0u64, [0; 3]);
        let accounts = &self.accounts;
        store.each(
            &mut |table, number, balance| {
                match table {
                    Table::Accounts => {
                        let wanted = accounts[number as usize];
                        if balance != wanted {
                            return Err(format!("account {number} has {balance} instead of {wanted}").into());
                        }
                        found.accounts += balance;
                    }
                    Table::Tellers => found.tellers += balance,
                    Table::Branches => found.branches += balance,
                    Table::History => return Err("a row of the history among the balances".into()),
                }
                rows[table as usize] += 1;
                Ok(())
            },
            &mut |row| {
                if row.delta != Transfer::new(row.number).delta {
                    return Err(format!("the history has a wrong row {}", row.number).into());
                }
                found.history += row.delta;
                found.history_rows += 1;
                numbers = numbers.wrapping_add(super::scramble(row.number));
                Ok(())
            },
        )?;
        found.check()?;
        if (found.history, found.history_rows, numbers)
            != (self.sum.history, self.sum.history_rows, self.numbers)
            || rows != [ACCOUNTS, TELLERS, BRANCHES]
        {
            return Err(format!("the sums are {found:?}, should be {:?}", self.sum).into());
        }
        Ok(())
    }

    fn close(store: Box<dyn Bank>) -> Result<()> {
        store.close()
    }
}
