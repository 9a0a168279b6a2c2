//! Corrupted states: whatever lies in the folder, opening it gives a device, or an error that names the folder or a file in
//! it; nothing panics, nobody waits for ever, and no file of a user is changed.
//!
//! NVLAB_TEST_STATES=20000 tries so many, NVLAB_TEST_SEED=7 others, NVLAB_TEST_STATE=123 one of them.

use crate::common::{Folder, PAGE, design, options, permitted};
use crate::corruption::{Content, ELSEWHERE, Files, LETTERS, WRITTEN, corrupt, get, put};
use nvlab_design::Design;
use nvlab_serve::{Drive, DriveOptions, ServeError, TimeMode, Window};
use nvlab_units::Rng;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Small ones of every kind of controller.
const DESIGNS: &[(&str, &[&str])] = &[
    (
        "ssd-tlc",
        &[
            "media.tlc.blocks=24",
            "media.tlc.page=4KiB",
            "media.tlc.oob=512B",
            "media.tlc.pages=12",
            "ftl.spare=60%",
            "ftl.map.checkpoint=1MiB",
            "ftl.buffer.size=256KiB",
            "array.channels=1",
        ],
    ),
    ("ssd-mlc-2010", &["media.mlc.blocks=64", "media.mlc.pages=8", "ftl.spare=30%", "ftl.buffer.size=64KiB"]),
    ("bench-4g", &["media.nand.blocks=48", "media.nand.pages=8", "ftl.spare=30%"]),
    (
        "envy-128m",
        &[
            "media.flash.blocks=4",
            "media.flash.block=4KiB",
            "media.sram.size=64KiB",
            "ftl.buffer.size=16KiB",
            "array.gang=32",
        ],
    ),
    ("hot-cold", &["media.mlc.blocks=32", "media.mlc.pages=8", "media.slc.pages=8"]),
    ("mlc-block", &["media.mlc.blocks=8", "media.mlc.pages=8"]),
    ("mlc-bast", &["media.mlc.blocks=8", "media.mlc.pages=8"]),
    ("hybrid-slc-mlc", &["media.mlc.blocks=20", "media.mlc.pages=4", "media.slc.pages=4"]),
    ("fusion-fast", &["media.mlc.blocks=12", "media.mlc.pages=8", "media.slc.pages=8"]),
    (
        "hftl",
        &["media.nand.blocks=48", "media.nand.pages=8", "ftl.capacity=512KiB", "media.pram.size=256KiB"],
    ),
    (
        "hftl-fsms",
        &[
            "media.nand.blocks=48",
            "media.nand.pages=8",
            "ftl.capacity=512KiB",
            "media.pram.size=256KiB",
            "ftl.route.size=64KiB",
            "ftl.route.first=8KiB",
        ],
    ),
    (
        "lbftl-fsms",
        &[
            "media.nand.blocks=56",
            "media.nand.pages=8",
            "ftl.capacity=512KiB",
            "media.pram.size=256KiB",
            "ftl.route.size=64KiB",
            "ftl.route.first=8KiB",
            "ftl.route.update=journal",
        ],
    ),
];
/// A case takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who opens a state.
enum Opener {
    Device(&'static str, Box<Design>),
    Window,
}

impl Opener {
    fn name(&self) -> &str {
        match self {
            Opener::Device(name, _) => name,
            Opener::Window => "window",
        }
    }

