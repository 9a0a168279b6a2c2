//! The entries of maps and lists, read from their nodes. Cycles of nodes, which only damage creates, end in an error.

use super::schema::Form;
use super::valid::word;
use super::value::{Reader, Reference, Value, reference};
use crate::error::{Error, Result};
use crate::tx::value_at;
use std::collections::HashSet;

/// Levels of a sorted map.
const HEIGHT_MAX: usize = 33;

/// A node of a sorted map on the way down.
struct Node<'v> {
    at: u64,
    bytes: Vec<u8>,
    /// Where its entries begin, and their form.
    entries_at: usize,
    entries: &'v Form,
    slots: Vec<usize>,
    is_inner: bool,
    /// What has been visited: children at even steps, entries at odd ones.
    step: usize,
}

fn lacks(at: u64, what: &str) -> Error {
    Error::damaged(at, format!("this is not a valid {what}"))
}

/// The child behind all entries of an inner node.
const LAST_CHILD: usize = 15;

/// The slots of the entries in an inner node's bytes, and where those begin; `None` for other objects.
fn inner<'f>(form: &'f Form, bytes: &[u8]) -> Option<(usize, &'f Form, Vec<usize>)> {
    let entries = form.field("entries")?;
    let at = entries.offset as usize;
    Some((at, &entries.form, entries.form.slots(bytes.get(at..)?)??))
}

/// Whether objects of a form are inner nodes of a sorted map.
pub(super) fn is_inner(form: &Form) -> bool {
    form.field("entries").is_some()
}

/// The children of an inner node of a sorted map, where a damaged one may lack some; `None` for other objects.
pub(super) fn children(form: &Form, bytes: &[u8]) -> Option<impl Iterator<Item = Option<Reference>>> {
    let (_, _, slots) = inner(form, bytes)?;
    Some(slots.into_iter().chain([LAST_CHILD]).map(|slot| reference(bytes, slot * 8)))
}

/// The top node of a sorted map, if there is one, and its height above the leaves, from the bytes of its anchor.
pub(super) fn top(form: &Form, bytes: &[u8], at: u64) -> Result<(Option<Reference>, u64)> {
    let (top, _) = field(form, "top", at)?;
    let (height, _) = field(form, "height", at)?;
    Ok((reference(bytes, top), word(bytes, height).unwrap_or(0)))
}

/// Where a field begins in the bytes of a struct, and its form.
fn field<'f>(form: &'f Form, name: &str, at: u64) -> Result<(usize, &'f Form)> {
    form.field(name).map(|field| (field.offset as usize, &field.form)).ok_or_else(|| lacks(at, "node"))
}

impl<'v> Reader<'v> {
    /// The entries of a sorted map in the order of their keys.
    pub(super) fn tree(&mut self, map: Reference, depth: u32) -> Result<Value> {
        let (anchor, bytes) = self.object(map)?;
        let (top, height) = top(&anchor.form, &bytes, map.at)?;
        let len = self.count(&anchor.form, &bytes, map.at)?;
        let (mut entries, mut path) = (Vec::new(), Vec::new());
        if let Some(top) = top {
            path.push(self.node(top, height > 0)?);
        }
        while let Some(node) = path.last_mut() {
            let (step, at) = (node.step, node.at);
            node.step += 1;
            let (position, is_child) = match node.is_inner {
                true => (step / 2, step % 2 == 0),
                false => (step, false),
            };
            if position == node.slots.len() && !is_child || position > node.slots.len() {
                path.pop();
            } else if is_child {
                let index = position.checked_sub(1).map_or(LAST_CHILD, |before| node.slots[before]);
                let child = reference(&node.bytes, index * 8).ok_or_else(|| lacks(at, "inner node"))?;
                if path.len() == HEIGHT_MAX {
                    return Err(Error::damaged(at, "a map with too many levels"));
                }
                if self.is_exhausted() {
                    break;
                }
                let is_inner = (path.len() as u64) < height;
                path.push(self.node(child, is_inner)?);
            } else {
                if !self.take(entries.len()) {
                    break;
                }
                let slot = node.slots[position];
                let (keys, key) = field(node.entries, "keys", at)?;
                let (values, value) = field(node.entries, "values", at)?;
                let mut read = |base: usize, array: &Form| {
                    let Form::Array { element, .. } = array else { return Err(lacks(at, "node of a map")) };
                    let first = node.entries_at + base + slot * element.bytes() as usize;
                    let bytes = node.bytes.get(first..).unwrap_or_default();
                    self.value(element, bytes, value_at(at) + first as u64, depth)
                };
                entries.push((read(keys, key)?, read(values, value)?));
            }
        }
        Ok(Value::Map { entries, len })
    }

