//! Zones over NAND: `ftl.kind = "zoned"`.

use super::Kind;
use crate::bricks::array::{self, Wiring};
use crate::bricks::buffer;
use crate::bricks::memories::{self, Media, Memory};
use crate::bricks::{service, space, wear};
use crate::context::Context;
use crate::key::Preset::{Nothing, Required};
use crate::key::{Key, key};
use crate::toml_reader::datum::{Datum, Shape};
use crate::{Array, Design, HostPath, Payload, footprint};
use nvlab_controller::zoned::{ZoneBuffer, ZoneConfig};
use nvlab_units::Geometry;
use nvlab_units::quantity::display_bytes;
use nvlab_workload::{Serves, ZoneShape};

/// Its name.
pub const KIND: &str = "zoned";
/// Default over-provisioning: blocks that replace bad ones.
const SPARE: f64 = 0.02;
/// Bytes of memory per zone: its state, and the number of each of its blocks besides.
const ZONE_BYTES: u64 = 64;

/// The keys.
pub const KEYS: &[Key] = &[
    key("ftl.zone.size", &[KIND], Shape::Size { min: 4096, max: 1 << 40 }, Required, "\"2 GiB\"").about(
        "From the start of one zone to that of the next. Linux needs a power of two; what the zone cannot hold \
         (`capacity`) is a gap in the addresses.",
    ),
    key(
        "ftl.zone.capacity",
        &[KIND],
        Shape::Size { min: 4096, max: 1 << 40 },
        Nothing("as much of `size` as whole superblocks hold: a block of each die of the zone; less a page"),
        "\"1077 MiB\"",
    )
    .about(
        "How much of a zone can be written: whole pages of the array. One page of the blocks stays free, by which a recovery \
         tells that a reset was cut.",
    ),
    key("ftl.zone.dies", &[KIND], Shape::Count { min: 1, max: 65_536 }, Nothing("all dies of the array"), "4").about(
        "Dies a zone is spread over, page by page; a divisor of those of the array. Few dies: a zone is slow, and several \
         zones do not disturb each other (ConfZNS, 2023). All dies: one zone uses the whole array.",
    ),
    key("ftl.zone.open_max", &[KIND], Shape::Count { min: 1, max: 1_000_000 }, Nothing("no limit"), "14").about(
        "Zones that may be open at the same time (Maximum Open Resources). If all are, the zone opened first by a write is \
         closed when another is written.",
    ),
    key("ftl.zone.active_max", &[KIND], Shape::Count { min: 1, max: 1_000_000 }, Nothing("no limit"), "14").about(
        "Zones that may be partly written at the same time, open or closed (Maximum Active Resources). Writing to one more is \
         an error.",
    ),
];

/// A controller of zones.
#[derive(Clone, Debug, PartialEq)]
pub struct Zoned {
    /// The data medium, by name.
    pub medium: String,
    /// The memory that holds the table of zones.
    pub table: Memory,
    /// The memory of the write buffer, if there is one.
    pub buffer: Option<Memory>,
    /// Bytes of a unit.
    pub unit_bytes: u32,
    /// The controller, for [`nvlab_controller::zoned`].
    pub config: ZoneConfig,
}

