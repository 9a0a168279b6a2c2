//! A file system in memory that is full: an error says so; no store to a mapped page without memory ends the program (SIGBUS).

use nvlab_rvm::log::battery_ram::BatteryRam;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Error, Options, Region, Result, Rvm, Truncation};
use std::fs::File;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "NVLAB_RVM_FULL";
const CASE: &str = "NVLAB_RVM_CASE";
/// The file system has 2 MiB.
const SEGMENT: u64 = 8 << 20;

fn sparse(path: &Path) {
    File::create(path).unwrap().set_len(SEGMENT).unwrap();
}

/// Changes every page, and applies that.
fn change(rvm: &Rvm, mut region: Region) -> Result<()> {
    let mut transaction = region.begin();
    for at in (0..region_bytes(&transaction)).step_by(4096) {
        transaction.write(at, b"changed")?;
    }
    transaction.commit()?;
    rvm.truncate()
}

fn region_bytes(transaction: &nvlab_rvm::Transaction<'_>) -> usize {
    transaction.region(nvlab_rvm::Part::FIRST).len()
}

/// A sparse segment is mapped, or a region grows over a part of it.
fn map(folder: &Path, log: &Path, mapped: u64, grown: u64) -> Result<()> {
    sparse(&folder.join("data"));
    let rvm = Rvm::open(FileLog::create(log, 1 << 20)?, SegmentFolder::new(folder), Options::default())?;
    let mut region = rvm.map("data", 0..mapped)?;
    region.grow(grown)?;
    change(&rvm, region)
}

/// A sparse copy takes the place of a segment while the log has changes of it.
fn recover(folder: &Path, log: &Path) -> Result<()> {
    let elsewhere = log.parent().unwrap();
    SegmentFolder::new(elsewhere).create("data", SEGMENT)?;
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(FileLog::create(log, 1 << 20)?, SegmentFolder::new(elsewhere), options)?;
    let mut region = rvm.map("data", 0..SEGMENT)?;
    let mut transaction = region.begin();
    for at in (0..SEGMENT as usize).step_by(4096) {
        transaction.write(at, b"changed")?;
    }
    transaction.commit()?;
    drop((region, rvm));
    sparse(&folder.join("data"));
    Rvm::open(FileLog::open(log)?, SegmentFolder::new(folder), options).map(|_| ())
}

/// The log is a sparse copy.
fn append(folder: &Path) -> Result<()> {
    let (path, copy) = (folder.join("log"), folder.join("copy"));
    drop(BatteryRam::create(&path, 1 << 20)?);
    let begin = std::fs::read(&path).unwrap();
    File::create(&copy).unwrap().set_len(begin.len() as u64).unwrap();
    std::os::unix::fs::FileExt::write_all_at(
        &File::options().write(true).open(&copy).unwrap(),
        &begin[..8192],
        0,
    )
    .unwrap();
    SegmentFolder::new(folder).create("data", 960 << 10)?;
    let rvm = Rvm::open(BatteryRam::open(&copy)?, SegmentFolder::new(folder), Options::default())?;
    let mut region = rvm.map("data", 0..960 << 10)?;
    // The log goes round.
    for round in 0..40 {
        let mut transaction = region.begin();
        transaction.set_range(0..64 << 10)?.fill(round);
        transaction.commit()?;
    }
    Ok(())
}

/// The program that runs in the full file system: prints how its case ends.
#[test]
fn program_without_room() {
    let (Some(folder), Ok(case)) = (std::env::var_os(FOLDER), std::env::var(CASE)) else { return };
    let folder = Path::new(&folder);
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let log = elsewhere.path().join("log");
    let ended = match case.as_str() {
        "map" => map(folder, &log, SEGMENT, SEGMENT),
        "grow" => map(folder, &log, 4096, SEGMENT),
        "recover" => recover(folder, &log),
        "append" => append(folder),
        "part" => map(folder, &log, 1 << 20, 1 << 20),
        other => panic!("{other}"),
    };
    match ended {
        Ok(()) => println!("ended: well"),
        Err(Error::Io { what, source }) => println!("ended: cannot {what}: {source}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_full_file_system_in_memory_is_an_error() {
    let cases = [
        ("map", "ended: cannot reserve 8388608 B of data: No space left on device"),
        ("grow", "ended: cannot reserve 8388608 B of data: No space left on device"),
        ("recover", "ended: cannot write data: No space left on device"),
        ("append", "ended: cannot reserve"),
        ("part", "ended: well"),
    ];
    for (case, expected) in cases {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mount = "mount -t tmpfs -o size=2m none \"$1\" || exit 77; exec \"$2\" --exact full::program_without_room --nocapture";
        let program = std::env::current_exe().unwrap();
        let output = Command::new("unshare")
            .args(["-rm", "sh", "-c", mount, "sh"])
            .args([folder.path(), &program])
            .env(FOLDER, folder.path())
            .env(CASE, case)
            .output();
        let output = match output {
            Ok(output) if output.status.code() != Some(77) && output.status.code() != Some(1) => output,
            refused => return eprintln!("SKIPPED: no file system of its own: {refused:?}"),
        };
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains(expected),
            "{case}: {:?}, {said}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
