//! A memory part, typed: the datasheet of one chip, memory or disk.
//!
//! The same keys are used in a part file and, to change single values, in `[media.NAME]` of a design; both are read
//! by [`read`].

mod read;

pub use read::read;

use nvlab_medium::flash::{Faults, Registers, Slowing};
use nvlab_units::quantity::Price;
use nvlab_units::{Interruption, Rate, Span};

/// A storage medium.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// NAND flash.
    Nand(Flash),
    /// NOR flash.
    Nor(Flash),
    /// Phase-change or spin-torque memory.
    Pcm(Pcm),
    /// DRAM or SRAM.
    Ram(Ram),
    /// A disk.
    Disk(Disk),
}

/// A flash chip (one die).
#[derive(Clone, Debug, PartialEq)]
pub struct Flash {
    /// `slc`, `mlc`, `tlc` or `qlc`; empty for NOR.
    pub cell: String,
    /// Bytes of one page of one plane; NOR: of one program operation.
    pub page_bytes: u64,
    /// Bytes of spare area of a page.
    pub oob_bytes: u64,
    /// Pages of an erase block of one plane.
    pub pages_per_block: u32,
    /// Erase blocks of one plane.
    pub blocks_per_plane: u32,
    /// Planes of the die.
    pub planes: u32,
    /// Pages of a word line that one program operation writes in each plane.
    pub one_shot: u32,
    /// Cells to register: one time, or one for each one-shot page.
    pub read: Vec<Span>,
    /// How a die reads its planes.
    pub plane_reads: PlaneSenses,
    /// What a plane can do while its data crosses the channel.
    pub registers: Registers,
    /// Time of the error correction for a read.
    pub decode: Span,
    /// One program operation.
    pub program: Span,
    /// One block.
    pub erase: Span,
    /// NOR: bytes of a page buffer of the chip, and the rate of programming through it.
    pub page_buffer: Option<(u64, Rate)>,
    /// What a read interrupts of a program or erase in progress.
    pub interruption: Interruption,
    /// Whether relocation can stay inside the die.
    pub copy_back: bool,
    /// Rate of the interface.
    pub transfer: Rate,
    /// Rated program/erase cycles of a block.
    pub endurance: u32,
    /// Relative standard deviation of the cycles a block endures.
    pub endurance_spread: f64,
    /// Years a lightly worn cell keeps its data; `None`: not limited.
    pub retention_years: Option<u32>,
    /// NOR: how the cells slow down; `None`: they do not.
    pub slowing: Option<Slowing>,
    /// The fault model; the seed is 0 here.
    pub faults: Faults,
    /// Price by raw capacity.
    pub price: Option<Price>,
}

/// The pages a die senses at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaneSenses {
    /// A page of one plane.
    One,
    /// The same page of all planes.
    Multi,
    /// A page of each plane.
    Independent,
}

impl Flash {
    /// Bytes of the die, without spare area.
    pub fn bytes(&self) -> u64 {
        let blocks = self.blocks_per_plane as u64 * self.planes as u64;
        blocks.saturating_mul(self.pages_per_block as u64).saturating_mul(self.page_bytes)
    }
}

/// A memory that is overwritten in place and wears.
#[derive(Clone, Debug, PartialEq)]
pub struct Pcm {
    /// Its capacity, its words and its times; `write` is one program step, `write_next` the same.
    pub cells: Words,
    /// Bytes programmed in one step.
    pub step_bytes: u32,
    /// Bytes whose wear is counted together.
    pub line_bytes: u32,
    /// Bytes that a power cut leaves entirely old or entirely new.
    pub atomic_bytes: u32,
    /// Share of words assumed to differ when contents cannot be compared.
    pub differing: f64,
    /// Start-Gap in front of it.
    pub start_gap: Option<Levelling>,
    /// Writes a line endures.
    pub endurance: u32,
    /// Price by capacity.
    pub price: Option<Price>,
}

/// Start-Gap: how the lines of a memory move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levelling {
    /// Line writes of a region between two moves.
    pub interval: u32,
    /// Regions, of each controller of the memory.
    pub regions: u32,
    /// A random permutation of the lines is in front.
    pub randomise: bool,
}

