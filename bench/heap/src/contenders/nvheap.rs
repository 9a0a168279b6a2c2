//! nvheap: arrays, a B-tree and a hash map of persistent objects, each workload in a heap of its own brand.

use super::{Contender, Sort, Start};
use crate::Result;
use crate::workloads::{Bank, ELEMENTS, Element, Graph, HistoryRow, Map, NODES, Node, Search, Swaps};
use nvlab_bench_stores::tpcb::{ACCOUNTS, BRANCHES, TELLERS, Table, Transfer};
use nvlab_nvheap::{Brand, Handle, Heap, Options, PBTreeMap, PBox, PHashMap, PVec, Persist, Tx};
use std::path::Path;
use zerocopy::IntoBytes;

pub struct Nvheap;

/// Entries that loading inserts in a transaction.
const LOAD: usize = 200;

fn heap<H: Brand>(
    folder: &Path,
    start: Start,
    make: impl Fn(&Tx<'_, H>) -> nvlab_nvheap::Result<H::Root> + Send,
) -> Result<Store<H>> {
    let path = folder.join("heap");
    let heap = match start {
        Start::Create => Heap::create(&path, Options::default(), make)?,
        Start::Open => Heap::open(&path, Options::default())?,
    };
    Ok(Store { root: heap.root()?, heap })
}

/// A heap and its root.
struct Store<H: Brand> {
    root: Handle<H::Root, H>,
    heap: Heap<H>,
}

impl Contender for Nvheap {
    fn swaps(&self, folder: &Path, start: Start) -> Result<Box<dyn Swaps>> {
        Ok(Box::new(heap::<SwapsBrand>(folder, start, |_| Ok(Elements { all: PVec::new() }))?))
    }

    fn bank(&self, folder: &Path, start: Start, history_rows: u64) -> Result<Box<dyn Bank>> {
        Ok(Box::new(heap::<BankBrand>(folder, start, |tx| {
            let mut rows = PVec::new();
            rows.reserve(tx, history_rows as usize)?;
            let history = PBox::new(tx, History { rows })?;
            Ok(Tables { balances: [PVec::new(), PVec::new(), PVec::new()], history })
        })?))
    }

    fn map(&self, folder: &Path, start: Start, sort: Sort) -> Result<Box<dyn Map>> {
        Ok(match sort {
            Sort::Sorted => {
                Box::new(heap::<TreeBrand>(folder, start, |tx| Ok(Tree { map: PBTreeMap::new(tx)? }))?)
            }
            Sort::Hashed => {
                Box::new(heap::<HashBrand>(folder, start, |tx| Ok(Hash { map: PHashMap::new(tx)? }))?)
            }
        })
    }

    fn graph(&self, folder: &Path, start: Start) -> Result<Box<dyn Graph>> {
        Ok(Box::new(heap::<GraphBrand>(folder, start, |_| Ok(Nodes { all: PVec::new() }))?))
    }
}

struct SwapsBrand;
impl Brand for SwapsBrand {
    type Root = Elements;
}

#[derive(Persist)]
#[persist(heap = SwapsBrand)]
#[repr(C)]
struct Elements {
    all: PVec<Element, SwapsBrand>,
}

impl Swaps for Store<SwapsBrand> {
    fn load(&self, element: fn(u64) -> Element) -> Result<()> {
        Ok(self.heap.transaction(|tx| {
            let all = PVec::from_fn(tx, ELEMENTS as usize, |index| Ok(element(index as u64)))?;
            self.root.write(tx)?.all = all;
            Ok(())
        })?)
    }

    fn swap(&self, first: u64, second: u64) -> Result<()> {
        Ok(self.heap.transaction(|tx| self.root.read(tx)?.all.swap(tx, first as usize, second as usize))?)
    }

    fn each(&self, each: &mut dyn FnMut(u64, &Element) -> Result<()>) -> Result<()> {
        for index in 0..ELEMENTS {
            let read = |tx: &Tx<'_, SwapsBrand>| Ok(*self.root.read(tx)?.all.read(tx, index as usize)?);
            each(index, &self.heap.transaction(read)?)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
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

impl Bank for Store<BankBrand> {
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
        let Transfer { account, teller, branch, delta, .. } = *transfer;
        let row = zerocopy::transmute!(HistoryRow::new(transfer));
        Ok(self.heap.transaction(|tx| {
            let tables = self.root.read(tx)?;
            tables.balances[0].prefetch(tx, account as usize);
            for (table, row) in tables.balances.iter().zip([account, teller, branch]) {
                table.write(tx, row as usize)?.balance += delta;
            }
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

struct TreeBrand;
impl Brand for TreeBrand {
    type Root = Tree;
}

#[derive(Persist)]
#[persist(heap = TreeBrand)]
#[repr(C)]
struct Tree {
    map: PBTreeMap<u64, u64, TreeBrand>,
}

struct HashBrand;
impl Brand for HashBrand {
    type Root = Hash;
}

#[derive(Persist)]
#[persist(heap = HashBrand)]
#[repr(C)]
struct Hash {
    map: PHashMap<u64, u64, HashBrand>,
}

macro_rules! map {
    ($brand:ty) => {
        impl Map for Store<$brand> {
            fn load(&self, pairs: &mut dyn Iterator<Item = (u64, u64)>) -> Result<()> {
                let pairs: Vec<_> = pairs.collect();
                for some in pairs.chunks(LOAD) {
                    self.heap.transaction(|tx| {
                        let root = self.root.read(tx)?;
                        some.iter().try_for_each(|&(key, value)| root.map.insert(tx, key, value).map(|_| ()))
                    })?;
                }
                Ok(())
            }

            fn insert(&self, key: u64, value: u64) -> Result<()> {
                let old = self.heap.transaction(|tx| self.root.read(tx)?.map.insert(tx, key, value))?;
                if old.is_none() { Ok(()) } else { Err(format!("the key {key} is there already").into()) }
            }

            fn delete(&self, key: u64) -> Result<bool> {
                Ok(self.heap.transaction(|tx| self.root.read(tx)?.map.remove(tx, &key))?.is_some())
            }

            fn each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
                let all = self.heap.transaction(|tx| {
                    let root = self.root.read(tx)?;
                    let pair = |entry: nvlab_nvheap::Result<_>| {
                        let (key, value): (nvlab_nvheap::collections::Ref<'_, u64>, _) = entry?;
                        let value: nvlab_nvheap::collections::Ref<'_, u64> = value;
                        Ok((*key, *value))
                    };
                    root.map.iter(tx).map(pair).collect::<nvlab_nvheap::Result<Vec<_>>>()
                })?;
                let len = self.heap.transaction(|tx| self.root.read(tx)?.map.len(tx))?;
                if len != all.len() {
                    return Err(format!("{len} entries are counted, {} are there", all.len()).into());
                }
                all.into_iter().try_for_each(|(key, value)| each(key, value))
            }

            fn close(self: Box<Self>) -> Result<()> {
                Ok(())
            }
        }
    };
}
map!(TreeBrand);
map!(HashBrand);

struct GraphBrand;
impl Brand for GraphBrand {
    type Root = Nodes;
}

#[derive(Persist)]
#[persist(heap = GraphBrand)]
#[repr(C)]
struct Nodes {
    all: PVec<[u32; 16], GraphBrand>,
}

impl Graph for Store<GraphBrand> {
    fn load(&self, nodes: &[Node]) -> Result<()> {
        Ok(self.heap.transaction(|tx| {
            let all = PVec::from_fn(tx, nodes.len(), |index| Ok(zerocopy::transmute!(nodes[index])))?;
            self.root.write(tx)?.all = all;
            Ok(())
        })?)
    }

    fn toggle(&self, first: u32, second: u32) -> Result<()> {
        Ok(self.heap.transaction(|tx| {
            let nodes = self.root.read(tx)?;
            nodes.all.prefetch(tx, second as usize);
            for (node, neighbour) in [(first, second), (second, first)] {
                let mut record = nodes.all.write(tx, node as usize)?;
                let mut node: Node = zerocopy::transmute!(*record);
                node.toggle(neighbour);
                record.as_mut_bytes().copy_from_slice(node.as_bytes());
            }
            Ok(())
        })?)
    }

    fn search(&self, search: &mut Search) -> Result<bool> {
        Ok(self.heap.transaction(|tx| {
            let nodes = self.root.read(tx)?;
            let mut failed = None;
            let found = search.run(|number| {
                let node = nodes.all.read(tx, number as usize).inspect_err(|error| {
                    failed = Some(error.clone());
                })?;
                Ok(zerocopy::transmute!(*node))
            });
            match failed {
                Some(error) => Err(error),
                None => found.map_err(nvlab_nvheap::Error::abort),
            }
        })?)
    }

    fn each(&self, each: &mut dyn FnMut(u32, &Node) -> Result<()>) -> Result<()> {
        for number in 0..NODES as u32 {
            let read = |tx: &Tx<'_, GraphBrand>| Ok(*self.root.read(tx)?.all.read(tx, number as usize)?);
            each(number, &zerocopy::transmute!(self.heap.transaction(read)?))?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
