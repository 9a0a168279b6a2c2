//! What is said of a drive: its facts, and its figures with the conditions they were measured under.
//!
//! ```toml
//! schema = 1
//! [drive]
//! name      = "970-evo-plus"
//! capacity  = ["500 GB", "1 TB"]     # one, or siblings that share flash and controller
//! interface = "PCIe 3.0 x4"          # or "SATA"
//! class     = "client"               # or "data-centre"
//! cells     = "TLC"
//! layers    = 92                     # if known
//! dies      = [16, 32]               # if known; 0: not known
//! source    = "the data sheet"
//! [known]                            # numbers that are known, as priors have them: exactly, or between two
//! read      = "50 us"
//! [[figure]]
//! capacity  = "1 TB"                 # one of the above; not needed if there is one
//! what      = "random read"          # or sequential, and write; endurance; cache
//! value     = "600k IOPS"            # or a rate, "3.5 GB/s", or a latency, "85 us"
//! bs        = "4 KiB"                # qd, state = "fresh" | "cache" | "after cache" | "full" | "steady"
//! tolerance = "5 %"                  # what the figure may be off; default 5 %
//! [[measured]]
//! file      = "fio-results.json"     # beside this file: fio's JSON or latency log, or a table of SNIA's test; capacity, state and
//!                                    # tolerance as of a figure, qd where the file does not say it
//! ```
//!
//! A figure is a [`What`] and a value in base units. A job that fio measured is the same, with its latencies beside.
//!
//! | file | what |
//! |---|---|
//! | [`what`](mod@what) | what a figure is of, and its job as a run |
//! | [`amount`] | values with units as data sheets write them |
//! | `read` | the file |
//! | `measured` | what files of measurements have in common |
//! | `fio`, `log`, `table` | fio's JSON, its latency logs, tables of SNIA's test |
//! | [`doubts`] | figures that contradict each other or physics |

pub mod amount;
pub mod doubts;
mod fio;
mod log;
mod measured;
mod read;
mod table;
pub mod what;

pub use amount::{Amount, Unit};
pub use measured::{Measured, OtherJob, Side};
pub use what::{Load, State, What};

use nvlab_design::toml_reader::{FileError, Place};
use std::path::{Path, PathBuf};

/// The cells of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Three bits.
    Tlc,
    /// Four bits.
    Qlc,
}

impl Cells {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Cells::Tlc => "TLC",
            Cells::Qlc => "QLC",
        }
    }
    /// Bits of a cell.
    pub fn bits(self) -> u32 {
        match self {
            Cells::Tlc => 3,
            Cells::Qlc => 4,
        }
    }
}

/// Who a drive is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A computer: it has a cache in SLC mode.
    Client,
    /// A server: it has power-loss protection and no cache.
    DataCentre,
}

/// The link to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// SATA, 6 Gbit/s.
    Sata,
    /// PCIe of a generation, with so many lanes.
    Pcie {
        /// 2 to 5.
        generation: u32,
        /// 1 to 16.
        lanes: u32,
    },
}

impl Link {
    /// Bytes a second after the line code: what no drive exceeds.
    pub fn bytes_per_s(self) -> f64 {
        match self {
            Link::Sata => 600e6,
            Link::Pcie { generation: 2, lanes } => 500e6 * f64::from(lanes),
            Link::Pcie { generation, lanes } => {
                984.6e6 * f64::from(1u32 << (generation - 3)) * f64::from(lanes)
            }
        }
    }
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Link::Sata => f.write_str("SATA"),
            Link::Pcie { generation, lanes } => write!(f, "PCIe {generation}.0 x{lanes}"),
        }
    }
}

