//! The served device against a plain array: reads, writes, trims and zeros; restarts and kills of its server; power cuts.

mod damaged;

use crate::common::Folder;
use nvlab_design::Design;
use nvlab_serve::served::{DeviceState, Drive, DriveError, DriveOptions, Start, Zero};
use nvlab_serve::{ServeError, TimeMode};
use nvlab_units::Rng;
use std::path::Path;

/// Small designs: page maps protected and checkpointed, volatile, without a buffer; a memory; a page map with a cache in
/// SLC mode; every kind of block map; maps in PRAM; file-system metadata beside either in PRAM; a RAM disk; memories whose
/// lines are moved often.
const DESIGNS: &[(&str, &[&str])] = &[
    (
        "ssd-tlc",
        &[
            "media.tlc.blocks=20",
            "ftl.spare=55%",
            "ftl.map.checkpoint=24MiB",
            "ftl.buffer.size=8MiB",
            "array.channels=1",
        ],
    ),
    ("ssd-mlc-2010", &["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"]),
    ("bench-4g", &["media.nand.blocks=48", "ftl.spare=30%"]),
    ("envy-128m", &[]),
    ("hot-cold", &["media.mlc.blocks=64"]),
    ("mlc-block", &["media.mlc.blocks=8"]),
    ("mlc-bast", &["media.mlc.blocks=8"]),
    ("hybrid-slc-mlc", &["media.mlc.blocks=8"]),
    ("fusion-fast", &["media.mlc.blocks=12"]),
    ("hftl", &["media.nand.blocks=48", "ftl.capacity=8MiB", "media.pram.size=1MiB"]),
    (
        "hftl-fsms",
        &[
            "media.nand.blocks=48",
            "ftl.capacity=8MiB",
            "media.pram.size=1MiB",
            "ftl.route.size=256KiB",
            "ftl.route.first=128KiB",
        ],
    ),
    (
        "lbftl-fsms",
        &[
            "media.nand.blocks=56",
            "ftl.capacity=8MiB",
            "media.pram.size=1MiB",
            "ftl.route.size=256KiB",
            "ftl.route.first=128KiB",
            "ftl.route.update=journal",
        ],
    ),
    ("nvramdisk", &["media.dram.size=16MiB"]),
    ("moneta", &["media.pcm.level.interval=3"]),
];
/// Only the first of the device is used, so that it is overwritten often.
const BYTES: usize = 6 << 20;

fn design(number: usize) -> Design {
    let (name, sets) = DESIGNS[number];
    crate::common::design(name, sets)
}

fn options(state: Option<&Path>) -> DriveOptions {
    DriveOptions {
        state: state.map(Path::to_path_buf),
        time: TimeMode::Fast,
        seed: 7,
        ..DriveOptions::default()
    }
}

fn open(number: usize, state: Option<&Path>) -> Drive {
    Drive::open(DESIGNS[number].0, &design(number), &options(state)).unwrap()
}

/// A plain array, and for each sector what may lie there if the power fails: newest first.
struct Model {
    now: Vec<u8>,
}

/// One random operation on both.
fn step(rng: &mut Rng, drive: &Drive, model: &mut Model) {
    let session = drive.session();
    let bytes = (1 + rng.below(64)) * if rng.chance(0.7) { 4096 } else { 512 };
    let offset = rng.below((BYTES as u64 - bytes) / 512) * 512;
    let range = offset as usize..(offset + bytes) as usize;
    match rng.below(10) {
        0..=4 => {
            let data: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
            drive.write(session, offset, &data, rng.chance(0.1)).unwrap();
            model.now[range].copy_from_slice(&data);
        }
        5 => {
            let how = Zero { may_trim: rng.chance(0.5), fast: false, fua: rng.chance(0.2) };
            drive.zero(session, (offset, bytes), how).unwrap();
            model.now[range].fill(0);
        }
        6 => {
            drive.flush(session).unwrap();
        }
        _ => {
            let mut found = vec![1; bytes as usize];
            drive.read(session, offset, &mut found).unwrap();
            assert!(found == model.now[range], "{} B at {offset}", bytes);
        }
    }
}

