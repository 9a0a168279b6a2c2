//! Runs through stages: closed forms, ends, and what cannot be run so.

use super::*;

/// 256 MiB whose reads take 25 us and 10.24 us on the channel; nothing at all while it is fresh.
fn flash(more: &[&str]) -> Design {
    let sets = ["media.nand.blocks=256", "path.queue=64"].iter().chain(more).map(|set| set.to_string());
    Design::load("bench-4g", &sets.collect::<Vec<_>>()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn random_reads(sets: &[&str], pace: &str, until: &str, state: State) -> RunResult {
    let workload = format!("uniform rw=randread bs=4KiB {pace}");
    run_on(flash(sets), &workload, until, state).unwrap_or_else(|error| panic!("{error}"))
}

fn close(found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() <= within, "{found} instead of {expected}");
}

#[test]
fn one_thread_is_the_sum_of_stages_and_device() {
    let plain = random_reads(&[], "", "2000 io", State::Full);
    let staged = random_reads(&["path.stages=moneta-baseline"], "", "2000 io", State::Full);
    let software = staged.software.as_ref().unwrap();
    close(software.device_ns, plain.read.latency.mean_ns, 1e-9);
    close(software.latency_ns, 13_200.0, 1e-9);
    close(software.cpu_ns, 8_600.0, 1e-9);
    close(staged.read.latency.mean_ns, software.latency_ns + software.device_ns, 1e-3);
    close(software.cores_used, 8_600.0 / (software.latency_ns + software.device_ns), 1e-6);
    let stages: f64 = software.stages.iter().map(|stage| stage.total_ns()).sum();
    close(stages + software.queue_ns, software.latency_ns, 1e-9);
    assert_eq!((software.lock_ns, software.spin_ns, software.queue_ns), (0.0, 0.0, 0.0));
    assert_eq!((staged.requests_served, plain.software), (2000, None));
    let polled = random_reads(&["path.stages=moneta-spin"], "", "2000 io", State::Full);
    let software = polled.software.as_ref().unwrap();
    close(software.latency_ns, 5_000.0, 1e-9);
    close(software.spin_ns, software.device_ns, 1e-9);
    close(software.cores_used, 1.0, 1e-9);
}

/// The baseline holds its lock for 1.8 + 1.6 + 1.2 us of each request, on a device that takes no time.
#[test]
fn the_baseline_saturates_at_its_lock() {
    for threads in [1, 2, 3, 4, 16] {
        let pace = format!("threads={threads}");
        let run = random_reads(&["path.stages=moneta-baseline"], &pace, "20k io", State::Fresh);
        // The most there can be, and what is left if every request waits for all others at the lock.
        let threads = threads as f64;
        let (most, least) =
            ((threads / 13.2e-6).min(1.0 / 4.6e-6), threads / (13.2e-6 + 4.6e-6 * (threads - 1.0)));
        let found = run.read.per_s;
        assert!(found <= most * 1.001 && found >= least * 0.999, "{threads} threads: {least} {found} {most}");
        if [1.0, 4.0, 16.0].contains(&threads) {
            close(found, most, 0.001);
        }
        let spin = random_reads(&["path.stages=moneta-spin"], &pace, "20k io", State::Fresh);
        close(spin.read.per_s, threads / 5.0e-6, 0.001);
        assert_eq!(spin.software.unwrap().lock_share, 0.0);
    }
}

/// The device takes no more requests at a time than its queue has room for: the rest wait there, not at the software.
#[test]
fn the_queue_of_the_device_is_kept() {
    let read = |queue: &str| {
        let sets = ["path.stages=user-space-queue", queue];
        random_reads(&sets, "threads=2 qd=8", "5000 io", State::Full)
    };
    let (one, many) = (read("path.queue=1"), read("path.queue=16"));
    let alone = random_reads(&[], "", "5000 io", State::Full);
    close(one.read.per_s, alone.read.per_s, 0.001);
    assert!(many.read.per_s > 1.2 * one.read.per_s, "{} {}", many.read.per_s, one.read.per_s);
}

#[test]
fn ends_are_those_of_a_run_without_stages() {
    for (pace, until) in [("qd=4", "1000 io"), ("threads=3 qd=2", "1 MiB"), ("rate=20k/s", "10 ms")] {
        let plain = random_reads(&[], pace, until, State::Full);
        let staged = random_reads(&["path.stages=user-space-queue"], pace, until, State::Full);
        let windows: u64 = staged.series.iter().map(|window| window.requests).sum();
        assert_eq!(windows, staged.requests_served);
        assert_eq!(staged.requests_served, plain.requests_served, "{pace} until {until}");
        assert!(same(&staged, &random_reads(&["path.stages=user-space-queue"], pace, until, State::Full)));
    }
    // A time bounds when requests begin; two threads without a device make one each 96 ns.
    let sets = ["path.stages=user-space-queue"];
    let timed = random_reads(&sets, "threads=2", "1 ms", State::Fresh);
    close(timed.requests_served as f64, 2e-3 / 96e-9, 0.001);
    // An open loop is served as fast as it comes, and its latency counts from its arrivals.
    let open = random_reads(&sets, "threads=2 rate=1M/s arrivals=regular", "10 ms", State::Fresh);
    assert_eq!((open.requests_served, open.read.latency.max_ns), (10_000, 96));
    let overload = random_reads(&sets, "threads=2 rate=100M/s", "1 ms", State::Fresh);
    close(overload.read.per_s, 2.0 / 96e-9, 0.01);
    assert!(overload.software.unwrap().queue_ns > 1e6, "what comes too fast waits for its thread");
}

/// Without stages threads only add to the depth.
#[test]
fn threads_without_stages_are_depth() {
    let (threads, depth) = (
        random_reads(&[], "threads=4 qd=2", "3000 io", State::Full),
        random_reads(&[], "qd=8", "3000 io", State::Full),
    );
    assert_eq!((&threads.read, threads.simulated_s), (&depth.read, depth.simulated_s));
}

/// A recorded program passes the driver and what is below it: its recording contains the rest.
#[test]
fn a_recorded_program_passes_what_its_recording_lacks() {
    let run = |sets: &[&str], workload: &str| {
        let source = Source::read(workload, None).unwrap();
        let settings = Settings { seed: 1, until: None, state: State::Full.into() };
        let task = Task::new(flash(sets), "it".into(), &source, settings).unwrap();
        task.run(&mut |_, _| true).unwrap_or_else(|error| panic!("{error}"))
    };
    let again = |sets: &[&str]| run(sets, "builtin:raw think=keep wrap");
    let (plain, staged) = (again(&["path.overhead.host=2.5 us"]), again(&["path.stages=moneta-spin"]));
    let software = staged.software.as_ref().unwrap();
    // Issue, interrupt and completion; system call, block layer and return are in the recording.
    close(software.cpu_ns, 400.0 + 1500.0 + 600.0, 1e-9);
    assert_eq!(software.stages.len(), 3);
    // One request at a time: a time for each request does the same.
    assert_eq!(plain.requests_served, staged.requests_served);
    close(staged.simulated_s, plain.simulated_s, 1e-6);
    let (with, without) = (staged.program.unwrap(), plain.program.unwrap());
    close(with.waiting_s, without.waiting_s, 1e-6);
    close(with.computing_s, without.computing_s, 1e-6);
    assert_eq!((with.recorded_s, with.recorded_waiting_s), (without.recorded_s, without.recorded_waiting_s));
    // One that reads ahead has several requests in progress: they meet at its thread, no more.
    let ahead = |sets: &[&str]| run(sets, "builtin:pg-scan think=keep wrap").simulated_s;
    let (plain, staged) = (ahead(&[]), ahead(&["path.stages=moneta-spin"]));
    assert!(staged > plain && staged < plain + 9036.0 * 2.5e-6 * 1.01, "{staged} {plain}");
}

#[test]
fn what_passes_no_stages_is_refused() {
    let words = run_on(small(&["path.stages=mmap"]), BANK, "100 io", State::Fresh).unwrap_err().to_string();
    assert!(words.contains("loads and stores bypass the host's software"), "{words}");
    // As a RAM disk the same memory has software above it.
    let disk = run_on(small(&["path.stages=mmap"]), "uniform bs=512B", "100 io", State::Fresh).unwrap();
    assert_eq!(disk.software.unwrap().stack, "mmap");
}

/// A stage of a day: the clock ends after 213 of them, in an error.
#[test]
fn stages_may_run_out_of_time() {
    let file = std::env::temp_dir().join(format!("nvlab-slow-{}.toml", std::process::id()));
    let text = "schema = 1\n[stack]\nname = \"slow\"\ncompletion = \"spin\"\n[[stage]]\nname = \"day\"\n\
                when = \"submit\"\ncpu = \"24 h\"\nbasis = \"none\"\n";
    std::fs::write(&file, text).unwrap();
    let design = flash(&[&format!("path.stages={}", file.display())]);
    let error = run_on(design, "uniform bs=4KiB threads=2", "100k io", State::Fresh).unwrap_err().to_string();
    assert!(error.contains("simulated time exceeded its maximum of 213 days"), "{error}");
    std::fs::remove_file(&file).unwrap();
}

/// What crosses between memory and host is counted where it is moved: parts of requests by a device, bursts by a processor.
#[test]
fn transfers_are_counted() {
    let run = |name: &str, sets: &[&str], workload: &str| {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let run = run_on(Design::load(name, &sets).unwrap(), workload, "1000 io", State::Fresh).unwrap();
        run.transfers.map(|transfers| transfers as f64 / run.requests_served as f64)
    };
    let (small, aligned) =
        (["media.pcm.size=64 MiB", "media.pcm.level.regions=1"], "uniform bs=8KiB read=50%");
    assert_eq!(run("moneta", &small, aligned), Some(1.0));
    assert_eq!(run("ddr-scm", &small, aligned), Some(128.0));
    assert_eq!(run("ddr-scm", &["media.pcm.size=64 MiB", "path.width=256 B"], aligned), Some(32.0));
    assert_eq!(run("nvramdisk", &["media.dram.size=64 MiB"], aligned), Some(128.0));
    // Every second request of 6 KiB crosses from one part of 8 KiB to the next.
    let crossing = run("moneta", &small, "uniform bs=6KiB read=50%").unwrap();
    assert!((crossing - 1.5).abs() < 0.05, "{crossing}");
    assert_eq!(run("bench-4g", &["media.nand.blocks=256"], aligned), None);
}
