//! Stores of [`nvlab_nvheap`]: arrays, a B-tree and a hash map of persistent objects, each workload in a heap of its own brand.
//! A process can have one heap of a brand open at a time: [`alone`] is for those who may run beside each other.

use super::{Element, Error, Graph, Map, Node, Result, Search, Several, Swaps};
use nvlab_nvheap::collections::Ref;
use nvlab_nvheap::{Brand, Handle, Heap, Options, PBTreeMap, PHashMap, PVec, Tx};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entries that loading inserts in a transaction.
const LOAD: usize = 200;

/// Creates a store in a new file, or opens what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The file must not exist.
    Create,
    /// A heap that [`Start::Create`] made is opened, and recovered if it was not closed.
    Open,
}

/// Held by those who open a heap, so that no other thread opens one of the same brand.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An array of elements in a [`PVec`].
pub fn swaps(path: &Path, start: Start, options: Options) -> Result<Box<dyn Swaps>> {
    Ok(Box::new(Store::<SwapsBrand>::start(path, start, options, |_| Ok(PVec::new()))?))
}

/// A sorted map in a [`PBTreeMap`].
pub fn sorted(path: &Path, start: Start, options: Options) -> Result<Box<dyn Map>> {
    Ok(Box::new(Store::<TreeBrand>::start(path, start, options, PBTreeMap::new)?))
}

/// A hash map in a [`PHashMap`].
pub fn hashed(path: &Path, start: Start, options: Options) -> Result<Box<dyn Map>> {
    Ok(Box::new(Store::<HashBrand>::start(path, start, options, PHashMap::new)?))
}

/// The nodes of a graph in a [`PVec`].
pub fn graph(path: &Path, start: Start, options: Options) -> Result<Box<dyn Graph>> {
    Ok(Box::new(Store::<GraphBrand>::start(path, start, options, |_| Ok(PVec::new()))?))
}

struct Store<H: Brand> {
    root: Handle<H::Root, H>,
    heap: Heap<H>,
}

impl<H: Brand> Store<H> {
    fn start(
        path: &Path,
        start: Start,
        options: Options,
        root: impl Fn(&Tx<'_, H>) -> nvlab_nvheap::Result<H::Root> + Send,
    ) -> Result<Store<H>> {
        let heap = match start {
            Start::Create => Heap::create(path, options, root)?,
            Start::Open => Heap::open(path, options)?,
        };
        Ok(Store { root: heap.root()?, heap })
    }

    /// The operations become parts of one transaction.
    fn join(&self, operations: Several<'_>) -> Result<()> {
        let failed = |error: Error| match error.downcast::<nvlab_nvheap::Error>() {
            Ok(error) => *error,
            Err(error) => nvlab_nvheap::Error::abort(error),
        };
        Ok(self.heap.transaction(|_| operations().map_err(failed))?)
    }
}

struct SwapsBrand;
impl Brand for SwapsBrand {
    type Root = PVec<Element, SwapsBrand>;
}

impl Swaps for Store<SwapsBrand> {
    fn load(&self, count: u64, element: fn(u64) -> Element) -> Result<()> {
        Ok(self.heap.transaction(|tx| {
            let all = PVec::from_fn(tx, count as usize, |index| Ok(element(index as u64)))?;
            *self.root.write(tx)? = all;
            Ok(())
        })?)
    }

    fn swap(&self, first: u64, second: u64) -> Result<()> {
        Ok(self.heap.transaction(|tx| self.root.read(tx)?.swap(tx, first as usize, second as usize))?)
    }

    fn together(&self, operations: Several<'_>) -> Result<()> {
        self.join(operations)
    }

