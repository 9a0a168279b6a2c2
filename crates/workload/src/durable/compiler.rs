//! The shape of a compiler on a persistent heap: after each source file it commits what it allocated (system 001, slides 30
//! and 43: 38 files, 15 KB a transaction, 670 ms of computing that the paper's figure leaves out).
//!
//! Only the shape: objects are allocated one after the other, each transaction changes 8 ranges of them (assumed), so that
//! a record with the original's headers has the size given. The bytes are so regular that LZ4 halves them, as the paper's
//! compressor did its compiler's log (slide 47).

use super::{Changes, DurableWorkload};
use crate::arrivals::{Arrivals, Pace};
use crate::words::{self, Words};
use crate::{Pacing, Span, Time, Workload, WorkloadError};
use nvlab_units::Rng;
use nvlab_units::quantity::{self, exact_bytes, exact_span, told_bytes};
use std::ops::Range;

/// What a workload's text begins with.
pub const KIND: &str = "compiler";
const KEYS: [&str; 4] = ["files", "record", "cpu", "passes"];
const RANGES: u64 = 8;
/// Bytes that the original's headers add to a transaction with [`RANGES`] ranges (slide 40).
const HEADERS_BYTES: u64 = 76 + 56 * RANGES;
/// Between two objects: ranges that touch would be joined.
const GAP_BYTES: u64 = 64;
/// In every period of this many bytes, [`NEW_BYTES`] are new and the rest repeats one word: LZ4 halves that.
const PERIOD_BYTES: usize = 64;
const NEW_BYTES: usize = 27;

/// The compiler before it is opened on a memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompilerConfig {
    /// Source files; compiling one is one transaction.
    pub files: u32,
    /// Bytes of a record with the original's headers.
    pub record_bytes: u64,
    /// The compiler's own time for each file, before it commits.
    pub cpu: Span,
    /// Times that all files are compiled; each time into the same objects.
    pub passes: u32,
}

impl CompilerConfig {
    /// Reads a text such as `'compiler files=38 record=15KiB cpu=670ms'`.
    pub fn parse(text: &str) -> Result<CompilerConfig, WorkloadError> {
        let words = Words::new(text, &KEYS, &[])?;
        let record_bytes = words.quantity("record", words::size)?.unwrap_or(15 << 10);
        if !(1024..=1 << 20).contains(&record_bytes) || !record_bytes.is_multiple_of(64) {
            return Err(words.wrong("record", "a multiple of 64 B from 1 KiB to 1 MiB"));
        }
        Ok(CompilerConfig {
            files: words.number("files", 1..=1_000_000)?.unwrap_or(38) as u32,
            record_bytes,
            cpu: words.quantity("cpu", quantity::span)?.unwrap_or(Span::from_ms(670)),
            passes: words.number("passes", 1..=1_000_000)?.unwrap_or(1) as u32,
        })
    }

    /// The workload on a memory of `capacity` bytes; `what` is its name in messages.
    pub fn open(&self, what: &str, capacity: u64, seed: u64) -> Result<Compiler, WorkloadError> {
        let per_file = self.record_bytes + RANGES * GAP_BYTES;
        let end = per_file * self.files as u64;
        if end > capacity {
            let reason = format!(
                "its heap grows to {}, but the memory has {}: use a larger `ftl.memory`, or fewer files",
                told_bytes(end),
                told_bytes(capacity)
            );
            return Err(WorkloadError::DoesNotFit { what: what.to_owned(), reason });
        }
        let arrivals = Arrivals::new(Pace::Closed { depth: 1 }, None, seed);
        Ok(Compiler { config: *self, end, arrivals, bytes: Rng::stream(seed, "objects"), done: 0 })
    }
}

/// One transaction per compiled file, in a closed loop of depth 1.
#[derive(Clone, Debug)]
pub struct Compiler {
    config: CompilerConfig,
    end: u64,
    arrivals: Arrivals,
    bytes: Rng,
    done: u64,
}

