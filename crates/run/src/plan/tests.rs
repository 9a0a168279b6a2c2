//! Limits, ends of runs, keys, and the cache of traces.

use super::*;
use crate::Figure;
use nvlab_units::Span;
use nvlab_workload::Serves;
use std::path::{Path, PathBuf};

fn parse(text: &str) -> Result<Until, String> {
    text.parse()
}

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("nvlab-plan-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn task(source: &Arc<Source>, until: Option<&str>) -> Task {
    let design = Design::load("bench-4g", &[]).unwrap();
    let until = until.map(|text| text.parse().unwrap());
    Task::new(design, "bench-4g".into(), source, Settings { seed: 1, until, state: State::Fresh.into() })
        .unwrap()
}

#[test]
fn limits_are_times_requests_data_and_capacities() {
    assert_eq!(parse("60 s"), Ok(Until::Time(Span::from_seconds(60.0))));
    assert_eq!(parse("1e6 io"), Ok(Until::Requests(1_000_000)));
    assert_eq!(parse("2000io"), Ok(Until::Requests(2000)));
    assert_eq!(parse("2 TiB"), Ok(Until::Bytes(2 << 40)));
    assert_eq!(parse("3 x capacity"), Ok(Until::Capacities(3.0)));
    assert_eq!(parse("0.5x capacity"), Ok(Until::Capacities(0.5)));
    assert_eq!(parse("2%"), Ok(Until::Within(None, 0.02)));
    assert_eq!(parse("wa within 2 %"), Ok(Until::Within(Some(Figure::Waf), 0.02)));
    for text in ["2 %", "waf within 0.5 %", "write.p99_9 within 5 %"] {
        assert_eq!(parse(text).unwrap().argument(), text);
    }
    for (text, words) in [
        ("60", "is not a limit: write simulated time (60 s)"),
        ("0 io", "would serve nothing"),
        ("x capacity", "e.g. 3 x capacity"),
        ("-1 x capacity", "e.g. 3 x capacity"),
        ("many io", "does not begin with a number"),
        ("300d", "at most 213 days"),
        ("0 %", "between 0 % and 100 %"),
        ("wav within 2%", "did you mean `waf`?"),
        ("price within 2%", "the precision of price cannot be estimated"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(words) && error.contains(text), "{text}: {error}");
    }
}

#[test]
fn a_run_ends_where_its_workload_ends_or_after_a_capacity() {
    let about = |text: &str, until| {
        let source = Source::read(text, None).unwrap();
        let plan = task(&source, until).plan;
        (plan.workload_about, plan.requests_asked)
    };
    let text = |about: &str, asked| (about.to_string(), asked);
    let closed = "closed loop of depth 1 over";
    assert_eq!(about("uniform", None).0.split(", ").nth(1), Some("until 1 x capacity is written"));
    assert_eq!(about("uniform", None).1, None);
    assert!(about("uniform read=100%", None).0.ends_with(", until 1000000 requests"));
    assert_eq!(
        about("uniform span=1GiB until=50io", None),
        text(&format!("{closed} 1 GiB, to its end"), Some(50))
    );
    let both = about("uniform span=1GiB until=50io", Some("7 io"));
    assert_eq!(both, text(&format!("{closed} 1 GiB, until 7 requests"), Some(7)));
    assert_eq!(about("uniform until=50io", Some("1 s")).1, None);
}

/// What takes longer than simulated time can be is refused before it begins, with the key and the limit.
#[test]
fn a_run_that_takes_longer_than_simulated_time_is_refused() {
    let open = |text: &str, until: Option<&str>| {
        let source = Source::read(text, None)?;
        let design = Design::load("bench-4g", &[]).unwrap();
        let until = until.map(|text| text.parse().unwrap());
        Task::new(design, "bench-4g".into(), &source, Settings { seed: 1, until, state: State::Fresh.into() })
    };
    for (text, until, days) in [
        ("uniform rate=0.01/s arrivals=regular", Some("1e6 io"), "1157 days"),
        ("uniform rate=0.01/s arrivals=regular until=1e6io", None, "1157 days"),
        // A million units of 4 KiB a capacity.
        ("uniform rate=100/h", Some("1 x capacity"), " days"),
        ("uniform rate=1/s", Some("200 GiB"), " days"),
    ] {
        let error = open(text, until).map(|_| ()).unwrap_err().to_string();
        let said = ["rate=", "at most 213 days", "--until", days];
        assert!(said.iter().all(|words| error.contains(words)), "{text}: {error}");
    }
    let error = open("uniform rate=1/s until=300d", None).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("until: `300d` is not a time: it is too large; at most 213 days"), "{error}");
    for (text, until) in [
        ("uniform rate=0.1/s", Some("1e6 io")),
        ("uniform rate=0.01/s", Some("200 d")),
        ("uniform qd=1", Some("1e9 io")),
        ("uniform rate=100k/s", Some("10 x capacity")),
    ] {
        assert!(open(text, until).is_ok(), "{text}");
    }
}

