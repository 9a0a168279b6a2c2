//! The page map in PRAM: `ftl.kind = "hftl"`; and the driver in front of a controller: `[ftl.route]`.

use super::super::context::Context;
use super::super::part::{Part, Pcm};
use super::super::pram::{PramMapped, Route};
use super::super::{Array, Ftl, HostPath, PathKind};
use super::{Media, Wiring, array, data_flash, named, page, space};
use crate::toml_reader::datum::Datum;
use nvlab_controller::fsms::Update;
use nvlab_units::quantity::display_bytes;

const KIND: &str = "hftl";
/// Over-provisioning of a design that does not say.
const SPARE: f64 = 0.07;
/// Bytes of an entry that is changed in place.
const ENTRY_BYTES: u32 = 8;

/// Reads and checks the page map.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, PramMapped)> {
    let flash = data_flash(context, media, (KIND, "nand"), "hFTL");
    let pram = named_pram(context, media, "ftl.map.in", KIND);
    let lookup = context.time("ftl.map.lookup", KIND);
    let cleaning = page::cleaning(context, KIND);
    let wear = page::wear(context, KIND);
    let trim = context.flag("ftl.trim", KIND);
    let verify_reads = context.flag("ftl.verify_reads", KIND).unwrap_or(false);
    let free_blocks_min = context.count("ftl.free_blocks_min", KIND);
    let overhead = context.time("ftl.overhead", KIND);
    let share = space::spare(context, KIND, SPARE);
    if path.is_some_and(|path| path.kind == PathKind::MemoryBus) {
        let help = "kind = \"direct\", \"nvme\", \"sata\" or \"bus\"";
        context.wrong("path.kind", "`path.kind`: hFTL serves blocks, not words", help);
        return None;
    }
    let (medium, flash) = flash?;
    let (pram, _) = pram?;
    let gang = wiring.gang?;
    let planes = array::planes(context, wiring.planes_set, &flash)?;
    let transfer = wiring.transfer.unwrap_or_else(|| array::ganged(&flash, gang));
    let unit = flash.page_bytes * gang as u64 * planes as u64 * flash.one_shot as u64;
    let shape = [wiring.channels?, wiring.ways?, gang, planes];
    let (geometry, units_per_read) = array::geometry(context, &flash, shape, unit)?;
    let logical_units = space::logical_units(context, geometry.units(), unit as u32, share?)?;
    let array = Array { gang, planes, transfer, geometry, units_per_read };
    let ftl = PramMapped {
        medium,
        pram,
        unit_bytes: unit as u32,
        logical_units,
        trim: trim?,
        verify_reads,
        free_blocks_min: free_blocks_min?,
        lookup: lookup?,
        overhead: overhead?,
        cleaning: cleaning?,
        wear: wear?,
    };
    Some((array, ftl))
}

/// A memory that is changed in place and keeps what it holds, entries of 8 B whole.
fn named_pram(context: &mut Context, media: &Media, path: &str, kind: &str) -> Option<(String, Pcm)> {
    let (name, medium) = named(context, media, path, kind)?;
    let pcm = match &medium.part {
        Part::Pcm(pcm) => pcm.clone(),
        other => {
            let problem = format!("`{path}`: `{name}` is of kind \"{}\"", other.kind());
            context.wrong(
                path,
                problem,
                "it must be a medium of kind \"pcm\", as part = \"pram-kps1215ezm\"",
            );
            return None;
        }
    };
    if pcm.atomic_bytes >= ENTRY_BYTES {
        return Some((name, pcm));
    }
    let problem = format!(
        "`{path}`: a power cut tears entries in `{name}`, which keeps only {} B whole",
        pcm.atomic_bytes
    );
    context.wrong(
        path,
        problem,
        format!("media.{name}.atomic = \"{ENTRY_BYTES} B\", if the part promises it"),
    );
    None
}

/// Reads `[ftl.route]`; `Some(None)`: there is none.
pub fn route(context: &mut Context, media: &Media, ftl: &Ftl) -> Option<Option<Route>> {
    if !context.has_table("ftl.route") || context.text("ftl.route.kind", "")? == "none" {
        return Some(None);
    }
    const KIND: &str = "fsms";
    let pram = named_pram(context, media, "ftl.route.in", KIND);
    let update = context.text("ftl.route.update", KIND);
    let trim = context.flag("ftl.route.trim", KIND);
    let overhead = context.time("ftl.route.overhead", KIND);
    let mut optional = |path| match context.get(path, Some(KIND)) {
        Some(Datum::Size(bytes)) => Some(bytes),
        _ => None,
    };
    let (bytes, first_bytes) = (optional("ftl.route.size"), optional("ftl.route.first"));
    let (pram, pcm) = pram?;
    if let Ftl::Envy(_) = ftl {
        let help = "leave [ftl.route] out, or another `ftl.kind`";
        context.wrong(
            "ftl.route.kind",
            "`ftl.route.kind`: eNVy is memory, FSMS stands in front of a disk",
            help,
        );
        return None;
    }
    if let Ftl::Hftl(hftl) = ftl
        && hftl.pram != pram
    {
        let problem = format!("`ftl.route.in`: `{pram}` is not the memory the map is in");
        context.wrong(
            "ftl.route.in",
            problem,
            format!("in = \"{}\", as `ftl.map.in`: they share it", hftl.pram),
        );
        return None;
    }
    if let Some(bytes) = bytes.filter(|&bytes| bytes > pcm.cells.size_bytes) {
        let problem = format!("`ftl.route.size` is {}, `{pram}` has less", display_bytes(bytes));
        context.wrong("ftl.route.size", problem, format!("at most {}", display_bytes(pcm.cells.size_bytes)));
        return None;
    }
    Some(Some(Route {
        pram,
        bytes,
        update: if update? == "journal" { Update::Journalled } else { Update::InPlace },
        trim: trim?,
        first_bytes: first_bytes.unwrap_or(0),
        overhead: overhead?,
    }))
}
