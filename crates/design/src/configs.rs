//! From a [`Design`] to the plain configurations of media and controllers, and to its price.

use super::kinds::blocks::BlockMapped;
use super::part::{self, Part};
use super::{Design, Medium, PathKind};
use nvlab_medium::StartGapConfig;
use nvlab_medium::banks::Access;
use nvlab_medium::disk::{DiskConfig, Seek, TornSector};
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, PlaneReads, Slowing};
use nvlab_medium::pcm::{LineWear, PcmConfig, Selection, Tear};
use nvlab_medium::ram::{Backup, RamConfig};
use nvlab_units::{Geometry, Rate};
use std::collections::BTreeMap;

/// Cost of one medium.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceItem {
    /// The medium, by name.
    pub medium: String,
    /// Raw bytes bought.
    pub bytes: u64,
    /// US dollars; `None` if its part has no price.
    pub usd: Option<f64>,
}

/// Cost of the media of a design: raw capacity times price. Controller, board and margin are not included.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceList {
    /// Each medium.
    pub items: Vec<PriceItem>,
    /// Bytes the host can address.
    pub capacity_bytes: u64,
}

impl PriceList {
    /// US dollars; `None` if a price is missing.
    pub fn total_usd(&self) -> Option<f64> {
        self.items.iter().map(|item| item.usd).sum()
    }
    /// US dollars for a GiB the host can address.
    pub fn usd_per_gib(&self) -> Option<f64> {
        Some(self.total_usd()? / (self.capacity_bytes as f64 / (1u64 << 30) as f64))
    }
}

impl Design {
    /// The data medium, for [`nvlab_medium::flash`]. `seed` is the run's seed of faults.
    pub fn flash_config(&self, seed: u64) -> FlashConfig {
        let (rules, flash) = match &self.media[self.ftl.medium()].part {
            Part::Nand(flash) if self.ftl.kind().any_page_order() => (CellRules::NandAnyOrder, flash),
            Part::Nand(flash) => (CellRules::Nand, flash),
            Part::Nor(flash) => (CellRules::Nor, flash),
            other => unreachable!("ftl.medium was checked to be flash, not {}", other.kind()),
        };
        let array = &self.array;
        let wiring = (array.geometry, array.units_per_read, array.reads, array.transfer, array.programs);
        flash_config(flash, rules, wiring, seed)
    }

    /// The array of the log, if it has one of its own.
    pub fn log_config(&self, blocks: &BlockMapped, seed: u64) -> Option<FlashConfig> {
        let log = blocks.own_log.as_ref()?;
        let Part::Nand(flash) = &self.media[&log.medium].part else {
            unreachable!("ftl.log.in = {} was checked to be NAND", log.medium)
        };
        let wiring = (log.geometry, 1, PlaneReads::ONE, log.transfer, None);
        Some(flash_config(flash, CellRules::Nand, wiring, seed))
    }

