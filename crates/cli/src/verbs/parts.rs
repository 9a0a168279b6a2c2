//! `nvlab parts`: the built-in parts, with the source of each number.

use crate::args::Parts;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use nvlab_design::sheets::{self, Sheet};
use nvlab_report::Format;
use nvlab_units::Span;
use nvlab_units::quantity::display_bytes;
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
        Column::number("capacity_bytes", "capacity"),
        Column::number("read_ns", "read"),
        Column::number("write_ns", "write"),
        Column::number("erase_ns", "erase"),
        Column::number("endurance_cycles", "cycles"),
        Column::number("price_usd_per_gib", "price"),
        Column::number("read_max_ns", "slowest read"),
        Column::text("about", "about"),
    ];
    let ns = |span: Span| span.ps() as f64 / 1e3;
    let rows = sheets::list().into_iter().map(|row| {
        let [fastest, slowest] = row.read;
        let read = match fastest == slowest {
            true => fastest.to_string(),
            false => format!("{fastest} .. {slowest}"),
        };
        vec![
            Cell::text(row.name),
            Cell::text(row.kind),
            Cell::or_dash((row.bytes > 0).then_some(row.bytes), |bytes| {
                Cell::new(display_bytes(bytes), bytes)
            }),
            Cell::new(read, ns(fastest)),
            Cell::new(row.write.to_string(), ns(row.write)),
            Cell::or_dash(row.erase, |erase| Cell::new(erase.to_string(), ns(erase))),
            Cell::or_dash(row.endurance, |cycles| Cell::new(cycles.to_string(), cycles)),
            Cell::or_dash(row.price, |price| Cell::new(price.to_string(), price.of(1 << 30))),
            Cell::new(slowest.to_string(), ns(slowest)),
            Cell::text(row.about),
        ]
    });
    let mut table = Table { schema: "nvlab.parts/1", columns, rows: rows.collect() };
    if output.format == Format::Human {
        // The descriptions are in `parts show`: with them, no terminal is wide enough.
        table.columns.truncate(8);
        table.rows.iter_mut().for_each(|row| row.truncate(8));
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
