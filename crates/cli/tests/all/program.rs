//! The program as other programs see it: pipes, colours, JSON, interruptions, kept results.

use crate::common::Folder;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A run of a few milliseconds.
const SMALL: [&str; 8] =
    ["run", "bench-4g", "-w", "zipf read=50% qd=4", "--precondition", "fresh", "--until", "2000 io"];

/// The results it kept.
fn kept_results(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.0.join("runs")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn small(more: &[&'static str]) -> Vec<&'static str> {
    [&SMALL[..], more].concat()
}

#[test]
fn a_reader_that_leaves_ends_the_program_quietly() {
    let folder = Folder::new("pipe");
    for arguments in [&["design", "schema"][..], &["completions", "bash"], &["run", "--help"]] {
        let mut child = folder.nvlab(arguments);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Closed before anything is written, or after a line: either way silently.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
        assert!([Some(0), Some(141)].contains(&output.status.code()), "{arguments:?}: {:?}", output.status);
    }
}

#[test]
fn documents_for_programs_are_documents() {
    let folder = Folder::new("json");
    let commands: [&[&str]; 8] = [
        &["doctor", "--json"],
        &["design", "list", "--json"],
        &["design", "schema"],
        &["design", "show", "ssd-tlc", "--json"],
        &["parts", "--json"],
        &["parts", "show", "dram", "--json"],
        &["explain", "waf", "--json"],
        &small(&["--json", "--assert", "waf < 9", "-n", "2"]),
    ];
    for arguments in commands {
        let output = folder.run(arguments);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(document.is_object() && output.status.success(), "{arguments:?}");
    }
    let output = folder.run(&small(&["--json", "--assert", "waf < 9"]));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "nvlab.run/2");
    assert_eq!(document["asserts"][0]["holds"], true);
    assert_eq!(document["requests_served"], 2000);
    for line in folder.run(&small(&["--format", "jsonl", "-n", "2"])).stdout.lines() {
        serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap();
    }
}

#[test]
fn colours_come_only_where_they_are_wanted() {
    let folder = Folder::new("colour");
    let colored = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = folder.nvlab(arguments);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        (output.stdout.contains(&0x1b), output.stderr.contains(&0x1b))
    };
    let wrong = ["explain", "waff"];
    assert_eq!(colored(&["doctor"], &[]), (false, false), "a pipe is no terminal");
    assert_eq!(colored(&["doctor", "--color", "always"], &[]), (true, false));
    assert_eq!(colored(&["doctor"], &[("CLICOLOR_FORCE", "1")]), (true, false));
    assert_eq!(colored(&["doctor"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), (false, false));
    assert_eq!(colored(&wrong, &[("CLICOLOR_FORCE", "1")]), (false, true));
    assert_eq!(colored(&["explain", "waff", "--color=never"], &[("CLICOLOR_FORCE", "1")]), (false, false));
    assert_eq!(colored(&["rnu", "--color=always"], &[]), (false, true), "usage errors too");
    assert_eq!(colored(&["run", "-h", "--color=never"], &[("CLICOLOR_FORCE", "1")]), (false, false));
}

#[test]
fn results_are_kept_and_reused() {
    let folder = Folder::new("kept");
    let first = folder.run(&SMALL);
    assert!(text(&first.stderr).starts_with("stored in runs/bench-4g-"), "{}", text(&first.stderr));
    let again = folder.run(&SMALL);
    assert!(text(&again.stderr).starts_with("already done: runs/bench-4g-"), "{}", text(&again.stderr));
    assert_eq!(first.stdout, again.stdout, "the very same result, wall time included");
    let forced = folder.run(&small(&["--force"]));
    assert!(text(&forced.stderr).starts_with("bench-4g: run again, with the same result\n"));
    assert_eq!(kept_results(&folder).len(), 1);
    folder.run(&small(&["--seed", "2"]));
    assert_eq!(kept_results(&folder).len(), 2);

    // A result that differs is renamed and not lost.
    let result = folder.0.join("runs").join(&kept_results(&folder)[0]).join("result.json");
    let changed =
        std::fs::read_to_string(&result).unwrap().replace("\"buffer_wait_s\": 0.0", "\"buffer_wait_s\": 1.0");
    std::fs::write(&result, changed).unwrap();
    for seed in ["1", "2"] {
        folder.run(&small(&["--force", "--seed", seed]));
    }
    assert_eq!(kept_results(&folder).iter().filter(|name| name.ends_with(".before-1")).count(), 1);
}

#[test]
fn a_result_without_notes_is_all_there_is_when_quiet() {
    let folder = Folder::new("quiet");
    let output = folder.run(&small(&["-q"]));
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).starts_with("bench-4g · 3.52 GiB"));
    let page = folder.run(&small(&["--html", "page.html"]));
    assert!(text(&page.stderr).contains("report: page.html"), "{}", text(&page.stderr));
    let html = std::fs::read_to_string(folder.0.join("page.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") || html.starts_with("<!DOCTYPE html>"), "{}", &html[..40]);
}

