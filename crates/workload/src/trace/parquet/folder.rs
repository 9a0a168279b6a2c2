//! A trace in several Parquet files below a folder: read as one in order of time, by merging.
//!
//! The volume of a file is, in this order: what a folder on the way to it says (`volume=17/part-0.parquet`, as Hive, Spark, DuckDB
//! and Arrow partition tables), its column `volume`, its name without the ending. Files and folders whose names begin with `.` or
//! `_` are left aside, as those programs do.
//!
//! Of each file one batch of rows is held, so that all together are about as many as of a single file. A file whose rows are
//! out of order is read like a single one: rows that come too late are sorted at the end.

use super::{BATCH_ROWS, Row, Table, put, writer};
use crate::WorkloadError;
use crate::columns::{Columns, Origin};
use crate::trace::lines::BadLine;
use crate::trace::rows::Rows;
use crate::trace::source::hash_of;
use crate::trace::{Format, ReadOptions, ReadReport, WriteReport};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::Error;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// What the name of a folder with one volume begins with.
const PARTITION: &str = "volume=";
const ENDING: &str = "parquet";
/// Rows of a batch, at least.
const BATCH_ROWS_MIN: usize = 1 << 10;
/// Batches of all files together hold so many rows, unless there are very many files.
const ROWS_HELD: usize = 4 * BATCH_ROWS;
/// Files open at once, at most.
const FILES_MAX: usize = 4096;
/// Folders within folders, at most.
const DEPTH_MAX: u32 = 8;

/// A table and the rows of its batch that are left, in reverse order.
struct Part {
    table: Table,
    rows: Vec<Result<Row, BadLine>>,
    /// The number of the next row, from 1.
    number: u64,
}

/// Reads every table below a folder.
pub(in crate::trace) fn read_folder(
    folder: &Path,
    options: &ReadOptions,
) -> Result<(Columns, ReadReport), WorkloadError> {
    let name = folder.display().to_string();
    let refuse = |reason: String| WorkloadError::Table { file: name.clone(), reason };
    if let Some(format) = options.format.filter(|&format| format != Format::Parquet) {
        return Err(refuse(format!("it is a folder: only Parquet files are read together, not {format}")));
    }
    let mut files = Vec::new();
    find(folder, DEPTH_MAX, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(refuse(format!("no file below it ends in .{ENDING}")));
    }
    let report = ReadReport { format: Some(Format::Parquet), ..ReadReport::default() };
    let mut rows = Rows::new(&options.volumes, report);
    let (mut parts, hash) = open(folder, &files, options, &mut rows)?;
    // Every tick is a multiple of the smallest.
    let tick_ps = parts.iter().map(|part| part.table.tick_ps).min().unwrap_or(1);
    merge(&mut parts, tick_ps, &mut rows, options)?;
    rows.report.lines += parts.iter().map(|part| part.number - 1).sum::<u64>();
    let origin = Origin { format: Format::Parquet.name().to_owned(), hash };
    rows.finish(&name, tick_ps, origin)
}

