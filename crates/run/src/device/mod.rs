//! Devices built from designs. Code that uses one knows it as [`AnyDevice`], or is generic over [`Device`] where its
//! type matters; the inner loop is compiled for each controller.
//!
//! | module | what |
//! |---|---|
//! | [`mod@build`] | from a design to its device, whatever its kind |
//! | [`mod@any`] | the same behind a pointer |
//! | `page_map`, [`cached`], [`blocks`], [`hftl`], `zoned`, `direct`, [`envy`], `ram_disk` | a file for each kind of controller |
//! | [`fsms`], [`pram`] | the driver that may stand in front, and the memory both use |
//! | [`served`] | the same as the serving edge needs it: with its bytes, and a plug |
//! | [`backing`] | the storage of the media's bytes |
//! | [`backed`], [`battery`] | a page map whose protected write buffer outlives the program, and what keeps the buffer |
//! | [`maps`] | maps of its media, for the live page |
//! | [`memory`] | how much of this machine's memory a device will take |
//! | [`power`] | a block device whose power can fail, with any controller |
//! | [`carrying`] | a device that keeps bytes, under a workload that may carry none |

pub mod any;
pub mod backed;
pub mod backing;
pub mod battery;
pub mod blocks;
pub mod build;
pub mod cached;
pub mod carrying;
mod direct;
pub mod envy;
pub mod fsms;
pub mod hftl;
mod in_memory;
pub mod maps;
pub mod memory;
mod page_map;
pub mod power;
pub mod pram;
mod ram_disk;
pub mod served;
mod wrapper;
mod zoned;

pub use any::{AnyDevice, any};
pub use backed::Media;
pub use backing::{Backing, BuildError, NoBytes, PageMapOver, new_page_map};
pub use build::{Visit, build};
pub use carrying::Carrying;
pub use in_memory::InMemory;
pub use maps::{Fill, Maps, RegionMap};
pub use power::Device;
pub use served::ServedDevice;
pub use wrapper::Wrapper;

use crate::result::{CacheResult, LinesResult, MapResult, MemoryResult, PramResult};
use nvlab_access::{Attached, HostPath};
use nvlab_controller::page_map::Levelling;
use nvlab_controller::{Background, Controller, ControllerError, PageMap};
use nvlab_design::Design;
use nvlab_medium::Store;
use nvlab_medium::flash::{Cells, FlashStats, Nand};
use nvlab_units::{Geometry, Lpa, Span, Time, Total};
use std::any::Any;
use std::ops::{AddAssign, Range};

/// Counts a meter follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Units the host wrote; of a memory, pages that left its write buffer.
    pub host_units: u64,
    /// Units programmed.
    pub causes: Causes,
    /// Blocks erased.
    pub erases: u64,
    /// Time that its flash was busy.
    pub busy: Busy,
}

impl Counters {
    /// Units programmed, whatever the cause.
    pub fn programmed_units(&self) -> u64 {
        self.causes.total()
    }

    /// What was counted since it was so much.
    pub fn since(&self, before: &Counters) -> Counters {
        Counters {
            host_units: self.host_units - before.host_units,
            causes: self.causes.since(&before.causes),
            erases: self.erases - before.erases,
            busy: self.busy.since(&before.busy),
        }
    }
}

/// Time that flash was busy, added up over its dies or channels, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Dies that read.
    pub read: u128,
    /// Dies that program.
    pub program: u128,
    /// Dies that erase.
    pub erase: u128,
    /// Channels that transfer.
    pub channel: u128,
}

impl Busy {
    /// Of one array.
    pub fn of(stats: &FlashStats) -> Busy {
        Busy {
            read: stats.read_busy.ps(),
            program: stats.program_time.ps(),
            erase: stats.erase_time.ps(),
            channel: stats.transfer_time.ps(),
        }
    }

    fn since(&self, before: &Busy) -> Busy {
        Busy {
            read: self.read - before.read,
            program: self.program - before.program,
            erase: self.erase - before.erase,
            channel: self.channel - before.channel,
        }
    }
}

impl AddAssign for Busy {
    fn add_assign(&mut self, other: Busy) {
        self.read += other.read;
        self.program += other.program;
        self.erase += other.erase;
        self.channel += other.channel;
    }
}

/// Units programmed, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// What the host wrote, without what the write buffer absorbed.
    pub host: u64,
    /// Moved by cleaning.
    pub clean: u64,
    /// Moved by merging log blocks into data blocks.
    pub merge: u64,
    /// Moved from a cache of blocks in SLC mode to blocks with all bits.
    pub fold: u64,
    /// Moved between partitions.
    pub transfer: u64,
    /// Moved by wear levelling.
    pub wear: u64,
    /// Moved because a block was retired or a program failed.
    pub retire: u64,
    /// Checkpoints of the map, records of trims.
    pub map: u64,
    /// Overwritten because of trims, by a controller without a map.
    pub trim: u64,
    /// Pages programmed before they were full.
    pub padding: u64,
}