    /// Reads a node, which is an inner one as far down as the height of its map says.
    fn node(&mut self, node: Reference, should_be_inner: bool) -> Result<Node<'v>> {
        let (entry, bytes) = self.object(node)?;
        let inner = inner(&entry.form, &bytes);
        let is_inner = inner.is_some();
        if is_inner != should_be_inner {
            return Err(Error::damaged(node.at, "a map whose height is not that of its nodes"));
        }
        let leaf = || Some((0, &entry.form, entry.form.slots(&bytes)??));
        let (entries_at, entries, slots) =
            inner.or_else(leaf).ok_or_else(|| lacks(node.at, "node of a map"))?;
        Ok(Node { at: node.at, bytes, entries_at, entries, slots, is_inner, step: 0 })
    }

    /// The number of entries that an anchor's counter sums up to.
    fn count(&mut self, form: &Form, bytes: &[u8], at: u64) -> Result<u64> {
        let (first, counter) = field(form, "count", at)?;
        let mut sum = 0_u64;
        for stripe in (first..first + counter.bytes() as usize).step_by(8) {
            if let Some(stripe) = reference(bytes, stripe) {
                sum = sum.wrapping_add(word(&self.object(stripe)?.1, 0).unwrap_or(0));
            }
        }
        Ok(sum)
    }

    /// The entries of a hash map in the order of its buckets.
    pub(super) fn hash(&mut self, map: Reference, depth: u32) -> Result<Value> {
        let (anchor, bytes) = self.object(map)?;
        let len = self.count(&anchor.form, &bytes, map.at)?;
        let (at, Form::Vec(pointer)) = field(&anchor.form, "buckets", map.at)? else {
            return Err(lacks(map.at, "hash map"));
        };
        let buckets = word(&bytes, at + 8).unwrap_or(0);
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        for index in 0..buckets {
            if self.is_exhausted() {
                break;
            }
            let (_, home, link) = self.element(*pointer, &bytes[at..], map.at, index)?;
            let mut next = reference(&link, 0);
            while let Some(bucket) = next {
                if !seen.insert(bucket) {
                    return Err(Error::damaged(home, "a bucket of a hash map is in it twice"));
                }
                if !self.bucket(bucket, &mut entries, &mut next, depth)? {
                    return Ok(Value::Map { entries, len });
                }
            }
        }
        Ok(Value::Map { entries, len })
    }

    /// Reads the entries of a bucket, and what comes behind it; false if the limit has been reached.
    fn bucket(
        &mut self,
        bucket: Reference,
        entries: &mut Vec<(Value, Value)>,
        next: &mut Option<Reference>,
        depth: u32,
    ) -> Result<bool> {
        let at = bucket.at;
        let (entry, bytes) = self.object(bucket)?;
        *next = reference(&bytes, field(&entry.form, "next", at)?.0);
        let (base, Form::Array { element, .. }) = field(&entry.form, "entries", at)? else {
            return Err(lacks(at, "bucket"));
        };
        for slot in entry.form.slots(&bytes).flatten().ok_or_else(|| lacks(at, "bucket"))? {
            if !self.take(entries.len()) {
                return Ok(false);
            }
            let first = base + slot * element.bytes() as usize;
            let pair = bytes.get(first..).unwrap_or_default();
            let Value::Struct { fields, .. } =
                self.value(element, pair, value_at(at) + first as u64, depth)?
            else {
                return Err(lacks(at, "bucket"));
            };
            let mut fields = fields.into_iter().map(|(_, value)| value);
            entries.extend(fields.next().zip(fields.next()));
        }
        Ok(true)
    }

    /// The elements of a doubly linked list.
    pub(super) fn list(&mut self, form: &Form, bytes: &[u8], depth: u32) -> Result<Value> {
        let len = word(bytes, field(form, "len", 0)?.0).unwrap_or(0);
        let mut next = reference(bytes, field(form, "first", 0)?.0);
        let (mut elements, mut seen) = (Vec::new(), HashSet::new());
        while let Some(node) = next {
            if !seen.insert(node) {
                return Err(Error::damaged(node.at, "a list leads back to itself"));
            }
            if depth >= super::value::DEPTH_MAX || !self.take(elements.len()) {
                break;
            }
            let (entry, bytes) = self.object(node)?;
            let (at, value) = field(&entry.form, "value", node.at)?;
            if entry.form.slots(&bytes) != Some(Some(vec![0])) {
                return Err(lacks(node.at, "node of a list with a value"));
            }
            let home = value_at(node.at) + at as u64;
            elements.push(self.value(value, &bytes[at..], home, depth + 1)?);
            next = reference(&bytes, field(&entry.form, "next", node.at)?.0);
        }
        Ok(Value::List { elements, len })
    }
}
