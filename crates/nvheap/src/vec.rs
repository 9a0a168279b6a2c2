//! A growable array.

use crate::error::{Error, Result};
use crate::layout::LINE;
use crate::persist::{Brand, Confined, Persist, Shape};
use crate::pointer::{Read, Write, offset, pack, read_value, tag, tag_of, write_value};
use crate::tx::{ArrayShape, LIVE_AT, RawTx, Tx, freeze, with_current};
use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop, offset_of};
use std::num::NonZeroU64;

/// A growable array whose elements are locked and copied one by one, or, in a large one, about 1 KiB of them at a
/// time: an element of a large array costs as much as a small object. Elements take multiples of 8 bytes.
///
/// Its length is part of the object that contains it: `push` needs a mutable borrow of that object, `write` only of
/// the element.
#[repr(C)]
pub struct PVec<T, H: Brand> {
    block: Option<NonZeroU64>,
    len: u64,
    capacity: u64,
    /// Neither `Send` nor `Sync`: it cannot leave its transaction.
    of: Confined<T, H>,
}

impl<T, H: Brand> PVec<T, H> {
    /// An empty array, which takes no block.
    pub const fn new() -> Self {
        PVec { block: None, len: 0, capacity: 0, of: PhantomData }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True if it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One whose words were read: it owns nothing.
    pub(crate) fn lent([block, len, capacity]: [u64; 3]) -> ManuallyDrop<Self> {
        ManuallyDrop::new(PVec { block: NonZeroU64::new(block), len, capacity, of: PhantomData })
    }

    /// Its block and length: what differs when it was replaced by another in this transaction.
    pub(crate) fn state(&self) -> (Option<NonZeroU64>, u64) {
        (self.block, self.len)
    }

    /// The number of elements that fit without another block.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }
}

impl<T, H: Brand> Default for PVec<T, H> {
    fn default() -> Self {
        Self::new()
    }
}

fn stride<T>() -> u64 {
    (size_of::<T>() as u64).next_multiple_of(8)
}

impl<T: Persist<H>, H: Brand> PVec<T, H> {
    /// `len` elements returned by `value`.
    pub fn from_fn(tx: &Tx<'_, H>, len: usize, mut value: impl FnMut(usize) -> Result<T>) -> Result<Self> {
        let mut vec = PVec::new();
        vec.reserve(tx, len)?;
        // A large new block is filled in place, in lines; a small one is part of the record.
        let shape = vec.shape(tx.raw)?;
        if let Some(block) = vec.block.filter(|_| !shape.is_small()) {
            vec.fill(tx, block, shape, len, &mut value)?;
        } else {
            for i in 0..len {
                vec.push(tx, value(i)?)?;
            }
        }
        Ok(vec)
    }

    /// Fills a large block that this transaction has made.
    fn fill(
        &mut self,
        tx: &Tx<'_, H>,
        block: NonZeroU64,
        shape: ArrayShape,
        len: usize,
        value: &mut impl FnMut(usize) -> Result<T>,
    ) -> Result<()> {
        // Whole lines: as many elements as fill them.
        const ELEMENTS: usize = 64;
        let stride = stride::<T>() as usize / 8;
        let mut line = Filled::<T> { words: vec![0; ELEMENTS * stride], count: 0, of: PhantomData };
        for first in (0..len).step_by(ELEMENTS) {
            let count = ELEMENTS.min(len - first);
            for i in 0..count {
                let value = value(first + i)?;
                // SAFETY: the words of an element, which they are zeroed for.
                unsafe { line.words.as_mut_ptr().add(i * stride).cast::<T>().write(value) };
                line.count = i + 1;
            }
            freeze(line.words.as_mut_ptr());
            line.words[count * stride..].fill(0);
            let used = (count * stride).next_multiple_of(8).min(line.words.len());
            let (_, home) = shape.element(offset(block), first as u64);
            tx.raw.fill_large(home, &line.words[..used])?;
            // From here on they are the array's.
            line.count = 0;
            if needs_drop::<T>() {
                let elements = line.words.chunks(stride).take(count);
                elements.for_each(|element| tx.raw.note_pointers(tag(block), element, -1));
            }
            self.len = (first + count) as u64;
        }
        Ok(())
    }

