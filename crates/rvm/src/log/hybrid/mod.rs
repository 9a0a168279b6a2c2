//! A log in two places: large appends on a big slow store, small ones in a small fast log (hybrid logging; Price and
//! Nettles, "Transactions in a Flash", 1996, slides 46 to 53).
//!
//! The positions are the hybrid's own. An append of at least the threshold is written to the store, and a stub of 24 B with its
//! checksum, the commit record, to the small log; any other goes to the small log behind a header of 24 B.
//!
//! 1. A large append is durable when both are: the store is forced first, then the stub is appended, then the small
//!    log is forced. So a stub whose data do not match it is damage, never a power failure.
//! 2. The small log has its entries in the order of their positions. Each is appended when those before it are
//!    durable: one that cannot be read before another was damaged.
//! 3. What no entry has in the small log is at its place on the store: the byte at position p at p modulo the
//!    capacity. So the capacity is that of the store. When the small log is full, small appends go to the store too,
//!    and large ones have no stub; their records are then checked by their own checksums alone. Truncation makes room
//!    again.
//! 4. The status is on the store. It changes before the small log is truncated or reset: a power failure in between
//!    leaves entries that are before the head or of another generation, and both are passed over.
//!
//! 5. What is written ahead ([`Log::write_ahead`]) lies at its place on the store, behind the tail. The append that
//!    brings the same bytes has up to three entries: what comes before them, a stub for them, and the rest, in the
//!    small log if the store is idle by then. Until the last of them is there, none of them says that anything of the
//!    append was durable.
//!
//! Costs: a force after a large append forces the store and the small log; so does a second append without a force in
//! between. A change of status forces the store twice. Opening reads the large appends in the log once to check them.
//!
//! # Format, version 1
//!
//! The store: [`super::status`] in the first 8 KiB, kind `hybr`, then the circle of large appends. The small log has the same
//! identity. Its entries, integers little-endian, checksums CRC-32C:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | position |
//! | 8 | 4 | bytes |
//! | 12 | 4 | bit 0: they are on the store, otherwise they follow this header; bit 1: the append goes on with the next entry |
//! | 16 | 4 | checksum of the bytes |
//! | 20 | 4 | checksum of identity, generation, the position of this entry in the small log, and the 20 B before |

mod ahead;
mod entry;
mod salvage;
mod scan;

use super::{Log, Status, rewrite_to};
use crate::checksum::crc32c;
use crate::core::View;
use crate::flash::by_block;
use crate::log::status::{self, StatusPair};
use crate::{Error, Result, Store};
use ahead::Ahead;
use entry::{Entry, HEADER};
pub(crate) use salvage::has_entry;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

pub(crate) const KIND: [u8; 4] = *b"hybr";

/// A log on a store, with its small records and the stubs of the others in a small log.
#[derive(Debug)]
pub struct HybridLog<L> {
    small: L,
    store: Box<dyn Store>,
    name: String,
    status: StatusPair,
    threshold: usize,
    /// Entries in the small log, each with its position there.
    entries: VecDeque<(Entry, u64)>,
    /// Where the next entry of the small log begins.
    small_tail: u64,
    /// Whether the last of them has not been forced.
    is_entry_unforced: bool,
    /// Large appends on the store that have no stub yet.
    unforced: Vec<Entry>,
    ahead: Ahead,
    /// Where the next append begins; none before the reset that follows opening.
    tail: Option<u64>,
    /// The tail at the last force.
    forced: u64,
    failed: Option<Arc<Error>>,
}

impl<L: Log> HybridLog<L> {
    /// Makes an empty log of a new small log and all of a store, whose name is for messages; durable when it returns. What was
    /// on the store is lost. Appends of `threshold` bytes or more go to the store.
    pub fn create(
        small: L,
        store: Box<dyn Store>,
        store_name: &str,
        threshold: usize,
    ) -> Result<HybridLog<L>> {
        let bytes = store.len().map_err(Error::io("measure", &store_name))?;
        let capacity = bytes.saturating_sub(status::BYTES);
        if capacity < status::BYTES {
            let least = 2 * status::BYTES;
            return Err(Error::Invalid(format!(
                "{store_name} has {bytes} B; the log needs at least {least} B"
            )));
        }
        let identity = small.status().identity;
        let status = StatusPair::create(store.as_ref(), store_name, 0, KIND, 512, identity, capacity)?;
        let (small_tail, tail) = (small.status().head, Some(0));
        Ok(HybridLog { tail, ..Self::new(small, store, store_name, status, threshold, small_tail) })
    }

