//! `nvlab parts`: the datasheets.

use crate::args::Parts;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use nvlab_lab::design::sheets::{self, Sheet};
use nvlab_lab::report::Format;
use serde_json::{Value, json};

pub fn parts(output: &Output, verb: Option<Parts>) -> Result<(), Failure> {
    match verb.unwrap_or(Parts::List) {
        Parts::List => list(output),
        Parts::Show { name } => return show(output, &name),
    }
    Ok(())
}

fn list(output: &Output) {
    let columns = vec![
        Column::text("name", "part"),
        Column::text("kind", "kind"),
        Column::number("capacity", "capacity"),
        Column::number("read", "read"),
        Column::number("write", "write"),
        Column::number("erase", "erase"),
        Column::number("endurance", "cycles"),
        Column::number("price", "price"),
        Column::text("about", "about"),
    ];
    let rows = sheets::list().into_iter().map(|row| {
        [
            row.name,
            row.kind,
            row.capacity,
            row.read,
            row.write,
            row.erase,
            row.endurance,
            row.price,
            row.about,
        ]
        .map(Cell::text)
        .to_vec()
    });
    let mut table = Table { schema: "nvlab.parts/1", columns, rows: rows.collect() };
    if output.format == Format::Human {
        // The descriptions are in `parts show`: with them, no terminal is wide enough.
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    output.table(&table);
}

fn show(output: &Output, name: &str) -> Result<(), Failure> {
    let sheet = Sheet::load(name)?;
    match output.format {
        Format::Json | Format::JsonLines => {
            let facts = sheet.facts.iter().map(|fact| {
                json!({
                    "key": fact.key,
                    "value": fact.value,
                    "basis": fact.evidence.basis.name(),
                    "source": fact.evidence.source,
                })
            });
            let facts: Vec<Value> = facts.collect();
            let document =
                json!({ "schema": "nvlab.part/1", "name": sheet.name, "about": sheet.about, "facts": facts });
            output.print(match output.format {
                Format::Json => format!("{document:#}"),
                _ => document.to_string(),
            });
        }
        _ => output.print(sheet.show()),
    }
    Ok(())
}
