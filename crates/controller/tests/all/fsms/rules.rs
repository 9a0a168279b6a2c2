//! What the separator recognises and what it leaves alone, byte by byte.

use crate::fsms::devices::{Behind, Logged, Paged, config, cut_and_mount, separator};
use crate::fsms::files::{KINDS, formatted};
use crate::fsms::walk::Walk;
use fatfs::{FatType, FileSystem, FsOptions};
use nvlab_controller::fsms::{FileSystem as Found, Fsms, FsmsConfig, SECTOR, Update};
use nvlab_controller::hftl::Hftl;
use nvlab_controller::{Beside, BesidePram, Controller};
use nvlab_medium::flash::Nand;
use nvlab_medium::pcm::{Pcm, PcmConfig, Tear};
use nvlab_medium::{InPlace, MemStore};
use nvlab_units::{Extent, Lpa, Time};
use std::io::Write;

fn plain() -> FsmsConfig {
    config(Update::Journalled, true)
}

#[test]
fn exfat_is_refused_and_passed_through() {
    let mut device = separator(plain(), Paged::build(1_000, 2048), 1 << 16);
    let mut boot = [0; SECTOR];
    boot[..11].copy_from_slice(b"\xeb\x76\x90EXFAT   ");
    boot[510..].copy_from_slice(&[0x55, 0xaa]);
    device.write(Time::ZERO, Extent::one(Lpa(0)), &boot).unwrap();
    assert_eq!(device.file_system(), Found::Exfat);
    assert_eq!(device.sectors_in_pram().0, 0);
    let mut bytes = [1; SECTOR];
    device.read(Time::ZERO, Extent::one(Lpa(0)), &mut bytes).unwrap();
    assert_eq!(bytes, boot);
}

/// A volume in a partition is found where the partition begins.
#[test]
fn a_partition_is_found() {
    let (kind, _, sectors, cluster) = KINDS[0];
    let inner = formatted(separator(plain(), Paged::build(sectors, 2048), 1 << 18), kind, cluster);
    let image = &inner.image.0;
    let mut device = separator(plain(), Paged::build(sectors + 100, 2048), 1 << 18);
    let mut record = [0; SECTOR];
    record[446 + 4] = 0x01;
    record[446 + 8] = 63;
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    let mut now = device.write(Time::ZERO, Extent::one(Lpa(0)), &record).unwrap().end;
    assert_eq!(device.file_system(), Found::Unknown);
    now = device.write(now, Extent { start: Lpa(63), count: 40 }, &image[..40 * SECTOR]).unwrap().end;
    let Found::Fat(volume) = device.file_system() else { panic!("{:?}", device.file_system()) };
    assert_eq!((volume.base, volume.data as usize), (63, 63 + Walk::new(image, kind).data / SECTOR));
    assert!(device.is_in_pram(Lpa(63)) && device.is_in_pram(Lpa(64)) && !device.is_in_pram(Lpa(0)));
    // And after a power cut, from what is on the device.
    let (mounted, _) = cut_and_mount(device, now);
    assert_eq!(mounted.file_system(), Found::Fat(volume));
}

/// A volume that was there before the separator is learnt by reading it.
#[test]
fn an_existing_volume_is_learnt() {
    for (kind, _, sectors, cluster) in KINDS {
        let device = separator(plain(), Paged::build(sectors, 2048), 2 << 20);
        let mut disk = formatted(device, kind, cluster);
        let volume = FileSystem::new(disk.rewound(), FsOptions::new()).unwrap();
        volume.root_dir().create_dir("one").unwrap().create_dir("two").unwrap();
        volume.root_dir().create_file("one/two/three").unwrap().write_all(&[3; 2000]).unwrap();
        volume.unmount().unwrap();
        let units = disk.device.behind().capacity_units();
        // A device that never had a separator.
        let mut behind = Paged::build(sectors, 2048);
        let whole = Extent { start: Lpa(0), count: units };
        let mut now = behind.write(Time::ZERO, whole, &disk.image.0).unwrap().end;
        let mut device = separator(plain(), behind, 2 << 20);
        now = device.learn(now).unwrap();
        assert_eq!(device.file_system(), disk.device.file_system());
        let walk = Walk::new(&disk.image.0, kind);
        let (directories, files) = walk.directories_and_files();
        assert_eq!(directories.len(), 2);
        for (clusters, in_pram) in [(directories, true), (files, false)] {
            for cluster in clusters {
                let sector = walk.sector(cluster);
                let bytes = disk.image.sectors(Extent::one(Lpa(sector))).to_vec();
                now = device.write(now, Extent::one(Lpa(sector)), &bytes).unwrap().end;
                assert_eq!(device.is_in_pram(Lpa(sector)), in_pram, "sector {sector} of {kind:?}");
            }
        }
    }
}

