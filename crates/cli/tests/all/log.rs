//! Recoverable memory under the verbs: `nvlab log` reads what the library wrote; `nvlab cut` finds that a program on it loses
//! nothing on a served device.

use crate::common::{Folder, said};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Log, Options, Rvm, Truncation};
use std::path::Path;

/// Three commits that nobody has applied yet.
fn fill(folder: &Path, log: impl Log + 'static) {
    let segments = SegmentFolder::new(folder);
    segments.create("data", 1 << 16).unwrap();
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(log, segments, options).unwrap();
    let mut region = rvm.map("data", 0..1 << 16).unwrap();
    for round in 0..3 {
        let mut transaction = region.begin();
        transaction.write(round * 100, b"hello").unwrap();
        transaction.write(4096 + round, &[round as u8 + 1]).unwrap();
        transaction.commit().unwrap();
    }
}

fn json(folder: &Folder, arguments: &[&str]) -> serde_json::Value {
    let output = folder.run(arguments);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_log_is_shown_and_checked() {
    let folder = Folder::new("log");
    let path = folder.0.join("log");
    fill(&folder.0, FileLog::create(&path, 1 << 16).unwrap());
    let stat = json(&folder, &["log", "stat", "log", "--json"]);
    let facts = ["kind", "commits", "ranges", "range_bytes", "live_bytes", "segments"]
        .map(|key| stat[key].to_string());
    // A name of 20 B; each commit 8 + (8 + 5) + (8 + 1) B and 2 of fill.
    assert_eq!(facts, ["\"file\"", "3", "6", "18", "116", "\"data\""]);
    let dump = folder.run(&["log", "dump", "log", "--format", "csv"]);
    let text = String::from_utf8_lossy(&dump.stdout).into_owned();
    assert!(text.contains(",data,200,5,68656c6c6f") && text.lines().count() == 1 + 1 + 6, "{text}");
    let checked = folder.run(&["log", "check", "log"]);
    assert!(
        String::from_utf8_lossy(&checked.stdout).contains("3 commits, 116 B, undamaged"),
        "{}",
        said(&checked)
    );

    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8192 + 20 + 10] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let damaged = folder.run(&["log", "check", "log"]);
    assert_eq!(damaged.status.code(), Some(1), "{}", said(&damaged));
    assert!(said(&damaged).contains("damaged at byte 8212"), "{}", said(&damaged));
    for (file, why) in [("data", "and no segment with a heap"), ("none", "No such file")] {
        let refused = folder.run(&["log", "stat", file]);
        assert!(!refused.status.success() && said(&refused).contains(why), "{}", said(&refused));
    }
}

#[test]
fn a_copied_log_is_recovered_and_a_damaged_one_salvaged() {
    let folder = Folder::new("log-repair");
    let path = |name: &str| folder.0.join(name);
    std::fs::create_dir(path("old")).unwrap();
    std::fs::create_dir(path("new")).unwrap();
    // Absolute names, as those of C programs.
    let name = path("old/data").to_str().unwrap().to_string();
    let segments = SegmentFolder::new("/");
    segments.create(&name, 1 << 16).unwrap();
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(FileLog::create(&path("old/log"), 1 << 16).unwrap(), segments, options).unwrap();
    let mut region = rvm.map(&name, 0..1 << 16).unwrap();
    for round in 1..4 {
        let mut transaction = region.begin();
        transaction.write(round * 100, &[round as u8; 50]).unwrap();
        transaction.commit().unwrap();
    }
    drop((region, rvm));
    for file in ["log", "data"] {
        std::fs::copy(path("old").join(file), path("new").join(file)).unwrap();
    }
    // The second of three records of 68 B.
    let mut bytes = std::fs::read(path("new/log")).unwrap();
    let first =
        8192 + json(&folder, &["log", "stat", "new/log", "--json"])["live_bytes"].as_u64().unwrap() - 3 * 68;
    bytes[first as usize + 68 + 20] ^= 1;
    std::fs::write(path("new/log"), bytes).unwrap();
    let refused = folder.run(&["log", "recover", "new/log"]);
    assert!(said(&refused).contains("`nvlab log salvage` keeps"), "{}", said(&refused));
    let found = json(&folder, &["log", "salvage", "new/log", "--json"]);
    let facts = ["kept_commits", "damaged_at", "lost_commits_at_least"].map(|key| found[key].to_string());
    assert_eq!(facts, ["1".into(), (first + 68).to_string(), "2".into()]);
    assert_eq!(found["lost_and_readable"].as_str(), Some(format!("{name}: 1 ranges, 50 B").as_str()));
    assert!(path("new/log.damaged").exists());

    let moved = |old: &str| format!("{}={}", path(old).display(), path("new").display());
    let other = folder.run(&["log", "recover", "new/log", "--relocate", &moved("elsewhere")]);
    assert!(said(&other).contains("is in none of the folders of --relocate"), "{}", said(&other));
    let found = json(&folder, &["log", "recover", "new/log", "--relocate", &moved("old"), "--json"]);
    assert_eq!(found["commits"].to_string(), "1");
    assert_eq!(std::fs::read(path("new/data")).unwrap()[100..150], [1; 50]);
    assert_eq!(std::fs::read(path("old/data")).unwrap()[100..150], [0; 50]);
    let malformed = folder.run(&["log", "recover", "new/log", "--relocate", "old"]);
    assert_eq!(malformed.status.code(), Some(2), "{}", said(&malformed));
}

