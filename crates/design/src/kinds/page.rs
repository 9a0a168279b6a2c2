//! The page map: `ftl.kind = "page"`.

use super::Kind;
use crate::bricks::array::{self, Wiring};
use crate::bricks::buffer;
use crate::bricks::map as map_brick;
use crate::bricks::memories::{self, Media, Memory};
use crate::bricks::slc::{self, PageCache, SlcBlocks};
use crate::bricks::{cleaning, service, space, wear};
use crate::context::Context;
use crate::key::Preset::Is;
use crate::key::{Key, key};
use crate::part::Flash;
use crate::toml_reader::datum::{Datum, Shape};
use crate::{Array, Design, HostPath, Payload, footprint};
use nvlab_controller::page_map::{Allocation, PageMapConfig, Streams, WearLevelling, WriteBuffer};
use nvlab_medium::flash::SlcMode;
use nvlab_units::Geometry;
use nvlab_units::quantity::{display_bytes, display_fraction};

const KIND: &str = "page";
/// Default over-provisioning.
const SPARE: f64 = 0.07;
/// Default size of a write buffer: this many times the pages filled at the same time.
const BUFFER_PAGES: u64 = 2;

/// The keys.
pub const KEYS: &[Key] = &[
    key("ftl.unit", &["page", "zoned"], Shape::Size { min: 16, max: 1 << 20 }, Is("4 KiB"), "\"4 KiB\"")
        .about("Mapping granularity. Smaller host writes are read-modify-write of a whole unit."),
    key(
        "ftl.allocation",
        &["page"],
        Shape::OneOf(&[
            (
                "dynamic",
                "blocks of single dies; the host's next page goes to the least busy die with room",
            ),
            (
                "superblock",
                "the blocks of equal number on all dies, filled page by page in turn; relocated data may go to another die",
            ),
        ]),
        Is("dynamic"),
        "\"superblock\"",
    )
    .about(
        "What is opened, filled, cleaned and erased as one. A superblock with a bad block holds less.",
    ),
    key(
        "ftl.streams",
        &["page"],
        Shape::OneOf(&[
            ("one", "host writes and relocated data share a block"),
            ("host-and-relocated", "host writes in one block, relocated data in another"),
            (
                "hot-cold-relocated",
                "recently rewritten units, other host writes and relocated data in separate blocks",
            ),
        ]),
        Is("host-and-relocated"),
        "\"host-and-relocated\"",
    )
    .about("Which data shares a block. Data that becomes stale together makes blocks cheap to clean."),
    key("ftl.hot_within", &["page"], Shape::Share { max: 1.0 }, Is("25 %"), "\"25 %\"").about(
        "For streams = \"hot-cold-relocated\": a unit is hot if the host has written less than this share of the logical \
         capacity since its last write.",
    ),
    key("ftl.free_blocks_min", &["page"], Shape::Count { min: 1, max: 1_000_000 }, Is("2"), "2")
        .about("Erased blocks of a die below which cleaning starts."),
    key("ftl.map.entry", &["page"], Shape::Size { min: 1, max: 64 }, Is("4 B"), "\"4 B\"")
        .about("Memory per map entry."),
    key("ftl.map.checkpoint", &["page"], Shape::SizeShareOrNone, Is("none"), "\"7 %\"").about(
        "Checkpoint interval: host bytes, or a share of the host's capacity, over which the whole map is written to \
         flash in small pieces (`kind = \"demand\"`: its changed pages and the directory). \"none\": no checkpoints; \
         recovery scans the whole array (`demand`: what was written since the blocks of the map were last recycled). \
         Each interval programs the map once: with 4 KiB units and 4 B entries, 7 % is a write amplification of 0.014 \
         at any capacity.",
    ),
];

/// A page-mapped controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PageMapped {
    /// The data medium, by name.
    pub medium: String,
    /// The memory that holds the map.
    pub map: Memory,
    /// The memory of the write buffer, if there is one.
    pub buffer: Option<Memory>,
    /// The cache of blocks in SLC mode, if there is one.
    pub cache: Option<PageCache>,
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
    /// The controller; the seed is 0.
    config: PageMapConfig,
}

