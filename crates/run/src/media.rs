//! Figures of each kind of flash of a device: each array, and separately the blocks of an array in SLC mode.
//!
//! The cycles of a run are the pages it used up over the pages of a block: those it programmed, and those that were
//! erased without having been programmed. A programmed page has to be erased before it is programmed again, and a
//! block that is erased before it is full costs a whole cycle all the same. For each block this is its erases plus
//! the share of it that is programmed at the end minus that at the beginning. So it is correct from the first program
//! on, and for a steady device it does not depend, on average, on where in the cycles of its blocks the run begins
//! and ends. Erases alone lag behind on a device that begins with erased blocks, and in a short run they depend on
//! the cleaning that happened to occur.
//!
//! Data in the write buffer, a cache in SLC mode or a log of another medium at the end, which has yet to be
//! programmed to the data medium, counts as programmed.

use super::device::{ArrayInsides, FlashInsides, HiddenFlash, Insides};
use crate::result::{MediumResult, SECONDS_PER_YEAR};
use nvlab_design::{Design, Ftl, PriceItem};
use nvlab_medium::flash::Cells;
use nvlab_units::Geometry;

/// Every kind of flash of a run of `seconds`, the data medium first; none without flash.
pub(super) fn media(design: &Design, insides: &Insides, seconds: f64) -> Vec<MediumResult> {
    let items = design.price().items;
    let Some(flash) = &insides.flash else {
        return insides.hidden.iter().map(|flash| hidden(design, flash, &items, seconds)).collect();
    };
    let geometry = &flash.data.geometry;
    let mut data = medium(design.ftl.medium(), "data", &items, &flash.data);
    let mut slc = slc_mode(design, flash.data.cells);
    if let Some((slc, _)) = &slc {
        data.reads -= slc.reads;
        data.programs -= slc.programs;
        data.erases -= slc.erases;
        data.skipped_pages -= slc.skipped_pages;
        data.read_s -= slc.read_s;
        data.program_s -= slc.program_s;
        data.erase_s -= slc.erase_s;
    }
    let mut log = log(design, flash, &items);
    let mut programmed = program_units(&mut data, &Shape::of(geometry), geometry);
    if let Some((slc, shape)) = &mut slc {
        // Any block may be used in SLC mode: the wear is spread over all.
        programmed += program_units(slc, shape, geometry);
        wear_out(slc, shape, geometry, geometry.blocks(), seconds);
    }
    if let Some((log, geometry)) = &mut log {
        programmed += program_units(log, &Shape::of(geometry), geometry);
        wear_out(log, &Shape::of(geometry), geometry, geometry.blocks(), seconds);
    }
    let buffered = insides.causes.total().saturating_sub(programmed);
    data.programmed_bytes += (buffered + insides.waiting_units) * geometry.unit_bytes as u64;
    // A status is a few bytes for each pass over the other blocks.
    let wearing = insides.wearing.as_ref().map_or(geometry.blocks(), |blocks| blocks.len() as u32);
    wear_out(&mut data, &Shape::of(geometry), geometry, wearing, seconds);
    let slc = slc.map(|(slc, _)| slc);
    [Some(data), slc, log.map(|(log, _)| log)].into_iter().flatten().collect()
}

/// Years until the device is worn out, and whether the array of the log is worn out first. Blocks used in both modes wear
/// from both; of two arrays, the first to be worn out counts.
pub(super) fn years_of(media: &[MediumResult]) -> Option<(f64, bool)> {
    let rate = |roles: &[&str]| {
        let of = media.iter().filter(|medium| roles.contains(&medium.role.as_str()));
        of.filter_map(|medium| medium.years).map(|years| 1.0 / years).sum::<f64>()
    };
    let (data, log) = (rate(&["data", "slc"]), rate(&["log"]));
    let fastest = data.max(log);
    (fastest > 0.0).then(|| (1.0 / fastest, log > data))
}

/// What a block of a kind of flash holds.
struct Shape {
    pages_per_block: u32,
    units_per_page: u32,
}

impl Shape {
    /// With all bits of its cells.
    fn of(geometry: &Geometry) -> Shape {
        Shape { pages_per_block: geometry.pages_per_block, units_per_page: geometry.units_per_page }
    }
}

