//! From a [`Design`] to the plain configurations of media and controllers, and to its price.

use super::part::{self, Part};
use super::{BlockMapped, Design, Envy, Ftl, LogArray, PageMapped, PathKind};
use nvlab_controller::block_map::BlockMapConfig;
use nvlab_controller::envy::EnvyConfig;
use nvlab_controller::page_map::{PageMapConfig, WriteBuffer};
use nvlab_medium::banks::Access;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, NorConfig, SlcMode};
use nvlab_medium::ram::{Backup, RamConfig};
use nvlab_units::{Geometry, Rate};

/// What one medium costs.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceItem {
    /// The medium, by name.
    pub medium: String,
    /// Raw bytes bought.
    pub bytes: u64,
    /// US dollars; `None` if its part has no price.
    pub usd: Option<f64>,
}

/// What the media of a design cost: raw capacity times price. Controller, board and margin are not in it.
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
            // Pages of a data block are written at their own offsets, in whatever order the host writes them.
            Part::Nand(flash) if matches!(self.ftl, Ftl::Blocks(_)) => (CellRules::NandAnyOrder, flash),
            Part::Nand(flash) => (CellRules::Nand, flash),
            Part::Nor(flash) => (CellRules::Nor, flash),
            other => unreachable!("ftl.medium was checked to be flash, not {}", other.kind()),
        };
        let wiring = (self.array.geometry, self.array.units_per_read, self.array.transfer);
        flash_config(flash, rules, wiring, seed)
    }

    /// The array of the log, if it has one of its own.
    pub fn log_config(&self, blocks: &BlockMapped, seed: u64) -> Option<FlashConfig> {
        let log = blocks.own_log.as_ref()?;
        let Part::Nand(flash) = &self.media[&log.medium].part else {
            unreachable!("ftl.log.in = {} was checked to be NAND", log.medium)
        };
        Some(flash_config(flash, CellRules::Nand, (log.geometry, 1, log.transfer), seed))
    }

    /// What the controller itself, and a driver in front, say about a design whose values are right one by one. Nothing
    /// is built.
    pub(super) fn check_controller(&self) -> Result<(), String> {
        let flash = self.flash_config(0);
        match &self.ftl {
            Ftl::Page(page) => page.config(0).check(&flash)?,
            Ftl::Blocks(blocks) => {
                let log = self.log_config(blocks, 0);
                blocks.config().check(&flash, log.as_ref(), blocks.slc_log.is_some())?;
            }
            Ftl::Hftl(hftl) => hftl.config(0).check(&flash, self.pram_bytes(&hftl.pram)?)?,
            Ftl::Envy(envy) => {
                let ram = envy.ram_config(self, 0);
                ram.check()?;
                envy.config(self).check(&envy.nor_config(self, 0).flash, &ram)?;
            }
        }
        let Some(route) = &self.route else { return Ok(()) };
        let taken = match &self.ftl {
            Ftl::Hftl(hftl) => hftl.config(0).pram_bytes(&flash.geometry),
            _ => 0,
        };
        let device = (self.ftl.logical_units(), self.ftl.unit_bytes());
        route.config().check(device, self.pram_bytes(&route.pram)?, taken).map(|_| ())
    }

    /// What the media cost. The data medium counts with all its dies, a log with its blocks, any other medium once.
    pub fn price(&self) -> PriceList {
        let bytes = |name: &String, medium: &super::Medium| match &self.ftl {
            Ftl::Blocks(blocks) if *name == blocks.medium => Some(blocks.bought_bytes),
            // It only says what blocks of the data medium are like.
            ftl if ftl.slc().is_some_and(|slc| slc.medium == *name) => None,
            Ftl::Blocks(BlockMapped { own_log: Some(log), .. }) if *name == log.medium => Some(log.bytes()),
            ftl if *name == ftl.medium() => Some(self.raw_bytes()),
            _ => Some(medium.part.bytes()),
        };
        let items = self.media.iter().filter_map(|(name, medium)| {
            let bytes = bytes(name, medium)?;
            let usd = medium.part.price().map(|price| price.of(bytes));
            Some(PriceItem { medium: name.clone(), bytes, usd })
        });
        PriceList { items: items.collect(), capacity_bytes: self.capacity_bytes() }
    }
}

