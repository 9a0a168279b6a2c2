//! eNVy: `ftl.kind = "envy"`.

use super::super::context::Context;
use super::super::part::{Backup, Flash, Part, Ram};
use super::super::{Array, Envy, HostPath, PathKind};
use super::{Media, Wiring, array, data_flash, named_ram, space};
use crate::toml_reader::datum::Datum;
use nvlab_controller::envy::{Gathering, Locality, SegmentCleaning};
use nvlab_units::Geometry;
use nvlab_units::quantity::display_bytes;

const KIND: &str = "envy";
/// Over-provisioning of a design that does not say (section 4.1: live data is limited to 80 %).
const SPARE: f64 = 0.2;
/// Segments of a die: one being filled, one to clean, one erased.
const SEGMENTS_MIN: u32 = 3;

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, Envy)> {
    let flash = data_flash(context, media, (KIND, "nor"), "eNVy");
    let unit = match context.get("ftl.unit", Some(KIND)) {
        Some(Datum::Size(bytes)) => Some(bytes),
        _ => None,
    };
    let concurrent = context.count("ftl.concurrent", KIND);
    let transaction_pages = context.count("ftl.transaction_pages", KIND);
    let share = space::spare(context, KIND, SPARE);
    let of_total = context.text("ftl.utilization_of", KIND).map(|of| of == "total");
    let memory = memory(context, media);
    let entry_bytes = context.size("ftl.map.entry", KIND);
    let cache_entries = context.count("ftl.map.cache", KIND);
    let buffer = buffer(context);
    let cleaning = cleaning(context);
    let wear = wear(context);
    link(context, path)?;

    let (medium, flash) = flash?;
    let (memory, ram) = memory?;
    let (array, page_steps) = shape(context, &flash, wiring, unit, concurrent?)?;
    let page_bytes = array.geometry.unit_bytes;
    let logical_pages = logical_pages(context, &array.geometry, share?, of_total?)?;
    let buffer = in_pages(context, buffer?, &memory, page_bytes)?;
    let envy = Envy {
        medium,
        memory,
        page_bytes,
        page_steps,
        logical_pages,
        concurrent: concurrent?,
        entry_bytes: entry_bytes?,
        cache_entries: cache_entries?,
        transaction_pages: transaction_pages?,
        buffer_pages: buffer[0],
        flush_at: buffer[1],
        cleaning: cleaning?,
        wear_spread: wear?,
    };
    check_partition(context, &array.geometry, &envy)?;
    check_path(context, path?, &envy)?;
    check_memory(context, &array.geometry, &envy, &ram)?;
    Some((array, envy))
}

fn link(context: &mut Context, path: Option<&HostPath>) -> Option<()> {
    if path?.kind == PathKind::MemoryBus {
        return Some(());
    }
    let help = "kind = \"memory-bus\"; as a block device it is then a RAM disk";
    context.wrong("path.kind", "`path.kind`: eNVy is memory, words are loaded and stored", help);
    None
}

/// The memory of the page table. What stands in it must outlive the power.
fn memory(context: &mut Context, media: &Media) -> Option<(String, Ram)> {
    let (name, ram) = named_ram(context, media, "ftl.map.in", "")?;
    if ram.backup != Backup::None {
        return Some((name, ram));
    }
    let problem =
        format!("`ftl.map.in`: `{name}` forgets when the power fails, and the data with the page table");
    context.wrong("ftl.map.in", problem, format!("media.{name}.backup = \"battery\""));
    None
}

/// The buffer as it is written.
struct Buffer {
    memory: Option<String>,
    bytes: u64,
    flush_at: f64,
}

fn buffer(context: &mut Context) -> Option<Buffer> {
    let kind = context.text("ftl.buffer.kind", KIND)?;
    if kind == "none" {
        return Some(Buffer { memory: None, bytes: 0, flush_at: 0.0 });
    }
    let memory = context.text("ftl.buffer.in", &kind);
    let bytes = context.size("ftl.buffer.size", &kind);
    let flush_at = context.share("ftl.buffer.flush_at", &kind);
    Some(Buffer { memory: Some(memory?), bytes: bytes?, flush_at: flush_at? })
}

