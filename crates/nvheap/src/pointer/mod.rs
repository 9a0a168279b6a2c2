//! Pointers: from object to object, and from a program to objects.
//!
//! | pointer | lies in | keeps its object |
//! |---|---|---|
//! | [`PBox`] | the heap | alone |
//! | [`Strong`] | the heap | with others, counted |
//! | [`Weak`] | the heap | not; can be upgraded while the object lives |
//! | [`Handle`] | the program | as long as the program runs |
//!
//! A pointer in the heap is 8 bytes: the offset in the file in 48 bits, and the type. It can be made, changed and
//! dropped only inside a transaction, and cannot leave it: it is not `Send`, and everything a transaction borrows and
//! returns must be. A pointer kept in a thread-local variable nevertheless is detected ([`crate::Error::Stray`]).
//! Dropping a pointer releases its reference as part of the transaction.

mod guard;
mod handle;
mod owned;
mod value;
mod weak;

pub use guard::{Read, Write};

use crate::core::Core;
use crate::error::{Error, Result};
use crate::layout::LINE;
use crate::persist::{Brand, Branded, Confined, Persist, block_id};
use crate::tx::{Private, RawTx, freeze, value_at};
pub(crate) use guard::Room;
use std::mem::needs_drop;
use std::num::NonZeroU64;
use std::sync::Weak as WeakArc;

/// The only pointer to an object: dropping it destroys the object when the transaction commits.
#[repr(transparent)]
pub struct PBox<T, H: Brand> {
    word: NonZeroU64,
    /// Neither `Send` nor `Sync`: it cannot leave its transaction.
    of: Confined<T, H>,
}

/// A counted pointer: the object is destroyed when the last one is dropped and the transaction commits.
///
/// Objects that point to each other in a cycle keep each other alive; use [`Weak`] for one of the pointers, or
/// [`crate::Heap::collect_cycles`].
#[repr(transparent)]
pub struct Strong<T, H: Brand> {
    word: NonZeroU64,
    /// Neither `Send` nor `Sync`: it cannot leave its transaction.
    of: Confined<T, H>,
}

/// A pointer that does not keep its object alive.
#[repr(transparent)]
pub struct Weak<T, H: Brand> {
    word: NonZeroU64,
    /// Neither `Send` nor `Sync`: it cannot leave its transaction.
    of: Confined<T, H>,
}

/// A volatile pointer: it may be kept in variables and given to other threads, and keeps its object alive.
///
/// The object outlives its last persistent pointer until its handles are dropped or the program ends: handles are not
/// written to the heap, so a killed program leaks nothing.
pub struct Handle<T, H: Brand> {
    word: NonZeroU64,
    core: WeakArc<Core>,
    of: Branded<T, H>,
}

/// Bits of an offset.
const OFFSET_BITS: u32 = 48;

/// The word of a pointer.
pub(crate) fn pack(at: u64, tag: u16) -> NonZeroU64 {
    NonZeroU64::new(u64::from(tag) << OFFSET_BITS | at).expect("no object lies at 0")
}

pub(crate) fn offset(word: NonZeroU64) -> u64 {
    word.get() & ((1 << OFFSET_BITS) - 1)
}

pub(crate) fn tag(word: NonZeroU64) -> u16 {
    (word.get() >> OFFSET_BITS) as u16
}

/// The number of a type in this heap, beginning with 1.
pub(crate) fn tag_of<T: 'static>(tx: RawTx<'_>, is_array: bool) -> Result<u16> {
    let id = block_id::<T>(is_array);
    match tx.core().types.iter().position(|entry| entry.id == id) {
        Some(index) => Ok(index as u16 + 1),
        None => Err(tx.doom(Error::Invalid(format!(
            "no object of this heap can point to a {}: the type is not reachable from the root",
            std::any::type_name::<T>()
        )))),
    }
}

fn words_of<T>() -> usize {
    size_of::<T>().div_ceil(8)
}

/// A new object with this value.
pub(crate) fn allocate<T: Persist<H>, H: Brand>(tx: RawTx<'_>, value: T) -> Result<NonZeroU64> {
    let tag = tag_of::<T>(tx, false)?;
    let (at, data) = tx.allocate(tag, 1, words_of::<T>())?;
    // SAFETY: the private copy has the words of the value; they are zero first, so that those behind it are.
    unsafe {
        std::ptr::write_bytes(data, 0, words_of::<T>());
        data.cast::<T>().write(value);
    }
    Ok(pack(at, tag))
}

/// The value of an object, for reading.
#[inline]
pub(crate) fn read<'t, T: Persist<H>, H: Brand>(tx: RawTx<'t>, word: NonZeroU64) -> Result<Read<'t, T>> {
    let at = offset(word);
    read_in::<T, H>(tx, at, value_at(at), Some(tag(word)))
}

/// The value of an object, or of its first field, for reading, without moving it: it is in `room`, or the private copy.
#[inline]
pub(crate) fn peek<'a, T: Persist<H>, H: Brand>(
    tx: RawTx<'a>,
    word: NonZeroU64,
    room: &'a mut Room<T>,
) -> Result<&'a T> {
    let at = offset(word);
    // SAFETY: the room has the words of the type.
    let private = unsafe { tx.read(at, value_at(at), words_of::<T>(), room.words(), Some(tag(word)))? };
    let data = match private {
        Some(private) if private.borrow.get() < 0 => return Err(tx.doom(Error::Borrowed)),
        Some(private) => private.data,
        None => room.words(),
    };
    is_value::<T, H>(tx, value_at(at), data)?;
    // SAFETY: a value. Callers, which are the collections, change no object while they look at one.
    Ok(unsafe { &*data.cast::<T>() })
}