    /// Opens it, uses it and closes it; the error is that of opening it.
    fn visit(&self, folder: &Path, rng: &mut Rng) -> Result<(), ServeError> {
        match self {
            Opener::Device(name, design) => {
                let options = DriveOptions {
                    state: Some(folder.to_path_buf()),
                    time: TimeMode::Fast,
                    ..DriveOptions::default()
                };
                use_drive(&Drive::open(name, design, &options)?, rng, 20);
                Ok(())
            }
            Opener::Window => {
                use_window(Window::open(&options(64, 16, Some(folder)))?, rng);
                Ok(())
            }
        }
    }
}

/// Whatever it answers: it answers.
fn use_drive(drive: &Drive, rng: &mut Rng, writes: u32) {
    let capacity = drive.capacity_bytes();
    let mut piece = vec![0; 64 << 10];
    let mut read_all = || {
        for offset in (0..capacity).step_by(piece.len()) {
            let bytes = (capacity - offset).min(piece.len() as u64) as usize;
            let _ = drive.read(drive.session(), offset, &mut piece[..bytes]);
        }
    };
    read_all();
    for _ in 0..writes {
        let bytes = (1 + rng.below(40)) * 512;
        let (offset, session) = (rng.below((capacity - bytes) / 512) * 512, drive.session());
        let data: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
        let _ = match rng.below(8) {
            0 => drive.trim(session, offset, bytes, false),
            1 => drive.flush(session),
            _ => drive.write(session, offset, &data, false),
        };
    }
    if rng.chance(0.5) {
        let _ = drive.cut();
        read_all();
    }
    if rng.chance(0.8) {
        let _ = drive.close();
    }
}

/// Through the system, which turns the signal of a page that is lost into an error.
fn use_window(window: Window, rng: &mut Rng) {
    let mut sink = tempfile::tempfile().unwrap();
    for page in window.as_slice().chunks(PAGE as usize) {
        let _ = sink.write(page);
    }
    let _ = window.sync();
    if rng.chance(0.8) {
        let _ = window.close();
    }
}

/// States of every opener: closed, and killed at work.
fn states(folder: &Path) -> Vec<(Opener, Vec<Files>)> {
    let mut states = Vec::new();
    for (name, sets) in DESIGNS {
        let design = design(name, sets);
        let mut versions = Vec::new();
        for seed in 0..4 {
            let path = folder.join(format!("{name}-{seed}"));
            let options =
                DriveOptions { state: Some(path.clone()), time: TimeMode::Fast, ..Default::default() };
            let mut rng = Rng::stream(seed, "states");
            let drive = Drive::open(name, &design, &options).unwrap();
            for _ in 0..60 + 300 * seed {
                let bytes = (1 + rng.below(16)) * 2048;
                let offset = rng.below((drive.capacity_bytes() - bytes) / 512) * 512;
                let data: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
                drive.write(drive.session(), offset, &data, rng.chance(0.1)).unwrap();
                if rng.chance(0.1) {
                    drive.trim(drive.session(), offset, bytes, false).unwrap();
                }
            }
            if seed % 2 == 0 {
                drive.close().unwrap();
            }
            drop(drive);
            versions.push(get(&path));
        }
        states.push((Opener::Device(name, Box::new(design)), versions));
    }
    states.extend(windows(folder));
    states
}

fn windows(folder: &Path) -> Option<(Opener, Vec<Files>)> {
    let path = folder.join("window");
    let mut window = permitted(Window::open(&options(64, 16, Some(&path))))?;
    window.as_mut_slice().chunks_mut(100).zip(0..).for_each(|(bytes, i)| bytes.fill(i as u8));
    window.sync().unwrap();
    // As if it were killed and its resident pages lost, and closed.
    let record = get(&path).remove("state.json").unwrap();
    window.close().unwrap();
    let closed = get(&path);
    let lost = closed.clone().into_iter().chain([("state.json".to_string(), record)]).collect();
    Some((Opener::Window, vec![closed, lost]))
}

/// What is wrong with how a state was left, if anything is.
fn wrong(folder: &Path, before: &Files, opened: &Result<(), ServeError>) -> Option<String> {
    let after = get(folder);
    if let Err(error) = opened {
        if !error.to_string().contains(folder.to_str().unwrap()) {
            return Some(format!("an error that names no file: {error}"));
        }
        let refused = matches!(error, ServeError::State { .. });
        if let Some(name) = before.keys().find(|name| refused && after.get(*name) != Some(&before[*name])) {
            return Some(format!("refused, and {name} was changed: {error}"));
        }
        if refused && !before.contains_key("lock") && after.contains_key("lock") {
            return Some(format!("refused, and a lock was left: {error}"));
        }
    }
    let written = Content::Bytes(WRITTEN.to_vec());
    let lost = before.iter().find(|(name, content)| match content {
        Content::Bytes(_) if *name == LETTERS => after.get(*name) != Some(&written),
        Content::Bytes(_) => !after.contains_key(*name),
        special => after.get(*name) != Some(special),
    });
    let outside = fs::read(folder.parent().unwrap().join(ELSEWHERE)).unwrap() != WRITTEN;
    match (lost, outside) {
        (Some((name, _)), _) => Some(format!("{name} was lost or changed")),
        (None, true) => Some("a file outside was changed".into()),
        (None, false) => None,
    }
}

/// The resident pages of a window that was left open go with the test.
fn forget_resident(folder: &Path) {
    let Some(Content::Bytes(record)) = get(folder).remove("state.json") else { return };
    let record = String::from_utf8_lossy(&record).into_owned();
    let id =
        record.split('"').find(|word| word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let _ = id.map(|id| fs::remove_file(format!("/dev/shm/nvlab-window-{id}")));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// The state that is looked at.
static CASE: AtomicU64 = AtomicU64::new(NO_CASE);
const NO_CASE: u64 = u64::MAX;

/// Gives what the last panic said. Panics are counted by where they come from; the first of each is told at the end.
fn tell_panics(seed: u64) -> Arc<Mutex<String>> {
    let place = Arc::new(Mutex::new(String::new()));
    let told = Arc::clone(&place);
    std::panic::set_hook(Box::new(move |panic| {
        *told.lock().unwrap() = panic.to_string();
        if std::thread::current().name() == Some("nvlab-window") {
            // The handler of a window's faults ends the process: this is the last that can be said.
            let case = CASE.load(Ordering::Relaxed);
            let _ =
                writeln!(std::io::stderr(), "NVLAB_TEST_SEED={seed} NVLAB_TEST_STATE={case} window: {panic}");
        }
    }));
    place
}

fn give_up_on_hangs(seed: u64) {
    std::thread::spawn(move || {
        loop {
            let before = CASE.load(Ordering::Relaxed);
            std::thread::sleep(PATIENCE);
            if before != NO_CASE && before == CASE.load(Ordering::Relaxed) {
                eprintln!("NVLAB_TEST_SEED={seed} NVLAB_TEST_STATE={before} takes more than {PATIENCE:?}");
                std::process::abort();
            }
        }
    });
}

#[test]
fn a_corrupted_state_is_a_device_or_an_error() {
    let folder = Folder::new("state-fuzz");
    let states = states(&folder.0);
    File::create(folder.0.join(ELSEWHERE)).unwrap().write_all(WRITTEN).unwrap();
    let (seed, only) = (number("NVLAB_TEST_SEED").unwrap_or(1), number("NVLAB_TEST_STATE"));
    let cases = only.map_or(0..number("NVLAB_TEST_STATES").unwrap_or(400), |only| only..only + 1);
    let place = tell_panics(seed);
    give_up_on_hangs(seed);
    let path = folder.0.join("state");
    let (mut found, mut opened_well) = (BTreeMap::<String, (u64, String)>::new(), 0);
    for case in cases.clone() {
        CASE.store(case, Ordering::Relaxed);
        let mut rng = Rng::stream(seed, &format!("state {case}"));
        let (opener, versions) = &states[rng.below(states.len() as u64) as usize];
        let mut files = versions[rng.below(versions.len() as u64) as usize].clone();
        let (_, others) = &states[rng.below(states.len() as u64) as usize];
        let others = if rng.chance(0.7) { versions } else { others };
        let other = &others[rng.below(others.len() as u64) as usize];
        let what: Vec<String> = (0..1 + rng.below(3)).map(|_| corrupt(&mut files, other, &mut rng)).collect();
        let _ = fs::remove_dir_all(&path);
        put(&files, &path);
        let visited = catch_unwind(AssertUnwindSafe(|| opener.visit(&path, &mut rng)));
        let fault = match visited {
            Err(_) => Some(place.lock().unwrap().clone()),
            Ok(opened) => {
                opened_well += u64::from(opened.is_ok());
                wrong(&path, &files, &opened)
            }
        };
        if let Opener::Window = opener {
            forget_resident(&path);
        }
        if let Some(fault) = fault {
            let kind = fault.lines().next().unwrap_or_default().split('`').next().unwrap().to_string();
            let story = format!(
                "NVLAB_TEST_SEED={seed} NVLAB_TEST_STATE={case} {}: {what:?}\n  {fault}",
                opener.name()
            );
            found.entry(kind).or_insert((0, story)).0 += 1;
        }
    }
    CASE.store(NO_CASE, Ordering::Relaxed);
    let _ = std::panic::take_hook();
    let stories: Vec<String> =
        found.values().map(|(count, story)| format!("{count} like this: {story}")).collect();
    assert!(stories.is_empty(), "{} kinds of {} states:\n{}", stories.len(), cases.end, stories.join("\n"));
    eprintln!("{} states, {opened_well} of them could be opened", cases.end - cases.start);
    // Neither are all refused nor is nothing looked at.
    let count = cases.end - cases.start;
    assert!(
        count < 100 || (opened_well > count / 10 && opened_well < count * 9 / 10),
        "{opened_well} of {count}"
    );
}
