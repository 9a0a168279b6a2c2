//! What a design says about its controller: a type for each kind of `[ftl]`.

use nvlab_controller::envy;
use nvlab_controller::page_map::{Cleaning, Streams, WearLevelling};
use nvlab_units::Span;

/// The controller, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Ftl {
    /// `page`: a page map over NAND.
    Page(PageMapped),
    /// `envy`: a memory of NOR flash and battery-backed SRAM.
    Envy(Envy),
}

impl Ftl {
    /// The data medium, by name.
    pub fn medium(&self) -> &str {
        match self {
            Ftl::Page(page) => &page.medium,
            Ftl::Envy(envy) => &envy.medium,
        }
    }
    /// True if a medium holds data, map or buffer.
    pub fn uses(&self, medium: &str) -> bool {
        let memories = match self {
            Ftl::Page(page) => [Some(&page.map.medium), page.buffer.as_ref().map(|buffer| &buffer.medium)],
            Ftl::Envy(envy) => [Some(&envy.memory), None],
        };
        self.medium() == medium || memories.into_iter().flatten().any(|memory| memory == medium)
    }
    /// Bytes of a mapping unit.
    pub fn unit_bytes(&self) -> u32 {
        match self {
            Ftl::Page(page) => page.unit_bytes,
            Ftl::Envy(envy) => envy.page_bytes,
        }
    }
    /// Units the host can address.
    pub fn logical_units(&self) -> u32 {
        match self {
            Ftl::Page(page) => page.logical_units,
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
    pub cleaning: envy::Cleaning,
    /// Erase counts further apart than this are evened out by swapping; `None`: never.
    pub wear_spread: Option<u32>,
}