    /// Opens the log on a small log, just opened, and the store that belongs to it.
    /// [`Log::reset`] makes it ready for appends.
    pub fn open(small: L, store: Box<dyn Store>, store_name: &str, threshold: usize) -> Result<HybridLog<L>> {
        let mut log = Self::find(small, store, store_name, threshold)?;
        log.scan()?;
        Ok(log)
    }

    /// The log whose entries are yet to be found.
    fn find(small: L, store: Box<dyn Store>, store_name: &str, threshold: usize) -> Result<HybridLog<L>> {
        let status = StatusPair::open(store.as_ref(), store_name, 0, KIND)?;
        let (identity, other) = (status.status().identity, small.status().identity);
        if identity != other {
            let why =
                format!("it belongs to log {identity:#018x}, and {} is log {other:#018x}", small.name());
            return Err(Error::Format { what: store_name.into(), offset: 20, why });
        }
        let bytes = store.len().map_err(Error::io("measure", &store_name))?;
        if bytes < status.capacity().saturating_add(status::BYTES) {
            let why = format!("it ends at {bytes} B, but its log has {} B", status.capacity());
            return Err(Error::Format { what: store_name.into(), offset: bytes, why });
        }
        let small_tail = small.status().head;
        Ok(Self::new(small, store, store_name, status, threshold, small_tail))
    }

    fn new(
        small: L,
        store: Box<dyn Store>,
        name: &str,
        status: StatusPair,
        threshold: usize,
        small_tail: u64,
    ) -> HybridLog<L> {
        let (name, entries, unforced) = (name.to_string(), VecDeque::new(), Vec::new());
        HybridLog {
            small,
            store,
            name,
            status,
            threshold,
            entries,
            small_tail,
            is_entry_unforced: false,
            unforced,
            ahead: Ahead::default(),
            tail: None,
            forced: 0,
            failed: None,
        }
    }

    /// The entry at a position of the small log, if there is one.
    fn entry_at(&mut self, at: u64) -> Result<Option<Entry>> {
        let end = self.small.status().head + self.small.capacity();
        if at + HEADER as u64 > end {
            return Ok(None);
        }
        let mut header = [0; HEADER];
        self.small.read(at, &mut header)?;
        let entry = Entry::decode(&header, self.status(), at);
        Ok(entry.filter(|entry| match entry.is_large {
            true => u64::from(entry.bytes) <= self.capacity(),
            false => at + HEADER as u64 + u64::from(entry.bytes) <= end,
        }))
    }

    /// Where the byte at `position` lies in the small log, if it does.
    fn in_small(&self, position: u64) -> Option<u64> {
        let covering = |(entry, _): &&(Entry, u64)| entry.position <= position && position < entry.end();
        let (entry, at) = self.entries.iter().find(covering).filter(|(entry, _)| !entry.is_large)?;
        Some(at + HEADER as u64 + (position - entry.position))
    }

    fn damaged(&self, entry: &Entry, at: u64) -> Error {
        let why = format!("the {} B at position {} do not match their checksum", entry.bytes, entry.position);
        match entry.is_large {
            true => {
                Error::Damaged { what: self.name.clone(), offset: self.store_offset(entry.position), why }
            }
            false => Error::Damaged { what: self.small.name(), offset: self.small.offset(at), why },
        }
    }

    fn store_offset(&self, position: u64) -> u64 {
        status::BYTES + position % self.capacity()
    }

    fn read_store(&self, position: u64, into: &mut [u8]) -> Result<()> {
        for (_, at, range) in by_block(self.capacity(), position, into.len()) {
            let read = self.store.read(&mut into[range], status::BYTES + at);
            read.map_err(Error::io("read", &self.name))?;
        }
        Ok(())
    }

    fn write_store(&self, position: u64, data: &[u8]) -> Result<()> {
        for (_, at, range) in by_block(self.capacity(), position, data.len()) {
            let written = self.store.write(&data[range], status::BYTES + at);
            written.map_err(Error::io("append to", &self.name))?;
        }
        Ok(())
    }

    /// Whether the small log can take an entry of `bytes` bytes.
    fn has_room(&self, bytes: usize) -> bool {
        self.small_tail + bytes as u64 <= self.small.status().head + self.small.capacity()
    }

