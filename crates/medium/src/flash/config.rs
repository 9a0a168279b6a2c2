//! The configuration of a flash array: shape, times, endurance, faults. Plain data, filled from a datasheet.

use nvlab_units::{Geometry, Interruption, Rate, Span};
use serde::{Deserialize, Serialize};

/// How cells may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CellRules {
    /// A page is programmed once, in order within its block, then read whole; erase to 1.
    Nand,
    /// A page is programmed once, in any order within its erased block: parts with small blocks allow it, and
    /// block-mapped controllers, which store a page at its own offset, need it.
    NandAnyOrder,
    /// Any byte, any number of times, but bits only go from 1 to 0 (a write is an AND); erase to 1.
    Nor,
}

/// A flash array: chips, their wiring and their faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlashConfig {
    /// How cells may be written.
    pub rules: CellRules,
    /// Shape of the array as the controller sees it.
    pub geometry: Geometry,
    /// Datasheet times.
    pub timing: FlashTiming,
    /// Rated life.
    pub endurance: Endurance,
    /// What goes wrong, and how often.
    pub faults: Faults,
}

impl FlashConfig {
    /// How long a program keeps its die from the next program: the program itself and the transfer of data that the
    /// registers could not hold earlier.
    pub fn program_time(&self) -> Span {
        self.timing.program + self.loading()
    }

    /// [`FlashConfig::program_time`] in a block used with one bit per cell.
    pub fn slc_program_time(&self, mode: &SlcMode) -> Span {
        mode.program + self.slc_loading(mode)
    }

    /// The part of a page's transfer during which its die is blocked.
    pub(super) fn loading(&self) -> Span {
        let transfer = self.timing.transfer.transfer(self.geometry.page_bytes());
        self.timing.reads.registers.loading(transfer, self.timing.one_shot)
    }

    /// [`FlashConfig::loading`] in a block used with one bit per cell.
    pub(super) fn slc_loading(&self, mode: &SlcMode) -> Span {
        let unit = self.timing.transfer.transfer(self.geometry.unit_bytes as u64);
        self.timing.reads.registers.loading(unit * mode.units_per_page as u64, 1)
    }
}

/// Times of one die and its channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlashTiming {
    /// Cells to page register, one entry per page of a word line (lower, middle, upper; one for SLC). Must not
    /// be empty. The units of one program operation are spread over these pages in order.
    pub read: Vec<Span>,
    /// Units that one read of the cells loads into the register (units of one physical page).
    pub units_per_read: u32,
    /// How a die reads its planes.
    pub reads: PlaneReads,
    /// From the arrival of the last byte until the error correction has decoded it: added to every host read. Decoding
    /// keeps pace with the channel, so it delays no other read.
    pub decode: Span,
    /// Pages of a word line that one program operation writes. All must be in the registers before it starts, so most
    /// of them wait until the previous program is done ([`Registers`]).
    pub one_shot: u32,
    /// Program time, register to cells, of one program operation ([`Geometry::page_bytes`]).
    pub program: Span,
    /// Maximum number of dies that program at the same time, if limited by power supply or controller. Programs are
    /// then staggered: with a limit of n, they start at least 1/n of a program time apart.
    pub programs: Option<u32>,
    /// Time to erase one block.
    pub erase: Span,
    /// Rate of the channel between controller and dies.
    pub transfer: Rate,
    /// What a host access does to a program or erase in progress.
    pub interruption: Interruption,
    /// Relocation stays inside the die: the data does not cross the channel.
    pub copy_back: bool,
}

impl FlashTiming {
    /// One bit per cell, one plane, a unit at a time; transfers take no time, nothing is suspended and relocations cross the channel.
    pub fn plain(read: Span, program: Span, erase: Span) -> FlashTiming {
        FlashTiming {
            read: vec![read],
            units_per_read: 1,
            reads: PlaneReads::ONE,
            decode: Span::ZERO,
            one_shot: 1,
            program,
            programs: None,
            erase,
            transfer: Rate::from_bytes_per_second(0),
            interruption: Interruption::Wait,
            copy_back: false,
        }
    }
}

