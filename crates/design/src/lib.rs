//! Designs: a storage device described as data. They are read, checked, completed with defaults, and converted to the
//! plain configurations of media and controllers.
//!
//! 1. A design is a TOML file or a built-in name; unknown keys are errors; a quantity has its unit.
//! 2. Precedence: `--set`, the file, the design it `extends`, the datasheets of its parts, the defaults, which are
//!    all in the key table ([`keys`]).
//! 3. Every value of a resolved design has its origin ([`Design::resolved`]).
//! 4. All problems of a design are reported at once, each at its line ([`DesignErrors`]).
//!
//! Nothing is run here. A [`Design`] is checked as far as possible without building a device; building one may still
//! refuse it (`PageMap::new`).
//!
//! | module | what |
//! |---|---|
//! | `kinds` | the controllers: one file for each kind, with its keys, reading, checks and media |
//! | `bricks` | keys that several kinds share; `route`: the driver in front of a controller |
//! | [`keys`] | the table of all keys; `key`: one of them |
//! | `source` | files, parts and `--set` as flat keys with places; `layers` lays them over each other |
//! | `context` | typed reading, defaults, origins, unknown keys |
//! | [`part`], [`sheets`] | memory parts, typed; the built-in datasheets |
//! | [`stacks`] | the host's software as stages; the built-in stacks |
//! | `load`, `resolve` | from a name to a [`Design`] |
//! | `configs` | from a [`Design`] to the configurations of media, and its price |
//! | [`scale`] | the same kind of drive with another capacity |
//! | `footprint` | what media and common tables take of this machine's memory |
//! | [`toml_reader`] | TOML files written by users: typed values with their places |
//! | `text` | canonical text, `design show`, `diff`, `new`; [`schema`]: JSON Schema |

mod bricks;
mod configs;
mod context;
pub mod error;
mod footprint;
mod key;
pub mod keys;
pub mod kinds;
mod layers;
mod library;
mod load;
pub mod part;
mod plausible;
mod resolve;
mod route;
pub mod scale;
pub mod schema;
pub mod sheets;
pub mod source;
pub mod stacks;
mod text;
pub mod toml_reader;

pub use bricks::memories::Memory;
pub use bricks::slc::{PageCache, SlcBlocks};
pub use configs::{PriceItem, PriceList};
pub use context::Resolved;
pub use error::DesignErrors;
pub use footprint::Payload;
pub use kinds::blocks::{BlockMapped, LogArray};
pub use kinds::cached::Cached;
pub use kinds::direct::Direct;
pub use kinds::envy::Envy;
pub use kinds::hftl::PramMapped;
pub use kinds::page::PageMapped;
pub use kinds::ram_disk::RamDisk;
pub use kinds::rvm::{LogDevice, Recoverable};
pub use kinds::zoned::Zoned;
pub use kinds::{Ftl, Kind};
pub use load::BUILT_IN;
pub use part::Part;
pub use route::Route;
pub use stacks::Software;
pub use text::{Difference, diff, template};

use nvlab_controller::block_map::Log;
use nvlab_medium::flash::PlaneReads;
use nvlab_units::{Geometry, Rate, Span};
use std::collections::BTreeMap;

/// A design with every value filled in and checked.
#[derive(Clone, Debug)]
pub struct Design {
    /// Short name, used in results.
    pub name: String,
    /// One-line description; may be empty.
    pub about: String,
    /// The publication it follows; may be empty.
    pub cite: String,
    /// The media by name: only those the controller uses.
    pub media: BTreeMap<String, Medium>,
    /// How the chips of the data medium are wired.
    pub array: Array,
    /// The controller.
    pub ftl: Ftl,
    /// The driver in front of the controller.
    pub route: Option<Route>,
    /// The link and software between host and device.
    pub path: HostPath,
    /// Every value with its origin, in the order of the key table.
    pub resolved: Vec<Resolved>,
}

/// A medium of a design.
#[derive(Clone, Debug, PartialEq)]
pub struct Medium {
    /// The part it is made of, if it is made of one.
    pub part_name: Option<String>,
    /// Its properties.
    pub part: Part,
}

