//! What is counted of controllers with PRAM.

use super::super::{Causes, Counters, Insides, Observed};
use super::Pram;
use crate::result::{PramResult, RouteResult};
use nvlab_controller::fsms::{FatKind, FileSystem, Fsms};
use nvlab_controller::hftl::{Hftl, HftlStats};
use nvlab_controller::{Beside, BesidePram, Controller};
use nvlab_medium::{PowerCut, Store};
use nvlab_units::{Span, Time};

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
        let causes = causes(&self.stats());
        Counters {
            host_units: causes.host,
            programmed_units: causes.total(),
            erases: self.nand().stats().erases,
        }
    }
    fn reset_stats(&mut self) {
        Hftl::reset_stats(self);
        self.pram_mut().pcm_mut().reset_stats();
    }
    fn idle_at(&mut self, at: Time) -> Time {
        let end = Hftl::idle_at(self, at);
        end.unwrap_or_else(|error| panic!("work that was accepted is not finished: {error}"))
    }
    fn settle(&mut self, upto: Time) {
        Hftl::settle(self, upto);
    }
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.nand().geometry().blocks()
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        let (stats, nand) = (self.stats(), self.nand());
        Insides {
            causes: causes(&stats),
            cleaned_blocks: stats.cleans,
            cleaned_live_units: stats.clean_live_units,
            retired_blocks: stats.retired_blocks,
            unaligned: 0.0,
            host_bytes: Some(stats.host_write_units * Observed::unit_bytes(self) as u64),
            cycles: nand.stats().erases as f64 / nand.geometry().blocks() as f64,
            cells: nand.cells(),
            flash: nand.stats(),
            geometry: *nand.geometry(),
            cache: None,
            memory_bytes: self.memory_bytes(),
            buffer_wait: Default::default(),
            memory: None,
            log: None,
            pram: Some(self.pram().result(self.pram_bytes(), span)),
        }
    }
}

impl<C: Observed, S: Store> Observed for Beside<C, Pram<S>> {
    fn counters(&self) -> Counters {
        self.controller.counters()
    }
    fn reset_stats(&mut self) {
        self.controller.reset_stats();
        self.pram.pcm_mut().reset_stats();
    }
    fn idle_at(&mut self, at: Time) -> Time {
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
    fn idle_at(&mut self, at: Time) -> Time {
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
