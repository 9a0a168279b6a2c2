//! The block-mapped controllers: `ftl.kind = "block"`, `"bast"` and `"fast"`.

use super::Kind;
use crate::bricks::array::{self, Wiring};
use crate::bricks::memories::{self, Media};
use crate::bricks::slc::{self, SlcBlocks};
use crate::bricks::{service, space, wear};
use crate::context::Context;
use crate::key::Preset::{Is, Nothing};
use crate::key::{Key, key};
use crate::part::Flash;
use crate::toml_reader::datum::{Datum, Shape};
use crate::{Array, Design, HostPath, Payload, footprint};
use nvlab_controller::block_map::{BlockMapConfig, BlockWear, Log};
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Geometry, Rate};

/// The kinds of block map.
const BLOCKS: &[&str] = &["block", "bast", "fast"];
/// Default over-provisioning: the logs and room to merge.
const SPARE: f64 = 0.03;
/// Default number of log blocks.
const LOG_BLOCKS: u32 = 16;

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "ftl.data_area",
        BLOCKS,
        Shape::OneOf(&[
            ("inside", "log blocks and room for merges are taken from the blocks of the part, as set by `spare`"),
            ("part", "the part's blocks hold data only; log blocks and `merge_blocks` are added to each die"),
        ]),
        Is("inside"),
        "\"part\"",
    )
    .about(
        "What the part's blocks hold. Papers state the data area and count the log in addition, as \"part\" does. The price \
         then covers data area and log; the merge blocks are an artefact of this model and cost nothing.",
    ),
    key("ftl.merge_blocks", BLOCKS, Shape::Count { min: 2, max: 1_000_000 }, Is("8"), "8")
        .about("For data_area = \"part\": erased blocks per die, for merges and to replace bad blocks."),
    key(
        "ftl.log.blocks",
        &["bast", "fast"],
        Shape::Count { min: 1, max: 100_000_000 },
        Nothing("16, unless `share` is given"),
        "16",
    )
    .about(
        "Total number of log blocks, at least one per die. The one allocated first (BAST) or filled first (FAST) is merged \
         first.",
    ),
    key("ftl.log.share", &["bast", "fast"], Shape::Share { max: 1.0 }, Nothing("from `blocks`"), "\"15 %\"")
        .about(
            "Capacity of the log blocks as a share of what the host can address: an alternative to `blocks`. (System 002: \
             5 to 25 % of the data area.)",
        ),
    key("ftl.log.in", &["fast"], Shape::Medium, Nothing("the data medium"), "\"slc\"").about(
        "Medium of the log blocks: a name under [media]. A medium other than the data medium is a separate array; with \
         mode = \"slc\" it describes a block of the data medium in SLC mode.",
    ),
    key(
        "ftl.log.mode",
        &["fast"],
        Shape::OneOf(&[
            ("own", "the log blocks are used as their medium is"),
            ("slc", "the log blocks are blocks of the data medium used with one bit per cell (fusion flash)"),
        ]),
        Is("own"),
        "\"slc\"",
    )
    .about("How the log blocks store data."),
    key("ftl.log.ways", &["fast"], Shape::Count { min: 1, max: 1024 }, Is("1"), "1")
        .about("Dies of a separate log array, on one channel."),
    key("ftl.log.sequential", &["fast"], Shape::Flag, Is("true"), "true").about(
        "Whether sequential overwrites get a block of their own: from offset 0 on (FAST), or, with a separate log array, \
         for runs and requests longer than a quarter of a data block (system 002).",
    ),
    key("ftl.log.second_chance", &["fast"], Shape::Flag, Is("false"), "true").about(
        "Whether a page that was overwritten while in the log is moved to another log block once, instead of being merged.",
    ),
];

/// A block-mapped controller.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockMapped {
    /// The data medium, by name.
    pub medium: String,
    /// The memory that holds the maps, by name.
    pub memory: String,
    /// Bytes of a mapping unit: a page.
    pub unit_bytes: u32,
    /// The array of the log, if it has one of its own.
    pub own_log: Option<LogArray>,
    /// The properties of log blocks that are blocks of the data array in SLC mode.
    pub slc_log: Option<SlcBlocks>,
    /// Bytes of the data array that are paid for: without the blocks this model adds for merges.
    pub bought_bytes: u64,
    /// The controller, for [`nvlab_controller::block_map`].
    pub config: BlockMapConfig,
}

