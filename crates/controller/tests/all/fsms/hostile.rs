//! Volumes that lie: cyclic and crossed chains, names that lead anywhere, entries past the end, boot sectors that
//! promise too much, and random damage. A mount looks at no cluster twice, however the volume is linked, and every
//! sector keeps exactly its contents.
//!
//! The bound that every mount is held to: the boot sectors, the fixed root directory, and for every cluster that a
//! directory of the volume names or has its FAT entry and its sectors, each cluster once; a directory has at most
//! 2 MiB. It is computed here from the image, by another hand than the separator's.

use crate::fsms::devices::{Behind, Paged, config, cut_and_mount, separator};
use crate::fsms::volume::{Image, Place};
use nvlab_controller::fsms::{FatKind, FileSystem, Fsms, SECTOR, Update, Volume};
use nvlab_controller::{Background, BesidePram, Controller};
use nvlab_units::{Extent, Lpa, Rng, Span, Time};
use std::collections::BTreeSet;

const KINDS: [FatKind; 3] = [FatKind::Fat12, FatKind::Fat16, FatKind::Fat32];
/// A sector read from NAND or PRAM takes less.
const SECTOR_TIME: Span = Span::from_us(130);
/// The table of the sectors in PRAM and the journal are read at every mount.
const LOAD_TIME: Span = Span::from_ms(1);

fn number(bytes: &[u8], at: usize, width: usize) -> u32 {
    let field = bytes.get(at..at + width).unwrap_or(&[]);
    field.iter().rev().fold(0, |number, &byte| number << 8 | byte as u32)
}

/// What a mount may read of a volume, by the rules above.
struct Bound<'a> {
    image: &'a [u8],
    volume: Volume,
    named: BTreeSet<u32>,
    walked: BTreeSet<u32>,
    sectors: u64,
}

impl<'a> Bound<'a> {
    fn of(image: &'a [u8], found: FileSystem) -> u64 {
        let FileSystem::Fat(volume) = found else { return 2 };
        let (named, walked) = (BTreeSet::new(), BTreeSet::new());
        let mut bound = Bound { image, volume, named, walked, sectors: 2 };
        let mut queue = match volume.has(volume.root_cluster) {
            true => bound.directory(volume.root_cluster),
            false => {
                bound.sectors += (volume.data - volume.root) as u64;
                bound.names(volume.root, volume.data - volume.root)
            }
        };
        while let Some(cluster) = queue.pop() {
            if bound.named.insert(cluster) {
                bound.sectors += 3;
                let begins = bound.sector(volume.sector_of(cluster));
                if &begins[..2] == b". " && number(begins, 26, 2) == cluster & 0xffff {
                    queue.extend(bound.directory(cluster));
                }
            }
        }
        bound.sectors
    }

    fn sector(&self, sector: u32) -> &'a [u8] {
        &self.image[sector as usize * SECTOR..][..SECTOR]
    }

    fn entry(&self, cluster: u32) -> u32 {
        let (c, volume) = (cluster as usize, &self.volume);
        let fat = &self.image[volume.fat as usize * SECTOR..][..volume.fat_sectors as usize * SECTOR];
        match volume.kind {
            FatKind::Fat12 => number(fat, c + c / 2, 2) >> (c % 2 * 4) & 0xfff,
            FatKind::Fat16 => number(fat, 2 * c, 2),
            FatKind::Fat32 => number(fat, 4 * c, 4) & 0x0fff_ffff,
        }
    }

    /// The subdirectories that sectors of a directory name.
    fn names(&self, first: u32, count: u32) -> Vec<u32> {
        let bytes = &self.image[first as usize * SECTOR..][..count as usize * SECTOR];
        let mut found = Vec::new();
        for entry in bytes.chunks(32).filter(|entry| entry[11] & 0x18 == 0x10) {
            let high = if self.volume.kind == FatKind::Fat32 { number(entry, 20, 2) << 16 } else { 0 };
            found.push(number(entry, 26, 2) | high);
        }
        found.retain(|&cluster| self.volume.has(cluster));
        found
    }

    fn directory(&mut self, first: u32) -> Vec<u32> {
        let (volume, mut cluster, mut found) = (self.volume, first, Vec::new());
        for _ in 0..(4096 / volume.cluster_sectors).max(1) {
            if !volume.has(cluster) || !self.walked.insert(cluster) {
                break;
            }
            self.sectors += volume.cluster_sectors as u64 + 2;
            found.extend(self.names(volume.sector_of(cluster), volume.cluster_sectors));
            cluster = self.entry(cluster);
        }
        found
    }
}