/// The tables below a folder.
fn find(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> Result<(), WorkloadError> {
    let failed = |source| WorkloadError::File { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(['.', '_']) {
            continue;
        }
        if path.is_dir() && depth > 0 {
            find(&path, depth - 1, files)?;
        } else if path.extension().is_some_and(|ending| ending == ENDING) && path.is_file() {
            files.push(path);
        }
    }
    if files.len() > FILES_MAX {
        let reason = format!("more than {FILES_MAX} files lie below it; read some of them");
        return Err(WorkloadError::Table { file: folder.display().to_string(), reason });
    }
    Ok(())
}

/// Opens the tables with selected volumes; also returns the hash of all.
fn open(
    folder: &Path,
    files: &[PathBuf],
    options: &ReadOptions,
    rows: &mut Rows,
) -> Result<(Vec<Part>, u64), WorkloadError> {
    let batch_rows = (ROWS_HELD / files.len()).clamp(BATCH_ROWS_MIN, BATCH_ROWS);
    let (mut parts, mut hashes) = (Vec::new(), Vec::new());
    for path in files {
        let failed = |source| WorkloadError::File { path: path.clone(), source };
        let mut file = File::open(path).map_err(failed)?;
        if options.lines_max.is_none() {
            let hash = hash_of(&mut file).map_err(failed)?;
            let place = path.strip_prefix(folder).unwrap_or(path);
            hashes.push((place.display().to_string(), hash));
        }
        let mut table = Table::open(file, path, batch_rows)?;
        let partition = partition_of(path.strip_prefix(folder).unwrap_or(path));
        table.volume = partition.or_else(|| {
            let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            table.layout.volume.is_none().then(stem)
        });
        if let Some(volume) = &table.volume {
            let known = rows.volumes.named(volume.as_bytes()).map_err(|bad| table.wrong(1, *bad))?;
            if known.is_none() {
                rows.report.other_volumes += table.row_count;
                rows.report.lines += table.row_count;
                continue;
            }
        }
        parts.push(Part { table, rows: Vec::new(), number: 1 });
    }
    Ok((parts, xxh3_64(format!("{hashes:x?}").as_bytes())))
}

/// Adds the rows of all parts in order of time, those of the same time in the order of the parts.
fn merge(
    parts: &mut [Part],
    tick_ps: u64,
    rows: &mut Rows,
    options: &ReadOptions,
) -> Result<(), WorkloadError> {
    let mut next = BinaryHeap::with_capacity(parts.len());
    for (index, part) in parts.iter_mut().enumerate() {
        next.extend(part.next_ticks(tick_ps, rows, 0)?.map(|ticks| Reverse((ticks, index))));
    }
    let mut left = options.lines_max.unwrap_or(u64::MAX);
    while let Some(Reverse((ticks, index))) = next.pop() {
        let part = &mut parts[index];
        let row = part.rows.pop().expect("a part with a row");
        put(row, rows, options).map_err(|bad| part.table.wrong(part.number, *bad))?;
        part.number += 1;
        left -= 1;
        if left == 0 {
            break;
        }
        next.extend(part.next_ticks(tick_ps, rows, ticks)?.map(|ticks| Reverse((ticks, index))));
    }
    Ok(())
}

impl Part {
    /// When the next row is; a bad one is due at once, at `now`. `None` at the end.
    fn next_ticks(&mut self, tick_ps: u64, rows: &mut Rows, now: u64) -> Result<Option<u64>, WorkloadError> {
        while self.rows.is_empty() {
            if !self.table.batch(tick_ps, &mut rows.volumes, &mut self.rows)? {
                return Ok(None);
            }
            self.rows.reverse();
        }
        let row = self.rows.last().expect("a row that is left");
        Ok(Some(row.as_ref().map_or(now, |row| row.ticks)))
    }
}

/// The volume that a folder on the way to a file names.
fn partition_of(path: &Path) -> Option<String> {
    let names = path.parent()?.components().rev();
    names.into_iter().find_map(|name| unescaped(name.as_os_str().to_str()?.strip_prefix(PARTITION)?))
}

/// `%2F` stands for `/`, as Hive writes names.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let escape = |byte: u8| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

/// Writes a folder for each volume, `volume=NAME/part-0.parquet`, with the times of the whole trace. No such file may exist.
pub(in crate::trace) fn write_folder(
    columns: &Columns,
    folder: &Path,
) -> Result<Vec<(PathBuf, WriteReport)>, WorkloadError> {
    let mut written = Vec::new();
    for part in columns.split() {
        let inside = folder.join(format!("{PARTITION}{}", escaped(&part.volumes()[0])));
        let path = inside.join(format!("part-0.{ENDING}"));
        let failed = |source: Error| WorkloadError::File { path: path.clone(), source };
        std::fs::create_dir_all(&inside).map_err(failed)?;
        let file = File::create_new(&path).map_err(failed)?;
        writer::write_part(&part, &file).and_then(|()| file.sync_all()).map_err(failed)?;
        written.push((path, WriteReport { requests: part.len() as u64, ..WriteReport::default() }));
    }
    Ok(written)
}
