//! IOzone's modes on a FAT volume: a client reads and writes one file through a FAT implementation (the `fatfs` crate)
//! and a sector cache, which determine the requests to the device.
//!
//! The client runs once, when the workload is made, over an image in memory; its requests are recorded with their
//! payload and replayed one after the other. So the requests are a function of the text, the capacity and the seed
//! (of the random modes) alone, and a device that inspects the written data sees a real volume.
//!
//! - Preparation (not measured): the volume is formatted, a directory created, other files fill it to the requested
//!   share, and for every mode but `write` the file is written once, as IOzone requires (`-i 0` first).
//!   The volume is made slightly shorter than the device if clusters then begin at multiples of their size, as
//!   formatters for flash align them (FAT32; the fixed root of FAT12 and FAT16 leaves them a sector off).
//! - File data goes to the device directly, at most a cluster at a time: there is no data cache. Entries of FATs
//!   and directories go through the sector cache and are written when the client syncs: after every record (a file
//!   system that survives a power cut after each operation, as TFS4 is said to do; `-o`), or when the file is
//!   closed.
//! - Not modelled: the log of TFS4, its processor time, and dates finer than FAT's 2 s: dates advance as if the client
//!   moved 1 MB/s.

mod image;
mod record;
mod spec;
#[cfg(test)]
mod tests;

pub use fatfs::FatType;
pub use spec::KIND;

use super::BlockWorkload;
use crate::{Batch, Pacing, Request, Workload};
use std::ops::Range;
use std::sync::Arc;

/// How the file is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A new file, record after record.
    Write,
    /// The same again over the file.
    Rewrite,
    /// The file, record after record.
    Read,
    /// The same again.
    Reread,
    /// Every record once, in random order.
    RandomRead,
    /// Every record once, in random order.
    RandomWrite,
}

impl Mode {
    /// All of them, as they are written.
    pub const ALL: [(&str, Mode); 6] = [
        ("write", Mode::Write),
        ("rewrite", Mode::Rewrite),
        ("read", Mode::Read),
        ("reread", Mode::Reread),
        ("random-read", Mode::RandomRead),
        ("random-write", Mode::RandomWrite),
    ];

    fn is_read(self) -> bool {
        matches!(self, Mode::Read | Mode::Reread | Mode::RandomRead)
    }
    fn is_random(self) -> bool {
        matches!(self, Mode::RandomRead | Mode::RandomWrite)
    }
}

/// When dirty entries of FATs and directories are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// After every record.
    Record,
    /// When the file is closed.
    Close,
}

/// The configuration of the workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IozoneConfig {
    /// What is done.
    pub mode: Mode,
    /// Bytes of a record.
    pub record_bytes: u32,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The FAT variant; `None`: determined by the number of clusters.
    pub fat: Option<FatType>,
    /// Bytes of a cluster.
    pub cluster_bytes: u32,
    /// Share of the volume's clusters in use when the measurement begins (ends, for mode `write`).
    pub fill: f64,
    /// Bytes of the sector cache.
    pub cache_bytes: u64,
    /// When metadata are written.
    pub sync: Sync,
    /// Bytes of the volume; `None` for the whole device.
    pub span: Option<u64>,
}

impl Default for IozoneConfig {
    /// 16 MiB written in records of 4 KiB to an empty volume of 4 KiB clusters, synced after each.
    fn default() -> IozoneConfig {
        IozoneConfig {
            mode: Mode::Write,
            record_bytes: 4096,
            file_bytes: 16 << 20,
            fat: None,
            cluster_bytes: 4096,
            fill: 0.0,
            cache_bytes: 256 << 10,
            sync: Sync::Record,
            span: None,
        }
    }
}

/// What the client did, request by request.
struct Recording {
    preparation: Vec<Request>,
    measured: Vec<Request>,
    /// The payload of the requests, except all-zero writes, in sectors; [`Request::payload`] counts them.
    payload: Vec<u8>,
    zeros: Vec<u8>,
    /// Clusters in use at the end, and in total.
    clusters: (u32, u32),
}

impl std::fmt::Debug for Recording {
    /// Only its length: the contents are too long to show.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recording of {} + {} requests", self.preparation.len(), self.measured.len())
    }
}

/// The workload.
#[derive(Clone, Debug)]
pub struct Iozone {
    config: IozoneConfig,
    recording: Arc<Recording>,
    volume_bytes: u64,
    prepared: usize,
    issued: usize,
}

/// Appends the next requests of `list`, of which `issued` were appended before, to a batch.
fn append(list: &[Request], issued: &mut usize, batch: &mut Batch) -> usize {
    assert!(batch.room() > 0, "a full batch cannot be filled");
    let count = batch.room().min(list.len() - *issued);
    let mut next = list[*issued..*issued + count].iter();
    batch.extend(count, || *next.next().expect("as many as were counted"));
    *issued += count;
    count
}

impl Workload for Iozone {
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: 1 }
    }

    fn footprint(&self) -> Range<u64> {
        0..self.volume_bytes
    }

    /// Flushes are not counted.
    fn len_hint(&self) -> Option<u64> {
        let left = self.recording.measured[self.issued..].iter();
        Some(left.filter(|request| request.op != crate::Op::Flush).count() as u64)
    }

    /// One line: what the client does, and how full the volume is.
    fn describe(&self) -> String {
        let (used, all) = self.recording.clusters;
        let written = |request: &&Request| request.op == crate::Op::Write;
        let writes = self.recording.measured.iter().filter(written);
        let metadata: u64 = writes.filter(|request| request.payload > 0).map(|r| r.bytes as u64).sum();
        format!(
            "{} B of file, {metadata} B of FATs and directories written, {:.1} % of {all} clusters in use",
            self.config.file_bytes,
            used as f64 / all as f64 * 100.0
        )
    }
}

impl BlockWorkload for Iozone {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        append(&self.recording.measured, &mut self.issued, batch)
    }

    fn prepare(&mut self, batch: &mut Batch) -> usize {
        append(&self.recording.preparation, &mut self.prepared, batch)
    }

    fn carries_payload(&self) -> bool {
        true
    }

    fn client_bytes(&self) -> Option<u64> {
        Some(self.config.file_bytes)
    }

    fn payload(&self, request: &Request) -> &[u8] {
        let bytes = request.bytes as usize;
        match request.payload.checked_sub(1) {
            None => &self.recording.zeros[..bytes],
            Some(sector) => &self.recording.payload[sector as usize * record::SECTOR..][..bytes],
        }
    }
}