/// Reads of the device behind and of the PRAM.
fn reads(device: &Fsms<Paged>) -> u64 {
    device.behind().stats().host_read_units + device.behind().pram().stats().read.count
}

fn assert_contents(device: &mut Fsms<Paged>, now: Time, image: &[u8], what: &str) {
    let mut bytes = vec![0xee; image.len()];
    let all = Extent { start: Lpa(0), count: (image.len() / SECTOR) as u32 };
    device.read(now, all, &mut bytes).unwrap();
    let wrong = bytes.chunks(SECTOR).zip(image.chunks(SECTOR)).position(|(is, should)| is != should);
    assert_eq!(wrong, None, "{what}: this sector reads wrong");
    device.check();
}

/// Sectors that differ.
fn changed(from: &[u8], to: &[u8]) -> Vec<u32> {
    let pairs = from.chunks(SECTOR).zip(to.chunks(SECTOR)).enumerate();
    pairs.filter(|(_, (a, b))| a != b).map(|(sector, _)| sector as u32).collect()
}

/// A device without a separator that holds a well-formed volume.
struct Base {
    image: Image,
    device: Paged,
    now: Time,
}

impl Base {
    fn new(kind: FatKind) -> Base {
        let image = Image::well_formed(kind);
        let sectors = (image.bytes.len() / SECTOR) as u32;
        let mut device = Paged::build(sectors, 2048);
        let units = Extent { start: Lpa(0), count: device.capacity_units() };
        let now = device.write(Time::ZERO, units, &image.bytes).unwrap().end;
        device.settle(now);
        Base { image, device, now }
    }

    /// Mounts the damaged volume where it was there before the separator (all of it on the device behind), and
    /// where it was damaged through the separator (metadata in PRAM). Gives the sectors of the bound.
    fn hold(&self, image: &[u8], what: &str) -> u64 {
        let sectors = changed(&self.image.bytes, image);
        let mut behind = self.device.clone();
        let mut now = self.now;
        let touched: BTreeSet<u32> = sectors.iter().map(|sector| sector / 4).collect();
        for &unit in &touched {
            let bytes = &image[unit as usize * 2048..][..2048];
            now = behind.write(now, Extent::one(Lpa(unit)), bytes).unwrap().end;
        }
        behind.reset_stats();
        let mut before = separator(config(Update::Journalled, false), behind, 1 << 20);
        let (begin, reads_begin) = (now, reads(&before));
        now = before.learn(now).unwrap();
        let bound = Bound::of(image, before.file_system());
        let (read, took) = (reads(&before) - reads_begin, now.since(begin));
        assert!(read <= bound, "{what}: {read} reads, {bound} sectors of metadata");
        assert!(took <= SECTOR_TIME * bound, "{what}: {took:?} for {bound} sectors of metadata");
        assert_contents(&mut before, now, image, what);
        self.hold_written(image, &sectors, what);
        bound
    }

