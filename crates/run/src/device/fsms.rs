//! FSMS: a driver in front of a controller that stores a file system's metadata in PRAM, the controller's own or a
//! separate one.

use super::pram::Pram;
use super::{Insides, Maps, Observed, RegionMap, Twin, Wrapper};
use crate::result::{PramResult, RouteResult};
use nvlab_controller::fsms::{FatKind, FileSystem, Fsms};
use nvlab_controller::{Beside, BesidePram, Controller};
use nvlab_medium::Store;
use nvlab_units::Span;

impl<C: Observed, S: Store> Wrapper for Beside<C, Pram<S>> {
    type Inner = C;
    fn inner(&self) -> &C {
        &self.controller
    }
    fn inner_mut(&mut self) -> &mut C {
        &mut self.controller
    }
    fn reset_stats(&mut self) {
        self.controller.reset_stats();
        self.pram.pcm_mut().reset_stats();
    }
    fn maps(&self) -> Maps {
        let mut maps = self.controller.maps()?;
        maps.extend(RegionMap::of_memories("PRAM", [&self.pram].into_iter()));
        Ok(maps)
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        Insides { pram: Some(self.pram.result(0, span)), ..self.controller.insides(span) }
    }
}

impl<C: BesidePram + Observed> Wrapper for Fsms<C> {
    type Inner = C;
    fn inner(&self) -> &C {
        self.behind()
    }
    fn inner_mut(&mut self) -> &mut C {
        self.behind_mut()
    }
    fn reset_stats(&mut self) {
        Fsms::reset_stats(self);
        self.behind_mut().reset_stats();
    }
    /// A driver that recognizes no metadata passes everything on. It does without payload, but for sectors it is told of.
    fn twin(&self, requests: &[u32], flushes: bool) -> Option<Twin> {
        let passes_all = !<Self as Controller>::KEEPS && self.config().regions.is_empty();
        passes_all.then(|| self.behind().twin(requests, flushes)).flatten()
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        let (stats, insides) = (self.stats(), self.behind().insides(span));
        let file_system = match self.file_system() {
            FileSystem::Unknown => "unknown",
            FileSystem::Exfat => "exfat",
            FileSystem::Fat(volume) => match volume.kind {
                FatKind::Fat12 => "fat12",
                FatKind::Fat16 => "fat16",
                FatKind::Fat32 => "fat32",
            },
        };
        let route = RouteResult {
            file_system: file_system.into(),
            written_sectors: stats.written_sectors,
            pram_written_sectors: stats.pram_written_sectors,
            spilled_sectors: stats.spilled_sectors,
            sectors_in_pram: self.sectors_in_pram().0,
            changed_share: stats.changed_share(),
            clusters_trimmed: stats.clusters_trimmed,
        };
        let (sector, unit) = (Controller::unit_bytes(self) as u64, Observed::unit_bytes(self) as u64);
        let pram = insides.pram.expect("a driver has a PRAM behind it");
        Insides {
            read_units: insides.read_units + stats.pram_read_sectors * sector / unit,
            host_bytes: Some(stats.written_sectors * Controller::unit_bytes(self) as u64),
            memory_bytes: insides.memory_bytes + self.memory_bytes(),
            pram: Some(PramResult { route_bytes: self.pram_part().1, route: Some(route), ..pram }),
            ..insides
        }
    }
}