/// Words of an object whose every pattern is a value, given by their indices.
#[inline(always)]
pub(crate) fn words<T: Persist<H>, H: Brand, const N: usize>(
    tx: RawTx<'_>,
    word: NonZeroU64,
    indices: [usize; N],
) -> Result<[u64; N]> {
    const { assert!(T::ANY_BYTES) }
    if let Some(object) = tx.in_place(offset(word), words_of::<T>(), tag(word))?
        && let Some(words) = object.read(indices)?
    {
        return Ok(words);
    }
    copied_words::<T, H, N>(tx, word, indices)
}

#[inline(never)]
fn copied_words<T: Persist<H>, H: Brand, const N: usize>(
    tx: RawTx<'_>,
    word: NonZeroU64,
    indices: [usize; N],
) -> Result<[u64; N]> {
    let mut room = Room::<T>::new();
    let value = std::ptr::from_ref(peek::<T, H>(tx, word, &mut room)?).cast::<u64>();
    freeze(value.cast_mut());
    assert!(indices.iter().all(|&index| index < words_of::<T>()), "{indices:?}");
    // SAFETY: words of the value.
    Ok(indices.map(|index| unsafe { *value.add(index) }))
}

/// A value that a lock protects, for reading.
#[inline]
pub(crate) fn read_value<'t, T: Persist<H>, H: Brand>(
    tx: RawTx<'t>,
    lock: u64,
    home: u64,
) -> Result<Read<'t, T>> {
    read_in(tx, lock, home, None)
}

#[inline(always)]
fn read_in<'t, T: Persist<H>, H: Brand>(
    tx: RawTx<'t>,
    lock: u64,
    home: u64,
    tag: Option<u16>,
) -> Result<Read<'t, T>> {
    match tx.read_lent(lock, home, words_of::<T>(), tag)? {
        (copy, true) => match is_value::<T, H>(tx, home, copy.data) {
            // SAFETY: the words were copied and are a value.
            Ok(()) => Ok(unsafe { Read::lent(copy) }),
            Err(error) => {
                copy.borrow.set(0);
                Err(error)
            }
        },
        (private, false) => {
            is_value::<T, H>(tx, home, private.data)?;
            Read::shared(private).ok_or_else(|| tx.doom(Error::Borrowed))
        }
    }
}

/// The value of an object, borrowed mutably.
#[inline]
pub(crate) fn write<'t, T: Persist<H>, H: Brand>(tx: RawTx<'t>, word: NonZeroU64) -> Result<Write<'t, T>> {
    let at = offset(word);
    write_in::<T, H, true>(tx, at, value_at(at), tag(word))
}

/// The same of an object of several lines, which are loaded at once: taking the lock would make the others wait.
#[inline]
pub(crate) fn write_node<'t, T: Persist<H>, H: Brand>(
    tx: RawTx<'t>,
    word: NonZeroU64,
) -> Result<Write<'t, T>> {
    let first = offset(word);
    let (memory, mut line) = (&tx.core().memory, first);
    while line < value_at(first) + size_of::<T>() as u64 {
        memory.prefetch(line);
        line += LINE;
    }
    write(tx, word)
}

/// A value that a lock protects, of an array block of type `array`, borrowed mutably.
#[inline]
pub(crate) fn write_value<'t, T: Persist<H>, H: Brand>(
    tx: RawTx<'t>,
    (lock, home): (u64, u64),
    array: u16,
) -> Result<Write<'t, T>> {
    write_in::<T, H, false>(tx, lock, home, array)
}

/// Whether a value that the transaction changes is that of an object.
#[cold]
pub(crate) fn is_value_of<T>(tx: RawTx<'_>, value: &T, word: NonZeroU64) -> Result<bool> {
    let at = offset(word);
    let private = tx.change_of(at, value_at(at), words_of::<T>(), tag(word), Some(tag(word)))?;
    Ok(std::ptr::eq(private.data.cast(), value))
}

/// A value of type `number`: an object, or an element of an array block of that type.
#[inline]
fn write_in<'t, T: Persist<H>, H: Brand, const IS_OBJECT: bool>(
    tx: RawTx<'t>,
    lock: u64,
    home: u64,
    number: u16,
) -> Result<Write<'t, T>> {
    let kind = if needs_drop::<T>() { number } else { 0 };
    let tag = IS_OBJECT.then_some(number);
    let private: Private<'t> = tx.change_of(lock, home, words_of::<T>(), kind, tag)?;
    is_value::<T, H>(tx, home, private.data)?;
    Write::exclusive(private).ok_or_else(|| tx.doom(Error::Borrowed))
}

#[inline]
fn is_value<T: Persist<H>, H: Brand>(tx: RawTx<'_>, home: u64, data: *const u64) -> Result<()> {
    // SAFETY: callers copied the words of the type there.
    match T::ANY_BYTES || unsafe { T::is_valid(data.cast()) } {
        true => Ok(()),
        false => Err(
            tx.distrust(Error::damaged(home, format!("this is not a valid {}", std::any::type_name::<T>())))
        ),
    }
}
