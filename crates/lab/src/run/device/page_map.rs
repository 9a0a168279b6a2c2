//! A page map over NAND, behind a link.

use super::{Causes, Counters, Insides, Observed};
use crate::design::{Design, PageMapped};
use nvlab_access::{Attached, HostPath};
use nvlab_controller::page_map::PageMapStats;
use nvlab_controller::{Controller, PageMap};
use nvlab_medium::flash::Nand;
use nvlab_units::{Span, Time};

/// A device that only tells the time.
pub type Device = Attached<PageMap<()>>;

/// Builds it, new from the factory.
pub fn build(design: &Design, page: &PageMapped, seed: u64) -> Result<Device, String> {
    let map = PageMap::new(page.config(seed), Nand::new(design.flash_config(seed), ()))?;
    let path = HostPath {
        rate: design.path.rate,
        full_duplex: design.path.kind.full_duplex(),
        overhead: design.path.overhead_host + design.path.overhead_device,
    };
    Ok(Attached::new(map, path))
}

fn causes(stats: &PageMapStats) -> Causes {
    Causes {
        host: stats.host_write_units,
        clean: stats.clean_units,
        transfer: 0,
        wear: stats.wear_units,
        retire: stats.retire_units,
        map: stats.map_units,
        padding: stats.padding_units,
    }
}

impl Observed for Device {
    fn counters(&self) -> Counters {
        let causes = causes(self.controller().stats());
        let erases = self.controller().nand().stats().erases;
        Counters { host_units: causes.host, programmed_units: causes.total(), erases }
    }
    fn reset_stats(&mut self) {
        self.controller_mut().reset_stats();
        Attached::reset_stats(self);
    }
    fn idle_at(&mut self, at: Time) -> Time {
        self.controller_mut().idle_at(at)
    }
    fn unit_bytes(&self) -> u32 {
        self.controller().unit_bytes()
    }
    fn blocks(&self) -> u32 {
        self.controller().nand().geometry().blocks()
    }
    fn insides(&self, _span: Span) -> Insides<'_> {
        let controller = self.controller();
        let (stats, nand) = (controller.stats(), controller.nand());
        // What the host asked to write, not what its parts of units made of it.
        let touched = stats.host_write_units * self.unit_bytes() as u64;
        let host_bytes = touched - self.unaligned_bytes();
        Insides {
            causes: causes(stats),
            cleaned_blocks: stats.cleans,
            cleaned_live_units: stats.clean_live_units,
            retired_blocks: stats.retired_blocks,
            unaligned: if touched == 0 { 0.0 } else { touched as f64 / host_bytes as f64 },
            host_bytes: Some(host_bytes),
            cycles: nand.stats().erases as f64 / nand.geometry().blocks() as f64,
            cells: nand.cells(),
            flash: nand.stats(),
            geometry: *nand.geometry(),
            memory_bytes: controller.memory_bytes(),
            buffer_wait: stats.buffer_wait,
            memory: None,
        }
    }
}
