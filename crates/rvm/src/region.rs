//! Regions and transactions for Rust programs: the compiler ensures that a region is not changed outside a
//! transaction, so no range can be missed.

use crate::core::{Core, Flush, Memory, RawTransaction, Restore};
use crate::heap::Words;
use crate::implicit::Watch;
use crate::{Error, Result};
use std::ops::{Deref, Range};
use std::sync::Arc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Types whose values are plain bytes: integers, arrays, and structs that derive these traits of `zerocopy`.
pub trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout {}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Plain for T {}

/// Recoverable memory: a part of a segment. It is read as a slice and changed by transactions.
///
/// Threads share it behind a lock; a transaction that was appended ([`Transaction::commit_later`]) is waited for outside
/// the lock, so that one force serves many threads.
#[derive(Debug)]
pub struct Region {
    core: Arc<Core>,
    /// The watch of the implicit transactions; ended before the memory is unmapped.
    watch: Option<Watch>,
    /// Changed through `&mut self` only.
    memory: Arc<Memory>,
    /// Of the transaction that began on this region, if one is under way; keeps its buffers from one to the next.
    raw: RawTransaction,
}

impl Region {
    pub(crate) fn new(core: Arc<Core>, memory: Memory) -> Region {
        let raw = core.begin(Restore::Yes);
        Region { core, watch: None, memory: Arc::new(memory), raw }
    }

    /// A value at `offset`, which is a multiple of its alignment.
    pub fn get<T: Plain>(&self, offset: usize) -> Result<&T> {
        let bytes = self.get_bytes(offset, size_of::<T>())?;
        T::ref_from_bytes(bytes).map_err(|_| misaligned::<T>(offset))
    }

    /// Begins a transaction that can be undone.
    #[inline(always)]
    pub fn begin(&mut self) -> Transaction<'_> {
        self.begin_with(Restore::Yes)
    }

    /// Begins a transaction; without [`Restore::Yes`] it cannot be aborted.
    #[inline(always)]
    pub fn begin_with(&mut self, restore: Restore) -> Transaction<'_> {
        if self.raw.size() != (0, 0) {
            self.end_forgotten();
        }
        self.raw.begin(restore, &self.memory);
        Transaction { regions: Regions { first: self, others: Vec::new() }, is_under_way: true }
    }

    /// Undoes a transaction that was neither committed nor dropped (`std::mem::forget`).
    #[cold]
    fn end_forgotten(&mut self) {
        // SAFETY: the region is borrowed exclusively, and so were others that the transaction was extended to, until now or
        // until their memory was unmapped, which the transaction holds.
        let _ = unsafe { self.core.abort(&mut self.raw) };
        self.raw.clear();
    }

    /// Lengthens the region to `bytes`, and its segment if need be; the new bytes of a segment are zero. It may move. The
    /// new length is durable when this returns.
    pub fn grow(&mut self, bytes: u64) -> Result<()> {
        self.watch = None;
        self.raw.release(None);
        let memory = Arc::get_mut(&mut self.memory).expect("no transaction is under way");
        self.core.grow(memory, bytes)
    }

    /// Takes memory for the whole region now, so that no transaction waits for the first store to a page (0.5 us, and 3 us where the
    /// file has data). Whatever cannot be taken now is taken then.
    pub fn populate(&self) {
        self.core.populate(&self.memory);
    }

    /// Asks for bytes that a transaction is about to change, and returns at once. A program that knows them before the
    /// transaction begins waits for memory and for the commit before at the same time: 80 ns of a commit to battery RAM whose
    /// transaction changes a row that no cache holds.
    #[inline]
    pub fn prefetch(&self, range: Range<usize>) {
        self.memory.prefetch(range);
    }

    fn get_bytes(&self, offset: usize, bytes: usize) -> Result<&[u8]> {
        let range = offset..offset.saturating_add(bytes);
        self.deref().get(range.clone()).ok_or_else(|| {
            Error::Invalid(format!("the range {range:?} is not in a region of {} B", self.memory.bytes()))
        })
    }
}

fn misaligned<T>(offset: usize) -> Error {
    Error::Invalid(format!("offset {offset} is not a multiple of {} B", align_of::<T>()))
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory changes through `&mut self` only.
        unsafe { self.memory.slice(0..self.memory.bytes()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.core.unmap(&self.memory);
    }
}

/// The region a transaction began on, and those it was extended to.
#[derive(Debug)]
struct Regions<'r> {
    first: &'r mut Region,
    others: Vec<&'r mut Region>,
}

