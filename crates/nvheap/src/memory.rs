//! The mapped file, or region of recoverable memory: loads, stores, and making them durable. Every access is checked
//! to lie inside.
//!
//! The mapping of a file covers the maximum size of the heap; the file is shorter, and grows without moving.

use crate::domain::{Domain, Persistence, domain};
use crate::error::{Error, Result};
use crate::layout::LINE;
use crate::place::Place;
use crate::region::Region;
use crate::snapshot::Snapshots;
use crate::sums::Sums;
use crate::sync::AtomicU64;
#[cfg(not(test))]
use nvlab_os::stores::copy_racing;
use nvlab_os::{Mapping, file, stores};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// What holds the bytes.
#[derive(Debug)]
enum Holder {
    File { mapping: Mapping, file: File },
    Region(Region),
}

#[derive(Debug)]
pub(crate) struct Memory {
    /// The first byte of what the holder has mapped.
    start: *mut u8,
    holder: Holder,
    path: PathBuf,
    domain: Domain,
    /// Bytes of the file.
    bytes: AtomicU64,
    /// Objects lie from here on.
    data: u64,
    pub snapshots: Snapshots,
    /// Of what lies at home, if the heap has checksums.
    pub sums: Option<Box<Sums>>,
}

// SAFETY: what is mapped belongs to the process, not to a thread; it is accessed as `Memory::word` says.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(
        start: *mut u8,
        holder: Holder,
        path: &Path,
        domain: Domain,
        (bytes, data): (AtomicU64, u64),
    ) -> Memory {
        let (path, snapshots) = (path.into(), Snapshots::default());
        Memory { start, holder, path, domain, bytes, data, snapshots, sums: None }
    }

    fn line(&self, at: u64) -> [u64; 8] {
        let mut line = [0; 8];
        // Outside the file there is nothing that a snapshot knows.
        let _ = self.copy_words(at, &mut line);
        line
    }

    /// Saves what a commit is about to change for the snapshot, if there is one.
    ///
    /// # Safety
    /// The commit is one that the end of a snapshot waits for.
    #[inline]
    pub unsafe fn save_in_commit(&self, homes: impl Iterator<Item = (u64, u64)> + Clone) {
        let ranges = homes.map(|(at, bytes)| at..at + bytes);
        // SAFETY: passed on.
        unsafe { self.snapshots.save_in_commit(ranges, |line| self.line(line)) }
    }

    /// Saves data that another thread is about to change.
    #[inline]
    pub fn save(&self, at: u64, bytes: u64) {
        if self.snapshots.is_any() {
            self.snapshots.save(at..at + bytes, |line| self.line(line));
        }
    }

    /// Maps a file of `bytes` bytes, which may grow to `bytes_max`.
    pub fn map(
        file: File,
        path: &Path,
        place: Place,
        persistence: &Persistence,
        (bytes, bytes_max): (u64, u64),
        data: u64,
    ) -> Result<Memory> {
        // A window has nothing to try.
        let dax = match place {
            Place::Window => None,
            _ => Mapping::persistent(&file, bytes_max).ok(),
        };
        let in_memory =
            dax.is_some() || file::is_in_memory(&file).map_err(Error::io("examine", &path.display()))?;
        let domain = domain(persistence, path, place, in_memory)?;
        let mut mapping = match dax {
            Some(mapping) => mapping,
            None => place.map(&file, path, bytes_max)?,
        };
        let why = if place.is_fixed() { "has failed" } else { "has failed or is full" };
        mapping
            .report_fault(format!("nvheap: the storage of {} {why}: the program ends\n", path.display()))
            .map_err(Error::io("watch", &path.display()))?;
        let start = mapping.start();
        let (holder, bytes) = (Holder::File { mapping, file }, AtomicU64::new(bytes));
        let memory = Memory::new(start, holder, path, domain, (bytes, data));
        if let Domain::Simulated(simulated) = &memory.domain {
            simulated.reset(memory.contents());
        }
        Ok(memory)
    }

    /// Maps the first `bytes` bytes of a file, which may be open for reading only: what is stored never reaches it.
    pub fn private(file: File, path: &Path, bytes: u64, data: u64) -> Result<Memory> {
        let mut mapping = Mapping::private(&file, bytes).map_err(Error::io("map", &path.display()))?;
        mapping
            .report_fault(format!("nvheap: {} has become shorter: the program ends\n", path.display()))
            .map_err(Error::io("watch", &path.display()))?;
        let (start, bytes) = (mapping.start(), AtomicU64::new(bytes));
        let (holder, domain) = (Holder::File { mapping, file }, Domain::Caches);
        Ok(Memory::new(start, holder, path, domain, (bytes, data)))
    }

    /// Uses the first `bytes` of a region.
    pub fn in_region(region: Region, path: &Path, bytes: u64, data: u64) -> Memory {
        let (start, bytes) = (region.start(), AtomicU64::new(bytes.min(region.bytes())));
        let (holder, domain) = (Holder::Region(region), Domain::Log);
        Memory::new(start, holder, path, domain, (bytes, data))
    }

    /// The region it is, if its commits are those of a log of recoverable memory.
    #[inline]
    pub fn region(&self) -> Option<&Region> {
        match &self.holder {
            Holder::File { .. } => None,
            Holder::Region(region) => Some(region),
        }
    }

    /// The file, or an error that names the operation that needs one.
    fn file(&self, what: &str) -> Result<&File> {
        match &self.holder {
            Holder::File { file, .. } => Ok(file),
            Holder::Region(_) => {
                Err(Error::Invalid(format!("{}: a region cannot {what}", self.path.display())))
            }
        }
    }

    /// What makes stores durable where the file lies, in words.
    pub fn persistence(&self) -> Result<&'static str> {
        let file = self.file("be examined")?;
        let in_memory = file::is_in_memory(file).map_err(Error::io("examine", &self.path.display()))?;
        Ok(match (Mapping::can_be_persistent(file), in_memory) {
            (true, _) => "cache-line flushes (persistent memory)",
            (_, true) => "cache-line flushes (memory: a power cut loses the file)",
            _ => "msync",
        })
    }

    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes that it may grow to.
    pub fn bytes_max(&self) -> u64 {
        match &self.holder {
            Holder::File { mapping, .. } => mapping.len() as u64,
            Holder::Region(_) => self.bytes(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lengthens the file, with space reserved for what is new.
    pub fn grow(&self, bytes: u64) -> Result<()> {
        let old = self.bytes();
        let file = self.file("grow")?;
        file::reserve(file, old, bytes - old).map_err(Error::io("lengthen", &self.path.display()))?;
        if let Holder::File { mapping, .. } = &self.holder {
            mapping.use_huge_pages(old..bytes);
        }
        self.sync_file()?;
        self.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    /// Reserves space inside the file, so that stores to it cannot fail.
    pub fn reserve(&self, at: u64, bytes: u64) -> Result<()> {
        let reserved = file::reserve(self.file("reserve space")?, at, bytes);
        reserved.map_err(Error::io("reserve space in", &self.path.display()))
    }

    /// Makes the file durable as a file.
    pub fn sync_file(&self) -> Result<()> {
        match (&self.holder, &self.domain) {
            (Holder::Region(_), _) | (_, Domain::Simulated(_) | Domain::Process) => Ok(()),
            (Holder::File { file, .. }, _) => {
                file.sync_all().map_err(Error::io("sync", &self.path.display()))
            }
        }
    }

    #[inline]
    fn at(&self, at: u64) -> *mut u8 {
        self.start.wrapping_add(at as usize)
    }

    /// Where bytes lie that are in the file, aligned to eight.
    #[inline]
    pub fn check(&self, at: u64, bytes: u64) -> Result<*mut u64> {
        self.check_from(0, at, bytes)
    }

    #[inline]
    fn check_from(&self, first: u64, at: u64, bytes: u64) -> Result<*mut u64> {
        match self.bytes().checked_sub(bytes) {
            Some(last) if at >= first && at <= last && at.is_multiple_of(8) => Ok(self.at(at).cast()),
            _ => Err(outside(at, bytes)),
        }
    }

    /// The same of an object, which may not lie everywhere.
    #[inline]
    pub fn check_object(&self, at: u64, bytes: u64) -> Result<*mut u64> {
        self.check_from(self.data, at, bytes)
    }

    /// The lock of an object.
    #[inline]
    pub fn lock_word(&self, at: u64) -> Result<&AtomicU64> {
        let word = self.check_object(at, 8)?;
        // SAFETY: as of `word`.
        Ok(unsafe { &*word.cast::<AtomicU64>() })
    }

    /// A word that threads load and store.
    #[inline]
    pub fn word(&self, at: u64) -> Result<&AtomicU64> {
        let word = self.check(at, 8)?;
        // SAFETY: eight aligned bytes of the file, mapped as long as `self` lives; every access to the file is atomic, by
        // `copy_racing`, or to a log half that only its owner writes. An atomic has the bytes of its integer.
        Ok(unsafe { &*word.cast::<AtomicU64>() })
    }

    /// Copies words out of the file. Another thread may change them meanwhile.
    ///
    /// # Safety
    /// `into` has room for them.
    #[inline]
    pub unsafe fn load(&self, at: u64, into: *mut u64, words: usize) -> Result<()> {
        let from = self.check(at, words as u64 * 8)?;
        // SAFETY: the file was checked, the caller answers for the other side.
        unsafe { self.load_checked(from, into, words) };
        Ok(())
    }

    /// The same of words that are known to lie in the file.
    ///
    /// # Safety
    /// They do, and `into` has room for them.
    #[inline(always)]
    pub unsafe fn load_checked(&self, from: *const u64, into: *mut u64, words: usize) {
        // SAFETY: both sides have the words.
        unsafe { copy_racing(into, from, words) };
        self.has_read(words);
    }

    /// Words were read in place.
    #[inline(always)]
    pub fn has_read(&self, words: usize) {
        if let Domain::Simulated(simulated) = &self.domain {
            simulated.read(words * 8);
        }
    }

    /// The words there.
    pub fn load_words(&self, at: u64, words: usize) -> Result<Vec<u64>> {
        // Before room is made for what a damaged file asks for.
        self.check(at, words as u64 * 8)?;
        let mut found = vec![0; words];
        self.copy_words(at, &mut found)?;
        Ok(found)
    }

    /// Copies the words there.
    pub fn copy_words(&self, at: u64, into: &mut [u64]) -> Result<()> {
        let from = self.check(at, into.len() as u64 * 8)?;
        // SAFETY: both sides have the words.
        unsafe { copy_racing(into.as_mut_ptr(), from, into.len()) };
        Ok(())
    }

    /// Words of a log that no thread writes while they are borrowed: records of an epoch that has ended.
    #[inline]
    pub fn settled(&self, at: u64, words: usize) -> Result<&[u64]> {
        let from = self.check(at, words as u64 * 8)?;
        // SAFETY: the words are mapped, and only the owner of a log writes to it, when its epoch comes up again: after
        // `Core::checkpoint`, which reads them under the header's lock.
        Ok(unsafe { std::slice::from_raw_parts(from, words) })
    }

    /// Copies words into the file. The caller holds the lock of what they belong to.
    #[inline]
    pub fn store(&self, at: u64, words: &[u64]) -> Result<()> {
        self.check(at, words.len() as u64 * 8)?;
        // SAFETY: they lie in the file.
        unsafe { self.store_checked(at, words) };
        Ok(())
    }

    /// The same of words that are known to lie in the file.
    ///
    /// # Safety
    /// They do.
    #[inline(always)]
    pub unsafe fn store_checked(&self, at: u64, words: &[u64]) {
        let into = self.at(at).cast::<u64>();
        // SAFETY: both sides have the words, and readers that race find out by the lock's version.
        unsafe {
            match words {
                // What most changes are.
                &[word] => (*into.cast::<AtomicU64>()).store(word, Ordering::Relaxed),
                _ => copy_racing(into, words.as_ptr(), words.len()),
            }
        }
    }

    /// Words whose lock the caller holds, so that no other thread changes them.
    #[inline]
    pub fn held(&self, at: u64, words: usize) -> Result<&[u64]> {
        let from = self.check(at, words as u64 * 8)?;
        // SAFETY: inside what was checked; only the holder of the lock stores to it, who borrows it here.
        Ok(unsafe { std::slice::from_raw_parts(from, words) })
    }

    /// Writes whole lines past the caches. No other thread accesses them at the same time.
    #[inline(always)]
    pub fn stream(&self, at: u64, words: &[u64]) -> Result<()> {
        let bytes = words.len() * 8;
        assert!(at.is_multiple_of(LINE) && bytes.is_multiple_of(LINE as usize), "{bytes} B at {at}");
        let into = self.check(at, bytes as u64)?;
        if matches!(self.domain, Domain::Process) {
            return self.store(at, words);
        }
        // SAFETY: both sides have the lines; nobody else accesses them.
        unsafe {
            stores::copy_lines_past_caches(into.cast(), words.as_ptr().cast(), bytes / LINE as usize);
        }
        if !stores::can_bypass_caches() {
            self.write_back(at, bytes as u64);
        }
        if let Domain::Simulated(simulated) = &self.domain {
            simulated.flushed(self.contents(), line(at)..line(at + bytes as u64 + LINE - 1), true);
        }
        Ok(())
    }

    /// Stores words and makes them durable. No other thread stores to them.
    pub fn persist(&self, at: u64, words: &[u64]) -> Result<()> {
        let bytes = words.len() as u64 * 8;
        self.store(at, words)?;
        self.write_back(at, bytes);
        self.fence(&[(at, bytes)])
    }

    /// Makes words zero, durably. Those that are zero are not stored to.
    pub fn clear(&self, range: std::ops::Range<u64>) -> Result<()> {
        const WORDS: usize = 512;
        let mut found = [0; WORDS];
        for at in range.clone().step_by(WORDS * 8) {
            let words = &mut found[..((range.end - at) as usize / 8).min(WORDS)];
            self.copy_words(at, words)?;
            if words.iter().any(|&word| word != 0) {
                words.fill(0);
                self.persist(at, words)?;
            }
        }
        Ok(())
    }

    /// Starts to write back the lines of these bytes, which lie in the file.
    pub fn write_back(&self, at: u64, bytes: u64) {
        (at / LINE * LINE..at + bytes).step_by(LINE as usize).for_each(|line| self.write_back_line(line));
    }

    /// The same of one line, given by its first byte.
    #[inline]
    pub fn write_back_line(&self, at: u64) {
        match &self.domain {
            // SAFETY: a line of the file; `Memory::map` checked that the instruction is supported.
            Domain::Lines(flush) => unsafe { flush.line(self.at(at)) },
            Domain::Caches | Domain::Sync | Domain::Process | Domain::Log => {}
            Domain::Simulated(simulated) => {
                simulated.flushed(self.contents(), line(at)..line(at) + 1, false);
            }
        }
    }

    /// Makes durable what this thread streamed or wrote back to these ranges (offset and bytes).
    #[inline(always)]
    pub fn fence(&self, ranges: &[(u64, u64)]) -> Result<()> {
        match &self.domain {
            Domain::Lines(_) | Domain::Caches => stores::publish(),
            Domain::Sync | Domain::Log => self.sync(ranges)?,
            Domain::Process => {}
            Domain::Simulated(simulated) => {
                stores::publish();
                simulated.fence(self.contents());
            }
        }
        Ok(())
    }

    /// Has the system make ranges durable, or the log.
    fn sync(&self, ranges: &[(u64, u64)]) -> Result<()> {
        match &self.holder {
            Holder::File { mapping, .. } => joined(ranges).try_for_each(|(at, end)| {
                let synced = mapping.sync(at as usize, (end - at) as usize);
                synced.map_err(Error::io("sync", &self.path.display()))
            }),
            Holder::Region(region) => region.commit(region.prepare(&mut ranges.iter().copied())?),
        }
    }

    /// Asks for a line before it is changed.
    #[inline]
    pub fn prefetch(&self, at: u64) {
        stores::prefetch_for_store(self.at(at));
    }

    /// Asks for a line before it is read.
    #[inline]
    pub fn prefetch_to_read(&self, at: u64) {
        stores::prefetch_for_load(self.at(at));
    }

    /// Every byte, for the simulated cache, whose heaps have one thread at a time.
    fn contents(&self) -> &[u8] {
        // SAFETY: bytes of the file; simulated heaps are used by one thread, which is here.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes() as usize) }
    }
}

/// Ranges with their ends; those that follow each other are one, as a large array is filled in pieces and each msync takes as
/// long as the disk does.
fn joined(ranges: &[(u64, u64)]) -> impl Iterator<Item = (u64, u64)> {
    let mut ranges = ranges.iter().map(|&(at, bytes)| (at, at + bytes)).peekable();
    std::iter::from_fn(move || {
        let (at, mut end) = ranges.next()?;
        while let Some((_, further)) = ranges.next_if(|&(next, _)| (at..=end).contains(&next)) {
            end = end.max(further);
        }
        Some((at, end))
    })
}

/// The same in pieces, between which other threads may go on.
#[cfg(test)]
unsafe fn copy_racing(into: *mut u64, from: *const u64, words: usize) {
    let piece = if words > 16 { 128 } else { 1 };
    for first in (0..words).step_by(piece) {
        crate::sync::step();
        // SAFETY: the caller answers for all of the words.
        unsafe { stores::copy_racing(into.add(first), from.add(first), piece.min(words - first)) };
    }
}

#[cold]
fn outside(at: u64, bytes: u64) -> Error {
    Error::damaged(at, format!("no object can have {bytes} B here"))
}

#[inline]
fn line(at: u64) -> usize {
    (at / LINE) as usize
}
