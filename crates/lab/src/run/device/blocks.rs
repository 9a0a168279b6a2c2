//! A block map, with or without a log, over NAND: one array, or one for the data and one for the log.

use super::pram::{Fresh, array};
use super::{Causes, Counters, Insides, LogInsides, Observed};
use crate::design::{BlockMapped, Design};
use nvlab_controller::block_map::{BlockMapStats, Cause};
use nvlab_controller::{BlockMap, Controller};
use nvlab_medium::Store;
use nvlab_units::{Span, Time};

/// Builds it, new from the factory.
pub fn build<S: Fresh>(design: &Design, blocks: &BlockMapped, seed: u64) -> Result<BlockMap<S>, String> {
    let data = array::<S>(design.flash_config(seed));
    let data = match &blocks.slc_log {
        Some(log) => data.with_slc_mode(log.mode),
        None => data,
    };
    BlockMap::new(blocks.config(), data, design.log_config(blocks, seed).map(array::<S>))
}

fn causes(stats: &BlockMapStats) -> Causes {
    let of = |cause| stats.data.of(cause).programs + stats.log.of(cause).programs;
    let merges = [Cause::Switch, Cause::Partial, Cause::Full, Cause::Sequential, Cause::SecondChance];
    Causes {
        host: of(Cause::Host),
        merge: merges.into_iter().map(of).sum(),
        wear: of(Cause::Wear),
        retire: of(Cause::Retire),
        ..Causes::default()
    }
}

impl<S: Store> Observed for BlockMap<S> {
    fn counters(&self) -> Counters {
        let causes = causes(self.stats());
        let erases = self.stats().data.total().erases + self.stats().log.total().erases;
        Counters { host_units: causes.host, programmed_units: causes.total(), erases }
    }
    fn reset_stats(&mut self) {
        BlockMap::reset_stats(self);
    }
    fn idle_at(&mut self, at: Time) -> Time {
        BlockMap::idle_at(self, at)
    }
    fn settle(&mut self, upto: Time) {
        BlockMap::settle(self, upto);
    }
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.data().geometry().blocks()
    }
    fn insides(&self, _span: Span) -> Insides<'_> {
        let (stats, nand) = (self.stats(), self.data());
        Insides {
            causes: causes(stats),
            cleaned_blocks: 0,
            cleaned_live_units: 0,
            retired_blocks: stats.retired_blocks,
            unaligned: 0.0,
            host_bytes: Some(stats.host_write_units * Observed::unit_bytes(self) as u64),
            cycles: nand.stats().erases as f64 / nand.geometry().blocks() as f64,
            cells: nand.cells(),
            flash: nand.stats(),
            geometry: *nand.geometry(),
            cache: None,
            memory_bytes: self.memory_bytes(),
            buffer_wait: stats.merge_wait,
            memory: None,
            log: self.log().map(|log| LogInsides {
                cells: log.cells(),
                flash: log.stats(),
                geometry: *log.geometry(),
            }),
            pram: None,
        }
    }
}