/// Repetitions prepare anew: with one prepared device for all of them they would agree in what it did by accident.
#[test]
fn repetitions_have_seeds_and_preparations_of_their_own() {
    let first = Settings { seed: 5, until: None, state: "steady,fill=50%,seed=3".parse().unwrap() };
    assert_eq!(first.repeated(0), first);
    let third = Settings { seed: 7, until: None, state: "steady,fill=50%,seed=5".parse().unwrap() };
    assert_eq!(first.repeated(2), third);
    // A fresh device is drawn by the seed of its run.
    let fresh = Settings { seed: 1, until: None, state: State::Fresh.into() };
    assert_eq!(fresh.repeated(2), Settings { seed: 3, ..fresh });
}

#[test]
fn a_result_has_the_key_of_its_task() {
    let source = Source::read("uniform until=500io flush=100", None).unwrap();
    let task = task(&source, None);
    let result = task.run(&mut |_, _| true).unwrap();
    assert_eq!(result.key, task.key);
    assert_eq!((result.write.count, result.flush.count, result.requests_asked), (500, 5, None));
}

#[test]
fn a_trace_is_converted_once_and_reads_the_same() {
    let dir = folder("cache");
    let (trace, cache) = (dir.join("t.csv"), dir.join("cache"));
    let line =
        |i: u64| format!("{},h,0,{},{},4096,0\n", 1000 * i, ["Read", "Write"][i as usize % 2], i * 4096);
    std::fs::write(&trace, (0..10_000).map(line).collect::<String>()).unwrap();
    let text = format!("{}:msr", trace.display());
    let read = || Source::read(&text, Some(&cache)).unwrap();
    let (first, second) = (read(), read());
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 2);
    let plain = Source::read(&text, None).unwrap();
    for source in [&first, &second] {
        assert_eq!((source.hash(), task(source, None).key), (plain.hash(), task(&plain, None).key));
        assert_eq!(task(source, None).plan.workload_about, task(&plain, None).plan.workload_about);
    }
    assert_eq!(task(&first, None).plan.requests_asked, Some(10_000));

    // The same name with other content is another run.
    std::fs::write(&trace, (0..10_001).map(line).collect::<String>()).unwrap();
    assert_ne!(task(&read(), None).key, task(&first, None).key);

    // A cache that cannot be written is only mentioned.
    let nowhere = Source::read(&text, Some(Path::new("/proc/nowhere"))).unwrap();
    assert!(nowhere.asides()[0].starts_with("the converted trace cannot be cached in /proc/nowhere: "));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn several_jobs_and_workloads_run_together() {
    let dir = folder("jobs");
    let file = dir.join("db.fio").display().to_string();
    std::fs::write(&file, "[global]\nsize=1m\n[log]\nrw=write\n[data]\nrw=randread\n").unwrap();
    let open = |text: &str| Source::read(text, None).unwrap().open(1 << 30, Serves::Blocks, 1);
    assert_eq!(open(&file).unwrap().about, "2 streams: log, data over 1 MiB");
    assert!(open(&format!("{file}:log")).unwrap().about.starts_with("job log: closed loop"));
    let both = open(&format!("{file} + zipf")).unwrap();
    assert_eq!(both.about, "3 streams: log, data, zipf over 1 GiB");
    assert!(
        open("zipf + iozone").unwrap_err().to_string().contains("cannot be combined with other workloads")
    );
    // What a variable stands for is part of what a result depends on.
    std::fs::write(&file, "[a]\nrw=write\nsize=${NVLAB_TEST_SIZE}\n").unwrap();
    let error = Source::read(&file, None).unwrap().open(1 << 30, Serves::Blocks, 1).unwrap_err().to_string();
    assert!(
        error
            .ends_with("db.fio:3: size is the variable NVLAB_TEST_SIZE, which is not set in the environment"),
        "{error}"
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

/// 50 us of computing before each of 400 writes that took 100 us where they were recorded; every tenth two together.
#[test]
fn a_recorded_program_keeps_what_it_computes() {
    let dir = folder("program");
    let mut columns = nvlab_trace::columns::Columns::new(Default::default());
    for number in 0..400u64 {
        let (turn, pair) = (number / 10 * 9 + number % 10 - u64::from(number % 10 == 9), number % 10 == 9);
        let at = nvlab_units::Time::ZERO + Span::from_us(turn * 150 + 50 - if number == 0 { 50 } else { 0 });
        let (offset, op) = (number * 4096, nvlab_workload::Op::Write);
        let request = nvlab_workload::Request { at, offset, bytes: 4096, op, ..Default::default() };
        columns.push_answered(request, Span::from_us(100));
        assert!(!pair || columns.at_ps().windows(2).next_back().is_some_and(|two| two[0] == two[1]));
    }
    let file = dir.join("program.nvt");
    let nvt = nvlab_trace::Format::Nvt;
    nvlab_trace::write_file(&columns, nvt, &file).unwrap();
    let source = Source::read(&format!("{} think=keep", file.display()), None).unwrap();
    let task = task(&source, None);
    assert!(task.plan.workload_about.contains("at the pace of the recorded program"));
    let result = task.run(&mut |_, _| true).unwrap();
    let program = result.program.expect("it was a program");
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}, {expected}");
    // 360 turns; what the first does not compute, since time begins with it, the second does.
    near(program.computing_s, 360.0 * 50e-6);
    near(program.recorded_s, 360.0 * 150e-6);
    near(program.recorded_waiting_s, 360.0 * 100e-6);
    near(program.waiting_s + program.computing_s, result.simulated_s);
    // Of two together the slower counts; nothing else is under way side by side.
    let all = result.write.latency.mean_ns * 400e-9;
    let slowest = result.write.latency.max_ns as f64 * 1e-9;
    assert!(
        program.waiting_s < all && program.waiting_s > all - 40.0 * slowest,
        "{} of {all}",
        program.waiting_s
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_is_in_use_says_what_the_rest_of_the_device_holds() {
    let design = Design::load("bench-4g", &["media.nand.blocks=256".into()]).unwrap();
    let waf = |text: &str, state: &str| {
        let source = Source::read(text, None).unwrap();
        let settings =
            Settings { seed: 1, until: Some(Until::Requests(50_000)), state: state.parse().unwrap() };
        let task = Task::new(design.clone(), "small".into(), &source, settings)?;
        let run = task.run(&mut |_, _| true).unwrap();
        let said = source.in_use().map_or("steady at WA".to_string(), |in_use| format!("; {in_use}"));
        assert!(run.precondition.about.contains(&said), "{}", run.precondition.about);
        Ok::<f64, WorkloadError>(run.write_amplification.total)
    };
    let [kept, trimmed] =
        ["no", "yes"].map(|word| waf(&format!("uniform used=30% trimmed={word}"), "steady").unwrap());
    // As the older words say it: the rest was filled once, or never written.
    let older = waf("uniform span=30%", "steady").unwrap();
    assert!((kept / older - 1.0).abs() < 0.03, "{kept} {older}");
    assert!(kept > 1.5 * trimmed, "{kept} {trimmed}");
    // The part in use has all of the free space to itself: 30 % in use of 88 %. Uniform writes over so little need hardly any cleaning.
    assert!((1.0..1.1).contains(&trimmed), "{trimmed}");
    let both = waf("uniform used=30% trimmed=yes", "steady,fill=50%").unwrap_err().to_string();
    assert!(both.contains("keep one"), "{both}");
    let twice =
        Source::read("uniform used=30% trimmed=yes + uniform used=40% trimmed=yes", None).unwrap_err();
    assert!(twice.to_string().contains("once for all workloads"), "{twice}");
}

#[test]
fn what_takes_long_is_said_with_its_reason_before_it_begins() {
    let notes = |design: &str, text: &str, state: &str| {
        let design = Named::load(design, &[]).unwrap().design;
        let source = Source::read(text, None).unwrap();
        let settings = Settings { seed: 1, until: None, state: state.parse().unwrap() };
        Task::new(design, "large".into(), &source, settings).unwrap().notes.join("\n")
    };
    for (design, text, why) in [
        ("p4500-1tb", "sequential bs=128KiB", "not drawn independently"),
        ("p4500-1tb", "uniform qd=4 + uniform rate=1k/s", "some streams have a rate and some a depth"),
        ("p4500-1tb", "uniform bs=2KiB", "writes are not whole mapping units"),
    ] {
        let found = notes(design, text, "steady");
        assert!(found.contains("of processor time") && found.contains(why), "{text}: {found}");
        assert!(!notes(design, text, "full").contains("processor time"), "{text}");
    }
    // Many programs for each write: a drive of 145 GB is not small.
    let small =
        notes("dramless-hmb-512gb,media.tlc.blocks=128,ftl.spare=25%", "hotcold hot=30/70 qd=64", "steady");
    assert!(
        small.contains("60 s of processor time") && small.contains("map is not entirely in memory"),
        "{small}"
    );
    for text in [
        "uniform",
        "zipf flush=8 rate=1k/s + uniform rate=2k/s",
        "uniform rw=randread",
        "uniform qd=4 + uniform rw=randread",
    ] {
        assert_eq!(notes("p4500-1tb", text, "steady"), "", "{text}");
    }
}

/// A workload on the part that is filled does not reach beyond it, however the two are rounded.
#[test]
fn a_span_as_large_as_what_is_filled_stays_inside() {
    let notes = |workload: &str, state: &str| {
        let source = Arc::new(Source::read(workload, None).unwrap());
        let settings = Settings { seed: 1, until: None, state: state.parse().unwrap() };
        let design = Design::load("bench-4g", &[]).unwrap();
        Task::new(design, "bench-4g".into(), &source, settings).unwrap().notes.join("\n")
    };
    assert!(!notes("uniform span=30%", "full,fill=30%").contains("reaches beyond"));
    assert!(notes("uniform span=31%", "full,fill=30%").contains("reaches beyond the "));
}
