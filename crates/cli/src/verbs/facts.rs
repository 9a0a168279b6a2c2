//! Tables of facts, a name and a value each, for verbs that show one thing.

use crate::output::Output;
use crate::table::{Cell, Column, Table};
use nvlab_report::Format;
use serde_json::{Value, json};

/// Prints one document, as `--json` or `--format jsonl` wants it.
pub fn print_json(output: &Output, document: &Value) {
    match output.format {
        Format::Json => output.print(format!("{document:#}")),
        _ => output.print(document),
    }
}

/// Prints facts as a table of two columns or one JSON document.
pub fn print(output: &Output, schema: &'static str, facts: &[(&str, Value)]) {
    match output.format {
        Format::Json | Format::JsonLines => {
            let mut document = json!({ "schema": schema });
            facts.iter().for_each(|(key, value)| document[*key] = value.clone());
            print_json(output, &document);
        }
        _ => {
            let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
            let rows = facts.iter().map(|(key, value)| {
                vec![Cell::text(key.replace('_', " ")), Cell::new(shown(value), value.clone())]
            });
            let columns = vec![Column::text("fact", "fact"), Column::text("value", "value")];
            let table = Table { schema, columns, rows: rows.collect() };
            output.table(&table);
        }
    }
}
