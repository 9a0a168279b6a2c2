//! A page map behind a cache of lines, used as memory: `ftl.kind = "page"` with `ftl.cache.kind = "set-associative"`.

use super::Kind;
use super::page::{self, PageMapped};
use crate::bricks::array::Wiring;
use crate::bricks::memories::{self, Media};
use crate::bricks::slc::SlcBlocks;
use crate::context::Context;
use crate::key::Preset::{Is, Required};
use crate::key::{Key, key};
use crate::part::Ram;
use crate::toml_reader::Value;
use crate::toml_reader::datum::Shape;
use crate::{Array, Design, HostPath, PathKind, Payload};
use nvlab_controller::cached::CachedConfig;
use nvlab_medium::ram::RamConfig;
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Geometry, Span};
use nvlab_workload::Serves;

/// Its name in designs.
pub const CACHE: &str = "set-associative";
const WITH_CACHE: &[&str] = &[CACHE];

/// The keys.
pub const KEYS: &[Key] = &[
    key("ftl.cache.in", WITH_CACHE, Shape::Medium, Required, "\"cache\"").about(
        "Memory that holds the lines, by its name under [media]; the cache takes all of it. If it has a battery or \
         capacitor, dirty lines are written back when power fails, for as long as that lasts (`hold`); the rest is lost.",
    ),
    key("ftl.cache.line", WITH_CACHE, Shape::Size { min: 64, max: 1 << 20 }, Is("4 KiB"), "\"4 KiB\"").about(
        "Bytes fetched and written back together: a power of two, and a whole number of units. It is also the block size \
         for block requests; smaller writes are read-modify-write.",
    ),
    key("ftl.cache.ways", WITH_CACHE, Shape::Count { min: 1, max: 255 }, Is("16"), "16").about(
        "Lines per set; each set replaces by a clock (second chance). The number of sets must be a power of two.",
    ),
    key("ftl.cache.dirty_max", WITH_CACHE, Shape::Share { max: 1.0 }, Is("40 %"), "\"40 %\"").about(
        "Maximum share of dirty lines; a store that would exceed it causes a write-back of another line.",
    ),
    key("ftl.cache.write_backs", WITH_CACHE, Shape::Count { min: 1, max: 65_536 }, Is("32"), "32").about(
        "Maximum number of lines being written back to flash; a store that needs one more waits.",
    ),
    key(
        "ftl.cache.prefetch.kind",
        WITH_CACHE,
        Shape::OneOf(&[
            ("none", "lines are fetched on a miss"),
            ("stride", "after three equidistant misses, the next lines at that distance are prefetched"),
        ]),
        Is("none"),
        "\"stride\"",
    )
    .about("Prefetching of lines."),
    key("ftl.cache.prefetch.depth", &["stride"], Shape::Count { min: 1, max: 64 }, Is("4"), "4")
        .about("Number of lines prefetched ahead of the one in use."),
];

/// A page map, and the lines in front of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cached {
    /// The controller behind.
    pub page: PageMapped,
    /// The memory of the lines, by name.
    pub memory: String,
    /// The cache, for [`nvlab_controller::cached`].
    pub config: CachedConfig,
}

impl Cached {
    /// The memory of the lines, for [`nvlab_medium::ram`]; the marks of dirty lines come in addition to the design's
    /// size.
    pub fn ram_config(&self, design: &Design, seed: u64) -> RamConfig {
        let memory = design.ram_config(&self.memory, seed);
        RamConfig { capacity_bytes: self.config.ram_bytes(), banks: 1, ..memory }
    }
}

