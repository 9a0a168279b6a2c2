//! What a design says of PRAM: a page map in it (hFTL), and a driver that keeps a file system's metadata in it (FSMS).

use super::part::{self, Part};
use super::{Design, Medium};
use nvlab_controller::fsms::{self, FsmsConfig, SECTOR};
use nvlab_controller::hftl::HftlConfig;
use nvlab_controller::page_map::{Cleaning, WearLevelling};
use nvlab_medium::StartGapConfig;
use nvlab_medium::banks::Access;
use nvlab_medium::pcm::{LineWear, PcmConfig, Selection, Tear};
use nvlab_units::{Extent, Span};
use std::collections::BTreeMap;

/// Records of the journal of FSMS: few, and each is written as seldom as a sector that it protects.
const JOURNAL_RECORDS: u32 = 16;

/// A page map over NAND whose map and tables lie in PRAM.
#[derive(Clone, Debug, PartialEq)]
pub struct PramMapped {
    /// The medium that holds the data, by name.
    pub medium: String,
    /// The medium that holds the map, by name.
    pub pram: String,
    /// A mapping unit: a page.
    pub unit_bytes: u32,
    /// Pages the host can address.
    pub logical_units: u32,
    /// The host's trim is heard.
    pub trim: bool,
    /// Checksums are checked when the host reads.
    pub verify_reads: bool,
    /// Erased blocks of a die at which cleaning begins.
    pub free_blocks_min: u32,
    /// Looking up an entry.
    pub lookup: Span,
    /// The controller's own time for a request.
    pub overhead: Span,
    /// Cleaning.
    pub cleaning: Cleaning,
    /// Wear levelling.
    pub wear: WearLevelling,
}

impl PramMapped {
    /// The controller, for [`nvlab_controller::hftl`]. `seed` is the run's seed of random choices.
    pub fn config(&self, seed: u64) -> HftlConfig {
        HftlConfig {
            logical_units: self.logical_units,
            cleaning: self.cleaning,
            free_blocks_min: self.free_blocks_min,
            wear: self.wear,
            trim: self.trim,
            verify_reads: self.verify_reads,
            lookup: self.lookup,
            overhead: self.overhead,
            seed,
        }
    }
}

/// A driver in front of the controller that keeps a FAT file system's metadata in PRAM.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The medium they go to, by name.
    pub pram: String,
    /// Bytes of it; `None`: all that the controller leaves.
    pub bytes: Option<u64>,
    /// How a sector is overwritten.
    pub update: fsms::Update,
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
            regions: if first == 0 { Vec::new() } else { vec![Extent { start: 0, count: first }] },
            pram_bytes: self.bytes,
            update: self.update,
            journal_records: JOURNAL_RECORDS,
            logical_delete: self.trim,
            overhead: self.overhead,
        }
    }
}

/// The PRAM of that name among the media of a design.
fn part<'a>(media: &'a BTreeMap<String, Medium>, name: &str) -> &'a part::Pcm {
    match &media[name].part {
        Part::Pcm(pcm) => pcm,
        other => unreachable!("{name} was checked to be a pcm, not {}", other.kind()),
    }
}

impl Design {
    /// A PRAM of the design, for [`nvlab_medium::pcm`], and what is in front of it. `seed` is the run's seed of faults.
    pub fn pcm_config(&self, name: &str, seed: u64) -> (PcmConfig, Option<StartGapConfig>) {
        let pcm = part(&self.media, name);
        let cells = &pcm.cells;
        let config = PcmConfig {
            capacity_bytes: cells.size_bytes,
            word_bytes: cells.word_bytes,
            read: Access { first: cells.read, next: cells.read_next },
            program: cells.write,
            words_per_step: pcm.step_bytes / cells.word_bytes,
            selection: Selection::Differing { share: pcm.differing },
            wear: Some(LineWear { line_bytes: pcm.line_bytes, endurance: pcm.endurance, refuse: false }),
            atomic_bytes: pcm.atomic_bytes,
            tear: Tear::Atomic,
            banks: cells.banks,
            stripe_bytes: cells.stripe_bytes,
            seed,
        };
        let levelling = pcm.start_gap.map(|(interval, regions)| StartGapConfig {
            line_bytes: pcm.line_bytes,
            regions,
            interval,
            permutation: Some(seed),
        });
        (config, levelling)
    }

    /// Bytes of a PRAM of the design that a controller can use, or why it cannot be.
    pub(super) fn pram_bytes(&self, name: &str) -> Result<u64, String> {
        let (config, levelling) = self.pcm_config(name, 0);
        config.check()?;
        match levelling {
            None => Ok(config.capacity_bytes),
            Some(levelling) => levelling.capacity_bytes(config.capacity_bytes, config.atomic_bytes),
        }
    }
}
