//! From a [`Design`] to the plain configurations of media and controllers, and to its price.

use super::part::Part;
use super::{Design, PathKind};
use nvlab_controller::page_map::{PageMapConfig, WriteBuffer};
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming};

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
        let Part::Nand(flash) = &self.media[&self.ftl.medium].part else {
            unreachable!("ftl.medium = {} was checked to be NAND flash", self.ftl.medium)
        };
        FlashConfig {
            rules: CellRules::Nand,
            geometry: self.array.geometry,
            timing: FlashTiming {
                read: flash.read.clone(),
                units_per_read: self.array.units_per_read,
                program: flash.program,
                erase: flash.erase,
                transfer: self.array.transfer,
                interruption: flash.interruption,
                copy_back: flash.copy_back,
            },
            endurance: Endurance { cycles: flash.endurance, spread: flash.endurance_spread },
            faults: Faults { seed, ..flash.faults },
        }
    }

    /// The controller, for [`nvlab_controller::page_map`]. `seed` is the run's seed of random choices.
    pub fn page_map_config(&self, seed: u64) -> PageMapConfig {
        let ftl = &self.ftl;
        let units = |bytes: u64| bytes / ftl.unit_bytes as u64;
        PageMapConfig {
            logical_units: ftl.logical_units,
            cleaning: ftl.cleaning,
            free_blocks_min: ftl.free_blocks_min,
            streams: ftl.streams,
            wear: ftl.wear,
            trim: ftl.trim,
            buffer: ftl.buffer.as_ref().map(|buffer| WriteBuffer {
                units: units(buffer.bytes) as u32,
                protected: buffer.protected,
                store: buffer.store,
            }),
            checkpoint_units: ftl.map.checkpoint_bytes.map(|bytes| units(bytes).max(1)),
            overhead: ftl.overhead,
            seed,
        }
    }

    /// What the media cost. The data medium counts with all its dies, any other medium once.
    pub fn price(&self) -> PriceList {
        let items = self.media.iter().map(|(name, medium)| {
            let data = *name == self.ftl.medium;
            let bytes = if data { self.raw_bytes() } else { medium.part.bytes() };
            PriceItem { medium: name.clone(), bytes, usd: medium.part.price().map(|price| price.of(bytes)) }
        });
        PriceList { items: items.collect(), capacity_bytes: self.capacity_bytes() }
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
        }
    }
}
