//! A page map over NAND, behind a link.

use super::backing::{Backing, BuildError, PageMapOver, nand};
use super::{
    ArrayInsides, Busy, Causes, Counters, Fill, FlashInsides, Insides, Maps, Observed, RegionMap, Twin,
};
use crate::result::{CacheResult, MapResult};
use nvlab_access::{Attached, HostPath};
use nvlab_controller::page_map::{MapStats, PageMapStats};
use nvlab_controller::{Controller, ControllerError, PageMap};
use nvlab_design::{Design, PageMapped};
use nvlab_medium::Store;
use nvlab_units::{Lpa, Span, Time};

/// Builds it, new from the factory or recovered; also returns when it is ready.
pub(super) fn build<B: Backing + ?Sized>(
    design: &Design,
    page: &PageMapped,
    seed: u64,
    backing: &B,
) -> Result<(B::PageMap, Time), BuildError> {
    let nand = nand(backing, "nand", design.flash_config(seed), page.slc_mode())?;
    PageMapOver::open(backing, page, seed, nand)
}

fn cache<S: Store>(map: &PageMap<S>) -> CacheResult {
    let stats = map.stats();
    let written_share = match stats.host_programmed_units() {
        0 => 0.0,
        programmed => stats.cache_units as f64 / programmed as f64,
    };
    CacheResult { written_share, folded_blocks: stats.folds, blocks: map.cache_blocks() }
}

fn map(stats: &MapStats) -> MapResult {
    MapResult {
        reads: stats.reads,
        read_hits: stats.read_hits,
        writes: stats.writes,
        write_hits: stats.write_hits,
        host_hits: stats.host_hits,
        loaded: stats.loads,
        loaded_to_rewrite: stats.rewrite_reads,
        written_back: stats.write_backs,
        rewritten: stats.rewrites,
        moved: stats.moved,
        read_wait_s: stats.read_wait.seconds(),
        write_wait_s: stats.write_wait.seconds(),
    }
}

fn causes(stats: &PageMapStats) -> Causes {
    Causes {
        host: stats.host_programmed_units(),
        clean: stats.clean_units,
        fold: stats.fold_units,
        merge: 0,
        transfer: 0,
        wear: stats.wear_units,
        retire: stats.retire_units,
        map: stats.map_units,
        padding: stats.padding_units,
        trim: 0,
    }
}

impl<S: Store> Observed for PageMap<S> {
    fn counters(&self) -> Counters {
        let (stats, flash) = (self.stats(), self.nand().stats());
        Counters {
            host_units: stats.host_write_units,
            causes: causes(stats),
            erases: flash.erases,
            busy: Busy::of(&flash),
        }
    }
    fn reset_stats(&mut self) {
        PageMap::reset_stats(self);
    }
    fn expect_scattered_fill(&mut self) {}
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.nand().geometry().blocks()
    }
    fn insides(&self, _span: Span) -> Insides<'_> {
        let (stats, nand) = (self.stats(), self.nand());
        Insides {
            cleaned_blocks: stats.cleans,
            cleaned_live_units: stats.clean_live_units,
            retired_blocks: stats.retired_blocks,
            read_units: stats.host_read_units,
            unwritten_read_units: stats.unwritten_read_units,
            absorbed_units: stats.absorbed_units,
            host_bytes: Some(stats.host_write_units * Observed::unit_bytes(self) as u64),
            cache: self.cache().map(|_| cache(self)),
            waiting_units: self.unfolded_units(),
            map: self.config().demand.as_ref().map(|_| map(&stats.map)),
            memory_bytes: self.memory_bytes(),
            buffer_wait: stats.buffer_wait,
            flash: FlashInsides::of_nand(nand),
            levelling: self.levelling(),
            ..Insides::of(causes(stats))
        }
    }
    fn maps(&self) -> Maps {
        Ok(vec![RegionMap::of_flash("data", &ArrayInsides::of_nand(self.nand()), self.regions())])
    }
    fn buffered(&mut self, at: Time) -> Option<Fill> {
        PageMap::buffered(self, at).map(|(used, room)| Fill { used, room, what: "units" })
    }
    fn rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        PageMap::rest(self, at)
    }
    fn twin(&self, requests: &[u32], flushes: bool) -> Option<Twin> {
        let (map, factor) = PageMap::twin(self, requests, flushes)?;
        let path = HostPath {
            rate: None,
            rate_write: None,
            command_write: Span::ZERO,
            full_duplex: false,
            overhead: Span::ZERO,
            command: Span::ZERO,
        };
        Some(Twin { device: Attached::new(map, path), factor })
    }
    fn split(&mut self, twin: &Twin, member: &mut dyn FnMut(Lpa, u32) -> Option<Lpa>) -> bool {
        PageMap::split(self, twin.device.controller(), twin.factor, member)
    }
}
