//! Jobs that are one load of a device, and nothing more.

use super::{Amount, FioJob, FioJobFile};
use crate::WorkloadError;
use crate::arrivals::Pace;
use crate::block::generator::{Distribution, Mix, Sizes};
use crate::block::together::Issue;

/// A closed loop of requests of one size over one region: what is known of it is its throughput and its latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlainJob {
    /// One request after another; otherwise anywhere with the same probability.
    pub is_sequential: bool,
    /// Share of reads; the others are writes.
    pub reads: f64,
    /// Bytes of a request.
    pub block_bytes: u32,
    /// Requests in flight, of one copy of the job.
    pub depth: u32,
    /// Copies (`numjobs`).
    pub copies: u32,
    span: Option<Amount>,
}

impl PlainJob {
    /// The share of a device of `capacity` bytes that its requests go to.
    pub fn share(&self, capacity: u64) -> f64 {
        let bytes = self.span.map_or(capacity, |span| span.of(capacity, self.block_bytes.into()));
        (bytes as f64 / capacity as f64).min(1.0)
    }
}

impl FioJob {
    /// The job as a plain one, or what makes it another.
    pub fn plain(&self) -> Result<PlainJob, &'static str> {
        let spec = &self.spec;
        let is_sequential = match spec.distribution {
            Distribution::Uniform | Distribution::Shuffled { .. } => false,
            Distribution::Sequential { skip_bytes: 0 } => true,
            _ => return Err("it prefers some places (random_distribution) or skips some"),
        };
        let Mix::Share { read, trim: 0.0 } = spec.mix else { return Err("it trims") };
        let Sizes::Fixed(block_bytes) = spec.sizes else { return Err("its requests differ in size") };
        if spec.read_sizes.as_ref().is_some_and(|sizes| *sizes != Sizes::Fixed(block_bytes)) {
            return Err("its reads have another size than its writes");
        }
        let Pace::Closed { depth } = spec.pace else { return Err("its requests come at given times") };
        if spec.align.is_some_and(|align| align < block_bytes) {
            return Err("its requests begin within blocks (blockalign)");
        }
        match spec.jumps.is_some() || self.issue != Issue::default() {
            true => return Err("it pauses, is held to a rate, or takes what is done in batches"),
            false if spec.flush_every > 0 || spec.fua => return Err("it flushes or forces its writes"),
            false => {}
        }
        let (copies, span) = (self.copies, self.size.or(self.file));
        Ok(PlainJob { is_sequential, reads: read, block_bytes, depth, copies, span })
    }
}

impl FioJobFile {
    /// The text of a section with these options, as fio reports them: names and values, no value for a flag.
    pub fn section_text<'a>(name: &str, options: impl IntoIterator<Item = &'a (String, String)>) -> String {
        let line = |(key, value): &(String, String)| match value.is_empty() {
            true => format!("{key}\n"),
            false => format!("{key}={value}\n"),
        };
        format!("[{name}]\n{}", options.into_iter().map(line).collect::<String>())
    }

    /// The plain job of a section.
    pub fn plain(name: &str, options: &[(String, String)], file: &str) -> Result<PlainJob, PlainError> {
        let read = FioJobFile::parse(&FioJobFile::section_text(name, options), file)?;
        let job = read.phases.iter().flatten().next().ok_or(PlainError::Other("it requests nothing"))?;
        job.plain().map_err(PlainError::Other)
    }
}

/// Why a job is not a plain one.
#[derive(Debug, thiserror::Error)]
pub enum PlainError {
    /// It is no job that is known here.
    #[error(transparent)]
    Wrong(#[from] WorkloadError),
    /// It is another kind of load.
    #[error("{0}")]
    Other(&'static str),
}
