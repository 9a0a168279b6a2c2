//! The volume read by another hand than the separator's: which clusters are free, directories, files.

use fatfs::FatType;
use std::collections::BTreeSet;

/// A FAT volume in an image.
pub struct Walk<'a> {
    bytes: &'a [u8],
    kind: FatType,
    fat: usize,
    pub root: usize,
    pub data: usize,
    pub cluster_bytes: usize,
    pub clusters: u32,
}

fn number(bytes: &[u8], at: usize, width: usize) -> usize {
    bytes[at..at + width].iter().rev().fold(0, |number, &byte| number << 8 | byte as usize)
}

impl<'a> Walk<'a> {
    pub fn new(bytes: &'a [u8], kind: FatType) -> Walk<'a> {
        let fat = number(bytes, 14, 2) * 512;
        let fat_sectors = match number(bytes, 22, 2) {
            0 => number(bytes, 36, 4),
            sectors => sectors,
        };
        let root = fat + bytes[16] as usize * fat_sectors * 512;
        let data = root + number(bytes, 17, 2) * 32;
        let total = match number(bytes, 19, 2) {
            0 => number(bytes, 32, 4),
            sectors => sectors,
        };
        let cluster_bytes = bytes[13] as usize * 512;
        let clusters = ((total * 512 - data) / cluster_bytes) as u32;
        Walk { bytes, kind, fat, root, data, cluster_bytes, clusters }
    }

    pub fn entry(&self, cluster: u32) -> u32 {
        let c = cluster as usize;
        match self.kind {
            FatType::Fat12 => {
                let pair = number(self.bytes, self.fat + c + c / 2, 2) as u32;
                if c % 2 == 1 { pair >> 4 } else { pair & 0xfff }
            }
            FatType::Fat16 => number(self.bytes, self.fat + 2 * c, 2) as u32,
            FatType::Fat32 => number(self.bytes, self.fat + 4 * c, 4) as u32 & 0x0fff_ffff,
        }
    }

    pub fn is_free(&self, cluster: u32) -> bool {
        self.entry(cluster) == 0
    }

    pub fn sector(&self, cluster: u32) -> u32 {
        ((self.data + (cluster as usize - 2) * self.cluster_bytes) / 512) as u32
    }

    fn chain(&self, first: u32) -> Vec<u32> {
        let mut clusters = Vec::new();
        let mut cluster = first;
        while (2..self.clusters + 2).contains(&cluster) {
            clusters.push(cluster);
            cluster = self.entry(cluster);
        }
        clusters
    }

    /// First clusters of all directories but the root, and all clusters of files.
    pub fn directories_and_files(&self) -> (BTreeSet<u32>, BTreeSet<u32>) {
        let (mut directories, mut files) = (BTreeSet::new(), BTreeSet::new());
        let mut regions: Vec<Vec<(usize, usize)>> = Vec::new();
        let places = |clusters: Vec<u32>| -> Vec<(usize, usize)> {
            let place = |c: u32| (self.data + (c as usize - 2) * self.cluster_bytes, self.cluster_bytes);
            clusters.into_iter().map(place).collect()
        };
        match self.kind {
            FatType::Fat32 => regions.push(places(self.chain(number(self.bytes, 44, 4) as u32))),
            _ => regions.push(vec![(self.root, self.data - self.root)]),
        }
        while let Some(region) = regions.pop() {
            let bytes: Vec<u8> =
                region.iter().flat_map(|&(at, count)| self.bytes[at..at + count].iter().copied()).collect();
            for entry in bytes.chunks(32).take_while(|entry| entry[0] != 0) {
                if entry[0] == 0xe5 || entry[0] == b'.' || entry[11] & 0x08 != 0 {
                    continue;
                }
                let high = if self.kind == FatType::Fat32 { number(entry, 20, 2) << 16 } else { 0 };
                let first = (number(entry, 26, 2) | high) as u32;
                if entry[11] & 0x10 != 0 {
                    directories.insert(first);
                    regions.push(places(self.chain(first)));
                } else {
                    files.extend(self.chain(first));
                }
            }
        }
        (directories, files)
    }
}
