//! Traces as Parquet tables, as pandas, Polars, DuckDB and Spark write them: a request is a row, further columns are left
//! aside.
//!
//! | column | what |
//! |---|---|
//! | `time_s`, `time_ms`, `time_us`, `time_ns`, `time_ps`, or `time` | when: whole or floating-point numbers from any origin; `time` is a timestamp |
//! | `op` | text: `read`, `write`, `trim`, `flush`, or their first letters, in any case |
//! | `offset_bytes`, `offset_sectors` | the first byte, or sector of 512 B |
//! | `length_bytes`, `length_sectors` | how many |
//! | `volume` | optional: text or whole number |
//! | `fua` | optional: true for a write with force unit access |
//! | `response_s` ... `response_ps` | optional: time from a request to its response |
//!
//! 1. A file is read in batches of rows: what is held besides the result does not grow with the file. Nor with the files of a
//!    folder (`folder`), of which each has a smaller batch the more there are.
//! 2. Written are `time_ps`, `op`, `offset_bytes`, `length_bytes`, `volume`, `fua`, and `response_ps` if known: nothing is lost.

mod column;
mod file;
mod folder;
#[cfg(test)]
mod tests;
mod writer;

pub use column::{Batch, Cells, FieldKind, TableField, Text};
pub(crate) use folder::{Partitions, read_folder};
pub(crate) use writer::write;

use crate::columns::{Columns, Origin};
use crate::format::Format;
use crate::options::ReadOptions;
use crate::report::ReadReport;
use crate::rows::{Rows, Volumes};
use crate::text::lines::{Bad, BadLine};
use crate::{Op, TraceError};
use file::TableFile;
use parquet::file::reader::ChunkReader;
use std::path::Path;

