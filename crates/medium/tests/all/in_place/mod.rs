//! RAM, phase-change memory and disk against a plain model: an array of bytes, and every change of it as a list
//! of atoms (a word, a program step, a sector) with the time each begins and is done, computed one by one.
//!
//! The model says both when every operation ends, to the picosecond, and what a power cut at any moment may
//! leave. Cuts are made at every boundary of every atom, a picosecond before and after, and in the middle.

mod media;
mod model;
mod reopen;

use model::{Op, PS, against_the_model, contents, cut_everywhere, workload};
use nvlab_medium::banks::Access;
use nvlab_medium::disk::{Disk, DiskConfig, Seek, TornSector};
use nvlab_medium::pcm::{LineWear, Pcm, PcmConfig, Selection, Tear};
use nvlab_medium::ram::{Backup, Ram, RamConfig};
use nvlab_medium::{InPlace, MediumError, MemStore, PowerCut};
use nvlab_units::{Rate, Rng, Served, Span, Time};
use std::collections::BTreeSet;

fn sram(banks: u32, seed: u64) -> Ram<MemStore> {
    let config = RamConfig {
        capacity_bytes: 768,
        word_bytes: 8,
        read: Access { first: Span::from_ns(60), next: Span::from_ns(5) },
        write: Access { first: Span::from_ns(60), next: Span::from_ns(7) },
        backup: Backup::Battery { hold: None },
        banks,
        stripe_bytes: 32,
        seed,
    };
    Ram::new(config, MemStore::new(768))
}

/// System 003: x16 part, one word at a time.
fn pram(selection: Selection, tear: Tear, banks: u32, seed: u64) -> PcmConfig {
    PcmConfig {
        capacity_bytes: 512,
        word_bytes: 2,
        read: Access { first: Span::from_ns(80), next: Span::from_ns(10) },
        program: Span::from_us(10),
        words_per_step: 1,
        selection,
        wear: Some(LineWear { line_bytes: 32, endurance: 1_000_000, refuse: true }),
        atomic_bytes: 8,
        tear,
        banks,
        stripe_bytes: 32,
        seed,
    }
}

/// System 004: whole lines, banks side by side, 8 B units.
fn line_pcm(seed: u64) -> PcmConfig {
    PcmConfig {
        capacity_bytes: 1024,
        word_bytes: 64,
        read: Access::even(Span::from_ns(67)),
        program: Span::from_ns(215),
        wear: None,
        stripe_bytes: 64,
        ..pram(Selection::All, Tear::Atomic, 4, seed)
    }
}

fn pcm(config: PcmConfig) -> Pcm<MemStore> {
    let store = MemStore::new(Pcm::<MemStore>::store_bytes(&config));
    Pcm::new(config, store)
}

const DIFFERING: Selection = Selection::Differing { share: 0.16 };

/// A small drive with the spindle of system 001: 7200 a minute, 6 MB/s, seeks of its time.
fn drive(capacity_bytes: u64, torn: TornSector, seed: u64) -> DiskConfig {
    DiskConfig {
        capacity_bytes,
        sector_bytes: 512,
        revolution: Span::from_ps(60_000_000_000_000 / 7200),
        rate: Rate::from_bytes_per_second(6_000_000),
        surfaces: 2,
        seek: Seek {
            track_to_track: Span::from_ms(1),
            average: Span::from_us(8500),
            full_stroke: Span::from_ms(18),
        },
        overhead: Span::from_us(300),
        torn,
        seed,
    }
}

fn disk(seed: u64) -> Disk<MemStore> {
    // 97 sectors a track, 194 a cylinder: two cylinders and a bit.
    let bytes = 400 * 512;
    Disk::new(drive(bytes, TornSector::OldOrNew, seed), MemStore::new(bytes))
}

#[test]
fn ram_against_the_model() {
    against_the_model(|seed| sram(1, seed), 1, 200, 200);
    against_the_model(|seed| sram(4, seed), 4, 200, 400);
}

