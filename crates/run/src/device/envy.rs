//! eNVy: as a memory, as a RAM disk, and as pages for preconditioning.

use super::backing::{Backing, BuildError};
use super::{
    ArrayInsides, Busy, Causes, Counters, Fill, FlashInsides, Insides, Maps, Observed, RegionMap, Wrapper,
    memory,
};
use crate::result::{MemoryResult, TimeSplit};
use nvlab_access::{BlockDevice, MemoryWindow, RamDisk};
use nvlab_controller::envy::recover::erase_counts;
use nvlab_controller::envy::{Envy, EnvyMedia, EnvyStats};
use nvlab_controller::{Background, Controller, ControllerError};
use nvlab_design::Design;
use nvlab_medium::Store;
use nvlab_medium::flash::Nor;
use nvlab_medium::ram::Ram;
use nvlab_units::{Served, Span, Time};

/// Builds it, new from the factory or recovered; also returns when it is ready.
pub fn build<B: Backing + ?Sized>(
    design: &Design,
    envy: &nvlab_design::Envy,
    seed: u64,
    backing: &B,
) -> Result<(Envy<B::Store>, Time), BuildError> {
    memory::check(design, backing.payload()).map_err(BuildError::Memory)?;
    let config = envy.config.clone();
    let (nor, sram) = (envy.nor_config(design, seed), envy.ram_config(design, seed));
    let geometry = nor.flash.geometry;
    let store = backing.store("nor", Nor::<B::Store>::store_bytes(&geometry))?;
    let sram = Ram::new(sram.clone(), backing.store("sram", sram.capacity_bytes)?);
    if !backing.is_used() {
        let memory = Envy::new(config, Nor::new(nor, store), sram).map_err(BuildError::Design)?;
        return Ok((memory, Time::ZERO));
    }
    let erases = erase_counts(&config, &geometry, &sram).map_err(BuildError::Recovery)?;
    let media = EnvyMedia { nor: Nor::reopen(nor, store, &erases), sram };
    let (memory, report) = Envy::recover(config, media, Time::ZERO).map_err(BuildError::Recovery)?;
    Ok((memory, Time::ZERO + report.time))
}

fn causes(stats: &EnvyStats) -> Causes {
    Causes {
        host: stats.flushed_pages,
        clean: stats.clean_pages,
        transfer: stats.transfer_pages,
        wear: stats.wear_pages,
        ..Causes::default()
    }
}

/// Host accesses are a share of the controller's time; the rest are shares of the time of the dies that work in parallel.
fn time_split(stats: &EnvyStats, span: Span, dies: u32) -> TimeSplit {
    let seconds = span.seconds().max(1e-12);
    let array = |spent: f64| spent / (seconds * dies as f64);
    let read = stats.load_time.seconds() / seconds;
    let write = (stats.store_time.seconds() + stats.copy_time.seconds()) / seconds;
    let flush = array(stats.flush_time.seconds());
    let clean = array(stats.clean_time.seconds() + stats.transfer_time.seconds());
    let wear = array(stats.wear_time.seconds());
    let erase = array(stats.erase_time.seconds());
    let busy = (read + write) / dies as f64 + flush + clean + wear + erase;
    TimeSplit { read, write, flush, clean, wear, erase, idle: (1.0 - busy).max(0.0) }
}

fn flash<S: Store>(envy: &Envy<S>) -> ArrayInsides<'_> {
    let nor = envy.nor();
    ArrayInsides { cells: nor.cells(), stats: nor.stats(), geometry: *nor.geometry() }
}

