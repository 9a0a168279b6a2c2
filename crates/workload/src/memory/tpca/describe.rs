//! Describes a transaction and the layout of the database, in numbers and in words.

use super::layout::{Records, Tree};
use super::{BUS_BYTES, HISTORY_BYTES, RecordReads, Tpca, WORD_BYTES};
use nvlab_units::quantity::display_bytes;
use std::fmt::Write;

/// The accesses of one transaction, by purpose. Equal for all transactions, except with [`RecordReads::Whole`],
/// where a record that does not begin on a bus word may need one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionCounts {
    /// Keys compared on the way down the three index trees.
    pub key_loads: u32,
    /// Child pointers followed on the way down.
    pub pointer_loads: u32,
    /// Loads from the account, teller and branch record.
    pub record_loads: u32,
    /// Balances written: one each of account, teller and branch.
    pub record_stores: u32,
    /// Stores to the history record; 0 without a history.
    pub history_stores: u32,
}

impl TransactionCounts {
    /// Sum of the three kinds of loads.
    pub fn loads(&self) -> u32 {
        self.key_loads + self.pointer_loads + self.record_loads
    }

    /// Sum of the two kinds of stores.
    pub fn stores(&self) -> u32 {
        self.record_stores + self.history_stores
    }
}

impl Tpca {
    /// What each transaction accesses, computed from the configuration.
    pub fn counts(&self) -> TransactionCounts {
        let trees = [&self.account_tree, &self.teller_tree, &self.branch_tree];
        let of_record = match self.config.record_reads {
            RecordReads::Balance => 1,
            RecordReads::Whole => (self.config.record_bytes as u64).div_ceil(BUS_BYTES) as u32,
        };
        let history = if self.config.history { HISTORY_BYTES / WORD_BYTES as u64 } else { 0 };
        TransactionCounts {
            key_loads: trees.iter().map(|tree| tree.levels() * tree.probes() + 1).sum(),
            pointer_loads: trees.iter().map(|tree| tree.levels()).sum(),
            record_loads: 3 * of_record,
            record_stores: 3,
            history_stores: history as u32,
        }
    }

    pub(super) fn description(&self) -> String {
        let counts = self.counts();
        let mut text = format!(
            "TPC-A: {} branches, {} tellers, {} accounts in {}\n",
            self.branches.count,
            self.tellers.count,
            self.accounts.count,
            display_bytes(self.footprint_bytes)
        );
        let _ = writeln!(
            text,
            "a transaction: {} loads ({} keys, {} pointers, {} of records), {} stores ({} balances, {} of history)",
            counts.loads(),
            counts.key_loads,
            counts.pointer_loads,
            counts.record_loads,
            counts.stores(),
            counts.record_stores,
            counts.history_stores
        );
        let kinds: [(&str, &Records, Option<&Tree>); 4] = [
            ("branches", &self.branches, Some(&self.branch_tree)),
            ("tellers", &self.tellers, Some(&self.teller_tree)),
            ("accounts", &self.accounts, Some(&self.account_tree)),
            ("history", &self.history, None),
        ];
        for (name, records, tree) in kinds.into_iter().filter(|(_, records, _)| records.count > 0) {
            let _ = write!(text, "{name}: {} B apart, {}", records.stride, display_bytes(records.bytes()));
            if let Some(tree) = tree {
                let (levels, nodes) = (tree.levels(), tree.nodes());
                let _ = write!(
                    text,
                    "; index of {levels} levels, {nodes} nodes, {}",
                    display_bytes(tree.bytes())
                );
            }
            text.push('\n');
        }
        text
    }
}