/// Pages of the buffer, and pages above which flushing begins: always at least one fewer, or it never would.
fn in_pages(context: &mut Context, buffer: Buffer, memory: &str, page_bytes: u32) -> Option<[u32; 2]> {
    let Some(own) = buffer.memory else { return Some([0, 0]) };
    if own != memory {
        let problem = format!("`ftl.buffer.in`: `{own}` is not the memory of the page table");
        context.wrong("ftl.buffer.in", problem, format!("in = \"{memory}\", as `ftl.map.in`"));
        return None;
    }
    let pages = buffer.bytes / page_bytes as u64;
    match u32::try_from(pages) {
        Ok(pages) if pages > 0 => {
            let flush_at = (pages as f64 * buffer.flush_at + 1e-6).floor() as u32;
            Some([pages, flush_at.min(pages - 1)])
        }
        _ => {
            let problem = format!("`ftl.buffer.size` is out of range: {}", display_bytes(buffer.bytes));
            let help =
                format!("at least one page of {}; or kind = \"none\"", display_bytes(page_bytes as u64));
            context.wrong("ftl.buffer.size", problem, help);
            None
        }
    }
}

fn cleaning(context: &mut Context) -> Option<SegmentCleaning> {
    let kind = context.text("ftl.clean.kind", KIND)?;
    context.count("ftl.clean.reserve", &kind)?;
    let partition_segments = match kind.as_str() {
        "greedy" => return Some(SegmentCleaning::Greedy),
        "fifo" => return Some(SegmentCleaning::Fifo),
        "cost-benefit" => return Some(SegmentCleaning::CostBenefit),
        "gathering" => 1,
        _ => context.count("ftl.clean.partition", &kind)?,
    };
    let mut gathering = Gathering::new(partition_segments);
    for (key, value) in [
        ("smoothing", &mut gathering.smoothing),
        ("step", &mut gathering.step),
        ("step_max", &mut gathering.step_max),
        ("dead_band", &mut gathering.dead_band),
        ("exchange", &mut gathering.exchange),
    ] {
        let path = format!("ftl.clean.{key}");
        match context.has(&path) {
            true => *value = context.share(&path, &kind)?,
            false => context.derive(&path, Datum::Share(*value), "the cleaner's own default"),
        }
    }
    gathering.sorted = sorted(context, &kind)?;
    Some(SegmentCleaning::Gathering(gathering))
}

/// `Some(None)`: nothing is known of the writes beforehand.
fn sorted(context: &mut Context, kind: &str) -> Option<Option<Locality>> {
    let text = context.text("ftl.clean.sorted", kind)?;
    if text == "no" {
        return Some(None);
    }
    let share =
        |text: &str| text.trim().parse().ok().filter(|&percent: &f64| percent > 0.0 && percent < 100.0);
    let shares = text.split_once('/').and_then(|(data, writes)| Some((share(data)?, share(writes)?)));
    if let Some((data, writes)) = shares {
        return Some(Some(Locality { data: data / 100.0, writes: writes / 100.0 }));
    }
    let help = "\"10/90\": the first 10 % of the data get 90 % of the writes; or \"no\"";
    context.wrong("ftl.clean.sorted", format!("`ftl.clean.sorted`: `{text}` is not a locality"), help);
    None
}

/// `Some(None)`: wear is not evened out.
fn wear(context: &mut Context) -> Option<Option<u32>> {
    let kind = context.text("ftl.wear.kind", KIND)?;
    match kind.as_str() {
        "none" => Some(None),
        _ => Some(Some(context.count("ftl.wear.threshold", &kind)?)),
    }
}