/// What a Parquet file begins with.
pub(crate) const MAGIC: &[u8] = b"PAR1";
const BATCH_ROWS: usize = 1 << 16;
const SECTOR_BYTES: u64 = 512;
/// Picoseconds of the units that names of columns end with.
const UNITS: [(&str, u64); 5] =
    [("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
const COLUMNS: &str = "time_UNIT with UNIT s, ms, us, ns or ps, or a timestamp `time`; op; offset_bytes or \
                       offset_sectors; length_bytes or length_sectors; optionally volume, fua, response_UNIT";

/// A column and what one of its units is worth: bytes, or picoseconds.
#[derive(Clone, Copy, Debug)]
struct Scaled {
    index: usize,
    unit: u64,
}

/// Where the parts of a request are.
#[derive(Debug)]
struct Layout {
    time: Scaled,
    op: usize,
    offset: Scaled,
    length: Scaled,
    volume: Option<usize>,
    fua: Option<usize>,
    response: Option<Scaled>,
}

impl Layout {
    fn of(fields: &[TableField]) -> Result<Layout, String> {
        let find = |name: &str| fields.iter().position(|field| field.name == name);
        let scaled = |names: &[(String, u64)]| -> Result<Option<Scaled>, String> {
            let found = |(name, unit): &(String, u64)| Some(Scaled { index: find(name)?, unit: *unit });
            let all: Vec<Scaled> = names.iter().filter_map(found).collect();
            match all[..] {
                [] => Ok(None),
                [one] => Ok(Some(one)),
                [first, second, ..] => {
                    let name = |column: Scaled| &fields[column.index].name;
                    Err(format!("it has both `{}` and `{}`", name(first), name(second)))
                }
            }
        };
        let times = |of: &str| UNITS.map(|(unit, ps)| (format!("{of}_{unit}"), ps)).to_vec();
        let sizes = |of: &str| [(format!("{of}_bytes"), 1), (format!("{of}_sectors"), SECTOR_BYTES)].to_vec();
        let missing = |what: &str| {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            format!("it has no column for {what}; its columns are {}; needed: {COLUMNS}", names.join(", "))
        };
        let timestamp = |index: usize| match fields[index].kind {
            FieldKind::Timestamp(unit) => Some(Scaled { index, unit }),
            FieldKind::Real | FieldKind::Other => None,
        };
        let time = scaled(&times("time"))?.or_else(|| find("time").and_then(timestamp));
        Ok(Layout {
            time: time.ok_or_else(|| missing("the time"))?,
            op: find("op").ok_or_else(|| missing("the operation"))?,
            offset: scaled(&sizes("offset"))?.ok_or_else(|| missing("the offset"))?,
            length: scaled(&sizes("length"))?.ok_or_else(|| missing("the length"))?,
            volume: find("volume"),
            fua: find("fua"),
            response: scaled(&times("response"))?,
        })
    }

    /// What its times are whole numbers of: those in floating point are kept in nanoseconds.
    fn tick_ps(&self, fields: &[TableField]) -> u64 {
        let is_float = fields[self.time.index].kind == FieldKind::Real;
        if is_float { self.time.unit.min(1_000) } else { self.time.unit }
    }

    /// Its columns, in the order of the file.
    fn all(&self) -> Vec<usize> {
        let always = [self.time.index, self.op, self.offset.index, self.length.index];
        let others = [self.volume, self.fua, self.response.map(|response| response.index)];
        let mut all: Vec<usize> = always.into_iter().chain(others.into_iter().flatten()).collect();
        all.sort_unstable();
        all
    }

    /// The same columns in a table that has only them, in the order of the file.
    fn projected(&self) -> Layout {
        let kept = self.all();
        let place = |index: usize| kept.binary_search(&index).expect("it is one of them");
        let scaled = |column: Scaled| Scaled { index: place(column.index), ..column };
        Layout {
            time: scaled(self.time),
            op: place(self.op),
            offset: scaled(self.offset),
            length: scaled(self.length),
            volume: self.volume.map(place),
            fua: self.fua.map(place),
            response: self.response.map(scaled),
        }
    }
}

/// Reads a table.
pub(crate) fn read<R: ChunkReader + 'static>(
    reader: R,
    hash: u64,
    path: &Path,
    options: &ReadOptions,
) -> Result<(Columns, ReadReport), TraceError> {
    let origin = Origin { format: Format::Parquet.name().to_owned(), hash };
    Table::open(reader, path, BATCH_ROWS)?.requests(options, origin)
}

/// Takes over the rows of a table in memory, which messages call `name`.
pub(crate) fn take(
    fields: &[TableField],
    batches: impl Iterator<Item = Batch> + Send + 'static,
    name: &str,
) -> Result<(Columns, ReadReport), TraceError> {
    let layout = Layout::of(fields).map_err(|reason| TraceError::Table { file: name.to_owned(), reason })?;
    let table = Table {
        file: name.to_owned(),
        tick_ps: layout.tick_ps(fields),
        names: fields.iter().map(|field| field.name.clone()).collect(),
        batches: Box::new(batches),
        layout,
        volume: None,
        row_count: 0,
        read: 0,
    };
    table.requests(&ReadOptions::default(), Origin { format: name.to_owned(), hash: 0 })
}

/// A row that was read; `volume` is `None` if it is not selected.
#[derive(Clone, Copy, Debug)]
struct Row {
    ticks: u64,
    offset: u64,
    length: u64,
    op: Op,
    volume: Option<u16>,
    fua: bool,
    response: Option<u64>,
}

/// A table being read, batch by batch.
struct Table {
    file: String,
    batches: Box<dyn Iterator<Item = Batch> + Send>,
    /// Names of the columns in a batch.
    names: Vec<String>,
    layout: Layout,
    /// Its times are whole numbers of this.
    tick_ps: u64,
    /// The volume of every row, if its place in a folder says it.
    volume: Option<String>,
    row_count: u64,
    /// Rows in the batches read.
    read: u64,
}

impl Table {
    fn open<R: ChunkReader + 'static>(
        reader: R,
        path: &Path,
        batch_rows: usize,
    ) -> Result<Table, TraceError> {
        let file = path.display().to_string();
        let refuse = |reason: String| TraceError::Table { file: file.clone(), reason };
        let table = TableFile::open(reader).map_err(|error| refuse(error.to_string()))?;
        let layout = Layout::of(&table.fields).map_err(&refuse)?;
        let (tick_ps, row_count) = (layout.tick_ps(&table.fields), table.row_count());
        let columns = layout.all();
        let names = columns.iter().map(|&index| table.fields[index].name.clone()).collect();
        let layout = layout.projected();
        let batches = Box::new(table.batches(columns, batch_rows));
        Ok(Table { file, batches, names, layout, tick_ps, volume: None, row_count, read: 0 })
    }

    /// Turns the cells of a batch into requests.
    fn requests(
        mut self,
        options: &ReadOptions,
        origin: Origin,
    ) -> Result<(Columns, ReadReport), TraceError> {
        let report = ReadReport { format: Some(Format::Parquet), ..ReadReport::default() };
        let mut rows = Rows::new(&options.volumes, report);
        let mut read = Vec::new();
        let mut number = 0;
        while self.batch(self.tick_ps, &mut rows.volumes, &mut read)? {
            for row in read.drain(..) {
                number += 1;
                put(row, &mut rows, options).map_err(|bad| self.wrong(number, *bad))?;
            }
            if options.lines_max.is_some_and(|most| number >= most) {
                break;
            }
        }
        rows.report.lines = number;
        rows.finish(&self.file, self.tick_ps, origin)
    }

    /// What is wrong with a row, counted from 1.
    fn wrong(&self, row: u64, bad: Bad) -> TraceError {
        let (column, found, allowed) = (bad.column.into_owned(), bad.found, bad.allowed);
        TraceError::Row { file: self.file.clone(), row, column, found, allowed }
    }

    /// Reads the next batch into `into`, with times in ticks of `tick_ps`; returns false at the end.
    fn batch(
        &mut self,
        tick_ps: u64,
        volumes: &mut Volumes,
        into: &mut Vec<Result<Row, BadLine>>,
    ) -> Result<bool, TraceError> {
        let Some(batch) = self.batches.next() else { return Ok(false) };
        let batch = batch.map_err(|reason| TraceError::Table { file: self.file.clone(), reason })?;
        let (first_row, layout) = (self.read, &self.layout);
        let at = |index: usize| {
            let (file, column) = (self.file.clone(), self.names[index].clone());
            move |column::Problem { row, found, allowed }| TraceError::Row {
                file,
                row: first_row + row as u64 + 1,
                column,
                found,
                allowed,
            }
        };
        let numbers = |column: Scaled, tick: u64| {
            batch[column.index].whole(column.unit, tick).map_err(at(column.index))
        };
        let texts = |index: usize| batch[index].texts().map_err(at(index));
        let times = numbers(layout.time, tick_ps)?;
        let offsets = numbers(layout.offset, 1)?;
        let lengths = numbers(layout.length, 1)?;
        let ops = texts(layout.op)?;
        let named = layout.volume.map(texts).transpose()?;
        let fua = layout.fua.map(|index| batch[index].flags().map_err(at(index))).transpose()?;
        let response = layout.response.map(|column| numbers(column, tick_ps)).transpose()?;
        self.read += times.len() as u64;
        let of_all = self.volume.as_deref().unwrap_or("0").as_bytes();
        into.extend((0..times.len()).map(|row| {
            let op = op_of(&ops[row]);
            let op = op.ok_or_else(|| Bad::bytes("op", &ops[row], "read, write, trim or flush"))?;
            let volume = match (&self.volume, &named) {
                (None, Some(named)) => &named[row],
                _ => of_all,
            };
            Ok(Row {
                ticks: times[row],
                offset: offsets[row],
                length: lengths[row],
                op,
                volume: volumes.named(volume)?,
                fua: fua.as_ref().is_some_and(|fua| fua[row]),
                response: response.as_ref().map(|response| response[row]),
            })
        }));
        Ok(true)
    }
}

/// Adds a row to the requests, or leaves it out if it is bad and may be left out.
fn put(row: Result<Row, BadLine>, rows: &mut Rows, options: &ReadOptions) -> Result<(), BadLine> {
    let result = row.and_then(|row| {
        if rows.is_full() {
            let allowed = "at most 2^30 requests; read single volumes with volume=NAME";
            return Err(Bad::new("op", "", allowed));
        }
        let Row { ticks, offset, length, op, volume, fua, response } = row;
        match op {
            Op::Flush => rows.flush(ticks, volume),
            _ => rows.push(ticks, offset, length, op, volume)?,
        }
        if op == Op::Write && fua {
            rows.mark_fua();
        }
        response.into_iter().for_each(|response| rows.answered(response));
        Ok(())
    });
    result.or_else(|bad| rows.forgive(bad, true, options.skip_bad))
}

fn op_of(text: &[u8]) -> Option<Op> {
    let is = |op: &Op| {
        let name = op.name().as_bytes();
        text.eq_ignore_ascii_case(name) || text.eq_ignore_ascii_case(&name[..1])
    };
    Op::ALL.into_iter().find(is)
}
