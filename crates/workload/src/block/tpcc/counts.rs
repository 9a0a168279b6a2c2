//! Row counts of the transactions.

use super::standard::Transaction;

/// Rows accessed by the transactions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Transactions of this kind, those rolled back included.
    pub transactions: u64,
    /// Rows selected, including searches for rows that do not exist.
    pub selects: u64,
    /// Rows changed in place.
    pub updates: u64,
    /// Rows added to a table.
    pub inserts: u64,
    /// Rows deleted (new-orders that are delivered).
    pub deletes: u64,
}

/// All counts of a run, including the warm-up. Transactions rolled back count as done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    rows: [RowCounts; 5],
    current: usize,
    /// New-orders rolled back: 1 % (clause 2.4.1.4).
    pub rollbacks: u64,
    /// Order lines entered by new-orders.
    pub lines: u64,
    /// Lines supplied by another warehouse: 1 % (clause 2.4.1.5).
    pub remote_lines: u64,
    /// Districts that had no order to deliver (clause 2.7.4.2).
    pub skipped_deliveries: u64,
}

impl Counts {
    /// The rows of one kind of transaction.
    pub fn of(&self, kind: Transaction) -> &RowCounts {
        &self.rows[kind as usize]
    }

    /// Transactions of all kinds.
    pub fn transactions(&self) -> u64 {
        self.rows.iter().map(|rows| rows.transactions).sum()
    }

    pub(super) fn begin(&mut self, kind: Transaction) {
        self.current = kind as usize;
        self.rows[self.current].transactions += 1;
    }

    #[inline]
    pub(super) fn selected(&mut self, rows: u32) {
        self.rows[self.current].selects += rows as u64;
    }

    #[inline]
    pub(super) fn updated(&mut self, rows: u32) {
        self.rows[self.current].updates += rows as u64;
    }

    #[inline]
    pub(super) fn inserted(&mut self, rows: u32) {
        self.rows[self.current].inserts += rows as u64;
    }

    #[inline]
    pub(super) fn deleted(&mut self, rows: u32) {
        self.rows[self.current].deletes += rows as u64;
    }

    #[inline]
    pub(super) fn line(&mut self, is_remote: bool) {
        self.lines += 1;
        self.remote_lines += u64::from(is_remote);
    }
}
