//! A log in memory that keeps its contents without power: battery-backed RAM, persistent memory. An append writes whole
//! cache lines past the caches, which need no flush; a force is one fence. The last line is kept and written again
//! with the next append: a line that is flushed and then written to again would be read back from memory first.
//!
//! The file must be in such memory: a DAX file, or one on tmpfs of a machine whose memory is battery-backed. On tmpfs
//! of an ordinary machine the log survives the program, not the power. A file on a disk is refused: a flushed cache line
//! of the page cache is not on the disk.
//!
//! Layout as [`super::file`]; the status is written through the file, which is coherent with the mapping.

use super::status::{self, StatusPair};
use super::{Log, Status};
use crate::core::View;
use crate::flash::by_block;
use crate::store::{FileStore, take_room};
use crate::{Error, Result, Store};
use nvlab_os::Mapping;
use nvlab_os::stores::{LINE, can_bypass_caches, copy_lines, publish};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const KIND: [u8; 4] = *b"bram";
const CAPACITY_MIN: u64 = 4096;

/// Cache lines written and fences so far.
#[derive(Debug, Default)]
pub struct FlushCounts {
    lines: AtomicU64,
    fences: AtomicU64,
}

impl FlushCounts {
    /// Cache lines written back to memory.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// Store fences issued.
    pub fn fences(&self) -> u64 {
        self.fences.load(Ordering::Relaxed)
    }
}

/// Adds to a counter that one thread at a time changes.
fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// A log in battery-backed memory, such as a DAX file: durable by cache-line flushes and fences.
#[derive(Debug)]
pub struct BatteryRam {
    store: FileStore,
    mapping: Mapping,
    name: String,
    status: StatusPair,
    /// The line that the tail is in, as far as it is written; what follows the tail in it is left over.
    line: [u8; LINE],
    /// Where the last append ended, and the last before the last force.
    appended: u64,
    forced: u64,
    counts: Arc<FlushCounts>,
    /// The positions whose pages are ready for stores; empty before the first append, without an end once all are. The log is
    /// written from end to end: a fault at each page would take longer than a commit. A new log is made ready as a whole, one that is
    /// opened as far as it gets.
    ready: Range<u64>,
}

/// Bytes that are made ready for stores at a time.
const READY_BYTES: u64 = 1 << 20;

impl BatteryRam {
    /// Creates a log of `capacity` bytes in a new file.
    pub fn create(path: &Path, capacity: u64) -> Result<BatteryRam> {
        let capacity = capacity.max(CAPACITY_MIN).next_multiple_of(LINE as u64) + LINE as u64;
        let name = path.display().to_string();
        let store = FileStore::create(path, status::BYTES + capacity, |store| {
            let identity =
                nvlab_os::file::random_u64().map_err(Error::io("draw a random number for", &name))?;
            StatusPair::create(store, &name, 0, KIND, 512, identity, capacity).map(|_| ())
        })?;
        let mapped = BatteryRam::map(store, name).inspect_err(|_| {
            // A file nobody can use would be in the way of the next attempt.
            let _ = std::fs::remove_file(path);
        });
        mapped.map(|log| {
            log.mapping.populate();
            BatteryRam { ready: 0..u64::MAX, ..log }
        })
    }

    /// Opens a log. It is locked as long as it is open.
    pub fn open(path: &Path) -> Result<BatteryRam> {
        BatteryRam::map(FileStore::open(path, 0)?, path.display().to_string())
    }

    fn map(store: FileStore, name: String) -> Result<BatteryRam> {
        let status = StatusPair::open(&store, &name, 0, KIND)?;
        let bytes = store.len().map_err(Error::io("measure", &name))?;
        let wanted = status::BYTES + status.capacity();
        if status.capacity() < CAPACITY_MIN || status.capacity() % LINE as u64 != 0 || bytes < wanted {
            let why = format!("it ends at {bytes} B, but its log has {} B", status.capacity());
            return Err(Error::Format { what: name, offset: bytes, why });
        }
        let file = store.file().expect("a file");
        take_room(file, &name, &(0..wanted))?;
        let mapping = match Mapping::persistent(file, wanted) {
            Ok(mapping) => mapping,
            Err(_) if nvlab_os::file::is_in_memory(file).map_err(Error::io("examine", &name))? => {
                Mapping::shared(file, wanted).map_err(Error::io("map", &name))?
            }
            Err(_) => {
                return Err(Error::Invalid(format!(
                    "{name} is on a disk, where flushed cache lines are not durable: use a file log, or a file on DAX or tmpfs"
                )));
            }
        };
        if !can_bypass_caches() {
            let why = "nvlab knows no stores that bypass the caches of this processor (on x86-64 it does)";
            return Err(Error::Invalid(why.into()));
        }
        let (line, head, counts) = ([0; LINE], status.status().head, Arc::default());
        Ok(BatteryRam {
            store,
            mapping,
            name,
            status,
            line,
            appended: head,
            forced: head,
            counts,
            ready: 0..0,
        })
    }

