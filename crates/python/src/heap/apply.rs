//! Operations on dicts and lists, inside a transaction.

use super::locked;
use super::schema::{Bytes, Dict, Kind, List, Slot, Text, Value};
use nvlab_nvheap::{Error, Handle, Heap, PBox, PString, PVec, Result, Strong, Tx};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::sync::Mutex;

/// A value outside a heap, or an object in it. To and from Python as a tuple of a number that says which, and the value: nothing
/// is guessed, and a transaction needs no interpreter.
#[derive(Clone, Debug)]
pub enum Data {
    None,
    Bool(bool),
    Integer(i64),
    LongInteger(String),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Data>),
    Dict(Vec<(String, Data)>),
    /// A list or dict of the heap, by the number it is known by.
    ListAt(u64),
    DictAt(u64),
}

impl<'py> FromPyObject<'_, 'py> for Data {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Data> {
        let (tag, value): (u8, Bound<'py, PyAny>) = object.extract()?;
        Ok(match tag {
            0 => Data::None,
            1 => Data::Bool(value.extract()?),
            2 => Data::Integer(value.extract()?),
            3 => Data::LongInteger(value.extract()?),
            4 => Data::Float(value.extract()?),
            5 => Data::Text(value.extract()?),
            6 => Data::Bytes(value.extract()?),
            7 => Data::List(value.extract()?),
            8 => Data::Dict(value.extract()?),
            9 => Data::ListAt(value.extract()?),
            10 => Data::DictAt(value.extract()?),
            other => return Err(PyValueError::new_err(format!("{other} is not a kind of value"))),
        })
    }
}

impl<'py> IntoPyObject<'py> for Data {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pair = match self {
            Data::None => (0_u8, py.None()).into_pyobject(py),
            Data::Bool(value) => (1_u8, value).into_pyobject(py),
            Data::Integer(value) => (2_u8, value).into_pyobject(py),
            Data::LongInteger(value) => (3_u8, value).into_pyobject(py),
            Data::Float(value) => (4_u8, value).into_pyobject(py),
            Data::Text(value) => (5_u8, value).into_pyobject(py),
            Data::Bytes(value) => (6_u8, PyBytes::new(py, &value)).into_pyobject(py),
            Data::List(value) => (7_u8, value).into_pyobject(py),
            Data::Dict(value) => (8_u8, value).into_pyobject(py),
            Data::ListAt(id) => (9_u8, id).into_pyobject(py),
            Data::DictAt(id) => (10_u8, id).into_pyobject(py),
        };
        Ok(pair?.into_any())
    }
}

/// Where in an object.
#[derive(Clone, Debug, FromPyObject)]
pub enum Key {
    Index(usize),
    Name(String),
}

/// What is to be done with an object: `get`, `set`, `insert`, `delete` at a key; `len`, `names`, `copy`, `clear`.
#[derive(Clone, Debug, FromPyObject)]
pub struct Op(String, u64, Option<Key>, Option<Data>);

/// What came of it.
#[derive(Debug, IntoPyObject)]
pub enum Answer {
    /// A value.
    Value(Data),
    /// The names of a dict, in their order.
    Names(Vec<String>),
    /// How many entries.
    Count(usize),
    /// Whether there was such an entry.
    Found(bool),
}

enum Object<H: Slot> {
    List(Handle<List<H>, H>),
    Dict(Handle<Dict<H>, H>),
}

/// The objects that Python holds, by number; 0 is the root.
pub struct Objects<H: Slot> {
    known: HashMap<u64, Object<H>>,
    next: u64,
}

impl<H: Slot> Objects<H> {
    pub fn new(root: Handle<Dict<H>, H>) -> Objects<H> {
        Objects { known: HashMap::from([(0, Object::Dict(root))]), next: 1 }
    }
}

/// An open heap and what Python holds of it.
pub struct Store<H: Slot> {
    pub objects: Mutex<Objects<H>>,
    pub heap: Heap<H>,
}

