//! The types that lie in a heap: what `nvlab heap dump` shows of it.

use nvlab_nvheap::{Brand, PBTreeMap, PBox, PString, PVec, Persist, Result, Strong, Tx};

/// The brands: one for each heap that may be open at a time.
pub trait Slot: Brand<Root = Dict<Self>> {}

macro_rules! brands {
    ($($name:ident),*) => {
        $(
            pub struct $name;
            impl Brand for $name {
                type Root = Dict<$name>;
            }
            impl Slot for $name {}
        )*
    };
}
brands!(Brand0, Brand1, Brand2, Brand3);

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Persist)]
#[repr(u8)]
pub enum Kind {
    None = 0,
    Bool = 1,
    Integer = 2,
    /// In decimal digits, as a text.
    LongInteger = 3,
    Float = 4,
    Text = 5,
    Bytes = 6,
    List = 7,
    Dict = 8,
}

/// A value: numbers are in `number`, others where their name says.
#[derive(Persist)]
#[persist(heap = H)]
#[repr(C)]
pub struct Value<H: Brand> {
    pub kind: Kind,
    pub number: u64,
    pub text: Option<PBox<Text<H>, H>>,
    pub bytes: Option<PBox<Bytes<H>, H>>,
    pub list: Option<Strong<List<H>, H>>,
    pub dict: Option<Strong<Dict<H>, H>>,
}

#[derive(Persist)]
#[persist(heap = H)]
#[repr(C)]
pub struct Text<H: Brand> {
    pub text: PString<H>,
}

#[derive(Persist)]
#[persist(heap = H)]
#[repr(C)]
pub struct Bytes<H: Brand> {
    pub words: PVec<u64, H>,
    pub len: u64,
}

#[derive(Persist)]
#[persist(heap = H)]
#[repr(C)]
pub struct List<H: Brand> {
    pub items: PVec<Value<H>, H>,
}

#[derive(Persist)]
#[persist(heap = H)]
#[repr(C)]
pub struct Dict<H: Brand> {
    pub entries: PBTreeMap<PString<H>, Value<H>, H>,
}

impl<H: Brand> Dict<H> {
    /// An empty one.
    pub fn new(tx: &Tx<'_, H>) -> Result<Dict<H>> {
        Ok(Dict { entries: PBTreeMap::new(tx)? })
    }
}

impl<H: Brand> Value<H> {
    /// A number, a flag or nothing.
    pub fn plain(kind: Kind, number: u64) -> Value<H> {
        Value { kind, number, text: None, bytes: None, list: None, dict: None }
    }
}
