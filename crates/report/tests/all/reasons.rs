//! What limits a run is said, truly, and only where a bound decides.

use nvlab_design::Design;
use nvlab_report::{Assertion, RunDocument, Style, compare_text, reasons, run_text, warnings};
use nvlab_run::metric::metric;
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::RunResult;
use nvlab_run::{Preparation, State};

fn run(design: &str, sets: &[&str], workload: &str, until: &str, state: State) -> RunResult {
    prepared(design, sets, workload, until, state.into())
}

fn prepared(design: &str, sets: &[&str], workload: &str, until: &str, state: Preparation) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let resolved = Design::load(design, &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source::read(workload, None).unwrap();
    let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state };
    Task::new(resolved, design.into(), &source, settings).unwrap().run(&mut |_, _| true).unwrap()
}

const SMALL: &[&str] = &["media.tlc.blocks=24", "ftl.spare=30 %", "ftl.map.checkpoint=256 MiB"];

#[track_caller]
fn says(run: &RunResult, what: &str) {
    let found = reasons(run);
    assert!(found.iter().any(|reason| reason.contains(what)), "`{what}` is not among {found:?}");
}

#[test]
fn few_requests_in_flight_leave_dies_idle() {
    let one = run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB qd=1", "20k io", State::Full);
    // One of four dies at most.
    let flash = one.flash.as_ref().unwrap();
    assert!(flash.busy_read <= 0.25);
    says(&one, "requests are in flight for 4 dies");
    let eight = run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB qd=6", "20k io", State::Full);
    let busy = eight.flash.as_ref().unwrap().busy_read;
    match busy < 0.75 {
        true => says(&eight, "requests in flight are spread unevenly over the dies"),
        false => assert!(reasons(&eight).iter().all(|reason| !reason.contains("idle"))),
    }
}

#[test]
fn dies_that_may_not_program_at_the_same_time_are_idle() {
    let rate = |programs: &str| {
        let sets = [SMALL, &[programs]].concat();
        run("ssd-tlc", &sets, "sequential rw=write bs=128KiB qd=8", "2 x capacity", State::Full)
    };
    let (all, two) = (rate("array.programs=4"), rate("array.programs=2"));
    says(&two, "dies idle 49.");
    says(&two, "at most 2 of 4 may program at the same time");
    assert!(reasons(&all).iter().all(|reason| !reason.contains("idle")), "{:?}", reasons(&all));
    let share = two.write.bytes_per_s / all.write.bytes_per_s;
    assert!((share - 0.5).abs() < 0.02, "{share}");
}

#[test]
fn what_is_saturated_is_the_limit() {
    let deep = run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB qd=128", "50k io", State::Full);
    says(&deep, "the dies are the limit");
    let writes = run("ssd-tlc", SMALL, "uniform rw=randwrite bs=4KiB qd=32", "3 x capacity", State::Full);
    says(&writes, "the write buffer was full");
    let narrow = [SMALL, &["path.rate=100 MB/s"]].concat();
    let narrow = run("ssd-tlc", &narrow, "sequential rw=read bs=1MiB qd=8", "2000 io", State::Full);
    assert!((narrow.read.bytes_per_s - 100e6).abs() < 5e6, "{}", narrow.read.bytes_per_s);
    says(&narrow, "the link is the limit");
    let slow = [SMALL, &["path.overhead.host=500 us"]].concat();
    let slow = run("ssd-tlc", &slow, "uniform rw=randread bs=4KiB qd=1", "5000 io", State::Full);
    says(&slow, "host software and link protocol");
}

/// The host of a device whose queue grows always has another request for it, of one stream or of several.
#[test]
fn an_overloaded_device_is_limited_by_what_it_is_limited_by_in_a_closed_loop() {
    let one = "uniform rw=randread bs=4KiB rate=400k/s";
    for workload in [one.to_string(), format!("{one} + uniform rw=randread bs=8KiB rate=400k/s")] {
        let narrow = [SMALL, &["path.queue=2"]].concat();
        let narrow = run("ssd-tlc", &narrow, &workload, "50k io", State::Full);
        assert!(
            warnings(&narrow).iter().any(|text| text.contains("the queue grew")),
            "{:?}",
            warnings(&narrow)
        );
        says(&narrow, "only 2.00 requests are in flight for 4 dies");
    }
}

