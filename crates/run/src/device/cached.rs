//! A page map behind a cache of lines: as blocks behind the link, and as words.

use super::backing::{Backing, BuildError};
use super::{Counters, Fill, Insides, Maps, Observed, Twin, page_map};
use crate::result::LinesResult;
use nvlab_access::Attached;
use nvlab_controller::{Cached, Controller, ControllerError, PageMap};
use nvlab_design::Design;
use nvlab_medium::Store;
use nvlab_medium::ram::Ram;
use nvlab_units::{Lpa, Span, Time};

/// Lines in front of the page map of a backing.
pub type Lines<B> = Cached<<B as Backing>::PageMap, <B as Backing>::Store>;

/// Builds it, new from the factory or recovered; also returns when it is ready.
pub fn build<B: Backing + ?Sized>(
    design: &Design,
    cached: &nvlab_design::Cached,
    seed: u64,
    backing: &B,
) -> Result<(Lines<B>, Time), BuildError> {
    let config = cached.ram_config(design, seed);
    let store = backing.store_in_place("cache", config.capacity_bytes)?;
    let ram = Ram::new(config, store);
    let (behind, ready) = page_map::build(design, &cached.page, seed, backing)?;
    let config = cached.config.clone();
    match backing.is_used() {
        true => Cached::reopen(config, behind, ram, ready).map_err(BuildError::Recovery),
        false => {
            let built = Cached::new(config, behind, ram).map_err(BuildError::Design)?;
            Ok((built, ready))
        }
    }
}

impl<F: Controller + Observed, S: Store> Observed for Cached<F, S> {
    fn counters(&self) -> Counters {
        self.behind().counters()
    }
    fn reset_stats(&mut self) {
        Cached::reset_stats(self);
        self.behind_mut().reset_stats();
    }
    fn expect_scattered_fill(&mut self) {
        self.behind_mut().expect_scattered_fill();
    }
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.behind().blocks()
    }
    fn maps(&self) -> Maps {
        self.behind().maps()
    }
    fn buffered(&mut self, _: Time) -> Option<Fill> {
        Some(Fill {
            used: self.dirty_lines(),
            room: self.config().dirty_lines_max.min(self.config().frames()),
            what: "dirty lines",
        })
    }
    fn is_log_full(&self) -> Option<bool> {
        self.behind().is_log_full()
    }
    fn rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.behind_mut().rest(at)
    }
    /// None: what is kept has no lines in front.
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        None
    }
    /// None: a twin would be written to without the lines, which decide what the host's writes become.
    fn twin(&self, _: &[u32], _: bool) -> Option<Twin> {
        None
    }
    fn split(&mut self, _: &Twin, _: &mut dyn FnMut(Lpa, u32) -> Option<Lpa>) -> bool {
        false
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        let (stats, behind) = (self.stats(), self.behind().insides(span));
        Insides {
            host_bytes: Some(stats.written_bytes),
            memory_bytes: behind.memory_bytes + self.memory_bytes(),
            lines: Some(LinesResult {
                lines: self.config().frames(),
                dirty: self.dirty_lines(),
                loads: stats.loads,
                stores: stats.stores,
                hits: stats.hits,
                fetched: stats.fetched,
                fetched_ahead: stats.fetched_ahead,
                ahead_used: stats.ahead_used,
                written_back: stats.written_back,
            }),
            ..behind
        }
    }
}
