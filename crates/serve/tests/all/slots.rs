//! A folder takes as much of the disk as its device holds, and what somebody changed in it is an error.

use crate::common::{Folder, design};
use nvlab_design::Design;
use nvlab_serve::TimeMode;
use nvlab_serve::served::{Drive, DriveError, DriveOptions};
use nvlab_units::Rng;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const UNIT: usize = 4096;
const MIB: u64 = 1 << 20;

/// Of 256 MiB raw: pages of one unit without a buffer. Of 64 MiB raw: one-shot pages of twelve behind a protected buffer, with
/// checkpoints, so that trims last.
const DESIGNS: [(&str, bool, &[&str]); 2] = [
    ("bench-4g", false, &["media.nand.blocks=256", "ftl.spare=20%"]),
    (
        "ssd-tlc",
        true,
        &[
            "media.tlc.blocks=86",
            "media.tlc.page=4KiB",
            "media.tlc.oob=512B",
            "media.tlc.pages=48",
            "ftl.spare=30%",
            "ftl.map.checkpoint=16MiB",
            "ftl.buffer.size=1MiB",
            "array.channels=1",
        ],
    ),
];

fn open(name: &str, design: &Design, state: &Path) -> Drive {
    let options =
        DriveOptions { state: Some(state.to_path_buf()), time: TimeMode::Fast, ..DriveOptions::default() };
    Drive::open(name, design, &options).unwrap()
}

/// Bytes of the disk that the files of a folder take.
fn taken(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum()
}

/// A unit of version `version`.
fn content(unit: u64, version: u64) -> Vec<u8> {
    let mut rng = Rng::new(unit << 32 | version);
    let mut bytes = vec![0; UNIT];
    bytes.chunks_mut(8).for_each(|word| word.copy_from_slice(&rng.bits().to_le_bytes()));
    bytes
}

/// What the folder may take for so much live data: a tenth more, 8 MiB of warm slots and 2 MiB of buffers, and the tables, of
/// which spare areas of 28 B and words of 4 B for a unit of 4 KiB are the largest part.
fn allowed(live: u64, raw: u64) -> u64 {
    live + live / 10 + 10 * MIB + raw / 4096 * 34
}

#[test]
fn a_folder_takes_what_its_device_holds() {
    // Not the second: how much of it still waits for its program depends on the model's time, which absorbed writes hardly move.
    for (name, trims_last, sets) in DESIGNS.into_iter().take(1) {
        let folder = Folder::new(&format!("slots-{name}"));
        let design = design(name, sets);
        let drive = open(name, &design, &folder.0);
        let (session, mut rng) = (drive.session(), Rng::new(2));
        let units = 32 * MIB / UNIT as u64;
        for unit in 0..units {
            drive.write(session, unit * UNIT as u64, &content(unit, 0), false).unwrap();
        }
        // Three times the raw capacity.
        for i in 0..25 * units {
            let unit = rng.below(units);
            drive.write(session, unit * UNIT as u64, &content(unit, 1), false).unwrap();
            if i % units == 0 {
                drive.flush(session).unwrap();
                let found = taken(&folder.0);
                assert!(found <= allowed(32 * MIB, 260 * MIB), "{name}: {found} B after {i} writes");
            }
        }
        // Half of it, in pieces of 4 MiB, and all but 4 MiB.
        for (range, live) in [(0..4, 16), (4..7, 4)] {
            for i in range {
                drive.trim(session, i * 4 * MIB, 4 * MIB, false).unwrap();
            }
            // The device's time goes on while requests are made: what is queued gets done.
            for i in 0..1000 {
                drive.write(session, 28 * MIB + i * UNIT as u64, &content(i, 2), false).unwrap();
            }
            drive.flush(session).unwrap();
            let found = taken(&folder.0);
            if trims_last {
                assert!(found <= allowed(live * MIB, 260 * MIB), "{name}: {found} B with {live} MiB");
            }
        }
        drop(drive);
        // A kill, and an end in good order.
        for _ in 0..2 {
            let drive = open(name, &design, &folder.0);
            let live = if trims_last { 4 * MIB } else { 32 * MIB };
            let found = taken(&folder.0);
            assert!(found <= allowed(live, 260 * MIB), "{name}: {found} B found again");
            drive.close().unwrap();
        }
    }
}

/// How somebody changes a page of a file.
const CHANGES: [&str; 4] = ["zeros", "another byte", "random bytes", "another page"];

/// Changes pages that hold payload; returns where.
fn change(path: &Path, how: &str, rng: &mut Rng) -> Vec<u64> {
    let file = File::options().read(true).write(true).open(path).unwrap();
    // Payload comes first, one unit after the other.
    let pages = 8 * MIB / UNIT as u64;
    let mut changed = Vec::new();
    while changed.len() < 40 {
        let at = rng.below(pages) * UNIT as u64;
        let mut page = vec![0; UNIT];
        file.read_exact_at(&mut page, at).unwrap();
        if page.iter().all(|&byte| byte == 0) || changed.contains(&at) {
            continue;
        }
        match how {
            "zeros" => page.fill(0),
            "another byte" => page[rng.below(UNIT as u64) as usize] ^= 1 << rng.below(8),
            "random bytes" => page.iter_mut().for_each(|byte| *byte = rng.bits() as u8),
            _ => {
                let from = (at + UNIT as u64 * (1 + rng.below(pages - 1))) % (pages * UNIT as u64);
                file.read_exact_at(&mut page, from).unwrap();
            }
        }
        file.write_all_at(&page, at).unwrap();
        changed.push(at);
    }
    changed
}

