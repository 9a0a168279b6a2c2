//! From keys to a typed [`Design`]: reads every table, then checks what only shows when they are put together.
//!
//! | module | what |
//! |---|---|
//! | `array` | how the chips are wired |
//! | `space` | how much of it the host can address |
//! | `slc` | which of its blocks are used with one bit per cell |
//! | `page`, `blocks`, `envy`, `pram` | the controllers: a file for each `ftl.kind`; what stands in front of them |

mod array;
mod blocks;
mod envy;
mod page;
mod pram;
mod slc;
mod space;

pub use space::spare_key;

use super::context::Context;
use super::part::{self, Flash, Part, Ram};
use super::{Array, Design, Ftl, HostPath, Medium, PathKind, load};
use crate::toml_reader::datum::Datum;
use nvlab_units::Rate;
use std::collections::BTreeMap;

/// The media of a design, by name.
pub type Media = BTreeMap<String, Medium>;

/// Reads everything; `None` if a problem, which is then reported, leaves no design.
pub fn resolve(context: &mut Context, file_stem: &str) -> Option<Design> {
    context.get("schema", None);
    let name = context.text("design.name", "").unwrap_or_else(|| {
        context.derive("design.name", Datum::Text(file_stem.to_string()), "the name of the file");
        file_stem.to_string()
    });
    let about = context.text("design.about", "").unwrap_or_default();
    let cite = context.text("design.cite", "").unwrap_or_default();
    context.text("design.extends", "");
    let media = media(context);
    let path = host_path(context);
    let (array, ftl) = controller(context, &media, path.as_ref())?;
    let route = pram::route(context, &media, &ftl)?;
    Some(Design { name, about, cite, media, array, ftl, route, path: path?, resolved: Vec::new() })
}

fn media(context: &mut Context) -> Media {
    let mut media = Media::new();
    for name in load::media_names(context) {
        let table = format!("media.{name}");
        let part_name = context.text(&format!("{table}.part"), "");
        if context.gave_up_on(&table) {
            continue;
        }
        if let Some(part) = part::read(context, &table) {
            if let Part::Disk(_) = part {
                let at = format!("{table}.{}", if part_name.is_some() { "part" } else { "kind" });
                let problem = format!("`{table}` is a disk, which no controller of a design uses");
                context.wrong(&at, problem, "flash for the data; ram or pcm for map and buffer");
                continue;
            }
            media.insert(name, Medium { part_name, part });
        }
    }
    media
}

/// The name a key gives, and the medium if it is there and right.
fn named<'m>(
    context: &mut Context,
    media: &'m Media,
    path: &str,
    kind: &str,
) -> Option<(String, &'m Medium)> {
    let name = context.text(path, kind)?;
    match media.get(&name) {
        Some(medium) => Some((name, medium)),
        // It is there, but was wrong: that has been reported.
        None if load::media_names(context).contains(&name) => None,
        None => {
            let names: Vec<String> = load::media_names(context).into_iter().collect();
            let help = match names.as_slice() {
                [] => "there is no [media.NAME] at all".to_string(),
                names => format!("media of this design: {}", names.join(", ")),
            };
            context.wrong(path, format!("`{path}`: there is no medium `{name}`"), help);
            None
        }
    }
}

fn named_ram(context: &mut Context, media: &Media, path: &str, kind: &str) -> Option<(String, Ram)> {
    let (name, medium) = named(context, media, path, kind)?;
    match &medium.part {
        Part::Ram(ram) => Some((name, ram.clone())),
        other => {
            let problem = format!("`{path}`: `{name}` is of kind \"{}\"", other.kind());
            context.wrong(path, problem, "it must be a medium of kind \"ram\"");
            None
        }
    }
}

/// The keys of `[array]` as they stand: what they mean depends on the controller.
#[derive(Clone, Copy)]
struct Wiring {
    channels: Option<u32>,
    ways: Option<u32>,
    gang: Option<u32>,
    planes_set: Option<u32>,
    transfer: Option<Rate>,
}

fn controller(context: &mut Context, media: &Media, path: Option<&HostPath>) -> Option<(Array, Ftl)> {
    let wiring = Wiring {
        channels: context.count("array.channels", ""),
        ways: context.count("array.ways", ""),
        gang: context.count("array.gang", ""),
        planes_set: context.count("array.planes", ""),
        transfer: context.rate("array.transfer", ""),
    };
    match context.text("ftl.kind", "")?.as_str() {
        kind @ ("block" | "bast" | "fast") => {
            let (array, blocks) = blocks::read(context, media, wiring, path, kind)?;
            Some((array, Ftl::Blocks(blocks)))
        }
        "hftl" => {
            let (array, hftl) = pram::read(context, media, wiring, path)?;
            Some((array, Ftl::Hftl(hftl)))
        }
        "envy" => {
            let (array, envy) = envy::read(context, media, wiring, path)?;
            Some((array, Ftl::Envy(envy)))
        }
        _ => {
            let (array, page) = page::read(context, media, wiring, path)?;
            Some((array, Ftl::Page(page)))
        }
    }
}

/// The flash that holds the data, which must be of a kind of medium.
fn data_flash(
    context: &mut Context,
    media: &Media,
    (kind, medium_kind): (&str, &str),
    who: &str,
) -> Option<(String, Flash)> {
    let (name, medium) = named(context, media, "ftl.medium", kind)?;
    match &medium.part {
        Part::Nand(flash) | Part::Nor(flash) if medium.part.kind() == medium_kind => {
            Some((name, flash.clone()))
        }
        other => {
            let problem = format!("`ftl.medium`: `{name}` is of kind \"{}\"", other.kind());
            context.wrong("ftl.medium", problem, format!("{who} needs a medium of kind \"{medium_kind}\""));
            None
        }
    }
}

fn host_path(context: &mut Context) -> Option<HostPath> {
    let kind = context.text("path.kind", "")?;
    let rate = if ["direct", "memory-bus"].contains(&kind.as_str()) {
        None
    } else {
        context.rate("path.rate", &kind)
    };
    let rate_write = match (kind.as_str(), context.has("path.rate_write")) {
        (_, false) => rate,
        ("direct" | "memory-bus", true) => None,
        (_, true) => context.rate("path.rate_write", &kind),
    };
    let memory_bus = kind == "memory-bus";
    // A program that copies has one access under way.
    let queue = if memory_bus { Some(1) } else { context.count("path.queue", &kind) };
    let width = if memory_bus { context.size("path.width", &kind) } else { Some(0) };
    let overhead_host = context.time("path.overhead.host", "");
    let overhead_device = context.time("path.overhead.device", "");
    let path_kind = match kind.as_str() {
        "nvme" => PathKind::Nvme,
        "sata" => PathKind::Sata,
        "bus" => PathKind::Bus,
        "memory-bus" => PathKind::MemoryBus,
        _ => PathKind::Direct,
    };
    if path_kind == PathKind::Sata && queue.is_some_and(|queue| queue > 32) {
        context.wrong("path.queue", "`path.queue`: SATA has 32 command slots", "a whole number from 1 to 32");
        return None;
    }
    if memory_bus && !width?.is_power_of_two() {
        context.wrong("path.width", "`path.width` is not a power of two", "\"4 B\", \"8 B\", \"64 B\"");
        return None;
    }
    Some(HostPath {
        kind: path_kind,
        rate,
        rate_write,
        queue: queue?,
        word_bytes: width? as u32,
        overhead_host: overhead_host?,
        overhead_device: overhead_device?,
    })
}
