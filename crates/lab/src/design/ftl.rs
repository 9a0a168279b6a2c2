//! What a design says about its controller: a type for each kind of `[ftl]`.

use super::pram::PramMapped;
use nvlab_controller::block_map::{BlockWear, Log};
use nvlab_controller::envy;
use nvlab_controller::page_map::{Allocation, Cleaning, SlcCache, Streams, WearLevelling};
use nvlab_medium::flash::SlcMode;
use nvlab_units::{Geometry, Rate, Span};

/// The controller, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Ftl {
    /// `page`: a page map over NAND.
    Page(PageMapped),
    /// `block`, `bast` or `fast`: a block map, with or without log blocks, over NAND.
    Blocks(BlockMapped),
    /// `hftl`: a page map over NAND whose map lies in PRAM.
    Hftl(PramMapped),
    /// `envy`: a memory of NOR flash and battery-backed SRAM.
    Envy(Envy),
}

impl Ftl {
    /// The data medium, by name.
    pub fn medium(&self) -> &str {
        match self {
            Ftl::Page(page) => &page.medium,
            Ftl::Blocks(blocks) => &blocks.medium,
            Ftl::Hftl(hftl) => &hftl.medium,
            Ftl::Envy(envy) => &envy.medium,
        }
    }
    /// True if a medium holds data, map or buffer.
    pub fn uses(&self, medium: &str) -> bool {
        let memories = match self {
            Ftl::Page(page) => [Some(&page.map.medium), page.buffer.as_ref().map(|buffer| &buffer.medium)],
            Ftl::Blocks(blocks) => [Some(&blocks.memory), blocks.own_log.as_ref().map(|log| &log.medium)],
            Ftl::Hftl(hftl) => [Some(&hftl.pram), None],
            Ftl::Envy(envy) => [Some(&envy.memory), None],
        };
        let slc = self.slc().map(|slc| &slc.medium);
        self.medium() == medium || memories.into_iter().chain([slc]).flatten().any(|memory| memory == medium)
    }
    /// Blocks of the data medium that are used with one bit per cell, if some are.
    pub fn slc(&self) -> Option<&SlcBlocks> {
        match self {
            Ftl::Blocks(blocks) => blocks.slc_log.as_ref(),
            Ftl::Page(page) => page.cache.as_ref().map(|cache| &cache.slc),
            Ftl::Hftl(_) | Ftl::Envy(_) => None,
        }
    }
    /// Bytes of a mapping unit.
    pub fn unit_bytes(&self) -> u32 {
        match self {
            Ftl::Page(page) => page.unit_bytes,
            Ftl::Blocks(blocks) => blocks.unit_bytes,
            Ftl::Hftl(hftl) => hftl.unit_bytes,
            Ftl::Envy(envy) => envy.page_bytes,
        }
    }
    /// Units the host can address.
    pub fn logical_units(&self) -> u32 {
        match self {
            Ftl::Page(page) => page.logical_units,
            Ftl::Blocks(blocks) => blocks.logical_units,
            Ftl::Hftl(hftl) => hftl.logical_units,
            Ftl::Envy(envy) => envy.logical_pages,
        }
    }
}

/// A page-mapped controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PageMapped {
    /// The data medium, by name.
    pub medium: String,
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
    /// Units the host can address.
    pub logical_units: u32,
    /// Whether trim is heard.
    pub trim: bool,
    /// Whether checksums are checked when the host reads.
    pub verify_reads: bool,
    /// What is opened, filled, cleaned and erased as a whole.
    pub allocation: Allocation,
    /// Which data shares a block.
    pub streams: Streams,
    /// Erased blocks of a die below which cleaning begins.
    pub free_blocks_min: u32,
    /// The controller's own time for a request.
    pub overhead: Span,
    /// The map.
    pub map: Map,
    /// The write buffer, if there is one.
    pub buffer: Option<Buffer>,
    /// The cache of blocks in SLC mode, if there is one.
    pub cache: Option<PageCache>,
    /// Which block is cleaned next.
    pub cleaning: Cleaning,
    /// How wear is evened out.
    pub wear: WearLevelling,
}

/// Where the map of a page-mapped controller lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The memory that holds it, by name.
    pub medium: String,
    /// Bytes of one entry.
    pub entry_bytes: u64,
    /// Host bytes between two checkpoints; `None`: no checkpoints.
    pub checkpoint_bytes: Option<u64>,
}

/// The write buffer of a page-mapped controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The memory that holds it, by name.
    pub medium: String,
    /// Bytes.
    pub bytes: u64,
    /// It survives a power cut.
    pub protected: bool,
    /// Time to store one unit in it.
    pub store: Span,
}

/// The cache of a page-mapped controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PageCache {
    /// What its blocks are like.
    pub slc: SlcBlocks,
    /// The cache, for [`nvlab_controller::PageMap::with_cache`].
    pub config: SlcCache,
}

/// A block-mapped controller.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockMapped {
    /// The data medium, by name.
    pub medium: String,
    /// The memory that holds the maps, by name.
    pub memory: String,
    /// Bytes of a mapping unit: a page.
    pub unit_bytes: u32,
    /// Pages the host can address.
    pub logical_units: u32,
    /// Where overwritten pages go.
    pub log: Log,
    /// The array of the log, if it has one of its own.
    pub own_log: Option<LogArray>,
    /// What log blocks are like that are blocks of the data array in SLC mode.
    pub slc_log: Option<SlcBlocks>,
    /// A page that was overwritten in the log stays there once more.
    pub second_chance: bool,
    /// Bytes of the data array that are paid for: without the blocks this model adds for merges.
    pub bought_bytes: u64,
    /// How wear is evened out.
    pub wear: BlockWear,
    /// Whether trim is heard.
    pub trim: bool,
    /// Whether checksums are checked when the host reads.
    pub verify_reads: bool,
    /// The controller's own time for a request.
    pub overhead: Span,
}

/// An array of log blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct LogArray {
    /// Its medium, by name.
    pub medium: String,
    /// Its shape.
    pub geometry: Geometry,
    /// Rate of its channel.
    pub transfer: Rate,
    /// Blocks that are the log; there may be one more on each die to move pages to.
    pub blocks: u32,
}

/// Blocks of the data array that are used with one bit per cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SlcBlocks {
    /// The medium that says what they are like, by name.
    pub medium: String,
    /// What they are like.
    pub mode: SlcMode,
    /// Rated cycles.
    pub endurance: u32,
}

/// The controller of eNVy.
#[derive(Clone, Debug, PartialEq)]
pub struct Envy {
    /// The flash, by name.
    pub medium: String,
    /// The memory that holds page table and buffer, by name.
    pub memory: String,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Steps in which the array moves and programs a page: its bytes over the array's width.
    pub page_steps: u32,
    /// Pages the host can address.
    pub logical_pages: u32,
    /// Programs and erases that can be under way at the same time.
    pub concurrent: u32,
    /// Bytes of the page table for each page of flash.
    pub entry_bytes: u64,
    /// Entries of the cache of mappings; 0: a look-up takes no time.
    pub cache_entries: u32,
    /// Pages one transaction may change.
    pub transaction_pages: u32,
    /// Pages of the write buffer; 0: every written page is flushed at once.
    pub buffer_pages: u32,
    /// Pages in the buffer above which flushing begins.
    pub flush_at: u32,
    /// Which segment is cleaned next, and where pages are flushed to.
    pub cleaning: envy::SegmentCleaning,
    /// Erase counts further apart than this are evened out by swapping; `None`: never.
    pub wear_spread: Option<u32>,
}
