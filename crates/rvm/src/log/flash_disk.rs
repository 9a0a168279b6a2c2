//! A log on a device of sectors, as a flash disk is: every append writes whole sectors.
//!
//! An append rarely ends with a sector. The last sector of it is written again, in place, with the next append: records of 748 B
//! on sectors of 512 B write 67.9 % more bytes than they have (Price and Nettles, "Transactions in a Flash", 1996, slide 37).
//! The log on a file ([`super::file`]) leaves this to the page cache; this one does it itself, and counts it.
//!
//! A sector that is written again keeps the bytes before the tail as they were, so a power failure that leaves any mix of
//! old and new bytes does not change what was forced. A device that makes a torn sector unreadable is not safe here.
//!
//! # Format, version 1
//!
//! [`super::status`] in the first 8 KiB, kind `sect`; then the log: the byte at position p is at p modulo its length, which
//! is one sector more than the capacity.

use super::status::{self, StatusPair};
use super::{Log, Status};
use crate::flash::{by_block, by_piece};
use crate::{Error, Result, Store};
use std::sync::Arc;

pub(crate) const KIND: [u8; 4] = *b"sect";

/// A log on a [`Store`] that is written in whole sectors.
#[derive(Debug)]
pub struct FlashDiskLog {
    store: Box<dyn Store>,
    name: String,
    status: StatusPair,
    /// Where the next append begins; none before the reset that follows opening.
    tail: Option<u64>,
    /// The tail at the last force.
    forced: u64,
    /// The bytes from the beginning of the sector of the tail to the tail.
    partial: Vec<u8>,
    bytes_written: u64,
    failed: Option<Arc<Error>>,
}

impl FlashDiskLog {
    /// Makes an empty log of all of a store, to be written in sectors of 512, 1024, 2048 or 4096 bytes; durable when it
    /// returns. What was on the store is lost.
    pub fn create(
        store: Box<dyn Store>,
        name: String,
        identity: u64,
        sector_bytes: u32,
    ) -> Result<FlashDiskLog> {
        let bytes = store.len().map_err(Error::io("measure", &name))?;
        let sectors = bytes.saturating_sub(status::BYTES) / u64::from(sector_bytes.max(1));
        if sectors < 2 {
            let why = format!(
                "{name} has {bytes} B: the status takes {} B, the log at least 2 sectors",
                status::BYTES
            );
            return Err(Error::Invalid(why));
        }
        let capacity = (sectors - 1) * u64::from(sector_bytes);
        let status = StatusPair::create(store.as_ref(), &name, 0, KIND, sector_bytes, identity, capacity)?;
        let tail = Some(status.status().head);
        Ok(FlashDiskLog { tail, ..FlashDiskLog::new(store, name, status) })
    }

    /// Opens the log on a store. [`Log::reset`] makes it ready for appends.
    pub fn open(store: Box<dyn Store>, name: String) -> Result<FlashDiskLog> {
        let status = StatusPair::open(store.as_ref(), &name, 0, KIND)?;
        let bytes = store.len().map_err(Error::io("measure", &name))?;
        let needed = status.capacity().saturating_add(status::BYTES + u64::from(status.sector_bytes()));
        if bytes < needed {
            let why = format!("it ends at {bytes} B; the log needs {needed} B");
            return Err(Error::Format { what: name, offset: bytes, why });
        }
        Ok(FlashDiskLog::new(store, name, status))
    }

    fn new(store: Box<dyn Store>, name: String, status: StatusPair) -> FlashDiskLog {
        let (forced, partial) = (status.status().head, Vec::new());
        FlashDiskLog { store, name, status, tail: None, forced, partial, bytes_written: 0, failed: None }
    }

    /// Bytes of sectors written by appends since it was opened or created.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Bytes of the circle of sectors.
    fn ring_bytes(&self) -> u64 {
        self.status.capacity() + u64::from(self.status.sector_bytes())
    }

    fn check(&self) -> Result<()> {
        self.failed.as_ref().map_or(Ok(()), |error| Err(Error::Failed(error.clone())))
    }

