//! The mapped file: loads, stores and what makes them durable. Every access is checked to lie in the file.
//!
//! The mapping covers the bytes that the heap may grow to; the file ends earlier, and grows without moving.

use crate::error::{Error, Result};
use crate::layout::LINE;
use crate::simulated::Simulated;
use nvlab_os::{Flush, Mapping, file, stores};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What makes the stores of a heap durable.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Persistence {
    /// Cache-line flushes where the file lies in memory (DAX: survives power loss; tmpfs: a killed process, not power loss),
    /// msync elsewhere.
    #[default]
    Detect,
    /// Flushes with this instruction. Refused for a file on a disk, where flushed lines only reach the page cache.
    Lines(Flush),
    /// The caches themselves are persistent (eADR): fences only. Refused for a file on a disk.
    Caches,
    /// msync: every file, at the price of a system call for each transaction.
    Sync,
    /// A simulated cache, for tests.
    Simulated(Arc<Simulated>),
}

/// What survives, and how it is brought about.
#[derive(Clone, Debug)]
pub(crate) enum Domain {
    Lines(Flush),
    Caches,
    Sync,
    Simulated(Arc<Simulated>),
}

#[derive(Debug)]
pub(crate) struct Memory {
    mapping: Mapping,
    file: File,
    path: PathBuf,
    domain: Domain,
    /// Bytes of the file.
    bytes: AtomicU64,
    /// Objects lie from here on.
    data: u64,
}

impl Memory {
    /// Maps a file of `bytes` bytes, which may grow to `bytes_max`.
    pub fn map(
        file: File,
        path: &Path,
        persistence: &Persistence,
        bytes: u64,
        bytes_max: u64,
        data: u64,
    ) -> Result<Memory> {
        let map = |mapped: std::io::Result<Mapping>| mapped.map_err(Error::io("map", &path.display()));
        let dax = Mapping::persistent(&file, bytes_max).ok();
        let in_memory =
            dax.is_some() || file::is_in_memory(&file).map_err(Error::io("examine", &path.display()))?;
        let refuse = |what: &str| {
            Error::NotPersistent(format!(
                "{} is on a disk: {what} leave its changes in the page cache; use Persistence::Sync",
                path.display()
            ))
        };
        let domain = match persistence {
            Persistence::Detect => match Flush::detect().filter(|_| in_memory) {
                Some(flush) => Domain::Lines(flush),
                None => Domain::Sync,
            },
            Persistence::Lines(_) if !in_memory => return Err(refuse("cache-line flushes")),
            Persistence::Caches if !in_memory => return Err(refuse("persistent caches")),
            Persistence::Lines(flush) if !flush.is_supported() => {
                return Err(Error::Invalid(format!("this processor has no {flush:?}")));
            }
            Persistence::Lines(flush) => Domain::Lines(*flush),
            Persistence::Caches => Domain::Caches,
            Persistence::Sync => Domain::Sync,
            Persistence::Simulated(simulated) => Domain::Simulated(simulated.clone()),
        };
        let mut mapping = match dax {
            Some(mapping) => mapping,
            None => map(Mapping::shared(&file, bytes_max))?,
        };
        mapping
            .report_fault(format!("nvheap: no room left for {}: the program ends\n", path.display()))
            .map_err(Error::io("watch", &path.display()))?;
        let memory = Memory { mapping, file, path: path.into(), domain, bytes: AtomicU64::new(bytes), data };
        if let Domain::Simulated(simulated) = &memory.domain {
            simulated.reset(memory.contents());
        }
        Ok(memory)
    }

    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lengthens the file, with space reserved for what is new.
    pub fn grow(&self, bytes: u64) -> Result<()> {
        let old = self.bytes();
        file::reserve(&self.file, old, bytes - old).map_err(Error::io("lengthen", &self.path.display()))?;
        if !matches!(self.domain, Domain::Simulated(_)) {
            self.file.sync_all().map_err(Error::io("sync", &self.path.display()))?;
        }
        self.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    /// Reserves space inside the file, so that stores to it cannot fail.
    pub fn reserve(&self, at: u64, bytes: u64) -> Result<()> {
        file::reserve(&self.file, at, bytes).map_err(Error::io("reserve space in", &self.path.display()))
    }

    /// Makes the file durable as a file.
    pub fn sync_file(&self) -> Result<()> {
        match self.domain {
            Domain::Simulated(_) => Ok(()),
            _ => self.file.sync_all().map_err(Error::io("sync", &self.path.display())),
        }
    }

    #[inline]
    fn at(&self, at: u64) -> *mut u8 {
        self.mapping.start().wrapping_add(at as usize)
    }

    #[inline]
    fn check(&self, at: u64, bytes: u64) -> Result<*mut u64> {
        self.check_from(0, at, bytes)
    }

    #[inline]
    fn check_from(&self, first: u64, at: u64, bytes: u64) -> Result<*mut u64> {
        match self.bytes().checked_sub(bytes) {
            Some(last) if at >= first && at <= last && at.is_multiple_of(8) => Ok(self.at(at).cast()),
            _ => Err(outside(at, bytes)),
        }
    }

    /// Whether objects may lie here.
    #[inline]
    pub fn check_object(&self, at: u64, bytes: u64) -> Result<()> {
        self.check_from(self.data, at, bytes).map(|_| ())
    }

    /// The lock of an object.
    #[inline]
    pub fn lock_word(&self, at: u64) -> Result<&AtomicU64> {
        let word = self.check_from(self.data, at, 8)?;
        // SAFETY: as of `word`.
        Ok(unsafe { AtomicU64::from_ptr(word) })
    }

    /// A word that threads load and store.
    #[inline]
    pub fn word(&self, at: u64) -> Result<&AtomicU64> {
        let word = self.check(at, 8)?;
        // SAFETY: eight aligned bytes of the file, mapped as long as `self` lives; every access to the file is atomic, by
        // `copy_racing`, or to a log half that only its owner writes.
        Ok(unsafe { AtomicU64::from_ptr(word) })
    }

    /// Copies words out of the file. Another thread may change them meanwhile.
    ///
    /// # Safety
    /// `into` has room for them.
    #[inline]
    pub unsafe fn load(&self, at: u64, into: *mut u64, words: usize) -> Result<()> {
        let from = self.check(at, words as u64 * 8)?;
        // SAFETY: both sides have the words: the file was checked, the caller answers for the other.
        unsafe { stores::copy_racing(into, from, words) };
        if let Domain::Simulated(simulated) = &self.domain {
            simulated.read(words * 8);
        }
        Ok(())
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
        unsafe { stores::copy_racing(into.as_mut_ptr(), from, into.len()) };
        Ok(())
    }

    /// Words of a log that nobody writes to as long as they are borrowed: records of an epoch that has ended.
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
        let into = self.check(at, words.len() as u64 * 8)?;
        // SAFETY: both sides have the words, and readers that race find out by the lock's version.
        unsafe { stores::copy_racing(into, words.as_ptr(), words.len()) };
        Ok(())
    }