/// The array, and the steps of a page. A *die* of the geometry is what programs and erases by itself: banks share
/// the controller's attention, so that it is `concurrent` that counts, not their number.
fn shape(
    context: &mut Context,
    flash: &Flash,
    wiring: Wiring,
    unit: Option<u64>,
    concurrent: u32,
) -> Option<(Array, u32)> {
    let gang = wiring.gang?;
    let planes = array::planes(context, wiring.planes_set, flash)?;
    let width = flash.page_bytes * gang as u64 * planes as u64;
    let unit = unit.unwrap_or_else(|| {
        context.derive("ftl.unit", Datum::Size(width), "the width of the array");
        width
    });
    let segment = width * flash.pages_per_block as u64;
    if !unit.is_multiple_of(width) || !segment.is_multiple_of(unit) {
        let problem = format!(
            "`ftl.unit` ({}) does not fit an array {} wide, with segments of {}",
            display_bytes(unit),
            display_bytes(width),
            display_bytes(segment)
        );
        context.wrong("ftl.unit", problem, "a page is so many widths, a segment so many pages");
        return None;
    }
    let banks = wiring.channels? as u64 * wiring.ways? as u64;
    if !banks.is_multiple_of(concurrent as u64) {
        let problem = format!("`ftl.concurrent` is {concurrent}, the array has {banks} bank(s)");
        context.wrong("ftl.concurrent", problem, "the number of banks must be a multiple of it");
        return None;
    }
    let segments = banks * flash.blocks_per_plane as u64 * (flash.planes / planes) as u64;
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: concurrent,
        blocks_per_die: narrow(segments / concurrent as u64),
        pages_per_block: narrow(segment / unit),
        units_per_page: 1,
        unit_bytes: narrow(unit),
    };
    if let Err(problem) = geometry.check() {
        context.wrong("ftl.unit", problem, "a larger `ftl.unit`, fewer banks or fewer segments");
        return None;
    }
    if geometry.blocks_per_die < SEGMENTS_MIN {
        let problem =
            format!("{} segment(s) for each of {concurrent} cannot be cleaned", geometry.blocks_per_die);
        let help =
            format!("at least {SEGMENTS_MIN}: more banks, or more blocks, or a smaller `ftl.concurrent`");
        context.wrong("ftl.concurrent", problem, help);
        return None;
    }
    if wiring.transfer.is_some() {
        let help = "leave it out: the times of reading and programming include the transfer";
        context.wrong("array.transfer", "`array.transfer` means nothing for NOR flash", help);
        return None;
    }
    let transfer = array::ganged(flash, gang);
    Some((Array { gang, planes, transfer, geometry, units_per_read: 1 }, narrow(unit / width)))
}

/// Segments that hold data: one of each die is kept erased (section 3.4).
fn in_service(geometry: &Geometry) -> u32 {
    geometry.blocks() - geometry.dies()
}

fn logical_pages(
    context: &mut Context,
    geometry: &Geometry,
    share: space::Share,
    of_total: bool,
) -> Option<u32> {
    let serving = in_service(geometry) as u64 * geometry.units_per_block() as u64;
    let raw = if of_total { geometry.units() } else { serving };
    let pages = space::logical_units(context, raw, geometry.unit_bytes, share)?;
    if (pages as u64) < serving {
        return Some(pages);
    }
    let key = space::spare_key(context);
    let problem =
        format!("`{key}` leaves nothing to clean: {pages} pages in {} segments", in_service(geometry));
    context.wrong(key, problem, "less live data than the segments in service can hold");
    None
}

fn check_partition(context: &mut Context, geometry: &Geometry, envy: &Envy) -> Option<()> {
    let segments = geometry.blocks_per_die - 1;
    match envy.cleaning {
        SegmentCleaning::Gathering(gathering) if gathering.partition_segments > segments => {
            let problem = format!("`ftl.clean.partition` is {}", gathering.partition_segments);
            let help = format!("a whole number from 1 to {segments}, the segments in service");
            context.wrong("ftl.clean.partition", problem, help);
            None
        }
        _ => Some(()),
    }
}

fn check_path(context: &mut Context, path: &HostPath, envy: &Envy) -> Option<()> {
    if path.word_bytes <= envy.page_bytes && envy.page_bytes.is_multiple_of(path.word_bytes) {
        return Some(());
    }
    let problem =
        format!("`path.width` ({} B) does not divide a page of {} B", path.word_bytes, envy.page_bytes);
    context.wrong("path.width", problem, "a page is so many words");
    None
}

/// Page table and buffer must fit in their memory.
fn check_memory(context: &mut Context, geometry: &Geometry, envy: &Envy, ram: &Ram) -> Option<()> {
    let table = geometry.units() * envy.entry_bytes;
    let buffer = envy.buffer_pages as u64 * envy.page_bytes as u64;
    let size = Part::Ram(ram.clone()).bytes();
    if table + buffer <= size {
        return Some(());
    }
    let problem = format!(
        "`{}` has {}, but the page table takes {} and the buffer {}",
        envy.memory,
        display_bytes(size),
        display_bytes(table),
        display_bytes(buffer)
    );
    let path = format!("media.{}.size", envy.memory);
    let at = if context.top.leaves.contains_key(&path) { path.as_str() } else { "ftl.map.in" };
    context.wrong(
        at,
        problem,
        format!("give `{path}` at least {}", super::super::checks::at_least(table + buffer)),
    );
    None
}
