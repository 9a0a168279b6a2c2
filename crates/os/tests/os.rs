//! The crate as others use it: folders with one owner, files that fail on demand, flushes of this processor.

use nvlab_os::faulty::{Failure, Fault};
use nvlab_os::file;
use nvlab_os::{FaultyFile, Flush, FolderError, LockedFolder, Mapping, PrivateCopy, WriteWatch};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::time::Duration;

#[test]
fn a_folder_has_one_owner_and_its_files_are_replaced_whole() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("state");
    let folder = LockedFolder::open(&path, "record").unwrap();
    assert!(matches!(LockedFolder::open(&path, "record"), Err(FolderError::Busy(_))));
    assert_eq!(folder.read("record", 100).unwrap(), None);
    folder.replace("record", b"first").unwrap();
    folder.replace("record", b"second, longer").unwrap();
    assert_eq!(folder.read("record", 100).unwrap().unwrap(), b"second, longer");
    assert_eq!(folder.read("record", 6).unwrap().unwrap(), b"second");
    drop(folder.sized_file("log", 8192, true).unwrap());
    assert_eq!(folder.sized_file("log", 8192, false).unwrap().metadata().unwrap().len(), 8192);
    assert!(matches!(folder.sized_file("log", 4096, false), Err(FolderError::Unusable { .. })));
    drop(folder);
    let folder = LockedFolder::open(&path, "record").unwrap();
    assert_eq!(folder.read("record", 100).unwrap().unwrap(), b"second, longer");
}

#[test]
fn a_folder_of_somebody_else_and_symbolic_links_are_left_alone() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("letters"), b"mine").unwrap();
    match LockedFolder::open(root.path(), "record") {
        Err(FolderError::Unusable { why, .. }) => assert!(why.contains("`letters`"), "{why}"),
        other => panic!("{other:?}"),
    }
    let state = root.path().join("state");
    let folder = LockedFolder::open(&state, "record").unwrap();
    std::os::unix::fs::symlink(root.path().join("letters"), state.join("record")).unwrap();
    assert!(folder.read("record", 100).is_err());
    folder.replace("record", b"own").unwrap();
    assert_eq!(std::fs::read(root.path().join("letters")).unwrap(), b"mine");
}

#[test]
fn a_shared_mapping_reaches_the_file_and_a_private_one_does_not() {
    let file = file::anonymous(c"test", false).unwrap();
    file.set_len(3 * 4096).unwrap();
    let mut shared = Mapping::shared(&file, 8192).unwrap();
    let mut private = PrivateCopy::new(Some((&file, 0)), 8192).unwrap();
    private.as_mut_slice()[0] = 1;
    shared.as_mut_slice()[4096] = 2;
    let mut found = [0; 2];
    file.read_exact_at(&mut found[..1], 0).unwrap();
    file.read_exact_at(&mut found[1..], 4096).unwrap();
    assert_eq!((found, shared.as_slice()[0], private.as_slice()[0]), ([0, 2], 0, 1));
    assert!(file::is_hole(&file, 8192).unwrap() && !file::is_hole(&file, 4096).unwrap());
    file::punch_hole(&file, 4096, 4096).unwrap();
    assert_eq!(shared.as_slice()[4096], 0);
}

/// Whatever the kernel makes of it, the bytes stay what they are, there and in the file.
#[test]
fn huge_pages_change_no_byte_of_a_mapped_file() {
    const MIB: u64 = 1 << 20;
    let file = file::anonymous(c"test", false).unwrap();
    file.set_len(9 * MIB).unwrap();
    let mut mapping = Mapping::shared(&file, 32 * MIB).unwrap();
    assert!(mapping.start().addr().is_multiple_of(2 * MIB as usize));
    for at in (0..9 * MIB).step_by(4096 * 3) {
        mapping.as_mut_slice()[at as usize] = (at / 4096) as u8 | 1;
    }
    let model = mapping.as_slice()[..9 * MIB as usize].to_vec();
    for range in [3 * MIB..7 * MIB, 0..9 * MIB, 8 * MIB..64 * MIB, MIB..MIB] {
        mapping.use_huge_pages(range);
    }
    assert!(mapping.as_slice()[..model.len()] == model);
    mapping.as_mut_slice()[5 * MIB as usize] = 77;
    let mut found = vec![0; model.len()];
    file.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found[5 * MIB as usize], 77);
    found[5 * MIB as usize] = model[5 * MIB as usize];
    assert!(found == model);
}

