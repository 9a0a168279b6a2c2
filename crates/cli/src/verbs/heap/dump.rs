//! `nvlab heap dump`: the objects of a heap, each once, beginning with the root.

use super::is_json;
use crate::failure::Failure;
use crate::output::Output;
use crate::verbs::facts::print_json;
use nvlab_nvheap::{Inspection, Limits, Reference, Value};
use serde_json::json;
use std::collections::HashSet;

/// Bytes of a text that are printed.
const TEXT_BYTES: u64 = 1024;

struct Dump<'i> {
    heap: &'i Inspection,
    limits: Limits,
    depth: u32,
    seen: HashSet<Reference>,
}

/// What is still to be printed, the next one last: depth of pointers, depth of lines, what comes before it, and the value.
type Waiting = Vec<(u32, usize, String, Shown)>;

enum Shown {
    Value(Value),
    /// As it is.
    Text(String),
}

pub fn dump(output: &Output, heap: &Inspection, depth: u32, limit: usize) -> Result<(), Failure> {
    let limits = Limits { elements: limit, text_bytes: TEXT_BYTES, ..Limits::default() };
    let mut dump = Dump { heap, limits, depth, seen: HashSet::new() };
    let damage = match is_json(output) {
        true => dump.json(output),
        false => dump.lines(output),
    };
    damage.map_or(Ok(()), |damage| Err(Failure::Check(damage)))
}

impl Dump<'_> {
    /// Prints lines; returns the first damage.
    fn lines(&mut self, output: &Output) -> Option<String> {
        let mut damage = None;
        let root = Shown::Value(Value::Pointer(self.heap.root()));
        let mut waiting: Waiting = vec![(0, 0, String::new(), root)];
        while let Some((depth, indent, label, shown)) = waiting.pop() {
            let text = match shown {
                Shown::Text(text) => text,
                Shown::Value(value) => self.value(value, depth, indent, &mut waiting, &mut damage),
            };
            output.print(format!("{:indent$}{label}{text}", "", indent = indent * 2));
        }
        damage
    }

    /// The text of a value; what is printed below it is put off.
    fn value(
        &mut self,
        value: Value,
        depth: u32,
        indent: usize,
        waiting: &mut Waiting,
        damage: &mut Option<String>,
    ) -> String {
        if let Some(text) = plain(&value) {
            return text;
        }
        let below = indent + 1;
        let more = |count: usize, len: u64| {
            let more = len.saturating_sub(count as u64);
            (more > 0).then(|| (depth, below, String::new(), Shown::Text(format!("{more} more"))))
        };
        match value {
            Value::Pointer(to) => self.object(to, depth, indent, waiting, damage),
            Value::Struct { name, fields } => {
                let field = |(name, value)| (depth, below, format!("{name}: "), Shown::Value(value));
                waiting.extend(fields.into_iter().rev().map(field));
                name
            }
            Value::List { elements, len } => {
                waiting.extend(more(elements.len(), len));
                let element = |(index, value)| (depth, below, format!("{index}: "), Shown::Value(value));
                waiting.extend(elements.into_iter().enumerate().rev().map(element));
                format!("{len} elements")
            }
            Value::Map { entries, len } => {
                waiting.extend(more(entries.len(), len));
                for (key, value) in entries.into_iter().rev() {
                    match plain(&key) {
                        Some(key) => waiting.push((depth, below, format!("{key}: "), Shown::Value(value))),
                        None => waiting.extend([
                            (depth, below, "value: ".into(), Shown::Value(value)),
                            (depth, below, "key: ".into(), Shown::Value(key)),
                        ]),
                    }
                }
                format!("{len} entries")
            }
            other => format!("{other:?}"),
        }
    }

    fn object(
        &mut self,
        to: Reference,
        depth: u32,
        indent: usize,
        waiting: &mut Waiting,
        damage: &mut Option<String>,
    ) -> String {
        let name = format!("{} @{}", self.heap.type_name(to), to.at());
        if self.seen.contains(&to) {
            return format!("{name}, above");
        }
        if depth > self.depth {
            return format!("{name} ...");
        }
        self.seen.insert(to);
        match self.heap.read(to, self.limits) {
            // The object's own type has been named.
            Ok(Value::Struct { fields, .. }) => {
                let field = |(name, value)| (depth + 1, indent + 1, format!("{name}: "), Shown::Value(value));
                waiting.extend(fields.into_iter().rev().map(field));
                name
            }
            Ok(value) => {
                waiting.push((depth + 1, indent + 1, String::new(), Shown::Value(value)));
                name
            }
            Err(error) => {
                damage.get_or_insert(error.to_string());
                format!("{name}: {error}")
            }
        }
    }

    /// Prints one document with a list of objects, in which pointers are offsets; returns the first damage.
    fn json(&mut self, output: &Output) -> Option<String> {
        let (mut damage, mut objects) = (None, Vec::new());
        let mut waiting = vec![(0, self.heap.root())];
        while let Some((depth, object)) = waiting.pop() {
            if !self.seen.insert(object) {
                continue;
            }
            let mut found = json!({ "at": object.at(), "type": self.heap.type_name(object) });
            match self.heap.read(object, self.limits) {
                Ok(value) => {
                    let mut pointers = Vec::new();
                    found["value"] = document(value, &mut pointers);
                    if depth < self.depth {
                        waiting.extend(pointers.into_iter().rev().map(|to| (depth + 1, to)));
                    }
                }
                Err(error) => {
                    found["error"] = error.to_string().into();
                    damage.get_or_insert(error.to_string());
                }
            }
            objects.push(found);
        }
        let root = self.heap.root().at();
        print_json(output, &json!({ "schema": "nvlab.nvheap-dump/1", "root": root, "objects": objects }));
        damage
    }
}