impl Kind for BlockMapped {
    fn medium(&self) -> &str {
        &self.medium
    }
    fn memories(&self) -> Vec<&str> {
        let log = self.own_log.as_ref().map(|log| log.medium.as_str());
        std::iter::once(self.memory.as_str()).chain(log).collect()
    }
    fn slc(&self) -> Option<&SlcBlocks> {
        self.slc_log.as_ref()
    }
    fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }
    fn logical_units(&self) -> u32 {
        self.config.logical_units
    }
    fn bought(&self, _: &Geometry) -> Vec<(&str, u64)> {
        let log = self.own_log.as_ref().map(|log| (log.medium.as_str(), log.bytes()));
        std::iter::once((self.medium.as_str(), self.bought_bytes)).chain(log).collect()
    }
    /// Pages of a data block are written at their own offsets.
    fn any_page_order(&self) -> bool {
        true
    }
    fn check(&self, design: &Design) -> Result<(), String> {
        let log = design.log_config(self, 0);
        self.config.check(&design.flash_config(0), log.as_ref(), self.slc_log.is_some())
    }
    fn memory_bytes(&self, design: &Design, payload: Payload) -> u64 {
        let flash = design.flash_config(0);
        let geometry = &flash.geometry;
        let log = design.log_config(self, 0);
        let log_geometry = log.as_ref().map_or(geometry, |log| &log.geometry);
        let logical = self.config.logical_units as u64;
        let logical_blocks = logical.div_ceil(geometry.pages_per_block as u64);
        // A bit for each page, which may be programmed in any order.
        let bits = geometry.blocks() as u64 * geometry.pages_per_block.div_ceil(64) as u64 * 8;
        let of_log = match self.config.log {
            Log::None => 0,
            Log::PerBlock { .. } => 4 * logical_blocks + geometry.blocks() as u64,
            Log::Shared { .. } => 4 * log_geometry.units(),
        };
        // A mount looks for the newest version of every page, and records all versions it finds.
        let recovery =
            payload.kept(8 * logical) + payload.written(24 * (geometry.units() + log_geometry.units()));
        4 * logical
            + self.config.second_chance as u64 * logical
            + 4 * logical_blocks
            + 4 * geometry.blocks() as u64
            + bits
            + of_log
            + recovery
            + footprint::array(&flash, self.slc_log.is_some(), payload)
            + log
                .as_ref()
                .map_or(0, |log| footprint::array(log, false, payload) + 4 * log.geometry.blocks() as u64)
    }
}

/// An array of log blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct LogArray {
    /// Its medium, by name.
    pub medium: String,
    /// Its shape.
    pub geometry: Geometry,
    /// Rate of its channel.
    pub transfer: Rate,
    /// Blocks that are the log; there may be one more on each die to move pages to.
    pub blocks: u32,
}

/// Reads and checks a block map of kind `kind`.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
    kind: &str,
) -> Option<(Array, BlockMapped)> {
    let flash = memories::data_nand(context, media, kind, "a block map");
    let ram = memories::ram(context, media, "ftl.map.in", kind);
    let log = log_keys(context, media, kind);
    let wear = wear::read(context, kind);
    let service = service::read(context, kind);
    let room = room(context, kind);
    memories::not_words(context, path, "a block map")?;

    let (medium, flash) = flash?;
    let mut log = log?;
    // Naming the data medium itself is the same as leaving it out.
    log.other = log.other.filter(|(name, _)| *name != medium);
    let mut array = array::of_nand(context, wiring, &flash, None)?;
    let chips = array.gang * array.planes;
    let geometry = &mut array.geometry;
    let unit = geometry.unit_bytes as u64;
    let room = room?;
    let logical_units = match room {
        Room::Inside(share) => space::logical_units(context, geometry.units(), unit as u32, share)?,
        Room::Added { .. } => u32::try_from(geometry.units()).ok()?,
    };
    let (own, slc) = log_medium(context, &log, geometry, chips)?;
    let block_bytes = match (&own, &slc) {
        (Some(own), _) => own.geometry.units_per_block() as u64 * unit,
        (_, Some(slc)) => slc.mode.pages_per_block as u64 * unit,
        _ => geometry.units_per_block() as u64 * unit,
    };
    let blocks = log_blocks(context, &log, logical_units as u64 * unit, block_bytes)?;
    let moving = log.second_chance as u32;
    let own = own.map(|own| own.with_blocks(blocks, log.ways, moving));
    let in_data = if own.is_some() { 0 } else { blocks };
    let mut bought_bytes = geometry.bytes();
    if let Room::Added { merge_blocks } = room {
        bought_bytes += in_data as u64 * geometry.units_per_block() as u64 * unit;
        let for_log = if in_data > 0 { in_data.div_ceil(geometry.dies()) + moving } else { 0 };
        geometry.blocks_per_die += for_log + merge_blocks;
    }
    let ((trim, verify_reads, overhead), (dynamic, static_threshold)) = (service?, wear?);
    let config = BlockMapConfig {
        logical_units,
        log: log.of_blocks(kind, blocks),
        slc_log: slc.is_some(),
        second_chance: log.second_chance,
        wear: BlockWear { dynamic, static_threshold },
        trim,
        verify_reads,
        overhead,
    };
    let (memory, _) = ram?;
    let unit_bytes = unit as u32;
    let map = BlockMapped { medium, memory, unit_bytes, own_log: own, slc_log: slc, bought_bytes, config };
    Some((array, map))
}

impl LogKeys {
    /// The log of a map of this kind, with this many blocks.
    fn of_blocks(&self, kind: &str, blocks: u32) -> Log {
        match kind {
            "block" => Log::None,
            "bast" => Log::PerBlock { blocks },
            _ => Log::Shared { sequential: self.sequential, random_blocks: blocks },
        }
    }
}

