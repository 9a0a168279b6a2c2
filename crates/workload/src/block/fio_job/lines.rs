//! The lines of a job file: includes, variables, comments, sections and their options.

use super::lists::{IGNORED, IGNORED_PREFIXES, KNOWN, LEFT_OUT, REFUSED, canonical, has};
use super::options::Options;
use crate::WorkloadError;
use nvlab_units::suggest;
use std::path::Path;

/// Includes within includes, at most.
const INCLUDES_MAX: u32 = 16;

/// One line of a job file or of a file that it includes.
struct Line {
    file: String,
    number: u64,
    text: String,
}

impl Line {
    fn error(&self, reason: String) -> WorkloadError {
        WorkloadError::Job { file: self.file.clone(), line: self.number, reason }
    }
}

/// A section and its options, including those of `[global]`.
pub(super) struct Section {
    pub name: String,
    pub line: u64,
    pub options: Options,
}

/// What was read of a file.
#[derive(Default)]
pub(super) struct Read {
    pub sections: Vec<Section>,
    pub notes: Vec<String>,
    pub errors: Vec<WorkloadError>,
    pub lines: u64,
}

/// The text of a job file with all that it includes, and values instead of variables: what its jobs depend on.
pub(super) fn expanded(text: &str, file: &str) -> String {
    let lines = lines(text, file, 0, &mut Vec::new()).into_iter();
    lines.map(|line| substituted(&line.text, &mut |_| {}) + "\n").collect()
}

/// Reads the sections of a text, and every error in it.
pub(super) fn sections(text: &str, file: &str) -> Read {
    let mut read = Read { lines: text.lines().count() as u64, ..Read::default() };
    let (mut ignored, mut left_out): (Vec<String>, Vec<(&str, &str)>) = (Vec::new(), Vec::new());
    let mut global = Options::default();
    let mut in_global = true;
    for line in lines(text, file, 0, &mut read.errors) {
        if let Some(header) = line.text.strip_prefix('[') {
            let Some(name) = header.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty()) else {
                read.errors.push(line.error(format!("'{}' is not a section: write [name]", line.text)));
                continue;
            };
            in_global = name == "global";
            if !in_global {
                let options = global.clone();
                read.sections.push(Section { name: name.to_owned(), line: line.number, options });
            }
            continue;
        }
        let (key, value) = match line.text.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (line.text.as_str(), None),
        };
        let key = canonical(key);
        if let Some((_, neutral, reason)) = REFUSED.iter().find(|(name, ..)| *name == key) {
            match neutral.contains(&value.unwrap_or("1")) {
                true => ignored.push(key.to_owned()),
                false => read.errors.push(line.error(format!("{key} is not supported: {reason}"))),
            }
        } else if let Some(&entry) = LEFT_OUT.iter().find(|(name, _)| *name == key) {
            left_out.push(entry);
        } else if matches!((key, value), ("direct", Some("0")) | ("buffered", None | Some("1"))) {
            let note = "the page cache is not simulated: buffered requests reach the device one by one";
            read.notes.push(note.to_owned());
        } else if has(IGNORED, key) || IGNORED_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
            ignored.push(key.to_owned());
        } else if !has(KNOWN, key) {
            let all = KNOWN.split_whitespace().chain(IGNORED.split_whitespace());
            let all = all.chain(LEFT_OUT.iter().map(|(name, _)| *name));
            let all = all.chain(REFUSED.iter().map(|(name, ..)| *name));
            let hint = suggest::hint(key, all);
            read.errors.push(line.error(format!("unknown option '{key}'{hint}")));
        } else {
            let mut missing = Vec::new();
            let value = value.map(|value| substituted(value, &mut |name| missing.push(name.to_owned())));
            if let Some(name) = missing.first().filter(|_| value.as_deref() == Some("")) {
                let reason = format!("{key} is the variable {name}, which is not set in the environment");
                read.errors.push(line.error(reason));
                continue;
            }
            let options = match (in_global, read.sections.last_mut()) {
                (false, Some(section)) => &mut section.options,
                _ => &mut global,
            };
            options.set(key, value.as_deref(), &line.file, line.number);
        }
    }
    read.notes.extend(notes(ignored, left_out));
    read.notes.dedup();
    read
}

/// A sentence about what does not matter, and one for each reason to leave options out.
fn notes(mut ignored: Vec<String>, left_out: Vec<(&str, &str)>) -> Vec<String> {
    let mut notes = Vec::new();
    ignored.sort();
    ignored.dedup();
    if !ignored.is_empty() {
        notes.push(format!("ignored, no effect on a simulated device: {}", ignored.join(", ")));
    }
    let mut reasons: Vec<&str> = left_out.iter().map(|(_, reason)| *reason).collect();
    reasons.sort();
    reasons.dedup();
    for reason in reasons {
        let mut names: Vec<&str> =
            left_out.iter().filter(|(_, its)| *its == reason).map(|(name, _)| *name).collect();
        names.sort();
        names.dedup();
        notes.push(format!("ignored: {}: {reason}", names.join(", ")));
    }
    notes
}

/// The lines with content, without comments; `include FILE` is replaced by the lines of the file.
fn lines(text: &str, file: &str, depth: u32, errors: &mut Vec<WorkloadError>) -> Vec<Line> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        // As in fio, a comment may also stand behind an option.
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let line = Line { file: file.to_owned(), number, text: line.to_owned() };
        let Some(name) = line.text.strip_prefix("include ").map(str::trim) else {
            found.push(line);
            continue;
        };
        let path = Path::new(file).parent().unwrap_or(Path::new("")).join(name);
        match std::fs::read_to_string(&path) {
            _ if depth == INCLUDES_MAX => {
                let reason = format!("'{name}': includes are nested more than {INCLUDES_MAX} deep");
                errors.push(line.error(reason));
            }
            Ok(text) => found.extend(lines(&text, &path.display().to_string(), depth + 1, errors)),
            Err(error) => {
                errors.push(line.error(format!("'{}' cannot be included: {error}", path.display())));
            }
        }
    }
    found
}

/// A text with values for `${NAME}` (of the environment; nothing if it is not set), `$pagesize`, `$mb_memory` and `$ncpus`.
fn substituted(text: &str, missing: &mut dyn FnMut(&str)) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        result += before;
        match std::env::var(name) {
            Ok(value) => result += &value,
            Err(_) => missing(name),
        }
        rest = after;
    }
    result += rest;
    for (keyword, value) in
        [("$pagesize", page_bytes as fn() -> u64), ("$mb_memory", memory_mb), ("$ncpus", cpus)]
    {
        if result.contains(keyword) {
            result = result.replace(keyword, &value().to_string());
        }
    }
    result
}

fn page_bytes() -> u64 {
    4096
}

fn cpus() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

/// Memory of this machine in MiB; 0 if it is not known.
fn memory_mb() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0) / 1024
}
