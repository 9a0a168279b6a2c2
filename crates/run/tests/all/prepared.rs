//! Prepared devices that are kept: a run on one has the result it would have without, whatever became of the files.

#[path = "../../sources.rs"]
mod sources;

use nvlab_design::Design;
use nvlab_run::RunError;
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::prepared::{Patience, Shelf};
use nvlab_run::result::RunResult;
use nvlab_trace::columns::{Columns, Origin};
use nvlab_trace::{self as trace, Format};
use nvlab_workload::{Op, Request};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Small enough for a test, large enough (2^20 units) to be settled by way of a twin.
const TWIN: &[&str] = &["media.tlc.blocks=64"];
/// Smaller, with much to spare: soon settled.
const SMALL: &[&str] = &["media.tlc.blocks=24", "ftl.spare=30 %", "ftl.map.checkpoint=256 MiB"];
/// The write buffer absorbs a tenth of its writes: a device is then prepared at the pace of its run, too.
const ZIPF: &str = "zipf rw=randrw read=50% bs=4KiB qd=8";
/// It absorbs hardly any of these.
const MILD: &str = "uniform rw=randrw read=50% bs=4KiB qd=8";

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
            let workload = if kind[kind.len() - 1] == "greedy" { ZIPF } else { MILD };
            let task = task(&sets, workload, 1, precondition);
            let (alone, first) = (run(&task, None), run(&task, Some(&shelf)));
            let before = files(&folder);
            let second = run(&task, Some(&shelf));
            assert_eq!(alone, first, "{sets:?} {precondition}");
            assert_eq!(alone, second, "{sets:?} {precondition}: from a kept device");
            assert_eq!(files(&folder), before);
        }
    }
    // One both as its twin left it and at the pace of the run.
    assert_eq!(files(&folder).len(), policies.len() * 3 + 1);
}

#[test]
fn devices_from_a_twin_are_shared_by_seeds_mixes_and_depths() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("devices");
    let shelf = shelf(&folder, 1 << 30);
    let first = run(&task(TWIN, ZIPF, 1, "steady"), Some(&shelf));
    assert!(first.precondition.twin_units > 1 && first.precondition.own_pace_bytes > 0);
    // One is shared, and one is at the pace of this mix and depth.
    assert_eq!(files(&folder).len(), 2);
    let other = "zipf rw=randrw read=90% bs=4KiB qd=64";
    for (workload, seed, kept_then) in [(ZIPF, 2, 2), (other, 1, 3), (ZIPF, 3, 3)] {
        let task = task(TWIN, workload, seed, "steady");
        let kept = run(&task, Some(&shelf));
        assert_eq!(kept.precondition == first.precondition, workload == ZIPF);
        assert_ne!(
            kept.read.histogram_ns, first.read.histogram_ns,
            "another seed or mix draws other requests"
        );
        assert_eq!(kept, run(&task, None));
        assert_eq!(files(&folder).len(), kept_then);
    }
    // Other addresses, another seed of the preparation: other devices.
    run(&task(TWIN, "uniform rw=randwrite bs=4KiB", 1, "steady"), Some(&shelf));
    run(&task(TWIN, ZIPF, 1, "steady,seed=2"), Some(&shelf));
    assert_eq!(files(&folder).len(), 6);
}

