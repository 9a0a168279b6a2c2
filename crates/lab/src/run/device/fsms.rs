//! FSMS: a driver in front of a controller that keeps a file system's metadata in PRAM, the controller's own or one
//! beside it.

use super::power::{Mounted, Powered};
use super::pram::Pram;
use super::{Counters, Insides, Observed};
use crate::result::{PramResult, RouteResult};
use nvlab_controller::fsms::{FatKind, FileSystem, Fsms, SECTOR};
use nvlab_controller::{Beside, BesidePram, Controller, ControllerError};
use nvlab_medium::{PowerCut, Store};
use nvlab_units::{Span, Time};

impl<C: Observed, S: Store> Observed for Beside<C, Pram<S>> {
    fn counters(&self) -> Counters {
        self.controller.counters()
    }
    fn reset_stats(&mut self) {
        self.controller.reset_stats();
        self.pram.pcm_mut().reset_stats();
    }
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.controller.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.controller.settle(upto);
        self.pram.settle(upto);
    }
    fn unit_bytes(&self) -> u32 {
        self.controller.unit_bytes()
    }
    fn blocks(&self) -> u32 {
        self.controller.blocks()
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
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.behind_mut().idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.behind_mut().settle(upto);
    }
    fn unit_bytes(&self) -> u32 {
        Observed::unit_bytes(self.behind())
    }
    fn blocks(&self) -> u32 {
        self.behind().blocks()
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
        let pram = insides.pram.expect("a driver has a PRAM behind it");
        Insides {
            host_bytes: Some(stats.written_sectors * Controller::unit_bytes(self) as u64),
            memory_bytes: insides.memory_bytes + self.memory_bytes(),
            pram: Some(PramResult { route_bytes: self.pram_part().1, route: Some(route), ..pram }),
            ..insides
        }
    }
}

impl<C: Powered, S: Store> Powered for Beside<C, Pram<S>> {
    fn power_cycle(mut self, at: Time) -> Result<(Self, Mounted), String> {
        self.pram.cut(at);
        let (controller, mounted) = self.controller.power_cycle(at)?;
        Ok((Beside { controller, pram: self.pram }, mounted))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.controller.power_down(at)
    }
    fn is_mapped(&self, unit: u32) -> bool {
        self.controller.is_mapped(unit)
    }
    fn trims_last(&self) -> bool {
        self.controller.trims_last()
    }
}

impl<C: BesidePram + Powered> Powered for Fsms<C> {
    fn power_cycle(self, at: Time) -> Result<(Self, Mounted), String> {
        let config = self.config().clone();
        let (behind, mounted) = self.into_behind().power_cycle(at)?;
        let (fsms, end) = Fsms::mount(config, behind, at + mounted.time)?;
        Ok((fsms, Mounted { time: end.since(at), ..mounted }))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.behind_mut().power_down(at)
    }
    /// Trims are of whole units of the device behind: so is what holds something.
    fn is_mapped(&self, sector: u32) -> bool {
        let per_unit = Controller::unit_bytes(self.behind()) / SECTOR as u32;
        let first = sector / per_unit * per_unit;
        self.behind().is_mapped(sector / per_unit)
            || (first..first + per_unit).any(|sector| self.is_in_pram(sector))
    }
    fn trims_last(&self) -> bool {
        self.behind().trims_last()
    }
}
