//! FSMS: a driver in front of a controller that stores a file system's metadata in PRAM, the controller's own or a
//! separate one.

use super::pram::Pram;
use super::{Counters, Fill, Insides, Maps, Observed, RegionMap, Twin};
use crate::result::{PramResult, RouteResult};
use nvlab_access::Attached;
use nvlab_controller::fsms::{FatKind, FileSystem, Fsms};
use nvlab_controller::{Beside, BesidePram, Controller, ControllerError, PageMap};
use nvlab_medium::Store;
use nvlab_units::{Lpa, Span, Time};

impl<C: Observed, S: Store> Observed for Beside<C, Pram<S>> {
    fn counters(&self) -> Counters {
        self.controller.counters()
    }
    fn reset_stats(&mut self) {
        self.controller.reset_stats();
        self.pram.pcm_mut().reset_stats();
    }
    fn expect_scattered_fill(&mut self) {
        self.controller.expect_scattered_fill();
    }
    fn unit_bytes(&self) -> u32 {
        self.controller.unit_bytes()
    }
    fn blocks(&self) -> u32 {
        self.controller.blocks()
    }
    fn maps(&self) -> Maps {
        let mut maps = self.controller.maps()?;
        maps.extend(RegionMap::of_memories("PRAM", [&self.pram].into_iter()));
        Ok(maps)
    }
    fn buffered(&mut self, at: Time) -> Option<Fill> {
        self.controller.buffered(at)
    }
    fn is_log_full(&self) -> Option<bool> {
        self.controller.is_log_full()
    }
    fn rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.controller.rest(at)
    }
    /// None: what is kept has no memory beside it.
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        None
    }
    fn twin(&self, requests: &[u32], flushes: bool) -> Option<Twin> {
        self.controller.twin(requests, flushes)
    }
    fn split(&mut self, twin: &Twin, member: &mut dyn FnMut(Lpa, u32) -> Option<Lpa>) -> bool {
        self.controller.split(twin, member)
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        Insides { pram: Some(self.pram.result(0, span)), ..self.controller.insides(span) }
    }
}

impl<C: BesidePram + Observed> Observed for Fsms<C> {
    fn counters(&self) -> Counters {
        self.behind().counters()
    }
    fn reset_stats(&mut self) {
        Fsms::reset_stats(self);
        self.behind_mut().reset_stats();
    }
    fn expect_scattered_fill(&mut self) {
        self.behind_mut().expect_scattered_fill();
    }
    fn unit_bytes(&self) -> u32 {
        Observed::unit_bytes(self.behind())
    }
    fn blocks(&self) -> u32 {
        self.behind().blocks()
    }
    fn maps(&self) -> Maps {
        self.behind().maps()
    }
    fn buffered(&mut self, at: Time) -> Option<Fill> {
        self.behind_mut().buffered(at)
    }
    fn is_log_full(&self) -> Option<bool> {
        self.behind().is_log_full()
    }
    fn rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.behind_mut().rest(at)
    }
    /// None: what is kept has no driver in front.
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        None
    }
    /// A driver that recognizes no metadata passes everything on. It does without payload, but for sectors it is told of.
    fn twin(&self, requests: &[u32], flushes: bool) -> Option<Twin> {
        let passes_all = !<Self as Controller>::KEEPS && self.config().regions.is_empty();
        passes_all.then(|| self.behind().twin(requests, flushes)).flatten()
    }
    fn split(&mut self, twin: &Twin, member: &mut dyn FnMut(Lpa, u32) -> Option<Lpa>) -> bool {
        self.behind_mut().split(twin, member)
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