#[test]
fn ram_cut_everywhere() {
    for banks in [1, 3] {
        let torn = cut_everywhere(|seed| sram(banks, seed), banks as usize, 100, 100);
        assert_eq!(torn, BTreeSet::from([0, 1]), "the word under way is old or new");
    }
}

#[test]
fn pcm_against_the_model() {
    for selection in [Selection::All, DIFFERING] {
        for tear in [Tear::Atomic, Tear::Garbage] {
            against_the_model(|seed| pcm(pram(selection, tear, 1, seed)), 1, 200_000, 60);
            against_the_model(|seed| pcm(pram(selection, tear, 4, seed)), 4, 200_000, 200);
        }
    }
    against_the_model(|seed| pcm(line_pcm(seed)), 4, 300, 500);
    let wide = |seed| PcmConfig { words_per_step: 8, ..pram(DIFFERING, Tear::Garbage, 4, seed) };
    against_the_model(|seed| pcm(wide(seed)), 4, 20_000, 90);
}

#[test]
fn pcm_cut_everywhere() {
    for selection in [Selection::All, DIFFERING] {
        // Two banks, and writes long enough to come back to the first.
        for (banks, most) in [(1, 40), (2, 100)] {
            let torn = cut_everywhere(
                |seed| pcm(pram(selection, Tear::Atomic, banks, seed)),
                banks as usize,
                100_000,
                most,
            );
            assert_eq!(torn, BTreeSet::from([0, 1]), "the unit under way is old or new");
            cut_everywhere(
                |seed| pcm(pram(selection, Tear::Garbage, banks, seed)),
                banks as usize,
                100_000,
                most,
            );
        }
    }
}

#[test]
fn a_line_tears_between_its_units() {
    let torn = cut_everywhere(|seed| pcm(line_pcm(seed)), 4, 200, 400);
    assert_eq!(torn, (0..=8).collect(), "any number of the eight 8 B units");
}

#[test]
fn disk_against_the_model() {
    against_the_model(disk, 2, 40_000_000, 9_000);
}

#[test]
fn disk_cut_everywhere() {
    let torn = cut_everywhere(disk, 2, 20_000_000, 4_000);
    assert_eq!(torn, BTreeSet::from([0, 1]), "the sector under way is old or new");
}

/// A write is not done a picosecond before its end (the last word may still be old) and done at its end.
#[test]
fn done_at_the_end_and_not_before() {
    fn olds<M: InPlace + PowerCut>(make: impl Fn(u64) -> M, before_end: Span) -> usize {
        let is_old = |seed| {
            let mut medium = make(seed);
            let served = medium.write(Time::from_ns(5), 8, 24, &[7; 24]).unwrap();
            medium.cut(served.end.before(before_end));
            contents(&mut medium, served.end)[31] == 0
        };
        (0..40).filter(|&seed| is_old(seed)).count()
    }
    for (before, at) in [
        (olds(|seed| sram(1, seed), PS), olds(|seed| sram(1, seed), Span::ZERO)),
        (olds(|seed| pcm(line_pcm(seed)), PS), olds(|seed| pcm(line_pcm(seed)), Span::ZERO)),
        (olds(disk, PS), olds(disk, Span::ZERO)),
    ] {
        assert!((8..=39).contains(&before), "{before} of 40 seeds leave the end old a picosecond early");
        assert_eq!(at, 0, "done at the end");
    }
}