/// A directory's clusters are forgotten when they become free; as a file's they leave PRAM, and a cluster that is
/// written again before its FAT entry is not trimmed.
#[test]
fn freed_clusters_are_forgotten_and_trimmed_with_care() {
    let (kind, _, sectors, cluster) = KINDS[1];
    let device = separator(plain(), Paged::build(sectors, 2048), 1 << 20);
    let mut disk = formatted(device, kind, cluster);
    let volume = FileSystem::new(disk.rewound(), FsOptions::new()).unwrap();
    volume.root_dir().create_dir("gone").unwrap();
    volume.root_dir().create_file("kept").unwrap().write_all(&[1; 8 * 512]).unwrap();
    volume.unmount().unwrap();
    let walk = Walk::new(&disk.image.0, kind);
    let (directories, files) = walk.directories_and_files();
    let directory = walk.sector(*directories.first().unwrap());
    let files: Vec<u32> = files.into_iter().map(|cluster| walk.sector(cluster)).collect();
    assert!(disk.device.is_in_pram(Lpa(directory)));

    let volume = FileSystem::new(disk.rewound(), FsOptions::new()).unwrap();
    volume.root_dir().remove("gone").unwrap();
    volume.root_dir().remove("kept").unwrap();
    volume.unmount().unwrap();
    let freed = disk.device.stats().clusters_freed;
    assert_eq!(freed, 9);
    // New contents of the directory's cluster and of one of the file's, not yet in the FAT.
    let mut now = disk.now;
    for sector in [directory, files[1]] {
        now = disk.device.write(now, Extent::one(Lpa(sector)), &[9; SECTOR]).unwrap().end;
    }
    assert!(!disk.device.is_in_pram(Lpa(directory)));
    now = disk.device.flush(now).unwrap().end;
    assert_eq!(disk.device.stats().clusters_trimmed, 7);
    let mut bytes = [0; SECTOR];
    for sector in [directory, files[1]] {
        disk.device.read(now, Extent::one(Lpa(sector)), &mut bytes).unwrap();
        assert_eq!(bytes, [9; SECTOR]);
    }
    assert!(disk.device.behind().stats().host_trim_units > 0);
}

/// Without payload nothing can be learnt; the regions that were named go to PRAM.
#[test]
fn without_payload_the_named_regions_go_to_pram() {
    let behind = Paged::build(4_000, 2048);
    let pcm = Pcm::new(behind.pram().config().clone(), ());
    let nand = Nand::new(behind.nand().config().clone(), ());
    let behind = Hftl::new(behind.config().clone(), nand, pcm).unwrap();
    let regions = vec![Extent { start: Lpa(0), count: 40 }];
    let mut device = Fsms::new(FsmsConfig { regions, ..plain() }, behind).unwrap();
    let mut now = Time::ZERO;
    for start in [0, 30, 38, 100, 37] {
        now = device.write(now, Extent { start: Lpa(start), count: 4 }, &[]).unwrap().end;
    }
    now = device.read(now, Extent { start: Lpa(36), count: 8 }, &mut []).unwrap().end;
    device.flush(now).unwrap();
    let stats = device.stats();
    assert_eq!((stats.written_sectors, stats.pram_written_sectors, stats.pram_read_sectors), (20, 13, 3));
    assert_eq!(device.sectors_in_pram().0, 4 + 4 + 2 + 1);
    // 40..42 is half a unit and 100..104 a whole one; 40..41 half a unit again.
    assert_eq!(device.behind().stats().host_write_units, 3);
    assert_eq!(stats.merged_sectors, 2 + 3);
}

