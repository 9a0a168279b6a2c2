//! An hFTL for the tests: a small array beside a small PRAM.

use crate::array::UNIT;
use nvlab_controller::hftl::{HftlConfig, HftlMedia};
use nvlab_controller::page_map::{Cleaning, WearLevelling};
use nvlab_controller::{Hftl, RecoveryReport};
use nvlab_medium::banks::Access;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_medium::pcm::{Pcm, PcmConfig, Selection, Tear};
use nvlab_medium::{InPlace, MemStore, PowerCut, StartGap, StartGapConfig};
use nvlab_units::{Geometry, Rate, Span, Time};

pub type Levelled = StartGap<Pcm<MemStore>>;

/// One of the combinations the tests go through.
#[derive(Clone, Debug)]
pub struct Setup {
    pub cleaning: Cleaning,
    pub dies: u32,
    pub banks: u32,
    pub pages_per_block: u32,
    pub program: Span,
    pub faults: Faults,
    pub static_wear: bool,
    /// Blocks of each die beyond the 20, to be retired in time.
    pub spare_blocks: u32,
    pub free_blocks_min: u32,
}

pub fn pcm_config(bytes: u64, banks: u32) -> PcmConfig {
    PcmConfig {
        capacity_bytes: bytes,
        word_bytes: 2,
        read: Access { first: Span::from_ns(80), next: Span::from_ns(10) },
        program: Span::from_us(10),
        words_per_step: 1,
        selection: Selection::Differing { share: 0.16 },
        wear: None,
        atomic_bytes: 8,
        tear: Tear::Atomic,
        banks,
        stripe_bytes: 64,
        seed: 3,
    }
}

pub const LEVELLING: StartGapConfig =
    StartGapConfig { line_bytes: 64, regions: 2, interval: 5, permutation: Some(9) };

impl Setup {
    pub fn flash(&self) -> FlashConfig {
        FlashConfig {
            rules: CellRules::Nand,
            geometry: Geometry {
                channels: self.dies,
                dies_per_channel: 1,
                blocks_per_die: 20 + self.spare_blocks,
                pages_per_block: self.pages_per_block,
                units_per_page: 1,
                unit_bytes: UNIT as u32,
            },
            timing: FlashTiming {
                transfer: Rate::from_bytes_per_second(33_000_000),
                ..FlashTiming::plain(Span::from_us(60), self.program, Span::from_us(1400))
            },
            endurance: Endurance { cycles: 1000, spread: 0.0 },
            faults: self.faults,
        }
    }

    pub fn config(&self) -> HftlConfig {
        HftlConfig {
            logical_units: self.dies * 20 * self.pages_per_block * 55 / 100,
            cleaning: self.cleaning,
            free_blocks_min: self.free_blocks_min,
            wear: WearLevelling { dynamic: true, static_threshold: self.static_wear.then_some(4) },
            trim: true,
            verify_reads: false,
            lookup: Span::from_ns(90),
            overhead: Span::from_us(2),
            seed: 1,
        }
    }

    pub fn nand(&self) -> Nand<MemStore> {
        let flash = self.flash();
        let store = MemStore::new(Nand::<MemStore>::store_bytes(&flash.geometry));
        Nand::new(flash, store)
    }

    pub fn pcm(&self) -> Pcm<MemStore> {
        let bytes = 1 << 15;
        let config = pcm_config(bytes, self.banks);
        let store = MemStore::new(Pcm::<MemStore>::store_bytes(&config));
        Pcm::new(config, store)
    }

    pub fn device(&self) -> Hftl<MemStore, Pcm<MemStore>> {
        Hftl::new(self.config(), self.nand(), self.pcm()).unwrap()
    }

    pub fn levelled(&self) -> Hftl<MemStore, Levelled> {
        Hftl::new(self.config(), self.nand(), StartGap::new(LEVELLING, self.pcm()).unwrap()).unwrap()
    }

    pub fn mount<P: InPlace + PowerCut>(
        &self,
        media: HftlMedia<MemStore, P>,
        at: Time,
    ) -> (Hftl<MemStore, P>, RecoveryReport) {
        Hftl::recover(self.config(), media, at).unwrap()
    }
}

/// Every combination worth its time, without faults.
pub fn setups() -> Vec<Setup> {
    let mut setups = Vec::new();
    for (i, dies) in [1, 3].into_iter().enumerate() {
        for (j, banks) in [1, 4].into_iter().enumerate() {
            // The second: programs so fast that PRAM is the slow part.
            for (k, program) in [Span::from_us(800), Span::from_us(15)].into_iter().enumerate() {
                setups.push(Setup {
                    cleaning: if (i + j + k) % 3 == 2 { Cleaning::CostBenefit } else { Cleaning::Greedy },
                    dies,
                    banks,
                    pages_per_block: if (i + k) % 2 == 0 { 8 } else { 70 },
                    program,
                    faults: Faults::NONE,
                    static_wear: (j + k) % 2 == 0,
                    spare_blocks: 0,
                    free_blocks_min: 2 + j as u32,
                });
            }
        }
    }
    setups
}
