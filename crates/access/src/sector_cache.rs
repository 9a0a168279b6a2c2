//! A write-back cache of sectors between a file system and its device, as embedded file systems and kernels have
//! one. Without it a FAT implementation rewrites a sector of the FAT for every cluster.
//!
//! It is not a cache of file data. Whole sectors go straight to the device, parts of sectors go through the cache:
//! a file system writes data in whole sectors (if its client does) and entries of FATs and directories in parts.
//!
//! 1. A read returns what was written last, wherever it is.
//! 2. A dirty sector is written only when it is evicted or at [`SectorCache::sync`], in order of address,
//!    neighbours in one request. What was not synced may be lost in a power cut. Writing identical bytes (an
//!    unchanged date) does not make a sector dirty.
//! 3. There is one client: each request begins when the previous one is done.

use crate::BlockDevice;
use nvlab_units::Time;
use std::cell::RefCell;
use std::io::{Error, Read, Result, Seek, SeekFrom, Write};

/// Unit of the cache and of addresses below it.
pub const SECTOR_BYTES: usize = 512;
/// Maximum number of sectors per request.
const TOGETHER: usize = 128;
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Frame {
    sector: u32,
    changed: bool,
    /// Used since the clock hand passed.
    used: bool,
}

/// A device behind a cache of its sectors.
#[derive(Clone, Debug)]
pub struct SectorCache<D> {
    device: D,
    now: Time,
    frames: Vec<Frame>,
    bytes: Vec<u8>,
    /// The frame of each sector of the device.
    index: Vec<u32>,
    /// The clock hand: where the search for a frame to reuse continues (second chance).
    hand: usize,
    together: Vec<u8>,
}

impl<D: BlockDevice> SectorCache<D> {
    /// A device behind a cache of `cache_bytes`; at least one sector.
    pub fn new(device: D, cache_bytes: u64) -> SectorCache<D> {
        let frames = (cache_bytes as usize / SECTOR_BYTES).max(1);
        let sectors = device.capacity_bytes() as usize / SECTOR_BYTES;
        SectorCache {
            frames: vec![Frame { sector: NOWHERE, changed: false, used: false }; frames],
            bytes: vec![0; frames * SECTOR_BYTES],
            index: vec![NOWHERE; sectors],
            hand: 0,
            now: Time::ZERO,
            together: Vec::new(),
            device,
        }
    }

    /// The device below, which may lack dirty sectors of the cache.
    pub fn device(&self) -> &D {
        &self.device
    }
    /// The device below; the cache does not notice what is written there.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }
    /// Returns the device; what was not synced is lost.
    pub fn into_device(self) -> D {
        self.device
    }
    /// Completion time of the last request; the next begins then.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Writes every dirty sector and flushes the device.
    pub fn sync(&mut self) -> Result<()> {
        let changed = self.frames.iter().enumerate().filter(|(_, frame)| frame.changed);
        let mut changed: Vec<(u32, usize)> = changed.map(|(i, frame)| (frame.sector, i)).collect();
        if changed.is_empty() {
            return Ok(());
        }
        changed.sort_unstable();
        for run in changed.chunk_by(|a, b| a.0 + 1 == b.0).flat_map(|run| run.chunks(TOGETHER)) {
            let mut together = std::mem::take(&mut self.together);
            together.clear();
            for &(_, frame) in run {
                together.extend_from_slice(&self.bytes[frame * SECTOR_BYTES..][..SECTOR_BYTES]);
                self.frames[frame].changed = false;
            }
            let written = self.write_through(run[0].0, &together);
            self.together = together;
            written?;
        }
        self.now = self.device.flush(self.now).map_err(Error::other)?.end;
        Ok(())
    }

    fn write_through(&mut self, sector: u32, data: &[u8]) -> Result<()> {
        let offset = sector as u64 * SECTOR_BYTES as u64;
        let served = self.device.write(self.now, offset, data.len() as u32, data);
        self.now = served.map_err(Error::other)?.end;
        Ok(())
    }

    fn read_through(&mut self, sector: u32, into: &mut [u8]) -> Result<()> {
        let offset = sector as u64 * SECTOR_BYTES as u64;
        let served = self.device.read(self.now, offset, into.len() as u32, into);
        self.now = served.map_err(Error::other)?.end;
        Ok(())
    }