/// An array of chips of a part: its shape, the units that come with one read, the rate of a channel.
fn flash_config(
    flash: &part::Flash,
    rules: CellRules,
    (geometry, units_per_read, transfer): (Geometry, u32, Rate),
    seed: u64,
) -> FlashConfig {
    FlashConfig {
        rules,
        geometry,
        timing: FlashTiming {
            read: flash.read.clone(),
            units_per_read,
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

impl LogArray {
    /// Bytes that are paid for.
    pub fn bytes(&self) -> u64 {
        self.blocks as u64 * self.geometry.units_per_block() as u64 * self.geometry.unit_bytes as u64
    }
}

impl PageMapped {
    /// The controller, for [`nvlab_controller::page_map`]. `seed` is the run's seed of random choices.
    pub fn config(&self, seed: u64) -> PageMapConfig {
        let units = |bytes: u64| bytes / self.unit_bytes as u64;
        PageMapConfig {
            logical_units: self.logical_units,
            allocation: self.allocation,
            cleaning: self.cleaning,
            free_blocks_min: self.free_blocks_min,
            streams: self.streams,
            wear: self.wear,
            trim: self.trim,
            verify_reads: self.verify_reads,
            buffer: self.buffer.as_ref().map(|buffer| WriteBuffer {
                units: units(buffer.bytes) as u32,
                protected: buffer.protected,
                store: buffer.store,
            }),
            checkpoint_units: self.map.checkpoint_bytes.map(|bytes| units(bytes).max(1)),
            overhead: self.overhead,
            seed,
        }
    }

    /// How blocks of its array may be used with one bit per cell, for [`nvlab_medium::flash::Nand::with_slc_mode`].
    pub fn slc_mode(&self) -> Option<SlcMode> {
        self.cache.as_ref().map(|cache| cache.slc.mode)
    }
}

impl BlockMapped {
    /// The controller, for [`nvlab_controller::block_map`].
    pub fn config(&self) -> BlockMapConfig {
        BlockMapConfig {
            logical_units: self.logical_units,
            log: self.log,
            slc_log: self.slc_log.is_some(),
            second_chance: self.second_chance,
            wear: self.wear,
            trim: self.trim,
            verify_reads: self.verify_reads,
            overhead: self.overhead,
        }
    }
}

impl Envy {
    /// The controller of a design, for [`nvlab_controller::envy`].
    pub fn config(&self, design: &Design) -> EnvyConfig {
        EnvyConfig {
            logical_pages: self.logical_pages,
            buffer_pages: self.buffer_pages,
            flush_at: self.flush_at,
            cleaning: self.cleaning,
            wear_spread: self.wear_spread,
            control: design.path.overhead_device,
            word_bytes: design.path.word_bytes,
            path_bytes: self.page_bytes / self.page_steps,
            mapping_cache_entries: self.cache_entries,
            transaction_pages: self.transaction_pages,
        }
    }

    /// The array of a design, for [`nvlab_medium::flash::Nor`]. A page takes as many programs as the array has steps
    /// for it; a word the host loads lies in one step.
    pub fn nor_config(&self, design: &Design, seed: u64) -> NorConfig {
        let mut flash = design.flash_config(seed);
        flash.timing.program = flash.timing.program * self.page_steps as u64;
        NorConfig { flash }
    }

    /// The memory of page table and buffer of a design, for [`nvlab_medium::ram`]. It is at least as large as this
    /// program's tables, which lie otherwise than the paper's; what it costs goes by the design.
    pub fn ram_config(&self, design: &Design, seed: u64) -> RamConfig {
        let Part::Ram(ram) = &design.media[&self.memory].part else {
            unreachable!("ftl.map.in = {} was checked to be a memory", self.memory)
        };
        let cells = &ram.cells;
        let needed = self.config(design).sram_bytes(&design.array.geometry, cells.word_bytes);
        RamConfig {
            capacity_bytes: cells.size_bytes.max(needed),
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
        }
    }
}
