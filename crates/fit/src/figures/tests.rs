//! Files of figures: what is read, what is refused, what cannot be.

use super::*;

fn file(figures: &str) -> String {
    format!(
        "schema = 1\n[drive]\nname = \"d\"\ncapacity = \"1 TB\"\ninterface = \"PCIe 3.0 x4\"\nclass = \"client\"\n\
         cells = \"TLC\"\n{figures}"
    )
}

fn refused(figures: &str) -> String {
    Figures::read("d.toml", &file(figures)).unwrap_err().to_string()
}

#[test]
fn the_template_is_a_file_of_figures() {
    let figures = Figures::read("t.toml", &template("my-own")).unwrap();
    assert_eq!(figures.drive.name, "my-own");
    assert_eq!(figures.figures.len(), 8);
    assert_eq!(figures.figures[3].what.workload(128), "uniform rw=randread bs=4KiB qd=128");
    assert_eq!(figures.name(&figures.figures[2]), "sequential write 128 KiB QD32, after the cache");
    assert_eq!(doubts::doubts(&figures), []);
}

#[test]
fn mistakes_are_told_at_their_lines() {
    assert_eq!(refused(""), "d.toml:1: a figures file needs [[figure]] or [[measured]], at least one");
    let text = refused("[[figure]]\nwhat = \"random raed\"\nvalue = \"600k IOPS\"\n");
    assert!(text.starts_with("d.toml:9: `what` is one of sequential read,"), "{text}");
    let text = refused("[[figure]]\nwhat = \"random read\"\nvalue = \"600\"\n");
    assert!(text.starts_with("d.toml:10: `value` is requests or bytes a second"), "{text}");
    let text = refused("[[figure]]\nwhat = \"cache\"\nvalue = \"42 GB\"\ntollerance = \"5 %\"\n");
    assert!(text.contains("did you mean `tolerance`?"), "{text}");
}

#[test]
fn what_cannot_be_is_said() {
    let text = file(
        "[[figure]]\nwhat = \"sequential read\"\nvalue = \"5 GB/s\"\n[[figure]]\nwhat = \"random read\"\nvalue = \"600k IOPS\"\nqd = 32\n\
         [[figure]]\nwhat = \"random read\"\nvalue = \"85 us\"\n",
    );
    let doubts = doubts::doubts(&Figures::read("d.toml", &text).unwrap());
    assert_eq!(doubts.len(), 2, "{doubts:?}");
    assert!(doubts[0].text.contains("more than PCIe 3.0 x4 can carry"), "{}", doubts[0].text);
    assert!(
        doubts[1].text.contains("would need a latency of 53.3 us, and 85.0 us is stated"),
        "{}",
        doubts[1].text
    );
    assert_eq!(doubts[1].figures, [1, 2]);
}

/// A job of fio: name, group, options, and of reads and of writes requests a second, mean and p99 in us.
type Job<'a> = (&'a str, u32, &'a str, [f64; 3], [f64; 3]);