fn compare(drive: &Drive, model: &Model, what: &str) {
    let mut found = vec![1; BYTES];
    for (piece, offset) in found.chunks_mut(1 << 20).zip((0..).step_by(1 << 20)) {
        drive.read(drive.session(), offset, piece).unwrap();
    }
    if let Some(at) = (0..BYTES).find(|&at| found[at] != model.now[at]) {
        panic!("{what}: byte {at} is {:#x}, not {:#x}", found[at], model.now[at]);
    }
}

#[test]
fn a_served_device_is_a_plain_array_and_survives_its_server() {
    for (number, (name, _)) in DESIGNS.iter().enumerate() {
        let folder = Folder::new(&format!("served-{number}"));
        let mut rng = Rng::new(number as u64 + 1);
        let mut model = Model { now: vec![0; BYTES] };
        for round in 0..6 {
            let drive = open(number, Some(&folder.0));
            let start = match round {
                0 => Start::Fresh,
                round if round % 2 == 1 => Start::Closed,
                _ => Start::Killed,
            };
            assert_eq!(drive.start(), start, "{name}, round {round}");
            compare(&drive, &model, &format!("{name}, round {round}"));
            for _ in 0..300 {
                step(&mut rng, &drive, &mut model);
            }
            if round % 2 == 0 {
                drive.close().unwrap();
            } else {
                // What was flushed survives a server that ends without a word.
                drive.flush(drive.session()).unwrap();
            }
        }
    }
}

#[test]
fn what_was_flushed_survives_a_power_cut() {
    for (number, (name, _)) in DESIGNS.iter().enumerate() {
        let drive = open(number, None);
        let mut rng = Rng::new(number as u64 + 100);
        let mut model = Model { now: vec![0; BYTES] };
        for round in 0..20 {
            for _ in 0..60 {
                step(&mut rng, &drive, &mut model);
            }
            drive.flush(drive.session()).unwrap();
            let old = drive.session();
            let cut = drive.cut().unwrap();
            assert_eq!(drive.read(old, 0, &mut [0; 512]), Err(DriveError::PowerLost));
            assert_eq!(drive.cuts().len(), round + 1);
            // A RAM disk has no map to find again.
            let reads = *name != "nvramdisk";
            assert_eq!(cut.recovery.ps() > 0, reads, "what was read to find everything again: {cut:?}");
            compare(&drive, &model, &format!("{name}, cut {round}"));
        }
    }
}

/// What is acknowledged with FUA survives a cut during any operation; the write it comes in leaves old and new bytes.
#[test]
fn a_cut_within_an_operation_leaves_old_or_new() {
    for (number, (name, _)) in DESIGNS.iter().enumerate() {
        let drive = open(number, None);
        let mut rng = Rng::new(number as u64 + 200);
        let mut model = Model { now: vec![0; BYTES] };
        for round in 0..30 {
            let what = format!("{name}, round {round}");
            drive.cut_after(1 + rng.below(12));
            let session = drive.session();
            let (range, data) = loop {
                let bytes = (1 + rng.below(128)) * 512;
                let offset = rng.below((BYTES as u64 - bytes) / 512) * 512;
                let range = offset as usize..(offset + bytes) as usize;
                let data: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
                match drive.write(session, offset, &data, true) {
                    Ok(_) => model.now[range].copy_from_slice(&data),
                    Err(DriveError::PowerLost) => break (range, data),
                    Err(error) => panic!("{what}: {error}"),
                }
            };
            let mut found = vec![0; range.len()];
            drive.read(drive.session(), range.start as u64, &mut found).unwrap();
            let known = found.iter().zip(&data).zip(&model.now[range.clone()]);
            let strange = known.clone().position(|((found, new), old)| found != new && found != old);
            assert_eq!(strange, None, "{what}: a byte of {range:?} is neither old nor new");
            model.now[range].copy_from_slice(&found);
            compare(&drive, &model, &what);
        }
        assert_eq!(drive.cuts().len(), 30);
    }
}

