//! The device behind a window: an eNVy controller over NOR flash and battery-backed SRAM, in pages.
//!
//! The array is the paper's, but wider: a page is one byte from each of 4,096 chips instead of 256, so that a page of
//! the processor is one program operation (eNVy section 3.3 chose 256 B because a wider path was too expensive in 1994).
//! Times, wear and cleaning are those of the design `envy`.

use crate::ServeError;
use crate::clock::{Clock, TimeMode};
use crate::mapped_store::MappedStore;
use crate::served::{DriveError, Inside, View};
use crate::sys::abi::PAGE_BYTES;
use nvlab_controller::Background;
use nvlab_controller::envy::recover::erase_counts;
use nvlab_controller::envy::stats::EnvyStats;
use nvlab_controller::envy::{Envy, EnvyConfig, EnvyMedia};
use nvlab_design::{Design, Ftl};
use nvlab_medium::flash::{Nor, NorConfig};
use nvlab_medium::ram::{Ram, RamConfig};
use nvlab_run::device::Observed;
use nvlab_run::meter::Totals;
use nvlab_units::{Geometry, Time};
use nvlab_workload::Op;

/// Segments of an array are this many pages, fewer for small windows: an erase must not delay everything else.
const SEGMENT_PAGES_MAX: u32 = 1024;
/// At least this many segments are in service: with fewer, cleaning has little choice.
const SEGMENTS: u32 = 32;
/// Live data is limited to this share of the segments in service, in percent (eNVy section 4.1).
const UTILISATION: u64 = 80;
/// Pages of the controller's write buffer: one segment (eNVy section 5.1).
const BUFFER_SEGMENTS: u32 = 1;

/// The configuration of the controller and its media.
#[derive(Clone, Debug, PartialEq)]
pub struct PageDeviceConfig {
    pub envy: EnvyConfig,
    /// The flash array; its pages are 4 KiB.
    pub nor: NorConfig,
    /// Write buffer and page table.
    pub sram: RamConfig,
}

impl PageDeviceConfig {
    /// The paper's device with pages of 4 KiB and a logical capacity of `bytes`, a multiple of the page.
    pub fn envy(bytes: u64) -> Result<PageDeviceConfig, String> {
        let page = PAGE_BYTES as u64;
        let pages = bytes / page;
        if bytes == 0 || !bytes.is_multiple_of(page) || pages > 1 << 28 {
            return Err(format!(
                "a window of {bytes} B: it must be a multiple of {PAGE_BYTES} B, and at most 1 TiB"
            ));
        }
        let segment = (pages as u32 / SEGMENTS).clamp(4, SEGMENT_PAGES_MAX);
        let in_service = (pages * 100).div_ceil(UTILISATION).div_ceil(segment as u64) as u32;
        // One more for the cleaner, and one that is being filled.
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: in_service.max(SEGMENTS) + 2,
            pages_per_block: segment,
            units_per_page: 1,
            unit_bytes: PAGE_BYTES as u32,
        };
        let design = Design::load("envy", &[]).map_err(|errors| errors.to_string())?;
        let Ftl::Envy(paper) = &design.ftl else { panic!("the built-in design envy is of another kind") };
        let envy = EnvyConfig {
            logical_pages: pages as u32,
            buffer_pages: segment * BUFFER_SEGMENTS,
            flush_at: segment * BUFFER_SEGMENTS / 2,
            word_bytes: PAGE_BYTES as u32,
            path_bytes: PAGE_BYTES as u32,
            mapping_cache_entries: 0,
            transaction_pages: 0,
            ..paper.config.clone()
        };
        let mut nor = paper.nor_config(&design, 1);
        nor.flash.geometry = geometry;
        let sram = RamConfig {
            capacity_bytes: envy.sram_bytes(&geometry, PAGE_BYTES as u32).next_multiple_of(page),
            word_bytes: PAGE_BYTES as u32,
            banks: 1,
            stripe_bytes: PAGE_BYTES as u64,
            ..paper.ram_config(&design, 1)
        };
        Ok(PageDeviceConfig { envy, nor, sram })
    }

    /// Bytes of the flash array and of the SRAM.
    pub fn media_bytes(&self) -> [u64; 2] {
        [Nor::<MappedStore>::store_bytes(&self.nor.flash.geometry), self.sram.capacity_bytes]
    }
}

/// A controller, its media and its clock.
#[derive(Debug)]
pub(crate) struct PageDevice {
    envy: Envy<MappedStore>,
    clock: Clock,
    began: Time,
    /// Pages fetched and written back.
    totals: Totals,
}

