//! Clients of a FAT volume: they read and write files through a FAT implementation (the `fatfs` crate) and a sector cache,
//! which determine the requests to the device.
//!
//! A client runs once, when the workload is made, over an image in memory; its requests are recorded with their
//! payload and replayed. So the requests are a function of the text, the capacity and the seed alone, and a device that
//! inspects the written data sees a real volume.
//!
//! - Preparation (not measured): the volume is formatted, other files fill it to the requested share, and the client's
//!   directory and files are created. The volume is made slightly shorter than the device if clusters then begin at
//!   multiples of their size, as formatters for flash align them (FAT32; the fixed root of FAT12 and FAT16 leaves them
//!   a sector off).
//! - Whole sectors of file data go to the device directly, at most a cluster at a time: there is no data cache. Parts of
//!   sectors, and entries of FATs and directories, go through the sector cache and are written when the client syncs.
//! - Not modelled: processor time of the file system, and dates finer than FAT's 2 s.

mod image;
pub mod iozone;
pub mod logger;
#[cfg(test)]
mod tests;
mod volume;

pub use fatfs::FatType;
pub use volume::VolumeConfig;

use super::BlockWorkload;
use crate::{Batch, Pacing, Request, Workload};
use std::ops::Range;
use std::sync::Arc;

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

/// A client of a FAT volume, as a workload.
#[derive(Clone, Debug)]
pub struct FatClient {
    /// Bytes of its files that it reads or writes in the measured part.
    client_bytes: u64,
    pacing: Pacing,
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

impl Workload for FatClient {
    fn pacing(&self) -> Pacing {
        self.pacing
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
            self.client_bytes,
            used as f64 / all as f64 * 100.0
        )
    }
}

impl BlockWorkload for FatClient {
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
        Some(self.client_bytes)
    }

    fn payload(&self, request: &Request) -> &[u8] {
        let bytes = request.bytes as usize;
        match request.payload.checked_sub(1) {
            None => &self.recording.zeros[..bytes],
            Some(sector) => &self.recording.payload[sector as usize * volume::SECTOR..][..bytes],
        }
    }
}
