//! How the chips of an array are wired: planes, gangs, and the shape that results.

use crate::Array;
use crate::context::Context;
use crate::key::Preset::{Is, Nothing};
use crate::key::{Key, key};
use crate::part::{Flash, PlaneSenses};
use crate::toml_reader::datum::{Datum, Shape};
use nvlab_medium::flash::PlaneReads;
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Geometry, Rate};

/// The keys.
pub const KEYS: &[Key] = &[
    key("array.channels", &[], Shape::Count { min: 1, max: 1024 }, Is("1"), "8").about(
        "Buses between the controller and its dies; transfers on different channels are independent. For a memory used \
         in place: memory controllers, which share its bytes and banks. For disks: number of disks.",
    ),
    key("array.ways", &[], Shape::Count { min: 1, max: 1024 }, Is("1"), "4")
        .about("Dies (or gangs of chips) on each channel. Each reads, programs and erases independently of the others."),
    key("array.gang", &[], Shape::Count { min: 1, max: 4096 }, Is("1"), "256").about(
        "Chips that always work in lockstep as one wide chip: a page of the gang is one page of each chip, and its bus \
         is as wide as theirs together (eNVy: 256 chips of one byte).",
    ),
    key("array.planes", &[], Shape::Count { min: 1, max: 64 }, Nothing("all planes of the part"), "4").about(
        "Planes of a die that are programmed and erased together. A page of the array is then one page of each of them. \
         With fewer than the part has, the blocks of the remaining planes come after those of the first.",
    ),
    key("array.transfer", &[], Shape::Rate, Nothing("the rate of the part, times the gang"), "\"1200 MB/s\"")
        .about("Rate of one channel."),
    key("array.programs", &[], Shape::Count { min: 1, max: 1 << 20 }, Nothing("all dies"), "16").about(
        "Maximum number of dies that program at the same time, limited by the power supply or the controller. With n \
         dies, programs start at least 1/n of a program time apart.",
    ),
];

/// The keys of `[array]` as written: their meaning depends on the controller.
#[derive(Clone, Copy)]
pub struct Wiring {
    /// Channels.
    pub channels: Option<u32>,
    /// Dies, or gangs of chips, on each.
    pub ways: Option<u32>,
    /// Chips in lockstep.
    pub gang: Option<u32>,
    /// Planes programmed together, if the design says so.
    pub planes: Option<u32>,
    /// Rate of a channel, if the design says so.
    pub transfer: Option<Rate>,
}

/// Reads `[array]`.
pub fn wiring(context: &mut Context) -> Wiring {
    Wiring {
        channels: context.count("array.channels", ""),
        ways: context.count("array.ways", ""),
        gang: context.count("array.gang", ""),
        planes: context.count("array.planes", ""),
        transfer: context.rate("array.transfer", ""),
    }
}

/// An array of NAND, mapped by units of this many bytes; `None`: by whole pages of the array.
pub fn of_nand(context: &mut Context, wiring: Wiring, flash: &Flash, unit: Option<u64>) -> Option<Array> {
    let gang = wiring.gang?;
    let planes = planes(context, wiring.planes, flash)?;
    let transfer = wiring.transfer.unwrap_or_else(|| ganged(flash, gang));
    let programs = context.count("array.programs", "");
    let page = flash.page_bytes * gang as u64 * planes as u64 * flash.one_shot as u64;
    let shape = [wiring.channels?, wiring.ways?, gang, planes];
    let (geometry, units_per_read) = geometry(context, flash, shape, unit.unwrap_or(page))?;
    let reads = plane_reads(flash, planes, flash.page_bytes * gang as u64, geometry.unit_bytes as u64);
    Some(Array { gang, planes, transfer, programs, geometry, units_per_read, reads })
}

/// How reads use `planes` planes with pages of `page` bytes. A unit that is larger than a page lies in several planes,
/// which are then read as one.
fn plane_reads(flash: &Flash, planes: u32, page: u64, unit: u64) -> PlaneReads {
    let apart = (planes as u64 * page / unit.max(page)).max(1) as u32;
    let senses = if apart == 1 { PlaneSenses::One } else { flash.plane_reads };
    PlaneReads {
        planes: if senses == PlaneSenses::One { 1 } else { apart },
        together: senses != PlaneSenses::One,
        independent: senses == PlaneSenses::Independent,
        registers: flash.registers,
    }
}

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
        context.wrong("array.planes", problem, "a divisor of the planes of the part");
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
fn geometry(
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

/// A memory or disk has no array.
pub fn none() -> Array {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: 1,
        pages_per_block: 1,
        units_per_page: 1,
        unit_bytes: 512,
    };
    Array {
        gang: 1,
        planes: 1,
        transfer: Rate::from_bytes_per_second(0),
        programs: None,
        geometry,
        units_per_read: 1,
        reads: PlaneReads::ONE,
    }
}
