//! A page map for the model tests and the power-cut tests.

pub use crate::array::{Ask, Model, UNIT, content, draw, perform, seen};
use nvlab_controller::page_map::{
    Allocation, CacheFull, CacheTakes, Cleaning, DemandMap, PageMapConfig, PageMapMedia, SlcCache, Streams,
    WearLevelling, WriteBuffer,
};
use nvlab_controller::{PageMap, RecoveryReport};
use nvlab_medium::flash::{
    CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand, PlaneReads, Registers, SlcMode,
};
use nvlab_medium::{MemStore, Store};
use nvlab_units::{Geometry, Interruption, Rate, Span, Time};

const TWO_PLANES: PlaneReads =
    PlaneReads { planes: 2, together: true, independent: true, registers: Registers::Two };

/// One of the combinations the tests go through.
#[derive(Clone, Debug)]
pub struct Setup {
    pub allocation: Allocation,
    pub cleaning: Cleaning,
    pub streams: Streams,
    pub buffer: Option<bool>,
    pub checkpoint: Option<u64>,
    pub units_per_page: u32,
    pub dies: u32,
    pub faults: Faults,
    pub static_wear: bool,
    /// Blocks of each die beyond the 20, to be retired in time.
    pub spare_blocks: u32,
    /// Blocks in SLC mode, which hold a third of a page's units, or of the pages if a page is a unit.
    pub cache: Option<SlcCache>,
    /// A map that is not all in memory.
    pub demand: Option<DemandMap>,
}

impl Setup {
    pub fn flash(&self) -> FlashConfig {
        FlashConfig {
            rules: CellRules::Nand,
            geometry: Geometry {
                channels: self.dies,
                dies_per_channel: 1,
                blocks_per_die: 20 + self.spare_blocks,
                pages_per_block: 8,
                units_per_page: self.units_per_page,
                unit_bytes: UNIT as u32,
            },
            timing: FlashTiming {
                units_per_read: if self.dies == 1 { 1 } else { self.units_per_page.div_ceil(2) },
                reads: if self.dies == 1 || self.units_per_page % 2 == 1 {
                    PlaneReads::ONE
                } else {
                    TWO_PLANES
                },
                transfer: Rate::from_bytes_per_second(40_000_000),
                interruption: Interruption::Suspend {
                    latency: Span::from_us(5),
                    resume: Span::from_us(20),
                    limit: 8,
                },
                copy_back: self.allocation == Allocation::Dynamic,
                ..FlashTiming::plain(Span::from_us(25), Span::from_us(200), Span::from_us(1500))
            },
            endurance: Endurance { cycles: 1000, spread: 0.0 },
            faults: self.faults,
        }
    }

    pub fn config(&self) -> PageMapConfig {
        let units = self.dies * 20 * 8 * self.units_per_page;
        PageMapConfig {
            allocation: self.allocation,
            cleaning: self.cleaning,
            // Failures take erased blocks and a cut leaves open ones behind: more must be in reserve.
            free_blocks_min: if self.spare_blocks > 0 { 5 } else { 2 },
            streams: self.streams,
            wear: WearLevelling { dynamic: true, static_threshold: self.static_wear.then_some(4) },
            buffer: self.buffer.map(|protected| WriteBuffer {
                units: 4 * self.dies * self.units_per_page + 3,
                protected,
                // Of the protected ones half absorb overwrites.
                absorb: protected && self.static_wear,
                store: Span::from_us(1),
            }),
            checkpoint_units: self.checkpoint,
            demand: self.demand.clone(),
            overhead: Span::from_us(2),
            ..PageMapConfig::plain(units * if self.dies == 1 { 38 } else { 50 } / 100)
        }
    }

    pub fn store(&self) -> MemStore {
        MemStore::new(Nand::<MemStore>::store_bytes(&self.flash().geometry))
    }

    pub fn device(&self) -> PageMap<MemStore> {
        self.device_over(self.store())
    }

    pub fn device_over<S: Store>(&self, store: S) -> PageMap<S> {
        let nand = Nand::new(self.flash(), store);
        let Some(cache) = self.cache else { return PageMap::new(self.config(), nand).unwrap() };
        let nand = nand.with_slc_mode(self.slc_mode());
        PageMap::new(self.config(), nand).unwrap().with_cache(cache).unwrap()
    }