impl Kind for Zoned {
    fn medium(&self) -> &str {
        &self.medium
    }
    fn memories(&self) -> Vec<&str> {
        let buffer = self.buffer.as_ref().map(|buffer| buffer.medium.as_str());
        std::iter::once(self.table.medium.as_str()).chain(buffer).collect()
    }
    fn takes(&self, memory: &str) -> u64 {
        let all = std::iter::once(&self.table).chain(&self.buffer);
        all.filter(|part| part.medium == memory).map(|part| part.bytes).sum()
    }
    fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }
    /// With the gaps behind the capacities.
    fn logical_units(&self) -> u32 {
        self.config.zones * self.config.size_units
    }
    fn held_units(&self) -> u32 {
        self.config.zones * self.config.capacity_units
    }
    fn check(&self, design: &Design) -> Result<(), String> {
        self.config.check(&design.flash_config(0))
    }
    fn serves(&self) -> Serves {
        let bytes = |units: u32| units as u64 * self.unit_bytes as u64;
        Serves::Zones(ZoneShape {
            size_bytes: bytes(self.config.size_units),
            capacity_bytes: bytes(self.config.capacity_units),
            open_max: self.config.open_max.unwrap_or(self.config.zones).min(self.config.zones),
        })
    }
    fn memory_bytes(&self, design: &Design, payload: Payload) -> u64 {
        let flash = design.flash_config(0);
        let geometry = &flash.geometry;
        let buffer = self.config.buffer.map_or(0, |buffer| buffer.pages as u64);
        // A page being filled for every zone that was ever written, and what a protected buffer holds.
        let staged = self.config.zones as u64 + 2 * buffer;
        self.config.zones as u64 * 160
            + 8 * geometry.blocks() as u64
            + 16 * buffer
            + payload.kept(staged * geometry.page_bytes())
            + footprint::array(&flash, false, payload)
    }
}

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, Zoned)> {
    let flash = memories::data_nand(context, media, KIND, "a zoned device");
    let unit = context.size("ftl.unit", KIND);
    let table = memories::ram(context, media, "ftl.map.in", "");
    let keys = zone_keys(context);
    let wear = wear::read(context, KIND);
    let service = service::read(context, KIND);
    let share = space::spare(context, KIND, SPARE);
    let buffer = buffer::write_back(context, media, KIND, unit);
    memories::not_words(context, path, "a zoned device")?;

    let (medium, flash) = flash?;
    let unit = unit?;
    let array = array::of_nand(context, wiring, &flash, Some(unit))?;
    let geometry = &array.geometry;
    let keys = keys?;
    let dies = dies_of(context, keys.dies, geometry)?;
    let capacity = capacity_of(context, (keys.size, keys.capacity), dies, geometry)?;
    let zones = zones_of(context, share?, (keys.size, capacity), dies, geometry)?;
    let ((trim, verify_reads, overhead), (dynamic, threshold)) = (service?, wear?);
    if threshold.is_some() {
        let problem = "`ftl.wear.kind`: a zone moves to other blocks only when it is reset";
        context.wrong("ftl.wear.kind", problem, "kind = \"dynamic\" or \"none\"");
        return None;
    }
    let active = keys.active_max.unwrap_or(zones).min(zones);
    let buffer = buffer?.map(|buffer| {
        let bytes = buffer.bytes.unwrap_or_else(|| buffer_bytes(context, active, geometry));
        (buffer, bytes)
    });
    let config = ZoneConfig {
        zones,
        size_units: (keys.size / unit) as u32,
        capacity_units: (capacity / unit) as u32,
        dies,
        open_max: keys.open_max,
        active_max: keys.active_max,
        buffer: buffer.as_ref().map(|(buffer, bytes)| ZoneBuffer {
            pages: u32::try_from(bytes / geometry.page_bytes()).unwrap_or(u32::MAX),
            protected: buffer.protected,
            store: buffer.store,
        }),
        wear_dynamic: dynamic,
        trim,
        verify_reads,
        overhead,
    };
    // Blocks of all zones, each with its number.
    let blocks = config.blocks_per_die(geometry) * geometry.dies() as u64;
    let bytes = zones as u64 * ZONE_BYTES + 4 * blocks;
    let zoned = Zoned {
        medium,
        table: Memory { medium: table?.0, bytes },
        buffer: buffer.map(|(buffer, bytes)| Memory { medium: buffer.medium, bytes }),
        unit_bytes: unit as u32,
        config,
    };
    Some((array, zoned))
}

/// The keys of `[ftl.zone]` as written.
struct ZoneKeys {
    size: u64,
    capacity: Option<u64>,
    dies: Option<u32>,
    open_max: Option<u32>,
    active_max: Option<u32>,
}

fn zone_keys(context: &mut Context) -> Option<ZoneKeys> {
    let size = context.size("ftl.zone.size", KIND);
    let has_capacity = context.has("ftl.zone.capacity");
    let capacity = if has_capacity { context.size("ftl.zone.capacity", KIND).map(Some) } else { Some(None) };
    let mut count = |key: &str| match context.has(key) {
        true => context.count(key, KIND).map(Some),
        false => Some(None),
    };
    let [dies, open_max, active_max] =
        ["ftl.zone.dies", "ftl.zone.open_max", "ftl.zone.active_max"].map(&mut count);
    Some(ZoneKeys {
        size: size?,
        capacity: capacity?,
        dies: dies?,
        open_max: open_max?,
        active_max: active_max?,
    })
}

