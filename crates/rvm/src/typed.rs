//! A heap of typed objects that logs mutably borrowed objects: implicit logging without signals.
//!
//! [`TypedHeap::get_mut`] logs the whole object (with [`crate::Options::diff`], its changed bytes), so that no change
//! can be missed, and programs name objects instead of ranges. Blocks come from [`crate::heap`].
//!
//! ```
//! use nvlab_rvm::typed::TypedHeap;
//! # fn example(region: &mut nvlab_rvm::Region) -> nvlab_rvm::heap::Result<()> {
//! let mut transaction = region.begin();
//! let heap = TypedHeap::create(&mut transaction)?;
//! let account = heap.insert(&mut transaction, [100_u64, 0])?;
//! heap.get_mut(&mut transaction, account)?[0] -= 30;
//! transaction.commit()?;
//! assert_eq!(heap.get(region, account)?, &[70, 0]);
//! # Ok(())
//! # }
//! ```

use crate::heap::{Heap, Result, Words};
use crate::region::{Part, Plain, Region, Transaction};
use std::fmt;
use std::marker::PhantomData;

const CHUNK_BYTES: u64 = 32;
const LISTS: u64 = 32;

/// Where an object lies. It may be kept in other objects as its offset.
pub struct Handle<T> {
    at: u64,
    of: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// The handle of an offset that [`Handle::offset`] returned.
    pub fn from_offset(at: u64) -> Handle<T> {
        Handle { at, of: PhantomData }
    }

    /// The offset in the region. Never 0.
    pub fn offset(self) -> u64 {
        self.at
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.at)
    }
}

/// A heap that fills the first region of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct TypedHeap(Heap);

impl TypedHeap {
    /// Makes the whole region an empty heap.
    pub fn create(transaction: &mut Transaction) -> Result<TypedHeap> {
        Heap::create(transaction, CHUNK_BYTES, LISTS).map(TypedHeap)
    }

    /// Opens the heap that [`TypedHeap::create`] made.
    pub fn open(transaction: &Transaction) -> Result<TypedHeap> {
        Heap::open(transaction).map(TypedHeap)
    }

    /// A new object. Its alignment is at most 16.
    pub fn insert<T: Plain>(&self, transaction: &mut Transaction, value: T) -> Result<Handle<T>> {
        let at = self.0.allocate(transaction, size_of::<T>() as u64)?;
        transaction.write(at as usize, value.as_bytes())?;
        Ok(Handle::from_offset(at))
    }

    /// Frees an object; its handle must not be used any more.
    pub fn remove<T>(&self, transaction: &mut Transaction, object: Handle<T>) -> Result<()> {
        self.0.free(transaction, object.at)
    }

    /// The object that a handle names; an error if it is not within the region.
    pub fn get<'r, T: Plain>(&self, region: &'r Region, object: Handle<T>) -> Result<&'r T> {
        Ok(region.get(object.at as usize)?)
    }

    /// An object as a transaction sees it.
    pub fn see<'t, T: Plain>(&self, transaction: &'t Transaction, object: Handle<T>) -> Result<&'t T> {
        self.get(transaction.region(Part::FIRST), object)
    }

    /// An object, to be changed: all of it is part of the commit.
    pub fn get_mut<'t, T: Plain>(
        &self,
        transaction: &'t mut Transaction,
        object: Handle<T>,
    ) -> Result<&'t mut T> {
        Ok(transaction.get_mut(object.at as usize)?)
    }

    /// Checks the blocks of the heap, and returns the bytes in use.
    pub fn check(&self, words: &impl Words) -> Result<u64> {
        self.0.check(words)?;
        Ok(self.0.statistics(words).used_bytes)
    }
}
