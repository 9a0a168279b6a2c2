//! Prepared devices that are kept: a run on one has the result it would have without, whatever became of the files.

#[path = "../sources.rs"]
mod sources;

use nvlab_lab::design::Design;
use nvlab_lab::plan::{Settings, Source, Task};
use nvlab_lab::prepared::{Patience, Shelf};
use nvlab_lab::result::RunResult;
use nvlab_lab::run::RunError;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Small enough for a test, large enough (2^20 units) to be settled by way of a twin.
const TWIN: &[&str] = &["media.tlc.blocks=64"];
/// Smaller, with much to spare: soon settled.
const SMALL: &[&str] = &["media.tlc.blocks=24", "ftl.spare=30 %", "ftl.map.checkpoint=256 MiB"];
const ZIPF: &str = "zipf rw=randrw read=50% bs=4KiB qd=8";

fn task(sets: &[&str], workload: &str, seed: u64, precondition: &str) -> Task {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let design = Design::load("ssd-tlc", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source::read(workload, None).unwrap();
    let settings =
        Settings { seed, until: Some("20k io".parse().unwrap()), state: precondition.parse().unwrap() };
    Task::new(design, "ssd-tlc".into(), &source, settings).unwrap()
}

fn run(task: &Task, shelf: Option<&Shelf>) -> RunResult {
    let result = task.run_with(shelf, &mut |_, _| true).unwrap();
    RunResult { wall_s: 0.0, ..result }
}

/// A shelf that keeps everything, in a folder of its own.
fn shelf(folder: &Path, bytes_max: u64) -> Shelf {
    let patience = Patience { worth: Duration::ZERO, part_every: Duration::ZERO };
    Shelf::new(folder.to_path_buf(), bytes_max).with_patience(patience)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).map_or(Vec::new(), |all| all.map(|entry| entry.unwrap().path()).collect());
    files.sort();
    files
}

#[test]
fn a_run_on_a_kept_device_has_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("devices");
    let shelf = shelf(&folder, 1 << 30);
    let policies = ["greedy", "fifo", "cost-benefit", "d-choices"];
    let kinds = policies.map(|policy| [SMALL, &[]].concat().into_iter().chain([policy]).collect::<Vec<_>>());
    for kind in kinds {
        let clean = format!("ftl.clean.kind={}", kind[kind.len() - 1]);
        let sets: Vec<&str> = kind[..kind.len() - 1].iter().copied().chain([clean.as_str()]).collect();
        for precondition in ["steady", "full", "scattered,fill=40%,idle=1s"] {
            let task = task(&sets, ZIPF, 1, precondition);
            let (alone, first) = (run(&task, None), run(&task, Some(&shelf)));
            let before = files(&folder);
            let second = run(&task, Some(&shelf));
            assert_eq!(alone, first, "{sets:?} {precondition}");
            assert_eq!(alone, second, "{sets:?} {precondition}: from a kept device");
            assert_eq!(files(&folder), before);
        }
    }
    assert_eq!(files(&folder).len(), policies.len() * 3);
}

#[test]
fn devices_from_a_twin_are_shared_by_seeds_mixes_and_depths() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("devices");
    let shelf = shelf(&folder, 1 << 30);
    let first = run(&task(TWIN, ZIPF, 1, "steady"), Some(&shelf));
    assert!(first.precondition.twin_units > 1);
    assert_eq!(files(&folder).len(), 1);
    for (workload, seed) in [(ZIPF, 2), ("zipf rw=randrw read=90% bs=4KiB qd=64", 1), (ZIPF, 3)] {
        let task = task(TWIN, workload, seed, "steady");
        let kept = run(&task, Some(&shelf));
        assert_eq!(kept.precondition, first.precondition);
        assert_ne!(
            kept.read.histogram_ns, first.read.histogram_ns,
            "another seed or mix draws other requests"
        );
        assert_eq!(kept, run(&task, None));
        assert_eq!(files(&folder).len(), 1);
    }
    // Other addresses, another seed of the preparation: other devices.
    run(&task(TWIN, "uniform rw=randwrite bs=4KiB", 1, "steady"), Some(&shelf));
    run(&task(TWIN, ZIPF, 1, "steady,seed=2"), Some(&shelf));
    assert_eq!(files(&folder).len(), 3);
}

