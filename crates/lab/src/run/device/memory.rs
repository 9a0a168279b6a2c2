//! How much memory a device takes, before it is built; and how much this machine has left.
//!
//! The tables of controllers and media are counted as they are laid out; a fixed share on top covers what is small.
//! `tests/memory.rs` compares the figure with devices that were built: it is what they take, or up to 15 % more. Bytes
//! that media keep in memory are counted only if the run is sure to write them all ([`Payload::All`]): a store takes no
//! memory for what was never written, only address space, which the system may refuse too (`reservable`).

use crate::design::{BlockMapped, Design, Envy, Ftl, PageMapped, PramMapped, Route};
use nvlab_controller::block_map::Log;
use nvlab_controller::fsms::SECTOR;
use nvlab_medium::flash::{FlashConfig, Nand, Nor};
use nvlab_medium::pcm::Pcm;
use nvlab_units::{Geometry, Lane};

/// What media keep of the bytes they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    Nothing,
    /// What will be written; how much is not known.
    AsWritten,
    /// In memory, and the whole device will be written.
    All,
}

impl Payload {
    /// `bytes` if they are kept at all.
    fn kept(self, bytes: u64) -> u64 {
        if self == Payload::Nothing { 0 } else { bytes }
    }
    /// `bytes` if they are all written.
    fn written(self, bytes: u64) -> u64 {
        if self == Payload::All { bytes } else { 0 }
    }
}

/// A device too large for this machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotEnough {
    /// Bytes the device takes.
    pub needed: u64,
    /// Bytes that are available.
    pub available: u64,
}

/// The share on top for what is small: one part in this many.
const REST: u64 = 32;
/// Bytes of a lane, with the work queued on it.
const LANE: u64 = size_of::<Lane>() as u64 + 256;

/// Refuses a design whose device does not fit in this machine's memory, if that is known.
pub(super) fn check(design: &Design, payload: Payload) -> Result<(), NotEnough> {
    let needed = needed(design, payload);
    match available() {
        Some(available) if needed > available => Err(NotEnough { needed, available }),
        _ => Ok(()),
    }
}

/// Bytes the device of a design takes.
pub fn needed(design: &Design, payload: Payload) -> u64 {
    let tables = match &design.ftl {
        Ftl::Page(page) => page_map(design, page, payload),
        Ftl::Blocks(blocks) => block_map(design, blocks, payload),
        Ftl::Hftl(hftl) => hftl_map(design, hftl, payload),
        Ftl::Envy(envy) => envy_map(design, envy, payload),
        // The segment, the memory that is mapped, the log.
        Ftl::Rvm(rvm) => 2 * rvm.memory_bytes + rvm.log_bytes,
    };
    let route = design.route.as_ref().map_or(0, |route| fsms(design, route, payload));
    (tables + route) + (tables + route) / REST
}

/// Tables of any array of flash.
fn array(flash: &FlashConfig, slc: bool, payload: Payload) -> u64 {
    let geometry = &flash.geometry;
    // Erases, whether bad, cycles it endures; pages programmed; whether in SLC mode.
    let block = 4 + 1 + 4 * flash.faults.wear_out as u64 + 4 + slc as u64;
    let kept = payload.written(Nand::<()>::store_bytes(geometry));
    geometry.blocks() as u64 * block + geometry.dies() as u64 * LANE + kept
}

/// Tables of a controller with a cleaner: live units, state, age, place in lists, erased ones.
fn blocks(geometry: &Geometry, lists: u64) -> u64 {
    geometry.blocks() as u64 * (4 + 1 + 8 + 8 + 4) + geometry.dies() as u64 * lists * 8
}