impl PageMapped {
    /// The controller, for [`nvlab_controller::page_map`]. `seed` is the run's seed of random choices.
    pub fn config(&self, seed: u64) -> PageMapConfig {
        PageMapConfig { seed, ..self.config.clone() }
    }

    /// How blocks of its array may be used with one bit per cell, for [`nvlab_medium::flash::Nand::with_slc_mode`].
    pub fn slc_mode(&self) -> Option<SlcMode> {
        self.slc().map(|slc| slc.mode)
    }
}

impl Kind for PageMapped {
    fn medium(&self) -> &str {
        &self.medium
    }
    fn memories(&self) -> Vec<&str> {
        let buffer = self.buffer.as_ref().map(|buffer| buffer.medium.as_str());
        std::iter::once(self.map.medium.as_str()).chain(buffer).collect()
    }
    fn takes(&self, memory: &str) -> u64 {
        let all = std::iter::once(&self.map).chain(&self.buffer);
        all.filter(|part| part.medium == memory).map(|part| part.bytes).sum()
    }
    fn slc(&self) -> Option<&SlcBlocks> {
        self.cache.as_ref().map(|cache| &cache.slc)
    }
    fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }
    fn logical_units(&self) -> u32 {
        self.config.logical_units
    }
    fn check(&self, design: &Design) -> Result<(), String> {
        self.config.check(&design.flash_config(0))
    }
    fn memory_bytes(&self, design: &Design, payload: Payload) -> u64 {
        let flash = design.flash_config(0);
        let geometry = &flash.geometry;
        let config = &self.config;
        let (raw, logical) = (geometry.units(), config.logical_units as u64);
        let frontiers = geometry.dies() as u64 * config.open_blocks() as u64;
        // The staged units of a page, its bytes and its spare area.
        let frontier = geometry.units_per_page as u64 * 24 + payload.kept(geometry.page_bytes());
        let buffer = self
            .buffer
            .as_ref()
            .map_or(0, |buffer| buffer.bytes / self.unit_bytes as u64 * 16 + payload.kept(buffer.bytes));
        let recovery = payload.kept(config.recovery_bytes(geometry));
        // Residency and places of translation pages.
        let demand = config.demand.as_ref().map_or(0, |map| {
            let pages = map.pages(config.logical_units) as u64;
            let cached = (map.cache_pages as u64 + map.host_pages as u64).min(pages);
            13 * pages + 22 * cached + 4 * geometry.blocks() as u64
        });
        demand
            + 4 * raw
            + raw / 8
            + 4 * logical
            + footprint::blocks(geometry, geometry.units_per_block() as u64 + 1)
            + frontiers * (256 + frontier)
            + geometry.units_per_block() as u64 * 16
            + buffer
            + recovery
            + footprint::array(&flash, self.cache.is_some(), payload)
    }
}

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, PageMapped)> {
    let read = map(context, media, wiring);
    memories::not_words(context, path, "a page map")?;
    read
}

