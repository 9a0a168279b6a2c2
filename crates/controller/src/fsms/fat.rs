//! The FAT file systems as a block device sees them: the layout, from the boot sector; the contents of FAT and
//! directory entries (Microsoft, FAT32 File System Specification 1.03).

use super::SECTOR;

/// The FAT variant: determined by the number of clusters alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatKind {
    /// Fewer than 4085 clusters.
    Fat12,
    /// Fewer than 65525 clusters.
    Fat16,
    /// 65525 clusters or more.
    Fat32,
}

/// The file system on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Not recognised: only the regions of the configuration go to PRAM.
    Unknown,
    /// exFAT, which is not supported: everything goes to the device behind, and this tells the caller so.
    /// (Writing it is not an error: a block device does not choose its file system.)
    Exfat,
    /// A FAT volume.
    Fat(Volume),
}

/// The layout of a FAT volume. Sectors are those of the device (512 B), counted from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The FAT variant.
    pub kind: FatKind,
    /// The boot sector.
    pub base: u32,
    /// The active FAT: the first copy unless mirroring is off.
    pub fat: u32,
    /// Sectors of one copy.
    pub fat_sectors: u32,
    /// The fixed root directory of FAT12 and FAT16; on FAT32 it ends where it begins.
    pub root: u32,
    /// The first cluster; everything from `base` to here is metadata.
    pub data: u32,
    /// Sectors of one cluster.
    pub cluster_sectors: u32,
    /// Number of clusters, numbered from 2.
    pub clusters: u32,
    /// The first cluster of the root directory on FAT32.
    pub root_cluster: u32,
}

fn u16_at(bytes: &[u8], offset: usize) -> u32 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]]) as u32
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}

const DIRECTORY_BYTES_MAX: u32 = 65_536 * 32;
/// The most clusters of FAT32: larger entry values are markers (bad clusters, ends of chains).
const FAT32_CLUSTERS_MAX: u64 = 0x0fff_fff7 - 2;

/// Parses the boot sector of a volume that begins at `base`, on a device of `sectors`.
pub(super) fn parse(boot: &[u8], base: u32, sectors: u32) -> FileSystem {
    if &boot[3..11] == b"EXFAT   " {
        return FileSystem::Exfat;
    }
    volume(boot, base, sectors).map_or(FileSystem::Unknown, FileSystem::Fat)
}

/// The first sector of the first FAT partition, if this is a master boot record with one.
pub(super) fn partition(boot: &[u8]) -> Option<u32> {
    let types = [0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e];
    let mut entries = boot[446..510].chunks(16);
    let signed = boot[510..512] == [0x55, 0xaa];
    entries.find(|entry| signed && types.contains(&entry[4])).map(|entry| u32_at(entry, 8))
}

fn volume(boot: &[u8], base: u32, sectors: u32) -> Option<Volume> {
    let sector_bytes = u16_at(boot, 11);
    let factor = sector_bytes / SECTOR as u32;
    let per_cluster = boot[13] as u32;
    let (reserved, fats) = (u16_at(boot, 14), boot[16] as u32);
    let well_formed = boot[510..512] == [0x55, 0xaa]
        && matches!(boot[0], 0xeb | 0xe9)
        && matches!(sector_bytes, 512 | 1024 | 2048 | 4096)
        && per_cluster.is_power_of_two()
        && reserved > 0
        && fats > 0;
    if !well_formed {
        return None;
    }
    let (short_fat, short_total) = (u16_at(boot, 22), u16_at(boot, 19));
    let fat_sectors = if short_fat != 0 { short_fat } else { u32_at(boot, 36) };
    let total = if short_total != 0 { short_total } else { u32_at(boot, 32) };
    let root_sectors = (u16_at(boot, 17) * 32).div_ceil(sector_bytes);
    let root = reserved as u64 + fats as u64 * fat_sectors as u64;
    let data = root + root_sectors as u64;
    let clusters = (total as u64).checked_sub(data)? / per_cluster as u64;
    let end = base as u64 + total as u64 * factor as u64;
    if !(1..=FAT32_CLUSTERS_MAX).contains(&clusters) || fat_sectors == 0 || end > sectors as u64 {
        return None;
    }
    let kind = match clusters {
        0..4085 => FatKind::Fat12,
        4085..65525 => FatKind::Fat16,
        _ => FatKind::Fat32,
    };
    let flags = if kind == FatKind::Fat32 { u16_at(boot, 40) } else { 0 };
    let active = if flags & 0x80 != 0 { (flags & 0xf).min(fats - 1) } else { 0 };
    // From here on in sectors of the device; nothing exceeds `end`.
    let scaled = |sector: u64| base + (sector * factor as u64) as u32;
    Some(Volume {
        kind,
        base,
        fat: scaled(reserved as u64 + active as u64 * fat_sectors as u64),
        fat_sectors: fat_sectors * factor,
        root: scaled(root),
        data: scaled(data),
        cluster_sectors: per_cluster * factor,
        clusters: clusters as u32,
        root_cluster: if kind == FatKind::Fat32 { u32_at(boot, 44) } else { 0 },
    })
}