/// fio's JSON of jobs.
fn fio(jobs: &[Job<'_>]) -> tempfile::NamedTempFile {
    let side = |[per_s, mean, p99]: [f64; 3]| {
        serde_json::json!({
            "io_bytes": per_s * 4096.0 * 60.0, "bw_bytes": per_s * 4096.0, "iops": per_s,
            "lat_ns": { "mean": mean * 1e3 }, "clat_ns": { "percentile": { "99.000000": p99 * 1e3 } },
        })
    };
    let job = |(name, group, options, read, write): &Job<'_>| {
        let pairs = options.split(' ').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let options: serde_json::Map<_, _> =
            pairs.map(|(key, value)| (key.to_string(), value.into())).collect();
        serde_json::json!({
            "jobname": name, "groupid": group, "error": 0, "job options": options, "read": side(*read), "write": side(*write),
        })
    };
    let all = serde_json::json!({
        "fio version": "fio-3.33",
        "global options": { "ioengine": "io_uring", "direct": "1", "filename": "/dev/nvme0n1", "size": "100%", "bs": "4k" },
        "jobs": jobs.iter().map(job).collect::<Vec<_>>(),
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    // fio warns before its JSON.
    std::fs::write(file.path(), format!("fio: a warning\n{all:#}")).unwrap();
    file
}

const NOTHING: [f64; 3] = [0.0; 3];

fn with_fio(file: &tempfile::NamedTempFile, more: &str) -> Result<Figures, FileError> {
    let text = self::file(&format!("[[measured]]\nfile = \"{}\"\n{more}", file.path().display()));
    Figures::read("d.toml", &text)
}

#[test]
fn plain_jobs_of_fio_are_figures() {
    let file = fio(&[
        ("reads", 0, "rw=randread iodepth=8 numjobs=4 group_reporting=1", [200e3, 150.0, 400.0], NOTHING),
        ("mix", 1, "rw=randrw rwmixread=70 iodepth=32", [70e3, 300.0, 900.0], [30e3, 90.0, 2000.0]),
        ("copy", 2, "rw=read bs=128k iodepth=2 numjobs=2", [1000.0, 1.0, 2.0], NOTHING),
        ("copy", 2, "rw=read bs=128k iodepth=2 numjobs=2", [3000.0, 1.0, 2.0], NOTHING),
        ("skewed", 3, "rw=randread random_distribution=zipf:1.1", [1000.0, 1.0, 2.0], NOTHING),
        ("a", 4, "rw=randread", [1000.0, 1.0, 2.0], NOTHING),
        ("b", 4, "rw=randwrite", NOTHING, [1000.0, 1.0, 2.0]),
        ("synced", 5, "rw=randwrite fsync=1", NOTHING, [1000.0, 1.0, 2.0]),
        ("dead", 6, "rw=randread", NOTHING, NOTHING),
        ("stream", 7, "rw=write bs=128k", NOTHING, [1000.0, 1.0, 2.0]),
    ]);
    let figures = with_fio(&file, "state = \"steady\"\n").unwrap();
    let told: Vec<String> = figures
        .figures
        .iter()
        .map(|figure| format!("{}: {}", figures.name(figure), figure.what.unit().shown(figure.value)))
        .collect();
    assert_eq!(
        told,
        [
            "random read 4 KiB QD32, steady: 200 k/s",
            "random read 4 KiB QD32, 70 % read, steady: 70.0 k/s",
            "sequential read 128 KiB QD4, steady: 16.4 MB/s",
        ]
    );
    let [mean, p99] = figures.figures[1].latencies.unwrap();
    assert!((mean - 300e-6).abs() < 1e-12 && (p99 - 900e-6).abs() < 1e-12, "{mean} {p99}");
    assert_eq!(figures.figures[2].latencies, None, "percentiles of two copies");
    assert_eq!(figures.figures[1].what.workload(32), "uniform read=70% bs=4KiB qd=32");
    let notes = figures.notes.join("\n");
    let others: Vec<(&str, &str)> =
        figures.others.iter().map(|job| (job.name.as_str(), &job.why[..12])).collect();
    assert_eq!(others, [("skewed", "it prefers s"), ("synced", "it flushes o"), ("stream", "it writes in")]);
    assert_eq!(figures.others[0].sides[0].per_s, 1000.0);
    for why in ["not compared: a: it runs beside 1 others", "not compared: dead: it served nothing"] {
        assert!(notes.contains(why), "{why}: {notes}");
    }
    assert!(!notes.contains("does not say how the drive was prepared"), "{notes}");
}

#[test]
fn how_a_drive_was_prepared_is_said_or_assumed_aloud() {
    let job = |rate: f64, options| fio(&[("w", 0, options, NOTHING, [rate, 90.0, 200.0])]);
    let file = job(1e3, "rw=randwrite iodepth=4");
    let figures = with_fio(&file, "").unwrap();
    assert!(figures.name(&figures.figures[0]).ends_with(", new"), "a client drive, little written");
    assert!(
        figures.notes[0].contains("writes of w are taken as made in state \"cache\""),
        "{:?}",
        figures.notes
    );
    // Of the 1 TB, all and more were written.
    let figures = with_fio(&job(5e6, "rw=randwrite iodepth=4"), "").unwrap();
    assert!(figures.name(&figures.figures[0]).ends_with(", steady"));
    let part = with_fio(&job(1e3, "rw=randwrite size=10g"), "state = \"steady\"\n").unwrap_err().to_string();
    assert!(part.contains("nothing of it can be fitted: w: it writes to a part"), "{part}");
}

#[test]
fn a_probe_is_runs_of_fio_and_a_state() {
    let run = |name, options, read, write| {
        let text = std::fs::read_to_string(fio(&[(name, 0, options, read, write)]).path()).unwrap();
        serde_json::from_str::<serde_json::Value>(&text[text.find('{').unwrap()..]).unwrap()
    };
    let rate = [1e3, 90.0, 200.0];
    let runs =
        [run("r", "rw=randread iodepth=4", rate, NOTHING), run("w", "rw=randwrite iodepth=4", NOTHING, rate)];
    let file = tempfile::NamedTempFile::new().unwrap();
    let probe = serde_json::json!({ "schema": crate::probe::SCHEMA, "state": "full", "runs": runs });
    std::fs::write(file.path(), probe.to_string()).unwrap();
    let figures = with_fio(&file, "").unwrap();
    let names: Vec<String> = figures.figures.iter().map(|figure| figures.name(figure)).collect();
    assert_eq!(names, ["random read 4 KiB QD4", "random write 4 KiB QD4"]);
    assert_eq!(figures.notes, Vec::<String>::new(), "the state is known");
}

#[test]
fn a_burst_tells_the_cache() {
    // 10 GB a part: 15 GB at 3 GB/s, the rest at 1 GB/s.
    let part = |name, seconds: f64| {
        let rate = 10e9 / seconds / 1048576.0;
        let file = fio(&[(name, 0, "rw=write bs=1m iodepth=32", NOTHING, [rate, 90.0, 200.0])]);
        let text = std::fs::read_to_string(file.path()).unwrap();
        let mut run = serde_json::from_str::<serde_json::Value>(&text[text.find('{').unwrap()..]).unwrap();
        run["jobs"][0]["write"]["io_bytes"] = 10e9.into();
        run["jobs"][0]["write"]["bw_bytes"] = (10e9 / seconds).into();
        run
    };
    let runs = [
        part("burst-1", 10.0 / 3.0),
        part("burst-2", 5.0 / 3.0 + 5.0),
        part("burst-3", 10.0),
        part("burst-4", 10.0),
        part("burst-rested", 8.0),
    ];
    let read = |state: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        let probe = serde_json::json!({ "schema": crate::probe::SCHEMA, "state": state, "runs": runs });
        std::fs::write(file.path(), probe.to_string()).unwrap();
        with_fio(&file, "")
    };
    let figures = read("fresh").unwrap();
    assert_eq!(
        told(&figures),
        [
            "sequential write 1 MiB QD32, new: 3.00 GB/s",
            "sequential write 1 MiB QD32, after the cache: 1.00 GB/s",
            "cache: 15.0 GB"
        ]
    );
    assert!(read("full").unwrap_err().help[0].contains("only of an empty drive"));
}

#[test]
fn what_is_not_of_fio_is_refused() {
    let refused = |text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        with_fio(&file, "").unwrap_err().to_string()
    };
    assert!(refused("").contains("neither fio's JSON"), "empty");
    assert!(refused("{\"jobs\": []}").contains("it has no \"fio version\""));
    assert!(refused("{\"fio version\": \"fio-2.1\", \"jobs\": []}").contains("fio 3 is needed"));
    assert!(!refused("{\"fio version\": \"fio-10.0\", \"jobs\": []}").contains("fio 3 is needed"));
    let broken = "{\"fio version\": \"fio-3.1\", \"jobs\": [{\"jobname\": \"x\", \"error\": 5}]}";
    assert!(refused(broken).contains("`x` ended with error 5"), "{}", refused(broken));
    assert!(refused("{\"fio version\": \"fio-3.1\", \"jobs\": [").contains("EOF"));
}

