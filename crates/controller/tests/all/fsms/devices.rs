//! Separators over the two controllers of system 003, small.

use nvlab_controller::block_map::{BlockMap, BlockMapConfig, BlockWear, Log};
use nvlab_controller::fsms::{Fsms, FsmsConfig, Update};
use nvlab_controller::hftl::{Hftl, HftlConfig};
use nvlab_controller::page_map::{Cleaning, WearLevelling};
use nvlab_controller::{Beside, BesidePram, Powered};
use nvlab_medium::MemStore;
use nvlab_medium::banks::Access;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_medium::pcm::{Pcm, PcmConfig, Selection, Tear};
use nvlab_units::{Geometry, Rate, Span, Time};

pub type Pram = Pcm<MemStore>;
pub type Paged = Hftl<MemStore, Pram>;
pub type Logged = Beside<BlockMap<MemStore>, Pram>;

/// The one memory of a device: room for the map of the largest, and 2 MiB for the separator.
const PRAM_BYTES: u64 = 3 << 20;

fn pram() -> Pram {
    let config = PcmConfig {
        capacity_bytes: PRAM_BYTES,
        word_bytes: 2,
        read: Access { first: Span::from_ns(80), next: Span::from_ns(10) },
        program: Span::from_us(10),
        words_per_step: 1,
        selection: Selection::Differing { share: 0.16 },
        wear: None,
        atomic_bytes: 8,
        tear: Tear::Atomic,
        banks: 8,
        stripe_bytes: 64,
        seed: 3,
    };
    let store = MemStore::new(Pcm::<MemStore>::store_bytes(&config));
    Pcm::new(config, store)
}

fn nand(rules: CellRules, units: u32, unit_bytes: u32) -> Nand<MemStore> {
    let pages = 16;
    let flash = FlashConfig {
        rules,
        geometry: Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: units.div_ceil(pages) * 5 / 4 + 8,
            pages_per_block: pages,
            units_per_page: 1,
            unit_bytes,
        },
        timing: FlashTiming {
            transfer: Rate::from_bytes_per_second(33_000_000),
            ..FlashTiming::plain(Span::from_us(60), Span::from_us(800), Span::from_us(1400))
        },
        endurance: Endurance { cycles: 10_000, spread: 0.0 },
        faults: Faults::NONE,
    };
    let store = MemStore::new(Nand::<MemStore>::store_bytes(&flash.geometry));
    Nand::new(flash, store)
}

/// What the tests need of the device behind besides serving.
pub trait Behind: BesidePram<Pram = Pram> + Clone + Sized {
    fn build(sectors: u32, unit_bytes: u32) -> Self;
}

impl Behind for Paged {
    fn build(sectors: u32, unit_bytes: u32) -> Paged {
        let units = sectors / (unit_bytes / 512);
        let config = HftlConfig {
            logical_units: units,
            cleaning: Cleaning::Greedy,
            free_blocks_min: 2,
            wear: WearLevelling { dynamic: true, static_threshold: None },
            trim: true,
            verify_reads: false,
            lookup: Span::from_ns(90),
            overhead: Span::from_us(2),
            seed: 1,
        };
        Hftl::new(config, nand(CellRules::Nand, units, unit_bytes), pram()).unwrap()
    }
}

impl Behind for Logged {
    fn build(sectors: u32, unit_bytes: u32) -> Logged {
        let units = sectors / (unit_bytes / 512);
        let config = BlockMapConfig {
            logical_units: units,
            log: Log::PerBlock { blocks: 6 },
            second_chance: false,
            slc_log: false,
            wear: BlockWear { dynamic: true, static_threshold: None },
            trim: true,
            verify_reads: false,
            overhead: Span::from_us(2),
        };
        let nand = nand(CellRules::NandAnyOrder, units, unit_bytes);
        Beside { controller: BlockMap::new(config, nand, None).unwrap(), pram: pram() }
    }
}

/// The power of a device fails and comes back; returns it and when it is ready.
pub fn cut_and_mount<D: Powered>(device: D, cut: Time) -> (D, Time) {
    let (device, report) = device.power_cycle(cut).unwrap();
    (device, cut + report.time)
}

/// A separator with `pram_bytes` of the memory of the device behind.
pub fn separator<C: Behind>(config: FsmsConfig, behind: C, pram_bytes: u64) -> Fsms<C> {
    Fsms::new(FsmsConfig { pram_bytes: Some(pram_bytes), ..config }, behind).unwrap()
}

pub fn config(update: Update, logical_delete: bool) -> FsmsConfig {
    FsmsConfig {
        regions: Vec::new(),
        pram_bytes: None,
        update,
        journal_records: 4,
        logical_delete,
        overhead: Span::from_us(1),
    }
}
