//! Which values can be stored in a heap, and what the heap knows about them.
//!
//! A value of a heap is bytes in a file that is mapped at another address next time, by another build of the program,
//! possibly after the file was changed by other means. So its type has a fixed layout (`repr(C)`), holds nothing that
//! is only meaningful in this process, changes only through `&mut`, and can tell whether bytes are a valid value.

use crate::hash::hash_bytes;
use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::{needs_drop, offset_of};
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64,
};

/// The type of a heap: an empty type that names it, so that pointers into one heap cannot be stored in another.
///
/// Several heaps of a brand may be open; a thread runs a transaction on one of them at a time, so that pointers are
/// not mixed up.
pub trait Brand: Sized + 'static {
    /// The object from which all others are reached.
    type Root: Persist<Self>;
}

/// A pointer in a value that its object counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Which word of the value it is.
    pub word: u32,
    pub is_weak: bool,
}

/// A type as the heap knows it, without the Rust type.
#[derive(Clone, Debug)]
pub(crate) struct TypeEntry {
    pub id: TypeId,
    pub name: &'static str,
    pub bytes: usize,
    /// An array block of elements of this type instead of one object.
    pub is_array: bool,
    /// Whether values hold pointers.
    pub needs_drop: bool,
    /// Which words of a value are counted pointers.
    pub pointers: Vec<Counted>,
    /// Releases what a value points to.
    pub drop: unsafe fn(*mut u8),
    pub is_valid: unsafe fn(*const u8) -> bool,
    /// The layout as text, from which the fingerprint is computed. `inspect::schema` has the grammar.
    pub shape: String,
}

/// The types as stored in the file: a line for each with its name and its layout.
pub(crate) fn words(types: &[TypeEntry]) -> String {
    types.iter().map(|entry| format!("{}\t{}\n", entry.name, entry.shape)).collect()
}

/// Identifies the layouts of all types of a heap.
pub(crate) fn fingerprint<'s>(shapes: impl Iterator<Item = &'s str>) -> u64 {
    shapes.fold(1, |hash, shape| hash_bytes(hash, shape.as_bytes()))
}

/// Prefix of the name of a `NonZero` integer. No other name contains this character.
pub(crate) const NON_ZERO: &str = "nonzero-";

/// Collects the types of a heap, beginning with its root.
#[derive(Debug, Default)]
pub struct Shape {
    pub(crate) types: Vec<TypeEntry>,
    /// The type that is being described, so far.
    text: String,
}

/// Makes a type neither `Send` nor `Sync` and bound to one brand: it cannot leave a transaction.
pub(crate) type Confined<T, H> = PhantomData<(*const T, fn(H) -> H)>;
/// Makes a type bound to one brand and nothing else.
pub(crate) type Branded<T, H> = PhantomData<fn(T, H) -> (T, H)>;

/// The identity of the array block of a type, beside that of the type itself.
struct ArrayOf<T>(PhantomData<T>);

/// Identifies objects or array blocks of a type.
pub(crate) fn block_id<T: 'static>(is_array: bool) -> TypeId {
    if is_array { TypeId::of::<ArrayOf<T>>() } else { TypeId::of::<T>() }
}

unsafe fn drop_value<T>(at: *mut u8) {
    // SAFETY: the caller has a valid value of this type there and does not use it afterwards.
    unsafe { at.cast::<T>().drop_in_place() }
}

unsafe fn is_value<T: Persist<H>, H: Brand>(at: *const u8) -> bool {
    // SAFETY: passed on.
    unsafe { T::is_valid(at.cast()) }
}

/// A value that can be stored in heaps of brand `H`. Use `#[derive(Persist)]`.
///
/// # Safety
/// `describe` names every field; `is_valid` is true only for values; no bytes of a value are changed through `&Self`; its
/// alignment is at most 8.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in a heap of brand `{H}`",
    label = "not persistent in `{H}`",
    note = "references, boxes, strings and raw pointers mean nothing after a restart: use `Strong`, `PBox`, `PVec` or `PString`",
    note = "a pointer into another heap cannot be stored in this one",
    note = "tuples and `Option`s of values have no fixed layout: use `Pair` or a struct, and `Maybe`; `u128` is aligned to 16 bytes: use `U128`",
    note = "a type of your own needs `#[derive(Persist)]` and `#[repr(C)]`; with pointers in it also `#[persist(heap = ...)]`"
)]
pub unsafe trait Persist<H: Brand>: Sized + 'static {
    /// Whether every pattern of bytes is a value.
    #[doc(hidden)]
    const ANY_BYTES: bool;

    /// Describes the layout, and registers the types it points to.
    #[doc(hidden)]
    fn describe(shape: &mut Shape);

    /// Whether the bytes at `at` are a value.
    ///
    /// # Safety
    /// `at` is aligned, and size_of::<Self>() initialised bytes are readable there.
    #[doc(hidden)]
    unsafe fn is_valid(at: *const Self) -> bool;
}

