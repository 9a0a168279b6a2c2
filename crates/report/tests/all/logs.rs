//! Runs of logs of recoverable memory: what they print against what follows by hand from the design.

use nvlab_design::{Design, Ftl};
use nvlab_report::run_text;
use nvlab_run::State;
use nvlab_run::durable::host::Host;
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::RunResult;
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
    assert!(text.contains("64 KiB is not a multiple of an erase block of the array, 512 KiB"), "{text}");
    assert!(text.contains("\"512 KiB\""), "{text}");
    let text = refused("rvm-disk", "100000 B");
    assert!(text.contains("not a multiple of a sector of the disk, 512 B"), "{text}");
    let text = refused("rvm-flash-disk", "100000 B");
    assert!(text.contains("not a multiple of a sector, 512 B"), "{text}");
    let text = refused("rvm-battery-ram", "16 MiB");
    assert!(
        text.contains("`ftl.log.size` is 16 MiB, but the medium holds a log of at most 16376 KiB"),
        "{text}"
    );
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
    assert!(text.contains("assuming that its controller wears all blocks evenly;"), "{text}");
    assert!(text.starts_with("rvm-flash-disk · 32.0 MiB of memory, log on 16.5 MiB raw"), "{text}");
}

/// Large records begin to be written while the program computes: the commit writes to flash only, 72 B in front of what is on the disk, a
/// stub of 24 B, and 24 B and the last of 8 ranges of 1,910 B, with up to a sector of the one before.
#[test]
fn a_commit_of_what_was_written_ahead_waits_for_flash_alone() {
    let latency = |sets: &[&str], workload: &str| {
        let run = run("rvm-hybrid", sets, workload);
        (run.write.latency.mean_ns / 1e6, run.write.latency.p50_ns as f64 / 1e6, run)
    };
    let row_ms = 0.006;
    let rows = |bytes: f64| bytes / 8.0 * row_ms;
    // Three appends touch up to a row more each.
    let (least, most) = (rows(72.0 + 24.0 + 24.0 + 1938.0), rows(2058.0 + 511.0) + 3.0 * row_ms);
    let (mean, p50, ahead) = latency(&[], "compiler passes=2");
    assert!(
        (least..=most).contains(&p50) && (least..=most * 1.2).contains(&mean),
        "{mean} {p50}: {least} to {most}"
    );
    let bytes = ahead.durable.as_ref().unwrap().ahead_bytes;
    assert!((7.0 * 1910.0 - 512.0 - 200.0..=7.0 * 1910.0).contains(&bytes), "{bytes} B ahead");
    // A turn and 15 KiB at 6 MB/s at most, half a turn less on average: the disk stands anywhere.
    let (mean, _, behind) = latency(&["ftl.log.write_ahead=false"], "compiler passes=2");
    assert!((2.56 + 3.5..=2.56 + 8.34 + 0.7).contains(&mean), "{mean} ms");
    assert_eq!(behind.durable.unwrap().ahead_bytes, 0.0);
    // Without computing there is nothing to begin early, and nothing is lost either.
    let [with, without] = ["true", "false"].map(|is| {
        let sets = [format!("ftl.log.write_ahead={is}")];
        run("rvm-hybrid", &[&sets[0]], "compiler passes=4 cpu=0s").simulated_s
    });
    assert!((with / without - 1.0).abs() < 0.02, "{with} s, {without} s");
}

/// Programs that are ready when the log is commit together: of a disk, a turn and what they log; of flash, their computing, which
/// does not overlap, and what they log and erase.
#[test]
fn programs_commit_together() {
    for threads in [1.0, 4.0, 16.0] {
        let tps = |name: &str, sets: &[&str], count: u32| {
            let workload = format!("debit-credit threads={threads} until={count}transactions");
            run(name, sets, &workload).transaction.per_s
        };
        let disk = threads / (60.0 / 7200.0 + threads * 748.0 / 6e6);
        let found = tps("rvm-disk", &[], 4000);
        assert!((found / disk - 1.0).abs() < 0.015, "{threads} on a disk: {found}, {disk} by hand");
        // One of 43 blocks may not be erased at the end.
        let flash = threads / (300e-6 + threads * 748.0 * (6e-6 / 8.0 + 0.6 / 524_288.0));
        let found = tps("rvm-flash", &["ftl.log.size=512 KiB"], 30_000);
        assert!((found / flash - 1.0).abs() < 0.025, "{threads} on flash: {found}, {flash} by hand");
    }
}

