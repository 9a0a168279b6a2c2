//! What only shows when a whole design is put together: does it fit?

use super::context::Context;
use super::part::Flash;
use super::resolve::{Media, spare_key};
use super::{Array, PageMapped};
use nvlab_controller::page_map::Allocation;
use nvlab_units::quantity::{display_bytes, display_fraction};

/// What is moved out of a superblock may go to another die.
pub fn copy_back(context: &mut Context, flash: &Flash, ftl: &PageMapped) -> Option<()> {
    if ftl.allocation == Allocation::Dynamic || !flash.copy_back {
        return Some(());
    }
    let key = format!("media.{}.copy_back", ftl.medium);
    let problem = format!("`{key}`: what is moved out of a superblock may go to another die");
    context.wrong(&key, problem, "copy_back = false, or ftl.allocation = \"dynamic\"");
    None
}

/// Blocks kept for cleaning and open streams must not be host capacity.
pub fn blocks(context: &mut Context, array: &Array, ftl: &PageMapped) -> Option<()> {
    let geometry = &array.geometry;
    let apart = (ftl.free_blocks_min as u64 + ftl.streams.count() as u64) * geometry.dies() as u64;
    let left = (geometry.blocks() as u64).saturating_sub(apart) * geometry.units_per_block() as u64;
    // What the blocks that the cache has however full the device is do not hold in SLC mode.
    let lost = ftl.cache.as_ref().map_or(0, |cache| {
        let held = cache.slc.mode.pages_per_block as u64 * cache.slc.mode.units_per_page as u64;
        cache.config.blocks_min as u64 * geometry.dies() as u64 * (geometry.units_per_block() as u64 - held)
    });
    let left = left.saturating_sub(lost);
    if ftl.logical_units as u64 <= left {
        return Some(());
    }
    let key = spare_key(context);
    let least = 1.0 - left as f64 / geometry.units() as f64;
    let problem = format!(
        "`{key}` is too tight: of {} blocks {apart} are kept for cleaning and open streams{}",
        geometry.blocks(),
        match lost {
            0 => String::new(),
            lost =>
                format!(", and blocks of the cache hold {} less", display_bytes(lost * ftl.unit_bytes as u64)),
        }
    );
    let least = display_fraction((least * 10_000.0).ceil() / 10_000.0);
    context.wrong(key, problem, format!("a spare of at least {least}, or more and smaller blocks"));
    None
}

pub fn buffer(context: &mut Context, array: &Array, ftl: &PageMapped) -> Option<()> {
    let Some(buffer) = &ftl.buffer else { return Some(()) };
    let geometry = &array.geometry;
    let dies = ftl.allocation.geometry(geometry).dies();
    let pages = ftl.streams.count() as u64 * dies as u64;
    let least = pages * geometry.page_bytes();
    let units = buffer.bytes / ftl.unit_bytes as u64;
    if buffer.bytes >= least && units <= u32::MAX as u64 {
        return Some(());
    }
    let problem = format!("`ftl.buffer.size` is too small: {}", display_bytes(buffer.bytes));
    let help = format!(
        "at least {}: one page of {} for each of {} dies and {} streams",
        display_bytes(least),
        display_bytes(geometry.page_bytes()),
        dies,
        ftl.streams.count()
    );
    context.wrong("ftl.buffer.size", problem, help);
    None
}

/// Map and buffer must fit in their memories.
pub fn memory(context: &mut Context, media: &Media, ftl: &PageMapped) -> Option<()> {
    let map = ftl.logical_units as u64 * ftl.map.entry_bytes;
    let size = |name: &str| media.get(name).map_or(0, |medium| medium.part.bytes());
    let buffer = ftl.buffer.as_ref().map_or(0, |buffer| buffer.bytes);
    let together = ftl.buffer.as_ref().is_some_and(|buffer| buffer.medium == ftl.map.medium);
    let in_map_memory = if together { map.saturating_add(buffer) } else { map };
    if in_map_memory > size(&ftl.map.medium) {
        let problem = format!(
            "`{}` has {}, but the map takes {}{}",
            ftl.map.medium,
            display_bytes(size(&ftl.map.medium)),
            display_bytes(map),
            if together { format!(" and the buffer {}", display_bytes(buffer)) } else { String::new() }
        );
        let help = format!("give `media.{}.size` at least {}", ftl.map.medium, at_least(in_map_memory));
        wrong_size(context, &ftl.map.medium, "ftl.map.in", problem, help);
        return None;
    }
    let Some(own) = ftl.buffer.as_ref().filter(|_| !together) else { return Some(()) };
    if own.bytes > size(&own.medium) {
        let problem = format!(
            "`{}` has {}, but the buffer takes {}",
            own.medium,
            display_bytes(size(&own.medium)),
            display_bytes(buffer)
        );
        let help = format!("give `media.{}.size` at least {}", own.medium, at_least(buffer));
        wrong_size(context, &own.medium, "ftl.buffer.in", problem, help);
        return None;
    }
    Some(())
}

/// A size for people that is not rounded down.
pub fn at_least(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

/// A memory is too small: points at its size if the design says it, else at the key that uses it.
fn wrong_size(context: &mut Context, medium: &str, user: &str, problem: String, help: String) {
    let size = format!("media.{medium}.size");
    let at = if context.top.leaves.contains_key(&size) { size.as_str() } else { user };
    context.wrong(at, problem, help);
}
