//! The array of SPS, the tables of TPC-B and the nodes of six degrees: arrays in the root area.

use super::{Heap, Stripes, Transaction, lock};
use crate::Result;
use crate::workloads::{
    Bank, ELEMENT_BYTES, ELEMENTS, Element, Graph, HISTORY_BYTES, HistoryRow, NODES, Node, Search, Swaps,
};
use nvlab_bench_stores::tpcb::{ACCOUNTS, BRANCHES, ROW_BYTES, Row, TELLERS, Table, Transfer};
use std::sync::{Mutex, PoisonError, RwLock};

pub const ELEMENTS_BYTES: u64 = ELEMENTS * ELEMENT_BYTES as u64;
pub const NODES_BYTES: u64 = NODES * NODE_BYTES as u64;
const NODE_BYTES: usize = size_of::<Node>();
/// Balances, then how many rows the history has, then the history.
const BALANCES: u64 = ACCOUNTS + TELLERS + BRANCHES;
const COUNT_AT: u64 = (BALANCES * ROW_BYTES as u64).next_multiple_of(64);
const HISTORY_AT: u64 = COUNT_AT + 64;

pub fn bank_bytes(history_rows: u64) -> u64 {
    HISTORY_AT + history_rows * HISTORY_BYTES as u64
}

/// The array of SPS; elements are locked by stripes.
pub struct Elements<H> {
    heap: H,
    stripes: Stripes,
}

impl<H: Heap> Elements<H> {
    pub fn new(heap: H) -> Elements<H> {
        Elements { heap, stripes: Stripes::new() }
    }

    fn offset(&self, index: u64) -> u64 {
        assert!(index < ELEMENTS);
        self.heap.root() + index * ELEMENT_BYTES as u64
    }
}

impl<H: Heap> Swaps for Elements<H> {
    fn load(&self, count: u64, element: fn(u64) -> Element) -> Result<()> {
        for index in 0..count {
            // SAFETY: the element is within the root area, at a multiple of 16.
            unsafe { self.heap.at(self.offset(index)).cast::<Element>().write(element(index)) };
        }
        self.heap.persist(self.heap.root(), ELEMENTS_BYTES as usize);
        Ok(())
    }

    fn swap(&self, first: u64, second: u64) -> Result<()> {
        let _guards = self.stripes.lock_both(first, second);
        self.heap.update(|transaction| {
            let one = transaction.change(self.offset(first), ELEMENT_BYTES)?.cast::<Element>();
            let other = transaction.change(self.offset(second), ELEMENT_BYTES)?.cast::<Element>();
            // SAFETY: two different elements, which are locked.
            unsafe { one.swap(other) };
            Ok(())
        })
    }

