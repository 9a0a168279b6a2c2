//! What a figure is of.

use super::amount::Unit;
use nvlab_units::quantity::{display_fraction, exact_bytes};
use std::fmt;
use std::str::FromStr;

/// The state of the drive that a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// New; of a drive with a cache in SLC mode, within the cache.
    Cache,
    /// New, but the cache is full.
    AfterCache,
    /// Every unit was written once.
    Full,
    /// Write amplification of random writes has settled; what is read lies where they left it.
    Steady,
}

impl State {
    /// Every state with its name in files.
    pub const ALL: [(&str, State); 5] = [
        ("fresh", State::Cache),
        ("cache", State::Cache),
        ("after cache", State::AfterCache),
        ("full", State::Full),
        ("steady", State::Steady),
    ];

    /// Its name in files, of two the one that says more.
    pub fn name(self) -> &'static str {
        let last = State::ALL.iter().rfind(|(_, state)| *state == self);
        last.expect("every state has a name").0
    }

    fn words(self) -> &'static str {
        match self {
            State::Cache => ", new",
            State::AfterCache => ", after the cache",
            State::Full => "",
            State::Steady => ", steady",
        }
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<State, String> {
        let found = State::ALL.iter().find(|(name, _)| *name == text).map(|(_, state)| *state);
        found.ok_or_else(|| format!("one of {}", State::ALL.map(|(name, _)| name).join(", ")))
    }
}

/// The load that an endurance is stated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// JEDEC's JESD219 for enterprise drives.
    Jesd219,
    /// Random writes of 4 KiB.
    Random,
    /// Sequential writes.
    Sequential,
}

impl Load {
    /// Every load with its name in files.
    pub const ALL: [(&str, Load); 3] =
        [("jesd219", Load::Jesd219), ("random", Load::Random), ("sequential", Load::Sequential)];
}

/// Requests that a figure is measured with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requests {
    /// One after another, not at random.
    pub is_sequential: bool,
    /// Writes, not reads.
    pub is_write: bool,
    /// Requests of both kinds are in flight, this share of them reads: the figure is that of one of the two.
    pub mixed: Option<f64>,
    /// Bytes of each.
    pub block_bytes: u64,
    /// In flight.
    pub depth: u32,
    /// The state of the drive.
    pub state: State,
}

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// Requests or bytes a second.
    Rate(Requests, Unit),
    /// Latency: its mean, or of writes into a buffer its median.
    Latency(Requests),
    /// Bytes that may be written; for so many years if it is stated in drive writes a day.
    Endurance(Load, Option<f64>),
    /// Bytes a new drive takes at full speed.
    Cache,
}

impl What {
    /// The base unit of its value.
    pub fn unit(self) -> Unit {
        match self {
            What::Rate(_, unit) => unit,
            What::Latency(_) => Unit::Seconds,
            What::Endurance(_, None) | What::Cache => Unit::Bytes,
            What::Endurance(_, Some(_)) => Unit::Dwpd,
        }
    }

    /// The metric of a run that is its value, and the factor from that metric's unit to the base unit here: of endurance, bytes.
    /// `None`: it is not measured but read off the design.
    pub fn metric(self) -> Option<(&'static str, f64)> {
        let name = |requests: Requests, read: &'static str, write: &'static str| match requests.is_write {
            true => write,
            false => read,
        };
        match self {
            What::Rate(requests, Unit::BytesPerSecond) => {
                Some((name(requests, "read.bandwidth", "write.bandwidth"), 1.0))
            }
            What::Rate(requests, _) => Some((name(requests, "read.iops", "write.iops"), 1.0)),
            What::Latency(requests) => Some((name(requests, "read.mean", "write.p50"), 1e-9)),
            What::Endurance(..) => Some(("lifetime.bytes", 1.0)),
            What::Cache => None,
        }
    }

    /// The workload that measures it, with so many requests in flight; empty if nothing is run.
    pub fn workload(self, depth: u32) -> String {
        match self {
            What::Rate(requests, _) | What::Latency(requests) => {
                let Requests { is_sequential, is_write, mixed, block_bytes, .. } = requests;
                let kind = if is_sequential { "sequential" } else { "uniform" };
                let which = match (mixed, is_sequential, is_write) {
                    (Some(reads), ..) => format!("read={}%", reads * 100.0),
                    (_, true, true) => "rw=write".to_string(),
                    (_, true, false) => "rw=read".to_string(),
                    (_, false, true) => "rw=randwrite".to_string(),
                    (_, false, false) => "rw=randread".to_string(),
                };
                format!("{kind} {which} bs={} qd={depth}", exact_bytes(block_bytes).replace(' ', ""))
            }
            What::Endurance(Load::Jesd219, _) => format!("jesd219 qd={depth}"),
            What::Endurance(Load::Random, _) => format!("uniform rw=randwrite bs=4KiB qd={depth}"),
            What::Endurance(Load::Sequential, _) => format!("sequential rw=write bs=128KiB qd={depth}"),
            What::Cache => String::new(),
        }
    }

    /// The metrics of its mean latency and its 99th percentile, in nanoseconds; `None` if it is of no requests.
    pub fn latencies(self) -> Option<[&'static str; 2]> {
        match self {
            What::Rate(requests, _) | What::Latency(requests) => Some(match requests.is_write {
                true => ["write.mean", "write.p99"],
                false => ["read.mean", "read.p99"],
            }),
            What::Endurance(..) | What::Cache => None,
        }
    }

    /// In flight.
    pub fn depth(self) -> u32 {
        match self {
            What::Rate(requests, _) | What::Latency(requests) => requests.depth,
            What::Endurance(..) | What::Cache => 64,
        }
    }

    /// True if the drive cleans while it is measured.
    pub fn cleans(self) -> bool {
        match self {
            What::Rate(requests, _) | What::Latency(requests) => {
                requests.state == State::Steady && (requests.is_write || requests.mixed.is_some())
            }
            What::Endurance(load, _) => load != Load::Sequential,
            What::Cache => false,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = |f: &mut fmt::Formatter<'_>, requests: &Requests| {
            let order = if requests.is_sequential { "sequential" } else { "random" };
            let kind = if requests.is_write { "write" } else { "read" };
            let block = exact_bytes(requests.block_bytes);
            write!(f, "{order} {kind} {block} QD{}", requests.depth)?;
            if let Some(reads) = requests.mixed {
                write!(f, ", {} read", display_fraction(reads))?;
            }
            f.write_str(requests.state.words())
        };
        match self {
            What::Rate(of, _) => requests(f, of),
            What::Latency(of) => {
                f.write_str("latency, ")?;
                requests(f, of)
            }
            What::Endurance(load, _) => {
                let name = Load::ALL.iter().find(|(_, known)| known == load).map_or("", |(name, _)| name);
                write!(f, "endurance, {name}")
            }
            What::Cache => f.write_str("cache"),
        }
    }
}
