//! hFTL: a page map over NAND whose map lies in PRAM.

use super::backing::{Backing, BuildError, nand};
use super::pram::Pram;
use super::{ArrayInsides, Busy, Causes, Counters, FlashInsides, Insides, Maps, Observed, RegionMap};
use nvlab_controller::hftl::{Hftl, HftlMedia, HftlStats};
use nvlab_controller::{BesidePram, Controller};
use nvlab_design::{Design, PramMapped};
use nvlab_medium::Store;
use nvlab_units::{Span, Time};

/// The controller, with its PRAM.
type InPram<B> = Hftl<<B as Backing>::Store, Pram<<B as Backing>::Store>>;

/// Builds it, new from the factory or recovered; also returns when it is ready.
pub(super) fn build<B: Backing + ?Sized>(
    design: &Design,
    hftl: &PramMapped,
    seed: u64,
    backing: &B,
) -> Result<(InPram<B>, Time), BuildError> {
    let nand = nand(backing, "nand", design.flash_config(seed), None)?;
    let (pram, ready) = Pram::build(design, &hftl.pram, seed, backing)?;
    let config = hftl.config(seed);
    if backing.is_used() {
        let (hftl, report) =
            Hftl::recover(config, HftlMedia { nand, pram }, ready).map_err(BuildError::Recovery)?;
        return Ok((hftl, ready + report.time));
    }
    Ok((Hftl::new(config, nand, pram).map_err(BuildError::Design)?, ready))
}

fn causes(stats: &HftlStats) -> Causes {
    Causes {
        host: stats.host_write_units,
        clean: stats.clean_units,
        wear: stats.wear_units,
        retire: stats.retire_units,
        ..Causes::default()
    }
}

impl<S: Store> Observed for Hftl<S, Pram<S>> {
    fn counters(&self) -> Counters {
        let (causes, flash) = (causes(&self.stats()), self.nand().stats());
        Counters { host_units: causes.host, causes, erases: flash.erases, busy: Busy::of(&flash) }
    }
    fn reset_stats(&mut self) {
        Hftl::reset_stats(self);
        self.pram_mut().pcm_mut().reset_stats();
    }
    fn expect_scattered_fill(&mut self) {}
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.nand().geometry().blocks()
    }
    fn maps(&self) -> Maps {
        let data = RegionMap::of_flash("data", &ArrayInsides::of_nand(self.nand()), self.regions());
        Ok([data].into_iter().chain(RegionMap::of_memories("PRAM", [self.pram()].into_iter())).collect())
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        let (stats, nand) = (self.stats(), self.nand());
        Insides {
            cleaned_blocks: stats.cleans,
            cleaned_live_units: stats.clean_live_units,
            retired_blocks: stats.retired_blocks,
            read_units: stats.host_read_units,
            unwritten_read_units: stats.unwritten_read_units,
            host_bytes: Some(stats.host_write_units * Observed::unit_bytes(self) as u64),
            memory_bytes: self.memory_bytes(),
            pram: Some(self.pram().result(self.pram_bytes(), span)),
            flash: FlashInsides::of_nand(nand),
            ..Insides::of(causes(&stats))
        }
    }
}
