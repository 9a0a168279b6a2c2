//! The page map: `ftl.kind = "page"`.

use super::super::context::Context;
use super::super::ftl::{Buffer, Map, PageMapped};
use super::super::part::Backup;
use super::super::{Array, HostPath, PathKind, checks};
use super::{Media, Wiring, array, data_flash, named_ram, slc, space};
use crate::toml_reader::datum::Datum;
use nvlab_controller::page_map::{Allocation, Cleaning, Streams, WearLevelling};

const KIND: &str = "page";
/// Over-provisioning of a design that does not say.
const SPARE: f64 = 0.07;

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, PageMapped)> {
    let flash = data_flash(context, media, (KIND, "nand"), "a page map");
    let unit = context.size("ftl.unit", KIND);
    let map = map(context, media);
    let cleaning = cleaning(context, KIND);
    let wear = wear(context, KIND);
    let allocation = allocation(context);
    let streams = streams(context);
    let trim = context.flag("ftl.trim", KIND);
    let verify_reads = context.flag("ftl.verify_reads", KIND).unwrap_or(false);
    let free_blocks_min = context.count("ftl.free_blocks_min", KIND);
    let overhead = context.time("ftl.overhead", KIND);
    let share = space::spare(context, KIND, SPARE);
    let buffer = buffer(context, media, unit);
    let cache = slc::cache_keys(context, media);
    if path.is_some_and(|path| path.kind == PathKind::MemoryBus) {
        let help = "kind = \"direct\", \"nvme\", \"sata\" or \"bus\"";
        context.wrong("path.kind", "`path.kind`: a page map serves blocks, not words", help);
        return None;
    }

    let (medium, flash) = flash?;
    let (gang, unit) = (wiring.gang?, unit?);
    let planes = array::planes(context, wiring.planes_set, &flash)?;
    let transfer = wiring.transfer.unwrap_or_else(|| array::ganged(&flash, gang));
    let shape = [wiring.channels?, wiring.ways?, gang, planes];
    let (geometry, units_per_read) = array::geometry(context, &flash, shape, unit)?;
    let logical_units = space::logical_units(context, geometry.units(), unit as u32, share?)?;
    let streams = streams?;
    let cache = match cache? {
        Some(keys) => Some(slc::cache(context, keys, streams, &medium, &geometry, gang * planes)?),
        None => None,
    };
    let array = Array { gang, planes, transfer, geometry, units_per_read };
    let page = PageMapped {
        medium,
        unit_bytes: unit as u32,
        logical_units,
        trim: trim?,
        verify_reads,
        allocation: allocation?,
        streams,
        free_blocks_min: free_blocks_min?,
        overhead: overhead?,
        map: map?,
        buffer: buffer?,
        cache,
        cleaning: cleaning?,
        wear: wear?,
    };
    checks::copy_back(context, &flash, &page)?;
    checks::blocks(context, &array, &page)?;
    checks::buffer(context, &array, &page)?;
    checks::memory(context, media, &page)?;
    Some((array, page))
}

fn allocation(context: &mut Context) -> Option<Allocation> {
    Some(match context.text("ftl.allocation", KIND)?.as_str() {
        "dynamic" => Allocation::Dynamic,
        _ => Allocation::Superblock,
    })
}

fn streams(context: &mut Context) -> Option<Streams> {
    let hot_within = context.share("ftl.hot_within", KIND);
    Some(match context.text("ftl.streams", KIND)?.as_str() {
        "one" => Streams::One,
        "host-and-relocated" => Streams::HostAndRelocated,
        _ => Streams::HotColdRelocated { hot_within: hot_within? },
    })
}

fn map(context: &mut Context, media: &Media) -> Option<Map> {
    let ram = named_ram(context, media, "ftl.map.in", "");
    let entry_bytes = context.size("ftl.map.entry", KIND);
    let checkpoint_bytes = match context.get("ftl.map.checkpoint", Some(KIND))? {
        Datum::Size(bytes) => Some(bytes),
        _ => None,
    };
    Some(Map { medium: ram?.0, entry_bytes: entry_bytes?, checkpoint_bytes })
}

/// `Some(None)`: there is no buffer.
fn buffer(context: &mut Context, media: &Media, unit: Option<u64>) -> Option<Option<Buffer>> {
    let kind = context.text("ftl.buffer.kind", KIND)?;
    let on_cut = context.get("power.on_cut", None);
    if kind == "none" {
        return Some(None);
    }
    let ram = named_ram(context, media, "ftl.buffer.in", &kind);
    let bytes = context.size("ftl.buffer.size", &kind);
    let (medium, ram) = ram?;
    let backed = ram.backup != Backup::None;
    let protected = match on_cut {
        Some(Datum::Text(on_cut)) if on_cut == "keep-buffer" && !backed => {
            let problem = format!("`power.on_cut`: `{medium}` forgets when the power fails");
            let help =
                format!("media.{medium}.backup = \"battery\" or \"capacitor\", or on_cut = \"lose-buffer\"");
            context.wrong("power.on_cut", problem, help);
            return None;
        }
        Some(Datum::Text(on_cut)) => on_cut == "keep-buffer",
        _ => {
            let text = if backed { "keep-buffer" } else { "lose-buffer" };
            context.derive("power.on_cut", Datum::Text(text.into()), "the backup of the buffer's memory");
            backed
        }
    };
    let store = ram.cells.store(unit?);
    Some(Some(Buffer { medium, bytes: bytes?, protected, store }))
}

/// Reads `[ftl.clean]` of a page map of kind `ftl`.
pub fn cleaning(context: &mut Context, ftl: &str) -> Option<Cleaning> {
    let kind = context.text("ftl.clean.kind", ftl)?;
    Some(match kind.as_str() {
        "greedy" => Cleaning::Greedy,
        "fifo" => Cleaning::Fifo,
        "cost-benefit" => Cleaning::CostBenefit,
        "d-choices" => Cleaning::DChoices { d: context.count("ftl.clean.d", &kind)? },
        _ => Cleaning::WindowedGreedy { window: context.count("ftl.clean.window", &kind)? },
    })
}

/// Reads `[ftl.wear]` of a page map of kind `ftl`.
pub fn wear(context: &mut Context, ftl: &str) -> Option<WearLevelling> {
    let kind = context.text("ftl.wear.kind", ftl)?;
    Some(match kind.as_str() {
        "none" => WearLevelling { dynamic: false, static_threshold: None },
        "dynamic" => WearLevelling { dynamic: true, static_threshold: None },
        _ => {
            let threshold = context.count("ftl.wear.threshold", &kind)?;
            WearLevelling { dynamic: true, static_threshold: Some(threshold) }
        }
    })
}