#[test]
fn a_workload_that_asks_for_little_is_the_limit() {
    let few = run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB rate=500/s", "5000 io", State::Full);
    // 500 requests a second of about 80 us each: in flight 4 % of the time.
    says(&few, "the workload is the limit");
    assert!(reasons(&few)[0].contains("at least 9"), "{:?}", reasons(&few));
    let style = Style { color: false, width: 100 };
    assert!(run_text(&few, style).contains("Why"));
    let text =
        compare_text::<&str>(&[vec![few]], &[], nvlab_report::Format::Human, nvlab_report::NameStyle::Whole)
            .unwrap();
    assert!(text.contains("the workload is the limit"), "{text}");
}

/// BAST has no write buffer: what its writes wait for are merges of log blocks.
#[test]
fn waiting_for_merges_is_not_waiting_for_a_buffer() {
    let sets = ["media.mlc.blocks=64"];
    let run = run("mlc-bast", &sets, "uniform rw=randwrite bs=4KiB qd=1", "2000 io", State::Full);
    assert_eq!(run.buffer_wait_s, 0.0);
    assert!(run.merge_wait_s > 0.5 * run.write.count as f64 * run.write.latency.mean_ns * 1e-9);
    says(&run, "waiting until log blocks were merged");
    let text = run_text(&run, Style { color: false, width: 100 });
    assert!(text.contains("until log blocks were merged") && !text.contains("write buffer"), "{text}");
    assert_eq!(metric("merge.wait", &run), Some(run.merge_wait_s));
}

#[test]
fn a_full_slc_cache_is_named() {
    let sets = ["media.tlc.blocks=100"];
    let full = run("tlc-pslc", &sets, "sequential rw=write bs=1MiB qd=8", "1 x capacity", State::Full);
    match full.cache.as_ref().unwrap().written_share < 0.5 {
        true => says(&full, "the SLC cache was full"),
        false => panic!("{:?}", full.cache),
    }
}

#[test]
fn years_beyond_retention_are_of_wear_alone() {
    let rare = run("ssd-tlc", SMALL, "uniform rw=randwrite bs=4KiB rate=1/s", "200 io", State::Full);
    assert!(rare.lifetime.years.unwrap() > 100.0, "{:?}", rare.lifetime);
    assert_eq!(rare.lifetime.limited_by_retention(), Some(10));
    let text = run_text(&rare, Style { color: false, width: 200 });
    assert!(text.contains("limited by retention"), "{text}");
    let busy = run("ssd-tlc", SMALL, "uniform rw=randwrite bs=4KiB qd=32", "1 x capacity", State::Full);
    assert_eq!(busy.lifetime.limited_by_retention(), None);
}

/// Within what memory covers of the map reads are as fast as with all of it; beyond, a miss is another read of the flash.
#[test]
fn reads_beyond_what_the_memory_covers_wait_for_the_map() {
    const DEMAND: &[&str] = &[
        "array.ways=1",
        "media.tlc.blocks=32",
        "ftl.capacity=4 GiB",
        "ftl.buffer.size=2 MiB",
        "ftl.map.cache=32 KiB",
        "ftl.map.host_buffer=992 KiB",
        // The map is written once, and so lies on pages of every kind.
        "ftl.map.checkpoint=16 GiB",
    ];
    let read = |span: &str, sets: &[&str]| {
        let sets = [DEMAND, sets].concat();
        let workload = format!("uniform rw=randread bs=4KiB qd=1 span={span}");
        run("dramless-hmb-512gb", &sets, &workload, "40k io", State::Full)
    };
    // 1 MiB of memory covers 1 GiB: a quarter of the device.
    let (all, within, host) =
        (read("4GiB", &[]), read("512MiB", &[]), read("512MiB", &["ftl.map.cache=1 MiB"]));
    says(&all, "the map does not fit in memory");
    assert!(reasons(&within).iter().all(|reason| !reason.contains("map")), "{:?}", reasons(&within));
    let hits = |run: &RunResult| run.map.unwrap().hit_share();
    assert!((hits(&all) - 0.25).abs() < 0.02 && hits(&within) > 0.99, "{} {}", hits(&all), hits(&within));
    let mean = |run: &RunResult| run.read.latency.mean_ns;
    // 65 us to read and decode a unit on average, 2.56 us to transfer it; all is on the chip in one, nearly all in the host's
    // memory in the other.
    let (missing, fetching) = (mean(&all) - mean(&within), mean(&within) - mean(&host));
    assert!(
        (missing / (0.75 * 67_560.0 - 1000.0 * 0.75) - 1.0).abs() < 0.05,
        "{missing} ns more with misses"
    );
    assert!((fetching / 1000.0 - 1.0).abs() < 0.1, "{fetching} ns more from the host's memory");
}