    fn hold_written(&self, image: &[u8], sectors: &[u32], what: &str) {
        let mut device = separator(config(Update::Journalled, false), self.device.clone(), 1 << 20);
        let mut now = device.learn(self.now).unwrap();
        for &sector in sectors {
            let bytes = &image[sector as usize * SECTOR..][..SECTOR];
            now = device.write(now, Extent::one(Lpa(sector)), bytes).unwrap().end;
        }
        assert_contents(&mut device, now, image, what);
        let config = device.config().clone();
        let (behind, ready) = cut_and_mount(device.into_behind(), now + Span::from_ms(10));
        let read = behind.stats().host_read_units + behind.pram().stats().read.count;
        let (mut mounted, end) = Fsms::mount(config, behind, ready).unwrap();
        let bound = Bound::of(image, mounted.file_system());
        // One read for the table of the sectors in PRAM.
        let (read, took) = (reads(&mounted) - read, end.since(ready));
        assert!(read <= bound + 1, "{what}, mounted: {read} reads, {bound} sectors of metadata");
        assert!(took <= SECTOR_TIME * bound + LOAD_TIME, "{what}: a mount of {took:?}, {bound} sectors");
        assert_contents(&mut mounted, end, image, what);
    }
}

/// The bound is small for a well-formed volume, and it is tight.
#[test]
fn a_well_formed_volume_is_read_once() {
    for kind in KINDS {
        let base = Base::new(kind);
        let bound = base.hold(&base.image.bytes, "well-formed");
        assert!(bound < 80, "{bound} sectors");
    }
}

type Damage = fn(&mut Image);

/// Directory 10, 11, 12 is linked in a way that no file system makes. With what the bound may be at most.
const CHAINS: [(&str, Damage, u64); 11] = [
    ("leads to itself", |image| image.set(10, 10), 100),
    ("two that lead to each other", |image| image.set(11, 10), 100),
    ("a cycle at its end", |image| image.set(12, 12), 100),
    ("a cycle through the volume", |image| image.chain((10..image.clusters).chain([10])), 17_000),
    ("leads into another directory's chain", |image| image.set(12, 21), 100),
    ("leads to another directory's beginning", |image| image.set(12, 20), 100),
    ("leads into a file", |image| image.set(12, 30), 300),
    ("leads to its parent's chain", |image| image.set(90, 11), 100),
    (
        "is free, reserved, bad",
        |image| [0, 1, image.mark(0xff7)].iter().zip(10..).for_each(|(&to, c)| image.set(c, to)),
        100,
    ),
    ("leads past the end", |image| image.set(10, image.clusters + 2), 100),
    ("leads to the last entry there is", |image| image.set(10, image.mark(0xfef)), 100),
];

#[test]
fn a_chain_is_followed_no_further_than_a_directory_can_be() {
    for kind in KINDS {
        let base = Base::new(kind);
        for (what, damage, most) in CHAINS {
            let mut image = base.image.clone();
            damage(&mut image);
            let bound = base.hold(&image.bytes, &format!("{kind:?}, a chain that {what}"));
            assert!(bound <= most, "{kind:?}, {what}: {bound} sectors");
        }
    }
}

/// A hundred directories that all enter the same long chain.
#[test]
fn a_chain_that_many_directories_enter_is_read_once() {
    for kind in KINDS {
        let base = Base::new(kind);
        let mut image = base.image.clone();
        image.chain(200..1200);
        for (i, cluster) in (100..200).enumerate() {
            image.directory(cluster, 10);
            image.name(Place::Cluster(10 + i as u32 / 10), 2 + i % 10, 0x10, cluster);
            image.set(cluster, 200);
        }
        let bound = base.hold(&image.bytes, &format!("{kind:?}, crossed chains"));
        assert!(bound < 6_000, "{kind:?}: {bound} sectors");
    }
}

