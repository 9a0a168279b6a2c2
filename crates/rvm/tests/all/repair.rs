//! Logs that were copied with their folder, and damaged ones.

use nvlab_rvm::flash::{PlainFile, Shape};
use nvlab_rvm::inspect::Inspection;
use nvlab_rvm::log::battery_ram::BatteryRam;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::flash_disk::FlashDiskLog;
use nvlab_rvm::repair::{recover, salvage};
use nvlab_rvm::store::{FileStore, SegmentFolder};
use nvlab_rvm::{Error, Log, Options, Result, Rvm, Truncation};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const SEGMENT: u64 = 1 << 16;
const COMMITS: u8 = 6;

/// A log, none of whose commits has been applied, with segments that are named by `name`. Returns where each record ends.
fn fill(log: impl Log + 'static, name: &str) -> Vec<u64> {
    let segments = SegmentFolder::new("/");
    segments.create(name, SEGMENT).unwrap();
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(log, segments, options).unwrap();
    let mut region = rvm.map(name, 0..SEGMENT).unwrap();
    let mut commit = |number: u8| {
        let mut transaction = region.begin();
        transaction.set_range(usize::from(number) * 100..usize::from(number) * 100 + 90)?.fill(number);
        transaction.commit()?;
        Ok::<u64, Error>(rvm.statistics().live_bytes)
    };
    (1..=COMMITS).map(|number| commit(number).unwrap()).collect()
}

/// How many commits the segment has, which are the first ones.
fn applied(path: &Path) -> u8 {
    let bytes = std::fs::read(path).unwrap();
    let has = |number: &u8| bytes[usize::from(*number) * 100..][..90].iter().all(|byte| byte == number);
    let count = (1..=COMMITS).take_while(has).count() as u8;
    assert!(!(count + 1..=COMMITS).any(|number| has(&number)), "a later commit without an earlier one");
    count
}

#[test]
fn a_copied_folder_is_recovered_into_the_copies() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    [&old, &new].iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    fill(FileLog::create(&old.join("log"), 1 << 16).unwrap(), old.join("data").to_str().unwrap());
    for file in ["log", "data"] {
        std::fs::copy(old.join(file), new.join(file)).unwrap();
    }
    let recovery = recover(&new.join("log"), SegmentFolder::new("/").relocate(&old, &new)).unwrap();
    assert_eq!(recovery.commits, u64::from(COMMITS));
    assert_eq!((applied(&old.join("data")), applied(&new.join("data"))), (0, COMMITS));
    assert_eq!(recover(&new.join("log"), SegmentFolder::new("/")).unwrap().commits, 0);
    // Names of folders, not of what begins with the same letters.
    let segments = SegmentFolder::new("/").relocate("/a/old", "/b");
    assert_eq!(segments.path("/a/old/c/d"), Path::new("/b/c/d"));
    assert_eq!(segments.path("/a/older/c"), Path::new("/a/older/c"));
    // The innermost, in whatever order.
    let segments = SegmentFolder::new("/").relocate("/a", "/x").relocate("/a/old", "/b").relocate("/", "/y");
    let paths = ["/a/old/c", "/a/c", "/c"].map(|name| segments.path(name));
    assert_eq!(paths.each_ref().map(|path| path.to_str().unwrap()), ["/b/c", "/x/c", "/y/c"]);
}

/// Of two segments, to which changes are stored as they are read, the second is too short or is not there: the first is left as it
/// was, and so is the log.
#[test]
fn a_log_one_of_whose_segments_is_missing_changes_none() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (path, segments) = (folder.path().join("log"), SegmentFolder::new(folder.path()));
    ["one", "two"].iter().for_each(|name| segments.create(name, SEGMENT).unwrap());
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(FileLog::create(&path, 1 << 16).unwrap(), segments.clone(), options).unwrap();
    for name in ["one", "two"] {
        let mut region = rvm.map(name, 0..SEGMENT).unwrap();
        let mut transaction = region.begin();
        transaction.write(SEGMENT as usize - 5, name.as_bytes()).unwrap();
        transaction.commit().unwrap();
    }
    drop(rvm);
    let contents = || ["log", "one"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
    let (before, two, away) = (contents(), segments.path("two"), segments.path("away"));
    std::fs::rename(&two, &away).unwrap();
    let missing = recover(&path, segments.clone());
    assert!(matches!(missing, Err(Error::Io { .. })), "{missing:?}");
    assert!(contents() == before, "a segment was missing");
    std::fs::File::create(&two).unwrap().set_len(SEGMENT - 3).unwrap();
    let short = recover(&path, segments.clone());
    assert!(matches!(short, Err(Error::Format { offset, .. }) if offset == SEGMENT - 3), "{short:?}");
    assert!(contents() == before, "a segment was short");
    std::fs::rename(&away, &two).unwrap();
    assert_eq!(recover(&path, segments).unwrap().commits, 2);
}

