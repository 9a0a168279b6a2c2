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
//! 1. A file is read in batches of rows: what is held besides the result does not grow with the file.
//! 2. Written are `time_ps`, `op`, `offset_bytes`, `length_bytes`, `volume`, `fua`, and `response_ps` if known: nothing is lost.

mod column;
#[cfg(test)]
mod tests;
mod writer;

pub use writer::record_batch;
pub(super) use writer::write;

use super::lines::Bad;
use super::rows::Rows;
use super::{ReadOptions, ReadReport};
use crate::columns::{Columns, Origin};
use crate::{Op, WorkloadError};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, TimeUnit};
use column::{flags, texts, whole};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::reader::ChunkReader;
use std::path::Path;

/// What a Parquet file begins with.
pub(super) const MAGIC: &[u8] = b"PAR1";
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
    fn of(schema: &Schema) -> Result<Layout, String> {
        let find = |name: &str| schema.fields().iter().position(|field| field.name() == name);
        let scaled = |names: &[(String, u64)]| -> Result<Option<Scaled>, String> {
            let found = |(name, unit): &(String, u64)| Some(Scaled { index: find(name)?, unit: *unit });
            let all: Vec<Scaled> = names.iter().filter_map(found).collect();
            match all[..] {
                [] => Ok(None),
                [one] => Ok(Some(one)),
                [first, second, ..] => {
                    let name = |column: Scaled| schema.field(column.index).name().clone();
                    Err(format!("it has both `{}` and `{}`", name(first), name(second)))
                }
            }
        };
        let times = |of: &str| UNITS.map(|(unit, ps)| (format!("{of}_{unit}"), ps)).to_vec();
        let sizes = |of: &str| [(format!("{of}_bytes"), 1), (format!("{of}_sectors"), SECTOR_BYTES)].to_vec();
        let missing = |what: &str| {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            format!("it has no column for {what}; it has {}; needed: {COLUMNS}", names.join(", "))
        };
        let timestamp = |index: usize| match schema.field(index).data_type() {
            DataType::Timestamp(unit, _) => Some(Scaled { index, unit: picoseconds(unit) }),
            _ => None,
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

    fn all(&self) -> impl Iterator<Item = usize> {
        let always = [self.time.index, self.op, self.offset.index, self.length.index];
        let others = [self.volume, self.fua, self.response.map(|response| response.index)];
        always.into_iter().chain(others.into_iter().flatten())
    }

    /// The same columns in a table that has only them, in the order of the file.
    fn projected(&self) -> Layout {
        let mut kept: Vec<usize> = self.all().collect();
        kept.sort_unstable();
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

fn picoseconds(unit: &TimeUnit) -> u64 {
    match unit {
        TimeUnit::Second => 1_000_000_000_000,
        TimeUnit::Millisecond => 1_000_000_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000,
    }
}

/// Reads a table.
pub(super) fn read<R: ChunkReader + 'static>(
    reader: R,
    hash: u64,
    path: &Path,
    options: &ReadOptions,
) -> Result<(Columns, ReadReport), WorkloadError> {
    let file = path.display().to_string();
    let refuse = |reason: String| WorkloadError::Table { file: file.clone(), reason };
    // The types of the file itself, not those of the library that wrote it: no dictionaries, one kind of text.
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(reader, plain)
        .map_err(|error| refuse(error.to_string()))?;
    let layout = Layout::of(builder.schema()).map_err(&refuse)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), layout.all());
    let batches = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
    let layout = layout.projected();
    let report = ReadReport { format: Some(super::Format::Parquet), ..ReadReport::default() };
    let mut table =
        Table { rows: Rows::new(&options.volumes, report), first_row: 0, file: &file, tick_ps: 1 };
    for batch in batches.map_err(|error| refuse(error.to_string()))? {
        let batch = batch.map_err(|error| refuse(error.to_string()))?;
        table.add(&layout, &batch, options)?;
        table.first_row += batch.num_rows() as u64;
        if options.lines_max.is_some_and(|most| table.first_row >= most) {
            break;
        }
    }
    let Table { mut rows, tick_ps, first_row, .. } = table;
    rows.report.lines = first_row;
    let origin = Origin { format: super::Format::Parquet.name().to_owned(), hash };
    rows.finish(&file, tick_ps, origin)
}

