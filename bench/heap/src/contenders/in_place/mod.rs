//! Structures in mapped memory: an array, tables, a B-tree, a hash table and a graph, written once over [`Heap`], which is plain
//! memory ([`Plain`]) or a pool of libpmemobj ([`Pmemobj`]). So contenders differ in what makes a change durable and
//! nothing else.
//!
//! The map structures are those that libpmemobj's examples have: a B-tree of order 8 that is split and merged on the way
//! down, and a hash table of chained entries.

mod arrays;
mod hash;
mod plain;
#[cfg(has_pmemobj)]
mod pmemobj;
mod tree;

pub use plain::{Plain, count_lines, lines};
#[cfg(has_pmemobj)]
pub use pmemobj::Pmemobj;

use super::{Contender, Sort, Start};
use crate::Result;
use crate::workloads::{Bank, Graph, Map, Swaps};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Mapped memory with transactions. Offsets count from its start; 0 is nothing. It isolates no threads.
pub trait Heap: Send + Sync + Sized {
    type Transaction<'a>: Transaction;

    /// With a root area of zeros, and room for `bytes` in all.
    fn create(folder: &Path, root_bytes: u64, bytes: u64) -> Result<Self>;
    fn open(folder: &Path, root_bytes: u64) -> Result<Self>;
    /// The offset of the root area.
    fn root(&self) -> u64;
    /// The address of an offset.
    fn at(&self, offset: u64) -> *mut u8;
    /// Does a transaction: complete, in the sense of the heap, when this returns.
    fn update<R>(&self, work: impl FnOnce(&mut Self::Transaction<'_>) -> Result<R>) -> Result<R>;
    /// Makes bytes durable that were changed outside transactions.
    fn persist(&self, offset: u64, bytes: usize);
    fn close(self) -> Result<()>;
}

/// A transaction of this thread.
pub trait Transaction {
    /// The address of bytes that will be changed.
    fn change(&mut self, offset: u64, bytes: usize) -> Result<*mut u8>;
    /// The same for bytes that mean nothing if the transaction is undone.
    fn fill(&mut self, offset: u64, bytes: usize) -> Result<*mut u8>;
    /// Uninitialised memory at a multiple of 16.
    fn allocate(&mut self, bytes: usize) -> Result<u64>;
    fn free(&mut self, offset: u64, bytes: usize) -> Result<()>;
}

/// A kind of heap as a contender.
pub struct InPlace<H>(PhantomData<fn() -> H>);

impl<H> InPlace<H> {
    pub const NEW: InPlace<H> = InPlace(PhantomData);
}

/// Bytes beside the root area: what maps allocate, logs, the library's own data.
const EXTRA_BYTES: u64 = 256 << 20;

fn heap<H: Heap>(folder: &Path, start: Start, root_bytes: u64) -> Result<H> {
    match start {
        Start::Create => H::create(folder, root_bytes, root_bytes + root_bytes / 16 + EXTRA_BYTES),
        Start::Open => H::open(folder, root_bytes),
    }
}

impl<H: Heap + 'static> Contender for InPlace<H> {
    fn swaps(&self, folder: &Path, start: Start) -> Result<Box<dyn Swaps>> {
        Ok(Box::new(arrays::Elements::new(heap::<H>(folder, start, arrays::ELEMENTS_BYTES)?)))
    }

    fn bank(&self, folder: &Path, start: Start, history_rows: u64) -> Result<Box<dyn Bank>> {
        let heap = heap::<H>(folder, start, arrays::bank_bytes(history_rows))?;
        Ok(Box::new(arrays::Tables::new(heap, history_rows)))
    }

    fn map(&self, folder: &Path, start: Start, sort: Sort) -> Result<Box<dyn Map>> {
        Ok(match sort {
            Sort::Sorted => Box::new(tree::Tree::new(heap::<H>(folder, start, tree::ROOT_BYTES)?)),
            Sort::Hashed => Box::new(hash::Table::new(heap::<H>(folder, start, hash::ROOT_BYTES)?)),
        })
    }

    fn graph(&self, folder: &Path, start: Start) -> Result<Box<dyn Graph>> {
        Ok(Box::new(arrays::Nodes::new(heap::<H>(folder, start, arrays::NODES_BYTES)?)))
    }
}

/// Locks for many objects: an object's is that of its number modulo their count.
struct Stripes(Vec<Mutex<()>>);

impl Stripes {
    fn new() -> Stripes {
        Stripes((0..1024).map(|_| Mutex::default()).collect())
    }

    fn lock(&self, object: u64) -> MutexGuard<'_, ()> {
        let stripe = (object % self.0.len() as u64) as usize;
        self.0[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Two at a time, in the order of the locks.
    fn lock_both(&self, one: u64, other: u64) -> (MutexGuard<'_, ()>, Option<MutexGuard<'_, ()>>) {
        let [one, other] = [one, other].map(|object| object % self.0.len() as u64);
        (self.lock(one.min(other)), (one != other).then(|| self.lock(one.max(other))))
    }
}

/// The lock of a whole structure.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Entries that loading inserts in a transaction.
const LOAD: usize = 1000;

/// Adds all pairs, many in a transaction.
fn load<H: Heap>(
    heap: &H,
    pairs: &mut dyn Iterator<Item = (u64, u64)>,
    add: impl Fn(&mut H::Transaction<'_>, u64, u64) -> Result<()>,
) -> Result<()> {
    let mut pairs = pairs.peekable();
    while pairs.peek().is_some() {
        heap.update(|transaction| {
            pairs.by_ref().take(LOAD).try_for_each(|(key, value)| add(transaction, key, value))
        })?;
    }
    Ok(())
}