/// What was never written is read without a cell: the share is counted by every kind of controller with a map, and said.
#[test]
fn reads_of_nothing_are_counted_and_said() {
    let kinds: [(&str, &[&str]); 5] = [
        ("ssd-tlc", SMALL),
        ("dramless-hmb-512gb", &["media.tlc.blocks=64", "ftl.spare=25 %"]),
        ("mlc-bast", &["media.mlc.blocks=64"]),
        ("hftl", &[]),
        ("envy-128m", &[]),
    ];
    for (design, sets) in kinds {
        let read = |state| run(design, sets, "uniform rw=randread bs=4KiB qd=4", "2000 io", state);
        let (fresh, full) = (read(State::Fresh), read(State::Full));
        let share = |run: &RunResult| metric("read.unwritten", run);
        assert_eq!((share(&fresh), share(&full)), (Some(1.0), Some(0.0)), "{design}");
        assert!(
            warnings(&fresh)[0].starts_with("100 % of the reads were of addresses without data"),
            "{:?}",
            warnings(&fresh)
        );
        assert_eq!(warnings(&full), Vec::<String>::new(), "{design}");
        assert_eq!(fresh.flash.as_ref().map(|flash| flash.reads), Some(0), "{design}");
    }
    // Half of what may be read was written.
    let preparation = "full,fill=50%".parse().unwrap();
    let half = prepared("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB qd=4", "20k io", preparation);
    assert!((half.unwritten_read_share - 0.5).abs() < 0.02, "{}", half.unwritten_read_share);
    let text = run_text(&half, Style { color: false, width: 200 });
    assert!(text.contains("! 5") && text.contains("% of the reads were of addresses without data"), "{text}");
    let text = compare_text::<&str>(
        &[vec![half.clone()]],
        &[],
        nvlab_report::Format::Human,
        nvlab_report::NameStyle::Whole,
    )
    .unwrap();
    assert!(text.contains("were of addresses without data"), "{text}");
    assert!(nvlab_report::html(&[half], "x").contains("were of addresses without data"));
}

/// More is offered than is served: what was not served is counted, the growth of the queue is a figure, and every report says
/// that latencies depend on the length of the run.
#[test]
fn a_queue_that_grows_is_said() {
    let offer = |rate: &str, until: &str| {
        run("ssd-tlc", SMALL, &format!("uniform bs=4KiB rate={rate}"), until, State::Full)
    };
    let value = |run: &RunResult, name: &str| metric(name, run).unwrap_or_else(|| panic!("{name}"));
    let over = offer("500k/s", "100 ms");
    let arrivals = over.arrivals.unwrap();
    // Poisson arrivals: 50 000 with a standard deviation of 224.
    assert!((arrivals.offered as f64 - 50_000.0).abs() < 1000.0, "{arrivals:?}");
    assert_eq!(arrivals.offered, over.requests_served + arrivals.waiting);
    assert!(arrivals.waiting > 10_000, "{arrivals:?}");
    assert_eq!(value(&over, "requests.missing"), arrivals.waiting as f64);
    let [offered, served] = ["rate.offered", "rate.served"].map(|name| value(&over, name));
    assert!((offered / 500e3 - 1.0).abs() < 0.02, "{offered}");
    let growth = value(&over, "queue.growth");
    assert!((growth / (offered - served) - 1.0).abs() < 0.15, "{growth} of {offered} - {served}");
    let said = "latencies depend on the length of the run";
    assert!(warnings(&over)[0].contains(said), "{:?}", warnings(&over));
    let text = run_text(&over, Style { color: false, width: 300 });
    assert!(text.contains(said) && text.contains("offered until the end of the run"), "{text}");
    assert!(nvlab_report::html(std::slice::from_ref(&over), "x").contains(said));
    let document = serde_json::to_string(&RunDocument::new(&over, &[])).unwrap();
    assert!(document.contains(said) && document.contains("\"growth_per_s\""), "{document}");
    let holds = |text: &str, run: &RunResult| Assertion::parse(text).unwrap().check(run).unwrap().holds;
    assert!(!holds("queue.growth < 1/s", &over) && !holds("requests.missing == 0", &over));
    // Of a number of requests all are served, however late.
    let all = offer("500k/s", "30k io");
    assert_eq!((value(&all, "requests.missing"), all.requests_served), (0.0, 30_000));
    assert!(value(&all, "queue.growth") > 100e3, "{:?}", all.arrivals);
    let little = offer("2000/s", "1 s");
    assert_eq!((value(&little, "queue.growth"), value(&little, "requests.missing")), (0.0, 0.0));
    assert_eq!(warnings(&little), Vec::<String>::new());
    assert!(holds("queue.growth < 1/s", &little));
    let closed = run("ssd-tlc", SMALL, "uniform bs=4KiB qd=32", "2000 io", State::Full);
    assert_eq!((closed.arrivals, metric("queue.growth", &closed)), (None, None));
}