#[test]
fn volatile_memory_forgets_and_the_backup_holds_as_long_as_it_lasts() {
    let with = |backup, seed| {
        let config = RamConfig { backup, ..sram(1, seed).config().clone() };
        let mut ram = Ram::new(config, MemStore::new(768));
        let served = ram.write(Time::ZERO, 0, 768, &[0x5A; 768]).unwrap();
        (ram, served.end)
    };
    let (mut dram, end) = with(Backup::None, 3);
    assert_eq!(dram.unsettled(), 0, "what will be lost need not be remembered");
    dram.cut(end);
    let garbage = contents(&mut dram, end);
    assert!(garbage.iter().filter(|&&byte| byte == 0x5A || byte == 0).count() < 30, "neither old nor zero");
    let (mut again, _) = with(Backup::None, 3);
    again.cut(end);
    assert!(garbage == contents(&mut again, end), "the same seed leaves the same");

    let hold = Span::from_ms(10);
    for (backup, outage, kept) in [
        (Backup::Battery { hold: None }, Span::from_ms(1_000_000), true),
        (Backup::Battery { hold: Some(hold) }, hold, true),
        (Backup::Battery { hold: Some(hold) }, hold + PS, false),
        (Backup::Capacitor { hold }, hold, true),
        (Backup::Capacitor { hold }, hold + PS, false),
    ] {
        let (mut ram, end) = with(backup, 1);
        ram.cut_for(end, outage);
        assert_eq!(contents(&mut ram, end) == [0x5A; 768], kept, "{backup:?} over {outage}");
        assert_eq!(ram.stats().losses, !kept as u64);
    }
}

/// System 003, derived in section 3.3: 512 B rewritten whole take 2.56 ms, 16 % of them 0.41 ms.
#[test]
fn selective_programming_saves_what_the_paper_says() {
    let config = |selection| PcmConfig { capacity_bytes: 1 << 20, ..pram(selection, Tear::Atomic, 1, 0) };
    let mut whole = Pcm::new(config(Selection::All), ());
    let served = whole.write(Time::ZERO, 0, 512, &[]).unwrap();
    assert_eq!(served.end - served.start, Span::from_us(2560));

    let mut some = Pcm::new(config(DIFFERING), ());
    let mut at = Time::ZERO;
    for i in 0..1000 {
        at = some.write(at, i % 2000 * 512, 512, &[]).unwrap().end;
    }
    // 80 ns and 255 times 10 ns to compare, and 0.16 of 256 steps.
    let compare = Span::from_ns(80 + 2550);
    assert_eq!(at, Time::ZERO + (compare + Span::from_ns(409_600)) * 1000);
    assert_eq!((some.stats().steps, some.stats().steps_spared), (40_960, 215_040));
    assert_eq!(some.unsettled(), 0, "without payload nothing is remembered");

    let mut compared = pcm(pram(DIFFERING, Tear::Atomic, 1, 0));
    let same = compared.write(Time::ZERO, 0, 512, &[0; 512]).unwrap();
    assert_eq!(same.end, Time::ZERO + compare, "nothing differs: only the reading");
    assert!(compared.wear().iter().all(|&writes| writes == 0));
    let mut one = vec![0; 512];
    one[100] = 1;
    let served = compared.write(same.end, 0, 512, &one).unwrap();
    assert_eq!(served.end - served.start, compare + Span::from_us(10));
    assert_eq!(compared.wear().iter().sum::<u32>(), 1);
    assert_eq!(compared.wear()[3], 1);
}

#[test]
fn a_worn_line_is_refused_and_the_refusal_changes_nothing() {
    let wear = Some(LineWear { line_bytes: 32, endurance: 3, refuse: true });
    let mut memory = pcm(PcmConfig { wear, ..pram(DIFFERING, Tear::Atomic, 1, 0) });
    let mut at = Time::ZERO;
    for round in 1..=3 {
        at = memory.write(at, 32, 2, &[round; 2]).unwrap().end;
    }
    let (stats, worn) = (*memory.stats(), memory.wear().to_vec());
    let refused = memory.write(at, 0, 64, &[9; 64]);
    assert_eq!(refused, Err(MediumError::WornOut { line: 1, writes: 3 }));
    assert_eq!((memory.stats(), memory.wear()), (&stats, &worn[..]));
    // A write that changes nothing in the worn line programs nothing there.
    let mut data = vec![9; 64];
    data[32..].copy_from_slice(&contents(&mut memory.clone(), at)[32..64]);
    memory.write(at, 0, 64, &data).unwrap();
    assert_eq!(memory.wear()[..3], [1, 3, 0]);

    let count = Some(LineWear { line_bytes: 32, endurance: 3, refuse: false });
    let mut memory = pcm(PcmConfig { wear: count, ..pram(Selection::All, Tear::Atomic, 1, 0) });
    for _ in 0..5 {
        memory.write(Time::ZERO, 0, 2, &[1; 2]).unwrap();
    }
    assert_eq!(memory.wear()[0], 5);
}

