//! RAM disks: blocks directly in a memory.

use super::backing::{Backing, BuildError};
use super::{Causes, Counters, Insides, Maps, Observed, memory};
use nvlab_controller::Controller;
use nvlab_controller::bare_ram::BareRam;
use nvlab_design::{Design, RamDisk};
use nvlab_medium::Store;
use nvlab_medium::ram::Ram;
use nvlab_units::{Span, Time};

/// Builds it, new or with what its store holds; also returns when it is ready.
pub(super) fn build<B: Backing + ?Sized>(
    design: &Design,
    disk: &RamDisk,
    seed: u64,
    backing: &B,
) -> Result<(BareRam<B::Store>, Time), BuildError> {
    memory::check(design, backing.payload()).map_err(BuildError::Memory)?;
    let config = disk.config(design, seed);
    BareRam::<B::Store>::check(&config).map_err(BuildError::Design)?;
    let store = backing.store_in_place("ram", config.capacity_bytes)?;
    let ram = Ram::new(config, store);
    let device = if backing.is_used() { BareRam::reopen(ram) } else { BareRam::new(ram) };
    Ok((device, Time::ZERO))
}

impl<S: Store> Observed for BareRam<S> {
    fn counters(&self) -> Counters {
        let host = self.stats().written_units;
        Counters { host_units: host, causes: Causes { host, ..Causes::default() }, ..Counters::default() }
    }
    fn reset_stats(&mut self) {
        BareRam::reset_stats(self);
    }
    /// A memory has no order.
    fn expect_scattered_fill(&mut self) {}
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        0
    }
    fn maps(&self) -> Maps {
        Err("a RAM disk has no map and does not wear")
    }
    fn insides(&self, _: Span) -> Insides<'_> {
        let host = self.stats().written_units;
        let host_bytes = Some(host * Controller::unit_bytes(self) as u64);
        let transfers = Some(self.stats().words);
        Insides { host_bytes, transfers, ..Insides::of(Causes { host, ..Causes::default() }) }
    }
}
