//! The files of a served device are changed behind its back.

use super::{BYTES, Model, design, open, options};
use crate::common::Folder;
use nvlab_lab::design::Design;
use nvlab_serve::served::{Drive, Zero};
use nvlab_units::Rng;

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
