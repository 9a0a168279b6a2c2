//! `nvlab heap`: contents and cost of heaps of persistent objects.

mod bench;
mod dump;

use super::facts::{self, print_json};
use crate::args::HeapVerb;
use crate::failure::Failure;
use crate::output::Output;
use nvlab_nvheap::{
    BlockSize, Check, Cycle, Error, Inspection, Unreachable, compact, compact_with_checksums,
};
use nvlab_report::Format;
use serde_json::{Value, json};
use std::path::Path;

pub fn heap(output: &Output, verb: HeapVerb) -> Result<(), Failure> {
    match verb {
        HeapVerb::Stat { file } => stat(output, &file),
        HeapVerb::Check { file } => check(output, &file),
        HeapVerb::Compact { file, drop_unreachable, checksums } => {
            shrink(output, &file, drop_unreachable, checksums)
        }
        HeapVerb::Dump { file, depth, limit } => dump::dump(output, &open(&file)?, depth, limit),
        HeapVerb::Bench(args) => bench::bench(output, &args),
    }
}

fn failure(file: &Path, error: Error) -> Failure {
    match error {
        Error::Damaged { .. } => Failure::Check(format!("{}: {error}", file.display())),
        Error::Io { .. } => Failure::Machine(error.to_string()),
        _ => Failure::Input(error.to_string()),
    }
}

fn open(file: &Path) -> Result<Inspection, Failure> {
    Inspection::open(file).map_err(|error| failure(file, error))
}

fn is_json(output: &Output) -> bool {
    matches!(output.format, Format::Json | Format::JsonLines)
}

fn size(size: &BlockSize) -> (String, Value) {
    let BlockSize { bytes, pages, blocks, room, live_bytes, .. } = *size;
    let name = bytes.map_or("large blocks".into(), |bytes| format!("blocks of {bytes} B"));
    let value = json!({ "block_bytes": bytes, "pages": pages, "blocks": blocks, "room": room, "live_bytes": live_bytes });
    (name, value)
}

fn stat(output: &Output, file: &Path) -> Result<(), Failure> {
    let summary = open(file)?.summary().map_err(|error| failure(file, error))?;
    let mut rows: Vec<(&str, Value)> = vec![
        ("kind", "heap of persistent objects".into()),
        ("version", summary.version.into()),
        ("checksums", summary.checksums.into()),
        ("identity", format!("{:016x}", summary.identity).into()),
        ("fingerprint", format!("{:016x}", summary.fingerprint).into()),
        ("root", summary.root.into()),
        ("root_type", summary.types[0].clone().into()),
        ("bytes", summary.bytes.into()),
        ("bytes_max", summary.bytes_max.into()),
        ("pages", summary.pages.into()),
        ("free_pages", summary.free_pages.into()),
        ("free_pages_at_end", summary.free_pages_at_end.into()),
        ("blocks", summary.blocks.into()),
        ("live_bytes", summary.live_bytes.into()),
        ("free_bytes", summary.free_bytes.into()),
        ("fragmentation", json!((summary.fragmentation * 1e4).round() / 1e4)),
        ("logs", summary.logs.into()),
        ("log_bytes", summary.log_bytes.into()),
        ("epoch", summary.epoch.into()),
        ("records_waiting", summary.records.into()),
        ("closed_in_order", (summary.records == 0).into()),
        ("lists_waiting", summary.waiting.into()),
        ("opens", summary.opens.into()),
        ("persistence", summary.persistence.into()),
    ];
    let sizes: Vec<(String, Value)> = summary.sizes.iter().map(size).collect();
    if is_json(output) {
        rows.push(("types", summary.types.into()));
        rows.push(("sizes", sizes.into_iter().map(|(_, value)| value).collect::<Vec<_>>().into()));
        facts::print(output, "nvlab.nvheap/1", &rows);
        return Ok(());
    }
    rows.push(("types", summary.types.join(", ").into()));
    for ((name, _), size) in sizes.iter().zip(&summary.sizes) {
        let BlockSize { pages, blocks, room, .. } = *size;
        let word = if pages == 1 { "page" } else { "pages" };
        rows.push((name, format!("{blocks} of {room} in {pages} {word}").into()));
    }
    facts::print(output, "nvlab.nvheap/1", &rows);
    Ok(())
}

fn types(cycle: &Cycle) -> String {
    let count = |(name, count): &(String, u64)| format!("{count} {name}");
    cycle.types.iter().map(count).collect::<Vec<_>>().join(", ")
}

fn check(output: &Output, file: &Path) -> Result<(), Failure> {
    let found = open(file)?.check().map_err(|error| failure(file, error))?;
    if is_json(output) {
        let cycle = |cycle: &Cycle| {
            let types: Vec<Value> =
                cycle.types.iter().map(|(name, blocks)| json!({ "type": name, "blocks": blocks })).collect();
            json!({ "at": cycle.at, "reachable": cycle.is_reachable, "blocks": cycle.blocks,
                    "bytes": cycle.bytes, "types": types })
        };
        let problems: Vec<String> = found.problems.iter().map(Error::to_string).collect();
        let cycles: Vec<Value> = found.cycles.iter().map(cycle).collect();
        print_json(
            output,
            &json!({
                "schema": "nvlab.nvheap-check/1", "blocks": found.blocks, "bytes": found.bytes,
                "free_pages": found.free_pages, "checksums": found.checksums, "unreachable": found.unreachable,
                "unreachable_bytes": found.unreachable_bytes, "cycle_count": found.cycle_count,
                "cycles": cycles, "problems": problems,
            }),
        );
    } else {
        output.print(describe(file, &found));
    }
    match found.problems.len() {
        0 => Ok(()),
        count => Err(Failure::Check(format!("{}: the heap is damaged in {count} places", file.display()))),
    }
}

/// What a check found, in lines.
fn describe(file: &Path, found: &Check) -> String {
    let state = if found.problems.is_empty() { "undamaged" } else { "damaged" };
    let has = if found.checksums { "with checksums" } else { "without checksums" };
    let file = file.display();
    let mut lines = vec![format!("{file}: {} blocks, {} B, {has}, {state}", found.blocks, found.bytes)];
    lines.extend(found.problems.iter().map(Error::to_string));
    if found.unreachable > 0 {
        let Check { unreachable, unreachable_bytes, .. } = found;
        lines.push(format!("{unreachable} blocks are unreachable, {unreachable_bytes} B"));
    }
    for cycle in &found.cycles {
        let use_ = if cycle.is_reachable { "in use" } else { "lost" };
        lines.push(format!(
            "a cycle of {} blocks, {} B, first at byte {}, {use_}: {}",
            cycle.blocks,
            cycle.bytes,
            cycle.at,
            types(cycle)
        ));
    }
    let more = found.cycle_count - found.cycles.len() as u64;
    if more > 0 {
        lines.push(format!("{more} more cycles"));
    }
    lines.join("\n")
}

fn shrink(output: &Output, file: &Path, drop_unreachable: bool, checksums: bool) -> Result<(), Failure> {
    let unreachable = if drop_unreachable { Unreachable::Drop } else { Unreachable::Keep };
    let done = match checksums {
        true => compact_with_checksums(file, unreachable),
        false => compact(file, unreachable),
    };
    let done = done.map_err(|error| failure(file, error))?;
    let facts = [
        ("bytes_before", done.bytes_before.into()),
        ("bytes", done.bytes.into()),
        ("blocks", done.blocks.into()),
        ("dropped", done.dropped.into()),
    ];
    facts::print(output, "nvlab.nvheap-compact/1", &facts);
    Ok(())
}
