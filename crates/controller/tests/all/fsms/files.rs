//! Random file operations through a FAT implementation.

use crate::fsms::devices::{Behind, Logged, Paged, config, separator};
use crate::fsms::image::Disk;
use crate::fsms::walk::Walk;
use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};
use nvlab_controller::Controller;
use nvlab_controller::fsms::{FatKind, FileSystem as Found, Fsms, SECTOR, Update};
use nvlab_units::{Extent, Lpa, Rng};
use std::io::{Read, Seek, SeekFrom, Write};

/// What a client does to a volume.
pub struct Client {
    rng: Rng,
    directories: Vec<String>,
    files: Vec<String>,
    names: u32,
}

impl Client {
    pub fn new(seed: u64) -> Client {
        Client {
            rng: Rng::stream(seed, "client"),
            directories: vec![String::new()],
            files: Vec::new(),
            names: 0,
        }
    }

    fn pick(&mut self, count: usize) -> usize {
        self.rng.below(count as u64) as usize
    }

    fn new_path(&mut self, kind: &str) -> String {
        let directory = self.pick(self.directories.len());
        self.names += 1;
        // Some names are long, so that directories grow over clusters.
        let tail = if self.rng.chance(0.3) { " with a rather long name, for its entries" } else { "" };
        format!("{}{kind}{}{tail}", self.directories[directory], self.names)
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.rng.below(most)).map(|_| self.rng.bits() as u8).collect()
    }

    /// One operation; a volume that is full, or a directory that is not empty, refuses, which is fine.
    pub fn act<T: fatfs::ReadWriteSeek>(&mut self, volume: &FileSystem<T>) {
        let root = volume.root_dir();
        let file = self.pick(self.files.len().max(1));
        match self.rng.below(12) {
            0..=2 => {
                let path = self.new_path("f");
                if let Ok(mut created) = root.create_file(&path) {
                    let _ = created.write_all(&self.bytes(9_000));
                    self.files.push(path);
                }
            }
            3 => {
                let path = self.new_path("d");
                if root.create_dir(&path).is_ok() {
                    self.directories.push(path + "/");
                }
            }
            4 if self.directories.len() > 1 => {
                let index = 1 + self.pick(self.directories.len() - 1);
                if root.remove(self.directories[index].trim_end_matches('/')).is_ok() {
                    self.directories.remove(index);
                }
            }
            _ if self.files.is_empty() => {}
            5 | 6 => {
                let path = self.files.swap_remove(file);
                root.remove(&path).unwrap();
            }
            7 => {
                let to = self.new_path("r");
                if root.rename(&self.files[file], &root, &to).is_ok() {
                    self.files[file] = to;
                }
            }
            action => {
                let mut opened = root.open_file(&self.files[file]).unwrap();
                let length = opened.seek(SeekFrom::End(0)).unwrap();
                let at = if action == 8 { length } else { self.rng.below(length + 1) };
                opened.seek(SeekFrom::Start(at)).unwrap();
                match action {
                    8 | 9 => drop(opened.write_all(&self.bytes(5_000))),
                    10 => opened.truncate().unwrap(),
                    _ => drop(opened.read_to_end(&mut Vec::new()).unwrap()),
                }
                let _ = opened.flush();
            }
        }
    }
}

pub const KINDS: [(FatType, FatKind, u32, u32); 3] = [
    (FatType::Fat12, FatKind::Fat12, 2_000, 512),
    (FatType::Fat16, FatKind::Fat16, 9_000, 512),
    (FatType::Fat32, FatKind::Fat32, 68_000, 512),
];

pub fn formatted<C: Behind>(device: Fsms<C>, kind: FatType, cluster_bytes: u32) -> Disk<C> {
    let mut disk = Disk::new(device);
    let sectors = disk.device.capacity_units();
    let options = FormatVolumeOptions::new()
        .fat_type(kind)
        .bytes_per_cluster(cluster_bytes)
        .total_sectors(sectors)
        .max_root_dir_entries(128);
    fatfs::format_volume(&mut disk, options).unwrap();
    disk
}