/// Damages one record of a log, salvages it, and recovers what is left.
fn damage(log: &Path, name: &Path, begin: u64, number: u8) {
    let what = format!("{}, commit {number}", log.display());
    let file = std::fs::File::options().read(true).write(true).open(log).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 8192 + begin + 5).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 8192 + begin + 5).unwrap();
    let before = std::fs::read(log).unwrap();
    let refused: Result<_> = recover(log, SegmentFolder::new("/"));
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{what}: {refused:?}");
    let mut lost = 0;
    let found =
        salvage(log, |entry| entry.each_range(|range| lost += u8::from(range.data.len() == 90))).unwrap();
    let found = found.unwrap_or_else(|| panic!("{what}: it is not damaged"));
    assert_eq!((found.commits, found.offset), (u64::from(number) - 1, 8192 + begin), "{what}");
    // All but the damaged one can be read.
    assert_eq!(lost, COMMITS - number, "{what}");
    assert!(std::fs::read(&found.copies[0]).unwrap() == before, "{what}");
    assert!(salvage(log, |_| ()).unwrap().is_none(), "{what}");
    assert_eq!(recover(log, SegmentFolder::new("/")).unwrap().commits, u64::from(number) - 1, "{what}");
    // To segments in memory, commits store themselves what they change.
    assert!(log.ends_with("ram") || applied(name) == number - 1, "{what}");
}

#[test]
fn the_readable_prefix_of_a_damaged_log_is_kept() {
    for number in 1..COMMITS {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = |name: &str| folder.path().join(name);
        let name = |name: &str| path(name).to_str().unwrap().to_string();
        FileStore::create(&path("disk"), 1 << 16, |_| Ok(())).unwrap();
        let disk = Box::new(FileStore::open(&path("disk"), 0).unwrap());
        let ends = [
            ("file", fill(FileLog::create(&path("file"), 1 << 16).unwrap(), &name("a"))),
            ("ram", fill(BatteryRam::create(&path("ram"), 1 << 16).unwrap(), &name("b"))),
            ("disk", fill(FlashDiskLog::create(disk, "disk".into(), 7, 512).unwrap(), &name("c"))),
        ];
        for ((log, ends), segment) in ends.into_iter().zip(["a", "b", "c"]) {
            let first = ends[0] - (ends[1] - ends[0]);
            let begin = if number == 1 { first } else { ends[usize::from(number) - 2] };
            damage(&path(log), &path(segment), begin, number);
        }
    }
}

/// Flash cannot be overwritten, but all bits behind the readable part can be cleared: no record begins with zeros.
#[test]
fn the_readable_prefix_of_a_damaged_log_on_flash_is_kept() {
    for number in 1..COMMITS {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = folder.path().join("log");
        let flash = PlainFile::create(&path, Shape { block_bytes: 4096, blocks: 16 }).unwrap();
        let name = folder.path().join("data");
        fill(FlashLog::create(flash, 7, 1).unwrap(), name.to_str().unwrap());
        let mut offsets = Vec::new();
        let log = Inspection::open(&path).unwrap();
        log.each_entry(|entry| offsets.push(entry.offset)).unwrap();
        drop(log);
        // The first record names the segment.
        let begin = offsets[usize::from(number)];
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, begin + 30).unwrap();
        file.write_all_at(&[byte[0] ^ 1], begin + 30).unwrap();
        let before = std::fs::read(&path).unwrap();
        let refused = recover(&path, SegmentFolder::new("/"));
        assert!(matches!(refused, Err(Error::Damaged { offset, .. }) if offset == begin), "{refused:?}");
        let found = salvage(&path, |_| ()).unwrap().unwrap();
        assert_eq!((found.commits, found.offset), (u64::from(number) - 1, begin));
        assert!(std::fs::read(&found.copies[0]).unwrap() == before);
        assert!(salvage(&path, |_| ()).unwrap().is_none());
        assert_eq!(recover(&path, SegmentFolder::new("/")).unwrap().commits, u64::from(number) - 1);
        assert_eq!(applied(&name), number - 1);
        // It can be used again.
        let rvm = Rvm::open(FlashLog::open_file(&path).unwrap(), SegmentFolder::new("/"), Options::default());
        let rvm = rvm.unwrap();
        let mut region = rvm.map(name.to_str().unwrap(), 0..SEGMENT).unwrap();
        let mut transaction = region.begin();
        transaction.write(0, b"after").unwrap();
        transaction.commit().unwrap();
    }
}

