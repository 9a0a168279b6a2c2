//! The block-mapped controllers the tests go through.

use nvlab_controller::block_map::{BlockMapConfig, BlockMapMedia, BlockWear, Log};
use nvlab_controller::{BlockMap, RecoveryReport};
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand, SlcMode};
use nvlab_medium::{MemStore, Store};
use nvlab_units::{Geometry, Rate, Span, Time};

use crate::array::UNIT;

/// One of the combinations the tests go through.
#[derive(Clone, Debug)]
pub struct Setup {
    pub log: Log,
    /// Blocks of each die that hold host data, and pages of a data block.
    pub home_blocks: u32,
    pub pages: u32,
    pub dies: u32,
    /// The log has an array of its own: its dies and pages of a block (32 blocks a die).
    pub own_log: Option<(u32, u32)>,
    /// Log blocks in SLC mode, of half the pages; pages get a second chance.
    pub slc_log: bool,
    pub second_chance: bool,
    pub faults: Faults,
    pub wear: BlockWear,
    /// Blocks of each die to be retired in time.
    pub spare_blocks: u32,
}

pub const NO_WEAR: BlockWear = BlockWear { dynamic: false, static_threshold: None };

impl Setup {
    /// Four home blocks of eight pages on one die.
    pub fn small(log: Log) -> Setup {
        Setup {
            log,
            home_blocks: 4,
            pages: 8,
            dies: 1,
            own_log: None,
            slc_log: false,
            second_chance: false,
            faults: Faults::NONE,
            wear: NO_WEAR,
            spare_blocks: 0,
        }
    }

    fn array(&self, dies: u32, blocks: u32, pages: u32, rules: CellRules, us: [u64; 3]) -> FlashConfig {
        let [read, program, erase] = us.map(Span::from_us);
        FlashConfig {
            rules,
            geometry: Geometry {
                channels: dies,
                dies_per_channel: 1,
                blocks_per_die: blocks,
                pages_per_block: pages,
                units_per_page: 1,
                unit_bytes: UNIT as u32,
            },
            timing: FlashTiming {
                transfer: Rate::from_bytes_per_second(40_000_000),
                ..FlashTiming::plain(read, program, erase)
            },
            endurance: Endurance { cycles: 1000, spread: 0.0 },
            faults: self.faults,
        }
    }

    /// The data array (MLC of system 002, Table II).
    pub fn data(&self) -> FlashConfig {
        let log = match self.log {
            Log::PerBlock { blocks } => blocks.div_ceil(self.dies),
            Log::Shared { random_blocks, .. } if self.own_log.is_none() => random_blocks.div_ceil(self.dies),
            _ => 0,
        };
        let blocks = self.home_blocks + log + 2 + self.second_chance as u32 + self.spare_blocks;
        self.array(self.dies, blocks, self.pages, CellRules::NandAnyOrder, [60, 800, 1500])
    }

    /// The log's array, if it has its own (SLC of system 002, Table II).
    pub fn log_array(&self) -> Option<FlashConfig> {
        let Log::Shared { random_blocks, .. } = self.log else { return None };
        let blocks = |dies| random_blocks.div_ceil(dies) + self.second_chance as u32 + self.spare_blocks;
        self.own_log
            .map(|(dies, pages)| self.array(dies, blocks(dies), pages, CellRules::Nand, [25, 200, 1500]))
    }

    pub fn config(&self) -> BlockMapConfig {
        BlockMapConfig {
            // The last logical block is not whole.
            logical_units: self.home_blocks * self.dies * self.pages - 1,
            log: self.log,
            slc_log: self.slc_log,
            second_chance: self.second_chance,
            wear: self.wear,
            trim: true,
            verify_reads: false,
            overhead: Span::from_us(2),
        }
    }

    /// A device that keeps payload, or none.
    pub fn with<S: Store>(&self, store: impl Fn(u64) -> S) -> BlockMap<S> {
        let nand = |flash: FlashConfig| {
            let bytes = Nand::<S>::store_bytes(&flash.geometry);
            Nand::new(flash, store(bytes))
        };
        let data = nand(self.data());
        let [read, program, erase] = [25, 200, 1500].map(Span::from_us);
        let mode = SlcMode {
            pages_per_block: self.pages / 2,
            units_per_page: 1,
            read,
            program,
            erase,
            cycles: 1000,
        };
        let data = if self.slc_log { data.with_slc_mode(mode) } else { data };
        BlockMap::new(self.config(), data, self.log_array().map(nand)).unwrap()
    }
    pub fn device(&self) -> BlockMap<MemStore> {
        self.with(MemStore::new)
    }

    pub fn recover(&self, media: BlockMapMedia<MemStore>, at: Time) -> (BlockMap<MemStore>, RecoveryReport) {
        BlockMap::recover(self.config(), media, at).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Every combination worth its time, without faults.
pub fn setups() -> Vec<Setup> {
    let wear = BlockWear { dynamic: true, static_threshold: Some(3) };
    let fast = |sequential, random_blocks| Log::Shared { sequential, random_blocks };
    let mut setups = Vec::new();
    for (dies, home_blocks) in [(1, 7), (3, 4)] {
        for log in [
            Log::None,
            Log::PerBlock { blocks: dies },
            Log::PerBlock { blocks: 2 * dies + 1 },
            fast(false, dies),
            fast(true, dies),
            fast(true, 3 * dies + 1),
        ] {
            setups.push(Setup { dies, home_blocks, wear, ..Setup::small(log) });
        }
    }
    for (dies, log_dies, sequential) in
        [(1, 1, true), (1, 1, false), (2, 1, true), (2, 3, true), (1, 2, true)]
    {
        let own_log = Some((log_dies, 4));
        let log = fast(sequential, 5 * log_dies);
        setups.push(Setup { dies, home_blocks: 5, own_log, wear, ..Setup::small(log) });
    }
    for (dies, slc_log, own_log) in
        [(1, true, None), (2, true, None), (1, false, None), (2, false, Some((2, 4)))]
    {
        let log = fast(dies == 1, 4 * dies);
        setups.push(Setup {
            dies,
            home_blocks: 5,
            slc_log,
            second_chance: true,
            own_log,
            wear,
            ..Setup::small(log)
        });
    }
    setups
}
