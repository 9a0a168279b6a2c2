//! The tables as arrays in mapped memory, for contenders that map their store as a whole.

use super::Scale;
use crate::Result;
use nvlab_bench_stores::tpcb::{ACCOUNTS, BRANCHES, Balances, History, ROW_BYTES, TELLERS, Table};
use zerocopy::FromBytes;

/// Where a row is in the region.
pub fn offset(table: Table, number: u64) -> usize {
    let before = match table {
        Table::Accounts => 0,
        Table::Tellers => ACCOUNTS,
        Table::Branches => ACCOUNTS + TELLERS,
        Table::History => ACCOUNTS + TELLERS + BRANCHES,
    };
    (before + number) as usize * ROW_BYTES
}

/// Bytes of a region with the tables.
pub fn region_bytes(scale: Scale) -> u64 {
    (offset(Table::History, scale.history_rows) as u64).max(scale.region_bytes_min).next_multiple_of(4096)
}

/// Sums a region.
pub fn balances(region: &[u8]) -> Result<Balances> {
    let mut balances = Balances::default();
    let (fixed, history) = region.split_at(offset(Table::History, 0));
    for (number, row) in fixed.chunks_exact(ROW_BYTES).enumerate() {
        let table = match number as u64 {
            number if number < ACCOUNTS => Table::Accounts,
            number if number < ACCOUNTS + TELLERS => Table::Tellers,
            _ => Table::Branches,
        };
        balances.add(table, row)?;
    }
    // Rows are written in the order of their numbers, but for a few that were under way: a page of empty ones is the end.
    let mut empty = 0;
    for row in history.chunks_exact(ROW_BYTES) {
        let parsed = History::read_from_bytes(row).map_err(|error| error.to_string())?;
        if parsed.is_written() {
            balances.add(Table::History, row)?;
            empty = 0;
        } else {
            empty += 1;
            if empty == 1000 {
                break;
            }
        }
    }
    Ok(balances)
}
