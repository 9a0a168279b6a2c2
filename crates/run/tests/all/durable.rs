//! Logs of recoverable memory on simulated media: what an operation costs, to the picosecond, and what a power failure at any
//! moment leaves: everything acknowledged and nothing else, compared with a plain model.

use nvlab_design::{Design, Ftl, LogDevice};
use nvlab_medium::disk::{DiskConfig, Seek, TornSector};
use nvlab_run::durable::clock::{Activity, Clock};
use nvlab_run::durable::data::{Data, SEGMENT};
use nvlab_run::durable::disk::DiskStore;
use nvlab_run::durable::flash::NorFlash;
use nvlab_run::durable::host::{Device, Host};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::hybrid::HybridLog;
use nvlab_rvm::{Flash, Options, Region, Rvm, Store, Truncation};
use nvlab_units::{Rate, Rng, Span, Time};
use nvlab_workload::{AnyDurableWorkload, Changes, Serves, Target, Work, WorkloadSpec};

fn small_flash(clock: &Clock, gang: u32) -> NorFlash {
    let size = format!("ftl.log.size={} KiB", 8 * gang);
    let sets = [format!("array.gang={gang}"), "media.flash.block=2 KiB".into(), size];
    let design = Design::load("rvm-flash", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let Ftl::Rvm(rvm) = &design.ftl else { panic!("of another kind") };
    let LogDevice::Flash { program, .. } = rvm.device else { panic!("on {:?}", rvm.device) };
    NorFlash::new(rvm.nor_config(&design, program, 1), false, clock.clone())
}

fn small_disk(clock: &Clock) -> DiskStore {
    let config = DiskConfig {
        capacity_bytes: 1 << 24,
        sector_bytes: 512,
        revolution: Span::from_us(8000),
        rate: Rate::from_bytes_per_second(6_000_000),
        surfaces: 4,
        seek: Seek {
            track_to_track: Span::from_ms(1),
            average: Span::from_ms(8),
            full_stroke: Span::from_ms(16),
        },
        overhead: Span::from_us(500),
        torn: TornSector::OldOrNew,
        seed: 1,
    };
    DiskStore::new(config, 128 << 10, Activity::Write, clock.clone())
}

fn workload(seed: u64) -> AnyDurableWorkload {
    let spec = WorkloadSpec::parse("debit-credit accounts=300 cpu=100us").unwrap();
    // The history is as long as that of a large database.
    let target = Target { capacity_bytes: 1 << 30, unit_bytes: 512, serves: Serves::Commits };
    match spec.open(target, seed).unwrap().streams.remove(0).work {
        Work::Commits(workload) => workload,
        other => panic!("{other:?}"),
    }
}

/// A step programs a row of the gang: 748 B at an offset of 4 touch 94 rows of 8 B and 12 of 64 B.
#[test]
fn an_append_takes_a_step_for_each_row_it_touches() {
    for (gang, offset, bytes, steps) in
        [(8, 0, 748, 94), (8, 4, 748, 94), (8, 7, 2, 2), (64, 4, 748, 12), (64, 63, 2, 2)]
    {
        let clock = Clock::default();
        let mut flash = small_flash(&clock, gang);
        flash.program(offset, &vec![0; bytes]).unwrap();
        assert_eq!(
            clock.now(),
            Time::ZERO + Span::from_us(6) * steps,
            "{bytes} B at {offset} over {gang} chips"
        );
        let before = clock.now();
        assert_eq!(flash.erase(1).unwrap(), nvlab_rvm::flash::Erased::Clean);
        assert_eq!(clock.now().since(before), Span::from_ms(600));
    }
}

/// Whoever writes the same sector again and syncs waits for exactly one turn; what is only written waits for nothing.
#[test]
fn a_disk_commits_once_a_turn() {
    let clock = Clock::default();
    let disk = small_disk(&clock);
    let mut ends = Vec::new();
    for byte in 0..4 {
        let before = clock.now();
        disk.write(&[byte; 100], 1000).unwrap();
        assert_eq!(clock.now(), before);
        disk.sync().unwrap();
        ends.push(clock.now());
    }
    assert!(ends.windows(2).all(|pair| pair[1].since(pair[0]) == Span::from_us(8000)), "{ends:?}");
    let mut read = [0; 100];
    disk.read(&mut read, 1000).unwrap();
    assert_eq!(read, [3; 100]);
}

/// The design of the paper: a transaction of 748 B over 8 chips.
#[test]
fn a_host_runs_its_transactions_on_the_clock() {
    let design = Design::load("rvm-flash", &[]).unwrap();
    let Ftl::Rvm(rvm) = &design.ftl else { panic!("of another kind") };
    let mut host = Host::new(&design, rvm, 1).unwrap();
    let (mut workload, mut changes) = (workload(1), Changes::default());
    // The first also logs the name of the segment.
    workload.next(&mut changes).unwrap();
    host.run(&changes).unwrap();
    for _ in 0..20 {
        workload.next(&mut changes).unwrap();
        let before = host.clock.now();
        let commit = host.run(&changes).unwrap();
        assert_eq!(commit, Span::from_us(6) * 94);
        assert_eq!(host.clock.now().since(before), commit + Span::from_us(100));
    }
    workload.check(host.memory()).unwrap();
    assert!(!host.data_is_current().unwrap());
    host.rvm().truncate().unwrap();
    assert!(host.data_is_current().unwrap());
}

/// What opens a log again after a power failure.
type Open<'a> = &'a dyn Fn(&Data) -> nvlab_rvm::Result<Rvm>;

const OPTIONS: Options = Options {
    headers: nvlab_rvm::record::Headers::Compact,
    diff: false,
    compress: false,
    recovery_target: std::time::Duration::MAX,
    truncation: Truncation::WhenFull,
    find_missed_ranges: false,
    spool_bytes_max: 1 << 20,
};

fn commit(region: &mut Region, changes: &Changes) -> nvlab_rvm::Result<()> {
    let mut transaction = region.begin();
    for (offset, data) in changes.iter() {
        transaction.write(offset as usize, data)?;
    }
    transaction.commit()
}

/// Runs transactions on a new log until the power fails; recovers, the power failing again during that; and compares what is
/// found with a plain model. Returns whether the cut came in time.
fn survives(
    clock: &Clock,
    (first, again): (Span, Span),
    create: Open<'_>,
    reopen: Open<'_>,
    seed: u64,
) -> bool {
    let mut workload = workload(seed);
    let bytes = workload.footprint().end.next_multiple_of(4096);
    let data = Data::free(bytes);
    let mut model = vec![0; bytes as usize];
    let mut next = model.clone();
    let rvm = create(&data).unwrap();
    let mut region = rvm.map(SEGMENT, 0..bytes).unwrap();
    let mut changes = Changes::default();
    clock.cut_at(clock.now() + first);
    let mut failed = false;
    for _ in 0..300 {
        workload.next(&mut changes).unwrap();
        next.copy_from_slice(&model);
        for (offset, data) in changes.iter() {
            next[offset as usize..][..data.len()].copy_from_slice(data);
        }
        if commit(&mut region, &changes).is_err() {
            failed = true;
            break;
        }
        std::mem::swap(&mut model, &mut next);
    }
    drop((region, rvm));
    clock.cut_at(clock.now() + again);
    let recovered = reopen(&data).or_else(|_| {
        clock.cut_at(Time::MAX);
        reopen(&data)
    });
    let rvm = recovered.unwrap_or_else(|error| panic!("seed {seed}, cut {first} and {again}: {error}"));
    clock.cut_at(Time::MAX);
    let region = rvm.map(SEGMENT, 0..bytes).unwrap();
    let is = |expected: &[u8]| region[..] == *expected;
    assert!(is(&model) || failed && is(&next), "seed {seed}, cut {first} and {again}: another state");
    workload.check(&region).unwrap_or_else(|why| panic!("seed {seed}, cut {first} and {again}: {why}"));
    failed
}

#[test]
fn power_failures_on_flash_lose_nothing() {
    let mut rng = Rng::new(5);
    let mut failed = 0;
    for seed in 0..60 {
        let clock = Clock::default();
        let flash = small_flash(&clock, 8);
        // The log takes 64 KiB, 134 transactions: half of the cuts fall into records, the others
        // mostly into a truncation and its erases, which take longest.
        let first = if seed % 2 == 0 { 60_000 } else { 8_000_000 };
        let cuts = (Span::from_us(rng.below(first)), Span::from_us(rng.below(30_000_000)));
        let create = |data: &Data| Rvm::open(FlashLog::create(flash.clone(), 7, 0)?, data.clone(), OPTIONS);
        let reopen = |data: &Data| Rvm::open(FlashLog::open(flash.clone())?, data.clone(), OPTIONS);
        failed += survives(&clock, cuts, &create, &reopen, seed) as u32;
    }
    assert!((20..60).contains(&failed), "{failed} of 60 runs were cut");
}

#[test]
fn power_failures_on_a_disk_lose_nothing() {
    let mut rng = Rng::new(6);
    let mut failed = 0;
    for seed in 0..40 {
        let clock = Clock::default();
        let disk = small_disk(&clock);
        let cuts = (Span::from_us(rng.below(3_600_000)), Span::from_us(rng.below(60_000)));
        let create = |data: &Data| {
            Rvm::open(FileLog::create_on(Box::new(disk.clone()), "a log".into())?, data.clone(), OPTIONS)
        };
        let reopen = |data: &Data| {
            disk.restart().unwrap();
            Rvm::open(FileLog::open_on(Box::new(disk.clone()), "a log".into())?, data.clone(), OPTIONS)
        };
        failed += survives(&clock, cuts, &create, &reopen, seed) as u32;
    }
    assert!((10..40).contains(&failed), "{failed} of 40 runs were cut");
}

/// The log is truncated in the background: the power fails while changes are on their way to the data, while erases are put off, under
/// way or suspended, and again during the recovery.
#[test]
fn power_failures_of_truncation_in_the_background_lose_nothing() {
    let sets = [
        "media.flash.block=2 KiB",
        "ftl.log.size=64 KiB",
        "media.disk.part=disk-7200",
        "ftl.log.data=disk",
        "ftl.log.truncate_at=50 %",
    ];
    let design =
        Design::load("rvm-flash", &sets.map(String::from)).unwrap_or_else(|errors| panic!("{errors}"));
    let Ftl::Rvm(rvm) = &design.ftl else { panic!("of another kind") };
    let mut rng = Rng::new(7);
    let mut failed = 0;
    for seed in 0..60 {
        let cuts = [rng.below(if seed % 2 == 0 { 200_000 } else { 9_000_000 }), rng.below(30_000_000)];
        let what = format!("seed {seed}, cuts after {cuts:?} us");
        let mut host = Host::new(&design, rvm, seed).unwrap();
        let (mut workload, mut changes) = (workload(seed), Changes::default());
        let (mut model, clock) = (host.memory().to_vec(), host.clock.clone());
        let mut next = model.clone();
        clock.cut_at(clock.now() + Span::from_us(cuts[0]));
        let mut is_cut = false;
        for _ in 0..500 {
            workload.next(&mut changes).unwrap();
            for (offset, data) in changes.iter() {
                next[offset as usize..][..data.len()].copy_from_slice(data);
            }
            if host.run(&changes).is_err() {
                is_cut = true;
                break;
            }
            for (offset, data) in changes.iter() {
                model[offset as usize..][..data.len()].copy_from_slice(data);
            }
        }
        failed += is_cut as u32;
        let (Device::Flash(flash), Data::Disk(disk)) = (&host.device, &host.data) else {
            panic!("{:?}", host.device)
        };
        let (flash, disk) = (flash.clone(), disk.clone());
        drop(host);
        clock.cut_at(clock.now() + Span::from_us(cuts[1]));
        let reopen = || {
            disk.restart().unwrap();
            Rvm::open(FlashLog::open(flash.clone())?, Data::Disk(disk.clone()), rvm.options)
        };
        let recovered = reopen().or_else(|_| {
            clock.cut_at(Time::MAX);
            reopen()
        });
        let rvm = recovered.unwrap_or_else(|error| panic!("{what}: {error}"));
        clock.cut_at(Time::MAX);
        let region = rvm.map(SEGMENT, 0..model.len() as u64).unwrap();
        assert!(region[..] == model[..] || is_cut && region[..] == next[..], "{what}: another state");
        workload.check(&region).unwrap_or_else(|why| panic!("{what}: {why}"));
    }
    assert!(failed >= 25, "{failed} of 60 runs were cut");
}

/// Large records are written ahead to the disk of a hybrid log; the power fails while they are under way there, between the entries of a
/// commit, and again during the recovery.
#[test]
fn power_failures_of_what_is_written_ahead_lose_nothing() {
    let sets = ["media.flash.block=2 KiB", "ftl.log.size=256 KiB"];
    let design =
        Design::load("rvm-hybrid", &sets.map(String::from)).unwrap_or_else(|errors| panic!("{errors}"));
    let Ftl::Rvm(rvm) = &design.ftl else { panic!("of another kind") };
    let mut rng = Rng::new(8);
    let mut failed = 0;
    for seed in 0..60 {
        let cuts = [rng.below(4_000_000), rng.below(400_000)];
        let what = format!("seed {seed}, cuts after {cuts:?} us");
        let mut host = Host::new(&design, rvm, seed).unwrap();
        let spec = WorkloadSpec::parse("compiler files=5 passes=100 cpu=40ms").unwrap();
        let target = Target { capacity_bytes: 1 << 20, unit_bytes: 512, serves: Serves::Commits };
        let Work::Commits(mut workload) = spec.open(target, seed).unwrap().streams.remove(0).work else {
            panic!("of another kind")
        };
        let (mut model, clock) = (host.memory().to_vec(), host.clock.clone());
        let (mut changes, mut next) = (Changes::default(), model.clone());
        clock.cut_at(clock.now() + Span::from_us(cuts[0]));
        let mut is_cut = false;
        for _ in 0..60 {
            workload.next(&mut changes).unwrap();
            let apply = |memory: &mut [u8]| {
                changes
                    .iter()
                    .for_each(|(offset, data)| memory[offset as usize..][..data.len()].copy_from_slice(data));
            };
            apply(&mut next);
            if host.run(&changes).is_err() {
                is_cut = true;
                break;
            }
            apply(&mut model);
        }
        failed += is_cut as u32;
        let (Device::Hybrid(flash, disk), data) = (&host.device, host.data.clone()) else {
            panic!("{:?}", host.device)
        };
        let (flash, disk) = (flash.clone(), disk.clone());
        drop(host);
        clock.cut_at(clock.now() + Span::from_us(cuts[1]));
        let reopen = || {
            disk.restart().unwrap();
            let small = FlashLog::open(flash.clone())?;
            let log = HybridLog::open(small, Box::new(disk.clone()), "a disk", 4096)?;
            Rvm::open(log, data.clone(), rvm.options)
        };
        let recovered = reopen().or_else(|_| {
            clock.cut_at(Time::MAX);
            reopen()
        });
        let rvm = recovered.unwrap_or_else(|error| panic!("{what}: {error}"));
        clock.cut_at(Time::MAX);
        let region = rvm.map(SEGMENT, 0..model.len() as u64).unwrap();
        assert!(region[..] == model[..] || is_cut && region[..] == next[..], "{what}: another state");
    }
    assert!((25..60).contains(&failed), "{failed} of 60 runs were cut");
}
