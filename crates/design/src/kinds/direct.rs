//! Memories and disks used in place: `ftl.kind = "direct"`.
//!
//! Units have fixed addresses; there is no map and no cleaner. The medium is a memory whose bytes and banks are shared
//! among `array.channels` memory controllers, or so many disks.

use super::Kind;
use crate::Array;
use crate::Design;
use crate::HostPath;
use crate::PathKind;
use crate::Payload;
use crate::bricks::array::{self, Wiring};
use crate::bricks::buffer;
use crate::bricks::memories::{self, Media};
use crate::context::Context;
use crate::footprint;
use crate::key::Preset::{Is, Nothing};
use crate::key::{Key, key};
use crate::part::{Part, Pcm};
use crate::toml_reader::datum::Shape;
use nvlab_controller::scm::{Bursts, Posting, ScmConfig};
use nvlab_medium::StartGapConfig;
use nvlab_medium::disk::DiskConfig;
use nvlab_medium::pcm::{PcmConfig, Selection};
use nvlab_units::{Geometry, Rate};

const KIND: &str = "direct";

/// The keys.
pub const KEYS: &[Key] = &[
    key("array.ring", &[], Shape::Rate, Nothing("no ring: each memory controller is attached to the link"), "\"4 GB/s\"")
        .about("Rate of the ring or bus inside the device that all memory controllers share."),
    key("array.split", &[], Shape::Size { min: 64, max: 1 << 30 }, Is("8 KiB"), "\"8 KiB\"").about(
        "Consecutive bytes behind one memory controller or on one disk; requests are split at its boundaries. A whole \
         number of units.",
    ),
    key("ftl.unit", &[KIND], Shape::Size { min: 64, max: 1 << 20 }, Is("512 B"), "\"4 KiB\"")
        .about("Access granularity of the device; smaller writes are read-modify-write."),
    key("ftl.tags", &[KIND], Shape::Count { min: 1, max: 65_536 }, Is("64"), "64").about(
        "Parts of requests (of `array.split` each) that the device processes at the same time. `path.queue` limits whole \
         requests.",
    ),
];

/// Memories or disks used in place.
#[derive(Clone, Debug, PartialEq)]
pub struct Direct {
    /// The medium, by name.
    pub medium: String,
    /// Memory controllers, each with its share of the memory; or disks.
    pub controllers: u32,
    /// The controller, for [`nvlab_controller::scm`].
    pub config: ScmConfig,
    is_disk: bool,
    /// Of all memories or disks.
    medium_bytes: u64,
}

impl Kind for Direct {
    fn medium(&self) -> &str {
        &self.medium
    }
    fn memories(&self) -> Vec<&str> {
        Vec::new()
    }
    fn unit_bytes(&self) -> u32 {
        self.config.unit_bytes
    }
    fn logical_units(&self) -> u32 {
        self.config.logical_units
    }
    fn bought(&self, _: &Geometry) -> Vec<(&str, u64)> {
        vec![(&self.medium, self.medium_bytes)]
    }
    fn check(&self, design: &Design) -> Result<(), String> {
        self.config.check(self.controllers, self.each_bytes(design)?)
    }
    fn memory_bytes(&self, design: &Design, payload: Payload) -> u64 {
        let count = self.controllers as u64;
        match self.is_disk {
            true => payload.written(count * design.disk_config(&self.medium, 0).capacity_bytes),
            false => count * footprint::pcm(&self.pcm_config(design, 0, 0).0, payload),
        }
    }
}

impl Direct {
    /// True if the medium is a disk.
    pub fn is_disk(&self) -> bool {
        self.is_disk
    }

    /// Memory `number`, and the wear levelling in front of it. `seed` is the run's.
    pub fn pcm_config(&self, design: &Design, number: u32, seed: u64) -> (PcmConfig, Option<StartGapConfig>) {
        let (whole, levelling) = design.pcm_config(&self.medium, seed.wrapping_add(number as u64));
        (share(whole, self.controllers), levelling)
    }

    /// Disk `number`. `seed` is the run's.
    pub fn disk_config(&self, design: &Design, number: u32, seed: u64) -> DiskConfig {
        design.disk_config(&self.medium, seed.wrapping_add(number as u64))
    }

    /// Bytes behind each memory controller that can hold units.
    fn each_bytes(&self, design: &Design) -> Result<u64, String> {
        if self.is_disk {
            let disk = design.disk_config(&self.medium, 0);
            disk.check()?;
            return Ok(disk.capacity_bytes);
        }
        let (pcm, levelling) = self.pcm_config(design, 0, 0);
        pcm.check()?;
        levelling.map_or(Ok(pcm.capacity_bytes), |level| {
            level.capacity_bytes(pcm.capacity_bytes, pcm.atomic_bytes)
        })
    }

    /// Bytes (aligned) that a power cut leaves old or new.
    pub fn atomic_bytes(&self, design: &Design) -> u32 {
        match self.is_disk {
            true => design.disk_config(&self.medium, 0).sector_bytes,
            false => self.pcm_config(design, 0, 0).0.atomic_bytes,
        }
    }
}

