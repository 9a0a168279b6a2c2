//! The JSON Schema of a design file, for editors, made from the key table.

use super::keys::{self, Key, Preset};
use crate::toml_reader::datum::Shape;
use serde_json::{Map, Value, json};

/// The JSON Schema of a design file, as text.
pub fn schema() -> String {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "nvlab design",
        "description": "A storage device to simulate. `nvlab explain KEY` describes each key.",
        "type": "object",
        "additionalProperties": false,
        "properties": {},
    });
    for key in keys::all() {
        let names: Vec<&str> = key.path.split('.').collect();
        insert(&mut root, &names, key);
    }
    serde_json::to_string_pretty(&root).unwrap_or_default()
}

fn insert(object: &mut Value, names: &[&str], key: &Key) {
    let Some((&name, rest)) = names.split_first() else { return };
    let child = if name == "*" {
        &mut object["additionalProperties"]
    } else {
        if object.get("properties").is_none() {
            object["properties"] = Value::Object(Map::new());
        }
        &mut object["properties"][name]
    };
    if rest.is_empty() {
        let fresh = property(key);
        // A key that means different things for different kinds of its table.
        *child = match child.take() {
            Value::Null => fresh,
            mut old => match old.get_mut("anyOf").and_then(Value::as_array_mut) {
                Some(choices) => {
                    choices.push(fresh);
                    old
                }
                None => json!({ "anyOf": [old, fresh] }),
            },
        };
        return;
    }
    if !child.is_object() {
        *child = json!({ "type": "object", "additionalProperties": false });
    }
    insert(child, rest, key);
}

fn property(key: &Key) -> Value {
    let mut about = format!("{} Takes {}.", key.about, key.shape.allowed());
    if !key.kinds.is_empty() {
        about += &format!(" Only for kind {}.", key.kinds.join(", "));
    }
    let mut property = Map::new();
    property.insert("description".into(), about.into());
    let text = json!({ "type": "string" });
    match key.shape {
        Shape::Count { min, max } => {
            property.insert("type".into(), "integer".into());
            property.insert("minimum".into(), min.into());
            property.insert("maximum".into(), max.into());
        }
        Shape::Flag => {
            property.insert("type".into(), "boolean".into());
        }
        Shape::OneOf(names) => {
            property.insert("enum".into(), names.iter().map(|(name, _)| Value::from(*name)).collect());
        }
        Shape::Times => {
            property.insert("anyOf".into(), json!([text, { "type": "array", "items": text }]));
        }
        Shape::Share { .. } => {
            property.insert("anyOf".into(), json!([text, { "type": "number" }]));
        }
        Shape::SizeShareOrNone | Shape::TimeOrNone => {
            property.insert("anyOf".into(), json!([text, { "const": false }]));
        }
        _ => {
            property.insert("type".into(), "string".into());
        }
    }
    if let Preset::Is(default) = key.preset {
        let default = match key.shape {
            Shape::Count { .. } => default.parse::<u64>().map_or(Value::Null, Value::from),
            Shape::Flag => Value::Bool(default == "true"),
            _ => Value::from(default),
        };
        property.insert("default".into(), default);
    }
    Value::Object(property)
}
