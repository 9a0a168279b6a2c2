//! Databases: one table of 8 B keys each, on which all workloads do the same gets, puts and deletes.

use super::Sort;
use crate::Result;
use crate::workloads::{
    Bank, ELEMENT_BYTES, Element, Graph, HISTORY_BYTES, HistoryRow, KEYS, Map, Node, Search, Swaps,
};
use nvlab_bench_stores::tpcb::{self, ACCOUNTS, BRANCHES, Row, TELLERS, Table, Transfer};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// A transaction.
pub trait Access {
    /// Copies a value, whose length must be that of `into`; whether there is one.
    fn get(&mut self, key: u64, into: &mut [u8]) -> Result<bool>;
    /// The same for a value that this transaction will change.
    fn get_to_change(&mut self, key: u64, into: &mut [u8]) -> Result<bool> {
        self.get(key, into)
    }
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()>;
    /// Whether there was one.
    fn delete(&mut self, key: u64) -> Result<bool>;
}

/// What is done in a transaction; again if the store had to undo it.
pub type Work<'a> = &'a mut dyn FnMut(&mut dyn Access) -> Result<()>;

/// A database with one table. Threads share it.
pub trait Store: Send + Sync {
    /// A transaction, durable when this returns, undone if the work fails.
    fn update(&self, work: Work<'_>) -> Result<()>;
    /// A transaction that only reads.
    fn view(&self, work: Work<'_>) -> Result<()>;
    /// Puts many rows into an empty table, in any transactions.
    fn load(&self, rows: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<()>;
    /// Passes on every row, in any order.
    fn each(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()>;
    fn close(self: Box<Self>) -> Result<()>;
}

/// Opens or creates a store in a folder.
pub type Open = fn(&std::path::Path, Sort) -> Result<Box<dyn Store>>;

/// A database as a contender.
pub struct Tables(pub Box<dyn Store>);

fn there(found: bool, key: u64) -> Result<()> {
    if found { Ok(()) } else { Err(format!("the key {key:#x} is not there").into()) }
}

fn wrong_length<E>(_: E) -> crate::Error {
    "a value has the wrong length".into()
}

impl Swaps for Tables {
    fn load(&self, count: u64, element: fn(u64) -> Element) -> Result<()> {
        self.0.load(&mut (0..count).map(|index| (index, element(index).as_bytes().to_vec())))
    }

    fn swap(&self, first: u64, second: u64) -> Result<()> {
        let (mut one, mut other) = ([0; ELEMENT_BYTES], [0; ELEMENT_BYTES]);
        self.0.update(&mut |access| {
            there(access.get_to_change(first, &mut one)?, first)?;
            there(access.get_to_change(second, &mut other)?, second)?;
            access.put(first, &other)?;
            access.put(second, &one)
        })
    }

    fn each(&self, each: &mut dyn FnMut(u64, &Element) -> Result<()>) -> Result<()> {
        self.0.each(&mut |key, value| each(key, &Element::read_from_bytes(value).map_err(wrong_length)?))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}

fn key(table: Table, number: u64) -> u64 {
    u64::from_be_bytes(tpcb::key(table, number))
}

impl Bank for Tables {
    fn load(&self) -> Result<()> {
        let keys = [(Table::Accounts, ACCOUNTS), (Table::Tellers, TELLERS), (Table::Branches, BRANCHES)];
        let keys = keys.into_iter().flat_map(|(table, rows)| (0..rows).map(move |row| key(table, row)));
        self.0.load(&mut keys.map(|key| (key, Row::NEW.as_bytes().to_vec())))
    }

    fn transfer(&self, transfer: &Transfer) -> Result<()> {
        let Transfer { number, account, teller, branch, delta } = *transfer;
        let history = HistoryRow::new(transfer);
        self.0.update(&mut |access| {
            for (table, row) in
                [(Table::Accounts, account), (Table::Tellers, teller), (Table::Branches, branch)]
            {
                let (key, mut row) = (key(table, row), Row::new_zeroed());
                there(access.get_to_change(key, row.as_mut_bytes())?, key)?;
                row.balance += delta;
                access.put(key, row.as_bytes())?;
            }
            access.put(key(Table::History, number), history.as_bytes())
        })
    }

    fn each(
        &self,
        balance: &mut dyn FnMut(Table, u64, i64) -> Result<()>,
        history: &mut dyn FnMut(&HistoryRow) -> Result<()>,
    ) -> Result<()> {
        self.0.each(&mut |key, value| {
            let (table, number) = (key >> 56, key << 8 >> 8);
            let table = [Table::Accounts, Table::Tellers, Table::Branches]
                .into_iter()
                .find(|&candidate| candidate as u64 == table);
            match table {
                Some(table) => {
                    balance(table, number, Row::read_from_bytes(value).map_err(wrong_length)?.balance)
                }
                None if value.len() == HISTORY_BYTES => {
                    history(&HistoryRow::read_from_bytes(value).map_err(wrong_length)?)
                }
                None => Err(format!("a row with the key {key:#x}").into()),
            }
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}

impl Map for Tables {
    fn load(&self, pairs: &mut dyn Iterator<Item = (u64, u64)>) -> Result<()> {
        // Sorted: the fastest order for a tree, and as full as it may be.
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_unstable();
        assert!(pairs.len() as u64 <= KEYS);
        self.0.load(&mut pairs.into_iter().map(|(key, value)| (key, value.to_le_bytes().to_vec())))
    }

    fn insert(&self, key: u64, value: u64) -> Result<()> {
        self.0.update(&mut |access| access.put(key, &value.to_le_bytes()))
    }

    fn delete(&self, key: u64) -> Result<bool> {
        let mut was_there = false;
        self.0.update(&mut |access| {
            was_there = access.delete(key)?;
            Ok(())
        })?;
        Ok(was_there)
    }

    fn each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        self.0.each(&mut |key, value| each(key, u64::from_le_bytes(value.try_into().map_err(wrong_length)?)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}

impl Graph for Tables {
    fn load(&self, nodes: &[Node]) -> Result<()> {
        self.0.load(&mut (0..).zip(nodes).map(|(number, node)| (number, node.0.as_bytes().to_vec())))
    }

    fn toggle(&self, first: u32, second: u32) -> Result<()> {
        self.0.update(&mut |access| {
            for (node, neighbour) in [(first, second), (second, first)] {
                let (key, mut node) = (u64::from(node), Node::default());
                there(access.get_to_change(key, node.0.as_mut_bytes())?, key)?;
                node.toggle(neighbour);
                access.put(key, node.0.as_bytes())?;
            }
            Ok(())
        })
    }

    fn search(&self, search: &mut Search) -> Result<bool> {
        let mut is_found = false;
        self.0.view(&mut |access| {
            is_found = search.run(|number| {
                let (key, mut node) = (u64::from(number), Node::default());
                there(access.get(key, node.0.as_mut_bytes())?, key)?;
                Ok(node)
            })?;
            Ok(())
        })?;
        Ok(is_found)
    }

    fn each(&self, each: &mut dyn FnMut(u32, &Node) -> Result<()>) -> Result<()> {
        self.0.each(&mut |key, value| {
            each(u32::try_from(key)?, &Node(<[u32; 16]>::read_from_bytes(value).map_err(wrong_length)?))
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}