/// Lists and dicts inside each other are copied out so deep; a circle has no end.
const DEPTH_MAX: u32 = 200;

impl<H: Slot> Store<H> {
    /// Objects numbered from here on are not known yet.
    pub fn known(&self) -> u64 {
        locked(&self.objects).next
    }

    /// Forgets objects numbered from `first` on.
    pub fn forget_since(&self, first: u64) {
        let mut objects = locked(&self.objects);
        let gone: Vec<Object<H>> =
            objects.known.extract_if(|id, _| *id >= first).map(|(_, object)| object).collect();
        drop(objects);
        drop(gone);
    }

    pub fn release(&self, id: u64) {
        let gone = locked(&self.objects).known.remove(&id);
        drop(gone);
    }

    fn know(&self, object: Object<H>) -> u64 {
        let mut objects = locked(&self.objects);
        let id = objects.next;
        objects.next += 1;
        objects.known.insert(id, object);
        id
    }

    fn object(&self, id: u64) -> Result<Object<H>> {
        match locked(&self.objects).known.get(&id) {
            Some(Object::List(list)) => Ok(Object::List(list.clone())),
            Some(Object::Dict(dict)) => Ok(Object::Dict(dict.clone())),
            None => Err(Error::Invalid("the object was made by a transaction that was undone".into())),
        }
    }

    /// Does one thing.
    pub fn run(&self, tx: &Tx<'_, H>, Op(what, id, key, data): &Op) -> Result<Answer> {
        match (self.object(*id)?, key) {
            (Object::Dict(dict), Some(Key::Name(name))) => self.at_name(tx, &dict, what, name, data.as_ref()),
            (Object::List(list), Some(Key::Index(index))) => {
                self.at_index(tx, &list, what, *index, data.as_ref())
            }
            (Object::Dict(dict), None) => self.whole_dict(tx, &dict, what),
            (Object::List(list), None) => self.whole_list(tx, &list, what),
            _ => Err(Error::Invalid("dicts have names, lists have indexes".into())),
        }
    }

    fn at_name(
        &self,
        tx: &Tx<'_, H>,
        dict: &Handle<Dict<H>, H>,
        what: &str,
        name: &str,
        data: Option<&Data>,
    ) -> Result<Answer> {
        let dict = dict.read(tx)?;
        match (what, data) {
            ("get", _) => match dict.entries.get(tx, name)? {
                Some(value) => Ok(Answer::Value(self.shown(tx, &value)?)),
                None => Ok(Answer::Found(false)),
            },
            ("set", Some(data)) => {
                let (key, value) = (PString::new(tx, name)?, self.stored(tx, data)?);
                Ok(Answer::Found(dict.entries.insert(tx, key, value)?.is_some()))
            }
            ("delete", _) => Ok(Answer::Found(dict.entries.remove(tx, name)?.is_some())),
            _ => Err(unknown(what)),
        }
    }

    fn at_index(
        &self,
        tx: &Tx<'_, H>,
        list: &Handle<List<H>, H>,
        what: &str,
        index: usize,
        data: Option<&Data>,
    ) -> Result<Answer> {
        let len = list.read(tx)?.items.len();
        let is_there = index < len || what == "insert" && index == len;
        if !is_there {
            return Ok(Answer::Found(false));
        }
        match (what, data) {
            ("get", _) => {
                let list = list.read(tx)?;
                let value = list.items.read(tx, index)?;
                return Ok(Answer::Value(self.shown(tx, &value)?));
            }
            ("set", Some(data)) => {
                let value = self.stored(tx, data)?;
                *list.read(tx)?.items.write(tx, index)? = value;
            }
            ("insert", Some(data)) => {
                let value = self.stored(tx, data)?;
                list.write(tx)?.items.push(tx, value)?;
                let list = list.read(tx)?;
                (index..len).rev().try_for_each(|at| list.items.swap(tx, at, at + 1))?;
            }
            ("delete", _) => {
                let shared = list.read(tx)?;
                (index + 1..len).try_for_each(|at| shared.items.swap(tx, at - 1, at))?;
                drop(shared);
                drop(list.write(tx)?.items.pop(tx)?);
            }
            _ => return Err(unknown(what)),
        }
        Ok(Answer::Found(true))
    }