/// Holes of 2 MiB are plain memory, the rest is the file's; which is which shows only in what later stores to the file do.
#[test]
fn a_private_copy_has_what_the_file_has_wherever_it_is() {
    let path = std::env::temp_dir().join(format!("nvlab-private-copy-{}", std::process::id()));
    let on_disk = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for file in [file::anonymous(c"test", false).unwrap(), on_disk] {
        copies_what_the_file_has(&file);
    }
}

fn copies_what_the_file_has(file: &File) {
    const MIB: u64 = 1 << 20;
    file.set_len(32 * MIB).unwrap();
    let (offset, mut bytes) = (MIB, 9 * MIB);
    for at in [MIB, 5 * MIB + 4096, 15 * MIB, 31 * MIB] {
        file.write_all_at(&[at as u8 | 7; 8192], at).unwrap();
    }
    let mut copy = PrivateCopy::new(Some((file, offset)), bytes).unwrap();
    let mut model = vec![0; bytes as usize];
    file.read_exact_at(&mut model, offset).unwrap();
    let mut stored = 3;
    let mut check = |copy: &mut PrivateCopy, model: &mut Vec<u8>| {
        assert!(copy.as_slice() == model);
        for at in (0..model.len()).step_by(1_234_567) {
            (model[at], stored) = (stored, stored + 1);
            copy.as_mut_slice()[at] = model[at];
        }
        assert!(copy.as_slice() == model);
    };
    check(&mut copy, &mut model);
    // Data at an even multiple of 2 MiB of the copy, and at none.
    for longer in [9 * MIB + 5000, 16 * MIB, 24 * MIB] {
        copy.grow(Some((file, offset)), longer).unwrap();
        model.resize(longer as usize, 0);
        file.read_exact_at(&mut model[bytes as usize..], offset + bytes).unwrap();
        bytes = longer;
        check(&mut copy, &mut model);
    }
    let place = PrivateCopy::new(None, bytes).unwrap();
    let address = place.start();
    std::mem::forget(place);
    // SAFETY: nobody uses that memory any more, and no pointer into the copy is kept.
    unsafe { copy.move_to(address).unwrap() };
    assert_eq!(copy.start(), address);
    check(&mut copy, &mut model);
    let mut found = vec![0; bytes as usize];
    file.read_exact_at(&mut found, offset).unwrap();
    assert!(found.iter().filter(|byte| **byte != 0).count() == 3 * 8192, "no store reaches the file");
    // The file's own bytes show where the copy has not been stored to.
    file.write_all_at(&[99], offset + 4 * MIB + 4096 + 100).unwrap();
    assert_eq!(copy.as_slice()[(4 * MIB + 4096 + 100) as usize], 99);

    let mut zeros = PrivateCopy::new(None, 8192).unwrap();
    zeros.as_mut_slice()[8191] = 5;
    zeros.grow(None, 3 * MIB).unwrap();
    assert_eq!((zeros.as_slice()[8191], zeros.as_slice()[3 * MIB as usize - 1]), (5, 0));
}

/// An instruction that did not exist would end the test with SIGILL, one at a wrong address with SIGSEGV: the bytes end
/// where the mapping ends.
#[test]
fn every_flush_of_this_processor_reaches_every_line_and_changes_nothing() {
    let mut mapping = Mapping::anonymous(4096).unwrap();
    mapping.as_mut_slice().iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
    let model = mapping.as_slice().to_vec();
    for flush in Flush::ALL.into_iter().filter(|flush| flush.is_supported()) {
        for (start, bytes) in [(0, 0), (0, 4096), (63, 2), (4095, 1), (100, 300)] {
            flush.lines(&mapping.as_slice()[start..start + bytes]);
            flush.fence();
        }
        assert_eq!(mapping.as_slice(), model, "{flush:?}");
    }
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags: Vec<&str> =
        flags.lines().find(|line| line.starts_with("flags")).unwrap_or("").split(' ').collect();
    let names = [(Flush::Clwb, "clwb"), (Flush::ClflushOpt, "clflushopt"), (Flush::Clflush, "clflush")];
    for (flush, name) in names {
        assert_eq!(flush.is_supported(), flags.contains(&name), "{name}");
    }
    assert_eq!(Flush::detect(), Flush::ALL.into_iter().find(|flush| flush.is_supported()));
}

fn faulty(faults: &[(u64, Failure)]) -> FaultyFile {
    let faults: Vec<Fault> =
        faults.iter().map(|&(operation, failure)| Fault { operation, failure }).collect();
    FaultyFile::new(file::anonymous(c"faulty", false).unwrap(), &faults)
}

