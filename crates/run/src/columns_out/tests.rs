//! Tests: a run directory is written once, whole, and reads back.

use super::*;
use crate::sample;
use nvlab_table::{Table, Values};
use std::fs;

/// A directory of its own for each test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("nvlab-columns-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&path);
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entry = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(dir).unwrap().map(entry).collect();
    names.sort();
    names
}

#[test]
fn a_run_is_kept_and_read_back_exactly() {
    let scratch = Scratch::new("exact");
    let mut run = sample::rich("ssd-tlc ftl.clean.kind=fifo", 3, 1.1);
    run.wall_s = 0.1 + 0.2;
    let dir = write_run_dir(&scratch.0.join("runs"), &run).unwrap();
    assert_eq!(dir, scratch.0.join("runs/ssd-tlc-ftl.clean.kind-fifo-3f9c01ab"));
    let files = [
        "design.resolved.toml",
        "hist.parquet",
        "manifest.json",
        "result.json",
        "series.parquet",
        "workload.txt",
    ];
    assert_eq!(names(&dir), files);
    assert_eq!(names(&scratch.0.join("runs")).len(), 1, "nothing temporary is left");
    assert_eq!(read_run(&dir).unwrap(), run);
    assert_eq!(read_run(&dir.join("result.json")).unwrap(), run);
    assert_eq!(fs::read_to_string(dir.join("workload.txt")).unwrap(), format!("{}\n", run.workload));

    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["key"], run.key.as_str());
    for file in manifest["files"].as_array().unwrap() {
        let bytes = fs::read(dir.join(file["name"].as_str().unwrap())).unwrap();
        assert_eq!(file["bytes"], bytes.len());
        assert_eq!(file["crc32c"], format!("{:08x}", crc32c(&[&bytes])));
    }
}

#[test]
fn the_same_key_stays_and_another_key_gets_another_directory() {
    let scratch = Scratch::new("keys");
    let first = sample::run("ssd-tlc", 1);
    let dir = write_run_dir(&scratch.0, &first).unwrap();
    let again = RunResult { wall_s: 99.0, ..first.clone() };
    assert_eq!(write_run_dir(&scratch.0, &again).unwrap(), dir);
    assert_eq!(read_run(&dir).unwrap().wall_s, first.wall_s);

    // The same first 8 digits.
    let other = sample::run("ssd-tlc", 2);
    let other_dir = write_run_dir(&scratch.0, &other).unwrap();
    assert_eq!(other_dir, scratch.0.join(format!("ssd-tlc-{}", other.key)));
    assert_eq!(write_run_dir(&scratch.0, &other).unwrap(), other_dir);
    assert_eq!((read_run(&dir).unwrap(), read_run(&other_dir).unwrap()), (first, other));
    assert_eq!(names(&scratch.0).len(), 2);
}

#[test]
fn a_directory_that_is_something_else_is_not_touched() {
    let scratch = Scratch::new("alien");
    let alien = scratch.0.join("ssd-tlc-3f9c01ab");
    fs::create_dir_all(&alien).unwrap();
    fs::write(alien.join("notes.txt"), "mine").unwrap();
    let error = write_run_dir(&scratch.0, &sample::run("ssd-tlc", 1)).unwrap_err();
    assert!(error.to_string().contains("result.json"), "{error}");
    assert_eq!(names(&alien), ["notes.txt"]);
    fs::write(alien.join("result.json"), "{\"schema\": \"nvlab.run/9\"}").unwrap();
    let error = read_run(&alien).unwrap_err().to_string();
    assert!(error.ends_with("its schema is `nvlab.run/9`; this nvlab reads `nvlab.run/2`"), "{error}");
}

#[test]
fn parquet_reads_back() {
    let mut run = sample::run("ssd-tlc", 1);
    run.series[1].read_p99_ns = 0;
    let read = |table: Table| {
        let back = Table::of_bytes(table.parquet().unwrap()).unwrap();
        assert_eq!((back.says("nvlab.key"), &back), (Some(run.key.as_str()), &table));
        back
    };
    let series = read(series(&run));
    assert_eq!((series.rows(), series.columns.len()), (2, 12));
    let values = |name: &str| series.column(name).unwrap();
    assert_eq!(values("from_s"), &Values::Numbers(vec![Some(0.0), Some(30.0)]));
    let amplification = run.series.iter().map(|window| Some(window.write_amplification)).collect();
    assert_eq!(values("write_amplification"), &Values::Numbers(amplification));
    assert_eq!(values("read_p99_ns"), &Values::Counts(vec![Some(183_000), None]));
    assert_eq!(values("erases"), &Values::Counts(vec![Some(6172); 2]));

    let hist = read(histograms(&run));
    let ops: Vec<_> = (0..4).map(|row| hist.column("op").unwrap().text(row).unwrap()).collect();
    assert_eq!(ops, ["read", "read", "write", "write"]);
    let Some(Values::Counts(counts)) = hist.column("count") else { panic!("no counts") };
    assert_eq!(counts.iter().flatten().sum::<u64>(), run.requests_served);
}

#[test]
fn names_fit_for_files() {
    let cases =
        [("a b=c", "a-b-c"), ("../../etc/x", "etc-x"), ("é", "design"), ("-", "design"), ("A_1.b", "A_1.b")];
    for (name, fit) in cases {
        assert_eq!(file_name(name), fit);
    }
}
