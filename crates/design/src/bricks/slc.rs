//! Blocks of the data array in SLC mode, whose properties another medium states; and the cache that a page map has in
//! them.

use super::memories::{self, Media};
use crate::context::Context;
use crate::key::Preset::{Is, Nothing, Required};
use crate::key::{Key, key};
use crate::part::Flash;
use crate::toml_reader::datum::{Datum, Shape};
use nvlab_controller::page_map::{CacheFull, CacheTakes, SlcCache, Streams};
use nvlab_medium::flash::SlcMode;
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Geometry, Span};

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "ftl.cache.kind",
        &["page"],
        Shape::OneOf(&[
            ("none", "every block stores all bits per cell"),
            (
                "pslc",
                "host data goes to blocks with one bit per cell, while there is room",
            ),
            (
                "hot",
                "only recently written data goes there; data that is not overwritten in time migrates \
                 (reference 9 of system 002)",
            ),
            (
                "set-associative",
                "no SLC mode: cache lines of DRAM in front of the page map, accessed by loads and stores over \
                 CXL.mem (`path.kind = \"cxl-mem\"`)",
            ),
        ]),
        Is("none"),
        "\"pslc\"",
    )
    .about(
        "A cache: blocks in SLC mode, which are faster and more durable but hold less, or lines of DRAM. Relocated \
         data is always written with all bits per cell, so an SLC cache needs `ftl.streams` that separate it; `hot` \
         needs hot-cold-relocated.",
    ),
    key("ftl.cache.in", CACHES, Shape::Medium, Required, "\"slc\"").about(
        "Medium, by its name under [media], that describes a block of the data medium in SLC mode: its pages, times and \
         endurance. It is not counted in the price.",
    ),
    key("ftl.cache.size_min", CACHES, Shape::Share { max: 0.99 }, Is("0 %"), "\"2 %\"").about(
        "Share of the blocks of a die that is always available to host data in SLC mode, however full the device is. \
         This space must be spare.",
    ),
    key("ftl.cache.size_max", CACHES, Shape::Share { max: 0.99 }, Is("25 %"), "\"25 %\"").about(
        "Maximum share of the blocks of a die in SLC mode. Between `size_min` and this limit, the cache grows into erased \
         blocks.",
    ),
    key(
        "ftl.cache.fixed",
        CACHES,
        Shape::Size { min: 1, max: u64::MAX },
        Nothing("0 B if `dynamic` is given; otherwise set by `size_min`"),
        "\"6 GB\"",
    )
    .about(
        "`size_min` in bytes of SLC capacity of the whole device, as drives state the fixed part of their cache. Rounded \
         to whole blocks per die.",
    ),
    key(
        "ftl.cache.dynamic",
        CACHES,
        Shape::Size { min: 1, max: u64::MAX },
        Nothing("0 B if `fixed` is given; otherwise set by `size_max`"),
        "\"36 GB\"",
    )
    .about(
        "Bytes of SLC capacity by which the cache may grow beyond `fixed`. It takes erased blocks, so it shrinks as the \
         device fills. (Samsung states the TurboWrite cache of a 970 EVO Plus of 1 TB as 6 GB and 36 GB.)",
    ),
    key("ftl.cache.spared", CACHES, Shape::Count { min: 0, max: 1_000_000 }, Is("2"), "2").about(
        "Erased blocks of a die, beyond `ftl.free_blocks_min`, that the cache leaves free when it grows beyond `size_min`.",
    ),
    key("ftl.cache.fold_after", CACHES, Shape::TimeOrNone, Is("none"), "\"100 ms\"").about(
        "Idle time after the last request before folding starts: SLC blocks are then emptied into others in the order in \
         which they were filled. \"none\": only the cleaner and a full cache empty them.",
    ),
    key(
        "ftl.cache.when_full",
        CACHES,
        Shape::OneOf(&[
            ("direct", "host data bypasses the cache"),
            ("fold", "the oldest block is folded to make room, and the host waits"),
        ]),
        Is("direct"),
        "\"direct\"",
    )
    .about("What happens to host data when the cache is full."),
];

/// The kinds of cache in SLC mode.
const CACHES: &[&str] = &["pslc", "hot"];

/// Blocks of the data array that are used with one bit per cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SlcBlocks {
    /// The medium that states their properties, by name.
    pub medium: String,
    /// Their properties.
    pub mode: SlcMode,
}

