//! Memories or disks used in place, each behind its own controller.

use super::backing::{Backing, BuildError};
use super::pram::{self, Pram};
use super::{Causes, Counters, Insides, Maps, Observed, RegionMap};
use nvlab_controller::Controller;
use nvlab_controller::scm::{Scm, ScmStats};
use nvlab_design::{Design, Direct};
use nvlab_medium::Store;
use nvlab_medium::disk::Disk;
use nvlab_units::{Span, Time};

/// Memories, with or without wear levelling.
type Memories<B> = Scm<Pram<<B as Backing>::Store>>;

/// Builds memories, new from the factory or recovered; also returns when they are ready.
pub(super) fn memories<B: Backing + ?Sized>(
    design: &Design,
    direct: &Direct,
    seed: u64,
    backing: &B,
) -> Result<(Memories<B>, Time), BuildError> {
    let (mut memories, mut ready) = (Vec::new(), Time::ZERO);
    for number in 0..direct.controllers {
        let config = direct.pcm_config(design, number, seed);
        let (memory, found) = Pram::of(&format!("memory{number}"), config, backing)?;
        memories.push(memory);
        ready = ready.max(found);
    }
    Ok((Scm::new(direct.config.clone(), memories).map_err(BuildError::Design)?, ready))
}

/// Builds disks. What an earlier program left on them is there at once.
pub(super) fn disks<B: Backing + ?Sized>(
    design: &Design,
    direct: &Direct,
    seed: u64,
    backing: &B,
) -> Result<Scm<Disk<B::Store>>, BuildError> {
    let disk = |number| {
        let config = direct.disk_config(design, number, seed);
        config.check().map_err(BuildError::Design)?;
        let store = backing.store_in_place(&format!("disk{number}"), config.capacity_bytes)?;
        Ok(Disk::new(config, store))
    };
    let disks = (0..direct.controllers).map(disk).collect::<Result<_, BuildError>>()?;
    Scm::new(direct.config.clone(), disks).map_err(BuildError::Design)
}

/// What a device with these counts did; `moved` units were moved by wear levelling.
fn insides<'a>(stats: &ScmStats, unit_bytes: u32, moved: u64) -> Insides<'a> {
    Insides {
        host_bytes: Some(stats.written_units * unit_bytes as u64),
        transfers: Some(stats.transfers),
        ..Insides::of(causes(stats, moved))
    }
}

fn causes(stats: &ScmStats, moved: u64) -> Causes {
    Causes { host: stats.written_units, trim: stats.trimmed_units, wear: moved, ..Causes::default() }
}

fn counters(stats: &ScmStats, moved: u64) -> Counters {
    Counters { host_units: stats.written_units, causes: causes(stats, moved), ..Counters::default() }
}

/// What wear levelling has written since the statistics were reset, in units: all that neither the host nor a trim has.
fn moved_units<S: Store>(scm: &Scm<Pram<S>>) -> u64 {
    let written: u64 = scm.memories().map(|memory| memory.pcm().stats().write.bytes).sum();
    let stats = scm.stats();
    (written / Controller::unit_bytes(scm) as u64).saturating_sub(stats.written_units + stats.trimmed_units)
}

impl<S: Store> Observed for Scm<Pram<S>> {
    fn counters(&self) -> Counters {
        counters(&self.stats(), moved_units(self))
    }
    fn reset_stats(&mut self) {
        Scm::reset_stats(self);
        self.memories_mut().for_each(|memory| memory.pcm_mut().reset_stats());
    }
    fn expect_scattered_fill(&mut self) {}
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        0
    }
    fn maps(&self) -> Maps {
        let map = RegionMap::of_memories("memory", self.memories().collect::<Vec<_>>().into_iter());
        map.map(|map| vec![map])
            .ok_or("it is a memory used in place whose part has no rated endurance, so wear is not counted")
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        let memories: Vec<&Pram<S>> = self.memories().collect();
        let pram = pram::results(memories.iter().copied(), 0, span);
        Insides {
            // The wear of lines is the simulation's.
            memory_bytes: pram.level_bytes,
            pram: Some(pram),
            ..insides(&self.stats(), Controller::unit_bytes(self), moved_units(self))
        }
    }
}

impl<S: Store> Observed for Scm<Disk<S>> {
    fn counters(&self) -> Counters {
        counters(&self.stats(), 0)
    }
    fn reset_stats(&mut self) {
        Scm::reset_stats(self);
    }
    fn expect_scattered_fill(&mut self) {}
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        0
    }
    fn maps(&self) -> Maps {
        Err("a disk has no map and does not wear")
    }
    fn insides(&self, _: Span) -> Insides<'_> {
        insides(&self.stats(), Controller::unit_bytes(self), 0)
    }
}