/// How a die reads its planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaneReads {
    /// Planes over which the units of a page are spread. 1: one array read at a time, whatever the part.
    pub planes: u32,
    /// One command senses the same page of all planes (multi-plane read).
    pub together: bool,
    /// Each plane senses its own page at the same time as the others (independent multi-plane read).
    pub independent: bool,
    /// What a plane can do while its data crosses the channel.
    pub registers: Registers,
}

impl PlaneReads {
    /// One plane at a time; transfers do not delay array reads.
    pub const ONE: PlaneReads =
        PlaneReads { planes: 1, together: false, independent: false, registers: Registers::Unlimited };
}

/// The page registers of a plane, beside the latches that hold the pages being programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Registers {
    /// The next sense begins when the data has crossed the channel, and the data of the next program crosses it when the
    /// program before is done.
    One,
    /// Cache read: the next page is sensed while the previous one crosses the channel. Cache program: one page of the
    /// next program crosses it during the program before.
    Two,
    /// Transfers never delay a sense or a program.
    Unlimited,
}

impl Registers {
    /// The part of a program's `transfer` that blocks the die: data that cannot cross the channel during the previous
    /// program.
    pub(super) fn loading(self, transfer: Span, one_shot: u32) -> Span {
        match self {
            Registers::One => transfer,
            Registers::Two => transfer - transfer / one_shot.max(1) as u64,
            Registers::Unlimited => Span::ZERO,
        }
    }
}

/// SLC mode: a block of a part with several bits per cell is used with one, which makes it faster, more durable and
/// smaller. The mode of a block is chosen while it is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlcMode {
    /// Program operations that fill a block; at most as many as in the geometry.
    pub pages_per_block: u32,
    /// Units per program operation; at most as many as in the geometry.
    pub units_per_page: u32,
    /// Cells to page register.
    pub read: Span,
    /// Register to cells: one program operation.
    pub program: Span,
    /// Erase of one block.
    pub erase: Span,
    /// Rated cycles of a block that is always in SLC mode: each erase takes that share of the block's life.
    pub cycles: u32,
}

/// Endurance of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endurance {
    /// Rated program/erase cycles of a block.
    pub cycles: u32,
    /// Relative standard deviation, around the rating, of the cycles a block actually survives; 0 = all blocks
    /// are equal.
    pub spread: f64,
}

/// Fault model. `Faults::NONE` costs nothing at run time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    /// Share of factory bad blocks.
    pub factory_bad: f64,
    /// Probability that one program operation fails on a block at its rated life; grows as (cycles/rated)^2.
    pub program_failure: f64,
    /// Probability that one erase fails on a block at its rated life; grows as (cycles/rated)^2.
    pub erase_failure: f64,
    /// A block past its own endurance fails its next erase.
    pub wear_out: bool,
    /// Bit errors and the correction budget; `None`: reads never fail.
    pub bit_errors: Option<BitErrors>,
    /// Seed of everything random here.
    pub seed: u64,
}

impl Faults {
    /// No faults.
    pub const NONE: Faults = Faults {
        factory_bad: 0.0,
        program_failure: 0.0,
        erase_failure: 0.0,
        wear_out: false,
        bit_errors: None,
        seed: 0,
    };
}

/// Raw bit errors and what the error correction can correct.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BitErrors {
    /// Raw bit error rate of a fresh block.
    pub rate_fresh: f64,
    /// Raw bit error rate at rated life; between the two it grows exponentially with the cycles.
    pub rate_worn: f64,
    /// Bits of one codeword.
    pub codeword_bits: u32,
    /// Correctable bit errors per codeword.
    pub correctable: u32,
    /// How often a failed read is retried with shifted reference voltages.
    pub retries: u32,
    /// The factor by which one retry reduces the error rate.
    pub retry_factor: f64,
}