/// Counts the bytes programmed; returns the units.
fn program_units(medium: &mut MediumResult, shape: &Shape, geometry: &Geometry) -> u64 {
    let units = medium.programs * shape.units_per_page as u64;
    medium.programmed_bytes = units * geometry.unit_bytes as u64;
    units
}

/// Sets the cycles of the mean of `blocks`, and the years until they reach the rated ones.
fn wear_out(medium: &mut MediumResult, shape: &Shape, geometry: &Geometry, blocks: u32, seconds: f64) {
    let page_bytes = shape.units_per_page as u64 * geometry.unit_bytes as u64;
    let pages = medium.programmed_bytes as f64 / page_bytes as f64 + medium.skipped_pages as f64;
    medium.blocks = blocks;
    medium.cycles = pages / shape.pages_per_block as f64 / medium.blocks as f64;
    medium.years = (medium.cycles > 0.0)
        .then(|| medium.rated_cycles as f64 / (medium.cycles / seconds) / SECONDS_PER_YEAR);
}

fn medium(name: &str, role: &str, items: &[PriceItem], array: &ArrayInsides<'_>) -> MediumResult {
    let ArrayInsides { cells, stats, .. } = array;
    let item = items.iter().find(|item| item.medium == name);
    MediumResult {
        name: name.into(),
        role: role.into(),
        bytes: item.map_or(0, |item| item.bytes),
        usd: item.and_then(|item| item.usd),
        reads: stats.reads,
        programs: stats.programs,
        erases: stats.erases,
        skipped_pages: stats.skipped_pages,
        read_s: stats.read_time.seconds(),
        program_s: stats.program_time.seconds(),
        erase_s: stats.erase_time.seconds(),
        rated_cycles: cells.config.endurance.cycles,
        ..MediumResult::default()
    }
}

/// Flash behind a controller that is not simulated.
fn hidden(design: &Design, flash: &HiddenFlash, items: &[PriceItem], seconds: f64) -> MediumResult {
    let name = design.ftl.medium();
    let item = items.iter().find(|item| item.medium == name);
    let geometry = &flash.geometry;
    let [read_s, program_s] =
        [(0, flash.reads), (1, flash.programs)].map(|(at, count)| flash.times[at].seconds() * count as f64);
    let erases = flash.programs as f64 / geometry.pages_per_block as f64;
    let mut medium = MediumResult {
        name: name.into(),
        role: "data".into(),
        bytes: item.map_or(0, |item| item.bytes),
        usd: item.and_then(|item| item.usd),
        reads: flash.reads,
        programs: flash.programs,
        erases: erases as u64,
        read_s,
        program_s,
        erase_s: flash.times[2].seconds() * erases,
        rated_cycles: flash.rated_cycles,
        ..MediumResult::default()
    };
    let shape = Shape::of(geometry);
    program_units(&mut medium, &shape, geometry);
    wear_out(&mut medium, &shape, geometry, geometry.blocks(), seconds);
    medium
}

/// The log's own array, if it has one.
fn log(design: &Design, flash: &FlashInsides<'_>, items: &[PriceItem]) -> Option<(MediumResult, Geometry)> {
    let (Ftl::Blocks(design), Some(log)) = (&design.ftl, &flash.log) else { return None };
    Some((medium(&design.own_log.as_ref()?.medium, "log", items, log), log.geometry))
}

/// The blocks of the data array in SLC mode, if its controller uses any.
fn slc_mode(design: &Design, cells: &Cells) -> Option<(MediumResult, Shape)> {
    let slc = design.ftl.slc()?;
    let done = cells.slc_operations();
    let medium = MediumResult {
        name: slc.medium.clone(),
        role: "slc".into(),
        reads: done.reads,
        programs: done.programs,
        erases: done.erases,
        skipped_pages: done.skipped_pages,
        read_s: slc.mode.read.seconds() * done.reads as f64,
        program_s: slc.mode.program.seconds() * done.programs as f64,
        erase_s: slc.mode.erase.seconds() * done.erases as f64,
        rated_cycles: slc.mode.cycles,
        ..MediumResult::default()
    };
    let mode = &slc.mode;
    Some((medium, Shape { pages_per_block: mode.pages_per_block, units_per_page: mode.units_per_page }))
}
