//! A small FAT volume assembled byte by byte, so that any byte of it can be corrupted.

use nvlab_controller::fsms::{FatKind, SECTOR};
use nvlab_units::Rng;

/// A directory.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Root,
    Cluster(u32),
}

/// The image of a volume.
#[derive(Clone)]
pub struct Image {
    pub bytes: Vec<u8>,
    pub kind: FatKind,
    pub per_cluster: u32,
    pub clusters: u32,
    /// In sectors.
    fat: usize,
    root: usize,
    data: usize,
}

impl Image {
    /// Directories 10, 11, 12 and 20, 21 in the root; 90 in the first; a file in 30 to 80.
    pub fn well_formed(kind: FatKind) -> Image {
        let (sectors, per_cluster, reserved, fat_sectors, root_sectors) = match kind {
            FatKind::Fat12 => (2_000, 1, 1, 6, 4),
            FatKind::Fat16 => (9_000, 2, 1, 18, 4),
            FatKind::Fat32 => (68_000, 1, 32, 532, 0),
        };
        let root = reserved + 2 * fat_sectors;
        let data = root + root_sectors;
        let clusters = ((sectors - data) / per_cluster) as u32;
        let bytes = vec![0; sectors * SECTOR];
        let per_cluster = per_cluster as u32;
        let mut image = Image { bytes, kind, per_cluster, clusters, fat: reserved, root, data };
        image.bytes[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
        image.bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        let wide = kind == FatKind::Fat32;
        let fields = [
            (11, 2, SECTOR),
            (13, 1, per_cluster as usize),
            (14, 2, reserved),
            (16, 1, 2),
            (17, 2, root_sectors * 16),
            (19, 2, if wide { 0 } else { sectors }),
            (22, 2, if wide { 0 } else { fat_sectors }),
            (32, 4, if wide { sectors } else { 0 }),
            (36, 4, if wide { fat_sectors } else { 0 }),
            (44, 4, if wide { 2 } else { 0 }),
        ];
        for (at, width, value) in fields {
            image.bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        image.set(0, image.mark(0xff8));
        image.set(1, image.mark(0xfff));
        if wide {
            image.set(2, image.mark(0xfff));
        }
        for (chain, parent, place, index) in [
            (vec![10, 11, 12], 0, Place::Root, 0),
            (vec![20, 21], 0, Place::Root, 1),
            (vec![90], 10, Place::Cluster(10), 2),
        ] {
            image.directory(chain[0], parent);
            image.name(place, index, 0x10, chain[0]);
            image.chain(chain.iter().copied());
            image.set(*chain.last().unwrap(), image.mark(0xfff));
        }
        image.name(Place::Root, 2, 0x20, 30);
        image.chain(30..=80);
        image.set(80, image.mark(0xfff));
        for sector in image.sector(30)..image.sector(81) {
            image.bytes[sector * SECTOR..][..SECTOR].fill(0x30);
        }
        image
    }

    /// A mark of FAT12 as wide as those of this FAT.
    pub fn mark(&self, mark: u32) -> u32 {
        match self.kind {
            FatKind::Fat12 => mark,
            FatKind::Fat16 => 0xf000 | mark,
            FatKind::Fat32 => 0x0fff_f000 | mark,
        }
    }

    pub fn sector(&self, cluster: u32) -> usize {
        self.data + (cluster as usize - 2) * self.per_cluster as usize
    }

    /// What the FAT says of a cluster.
    pub fn set(&mut self, cluster: u32, to: u32) {
        let (c, fat) = (cluster as usize, self.fat * SECTOR);
        match self.kind {
            FatKind::Fat12 => {
                let pair = &mut self.bytes[fat + c + c / 2..][..2];
                let (shift, kept) = if c % 2 == 1 { (4, 0xf) } else { (0, 0xf000) };
                let old = u16::from_le_bytes([pair[0], pair[1]]);
                pair.copy_from_slice(&(old & kept | (to as u16 & 0xfff) << shift).to_le_bytes());
            }
            FatKind::Fat16 => self.bytes[fat + 2 * c..][..2].copy_from_slice(&(to as u16).to_le_bytes()),
            FatKind::Fat32 => self.bytes[fat + 4 * c..][..4].copy_from_slice(&to.to_le_bytes()),
        }
    }

    /// Each cluster leads to the next; the last one's entry stays.
    pub fn chain(&mut self, clusters: impl IntoIterator<Item = u32>) {
        let clusters: Vec<u32> = clusters.into_iter().collect();
        clusters.windows(2).for_each(|pair| self.set(pair[0], pair[1]));
    }

    fn entry(&mut self, place: Place, index: usize) -> &mut [u8] {
        let first = match place {
            Place::Root if self.kind != FatKind::Fat32 => self.root,
            Place::Root => self.sector(2),
            Place::Cluster(cluster) => self.sector(cluster),
        };
        &mut self.bytes[first * SECTOR + index * 32..][..32]
    }

    /// An entry of a directory.
    pub fn name(&mut self, place: Place, index: usize, attribute: u8, first: u32) {
        let entry = self.entry(place, index);
        entry[..11].copy_from_slice(b"NAME       ");
        entry[11] = attribute;
        entry[20..22].copy_from_slice(&((first >> 16) as u16).to_le_bytes());
        entry[26..28].copy_from_slice(&(first as u16).to_le_bytes());
    }

    /// Makes a cluster begin as a directory does.
    pub fn directory(&mut self, cluster: u32, parent: u32) {
        for (index, name, first) in [(0, b".          ", cluster), (1, b"..         ", parent)] {
            self.name(Place::Cluster(cluster), index, 0x10, first);
            self.entry(Place::Cluster(cluster), index)[..11].copy_from_slice(name);
        }
    }

    /// One random piece of damage, near what is in use more often than not.
    pub fn damage(&mut self, rng: &mut Rng) {
        let near = |rng: &mut Rng| 2 + rng.below(120) as u32;
        let any = self.clusters + 4;
        let target = if rng.chance(0.6) { near(rng) } else { rng.below(any as u64) as u32 };
        match rng.below(6) {
            0 | 1 => self.set(near(rng), target),
            2 => {
                let place = if rng.chance(0.3) { Place::Root } else { Place::Cluster(near(rng)) };
                let index = rng.below(16) as usize;
                self.name(place, index, if rng.chance(0.8) { 0x10 } else { rng.bits() as u8 }, target);
            }
            3 => {
                let (cluster, parent) = (near(rng), near(rng));
                self.directory(cluster, parent);
                let index = rng.below(14) as usize;
                self.name(Place::Cluster(near(rng)), index, 0x10, cluster);
                self.set(cluster, target);
            }
            4 => {
                let sector = match rng.chance(0.5) {
                    true => self.fat + rng.below(2) as usize,
                    false => self.sector(near(rng)),
                };
                for byte in &mut self.bytes[sector * SECTOR..][..SECTOR] {
                    *byte = rng.bits() as u8;
                }
            }
            _ => {
                let sector = self.sector(near(rng)) * SECTOR + rng.below(SECTOR as u64) as usize;
                self.bytes[sector] = rng.bits() as u8;
            }
        }
    }
}
