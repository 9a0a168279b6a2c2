//! The order of the house: data flows one way between crates and within them, files and functions stay small, what is
//! public is used, wrappers forward, `unsafe` stays where it is allowed.

mod circles;
mod dead;
mod forwards;
mod sources;
mod trust;

use sources::{root, rust_files};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// Lowest first: a crate may use those of a lower layer, never others. Crates to come have their place here already.
const LAYERS: [(&str, u32); 22] = [
    ("nvlab-units", 0),
    ("nvlab-os", 0),
    ("nvlab-table", 0),
    ("nvlab-medium", 1),
    ("nvlab-controller", 2),
    ("nvlab-access", 3),
    ("nvlab-rvm", 4),
    ("nvlab-nvheap-derive", 0),
    // Above `rvm`, on whose logs a heap may be.
    ("nvlab-nvheap", 5),
    ("nvlab-trace", 1),
    ("nvlab-workload", 6),
    ("nvlab-design", 7),
    ("nvlab-run", 8),
    ("nvlab-report", 9),
    ("nvlab-lab", 10),
    ("nvlab-fit", 11),
    ("nvlab-rvm-c", 5),
    ("nvlab-serve", 10),
    ("nvlab-window-preload", 5),
    ("nvlab-cli", 12),
    ("nvlab-python", 13),
    ("nvlab-tests", 13),
];
const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

/// Every file of the workspace.
fn files() -> Vec<PathBuf> {
    ["crates", "tests"].iter().flat_map(|folder| rust_files(&root().join(folder))).collect()
}

#[test]
fn dependencies_point_down() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let layers: BTreeMap<&str, u32> = LAYERS.into_iter().collect();
    let packages = metadata["packages"].as_array().unwrap();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let mine = layers.get(name).unwrap_or_else(|| panic!("{name} has no layer"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            if let Some(theirs) = layers.get(other) {
                assert!(theirs < mine, "{name} (layer {mine}) uses {other} (layer {theirs})");
            }
        }
    }
}

/// Lines of code before the tests of a file: neither blank nor comment.
fn code(text: &str) -> usize {
    let body = sources::without_tests(text);
    body.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//")).count()
}

/// Functions with a body as (line, lines), by the indentation of rustfmt.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.contains('(')).collect();
        let is_function = line.contains(" fn ") || line.starts_with("fn ");
        if !is_function || words.first().is_some_and(|word| word.starts_with("//") || word.starts_with('"')) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let closing = format!("{}}}", " ".repeat(indent));
        let ends_signature = |line: &&&str| {
            let is_outer = line.len() - line.trim_start().len() == indent;
            is_outer && (line.ends_with(['{', ';']) || **line == closing)
        };
        if lines[start..].iter().find(ends_signature).is_some_and(|line| line.ends_with(';')) {
            continue;
        }
        let end = lines[start..].iter().position(|line| **line == closing);
        found.push((start + 1, end.map_or(1, |end| end + 1)));
    }
    found
}

#[test]
fn files_and_functions_stay_small() {
    let files = files();
    assert!(files.len() > 60, "only {} files were looked at", files.len());
    let mut long = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = code(&text);
        if lines > FILE_LINES_MAX {
            long.push(format!("{}: {lines} lines of code", file.display()));
        }
        for (start, lines) in functions(&text) {
            if lines > FUNCTION_LINES_MAX {
                long.push(format!("{}:{start}: a function of {lines} lines", file.display()));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The first lines of a module say what it is.
#[test]
fn every_file_says_what_it_is() {
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//!"), "{} does not begin with //!", file.display());
    }
}

/// Where `unsafe` is allowed: the operating system, the memory of heaps and what lies in it, the memory of regions and whatever passes its contract on, the system
/// calls of serving, what C programs call, and what is loaded into programs.
const UNSAFE: [&str; 20] = [
    "crates/nvheap/src/collections/",
    "crates/nvheap-derive/src/lib.rs",
    "crates/nvheap/src/memory.rs",
    "crates/nvheap/src/persist.rs",
    "crates/nvheap/src/pointer/",
    "crates/nvheap/src/region.rs",
    "crates/nvheap/src/snapshot.rs",
    "crates/nvheap/src/string.rs",
    "crates/nvheap/src/tx/",
    "crates/nvheap/src/vec.rs",
    "crates/os/",
    "crates/rvm/src/core/",
    "crates/rvm/src/implicit.rs",
    "crates/rvm/src/region.rs",
    "crates/rvm/src/rvm.rs",
    "crates/rvm/tests/all/",
    "crates/rvm-c/src/",
    "crates/serve/src/sys/",
    "crates/serve/tests/all/",
    "crates/window-preload/",
];

#[test]
fn unsafe_code_stays_where_it_is_allowed() {
    let mut seen = 0;
    for file in files() {
        let text = sources::code_only(&std::fs::read_to_string(&file).unwrap());
        if text.contains("unsafe {") || text.contains("unsafe fn") || text.contains("unsafe impl") {
            let place = file.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
            assert!(UNSAFE.iter().any(|allowed| place.starts_with(allowed)), "{place} has unsafe code");
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} files with unsafe code were found");
}