/// What is known of a drive besides its figures.
#[derive(Clone, Debug)]
pub struct Drive {
    /// Its name, also that of the design.
    pub name: String,
    /// Bytes for the host, of each sibling.
    pub capacities: Vec<u64>,
    /// Dies, where known; one for each capacity.
    pub dies: Vec<Option<u32>>,
    /// The link.
    pub link: Link,
    /// Who it is made for.
    pub class: Class,
    /// The cells of its flash.
    pub cells: Cells,
    /// Layers of its flash.
    pub layers: Option<u32>,
    /// Where the figures are from.
    pub source: String,
}

/// Capacities that are sold, over the flash that is a power of two of GiB: 960 GB, 512 GB, 1 TB and 800 GB of it.
const SOLD: [f64; 4] = [0.873, 0.931, 0.909, 0.728];
/// How far a capacity may be from that, as a share.
const NEAR: f64 = 0.01;

impl Drive {
    /// True if capacities of this kind are sold; otherwise its flash may be of any size.
    pub(crate) fn is_sold(&self) -> bool {
        let share = |capacity: &u64| *capacity as f64 / nominal(*capacity);
        let is_known = |share: f64| SOLD.iter().any(|known| (share / known - 1.0).abs() < NEAR);
        self.capacities.iter().all(|capacity| is_known(share(capacity)))
    }

    /// Which sibling has this capacity, in bytes.
    pub fn size_of(&self, bytes: u64) -> Option<usize> {
        self.capacities.iter().position(|known| *known == bytes)
    }
}

/// Flash of drives of this capacity: the power of two of GiB at or above it.
pub(crate) fn nominal(capacity_bytes: u64) -> f64 {
    let gib = capacity_bytes.div_ceil(1 << 30);
    (gib.next_power_of_two() << 30) as f64
}

/// A number of a design that is known: its name among the priors and the values between which it is.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name among the priors.
    pub name: String,
    /// The least value.
    pub low: Amount,
    /// The greatest.
    pub high: Amount,
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Which sibling it is of.
    pub size: usize,
    /// What it is of.
    pub what: What,
    /// Its value, in the base unit of [`What::unit`].
    pub value: f64,
    /// Mean and 99th percentile of the latency of its requests in seconds, if they were measured with it. They are compared, not
    /// fitted: in a closed loop the mean is the depth over the rate, and no closed form here is of the 99th percentile.
    pub latencies: Option<[f64; 2]>,
    /// What it may be off, as a share.
    pub tolerance: f64,
    /// Where it is stated.
    pub source: String,
    /// Where it is written.
    pub at: Place,
}

/// All that is said of a drive.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Its facts.
    pub drive: Drive,
    /// Numbers of the design that are known.
    pub known: Vec<Known>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Jobs that were measured and are no figures: the design that is found is compared with them.
    pub others: Vec<OtherJob>,
    /// What was assumed of measurements, and which of them are not compared.
    pub notes: Vec<String>,
}

impl Figures {
    /// Reads a file, and what was measured besides: files of fio or of SNIA's test, with the state in which the drive was written to.
    pub fn load(path: &Path, (measured, state): (&[PathBuf], Option<State>)) -> Result<Figures, FileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| FileError::new(format!("{}: {error}", path.display())))?;
        read::read(&path.display().to_string(), &text, measured, state)
    }

    /// Reads the text of a file.
    pub fn read(file: &str, text: &str) -> Result<Figures, FileError> {
        read::read(file, text, &[], None)
    }

    /// The name of a figure for people: `1 TB random read of 4 KiB, 128 in flight`.
    pub fn name(&self, figure: &Figure) -> String {
        match self.drive.capacities.len() {
            1 => figure.what.to_string(),
            _ => format!("{}: {}", self.capacity(figure.size), figure.what),
        }
    }

    /// The capacity of a sibling, as it is sold.
    pub fn capacity(&self, size: usize) -> String {
        nvlab_run::number::bytes_decimal(self.drive.capacities[size] as f64).to_string()
    }
}

/// A figures file to start from, for a drive of this name.
pub fn template(name: &str) -> String {
    include_str!("template.toml").replace("my-drive", name)
}

#[cfg(test)]
mod tests;