    fn whole_dict(&self, tx: &Tx<'_, H>, dict: &Handle<Dict<H>, H>, what: &str) -> Result<Answer> {
        let dict = dict.read(tx)?;
        match what {
            "len" => Ok(Answer::Count(dict.entries.len(tx)?)),
            "names" => {
                let names = dict.entries.keys(tx).map(|key| key?.get(tx));
                Ok(Answer::Names(names.collect::<Result<_>>()?))
            }
            "copy" => Ok(Answer::Value(copied_dict(tx, &dict, DEPTH_MAX)?)),
            "clear" => dict.entries.clear(tx).map(|()| Answer::Found(true)),
            _ => Err(unknown(what)),
        }
    }

    fn whole_list(&self, tx: &Tx<'_, H>, list: &Handle<List<H>, H>, what: &str) -> Result<Answer> {
        match what {
            "len" => Ok(Answer::Count(list.read(tx)?.items.len())),
            "copy" => {
                let list = list.read(tx)?;
                Ok(Answer::Value(copied_list(tx, &list, DEPTH_MAX)?))
            }
            "clear" => {
                list.write(tx)?.items = PVec::new();
                Ok(Answer::Found(true))
            }
            _ => Err(unknown(what)),
        }
    }

    /// A value as it lies in the heap. What is in the heap already is shared.
    fn stored(&self, tx: &Tx<'_, H>, data: &Data) -> Result<Value<H>> {
        let plain = Value::plain;
        Ok(match data {
            Data::None => plain(Kind::None, 0),
            Data::Bool(value) => plain(Kind::Bool, u64::from(*value)),
            Data::Integer(value) => plain(Kind::Integer, value.cast_unsigned()),
            Data::Float(value) => plain(Kind::Float, value.to_bits()),
            Data::LongInteger(text) => {
                Value { text: Some(text_of(tx, text)?), ..plain(Kind::LongInteger, 0) }
            }
            Data::Text(text) => Value { text: Some(text_of(tx, text)?), ..plain(Kind::Text, 0) },
            Data::Bytes(bytes) => Value { bytes: Some(bytes_of(tx, bytes)?), ..plain(Kind::Bytes, 0) },
            Data::List(items) => {
                let items = PVec::from_fn(tx, items.len(), |at| self.stored(tx, &items[at]))?;
                Value { list: Some(Strong::new(tx, List { items })?), ..plain(Kind::List, 0) }
            }
            Data::Dict(entries) => {
                let dict = Dict::new(tx)?;
                for (name, data) in entries {
                    drop(dict.entries.insert(tx, PString::new(tx, name)?, self.stored(tx, data)?)?);
                }
                Value { dict: Some(Strong::new(tx, dict)?), ..plain(Kind::Dict, 0) }
            }
            Data::ListAt(id) | Data::DictAt(id) => self.shared(tx, *id)?,
        })
    }

    fn shared(&self, tx: &Tx<'_, H>, id: u64) -> Result<Value<H>> {
        let removed = || Error::Invalid("the object was removed from the heap: store a copy of it".into());
        match self.object(id)? {
            Object::List(list) => {
                let list = list.strong(tx)?.ok_or_else(removed)?;
                Ok(Value { list: Some(list), ..Value::plain(Kind::List, 0) })
            }
            Object::Dict(dict) => {
                let dict = dict.strong(tx)?.ok_or_else(removed)?;
                Ok(Value { dict: Some(dict), ..Value::plain(Kind::Dict, 0) })
            }
        }
    }

    /// A value for Python: lists and dicts stay in the heap.
    fn shown(&self, tx: &Tx<'_, H>, value: &Value<H>) -> Result<Data> {
        match (value.kind, &value.list, &value.dict) {
            (Kind::List, Some(list), _) => Ok(Data::ListAt(self.know(Object::List(list.handle(tx)?)))),
            (Kind::Dict, _, Some(dict)) => Ok(Data::DictAt(self.know(Object::Dict(dict.handle(tx)?)))),
            _ => copied(tx, value, 0),
        }
    }
}