    /// Makes room for `more` elements.
    pub fn reserve(&mut self, tx: &Tx<'_, H>, more: usize) -> Result<()> {
        let needed = self.len + more as u64;
        if needed <= self.capacity {
            return Ok(());
        }
        self.trust(tx)?;
        let tx = tx.raw;
        let capacity = needed.max(self.capacity * 2).max(4);
        let shape = ArrayShape::new(capacity, stride::<T>());
        let shape =
            shape.ok_or_else(|| tx.doom(Error::Invalid(format!("no array has {capacity} elements"))))?;
        let number = tag_of::<T>(tx, true)?;
        let old = (self.block, self.len, self.shape(tx)?);
        let at = tx.allocate_array(number, shape.bytes(), capacity)?;
        // Without a pointer it would be taken for one that was forgotten.
        self.move_elements(tx, old, at, shape).inspect_err(|_| tx.release_strong(at))?;
        (self.block, self.capacity) = (Some(pack(at, number)), capacity);
        if let Some(old) = old.0 {
            // Its elements have moved: nothing in it is destroyed with it.
            tx.release_strong(offset(old));
        }
        Ok(())
    }

    /// The number that private copies of its elements have.
    fn kind(block: NonZeroU64) -> u16 {
        if needs_drop::<T>() { tag(block) } else { 0 }
    }

    /// Refuses to use it if it is not one of this transaction's.
    #[inline(always)]
    pub(crate) fn trust(&self, tx: &Tx<'_, H>) -> Result<()> {
        self.block.map_or(Ok(()), |block| tx.raw.trust(self, block, false))
    }

    #[inline(always)]
    fn shape(&self, tx: RawTx<'_>) -> Result<ArrayShape> {
        match ArrayShape::new(self.capacity, stride::<T>()).filter(|_| self.len <= self.capacity) {
            Some(shape) => Ok(shape),
            None => Err(self.damaged(tx)),
        }
    }

    #[cold]
    fn damaged(&self, tx: RawTx<'_>) -> Error {
        tx.distrust(Error::damaged(
            0,
            format!("an array of {} elements with room for {}", self.len, self.capacity),
        ))
    }

    #[cold]
    fn out_of_range(&self, tx: RawTx<'_>, index: usize) -> Error {
        tx.doom(Error::Invalid(format!("element {index} of an array of {}", self.len)))
    }

