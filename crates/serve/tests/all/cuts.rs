//! A recorded run, cut at every operation: the promise is kept; by a device that ignores FLUSH it is not, and what shows it
//! becomes small.

use crate::common::design;
use nvlab_design::Design;
use nvlab_serve::cuts::{Broken, Journal, Kind, Moment, Replayer, SharedJournal, moments, shrink};
use nvlab_serve::{Drive, DriveOptions, TimeMode};
use nvlab_units::{Rng, Span, Time};

/// A volatile write buffer; one with a capacitor; none; a memory; a RAM disk; a map in PRAM, and file-system metadata beside it; block
/// maps, whose merges copy; memory used in place behind Start-Gap, memory that posts writes and keeps or loses them, disks.
const DESIGNS: [(&str, &[&str]); 15] = [
    ("ssd-mlc-2010", &["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"]),
    ("ssd-tlc", &["media.tlc.blocks=20", "ftl.spare=55%", "ftl.buffer.size=8MiB", "array.channels=1"]),
    ("bench-4g", &["media.nand.blocks=48", "ftl.spare=30%"]),
    (
        "cxl-ms-ssd",
        &[
            "media.tlc.blocks=20",
            "ftl.spare=55%",
            "ftl.buffer.size=8MiB",
            "array.channels=1",
            "media.cache.size=128KiB",
            "ftl.cache.ways=2",
            "media.cache.backup=none",
        ],
    ),
    ("envy-128m", &[]),
    ("nvramdisk", &["media.dram.size=16MiB"]),
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
    ("lbftl", &["media.nand.blocks=16", "ftl.capacity=2MiB", "ftl.log.blocks=4"]),
    ("mlc-fast", &["media.mlc.blocks=24", "media.mlc.block=64KiB", "ftl.log.share=20%"]),
    ("mlc-bast", &["media.mlc.blocks=24", "media.mlc.block=64KiB", "ftl.log.share=20%"]),
    ("moneta", &["media.pcm.size=4MiB", "media.pcm.level.interval=2", "media.pcm.level.regions=4"]),
    ("optane-like", &["media.xpoint.size=3MiB"]),
    ("optane-like", &["media.xpoint.size=3MiB", "power.on_cut=lose-buffer"]),
    ("disk-2010", &["media.disk.size=4MiB", "ftl.trim=true"]),
];

const MS: Span = Span::from_ps(1_000_000_000);

/// What a random program does to a device, all of it within a few units, so that versions follow each other, at most `gap`
/// apart: by turns the device is busy and idle.
fn journal(seed: u64, gap: Span) -> Journal {
    let (mut journal, mut rng, mut at) = (Journal::default(), Rng::new(seed), Time::ZERO);
    for number in 0..150u32 {
        let bytes = (1 + rng.below(20)) * if rng.chance(0.7) { 4096 } else { 512 };
        let offset = rng.below(64) * 4096 + rng.below(8) * 512;
        at += Span::from_ps(rng.below(gap.ps()));
        match rng.below(7) {
            0 => journal.push(Kind::Trim, at, offset, bytes as u32, &[]),
            1 => journal.push(Kind::Flush, at, 0, 0, &[]),
            fua => {
                let data: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
                journal.push(Kind::Write, at, offset, bytes as u32, &data);
                if fua == 2 {
                    journal.push(Kind::Flush, at, 0, 0, &[]);
                }
            }
        }
        journal.mark(number.to_string());
    }
    journal
}

/// What a served device records of it.
fn recorded(design: &Design, asked: &Journal) -> Journal {
    let journal = SharedJournal::default();
    let options = DriveOptions { seed: 4, time: TimeMode::Fast, ..DriveOptions::default() };
    let drive = journal.record(Drive::open("recorded", design, &options).unwrap());
    let session = drive.session();
    for number in 1..=asked.len() {
        let entry = asked.entry(number);
        let served = match entry.kind {
            Kind::Write => drive.write(session, entry.offset, asked.data(entry), number % 4 == 0),
            Kind::Trim => drive.trim(session, entry.offset, entry.bytes as u64, false),
            Kind::Flush => drive.flush(session),
        };
        served.unwrap();
        drive.read(session, entry.offset, &mut vec![0; entry.bytes as usize]).unwrap();
        journal.lock().mark(number.to_string());
    }
    drive.close().unwrap();
    journal.take()
}