/// The same, for any link to the host.
pub fn map(context: &mut Context, media: &Media, wiring: Wiring) -> Option<(Array, PageMapped)> {
    let flash = memories::data_nand(context, media, KIND, "a page map");
    let unit = context.size("ftl.unit", KIND);
    let map = memories::ram(context, media, "ftl.map.in", "");
    let entry_bytes = context.size("ftl.map.entry", KIND);
    let demand = map_brick::read(context, KIND);
    let checkpoint = context.get("ftl.map.checkpoint", Some(KIND));
    let blocks = flash.as_ref().map_or(1, |(_, flash)| flash.blocks_per_plane);
    let cleaning = cleaning::of_blocks(context, KIND, blocks);
    let wear = wear::read(context, KIND);
    let allocation = allocation(context);
    let streams = streams(context);
    let free_blocks_min = context.count("ftl.free_blocks_min", KIND);
    let service = service::read(context, KIND);
    let share = space::spare(context, KIND, SPARE);
    let buffer = buffer::write_back(context, media, KIND, unit);
    let cache = slc::cache_keys(context, media);

    let (medium, flash) = flash?;
    let unit = unit?;
    let array = array::of_nand(context, wiring, &flash, Some(unit))?;
    let geometry = &array.geometry;
    let logical_units = space::logical_units(context, geometry.units(), unit as u32, share?)?;
    let streams = streams?;
    let cache = match cache? {
        Some(keys) => Some(slc::cache(context, keys, streams, &medium, geometry, array.gang * array.planes)?),
        None => None,
    };
    let ((trim, verify_reads, overhead), (dynamic, static_threshold)) = (service?, wear?);
    let (map, buffer, entry, allocation) = (map?.0, buffer?, entry_bytes?, allocation?);
    let buffer = buffer.map(|buffer| {
        let least = buffer_least(allocation, streams, geometry);
        let bytes = buffer.bytes.unwrap_or_else(|| buffer_bytes(context, least));
        (buffer, bytes)
    });
    let (demand, map_bytes) = map_brick::of_device(context, demand?, (logical_units, unit, entry))?;
    let config = PageMapConfig {
        logical_units,
        allocation,
        cleaning: cleaning?,
        free_blocks_min: free_blocks_min?,
        streams,
        wear: WearLevelling { dynamic, static_threshold },
        trim,
        verify_reads,
        buffer: buffer.as_ref().map(|(buffer, bytes)| WriteBuffer {
            units: (bytes / unit) as u32,
            protected: buffer.protected,
            absorb: buffer.absorb,
            store: buffer.store,
        }),
        checkpoint_units: checkpoint_units(checkpoint?, unit, logical_units),
        demand,
        overhead,
        seed: 0,
    };
    let page = PageMapped {
        medium,
        map: Memory { medium: map, bytes: map_bytes },
        buffer: buffer.map(|(buffer, bytes)| Memory { medium: buffer.medium, bytes }),
        cache,
        unit_bytes: unit as u32,
        config,
    };
    check_copy_back(context, &flash, &page)?;
    check_blocks(context, &array, &page)?;
    check_buffer(context, &array, &page)?;
    check_memory(context, media, &page)?;
    Some((array, page))
}

/// The size of a buffer that the design does not state, where `least` is a page of every die and stream.
fn buffer_bytes(context: &mut Context, least: u64) -> u64 {
    let bytes = BUFFER_PAGES * least;
    context.derive("ftl.buffer.size", Datum::Size(bytes), "two pages per die and stream");
    bytes
}

/// How many units the host writes between two checkpoints; `None`: there are none.
fn checkpoint_units(checkpoint: Datum, unit: u64, logical_units: u32) -> Option<u64> {
    match checkpoint {
        Datum::Size(bytes) => Some((bytes / unit).max(1)),
        Datum::Share(share) => Some(((logical_units as f64 * share) as u64).max(1)),
        _ => None,
    }
}

fn allocation(context: &mut Context) -> Option<Allocation> {
    let meanings = [("dynamic", Allocation::Dynamic), ("superblock", Allocation::Superblock)];
    context.choice("ftl.allocation", KIND, &meanings)
}

fn streams(context: &mut Context) -> Option<Streams> {
    let hot_within = context.share("ftl.hot_within", KIND)?;
    let meanings = [
        ("one", Streams::One),
        ("host-and-relocated", Streams::HostAndRelocated),
        ("hot-cold-relocated", Streams::HotColdRelocated { hot_within }),
    ];
    context.choice("ftl.streams", KIND, &meanings)
}

/// Units moved out of a superblock may go to another die.
fn check_copy_back(context: &mut Context, flash: &Flash, page: &PageMapped) -> Option<()> {
    if page.config.allocation == Allocation::Dynamic || !flash.copy_back {
        return Some(());
    }
    let key = format!("media.{}.copy_back", page.medium);
    let problem = format!("`{key}`: data relocated from a superblock may go to another die");
    context.wrong(&key, problem, "copy_back = false, or ftl.allocation = \"dynamic\"");
    None
}