/// The text of a value that fits into a line.
fn plain(value: &Value) -> Option<String> {
    Some(match value {
        Value::None => "none".into(),
        Value::Bool(value) => value.to_string(),
        Value::Char(value) => format!("{value:?}"),
        Value::Integer(value) => value.to_string(),
        Value::Single(value) => format!("{value:?}"),
        Value::Double(value) => format!("{value:?}"),
        Value::Variant(name) => name.clone(),
        Value::Text { text, bytes } => match *bytes == text.len() as u64 {
            true => format!("{text:?}"),
            false => format!("{text:?}... ({bytes} B)"),
        },
        Value::Weak { to, is_alive: true } => format!("weak @{}", to.at()),
        Value::Weak { to, .. } => format!("weak @{}, destroyed", to.at()),
        Value::List { elements, len } if !elements.iter().any(is_composite) => {
            let mut words: Vec<String> = elements.iter().filter_map(plain).collect();
            if *len > elements.len() as u64 {
                words.push(format!("{} more", len - elements.len() as u64));
            }
            format!("[{}]", words.join(", "))
        }
        Value::Map { entries, len: 0 } if entries.is_empty() => "{}".into(),
        _ => return None,
    })
}

/// Whether a value takes lines of its own.
fn is_composite(value: &Value) -> bool {
    matches!(
        value,
        Value::Pointer(_)
            | Value::Struct { .. }
            | Value::List { .. }
            | Value::Map { .. }
            | Value::Text { .. }
    )
}

fn document(value: Value, pointers: &mut Vec<Reference>) -> serde_json::Value {
    match value {
        Value::None => serde_json::Value::Null,
        Value::Bool(value) => value.into(),
        Value::Char(value) => value.to_string().into(),
        Value::Integer(value) => u64::try_from(value).map_or_else(|_| (value as i64).into(), Into::into),
        Value::Single(value) => json!(value),
        Value::Double(value) => json!(value),
        Value::Variant(name) => name.into(),
        Value::Text { text, bytes } if bytes == text.len() as u64 => text.into(),
        Value::Text { text, bytes } => json!({ "text": text, "bytes": bytes }),
        Value::Weak { to, is_alive } => json!({ "weak": to.at(), "alive": is_alive }),
        Value::Pointer(to) => {
            pointers.push(to);
            json!({ "to": to.at() })
        }
        Value::Struct { fields, .. } => {
            fields.into_iter().map(|(name, value)| (name, document(value, pointers))).collect()
        }
        Value::List { elements, len } => {
            let elements: Vec<_> = elements.into_iter().map(|value| document(value, pointers)).collect();
            json!({ "len": len, "elements": elements })
        }
        Value::Map { entries, len } => {
            let entry = |(key, value)| json!([document(key, pointers), document(value, pointers)]);
            json!({ "len": len, "entries": entries.into_iter().map(entry).collect::<Vec<_>>() })
        }
        other => format!("{other:?}").into(),
    }
}