/// The share of a memory behind one memory controller.
fn share(whole: PcmConfig, controllers: u32) -> PcmConfig {
    let step = whole.step_bytes();
    PcmConfig {
        capacity_bytes: whole.capacity_bytes / controllers as u64 / step * step,
        banks: whole.banks / controllers,
        // No comparison is needed if all words are taken to differ.
        selection: match whole.selection {
            Selection::Differing { share } if share >= 1.0 => Selection::All,
            selection => selection,
        },
        ..whole
    }
}

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, Direct)> {
    let medium = memories::in_place(context, media, KIND);
    let unit = context.size("ftl.unit", KIND);
    let split = context.size("array.split", KIND);
    let ring = context.rate("array.ring", KIND);
    let tags = context.count("ftl.tags", KIND);
    let trim = context.flag("ftl.trim", KIND);
    let overhead = context.time("ftl.overhead", KIND);
    let posted = buffer::posted(context, KIND);
    let chips = [("array.ways", wiring.ways), ("array.gang", wiring.gang), ("array.planes", wiring.planes)];
    if let Some((key, _)) = chips.into_iter().find(|(_, number)| number.is_some_and(|number| number > 1)) {
        let problem = format!("`{key}` does not apply to a memory used in place");
        context.wrong(key, problem, "leave it out: `array.channels` are its memory controllers");
        return None;
    }
    let (path, controllers, (medium, part)) = (path?, wiring.channels?, medium?);
    let bursts = bursts(context, path, &part, wiring.transfer)?;
    let posted = posted?
        .map(|(bytes, protected)| Posting { bytes: u32::try_from(bytes).unwrap_or(u32::MAX), protected });
    let mut direct = Direct {
        medium,
        controllers,
        is_disk: matches!(part, Part::Disk(_)),
        // A memory is shared among its controllers; disks are several.
        medium_bytes: match &part {
            Part::Disk(disk) => disk.size_bytes.saturating_mul(controllers as u64),
            memory => memory.bytes(),
        },
        config: ScmConfig {
            unit_bytes: unit? as u32,
            logical_units: 0,
            split_bytes: split?,
            channel: wiring.transfer,
            ring,
            tags: tags?,
            bursts,
            posted,
            trim: trim?,
            overhead: overhead?,
        },
    };
    let bytes = fitting(context, &direct, &part)?;
    direct.config.logical_units =
        u32::try_from(direct.config.units_of(controllers, bytes)).unwrap_or(u32::MAX);
    Some((array::none(), direct))
}

/// Bytes behind each memory controller; a memory that cannot be shared evenly is refused.
fn fitting(context: &mut Context, direct: &Direct, part: &Part) -> Option<u64> {
    let medium = &direct.medium;
    let pcm = match part {
        Part::Pcm(pcm) => pcm,
        other => return Some(other.bytes()),
    };
    if !pcm.cells.banks.is_multiple_of(direct.controllers) {
        let problem = format!(
            "`media.{medium}.banks`: {} banks cannot be shared among {} memory controllers",
            pcm.cells.banks, direct.controllers
        );
        let help = "a multiple of `array.channels`";
        context.wrong("array.channels", problem, help);
        return None;
    }
    let each =
        pcm.cells.size_bytes / direct.controllers as u64 / pcm.step_bytes as u64 * pcm.step_bytes as u64;
    match levelled_bytes(pcm, each) {
        Ok(bytes) => Some(bytes),
        Err(problem) => {
            let path = format!("media.{medium}.level.kind");
            context.wrong(&path, format!("`media.{medium}`: {problem}"), "nvlab explain media");
            None
        }
    }
}

/// What is left of `bytes` behind Start-Gap.
fn levelled_bytes(pcm: &Pcm, bytes: u64) -> Result<u64, String> {
    let Some(levelling) = pcm.start_gap else { return Ok(bytes) };
    let config = StartGapConfig {
        line_bytes: pcm.line_bytes,
        regions: levelling.regions,
        interval: levelling.interval,
        permutation: None,
    };
    config.capacity_bytes(bytes, pcm.atomic_bytes)
}

/// How the processor moves blocks, if the memory is on its own channels. `Some(None)`: the device does.
fn bursts(
    context: &mut Context,
    path: &HostPath,
    part: &Part,
    channel: Option<Rate>,
) -> Option<Option<Bursts>> {
    if path.kind != PathKind::Ddr {
        memories::not_words(context, Some(path), "a memory used in place")?;
        return Some(None);
    }
    let (Part::Pcm(pcm), Some(channel)) = (part, channel) else {
        let problem = "`path.kind`: only a memory is on the channels of a processor, and they have a rate";
        context.wrong("path.kind", problem, "a medium of kind \"pcm\", and array.transfer = \"10.6 GB/s\"");
        return None;
    };
    let turn = channel.transfer(path.word_bytes as u64);
    // Several words that are programmed together are a row, which stays open.
    let row_bytes = (pcm.step_bytes > pcm.cells.word_bytes).then_some(pcm.step_bytes as u64);
    Some(Some(Bursts {
        bytes: path.word_bytes,
        outstanding: path.outstanding,
        // A slot is free again when the line has arrived: its turn on the channel, after its cells if no row is open.
        latency: if row_bytes.is_some() { turn } else { pcm.cells.read + turn },
        row_bytes,
    }))
}
