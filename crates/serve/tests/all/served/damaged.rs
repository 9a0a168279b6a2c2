//! The files of a served device are changed behind its back.

use super::{BYTES, DESIGNS, Model, design, open, options};
use crate::common::{self, Folder};
use nvlab_design::Design;
use nvlab_serve::served::{Drive, DriveError, Zero};
use nvlab_units::Rng;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A fresh folder with a device that was written and whose server was killed, and what it holds.
fn written(what: &str, design: &Design) -> (Folder, Model) {
    let folder = Folder::new(what);
    let mut rng = Rng::new(3);
    let mut model = Model { now: vec![0; BYTES] };
    let drive = Drive::open(what, design, &options(Some(&folder.0))).unwrap();
    for (piece, offset) in model.now.chunks_mut(1 << 16).zip((0..).step_by(1 << 16)) {
        piece.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
        drive.write(drive.session(), offset, piece, false).unwrap();
    }
    for range in [0..1 << 16, 1 << 17..3 << 16] {
        let how = Zero { may_trim: true, ..Zero::default() };
        drive.zero(drive.session(), (range.start as u64, range.len() as u64), how).unwrap();
        model.now[range].fill(0);
    }
    drive.flush(drive.session()).unwrap();
    (folder, model)
}

#[test]
fn a_battery_that_somebody_changed_is_refused() {
    let (folder, _) = written("battery", &design(0));
    let path = folder.0.join("battery");
    let held = std::fs::read(&path).unwrap();
    let mut rng = Rng::new(5);
    for round in 0..40 {
        let mut bytes = held.clone();
        match round {
            // Nothing in it is what it was.
            0 => bytes.iter_mut().for_each(|byte| *byte = rng.bits() as u8),
            // An entry of a unit, then one of a trim.
            1 => bytes[8] ^= 1,
            2 => *bytes.iter_mut().rfind(|byte| **byte != 0).unwrap() ^= 0x10,
            _ => {
                let at = rng.below(5 << 20) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let opened = Drive::open("battery", &design(0), &options(Some(&folder.0)));
        let Err(error) = opened else { panic!("round {round}: a battery that was changed is taken") };
        let error = error.to_string();
        assert!(error.contains("/battery: ") && error.contains(" at byte "), "round {round}: {error}");
    }
    std::fs::write(&path, &held).unwrap();
    open(0, Some(&folder.0));
}

/// Changes bits of payload in a medium's file; gives how many.
fn damage(path: &Path, rng: &mut Rng) -> u32 {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    // Spare areas and records come after the payload.
    let end = file.metadata().unwrap().len() * 9 / 10;
    let mut changed = 0;
    // Most of the file may be holes.
    for _ in 0..400_000 {
        if changed == 40 {
            break;
        }
        let (at, mut around) = (rng.below(end - 64), [0; 64]);
        file.read_exact_at(&mut around, at).unwrap();
        if around.iter().filter(|byte| **byte != 0).count() > 32 {
            file.write_all_at(&[around[0] ^ 1 << rng.below(8)], at).unwrap();
            changed += 1;
        }
    }
    changed
}

/// Bits of the medium's file change while nobody serves it: what is read is what was written, or an error.
#[test]
fn damaged_data_are_not_returned_where_reads_are_verified() {
    let mut opened = 0;
    // Memories have no spare area for a checksum.
    let checks = |name: &str| !["envy-128m", "nvramdisk", "moneta"].contains(&name);
    for (number, (name, sets)) in DESIGNS.iter().enumerate().filter(|(_, (name, _))| checks(name)) {
        let design = common::design(name, &[*sets, &["ftl.verify_reads=true"]].concat());
        for closed in [true, false] {
            let (folder, model) = written(&format!("damaged-{number}"), &design);
            if closed {
                Drive::open(name, &design, &options(Some(&folder.0))).unwrap().close().unwrap();
            }
            let mut rng = Rng::new(number as u64);
            assert!(damage(&folder.0.join("nand"), &mut rng) > 0, "{name}");
            let drive = match Drive::open(name, &design, &options(Some(&folder.0))) {
                Ok(drive) => drive,
                Err(error) => {
                    assert!(error.to_string().contains("does not match its checksum"), "{name}: {error}");
                    continue;
                }
            };
            opened += 1;
            let mut unreadable = 0;
            let mut found = vec![1; 4096];
            for (offset, held) in (0..).step_by(4096).zip(model.now.chunks(4096)) {
                match drive.read(drive.session(), offset, &mut found) {
                    Ok(_) => assert!(found == held, "{name}: {offset} holds something else"),
                    Err(DriveError::Device(why)) => {
                        assert!(why.to_string().contains("is unreadable"), "{name}: {why}");
                        unreadable += 1;
                    }
                    Err(fault) => panic!("{name}: {fault}"),
                }
            }
            // A drive that was not closed recovers what its protected buffer still holds.
            let is_held = !closed && folder.0.join("battery").exists();
            assert!(unreadable > 0 || is_held, "{name}: nothing of it was hit");
        }
    }
    assert!(opened > 10, "only {opened} devices could be opened again");
}
