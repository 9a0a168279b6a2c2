//! What was asked of a device over its life, whoever served it and however often: for its health log.
//!
//! The counts are in a mapped file beside the media, as they are: a killed server loses none. They are no part of the
//! device: without the file they begin anew.

use nvlab_os::Mapping;
use nvlab_units::Span;
use nvlab_workload::Op;

/// Counts of a device's life.
#[derive(Debug)]
pub(crate) struct Life(Mapping);

/// Their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lived {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub power_cycles: u64,
    pub unsafe_shutdowns: u64,
    /// Time that it was on, before the power came back last.
    pub on_seconds: u64,
}

/// Places of the counts, as words of 8 bytes.
const READS: usize = 0;
const READ_BYTES: usize = 1;
const WRITES: usize = 2;
const WRITTEN_BYTES: usize = 3;
const POWER_CYCLES: usize = 4;
const UNSAFE_SHUTDOWNS: usize = 5;
const ON_SECONDS: usize = 6;

impl Life {
    /// Length of the file.
    pub const BYTES: u64 = 64;

    /// Counts in a mapping of [`Life::BYTES`]; the device was just switched on, perhaps after its server had been killed.
    pub fn new(mapping: Mapping, was_killed: bool) -> Life {
        let mut life = Life(mapping);
        life.add(POWER_CYCLES, 1);
        life.add(UNSAFE_SHUTDOWNS, u64::from(was_killed));
        life
    }

    fn word(&self, place: usize) -> u64 {
        u64::from_le_bytes(self.0.as_slice()[8 * place..][..8].try_into().expect("8 bytes"))
    }

    fn add(&mut self, place: usize, count: u64) {
        let sum = self.word(place).wrapping_add(count);
        self.0.as_mut_slice()[8 * place..][..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// A request was served.
    #[inline]
    pub fn count(&mut self, op: Op, bytes: u32) {
        let (requests, sum) = match op {
            Op::Read => (READS, READ_BYTES),
            Op::Write => (WRITES, WRITTEN_BYTES),
            _ => return,
        };
        self.add(requests, 1);
        self.add(sum, bytes as u64);
    }

    /// The power failed and came back, after it had been on for so long.
    pub fn cut(&mut self, on: Span) {
        self.add(POWER_CYCLES, 1);
        self.add(UNSAFE_SHUTDOWNS, 1);
        self.off(on);
    }

    /// It is switched off, after it had been on for so long.
    pub fn off(&mut self, on: Span) {
        self.add(ON_SECONDS, on.seconds() as u64);
    }

    pub fn so_far(&self) -> Lived {
        Lived {
            reads: self.word(READS),
            read_bytes: self.word(READ_BYTES),
            writes: self.word(WRITES),
            written_bytes: self.word(WRITTEN_BYTES),
            power_cycles: self.word(POWER_CYCLES),
            unsafe_shutdowns: self.word(UNSAFE_SHUTDOWNS),
            on_seconds: self.word(ON_SECONDS),
        }
    }
}
