//! Plain memory: a mapped file, changed in place. Nothing is undone, and nothing protects from a crash in the middle; with
//! `FENCE`, what an operation changed is in memory when it returns.

use super::{Heap, Transaction};
use crate::Result;
use nvlab_os::flush::Flush;
use nvlab_os::mapping::Mapping;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const ROOT: u64 = 4096;
const CLASS_BYTES: usize = 16;
const CLASSES: usize = 32;

/// What is free. Lists are in ordinary memory: what was freed before it was closed stays unused afterwards.
struct Free {
    lists: [Vec<u64>; CLASSES],
    end: u64,
}

pub struct Plain<const FENCE: bool> {
    mapping: Mapping,
    free: Mutex<Free>,
    flush: Flush,
}

/// Changed ranges.
type Ranges = Vec<(u64, usize)>;

thread_local! {
    static RANGES: Cell<Ranges> = const { Cell::new(Vec::new()) };
}

/// Lines that operations with a fence wrote back, each once an operation; counted while it is not [`UNCOUNTED`].
static LINES: AtomicU64 = AtomicU64::new(UNCOUNTED);
const UNCOUNTED: u64 = u64::MAX;

/// Counts lines from now on: for runs that are not measured.
pub fn count_lines() {
    LINES.store(0, Ordering::Relaxed);
}

/// Lines written back since [`count_lines`].
pub fn lines() -> u64 {
    LINES.load(Ordering::Relaxed)
}

fn count(ranges: &Ranges) {
    let lines = |&(offset, bytes): &(u64, usize)| offset / 64..(offset + bytes as u64).div_ceil(64);
    let all: BTreeSet<u64> = ranges.iter().flat_map(lines).collect();
    LINES.fetch_add(all.len() as u64, Ordering::Relaxed);
}

pub struct Changes<'a, const FENCE: bool> {
    heap: &'a Plain<FENCE>,
    ranges: Ranges,
}

impl<const FENCE: bool> Plain<FENCE> {
    fn map(file: &File) -> Result<Self> {
        let mapping = Mapping::shared(file, file.metadata()?.len())?;
        let flush = Flush::detect().ok_or("no instruction writes cache lines back")?;
        // SAFETY: the mapping begins with where its used part ends.
        let end = unsafe { mapping.start().cast::<u64>().read() };
        let free = Free { lists: std::array::from_fn(|_| Vec::new()), end };
        Ok(Plain { mapping, free: Mutex::new(free), flush })
    }
}

impl<const FENCE: bool> Heap for Plain<FENCE> {
    type Transaction<'a> = Changes<'a, FENCE>;

    fn create(folder: &Path, root_bytes: u64, bytes: u64) -> Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(folder.join("plain"))?;
        file.set_len(bytes.next_multiple_of(ROOT))?;
        let mut heap = Self::map(&file)?;
        heap.free.get_mut().unwrap_or_else(PoisonError::into_inner).end =
            (ROOT + root_bytes).next_multiple_of(64);
        Ok(heap)
    }

    fn open(folder: &Path, _: u64) -> Result<Self> {
        let heap = Self::map(&File::options().read(true).write(true).open(folder.join("plain"))?)?;
        heap.mapping.populate();
        Ok(heap)
    }

    fn root(&self) -> u64 {
        ROOT
    }

    fn at(&self, offset: u64) -> *mut u8 {
        self.mapping.start().wrapping_add(offset as usize)
    }

    fn update<R>(&self, work: impl FnOnce(&mut Changes<'_, FENCE>) -> Result<R>) -> Result<R> {
        let mut changes = Changes { heap: self, ranges: RANGES.take() };
        let result = work(&mut changes);
        if FENCE {
            for &(offset, bytes) in &changes.ranges {
                self.persist(offset, bytes);
            }
            self.flush.fence();
            if LINES.load(Ordering::Relaxed) != UNCOUNTED {
                count(&changes.ranges);
            }
            changes.ranges.clear();
        }
        RANGES.set(changes.ranges);
        result
    }

    fn persist(&self, offset: u64, bytes: usize) {
        assert!(offset + bytes as u64 <= self.mapping.len() as u64);
        // SAFETY: the range is mapped; a flush reads nothing, and other threads keep to their own ranges.
        self.flush.lines(unsafe { std::slice::from_raw_parts(self.at(offset), bytes) });
    }

    fn close(self) -> Result<()> {
        let end = self.free.into_inner().unwrap_or_else(PoisonError::into_inner).end;
        // SAFETY: as in `map`.
        unsafe { self.mapping.start().cast::<u64>().write(end) };
        Ok(())
    }
}

impl<const FENCE: bool> Transaction for Changes<'_, FENCE> {
    #[inline]
    fn change(&mut self, offset: u64, bytes: usize) -> Result<*mut u8> {
        if FENCE {
            self.ranges.push((offset, bytes));
        }
        Ok(self.heap.at(offset))
    }

    #[inline]
    fn fill(&mut self, offset: u64, bytes: usize) -> Result<*mut u8> {
        self.change(offset, bytes)
    }

    fn allocate(&mut self, bytes: usize) -> Result<u64> {
        let class = bytes.div_ceil(CLASS_BYTES);
        let mut free = self.heap.free.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = match free.lists[class].pop() {
            Some(offset) => offset,
            None => {
                let (offset, size) = (free.end, (class * CLASS_BYTES) as u64);
                if offset + size > self.heap.mapping.len() as u64 {
                    return Err("the heap is full".into());
                }
                free.end += size;
                offset
            }
        };
        drop(free);
        self.change(offset, bytes)?;
        Ok(offset)
    }

    fn free(&mut self, offset: u64, bytes: usize) -> Result<()> {
        let mut free = self.heap.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.lists[bytes.div_ceil(CLASS_BYTES)].push(offset);
        Ok(())
    }
}