#[test]
fn outside_is_an_error_and_a_wrong_slice_a_panic() {
    fn check<M: InPlace>(mut medium: M) {
        let end = medium.capacity();
        let mut two = [0; 2];
        assert_eq!(medium.read(Time::ZERO, end - 1, 2, &mut two), Err(MediumError::OutOfRange(end, end)));
        assert_eq!(medium.write(Time::ZERO, end, 2, &two), Err(MediumError::OutOfRange(end, end)));
        let max = u64::MAX;
        assert_eq!(medium.write(Time::ZERO, max, 2, &two), Err(MediumError::OutOfRange(max, end)));
        let nothing = medium.write(Time::from_ns(9), end, 0, &[]).unwrap();
        assert_eq!((nothing.start, nothing.end), (Time::from_ns(9), Time::from_ns(9)));
        let wrong = std::panic::AssertUnwindSafe(|| medium.write(Time::ZERO, 0, 3, &two));
        assert!(std::panic::catch_unwind(wrong).is_err(), "two bytes for three");
    }
    check(sram(4, 0));
    check(pcm(line_pcm(0)));
    check(disk(0));
}

#[test]
fn shapes_that_cannot_be_are_named() {
    let ram = sram(2, 0).config().clone();
    assert!(RamConfig { word_bytes: 3, ..ram.clone() }.check().unwrap_err().contains("word bytes"));
    assert!(RamConfig { stripe_bytes: 12, ..ram.clone() }.check().unwrap_err().contains("stripe of 12 B"));
    assert!(RamConfig { banks: 0, ..ram }.check().is_err());
    let memory = line_pcm(0);
    assert!(PcmConfig { stripe_bytes: 32, ..memory.clone() }.check().unwrap_err().contains("step"));
    assert!(PcmConfig { atomic_bytes: 12, ..memory.clone() }.check().unwrap_err().contains("atomic"));
    let wear = Some(LineWear { line_bytes: 32, endurance: 1, refuse: true });
    assert!(PcmConfig { wear, ..memory }.check().unwrap_err().contains("smaller than a program step"));
    let drive = drive(1 << 20, TornSector::OldOrNew, 0);
    let seek = Seek { average: Span::from_ms(2), ..drive.seek };
    assert!(DiskConfig { seek, ..drive.clone() }.check().unwrap_err().contains("between 1/3 and 11/15"));
    assert!(DiskConfig { capacity_bytes: 1000, ..drive }.check().is_err());
}

