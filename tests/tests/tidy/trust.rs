//! docs/trust.md names tests, files and commands: each must exist.

use crate::sources::root;
use std::path::Path;

/// Texts in backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The sources of a test: a file, or all files of a folder and its `.rs` of the same name.
fn sources(path: &Path) -> String {
    let mut files = vec![path.to_path_buf()];
    let mut text = String::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    text
}

/// What is wrong with a reference; `file` is the one named before in the same row.
fn wrong<'a>(span: &'a str, file: &mut &'a str, makefile: &str) -> Option<String> {
    let missing = |what: &str| Some(format!("`{span}`: no {what}"));
    let words: Vec<&str> = span.split(' ').collect();
    match words[..] {
        ["make", target] if !makefile.contains(&format!("\n{target}:")) => return missing("such target"),
        ["nvlab", "reproduce", system] if !root().join("experiments").join(system).is_dir() => {
            return missing("such experiments");
        }
        [_] if span.contains('/') || span.starts_with("::") => {}
        _ => return None,
    }
    let (path, test) = span.split_once("::").unwrap_or((span, ""));
    if !path.is_empty() {
        *file = path;
    }
    let at = root().join(*file);
    if !at.exists() {
        return missing("such file");
    }
    let is_there = test.is_empty() || sources(&at).contains(&format!("fn {test}()"));
    if is_there { None } else { missing("such test") }
}

#[test]
fn what_is_named_as_a_check_exists() {
    let text = std::fs::read_to_string(root().join("docs/trust.md")).unwrap();
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let rows: Vec<&str> =
        text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| claim")).collect();
    assert!(rows.len() > 15, "only {} rows", rows.len());
    let mut found = Vec::new();
    for row in rows {
        let check = row.split('|').nth(2).unwrap();
        assert!(spans(check).next().is_some(), "no check is named: {row}");
        let mut file = "";
        found.extend(spans(row).filter_map(|span| wrong(span, &mut file, &makefile)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    // It must be able to fail.
    for span in ["crates/none.rs", "crates/controller/tests/all/envy::none", "make none", "nvlab reproduce 9"]
    {
        assert!(wrong(span, &mut "", &makefile).is_some(), "{span}");
    }
}
