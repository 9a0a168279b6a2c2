//! What files of measurements have in common: fio's JSON, files of `nvlab probe`, latency logs of fio, tables of SNIA's performance test.

use super::Figure;
use super::amount::Unit;
use super::what::{Requests, State, What};
use nvlab_design::toml_reader::Place;
use std::path::PathBuf;

/// Requests of at least so many bytes are told in bytes a second.
const LARGE: u64 = 64 << 10;

/// A file with what was measured, and what is known of how.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The file.
    pub file: PathBuf,
    /// Which sibling was measured.
    pub size: usize,
    /// In which state it was written to, if known.
    pub state: Option<State>,
    /// Requests in flight, where a file does not say.
    pub depth: Option<u32>,
    /// What its figures may be off, as a share.
    pub tolerance: f64,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Requests a second.
    pub per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Bytes in all.
    pub bytes: f64,
    /// Mean and 99th percentile, in seconds.
    pub latencies: Option<[f64; 2]>,
}

/// A job of fio that is no plain one: it is simulated on the design that was found, and fitted by nothing.
#[derive(Clone, Debug)]
pub struct OtherJob {
    /// Which sibling was measured.
    pub size: usize,
    /// Its name.
    pub name: String,
    /// What makes it another kind of load.
    pub why: &'static str,
    /// Its options: names and values, no value for a flag.
    pub options: Vec<(String, String)>,
    /// In which state the drive was, or is taken to have been.
    pub state: State,
    /// Its reads and writes, as measured.
    pub sides: [Side; 2],
}

/// A closed loop of requests of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    /// One after another, not at random.
    pub is_sequential: bool,
    /// Share of reads.
    pub reads: f64,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// In flight.
    pub depth: u32,
    /// The state of the drive.
    pub state: State,
}

impl Closed {
    /// Its figure, from its reads and writes. The mix is given: of both rates, one says all. `None` if it served nothing.
    pub fn figure(
        self,
        of: &Measured,
        [read, write]: [Side; 2],
        (source, at): (String, &Place),
    ) -> Option<Figure> {
        let is_write = self.reads < 0.5;
        let side = if is_write { write } else { read };
        let (unit, value) = match self.is_sequential || self.block_bytes >= LARGE {
            true => (Unit::BytesPerSecond, side.bytes_per_s),
            false => (Unit::PerSecond, side.per_s),
        };
        let requests = Requests {
            is_sequential: self.is_sequential,
            is_write,
            mixed: (0.0 < self.reads && self.reads < 1.0).then_some(self.reads),
            block_bytes: self.block_bytes,
            depth: self.depth,
            state: self.state,
        };
        (value > 0.0).then(|| Figure {
            size: of.size,
            what: What::Rate(requests, unit),
            value,
            latencies: side.latencies,
            tolerance: of.tolerance,
            source,
            at: at.clone(),
        })
    }
}
