//! The driver in front of a controller that stores a file system's metadata in PRAM: `[ftl.route]`.

use super::bricks::memories::{self, Media};
use super::context::Context;
use super::key::Preset::{Is, Nothing, Required};
use super::key::{Key, key};
use super::kinds::Ftl;
use super::{Design, Payload, footprint};
use crate::toml_reader::datum::{Datum, Shape};
use nvlab_controller::fsms::{FsmsConfig, SECTOR, Update};
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Extent, Lpa, Span};
use nvlab_workload::Serves;

/// Records of the journal of FSMS: few, and each is written as seldom as a sector that it protects.
const JOURNAL_RECORDS: u32 = 16;

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "ftl.route.kind",
        &[],
        Shape::OneOf(&[
            ("none", "all of the host's data goes to the controller"),
            (
                "fsms",
            "metadata of a FAT file system (boot sector, FATs, directories) stays in PRAM, the rest goes to the \
             controller (FSMS, EMSOFT 2008)",
            ),
        ]),
        Is("none"),
        "\"fsms\"",
    )
    .about("A driver above the controller that routes some of the data elsewhere."),
    key("ftl.route.in", &["fsms"], Shape::Medium, Required, "\"pram\"").about(
        "Memory of the metadata: a name under [media]. If the controller keeps its map in PRAM, it must be the same one.",
    ),
    key(
        "ftl.route.size",
        &["fsms"],
        Shape::Size { min: 4096, max: u64::MAX },
        Nothing("what the controller leaves free"),
        "\"2 MiB\"",
    )
    .about(
        "Bytes of it for metadata; metadata that does not fit goes to the controller and is counted. (System 003 slide 20: \
         2 MB for 1 GB of NAND.)",
    ),
    key(
        "ftl.route.update",
        &["fsms"],
        Shape::OneOf(&[
            (
                "in-place",
                "only differing words are programmed; a power cut may leave a sector partly new, in steps of 8 B",
            ),
            ("journal", "through a journal: a sector is either old or new, and differing words are programmed twice"),
        ]),
        Is("in-place"),
        "\"journal\"",
    )
    .about("How a sector in PRAM is overwritten. (System 003 slide 12: in place.)"),
    key("ftl.route.trim", &["fsms"], Shape::Flag, Is("true"), "false").about(
        "Logical delete: clusters whose FAT entries become free are trimmed at the next flush. \
         (System 003, backup slide.)",
    ),
    key("ftl.route.overhead", &["fsms"], Shape::Time, Is("0 ns"), "\"2 us\"")
        .about("Time of the driver itself per request."),
    key(
        "ftl.route.first",
        &["fsms"],
        Shape::Size { min: 512, max: u64::MAX },
        Nothing("only recognized metadata"),
        "\"4 MiB\"",
    )
    .about(
        "This many bytes at the start of the device count as metadata, whatever they contain: the only criterion if a \
         workload carries no bytes (all except iozone).",
    ),
];

/// A driver in front of the controller that stores a FAT file system's metadata in PRAM.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The medium they go to, by name.
    pub pram: String,
    /// Bytes of it; `None`: all that the controller does not use.
    pub bytes: Option<u64>,
    /// How a sector is overwritten.
    pub update: Update,
    /// Clusters that became free are trimmed.
    pub trim: bool,
    /// First bytes of the device that always count as metadata.
    pub first_bytes: u64,
    /// The driver's own time for a request.
    pub overhead: Span,
}

impl Route {
    /// The driver, for [`nvlab_controller::fsms`].
    pub fn config(&self) -> FsmsConfig {
        let first = (self.first_bytes / SECTOR as u64) as u32;
        FsmsConfig {
            regions: if first == 0 { Vec::new() } else { vec![Extent { start: Lpa(0), count: first }] },
            pram_bytes: self.bytes,
            update: self.update,
            journal_records: JOURNAL_RECORDS,
            logical_delete: self.trim,
            overhead: self.overhead,
        }
    }

    /// Bytes of this computer's memory that the driver's tables need in a simulation, and its PRAM if the controller
    /// has none. `payload` is how much of their payload the media store.
    pub fn memory_bytes(&self, design: &Design, payload: Payload) -> u64 {
        let (pcm, _) = design.pcm_config(&self.pram, 0);
        let sectors = design.capacity_bytes() / SECTOR as u64;
        let own = match design.ftl.kind().pram() {
            Some(_) => 0,
            None => footprint::pcm(&pcm, payload),
        };
        let slots = self.bytes.unwrap_or(pcm.capacity_bytes) / (SECTOR as u64 + 4);
        // The sector of each slot, those that are free; an index of 64 sectors together, of which each slot may need its own.
        8 * slots + sectors / 64 * 4 + 256 * slots.min(sectors / 64) + sectors / 32 + own
    }
}

/// Reads `[ftl.route]`; `Some(None)`: there is none.
pub fn read(context: &mut Context, media: &Media, ftl: &Ftl) -> Option<Option<Route>> {
    const KIND: &str = "fsms";
    let meanings = [("none", false), (KIND, true)];
    if !context.has_table("ftl.route") || !context.choice("ftl.route.kind", "", &meanings)? {
        return Some(None);
    }
    let pram = memories::pram(context, media, "ftl.route.in", KIND);
    let updates = [("in-place", Update::InPlace), ("journal", Update::Journalled)];
    let update = context.choice("ftl.route.update", KIND, &updates);
    let trim = context.flag("ftl.route.trim", KIND);
    let overhead = context.time("ftl.route.overhead", KIND);
    let mut optional = |path| match context.get(path, Some(KIND)) {
        Some(Datum::Size(bytes)) => Some(bytes),
        _ => None,
    };
    let (bytes, first_bytes) = (optional("ftl.route.size"), optional("ftl.route.first"));
    let (pram, pcm) = pram?;
    let problem = match ftl.kind().serves() {
        Serves::Blocks => None,
        Serves::Zones(_) => {
            Some("`ftl.route.kind`: FSMS needs blocks that are overwritten, this design has zones")
        }
        Serves::Words => Some("`ftl.route.kind`: FSMS needs a block device, this design is memory"),
        Serves::Commits => Some("`ftl.route.kind`: FSMS needs a block device, this design is a log"),
    };
    if let Some(problem) = problem {
        let help = "leave [ftl.route] out, or another `ftl.kind`";
        context.wrong("ftl.route.kind", problem, help);
        return None;
    }
    if let Some(own) = ftl.kind().pram().filter(|own| *own != pram) {
        let problem = format!("`ftl.route.in`: `{pram}` is not the memory of the map");
        context.wrong("ftl.route.in", problem, format!("in = \"{own}\", as `ftl.map.in`: they share it"));
        return None;
    }
    if let Some(bytes) = bytes.filter(|&bytes| bytes > pcm.cells.size_bytes) {
        let problem = format!("`ftl.route.size` is {}, `{pram}` is smaller", display_bytes(bytes));
        context.wrong("ftl.route.size", problem, format!("at most {}", display_bytes(pcm.cells.size_bytes)));
        return None;
    }
    Some(Some(Route {
        pram,
        bytes,
        update: update?,
        trim: trim?,
        first_bytes: first_bytes.unwrap_or(0),
        overhead: overhead?,
    }))
}