    /// Makes the pages ready that an append will store to.
    #[inline]
    fn make_ready(&mut self, position: u64, end: u64) {
        if end > self.ready.end {
            self.make_more_ready(position, end);
        }
    }

    #[cold]
    fn make_more_ready(&mut self, position: u64, end: u64) {
        let capacity = self.status.capacity();
        if self.ready.is_empty() {
            self.ready = position..position;
        }
        let Range { start, end: from } = self.ready;
        let to = (end + READY_BYTES).min(start + capacity);
        for (_, at, piece) in by_block(capacity, from, to.saturating_sub(from) as usize) {
            let at = status::BYTES + at;
            self.mapping.populate_part(at..at + piece.len() as u64);
        }
        self.ready.end = if to == start + capacity { u64::MAX } else { to };
    }

    /// Counts the lines it flushes and its fences, also while it is in use.
    pub fn counts(&self) -> Arc<FlushCounts> {
        self.counts.clone()
    }

    /// Writes `data` at an offset in the area of records, which it does not leave.
    #[inline]
    fn write(&mut self, at: usize, mut data: &[u8]) {
        let within = at % LINE;
        let count_lines = (within + data.len()).div_ceil(LINE);
        let from = status::BYTES as usize + at - within;
        let mut into = &mut self.mapping.as_mut_slice()[from..][..count_lines * LINE];
        if within > 0 {
            // After opening and after a wrap the line holds nothing before the tail that is still needed.
            let (head, rest) = data.split_at(data.len().min(LINE - within));
            self.line[within..within + head.len()].copy_from_slice(head);
            let (line, others) = into.split_at_mut(LINE);
            copy_lines(line, &self.line);
            (data, into) = (rest, others);
        }
        let (whole, tail) = data.split_at(data.len() / LINE * LINE);
        let (whole_into, tail_into) = into.split_at_mut(whole.len());
        copy_lines(whole_into, whole);
        if !tail.is_empty() {
            self.line[..tail.len()].copy_from_slice(tail);
            copy_lines(tail_into, &self.line);
        }
        count(&self.counts.lines, count_lines as u64);
    }

    /// What was written through the file.
    fn sync(&self) -> Result<()> {
        self.store.sync().map_err(Error::io("force", &self.name))
    }

    fn write_status(&mut self, status: Status) -> Result<()> {
        self.status.write(&self.store, &self.name, status)
    }
}

impl Log for BatteryRam {
    fn name(&self) -> String {
        self.name.clone()
    }

    /// A line less than there is: what follows the tail in its line is overwritten.
    fn capacity(&self) -> u64 {
        self.status.capacity() - LINE as u64
    }

    fn status(&self) -> Status {
        self.status.status()
    }

    fn read(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        for (_, at, piece) in by_block(self.status.capacity(), position, into.len()) {
            let from = (status::BYTES + at) as usize;
            let bytes = piece.len();
            into[piece].copy_from_slice(&self.mapping.as_slice()[from..from + bytes]);
        }
        Ok(())
    }

    fn append(&mut self, position: u64, data: &[u8]) -> Result<()> {
        let end = position + data.len() as u64;
        if self.status.mark_before(&self.store, &self.name, self.forced, end)? {
            self.sync()?;
        }
        self.appended = end;
        self.make_ready(position, end);
        let capacity = self.status.capacity();
        let at = position % capacity;
        let before_end = data.len().min((capacity - at) as usize);
        self.write(at as usize, &data[..before_end]);
        if before_end < data.len() {
            self.write(0, &data[before_end..]);
        }
        Ok(())
    }

    /// What is in such memory is durable.
    fn rewrite(&mut self, _position: u64, _data: &[u8]) -> Result<()> {
        Ok(())
    }

    /// The status is written through the file.
    fn end_rewrite(&mut self) -> Result<()> {
        self.status.rewrite(&self.store, &self.name)?;
        self.sync()
    }

    fn force(&mut self) -> Result<()> {
        publish();
        count(&self.counts.fences, 1);
        self.forced = self.appended;
        Ok(())
    }

    fn truncate(&mut self, head: u64) -> Result<()> {
        self.write_status(Status { head, ..self.status() })
    }

    fn reset(&mut self, tail: u64) -> Result<u64> {
        self.write_status(self.status().next_generation(tail))?;
        (self.appended, self.forced) = (tail, tail);
        Ok(tail)
    }

    fn mark(&self) -> Option<u64> {
        self.status.mark()
    }

    fn view(&self) -> Result<Option<View>> {
        let file = self.store.file().expect("a file");
        let mapping = Mapping::shared(file, status::BYTES + self.status.capacity());
        let mapping = mapping.map_err(Error::io("map", &self.name))?;
        Ok(Some(View::new(mapping, status::BYTES, self.status.capacity())))
    }

    fn offset(&self, position: u64) -> u64 {
        status::BYTES + position % self.status.capacity()
    }
}
