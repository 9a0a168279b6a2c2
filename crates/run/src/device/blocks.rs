//! A block map, with or without a log, over NAND: one array, or one for the data and one for the log.

use super::backing::{Backing, BuildError, nand};
use super::{ArrayInsides, Busy, Causes, Counters, FlashInsides, Insides, Maps, Observed, RegionMap};
use nvlab_controller::block_map::{BlockMapMedia, BlockMapStats, Cause};
use nvlab_controller::{BlockMap, Controller};
use nvlab_design::{BlockMapped, Design};
use nvlab_medium::Store;
use nvlab_units::{Span, Time};

/// Builds it, new from the factory or recovered; also returns when it is ready.
pub(super) fn build<B: Backing + ?Sized>(
    design: &Design,
    blocks: &BlockMapped,
    seed: u64,
    backing: &B,
) -> Result<(BlockMap<B::Store>, Time), BuildError> {
    let slc = blocks.slc_log.as_ref().map(|log| log.mode);
    let data = nand(backing, "nand", design.flash_config(seed), slc)?;
    let log = design.log_config(blocks, seed).map(|log| nand(backing, "log", log, None)).transpose()?;
    let config = blocks.config.clone();
    if backing.is_used() {
        let found = BlockMap::recover(config, BlockMapMedia::new(data, log), Time::ZERO);
        let (map, report) = found.map_err(BuildError::Recovery)?;
        return Ok((map, Time::ZERO + report.time));
    }
    Ok((BlockMap::new(config, data, log).map_err(BuildError::Design)?, Time::ZERO))
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
        let mut busy = Busy::of(&self.data().stats());
        if let Some(log) = self.log() {
            busy += Busy::of(&log.stats());
        }
        Counters { host_units: causes.host, causes, erases, busy }
    }
    fn reset_stats(&mut self) {
        BlockMap::reset_stats(self);
    }
    fn expect_scattered_fill(&mut self) {}
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.data().geometry().blocks()
    }
    fn is_log_full(&self) -> Option<bool> {
        BlockMap::is_log_full(self)
    }
    fn maps(&self) -> Maps {
        let (data, log) = self.regions();
        let data = RegionMap::of_flash("data", &ArrayInsides::of_nand(self.data()), data);
        let log = self.log().zip(log).map(|(nand, regions)| {
            let array = ArrayInsides::of_nand(nand);
            RegionMap::of_flash("log", &array, regions)
        });
        Ok([data].into_iter().chain(log).collect())
    }
    fn insides(&self, _span: Span) -> Insides<'_> {
        let (stats, nand) = (self.stats(), self.data());
        Insides {
            retired_blocks: stats.retired_blocks,
            read_units: stats.host_read_units,
            unwritten_read_units: stats.unwritten_read_units,
            host_bytes: Some(stats.host_write_units * Observed::unit_bytes(self) as u64),
            memory_bytes: self.memory_bytes(),
            merge_wait: stats.merge_wait,
            waiting_units: self.unmerged_pages(),
            flash: Some(FlashInsides {
                data: ArrayInsides::of_nand(nand),
                log: self.log().map(ArrayInsides::of_nand),
            }),
            ..Insides::of(causes(stats))
        }
    }
}