/// Without FLUSH a volatile buffer loses what was just written: a device that lies about FLUSH is found out.
#[test]
fn a_flush_that_is_ignored_loses_data() {
    let lost = |ignore_flush: bool| {
        let mut lost = 0;
        for seed in 0..8 {
            let drive = Drive::open(
                DESIGNS[1].0,
                &design(1),
                &DriveOptions { ignore_flush, seed, time: TimeMode::Fast, ..DriveOptions::default() },
            )
            .unwrap();
            for unit in 0..40u64 {
                drive.write(drive.session(), unit * 4096, &[unit as u8 + 1; 4096], false).unwrap();
            }
            drive.flush(drive.session()).unwrap();
            drive.cut().unwrap();
            let mut found = [0; 4096];
            for unit in 0..40u64 {
                drive.read(drive.session(), unit * 4096, &mut found).unwrap();
                lost += (found != [unit as u8 + 1; 4096]) as u32;
            }
        }
        lost
    };
    assert_eq!(lost(false), 0);
    assert!(lost(true) > 0, "a volatile buffer that is never flushed lost nothing");
}

#[test]
fn the_power_fails_during_the_operation_that_was_named() {
    let drive = open(1, None);
    drive.cut_after(3);
    let session = drive.session();
    for _ in 0..2 {
        drive.write(session, 0, &[1; 4096], true).unwrap();
    }
    assert_eq!(drive.write(session, 0, &[2; 4096], true), Err(DriveError::PowerLost));
    assert_eq!(drive.write(session, 0, &[3; 4096], true), Err(DriveError::PowerLost));
    assert_eq!(drive.cuts().len(), 1);
    let mut found = [0; 4096];
    drive.read(drive.session(), 0, &mut found).unwrap();
    assert!(found == [1; 4096] || found == [2; 4096], "neither the old nor the new: {}", found[0]);
}

#[test]
fn a_state_of_another_device_says_why() {
    let folder = Folder::new("served-wrong");
    drop(open(1, Some(&folder.0)));
    let other =
        Design::load("ssd-mlc-2010", &["ftl.spare=31%".into(), "media.mlc.blocks=64".into()]).unwrap();
    let error = DeviceState::open(Some(&folder.0), &other, 1).unwrap_err();
    assert!(matches!(error, ServeError::State { .. }), "{error}");
    assert!(
        error.to_string().contains("`ftl.spare = 30%`") || error.to_string().contains("ftl.spare"),
        "{error}"
    );
    let _held = open(1, Some(&folder.0));
    let error = DeviceState::open(Some(&folder.0), &design(1), 1).unwrap_err();
    assert!(matches!(error, ServeError::Busy(_)), "{error}");
    let drive = open(2, None);
    let (session, end) = (drive.session(), drive.capacity_bytes());
    assert_eq!(drive.read(session, end - 1, &mut [0; 2]), Err(DriveError::Range));
    assert_eq!(drive.write(session, u64::MAX, &[0; 2], false), Err(DriveError::Range));
    assert_eq!(drive.trim(session, 1, u64::MAX, false), Err(DriveError::Range));
    let fast = Zero { fast: true, may_trim: true, fua: false };
    assert_eq!(
        drive.zero(session, (0, 4096), fast),
        Err(DriveError::NotFast),
        "no checkpoints, so trims do not last"
    );
}

#[test]
fn what_is_mapped_is_told() {
    let drive = open(0, None);
    let session = drive.session();
    let mut seen = Vec::new();
    drive.write(session, 8192, &[1; 4096], false).unwrap();
    drive
        .mapped(session, (100, 20_000), |bytes, mapped| {
            seen.push((bytes, mapped));
            true
        })
        .unwrap();
    assert_eq!(seen, [(8092, false), (4096, true), (20_100 - 12_288, false)]);
    drive.zero(session, (0, 1 << 20), Zero { may_trim: true, fast: true, fua: false }).unwrap();
    seen.clear();
    drive
        .mapped(session, (0, 1 << 20), |bytes, mapped| {
            seen.push((bytes, mapped));
            true
        })
        .unwrap();
    assert_eq!(seen, [(1 << 20, false)]);
}