    /// Words whose lock the caller holds, so that nobody changes them.
    #[inline]
    pub fn held(&self, at: u64, words: usize) -> Result<&[u64]> {
        let from = self.check(at, words as u64 * 8)?;
        // SAFETY: inside what was checked; only the holder of the lock stores to it, who borrows it here.
        Ok(unsafe { std::slice::from_raw_parts(from, words) })
    }

    /// Writes whole lines past the caches. Nobody else reads or writes them meanwhile.
    #[inline(always)]
    pub fn stream(&self, at: u64, words: &[u64]) -> Result<()> {
        let bytes = words.len() * 8;
        assert!(at.is_multiple_of(LINE) && bytes.is_multiple_of(LINE as usize), "{bytes} B at {at}");
        let into = self.check(at, bytes as u64)?;
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
            Domain::Caches | Domain::Sync => {}
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
            Domain::Sync => {
                for &(at, bytes) in ranges {
                    let synced = self.mapping.sync(at as usize, bytes as usize);
                    synced.map_err(Error::io("sync", &self.path.display()))?;
                }
            }
            Domain::Simulated(simulated) => {
                stores::publish();
                simulated.fence(self.contents());
            }
        }
        Ok(())
    }

    /// Asks for a line before it is changed.
    #[inline]
    pub fn prefetch(&self, at: u64) {
        stores::prefetch_for_store(self.at(at));
    }

    /// Every byte, for the simulated cache, whose heaps have one thread at a time.
    fn contents(&self) -> &[u8] {
        // SAFETY: bytes of the file; simulated heaps are used by one thread, which is here.
        unsafe { std::slice::from_raw_parts(self.mapping.start(), self.bytes() as usize) }
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