impl Shape {
    /// Every type that a heap of this brand can hold.
    pub(crate) fn of<H: Brand>() -> Shape {
        let mut shape = Shape::default();
        shape.number::<H::Root, H>(false);
        shape
    }

    /// Bytes from one element of an array block to the next, for each type; 0 for objects.
    pub(crate) fn strides(&self) -> impl Iterator<Item = u64> {
        self.types.iter().map(|entry| if entry.is_array { entry.bytes.next_multiple_of(8) as u64 } else { 0 })
    }

    /// Identifies the types of a heap.
    pub(crate) fn fingerprint(&self) -> u64 {
        fingerprint(self.types.iter().map(|entry| entry.shape.as_str()))
    }

    /// True if a file with this fingerprint has these types. Older versions of this crate described `NonZero`
    /// integers as their integers.
    pub(crate) fn is_of(&self, kept: u64) -> bool {
        kept == self.fingerprint() || kept == self.older_fingerprint()
    }

    pub(crate) fn older_fingerprint(&self) -> u64 {
        let older: Vec<String> = self.types.iter().map(|entry| entry.shape.replace(NON_ZERO, "")).collect();
        fingerprint(older.iter().map(String::as_str))
    }

    /// A value whose fields the heap need not know.
    #[doc(hidden)]
    pub fn leaf(&mut self, name: &str) {
        self.text.push_str(name);
        self.text.push(';');
    }

    /// Begins a type of the program, or of this library: those begin with a dot.
    #[doc(hidden)]
    pub fn begin(&mut self, kind: &str, version: u32, bytes: usize) {
        self.text.push_str(&format!("{kind} v{version} {bytes}{{"));
    }

    /// A field of the current type.
    #[doc(hidden)]
    pub fn field<T: Persist<H>, H: Brand>(&mut self, name: &str, offset: usize) {
        const { assert!(align_of::<T>() <= 8, "values in a heap are aligned to at most 8 bytes") }
        self.text.push_str(&format!("{name}@{offset}:"));
        T::describe(self);
    }

    /// Begins a variant with fields.
    #[doc(hidden)]
    pub fn begin_variant(&mut self, name: &str, number: &dyn std::fmt::Display) {
        self.text.push_str(&format!("{name}={number}{{"));
    }

    /// A field of the variant. Which words of an object are pointers must not depend on the contents of others.
    #[doc(hidden)]
    pub fn field_of_variant<T: Persist<H>, H: Brand>(&mut self, name: &str, offset: usize) {
        const {
            assert!(
                !needs_drop::<T>(),
                "a field of a persistent enum holds no pointer: use a struct with a kind and `Option`s of pointers"
            )
        }
        self.field::<T, H>(name, offset);
    }

    /// Ends the current type or variant.
    #[doc(hidden)]
    pub fn end(&mut self) {
        self.text.push('}');
    }

    /// A pointer to objects of `T`, at the current field.
    pub(crate) fn points_to<T: Persist<H>, H: Brand>(&mut self, kind: &str) {
        let number = self.number::<T, H>(false);
        self.leaf(&format!("{kind}#{number}"));
    }

    /// The number of a type, or of its array blocks. One that is new is described first.
    pub(crate) fn number<T: Persist<H>, H: Brand>(&mut self, is_array: bool) -> usize {
        const { assert!(align_of::<T>() <= 8, "values in a heap are aligned to at most 8 bytes") }
        let id = block_id::<T>(is_array);
        self.types.iter().position(|known| known.id == id).unwrap_or_else(|| {
            let index = self.types.len();
            self.types.push(TypeEntry {
                id,
                name: std::any::type_name::<T>(),
                bytes: size_of::<T>(),
                is_array,
                needs_drop: needs_drop::<T>(),
                pointers: Vec::new(),
                drop: drop_value::<T>,
                is_valid: is_value::<T, H>,
                shape: String::new(),
            });
            let outer = std::mem::take(&mut self.text);
            T::describe(self);
            let text = std::mem::replace(&mut self.text, outer);
            self.types[index].shape = format!("{}{text}", if is_array { "array of " } else { "" });
            index
        })
    }
}