fn run<C: Behind>(
    (kind, found, sectors, cluster): (FatType, FatKind, u32, u32),
    pram_bytes: u64,
    (update, delete): (Update, bool),
    seed: u64,
) -> Disk<C> {
    let device = separator(config(update, delete), C::build(sectors, 2048), pram_bytes);
    let mut disk = formatted(device, kind, cluster);
    disk.device.reset_stats();
    let mut client = Client::new(seed);
    // The client looks for free clusters entry by entry, which takes long in a large FAT.
    let actions = if kind == FatType::Fat32 { 30 } else { 120 };
    for _ in 0..4 {
        let volume = FileSystem::new(disk.rewound(), FsOptions::new()).unwrap();
        assert_eq!(volume.fat_type(), kind);
        for _ in 0..actions {
            client.act(&volume);
        }
        volume.unmount().unwrap();
        disk.flush().unwrap();
        disk.device.check();
    }
    assert!(matches!(disk.device.file_system(), Found::Fat(volume) if volume.kind == found));
    disk
}

/// Every sector as the plain image has it, which forgot what was trimmed.
fn compare<C: Behind>(disk: &mut Disk<C>, delete: bool) {
    let mut bytes = [0; SECTOR];
    for sector in 0..disk.device.capacity_units() {
        disk.device.read(disk.now, Extent::one(Lpa(sector)), &mut bytes).unwrap();
        assert!(bytes == *disk.image.sectors(Extent::one(Lpa(sector))), "sector {sector} reads wrong");
    }
    assert_eq!(disk.absorbed > 20, delete, "{} sectors were deleted", disk.absorbed);
}

fn everything<C: Behind>() {
    for (i, kind) in KINDS.into_iter().enumerate() {
        for (j, (update, delete)) in
            [(Update::Journalled, false), (Update::Journalled, true), (Update::InPlace, true)]
                .into_iter()
                .enumerate()
        {
            if kind.0 == FatType::Fat32 && !delete {
                continue;
            }
            let mut disk = run::<C>(kind, 2 << 20, (update, delete), (i * 3 + j) as u64);
            compare(&mut disk, delete);
            where_things_are(&disk, kind.0);
            let stats = disk.device.stats();
            assert_eq!(stats.spilled_sectors, 0);
            assert!(stats.changed_share() > 0.0 && stats.changed_share() < 0.5, "{stats:?}");
            assert!(stats.pram_written_sectors > stats.written_sectors / 3, "{stats:?}");
        }
    }
}

/// All that is metadata is in PRAM (as far as it was written since it was known as such), and no file.
fn where_things_are<C: Behind>(disk: &Disk<C>, kind: FatType) {
    let walk = Walk::new(&disk.image.0, kind);
    assert!(
        (0..(walk.root / SECTOR) as u32)
            .filter(|&sector| sector > 32)
            .all(|sector| disk.device.is_in_pram(Lpa(sector)))
    );
    let (directories, files) = walk.directories_and_files();
    assert!(directories.len() > 4 && files.len() > 20, "{directories:?} {files:?}");
    for &directory in &directories {
        assert!(disk.device.is_in_pram(Lpa(walk.sector(directory))), "directory {directory} is not in PRAM");
    }
    let per_cluster = (walk.cluster_bytes / SECTOR) as u32;
    for file in files {
        let sector = walk.sector(file);
        assert!(
            (sector..sector + per_cluster).all(|sector| !disk.device.is_in_pram(Lpa(sector))),
            "file cluster {file}"
        );
    }
}

#[test]
fn files_over_hftl_read_as_on_a_plain_disk() {
    everything::<Paged>();
}

#[test]
fn files_over_log_blocks_read_as_on_a_plain_disk() {
    everything::<Logged>();
}

#[test]
fn a_small_pram_spills_and_loses_nothing() {
    for kind in KINDS {
        let mut disk = run::<Paged>(kind, 12 << 10, (Update::Journalled, false), 5);
        compare(&mut disk, false);
        assert!(disk.device.stats().spilled_sectors > 100, "{:?}", disk.device.stats());
        let (used, of) = disk.device.sectors_in_pram();
        assert!(used + 2 >= of && of < 24, "{used} of {of}");
    }
}