impl Causes {
    /// What was programmed since it was so much.
    pub fn since(&self, before: &Causes) -> Causes {
        Causes {
            host: self.host - before.host,
            clean: self.clean - before.clean,
            merge: self.merge - before.merge,
            fold: self.fold - before.fold,
            transfer: self.transfer - before.transfer,
            wear: self.wear - before.wear,
            retire: self.retire - before.retire,
            map: self.map - before.map,
            trim: self.trim - before.trim,
            padding: self.padding - before.padding,
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        let moved = self.clean + self.merge + self.fold + self.transfer;
        self.host + moved + self.wear + self.retire + self.map + self.trim + self.padding
    }
}

/// What a device did since its counts were reset.
#[derive(Clone, Debug)]
pub struct Insides<'a> {
    /// Units programmed.
    pub causes: Causes,
    /// Blocks cleaned, and the live units in them.
    pub cleaned_blocks: u64,
    /// See `cleaned_blocks`.
    pub cleaned_live_units: u64,
    /// Blocks retired.
    pub retired_blocks: u64,
    /// Bytes of the units or blocks touched per byte the host wrote; 0 if it wrote nothing.
    pub unaligned: f64,
    /// Units (of a memory, words) read, and those of them that hold no data: never written, or trimmed.
    pub read_units: u64,
    /// See `read_units`.
    pub unwritten_read_units: u64,
    /// Units the host wrote that replaced a version still in the write buffer: not among those programmed.
    pub absorbed_units: u64,
    /// Bytes the host asked to write; `None`: the sum over its requests.
    pub host_bytes: Option<u64>,
    /// What its flash did, if it has any.
    pub flash: Option<FlashInsides<'a>>,
    /// The blocks of its data array that wear with what the host writes; `None`: all. The others hold a status or take the place
    /// of worn ones.
    pub wearing: Option<Range<usize>>,
    /// What its flash did, if that is behind a controller that is not simulated.
    pub hidden: Option<HiddenFlash>,
    /// Bytes of the controller's tables in this program.
    pub memory_bytes: u64,
    /// Host time spent waiting for room in the write buffer.
    pub buffer_wait: Total,
    /// Host time spent waiting for merges of log blocks.
    pub merge_wait: Total,
    /// What its cache of blocks in SLC mode did, if it has one.
    pub cache: Option<CacheResult>,
    /// Live units that wait in a cache of blocks in SLC mode, or in a log of another medium, beyond those at the beginning: they
    /// will be programmed to the data medium.
    pub waiting_units: u64,
    /// What its cache of lines did, if it has one.
    pub lines: Option<LinesResult>,
    /// What its map did, if it is read on demand.
    pub map: Option<MapResult>,
    /// What only a memory has.
    pub memory: Option<MemoryResult>,
    /// What its PRAM did, if it has one.
    pub pram: Option<PramResult>,
    /// Transfers between memories used in place and the host; `None` for other devices.
    pub transfers: Option<u64>,
    /// What static wear levelling has to do, if there is any and it is known.
    pub levelling: Option<Levelling>,
}

impl Insides<'_> {
    /// Erase counts of the blocks that wear with what the host writes, of the data array.
    pub(super) fn wearing_of<'c>(&self, cells: &'c Cells) -> &'c [u32] {
        let all = cells.erase_counts();
        self.wearing.as_ref().map_or(all, |blocks| &all[blocks.clone()])
    }

    /// Of a device that has no other counts.
    pub(super) fn of(causes: Causes) -> Self {
        Insides {
            causes,
            cleaned_blocks: 0,
            cleaned_live_units: 0,
            retired_blocks: 0,
            unaligned: 0.0,
            read_units: 0,
            unwritten_read_units: 0,
            absorbed_units: 0,
            host_bytes: None,
            flash: None,
            wearing: None,
            hidden: None,
            memory_bytes: 0,
            buffer_wait: Total::default(),
            merge_wait: Total::default(),
            cache: None,
            waiting_units: 0,
            lines: None,
            map: None,
            memory: None,
            pram: None,
            transfers: None,
            levelling: None,
        }
    }
}

/// What flash did whose blocks are not simulated. Its controller writes nothing besides and wears all blocks evenly: no real one
/// lasts longer.
#[derive(Clone, Copy, Debug)]
pub struct HiddenFlash {
    /// Steps read and programmed, each of a page.
    pub reads: u64,
    /// See `reads`.
    pub programs: u64,
    /// Times of a read, a program, an erase.
    pub times: [Span; 3],
    /// Its shape.
    pub geometry: Geometry,
    /// Rated cycles of a block.
    pub rated_cycles: u32,
}

