//! Sweeps as a user runs them: killed and gone on with, in shards, with points that fail, from a file and from axes on the
//! command line.

use crate::common::Folder;
use std::path::Path;
use std::time::Duration;

const FILE: &str = r#"
schema = 1
[sweep]
name = "small"
design = "bench-4g"
workload = ["zipf qd=4", "uniform read=50% qd=8"]
seeds = [1, 7]
until = "300 io"
precondition = "fresh"
[[axis]]
key = "ftl.spare"
range = "20 % .. 50 % : 10 %"
[[axis]]
key = "ftl.clean.kind"
values = ["greedy", "fifo"]
[[skip]]
where = "ftl.clean.kind == 'fifo' and ftl.spare >= 40 %"
"#;
const POINTS: usize = 2 * 2 * (4 * 2 - 2);

fn folder(name: &str, file: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::write(folder.0.join("small.toml"), file).unwrap();
    folder
}

fn tables(folder: &Folder, out: &str) -> Vec<Vec<u8>> {
    let read = |ending| std::fs::read(folder.0.join(out).join(format!("sweep-small.{ending}"))).unwrap();
    ["parquet", "csv", "json", "html"].map(read).to_vec()
}

/// Folders of results.
fn kept(out: &Path) -> usize {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("bench-4g")).count()
}

#[test]
fn however_its_points_are_run_the_table_has_the_same_bytes() {
    let folder = folder("sweep", FILE);
    let whole = folder.run(&["sweep", "small.toml", "-o", "whole"]);
    let said = String::from_utf8(whole.stderr).unwrap();
    assert!(whole.status.success(), "{said}");
    assert!(said.contains(&format!("{POINTS} points, 0 of them already done")), "{said}");
    let table = String::from_utf8(whole.stdout).unwrap();
    assert_eq!(table.lines().count(), 1 + POINTS / 2, "a line for each group of seeds:\n{table}");
    let expected = tables(&folder, "whole");
    let csv = String::from_utf8(expected[1].clone()).unwrap();
    assert_eq!(csv.lines().count(), 1 + POINTS);
    assert!(
        csv.starts_with("design,workload,ftl.spare,ftl.clean.kind,seed,throughput_bytes_per_s,"),
        "{csv}"
    );

    // Killed in the middle, with no chance to say goodbye.
    let mut child = folder.nvlab(&["-j", "1", "sweep", "small.toml", "-o", "killed"]).spawn().unwrap();
    let out = folder.0.join("killed");
    while kept(&out) < 3 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = kept(&out);
    assert!((3..POINTS).contains(&before), "{before} points were done when it was killed");
    let again = folder.run(&["sweep", "small.toml", "-o", "killed"]);
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(said.contains(&format!("{POINTS} points, {before} of them already done")), "{said}");
    assert!(tables(&folder, "killed") == expected, "after a kill the table differs");

    for (shard, out) in [("1/2", "a"), ("2/2", "b")] {
        let ran = folder.run(&["sweep", "small.toml", "--shard", shard, "-o", out]);
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(said.contains(&format!("{} of {POINTS} points", POINTS / 2)), "{said}");
        assert_eq!(kept(&folder.0.join(out)), POINTS / 2);
    }
    let merged = folder.run(&["sweep", "small.toml", "--from", "a", "--from", "b", "-o", "merged"]);
    let said = String::from_utf8(merged.stderr).unwrap();
    assert!(said.contains(&format!("{POINTS} points, {POINTS} of them already done")), "{said}");
    assert_eq!(kept(&folder.0.join("merged")), 0, "nothing was run again");
    assert!(tables(&folder, "merged") == expected, "of two shards the table differs");
}

