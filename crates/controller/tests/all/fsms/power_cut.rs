//! The power fails in the midst of what a FAT client writes: at every few words of PRAM and all through the NAND
//! operations, and again during the mount. A sector is what it was or what was written, whole.

use crate::fsms::devices::{Behind, Logged, Paged, config, cut_and_mount, separator};
use crate::fsms::files::{Client, formatted};
use crate::fsms::image::{Hook, Image, Written};
use fatfs::{FatType, FileSystem, FsOptions};
use nvlab_controller::fsms::{Fsms, SECTOR, Update};
use nvlab_controller::{Background, Controller};
use nvlab_units::{Extent, Lpa, Rng, Span, Time};
use std::cell::Cell;
use std::rc::Rc;

/// True if each aligned piece of `bytes` is that of one of the two.
fn is_mixture(bytes: &[u8], piece: usize, old: &[u8], new: &[u8]) -> bool {
    let both = old.chunks(piece).zip(new.chunks(piece));
    bytes.chunks(piece).zip(both).all(|(bytes, (old, new))| bytes == old || bytes == new)
}

/// Checks every sector of a mounted device.
fn check<C: Behind>(device: &mut Fsms<C>, image: &Image, written: Written<'_>, (now, cut): (Time, Time)) {
    device.check();
    let config = device.config().clone();
    // What an aligned 8 bytes is to a part of the FAT, a sector is to a journalled one.
    let piece = if config.update == Update::InPlace { 8 } else { SECTOR };
    let mut bytes = vec![0; image.0.len()];
    let all = Extent { start: Lpa(0), count: device.capacity_units() };
    device.read(now, all, &mut bytes).unwrap();
    for (sector, bytes) in all.units().zip(bytes.chunks(SECTOR)) {
        let new = image.sectors(Extent::one(sector));
        let under_way = sector >= written.extent.start && (sector.0 as u64) < written.extent.end();
        let right = if under_way && cut < written.end {
            let from = (sector - written.extent.start) as usize * SECTOR;
            is_mixture(bytes, piece, &written.old[from..from + SECTOR], new)
        } else {
            bytes == new
        };
        assert!(right, "sector {sector}, cut at {} ps of {:?}, {:?}", cut.ps(), written.extent, written.end);
    }
}

fn cut_through<C: Behind + 'static>(update: Update, delete: bool, pram_bytes: u64, seed: u64) -> u32 {
    let sectors = 1_000;
    let device = separator(config(update, delete), C::build(sectors, 2048), pram_bytes);
    let mut disk = formatted(device, FatType::Fat12, 512);
    let mut client = Client::new(seed);
    let cuts = Rc::new(Cell::new(0));
    let counter = Rc::clone(&cuts);
    let mut rng = Rng::stream(seed, "cuts");
    let mut released = 0;
    let mut look = Some(move |device: &Fsms<C>, image: &Image, written: Written<'_>| {
        // Few requests let a sector go.
        let releases = device.stats().released > std::mem::replace(&mut released, device.stats().released);
        if !releases && !rng.chance(0.04) {
            return;
        }
        let length = written.end.since(written.at) + Span::from_us(300);
        // Every word of a short write; a long one in 60 steps.
        let step = Span::from_ps((length.ps() / 60).max(Span::from_us(5).ps()) + rng.below(1000));
        let mut cut = written.at;
        while cut < written.end + Span::from_us(300) {
            let (mut mounted, ready) = cut_and_mount(device.clone(), cut);
            let again = cut + ready.since(cut) * rng.below(100) / 100;
            let (mut twice, later) = cut_and_mount(mounted.clone(), again);
            check(&mut mounted, image, written, (ready, cut));
            check(&mut twice, image, written, (later, cut));
            counter.set(counter.get() + 1);
            cut += step;
        }
        let (mut mounted, ready) = cut_and_mount(device.clone(), written.end);
        check(&mut mounted, image, written, (ready, written.end));
    });
    for round in 0..3 {
        let volume = FileSystem::new(disk.rewound(), FsOptions::new()).unwrap();
        for _ in 0..25 {
            client.act(&volume);
        }
        volume.unmount().unwrap();
        std::io::Write::flush(&mut disk).unwrap();
        if round == 0 {
            disk.hook = look.take().map(|look| Box::new(look) as Hook<C>);
        }
    }
    cuts.get()
}

#[test]
fn journalled_sectors_over_hftl() {
    assert!(cut_through::<Paged>(Update::Journalled, false, 1 << 20, 1) > 300);
    assert!(cut_through::<Paged>(Update::Journalled, true, 1 << 20, 2) > 300);
}

#[test]
fn journalled_sectors_over_log_blocks() {
    // Without logical deletes: a trim is advice here, it may be taken back by a cut.
    assert!(cut_through::<Logged>(Update::Journalled, false, 1 << 20, 3) > 300);
}

#[test]
fn sectors_in_place() {
    assert!(cut_through::<Paged>(Update::InPlace, true, 1 << 20, 4) > 300);
}

#[test]
fn a_pram_that_is_full() {
    assert!(cut_through::<Paged>(Update::Journalled, true, 10 << 10, 5) > 300);
    assert!(cut_through::<Paged>(Update::Journalled, true, 14 << 10, 6) > 300);
}

/// The test itself must be able to fail: sectors written in place are torn, and that is seen.
#[test]
#[should_panic(expected = "cut at")]
fn a_torn_sector_is_caught() {
    let device = separator(config(Update::InPlace, false), Paged::build(1_000, 2048), 1 << 20);
    let mut disk = formatted(device, FatType::Fat12, 512);
    let extent = Extent::one(Lpa(1));
    let old = disk.image.sectors(extent).to_vec();
    let new: Vec<u8> = old.iter().map(|byte| byte ^ 0x11).collect();
    disk.image.0[SECTOR..2 * SECTOR].copy_from_slice(&new);
    disk.device.behind_mut().settle(disk.now);
    let at = disk.now;
    let end = disk.device.write(at, extent, &new).unwrap().end;
    // Eight banks write the sector in 320 us.
    let cut = end.before(Span::from_us(160));
    let (mut mounted, ready) = cut_and_mount(disk.device.clone(), cut);
    let mut bytes = [0; SECTOR];
    mounted.read(ready, extent, &mut bytes).unwrap();
    assert!(is_mixture(&bytes, SECTOR, &old, &new), "cut at {} ps: torn", cut.ps());
}