#[test]
fn a_log_on_flash_in_a_file_is_shown() {
    use nvlab_rvm::flash::{PlainFile, Shape};
    let folder = Folder::new("log-flash");
    let shape = Shape { block_bytes: 4096, blocks: 16 };
    let file = PlainFile::create(&folder.0.join("nor"), shape).unwrap();
    fill(&folder.0, FlashLog::create(file, 7, 1).unwrap());
    let stat = json(&folder, &["log", "stat", "nor", "--json"]);
    assert_eq!([&stat["kind"], &stat["commits"]].map(|fact| fact.to_string()), ["\"flash\"", "3"]);
}

/// Each of its files is refused without the other; with both it is shown, recovered and salvaged.
#[test]
fn a_hybrid_log_is_shown_and_salvaged() {
    use nvlab_rvm::log::hybrid::HybridLog;
    use nvlab_rvm::store::FileStore;
    let folder = Folder::new("log-hybrid");
    let path = |name: &str| folder.0.join(name);
    let small = FileLog::create(&path("small"), 1 << 16).unwrap();
    FileStore::create(&path("log"), 1 << 16, |_| Ok(())).unwrap();
    let large = FileStore::open(&path("log"), 0).unwrap();
    fill(&folder.0, HybridLog::create(small, Box::new(large), "log", 1000).unwrap());
    for (file, why) in [("log", "the large part"), ("small", "the small part")] {
        for verb in ["stat", "dump", "check", "recover", "salvage"] {
            let refused = folder.run(&["log", verb, file]);
            assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
            assert!(said(&refused).contains(why) && said(&refused).contains("--small"), "{}", said(&refused));
        }
    }
    let stat = json(&folder, &["log", "stat", "log", "--small", "small", "--json"]);
    assert_eq!([&stat["kind"], &stat["commits"]].map(|fact| fact.to_string()), ["\"hybrid\"", "3"]);
    // The second of the entries, which have 24 B besides the record.
    let whole = std::fs::read(path("small")).unwrap();
    for in_entry in [4, 30] {
        let mut bytes = whole.clone();
        bytes[8192 + 24 + 52 + in_entry] ^= 1;
        std::fs::write(path("small"), bytes).unwrap();
        let checked = folder.run(&["log", "check", "log", "--small", "small"]);
        assert_eq!(checked.status.code(), Some(1), "{}", said(&checked));
        assert!(said(&checked).contains("small is damaged at byte"), "{in_entry}: {}", said(&checked));
        assert!(!said(&checked).contains("log with small"), "{}", said(&checked));
    }
    let found = json(&folder, &["log", "salvage", "log", "--small", "small", "--json"]);
    let facts = ["kept_commits", "lost_commits_at_least"].map(|key| found[key].to_string());
    assert_eq!(facts, ["1", "2"]);
    assert_eq!(found["damaged_file"].as_str(), Some("small"));
    assert!(path("log.damaged").exists() && path("small.damaged").exists());
    let found = json(&folder, &["log", "recover", "log", "--small", "small", "--json"]);
    assert_eq!(found["commits"].to_string(), "1");
    assert_eq!(std::fs::read(path("data")).unwrap()[..5], *b"hello");
}

const COMMITS: u64 = 12;

/// The program that `nvlab cut` runs, and what it runs to check.
#[test]
fn program_that_is_cut() {
    let Ok(phase) = std::env::var("NVLAB_PHASE") else { return };
    let folder = std::env::current_dir().unwrap();
    let log = folder.join("log");
    if phase == "run" {
        SegmentFolder::new(&folder).create("data", 1 << 16).unwrap();
        FileLog::create(&log, 8192).unwrap();
    } else if !log.exists() {
        // The power failed before the first commit.
        assert!(!marks().contains("durable"));
        return;
    }
    let rvm =
        Rvm::open(FileLog::open(&log).unwrap(), SegmentFolder::new(&folder), Options::default()).unwrap();
    let mut region = rvm.map("data", 0..1 << 16).unwrap();
    if phase == "run" {
        for number in 1..=COMMITS {
            let mut transaction = region.begin();
            *transaction.get_mut::<u64>(0).unwrap() = number;
            transaction.set_range(4096..4096 + 900).unwrap().fill(number as u8);
            transaction.commit().unwrap();
            println!("durable {number}");
        }
        return;
    }
    let found = *region.get::<u64>(0).unwrap();
    let said =
        marks().lines().filter_map(|line| line.split_once("durable ")?.1.parse().ok()).max().unwrap_or(0);
    // Lines arrive later than they are printed, so more may be found than was said.
    assert!((said..=COMMITS).contains(&found), "{found} found, {said} acknowledged");
    assert!(region[4096..4996].iter().all(|byte| u64::from(*byte) == found), "part of a transaction");
}

fn marks() -> String {
    std::fs::read_to_string(std::env::var("NVLAB_MARKS").unwrap()).unwrap()
}

#[test]
fn a_program_on_recoverable_memory_survives_every_cut() {
    let folder = Folder::new("log-cut");
    let program = std::env::current_exe().unwrap();
    let cut = |more: &[&str]| {
        let design = "ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=30%,ftl.buffer.size=1MiB";
        let common = ["cut", design, "--cuts", "25", "--check", "fs=ext4", "--check", "program"];
        let program = ["--", program.to_str().unwrap(), "--exact", "log::program_that_is_cut", "--nocapture"];
        folder.run(&[&common[..], more, &program].concat())
    };
    let honest = cut(&[]);
    if honest.status.code() == Some(4) {
        return eprintln!("SKIPPED: {}", said(&honest));
    }
    assert_eq!(honest.status.code(), Some(0), "{}", said(&honest));
    assert!(said(&honest).contains(" cuts: nothing was lost"), "{}", said(&honest));
    let lying = cut(&["--ignore-flush"]);
    assert_eq!(lying.status.code(), Some(1), "{}", said(&lying));
}