#[test]
fn points_that_fail_do_not_hold_up_the_others() {
    let folder = folder("sweep-fail", FILE);
    let arguments =
        ["sweep", "bench-4g", "-w", "uniform qd=4", "--until", "100 io", "--precondition", "fresh"];
    let axes = ["-p", "ftl.spare=30%,99.9999%", "-m", "iops,waf", "--format", "csv"];
    let ran = folder.run(&[&arguments[..], &axes].concat());
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("1 of 2 points have no result"), "{said}");
    let csv = std::fs::read_to_string(folder.0.join("runs/sweep-bench-4g.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");

    let points = folder.run(&["sweep", "small.toml", "--dry-run"]);
    let said = String::from_utf8(points.stderr).unwrap();
    assert!(said.contains(&format!("{POINTS} points, 0 of them done")), "{said}");
    assert_eq!(String::from_utf8(points.stdout).unwrap().lines().count(), 1 + POINTS);
    assert_eq!(kept(&folder.0.join("runs")), 1, "a dry run runs nothing");
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let cases = [
        (FILE.replace("seeds", "seed"), "small.toml:7"),
        (FILE.replace("ftl.spare >= 40 %", "ftl.spar >= 40 %"), "no axis varies `ftl.spar`"),
        (FILE.replace("ftl.clean.kind\"", "ftl.clean.knd\""), "ftl.clean.knd"),
        (FILE.replace("zipf qd=4", "zip qd=4"), "zipf"),
    ];
    for (file, words) in cases {
        let folder = folder("sweep-wrong", &file);
        let ran = folder.run(&["sweep", "small.toml"]);
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(said.contains(words), "{words}: {said}");
        assert!(matches!(ran.status.code(), Some(2 | 3)), "{words}: {said}");
    }
    let folder = folder("sweep-usage", FILE);
    for arguments in [&["sweep", "bench-4g", "-p", "ftl.spare=1%"][..], &["sweep", "missing.toml"]] {
        assert_eq!(folder.run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_pattern_is_a_fleet_with_a_point_for_each_trace() {
    const VOLUMES: usize = 7;
    let folder = Folder::new("fleet");
    // Alibaba's format: volume, operation, offset and length in bytes, time in microseconds.
    let line = |at: usize| {
        let (volume, op) = (at * at % VOLUMES, if at.is_multiple_of(3) { "R" } else { "W" });
        format!("{volume},{op},{},4096,{}\n", at % 97 * 4096, 1_000 + 50 * at)
    };
    let text: String = (0..3000).map(line).collect();
    std::fs::write(folder.0.join("fleet.csv"), &text).unwrap();
    let run = |args: &[&str]| {
        let ran = folder.run(args);
        let said = String::from_utf8(ran.stderr).unwrap();
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap(), said)
    };
    let (code, _, said) = run(&["trace", "split", "fleet.csv:alibaba", "split", "--extension", "parquet"]);
    assert_eq!(code, Some(0), "{said}");
    let volumes = std::fs::read_dir(folder.0.join("split")).unwrap().count();
    assert!((2..=VOLUMES).contains(&volumes));

    let sweep = |rest: &[&str]| {
        let fleet = ["sweep", "bench-4g", "-w", "split/volume=*", "-p", "ftl.spare=20%,40%"];
        run(&[&fleet, ["--precondition", "fresh", "-m", "waf,write.p99"].as_slice(), rest].concat())
    };
    let (code, table, said) = sweep(&["-o", "one"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("{} points", 2 * volumes)), "{said}");
    // People see a few quantiles for each spare, programs see every volume.
    assert!(table.lines().count() == 1 + 2 * 5 && table.contains("median"), "{table}");
    let csv = std::fs::read_to_string(folder.0.join("one/sweep-bench-4g.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((rows.len(), &rows[0][..2]), (1 + 2 * volumes, ["volume", "ftl.spare"].as_slice()));
    let column = rows[0].iter().position(|name| *name == "write.count").unwrap();
    let reads = rows[0].iter().position(|name| *name == "read.count").unwrap();
    let served: usize = rows[1..]
        .iter()
        .map(|row| [column, reads].map(|at| row[at].parse::<usize>().unwrap_or(0)))
        .map(|[w, r]| w + r)
        .sum();
    assert_eq!(served, 2 * 3000, "every request of every volume, at two spares");
    let page = std::fs::read_to_string(folder.0.join("one/sweep-bench-4g.html")).unwrap();
    assert!(page.contains("Distributions") && !page.contains("Pareto front"));

    // Shards have tables of their own, and together make the same whole.
    for shard in ["1/2", "2/2"] {
        let (code, _, said) = sweep(&["-o", "two", "--shard", shard]);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(folder.0.join("two/sweep-bench-4g.shard-2-of-2.parquet").is_file());
    let (code, _, said) = sweep(&["-o", "two"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("{0} points, {0} of them already done", 2 * volumes)), "{said}");
    assert_eq!(csv, std::fs::read_to_string(folder.0.join("two/sweep-bench-4g.csv")).unwrap());

    let (code, _, said) = run(&["sweep", "bench-4g", "-w", "nowhere/*.csv"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("nothing matches `nowhere/*.csv`"), "{said}");
}

#[test]
fn the_page_of_a_finished_sweep_is_made_again() {
    let folder = folder("sweep-page", FILE);
    let ran = folder.run(&["sweep", "small.toml", "-o", "out"]);
    assert!(ran.status.success());
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("do not include the cost of cleaning"), "{said}");
    let page = std::fs::read(folder.0.join("out/sweep-small.html")).unwrap();
    // Only the table is needed.
    std::fs::create_dir(folder.0.join("moved")).unwrap();
    std::fs::copy(folder.0.join("out/sweep-small.parquet"), folder.0.join("moved/sweep-small.parquet"))
        .unwrap();
    for what in ["out", "out/sweep-small.parquet", "moved"] {
        let made = folder.run(&["report", what, "--html", "again.html"]);
        let said = String::from_utf8(made.stderr).unwrap();
        assert!(
            made.status.success() && said.contains(&format!("{POINTS} points; report: again.html")),
            "{said}"
        );
        assert!(std::fs::read(folder.0.join("again.html")).unwrap() == page, "{what}");
    }
    for (what, words) in [
        (&["out/sweep-small.csv"][..], "give the .parquet table of the sweep"),
        (&["moved", "out"], "one sweep"),
        (&["."], "neither the result of a run"),
    ] {
        let refused = folder.run(&[&["report"], what].concat());
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && said.contains(words), "{what:?}: {said}");
    }
}
