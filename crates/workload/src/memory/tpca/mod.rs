//! TPC-A as a program on a memory: the driver of eNVy (Wu and Zwaenepoel, ASPLOS VI, 1994, section 5.2).
//!
//! A transaction changes the balances of an account, of its teller and of its branch. It finds each record
//! through an index tree and changes one word of it in place. Only storage accesses are modelled; the processor
//! takes no time between them, as in the paper, whose figures are input and output rates.
//!
//! Sizes are the paper's (figure 12): 10 tellers and 100,000 accounts per branch, 155 branches, records of
//! 100 B, nodes of 32 entries (256 B, one page), so trees of 2, 3 and 5 levels and 500,002 nodes.
//!
//! What the paper leaves open, and what is done here:
//!
//! 1. *Loads per transaction.* The paper does not state them; 40 % of its time at 30,000 transactions per second are
//!    83 loads of 160 ns. A node is searched by bisection: 5 keys and a pointer, 60 loads on 10 levels. A leaf's key
//!    is compared once more. A program that loads only the balance it changes ([`RecordReads::Balance`]) makes 66
//!    loads, a database that reads the record (13 words of 8 B) 102; 3 stores either way. The paper's figure is
//!    between the two. The first is the default: a transaction consists of "changing the balance".
//! 2. *Placement of branches and tellers.* Packed, as all records are, they share 667 pages; with a page each
//!    (`spread-hot`) they take 1,705, and more of them have left a write buffer before they are written again. The
//!    paper reports 10,376 flushes a second at 10,000 transactions: packed they need a buffer that is flushed from
//!    16,384 pages on (1.038 a transaction), with a page each one of 40,960 pages (1.036). The paper names neither the
//!    threshold nor padding of records, so they are packed.
//! 3. *Choice of teller and branch.* An account is drawn uniformly and its own teller and branch are changed with it,
//!    as in the paper. TPC-A itself draws the teller, and the account from the teller's branch in 85 % of the cases:
//!    [`TpcaConfig::home`].
//! 4. *History.* TPC-A adds a record of 50 B to a history; the paper changes three records and has none. Here it is
//!    an option: 13 stores to a ring.

mod describe;
mod layout;
mod spec;

pub use describe::TransactionCounts;
pub use layout::{Records, Tree};
pub use spec::KIND;

use super::{Access, MemoryWorkload};
use crate::arrivals::{Arrivals, Limits, Pace};
use crate::{Pacing, Span, Time, Workload};
use layout::WORD_BYTES;
use nvlab_units::Rng;
use std::ops::Range;

/// Tellers of a branch (TPC-A clause 4.2).
pub(crate) const TELLERS_PER_BRANCH: u64 = 10;
/// The offset of a record's balance: after its key.
const BALANCE_AT: u64 = 4;
/// A record of the history, its 50 B rounded up to words.
const HISTORY_BYTES: u64 = 52;
/// Rows of the history ring per branch: an assumption; TPC-A keeps 90 days, which no memory of the time could hold.
const HISTORY_ROWS_PER_BRANCH: u64 = 4096;
/// Bytes per bus access when a whole record is read.
const BUS_BYTES: u64 = 8;

/// How much of a record is read before its balance is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordReads {
    /// Only the balance, one word.
    Balance,
    /// The whole record, in accesses of 8 B.
    Whole,
}

/// A TPC-A database and how it is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TpcaConfig {
    /// Branches, with 10 tellers for each; 0: as many as the memory holds.
    pub branches: u32,
    /// 100,000 in the standard (TPC-A clause 4.2).
    pub accounts_per_branch: u32,
    /// Size of an account, teller or branch record: a multiple of 4, at least 8.
    pub record_bytes: u32,
    /// Entries of an index node: a power of two.
    pub fanout: u32,
    /// The page size of the memory: regions and spread records are aligned to it.
    pub page_bytes: u32,
    /// Each branch and teller has its own page.
    pub spread_hot: bool,
    /// What is read of each record before it is changed.
    pub record_reads: RecordReads,
    /// Share of transactions whose account belongs to the teller's branch; `None`: the account is drawn
    /// uniformly and its own teller and branch are changed.
    pub home: Option<f64>,
    /// Whether each transaction appends a history record.
    pub history: bool,
    /// A rate or a depth, of transactions.
    pub pace: Pace,
    /// When it ends; bytes do not count.
    pub limits: Limits,
}

impl Default for TpcaConfig {
    /// The paper's database, one transaction after the other, without an end.
    fn default() -> TpcaConfig {
        TpcaConfig {
            branches: 155,
            accounts_per_branch: 100_000,
            record_bytes: 100,
            fanout: 32,
            page_bytes: 256,
            spread_hot: false,
            record_reads: RecordReads::Balance,
            home: None,
            history: false,
            pace: Pace::Closed { depth: 1 },
            limits: Limits::default(),
        }
    }
}

/// The loads and stores of TPC-A's transactions on a database in memory.
#[derive(Clone, Debug)]
pub struct Tpca {
    config: TpcaConfig,
    branches: Records,
    tellers: Records,
    accounts: Records,
    history: Records,
    branch_tree: Tree,
    teller_tree: Tree,
    account_tree: Tree,
    footprint_bytes: u64,
    arrivals: Arrivals,
    choices: Rng,
    history_row: u64,
    remaining: u64,
}