impl PageDevice {
    /// A device fresh from the factory, or (`used`) one that is recovered from its media.
    pub(crate) fn open(
        config: &PageDeviceConfig,
        [nor, sram]: [MappedStore; 2],
        used: bool,
        mode: TimeMode,
    ) -> Result<PageDevice, ServeError> {
        let sram = Ram::new(config.sram.clone(), sram);
        let mut begin = Time::ZERO;
        let envy = if used {
            let geometry = &config.nor.flash.geometry;
            let erases = erase_counts(&config.envy, geometry, &sram).map_err(ServeError::Recovery)?;
            let nor = Nor::reopen(config.nor.clone(), nor, &erases);
            let (envy, report) = Envy::recover(config.envy.clone(), EnvyMedia { nor, sram }, begin)
                .map_err(ServeError::Recovery)?;
            begin += report.time;
            envy
        } else {
            let nor = Nor::new(config.nor.clone(), nor);
            Envy::new(config.envy.clone(), nor, sram).map_err(ServeError::Options)?
        };
        Ok(PageDevice { envy, clock: Clock::new(mode, begin), began: begin, totals: Totals::default() })
    }

    /// Loads a page.
    pub(crate) fn load(&mut self, page: u32, into: &mut [u8; PAGE_BYTES]) -> Result<(), DriveError> {
        let at = self.begin()?;
        let served = self.envy.load(at, page as u64 * PAGE_BYTES as u64, PAGE_BYTES as u32, into)?;
        self.done(Op::Read, at, served.end)
    }

    /// Stores a page. On return it is in the media: killing this process does not lose it.
    pub(crate) fn store(&mut self, page: u32, data: &[u8; PAGE_BYTES]) -> Result<(), DriveError> {
        let at = self.begin()?;
        let served = self.envy.store(at, page as u64 * PAGE_BYTES as u64, PAGE_BYTES as u32, data)?;
        self.done(Op::Write, at, served.end)
    }

    /// When an operation begins.
    fn begin(&self) -> Result<Time, DriveError> {
        Some(self.clock.now()).filter(|now| !now.is_over()).ok_or(DriveError::TimeIsOver)
    }

    /// Counts a page. No simulated power cut will come: the media may drop the undo records for one.
    fn done(&mut self, op: Op, at: Time, end: Time) -> Result<(), DriveError> {
        if end.is_over() {
            self.clock.skip(end);
            return Err(DriveError::TimeIsOver);
        }
        let totals = &mut self.totals[op as usize];
        totals.bytes += PAGE_BYTES as u64;
        totals.latency.add(end.since(at));
        self.clock.reach(end);
        self.envy.settle(self.clock.now());
        Ok(())
    }

    /// What it looks like now.
    pub(crate) fn view(&mut self) -> View {
        let now = self.clock.now();
        let inside = Inside::of(&mut self.envy, now, now.since(self.began));
        View {
            capacity_bytes: self.envy.capacity_bytes(),
            now,
            totals: self.totals.clone(),
            counters: self.envy.counters(),
            inside,
            ..View::default()
        }
    }

    /// What the controller did.
    pub(crate) fn stats(&self) -> &EnvyStats {
        self.envy.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_os::Mapping;

    #[test]
    fn what_is_shown_is_what_the_device_holds() {
        let config = PageDeviceConfig::envy(2 << 20).unwrap();
        let stores = config.media_bytes().map(|bytes| MappedStore::new(Mapping::anonymous(bytes).unwrap()));
        let mut device = PageDevice::open(&config, stores, false, TimeMode::Fast).unwrap();
        for round in 0..20 {
            for page in (0..300).step_by(1 + round % 3) {
                device.store(page, &[round as u8; PAGE_BYTES]).unwrap();
            }
        }
        device.load(7, &mut [0; PAGE_BYTES]).unwrap();
        let view = device.view();
        let maps = view.inside.maps.unwrap();
        let waiting = view.inside.buffer.unwrap().used as u64;
        assert_eq!((maps.len(), maps[0].regions, maps[0].live().unwrap() + waiting), (1, "segments", 300));
        let worn: u64 = maps[0].wear.as_ref().unwrap().counts.iter().map(|&count| count as u64).sum();
        assert!(worn == view.counters.erases && worn > 0, "{worn}");
        assert_eq!(view.totals[Op::Read as usize].count(), 1);
        assert!(view.totals[Op::Write as usize].bytes > 3000 * PAGE_BYTES as u64);
    }
}
