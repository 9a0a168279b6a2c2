//! From keys to a typed [`Design`]: reads every table, then checks what only shows when they are put together.

use super::context::Context;
use super::datum::Datum;
use super::part::{self, Backup, Flash, Part, Ram};
use super::{Array, Buffer, Design, Ftl, HostPath, Map, Medium, PathKind, checks, load};
use nvlab_controller::page_map::{Cleaning, Streams, WearLevelling};
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Geometry, Rate};
use std::collections::BTreeMap;

/// Over-provisioning of a design that does not say.
const SPARE: f64 = 0.07;

/// The media of a design, by name.
pub type Media = BTreeMap<String, Medium>;

/// Reads everything; `None` if a problem, which is then reported, leaves no design.
pub fn resolve(context: &mut Context, file_stem: &str) -> Option<Design> {
    context.get("schema", None);
    let name = context.text("design.name", "").unwrap_or_else(|| {
        context.derive("design.name", Datum::Text(file_stem.to_string()), "the name of the file");
        file_stem.to_string()
    });
    let about = context.text("design.about", "").unwrap_or_default();
    let cite = context.text("design.cite", "").unwrap_or_default();
    context.text("design.extends", "");
    let media = media(context);
    let path = host_path(context);
    let (array, ftl) = controller(context, &media)?;
    Some(Design { name, about, cite, media, array, ftl, path: path?, resolved: Vec::new() })
}

fn media(context: &mut Context) -> Media {
    let mut media = Media::new();
    for name in load::media_names(context) {
        let table = format!("media.{name}");
        let part_name = context.text(&format!("{table}.part"), "");
        if context.gave_up_on(&table) {
            continue;
        }
        if let Some(part) = part::read(context, &table) {
            media.insert(name, Medium { part_name, part });
        }
    }
    media
}

/// The name a key gives, and the medium if it is there and right.
fn named<'m>(
    context: &mut Context,
    media: &'m Media,
    path: &str,
    kind: &str,
) -> Option<(String, &'m Medium)> {
    let name = context.text(path, kind)?;
    match media.get(&name) {
        Some(medium) => Some((name, medium)),
        // It is there, but was wrong: that has been reported.
        None if load::media_names(context).contains(&name) => None,
        None => {
            let names: Vec<String> = load::media_names(context).into_iter().collect();
            let help = match names.as_slice() {
                [] => "there is no [media.NAME] at all".to_string(),
                names => format!("media of this design: {}", names.join(", ")),
            };
            context.wrong(path, format!("`{path}`: there is no medium `{name}`"), help);
            None
        }
    }
}

fn named_ram(context: &mut Context, media: &Media, path: &str, kind: &str) -> Option<(String, Ram)> {
    let (name, medium) = named(context, media, path, kind)?;
    match &medium.part {
        Part::Ram(ram) => Some((name, ram.clone())),
        other => {
            let problem = format!("`{path}`: `{name}` is of kind \"{}\"", other.kind());
            context.wrong(path, problem, "it must be a medium of kind \"ram\"");
            None
        }
    }
}

fn controller(context: &mut Context, media: &Media) -> Option<(Array, Ftl)> {
    let channels = context.count("array.channels", "");
    let ways = context.count("array.ways", "");
    let gang = context.count("array.gang", "");
    let planes_set = context.get("array.planes", None);
    let transfer = context.rate("array.transfer", "");
    let kind = context.text("ftl.kind", "")?;
    let flash = data_flash(context, media, &kind);
    let unit = context.size("ftl.unit", &kind);
    let map = map(context, media);
    let cleaning = cleaning(context);
    let wear = wear(context);
    let streams = streams(context, &kind);
    let trim = context.flag("ftl.trim", &kind);
    let free_blocks_min = context.count("ftl.free_blocks_min", &kind);
    let overhead = context.time("ftl.overhead", &kind);
    let share = spare(context, &kind);
    let buffer = buffer(context, media, unit);

    let (medium, flash) = flash?;
    let (gang, unit) = (gang?, unit?);
    let planes = planes(context, planes_set, &flash)?;
    let transfer = transfer.unwrap_or_else(|| ganged(&flash, gang));
    let (geometry, units_per_read) = geometry(context, &flash, [channels?, ways?, gang, planes], unit)?;
    let logical_units = logical_units(context, &geometry, share?)?;
    let array = Array { gang, planes, transfer, geometry, units_per_read };
    let ftl = Ftl {
        medium,
        unit_bytes: unit as u32,
        logical_units,
        trim: trim?,
        streams: streams?,
        free_blocks_min: free_blocks_min?,
        overhead: overhead?,
        map: map?,
        buffer: buffer?,
        cleaning: cleaning?,
        wear: wear?,
    };
    checks::blocks(context, &array, &ftl)?;
    checks::buffer(context, &array, &ftl)?;
    checks::memory(context, media, &ftl)?;
    Some((array, ftl))
}

