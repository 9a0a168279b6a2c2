//! From the text after `-w` to requests, through files.

use nvlab_trace::{Format, ReadOptions, read, write_file};
use nvlab_workload::{Batch, Op, Pacing, Request, Stream, Target, Work, WorkloadSpec};
use std::path::{Path, PathBuf};

fn data(name: &str) -> String {
    let folder = if name.contains(".fio") { "tests/data" } else { "../trace/tests/data" };
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name).display().to_string()
}

fn all(stream: &mut Stream) -> Vec<Request> {
    let Work::Requests(workload) = &mut stream.work else { panic!("{:?} requests no blocks", stream.name) };
    let (mut batch, mut requests) = (Batch::new(), Vec::new());
    while workload.fill(&mut batch) > 0 {
        requests.extend_from_slice(batch.requests());
        batch.clear();
    }
    requests
}

#[test]
fn a_trace_with_changes() {
    let spec = WorkloadSpec::parse(&format!("{} compact copies=2", data("small_msr.csv"))).unwrap();
    let mut opened = spec.open(Target::blocks(1 << 30, 4096), 1).unwrap();
    assert_eq!(
        opened.notes,
        [
            "msr: 4 requests from 4 lines; 1 out of order, sorted",
            // Three extents; 7014609920 is not whole 4 KiB; the last request ends 602112 B into the third.
            "4 requests over 2.57 MiB (recorded over 8.8 GiB); 1 widened by 4 KiB in total",
        ]
    );
    let requests = all(&mut opened.streams[0]);
    assert_eq!(requests.len(), 8);
    assert!(requests.is_sorted_by_key(|r| r.at));
}

#[test]
fn a_trace_for_large_units_is_widened() {
    let spec = WorkloadSpec::parse(&data("small_mqsim.trace:mqsim")).unwrap();
    let opened = spec.open(Target::blocks(1 << 30, 4096), 1).unwrap();
    assert_eq!(
        opened.notes[1],
        "3 requests over 3.01 MiB (recorded over 3 MiB); 1 widened by 3.5 KiB in total"
    );
    assert_eq!(spec.open(Target::blocks(1 << 30, 512), 1).unwrap().notes[1], "3 requests over 3 MiB");
}

#[test]
fn a_job_file_and_one_of_its_sections() {
    let mut opened =
        WorkloadSpec::parse(&data("db.fio")).unwrap().open(Target::blocks(64 << 20, 512), 1).unwrap();
    let [log, tables] = &mut opened.streams[..] else { panic!("two jobs run together") };
    assert_eq!((log.name.as_str(), tables.work.pacing()), ("log", Pacing::Closed { depth: 16 }));
    let log = all(log);
    assert_eq!(log.iter().filter(|r| r.op == Op::Flush).count(), 1024);
    let tables = all(tables);
    // number_ios ends a job earlier, never later: 16 MiB would be 2048 requests.
    assert_eq!(tables.len(), 1500);
    assert!(tables.iter().all(|r| r.offset >= 16 << 20 && r.end() <= 32 << 20));
    let one =
        WorkloadSpec::parse(&data("db.fio:log")).unwrap().open(Target::blocks(64 << 20, 512), 1).unwrap();
    assert_eq!(one.streams.len(), 1);
}

/// A directory of this test's own, removed at its end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn conversion_through_files_and_compression() {
    let scratch = Scratch(std::env::temp_dir().join(format!("nvlab-workload-{}", std::process::id())));
    std::fs::create_dir(&scratch.0).unwrap();
    let (columns, _) = read(Path::new(&data("small_alibaba.csv")), &ReadOptions::default()).unwrap();
    for (name, format) in [
        ("a.nvt", Format::Nvt),
        ("a.parquet", Format::Parquet),
        ("a.csv.gz", Format::Alibaba),
        ("a.csv.zst", Format::Alibaba),
        ("a.iolog", Format::FioIolog),
        ("a.spc", Format::Spc),
    ] {
        let path = scratch.0.join(name);
        write_file(&columns, format, &path).unwrap();
        let (again, report) = read(&path, &ReadOptions::default()).unwrap();
        assert_eq!(report.format, Some(format));
        assert!(columns.iter().eq(again.iter()), "{name}");
        let twice = write_file(&columns, format, &path).unwrap_err().to_string();
        assert!(twice.contains("exists"), "a file is not overwritten: {twice}");
    }
    // The column file keeps where the trace came from.
    let (again, _) = read(&scratch.0.join("a.nvt"), &ReadOptions::default()).unwrap();
    assert_eq!(again.origin, columns.origin);
}

#[test]
fn what_is_said_of_a_table_is_checked_before_it_is_read() {
    let error = |text: &str| WorkloadSpec::parse(text).unwrap_err().to_string();
    assert_eq!(
        error("t.csv columns=time_s,op,offset_bytes"),
        "workload 't.csv columns=time_s,op,offset_bytes': columns=time_s,op,offset_bytes is wrong: length_UNIT \
         is missing; needed are time_UNIT, op, offset_UNIT and length_UNIT"
    );
    let format = error("t.csv:msr separator=;");
    assert!(
        format.ends_with("columns, separator, header and words are those of a table, not of msr"),
        "{format}"
    );
}
