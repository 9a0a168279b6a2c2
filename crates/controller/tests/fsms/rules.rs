//! What the separator recognises and what it leaves alone, byte by byte.

use crate::devices::{Behind, Paged, config, cut_and_mount, pram};
use crate::files::{KINDS, formatted};
use crate::walk::Walk;
use fatfs::{FatType, FileSystem, FsOptions};
use nvlab_controller::Controller;
use nvlab_controller::fsms::{FileSystem as Found, Fsms, FsmsConfig, SECTOR, Update};
use nvlab_controller::hftl::Hftl;
use nvlab_medium::flash::Nand;
use nvlab_medium::pcm::Pcm;
use nvlab_units::{Extent, Time};
use std::io::Write;

fn plain() -> FsmsConfig {
    config(Update::Journalled, true)
}

#[test]
fn exfat_is_refused_and_passed_through() {
    let mut device = Fsms::new(plain(), Paged::build(1_000, 2048), pram(1 << 16)).unwrap();
    let mut boot = [0; SECTOR];
    boot[..11].copy_from_slice(b"\xeb\x76\x90EXFAT   ");
    boot[510..].copy_from_slice(&[0x55, 0xaa]);
    device.write(Time::ZERO, Extent::one(0), &boot).unwrap();
    assert_eq!(device.file_system(), Found::Exfat);
    assert_eq!(device.sectors_in_pram().0, 0);
    let mut bytes = [1; SECTOR];
    device.read(Time::ZERO, Extent::one(0), &mut bytes).unwrap();
    assert_eq!(bytes, boot);
}

/// A volume in a partition is found where the partition begins.
#[test]
fn a_partition_is_found() {
    let (kind, _, sectors, cluster) = KINDS[0];
    let inner =
        formatted(Fsms::new(plain(), Paged::build(sectors, 2048), pram(1 << 18)).unwrap(), kind, cluster);
    let image = &inner.image.0;
    let mut device = Fsms::new(plain(), Paged::build(sectors + 100, 2048), pram(1 << 18)).unwrap();
    let mut record = [0; SECTOR];
    record[446 + 4] = 0x01;
    record[446 + 8] = 63;
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    let mut now = device.write(Time::ZERO, Extent::one(0), &record).unwrap().end;
    assert_eq!(device.file_system(), Found::Unknown);
    now = device.write(now, Extent { start: 63, count: 40 }, &image[..40 * SECTOR]).unwrap().end;
    let Found::Fat(volume) = device.file_system() else { panic!("{:?}", device.file_system()) };
    assert_eq!((volume.base, volume.data as usize), (63, 63 + Walk::new(image, kind).data / SECTOR));
    assert!(device.is_in_pram(63) && device.is_in_pram(64) && !device.is_in_pram(0));
    // And after a power cut, from what is on the device.
    let (mounted, _) = cut_and_mount(device, now);
    assert_eq!(mounted.file_system(), Found::Fat(volume));
}

/// A volume that was there before the separator is learnt by reading it.
#[test]
fn an_existing_volume_is_learnt() {
    for (kind, _, sectors, cluster) in KINDS {
        let device = Fsms::new(plain(), Paged::build(sectors, 2048), pram(2 << 20)).unwrap();
        let mut disk = formatted(device, kind, cluster);
        let volume = FileSystem::new(disk.rewound(), FsOptions::new()).unwrap();
        volume.root_dir().create_dir("one").unwrap().create_dir("two").unwrap();
        volume.root_dir().create_file("one/two/three").unwrap().write_all(&[3; 2000]).unwrap();
        volume.unmount().unwrap();
        let units = disk.device.behind().capacity_units();
        // A device that never had a separator.
        let mut behind = Paged::build(sectors, 2048);
        let whole = Extent { start: 0, count: units };
        let mut now = behind.write(Time::ZERO, whole, &disk.image.0).unwrap().end;
        let mut device = Fsms::new(plain(), behind, pram(2 << 20)).unwrap();
        now = device.learn(now).unwrap();
        assert_eq!(device.file_system(), disk.device.file_system());
        let walk = Walk::new(&disk.image.0, kind);
        let (directories, files) = walk.directories_and_files();
        assert_eq!(directories.len(), 2);
        for (clusters, in_pram) in [(directories, true), (files, false)] {
            for cluster in clusters {
                let sector = walk.sector(cluster);
                let bytes = disk.image.sectors(Extent::one(sector)).to_vec();
                now = device.write(now, Extent::one(sector), &bytes).unwrap().end;
                assert_eq!(device.is_in_pram(sector), in_pram, "sector {sector} of {kind:?}");
            }
        }
    }
}