    fn each(&self, each: &mut dyn FnMut(u64, &Element) -> Result<()>) -> Result<()> {
        let count = self.heap.transaction(|tx| Ok(self.root.read(tx)?.len()))?;
        for index in 0..count {
            let read = |tx: &Tx<'_, SwapsBrand>| Ok(*self.root.read(tx)?.read(tx, index)?);
            each(index as u64, &self.heap.transaction(read)?)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct TreeBrand;
impl Brand for TreeBrand {
    type Root = PBTreeMap<u64, u64, TreeBrand>;
}

struct HashBrand;
impl Brand for HashBrand {
    type Root = PHashMap<u64, u64, HashBrand>;
}

macro_rules! map {
    ($brand:ty) => {
        impl Map for Store<$brand> {
            fn load(&self, pairs: &mut dyn Iterator<Item = (u64, u64)>) -> Result<()> {
                let pairs: Vec<_> = pairs.collect();
                for some in pairs.chunks(LOAD) {
                    self.heap.transaction(|tx| {
                        let map = self.root.read(tx)?;
                        some.iter().try_for_each(|&(key, value)| map.insert(tx, key, value).map(|_| ()))
                    })?;
                }
                Ok(())
            }

            fn insert(&self, key: u64, value: u64) -> Result<()> {
                let old = self.heap.transaction(|tx| self.root.read(tx)?.insert(tx, key, value))?;
                if old.is_none() { Ok(()) } else { Err(format!("the key {key} exists already").into()) }
            }

            fn delete(&self, key: u64) -> Result<bool> {
                Ok(self.heap.transaction(|tx| self.root.read(tx)?.remove(tx, &key))?.is_some())
            }

            fn together(&self, operations: Several<'_>) -> Result<()> {
                self.join(operations)
            }

            fn each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
                let all = self.heap.transaction(|tx| {
                    let map = self.root.read(tx)?;
                    let pair = |entry: nvlab_nvheap::Result<(Ref<'_, u64>, Ref<'_, u64>)>| {
                        entry.map(|(key, value)| (*key, *value))
                    };
                    map.iter(tx).map(pair).collect::<nvlab_nvheap::Result<Vec<_>>>()
                })?;
                let len = self.heap.transaction(|tx| self.root.read(tx)?.len(tx))?;
                if len != all.len() {
                    return Err(format!("{len} entries are counted, but {} exist", all.len()).into());
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
    type Root = PVec<[u32; 16], GraphBrand>;
}

impl Graph for Store<GraphBrand> {
    fn load(&self, nodes: &[Node]) -> Result<()> {
        Ok(self.heap.transaction(|tx| {
            let all = PVec::from_fn(tx, nodes.len(), |index| Ok(nodes[index].0))?;
            *self.root.write(tx)? = all;
            Ok(())
        })?)
    }

    fn toggle(&self, first: u32, second: u32) -> Result<()> {
        Ok(self.heap.transaction(|tx| {
            let nodes = self.root.read(tx)?;
            nodes.prefetch(tx, second as usize);
            for (node, neighbour) in [(first, second), (second, first)] {
                let mut record = nodes.write(tx, node as usize)?;
                let mut node = Node(*record);
                node.toggle(neighbour);
                *record = node.0;
            }
            Ok(())
        })?)
    }

    fn search(&self, search: &mut Search) -> Result<bool> {
        Ok(self.heap.transaction(|tx| {
            let nodes = self.root.read(tx)?;
            let mut failed = None;
            let found = search.run(|number| {
                let node = nodes.read(tx, number as usize).inspect_err(|error| {
                    failed = Some(error.clone());
                })?;
                Ok(Node(*node))
            });
            match failed {
                Some(error) => Err(error),
                None => found.map_err(nvlab_nvheap::Error::abort),
            }
        })?)
    }

    fn together(&self, operations: Several<'_>) -> Result<()> {
        self.join(operations)
    }

    fn each(&self, each: &mut dyn FnMut(u32, &Node) -> Result<()>) -> Result<()> {
        let count = self.heap.transaction(|tx| Ok(self.root.read(tx)?.len()))?;
        for number in 0..count {
            let read = |tx: &Tx<'_, GraphBrand>| Ok(*self.root.read(tx)?.read(tx, number)?);
            each(u32::try_from(number)?, &Node(self.heap.transaction(read)?))?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