#[test]
fn what_cannot_work_is_refused() {
    let behind = || Paged::build(1_000, 2048);
    let refused = |config: FsmsConfig, bytes| {
        Fsms::new(FsmsConfig { pram_bytes: Some(bytes), ..config }, behind()).unwrap_err()
    };
    assert!(refused(plain(), 1 << 11).contains("no room for a sector"));
    let outside = FsmsConfig { regions: vec![Extent { start: Lpa(990), count: 20 }], ..plain() };
    assert!(refused(outside, 1 << 16).contains("990 to 1010 are configured, but the device ends at 1000"));
    assert!(refused(FsmsConfig { journal_records: 0, ..plain() }, 1 << 16).contains("at least 1 record"));
    let foreign = Fsms::mount(plain(), behind(), Time::ZERO).unwrap_err();
    assert!(foreign.contains("never formatted"), "{foreign}");
    // The map of the device behind has its part of the memory.
    let free = behind().pram().capacity() - behind().pram_taken().next_multiple_of(SECTOR as u64);
    assert!(refused(plain(), free + 1).contains(&format!("but {free} B are free")));
    assert!(Fsms::new(FsmsConfig { pram_bytes: Some(free), ..plain() }, behind()).is_ok());
}

/// Both tables are changed in place, an entry of 8 B at a time: a memory that may tear one will not do.
#[test]
fn a_memory_that_tears_entries_is_refused() {
    for (atomic_bytes, tear, works) in
        [(8, Tear::Atomic, true), (4, Tear::Atomic, false), (8, Tear::Garbage, false)]
    {
        let behind = Paged::build(1_000, 2048);
        let pcm = PcmConfig { atomic_bytes, tear, ..behind.pram().config().clone() };
        let store = MemStore::new(Pcm::<MemStore>::store_bytes(&pcm));
        let pcm = Pcm::new(pcm, store);
        let nand = behind.nand().clone();
        let hftl = Hftl::new(behind.config().clone(), nand, pcm.clone()).map(drop);
        let logged = Beside { controller: Logged::build(1_000, 2048).controller, pram: pcm };
        let fsms = Fsms::new(plain(), logged).map(drop);
        for refusal in [hftl, fsms] {
            assert_eq!(refusal.is_ok(), works, "{refusal:?}");
            assert!(refusal.err().is_none_or(|why| why.contains("aligned writes of 8 B must be atomic")));
        }
    }
}

/// What both write to the one memory is counted, and waits for the other, in one place.
#[test]
fn one_memory_serves_both() {
    let mut device = separator(plain(), Paged::build(1_000, 2048), 1 << 18);
    let (offset, bytes) = device.pram_part();
    let taken = device.behind().pram_taken();
    assert!(offset >= taken && offset < taken + SECTOR as u64 && offset + bytes <= 3 << 20);
    let writes = |device: &Fsms<Paged>| device.behind().pram().stats().write;
    let before = writes(&device);
    let unit = Extent { start: Lpa(400), count: 4 };
    let end = device.write(Time::ZERO, unit, &[1; 4 * SECTOR]).unwrap().end;
    assert_eq!(device.stats().pram_written_sectors, 0);
    let of_the_map = writes(&device).count - before.count;
    assert!(of_the_map >= 3, "entries of block and page, and a live bit: {of_the_map}");
    let mut boot = [0; SECTOR];
    boot[..11].copy_from_slice(b"\xeb\x3c\x90NVLAB   ");
    let config = FsmsConfig { regions: vec![Extent::one(Lpa(3))], ..plain() };
    let mut regional = separator(config, Paged::build(1_000, 2048), 1 << 18);
    let before = writes(&regional);
    regional.write(end, Extent::one(Lpa(3)), &boot).unwrap();
    assert_eq!(regional.behind().stats().host_write_units, 0);
    assert_eq!(writes(&regional).count - before.count, 2, "the sector, and the table that names it");
}

/// Volumes of every kind are told apart by their clusters alone.
#[test]
fn kinds_are_told_by_their_clusters() {
    for (kind, found, sectors, cluster) in KINDS {
        let disk = formatted(separator(plain(), Paged::build(sectors, 2048), 2 << 20), kind, cluster);
        let Found::Fat(volume) = disk.device.file_system() else { panic!("{kind:?} was not found") };
        let walk = Walk::new(&disk.image.0, kind);
        assert_eq!((volume.kind, volume.clusters), (found, walk.clusters));
        assert_eq!(volume.root as usize * SECTOR, walk.root);
        assert_eq!(volume.root_cluster, if kind == FatType::Fat32 { 2 } else { 0 });
    }
}
