//! A heap as a region of recoverable memory: its commits are transactions of an `nvlab_rvm` log, which also groups those of
//! several threads and recovers them. The heap's own logs and epochs are not used.
//!
//! A commit logs the contents of its record. The bytes are changed in memory before they are in the log, under the
//! locks of their objects, which no other thread passes until the log has been forced. Data filled in place (zeros in
//! a page that is reused, the elements of a large array) is logged earlier, in any number of pieces: it is free space
//! until the record is durable, and no crash leaves the record without it. So arrays may be larger than the log.

use crate::error::{Error, Result};
use crate::mutex::locked;
use crate::sync::Mutex;
use nvlab_rvm::{Flush, RawTransaction, Restore, Rvm};
use std::sync::Arc;

/// Ranges in the heap: first byte and bytes.
pub(crate) type Ranges<'a> = &'a mut dyn Iterator<Item = (u64, u64)>;

#[derive(Debug)]
pub(crate) struct Region {
    rvm: Arc<Rvm>,
    memory: Arc<nvlab_rvm::Memory>,
    /// Transactions that are not in use keep their buffers.
    spare: Mutex<Vec<RawTransaction>>,
}

/// The changes of a commit, checked to fit in the log.
#[derive(Debug)]
pub(crate) struct Prepared(RawTransaction);

fn from_rvm(error: nvlab_rvm::Error) -> Error {
    match error {
        nvlab_rvm::Error::Io { what, source } => Error::Io { what, source },
        nvlab_rvm::Error::Failed(why) => Error::Failed(Arc::new(from_rvm(why.as_ref().clone()))),
        nvlab_rvm::Error::Busy(path) => Error::Busy(path),
        nvlab_rvm::Error::TooLarge { needed, most } => Error::TooLarge { needed, most },
        other => Error::Invalid(other.to_string()),
    }
}

impl Region {
    /// Maps the whole pages of a segment.
    pub fn map(rvm: &Arc<Rvm>, segment: &str) -> Result<Region> {
        let bytes = rvm.segment_bytes(segment).map_err(from_rvm)? / 4096 * 4096;
        let memory = rvm.map_raw(segment, 0..bytes).map_err(from_rvm)?;
        Ok(Region { rvm: rvm.clone(), memory, spare: Mutex::default() })
    }

    pub fn start(&self) -> *mut u8 {
        self.memory.start()
    }

    pub fn bytes(&self) -> u64 {
        self.memory.bytes() as u64
    }

    /// Up to `most` bytes from the beginning, before the heap is used.
    pub fn read_start(&self, most: u64) -> Vec<u8> {
        // SAFETY: inside the region, and nobody changes it yet: `Region::map` was the only one to map it.
        unsafe { self.memory.slice(0..most.min(self.bytes()) as usize) }.to_vec()
    }

    /// Commits that were found when the log was opened.
    pub fn recovered(&self) -> u64 {
        self.rvm.recovery().commits
    }

    /// Announces the changes of a commit. An error changes nothing.
    pub fn prepare(&self, ranges: Ranges<'_>) -> Result<Prepared> {
        let spare = locked(&self.spare).pop();
        let mut transaction = spare.unwrap_or_else(|| self.rvm.begin_raw(Restore::No));
        for (at, bytes) in ranges {
            let range = at as usize..(at + bytes) as usize;
            // SAFETY: the caller holds the locks of what lies there. Others may copy it meanwhile, by atomic loads, and the
            // lock tells them to throw that away.
            unsafe { transaction.set_range(&self.memory, range) }.map_err(from_rvm)?;
        }
        Ok(Prepared(transaction))
    }

    /// Commits what has been stored to the prepared ranges; it is durable on return.
    pub fn commit(&self, prepared: Prepared) -> Result<()> {
        self.finish(prepared, Flush::Yes)
    }

    /// Logs data stored to space that only the transaction that took it uses; it is durable before any later commit.
    pub fn fill(&self, ranges: &[(u64, u64)]) -> Result<()> {
        const PIECE: u64 = 4096;
        for &(at, bytes) in ranges {
            for piece in (at..at + bytes).step_by(PIECE as usize) {
                let bytes = PIECE.min(at + bytes - piece);
                self.finish(self.prepare(&mut [(piece, bytes)].into_iter())?, Flush::No)?;
            }
        }
        Ok(())
    }

    fn finish(&self, Prepared(mut transaction): Prepared, flush: Flush) -> Result<()> {
        // SAFETY: as in `prepare`: nobody else stores to the ranges.
        unsafe { self.rvm.commit_raw(&mut transaction, flush) }.map_err(from_rvm)?;
        locked(&self.spare).push(transaction);
        Ok(())
    }

    /// Applies every commit to the segment, so that the log is empty.
    pub fn truncate(&self) -> Result<()> {
        self.rvm.truncate().map_err(from_rvm)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.rvm.unmap_raw(&self.memory);
    }
}
