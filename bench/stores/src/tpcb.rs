//! Debit-credit as in TPC-B at 100,000 accounts: rows, transactions, and what must hold of the balances after any number of
//! them. One branch, as the standard's ratio of 1 : 10 : 100,000 has it.

use crate::Result;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

pub const ACCOUNTS: u64 = 100_000;
pub const TELLERS: u64 = 10;
pub const BRANCHES: u64 = 1;
/// Bytes of every row; the standard asks for 100 at least, and 50 for one of the history.
pub const ROW_BYTES: usize = 112;

/// A row of the accounts, tellers or branches.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Row {
    pub balance: i64,
    pub filler: [u8; 104],
}

impl Row {
    pub const NEW: Row = Row { balance: 0, filler: [b' '; 104] };
}

/// A row of the history. The gaps keep its fields in four ranges for those who log what changed only: with three balances
/// that makes 80 B in 7 ranges, the Sidney program of system 001.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct History {
    pub delta: i64,
    gap_1: u64,
    pub who: [u64; 2],
    gap_2: u64,
    pub what: [u64; 2],
    gap_3: u64,
    /// Not zero in a row that was written.
    pub marks: [u64; 2],
    filler: [u64; 4],
}

impl History {
    /// Offsets and lengths of the fields that are written.
    pub const FIELDS: [(usize, usize); 4] = [(0, 8), (16, 16), (40, 16), (64, 16)];

    pub fn new(transfer: &Transfer) -> History {
        let mut row = History::new_zeroed();
        row.delta = transfer.delta;
        row.who = [transfer.account, transfer.teller];
        row.what = [transfer.branch, transfer.number];
        row.marks = [transfer.number + 1, !transfer.number];
        row
    }

    pub fn is_written(&self) -> bool {
        self.marks != [0, 0]
    }
}

/// A transaction: moves `delta` to an account, its teller and its branch, and appends a row to the history.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub number: u64,
    pub account: u64,
    pub teller: u64,
    pub branch: u64,
    pub delta: i64,
}

impl Transfer {
    /// The transaction of this number: the same for all contenders.
    pub fn new(number: u64) -> Transfer {
        // Splitmix64 (Steele, Lea, Flood, OOPSLA 2014, figure 17).
        let mut word = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        let account = ((word >> 32) * ACCOUNTS) >> 32;
        let delta = (word & 0xf_ffff) as i64 * 2_000_000 / 0x10_0000 - 1_000_000;
        Transfer { number, account, teller: ((word >> 20 & 0xfff) * TELLERS) >> 12, branch: 0, delta }
    }
}

/// Tables, in the order of their keys in stores that have one key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Table {
    Accounts,
    Tellers,
    Branches,
    History,
}

/// The key of a row in a store that has one key space: the table, then the number, big-endian.
pub fn key(table: Table, number: u64) -> [u8; 8] {
    ((table as u64) << 56 | number).to_be_bytes()
}

/// Keys of all rows but the history's, in order.
pub fn keys() -> impl Iterator<Item = [u8; 8]> {
    let tables = [(Table::Accounts, ACCOUNTS), (Table::Tellers, TELLERS), (Table::Branches, BRANCHES)];
    tables.into_iter().flat_map(|(table, rows)| (0..rows).map(move |number| key(table, number)))
}

/// Sums of what the tables hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balances {
    pub accounts: i64,
    pub tellers: i64,
    pub branches: i64,
    pub history: i64,
    pub history_rows: u64,
}

impl Balances {
    /// Adds a row.
    pub fn add(&mut self, table: Table, row: &[u8]) -> Result<()> {
        if row.len() != ROW_BYTES {
            return Err(format!("a row of {} B in {table:?}", row.len()).into());
        }
        let balance = i64::from_le_bytes(row[..8].try_into()?);
        match table {
            Table::Accounts => self.accounts += balance,
            Table::Tellers => self.tellers += balance,
            Table::Branches => self.branches += balance,
            Table::History => {
                self.history += balance;
                self.history_rows += 1;
            }
        }
        Ok(())
    }

    /// Adds a row of a store that has one key space.
    pub fn add_key(&mut self, key: &[u8], row: &[u8]) -> Result<()> {
        let table = match key.first() {
            Some(0) => Table::Accounts,
            Some(1) => Table::Tellers,
            Some(2) => Table::Branches,
            Some(3) => Table::History,
            _ => return Err(format!("the key {key:?}").into()),
        };
        self.add(table, row)
    }

    /// Checks that all sums agree.
    pub fn check(&self) -> Result<()> {
        if [self.accounts, self.tellers, self.branches] != [self.history; 3] {
            return Err(format!("the sums differ: {self:?}").into());
        }
        Ok(())
    }

    /// Checks that exactly the transactions before `count` were done.
    pub fn check_exactly(&self, count: u64) -> Result<()> {
        self.check()?;
        let sum: i64 = (0..count).map(|number| Transfer::new(number).delta).sum();
        if (self.history_rows, self.history) != (count, sum) {
            return Err(format!("{count} transactions sum to {sum}, but found: {self:?}").into());
        }
        Ok(())
    }
}