impl Tpca {
    /// The generator of `config`. Panics on a configuration that [`TpcaConfig::check`] refuses, and on one that leaves
    /// the number of branches to the memory, which only [`TpcaConfig::open`] knows.
    pub fn new(config: &TpcaConfig, seed: u64) -> Tpca {
        if let Err(reason) = config.check() {
            panic!("{reason}: {config:?}");
        }
        let page = config.page_bytes as u64;
        let record = config.record_bytes as u64;
        let hot_stride = if config.spread_hot { record.next_multiple_of(page) } else { record };
        let mut end = 0u64;
        let mut records = |count: u64, stride: u64| {
            let base = end.next_multiple_of(page);
            end = base + count * stride;
            Records { base, stride, count }
        };
        let branch_count = config.branches as u64;
        let branches = records(branch_count, hot_stride);
        let tellers = records(branch_count * TELLERS_PER_BRANCH, hot_stride);
        let accounts = records(branch_count * config.accounts_per_branch as u64, record);
        let rows = if config.history { branch_count * HISTORY_ROWS_PER_BRANCH } else { 0 };
        let history = records(rows, HISTORY_BYTES);
        let mut tree = |count: u64| {
            let tree = Tree::new(end.next_multiple_of(page), count, config.fanout);
            end = end.next_multiple_of(page) + tree.bytes();
            tree
        };
        let (branch_tree, teller_tree) = (tree(branches.count), tree(tellers.count));
        let account_tree = tree(accounts.count);
        Tpca {
            config: *config,
            branches,
            tellers,
            accounts,
            history,
            branch_tree,
            teller_tree,
            account_tree,
            footprint_bytes: end.next_multiple_of(page),
            arrivals: Arrivals::new(config.pace, config.limits.time, seed),
            choices: Rng::stream(seed, "accounts"),
            history_row: 0,
            remaining: config.limits.requests.unwrap_or(u64::MAX),
        }
    }

    /// What it was opened with; `branches` is never 0 here.
    pub fn config(&self) -> &TpcaConfig {
        &self.config
    }

    /// Account, teller and branch of the next transaction.
    #[inline]
    fn choose(&mut self) -> [u64; 3] {
        let per_branch = self.config.accounts_per_branch as u64;
        let Some(home) = self.config.home else {
            let account = self.choices.below(self.accounts.count);
            // Tellers share a branch's accounts; if ten does not divide their number, the last has the rest.
            let share = (per_branch / TELLERS_PER_BRANCH).max(1);
            let branch = account / per_branch;
            let teller = (account % per_branch / share).min(TELLERS_PER_BRANCH - 1);
            return [account, branch * TELLERS_PER_BRANCH + teller, branch];
        };
        let teller = self.choices.below(self.tellers.count);
        let branch = teller / TELLERS_PER_BRANCH;
        let mut of_branch = branch;
        if self.branches.count > 1 && !self.choices.chance(home) {
            let other = self.choices.below(self.branches.count - 1);
            of_branch = other + u64::from(other >= branch);
        }
        [of_branch * per_branch + self.choices.below(per_branch), teller, branch]
    }

    #[inline]
    fn change(&self, record: u64, accesses: &mut Vec<Access>) {
        let balance = record + BALANCE_AT;
        match self.config.record_reads {
            RecordReads::Balance => accesses.push(Access::load(balance, WORD_BYTES)),
            RecordReads::Whole => {
                let first = record / BUS_BYTES;
                let last = (record + self.config.record_bytes as u64 - 1) / BUS_BYTES;
                let words = first..last + 1;
                accesses.extend(words.map(|word| Access::load(word * BUS_BYTES, BUS_BYTES as u16)));
            }
        }
        accesses.push(Access::store(balance, WORD_BYTES));
    }

    #[inline]
    fn add_history(&mut self, accesses: &mut Vec<Access>) {
        let row = self.history.at(self.history_row);
        let words = (0..HISTORY_BYTES / WORD_BYTES as u64).map(|word| row + word * WORD_BYTES as u64);
        accesses.extend(words.map(|offset| Access::store(offset, WORD_BYTES)));
        self.history_row = (self.history_row + 1) % self.history.count;
    }
}

impl MemoryWorkload for Tpca {
    #[inline]
    fn next(&mut self, accesses: &mut Vec<Access>) -> Option<Time> {
        accesses.clear();
        if self.remaining == 0 {
            return None;
        }
        let Some(at) = self.arrivals.next() else {
            self.remaining = 0;
            return None;
        };
        self.remaining -= 1;
        let [account, teller, branch] = self.choose();
        self.account_tree.search(account, accesses);
        self.change(self.accounts.at(account), accesses);
        self.teller_tree.search(teller, accesses);
        self.change(self.tellers.at(teller), accesses);
        self.branch_tree.search(branch, accesses);
        self.change(self.branches.at(branch), accesses);
        if self.config.history {
            self.add_history(accesses);
        }
        Some(at)
    }
}

impl Workload for Tpca {
    fn pacing(&self) -> Pacing {
        self.arrivals.pacing()
    }

    fn footprint(&self) -> Range<u64> {
        0..self.footprint_bytes
    }

    fn len_hint(&self) -> Option<u64> {
        self.config.limits.requests.map(|_| self.remaining)
    }

    fn time_limit(&self) -> Option<Span> {
        self.config.limits.time
    }

    fn describe(&self) -> String {
        self.description()
    }
}

#[cfg(test)]
mod tests;