fn content(file: &impl FileExt, bytes: usize) -> Vec<u8> {
    let mut found = vec![0; bytes];
    file.read_exact_at(&mut found, 0).unwrap();
    found
}

#[test]
fn the_planned_operation_fails_and_no_other() {
    let file = faulty(&[(2, Failure::Enospc), (3, Failure::Short), (5, Failure::Eio), (7, Failure::Eio)]);
    assert_eq!(file.write_at(b"abcd", 0).unwrap(), 4);
    assert_eq!(file.write_at(b"efgh", 4).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.write_at(b"efgh", 4).unwrap(), 2, "half of it");
    // What repeats a short write completes it.
    file.write_all_at(b"gh", 6).unwrap();
    assert!(file.sync_data().is_err());
    assert_eq!(content(&file, 8), b"abcdefgh");
    assert!(file.set_len(2).is_err());
    assert_eq!((file.operations(), content(&file, 8)), (7, b"abcdefgh".to_vec()));
}

#[test]
fn a_power_failure_undoes_what_was_not_synced() {
    for lost in [false, true] {
        let file = faulty(if lost { &[(4, Failure::LostSync)] } else { &[] });
        file.write_all_at(b"durable", 0).unwrap();
        file.sync_data().unwrap();
        file.write_all_at(b"DUR and longer", 0).unwrap();
        file.sync_data().unwrap();
        file.set_len(3).unwrap();
        file.write_all_at(b"x", 9).unwrap();
        assert_eq!(content(&file, 10), b"DUR\0\0\0\0\0\0x");
        let found = file.power_failure().unwrap();
        let expected: &[u8] = if lost { b"durable" } else { b"DUR and longer" };
        assert_eq!(found.metadata().unwrap().len(), expected.len() as u64);
        assert_eq!(content(&found, expected.len()), expected);
    }
    // A sync that fails makes nothing durable either.
    let file = faulty(&[(2, Failure::Eio)]);
    file.write_all_at(b"gone", 0).unwrap();
    assert!(file.sync_data().is_err());
    assert_eq!(file.power_failure().unwrap().metadata().unwrap().len(), 0);
}

fn watch(memory: &Mapping) -> WriteWatch {
    // SAFETY: the memory is anonymous, and the tests below keep it longer than the watch.
    unsafe { WriteWatch::new(memory.start(), memory.len()).unwrap() }
}

/// Stores to a byte as a program does that has a pointer.
fn store(memory: &Mapping, at: usize, byte: u8) {
    assert!(at < memory.len());
    // SAFETY: the byte is in the mapping, and no reference to it is alive.
    unsafe { memory.start().add(at).write_volatile(byte) };
}

#[test]
fn the_first_store_to_a_page_keeps_it_as_it_was() {
    let (one, two) = (Mapping::anonymous(5 * 4096).unwrap(), Mapping::anonymous(4096).unwrap());
    store(&one, 4096, 7);
    let (mut first, second) = (watch(&one), watch(&two));
    for (at, byte) in [(3 * 4096 + 5, 1), (4096, 8), (4097, 9), (4096, 10)] {
        store(&one, at, byte);
    }
    let seen: Vec<(usize, u8)> = first.touched().iter().map(|(page, old)| (*page, old[0])).collect();
    assert_eq!((seen, second.count()), (vec![(1, 7), (3, 0)], 0));
    first.clear().unwrap();
    assert_eq!(first.count(), 0);
    store(&one, 4096, 11);
    assert_eq!(
        first.touched().iter().map(|(page, old)| (*page, old[0], old[1])).collect::<Vec<_>>(),
        [(1, 10, 9)]
    );
    drop(first);
    store(&one, 0, 1);
    store(&two, 0, 1);
    assert_eq!((second.count(), one.as_slice()[4096]), (1, 11));
}

/// As a process that is being spawned holds it, until it executes its program; and as another opener does.
#[test]
fn a_lock_that_is_let_go_soon_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locked");
    let (held, other) = (File::create(&path).unwrap(), File::open(&path).unwrap());
    assert!(file::try_lock(&held).unwrap());
    assert!(!file::try_lock(&other).unwrap(), "somebody holds it");
    let copy = held.try_clone().unwrap();
    drop(held);
    let spawned = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        drop(copy);
    });
    assert!(file::try_lock(&other).unwrap(), "nobody holds it any longer");
    spawned.join().unwrap();
}