    fn append_small(&mut self, entry: Entry, data: &[u8]) -> Result<()> {
        let mut bytes = entry.encode(self.status(), self.small_tail).to_vec();
        bytes.extend_from_slice(data);
        if self.is_entry_unforced {
            self.small.force()?;
        }
        self.small.append(self.small_tail, &bytes)?;
        self.is_entry_unforced = true;
        self.entries.push_back((entry, self.small_tail));
        self.small_tail += bytes.len() as u64;
        Ok(())
    }

    /// Makes the large appends durable and commits them.
    fn commit_large(&mut self) -> Result<()> {
        if self.unforced.is_empty() {
            return Ok(());
        }
        self.store.sync().map_err(Error::io("force", &self.name))?;
        for entry in std::mem::take(&mut self.unforced) {
            if self.has_room(HEADER) {
                self.append_small(entry, &[])?;
            }
        }
        Ok(())
    }

    fn try_append(&mut self, entry: Entry, data: &[u8]) -> Result<()> {
        if !entry.is_large {
            self.commit_large()?;
            // The stubs may have taken the room.
            if self.has_room(HEADER + data.len()) {
                return self.append_small(entry, data);
            }
        }
        if !entry.is_large || !self.has_room(HEADER * (self.unforced.len() + 1)) {
            // No entry will say that what is before it was durable.
            self.status.mark_before(self.store.as_ref(), &self.name, self.forced, entry.end())?;
        }
        self.write_store(entry.position, data)?;
        self.unforced.push(Entry { is_large: true, ..entry });
        Ok(())
    }

    fn try_force(&mut self) -> Result<()> {
        self.commit_large()?;
        self.small.force()?;
        self.is_entry_unforced = false;
        self.forced = self.tail.unwrap_or(self.forced);
        Ok(())
    }

    /// Rewrites the part that the small log does not have.
    fn try_rewrite(&mut self, position: u64, data: &[u8]) -> Result<()> {
        let end = position + data.len() as u64;
        let first = self.entries.partition_point(|(entry, _)| entry.end() <= position);
        let entries = self.entries.range(first..).map(|(entry, _)| entry);
        let inline = entries.take_while(|entry| entry.position < end).filter(|entry| !entry.is_large);
        let inline = inline.map(|entry| (entry.position, entry.end()));
        let mut from = position;
        for (before, after) in inline.chain([(end, end)]) {
            if from < before {
                self.write_store(from, &data[(from - position) as usize..(before - position) as usize])?;
            }
            from = from.max(after);
        }
        Ok(())
    }

    /// The store comes first: a stub says that what it stands for is durable. An append on the store has no stub if its sync failed
    /// or the small log was full.
    fn try_end_rewrite(&mut self) -> Result<()> {
        self.status.rewrite(self.store.as_ref(), &self.name)?;
        self.store.sync().map_err(Error::io("force", &self.name))?;
        rewrite_to(&mut self.small, self.small_tail)?;
        self.check_entries()
    }

    /// The small log has been read once more to be written: a page cache may have dropped meanwhile what an earlier program could not
    /// make durable. What was found when it was opened must be what it has now, or something would be applied that is on no disk.
    fn check_entries(&mut self) -> Result<()> {
        for index in 0..self.entries.len() {
            let (entry, at) = self.entries[index];
            let mut is_same = self.entry_at(at)? == Some(entry);
            if is_same && !entry.is_large {
                let mut data = vec![0; entry.bytes as usize];
                self.small.read(at + HEADER as u64, &mut data)?;
                is_same = crc32c(&[&data]) == entry.crc;
            }
            if !is_same {
                let why = "its cache has lost what could be read when it was opened; open it again";
                return Err(Error::io("write", &self.small.name())(io::Error::other(why)));
            }
        }
        Ok(())
    }

    fn try_truncate(&mut self, head: u64) -> Result<()> {
        self.try_force()?;
        self.status.write(self.store.as_ref(), &self.name, Status { head, ..self.status() })?;
        while self.entries.front().is_some_and(|(entry, _)| entry.end() <= head) {
            self.entries.pop_front();
        }
        let first = self.entries.front().map_or(self.small_tail, |&(_, at)| at);
        if first > self.small.status().head { self.small.truncate(first) } else { Ok(()) }
    }

    fn try_reset(&mut self, head: u64) -> Result<()> {
        let status = self.status().next_generation(head);
        self.status.write(self.store.as_ref(), &self.name, status)?;
        self.small_tail = self.small.reset(self.small_tail)?;
        self.entries.clear();
        self.unforced.clear();
        self.ahead.abandon();
        self.is_entry_unforced = false;
        (self.tail, self.forced) = (Some(head), head);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.failed.as_ref().map_or(Ok(()), |error| Err(Error::Failed(error.clone())))
    }

