//! The write-ahead log: a ring of pages, forced at every commit.
//!
//! A record is a header and the changed columns; every page with new records since the last commit is written, so the
//! last page of one commit is often the first of the next. Group commit is not modelled: transactions run one by one.
//!
//! The log of every page that leaves the pool is on the device: the pool has more frames than a transaction accesses
//! pages ([`POOL_FRAMES_MIN`](super::POOL_FRAMES_MIN)), so a page of the running transaction never leaves it.

use super::pool::PageIo;
use super::space::Segment;

/// Header of a record: length, transaction, page, kind, checksum (an assumption).
const RECORD_BYTES: u64 = 32;
/// Columns before and after a change: two numbers of 8 B each time (an assumption).
const CHANGE_BYTES: u64 = 32;

/// How much was logged, and how much of it is on the device.
#[derive(Clone, Debug)]
pub struct Log {
    page_bytes: u64,
    written: u64,
    logged: u64,
}

impl Log {
    /// An empty log in pages of `page_bytes`.
    pub fn new(page_bytes: u32) -> Log {
        Log { page_bytes: page_bytes as u64, written: 0, logged: 0 }
    }

    /// Logs an added or deleted row.
    #[inline]
    pub fn row(&mut self, row_bytes: u32) {
        self.logged += RECORD_BYTES + row_bytes as u64;
    }

    /// Logs a change of a row.
    #[inline]
    pub fn change(&mut self) {
        self.logged += RECORD_BYTES + CHANGE_BYTES;
    }

    /// Writes the part not yet on the device to the ring, if there is one.
    pub fn commit(&mut self, ring: &Segment, queue: &mut Vec<PageIo>) {
        if ring.pages() > 0 && self.logged > self.written {
            let pages = self.written / self.page_bytes..self.logged.div_ceil(self.page_bytes);
            let place = |page: u64| ring.page((page % ring.pages() as u64) as u32);
            queue.extend(pages.map(|page| PageIo::Log(place(page))));
        }
        self.written = self.logged;
    }
}