fn broken(replayer: &Replayer<'_>, journal: &Journal, after: bool) -> Option<(Moment, Broken)> {
    (1..=journal.len()).find_map(|operation| {
        let moment = Moment { operation, after, seed: operation };
        let broken = replayer.broken(journal, &moment).unwrap_or_else(|why| panic!("{moment:?}: {why}"));
        broken.map(|broken| (moment, broken))
    })
}

#[test]
fn a_device_keeps_its_promise_at_every_operation() {
    let check = |(name, sets): (&str, &[&str])| {
        let design = design(name, sets);
        let replayer = Replayer { design: &design, ignore_flush: false };
        // A slow host, and one that does not wait: writes then begin long after they came.
        let journals = [(11, 2000), (3, 30)].map(|(seed, us)| journal(seed, Span::from_ps(us * 1_000_000)));
        for journal in &journals {
            std::thread::scope(|scope| {
                for after in [false, true] {
                    let replayer = &replayer;
                    scope.spawn(move || assert_eq!(broken(replayer, journal, after), None, "{name}"));
                }
            });
        }
    };
    DESIGNS.into_iter().for_each(check);
}

#[test]
fn the_whole_run_is_there_at_its_end() {
    let design = design(DESIGNS[0].0, DESIGNS[0].1);
    let journal = recorded(&design, &journal(4, MS));
    assert!(journal.len() > 100, "{} operations", journal.len());
    let replayer = Replayer { design: &design, ignore_flush: false };
    let mut array = vec![0u8; 1 << 20];
    for entry in (1..=journal.len()).map(|number| journal.entry(number)) {
        let end = entry.offset + entry.bytes as u64;
        let whole = entry.offset.next_multiple_of(4096) as usize..(end / 4096 * 4096) as usize;
        match entry.kind {
            Kind::Write => array[entry.offset as usize..end as usize].copy_from_slice(journal.data(entry)),
            Kind::Trim if !whole.is_empty() => array[whole].fill(0),
            Kind::Trim | Kind::Flush => {}
        }
    }
    let path = std::env::temp_dir().join(format!("nvlab-cuts-{}", std::process::id()));
    let mut recovered = replayer.whole(&journal, 4).unwrap();
    recovered.copy_to(&std::fs::File::create(&path).unwrap()).unwrap();
    let copy = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(copy.len() as u64, recovered.capacity_bytes());
    assert!(copy[..array.len()] == array[..] && copy[array.len()..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_lie_is_found_and_made_small() {
    let design = design(DESIGNS[0].0, DESIGNS[0].1);
    let journal = journal(11, MS);
    let replayer = Replayer { design: &design, ignore_flush: true };
    let (moment, _) = broken(&replayer, &journal, true).expect("a flush was ignored");
    let (small, moment) = shrink::fewer(&replayer, &journal, &moment, || true);
    // A write and the flush that said it was durable.
    assert_eq!((small.len(), moment.operation), (2, 2));
    assert_eq!((small.entry(1).kind, small.entry(2).kind), (Kind::Write, Kind::Flush));
    let found = replayer.broken(&small, &moment).unwrap().unwrap();
    assert_eq!((found.durable, found.found), (1, Some(0)));
    // The same two operations on an honest device.
    let honest = Replayer { ignore_flush: false, ..replayer };
    assert_eq!(honest.broken(&small, &moment), Ok(None));
}

#[test]
fn bisection_finds_an_earlier_moment() {
    let fails = |moment: &Moment| Ok::<bool, ()>(moment.operation >= 37);
    let late = Moment { operation: 1000, after: false, seed: 1 };
    assert_eq!(shrink::earlier(late, 0, fails), Ok(Moment { operation: 37, ..late }));
    assert_eq!(shrink::earlier(late, 999, fails), Ok(late));
}

#[test]
fn moments_are_everywhere_and_at_every_flush() {
    let journal = journal(11, MS);
    let all = moments(&journal, 20, 500, 1);
    assert_eq!(all, moments(&journal, 20, 500, 1));
    assert!(all.is_sorted() && all.iter().all(|moment| (20..=journal.len()).contains(&moment.operation)));
    for number in (20..=journal.len()).filter(|&number| journal.entry(number).kind == Kind::Flush) {
        let at = |after| all.iter().any(|moment| moment.operation == number && moment.after == after);
        assert!(at(false) && at(true), "flush {number}");
    }
    let few = moments(&journal, 1, 3, 1);
    assert!(few.len() <= 6 && few.iter().any(|moment| moment.operation > 1));
    assert_eq!(moments(&journal, journal.len() + 1, 3, 1), []);
}