    /// Remembers a failure: nobody knows what is on the device now.
    fn fail_on_error<T>(&mut self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.failed = Some(Arc::new(error.clone())))
    }

    /// Writes the sectors that `data` lies in. What else is in the first and the last is read.
    fn rewrite_sectors(&mut self, position: u64, data: &[u8]) -> Result<()> {
        let sector_bytes = u64::from(self.status.sector_bytes());
        let start = position / sector_bytes * sector_bytes;
        let end = position + data.len() as u64;
        let after = end.next_multiple_of(sector_bytes);
        if (start, after) == (position, end) {
            return self.write(position, data);
        }
        let mut sectors = vec![0; (after - start) as usize];
        for sector in [start, after - sector_bytes] {
            let at = (sector - start) as usize;
            self.read(sector, &mut sectors[at..at + sector_bytes as usize])?;
        }
        sectors[(position - start) as usize..][..data.len()].copy_from_slice(data);
        self.write(start, &sectors)
    }

    fn rewrite_status(&mut self) -> Result<()> {
        self.status.rewrite(self.store.as_ref(), &self.name)?;
        self.store.sync().map_err(Error::io("force", &self.name))
    }

    /// The sector of the tail keeps what is before that.
    fn cut_sectors(&mut self, tail: u64) -> Result<()> {
        let sector_bytes = u64::from(self.status.sector_bytes());
        let start = tail / sector_bytes * sector_bytes;
        let end = self.status().head / sector_bytes * sector_bytes + self.ring_bytes();
        let kept = (tail - start) as usize;
        by_piece(start, end, |position, piece| {
            match position == start {
                true => self.read(start, &mut piece[..kept])?,
                false => piece.fill(0),
            }
            self.write(position, piece)
        })?;
        self.store.sync().map_err(Error::io("force", &self.name))?;
        self.status.cut(self.store.as_ref(), &self.name, tail)
    }

    fn write(&self, position: u64, sectors: &[u8]) -> Result<()> {
        for (_, at, range) in by_block(self.ring_bytes(), position, sectors.len()) {
            let written = self.store.write(&sectors[range], status::BYTES + at);
            written.map_err(Error::io("append to", &self.name))?;
        }
        Ok(())
    }

    fn set_status(&mut self, status: Status) -> Result<()> {
        let written = self.status.write(self.store.as_ref(), &self.name, status);
        self.fail_on_error(written)
    }
}

impl Log for FlashDiskLog {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn capacity(&self) -> u64 {
        self.status.capacity()
    }

    fn status(&self) -> Status {
        self.status.status()
    }

    fn read(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        self.check()?;
        for (_, at, range) in by_block(self.ring_bytes(), position, into.len()) {
            let read = self.store.read(&mut into[range], status::BYTES + at);
            read.map_err(Error::io("read", &self.name))?;
        }
        Ok(())
    }

    fn append(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.check()?;
        let end = position + data.len() as u64;
        self.status().check_append(self.tail, self.capacity(), position, data.len())?;
        let sector_bytes = u64::from(self.status.sector_bytes());
        let start = position - self.partial.len() as u64;
        let mut sectors = std::mem::take(&mut self.partial);
        sectors.extend_from_slice(data);
        let used = sectors.len();
        sectors.resize(used.next_multiple_of(sector_bytes as usize), 0);
        let marked = self.status.mark_before(self.store.as_ref(), &self.name, self.forced, end);
        let written = marked.and_then(|_| self.write(start, &sectors));
        self.fail_on_error(written)?;
        self.bytes_written += sectors.len() as u64;
        sectors.truncate(used);
        sectors.drain(..used - used % sector_bytes as usize);
        (self.partial, self.tail) = (sectors, Some(end));
        Ok(())
    }

    fn rewrite(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.check()?;
        let rewritten = self.rewrite_sectors(position, data);
        self.fail_on_error(rewritten)
    }

    fn end_rewrite(&mut self) -> Result<()> {
        self.check()?;
        let rewritten = self.rewrite_status();
        self.fail_on_error(rewritten)
    }

    fn force(&mut self) -> Result<()> {
        self.check()?;
        let synced = self.store.sync().map_err(Error::io("force", &self.name));
        self.fail_on_error(synced)?;
        self.forced = self.tail.unwrap_or(self.forced);
        Ok(())
    }

    fn truncate(&mut self, head: u64) -> Result<()> {
        self.check()?;
        self.status().check_head(self.tail, head)?;
        self.set_status(Status { head, ..self.status() })
    }

    fn reset(&mut self, tail: u64) -> Result<u64> {
        self.check()?;
        // With a sector: nothing that was there before has to be kept in it.
        let head = tail.max(self.tail.unwrap_or(0)).next_multiple_of(u64::from(self.status.sector_bytes()));
        self.set_status(self.status().next_generation(head))?;
        (self.partial, self.tail, self.forced) = (Vec::new(), Some(head), head);
        Ok(head)
    }

    fn cut(&mut self, tail: u64) -> Result<()> {
        self.check()?;
        let cut = self.cut_sectors(tail);
        self.fail_on_error(cut)
    }

    fn mark(&self) -> Option<u64> {
        self.status.mark()
    }

    fn offset(&self, position: u64) -> u64 {
        status::BYTES + position % self.ring_bytes()
    }
}