fn page_map(design: &Design, page: &PageMapped, payload: Payload) -> u64 {
    let flash = design.flash_config(0);
    let geometry = &flash.geometry;
    let config = page.config(0);
    let (raw, logical) = (geometry.units(), config.logical_units as u64);
    let frontiers = geometry.dies() as u64 * config.streams.count() as u64;
    // The staged units of a page, its bytes and its spare area.
    let frontier = geometry.units_per_page as u64 * 24 + payload.kept(geometry.page_bytes());
    let buffer = page
        .buffer
        .as_ref()
        .map_or(0, |buffer| buffer.bytes / page.unit_bytes as u64 * 16 + payload.kept(buffer.bytes));
    // A mount looks for the newest version of every unit; a checkpoint is a copy of the map.
    let recovery = payload.kept(16 * logical + 4 * logical);
    4 * raw
        + raw / 8
        + 4 * logical
        + blocks(geometry, geometry.units_per_block() as u64 + 1)
        + frontiers * (256 + frontier)
        + geometry.units_per_block() as u64 * 16
        + buffer
        + recovery
        + array(&flash, page.cache.is_some(), payload)
}

fn block_map(design: &Design, map: &BlockMapped, payload: Payload) -> u64 {
    let flash = design.flash_config(0);
    let geometry = &flash.geometry;
    let log = design.log_config(map, 0);
    let log_geometry = log.as_ref().map_or(geometry, |log| &log.geometry);
    let logical = map.config.logical_units as u64;
    let logical_blocks = logical.div_ceil(geometry.pages_per_block as u64);
    // A bit for each page, which may be programmed in any order.
    let bits = geometry.blocks() as u64 * geometry.pages_per_block.div_ceil(64) as u64 * 8;
    let of_log = match map.config.log {
        Log::None => 0,
        Log::PerBlock { .. } => 4 * logical_blocks + geometry.blocks() as u64,
        Log::Shared { .. } => 4 * log_geometry.units(),
    };
    // A mount looks for the newest version of every page, and records all versions it finds.
    let recovery =
        payload.kept(8 * logical) + payload.written(24 * (geometry.units() + log_geometry.units()));
    4 * logical
        + map.config.second_chance as u64 * logical
        + 4 * logical_blocks
        + 4 * geometry.blocks() as u64
        + bits
        + of_log
        + recovery
        + array(&flash, map.slc_log.is_some(), payload)
        + log.as_ref().map_or(0, |log| array(log, false, payload) + 4 * log.geometry.blocks() as u64)
}

fn hftl_map(design: &Design, map: &PramMapped, payload: Payload) -> u64 {
    let flash = design.flash_config(0);
    let geometry = &flash.geometry;
    // The reverse map, and the tables that lie in PRAM: map, block entries, live bits.
    let live = geometry.blocks() as u64 * geometry.pages_per_block.div_ceil(64) as u64 * 8;
    4 * geometry.units()
        + 4 * map.config(0).logical_units as u64
        + 8 * geometry.blocks() as u64
        + live
        + blocks(geometry, geometry.units_per_block() as u64 + 1)
        + array(&flash, false, payload)
        + pcm(design, &map.pram, payload)
}

fn envy_map(design: &Design, envy: &Envy, payload: Payload) -> u64 {
    let nor = envy.nor_config(design, 0);
    let geometry = &nor.flash.geometry;
    let ram = envy.ram_config(design, 0);
    let kept = payload.written(Nor::<()>::store_bytes(geometry) + ram.capacity_bytes);
    let transaction = match envy.config.transaction_pages {
        0 => 0,
        pages => pages as u64 * 8 + envy.config.logical_pages as u64 / 8,
    };
    4 * geometry.units()
        + 4 * envy.config.logical_pages as u64
        + 4 * envy.config.mapping_cache_entries as u64
        + 24 * envy.config.buffer_pages as u64
        + 96 * geometry.blocks() as u64
        + geometry.pages_per_block as u64 * 16
        + transaction
        + ram.banks as u64 * LANE
        + array(&nor.flash, false, Payload::Nothing)
        + kept
}

/// The wear of its lines, and its banks.
fn pcm(design: &Design, name: &str, payload: Payload) -> u64 {
    let (config, _) = design.pcm_config(name, 0);
    let lines = config.wear.map_or(0, |wear| config.capacity_bytes.div_ceil(wear.line_bytes as u64));
    let kept = payload.written(Pcm::<()>::store_bytes(&config));
    4 * lines + config.banks as u64 * LANE + kept
}

