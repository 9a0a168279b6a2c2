//! A drive that is served in the state of one that was used: full of zeros, worn, cleaning from the first write on; after a
//! restart and a power cut too.

use crate::common::Folder;
use nvlab_design::Design;
use nvlab_run::Preparation;
use nvlab_run::prepared::{Patience, Shelf};
use nvlab_serve::served::{Drive, DriveOptions, Start};
use nvlab_serve::{Aging, TimeMode};
use nvlab_units::Rng;
use std::path::Path;
use std::time::Duration;

const TLC: (&str, &[&str]) = (
    "ssd-tlc",
    // What a buffer absorbs depends on when the requests come, and checkpoints erase blocks of their own.
    &[
        "media.tlc.blocks=40",
        "ftl.spare=40%",
        "ftl.buffer.size=8MiB",
        "ftl.buffer.absorb=false",
        "ftl.map.checkpoint=8GiB",
        "array.channels=1",
    ],
);

fn open(
    (name, sets): (&str, &[&str]),
    state: Option<&Path>,
    preparation: &str,
    shelf: Option<&Shelf>,
) -> Drive {
    let options = DriveOptions {
        state: state.map(Path::to_path_buf),
        time: TimeMode::Fast,
        seed: 7,
        ..DriveOptions::default()
    };
    let preparation: Preparation = preparation.parse().unwrap();
    let aging = Aging { preparation, shelf, on_progress: &mut |_, _| true };
    let design: Design = crate::common::design(name, sets);
    Drive::open_aged(name, &design, &options, Some(aging)).unwrap()
}

/// Writes at random over a share of the device and returns the units programmed for each.
fn amplification(drive: &Drive, writes: u64) -> f64 {
    let before = drive.counts().device;
    let (mut rng, session) = (Rng::new(5), drive.session());
    for _ in 0..writes {
        let offset = rng.below(drive.capacity_bytes() / 4096) * 4096;
        drive.write(session, offset, &[rng.bits() as u8 | 1; 4096], false).unwrap();
    }
    let after = drive.counts().device;
    after.since(&before).programmed_units() as f64 / after.since(&before).host_units as f64
}

/// Whether a part of the device reads as zeros, and whether it is allocated.
fn zeros(drive: &Drive, offset: u64) -> bool {
    let mut found = vec![1; 64 << 10];
    drive.read(drive.session(), offset, &mut found).unwrap();
    found.iter().all(|&byte| byte == 0)
}

#[test]
fn a_page_map_goes_on_where_its_preparation_ended() {
    let fresh = open(TLC, None, "fresh", None);
    assert!(fresh.prepared().is_none());
    let (folder, devices) = (Folder::new("aged"), Folder::new("aged-devices"));
    let shelf = Shelf::new(devices.0.clone(), 1 << 30)
        .with_patience(Patience { worth: Duration::ZERO, part_every: Duration::MAX });
    let drive = open(TLC, Some(&folder.0), "steady,idle=1s", Some(&shelf));
    let prepared = drive.prepared().unwrap().clone();
    assert!(prepared.converged && prepared.last_windows[1] > 1.2, "{prepared:?}");
    assert!(drive.counts().wear.unwrap().mean > 2.0);
    assert!(zeros(&drive, 0) && zeros(&drive, drive.capacity_bytes() / 2));
    let writes = drive.capacity_bytes() / 4096 / 2;
    let (aged, new) = (amplification(&drive, writes), amplification(&fresh, writes));
    let expected = prepared.last_windows[1];
    assert!(new < 1.1 && (aged - expected).abs() < 0.1 * expected, "{new} {aged}, expected {expected}");
    // The same device from the shelf: nothing is prepared again.
    assert_eq!(std::fs::read_dir(&devices.0).unwrap().count(), 1);
    let again = open(TLC, None, "steady,idle=5s", Some(&shelf));
    let found = again.prepared().unwrap();
    assert_eq!((found.kind.as_str(), found.last_windows), ("steady,idle=5s", prepared.last_windows));
    assert_eq!(amplification(&again, writes), aged, "the idle time folds nothing here");
    // What was written survives, and so does the rest of the device.
    let session = drive.session();
    drive.write(session, 4096, &[9; 8192], true).unwrap();
    drive.cut().unwrap();
    let mut found = [0; 8192];
    drive.read(drive.session(), 4096, &mut found).unwrap();
    assert!(found == [9; 8192]);
    drive.close().unwrap();
    drop(drive);
    let drive = open(TLC, Some(&folder.0), "steady,idle=1s", None);
    assert_eq!((drive.start(), drive.prepared()), (Start::Closed, None));
    drive.read(drive.session(), 4096, &mut found).unwrap();
    assert!(found == [9; 8192]);
    assert!(amplification(&drive, 1000) > 1.2);
}

#[test]
fn a_part_that_was_not_filled_is_not_mapped() {
    let drive = open(TLC, None, "full,fill=30%", None);
    let is_mapped = |offset: u64| {
        let mut mapped = None;
        drive.mapped(drive.session(), (offset, 4096), |_, is| mapped.replace(is).is_some()).unwrap();
        mapped.unwrap()
    };
    let filled = (drive.capacity_bytes() as f64 * 0.3) as u64 >> 20 << 20;
    assert_eq!([0, filled - 4096, filled].map(is_mapped), [true, true, false]);
    let wear = drive.counts().wear.unwrap();
    assert!(wear.max <= 1, "{}", wear.max);
}

/// Devices of other kinds are written to where they are.
#[test]
fn devices_of_other_kinds_are_filled_in_place() {
    for (name, sets) in [
        ("mlc-bast", &["media.mlc.blocks=8"] as &[&str]),
        (
            "lbftl-fsms",
            &[
                "media.nand.blocks=56",
                "ftl.capacity=8MiB",
                "media.pram.size=1MiB",
                "ftl.route.size=256KiB",
                "ftl.route.first=128KiB",
            ],
        ),
        ("envy-128m", &[]),
    ] {
        let folder = Folder::new(name);
        let drive = open((name, sets), Some(&folder.0), "full", None);
        let prepared = drive.prepared().unwrap_or_else(|| panic!("{name}")).clone();
        assert!(prepared.host_bytes >= drive.capacity_bytes(), "{name}: {prepared:?}");
        assert!(zeros(&drive, 0), "{name}");
        let session = drive.session();
        drive.write(session, 512, &[9; 4096], true).unwrap();
        drive.close().unwrap();
        drop(drive);
        let drive = open((name, sets), Some(&folder.0), "full", None);
        let mut found = [0; 4096];
        drive.read(drive.session(), 512, &mut found).unwrap();
        assert!(found == [9; 4096], "{name}");
    }
}
