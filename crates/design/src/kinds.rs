//! The kinds of controllers: their common interface, and the one place that lists them.
//!
//! A kind is one file: its keys, the code that reads them into the controller's own configuration, its checks and its
//! media. Parts that several kinds share are bricks.

pub mod blocks;
pub mod cached;
pub mod direct;
pub mod envy;
pub mod hftl;
pub mod page;
pub mod ram_disk;
pub mod rvm;
pub mod zoned;

use super::bricks::array::Wiring;
use super::bricks::memories::Media;
use super::bricks::slc::SlcBlocks;
use super::context::Context;
use super::key::Preset::Required;
use super::key::{Key, key};
use super::{Array, Design, HostPath, Payload};
use crate::toml_reader::datum::Shape;
use blocks::BlockMapped;
use cached::Cached;
use direct::Direct;
use envy::Envy;
use hftl::PramMapped;
use nvlab_units::Geometry;
use nvlab_workload::Serves;
use page::PageMapped;
use ram_disk::RamDisk;
use rvm::Recoverable;
use zoned::Zoned;

/// The controller, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Ftl {
    /// `page`: a page map over NAND.
    Page(PageMapped),
    /// `page` with lines of a cache in front: words of a memory behind CXL.
    Cached(Cached),
    /// `block`, `bast` or `fast`: a block map, with or without log blocks, over NAND.
    Blocks(BlockMapped),
    /// `hftl`: a page map over NAND whose map lies in PRAM.
    Hftl(PramMapped),
    /// `zoned`: zones over NAND, written in order.
    Zoned(Zoned),
    /// `direct`: memories or disks used in place.
    Direct(Direct),
    /// `envy`: a memory of NOR flash and battery-backed SRAM.
    Envy(Envy),
    /// `ram-disk`: a memory as blocks, without a map.
    RamDisk(RamDisk),
    /// `rvm`: recoverable memory in the host, and the device its log is on.
    Rvm(Recoverable),
}

/// Queries of the rest of the crate to any kind of controller.
pub trait Kind {
    /// The data medium, by name.
    fn medium(&self) -> &str;
    /// The other media that it uses, by name.
    fn memories(&self) -> Vec<&str>;
    /// Blocks of the data medium used in SLC mode, if any.
    fn slc(&self) -> Option<&SlcBlocks> {
        None
    }
    /// Bytes it stores in a memory whose size may be derived from them.
    fn takes(&self, _memory: &str) -> u64 {
        0
    }
    /// Bytes of a mapping unit.
    fn unit_bytes(&self) -> u32;
    /// Units the host can address.
    fn logical_units(&self) -> u32;
    /// Those of them that can hold something: all, unless there are gaps among the addresses.
    fn held_units(&self) -> u32 {
        self.logical_units()
    }
    /// Arrays of flash by medium, each with the bytes that are paid for, without spare area.
    fn bought(&self, data: &Geometry) -> Vec<(&str, u64)> {
        vec![(self.medium(), data.bytes())]
    }
    /// Whether pages of a block are programmed in any order, as the host writes them.
    fn any_page_order(&self) -> bool {
        false
    }
    /// The controller's own check of a design whose values are valid one by one. Nothing is built.
    fn check(&self, design: &Design) -> Result<(), String>;
    /// Whether it serves blocks, words or both.
    fn serves(&self) -> Serves {
        Serves::Blocks
    }
    /// The PRAM that holds the map, by name.
    fn pram(&self) -> Option<&str> {
        None
    }
    /// Bytes the controller uses of it.
    fn pram_taken(&self, _data: &Geometry) -> u64 {
        0
    }
    /// Bytes of this computer's memory that the controller and its media need in a simulation, apart from small
    /// amounts. `payload` is how much of their payload the media store.
    fn memory_bytes(&self, design: &Design, payload: Payload) -> u64;
}

impl Ftl {
    /// The kind behind the enum.
    pub fn kind(&self) -> &dyn Kind {
        match self {
            Ftl::Page(page) => page,
            Ftl::Cached(cached) => cached,
            Ftl::Blocks(blocks) => blocks,
            Ftl::Hftl(hftl) => hftl,
            Ftl::Zoned(zoned) => zoned,
            Ftl::Direct(direct) => direct,
            Ftl::Envy(envy) => envy,
            Ftl::RamDisk(disk) => disk,
            Ftl::Rvm(rvm) => rvm,
        }
    }
    /// The data medium, by name.
    pub fn medium(&self) -> &str {
        self.kind().medium()
    }
    /// True if a medium holds data, map or buffer, or states the properties of blocks in SLC mode.
    pub fn uses(&self, medium: &str) -> bool {
        let slc = self.slc().map(|slc| slc.medium.as_str());
        self.medium() == medium || slc == Some(medium) || self.kind().memories().contains(&medium)
    }
    /// Blocks of the data medium used in SLC mode, if any.
    pub fn slc(&self) -> Option<&SlcBlocks> {
        self.kind().slc()
    }
    /// The page map over NAND, alone or behind a cache of lines; `None` if there is none.
    pub fn page_map(&self) -> Option<&PageMapped> {
        match self {
            Ftl::Page(page) => Some(page),
            Ftl::Cached(cached) => Some(&cached.page),
            _ => None,
        }
    }
    /// Bytes of a mapping unit.
    pub fn unit_bytes(&self) -> u32 {
        self.kind().unit_bytes()
    }
    /// Units the host can address.
    pub fn logical_units(&self) -> u32 {
        self.kind().logical_units()
    }
}