impl Regions<'_> {
    fn get_mut(&mut self, part: Part) -> &mut Region {
        match part.0.checked_sub(1) {
            None => self.first,
            Some(index) => self.others[index],
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Region> {
        std::iter::once(&mut *self.first).chain(self.others.iter_mut().map(|other| &mut **other))
    }

    /// Turns what was changed implicitly into ranges.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    #[inline]
    unsafe fn name_changes(&mut self) -> Result<()> {
        if self.first.watch.is_none() && self.others.is_empty() {
            return Ok(());
        }
        let Region { watch, memory, raw, .. } = &mut *self.first;
        let others = self.others.iter_mut().map(|other| (&mut other.watch, &other.memory));
        for (watch, memory) in std::iter::once((watch, &*memory)).chain(others) {
            if let Some(watch) = watch.as_mut().filter(|watch| watch.is_active()) {
                // SAFETY: as the caller promises.
                unsafe { watch.commit(memory, raw)? };
            }
        }
        Ok(())
    }

    /// Undoes what was changed implicitly.
    ///
    /// # Safety
    /// The regions are borrowed exclusively.
    unsafe fn undo_changes(&mut self) {
        for region in self.all() {
            if let Some(watch) = region.watch.as_mut().filter(|watch| watch.is_active()) {
                // SAFETY: as the caller promises.
                unsafe { watch.undo(&region.memory) };
            }
        }
    }
}

/// A region that a transaction has been extended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(usize);

impl Part {
    /// The region that the transaction was begun on.
    pub const FIRST: Part = Part(0);
}

/// A transaction. Dropped without a commit, it is undone.
#[derive(Debug)]
pub struct Transaction<'r> {
    regions: Regions<'r>,
    is_under_way: bool,
}

/// A commit whose record is in memory. Durable after [`Pending::wait`], or after any later commit with flush.
#[derive(Debug)]
#[must_use = "the transaction is not durable yet"]
pub struct Pending {
    /// The log, and where the record ends in it; `None`: it is durable already.
    record: Option<(Arc<Core>, u64)>,
}

impl Pending {
    /// Returns once the transaction is durable; an error if the log failed before.
    #[inline]
    pub fn wait(self) -> Result<()> {
        match self.record {
            None => Ok(()),
            Some((core, position)) => core.wait_for(position),
        }
    }
}

impl<'r> Transaction<'r> {
    /// Extends the transaction to another region of the same log.
    pub fn include(&mut self, region: &'r mut Region) -> Result<Part> {
        if !Arc::ptr_eq(&region.core, &self.regions.first.core) {
            return Err(Error::Invalid("a transaction cannot change regions of two logs".into()));
        }
        self.regions.others.push(region);
        Ok(Part(self.regions.others.len()))
    }

    /// A region as the transaction sees it.
    pub fn region(&self, part: Part) -> &Region {
        match part.0.checked_sub(1) {
            None => self.regions.first,
            Some(index) => self.regions.others[index],
        }
    }

    /// Some bytes of the first region, to be changed: they are part of the commit.
    #[inline(always)]
    pub fn set_range(&mut self, range: Range<usize>) -> Result<&mut [u8]> {
        self.set_range_in(Part::FIRST, range)
    }

    /// Makes a whole region writable, without ranges: page protection notices what is changed until the transaction ends,
    /// and only the bytes that differ are logged. What it costs and what must be known: [`crate::implicit`].
    pub fn implicit(&mut self, part: Part) -> Result<&mut [u8]> {
        let region = self.regions.get_mut(part);
        // SAFETY: the memory is private, and the region ends the watch before it is unmapped or moved.
        unsafe { Watch::begin(&mut region.watch, &region.memory)? };
        // SAFETY: the regions are borrowed exclusively until the transaction ends.
        Ok(unsafe { region.memory.slice_mut(0..region.memory.bytes()) })
    }

    /// Some bytes of a region, to be changed: they are part of the commit.
    #[inline(always)]
    pub fn set_range_in(&mut self, part: Part, range: Range<usize>) -> Result<&mut [u8]> {
        let first = &mut *self.regions.first;
        let (watch, memory) = match part.0.checked_sub(1) {
            None => (&first.watch, &first.memory),
            Some(index) => (&self.regions.others[index].watch, &self.regions.others[index].memory),
        };
        if watch.as_ref().is_some_and(Watch::is_active) {
            memory.check(&range)?;
            // SAFETY: as below; the range is in the region.
            return Ok(unsafe { memory.slice_mut(range) });
        }
        // SAFETY: the regions are borrowed exclusively until the transaction ends, and the range has been checked.
        unsafe {
            first.raw.set_range(memory, range.clone())?;
            Ok(memory.slice_mut(range))
        }
    }