    /// Whether a flushed trim is durable.
    pub fn trims_last(&self) -> bool {
        self.checkpoint.is_some() || self.demand.is_some()
    }

    pub fn slc_mode(&self) -> SlcMode {
        let (pages_per_block, units_per_page) =
            if self.units_per_page == 1 { (3, 1) } else { (8, self.units_per_page / 3) };
        let [read, program, erase] = [10, 60, 1000].map(Span::from_us);
        SlcMode { pages_per_block, units_per_page, read, program, erase, cycles: 1000 }
    }

    pub fn recover(&self, media: PageMapMedia<MemStore>, at: Time) -> (PageMap<MemStore>, RecoveryReport) {
        PageMap::recover(self.config(), self.cache, media, at).unwrap()
    }
}

/// Every combination worth its time, without faults.
pub fn setups() -> Vec<Setup> {
    let cleanings = [
        Cleaning::Greedy,
        Cleaning::Fifo,
        Cleaning::CostBenefit,
        Cleaning::DChoices { d: 4 },
        Cleaning::WindowedGreedy { window: 6 },
    ];
    let streams = [Streams::One, Streams::HostAndRelocated, Streams::HotColdRelocated { hot_within: 0.3 }];
    let mut setups = Vec::new();
    for (i, buffer) in [None, Some(false), Some(true)].into_iter().enumerate() {
        for (j, &streams) in streams.iter().enumerate() {
            for (k, &units_per_page) in [1, 4].iter().enumerate() {
                for (l, checkpoint) in [None, Some(90)].into_iter().enumerate() {
                    setups.push(Setup {
                        allocation: Allocation::Dynamic,
                        cleaning: cleanings[(i + j + k + l) % cleanings.len()],
                        streams,
                        buffer,
                        checkpoint,
                        units_per_page,
                        dies: if (i + k + l) % 2 == 0 { 1 } else { 3 },
                        faults: Faults::NONE,
                        static_wear: (j + l) % 2 == 0,
                        spare_blocks: 0,
                        cache: None,
                        demand: None,
                    });
                }
            }
        }
    }
    setups
}

/// The same with superblocks across three dies.
pub fn of_superblocks(setups: Vec<Setup>) -> Vec<Setup> {
    let of_dies =
        |setup: Setup| Setup { allocation: Allocation::Superblock, dies: 3, spare_blocks: 12, ..setup };
    setups.into_iter().map(of_dies).collect()
}

/// The same with a cache of blocks in SLC mode.
pub fn cached_setups() -> Vec<Setup> {
    let idle = Some(Span::from_us(400));
    let caches = [(0, 20, 0, None), (2, 2, 0, idle), (1, 20, 4, idle), (3, 3, 0, None)];
    let mut setups: Vec<Setup> =
        setups().into_iter().filter(|setup| setup.streams != Streams::One).step_by(2).collect();
    for (i, setup) in setups.iter_mut().enumerate() {
        let (blocks_min, blocks_max, blocks_spared, fold_after) = caches[i % caches.len()];
        let hot = i % caches.len() == 3;
        if hot {
            setup.streams = Streams::HotColdRelocated { hot_within: 0.3 };
        }
        let takes = if hot { CacheTakes::Hot } else { CacheTakes::All };
        let when_full = if i % 2 == 1 { CacheFull::FoldOldest } else { CacheFull::WriteDirectly };
        setup.cache = Some(SlcCache { blocks_min, blocks_max, blocks_spared, fold_after, takes, when_full });
        setup.units_per_page = if i % 2 == 0 { 6 } else { 1 };
    }
    setups
}

/// The same with a map of which few pages are in memory; pages have four units.
pub fn demand_setups() -> Vec<Setup> {
    let caches = [(1, 0), (3, 0), (2, 4), (200, 0)];
    let mut setups: Vec<Setup> = setups().into_iter().filter(|setup| setup.units_per_page == 4).collect();
    for (i, setup) in setups.iter_mut().enumerate() {
        let (cache_pages, host_pages) = caches[i % caches.len()];
        let host_read = Span::from_us(1);
        setup.demand = Some(DemandMap { entries: UNIT as u32 / 4, cache_pages, host_pages, host_read });
        // For the log of translation pages.
        setup.spare_blocks = match (setup.dies, cache_pages) {
            (1, _) => 16,
            (_, 200) => 15,
            _ => 9,
        };
    }
    setups
}
