//! Values read from a heap by the types described in its file.

use super::Inspection;
use super::schema::{Field, Form, PointerAt, Pointing, Type, Variant};
use super::survey::View;
use super::text;
use super::valid::{CHAR, integer, word};
use crate::error::{Error, Result};
use crate::layout::PAGE;
use crate::pointer::{offset, tag};
use crate::space::{self, Kind};
use crate::tx::{Meta, value_at};
use std::num::NonZeroU64;

/// Maximum depth of arrays and maps inside each other that is read.
pub(super) const DEPTH_MAX: u32 = 16;

/// An object of an examined heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    pub(super) at: u64,
    /// The number of its type.
    pub(super) number: u16,
}

impl Reference {
    /// Its offset, in bytes from the beginning of the file.
    pub fn at(self) -> u64 {
        self.at
    }
}

/// Limits on how much of an object is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Elements of each array, list or map.
    pub elements: usize,
    /// Bytes of each text.
    pub text_bytes: u64,
    /// Values in total.
    pub values: usize,
}

impl Default for Limits {
    /// A million values in all.
    fn default() -> Self {
        Limits { elements: 1 << 20, text_bytes: 1 << 20, values: 1 << 20 }
    }
}

/// A value of a heap: the contents of an object, with the elements of its arrays, lists and maps. Other objects are
/// references.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `()`, or a pointer that is none.
    None,
    /// A truth value.
    Bool(bool),
    /// A character.
    Char(char),
    /// An integer of any size.
    Integer(i128),
    /// A number of 32 bits.
    Single(f32),
    /// A number of 64 bits.
    Double(f64),
    /// The name of a variant of an enum.
    Variant(String),
    /// A text.
    Text {
        /// Its beginning, up to the limit.
        text: String,
        /// Its bytes in total.
        bytes: u64,
    },
    /// Fields by name, those of a tuple by number; also those of a variant of an enum, if it has any.
    Struct {
        /// The type without its modules, or the variant.
        name: String,
        /// Names and values.
        fields: Vec<(String, Value)>,
    },
    /// An array or a list.
    List {
        /// The first elements, up to the limit.
        elements: Vec<Value>,
        /// Its length.
        len: u64,
    },
    /// A sorted map or a hash map.
    Map {
        /// The first entries, up to the limit.
        entries: Vec<(Value, Value)>,
        /// The number of entries, as recorded in the map.
        len: u64,
    },
    /// A pointer that keeps its object alive.
    Pointer(Reference),
    /// A weak pointer: its object may have been destroyed.
    Weak {
        /// The object.
        to: Reference,
        /// Whether it still exists.
        is_alive: bool,
    },
}

impl Inspection {
    /// The value of an object.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it is not an object, or has been destroyed.
    pub fn read(&self, object: Reference, limits: Limits) -> Result<Value> {
        let mut reader = Reader { view: self.view(), limits, left: limits.values };
        let (entry, bytes) = reader.object(object)?;
        reader.value(&entry.form, &bytes, value_at(object.at), 0)
    }

    /// The type of an object, without its modules.
    pub fn type_name(&self, object: Reference) -> &str {
        self.schema.get(object.number).map_or("?", |entry| &entry.name)
    }
}

pub(super) struct Reader<'v> {
    pub view: View<'v>,
    limits: Limits,
    /// Values that may still be read.
    left: usize,
}

/// A pointer among the bytes of a value.
pub(super) fn reference(bytes: &[u8], at: usize) -> Option<Reference> {
    let word = NonZeroU64::new(word(bytes, at)?)?;
    Some(Reference { at: offset(word), number: tag(word) })
}

impl<'v> Reader<'v> {
    /// An object's type and bytes.
    pub fn object(&mut self, Reference { at, number }: Reference) -> Result<(&'v Type, Vec<u8>)> {
        let meta = self.meta(at)?;
        let entry = self.view.schema.get(number).filter(|entry| !entry.is_array && meta.tag() == number);
        let Some(entry) = entry.filter(|_| meta.strong() > 0) else {
            return Err(Error::damaged(at, "no object of the pointer's type lies here"));
        };
        let words = self.load(value_at(at), entry.bytes)?;
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(entry.bytes as usize);
        Ok((entry, bytes))
    }

    /// Words count as values, so that a hostile file does not have the same ones read again and again.
    fn load(&mut self, at: u64, bytes: u64) -> Result<Vec<u64>> {
        self.view.memory.examine(at, bytes)?;
        let words = self.view.memory.load_words(at, bytes.div_ceil(8) as usize)?;
        self.left = self.left.saturating_sub(1 + words.len() / 8);
        Ok(words)
    }

    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// The references and the type of the block that begins there.
    fn meta(&self, at: u64) -> Result<Meta> {
        let (memory, layout) = (self.view.memory, self.view.layout);
        memory.check_object(at, 24)?;
        let page =
            space::page_of(layout, at).ok_or_else(|| Error::damaged(at, "this is outside the pages"))?;
        let within = at - layout.bytes(page);
        let is_start = match space::kind(memory, layout, page)? {
            Kind::Small(class) => {
                let size = space::block_bytes(class);
                within.is_multiple_of(size) && within + size <= PAGE
            }
            Kind::Large(_) => within == 0,
            _ => false,
        };
        memory.examine(at, 24)?;
        match is_start {
            true => Ok(Meta(memory.load_words(at + 8, 1)?[0])),
            false => Err(Error::damaged(at, "no block begins here")),
        }
    }

    /// Whether one more element may be read of those of which `read` have been.
    pub fn take(&mut self, read: usize) -> bool {
        let is_in = read < self.limits.elements && self.left > 0;
        self.left -= usize::from(is_in);
        is_in
    }