/// A directory's clusters are forgotten when they become free; as a file's they leave PRAM, and a cluster that is
/// written again before its FAT entry is not trimmed.
#[test]
fn freed_clusters_are_forgotten_and_trimmed_with_care() {
    let (kind, _, sectors, cluster) = KINDS[1];
    let device = Fsms::new(plain(), Paged::build(sectors, 2048), pram(1 << 20)).unwrap();
    let mut disk = formatted(device, kind, cluster);
    let volume = FileSystem::new(disk.rewound(), FsOptions::new()).unwrap();
    volume.root_dir().create_dir("gone").unwrap();
    volume.root_dir().create_file("kept").unwrap().write_all(&[1; 8 * 512]).unwrap();
    volume.unmount().unwrap();
    let walk = Walk::new(&disk.image.0, kind);
    let (directories, files) = walk.directories_and_files();
    let directory = walk.sector(*directories.first().unwrap());
    let files: Vec<u32> = files.into_iter().map(|cluster| walk.sector(cluster)).collect();
    assert!(disk.device.is_in_pram(directory));

    let volume = FileSystem::new(disk.rewound(), FsOptions::new()).unwrap();
    volume.root_dir().remove("gone").unwrap();
    volume.root_dir().remove("kept").unwrap();
    volume.unmount().unwrap();
    let freed = disk.device.stats().clusters_freed;
    assert_eq!(freed, 9);
    // New contents of the directory's cluster and of one of the file's, not yet in the FAT.
    let mut now = disk.now;
    for sector in [directory, files[1]] {
        now = disk.device.write(now, Extent::one(sector), &[9; SECTOR]).unwrap().end;
    }
    assert!(!disk.device.is_in_pram(directory));
    now = disk.device.flush(now).unwrap().end;
    assert_eq!(disk.device.stats().clusters_trimmed, 7);
    let mut bytes = [0; SECTOR];
    for sector in [directory, files[1]] {
        disk.device.read(now, Extent::one(sector), &mut bytes).unwrap();
        assert_eq!(bytes, [9; SECTOR]);
    }
    assert!(disk.device.behind().stats().host_trim_units > 0);
}

/// Without payload nothing can be learnt; the regions that were named go to PRAM.
#[test]
fn without_payload_the_named_regions_go_to_pram() {
    let pcm = |bytes: u64| Pcm::new(pram(bytes).config().clone(), ());
    let behind = Paged::build(4_000, 2048);
    let nand = Nand::new(behind.nand().config().clone(), ());
    let behind = Hftl::new(behind.config().clone(), nand, pcm(1 << 20)).unwrap();
    let regions = vec![Extent { start: 0, count: 40 }];
    let mut device = Fsms::new(FsmsConfig { regions, ..plain() }, behind, pcm(1 << 16)).unwrap();
    let mut now = Time::ZERO;
    for start in [0, 30, 38, 100, 37] {
        now = device.write(now, Extent { start, count: 4 }, &[]).unwrap().end;
    }
    now = device.read(now, Extent { start: 36, count: 8 }, &mut []).unwrap().end;
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
    let refused = |config: FsmsConfig, bytes| Fsms::new(config, behind(), pram(bytes)).unwrap_err();
    assert!(refused(plain(), 1 << 11).contains("no room for a sector"));
    let outside = FsmsConfig { regions: vec![Extent { start: 990, count: 20 }], ..plain() };
    assert!(refused(outside, 1 << 16).contains("990 to 1010 were named, the device ends at 1000"));
    assert!(refused(FsmsConfig { journal_records: 0, ..plain() }, 1 << 16).contains("at least 1 record"));
    let foreign = Fsms::mount(plain(), behind(), pram(1 << 16), Time::ZERO).unwrap_err();
    assert!(foreign.contains("never formatted"), "{foreign}");
}

/// Volumes of every kind are told apart by their clusters alone.
#[test]
fn kinds_are_told_by_their_clusters() {
    for (kind, found, sectors, cluster) in KINDS {
        let disk =
            formatted(Fsms::new(plain(), Paged::build(sectors, 2048), pram(2 << 20)).unwrap(), kind, cluster);
        let Found::Fat(volume) = disk.device.file_system() else { panic!("{kind:?} was not found") };
        let walk = Walk::new(&disk.image.0, kind);
        assert_eq!((volume.kind, volume.clusters), (found, walk.clusters));
        assert_eq!(volume.root as usize * SECTOR, walk.root);
        assert_eq!(volume.root_cluster, if kind == FatType::Fat32 { 2 } else { 0 });
    }
}