/// The requests read so far.
struct Table<'a> {
    rows: Rows,
    /// The number of the batch's first row, from 0.
    first_row: u64,
    file: &'a str,
    tick_ps: u64,
}

impl Table<'_> {
    fn add(
        &mut self,
        layout: &Layout,
        batch: &RecordBatch,
        options: &ReadOptions,
    ) -> Result<(), WorkloadError> {
        let schema = batch.schema();
        let name = |index: usize| schema.field(index).name().as_str();
        let wrong = |index: usize, first_row: u64, file: &str, problem: column::Problem| WorkloadError::Row {
            file: file.to_owned(),
            row: first_row + problem.row as u64 + 1,
            column: name(index).to_owned(),
            found: problem.found,
            allowed: problem.allowed,
        };
        let (first_row, file) = (self.first_row, self.file);
        let at = |index: usize| move |problem| wrong(index, first_row, file, problem);
        let numbers = |column: Scaled, tick: u64| {
            whole(batch.column(column.index), column.unit, tick).map_err(at(column.index))
        };
        // Times in floating point are kept in nanoseconds.
        let is_float = batch.column(layout.time.index).data_type().is_floating();
        self.tick_ps = if is_float { layout.time.unit.min(1_000) } else { layout.time.unit };
        let times = numbers(layout.time, self.tick_ps)?;
        let offsets = numbers(layout.offset, 1)?;
        let lengths = numbers(layout.length, 1)?;
        let ops = texts(batch.column(layout.op)).map_err(at(layout.op))?;
        let volumes = layout.volume.map(|index| texts(batch.column(index)).map_err(at(index))).transpose()?;
        let fua = layout.fua.map(|index| flags(batch.column(index)).map_err(at(index))).transpose()?;
        let response = layout.response.map(|column| numbers(column, self.tick_ps)).transpose()?;
        for row in 0..batch.num_rows() {
            let volume = volumes.as_ref().map_or(&b"0"[..], |volumes| &volumes[row]);
            let result = (|| {
                if self.rows.is_full() {
                    return Err(Bad::new(
                        "op",
                        "",
                        "at most 2^30 requests; read single volumes with volume=NAME",
                    ));
                }
                let op = op_of(&ops[row])
                    .ok_or_else(|| Bad::bytes("op", &ops[row], "read, write, trim or flush"))?;
                let volume = self.rows.volumes.named(volume)?;
                if op == Op::Flush {
                    self.rows.flush(times[row], volume);
                } else {
                    self.rows.push(times[row], offsets[row], lengths[row], op, volume)?;
                }
                if volume.is_some() && lengths[row] + u64::from(op == Op::Flush) > 0 {
                    if op == Op::Write && fua.as_ref().is_some_and(|fua| fua[row]) {
                        self.rows.mark_fua();
                    }
                    response.iter().for_each(|response| self.rows.answered(response[row]));
                }
                Ok(())
            })();
            let result = result.or_else(|bad| self.rows.forgive(bad, true, options.skip_bad));
            result.map_err(|bad| WorkloadError::Row {
                file: file.to_owned(),
                row: first_row + row as u64 + 1,
                column: bad.column.to_owned(),
                found: bad.found,
                allowed: bad.allowed,
            })?;
        }
        Ok(())
    }
}

fn op_of(text: &[u8]) -> Option<Op> {
    let is = |op: &Op| {
        let name = op.name().as_bytes();
        text.eq_ignore_ascii_case(name) || text.eq_ignore_ascii_case(&name[..1])
    };
    Op::ALL.into_iter().find(is)
}