/// A memory that is overwritten in place.
#[derive(Clone, Debug, PartialEq)]
pub struct Ram {
    /// Its capacity, its words and its times.
    pub cells: Words,
    /// What keeps the contents while the power is off.
    pub backup: Backup,
    /// The current that takes, uA for each GiB, if known.
    pub retention_ua_per_gib: Option<u32>,
    /// Price by capacity.
    pub price: Option<Price>,
}

/// Capacity and times of a memory that is accessed by words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Words {
    /// Bytes.
    pub size_bytes: u64,
    /// Bytes one access moves.
    pub word_bytes: u32,
    /// Reading the first word of an access.
    pub read: Span,
    /// Reading every further word.
    pub read_next: Span,
    /// Writing the first word of an access.
    pub write: Span,
    /// Writing every further word.
    pub write_next: Span,
    /// Banks that work in parallel.
    pub banks: u32,
    /// Bytes that lie together in one bank.
    pub stripe_bytes: u64,
}

impl Words {
    /// The time one bank takes to write `bytes`.
    pub fn store(&self, bytes: u64) -> Span {
        let words = bytes.div_ceil(self.word_bytes as u64);
        let rest = self.write_next.ps().saturating_mul(words.saturating_sub(1));
        let first = if words == 0 { 0 } else { self.write.ps() };
        Span::from_ps(first.saturating_add(rest))
    }
}

/// What keeps the contents of a memory while the power is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backup {
    /// Nothing.
    None,
    /// A battery; for how long, `None`: longer than any outage.
    Battery(Option<Span>),
    /// A capacitor; for how long.
    Capacitor(Span),
}

/// A rotating disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// Bytes.
    pub size_bytes: u64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Average seek.
    pub seek: Span,
    /// Seek to the next cylinder.
    pub seek_track: Span,
    /// Seek from the first cylinder to the last.
    pub seek_full: Span,
    /// One revolution.
    pub rotation: Span,
    /// Sustained rate of a track under the head.
    pub transfer: Rate,
    /// Tracks of a cylinder.
    pub surfaces: u32,
    /// From the arrival of a request until the drive acts on it.
    pub overhead: Span,
    /// Price by capacity.
    pub price: Option<Price>,
}

impl Part {
    /// Its kind, as in files.
    pub fn kind(&self) -> &'static str {
        match self {
            Part::Nand(_) => "nand",
            Part::Nor(_) => "nor",
            Part::Pcm(_) => "pcm",
            Part::Ram(_) => "ram",
            Part::Disk(_) => "disk",
        }
    }
    /// The chip, if it is of kind `nand`.
    pub fn nand(&self) -> Option<&Flash> {
        match self {
            Part::Nand(part) => Some(part),
            _ => None,
        }
    }
    /// The chip, if it is of kind `nor`.
    pub fn nor(&self) -> Option<&Flash> {
        match self {
            Part::Nor(part) => Some(part),
            _ => None,
        }
    }
    /// The memory, if it is of kind `pcm`.
    pub fn pcm(&self) -> Option<&Pcm> {
        match self {
            Part::Pcm(part) => Some(part),
            _ => None,
        }
    }
    /// The memory, if it is of kind `ram`.
    pub fn ram(&self) -> Option<&Ram> {
        match self {
            Part::Ram(part) => Some(part),
            _ => None,
        }
    }
    /// It, if a device can use it in place.
    pub fn in_place(&self) -> Option<&Part> {
        matches!(self, Part::Pcm(_) | Part::Disk(_)).then_some(self)
    }
    /// The disk, if it is of kind `disk`.
    pub fn disk(&self) -> Option<&Disk> {
        match self {
            Part::Disk(part) => Some(part),
            _ => None,
        }
    }
    /// Bytes of one piece.
    pub fn bytes(&self) -> u64 {
        match self {
            Part::Nand(flash) | Part::Nor(flash) => flash.bytes(),
            Part::Pcm(pcm) => pcm.cells.size_bytes,
            Part::Ram(ram) => ram.cells.size_bytes,
            Part::Disk(disk) => disk.size_bytes,
        }
    }
    /// Its price by capacity.
    pub fn price(&self) -> Option<Price> {
        match self {
            Part::Nand(flash) | Part::Nor(flash) => flash.price,
            Part::Pcm(pcm) => pcm.price,
            Part::Ram(ram) => ram.price,
            Part::Disk(disk) => disk.price,
        }
    }
}
