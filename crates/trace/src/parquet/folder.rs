//! A trace in several Parquet files below a folder: read as one in order of time, by merging.
//!
//! The volume of a file is, in this order: what a folder on the way to it says (`volume=17/part-0.parquet`, as Hive, Spark, DuckDB
//! and Arrow partition tables), its column `volume`, its name without the ending. Files and folders whose names begin with `.` or
//! `_` are left aside, as those programs do.
//!
//! Of each file one batch of rows is held, so that all together are about as many as of a single file. A file whose rows are
//! out of order is read like a single one: rows that come too late are sorted at the end.

use super::{BATCH_ROWS, Row, Table, put, writer};
use crate::TraceError;
use crate::columns::{Columns, Origin};
use crate::format::Format;
use crate::options::ReadOptions;
use crate::report::ReadReport;
use crate::rows::Rows;
use crate::source::hash_of;
use crate::text::lines::BadLine;
use crate::write::WriteReport;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io::Error;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// What the name of a folder with one volume begins with.
const PARTITION: &str = "volume=";
const ENDING: &str = "parquet";
/// Rows of a batch, at least.
const BATCH_ROWS_MIN: usize = 1 << 10;
/// Rows in the batches of all files together, unless there are very many files.
const ROWS_HELD: usize = 4 * BATCH_ROWS;
/// Files open at once, at most.
const FILES_MAX: usize = 4096;
/// Requests that wait to be written, of all volumes, at most: some 200 MB.
const ROWS_WAITING: usize = 8 << 20;
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
pub(crate) fn read_folder(folder: &Path, options: &ReadOptions) -> Result<(Columns, ReadReport), TraceError> {
    let name = folder.display().to_string();
    let refuse = |reason: String| TraceError::Table { file: name.clone(), reason };
    if let Some(format) = options.format.filter(|&format| format != Format::Parquet) {
        return Err(refuse(format!(
            "it is a folder: only Parquet files can be read as a folder, not {format}"
        )));
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
fn find(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> Result<(), TraceError> {
    let failed = |source| TraceError::File { path: folder.to_owned(), source };
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
        let reason = format!("it contains more than {FILES_MAX} files; read some of them");
        return Err(TraceError::Table { file: folder.display().to_string(), reason });
    }
    Ok(())
}

/// Opens the tables with selected volumes; also returns the hash of all.
fn open(
    folder: &Path,
    files: &[PathBuf],
    options: &ReadOptions,
    rows: &mut Rows,
) -> Result<(Vec<Part>, u64), TraceError> {
    let batch_rows = (ROWS_HELD / files.len()).clamp(BATCH_ROWS_MIN, BATCH_ROWS);
    let (mut parts, mut hashes) = (Vec::new(), Vec::new());
    for path in files {
        let failed = |source| TraceError::File { path: path.clone(), source };
        let mut file = File::open(path).map_err(failed)?;
        if options.lines_max.is_none() {
            let hash = hash_of(&mut file).map_err(failed)?;
            let place = path.strip_prefix(folder).unwrap_or(path);
            hashes.push((place.display().to_string(), hash));
        }
        let mut table = Table::open(file, path, batch_rows)?;
        let partition = partition_of(path, folder);
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
fn merge(parts: &mut [Part], tick_ps: u64, rows: &mut Rows, options: &ReadOptions) -> Result<(), TraceError> {
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
    fn next_ticks(&mut self, tick_ps: u64, rows: &mut Rows, now: u64) -> Result<Option<u64>, TraceError> {
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

/// The volume that a folder on the way to a file names, or `folder` itself.
fn partition_of(path: &Path, folder: &Path) -> Option<String> {
    let inside = path.parent()?.strip_prefix(folder).unwrap_or(path);
    let names = folder.components().next_back().into_iter().chain(inside.components()).rev();
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

/// Volumes on their way into folders of their own: `volume=NAME/part-N.parquet`.
pub(crate) struct Partitions {
    folder: PathBuf,
    volumes: Vec<Partition>,
    by_name: HashMap<String, usize>,
    rows: usize,
    written: Vec<(PathBuf, WriteReport)>,
}

/// The requests of a volume that were not written yet, and how many tables were.
struct Partition {
    columns: Columns,
    parts: u32,
}

impl Partitions {
    pub fn new(folder: &Path) -> Partitions {
        let folder = folder.to_owned();
        Partitions { folder, volumes: Vec::new(), by_name: HashMap::new(), rows: 0, written: Vec::new() }
    }

    /// Adds a part of the trace. The largest volumes are written when there are too many requests in memory.
    pub fn add(&mut self, columns: &Columns) -> Result<(), TraceError> {
        for part in columns.split() {
            self.rows += part.len();
            match self.by_name.get(&part.volumes()[0]) {
                Some(&volume) => self.volumes[volume].columns.append(&part),
                None => {
                    self.by_name.insert(part.volumes()[0].clone(), self.volumes.len());
                    self.volumes.push(Partition { columns: part, parts: 0 });
                }
            }
        }
        if self.rows <= ROWS_WAITING {
            return Ok(());
        }
        let mut order: Vec<usize> = (0..self.volumes.len()).collect();
        order.sort_by_key(|&volume| std::cmp::Reverse(self.volumes[volume].columns.len()));
        for volume in order {
            if self.rows <= ROWS_WAITING / 2 {
                break;
            }
            self.write(volume)?;
        }
        Ok(())
    }

    /// Writes the rest; returns all files.
    pub fn finish(mut self) -> Result<Vec<(PathBuf, WriteReport)>, TraceError> {
        (0..self.volumes.len()).try_for_each(|volume| self.write(volume))?;
        Ok(self.written)
    }

    fn write(&mut self, volume: usize) -> Result<(), TraceError> {
        let Partition { columns, parts } = &mut self.volumes[volume];
        if columns.is_empty() {
            return Ok(());
        }
        let inside = self.folder.join(format!("{PARTITION}{}", escaped(&columns.volumes()[0])));
        let path = inside.join(format!("part-{parts}.{ENDING}"));
        let failed = |source: Error| TraceError::File { path: path.clone(), source };
        std::fs::create_dir_all(&inside).map_err(failed)?;
        let file = File::create_new(&path).map_err(failed)?;
        writer::write_part(columns, &file).and_then(|()| file.sync_all()).map_err(failed)?;
        let requests = columns.len();
        columns.truncate(0);
        *parts += 1;
        self.rows -= requests;
        self.written.push((path, WriteReport { requests: requests as u64, ..WriteReport::default() }));
        Ok(())
    }
}
