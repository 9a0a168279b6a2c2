//! Writing a table.

use super::BATCH_ROWS;
use crate::columns::{Columns, FUA_BIT, op_of};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io::{Error, Result, Write};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a row group: what a reader holds at least.
const GROUP_ROWS: usize = 1 << 20;

/// Some requests of a trace as a table.
pub fn record_batch(columns: &Columns, rows: Range<usize>) -> RecordBatch {
    RecordBatch::try_new(schema_of(columns, true), arrays(columns, true, rows))
        .expect("a column has a value for each row")
}

/// Writes a trace; equal traces give equal bytes.
pub(crate) fn write(columns: &Columns, out: impl Write + Send) -> Result<()> {
    write_table(columns, true, out)
}

/// Writes a trace of one volume that the name of its folder says: the column would be there twice.
pub(super) fn write_part(columns: &Columns, out: impl Write + Send) -> Result<()> {
    write_table(columns, false, out)
}

fn schema_of(columns: &Columns, names_volumes: bool) -> SchemaRef {
    let numbers = |name, kind| Field::new(name, kind, false);
    let mut fields = vec![
        numbers("time_ps", DataType::UInt64),
        numbers("op", DataType::Utf8),
        numbers("offset_bytes", DataType::UInt64),
        numbers("length_bytes", DataType::UInt32),
    ];
    fields.extend(names_volumes.then(|| numbers("volume", DataType::Utf8)));
    fields.push(numbers("fua", DataType::Boolean));
    if columns.response_ps().is_some() {
        fields.push(numbers("response_ps", DataType::UInt64));
    }
    Arc::new(Schema::new(fields))
}

fn write_table(columns: &Columns, names_volumes: bool, out: impl Write + Send) -> Result<()> {
    let schema = schema_of(columns, names_volumes);
    let level = ZstdLevel::try_new(3).map_err(Error::other)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(Error::other)?;
    for first in (0..columns.len()).step_by(BATCH_ROWS) {
        let rows = first..columns.len().min(first + BATCH_ROWS);
        let batch = RecordBatch::try_new(schema.clone(), arrays(columns, names_volumes, rows))
            .map_err(Error::other)?;
        writer.write(&batch).map_err(Error::other)?;
    }
    writer.close().map_err(Error::other)?;
    Ok(())
}

fn arrays(columns: &Columns, names_volumes: bool, rows: Range<usize>) -> Vec<ArrayRef> {
    let ops = columns.op[rows.clone()].iter().map(|&code| Some(op_of(code).name()));
    let fua = columns.op[rows.clone()].iter().map(|&code| Some(code & FUA_BIT != 0));
    let volumes = columns.volume[rows.clone()].iter();
    let volumes = volumes.map(|&number| Some(columns.volumes[number as usize].as_str()));
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from_iter_values(columns.at_ps[rows.clone()].iter().copied())),
        Arc::new(ops.collect::<StringArray>()),
        Arc::new(UInt64Array::from_iter_values(columns.offset[rows.clone()].iter().copied())),
        Arc::new(UInt32Array::from_iter_values(columns.bytes[rows.clone()].iter().copied())),
    ];
    if names_volumes {
        arrays.push(Arc::new(volumes.collect::<StringArray>()));
    }
    arrays.push(Arc::new(fua.collect::<BooleanArray>()));
    if let Some(responses) = columns.response_ps() {
        arrays.push(Arc::new(UInt64Array::from_iter_values(responses[rows].iter().copied())));
    }
    arrays
}