fn unknown(what: &str) -> Error {
    Error::Invalid(format!("`{what}` is not an operation"))
}

fn text_of<H: Slot>(tx: &Tx<'_, H>, text: &str) -> Result<PBox<Text<H>, H>> {
    PBox::new(tx, Text { text: PString::new(tx, text)? })
}

fn bytes_of<H: Slot>(tx: &Tx<'_, H>, bytes: &[u8]) -> Result<PBox<Bytes<H>, H>> {
    let word = |at: usize| {
        let mut word = [0; 8];
        let part = &bytes[at * 8..bytes.len().min(at * 8 + 8)];
        word[..part.len()].copy_from_slice(part);
        Ok(u64::from_le_bytes(word))
    };
    PBox::new(tx, Bytes { words: PVec::from_fn(tx, bytes.len().div_ceil(8), word)?, len: bytes.len() as u64 })
}

/// A value with all that is in it.
fn copied<H: Slot>(tx: &Tx<'_, H>, value: &Value<H>, depth: u32) -> Result<Data> {
    let text = || match &value.text {
        Some(text) => text.read(tx)?.text.get(tx),
        None => Ok(String::new()),
    };
    Ok(match value.kind {
        Kind::None => Data::None,
        Kind::Bool => Data::Bool(value.number != 0),
        Kind::Integer => Data::Integer(value.number.cast_signed()),
        Kind::Float => Data::Float(f64::from_bits(value.number)),
        Kind::LongInteger => Data::LongInteger(text()?),
        Kind::Text => Data::Text(text()?),
        Kind::Bytes => Data::Bytes(match &value.bytes {
            Some(bytes) => copied_bytes(tx, bytes)?,
            None => Vec::new(),
        }),
        Kind::List => match &value.list {
            Some(list) => copied_list(tx, &*list.read(tx)?, depth)?,
            None => Data::List(Vec::new()),
        },
        Kind::Dict => match &value.dict {
            Some(dict) => copied_dict(tx, &*dict.read(tx)?, depth)?,
            None => Data::Dict(Vec::new()),
        },
    })
}

fn copied_bytes<H: Slot>(tx: &Tx<'_, H>, bytes: &PBox<Bytes<H>, H>) -> Result<Vec<u8>> {
    let bytes = bytes.read(tx)?;
    let mut all = Vec::with_capacity(bytes.words.len() * 8);
    for word in bytes.words.iter(tx) {
        all.extend(word?.to_le_bytes());
    }
    all.truncate(bytes.len as usize);
    Ok(all)
}

fn deeper(depth: u32) -> Result<u32> {
    let deep = || {
        Error::Invalid(format!("lists and dicts are nested deeper than {DEPTH_MAX}, or contain themselves"))
    };
    depth.checked_sub(1).ok_or_else(deep)
}

fn copied_list<H: Slot>(tx: &Tx<'_, H>, list: &List<H>, depth: u32) -> Result<Data> {
    let depth = deeper(depth)?;
    Ok(Data::List(list.items.iter(tx).map(|item| copied(tx, &*item?, depth)).collect::<Result<_>>()?))
}

fn copied_dict<H: Slot>(tx: &Tx<'_, H>, dict: &Dict<H>, depth: u32) -> Result<Data> {
    let depth = deeper(depth)?;
    let entry = |entry: Result<(_, _)>| {
        let (name, value): (nvlab_nvheap::collections::Ref<'_, PString<H>>, _) = entry?;
        let value: nvlab_nvheap::collections::Ref<'_, Value<H>> = value;
        Ok((name.get(tx)?, copied(tx, &*value, depth)?))
    };
    Ok(Data::Dict(dict.entries.iter(tx).map(entry).collect::<Result<_>>()?))
}