fn data_flash(context: &mut Context, media: &Media, kind: &str) -> Option<(String, Flash)> {
    let (name, medium) = named(context, media, "ftl.medium", kind)?;
    match &medium.part {
        Part::Nand(flash) => Some((name, flash.clone())),
        other => {
            let problem = format!("`ftl.medium`: `{name}` is of kind \"{}\"", other.kind());
            context.wrong("ftl.medium", problem, "a page map needs a medium of kind \"nand\"");
            None
        }
    }
}

fn planes(context: &mut Context, set: Option<Datum>, flash: &Flash) -> Option<u32> {
    let planes = match set {
        Some(Datum::Count(planes)) => planes as u32,
        _ => {
            context.derive("array.planes", Datum::Count(flash.planes as u64), "the planes of the part");
            flash.planes
        }
    };
    if !flash.planes.is_multiple_of(planes) {
        let problem = format!("`array.planes` is {planes}, the part has {}", flash.planes);
        context.wrong("array.planes", problem, "planes of the part must be a multiple of it");
        return None;
    }
    Some(planes)
}

/// A gang's bus is as wide as its chips together.
fn ganged(flash: &Flash, gang: u32) -> Rate {
    match flash.transfer.transfer(1 << 20).ps() {
        0 => flash.transfer,
        // The time of 2^20 bytes over one chip, shared among the gang.
        ps => Rate::from_bytes_per_second(
            u64::try_from((1u128 << 20) * 1_000_000_000_000 * gang as u128 / ps as u128)
                .unwrap_or(u64::MAX)
                .max(1),
        ),
    }
}

fn geometry(
    context: &mut Context,
    flash: &Flash,
    [channels, ways, gang, planes]: [u32; 4],
    unit: u64,
) -> Option<(Geometry, u32)> {
    let physical = flash.page_bytes * gang as u64;
    let page = physical * planes as u64 * flash.one_shot as u64;
    if !page.is_multiple_of(unit) || !(physical.is_multiple_of(unit) || unit.is_multiple_of(physical)) {
        let problem = format!(
            "`ftl.unit` ({}) does not divide a page of the array ({}: {gang} chip(s) x {planes} plane(s) x {} page(s) \
             of {})",
            display_bytes(unit),
            display_bytes(page),
            flash.one_shot,
            display_bytes(flash.page_bytes)
        );
        context.wrong("ftl.unit", problem, "a page must hold a whole number of units");
        return None;
    }
    let blocks = flash.blocks_per_plane as u64 * (flash.planes / planes) as u64;
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let geometry = Geometry {
        channels,
        dies_per_channel: ways,
        blocks_per_die: narrow(blocks),
        pages_per_block: flash.pages_per_block / flash.one_shot,
        units_per_page: narrow(page / unit),
        unit_bytes: unit as u32,
    };
    if let Err(problem) = geometry.check() {
        context.wrong("ftl.unit", problem, "a larger `ftl.unit`, fewer dies or fewer blocks");
        return None;
    }
    Some((geometry, narrow(physical / unit).max(1)))
}

/// What the host can address.
enum Share {
    /// This share of the raw capacity.
    Of(f64),
    /// So many bytes.
    Bytes(u64),
}

const SPARE_KEYS: [&str; 3] = ["ftl.spare", "ftl.utilization", "ftl.capacity"];

fn spare(context: &mut Context, kind: &str) -> Option<Share> {
    let set: Vec<&str> = SPARE_KEYS.into_iter().filter(|key| context.has(key)).collect();
    let values: Vec<Option<Datum>> = set.iter().map(|key| context.get(key, Some(kind))).collect();
    if let [first, second, ..] = set.as_slice() {
        let problem = format!("`{first}` and `{second}` say the same thing");
        context.wrong(second, problem, "keep one of `spare`, `utilization` and `capacity`");
        return None;
    }
    match (set.first(), values.into_iter().next().flatten()) {
        (None, _) => {
            context.derive("ftl.spare", Datum::Share(SPARE), "the default");
            Some(Share::Of(1.0 - SPARE))
        }
        (Some(_), Some(Datum::Size(bytes))) => Some(Share::Bytes(bytes)),
        (Some(&"ftl.utilization"), Some(Datum::Share(share))) => Some(Share::Of(share)),
        (Some(_), Some(Datum::Share(share))) => Some(Share::Of(1.0 - share)),
        _ => None,
    }
}