/// Stops a run when it has settled for a few rounds, and lets another one go on from there.
#[test]
fn an_interrupted_preparation_goes_on_where_it_was() {
    for (sets, workload) in [
        (SMALL, MILD),
        (SMALL, "uniform rw=randrw read=80% bs=4KiB qd=8"),
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
        let is_part = |file: &&PathBuf| file.to_string_lossy().contains("-part");
        assert_eq!(kept.iter().find(is_part), None, "the part is not needed any more");
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
    assert!(shelf.trouble().unwrap().contains("cannot be cached in"), "{:?}", shelf.trouble());
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

/// A trace of writes of 4 KiB to these units, in a file; returns its path.
fn trace_of(folder: &Path, units: impl Iterator<Item = u64>) -> String {
    let mut columns = Columns::new(Origin::default());
    let write = |unit| Request { offset: unit * 4096, bytes: 4096, op: Op::Write, ..Request::default() };
    let read = Request { op: Op::Read, ..write(0) };
    units.for_each(|unit| {
        columns.push(read);
        columns.push(write(unit));
    });
    let path = folder.join("trace.nvt");
    trace::write_file(&columns, Format::Nvt, &path).unwrap();
    path.display().to_string()
}

/// Units of a part of the device of [`SMALL`].
const UNITS: u64 = 1 << 17;

/// A place for each of [`UNITS`], in no order.
fn shuffled(unit: u64) -> u64 {
    (unit * 92_821 + 12_345) % UNITS
}

/// pgbench on `ssd-tlc` had a write amplification of 3.31 after uniform writes over its span; after its own nothing is moved.
#[test]
fn a_trace_is_repeated_until_it_is_steady() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace_of(folder.path(), (0..3).flat_map(|_| 0..UNITS));
    let result = run(&task(SMALL, &format!("{path} qd=8"), 1, "steady"), None);
    let state = &result.precondition;
    let pass = state.pass.unwrap();
    assert_eq!((pass.bytes, pass.distinct_bytes, pass.trimmed_bytes), (3 * UNITS * 4096, UNITS * 4096, 0));
    let own = state.host_bytes - state.fill_bytes;
    assert_eq!(
        (state.fill_bytes, own),
        (result.design.capacity_bytes, state.passes * pass.bytes),
        "whole passes"
    );
    assert!(state.converged && state.bounds.is_none(), "{state:?}");
    // What is overwritten in order is dead together: all there is to move is what the fill left beside it.
    let [before, last] = state.last_windows;
    assert!((1.0..1.05).contains(&before) && (1.0..1.05).contains(&last), "{state:?}");
    assert!(result.write_amplification.total < 1.05, "{:?}", result.write_amplification);
    assert!(
        state.about.starts_with("filled once in order, then ") && state.about.contains(" (all of it "),
        "{}",
        state.about
    );
}

#[test]
fn a_trace_too_short_to_say_has_bounds() {
    let folder = tempfile::tempdir().unwrap();
    // Each unit once, in no order: what repeats it overwrites whole blocks.
    let path = trace_of(folder.path(), (0..UNITS).map(shuffled));
    let result = run(&task(SMALL, &format!("{path} qd=8"), 1, "steady"), None);
    let [repeated, anywhere] = result.precondition.bounds.expect("each unit is written once");
    assert!((1.0..1.05).contains(&repeated), "{repeated}");
    let uniform = "uniform rw=randwrite bs=4KiB qd=1";
    let random = run(&task(SMALL, uniform, 1, "steady"), None).precondition.last_windows[1];
    assert!(anywhere > 2.0 && (anywhere / random - 1.0).abs() < 0.02, "{anywhere} and {random}");
    assert!(result.precondition.about.contains("too short to tell"), "{}", result.precondition.about);
}

/// The job with an end had 1.32 after uniform writes, time_based 1.01.
#[test]
fn a_job_with_an_end_is_as_one_without() {
    let folder = tempfile::tempdir().unwrap();
    let amplification = |name: &str, end: &str| {
        let path = folder.path().join(name);
        let job = format!("[job]\nioengine=libaio\niodepth=8\nrw=write\nbs=4k\nsize=512m\n{end}");
        fs::write(&path, job).unwrap();
        let result = run(&task(SMALL, path.to_str().unwrap(), 1, "steady"), None);
        assert!(result.precondition.converged, "{:?}", result.precondition);
        (result.precondition.last_windows, result.precondition.host_bytes)
    };
    let once = amplification("once.fio", "");
    assert_eq!(once, amplification("timed.fio", "time_based\nruntime=60\n"));
    assert!(once.0[1] < 1.05, "{once:?}");
    // It ends before the end of its region, and begins again at the beginning: less is overwritten.
    let part = amplification("part.fio", "io_size=128m\n");
    assert!(part.0[1] < 1.05 && part != once, "{part:?}");
}

#[test]
fn what_never_writes_finds_a_device_filled_in_order() {
    let state = run(&task(SMALL, "uniform rw=randread bs=4KiB qd=8", 1, "steady"), None).precondition;
    assert_eq!((state.host_bytes, state.writes.as_deref(), state.converged), (state.fill_bytes, None, true));
    assert_eq!(state.about, "filled once in order; the workload writes nothing");
}

/// It was `not steady: from 0.00 to 0.00`, since 100 windows were over before each block was erased twice.
#[test]
fn where_nothing_is_moved_the_state_is_steady() {
    let mut sets = SMALL.to_vec();
    sets[1] = "ftl.spare=99 %";
    // The buffer holds a fifth of so small a device.
    sets.push("ftl.buffer.absorb=false");
    let result = run(&task(&sets, "uniform rw=randwrite bs=4KiB qd=8", 1, "steady"), None);
    let state = &result.precondition;
    assert!(state.converged && (1.0..1.05).contains(&state.last_windows[1]), "{state:?}");
    let erased = result.design.raw_bytes - result.design.capacity_bytes;
    assert!(state.host_bytes > erased, "each block was used again: {state:?}");
}