/// The driver's tables, and its memory where the controller has none.
fn fsms(design: &Design, route: &Route, payload: Payload) -> u64 {
    let sectors = design.capacity_bytes() / SECTOR as u64;
    let own = match design.ftl.kind().pram() {
        Some(_) => 0,
        None => pcm(design, &route.pram, payload),
    };
    let size = design.pcm_config(&route.pram, 0).0.capacity_bytes;
    let slots = route.bytes.unwrap_or(size) / (SECTOR as u64 + 4);
    // The sector of each slot, those that are free; an index of 64 sectors together, of which each slot may need its own.
    8 * slots + sectors / 64 * 4 + 256 * slots.min(sectors / 64) + sectors / 32 + own
}

/// Bytes this program may still take before the system swaps or kills; `None` if this machine does not say.
pub fn available() -> Option<u64> {
    let machine = read("/proc/meminfo").and_then(|text| kib(&text, "MemAvailable:"));
    let groups = read("/proc/self/cgroup").map_or(Vec::new(), |text| groups(&text));
    let limited = groups.iter().filter_map(|group| {
        let number = |file: &str| read(&format!("{group}/{file}"))?.trim().parse::<u64>().ok();
        let limit = number("memory.max")?;
        // Unused pages of files are reclaimed when memory is short.
        let idle = read(&format!("{group}/memory.stat"))
            .and_then(|text| field(&text, "inactive_file "))
            .unwrap_or(0);
        Some(limit.saturating_sub(number("memory.current")?.saturating_sub(idle)))
    });
    machine.into_iter().chain(limited).chain(space()).min()
}

/// Bytes that one store may reserve, however few of them are written; `None` if nothing limits that.
pub(super) fn reservable() -> Option<u64> {
    let policy = read("/proc/sys/vm/overcommit_memory").unwrap_or_default();
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    let machine = match policy.trim() {
        "1" => None,
        "2" => kib(&meminfo, "CommitLimit:")
            .zip(kib(&meminfo, "Committed_AS:"))
            .map(|(limit, taken)| limit.saturating_sub(taken)),
        // More than the machine has at all is refused.
        _ => kib(&meminfo, "MemTotal:").map(|total| total + kib(&meminfo, "SwapTotal:").unwrap_or(0)),
    };
    machine.into_iter().chain(space()).min()
}

/// Bytes of address space that are left, where they are limited.
fn space() -> Option<u64> {
    let limit = field(&read("/proc/self/limits")?, "Max address space ")?;
    Some(limit.saturating_sub(kib(&read("/proc/self/status")?, "VmSize:")?))
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The folders of a control group and those around it, from `/proc/self/cgroup`.
fn groups(text: &str) -> Vec<String> {
    let Some(path) = text.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let mut folder = "/sys/fs/cgroup".to_string();
    let mut all = vec![folder.clone()];
    for name in path.split('/').filter(|name| !name.is_empty()) {
        folder = format!("{folder}/{name}");
        all.push(folder.clone());
    }
    all
}

/// The number behind a name that begins a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn kib(text: &str, name: &str) -> Option<u64> {
    Some(field(text, name)? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read() {
        let meminfo =
            "MemTotal:       16306528 kB\nMemFree:          219316 kB\nMemAvailable:    9876540 kB\n";
        assert_eq!(kib(meminfo, "MemAvailable:"), Some(9_876_540 << 10));
        assert_eq!(kib("", "MemAvailable:"), None);
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max address space         4294967296           unlimited            bytes     \n";
        assert_eq!(field(limits, "Max address space "), Some(4 << 30));
        assert_eq!(field(&limits.replace("4294967296", "unlimited"), "Max address space "), None);
        let own = "0::/user.slice/a.scope\n";
        let root = "/sys/fs/cgroup";
        assert_eq!(
            groups(own),
            [root.to_string(), format!("{root}/user.slice"), format!("{root}/user.slice/a.scope")]
        );
        assert_eq!((groups("0::/\n"), groups("1:memory:/x\n")), (vec![root.to_string()], Vec::new()));
        assert!(available().is_none_or(|bytes| bytes > 1 << 20));
    }
}