impl<S: Store> Observed for Envy<S> {
    fn counters(&self) -> Counters {
        let causes = causes(self.stats());
        let busy = Busy::of(&self.nor().stats());
        Counters { host_units: causes.host, causes, erases: self.stats().erases, busy }
    }
    fn reset_stats(&mut self) {
        Envy::reset_stats(self);
    }
    fn expect_scattered_fill(&mut self) {
        self.place_in_order_of_arrival();
    }
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.nor().geometry().blocks()
    }
    fn maps(&self) -> Maps {
        let map = RegionMap::of_flash("data", &flash(self), self.regions());
        Ok(vec![RegionMap { regions: "segments", ..map }])
    }
    fn buffered(&mut self, _: Time) -> Option<Fill> {
        let room = self.config().buffer_pages;
        (room > 0).then(|| Fill { used: self.buffered_pages() as u32, room, what: "pages" })
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        let (stats, data) = (self.stats(), flash(self));
        let (causes, geometry) = (causes(stats), data.geometry);
        Insides {
            cleaned_blocks: stats.cleans,
            cleaned_live_units: stats.clean_live_pages,
            flash: Some(FlashInsides { data, log: None }),
            read_units: stats.loads,
            unwritten_read_units: stats.unwritten_loads,
            memory_bytes: self.memory_bytes(),
            buffer_wait: stats.buffer_wait,
            memory: Some(MemoryResult {
                loads: stats.loads,
                stores: stats.stores,
                buffer_hits: stats.buffer_hits,
                copied_pages: stats.copies_on_write,
                flushed_pages: stats.flushed_pages,
                mapping_misses: stats.mapping_misses,
                wear_swaps: stats.wear_swaps,
                cleaning_cost: stats.cleaning_cost(),
                table_bytes: self.table_bytes(),
                time: time_split(stats, span, geometry.dies()),
            }),
            ..Insides::of(causes)
        }
    }
}

impl<S: Store> Wrapper for RamDisk<Envy<S>> {
    type Inner = Envy<S>;
    fn inner(&self) -> &Envy<S> {
        self.window()
    }
    fn inner_mut(&mut self) -> &mut Envy<S> {
        self.window_mut()
    }
}

/// A memory written page by page, one word of each: the cost of a page is its copy and its flush, so this is the
/// fastest way to a known state. Reads and trims do not matter for that. Zeros are stored if the media keep bytes.
pub struct Pages<'a, S: Store> {
    memory: &'a mut Envy<S>,
    word: Vec<u8>,
}

impl<'a, S: Store> Pages<'a, S> {
    /// The pages of a memory.
    pub fn new(memory: &'a mut Envy<S>) -> Pages<'a, S> {
        let word = vec![0; if S::KEEPS { memory.word_bytes() as usize } else { 0 }];
        Pages { memory, word }
    }
}

impl<S: Store> BlockDevice for Pages<'_, S> {
    fn capacity_bytes(&self) -> u64 {
        self.memory.capacity_bytes()
    }
    fn read(&mut self, at: Time, _: u64, _: u32, _: &mut [u8]) -> Result<Served, ControllerError> {
        Ok(Served { start: at, end: at })
    }
    fn write(&mut self, at: Time, offset: u64, bytes: u32, _: &[u8]) -> Result<Served, ControllerError> {
        let (page, word) = (self.memory.page_bytes() as u64, self.memory.word_bytes());
        let mut end = at;
        if S::KEEPS {
            // A cut comes after all of this: what is done by now need not be undone.
            self.memory.settle(at);
        }
        for page_at in (offset / page..(offset + bytes as u64).div_ceil(page)).map(|number| number * page) {
            end = self.memory.store(end, page_at, word, &self.word)?.end;
        }
        Ok(Served { start: at, end })
    }
    fn trim(&mut self, at: Time, _: u64, _: u32) -> Result<Served, ControllerError> {
        Ok(Served { start: at, end: at })
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        Ok(Served { start: at, end: at })
    }
    #[inline]
    fn prefetch(&self, offset: u64) {
        MemoryWindow::prefetch(&*self.memory, offset);
    }
}

impl<S: Store> Background for Pages<'_, S> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.memory.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.memory.settle(upto);
    }
}

impl<S: Store> Wrapper for Pages<'_, S> {
    type Inner = Envy<S>;
    fn inner(&self) -> &Envy<S> {
        self.memory
    }
    fn inner_mut(&mut self) -> &mut Envy<S> {
        self.memory
    }
}