/// The drive of system 001, 4 GB. Slide 32: 120 transactions a second, 6 MB/s.
#[test]
fn the_disk_keeps_the_rates_of_its_datasheet() {
    let config = drive(4_000_000_000 / 512 * 512, TornSector::OldOrNew, 0);
    let new = || Disk::new(config.clone(), ());
    let (seek, cylinders) = (config.seek, config.cylinders());
    assert_eq!(new().seek_time(1), seek.track_to_track);
    assert_eq!(new().seek_time(cylinders - 1), seek.full_stroke);
    let mut rng = Rng::new(1);
    let mut draw = || new().seek_time(rng.below(cylinders).abs_diff(rng.below(cylinders))).seconds();
    let mean = (0..50_000).map(|_| draw()).sum::<f64>() / 50_000.0;
    assert!((mean / seek.average.seconds() - 1.0).abs() < 0.01, "{mean}");

    // A log forced record by record: each append waits for its sector to come round again.
    let (mut log, mut at) = (new(), Time::ZERO);
    for i in 0..1200 {
        at = log.write(at + Span::from_us(500), i * 512, 512, &[]).unwrap().end;
    }
    let per_second = 1200.0 / at.seconds();
    assert!((118.0..=120.5).contains(&per_second), "{per_second} appends a second");

    // Streaming: requests that arrive in time follow each other exactly, across tracks and cylinders.
    let (mut stream, mut last) = (new(), Time::ZERO);
    for i in 0..400 {
        let served = stream.read(last.before(config.overhead), i * 65_536, 65_536, &mut []).unwrap();
        assert!(i == 0 || served.start == last, "request {i}");
        last = served.end;
    }
    let rate = 400.0 * 65_536.0 / last.seconds();
    assert!((5.9e6..=6.0e6).contains(&rate), "{rate} B/s");
    // One picosecond too late and the disk has to turn once.
    let next = stream.clone().read(last.before(config.overhead), 400 * 65_536, 512, &mut []).unwrap();
    let late = stream.read(last.before(config.overhead) + PS, 400 * 65_536, 512, &mut []).unwrap();
    assert_eq!(late.end - next.end, config.revolution);

    // Random reads: a mean seek, half a turn, a sector.
    let (mut random, mut at) = (new(), Time::ZERO);
    for _ in 0..20_000 {
        let sector = rng.below(config.capacity_bytes / 512);
        at = random.read(at + Span::from_ns(rng.below(1 << 23)), sector * 512, 512, &mut []).unwrap().end;
    }
    let mean = random.stats().read.busy.seconds() / 20_000.0;
    assert!((mean / (0.0003 + 0.0085 + 0.004_166 + 0.000_085) - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn an_unreadable_sector_stays_so_until_it_is_written_whole() {
    let make = || Disk::new(drive(1 << 20, TornSector::Unreadable, 5), MemStore::new(1 << 20));
    let mut disk = make();
    let served = disk.write(Time::ZERO, 0, 2048, &[1; 2048]).unwrap();
    disk.cut(served.end.before(PS));
    assert_eq!(disk.unreadable().collect::<Vec<_>>(), [3]);
    let mut sector = [0; 512];
    let at = served.end;
    let refused = disk.read(at, 3 * 512 + 8, 8, &mut [0; 8]);
    assert!(matches!(refused, Err(MediumError::Uncorrectable(unit)) if unit.0 == 3));
    disk.read(at, 2 * 512, 512, &mut sector).unwrap();
    assert_eq!(sector, [1; 512], "its neighbour was done");
    assert!(disk.write(at, 3 * 512, 8, &[2; 8]).is_err(), "a part of it cannot be written");
    let repair = disk.write(at, 3 * 512, 512, &[2; 512]).unwrap();
    disk.read(repair.end, 3 * 512, 512, &mut sector).unwrap();
    // A cut before the repair takes it back; one after it does not.
    let mut before = disk.clone();
    before.cut(repair.start);
    assert_eq!(before.unreadable().count(), 1);
    disk.cut(repair.end);
    assert_eq!(disk.unreadable().count(), 0);
    disk.read(repair.end, 3 * 512, 512, &mut sector).unwrap();
    assert_eq!(sector, [2; 512]);
}

/// Times do not depend on whether bytes are kept.
#[test]
fn payload_does_not_change_the_time_of_media_in_place() {
    fn ends<M: InPlace>(mut medium: M, keeps: bool) -> Vec<Served> {
        let mut rng = Rng::new(8);
        let capacity = medium.capacity() as usize;
        let ops = workload(&mut rng, 300, Time::ZERO, 1000, capacity, capacity / 2);
        let serve = |op: &Op| {
            let (offset, bytes, mut into) = (op.offset as u64, op.bytes as u64, vec![0; op.bytes]);
            match (op.data.is_empty(), keeps) {
                (true, true) => medium.read(op.at, offset, bytes, &mut into),
                (true, false) => medium.read(op.at, offset, bytes, &mut []),
                (false, true) => medium.write(op.at, offset, bytes, &op.data),
                (false, false) => medium.write(op.at, offset, bytes, &[]),
            }
        };
        ops.iter().map(serve).map(Result::unwrap).collect()
    }
    assert!(ends(sram(4, 0), true) == ends(Ram::new(sram(4, 0).config().clone(), ()), false));
    assert!(ends(pcm(line_pcm(0)), true) == ends(Pcm::new(line_pcm(0), ()), false));
    assert!(ends(disk(0), true) == ends(Disk::new(disk(0).config().clone(), ()), false));
}