/// The cache of a page-mapped controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PageCache {
    /// The properties of its blocks.
    pub slc: SlcBlocks,
    /// The cache, for [`nvlab_controller::PageMap::with_cache`].
    pub config: SlcCache,
}

/// The properties of blocks of an array in SLC mode, if `key` names a medium that states them. `chips` of it work in
/// lockstep: gang times planes.
pub fn blocks(
    context: &mut Context,
    key: &str,
    (name, flash): &(String, Flash),
    data: &Geometry,
    chips: u32,
) -> Option<SlcBlocks> {
    let page = flash.page_bytes * chips as u64 * flash.one_shot as u64;
    let units_per_page = page / data.unit_bytes as u64;
    if !page.is_multiple_of(data.unit_bytes as u64) || units_per_page > data.units_per_page as u64 {
        let problem = format!("`{key}`: pages of `{name}` make {} of the array", display_bytes(page));
        let help = format!(
            "a page of the data array has {}: with one bit per cell it is no larger, and holds a whole number of units of {}",
            display_bytes(data.page_bytes()),
            display_bytes(data.unit_bytes as u64)
        );
        context.wrong(key, problem, help);
        return None;
    }
    let pages_per_block = flash.pages_per_block / flash.one_shot;
    if pages_per_block > data.pages_per_block {
        let problem = format!("`{key}`: blocks of `{name}` have {pages_per_block} pages");
        let help = format!(
            "a block of the data array has {}: with one bit per cell it has no more",
            data.pages_per_block
        );
        context.wrong(key, problem, help);
        return None;
    }
    let mode = SlcMode {
        pages_per_block,
        units_per_page: units_per_page as u32,
        read: flash.read[0],
        program: flash.program,
        erase: flash.erase,
        cycles: flash.endurance,
    };
    Some(SlcBlocks { medium: name.clone(), mode })
}

/// The keys of `[ftl.cache]` as written.
pub struct CacheKeys {
    flash: (String, Flash),
    takes: CacheTakes,
    size: Size,
    spared: u32,
    fold_after: Option<Span>,
    when_full: CacheFull,
}

/// The size of a cache: its minimum and its maximum.
#[derive(Clone, Copy)]
enum Size {
    /// Shares of the blocks of a die.
    Shares { min: f64, max: f64 },
    /// Bytes of one bit per cell, in the whole device.
    Bytes { fixed: u64, dynamic: u64 },
}

impl Size {
    /// The same in blocks of a die, of which each holds `block_bytes` in SLC mode.
    fn blocks(self, data: &Geometry, block_bytes: u64) -> (u64, u64) {
        match self {
            // The millionth of a block lets 10 % of 460 be 46 although 0.1 is not exact.
            Size::Shares { min, max } => {
                let blocks_of = |share: f64| (data.blocks_per_die as f64 * share + 1e-6).floor() as u64;
                (blocks_of(min), blocks_of(max))
            }
            Size::Bytes { fixed, dynamic } => {
                let row = data.dies() as u64 * block_bytes;
                // To the nearest block of every die, but not to none.
                let blocks_of = |bytes: u64| (bytes.saturating_add(row / 2) / row).max((bytes > 0) as u64);
                (blocks_of(fixed), blocks_of(fixed.saturating_add(dynamic)))
            }
        }
    }

    /// The keys that state it: minimum and maximum of the cache.
    fn keys(self) -> (&'static str, &'static str) {
        match self {
            Size::Shares { .. } => ("ftl.cache.size_min", "ftl.cache.size_max"),
            Size::Bytes { fixed, dynamic: 0 } if fixed > 0 => ("ftl.cache.fixed", "ftl.cache.fixed"),
            Size::Bytes { .. } => ("ftl.cache.fixed", "ftl.cache.dynamic"),
        }
    }
}