/// Blocks kept for cleaning and open streams must not be host capacity.
fn check_blocks(context: &mut Context, array: &Array, page: &PageMapped) -> Option<()> {
    let geometry = &array.geometry;
    let apart =
        (page.config.free_blocks_min as u64 + page.config.streams.count() as u64) * geometry.dies() as u64;
    let left = (geometry.blocks() as u64).saturating_sub(apart) * geometry.units_per_block() as u64;
    // The part of the minimum cache that its blocks do not hold in SLC mode.
    let lost = page.cache.as_ref().map_or(0, |cache| {
        let held = cache.slc.mode.pages_per_block as u64 * cache.slc.mode.units_per_page as u64;
        cache.config.blocks_min as u64 * geometry.dies() as u64 * (geometry.units_per_block() as u64 - held)
    });
    let left = left.saturating_sub(lost);
    if page.config.logical_units as u64 <= left {
        return Some(());
    }
    let key = space::spare_key(context);
    let least = 1.0 - left as f64 / geometry.units() as f64;
    let problem = format!(
        "`{key}` is too tight: {apart} of {} blocks are reserved for cleaning and open streams{}",
        geometry.blocks(),
        match lost {
            0 => String::new(),
            lost => format!(
                ", and the blocks of the cache hold {} less",
                display_bytes(lost * page.unit_bytes as u64)
            ),
        }
    );
    let least = display_fraction((least * 10_000.0).ceil() / 10_000.0);
    context.wrong(key, problem, format!("a spare of at least {least}, or more and smaller blocks"));
    None
}

/// Minimum bytes of a write buffer: a page for every block that is filled at the same time.
fn buffer_least(allocation: Allocation, streams: Streams, geometry: &Geometry) -> u64 {
    let pages = streams.count() as u64 * allocation.geometry(geometry).dies() as u64;
    pages * geometry.page_bytes()
}

/// Every page that is being filled must fit in the buffer.
fn check_buffer(context: &mut Context, array: &Array, page: &PageMapped) -> Option<()> {
    let Some(buffer) = &page.buffer else { return Some(()) };
    let geometry = &array.geometry;
    let dies = page.config.allocation.geometry(geometry).dies();
    let least = buffer_least(page.config.allocation, page.config.streams, geometry);
    let units = buffer.bytes / page.unit_bytes as u64;
    if buffer.bytes >= least && units <= u32::MAX as u64 {
        return Some(());
    }
    let problem = format!("`ftl.buffer.size` is too small: {}", display_bytes(buffer.bytes));
    let help = format!(
        "at least {}: one page of {} for each of {} dies and {} streams",
        display_bytes(least),
        display_bytes(geometry.page_bytes()),
        dies,
        page.config.streams.count()
    );
    context.wrong("ftl.buffer.size", problem, help);
    None
}

/// Map and buffer must fit in their memories.
fn check_memory(context: &mut Context, media: &Media, page: &PageMapped) -> Option<()> {
    // A memory whose size is derived from its contents is always large enough.
    let size = |name: &str| match media.get(name).map_or(0, |medium| medium.part.bytes()) {
        0 => u64::MAX,
        bytes => bytes,
    };
    let map = &page.map;
    let together = page.buffer.as_ref().filter(|buffer| buffer.medium == map.medium);
    let needed = map.bytes.saturating_add(together.map_or(0, |buffer| buffer.bytes));
    if needed > size(&map.medium) {
        let problem = format!(
            "`{}` has {}, but the map takes {}{}",
            map.medium,
            display_bytes(size(&map.medium)),
            display_bytes(map.bytes),
            together
                .map_or(String::new(), |buffer| format!(" and the buffer {}", display_bytes(buffer.bytes)))
        );
        return memories::too_small(context, &map.medium, "ftl.map.in", problem, needed);
    }
    match &page.buffer {
        Some(own) if together.is_none() && own.bytes > size(&own.medium) => {
            let problem = format!(
                "`{}` has {}, but the buffer takes {}",
                own.medium,
                display_bytes(size(&own.medium)),
                display_bytes(own.bytes)
            );
            memories::too_small(context, &own.medium, "ftl.buffer.in", problem, own.bytes)
        }
        _ => Some(()),
    }
}
