//! Learns about the volume from the writes: where it begins, which clusters are directories, which became free.
//!
//! - The boot sector determines where FATs and root directory are.
//! - A directory names its subdirectories (attribute 0x10), which begin with "."; the FAT determines their further
//!   clusters, now and when an entry of the chain changes.
//! - A cluster written to begin with "." is a directory, even if its parent is written later.
//! - A FAT entry that becomes 0 frees its cluster: it is no longer a directory, and may be trimmed.
//!
//! Learning is part of serving requests: its reads take time. What cannot be read is ignored.

use super::fat::{self, FileSystem, Volume};
use super::{Fsms, SECTOR};
use crate::{BesidePram, ControllerError};
use nvlab_units::{Extent, Lpa, Time};

/// Freed clusters listed until the next flush; the space of further ones stays occupied until it is written again.
const TO_TRIM_MAX: usize = 1 << 16;

/// A set of clusters.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    fn new(count: u32) -> Bits {
        Bits(vec![0; count.div_ceil(64) as usize])
    }
    #[inline]
    pub fn get(&self, bit: u32) -> bool {
        self.0.get(bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
    fn set(&mut self, bit: u32) {
        self.0[bit as usize / 64] |= 1 << (bit % 64);
    }
    /// Removes a cluster; returns true if it was in the set.
    fn clear(&mut self, bit: u32) -> bool {
        let was = self.get(bit);
        self.0[bit as usize / 64] &= !(1 << (bit % 64));
        was
    }
    pub fn bytes(&self) -> u64 {
        8 * self.0.len() as u64
    }
}

/// A walk of directories: each cluster is entered at most once by name, and read at most once as part of a directory.
struct Walk {
    queue: Vec<u32>,
    named: Bits,
    walked: Bits,
}

impl Walk {
    fn new(volume: &Volume) -> Walk {
        let clusters = volume.clusters + 2;
        Walk { queue: Vec::new(), named: Bits::new(clusters), walked: Bits::new(clusters) }
    }
    fn name(&mut self, cluster: u32) {
        if !self.named.get(cluster) {
            self.named.set(cluster);
            self.queue.push(cluster);
        }
    }
}

/// The part of `extent` inside `[start, start + count)`.
fn inside(extent: Extent, start: u32, count: u32) -> Option<Extent> {
    let from = extent.start.max(Lpa(start));
    let to = extent.end().min(start as u64 + count as u64);
    (to > from.0 as u64).then(|| Extent { start: from, count: (to - from.0 as u64) as u32 })
}

/// The bytes of a part of a write.
fn part(data: &[u8], extent: Extent, part: Extent) -> &[u8] {
    &data[(part.start - extent.start) as usize * SECTOR..][..part.count as usize * SECTOR]
}

impl<C: BesidePram> Fsms<C> {
    fn volume(&self) -> Option<Volume> {
        match self.file_system {
            FileSystem::Fat(volume) => Some(volume),
            _ => None,
        }
    }

    fn look(&mut self, at: Time, extent: Extent) -> Option<(Vec<u8>, Time)> {
        let mut bytes = vec![0; extent.count as usize * SECTOR];
        let end = self.read_sectors(at, extent, &mut bytes).ok()?;
        Some((bytes, end))
    }

    /// Before a write: a boot sector or the beginning of a directory determines where it goes; the old contents of the
    /// FAT are kept in `before`. Returns when that is known.
    pub(super) fn prepare_for_write(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
        before: &mut Vec<u8>,
    ) -> Time {
        before.clear();
        let mut now = at;
        if let Some(first) = inside(extent, 0, 1) {
            let sector = part(data, extent, first);
            let found = fat::parse(sector, 0, self.sectors);
            self.boot = 0;
            match fat::partition(sector).filter(|&boot| found == FileSystem::Unknown && boot < self.sectors) {
                None => self.adopt(found),
                Some(boot) => {
                    self.boot = boot;
                    if let Some((bytes, end)) = self.look(at, Extent::one(Lpa(boot))) {
                        self.adopt(fat::parse(&bytes, boot, self.sectors));
                        now = end;
                    }
                }
            }
        }
        if let Some(boot) = inside(extent, self.boot, 1).filter(|_| self.boot > 0) {
            self.adopt(fat::parse(part(data, extent, boot), self.boot, self.sectors));
        }
        let Some(volume) = self.volume() else { return now };
        self.recognise_directories(&volume, extent, data);
        match window(&volume, extent).and_then(|window| self.look(now, window)) {
            Some((bytes, end)) => {
                *before = bytes;
                end
            }
            None => now,
        }
    }

    /// Adopts a new file system on the device: everything learnt so far is void.
    fn adopt(&mut self, found: FileSystem) {
        if found == self.file_system {
            return;
        }
        self.file_system = found;
        self.reclaimable = true;
        self.to_trim.clear();
        let clusters = self.volume().map_or(0, |volume| volume.clusters + 2);
        (self.directories, self.freed) = (Bits::new(clusters), Bits::new(clusters));
        if let Some(volume) = self.volume().filter(|volume| volume.has(volume.root_cluster)) {
            self.directories.set(volume.root_cluster);
        }
    }

    fn recognise_directories(&mut self, volume: &Volume, extent: Extent, data: &[u8]) {
        for (sector, bytes) in extent.units().zip(data.chunks(SECTOR)) {
            let Some(cluster) = volume.cluster_of(sector.0) else { continue };
            let first = sector.0 == volume.sector_of(cluster);
            if first && volume.begins_directory(bytes, cluster) {
                self.mark(cluster);
            }
        }
    }

    /// After a write: learns from the new FAT and directory contents.
    pub(super) fn learn_from(&mut self, at: Time, extent: Extent, data: &[u8], before: &mut [u8]) {
        let Some(volume) = self.volume() else { return };
        if let Some(window) = window(&volume, extent).filter(|_| !before.is_empty()) {
            self.learn_from_fat(at, &volume, (extent, data), (window, before));
        }
        for (sector, bytes) in extent.units().zip(data.chunks(SECTOR)) {
            let in_root = (volume.root..volume.data).contains(&sector.0);
            let in_directory =
                || volume.cluster_of(sector.0).is_some_and(|cluster| self.directories.get(cluster));
            if in_root || in_directory() {
                self.learn_subdirectories(at, &volume, bytes);
            }
        }
    }

    /// Compares the FAT entries before and after a write.
    fn learn_from_fat(
        &mut self,
        at: Time,
        volume: &Volume,
        (extent, data): (Extent, &[u8]),
        (window, before): (Extent, &mut [u8]),
    ) {
        let Some(written) = inside(extent, volume.fat, volume.fat_sectors) else { return };
        let start = (window.start.0 - volume.fat) as usize * SECTOR;
        let from = (written.start.0 - volume.fat) as usize * SECTOR;
        let to = from + written.count as usize * SECTOR;
        let entries = volume.entries(from, to);
        let old: Vec<Option<u32>> = entries.clone().map(|c| volume.entry(before, start, c)).collect();
        before[from - start..to - start].copy_from_slice(part(data, extent, written));
        for (cluster, old) in entries.zip(old) {
            let (Some(old), Some(new)) = (old, volume.entry(before, start, cluster)) else { continue };
            if old != new {
                self.entry_changed(at, volume, cluster, new);
            }
        }
    }

    fn entry_changed(&mut self, at: Time, volume: &Volume, cluster: u32, new: u32) {
        if new != 0 {
            self.freed.clear(cluster);
            if self.directories.get(cluster) {
                self.mark_chain(at, volume, new);
            }
            return;
        }
        self.stats.clusters_freed += 1;
        // The root directory of FAT32 stays a directory, whatever a format in progress writes.
        if cluster != volume.root_cluster && self.directories.clear(cluster) {
            self.reclaimable = true;
        }
        if self.config.logical_delete && self.to_trim.len() < TO_TRIM_MAX && !self.freed.get(cluster) {
            self.freed.set(cluster);
            self.to_trim.push(cluster);
        }
    }

    /// Reads the FAT entry of a cluster.
    fn fat_entry(&mut self, at: Time, volume: &Volume, cluster: u32) -> Option<(u32, Time)> {
        let offset = volume.entry_offset(cluster);
        let first = (offset / SECTOR) as u32;
        // An entry of FAT12 may straddle two sectors.
        let count = if offset % SECTOR == SECTOR - 1 { 2 } else { 1 };
        let sectors =
            inside(Extent { start: Lpa(volume.fat + first), count }, volume.fat, volume.fat_sectors)?;
        let (bytes, end) = self.look(at, sectors)?;
        Some((volume.entry(&bytes, first as usize * SECTOR, cluster)?, end))
    }

    fn mark(&mut self, cluster: u32) {
        if !self.directories.get(cluster) {
            self.directories.set(cluster);
            self.stats.directories_learnt += 1;
        }
    }

    /// Marks a cluster and its successors in the FAT as a directory, at most as many as a directory can have.
    fn mark_chain(&mut self, at: Time, volume: &Volume, first: u32) {
        let (mut cluster, mut now) = (first, at);
        for _ in 0..volume.directory_clusters_max() {
            if !volume.has(cluster) || self.directories.get(cluster) {
                break;
            }
            self.mark(cluster);
            let Some((next, end)) = self.fat_entry(now, volume, cluster) else { break };
            (cluster, now) = (next, end);
        }
    }

    fn learn_subdirectories(&mut self, at: Time, volume: &Volume, bytes: &[u8]) -> Time {
        let mut named =
            volume.subdirectories(bytes).filter(|&cluster| !self.directories.get(cluster)).peekable();
        if named.peek().is_none() {
            return at;
        }
        let mut walk = Walk::new(volume);
        named.for_each(|cluster| walk.name(cluster));
        self.enter_directories(at, volume, walk)
    }

    /// Marks directories and all below them. Entering a cluster by name reads one sector of it and its FAT entry,
    /// and every cluster of a directory is read once, so the work is bounded by the size of the directories and the
    /// number of clusters they name, whatever cycles the FAT and the names form.
    fn enter_directories(&mut self, at: Time, volume: &Volume, mut walk: Walk) -> Time {
        let mut now = at;
        while let Some(first) = walk.queue.pop() {
            if !self.directories.get(first) {
                now = self.enter_directory(now, volume, first, &mut walk);
            }
        }
        now
    }

    /// Marks a directory and collects its subdirectories. A name alone proves nothing (a client may free a directory
    /// before it deletes the name, or fill in an entry field by field over an old one): the FAT must mark it as
    /// used, and it must begin as a directory. One that does not yet is recognised when it does.
    fn enter_directory(&mut self, at: Time, volume: &Volume, first: u32, walk: &mut Walk) -> Time {
        let Some((next, now)) = self.fat_entry(at, volume, first) else { return at };
        if next == 0 {
            return now;
        }
        let Some((bytes, now)) = self.look(now, Extent::one(Lpa(volume.sector_of(first)))) else {
            return now;
        };
        match volume.begins_directory(&bytes, first) {
            true => self.walk_chain(now, volume, (first, Some(next)), walk),
            false => now,
        }
    }

    /// Marks the clusters of a directory (the FAT entry of the first may be known) and reads their names up to the end
    /// mark. The chain ends at a cluster already walked, and at the limit of the specification: a directory has at
    /// most 65,536 entries.
    fn walk_chain(
        &mut self,
        at: Time,
        volume: &Volume,
        (first, mut known): (u32, Option<u32>),
        walk: &mut Walk,
    ) -> Time {
        let (mut cluster, mut now, mut ended) = (first, at, false);
        for _ in 0..volume.directory_clusters_max() {
            if !volume.has(cluster) || walk.walked.get(cluster) {
                break;
            }
            walk.walked.set(cluster);
            self.mark(cluster);
            let sectors = Extent { start: Lpa(volume.sector_of(cluster)), count: volume.cluster_sectors };
            if let Some((bytes, end)) = (!ended).then(|| self.look(now, sectors)).flatten() {
                volume.subdirectories(&bytes).for_each(|cluster| walk.name(cluster));
                (now, ended) = (end, volume.ends_directory(&bytes));
            }
            cluster = match known.take() {
                Some(next) => next,
                None => {
                    let Some((next, end)) = self.fat_entry(now, volume, cluster) else { break };
                    now = end;
                    next
                }
            };
        }
        now
    }

    /// Reads the volume on the device, if there is one, and all its directories. Returns when that is done.
    pub fn learn(&mut self, at: Time) -> Result<Time, ControllerError> {
        let mut bytes = vec![0; SECTOR];
        let mut now = self.read_sectors(at, Extent::one(Lpa(0)), &mut bytes)?;
        let mut found = fat::parse(&bytes, 0, self.sectors);
        self.boot = 0;
        let partition = fat::partition(&bytes).filter(|&boot| boot < self.sectors);
        if let Some(boot) = partition.filter(|_| found == FileSystem::Unknown) {
            self.boot = boot;
            now = self.read_sectors(now, Extent::one(Lpa(boot)), &mut bytes)?;
            found = fat::parse(&bytes, boot, self.sectors);
        }
        self.adopt(found);
        let Some(volume) = self.volume() else { return Ok(now) };
        if volume.has(volume.root_cluster) {
            let mut walk = Walk::new(&volume);
            now = self.walk_chain(now, &volume, (volume.root_cluster, None), &mut walk);
            return Ok(self.enter_directories(now, &volume, walk));
        }
        let root = Extent { start: Lpa(volume.root), count: volume.data - volume.root };
        let mut bytes = vec![0; root.count as usize * SECTOR];
        now = self.read_sectors(now, root, &mut bytes)?;
        Ok(self.learn_subdirectories(now, &volume, &bytes))
    }

    /// Marks the clusters of sectors being written as used, whatever the FAT still says.
    #[inline]
    pub(super) fn keep_clusters(&mut self, extent: Extent) {
        if self.to_trim.is_empty() {
            return;
        }
        let Some(volume) = self.volume() else { return };
        let Some(extent) = inside(extent, volume.data, volume.clusters * volume.cluster_sectors) else {
            return;
        };
        let (first, last) = (volume.cluster_of(extent.start.0), volume.cluster_of(extent.end() as u32 - 1));
        for cluster in first.expect("inside the clusters")..=last.expect("inside the clusters") {
            self.freed.clear(cluster);
        }
    }

    /// Trims the clusters that became free and are still free.
    pub(super) fn trim_freed(&mut self, at: Time) -> Result<(), ControllerError> {
        let Some(volume) = self.volume().filter(|_| !self.to_trim.is_empty()) else { return Ok(()) };
        let mut freed = std::mem::take(&mut self.to_trim);
        freed.sort_unstable();
        let mut now = at;
        let mut run = Extent { start: Lpa(0), count: 0 };
        for &cluster in &freed {
            let free =
                self.freed.clear(cluster) && matches!(self.fat_entry(now, &volume, cluster), Some((0, _)));
            if !free {
                continue;
            }
            self.stats.clusters_trimmed += 1;
            let start = volume.sector_of(cluster);
            if run.end() != start as u64 || run.count == 0 {
                now = self.trim_sectors(now, run)?;
                run = Extent { start: Lpa(start), count: 0 };
            }
            run.count += volume.cluster_sectors;
        }
        self.trim_sectors(now, run)?;
        freed.clear();
        self.to_trim = freed;
        Ok(())
    }
}

/// The sectors of the FAT that a write overlaps, and one on either side: entries of FAT12 may straddle two.
fn window(volume: &Volume, extent: Extent) -> Option<Extent> {
    let written = inside(extent, volume.fat, volume.fat_sectors)?;
    let wider = Extent { start: Lpa(written.start.0 - 1), count: written.count + 2 };
    inside(wider, volume.fat, volume.fat_sectors)
}