impl Volume {
    /// The cluster of a sector.
    #[inline]
    pub(super) fn cluster_of(&self, sector: u32) -> Option<u32> {
        let cluster = sector.checked_sub(self.data)? / self.cluster_sectors;
        (cluster < self.clusters).then_some(cluster + 2)
    }
    /// The first sector of a cluster.
    pub fn sector_of(&self, cluster: u32) -> u32 {
        self.data + (cluster - 2) * self.cluster_sectors
    }
    /// True if the cluster exists.
    pub fn has(&self, cluster: u32) -> bool {
        (2..self.clusters + 2).contains(&cluster)
    }

    /// The first byte of an entry in the FAT.
    pub(super) fn entry_offset(&self, cluster: u32) -> usize {
        match self.kind {
            FatKind::Fat12 => cluster as usize * 3 / 2,
            FatKind::Fat16 => cluster as usize * 2,
            FatKind::Fat32 => cluster as usize * 4,
        }
    }

    /// The clusters whose entries have a byte in `[from, to)` of the FAT.
    pub(super) fn entries(&self, from: usize, to: usize) -> std::ops::Range<u32> {
        let (first, end) = match self.kind {
            FatKind::Fat12 => ((from * 2 / 3).saturating_sub(1), to * 2 / 3 + 1),
            FatKind::Fat16 => (from / 2, to.div_ceil(2)),
            FatKind::Fat32 => (from / 4, to.div_ceil(4)),
        };
        let end = end.min(self.clusters as usize + 2);
        first.clamp(2, end.max(2)) as u32..end as u32
    }

    /// The value of an entry, from the bytes of the FAT that begin at `start`; `None` if it is not among them.
    pub(super) fn entry(&self, bytes: &[u8], start: usize, cluster: u32) -> Option<u32> {
        let offset = self.entry_offset(cluster).checked_sub(start)?;
        let width = if self.kind == FatKind::Fat32 { 4 } else { 2 };
        let bytes = bytes.get(offset..offset + width)?;
        Some(match self.kind {
            FatKind::Fat12 => u16_at(bytes, 0) >> (cluster % 2 * 4) & 0xfff,
            FatKind::Fat16 => u16_at(bytes, 0),
            FatKind::Fat32 => u32_at(bytes, 0) & 0x0fff_ffff,
        })
    }

    /// The most clusters a directory may have: 65,536 entries of 32 B (FAT specification 1.03, page 33).
    pub(super) fn directory_clusters_max(&self) -> u32 {
        (DIRECTORY_BYTES_MAX / SECTOR as u32 / self.cluster_sectors).max(1)
    }

    /// True if a directory ends in these bytes: an entry that begins with 0 means that none follows.
    pub(super) fn ends_directory(&self, bytes: &[u8]) -> bool {
        bytes.chunks_exact(32).any(|entry| entry[0] == 0)
    }

    /// The first clusters of the subdirectories named in a directory's bytes.
    pub(super) fn subdirectories(&self, bytes: &[u8]) -> impl Iterator<Item = u32> {
        let used = bytes.chunks_exact(32).take_while(|entry| entry[0] != 0);
        let named = used.filter(|entry| entry[0] != 0xe5 && entry[0] != b'.');
        // 0x0f is part of a long name, 0x08 a volume's name.
        let directories = named.filter(|entry| entry[11] & 0x3f != 0x0f && entry[11] & 0x18 == 0x10);
        let wide = self.kind == FatKind::Fat32;
        let first = move |entry: &[u8]| u16_at(entry, 26) | if wide { u16_at(entry, 20) << 16 } else { 0 };
        directories.map(first).filter(|&cluster| self.has(cluster))
    }

    /// True if these bytes begin the directory whose first cluster is `cluster`: its first entry, ignoring parts of
    /// long names, is "." and points to itself.
    pub(super) fn begins_directory(&self, bytes: &[u8], cluster: u32) -> bool {
        let first = bytes.chunks_exact(32).find(|entry| entry[11] & 0x3f != 0x0f);
        first.is_some_and(|entry| {
            &entry[..11] == b".          " && entry[11] & 0x10 != 0 && u16_at(entry, 26) == cluster & 0xffff
        })
    }
}
