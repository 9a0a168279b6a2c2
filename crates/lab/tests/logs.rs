//! Runs of logs of recoverable memory: what they print against what follows by hand from the design.

use nvlab_lab::design::{Design, Ftl};
use nvlab_lab::durable::host::Host;
use nvlab_lab::plan::{Settings, Source, Task};
use nvlab_lab::report::run_text;
use nvlab_lab::result::RunResult;
use nvlab_lab::run::State;
use nvlab_workload::{Changes, Serves, Target, Work, WorkloadSpec};

/// Bytes of the record of a C++ transaction.
const RECORD: u64 = 748;

fn load(name: &str, sets: &[&str]) -> Design {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Design::load(name, &sets).unwrap_or_else(|errors| panic!("{name}: {errors}"))
}

fn run(name: &str, sets: &[&str], workload: &str) -> RunResult {
    let source = Source::read(workload, None).unwrap();
    let settings = Settings { seed: 1, until: None, state: State::Fresh.into() };
    Task::new(load(name, sets), name.into(), &source, settings).unwrap().run(&mut |_, _| true).unwrap()
}

/// A log of S bytes takes S / 748 records before it must be truncated, whatever it is on.
#[test]
fn a_log_is_truncated_when_its_size_is_full() {
    let cases = [
        ("rvm-battery-ram", "64 KiB", 64 << 10),
        ("rvm-battery-ram", "1 MiB", 1 << 20),
        ("rvm-flash", "512 KiB", 512 << 10),
        ("rvm-flash-disk", "64 KiB", 64 << 10),
        ("rvm-disk", "64 KiB", 64 << 10),
    ];
    for (name, size, bytes) in cases {
        let run = run(name, &[&format!("ftl.log.size={size}")], "debit-credit cpu=0s until=5000transactions");
        let durable = run.durable.unwrap();
        // The last is at the end. The first record of an epoch names the segment.
        let fills = 5000_u64.div_ceil(bytes / RECORD);
        assert!(
            durable.truncations.abs_diff(fills) <= 1 + fills / 50,
            "{name} {size}: {} truncations, {fills} by hand",
            durable.truncations
        );
        assert_eq!(durable.log_bytes, bytes);
    }
}

/// A log takes what its design says, or the design is refused.
#[test]
fn a_size_that_the_log_would_not_take_is_refused() {
    let refused = |name: &str, size: &str| {
        Design::load(name, &[format!("ftl.log.size={size}")]).unwrap_err().to_string()
    };
    let text = refused("rvm-flash", "64 KiB");
    assert!(text.contains("64 KiB is no multiple of an erase block of the array, 512 KiB"), "{text}");
    assert!(text.contains("\"512 KiB\""), "{text}");
    let text = refused("rvm-disk", "100000 B");
    assert!(text.contains("no multiple of a sector of the disk, 512 B"), "{text}");
    let text = refused("rvm-flash-disk", "100000 B");
    assert!(text.contains("no multiple of a sector, 512 B"), "{text}");
    let text = refused("rvm-battery-ram", "16 MiB");
    assert!(text.contains("`ftl.log.size` is 16 MiB, but the medium takes a log of 16376 KiB"), "{text}");
}

/// Transactions until the log cannot erase a block any more; bytes of their records.
fn worn_out(sets: &[&str]) -> u64 {
    let design = load("rvm-flash", sets);
    let Ftl::Rvm(rvm) = &design.ftl else { panic!("of another kind") };
    let mut host = Host::new(&design, rvm, 1).unwrap();
    let spec = WorkloadSpec::parse("debit-credit cpu=0s").unwrap();
    let target = Target { capacity_bytes: rvm.memory_bytes, unit_bytes: 4096, serves: Serves::Commits };
    let Work::Commits(mut workload) = spec.open(target, 1).unwrap().streams.remove(0).work else {
        panic!("of another kind")
    };
    let mut changes = Changes::default();
    loop {
        workload.next(&mut changes).unwrap();
        if let Err(error) = host.run(&changes) {
            assert!(error.to_string().contains("worn out"), "{error}");
            return host.rvm().statistics().logged_bytes;
        }
    }
}

/// What a run promises is what can be written before a block of the log fails: the blocks of the status hardly wear, and spares
/// help only where a block fails early. The mean of all blocks promised a fifth more, with spares half as much again.
#[test]
fn a_log_lasts_as_long_as_its_own_blocks() {
    const SMALL: [&str; 4] = [
        "media.flash.block=2 KiB",
        "ftl.log.size=256 KiB",
        "media.flash.endurance=60",
        "media.flash.faults.wear_out=true",
    ];
    for spares in ["ftl.log.spares=0", "ftl.log.spares=8"] {
        let sets = [&SMALL[..], &[spares]].concat();
        let run = run("rvm-flash", &sets, "debit-credit cpu=0s until=5000transactions");
        // 16 blocks of 16 KiB and the one that is partly used.
        let by_hand = 17.0 * 16384.0 * 60.0;
        let promised = run.lifetime.host_bytes.unwrap();
        assert!((promised / by_hand - 1.0).abs() < 0.01, "{spares}: {promised:e}, {by_hand:e} by hand");
        // To make the log erases each block once.
        let lasted = worn_out(&sets) as f64;
        assert!((lasted / promised - 1.0).abs() < 0.025, "{spares}: {promised:e}, but {lasted:e}");
        assert_eq!(run.lifetime.drive_writes_per_day, None);
    }
}

/// Sectors written wear the array evenly: rated cycles times its bytes, over the bytes written for each byte of a record.
#[test]
fn a_flash_disk_wears() {
    let run = run("rvm-flash-disk", &[], "debit-credit until=2000transactions");
    let durable = run.durable.as_ref().unwrap();
    // 32 blocks of 512 KiB and one for the status.
    let array = (33 * (512_u64 << 10)) as f64;
    let by_hand = 1e6 * array * durable.record_bytes / durable.written_bytes;
    let promised = run.lifetime.host_bytes.unwrap();
    assert!((promised / by_hand - 1.0).abs() < 1e-3, "{promised:e}, {by_hand:e} by hand");
    let data = &run.media[0];
    assert!(
        (data.erase_s / (data.programmed_bytes as f64 / array) / (33.0 * 0.6) - 1.0).abs() < 1e-6,
        "{data:?}"
    );
    let text = run_text(&run, Default::default()).replace('\u{a0}', " ");
    assert!(text.contains("if its controller wears all blocks evenly; rated 1 000 000"), "{text}");
    assert!(text.starts_with("rvm-flash-disk · 32.0 MiB of memory, a log on 16.5 MiB raw"), "{text}");
}