    /// Copies `data` into the first region and makes it part of the commit.
    #[inline(always)]
    pub fn write(&mut self, offset: usize, data: &[u8]) -> Result<()> {
        self.set_range(offset..offset.saturating_add(data.len()))?.copy_from_slice(data);
        Ok(())
    }

    /// A value in the first region, to be changed. Its offset is a multiple of its alignment.
    #[inline(always)]
    pub fn get_mut<T: Plain>(&mut self, offset: usize) -> Result<&mut T> {
        if !offset.is_multiple_of(align_of::<T>()) {
            return Err(misaligned::<T>(offset));
        }
        let bytes = self.set_range(offset..offset.saturating_add(size_of::<T>()))?;
        T::mut_from_bytes(bytes).map_err(|_| misaligned::<T>(offset))
    }

    /// Says that what it has changed so far will most likely stay as it is: a hybrid log begins to write it to its disk, if it is large,
    /// so that the commit waits less. Later changes may still be anything; those before these ranges, or touching them, are waste.
    pub fn write_ahead(&mut self) -> Result<()> {
        let Region { core, raw, .. } = &mut *self.regions.first;
        // SAFETY: the regions are borrowed exclusively until the transaction ends.
        unsafe { core.write_ahead(raw) }
    }

    /// Commits and waits until the transaction is durable. If the log fails meanwhile, its changes stay in memory, and it
    /// may or may not be found when the log is opened again; after any other error it is undone.
    pub fn commit(self) -> Result<()> {
        self.end(Flush::Yes)
    }

    /// Commits without waiting: durable with a later flush ([`Flush::No`]).
    pub fn commit_no_flush(self) -> Result<()> {
        self.end(Flush::No)
    }

    /// Commits, so that the region can be used again before the transaction is durable. Who waits shares the force with
    /// all others that wait.
    #[inline]
    pub fn commit_later(mut self) -> Result<Pending> {
        // SAFETY: the regions are borrowed exclusively.
        let position = unsafe {
            self.regions.name_changes()?;
            let Region { core, raw, .. } = &mut *self.regions.first;
            core.append(raw, Flush::Yes)?
        };
        self.has_ended();
        let core = &self.regions.first.core;
        Ok(Pending { record: (!core.is_durable(position)).then(|| (core.clone(), position)) })
    }

    /// Notes that the transaction has been committed.
    #[inline]
    fn has_ended(&mut self) {
        self.is_under_way = false;
        if !self.regions.others.is_empty() {
            self.release();
        }
    }

    /// Undoes the transaction. Fails if it began without restore.
    pub fn abort(mut self) -> Result<()> {
        self.undo()
    }

    /// Undoes the changes and ends the transaction, even if that fails.
    fn undo(&mut self) -> Result<()> {
        self.is_under_way = false;
        // SAFETY: the regions are borrowed exclusively.
        let undone = unsafe {
            self.regions.undo_changes();
            let Region { core, raw, .. } = &mut *self.regions.first;
            core.abort(raw)
        };
        self.release();
        undone
    }

    /// Holds no other region's memory: that can grow again.
    #[inline]
    fn release(&mut self) {
        let Region { raw, memory, .. } = &mut *self.regions.first;
        raw.clear();
        raw.release(Some(memory));
    }

    fn end(mut self, flush: Flush) -> Result<()> {
        // SAFETY: the regions are borrowed exclusively.
        unsafe {
            self.regions.name_changes()?;
            let Region { core, raw, .. } = &mut *self.regions.first;
            core.commit(raw, flush)?;
        }
        self.has_ended();
        Ok(())
    }
}

/// The words of the first region, for a heap that fills it.
impl Words for Transaction<'_> {
    fn bytes(&self) -> u64 {
        self.regions.first.memory.bytes() as u64
    }

    fn get(&self, at: u64) -> u64 {
        *self.regions.first.get(at as usize).expect("a word of the region")
    }

    fn set(&mut self, at: u64, word: u64) -> Result<()> {
        *self.get_mut(at as usize)? = word;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_under_way {
            // Without restore it cannot be undone: what it changed stays in memory and out of the log.
            let _ = self.undo();
        }
    }
}