/// Truncation decompresses the body of each record: all but its first 8 B.
#[test]
fn decompressing_takes_its_time() {
    let sets = ["ftl.log.compress=true", "ftl.log.decompress_rate=1 MB/s"];
    let run = run("rvm-flash", &sets, "compiler passes=4 cpu=0s");
    let seconds = run.durable.unwrap().time.decompress * run.simulated_s;
    let by_hand = 4.0 * 38.0 * (15360.0 - 8.0) / 1e6;
    assert!((seconds / by_hand - 1.0).abs() < 1e-3, "{seconds} s, {by_hand} s by hand");
}

/// A restart reads the log, a page of 64 B of the gang in each read of 65 ns, decompresses the body of each record once, and erases
/// the blocks: with a slower processor it takes longer by what that takes. The run itself does not notice.
#[test]
fn a_restart_decompresses_what_the_log_holds() {
    let workload = "compiler passes=4 cpu=0s";
    let plain = run("rvm-flash", &["ftl.log.compress=true"], workload);
    let slow = run("rvm-flash", &["ftl.log.compress=true", "ftl.log.decompress_rate=1 MB/s"], workload);
    let [plain, slow] = [plain, slow].map(|run| run.mount.expect("a log on flash").time_s);
    let by_hand = 4.0 * 38.0 * (15360.0 - 8.0) / 1e6;
    assert!(((slow - plain) / by_hand - 1.0).abs() < 1e-3, "{plain} s, {slow} s, {by_hand} s by hand");
    assert!(run("rvm-disk", &[], workload).mount.is_none(), "its reads would cost nothing");
}

/// Programs that commit together begin to write ahead at the same place: only what the last of them wrote is used.
#[test]
fn what_is_written_ahead_by_programs_that_commit_together_is_in_vain() {
    let wasted = |threads: u32| {
        let workload = format!("debit-credit threads={threads} until=2000transactions");
        let durable = run("rvm-hybrid", &["ftl.log.large_from=128 B"], &workload).durable.unwrap();
        (durable.ahead_bytes, durable.ahead_wasted_bytes)
    };
    let compiler = run("rvm-hybrid", &[], "compiler passes=2").durable.unwrap();
    assert!(compiler.ahead_bytes > 10_000.0, "{} B ahead", compiler.ahead_bytes);
    assert_eq!(compiler.ahead_wasted_bytes, 0.0, "one program that stores in order");
    // Of a single program that does not, whatever a later range comes before.
    let [(alone, _), (four, in_vain)] = [1, 4].map(wasted);
    assert!((0.75..1.0).contains(&(in_vain / four)), "{alone}, {four} B ahead, {in_vain} B in vain");
}

/// While the program computes for 670 ms the log is applied and erased: a commit takes its rows of 8 B alone, and 10 us where it suspends
/// an erase. In the foreground the one that finds no room waits for all of it.
#[test]
fn truncation_in_the_background_takes_the_time_of_computing() {
    let sets =
        ["ftl.log.size=2 MiB", "media.disk.part=disk-7200", "ftl.log.data=disk", "ftl.log.truncate_at=50 %"];
    let rows_ms = 15360.0 / 8.0 * 0.006;
    let background = run("rvm-flash", &sets, "compiler passes=10");
    let latency = &background.write.latency;
    assert!(
        (latency.mean_ns / 1e6 / rows_ms - 1.0).abs() < 0.005,
        "{} ns, {rows_ms} ms by hand",
        latency.mean_ns
    );
    assert!((latency.max_ns as f64) < rows_ms * 1.01e6, "{} ns at most", latency.max_ns);
    assert!(background.durable.as_ref().unwrap().truncations >= 5);
    let foreground = run("rvm-flash", &sets[..3], "compiler passes=10");
    // 4 blocks of 600 ms, reading 2 MiB and writing what 38 files have changed.
    let longest = foreground.write.latency.max_ns as f64 / 1e6;
    assert!((2400.0..2650.0).contains(&longest), "{longest} ms");
    assert_eq!(foreground.flash.unwrap().erases, background.flash.unwrap().erases);
}

/// Without time between transactions the flash has as much to do in the background as in the foreground.
#[test]
fn a_busy_log_gains_nothing_by_the_background() {
    let sets = ["ftl.log.size=1 MiB", "ftl.log.truncate_at=50 %"];
    let run = run("rvm-flash", &sets, "debit-credit cpu=0s until=10000transactions");
    let by_hand = 1.0 / (748.0 * (6e-6 / 8.0 + 0.6 / 524_288.0));
    let found = run.transaction.per_s;
    assert!((0.97..=1.01).contains(&(found / by_hand)), "{found} TPS, {by_hand} by hand");
}