/// The size of a buffer that the design does not state.
fn buffer_bytes(context: &mut Context, active: u32, geometry: &Geometry) -> u64 {
    let bytes = (active as u64 + 2 * geometry.dies() as u64) * geometry.page_bytes();
    let from = "a page for every active zone and two for every die";
    context.derive("ftl.buffer.size", Datum::Size(bytes), from);
    bytes
}

fn dies_of(context: &mut Context, dies: Option<u32>, geometry: &Geometry) -> Option<u32> {
    let Some(dies) = dies else {
        context.derive("ftl.zone.dies", Datum::Count(geometry.dies() as u64), "all dies of the array");
        return Some(geometry.dies());
    };
    if geometry.dies().is_multiple_of(dies) {
        return Some(dies);
    }
    let problem = format!("`ftl.zone.dies` is {dies}, the array has {} dies", geometry.dies());
    context.wrong("ftl.zone.dies", problem, "a divisor of the dies of the array");
    None
}

/// The capacity of a zone in bytes: whole pages.
fn capacity_of(
    context: &mut Context,
    (size, capacity): (u64, Option<u64>),
    dies: u32,
    geometry: &Geometry,
) -> Option<u64> {
    let (unit, page) = (geometry.unit_bytes as u64, geometry.page_bytes());
    if !size.is_multiple_of(unit) || size / unit > u32::MAX as u64 {
        let problem = format!("`ftl.zone.size` ({}) is not a whole number of units", display_bytes(size));
        context.wrong("ftl.zone.size", problem, format!("a multiple of {}", display_bytes(unit)));
        return None;
    }
    let superblock = dies as u64 * geometry.block_bytes();
    let capacity = match capacity {
        Some(capacity) if capacity <= size && capacity.is_multiple_of(page) => return Some(capacity),
        Some(capacity) => {
            let problem = format!("`ftl.zone.capacity` ({}) does not fit", display_bytes(capacity));
            let help = format!(
                "a multiple of a page of the array ({}), at most `ftl.zone.size` ({}): {}",
                display_bytes(page),
                display_bytes(size),
                display_bytes(capacity.min(size) / page * page)
            );
            context.wrong("ftl.zone.capacity", problem, help);
            return None;
        }
        None => match (size + page) / superblock {
            0 => size / page * page,
            superblocks => (superblocks * superblock - page).min(size / page * page),
        },
    };
    if capacity == 0 {
        let problem = format!("`ftl.zone.size` ({}) is less than a page of the array", display_bytes(size));
        context.wrong("ftl.zone.size", problem, format!("at least {}", display_bytes(page)));
        return None;
    }
    context.derive("ftl.zone.capacity", Datum::Size(capacity), "whole superblocks in `size`, less a page");
    Some(capacity)
}

/// Zones for which there are blocks.
fn zones_of(
    context: &mut Context,
    share: space::Share,
    (size, capacity): (u64, u64),
    dies: u32,
    geometry: &Geometry,
) -> Option<u32> {
    let superblock = dies as u64 * geometry.block_bytes();
    let superblocks = (capacity + geometry.page_bytes()).div_ceil(superblock);
    let groups = (geometry.dies() / dies) as u64;
    // Two blocks of each die are left to those that fail and to the log.
    let most = (geometry.blocks_per_die as u64).saturating_sub(2) / superblocks * groups;
    let zones = match share {
        space::Share::Of(share) => {
            let blocks = (geometry.blocks_per_die as f64 * share + 1e-6) as u64;
            (blocks / superblocks * groups).min(most)
        }
        space::Share::Bytes(bytes) => bytes / capacity,
    };
    if zones == 0 || zones > most {
        let key = space::spare_key(context);
        let problem = format!(
            "`{key}`: {zones} zones of {superblocks} blocks on each of {dies} dies, but there are blocks for {most}"
        );
        context.wrong(key, problem, "smaller zones, or more blocks");
        return None;
    }
    if zones * (size / geometry.unit_bytes as u64) >= u32::MAX as u64 {
        let problem = format!("{zones} zones have more units than can be numbered");
        context.wrong("ftl.unit", problem, "a larger `ftl.unit`, or a smaller `ftl.zone.size`");
        return None;
    }
    Some(zones as u32)
}
