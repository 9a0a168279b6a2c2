//! The map of a page map: all of it in memory, or read from flash on demand.

use crate::context::Context;
use crate::key::Preset::{Is, Nothing, Required};
use crate::key::{Key, key};
use crate::toml_reader::datum::{Datum, Shape};
use nvlab_controller::page_map::DemandMap;
use nvlab_units::Span;
use nvlab_units::quantity::display_bytes;

/// Bytes of an entry of the directory: where a translation page is.
const DIRECTORY_ENTRY_BYTES: u64 = 4;
/// Minimum bytes of an entry in a translation page.
const ENTRY_BYTES_MIN: u64 = 4;

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "ftl.map.kind",
        &["page"],
        Shape::OneOf(&[
            ("memory", "the whole map is in memory"),
            (
                "demand",
            "the map is stored in translation pages in flash, which are read on demand and cached in memory (DFTL; \
             drives without DRAM, cards)",
            ),
        ]),
        Is("memory"),
        "\"demand\"",
    )
    .about(
        "Where the map is stored. A translation page is a unit with the entries of neighbouring units. Changed ones are \
         programmed when they are evicted; every `ftl.map.checkpoint`, all of them and their directory are.",
    ),
    key("ftl.map.cache", &["demand"], Shape::Size { min: 1, max: 1 << 40 }, Required, "\"256 KiB\"").about(
        "Cache of translation pages in the memory of the map, with LRU replacement. The directory, 4 B per translation \
         page, is in the same memory.",
    ),
    key(
        "ftl.map.host_buffer",
        &["demand"],
        Shape::Size { min: 1, max: 1 << 40 },
        Nothing("none: a cache miss is read from flash"),
        "\"64 MiB\"",
    )
    .about(
        "Second-level cache of translation pages in the host's memory (host memory buffer, NVMe 1.2). Its contents are \
         lost in a power cut and are not needed afterwards.",
    ),
    key("ftl.map.host_read", &["demand"], Shape::Time, Is("1 us"), "\"1 us\"")
        .about("Time to read an entry from the host memory buffer, over the link."),
];

/// The keys of a map on demand, as written.
pub struct Keys {
    cache: u64,
    host_buffer: u64,
    host_read: Span,
}

/// Reads the keys. `Some(None)`: all of the map is in memory.
pub fn read(context: &mut Context, ftl: &str) -> Option<Option<Keys>> {
    let meanings = [("memory", false), ("demand", true)];
    let (kind, true) = context.named_choice("ftl.map.kind", ftl, &meanings)? else { return Some(None) };
    let cache = context.size("ftl.map.cache", kind);
    let host_buffer = match context.get("ftl.map.host_buffer", Some(kind)) {
        Some(Datum::Size(bytes)) => bytes,
        _ => 0,
    };
    let host_read = context.time("ftl.map.host_read", kind);
    Some(Some(Keys { cache: cache?, host_buffer, host_read: host_read? }))
}

/// The map of a device with this many units and this unit and entry size, in memory or on demand: the configuration
/// for the controller, and the bytes it uses of its memory.
pub fn of_device(
    context: &mut Context,
    keys: Option<Keys>,
    (logical_units, unit, entry): (u32, u64, u64),
) -> Option<(Option<DemandMap>, u64)> {
    let Some(keys) = keys else { return Some((None, logical_units as u64 * entry)) };
    if entry < ENTRY_BYTES_MIN {
        let problem = format!("`ftl.map.entry` is too small for a map in flash: {entry} B");
        context.wrong("ftl.map.entry", problem, format!("at least {ENTRY_BYTES_MIN} B"));
        return None;
    }
    let pages = |bytes: u64| (bytes / unit).min(u32::MAX as u64) as u32;
    for (key, bytes) in [("ftl.map.cache", keys.cache), ("ftl.map.host_buffer", keys.host_buffer)] {
        if pages(bytes) == 0 && (bytes > 0 || key == "ftl.map.cache") {
            let problem = format!("`{key}` is smaller than a translation page: {}", display_bytes(bytes));
            context.wrong(key, problem, format!("at least a unit: {}", display_bytes(unit)));
            return None;
        }
    }
    let map = DemandMap {
        entries: (unit / entry) as u32,
        cache_pages: pages(keys.cache),
        host_pages: pages(keys.host_buffer),
        host_read: keys.host_read,
    };
    let bytes = keys.cache + map.pages(logical_units) as u64 * DIRECTORY_ENTRY_BYTES;
    Some((Some(map), bytes))
}
