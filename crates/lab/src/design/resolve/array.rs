//! How the chips of an array are wired: planes, gangs, and the shape that results.

use super::super::context::Context;
use super::super::part::Flash;
use crate::toml_reader::datum::Datum;
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Geometry, Rate};

/// Planes that work together.
pub fn planes(context: &mut Context, set: Option<u32>, flash: &Flash) -> Option<u32> {
    let planes = match set {
        Some(planes) => planes,
        None => {
            context.derive("array.planes", Datum::Count(flash.planes as u64), "the planes of the part");
            flash.planes
        }
    };
    if !flash.planes.is_multiple_of(planes) {
        let problem = format!("`array.planes` is {planes}, the part has {}", flash.planes);
        context.wrong("array.planes", problem, "planes of the part must be a multiple of it");
        return None;
    }
    Some(planes)
}

/// A gang's bus is as wide as its chips together.
pub fn ganged(flash: &Flash, gang: u32) -> Rate {
    match flash.transfer.transfer(1 << 20).ps() {
        0 => flash.transfer,
        // The time of 2^20 bytes over one chip, shared among the gang.
        ps => Rate::from_bytes_per_second(
            u64::try_from((1u128 << 20) * 1_000_000_000_000 * gang as u128 / ps as u128)
                .unwrap_or(u64::MAX)
                .max(1),
        ),
    }
}

/// The shape of a NAND array, and the units that come with one read.
pub fn geometry(
    context: &mut Context,
    flash: &Flash,
    [channels, ways, gang, planes]: [u32; 4],
    unit: u64,
) -> Option<(Geometry, u32)> {
    let physical = flash.page_bytes * gang as u64;
    let page = physical * planes as u64 * flash.one_shot as u64;
    if !page.is_multiple_of(unit) || !(physical.is_multiple_of(unit) || unit.is_multiple_of(physical)) {
        let problem = format!(
            "`ftl.unit` ({}) does not divide a page of the array ({}: {gang} chip(s) x {planes} plane(s) x {} page(s) \
             of {})",
            display_bytes(unit),
            display_bytes(page),
            flash.one_shot,
            display_bytes(flash.page_bytes)
        );
        context.wrong("ftl.unit", problem, "a page must hold a whole number of units");
        return None;
    }
    let blocks = flash.blocks_per_plane as u64 * (flash.planes / planes) as u64;
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let geometry = Geometry {
        channels,
        dies_per_channel: ways,
        blocks_per_die: narrow(blocks),
        pages_per_block: flash.pages_per_block / flash.one_shot,
        units_per_page: narrow(page / unit),
        unit_bytes: unit as u32,
    };
    if let Err(problem) = geometry.check() {
        context.wrong("ftl.unit", problem, "a larger `ftl.unit`, fewer dies or fewer blocks");
        return None;
    }
    Some((geometry, narrow(physical / unit).max(1)))
}