    fn each(&self, each: &mut dyn FnMut(u64, &Element) -> Result<()>) -> Result<()> {
        (0..ELEMENTS).try_for_each(|index| {
            // SAFETY: the element is within the root area, and no thread swaps meanwhile.
            each(index, unsafe { &*self.heap.at(self.offset(index)).cast::<Element>() })
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.heap.close()
    }
}

/// The tables of TPC-B, under one lock: every transaction changes the branch.
pub struct Tables<H> {
    heap: H,
    history_rows: u64,
    all: Mutex<()>,
}

impl<H: Heap> Tables<H> {
    pub fn new(heap: H, history_rows: u64) -> Tables<H> {
        Tables { heap, history_rows, all: Mutex::default() }
    }

    fn row(&self, table: Table, number: u64) -> u64 {
        let before = match table {
            Table::Accounts => 0,
            Table::Tellers => ACCOUNTS,
            Table::Branches => ACCOUNTS + TELLERS,
            Table::History => {
                assert!(number < self.history_rows, "the history has room");
                return self.heap.root() + HISTORY_AT + number * HISTORY_BYTES as u64;
            }
        };
        assert!(before + number < BALANCES);
        self.heap.root() + (before + number) * ROW_BYTES as u64
    }

    fn count(&self) -> u64 {
        // SAFETY: within the root area, at a multiple of 8; the lock is held, or no thread changes it.
        unsafe { self.heap.at(self.heap.root() + COUNT_AT).cast::<u64>().read() }
    }
}

impl<H: Heap> Bank for Tables<H> {
    fn load(&self) -> Result<()> {
        for row in 0..BALANCES {
            let offset = self.heap.root() + row * ROW_BYTES as u64;
            // SAFETY: the row is within the root area, at a multiple of 8.
            unsafe { self.heap.at(offset).cast::<Row>().write(Row::NEW) };
        }
        self.heap.persist(self.heap.root(), (BALANCES * ROW_BYTES as u64) as usize);
        Ok(())
    }

    fn transfer(&self, transfer: &Transfer) -> Result<()> {
        let Transfer { account, teller, branch, delta, .. } = *transfer;
        let _guard = lock(&self.all);
        self.heap.update(|transaction| {
            for (table, row) in
                [(Table::Accounts, account), (Table::Tellers, teller), (Table::Branches, branch)]
            {
                let balance = transaction.change(self.row(table, row), size_of::<i64>())?.cast::<i64>();
                // SAFETY: a balance, which is locked.
                unsafe { *balance += delta };
            }
            let count = self.count();
            let row = transaction.fill(self.row(Table::History, count), HISTORY_BYTES)?.cast::<HistoryRow>();
            let rows = transaction.change(self.heap.root() + COUNT_AT, size_of::<u64>())?.cast::<u64>();
            // SAFETY: a row behind the last, and the count; both are locked.
            unsafe {
                row.write(HistoryRow::new(transfer));
                rows.write(count + 1);
            }
            Ok(())
        })
    }

    fn each(
        &self,
        balance: &mut dyn FnMut(Table, u64, i64) -> Result<()>,
        history: &mut dyn FnMut(&HistoryRow) -> Result<()>,
    ) -> Result<()> {
        let tables = [(Table::Accounts, ACCOUNTS), (Table::Tellers, TELLERS), (Table::Branches, BRANCHES)];
        for (table, rows) in tables {
            for number in 0..rows {
                // SAFETY: a balance, and no thread changes it meanwhile.
                balance(table, number, unsafe {
                    self.heap.at(self.row(table, number)).cast::<i64>().read()
                })?;
            }
        }
        (0..self.count()).try_for_each(|number| {
            // SAFETY: a row of the history, and no thread changes it meanwhile.
            history(unsafe { &*self.heap.at(self.row(Table::History, number)).cast::<HistoryRow>() })
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.heap.close()
    }
}

/// The nodes of six degrees, under a lock that searches share.
pub struct Nodes<H> {
    heap: H,
    all: RwLock<()>,
}

impl<H: Heap> Nodes<H> {
    pub fn new(heap: H) -> Nodes<H> {
        Nodes { heap, all: RwLock::default() }
    }

    fn offset(&self, number: u32) -> u64 {
        assert!(u64::from(number) < NODES);
        self.heap.root() + u64::from(number) * NODE_BYTES as u64
    }

    fn node(&self, number: u32) -> Node {
        // SAFETY: the node is within the root area; the lock is held, or no thread changes it.
        unsafe { self.heap.at(self.offset(number)).cast::<Node>().read() }
    }
}

impl<H: Heap> Graph for Nodes<H> {
    fn load(&self, nodes: &[Node]) -> Result<()> {
        for (number, node) in (0..).zip(nodes) {
            // SAFETY: the node is within the root area, at a multiple of 16.
            unsafe { self.heap.at(self.offset(number)).cast::<Node>().write(*node) };
        }
        self.heap.persist(self.heap.root(), NODES_BYTES as usize);
        Ok(())
    }

    fn toggle(&self, first: u32, second: u32) -> Result<()> {
        let _guard = self.all.write().unwrap_or_else(PoisonError::into_inner);
        self.heap.update(|transaction| {
            for (node, neighbour) in [(first, second), (second, first)] {
                let node = transaction.change(self.offset(node), NODE_BYTES)?.cast::<Node>();
                // SAFETY: a node, which is locked.
                unsafe { (*node).toggle(neighbour) };
            }
            Ok(())
        })
    }

    fn search(&self, search: &mut Search) -> Result<bool> {
        let _guard = self.all.read().unwrap_or_else(PoisonError::into_inner);
        search.run(|number| Ok(self.node(number)))
    }

    fn each(&self, each: &mut dyn FnMut(u32, &Node) -> Result<()>) -> Result<()> {
        (0..NODES as u32).try_for_each(|number| each(number, &self.node(number)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.heap.close()
    }
}
