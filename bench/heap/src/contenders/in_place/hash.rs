//! A hash table of chained entries. The number of chains does not change.

use super::{Heap, Stripes, Transaction, load};
use crate::Result;
use crate::workloads::{Map, scramble};

const CHAINS: u64 = 1 << 19;
pub const ROOT_BYTES: u64 = CHAINS * 8;

#[repr(C)]
struct Entry {
    key: u64,
    value: u64,
    /// 0: the last.
    next: u64,
}

/// Chains are locked by stripes.
pub struct Table<H> {
    heap: H,
    stripes: Stripes,
}

impl<H: Heap> Table<H> {
    pub fn new(heap: H) -> Table<H> {
        Table { heap, stripes: Stripes::new() }
    }

    fn chain(key: u64) -> u64 {
        scramble(key) % CHAINS
    }

    /// The offset of the link to a chain's first entry.
    fn head(&self, chain: u64) -> u64 {
        self.heap.root() + chain * 8
    }

    /// What a link says.
    fn link(&self, at: u64) -> u64 {
        // SAFETY: the offset of a link of a locked chain.
        unsafe { self.heap.at(at).cast::<u64>().read() }
    }

    fn entry(&self, offset: u64) -> &Entry {
        // SAFETY: the offset of an entry of a locked chain.
        unsafe { &*self.heap.at(offset).cast::<Entry>() }
    }

    fn add(&self, transaction: &mut H::Transaction<'_>, key: u64, value: u64) -> Result<()> {
        let head = self.head(Self::chain(key));
        let entry = Entry { key, value, next: self.link(head) };
        let offset = transaction.allocate(size_of::<Entry>())?;
        let link = transaction.change(head, 8)?.cast::<u64>();
        // SAFETY: a new entry, and the link of a locked chain.
        unsafe {
            self.heap.at(offset).cast::<Entry>().write(entry);
            link.write(offset);
        }
        Ok(())
    }
}

impl<H: Heap> Map for Table<H> {
    fn load(&self, pairs: &mut dyn Iterator<Item = (u64, u64)>) -> Result<()> {
        load(&self.heap, pairs, |transaction, key, value| self.add(transaction, key, value))
    }

    fn insert(&self, key: u64, value: u64) -> Result<()> {
        let chain = Self::chain(key);
        let _guard = self.stripes.lock(chain);
        let mut next = self.link(self.head(chain));
        while next != 0 {
            let entry = self.entry(next);
            if entry.key == key {
                return Err(format!("the key {key} is there already").into());
            }
            next = entry.next;
        }
        self.heap.update(|transaction| self.add(transaction, key, value))
    }

    fn delete(&self, key: u64) -> Result<bool> {
        let chain = Self::chain(key);
        let _guard = self.stripes.lock(chain);
        let mut link = self.head(chain);
        loop {
            let offset = self.link(link);
            if offset == 0 {
                return Ok(false);
            }
            if self.entry(offset).key == key {
                break;
            }
            link = offset + std::mem::offset_of!(Entry, next) as u64;
        }
        self.heap.update(|transaction| {
            let offset = self.link(link);
            let next = self.entry(offset).next;
            // SAFETY: a link of a locked chain.
            unsafe { transaction.change(link, 8)?.cast::<u64>().write(next) };
            transaction.free(offset, size_of::<Entry>())?;
            Ok(true)
        })
    }

    fn each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        for chain in 0..CHAINS {
            let mut next = self.link(self.head(chain));
            while next != 0 {
                let entry = self.entry(next);
                each(entry.key, entry.value)?;
                next = entry.next;
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.heap.close()
    }
}