/// The same of a trace at its own times, of one of several streams, and of transactions on a memory.
#[test]
fn a_queue_that_grows_is_said_of_traces_streams_and_transactions() {
    let file = std::env::temp_dir().join(format!("nvlab-overload-{}.csv", std::process::id()));
    // A write every 2 us, as MSR traces have it, in units of 100 ns: twice as many as the device takes.
    let line = |n: u64| format!("{},host,0,Write,{},4096,0\n", 20 * n, n * 7919 % 10_000 * 4096);
    std::fs::write(&file, (0..20_000).map(line).collect::<String>()).unwrap();
    let trace = format!("{}:msr", file.display());
    let trace = run("ssd-tlc", SMALL, &trace, "30 ms", State::Full);
    std::fs::remove_file(&file).unwrap();
    let arrivals = trace.arrivals.unwrap();
    assert_eq!((arrivals.offered, arrivals.waiting), (15_000, 15_000 - trace.requests_served));
    assert!(arrivals.waiting > 1000 && arrivals.growth_per_s > 0.0, "{arrivals:?}");

    let both = "uniform bs=4KiB rate=500k/s until=50ms + uniform rw=randread bs=4KiB qd=1 until=50ms";
    let both = run("ssd-tlc", SMALL, both, "50 ms", State::Full);
    let [writes, reads] = &both.tenants[..] else { panic!("{:?}", both.tenants) };
    assert_eq!(reads.arrivals, None);
    let arrivals = writes.arrivals.unwrap();
    assert_eq!(arrivals.offered, writes.write.count + arrivals.waiting);
    assert!(
        (arrivals.offered as f64 - 25_000.0).abs() < 700.0 && arrivals.growth_per_s > 100e3,
        "{arrivals:?}"
    );
    assert!(warnings(&both)[0].starts_with("stream uniform"), "{:?}", warnings(&both));
    assert_eq!(both.arrivals, Some(arrivals));

    let memory = run("envy-128m", &[], "tpca branches=1 rate=200k/s", "30 ms", State::Full);
    let arrivals = memory.arrivals.unwrap();
    assert!((arrivals.offered as f64 - 6000.0).abs() < 300.0, "{arrivals:?}");
    assert_eq!(arrivals.offered, memory.requests_served + arrivals.waiting);
    assert!(arrivals.growth_per_s > 10e3, "{arrivals:?}");
}

/// With a flush behind each write, time is spent on flushes, not in the host's software; what a commit takes is a figure.
#[test]
fn flushes_have_their_share_of_the_time() {
    let sets = [SMALL, &["media.dram.backup=none"]].concat();
    let flushed = run("ssd-tlc", &sets, "sequential bs=8KiB qd=1 flush=1 span=1GiB", "2000 io", State::Full);
    says(&flushed, "of the requests' time is flushes");
    assert!(reasons(&flushed).iter().all(|reason| !reason.contains("software")), "{:?}", reasons(&flushed));
    // One after the other: a write and its flush, without a gap.
    let commit = &flushed.commit;
    assert_eq!(commit.count, flushed.flush.count);
    let parts = flushed.write.latency.mean_ns + flushed.flush.latency.mean_ns;
    assert!((commit.latency.mean_ns / parts - 1.0).abs() < 1e-3, "{commit:?} of {parts}");
    assert_eq!(metric("commit.mean", &flushed), Some(commit.latency.mean_ns));
    let text = run_text(&flushed, Style { color: false, width: 200 });
    assert!(text.contains("    commit ") && text.contains("is flushes"), "{text}");
    // Protected: a flush takes no more than the way there.
    let kept = run("ssd-tlc", SMALL, "sequential bs=8KiB qd=1 flush=1 span=1GiB", "2000 io", State::Full);
    says(&kept, "host software and link protocol");
    assert!(reasons(&kept).iter().all(|reason| !reason.contains("flushes")), "{:?}", reasons(&kept));
}

