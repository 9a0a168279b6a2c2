//! The block-mapped controllers: `ftl.kind = "block"`, `"bast"` and `"fast"`.

use super::super::context::Context;
use super::super::ftl::{BlockMapped, LogArray, SlcBlocks};
use super::super::part::Flash;
use super::super::{Array, HostPath, PathKind};
use super::{Media, Wiring, array, data_flash, named_ram, slc, space};
use crate::toml_reader::datum::Datum;
use nvlab_controller::block_map::{BlockWear, Log};
use nvlab_units::Geometry;
use nvlab_units::quantity::display_bytes;

/// Over-provisioning of a design that does not say: the logs and room to merge.
const SPARE: f64 = 0.03;
/// Log blocks of a design that does not say.
const LOG_BLOCKS: u32 = 16;

/// Reads and checks a block map of kind `kind`.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
    kind: &str,
) -> Option<(Array, BlockMapped)> {
    let flash = data_flash(context, media, (kind, "nand"), "a block map");
    let ram = named_ram(context, media, "ftl.map.in", kind);
    let log = log_keys(context, media, kind);
    let wear = wear(context, kind);
    let trim = context.flag("ftl.trim", kind);
    let verify_reads = context.flag("ftl.verify_reads", kind).unwrap_or(false);
    let overhead = context.time("ftl.overhead", kind);
    let room = room(context, kind);
    if path.is_some_and(|path| path.kind == PathKind::MemoryBus) {
        let help = "kind = \"direct\", \"nvme\", \"sata\" or \"bus\"";
        context.wrong("path.kind", "`path.kind`: a block map serves blocks, not words", help);
        return None;
    }
    let (medium, flash) = flash?;
    let mut log = log?;
    // Naming the data medium itself says no more than leaving it out.
    log.other = log.other.filter(|(name, _)| *name != medium);
    let gang = wiring.gang?;
    let planes = array::planes(context, wiring.planes_set, &flash)?;
    let transfer = wiring.transfer.unwrap_or_else(|| array::ganged(&flash, gang));
    let unit = flash.page_bytes * gang as u64 * planes as u64 * flash.one_shot as u64;
    let shape = [wiring.channels?, wiring.ways?, gang, planes];
    let (mut geometry, units_per_read) = array::geometry(context, &flash, shape, unit)?;
    let room = room?;
    let logical_units = match room {
        Room::Inside(share) => space::logical_units(context, geometry.units(), unit as u32, share)?,
        Room::Added { .. } => u32::try_from(geometry.units()).ok()?,
    };
    let (own, slc) = log_medium(context, &log, &geometry, gang * planes)?;
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
    let ftl = BlockMapped {
        medium,
        memory: ram?.0,
        unit_bytes: unit as u32,
        logical_units,
        log: log.of_blocks(kind, blocks),
        own_log: own,
        slc_log: slc,
        second_chance: log.second_chance,
        bought_bytes,
        wear: wear?,
        trim: trim?,
        verify_reads,
        overhead: overhead?,
    };
    Some((Array { gang, planes, transfer, geometry, units_per_read }, ftl))
}

impl LogKeys {
    /// The log of a map of this kind, of so many blocks.
    fn of_blocks(&self, kind: &str, blocks: u32) -> Log {
        match kind {
            "block" => Log::None,
            "bast" => Log::PerBlock { blocks },
            _ => Log::Shared { sequential: self.sequential, random_blocks: blocks },
        }
    }
}

/// Where log and merges find room.
#[derive(Clone, Copy)]
enum Room {
    /// In what the host cannot address of the part's blocks.
    Inside(space::Share),
    /// In blocks beyond those of the part.
    Added { merge_blocks: u32 },
}

fn room(context: &mut Context, kind: &str) -> Option<Room> {
    Some(match context.text("ftl.data_area", kind)?.as_str() {
        "part" => Room::Added { merge_blocks: context.count("ftl.merge_blocks", kind)? },
        _ => Room::Inside(space::spare(context, kind, SPARE)?),
    })
}

fn wear(context: &mut Context, kind: &str) -> Option<BlockWear> {
    let kind = context.text("ftl.wear.kind", kind)?;
    Some(match kind.as_str() {
        "none" => BlockWear { dynamic: false, static_threshold: None },
        "dynamic" => BlockWear { dynamic: true, static_threshold: None },
        _ => {
            let threshold = context.count("ftl.wear.threshold", &kind)?;
            BlockWear { dynamic: true, static_threshold: Some(threshold) }
        }
    })
}

/// The keys of `[ftl.log]` as they stand.
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
        let problem = "`ftl.log.blocks` and `ftl.log.share` say the same thing";
        context.wrong("ftl.log.share", problem, "keep one of them");
        return None;
    }
    if kind == "fast" {
        let mode = context.text("ftl.log.mode", kind);
        if context.has("ftl.log.in") {
            keys.other = Some(slc::flash(context, media, "ftl.log.in", kind)?);
        }
        keys.slc_mode = mode? == "slc";
        keys.ways = context.count("ftl.log.ways", kind)?;
        keys.sequential = context.flag("ftl.log.sequential", kind)?;
        keys.second_chance = context.flag("ftl.log.second_chance", kind)?;
    }
    Some(LogKeys { blocks: blocks?, share: share?, ..keys })
}

/// An array of the log's own, not yet as large as it will be, or blocks of the data array in SLC mode.
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
        let help = "in = \"NAME\": a medium that says what a block is like with one bit per cell";
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
        context.wrong("ftl.log.in", problem, "pages of log and data must be alike");
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
    /// So many log blocks, spread over so many dies; `moving` more on each.
    fn with_blocks(mut self, blocks: u32, dies: u32, moving: u32) -> LogArray {
        self.blocks = blocks;
        self.geometry.dies_per_channel = dies;
        self.geometry.blocks_per_die = blocks.div_ceil(dies) + moving;
        self
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