/// What the flash of a device did.
#[derive(Clone, Debug)]
pub struct FlashInsides<'a> {
    /// The array of the data.
    pub data: ArrayInsides<'a>,
    /// The array of the log, if it has one of its own.
    pub log: Option<ArrayInsides<'a>>,
}

/// What an array of flash did.
#[derive(Clone, Debug)]
pub struct ArrayInsides<'a> {
    /// Its wear and rated life.
    pub cells: &'a Cells,
    /// What it counted.
    pub stats: FlashStats,
    /// Its shape.
    pub geometry: Geometry,
}

impl<'a> FlashInsides<'a> {
    /// Of a device with one NAND array.
    fn of_nand<S: Store>(nand: &'a Nand<S>) -> Option<FlashInsides<'a>> {
        Some(FlashInsides { data: ArrayInsides::of_nand(nand), log: None })
    }
}

impl<'a> ArrayInsides<'a> {
    fn of_nand<S: Store>(nand: &'a Nand<S>) -> ArrayInsides<'a> {
        ArrayInsides { cells: nand.cells(), stats: nand.stats(), geometry: *nand.geometry() }
    }
}

/// A device whose internal counts can be read.
pub trait Observed: Background {
    /// Its counts so far.
    fn counters(&self) -> Counters;
    /// Resets the counts, but not wear.
    fn reset_stats(&mut self);
    /// Announces a fill in random order: a controller that places pages by address places them in the order they are
    /// written instead.
    fn expect_scattered_fill(&mut self);
    /// Whether the next writes are appended to zones ([`nvlab_workload::BlockWorkload::appends`]).
    fn expect_appends(&mut self, _appends: bool) {}
    /// Bytes of a zone, and those of it that can be written, if it has zones.
    fn zones(&self) -> Option<(u64, u64)> {
        None
    }
    /// Bytes of a mapping unit.
    fn unit_bytes(&self) -> u32;
    /// Blocks of the flash that holds the data; 0 without flash.
    fn blocks(&self) -> u32;
    /// What it did in a run of this length.
    fn insides(&self, span: Span) -> Insides<'_>;
    /// What each region of its media holds and how worn it is, or why there is no such map. Made now, from all its tables.
    fn maps(&self) -> Maps;
    /// How full its write buffer is at `at`, which is not before its last operation; `None` without a buffer.
    fn buffered(&mut self, _at: Time) -> Option<Fill> {
        None
    }
    /// Whether all blocks of its log are in use; `None` without log blocks.
    fn is_log_full(&self) -> Option<bool> {
        None
    }
    /// Leaves it idle from `at` until a cache that is emptied in idle time is empty; returns when
    /// ([`PageMap::rest`]).
    fn rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        Ok(at)
    }
    /// The whole of it, if it is a page map without payload behind a link: it can be kept.
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        None
    }
    /// A coarse twin of this new device, of whose units each stands for several of its own ([`PageMap::twin`]); `None` if a twin would
    /// not come to the same state.
    fn twin(&self, _requests: &[u32], _flushes: bool) -> Option<Twin> {
        None
    }
    /// Takes over the state of its twin, each of whose units it replaces by those that `member` names
    /// ([`PageMap::split`]). Returns false if it cannot.
    fn split(&mut self, _twin: &Twin, _member: &mut dyn FnMut(Lpa, u32) -> Option<Lpa>) -> bool {
        false
    }
}

/// A coarse twin of a device ([`PageMap::twin`]), without a link.
pub struct Twin {
    /// The twin.
    pub device: Attached<PageMap>,
    /// Units that are one in it.
    pub factor: u32,
}

/// What lies between the host and the controller of a design.
pub fn link(design: &Design) -> HostPath {
    let path = &design.path;
    HostPath {
        rate: path.rate,
        rate_write: path.rate_write,
        full_duplex: path.kind.full_duplex(),
        overhead: path.overhead_host + path.overhead_device,
        command: path.command,
        command_write: path.command_write,
    }
}

impl<C: Controller + Observed + 'static> wrapper::Wrapper for Attached<C> {
    type Inner = C;
    fn inner(&self) -> &C {
        self.controller()
    }
    fn inner_mut(&mut self) -> &mut C {
        self.controller_mut()
    }
    fn reset_stats(&mut self) {
        self.controller_mut().reset_stats();
        Attached::reset_stats(self);
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        let insides = self.controller().insides(span);
        // What the host asked to write, not the whole units it touched.
        let touched = insides.host_bytes.expect("a controller of blocks counts what the host wrote");
        let host_bytes = touched - self.unaligned_bytes();
        let unaligned = if touched == 0 { 0.0 } else { touched as f64 / host_bytes as f64 };
        Insides { unaligned, host_bytes: Some(host_bytes), ..insides }
    }
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        (self as &dyn Any).downcast_ref()
    }
}