fn measured(text: &str, more: &str) -> Result<Figures, FileError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    with_fio(&file, more)
}

fn told(figures: &Figures) -> Vec<String> {
    let one =
        |figure: &Figure| format!("{}: {}", figures.name(figure), figure.what.unit().shown(figure.value));
    figures.figures.iter().map(one).collect()
}

#[test]
fn the_matrix_of_snias_test_is_figures() {
    let text = "IOPS of a drive\n\nblock     100/0 IOPS  65/35 IOPS  0/100 IOPS\n\
        64.0 KiB       2 500       1 000         300\n4 KiB         39 992       2 000       1 240\n\nsteady\n";
    let expected = [
        "random read 64 KiB QD32, steady: 164 MB/s",
        "random read 64 KiB QD32, 65 % read, steady: 42.6 MB/s",
        "random write 64 KiB QD32, steady: 19.7 MB/s",
        "random read 4 KiB QD32, steady: 40.0 k/s",
        "random read 4 KiB QD32, 65 % read, steady: 1.30 k/s",
        "random write 4 KiB QD32, steady: 1.24 k/s",
    ];
    assert_eq!(told(&measured(text, "qd = 32").unwrap()), expected);
    let markdown = "| bs | 100/0 | 65/35 | 0/100 |\n|---|--:|--:|--:|\n| 64k | 2,500 | 1,000 | 300 |\n| 4k | 39992 | 2000 | 1240 |\n";
    assert_eq!(told(&measured(markdown, "qd = 32").unwrap()), expected);
    let error = measured(text, "").unwrap_err().to_string();
    assert!(error.contains("a matrix does not say how many requests") && error.contains(":4:"), "{error}");
    let error = measured(&text.replace("2 500", "fast"), "qd = 32").unwrap_err().to_string();
    assert!(error.contains("`fast` is no rate"), "{error}");
}

