//! The page map in PRAM: `ftl.kind = "hftl"`.

use super::Kind;
use crate::bricks::array::{self, Wiring};
use crate::bricks::memories::{self, Media};
use crate::bricks::{cleaning, service, space, wear};
use crate::context::Context;
use crate::key::Preset::Is;
use crate::key::{Key, key};
use crate::toml_reader::datum::Shape;
use crate::{Array, Design, HostPath, Payload, footprint};
use nvlab_controller::hftl::HftlConfig;
use nvlab_controller::page_map::WearLevelling;
use nvlab_units::Geometry;

const KIND: &str = "hftl";
/// Default over-provisioning.
const SPARE: f64 = 0.07;

/// The keys.
pub const KEYS: &[Key] = &[
    key("ftl.free_blocks_min", &["hftl"], Shape::Count { min: 2, max: 1_000_000 }, Is("2"), "2").about(
        "Erased blocks of a die at which cleaning starts; at least one for the host and one for relocated data.",
    ),
    key("ftl.map.lookup", &["hftl"], Shape::Time, Is("90 ns"), "\"90 ns\"").about(
        "Time to look up one map entry. (System 003 slide 5: one asynchronous word of PRAM, 80 ns, and one synchronous \
         word, 10 ns.)",
    ),
];

/// A page map over NAND whose map and tables lie in PRAM.
#[derive(Clone, Debug, PartialEq)]
pub struct PramMapped {
    /// The medium that holds the data, by name.
    pub medium: String,
    /// The medium that holds the map, by name.
    pub pram: String,
    /// A mapping unit: a page.
    pub unit_bytes: u32,
    /// The controller; the seed is 0.
    config: HftlConfig,
}

impl PramMapped {
    /// The controller, for [`nvlab_controller::hftl`]. `seed` is the run's seed of random choices.
    pub fn config(&self, seed: u64) -> HftlConfig {
        HftlConfig { seed, ..self.config.clone() }
    }
}

impl Kind for PramMapped {
    fn medium(&self) -> &str {
        &self.medium
    }
    fn memories(&self) -> Vec<&str> {
        vec![&self.pram]
    }
    fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }
    fn logical_units(&self) -> u32 {
        self.config.logical_units
    }
    fn check(&self, design: &Design) -> Result<(), String> {
        self.config.check(&design.flash_config(0), design.pram_bytes(&self.pram)?)
    }
    fn pram(&self) -> Option<&str> {
        Some(&self.pram)
    }
    fn pram_taken(&self, data: &Geometry) -> u64 {
        self.config.pram_bytes(data)
    }
    fn memory_bytes(&self, design: &Design, payload: Payload) -> u64 {
        let flash = design.flash_config(0);
        let geometry = &flash.geometry;
        // The reverse map, and the tables that lie in PRAM: map, block entries, live bits.
        let live = geometry.blocks() as u64 * geometry.pages_per_block.div_ceil(64) as u64 * 8;
        4 * geometry.units()
            + 4 * self.config.logical_units as u64
            + 8 * geometry.blocks() as u64
            + live
            + footprint::blocks(geometry, geometry.units_per_block() as u64 + 1)
            + footprint::array(&flash, false, payload)
            + footprint::pcm(&design.pcm_config(&self.pram, 0).0, payload)
    }
}

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, PramMapped)> {
    let flash = memories::data_nand(context, media, KIND, "hFTL");
    let pram = memories::pram(context, media, "ftl.map.in", KIND);
    let lookup = context.time("ftl.map.lookup", KIND);
    let blocks = flash.as_ref().map_or(1, |(_, flash)| flash.blocks_per_plane);
    let cleaning = cleaning::of_blocks(context, KIND, blocks);
    let wear = wear::read(context, KIND);
    let free_blocks_min = context.count("ftl.free_blocks_min", KIND);
    let service = service::read(context, KIND);
    let share = space::spare(context, KIND, SPARE);
    memories::not_words(context, path, "hFTL")?;

    let (medium, flash) = flash?;
    let (pram, _) = pram?;
    let array = array::of_nand(context, wiring, &flash, None)?;
    let unit_bytes = array.geometry.unit_bytes;
    let logical_units = space::logical_units(context, array.geometry.units(), unit_bytes, share?)?;
    let ((trim, verify_reads, overhead), (dynamic, static_threshold)) = (service?, wear?);
    let config = HftlConfig {
        logical_units,
        cleaning: cleaning?,
        free_blocks_min: free_blocks_min?,
        wear: WearLevelling { dynamic, static_threshold },
        trim,
        verify_reads,
        lookup: lookup?,
        overhead,
        seed: 0,
    };
    Some((array, PramMapped { medium, pram, unit_bytes, config }))
}