/// The key that says how much is spare, to point at.
pub fn spare_key(context: &Context) -> &'static str {
    SPARE_KEYS.into_iter().find(|key| context.has(key)).unwrap_or(SPARE_KEYS[0])
}

fn logical_units(context: &mut Context, geometry: &Geometry, share: Share) -> Option<u32> {
    let raw = geometry.units();
    let units = match share {
        // The millionth of a unit lets 80 % of 1000 be 800 although 0.8 is not exact.
        Share::Of(share) => (raw as f64 * share + 1e-6).floor() as u64,
        Share::Bytes(bytes) => bytes / geometry.unit_bytes as u64,
    };
    let key = spare_key(context);
    if units == 0 || units >= raw {
        let problem = format!(
            "`{key}` leaves {} for the host of {} raw",
            display_bytes(units.saturating_mul(geometry.unit_bytes as u64)),
            display_bytes(geometry.bytes())
        );
        context.wrong(key, problem, "the host must have something, and less than everything");
        return None;
    }
    u32::try_from(units).ok()
}

fn streams(context: &mut Context, kind: &str) -> Option<Streams> {
    let hot_within = context.share("ftl.hot_within", kind);
    Some(match context.text("ftl.streams", kind)?.as_str() {
        "one" => Streams::One,
        "host-and-relocated" => Streams::HostAndRelocated,
        _ => Streams::HotColdRelocated { hot_within: hot_within? },
    })
}

fn map(context: &mut Context, media: &Media) -> Option<Map> {
    let ram = named_ram(context, media, "ftl.map.in", "");
    let entry_bytes = context.size("ftl.map.entry", "");
    let checkpoint_bytes = match context.get("ftl.map.checkpoint", None)? {
        Datum::Size(bytes) => Some(bytes),
        _ => None,
    };
    Some(Map { medium: ram?.0, entry_bytes: entry_bytes?, checkpoint_bytes })
}

/// `Some(None)`: there is no buffer.
fn buffer(context: &mut Context, media: &Media, unit: Option<u64>) -> Option<Option<Buffer>> {
    let kind = context.text("ftl.buffer.kind", "")?;
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

fn cleaning(context: &mut Context) -> Option<Cleaning> {
    let kind = context.text("ftl.clean.kind", "")?;
    Some(match kind.as_str() {
        "greedy" => Cleaning::Greedy,
        "fifo" => Cleaning::Fifo,
        "cost-benefit" => Cleaning::CostBenefit,
        "d-choices" => Cleaning::DChoices { d: context.count("ftl.clean.d", &kind)? },
        _ => Cleaning::WindowedGreedy { window: context.count("ftl.clean.window", &kind)? },
    })
}

fn wear(context: &mut Context) -> Option<WearLevelling> {
    let kind = context.text("ftl.wear.kind", "")?;
    Some(match kind.as_str() {
        "none" => WearLevelling { dynamic: false, static_threshold: None },
        "dynamic" => WearLevelling { dynamic: true, static_threshold: None },
        _ => {
            let threshold = context.count("ftl.wear.threshold", &kind)?;
            WearLevelling { dynamic: true, static_threshold: Some(threshold) }
        }
    })
}

fn host_path(context: &mut Context) -> Option<HostPath> {
    let kind = context.text("path.kind", "")?;
    let rate = if kind == "direct" { None } else { context.rate("path.rate", &kind) };
    let queue = context.count("path.queue", &kind);
    let overhead_host = context.time("path.overhead.host", "");
    let overhead_device = context.time("path.overhead.device", "");
    let path_kind = match kind.as_str() {
        "nvme" => PathKind::Nvme,
        "sata" => PathKind::Sata,
        "bus" => PathKind::Bus,
        _ => PathKind::Direct,
    };
    if path_kind == PathKind::Sata && queue.is_some_and(|queue| queue > 32) {
        context.wrong("path.queue", "`path.queue`: SATA has 32 command slots", "a whole number from 1 to 32");
        return None;
    }
    Some(HostPath {
        kind: path_kind,
        rate,
        queue: queue?,
        overhead_host: overhead_host?,
        overhead_device: overhead_device?,
    })
}