    fn move_elements(
        &self,
        tx: RawTx<'_>,
        (block, len, from): (Option<NonZeroU64>, u64, ArrayShape),
        at: u64,
        to: ArrayShape,
    ) -> Result<()> {
        let Some(block) = block else { return Ok(()) };
        let words = stride::<T>() as usize / 8;
        let (per_line, kind) = (64, Self::kind(block));
        let mut buffer = vec![0_u64; words * per_line];
        for first in (0..len).step_by(per_line) {
            let count = per_line.min((len - first) as usize);
            for i in 0..count {
                let (lock, home) = from.element(offset(block), first + i as u64);
                // The old elements are this transaction's alone: they are about to go.
                tx.lock(lock)?;
                let into = buffer[i * words..].as_mut_ptr();
                // SAFETY: the buffer has the words of each element.
                if let Some(private) = unsafe { tx.read(lock, home, words, into, None)? } {
                    if private.borrow.get() != 0 {
                        return Err(tx.doom(Error::Borrowed));
                    }
                    // SAFETY: as above.
                    unsafe { into.copy_from_nonoverlapping(private.data, words) };
                }
            }
            freeze(buffer.as_mut_ptr());
            buffer[count * words..].fill(0);
            let (_, home) = to.element(at, first);
            if !to.is_small() {
                tx.fill_large(home, &buffer[..(count * words).next_multiple_of(8).min(buffer.len())])?;
                continue;
            }
            for i in 0..count {
                let (lock, home) = to.element(at, first + i as u64);
                let private = tx.place(lock, home, words, kind)?;
                if kind != 0 {
                    tx.note_pointers(kind, &buffer[i * words..], 1);
                }
                // SAFETY: the private copy has the words of an element.
                unsafe { private.data.copy_from_nonoverlapping(buffer[i * words..].as_ptr(), words) };
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn element(&self, tx: RawTx<'_>, index: usize) -> Result<(u64, u64)> {
        self.element_in(tx, self.shape(tx)?, index)
    }

    #[inline(always)]
    fn element_in(&self, tx: RawTx<'_>, shape: ArrayShape, index: usize) -> Result<(u64, u64)> {
        match self.block.filter(|_| (index as u64) < self.len) {
            Some(block) => Ok(shape.element(offset(block), index as u64)),
            None => Err(self.out_of_range(tx, index)),
        }
    }

    /// An element, for reading.
    #[inline]
    pub fn read<'t>(&self, tx: &'t Tx<'_, H>, index: usize) -> Result<Read<'t, T>> {
        self.trust(tx)?;
        self.get(tx, index)
    }

    /// The same of an array that is known to be one of this transaction's.
    #[inline]
    pub(crate) fn get<'t>(&self, tx: &'t Tx<'_, H>, index: usize) -> Result<Read<'t, T>> {
        let (lock, home) = self.element(tx.raw, index)?;
        read_value::<T, H>(tx.raw, lock, home)
    }

    /// The same, where elements are words of which every pattern is a value.
    #[inline]
    pub(crate) fn word(&self, tx: &Tx<'_, H>, index: usize) -> Result<u64> {
        const { assert!(size_of::<T>() == 8 && T::ANY_BYTES) }
        let (lock, home) = self.element(tx.raw, index)?;
        if let Some(element) = tx.raw.value_in_place(lock, home, 1, None)?
            && let Some([word]) = element.read([0])?
        {
            return Ok(word);
        }
        let element = read_value::<T, H>(tx.raw, lock, home)?;
        // SAFETY: eight bytes, all of them initialised.
        Ok(unsafe { *std::ptr::from_ref(&*element).cast::<u64>() })
    }

    /// An element, borrowed mutably. The array itself does not change, so a shared borrow of it suffices.
    #[inline]
    pub fn write<'t>(&self, tx: &'t Tx<'_, H>, index: usize) -> Result<Write<'t, T>> {
        self.trust(tx)?;
        let place = self.element(tx.raw, index)?;
        write_value::<T, H>(tx.raw, place, self.block.map_or(0, tag))
    }

    /// Starts to load an element, which is needed soon.
    #[inline]
    pub fn prefetch(&self, tx: &Tx<'_, H>, index: usize) {
        let shape = ArrayShape::new(self.capacity, stride::<T>());
        if let (Some(block), Some(shape)) = (self.block, shape.filter(|_| (index as u64) < self.len)) {
            Self::prefetch_at(tx.raw, shape.element(offset(block), index as u64));
        }
    }

    #[inline]
    fn prefetch_at(tx: RawTx<'_>, (lock, home): (u64, u64)) {
        tx.core().memory.prefetch(lock);
        // The processor itself gets the rest of a long one.
        let end = home + stride::<T>().min(4 * LINE);
        (home & !(LINE - 1)..end).step_by(LINE as usize).for_each(|line| tx.core().memory.prefetch(line));
    }

    /// Exchanges two elements.
    pub fn swap(&self, tx: &Tx<'_, H>, a: usize, b: usize) -> Result<()> {
        self.trust(tx)?;
        let shape = self.shape(tx.raw)?;
        let places = [self.element_in(tx.raw, shape, a)?, self.element_in(tx.raw, shape, b)?];
        // A lock is a full barrier, which would have one miss wait for the other.
        places.into_iter().for_each(|place| Self::prefetch_at(tx.raw, place));
        if a == b {
            return Ok(());
        }
        let kind = self.block.map_or(0, tag);
        let mut first = write_value::<T, H>(tx.raw, places[0], kind)?;
        let mut second = write_value::<T, H>(tx.raw, places[1], kind)?;
        std::mem::swap(&mut *first, &mut *second);
        Ok(())
    }

    /// Appends an element.
    pub fn push(&mut self, tx: &Tx<'_, H>, value: T) -> Result<()> {
        self.trust(tx)?;
        if self.len == self.capacity {
            self.reserve(tx, 1)?;
        }
        self.len += 1;
        let (lock, home) = self.element(tx.raw, self.len() - 1)?;
        let kind = self.block.map_or(0, Self::kind);
        let private = tx.raw.place(lock, home, stride::<T>() as usize / 8, kind)?;
        // SAFETY: the private copy has the words of an element; what is there is no value yet, and nobody has borrowed it.
        unsafe { private.data.cast::<T>().write(value) };
        Ok(())
    }

    /// Removes the last element and returns it.
    pub fn pop(&mut self, tx: &Tx<'_, H>) -> Result<Option<T>> {
        if self.len == 0 {
            return Ok(None);
        }
        let mut last = self.write(tx, self.len() - 1)?;
        self.len -= 1;
        // SAFETY: the element is not part of the array any more, so this is its only value.
        let value = unsafe { std::ptr::read(&raw mut *last) };
        if needs_drop::<T>() {
            // The pointers are the value's: none stays behind.
            // SAFETY: the bytes of the element, which nobody takes for a value any more.
            unsafe { (&raw mut *last).cast::<u8>().write_bytes(0, size_of::<T>()) };
        }
        Ok(Some(value))
    }

    /// Every element in order, for reading.
    pub fn iter<'t>(&'t self, tx: &'t Tx<'_, H>) -> impl Iterator<Item = Result<Read<'t, T>>> {
        (0..self.len()).map(|index| self.read(tx, index))
    }
}

/// Elements that are still the program's: they are dropped if no more of them can be made.
struct Filled<T> {
    words: Vec<u64>,
    count: usize,
    of: PhantomData<T>,
}

impl<T> Drop for Filled<T> {
    fn drop(&mut self) {
        for i in 0..self.count {
            // SAFETY: so many are values, and nobody uses them any more.
            unsafe {
                self.words.as_mut_ptr().add(i * stride::<T>() as usize / 8).cast::<T>().drop_in_place()
            };
        }
    }
}

impl<T, H: Brand> Drop for PVec<T, H> {
    fn drop(&mut self) {
        let (Some(block), place) = (self.block, (&raw mut self.block).cast()) else { return };
        with_current(TypeId::of::<H>(), |tx| {
            let at = offset(block);
            // SAFETY: the block is not used again: its array is being dropped.
            if !unsafe { tx.trust_dropped(place, block, false) } {
                return;
            }
            if needs_drop::<T>() {
                // The block says how many elements are left to be destroyed.
                match tx.change(at, at + LIVE_AT, 1, 0) {
                    // SAFETY: the private copy has a word.
                    Ok(live) => unsafe { *live.data = self.len },
                    Err(error) => _ = tx.doom(error),
                }
            }
            tx.release_strong(at);
        });
    }
}

impl<T, H: Brand> fmt::Debug for PVec<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PVec(len {})", self.len)
    }
}

// SAFETY: three words, of which every pattern is a value; they are checked when they are used.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for PVec<T, H> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        const { assert!(offset_of!(Self, capacity) == 16) }
        let number = shape.number::<T, H>(true);
        shape.leaf(&format!("vec#{number}"));
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}