    /// The checks of the controller, and of a driver in front, on a design whose values are valid one by one. Nothing
    /// is built.
    pub(super) fn check_controller(&self) -> Result<(), String> {
        let controller = self.ftl.kind();
        controller.check(self)?;
        let Some(route) = &self.route else { return Ok(()) };
        let taken = controller.pram_taken(&self.array.geometry);
        let device = (controller.logical_units(), controller.unit_bytes());
        route.config().check(device, self.pram_bytes(&route.pram)?, taken).map(|_| ())
    }

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
        let levelling = pcm.start_gap.map(|levelling| StartGapConfig {
            line_bytes: pcm.line_bytes,
            regions: levelling.regions,
            interval: levelling.interval,
            permutation: levelling.randomise.then_some(seed),
        });
        (config, levelling)
    }

    /// A memory of the design, for [`nvlab_medium::ram`]. `seed` is the run's seed of what a power cut leaves.
    pub fn ram_config(&self, name: &str, seed: u64) -> RamConfig {
        let Part::Ram(ram) = &self.media[name].part else {
            unreachable!("{name} was checked to be a memory")
        };
        let cells = &ram.cells;
        RamConfig {
            capacity_bytes: cells.size_bytes,
            word_bytes: cells.word_bytes,
            read: Access { first: cells.read, next: cells.read_next },
            write: Access { first: cells.write, next: cells.write_next },
            backup: match ram.backup {
                part::Backup::None => Backup::None,
                part::Backup::Battery(hold) => Backup::Battery { hold },
                part::Backup::Capacitor(hold) => Backup::Capacitor { hold },
            },
            banks: cells.banks,
            stripe_bytes: cells.stripe_bytes,
            seed,
        }
    }

    /// A disk of the design, for [`nvlab_medium::disk`]. `seed` is the run's seed of what a power cut leaves.
    pub fn disk_config(&self, name: &str, seed: u64) -> DiskConfig {
        let Part::Disk(disk) = &self.media[name].part else {
            unreachable!("{name} was checked to be a disk")
        };
        DiskConfig {
            capacity_bytes: disk.size_bytes,
            sector_bytes: disk.sector_bytes,
            revolution: disk.rotation,
            rate: disk.transfer,
            surfaces: disk.surfaces,
            seek: Seek { track_to_track: disk.seek_track, average: disk.seek, full_stroke: disk.seek_full },
            overhead: disk.overhead,
            torn: TornSector::OldOrNew,
            seed,
        }
    }

    /// Bytes of a PRAM of the design that a controller can use, or why it cannot be used.
    pub(super) fn pram_bytes(&self, name: &str) -> Result<u64, String> {
        let (config, levelling) = self.pcm_config(name, 0);
        config.check()?;
        match levelling {
            None => Ok(config.capacity_bytes),
            Some(levelling) => levelling.capacity_bytes(config.capacity_bytes, config.atomic_bytes),
        }
    }

    /// How the cells of the data medium slow down, if it is NOR flash whose cells do.
    pub(super) fn slowing(&self) -> Option<Slowing> {
        self.media.get(self.ftl.medium())?.part.nor()?.slowing
    }

    /// Cost of the media. The data medium counts with all its dies, a log with its blocks, any other medium once.
    pub fn price(&self) -> PriceList {
        let bought = self.ftl.kind().bought(&self.array.geometry);
        let bytes = |name: &String, medium: &Medium| {
            let array = bought.iter().find(|(array, _)| array == name).map(|(_, bytes)| *bytes);
            // A medium that only states the properties of blocks of the data medium is not bought.
            let borrowed = || self.ftl.slc().is_some_and(|slc| slc.medium == *name);
            array.or_else(|| (!borrowed()).then(|| medium.part.bytes()))
        };
        let items = self.media.iter().filter_map(|(name, medium)| {
            let bytes = bytes(name, medium)?;
            let usd = medium.part.price().map(|price| price.of(bytes));
            Some(PriceItem { medium: name.clone(), bytes, usd })
        });
        PriceList { items: items.collect(), capacity_bytes: self.held_bytes() }
    }
}

/// An array of chips of a part: its shape, the units that come with one read, its planes, the rate of a channel, and
/// the number of dies that can program at the same time if it is limited.
fn flash_config(
    flash: &part::Flash,
    rules: CellRules,
    (geometry, units_per_read, reads, transfer, programs): (Geometry, u32, PlaneReads, Rate, Option<u32>),
    seed: u64,
) -> FlashConfig {
    FlashConfig {
        rules,
        geometry,
        timing: FlashTiming {
            read: flash.read.clone(),
            units_per_read,
            reads,
            decode: flash.decode,
            one_shot: flash.one_shot,
            programs: programs.filter(|&dies| dies < geometry.dies()),
            program: flash.program,
            erase: flash.erase,
            transfer,
            interruption: flash.interruption,
            copy_back: flash.copy_back,
        },
        endurance: Endurance { cycles: flash.endurance, spread: flash.endurance_spread },
        faults: Faults { seed, ..flash.faults },
    }
}

/// The PRAM of that name among the media of a design.
fn part<'a>(media: &'a BTreeMap<String, Medium>, name: &str) -> &'a part::Pcm {
    match &media[name].part {
        Part::Pcm(pcm) => pcm,
        other => unreachable!("{name} was checked to be a pcm, not {}", other.kind()),
    }
}

impl PathKind {
    /// Its name in a design.
    pub fn name(self) -> &'static str {
        match self {
            PathKind::Direct => "direct",
            PathKind::Nvme => "nvme",
            PathKind::Sata => "sata",
            PathKind::Bus => "bus",
            PathKind::MemoryBus => "memory-bus",
            PathKind::Ddr => "ddr",
            PathKind::CxlMem => "cxl-mem",
        }
    }
}
