//! A page map over NAND, behind a link.

use super::pram::{Fresh, array};
use super::{Causes, Counters, Insides, Observed, link};
use crate::design::{Design, PageMapped};
use crate::result::CacheResult;
use nvlab_access::Attached;
use nvlab_controller::page_map::PageMapStats;
use nvlab_controller::{Controller, PageMap};
use nvlab_medium::Store;
use nvlab_units::{Span, Time};

/// A device that only tells the time.
pub type Device = Attached<PageMap<()>>;

/// Builds it, new from the factory.
pub fn build(design: &Design, page: &PageMapped, seed: u64) -> Result<Device, String> {
    Ok(Attached::new(controller(design, page, seed)?, link(design)))
}

/// Builds the controller alone.
pub fn controller<S: Fresh>(design: &Design, page: &PageMapped, seed: u64) -> Result<PageMap<S>, String> {
    let nand = array::<S>(design.flash_config(seed));
    let nand = match page.slc_mode() {
        Some(mode) => nand.with_slc_mode(mode),
        None => nand,
    };
    page.with_cache(PageMap::new(page.config(seed), nand)?)
}

fn cache<S: Store>(map: &PageMap<S>) -> CacheResult {
    let stats = map.stats();
    let blocks = (0..map.nand().geometry().dies()).map(|die| map.cache_blocks(die)).sum();
    let written_share = match stats.host_write_units {
        0 => 0.0,
        host => stats.cache_units as f64 / host as f64,
    };
    CacheResult { written_share, folded_blocks: stats.folds, blocks }
}

fn causes(stats: &PageMapStats) -> Causes {
    Causes {
        host: stats.host_write_units,
        clean: stats.clean_units,
        fold: stats.fold_units,
        merge: 0,
        transfer: 0,
        wear: stats.wear_units,
        retire: stats.retire_units,
        map: stats.map_units,
        padding: stats.padding_units,
    }
}

impl<S: Store> Observed for PageMap<S> {
    fn counters(&self) -> Counters {
        let causes = causes(self.stats());
        Counters {
            host_units: causes.host,
            programmed_units: causes.total(),
            erases: self.nand().stats().erases,
        }
    }
    fn reset_stats(&mut self) {
        PageMap::reset_stats(self);
    }
    fn idle_at(&mut self, at: Time) -> Time {
        PageMap::idle_at(self, at)
    }
    fn settle(&mut self, upto: Time) {
        PageMap::settle(self, upto);
    }
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.nand().geometry().blocks()
    }
    fn insides(&self, _span: Span) -> Insides<'_> {
        let (stats, nand) = (self.stats(), self.nand());
        Insides {
            causes: causes(stats),
            cleaned_blocks: stats.cleans,
            cleaned_live_units: stats.clean_live_units,
            retired_blocks: stats.retired_blocks,
            unaligned: 0.0,
            host_bytes: Some(stats.host_write_units * Observed::unit_bytes(self) as u64),
            cycles: nand.stats().erases as f64 / nand.geometry().blocks() as f64,
            cells: nand.cells(),
            flash: nand.stats(),
            geometry: *nand.geometry(),
            cache: self.cache().map(|_| cache(self)),
            memory_bytes: self.memory_bytes(),
            buffer_wait: stats.buffer_wait,
            memory: None,
            log: None,
            pram: None,
        }
    }
}