    /// Remembers a failure: nobody knows what is on the devices now.
    fn fail_on_error<T>(&mut self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.failed = Some(Arc::new(error.clone())))
    }
}

impl<L: Log> Log for HybridLog<L> {
    fn name(&self) -> String {
        format!("{} with {}", self.name, self.small.name())
    }

    /// False: its large part is a disk.
    fn is_flash(&self) -> bool {
        false
    }

    fn capacity(&self) -> u64 {
        self.status.capacity()
    }

    fn status(&self) -> Status {
        self.status.status()
    }

    fn read(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        self.check()?;
        self.read_store(position, into)?;
        let end = position + into.len() as u64;
        let first = self.entries.partition_point(|(entry, _)| entry.end() <= position);
        for &(entry, at) in self.entries.range(first..) {
            if entry.position >= end {
                break;
            }
            if !entry.is_large {
                let (from, to) = (entry.position.max(position), entry.end().min(end));
                let range = (from - position) as usize..(to - position) as usize;
                self.small.read(at + HEADER as u64 + (from - entry.position), &mut into[range])?;
            }
        }
        Ok(())
    }

    fn append(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.check()?;
        let end = position + data.len() as u64;
        self.status().check_append(self.tail, self.capacity(), position, data.len())?;
        if u32::try_from(data.len()).is_err() {
            return Err(Error::Invalid(format!("an append of {} B: at most 4 GiB", data.len())));
        }
        if data.is_empty() {
            return Ok(());
        }
        let appended = self.try_append_parts(position, data);
        self.fail_on_error(appended)?;
        self.tail = Some(end);
        Ok(())
    }

    fn ahead_bytes_min(&self) -> Option<usize> {
        Some(self.threshold)
    }

    fn write_ahead(&mut self, position: u64, data: &[u8]) -> Result<usize> {
        self.check()?;
        let written = self.try_write_ahead(position, data);
        self.fail_on_error(written)
    }

    fn ahead_wasted_bytes(&self) -> u64 {
        self.ahead.wasted_bytes
    }

    fn begin_rewrite(&mut self) -> Result<()> {
        self.check()?;
        let begun = self.small.begin_rewrite();
        self.fail_on_error(begun)
    }

    fn rewrite(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.check()?;
        let rewritten = self.try_rewrite(position, data);
        self.fail_on_error(rewritten)
    }

    fn end_rewrite(&mut self) -> Result<()> {
        self.check()?;
        let rewritten = self.try_end_rewrite();
        self.fail_on_error(rewritten)
    }

    fn force(&mut self) -> Result<()> {
        self.check()?;
        let forced = self.try_force();
        self.fail_on_error(forced)
    }

    fn truncate(&mut self, head: u64) -> Result<()> {
        self.check()?;
        self.status().check_head(self.tail, head)?;
        let truncated = self.try_truncate(head);
        self.fail_on_error(truncated)
    }

    fn reset(&mut self, tail: u64) -> Result<u64> {
        self.check()?;
        let head = tail.max(self.tail.unwrap_or(self.status().head));
        let done = self.try_reset(head);
        self.fail_on_error(done)?;
        Ok(head)
    }

    /// What is kept moves to the store: see `salvage`.
    fn cut(&mut self, tail: u64) -> Result<()> {
        self.check()?;
        let cut = self.try_cut(tail);
        self.fail_on_error(cut)
    }

    /// Everything before an entry was durable when that was appended, and the data of a large one too, but for an append that was
    /// cut off between its entries. Appends without one move the mark on the store.
    fn mark(&self) -> Option<u64> {
        let marked = self.status.mark()?;
        let cut_off = self.entries.iter().rev().take_while(|(entry, _)| entry.goes_on).last();
        if let Some((first, _)) = cut_off {
            return Some(first.position.max(marked));
        }
        let durable = |entry: &Entry| if entry.is_large { entry.end() } else { entry.position };
        Some(self.entries.back().map_or(marked, |(entry, _)| durable(entry).max(marked)))
    }

    /// None: its records are on two devices.
    fn view(&self) -> Result<Option<View>> {
        Ok(None)
    }

    /// On the store for large appends, in the small log for others.
    fn offset(&self, position: u64) -> u64 {
        self.in_small(position).map_or_else(|| self.store_offset(position), |at| self.small.offset(at))
    }

    fn name_at(&self, position: u64) -> String {
        self.in_small(position).map_or_else(|| self.name.clone(), |at| self.small.name_at(at))
    }
}