/// Pieces of a long range reach the device one after the other, and it may answer an early one last.
#[test]
fn a_range_is_answered_when_the_last_of_its_pieces_is_done() {
    const SLOWER: u32 = 1000;
    let (name, sets) = DESIGNS[0];
    let design = crate::common::design(name, &[sets, &["array.channels=2", "array.ways=2"]].concat());
    let slow = DriveOptions { time: TimeMode::Slower(SLOWER), record: true, ..options(None) };
    let drive = Drive::open(name, &design, &slow).unwrap();
    let session = drive.session();
    let mut rng = Rng::new(4);
    let mut dues = Vec::new();
    for _ in 0..120 {
        let bytes = 4096 * (1 + rng.below(400));
        let offset = 4096 * rng.below((drive.capacity_bytes() - bytes) / 4096);
        let first = drive.operations();
        let due = match rng.below(4) {
            0 => drive.trim(session, offset, bytes, false).unwrap(),
            _ => drive.zero(session, (offset, bytes), Zero::default()).unwrap(),
        };
        dues.push((first as usize, drive.operations() as usize, due.expect("answers are held")));
    }
    let record = drive.take_record().unwrap();
    let ends: Vec<u64> =
        record.at_ps().iter().zip(record.response_ps().unwrap()).map(|(at, took)| at + took).collect();
    // Against the first of one piece: the wall's scale is known only by its differences.
    let (origin, _, zero) = *dues.iter().find(|(first, end, _)| end - first == 1).unwrap();
    let mut early = 0;
    for &(first, end, due) in &dues {
        let latest = *ends[first..end].iter().max().unwrap();
        early += (latest > ends[end - 1]) as u32;
        let expected = (latest as i128 - ends[origin] as i128) * SLOWER as i128 / 1000;
        let found = match due.checked_duration_since(zero) {
            Some(later) => later.as_nanos() as i128,
            None => -(zero.duration_since(due).as_nanos() as i128),
        };
        assert!((found - expected).abs() <= 2, "due {found} ns after the first, its pieces {expected} ns");
    }
    assert!(early > 5, "only {early} ranges had a piece that was answered after its last");
}

/// What the device does not take at a time waits for it, however many clients ask at once: with a queue of one, reads of different
/// dies follow each other. Each takes 25 us on its die and 10.24 us on the channel, which four dies would overlap.
#[test]
fn what_exceeds_the_queue_waits() {
    const READS: usize = 16;
    let (name, sets) = DESIGNS[2];
    let design = crate::common::design(name, &[sets, &["array.ways=4", "path.queue=1"]].concat());
    let slow = DriveOptions { time: TimeMode::Slower(100_000), record: true, ..options(None) };
    let drive = Drive::open(name, &design, &slow).unwrap();
    let session = drive.session();
    for nth in 0..READS as u64 {
        drive.write(session, nth * 4096, &[1; 4096], false).unwrap();
    }
    for nth in 0..READS as u64 {
        drive.read(session, nth * 4096, &mut [0; 4096]).unwrap();
    }
    let record = drive.take_record().unwrap();
    let ends: Vec<u64> =
        record.at_ps().iter().zip(record.response_ps().unwrap()).map(|(at, took)| at + took).collect();
    for two in ends[READS..].windows(2) {
        assert!(two[1] - two[0] >= 35_240_000, "{} ps apart", two[1] - two[0]);
    }
}

/// No front end tells a client of zones yet: a drive on which most writes fail would be worse than none.
#[test]
fn zones_are_not_served() {
    let design = Design::load("zns-ssd", &[]).unwrap();
    let error = Drive::open("zns-ssd", &design, &options(None)).err().expect("it is refused");
    assert!(error.to_string().contains("zns-ssd: zones are simulated, and not served yet"), "{error}");
}