/// Payload of a device that was closed, or killed, is changed: every read gives what was written, or an error that names the file
/// and where in it the unit lies, and that as long as the unit is not written again, wherever the controller moves it.
#[test]
fn payload_that_somebody_changed_is_an_error() {
    for (name, _, sets) in DESIGNS {
        let design = design(name, sets);
        for (round, how) in CHANGES.into_iter().enumerate() {
            let folder = Folder::new(&format!("slots-changed-{name}-{round}"));
            let what = format!("{name}, {how}");
            let units = 8 * MIB / UNIT as u64;
            let drive = open(name, &design, &folder.0);
            for unit in 0..units {
                drive.write(drive.session(), unit * UNIT as u64, &content(unit, 0), false).unwrap();
            }
            drive.flush(drive.session()).unwrap();
            if round % 2 == 0 {
                drive.close().unwrap();
            }
            drop(drive);
            let mut rng = Rng::new(round as u64);
            let changed = change(&folder.0.join("nand"), how, &mut rng);
            let drive = open(name, &design, &folder.0);
            let session = drive.session();
            let mut lost = vec![false; units as usize];
            let mut found = vec![1; UNIT];
            let mut look = |lost: &mut Vec<bool>| {
                let mut named = Vec::new();
                for unit in 0..units {
                    match drive.read(session, unit * UNIT as u64, &mut found) {
                        Ok(_) => {
                            assert!(found == content(unit, 0), "{what}: unit {unit} holds something else");
                            assert!(!lost[unit as usize], "{what}: unit {unit} is back");
                        }
                        Err(DriveError::Device(error)) => {
                            lost[unit as usize] = true;
                            named.push(error.to_string());
                        }
                        Err(error) => panic!("{what}: {error}"),
                    }
                }
                named
            };
            let named = look(&mut lost);
            // What is copied from another page may be a page of zeros, or of another unit, but never the page itself.
            let places: Vec<String> =
                changed.iter().map(|at| format!("the file nand at byte {at}")).collect();
            let is_place = |error: &String| places.iter().any(|place| error.ends_with(place));
            assert!(named.iter().all(is_place), "{what}: {named:?} for {changed:?}");
            // A drive that was killed recovers what its protected buffer still holds.
            match round % 2 == 1 && folder.0.join("battery").exists() {
                true => assert!(named.len() > changed.len() / 2, "{what}: {named:?}"),
                false => assert_eq!(named.len(), changed.len(), "{what}"),
            }
            // Everything else is written often enough that the cleaner moves what is not.
            let beyond = drive.capacity_bytes() / UNIT as u64 - units;
            for i in 0..3 * beyond {
                let unit = units + if i < beyond { i } else { rng.below(beyond) };
                drive.write(session, unit * UNIT as u64, &content(unit, i), false).unwrap();
            }
            assert_eq!(look(&mut lost).len(), named.len(), "{what}, moved");
            drive.close().unwrap();
        }
    }
}

/// A block map copies whole blocks, and what is copied shares a slot with its older versions until these are erased. What somebody
/// changes of it after a close or a kill is an error for the unit that it is the newest version of, as long as that is not written
/// again, however often it is merged.
#[test]
fn a_change_of_what_merges_share_is_an_error() {
    let sets = ["media.nand.blocks=64", "media.nand.page=4KiB", "ftl.capacity=10MiB", "ftl.log.blocks=4"];
    let (design, units) = (design("lbftl", &sets), 8 * MIB / UNIT as u64);
    for (round, how) in CHANGES.into_iter().enumerate() {
        let folder = Folder::new(&format!("slots-merged-{round}"));
        let mut rng = Rng::new(round as u64);
        let drive = open("lbftl", &design, &folder.0);
        let write = |drive: &Drive, unit: u64| {
            drive.write(drive.session(), unit * UNIT as u64, &content(unit, 0), false).unwrap();
        };
        (0..units).for_each(|unit| write(&drive, unit));
        (0..3000).for_each(|_| write(&drive, rng.below(units)));
        drive.flush(drive.session()).unwrap();
        if round % 2 == 0 {
            drive.close().unwrap();
        }
        drop(drive);
        let changed = change(&folder.0.join("nand"), how, &mut rng);
        let drive = open("lbftl", &design, &folder.0);
        let mut lost = vec![false; units as usize];
        let look = |lost: &mut [bool]| {
            let mut found = vec![1; UNIT];
            for (unit, lost) in (0..).zip(lost) {
                match drive.read(drive.session(), unit * UNIT as u64, &mut found) {
                    Ok(_) => assert!(
                        found == content(unit, 0) && !*lost,
                        "{how}: unit {unit} holds something else"
                    ),
                    Err(DriveError::Device(_)) => *lost = true,
                    Err(error) => panic!("{how}: {error}"),
                }
            }
        };
        look(&mut lost);
        let count = lost.iter().filter(|lost| **lost).count();
        assert!(count > 20 && count <= changed.len(), "{how}: {count} units");
        for _ in 0..3000 {
            let unit = rng.below(units);
            lost[unit as usize] = false;
            write(&drive, unit);
        }
        look(&mut lost);
        drive.close().unwrap();
    }
}
