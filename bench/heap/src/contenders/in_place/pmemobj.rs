//! libpmemobj: a pool whose root object is the root area.

use super::{Heap, Transaction};
use crate::Result;
use nvlab_bench_stores::pmemobj::{self, Pool};
use std::path::Path;

pub struct Pmemobj(Pool);

impl Heap for Pmemobj {
    type Transaction<'a> = pmemobj::Transaction<'a>;

    fn create(folder: &Path, root_bytes: u64, bytes: u64) -> Result<Pmemobj> {
        Ok(Pmemobj(Pool::create(&folder.join("pool"), bytes, root_bytes)?))
    }

    fn open(folder: &Path, root_bytes: u64) -> Result<Pmemobj> {
        Ok(Pmemobj(Pool::open(&folder.join("pool"), root_bytes)?))
    }

    fn root(&self) -> u64 {
        self.0.root()
    }

    fn at(&self, offset: u64) -> *mut u8 {
        self.0.at(offset)
    }

    fn update<R>(&self, work: impl FnOnce(&mut pmemobj::Transaction<'_>) -> Result<R>) -> Result<R> {
        self.0.transact(work)
    }

    fn persist(&self, offset: u64, bytes: usize) {
        self.0.persist(offset, bytes);
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

impl Transaction for pmemobj::Transaction<'_> {
    fn change(&mut self, offset: u64, bytes: usize) -> Result<*mut u8> {
        self.add(offset, bytes)
    }

    fn fill(&mut self, offset: u64, bytes: usize) -> Result<*mut u8> {
        self.add_without_old(offset, bytes)
    }

    fn allocate(&mut self, bytes: usize) -> Result<u64> {
        pmemobj::Transaction::allocate(self, bytes)
    }

    fn free(&mut self, offset: u64, _: usize) -> Result<()> {
        pmemobj::Transaction::free(self, offset)
    }
}
