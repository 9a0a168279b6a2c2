//! Whether bytes are a value of their type, as far as not every pattern is one.

use super::schema::{Field, Form, Integer, Variant};

/// Slots of the nodes of maps.
pub(crate) const SLOTS: usize = 15;

/// The slots that a node of a sorted map uses, in the order of their keys; `None` if the word is none of a node.
pub(crate) fn order(word: u64) -> Option<Vec<usize>> {
    let count = (word & 15) as usize;
    let slots: Vec<usize> = (0..SLOTS).map(|position| (word >> (4 + 4 * position)) as usize & 15).collect();
    let used = slots.iter().fold(0_u32, |used, slot| used | 1 << slot);
    (used == (1 << SLOTS) - 1).then(|| slots[..count].to_vec())
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
}

pub(crate) fn integer(bytes: &[u8], integer: Integer) -> i128 {
    let mut word = [0; 16];
    word[..integer.bytes as usize].copy_from_slice(&bytes[..integer.bytes as usize]);
    let (value, unused) = (i128::from_le_bytes(word), 128 - integer.bytes * 8);
    if integer.is_signed { value << unused >> unused } else { value }
}

/// Part of a value that is more than its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'f> {
    Text,
    /// A list, by the form of what its owner holds of it.
    List(&'f Form),
}

impl Form {
    /// Whether there are bytes that are no value, or a text or a list that is to be looked at.
    pub fn is_selective(&self) -> bool {
        match self {
            Form::Unit | Form::Integer(_) | Form::Float { .. } | Form::Vec(_) => false,
            Form::Bool | Form::Char | Form::NonZero(_) | Form::Enum { .. } => true,
            Form::Pointer(pointer) => !pointer.is_optional,
            Form::Array { element, .. } => element.is_selective(),
            Form::Struct { name, fields, .. } => {
                [".text", ".list", ".entries", ".inner", ".bucket", ".link"].contains(&name.as_str())
                    || fields.iter().any(|field| field.form.is_selective())
            }
        }
    }

    /// What is wrong with the bytes of a value; `parts` is called with each text and list in it, and its offset.
    pub fn check<'f>(
        &'f self,
        bytes: &[u8],
        base: u64,
        parts: &mut impl FnMut(Part<'f>, u64),
    ) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("this is not a valid {what}"));
        match self {
            Form::Bool if bytes[0] > 1 => wrong("bool"),
            Form::Char if char::from_u32(integer(bytes, CHAR) as u32).is_none() => wrong("char"),
            Form::NonZero(kind) if integer(bytes, *kind) == 0 => wrong("NonZero integer: it is zero"),
            Form::Enum { .. } => {
                let fields = &self.variant(bytes)?.fields;
                let at = |field: &Field| (field.offset as usize, base + field.offset);
                fields
                    .iter()
                    .try_for_each(|field| field.form.check(&bytes[at(field).0..], at(field).1, parts))
            }
            Form::Pointer(pointer) if !pointer.is_optional && word(bytes, 0) == Some(0) => wrong("pointer"),
            Form::Array { count, element } if element.is_selective() => {
                let size = element.bytes() as usize;
                (0..*count as usize).try_for_each(|index| {
                    element.check(&bytes[index * size..], base + (index * size) as u64, parts)
                })
            }
            Form::Struct { name, fields, bytes: size } => {
                match name.as_str() {
                    ".text" => parts(Part::Text, base),
                    ".list" => parts(Part::List(self), base),
                    _ => {}
                }
                self.check_fields(name, fields, &bytes[..*size as usize], base, parts)
            }
            _ => Ok(()),
        }
    }

    fn check_fields<'f>(
        &'f self,
        name: &str,
        fields: &'f [Field],
        bytes: &[u8],
        base: u64,
        parts: &mut impl FnMut(Part<'f>, u64),
    ) -> Result<(), String> {
        let slots = match self.slots(bytes) {
            Some(slots) => slots.ok_or_else(|| format!("this is not a valid node of a map ({name})"))?,
            None => (0..SLOTS).collect(),
        };
        let is_node = [".entries", ".bucket"].contains(&name);
        for field in fields.iter().filter(|field| field.form.is_selective()) {
            let (at, base) = (field.offset as usize, base + field.offset);
            match &field.form {
                Form::Array { count: 15, element } if is_node => {
                    let size = element.bytes() as usize;
                    for &slot in &slots {
                        element.check(&bytes[at + slot * size..], base + (slot * size) as u64, parts)?;
                    }
                }
                _ if name == ".link" && field.name == "value" && slots.is_empty() => {}
                form => form.check(&bytes[at..], base, parts)?,
            }
        }
        Ok(())
    }

    /// Of a node: the slots in use, those of a list's node being its one value. `Some(None)` if its bytes are none of a node.
    pub fn slots(&self, bytes: &[u8]) -> Option<Option<Vec<usize>>> {
        let Form::Struct { name, .. } = self else { return None };
        match name.as_str() {
            ".entries" => Some(word(bytes, 0).and_then(order)),
            ".bucket" => {
                // Behind those of the slots is one that is not used.
                let tags = bytes.get(..=SLOTS).filter(|tags| tags[SLOTS] == 0);
                Some(tags.map(|tags| (0..SLOTS).filter(|&slot| tags[slot] != 0).collect()))
            }
            // Whether it has a value comes last.
            ".link" => Some(match bytes.len().checked_sub(8).and_then(|at| word(bytes, at)) {
                Some(0) => Some(Vec::new()),
                Some(1) => Some(vec![0]),
                _ => None,
            }),
            _ => None,
        }
    }

    /// Whether these bytes are a list's node without its value.
    pub fn lacks_value(&self, bytes: &[u8]) -> bool {
        matches!(self, Form::Struct { name, .. } if name == ".link")
            && self.slots(bytes) == Some(Some(Vec::new()))
    }

    /// The variant that these bytes of an enum are.
    pub fn variant(&self, bytes: &[u8]) -> Result<&Variant, String> {
        let Form::Enum { integer: kind, variants, .. } = self else {
            return Err("this is not a valid enum".into());
        };
        let number = integer(bytes, *kind);
        let found = variants.iter().find(|variant| variant.number == number);
        found.ok_or_else(|| format!("no variant has number {number}"))
    }

    /// A field of a struct.
    pub fn field(&self, name: &str) -> Option<&Field> {
        match self {
            Form::Struct { fields, .. } => fields.iter().find(|field| field.name == name),
            _ => None,
        }
    }
}

pub(crate) const CHAR: Integer = Integer { bytes: 4, is_signed: false };