/// How the chips of the data medium are wired.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Chips in lockstep.
    pub gang: u32,
    /// Planes programmed together.
    pub planes: u32,
    /// Rate of one channel.
    pub transfer: Rate,
    /// Maximum number of dies that program at the same time, if limited.
    pub programs: Option<u32>,
    /// The resulting shape, in mapping units.
    pub geometry: Geometry,
    /// Mapping units that come with one read of the cells.
    pub units_per_read: u32,
    /// How reads use the planes and page registers.
    pub reads: PlaneReads,
}

/// The link and software between host and device.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPath {
    /// The kind of link.
    pub kind: PathKind,
    /// Rate of the link, per direction if it has two; `None`: no limit.
    pub rate: Option<Rate>,
    /// Rate towards the device.
    pub rate_write: Option<Rate>,
    /// Maximum number of requests in the device at the same time.
    pub queue: u32,
    /// Bytes one access of a memory bus moves, or of a burst; 0 for other links.
    pub word_bytes: u32,
    /// Accesses or bursts that a processor has in flight.
    pub outstanding: u32,
    /// Time of the host's software, for one request; zero if it has stages.
    pub overhead_host: Span,
    /// The host's software as stages.
    pub software: Option<Software>,
    /// Time of the link and its protocol, for one request; not the controller's own time (`ftl.overhead`).
    pub overhead_device: Span,
    /// Time for which a request occupies the device's front end.
    pub command: Span,
    /// The same of a write.
    pub command_write: Span,
}

/// Kinds of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// None: requests reach the controller at once.
    Direct,
    /// PCIe with NVMe queues.
    Nvme,
    /// SATA.
    Sata,
    /// A simple host bus.
    Bus,
    /// The processor's own bus: words are loaded and stored.
    MemoryBus,
    /// The processor's memory channels: it moves blocks in bursts.
    Ddr,
    /// CXL: words are loaded and stored, blocks are requested.
    CxlMem,
}

impl PathKind {
    /// Both directions at the same time.
    pub fn full_duplex(self) -> bool {
        matches!(self, PathKind::Direct | PathKind::Nvme | PathKind::CxlMem)
    }
}

impl Design {
    /// Reads and resolves a design: a built-in name (`ssd-tlc`, `builtin:ssd-tlc`) or the path of a file
    /// (with a `/` or `.toml`), changed by `sets`, each `KEY=VALUE`.
    pub fn load(name_or_path: &str, sets: &[String]) -> Result<Design, DesignErrors> {
        load::load(name_or_path, sets)
    }

    /// Reads and resolves a design from a text; `name` is its name in messages, parts are looked up relative
    /// to it.
    pub fn parse(name: &str, text: &str, sets: &[String]) -> Result<Design, DesignErrors> {
        load::parse(name, text, sets)
    }

    /// Bytes the host can address.
    pub fn capacity_bytes(&self) -> u64 {
        self.ftl.logical_units() as u64 * self.ftl.unit_bytes() as u64
    }

    /// Bytes the host can store: all that it can address, unless there are gaps among the addresses.
    pub fn held_bytes(&self) -> u64 {
        self.ftl.kind().held_units() as u64 * self.ftl.unit_bytes() as u64
    }

    /// True if a medium holds data, map, buffer or metadata.
    pub fn uses(&self, medium: &str) -> bool {
        self.ftl.uses(medium) || self.route.as_ref().is_some_and(|route| route.pram == medium)
    }

    /// Whether its controller is a block map with log blocks.
    pub fn has_log_blocks(&self) -> bool {
        matches!(&self.ftl, Ftl::Blocks(blocks) if !matches!(blocks.config.log, Log::None))
    }

    /// Bytes of flash that are paid for, without spare area.
    pub fn raw_bytes(&self) -> u64 {
        self.ftl.kind().bought(&self.array.geometry).into_iter().map(|(_, bytes)| bytes).sum()
    }
}

#[cfg(test)]
mod tests;