    /// The value whose bytes these are; it lies at `home`.
    pub fn value(&mut self, form: &Form, bytes: &[u8], home: u64, depth: u32) -> Result<Value> {
        let short = || Error::damaged(home, "a value is longer than its object");
        let bytes = bytes.get(..form.bytes() as usize).ok_or_else(short)?;
        let number = |kind| integer(bytes, kind);
        Ok(match form {
            Form::Unit => Value::None,
            Form::Bool => Value::Bool(match bytes[0] {
                0 => false,
                1 => true,
                byte => return Err(Error::damaged(home, format!("{byte} is not a bool"))),
            }),
            Form::Char => Value::Char(
                char::from_u32(number(CHAR) as u32)
                    .ok_or_else(|| Error::damaged(home, "this is not a valid char"))?,
            ),
            Form::NonZero(kind) if number(*kind) == 0 => {
                return Err(Error::damaged(home, "this is not a valid NonZero integer: it is zero"));
            }
            Form::Integer(kind) | Form::NonZero(kind) => Value::Integer(number(*kind)),
            Form::Float { bytes: 4 } => {
                Value::Single(f32::from_le_bytes(bytes.try_into().map_err(|_| short())?))
            }
            Form::Float { .. } => Value::Double(f64::from_le_bytes(bytes.try_into().map_err(|_| short())?)),
            Form::Enum { .. } => {
                let Variant { name, fields, .. } =
                    form.variant(bytes).map_err(|why| Error::damaged(home, why))?;
                match fields.is_empty() {
                    true => Value::Variant(name.clone()),
                    false => self.fields(name, fields, bytes, home, depth)?,
                }
            }
            Form::Array { count, element } => self.array(*count, element, bytes, home, depth)?,
            Form::Struct { name, fields, .. } => match name.as_str() {
                ".text" => {
                    let (text, bytes) = text::read(self.view, home, self.limits.text_bytes)?;
                    Value::Text { text, bytes }
                }
                ".list" => self.list(form, bytes, depth)?,
                _ => self.fields(name, fields, bytes, home, depth)?,
            },
            Form::Vec(pointer) => self.elements(*pointer, bytes, home, depth)?,
            Form::Pointer(pointer) => self.pointer(*pointer, bytes, home, depth)?,
        })
    }

    fn fields(&mut self, name: &str, fields: &[Field], bytes: &[u8], home: u64, depth: u32) -> Result<Value> {
        let field = |field: &Field| {
            let at = field.offset as usize;
            let value = self.value(&field.form, &bytes[at..], home + field.offset, depth)?;
            Ok((field.name.clone(), value))
        };
        let fields = fields.iter().map(field).collect::<Result<_>>()?;
        Ok(Value::Struct { name: name.trim_start_matches('.').into(), fields })
    }

    fn array(&mut self, count: u64, element: &Form, bytes: &[u8], home: u64, depth: u32) -> Result<Value> {
        let (mut elements, size) = (Vec::new(), element.bytes() as usize);
        while (elements.len() as u64) < count && self.take(elements.len()) {
            let at = elements.len() * size;
            elements.push(self.value(element, &bytes[at..], home + at as u64, depth)?);
        }
        Ok(Value::List { elements, len: count })
    }

    /// The elements of an array block.
    fn elements(&mut self, pointer: PointerAt, bytes: &[u8], home: u64, depth: u32) -> Result<Value> {
        let (mut elements, len) = (Vec::new(), word(bytes, 8).unwrap_or(0));
        while (elements.len() as u64) < len && depth < DEPTH_MAX && self.take(elements.len()) {
            let (entry, at, bytes) = self.element(pointer, bytes, home, elements.len() as u64)?;
            elements.push(self.value(&entry.form, &bytes, at, depth + 1)?);
        }
        Ok(Value::List { elements, len })
    }

    /// An element of an array block: its type, where it lies, and its bytes.
    pub fn element(
        &mut self,
        pointer: PointerAt,
        bytes: &[u8],
        home: u64,
        index: u64,
    ) -> Result<(&'v Type, u64, Vec<u8>)> {
        let damaged = || Error::damaged(home, "an array without its block");
        let block =
            reference(bytes, 0).filter(|block| pointer.to.contains(&block.number)).ok_or_else(damaged)?;
        let entry = self.view.schema.get(block.number).filter(|entry| entry.is_array).ok_or_else(damaged)?;
        if self.meta(block.at)?.tag() != block.number {
            return Err(damaged());
        }
        let shape = self.view.array(block.at, entry)?.filter(|shape| index < shape.capacity);
        let at = shape.ok_or_else(damaged)?.element(block.at, index).1;
        let words = self.load(at, entry.bytes)?;
        Ok((entry, at, words.iter().flat_map(|word| word.to_le_bytes()).collect()))
    }

    fn pointer(&mut self, pointer: PointerAt, bytes: &[u8], home: u64, depth: u32) -> Result<Value> {
        let Some(to) = reference(bytes, 0) else {
            return match pointer.is_optional {
                true => Ok(Value::None),
                false => Err(Error::damaged(home, "a pointer that may not be zero is")),
            };
        };
        if pointer.pointing != Pointing::Back && !pointer.to.contains(&to.number) {
            return Err(Error::damaged(home, format!("a pointer to type {}", to.number)));
        }
        Ok(match pointer.pointing {
            Pointing::Weak => Value::Weak { to, is_alive: self.meta(to.at)?.strong() > 0 },
            Pointing::Tree | Pointing::Hash if depth >= DEPTH_MAX => Value::Pointer(to),
            Pointing::Tree => self.tree(to, depth + 1)?,
            Pointing::Hash => self.hash(to, depth + 1)?,
            _ => Value::Pointer(to),
        })
    }
}