impl Compiler {
    fn transactions(&self) -> u64 {
        self.config.files as u64 * self.config.passes as u64
    }

    /// Where an object of a file lies.
    fn object(&self, file: u64, number: u64) -> u64 {
        let total = self.config.record_bytes - HEADERS_BYTES;
        file * (total + RANGES * GAP_BYTES) + total * number / RANGES + number * GAP_BYTES
    }
}

impl DurableWorkload for Compiler {
    fn next(&mut self, changes: &mut Changes) -> Option<Time> {
        changes.clear();
        if self.done == self.transactions() {
            return None;
        }
        let total = self.config.record_bytes - HEADERS_BYTES;
        let mut object = Vec::new();
        for number in 0..RANGES {
            let bytes = total * (number + 1) / RANGES - total * number / RANGES;
            let offset = self.object(self.done % self.config.files as u64, number);
            object.clear();
            object.extend_from_slice(&(self.done + 1).to_le_bytes());
            while object.len() < bytes as usize {
                let is_new = object.len() % PERIOD_BYTES < NEW_BYTES;
                object.push(if is_new { self.bytes.bits() as u8 } else { 1 + (object.len() % 4) as u8 });
            }
            changes.push(offset, &object);
        }
        changes.compute = self.config.cpu;
        self.done += 1;
        self.arrivals.next()
    }

    /// Every object begins with the number of its transaction: files are there whole, and in order.
    fn check(&self, memory: &[u8]) -> Result<(), String> {
        if (memory.len() as u64) < self.end {
            return Err(format!("the memory has {} B, the heap grows to {}", memory.len(), self.end));
        }
        let number = |file: u64, object: u64| {
            let bytes =
                memory[self.object(file, object) as usize..].first_chunk().expect("8 B within the heap");
            u64::from_le_bytes(*bytes)
        };
        let files = self.config.files as u64;
        let last = (0..files).map(|file| number(file, 0)).max().unwrap_or(0);
        for file in 0..files {
            // The last transaction up to `last` that compiled this file.
            let passes = (last + files - 1 - file) / files;
            let wanted = if passes == 0 { 0 } else { (passes - 1) * files + file + 1 };
            if let Some(lost) = (0..RANGES).find(|&object| number(file, object) != wanted) {
                let found = number(file, lost);
                return Err(format!(
                    "object {lost} of file {file} is from transaction {found}, not {wanted}"
                ));
            }
        }
        Ok(())
    }
}

impl Workload for Compiler {
    fn pacing(&self) -> Pacing {
        self.arrivals.pacing()
    }

    fn footprint(&self) -> Range<u64> {
        0..self.end
    }

    fn len_hint(&self) -> Option<u64> {
        Some(self.transactions() - self.done)
    }

    fn describe(&self) -> String {
        let CompilerConfig { files, record_bytes, cpu, passes } = self.config;
        let (record, cpu) = (exact_bytes(record_bytes), exact_span(cpu));
        format!(
            "a compiler's heap: {files} files x {passes}, with a record of {record} and {cpu} of computing each\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_whole_and_in_order() {
        let text = "compiler files=3 record=4KiB passes=2";
        let mut workload = CompilerConfig::parse(text).unwrap().open(text, 1 << 20, 1).unwrap();
        let mut memory = vec![0; workload.footprint().end as usize];
        let mut changes = Changes::default();
        for _ in 0..6 {
            workload.check(&memory).unwrap();
            workload.next(&mut changes).unwrap();
            assert_eq!(changes.bytes() + HEADERS_BYTES, 4096);
            for (index, (offset, data)) in changes.iter().enumerate() {
                if index > 0 {
                    workload.check(&memory).unwrap_err();
                }
                memory[offset as usize..][..data.len()].copy_from_slice(data);
            }
        }
        workload.check(&memory).unwrap();
        assert_eq!(workload.next(&mut changes), None);
    }
}