impl Kind for Cached {
    fn medium(&self) -> &str {
        self.page.medium()
    }
    fn memories(&self) -> Vec<&str> {
        let mut memories = self.page.memories();
        memories.push(&self.memory);
        memories
    }
    fn slc(&self) -> Option<&SlcBlocks> {
        self.page.slc()
    }
    fn takes(&self, memory: &str) -> u64 {
        self.page.takes(memory)
    }
    fn unit_bytes(&self) -> u32 {
        self.config.line_bytes
    }
    fn logical_units(&self) -> u32 {
        self.page.logical_units() / (self.config.line_bytes / self.page.unit_bytes)
    }
    fn held_units(&self) -> u32 {
        self.page.held_units()
    }
    fn bought(&self, data: &Geometry) -> Vec<(&str, u64)> {
        self.page.bought(data)
    }
    fn any_page_order(&self) -> bool {
        self.page.any_page_order()
    }
    fn pram(&self) -> Option<&str> {
        self.page.pram()
    }
    fn pram_taken(&self, data: &Geometry) -> u64 {
        self.page.pram_taken(data)
    }
    fn check(&self, design: &Design) -> Result<(), String> {
        self.page.check(design)?;
        self.config.check(&self.ram_config(design, 0), self.page.unit_bytes)
    }
    fn serves(&self) -> Serves {
        Serves::Words
    }
    fn memory_bytes(&self, design: &Design, payload: Payload) -> u64 {
        let lines = self.config.frames() as u64 * LINE_TABLES + self.config.sets as u64;
        self.page.memory_bytes(design, payload) + lines + payload.written(self.config.ram_bytes())
    }
}

/// Bytes of the tables for each line: its tag, its state, the time it is present.
const LINE_TABLES: u64 = 4 + 1 + 8;

/// True if the design asks for lines in front of its page map.
pub(super) fn is_asked(context: &mut Context) -> bool {
    context
        .leaf("ftl.cache.kind")
        .is_some_and(|leaf| matches!(&leaf.value, Value::Text(kind) if kind == CACHE))
}

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, Cached)> {
    let behind = page::map(context, media, wiring);
    let memory = memories::ram(context, media, "ftl.cache.in", CACHE);
    let line = context.size("ftl.cache.line", CACHE);
    let ways = context.count("ftl.cache.ways", CACHE);
    let dirty_max = context.share("ftl.cache.dirty_max", CACHE);
    let write_backs = context.count("ftl.cache.write_backs", CACHE);
    let prefetch = prefetch(context);
    let path = path?;
    if path.kind != PathKind::CxlMem {
        let problem = "`path.kind`: a line cache in front of a page map serves memory behind CXL";
        context.wrong("path.kind", problem, "kind = \"cxl-mem\", or another `ftl.cache.kind`");
        return None;
    }
    let ((array, page), (memory, ram)) = (behind?, memory?);
    if [Some(&page.map), page.buffer.as_ref()].into_iter().flatten().any(|other| other.medium == memory) {
        let problem = format!("`ftl.cache.in`: `{memory}` holds the map or the write buffer of the page map");
        context.wrong("ftl.cache.in", problem, "use another memory: the cache takes all of it");
        return None;
    }
    let (line_bytes, ways) = (line?, ways?);
    let sets = sets(context, &ram, line_bytes, ways)?;
    let frames = sets as f64 * ways as f64;
    let config = CachedConfig {
        line_bytes: line_bytes as u32,
        ways,
        sets,
        dirty_lines_max: ((frames * dirty_max?) as u32).max(1),
        prefetch_lines: prefetch?,
        write_backs: write_backs?,
        word_bytes: path.word_bytes,
        control: path.overhead_device
            + path.rate.map_or(Span::ZERO, |rate| rate.transfer(path.word_bytes as u64)),
    };
    Some((array, Cached { page, memory, config }))
}

fn prefetch(context: &mut Context) -> Option<u32> {
    match context.named_choice("ftl.cache.prefetch.kind", CACHE, &[("none", false), ("stride", true)])? {
        (_, false) => Some(0),
        (kind, true) => context.count("ftl.cache.prefetch.depth", kind),
    }
}

/// Sets of the cache: its number must be a power of two.
fn sets(context: &mut Context, ram: &Ram, line_bytes: u64, ways: u32) -> Option<u32> {
    let set = line_bytes.saturating_mul(ways as u64);
    let sets = ram.cells.size_bytes / set;
    if sets.is_power_of_two() && ram.cells.size_bytes.is_multiple_of(set) && sets <= 1 << 30 {
        return Some(sets as u32);
    }
    let size = display_bytes(ram.cells.size_bytes);
    let problem =
        format!("`ftl.cache.in`: a memory of {size} is not a power of two of sets of {}", display_bytes(set));
    context.wrong(
        "ftl.cache.in",
        problem,
        "change `ftl.cache.ways`, `ftl.cache.line` or the size of the memory",
    );
    None
}
