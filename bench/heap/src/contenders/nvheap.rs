//! nvheap: the stores of [`nvlab_workload::objects::persistent`], and the tables of TPC-B.

use super::{Contender, Sort, Start};
use crate::Result;
use crate::workloads::{Bank, Graph, HistoryRow, Map, Swaps};
use nvlab_bench_stores::tpcb::{ACCOUNTS, BRANCHES, TELLERS, Table, Transfer};
use nvlab_nvheap::{Brand, Handle, Heap, Options, PBox, PVec, Persist, Tx};
use nvlab_workload::objects::persistent;
use std::path::Path;

pub struct Nvheap;

impl Contender for Nvheap {
    fn swaps(&self, folder: &Path, start: Start) -> Result<Box<dyn Swaps>> {
        persistent::swaps(&folder.join("heap"), start, Options::default())
    }

    fn bank(&self, folder: &Path, start: Start, history_rows: u64) -> Result<Box<dyn Bank>> {
        let path = folder.join("heap");
        let heap = match start {
            Start::Create => Heap::create(&path, Options::default(), |tx| {
                let mut rows = PVec::new();
                rows.reserve(tx, history_rows as usize)?;
                let history = PBox::new(tx, History { rows })?;
                Ok(Tables { balances: [PVec::new(), PVec::new(), PVec::new()], history })
            })?,
            Start::Open => Heap::open(&path, Options::default())?,
        };
        Ok(Box::new(Store { root: heap.root()?, heap }))
    }

    fn map(&self, folder: &Path, start: Start, sort: Sort) -> Result<Box<dyn Map>> {
        match sort {
            Sort::Sorted => persistent::sorted(&folder.join("heap"), start, Options::default()),
            Sort::Hashed => persistent::hashed(&folder.join("heap"), start, Options::default()),
        }
    }

    fn graph(&self, folder: &Path, start: Start) -> Result<Box<dyn Graph>> {
        persistent::graph(&folder.join("heap"), start, Options::default())
    }
}

/// The tables of TPC-B.
struct Store {
    root: Handle<Tables, BankBrand>,
    heap: Heap<BankBrand>,
}

struct BankBrand;
impl Brand for BankBrand {
    type Root = Tables;
}

#[derive(Persist)]
#[persist(heap = BankBrand)]
#[repr(C)]
struct Tables {
    /// Accounts, tellers, branches.
    balances: [PVec<Row, BankBrand>; 3],
    history: PBox<History, BankBrand>,
}

#[derive(Persist)]
#[persist(heap = BankBrand)]
#[repr(C)]
struct History {
    rows: PVec<[u64; 8], BankBrand>,
}

/// As [`nvlab_bench_stores::tpcb::Row`].
#[derive(Persist)]
#[repr(C)]
struct Row {
    balance: i64,
    filler: [u8; 104],
}

const TABLES: [(Table, u64); 3] =
    [(Table::Accounts, ACCOUNTS), (Table::Tellers, TELLERS), (Table::Branches, BRANCHES)];

impl Bank for Store {
    fn load(&self) -> Result<()> {
        Ok(self.heap.transaction(|tx| {
            for (index, (_, rows)) in TABLES.into_iter().enumerate() {
                let row = |_| Ok(Row { balance: 0, filler: [b' '; 104] });
                let rows = PVec::from_fn(tx, rows as usize, row)?;
                self.root.write(tx)?.balances[index] = rows;
            }
            Ok(())
        })?)
    }

    fn transfer(&self, transfer: &Transfer) -> Result<()> {
        Ok(self.heap.transaction(|tx| {
            let tables = self.root.read(tx)?;
            let Transfer { account, teller, branch, delta, .. } = *transfer;
            tables.balances[0].prefetch(tx, account as usize);
            for (table, row) in tables.balances.iter().zip([account, teller, branch]) {
                table.write(tx, row as usize)?.balance += delta;
            }
            let row = zerocopy::transmute!(HistoryRow::new(transfer));
            tables.history.write(tx)?.rows.push(tx, row)
        })?)
    }

    fn each(
        &self,
        balance: &mut dyn FnMut(Table, u64, i64) -> Result<()>,
        history: &mut dyn FnMut(&HistoryRow) -> Result<()>,
    ) -> Result<()> {
        for (index, (table, rows)) in TABLES.into_iter().enumerate() {
            for number in 0..rows {
                let read = |tx: &Tx<'_, BankBrand>| {
                    Ok(self.root.read(tx)?.balances[index].read(tx, number as usize)?.balance)
                };
                balance(table, number, self.heap.transaction(read)?)?;
            }
        }
        let count = |tx: &Tx<'_, BankBrand>| Ok(self.root.read(tx)?.history.read(tx)?.rows.len());
        for index in 0..self.heap.transaction(count)? {
            let read =
                |tx: &Tx<'_, BankBrand>| Ok(*self.root.read(tx)?.history.read(tx)?.rows.read(tx, index)?);
            history(&zerocopy::transmute!(self.heap.transaction(read)?))?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