#[test]
fn the_lists_of_nvlabs_test_are_figures() {
    let text = "test,block_bytes,read_percent,iops,bytes_per_s,latency_mean_us\n\
        Throughput,131072,0,1000,131072000,64000\nLatency,4096,100,20000,81920000,50.0\nLatency,4096,65,2000,8192000,500\n";
    let expected = [
        "sequential write 128 KiB QD64: 131 MB/s",
        "random read 4 KiB QD1, steady: 20.0 k/s",
        "random read 4 KiB QD1, 65 % read, steady: 1.30 k/s",
    ];
    assert_eq!(told(&measured(text, "").unwrap()), expected);
    let people = "Throughput · mine\n   block  reads    IOPS  throughput     mean\n128 KiB    0 %   1 000    131 MB/s  64.0 ms\n\
        Latency · mine\n   block  reads    IOPS  throughput     mean\n4.00 KiB  100 %  20 000   81.9 MB/s  50.0 us\n4.00 KiB   65 %   2 000   8.2 MB/s  500 us\n";
    assert_eq!(told(&measured(people, "").unwrap()), expected);
}

#[test]
fn a_latency_log_is_a_figure() {
    // Eight in flight, each served after 400 us: one every 50 us; the last percent takes ten times as long.
    let line = |number: u64, offset: u64| {
        let latency = if number % 50 == 49 { 4_000_000 } else { 326_531 };
        format!("{}, {latency}, 0, 4096, {offset}, 0\n", number / 20)
    };
    let random: String = (0..20_000).map(|number| line(number, (number * 7919 % 1009) * 4096)).collect();
    let figures = measured(&random, "").unwrap();
    assert_eq!(told(&figures), ["random read 4 KiB QD8: 20.0 k/s"]);
    let [mean, p99] = figures.figures[0].latencies.unwrap();
    assert!((mean - 400e-6).abs() < 1e-6 && p99 == 4e-3, "{mean} {p99}");
    assert!(figures.notes[0].contains("a closed loop of 8 requests"), "{:?}", figures.notes);
    let ordered: String = (0..20_000).map(|number| line(number, number * 4096)).collect();
    assert_eq!(told(&measured(&ordered, "").unwrap()), ["sequential read 4 KiB QD8: 82.0 MB/s"]);
    let averaged: String = (0..200).map(|number| format!("{number}, 400000, 0, 0\n")).collect();
    let error = measured(&averaged, "").unwrap_err().to_string();
    assert!(error.contains("log_avg_msec"), "{error}");
    let broken = random.replacen("326531", "x", 2);
    assert!(measured(&broken, "").is_err());
}