/// Where the space for log and merges comes from.
#[derive(Clone, Copy)]
enum Room {
    /// From the blocks of the part that the host cannot address.
    Inside(space::Share),
    /// From blocks in addition to those of the part.
    Added { merge_blocks: u32 },
}

fn room(context: &mut Context, kind: &str) -> Option<Room> {
    Some(match context.choice("ftl.data_area", kind, &[("inside", true), ("part", false)])? {
        true => Room::Inside(space::spare(context, kind, SPARE)?),
        false => Room::Added { merge_blocks: context.count("ftl.merge_blocks", kind)? },
    })
}

/// The keys of `[ftl.log]` as written.
struct LogKeys {
    blocks: u32,
    share: Option<f64>,
    other: Option<(String, Flash)>,
    slc_mode: bool,
    ways: u32,
    sequential: bool,
    second_chance: bool,
}

fn log_keys(context: &mut Context, media: &Media, kind: &str) -> Option<LogKeys> {
    let mut keys = LogKeys {
        blocks: 0,
        share: None,
        other: None,
        slc_mode: false,
        ways: 1,
        sequential: false,
        second_chance: false,
    };
    if kind == "block" {
        return Some(keys);
    }
    let (has_blocks, has_share) = (context.has("ftl.log.blocks"), context.has("ftl.log.share"));
    let blocks = if has_blocks { context.count("ftl.log.blocks", kind) } else { Some(LOG_BLOCKS) };
    if !has_blocks && !has_share {
        context.derive("ftl.log.blocks", Datum::Count(LOG_BLOCKS as u64), "the default");
    }
    let share = if has_share { context.share("ftl.log.share", kind).map(Some) } else { Some(None) };
    if has_blocks && has_share {
        let problem = "`ftl.log.blocks` and `ftl.log.share` set the same value";
        context.wrong("ftl.log.share", problem, "keep one of them");
        return None;
    }
    if kind == "fast" {
        let slc_mode = context.choice("ftl.log.mode", kind, &[("own", false), ("slc", true)]);
        if context.has("ftl.log.in") {
            keys.other = Some(memories::nand(context, media, "ftl.log.in", kind)?);
        }
        keys.slc_mode = slc_mode?;
        keys.ways = context.count("ftl.log.ways", kind)?;
        keys.sequential = context.flag("ftl.log.sequential", kind)?;
        keys.second_chance = context.flag("ftl.log.second_chance", kind)?;
    }
    Some(LogKeys { blocks: blocks?, share: share?, ..keys })
}

/// A log array whose size is not yet known, or blocks of the data array in SLC mode.
fn log_medium(
    context: &mut Context,
    log: &LogKeys,
    data: &Geometry,
    chips: u32,
) -> Option<(Option<LogArray>, Option<SlcBlocks>)> {
    let Some(other @ (name, flash)) = &log.other else {
        if !log.slc_mode {
            return Some((None, None));
        }
        let help = "in = \"NAME\": a medium that describes a block with one bit per cell";
        context.wrong(
            "ftl.log.mode",
            "`ftl.log.mode` is \"slc\", but `ftl.log.in` names no other medium",
            help,
        );
        return None;
    };
    if log.slc_mode {
        return Some((None, Some(slc::blocks(context, "ftl.log.in", other, data, chips)?)));
    }
    if flash.page_bytes * flash.one_shot as u64 != data.unit_bytes as u64 {
        let problem = format!(
            "`ftl.log.in`: pages of `{name}` have {}, those of the data array {}",
            display_bytes(flash.page_bytes * flash.one_shot as u64),
            display_bytes(data.unit_bytes as u64)
        );
        context.wrong("ftl.log.in", problem, "pages of log and data must have the same size");
        return None;
    }
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: 1,
        pages_per_block: flash.pages_per_block / flash.one_shot,
        units_per_page: 1,
        unit_bytes: data.unit_bytes,
    };
    Some((Some(LogArray { medium: name.clone(), geometry, transfer: flash.transfer, blocks: 0 }), None))
}

impl LogArray {
    /// Sets the number of log blocks, spread over `dies`, with `moving` more on each.
    fn with_blocks(mut self, blocks: u32, dies: u32, moving: u32) -> LogArray {
        self.blocks = blocks;
        self.geometry.dies_per_channel = dies;
        self.geometry.blocks_per_die = blocks.div_ceil(dies) + moving;
        self
    }

    /// Bytes that are paid for.
    pub fn bytes(&self) -> u64 {
        self.blocks as u64 * self.geometry.units_per_block() as u64 * self.geometry.unit_bytes as u64
    }
}

fn log_blocks(context: &mut Context, log: &LogKeys, data_bytes: u64, block_bytes: u64) -> Option<u32> {
    let Some(share) = log.share else { return Some(log.blocks) };
    let blocks = (data_bytes as f64 * share / block_bytes as f64 + 1e-6).floor();
    if blocks >= 1.0 {
        return Some(blocks as u32);
    }
    let problem = format!(
        "`ftl.log.share` of {} is less than a block of {}",
        display_bytes(data_bytes),
        display_bytes(block_bytes)
    );
    context.wrong("ftl.log.share", problem, "at least one block for each die");
    None
}
