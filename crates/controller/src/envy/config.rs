//! The configuration of an eNVy controller: plain data, filled from a design.

use super::table::{RECORD, SramCounts, SramLayout};
use crate::cleaning::SegmentCleaning;
use crate::cleaning::gathering::{Gathering, Locality};
use nvlab_medium::flash::NorConfig;
use nvlab_medium::ram::{Backup, RamConfig};
use nvlab_units::{Geometry, Span};

/// An eNVy controller.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvyConfig {
    /// Pages the host may address. The paper keeps them below 80 % of the array (section 4.1).
    pub logical_pages: u32,
    /// Pages in the battery-backed write buffer (section 5.1: one segment). 0: every written page goes to flash
    /// at once and the store waits for it, the mode of figure 8.
    pub buffer_pages: u32,
    /// Pages in the buffer above which the oldest are flushed; at most `buffer_pages`.
    pub flush_at: u32,
    /// Which segment is cleaned next, and where flushed pages go.
    pub cleaning: SegmentCleaning,
    /// When the segment just cleaned was erased this many times more than the least worn of its die, the two swap
    /// their data (section 4.3: 100). `None`: never.
    pub wear_spread: Option<u32>,
    /// Propagation and control, added to every memory cycle the host sees and to every page transfer (section
    /// 5.1: 60 ns).
    pub control: Span,
    /// Bytes the host moves with one access; a power of two, at most a word of the SRAM.
    pub word_bytes: u32,
    /// Width of the path between SRAM and flash: a page crosses it in page / path memory cycles (section 3.3:
    /// 256, one cycle).
    pub path_bytes: u32,
    /// Entries of the cache of recent mappings; a miss reads the page table in SRAM. 0: a lookup takes no time
    /// (the paper names no size and adds no time).
    pub mapping_cache_entries: u32,
    /// Pages one transaction may change (section 6); 0: no transactions.
    pub transaction_pages: u32,
}

/// Pages of a pool that must stay without live data, so that every clean can gain space.
pub(super) fn pool_margin(geometry: &Geometry) -> u32 {
    (geometry.pages_per_block / 64).max(2)
}

impl EnvyConfig {
    /// Bytes of the page table as the paper counts them: 6 B per page of the array (section 3.3). Our
    /// interpretation: 3 B from logical to physical page, flash or SRAM, and 3 B back, at 2^23 pages.
    pub fn table_bytes(geometry: &Geometry) -> u64 {
        geometry.units() * 6
    }

    /// Bytes of battery-backed SRAM, written in words of `word_bytes`, that this controller needs for an array:
    /// buffer and page table.
    pub fn sram_bytes(&self, geometry: &Geometry, word_bytes: u32) -> u64 {
        let buffer = self.buffer_pages as u64 * geometry.page_bytes();
        self.sram_layout(geometry, word_bytes).bytes().max(buffer + EnvyConfig::table_bytes(geometry))
    }

    /// What lies where in that SRAM.
    pub(super) fn sram_layout(&self, geometry: &Geometry, word_bytes: u32) -> SramLayout {
        let counts = SramCounts {
            segments: geometry.blocks() as u64,
            pools: self.pool_count(geometry) as u64,
            slots: self.buffer_pages.max(1) as u64,
            shadows: self.transaction_pages as u64,
            pages: self.logical_pages as u64,
        };
        SramLayout::new(counts, geometry.page_bytes(), word_bytes as u64)
    }

    /// Pools of one die: its partitions, or one.
    pub(super) fn pools_per_die(&self, geometry: &Geometry) -> u32 {
        match self.cleaning {
            SegmentCleaning::Gathering(gathering) => {
                let (segments, size) = (geometry.blocks_per_die - 1, gathering.partition_segments);
                ((segments + size / 2) / size).max(1)
            }
            _ => 1,
        }
    }

    /// Pools of the array.
    pub(super) fn pool_count(&self, geometry: &Geometry) -> u32 {
        self.pools_per_die(geometry) * geometry.dies()
    }

    /// Live pages all pools can hold.
    fn room(&self, geometry: &Geometry) -> u64 {
        let in_service = (geometry.blocks_per_die - 1) as u64 * geometry.dies() as u64;
        in_service * geometry.pages_per_block as u64
            - self.pool_count(geometry) as u64 * pool_margin(geometry) as u64
    }