/// The keys of all kinds.
pub const KEYS: [&[Key]; 9] = [
    KIND,
    page::KEYS,
    cached::KEYS,
    blocks::KEYS,
    hftl::KEYS,
    zoned::KEYS,
    envy::KEYS,
    rvm::KEYS,
    direct::KEYS,
];

const KIND: &[Key] = &[key(
    "ftl.kind",
    &[],
    Shape::OneOf(&[
        ("page", "page map: any logical unit to any physical unit, with out-of-place writes and cleaning"),
        (
            "block",
            "a block map without a log: a page is always at its own offset in its block, and every overwrite merges the \
             block",
        ),
        (
            "bast",
            "a block map: pages at their own offsets in their blocks; overwrites go to a log block of their data block \
             (BAST, 2002)",
        ),
        (
            "fast",
            "a block map whose log blocks take overwrites of any data block (FAST, 2007); the log may be a separate \
             array (system 002) or blocks in SLC mode",
        ),
        (
            "hftl",
            "a page map stored in PRAM and updated in place: a unit is a page, and a mount scans nothing (EMSOFT 2008)",
        ),
        (
            "zoned",
            "zones, each written in order and erased as a whole: no map of units and no cleaning (NVMe Zoned Namespaces)",
        ),
        (
            "envy",
            "word-addressable memory of NOR flash behind a battery-backed write buffer and page table (eNVy, ASPLOS \
             1994)",
        ),
        ("ram-disk", "no map: a memory accessed as blocks, with the delays of the memory (NVRamDisk, system 004)"),
        (
            "rvm",
            "no controller: a host with recoverable memory whose log is on the device (system 001; RVM, SOSP 1993)",
        ),
        (
            "direct",
            "no map: units at fixed addresses of a memory overwritten in place (Moneta, MICRO 2010), or of striped disks",
        ),
    ]),
    Required,
    "\"page\"",
)
.about("Kind of controller: how it maps what the host addresses to the medium.")];

/// Reads the controller and the array it works on.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, Ftl)> {
    #[derive(Clone, Copy)]
    enum Kind {
        Page,
        Blocks,
        Hftl,
        Zoned,
        Envy,
        RamDisk,
        Rvm,
        Direct,
    }
    let meanings = [
        ("page", Kind::Page),
        ("block", Kind::Blocks),
        ("bast", Kind::Blocks),
        ("fast", Kind::Blocks),
        ("hftl", Kind::Hftl),
        (zoned::KIND, Kind::Zoned),
        ("envy", Kind::Envy),
        (ram_disk::KIND, Kind::RamDisk),
        ("rvm", Kind::Rvm),
        ("direct", Kind::Direct),
    ];
    let (name, kind) = context.named_choice("ftl.kind", "", &meanings)?;
    match kind {
        Kind::Blocks => blocks::read(context, media, wiring, path, name)
            .map(|(array, blocks)| (array, Ftl::Blocks(blocks))),
        Kind::Hftl => hftl::read(context, media, wiring, path).map(|(array, hftl)| (array, Ftl::Hftl(hftl))),
        Kind::Zoned => {
            zoned::read(context, media, wiring, path).map(|(array, zoned)| (array, Ftl::Zoned(zoned)))
        }
        Kind::Direct => {
            direct::read(context, media, wiring, path).map(|(array, direct)| (array, Ftl::Direct(direct)))
        }
        Kind::Envy => envy::read(context, media, wiring, path).map(|(array, envy)| (array, Ftl::Envy(envy))),
        Kind::RamDisk => {
            ram_disk::read(context, media, wiring, path).map(|(array, disk)| (array, Ftl::RamDisk(disk)))
        }
        Kind::Rvm => rvm::read(context, media, wiring, path).map(|(array, rvm)| (array, Ftl::Rvm(rvm))),
        Kind::Page if cached::is_asked(context) => {
            cached::read(context, media, wiring, path).map(|(array, cached)| (array, Ftl::Cached(cached)))
        }
        Kind::Page => page::read(context, media, wiring, path).map(|(array, page)| (array, Ftl::Page(page))),
    }
}