#[test]
fn a_name_is_looked_at_once_wherever_it_leads() {
    for kind in KINDS {
        let base = Base::new(kind);
        // What every entry of a directory of 1000 clusters names: a file, itself, its parent, the root, nothing.
        let targets = [35, 10, 90, 2, 0, 1, base.image.clusters + 1, base.image.clusters + 2, 0x0fff_ffff];
        let few = if kind == FatKind::Fat32 { 4 } else { targets.len() };
        for &target in &targets[..few] {
            let mut image = base.image.clone();
            image.chain([10].into_iter().chain(200..1200));
            for cluster in 200..1200 {
                for index in 0..image.per_cluster as usize * 16 {
                    image.name(Place::Cluster(cluster), index, 0x10, target);
                }
            }
            let bound = base.hold(&image.bytes, &format!("{kind:?}, all names lead to {target}"));
            assert!(bound < 5_000, "{kind:?}, {target}: {bound} sectors");
        }
    }
}

/// A name for every cluster there is, none of which begins a directory.
#[test]
fn names_of_all_clusters_cost_a_look_each() {
    for kind in [FatKind::Fat12, FatKind::Fat16] {
        let base = Base::new(kind);
        let mut image = base.image.clone();
        image.chain([10].into_iter().chain(200..600));
        let names = image.per_cluster * 16;
        for i in 0..400 * names {
            let target = 2 + i % image.clusters;
            image.name(Place::Cluster(200 + i / names), (i % names) as usize, 0x10, target);
        }
        base.hold(&image.bytes, &format!("{kind:?}, all clusters are named"));
    }
}

/// Boot sectors that no formatter writes. Where one is accepted the volume lies inside the device.
#[test]
fn a_boot_sector_may_say_anything() {
    let fields: [(usize, usize); 12] = [
        (11, 2),
        (13, 1),
        (14, 2),
        (16, 1),
        (17, 2),
        (19, 2),
        (22, 2),
        (32, 4),
        (36, 4),
        (40, 2),
        (44, 4),
        (510, 2),
    ];
    let values = [0, 1, 3, 128, 512, 0x7fff, 0xffff, 0xffff_ffffu32];
    // The larger ones, slow to build, take every field with fewer values.
    for (kind, values, together) in [
        (FatKind::Fat12, &values[..], 20),
        (FatKind::Fat16, &values[3..5], 0),
        (FatKind::Fat32, &[0, 128], 0),
    ] {
        let base = Base::new(kind);
        let mut rng = Rng::stream(4, "boot");
        let mut pick = || {
            let value = values[rng.below(values.len() as u64) as usize];
            (fields[rng.below(fields.len() as u64) as usize], value)
        };
        let together: Vec<_> = (0..together).map(|_| vec![pick(), pick(), pick()]).collect();
        let alone = fields.iter().flat_map(|&field| values.iter().map(move |&value| vec![(field, value)]));
        let mut accepted = 0;
        for said in alone.chain(together) {
            let mut image = base.image.bytes.clone();
            for &((at, width), value) in &said {
                image[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            }
            base.hold(&image, &format!("{kind:?}, boot sector {said:?}"));
            let mut device = separator(config(Update::Journalled, false), base.device.clone(), 1 << 20);
            device.write(base.now, Extent::one(Lpa(0)), &image[..SECTOR]).unwrap();
            if let FileSystem::Fat(volume) = device.file_system() {
                let end = volume.data as u64 + volume.clusters as u64 * volume.cluster_sectors as u64;
                assert!(volume.fat < volume.data && end <= device.capacity_units() as u64, "{volume:?}");
                accepted += 1;
            }
        }
        assert!(accepted > 5, "{kind:?}: {accepted} boot sectors were accepted");
    }
}

/// Random damage of FAT entries, names and whole sectors.
#[test]
fn random_damage_costs_no_more_than_what_it_names() {
    for (kind, seeds) in [(FatKind::Fat12, 100), (FatKind::Fat16, 12), (FatKind::Fat32, 2)] {
        let base = Base::new(kind);
        for seed in 0..seeds {
            let mut rng = Rng::stream(seed, "damage");
            let mut image = base.image.clone();
            for _ in 0..1 + rng.below(40) {
                image.damage(&mut rng);
            }
            base.hold(&image.bytes, &format!("{kind:?}, seed {seed}"));
        }
    }
}