/// At a rate, writes and flush are asked for at once; the flush covers the writes only when they are done.
#[test]
fn a_commit_ends_after_its_writes() {
    for sets in [SMALL, &[SMALL, &["media.dram.backup=none"]].concat()] {
        for workload in
            ["logger record=200B rate=100/s file=1MiB", "uniform bs=4KiB flush=1 rate=100/s arrivals=regular"]
        {
            let result = run("ssd-tlc", sets, workload, "3000 io", State::Full);
            let [write, flush, commit] =
                [&result.write, &result.flush, &result.commit].map(|of| of.latency.mean_ns);
            // A volatile buffer ends a flush after its writes; a record of the logger is a few writes.
            let (least, most) = if sets == SMALL { (write + flush, 4.0) } else { (flush, 1.2) };
            assert!(result.commit.count > 400, "{:?}", result.commit);
            assert!(
                commit > 0.99 * least && commit < most * (write + flush),
                "{commit} of {write} and {flush}"
            );
            assert!(result.commit.latency.p50_ns > result.write.latency.p50_ns, "{result:?}");
        }
    }
}

/// Where the device itself ends a flush after its writes, or takes one request at a time, the commit is not longer.
#[test]
fn a_flush_that_waited_does_not_wait_again() {
    for (design, sets) in [("bench-4g", vec![]), ("ssd-tlc", [SMALL, &["path.queue=1"]].concat())] {
        let flushes = "uniform bs=4KiB flush=1 rate=100/s arrivals=regular";
        let alone = run(design, &sets, flushes, "1000 io", State::Full);
        let [write, flush, commit] = [&alone.write, &alone.flush, &alone.commit].map(|of| of.latency.mean_ns);
        let both = format!("{flushes} + uniform rw=randread bs=4KiB rate=1/s");
        let beside = run(design, &sets, &both, "1000 io", State::Full).commit.latency.mean_ns;
        println!("{design}: {commit} of {write} and {flush}; beside others {beside}");
        assert!(
            commit > 0.99 * flush && commit < 1.01 * (write + flush),
            "{design}: {commit} of {write}, {flush}"
        );
        assert!((beside / commit - 1.0).abs() < 0.2, "{design}: {commit}, {beside}");
    }
}

/// What the buffer absorbs has not gone past the cache.
#[test]
fn what_is_absorbed_did_not_pass_the_cache() {
    let sets = ["media.qlc.blocks=200"];
    let absorbed = run("qlc-pslc", &sets, "uniform bs=4KiB qd=1 span=4KiB", "5000 io", State::Full);
    assert!(absorbed.write_amplification.host < 0.01);
    assert!(
        reasons(&absorbed).iter().all(|reason| !reason.contains("bypassed it")),
        "{:?}",
        reasons(&absorbed)
    );
}

/// Each address once a pass: early in one, little of what is written is dead elsewhere.
#[test]
fn part_of_a_pass_says_so_and_has_no_interval() {
    let sets = ["media.nand.blocks=64"];
    let ran = |until| run("bench-4g", &sets, "shuffled rw=randwrite bs=16KiB qd=8", until, State::Steady);
    let (part, whole) = (ran("0.3 x capacity"), ran("1 x capacity"));
    let says =
        |run: &RunResult| warnings(run).iter().any(|text| text.contains("of a pass over its addresses"));
    assert!(says(&part) && !says(&whole), "{:?} {:?}", warnings(&part), warnings(&whole));
    assert!(part.precision.iter().all(|precision| precision.within.is_none()), "{:?}", part.precision);
    assert!(whole.precision.iter().any(|precision| precision.within.is_some()), "{:?}", whole.precision);
}

/// Lines of optane-like have 64 KiB, its requests are written 4 KiB at a time: 256 B wear a whole line.
#[test]
fn wear_that_is_counted_by_lines_says_so() {
    let of = |bytes: &str| {
        run("optane-like", &[], &format!("uniform bs={bytes} qd=16"), "20k io", State::Fresh).lifetime.caveat
    };
    for (bytes, share) in [("256B", "1/256"), ("4KiB", "1/16"), ("64KiB", "1/16")] {
        let caveat = of(bytes).unwrap();
        assert!(caveat.contains(&format!("a write programmed {share} on average")), "{caveat}");
    }
}