/// Stops a run when it has settled for a few rounds, and lets another one go on from there.
#[test]
fn an_interrupted_preparation_goes_on_where_it_was() {
    for (sets, workload) in [
        (SMALL, ZIPF),
        (SMALL, "uniform rw=randread bs=4KiB qd=8"),
        // Parts of units: no twin.
        (SMALL, "uniform rw=randrw read=20% bs=2KiB qd=8"),
        (TWIN, "zipf rw=randwrite theta=1.2 bs=4KiB qd=8"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("devices");
        let shelf = shelf(&folder, 1 << 30);
        let task = task(sets, workload, 1, "steady");
        let alone = run(&task, None);
        let mut rounds = Vec::new();
        let stopped = task.run_with(Some(&shelf), &mut |text, _| {
            if text.starts_with("settling") && !rounds.contains(&text.to_string()) {
                rounds.push(text.to_string());
            }
            rounds.len() < 3
        });
        if rounds.len() < 3 {
            // A twin may need two rounds at full size only.
            assert!(alone.precondition.twin_units > 1 && stopped.is_ok(), "{workload}: {rounds:?}");
            continue;
        }
        assert!(matches!(stopped, Err(RunError::Precondition { .. })), "{stopped:?}");
        assert!(shelf.has_part());
        assert_eq!(files(&folder).len(), 1);
        let mut first = None;
        let result = task.run_with(Some(&shelf), &mut |text, _| {
            first.get_or_insert(text.to_string());
            true
        });
        let first = first.unwrap();
        // Keeping takes a twentieth of the time at most: not every window may have been kept.
        let went_on = first.starts_with("settling: round 2") || first.starts_with("settling: round 3");
        assert!(went_on, "{workload}: it went on with {first}");
        assert_eq!(RunResult { wall_s: 0.0, ..result.unwrap() }, alone, "{workload}");
        let kept = files(&folder);
        assert_eq!(kept.len(), 1, "the part is not needed any more: {kept:?}");
    }
}

#[test]
fn damaged_files_count_as_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("devices");
    let shelf = shelf(&folder, 1 << 30);
    let task = task(SMALL, ZIPF, 1, "full");
    let good = run(&task, Some(&shelf));
    let path = files(&folder).remove(0);
    let bytes = fs::read(&path).unwrap();
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    for damaged in
        [Vec::new(), bytes[..bytes.len() / 2].to_vec(), flipped(3), flipped(20), flipped(bytes.len() - 9)]
    {
        fs::write(&path, damaged).unwrap();
        assert_eq!(run(&task, Some(&shelf)), good);
        assert_eq!(fs::read(&path).unwrap(), bytes, "it was prepared and kept anew");
    }
}

#[test]
fn the_folder_stays_below_its_limit_and_the_oldest_go() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("devices");
    let one = task(SMALL, ZIPF, 1, "full");
    run(&one, Some(&shelf(&folder, 1 << 30)));
    let first = files(&folder).remove(0);
    let bytes = fs::metadata(&first).unwrap().len();
    // Room for two and a half.
    let shelf = shelf(&folder, bytes * 5 / 2);
    fs::write(folder.join(".0123.4000000000"), "left behind by a killed program").unwrap();
    run(&task(SMALL, ZIPF, 1, "full,seed=2"), Some(&shelf));
    assert_eq!(files(&folder).len(), 2);
    let second = files(&folder).into_iter().find(|path| *path != first).unwrap();
    // The first one is used again, so the second goes.
    run(&one, Some(&shelf));
    run(&task(SMALL, ZIPF, 1, "full,seed=3"), Some(&shelf));
    let left = files(&folder);
    assert!(left.len() == 2 && left.contains(&first) && !left.contains(&second), "{left:?}");
    // What is larger than all that is allowed is not kept, and nothing goes for it.
    run(&task(SMALL, ZIPF, 1, "full,seed=4"), Some(&self::shelf(&folder, bytes / 2)));
    assert_eq!(files(&folder), left);
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let shelf = shelf(&file.join("devices"), 1 << 30);
    let task = task(SMALL, ZIPF, 1, "full");
    assert_eq!(run(&task, Some(&shelf)), run(&task, None));
    assert!(shelf.trouble().unwrap().contains("are not kept in"), "{:?}", shelf.trouble());
}

/// Every change of a source that a result depends on is another program, whose keys are others.
#[test]
fn programs_of_other_sources_do_not_share_keys() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let digest = || sources::digest(root.path(), &["a".into(), "b".into(), "absent".into()]).unwrap();
    write("a/src/one.rs", "x");
    write("a/two.rs", "y");
    let mut seen = vec![digest()];
    assert_eq!(digest(), seen[0]);
    write("c/none.rs", "not asked for");
    assert_eq!(digest(), seen[0]);
    for (name, text) in [("b/two.rs", "y"), ("b/two.rs", "z"), ("a/src/one.rs", ""), ("a/src/on", "e.rs")] {
        write(name, text);
        assert!(!seen.contains(&digest()), "{name} {text}");
        seen.push(digest());
    }
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("a")).unwrap();
    assert_eq!(sources::digest(elsewhere.path(), &["a".into()]).unwrap(), 0xcbf2_9ce4_8422_2325);
}