macro_rules! any_bytes {
    ($($type:ty),*) => {$(
        // SAFETY: every pattern of bytes is a value, and it holds no pointer.
        unsafe impl<H: Brand> Persist<H> for $type {
            const ANY_BYTES: bool = true;
            fn describe(shape: &mut Shape) {
                shape.leaf(stringify!($type));
            }
            unsafe fn is_valid(_: *const Self) -> bool {
                true
            }
        }
    )*};
}
any_bytes!(u8, u16, u32, u64, i8, i16, i32, i64, usize, isize, f32, f64, ());

macro_rules! non_zero {
    ($($type:ty, $leaf:literal;)*) => {$(
        // SAFETY: every pattern of bytes but zeros is a value, and it holds no pointer.
        unsafe impl<H: Brand> Persist<H> for $type {
            const ANY_BYTES: bool = false;
            fn describe(shape: &mut Shape) {
                shape.leaf(&format!("{NON_ZERO}{}", $leaf));
            }
            unsafe fn is_valid(at: *const Self) -> bool {
                // SAFETY: as many initialised bytes.
                unsafe { (*at.cast::<[u8; size_of::<Self>()]>()).iter().any(|byte| *byte != 0) }
            }
        }

        // SAFETY: the same bytes, where zeros stand for `None`, as the language guarantees.
        unsafe impl<H: Brand> Persist<H> for Option<$type> {
            const ANY_BYTES: bool = true;
            fn describe(shape: &mut Shape) {
                shape.leaf($leaf);
            }
            unsafe fn is_valid(_: *const Self) -> bool {
                true
            }
        }
    )*};
}
non_zero! {
    NonZeroU8, "u8"; NonZeroU16, "u16"; NonZeroU32, "u32"; NonZeroU64, "u64";
    NonZeroI8, "i8"; NonZeroI16, "i16"; NonZeroI32, "i32"; NonZeroI64, "i64";
}

// SAFETY: a byte of 0 or 1.
unsafe impl<H: Brand> Persist<H> for bool {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.leaf("bool");
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: one initialised byte.
        unsafe { *at.cast::<u8>() < 2 }
    }
}

// SAFETY: four bytes with a Unicode scalar value.
unsafe impl<H: Brand> Persist<H> for char {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.leaf("char");
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: four initialised bytes, aligned.
        char::from_u32(unsafe { *at.cast::<u32>() }).is_some()
    }
}

// SAFETY: elements follow each other without gaps.
unsafe impl<H: Brand, T: Persist<H>, const N: usize> Persist<H> for [T; N] {
    const ANY_BYTES: bool = T::ANY_BYTES;
    fn describe(shape: &mut Shape) {
        shape.begin(".array", N as u32, size_of::<Self>());
        shape.field::<T, H>("", 0);
        shape.end();
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: each element is inside what the caller answers for.
        T::ANY_BYTES || (0..N).all(|i| unsafe { T::is_valid(at.cast::<T>().add(i)) })
    }
}

/// A pair with the layout of C, for example an entry of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pair<A, B>(
    /// The first.
    pub A,
    /// The second.
    pub B,
);

// SAFETY: both fields are described and checked.
unsafe impl<H: Brand, A: Persist<H>, B: Persist<H>> Persist<H> for Pair<A, B> {
    const ANY_BYTES: bool = A::ANY_BYTES && B::ANY_BYTES;
    fn describe(shape: &mut Shape) {
        shape.begin(".pair", 0, size_of::<Self>());
        shape.field::<A, H>("0", offset_of!(Self, 0));
        shape.field::<B, H>("1", offset_of!(Self, 1));
        shape.end();
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: both fields are inside what the caller answers for.
        unsafe { A::is_valid(&raw const (*at).0) && B::is_valid(&raw const (*at).1) }
    }
}
