//! `nvlab log`: shows the contents of a log or segment of recoverable memory; recovers and repairs logs.

use crate::args::{FoundFiles, LogFiles, LogVerb};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use crate::verbs::facts;
use nvlab_rvm::Error;
use nvlab_rvm::inspect::{self, Entry, FoundHeap, Inspection};
use nvlab_rvm::record::{Contents, Headers};
use nvlab_rvm::repair;
use nvlab_rvm::store::SegmentFolder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub fn log(output: &Output, verb: LogVerb) -> Result<(), Failure> {
    match verb {
        LogVerb::Stat { log: FoundFiles { file, small } } => stat(output, &LogFiles { file, small }),
        LogVerb::Dump { log, bytes } => dump(output, &log, bytes),
        LogVerb::Check { log: FoundFiles { file, small } } => check(output, &LogFiles { file, small }),
        LogVerb::Recover { log, folder, relocate } => recover(output, &log, folder, relocate),
        LogVerb::Salvage { log } => salvage(output, &log),
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Damaged { .. } => {
            Failure::Check(format!("{error}\n`nvlab log salvage` keeps everything before the damage"))
        }
        Error::Io { .. } => Failure::Machine(error.to_string()),
        _ => Failure::Input(error.to_string()),
    }
}

/// What a log holds.
#[derive(Default)]
struct Counts {
    commits: u64,
    ranges: u64,
    range_bytes: u64,
    record_bytes: u64,
    original: u64,
    compressed: u64,
    segments: BTreeMap<u32, String>,
}

impl Counts {
    fn add(&mut self, entry: &Entry<'_>) {
        self.record_bytes += entry.bytes as u64;
        match entry.contents {
            Contents::Name(number, name) => drop(self.segments.insert(*number, name.to_string())),
            Contents::Commit(modifications) => {
                self.commits += 1;
                self.original += u64::from(modifications.headers() == Headers::Original);
                self.compressed += u64::from(modifications.is_compressed());
                entry.each_range(|range| {
                    self.ranges += 1;
                    self.range_bytes += range.data.len() as u64;
                });
            }
        }
    }
}

/// A log, or a segment with a heap.
enum Found {
    Log(Inspection),
    Heap(FoundHeap),
}

impl LogFiles {
    fn inspect(&self) -> nvlab_rvm::Result<Inspection> {
        match &self.small {
            Some(small) => Inspection::open_hybrid(&self.file, small),
            None => Inspection::open(&self.file),
        }
    }
}

fn find(files: &LogFiles) -> Result<Found, Failure> {
    let file = &files.file;
    match files.inspect() {
        Ok(log) => Ok(Found::Log(log)),
        Err(error @ Error::Format { offset: 0, .. }) => match inspect::heap(file).map_err(failure)? {
            Some(heap) => Ok(Found::Heap(heap)),
            None => Err(Failure::Input(format!("{error}, and no segment with a heap"))),
        },
        Err(error) => Err(failure(error)),
    }
}

fn stat(output: &Output, files: &LogFiles) -> Result<(), Failure> {
    let log = match find(files)? {
        Found::Log(log) => log,
        Found::Heap(FoundHeap { offset, statistics, .. }) => {
            facts::print(
                output,
                "nvlab.heap/1",
                &[
                    ("kind", "heap".into()),
                    ("offset", offset.into()),
                    ("used_bytes", statistics.used_bytes.into()),
                    ("free_bytes", statistics.free_bytes.into()),
                    (
                        "allocations",
                        (statistics.hits
                            + statistics.misses
                            + statistics.large_hits
                            + statistics.large_misses)
                            .into(),
                    ),
                    ("frees", statistics.frees.into()),
                ],
            );
            return Ok(());
        }
    };
    let mut counts = Counts::default();
    let end = log.each_entry(|entry| counts.add(entry));
    let status = log.status();
    let names: Vec<String> = counts.segments.values().cloned().collect();
    facts::print(
        output,
        "nvlab.log/1",
        &[
            ("kind", log.kind().into()),
            ("identity", format!("{:016x}", status.identity).into()),
            ("generation", status.generation.into()),
            ("head", status.head.into()),
            ("tail", end.as_ref().map_or(Value::Null, |tail| (*tail).into())),
            ("capacity_bytes", log.capacity().into()),
            ("live_bytes", counts.record_bytes.into()),
            ("commits", counts.commits.into()),
            ("ranges", counts.ranges.into()),
            ("range_bytes", counts.range_bytes.into()),
            ("with_original_headers", counts.original.into()),
            ("compressed", counts.compressed.into()),
            ("segments", names.join(" ").into()),
        ],
    );
    end.map(|_| ()).map_err(failure)
}

