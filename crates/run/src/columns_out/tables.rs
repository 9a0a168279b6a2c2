//! The columns of a result as Parquet: zstd, one row group, units in the names, key and schema as metadata.

use crate::result::{OpResult, RunResult, Window};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Names and versions of the tables of a run.
const SERIES: &str = "nvlab.series/1";
const HISTOGRAMS: &str = "nvlab.hist/1";

/// The windows of a run. What a window does not have (the latency of reads when nothing was read) is null.
pub fn series(run: &RunResult) -> RecordBatch {
    type Counts = fn(&Window) -> u64;
    let real = |get: fn(&Window) -> f64| -> ArrayRef {
        Arc::new(run.series.iter().map(|window| Some(get(window))).collect::<Float64Array>())
    };
    let count = |get: Counts| -> ArrayRef {
        Arc::new(run.series.iter().map(|window| Some(get(window))).collect::<UInt64Array>())
    };
    let latency = |get: Counts| -> ArrayRef {
        Arc::new(
            run.series.iter().map(|window| Some(get(window)).filter(|ns| *ns > 0)).collect::<UInt64Array>(),
        )
    };
    let amplification: Float64Array =
        run.series.iter().map(|window| Some(window.write_amplification).filter(|wa| *wa > 0.0)).collect();
    of_run(
        run,
        SERIES,
        vec![
            ("from_s", real(|w| w.from_s)),
            ("to_s", real(|w| w.to_s)),
            ("requests", count(|w| w.requests)),
            ("read_bytes", count(|w| w.read_bytes)),
            ("write_bytes", count(|w| w.write_bytes)),
            ("read_p50_ns", latency(|w| w.read_p50_ns)),
            ("read_p99_ns", latency(|w| w.read_p99_ns)),
            ("write_p50_ns", latency(|w| w.write_p50_ns)),
            ("write_p99_ns", latency(|w| w.write_p99_ns)),
            ("write_amplification", Arc::new(amplification)),
            ("cleaning_cost", real(|w| w.cleaning_cost)),
            ("erases", count(|w| w.erases)),
        ],
    )
}

/// The latency buckets of every kind of request, ascending within a kind.
pub fn histograms(run: &RunResult) -> RecordBatch {
    let ops: [(&str, &OpResult); 4] =
        [("read", &run.read), ("write", &run.write), ("trim", &run.trim), ("flush", &run.flush)];
    let rows: Vec<(&str, u64, u64)> = ops
        .iter()
        .flat_map(|(name, op)| op.histogram_ns.iter().map(|&(upper, count)| (*name, upper, count)))
        .collect();
    let names: StringArray = rows.iter().map(|row| Some(row.0)).collect();
    let uppers: UInt64Array = rows.iter().map(|row| Some(row.1)).collect();
    let counts: UInt64Array = rows.iter().map(|row| Some(row.2)).collect();
    of_run(
        run,
        HISTOGRAMS,
        vec![("op", Arc::new(names)), ("upper_ns", Arc::new(uppers)), ("count", Arc::new(counts))],
    )
}

fn of_run(run: &RunResult, schema_name: &str, columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    // Nullable where a value may be missing, the same for every run: readers may put many runs into one table.
    let may_miss = |name: &str| name.contains("_p") || name == "write_amplification";
    let field = |(name, array): &(&str, ArrayRef)| -> Field {
        let kind: DataType = array.data_type().clone();
        Field::new(*name, kind, may_miss(name))
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let pairs = [("nvlab.schema", schema_name), ("nvlab.key", run.key.as_str())];
    let metadata: HashMap<String, String> =
        pairs.into_iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let schema = Schema::new_with_metadata(fields, metadata);
    RecordBatch::try_new(Arc::new(schema), arrays).expect("the columns have a value for each row")
}

/// A table as a Parquet file; equal tables give equal bytes. The metadata of its schema are those of the file.
pub fn parquet_of(batch: &RecordBatch) -> io::Result<Vec<u8>> {
    let mut metadata: Vec<(&String, &String)> = batch.schema_ref().metadata().iter().collect();
    metadata.sort_by_key(|(key, _)| order(key));
    let pair = |(key, value): (&String, &String)| KeyValue::new(key.clone(), value.clone());
    // The same table, without metadata of Arrow's own.
    let schema = Arc::new(batch.schema().as_ref().clone().with_metadata(HashMap::new()));
    let batch = RecordBatch::try_new(schema.clone(), batch.columns().to_vec()).map_err(io::Error::other)?;
    let level = ZstdLevel::try_new(3).map_err(io::Error::other)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_key_value_metadata(Some(metadata.into_iter().map(pair).collect()))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, schema, Some(properties)).map_err(io::Error::other)?;
    writer.write(&batch).map_err(io::Error::other)?;
    writer.close().map_err(io::Error::other)?;
    Ok(bytes)
}

/// Reads a table back from a file that [`parquet_of`] made, with its metadata.
pub fn table_of(path: &Path) -> io::Result<RecordBatch> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).map_err(io::Error::other)?;
    let schema = builder.schema().clone();
    let rows = builder.metadata().file_metadata().num_rows().max(1);
    let mut reader = builder.with_batch_size(rows as usize).build().map_err(io::Error::other)?;
    let Some(batch) = reader.next().transpose().map_err(io::Error::other)? else {
        return Ok(RecordBatch::new_empty(schema));
    };
    if batch.num_rows() as i64 != rows {
        return Err(io::Error::other("it was not written by nvlab: it has several row groups"));
    }
    RecordBatch::try_new(schema, batch.columns().to_vec()).map_err(io::Error::other)
}

/// The schema of a table stands first in its file.
fn order(key: &str) -> (bool, &str) {
    (key != "nvlab.schema", key)
}
