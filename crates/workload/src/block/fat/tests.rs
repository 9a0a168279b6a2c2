//! Tests of the clients: the requests against the volume they leave.

use super::iozone::{IozoneConfig, Mode};
use super::logger::LoggerConfig;
use super::*;
use crate::{Op, Target, Time, WorkloadSpec};
use std::collections::BTreeSet;
use std::io::{Cursor, Read};

const VOLUME: u64 = 8 << 20;

fn opened(text: &str) -> FatClient {
    IozoneConfig::parse(text).unwrap().open(text, VOLUME, 1).unwrap()
}

/// Replays requests onto an image.
fn replay(iozone: &mut FatClient, image: &mut [u8], prepare: bool) -> Vec<Request> {
    let mut all = Vec::new();
    let mut batch = Batch::new();
    loop {
        batch.clear();
        let count = if prepare { iozone.prepare(&mut batch) } else { iozone.fill(&mut batch) };
        if count == 0 {
            return all;
        }
        for request in batch.requests() {
            assert!(request.end() <= VOLUME);
            if request.op == Op::Write {
                image[request.offset as usize..request.end() as usize]
                    .copy_from_slice(iozone.payload(request));
            }
            all.push(*request);
        }
    }
}

fn bytes(requests: &[Request], op: Op) -> u64 {
    requests.iter().filter(|request| request.op == op).map(|request| request.bytes as u64).sum()
}

/// The requests alone make a volume that the file system reads, with the file as long as it should be.
#[test]
fn the_requests_make_the_volume() {
    for (fat, cluster) in [("12", "4KiB"), ("16", "1KiB")] {
        let mode = format!("iozone file=1MiB record=2KiB fill=40% fat={fat} cluster={cluster}");
        let mut iozone = opened(&mode);
        let mut image = vec![0; VOLUME as usize];
        replay(&mut iozone, &mut image, true);
        let measured = replay(&mut iozone, &mut image, false);
        assert!(bytes(&measured, Op::Write) > 1 << 20, "{mode}");
        let volume = fatfs::FileSystem::new(Cursor::new(image), fatfs::FsOptions::new()).unwrap();
        let mut file = volume.root_dir().open_file("iozone/iozone.tmp").unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        assert!(content.len() == 1 << 20 && content.iter().all(|&byte| byte == 0));
        let stats = volume.stats().unwrap();
        let used = 1.0 - stats.free_clusters() as f64 / stats.total_clusters() as f64;
        assert!((used - 0.4).abs() < 0.01, "{used}");
    }
}