fn dump(output: &Output, files: &LogFiles, bytes: usize) -> Result<(), Failure> {
    let log = files.inspect().map_err(failure)?;
    let columns = vec![
        Column::number("position", "position"),
        Column::number("offset", "offset"),
        Column::number("bytes", "bytes"),
        Column::text("what", "what"),
        Column::text("segment", "segment"),
        Column::number("at", "at"),
        Column::number("range_bytes", "range"),
        Column::text("data", "data"),
    ];
    let (mut rows, mut names) = (Vec::new(), BTreeMap::new());
    let end = log.each_entry(|entry| {
        let number = |value: u64| Cell::new(value.to_string(), value);
        let mut row = |what: &str, segment: &str, at: Option<u64>, range: Option<usize>, data: &str| {
            rows.push(vec![
                number(entry.position),
                number(entry.offset),
                number(entry.bytes as u64),
                Cell::text(what),
                Cell::text(segment),
                at.map_or(Cell::text(""), number),
                range.map_or(Cell::text(""), |range| number(range as u64)),
                Cell::text(data),
            ]);
        };
        let barrier = if entry.barrier { ", barrier" } else { "" };
        match entry.contents {
            Contents::Name(segment, name) => {
                names.insert(*segment, name.to_string());
                row(&format!("segment {segment}{barrier}"), name, None, None, "");
            }
            Contents::Commit(_) => entry.each_range(|range| {
                let name = names.get(&range.segment).map_or("?", String::as_str);
                let shown: String = range.data.iter().take(bytes).map(|byte| format!("{byte:02x}")).collect();
                let more = if range.data.len() > bytes { "…" } else { "" };
                let data = format!("{shown}{more}");
                row(&format!("commit{barrier}"), name, Some(range.offset), Some(range.data.len()), &data);
            }),
        }
    });
    output.table(&Table { schema: "nvlab.log-records/1", columns, rows });
    end.map(|_| ()).map_err(failure)
}

fn check(output: &Output, files: &LogFiles) -> Result<(), Failure> {
    let file = &files.file;
    match find(files)? {
        Found::Log(log) => {
            let mut counts = Counts::default();
            log.each_entry(|entry| counts.add(entry)).map_err(failure)?;
            output.print(format!(
                "{}: {} commits, {} B, undamaged",
                log.name(),
                counts.commits,
                counts.record_bytes
            ));
        }
        Found::Heap(FoundHeap { offset, statistics, checked }) => {
            checked.map_err(|error| Failure::Check(format!("{}: {error}", file.display())))?;
            output.print(format!(
                "{}: a heap at byte {offset}, {} B used, undamaged",
                file.display(),
                statistics.used_bytes
            ));
        }
    }
    Ok(())
}

fn recover(
    output: &Output,
    files: &LogFiles,
    folder: Option<PathBuf>,
    relocate: Vec<(PathBuf, PathBuf)>,
) -> Result<(), Failure> {
    let mut counts = Counts::default();
    let file = &files.file;
    files.inspect().and_then(|log| log.each_entry(|entry| counts.add(entry))).map_err(failure)?;
    let folder = folder.unwrap_or_else(|| file.parent().map_or_else(PathBuf::new, Path::to_path_buf));
    let before = SegmentFolder::new(folder);
    for name in counts.segments.values() {
        let path = before.path(name);
        if !relocate.is_empty() && !relocate.iter().any(|(old, _)| path.starts_with(old)) {
            let why = "is in none of the folders of --relocate; nothing has been changed";
            return Err(Failure::Input(format!("{}: segment {} {why}", file.display(), path.display())));
        }
    }
    let segments = relocate.into_iter().fold(before, |segments, (old, new)| segments.relocate(old, new));
    let paths: Vec<String> =
        counts.segments.values().map(|name| segments.path(name).display().to_string()).collect();
    let recovery = match &files.small {
        Some(small) => repair::recover_hybrid(file, small, segments),
        None => repair::recover(file, segments),
    };
    let recovery = recovery.map_err(failure)?;
    facts::print(
        output,
        "nvlab.log-recovery/1",
        &[
            ("commits", recovery.commits.into()),
            ("log_bytes", recovery.log_bytes.into()),
            ("applied_bytes", recovery.applied_bytes.into()),
            ("segments", paths.join(" ").into()),
        ],
    );
    Ok(())
}

fn salvage(output: &Output, files: &LogFiles) -> Result<(), Failure> {
    let file = &files.file;
    let mut names = Counts::default();
    // The error is the damage, or is reported by what follows.
    let _ = files.inspect().and_then(|log| log.each_entry(|entry| names.add(entry)));
    let mut lost = Counts::default();
    let mut ranges: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let see = |entry: &Entry<'_>| {
        lost.add(entry);
        entry.each_range(|range| {
            let (count, bytes) = ranges.entry(range.segment).or_default();
            (*count, *bytes) = (*count + 1, *bytes + range.data.len() as u64);
        });
    };
    let found = match &files.small {
        Some(small) => repair::salvage_hybrid(file, small, see),
        None => repair::salvage(file, see),
    };
    let Some(found) = found.map_err(failure)? else {
        output.print(format!("{}: undamaged, nothing has been changed", file.display()));
        return Ok(());
    };
    let name =
        |segment: &u32| lost.segments.get(segment).or(names.segments.get(segment)).map_or("?", |name| name);
    let lost_ranges: Vec<String> = ranges
        .iter()
        .map(|(segment, (count, bytes))| format!("{}: {count} ranges, {bytes} B", name(segment)))
        .collect();
    let copies: Vec<String> = found.copies.iter().map(|copy| copy.display().to_string()).collect();
    facts::print(
        output,
        "nvlab.log-salvage/1",
        &[
            ("kept_commits", found.commits.into()),
            ("damaged_file", found.file.into()),
            ("damaged_at", found.offset.into()),
            ("why", found.why.into()),
            ("lost_commits_at_least", (lost.commits + u64::from(found.loses_records)).into()),
            ("lost_and_readable", lost_ranges.join("; ").into()),
            ("copy", copies.join(" ").into()),
        ],
    );
    Ok(())
}