    /// The frame of a sector, which is read if it is not cached.
    fn frame(&mut self, sector: u32) -> Result<usize> {
        let found = self.index[sector as usize];
        if found != NOWHERE {
            self.frames[found as usize].used = true;
            return Ok(found as usize);
        }
        let frame = self.evict()?;
        let mut bytes = [0; SECTOR_BYTES];
        self.read_through(sector, &mut bytes)?;
        self.bytes[frame * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(&bytes);
        self.frames[frame] = Frame { sector, changed: false, used: true };
        self.index[sector as usize] = frame as u32;
        Ok(frame)
    }

    /// Frees a frame that was not used recently.
    fn evict(&mut self) -> Result<usize> {
        while std::mem::take(&mut self.frames[self.hand].used) {
            self.hand = (self.hand + 1) % self.frames.len();
        }
        let frame = self.hand;
        self.hand = (self.hand + 1) % self.frames.len();
        let Frame { sector, changed, .. } = self.frames[frame];
        if changed {
            let mut bytes = [0; SECTOR_BYTES];
            bytes.copy_from_slice(&self.bytes[frame * SECTOR_BYTES..][..SECTOR_BYTES]);
            self.write_through(sector, &bytes)?;
        }
        self.forget(frame);
        Ok(frame)
    }

    fn forget(&mut self, frame: usize) {
        let sector = self.frames[frame].sector;
        if sector != NOWHERE {
            self.index[sector as usize] = NOWHERE;
        }
        self.frames[frame] = Frame { sector: NOWHERE, changed: false, used: false };
    }

    fn end(&self) -> u64 {
        self.index.len() as u64 * SECTOR_BYTES as u64
    }

    /// Reads a part of a sector, or whole sectors; returns the number of bytes.
    fn read_at(&mut self, position: u64, into: &mut [u8]) -> Result<usize> {
        let room = self.end().saturating_sub(position).min(into.len() as u64) as usize;
        let (sector, inside) = place(position);
        if room == 0 {
            return Ok(0);
        }
        if inside > 0 || room < SECTOR_BYTES {
            let count = room.min(SECTOR_BYTES - inside);
            let frame = self.frame(sector)?;
            into[..count].copy_from_slice(&self.bytes[frame * SECTOR_BYTES + inside..][..count]);
            return Ok(count);
        }
        let count = (room / SECTOR_BYTES).min(TOGETHER);
        self.read_through(sector, &mut into[..count * SECTOR_BYTES])?;
        for (i, into) in into.chunks_exact_mut(SECTOR_BYTES).take(count).enumerate() {
            let frame = self.index[sector as usize + i];
            if frame != NOWHERE {
                into.copy_from_slice(&self.bytes[frame as usize * SECTOR_BYTES..][..SECTOR_BYTES]);
            }
        }
        Ok(count * SECTOR_BYTES)
    }

    /// Writes a part of a sector, or whole sectors; returns the number of bytes.
    fn write_at(&mut self, position: u64, data: &[u8]) -> Result<usize> {
        let room = self.end().saturating_sub(position).min(data.len() as u64) as usize;
        let (sector, inside) = place(position);
        if room == 0 {
            return Ok(0);
        }
        if inside > 0 || room < SECTOR_BYTES {
            let count = room.min(SECTOR_BYTES - inside);
            let frame = self.frame(sector)?;
            let held = &mut self.bytes[frame * SECTOR_BYTES + inside..][..count];
            if *held != data[..count] {
                held.copy_from_slice(&data[..count]);
                self.frames[frame].changed = true;
            }
            return Ok(count);
        }
        let count = (room / SECTOR_BYTES).min(TOGETHER);
        for sector in sector..sector + count as u32 {
            let frame = self.index[sector as usize];
            if frame != NOWHERE {
                self.forget(frame as usize);
            }
        }
        self.write_through(sector, &data[..count * SECTOR_BYTES])?;
        Ok(count * SECTOR_BYTES)
    }
}

/// The sector of a byte and the offset in it.
fn place(position: u64) -> (u32, usize) {
    ((position / SECTOR_BYTES as u64) as u32, (position % SECTOR_BYTES as u64) as usize)
}

/// A reader and writer of a cached device, for a file system. It shares the cache with the code that decides when to
/// sync: its own flush does nothing, since a FAT implementation requests one whenever it drops a directory.
#[derive(Debug)]
pub struct CachedDisk<'a, D> {
    cache: &'a RefCell<SectorCache<D>>,
    position: u64,
}

impl<'a, D: BlockDevice> CachedDisk<'a, D> {
    /// A stream over the cached device, from its first byte.
    pub fn new(cache: &'a RefCell<SectorCache<D>>) -> CachedDisk<'a, D> {
        CachedDisk { cache, position: 0 }
    }
}

impl<D: BlockDevice> Read for CachedDisk<'_, D> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let count = self.cache.borrow_mut().read_at(self.position, into)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl<D: BlockDevice> Write for CachedDisk<'_, D> {
    fn write(&mut self, data: &[u8]) -> Result<usize> {
        let count = self.cache.borrow_mut().write_at(self.position, data)?;
        self.position += count as u64;
        Ok(count)
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<D: BlockDevice> Seek for CachedDisk<'_, D> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let moved = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.cache.borrow().end().checked_add_signed(by),
        };
        self.position = moved.ok_or_else(|| Error::other("a position before the beginning of the device"))?;
        Ok(self.position)
    }
}