    /// Checks that the controller can work on these media; otherwise returns the reason.
    pub fn check(&self, nor: &NorConfig, ram: &RamConfig) -> Result<(), String> {
        nor.check()?;
        let flash = &nor.flash;
        let geometry = &flash.geometry;
        if geometry.units_per_page != 1 {
            return Err(format!(
                "a page of eNVy is written by one program: units per page must be 1, not {}",
                geometry.units_per_page
            ));
        }
        if geometry.units() >= super::SLOT as u64 / 2 {
            return Err(format!("{} pages are more than the page table can address", geometry.units()));
        }
        if geometry.blocks_per_die < 3 || geometry.pages_per_block < 4 {
            return Err("a die needs at least 3 segments of 4 pages: one is kept erased".into());
        }
        let faults = &flash.faults;
        if faults.factory_bad > 0.0
            || faults.program_failure > 0.0
            || faults.erase_failure > 0.0
            || faults.wear_out
            || faults.bit_errors.is_some()
            || nor.slowing.is_some_and(|slowing| slowing.has_limits())
        {
            return Err("eNVy does not handle failing segments: the array must have no faults and no limits to its times".into());
        }
        self.check_host(geometry, ram)?;
        self.check_space(geometry)?;
        let needed = self.sram_bytes(geometry, ram.word_bytes);
        if needed > ram.capacity_bytes {
            return Err(format!(
                "the SRAM holds {} B; {} pages of buffer and a page table of {} B need {needed} B",
                ram.capacity_bytes,
                self.buffer_pages,
                EnvyConfig::table_bytes(geometry)
            ));
        }
        Ok(())
    }

    fn check_host(&self, geometry: &Geometry, ram: &RamConfig) -> Result<(), String> {
        if !self.word_bytes.is_power_of_two() || self.word_bytes > ram.word_bytes {
            return Err(format!(
                "a host word of {} B must be a power of two and at most a word of the SRAM ({} B)",
                self.word_bytes, ram.word_bytes
            ));
        }
        if (ram.word_bytes as u64) < RECORD {
            return Err(format!(
                "a word of the SRAM must be at least {RECORD} B, a record of the controller, not {} B",
                ram.word_bytes
            ));
        }
        if ram.backup == Backup::None {
            return Err("the SRAM must have a backup: it holds the only copy of the page table".into());
        }
        if !geometry.unit_bytes.is_multiple_of(self.word_bytes) {
            return Err(format!(
                "a page of {} B is not a multiple of the host word of {} B",
                geometry.unit_bytes, self.word_bytes
            ));
        }
        if self.path_bytes == 0 {
            return Err("the path between SRAM and flash must be at least 1 B wide".into());
        }
        if self.flush_at > self.buffer_pages {
            return Err(format!(
                "flushing begins above {} pages, the buffer holds {}",
                self.flush_at, self.buffer_pages
            ));
        }
        if self.transaction_pages > 0 && self.buffer_pages == 0 {
            return Err("transactions need a write buffer".into());
        }
        Ok(())
    }

    fn check_space(&self, geometry: &Geometry) -> Result<(), String> {
        let segments = geometry.blocks_per_die - 1;
        if let SegmentCleaning::Gathering(gathering) = self.cleaning
            && !(1..=segments).contains(&gathering.partition_segments)
        {
            return Err(format!(
                "a partition has 1 to {segments} segments (those of a die in service), not {}",
                gathering.partition_segments
            ));
        }
        if let SegmentCleaning::Gathering(Gathering { sorted: Some(Locality { data, writes }), .. }) =
            self.cleaning
            && !(data > 0.0 && data < 1.0 && writes > 0.0 && writes < 1.0)
        {
            return Err(format!(
                "a share of {writes} of the writes to {data} of the pages: both must be between 0 and 1"
            ));
        }
        let room = self.room(geometry);
        let asked = self.logical_pages as u64 + self.transaction_pages as u64;
        if self.logical_pages == 0 || asked > room {
            return Err(format!(
                "{} logical pages and {} shadow pages of transactions do not fit: one segment per die is kept erased and \
                 cleaning needs room; {room} pages are left",
                self.logical_pages, self.transaction_pages
            ));
        }
        Ok(())
    }
}