/// What the mark says was durable is given up, even if nothing behind the damage can be read.
#[test]
fn salvage_truncates_a_log_that_ends_in_garbage() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (path, segments) = (folder.path().join("log"), SegmentFolder::new(folder.path()));
    segments.create("data", 8 << 20).unwrap();
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(FileLog::create(&path, 8 << 20).unwrap(), segments.clone(), options).unwrap();
    let mut region = rvm.map("data", 0..8 << 20).unwrap();
    for number in 1..30 {
        let mut transaction = region.begin();
        transaction.set_range(number * 1000..number * 1000 + (100 << 10)).unwrap().fill(number as u8);
        transaction.commit().unwrap();
    }
    drop((region, rvm));
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&vec![0; 4 << 20], 8192 + (500 << 10)).unwrap();
    assert!(matches!(recover(&path, segments.clone()), Err(Error::Damaged { .. })));
    // An earlier attempt has left the original, and a part of a copy. The log is left as it is.
    let (original, unfinished) = (folder.path().join("log.damaged"), folder.path().join("log.damaged.new"));
    std::fs::write(&original, "the original").unwrap();
    std::fs::write(&unfinished, "a part").unwrap();
    let error = salvage(&path, |_| ()).unwrap_err().to_string();
    assert!(error.contains("it is the log as it was before an earlier attempt"), "{error}");
    assert_eq!(std::fs::read(&original).unwrap(), b"the original");
    std::fs::remove_file(&original).unwrap();
    std::fs::write(&unfinished, "a part").unwrap();
    let found = salvage(&path, |entry| panic!("{entry:?}")).unwrap().unwrap();
    assert_eq!(found.commits, 4);
    assert!(original.exists() && !unfinished.exists());
    assert_eq!(recover(&path, segments).unwrap().commits, 4);
    let error = salvage(Path::new("/dev/null"), |_| ()).unwrap_err().to_string();
    assert!(error.contains("it is not a regular file"), "{error}");
}

/// It was recovered under the name that the log has for it: into the original, where a copy was meant. So it was for a folder that
/// took the place of one it lies in.
#[test]
fn a_segment_is_recovered_into_a_folder_that_moved_or_not_at_all() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["old", "old/new"] {
        std::fs::create_dir(path(name)).unwrap();
        FileStore::create(&path(name).join("data"), SEGMENT, |_| Ok(())).unwrap();
    }
    let first_byte = |name: &str| std::fs::read(path(name).join("data")).unwrap()[0];
    let (log, name) = (path("log"), path("old/data"));
    let commit = |rvm: Rvm, name: &Path, byte: u8| {
        let mut region = rvm.map(name.to_str().unwrap(), 0..SEGMENT).unwrap();
        let mut transaction = region.begin();
        transaction.write(0, &[byte]).unwrap();
        transaction.commit().unwrap();
    };
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let created = FlashDiskLog::create(disk(&log), "log".into(), 7, 512).unwrap();
    commit(Rvm::open(created, SegmentFolder::new("/"), options).unwrap(), &name, 7);
    let elsewhere = SegmentFolder::new("/").relocate(path("elsewhere"), path("old/new"));
    let refused = recover(&log, elsewhere);
    assert!(matches!(&refused, Err(Error::Invalid(why)) if why.contains("old/data")), "{refused:?}");
    assert_eq!([first_byte("old"), first_byte("old/new")], [0, 0]);
    let moved = SegmentFolder::new("/").relocate(path("old"), path("old/new"));
    assert_eq!(moved.path(path("old/new/data").to_str().unwrap()), path("old/new/data"));
    let opened = || FlashDiskLog::open(Box::new(FileStore::open(&log, 0).unwrap()), "log".into()).unwrap();
    commit(Rvm::open(opened(), moved.clone(), options).unwrap(), &path("old/new/data"), 9);
    assert_eq!([first_byte("old"), first_byte("old/new")], [0, 7]);
    // The log names the copy now.
    assert_eq!(recover(&log, moved).unwrap().commits, 1);
    assert_eq!([first_byte("old"), first_byte("old/new")], [0, 9]);
    // Folders that change places: what is said counts.
    let swapped = SegmentFolder::new("/").relocate("/one", "/two").relocate("/two", "/one");
    assert_eq!(["/one/a", "/two/a"].map(|name| swapped.path(name)), ["/two/a", "/one/a"].map(PathBuf::from));
}

/// A store of zeros in a new file.
fn disk(path: &Path) -> Box<FileStore> {
    Box::new(FileStore::create(path, 1 << 16, |_| Ok(())).unwrap())
}