/// File data are read and written once; the rest is metadata, and there is little of it if it is written only when the
/// file is closed.
#[test]
fn modes_request_what_they_name() {
    let file = 1 << 20;
    let data = |requests: &[Request], op| -> u64 {
        requests
            .iter()
            .filter(|r| r.op == op && r.payload == 0 && r.bytes >= 2048)
            .map(|r| r.bytes as u64)
            .sum()
    };
    for (name, mode) in Mode::ALL {
        for sync in ["record", "8", "close"] {
            let mut iozone =
                opened(&format!("iozone mode={name} file=1MiB record=2KiB sync={sync} cache=64KiB"));
            let mut image = vec![0; VOLUME as usize];
            replay(&mut iozone, &mut image, true);
            let asked = iozone.len_hint().unwrap();
            let measured = replay(&mut iozone, &mut image, false);
            let flushes = measured.iter().filter(|request| request.op == Op::Flush).count();
            assert_eq!(asked as usize, measured.len() - flushes);
            let op = if mode.is_read() { Op::Read } else { Op::Write };
            assert_eq!(data(&measured, op), file, "{name}");
            let metadata = bytes(&measured, Op::Write) - data(&measured, Op::Write);
            match (mode, sync) {
                // A FAT entry per two records, in both copies, and the size in the directory after each.
                (Mode::Write, "record") => assert!(metadata >= 512 * (512 + 256 * 2), "{metadata}"),
                // Sizes after every eighth, and then up to four entries of the FAT together, which lie in one sector or two.
                (Mode::Write, "8") => {
                    assert!((3 * 64..=5 * 64 + 8).contains(&(metadata / 512)), "{metadata}")
                }
                (Mode::Write, _) => assert!(metadata < 64 << 10, "{metadata}"),
                // Occasionally a new date.
                (Mode::Rewrite | Mode::RandomWrite, _) => assert!(metadata < 64 << 10, "{metadata}"),
                _ => assert_eq!(metadata, 0),
            }
            let places: BTreeSet<u64> =
                measured.iter().filter(|r| r.op == op && r.bytes == 2048).map(|r| r.offset).collect();
            assert_eq!(places.len(), 512);
            let ordered: Vec<u64> =
                measured.iter().filter(|r| r.op == op && r.bytes == 2048).map(|r| r.offset).collect();
            assert_eq!(ordered.is_sorted(), !mode.is_random(), "{name}");
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_requests() {
    let text = "iozone mode=random-write file=512KiB record=4KiB";
    let list = |seed: u64| {
        let mut iozone = IozoneConfig::parse(text).unwrap().open(text, VOLUME, seed).unwrap();
        replay(&mut iozone, &mut vec![0; VOLUME as usize], false)
    };
    assert_eq!(list(3), list(3));
    assert_ne!(list(3), list(4));
}

#[test]
fn wrong_texts_of_fat_clients_say_what_is_allowed() {
    let said = |text: &str| {
        WorkloadSpec::parse(text)
            .and_then(|spec| spec.open(Target::blocks(VOLUME, 512), 1))
            .unwrap_err()
            .to_string()
    };
    assert!(
        said("iozone mode=writ")
            .ends_with("mode=writ is wrong: write, rewrite, read, reread, random-read, random-write")
    );
    assert!(said("iozone record=700B").contains("a multiple of 512 B"));
    assert!(said("iozone record=4KiB file=6KiB").contains("whole records"));
    assert!(said("iozone fat=8").contains("12, 16 or 32"));
    assert!(said("iozone sync=never").contains("a whole number of records from 1, or close"));
    assert!(said("iozone cluster=3KiB").contains("a power of two"));
    assert!(said("iozone file=16MiB").contains("a file of 16 MiB does not fit in a volume of 8 MiB"));
    assert!(said("iozone file=1MiB fat=32 cluster=32KiB").contains("is Fat12, not Fat32"));
    assert!(said("iozone span=1GiB").contains("extends past the end of the device"));
}

/// The image of a volume of 32 GiB once was an array of that size, which did not fit into memory.
#[test]
fn a_volume_may_be_larger_than_memory() {
    let open = |text: &str, bytes| WorkloadSpec::parse(text).unwrap().open(Target::blocks(bytes, 512), 1);
    let text = "iozone mode=write record=4KiB file=64KiB cluster=32KiB";
    assert!(open(text, 1 << 35).is_ok());
    let why = open(text, 3 << 40).unwrap_err().to_string();
    assert!(why.contains("a FAT volume has fewer than 2^32 sectors of 512 B: span=2TB, or less"), "{why}");
}

/// What a record costs: its sector, the sector of the directory entry, both FATs when a cluster is full; and the files that
/// are left are the last ones.
#[test]
fn a_logger_forces_every_record() {
    let text = "logger record=200B rate=2/s file=64KiB files=3 cluster=4KiB until=1000records";
    let mut logger = LoggerConfig::parse(text).unwrap().open(text, VOLUME).unwrap();
    assert_eq!((logger.pacing(), logger.client_bytes()), (Pacing::Open, Some(200_000)));
    let mut image = vec![0; VOLUME as usize];
    let before = replay(&mut logger, &mut image, true);
    assert!(bytes(&before, Op::Write) > 2 * 65_400);
    let measured = replay(&mut logger, &mut image, false);
    let at = |record: u64| Time::from_ps(record * 500_000_000_000);
    let flushes: Vec<&Request> = measured.iter().filter(|request| request.op == Op::Flush).collect();
    assert_eq!(flushes.len(), 1000);
    assert!((0..1000).all(|record| flushes[record as usize].at == at(record)));
    for record in 0..1000 {
        let writes = measured.iter().filter(|request| request.op == Op::Write && request.at == at(record));
        let sectors = writes.map(|request| request.bytes as usize / 512).sum::<usize>();
        // One sector or two for the data; the entry; when a cluster or a file is full, FATs and two entries.
        assert!((2..=9).contains(&sectors), "{sectors} sectors for record {record}");
    }
    let written = bytes(&measured, Op::Write) as f64 / 512.0 / 1000.0;
    // A record lies in 1 + 199/512 sectors on average; every 20.5 records take a new cluster.
    let expected = 1.0 + 199.0 / 512.0 + 1.0 + 2.0 / 20.48;
    assert!((written / expected - 1.0).abs() < 0.02, "{written} sectors a record, expected {expected}");
    let volume = fatfs::FileSystem::new(Cursor::new(image), fatfs::FsOptions::new()).unwrap();
    let directory = volume.root_dir().open_dir("logger").unwrap();
    let files: Vec<(String, u64)> =
        directory.iter().map(|entry| entry.unwrap()).map(|e| (e.file_name(), e.len())).skip(2).collect();
    // 327 records fill a file: two are full at the beginning, three more in the measured part, and 19 records follow.
    let full = 327 * 200;
    let mut names: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    names.sort_unstable();
    assert_eq!(names, [("log00003.txt", full), ("log00004.txt", full), ("log00005.txt", 19 * 200)]);
}

#[test]
fn a_logger_is_told_what_is_allowed() {
    let said = |text: &str| LoggerConfig::parse(text).unwrap_err().to_string();
    assert!(said("logger record=2MiB").contains("from 1 B to 1 MiB"));
    assert!(said("logger until=10s").contains("a number of records up to 2^19"));
    assert!(said("logger rate=0/s").contains("more than 0 per second"));
    assert!(said("logger record=4KiB file=1KiB").contains("at least one record"));
    assert_eq!(LoggerConfig::parse("logger rate=10/s until=1min").unwrap().records, 600);
}