#[test]
fn a_trace_is_kept_converted_unless_unwanted() {
    let folder = Folder::new("cache");
    let line = |i: u64| format!("{},h,0,Write,{},4096,0\n", 128166372000000000 + i * 1000, i % 1000 * 4096);
    std::fs::write(folder.0.join("t.csv"), (0..8000).map(line).collect::<String>()).unwrap();
    let run = ["run", "bench-4g", "-w", "t.csv:msr", "--precondition", "fresh", "-o", "runs"];
    let cache = folder.0.join("runs/.cache");
    assert!(folder.run(&[&run[..], &["--no-cache"]].concat()).status.success());
    assert!(!cache.exists());
    assert!(text(&folder.run(&[&run[..], &["--force"]].concat()).stderr).contains("with the same result"));
    let converted = |cache: &Path| std::fs::read_dir(cache).unwrap().count();
    assert_eq!(converted(&cache), 2);
    assert!(text(&folder.run(&[&run[..], &["--force"]].concat()).stderr).contains("with the same result"));
    assert_eq!(converted(&cache), 2);
}

#[cfg(unix)]
#[test]
fn an_interruption_keeps_what_was_finished() {
    let folder = Folder::new("interrupt");
    let arguments =
        ["compare", "bench-4g", "ssd-tlc", "-w", "zipf", "--precondition", "fresh", "-j", "1", "-v"];
    let arguments = [&arguments[..], &["--until", "2 x capacity"]].concat();
    let mut child = folder.nvlab(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    assert!(first.starts_with("bench-4g: stored in runs/bench-4g-"), "{first}");
    let interrupted = Instant::now();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(
        rest,
        [
            "error: interrupted; 1 of 2 runs was finished and is stored in runs: the same command runs only the other"
        ]
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(interrupted.elapsed() < Duration::from_secs(5));
    assert_eq!(kept_results(&folder).len(), 1);
}

/// The smallest reproduction: claims hold, the page exists, and a second time nothing is run.
#[test]
fn reproduce_judges_claims_and_keeps_its_runs() {
    let folder = Folder::new("reproduce");
    let arguments = ["reproduce", "000", "--smoke", "--only", "fig06", "--json"];
    let first = folder.run(&arguments);
    assert!(first.status.success(), "{}{}", text(&first.stdout), text(&first.stderr));
    let table: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    let rows = table["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["verdict"] == "pass"), "{table}");
    let page = std::fs::read_to_string(folder.0.join("runs/reproduce-000-smoke.html")).unwrap();
    assert!(page.contains("<svg class=\"plot\""), "no figure");
    let kept = kept_results(&folder);
    let second = folder.run(&arguments);
    assert_eq!((text(&second.stdout), kept_results(&folder)), (text(&first.stdout), kept));
    let unknown = folder.run(&["reproduce", "000", "--only", "fig99"]);
    assert_eq!(unknown.status.code(), Some(2));
}