/// Reads how large a cache of a kind is.
fn size(context: &mut Context, kind: &str) -> Option<Size> {
    let (shares, bytes) =
        (["ftl.cache.size_min", "ftl.cache.size_max"], ["ftl.cache.fixed", "ftl.cache.dynamic"]);
    let share = shares.into_iter().find(|key| context.has(key));
    if !bytes.iter().any(|key| context.has(key)) {
        let [min, max] = shares.map(|key| context.share(key, kind));
        return Some(Size::Shares { min: min?, max: max? });
    }
    let [fixed, dynamic] = bytes.map(|key| match context.has(key) {
        true => context.size(key, kind),
        false => Some(0),
    });
    if let Some(share) = share {
        context.get(share, Some(kind));
        let problem = format!("`{share}`: the size of the cache is also given in bytes");
        context.wrong(share, problem, "keep `fixed` and `dynamic`, or `size_min` and `size_max`");
        return None;
    }
    Some(Size::Bytes { fixed: fixed?, dynamic: dynamic? })
}

/// Reads `[ftl.cache]` of a page map; `Some(None)`: there is no cache.
pub fn cache_keys(context: &mut Context, media: &Media) -> Option<Option<CacheKeys>> {
    let meanings = [
        ("none", None),
        ("pslc", Some(CacheTakes::All)),
        ("hot", Some(CacheTakes::Hot)),
        ("set-associative", None),
    ];
    let (kind, Some(takes)) = context.named_choice("ftl.cache.kind", "page", &meanings)? else {
        return Some(None);
    };
    let flash = memories::nand(context, media, "ftl.cache.in", kind);
    let size = size(context, kind);
    let spared = context.count("ftl.cache.spared", kind);
    let fold_after = context.get("ftl.cache.fold_after", Some(kind));
    let when_full = [("direct", CacheFull::WriteDirectly), ("fold", CacheFull::FoldOldest)];
    let when_full = context.choice("ftl.cache.when_full", kind, &when_full);
    Some(Some(CacheKeys {
        flash: flash?,
        takes,
        size: size?,
        spared: spared?,
        fold_after: match fold_after? {
            Datum::Time(span) => Some(span),
            _ => None,
        },
        when_full: when_full?,
    }))
}

/// The cache that the keys describe, over an array; `chips` of its part work in lockstep.
pub fn cache(
    context: &mut Context,
    keys: CacheKeys,
    streams: Streams,
    data_medium: &str,
    data: &Geometry,
    chips: u32,
) -> Option<PageCache> {
    let least = if keys.takes == CacheTakes::Hot { 3 } else { 2 };
    if streams.count() < least {
        let (problem, help) = match keys.takes {
            CacheTakes::Hot => ("hot data needs a stream of its own", "streams = \"hot-cold-relocated\""),
            CacheTakes::All => (
                "relocated data needs a stream of its own",
                "streams = \"host-and-relocated\" or \"hot-cold-relocated\"",
            ),
        };
        context.wrong("ftl.streams", format!("`ftl.streams`: with this `ftl.cache.kind` {problem}"), help);
        return None;
    }
    if keys.flash.0 == data_medium {
        let problem = format!("`ftl.cache.in`: `{data_medium}` is the data medium itself");
        let help = "another medium, such as part = \"tlc-2022-slc\": its blocks with one bit per cell";
        context.wrong("ftl.cache.in", problem, help);
        return None;
    }
    let slc = blocks(context, "ftl.cache.in", &keys.flash, data, chips)?;
    let block_bytes =
        slc.mode.pages_per_block as u64 * slc.mode.units_per_page as u64 * data.unit_bytes as u64;
    let (blocks_min, blocks_max) = keys.size.blocks(data, block_bytes);
    let (key_min, key_max) = keys.size.keys();
    if blocks_max == 0 || blocks_min > blocks_max {
        let problem = format!(
            "`{key_max}` is {blocks_max} blocks of a die, `{key_min}` {blocks_min}: a die has {}",
            data.blocks_per_die
        );
        context.wrong(key_max, problem, "at least one block, and not less than `size_min`");
        return None;
    }
    if blocks_max > data.blocks_per_die as u64 {
        let all = data.blocks() as u64 * block_bytes;
        let problem = format!(
            "`{key_max}`: the cache is larger than the SLC capacity of the device, {}",
            display_bytes(all)
        );
        context.wrong(key_max, problem, "at most what its blocks hold with one bit per cell");
        return None;
    }
    let config = SlcCache {
        blocks_min: blocks_min as u32,
        blocks_max: blocks_max as u32,
        blocks_spared: keys.spared,
        fold_after: keys.fold_after,
        takes: keys.takes,
        when_full: keys.when_full,
    };
    Some(PageCache { slc, config })
}
