//! Tables of requests in Arrow: those that Python hands over, and those it gets of a trace.

use crate::frame::refused;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use nvlab_trace::columns::Columns;
use nvlab_trace::{Batch, Cells, FieldKind, TableField, Text};
use pyo3::PyResult;
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

/// The columns of an Arrow IPC stream, and their values batch by batch.
pub fn of_stream(ipc: Vec<u8>) -> PyResult<(Vec<TableField>, Box<dyn Iterator<Item = Batch> + Send>)> {
    let batches = StreamReader::try_new(Cursor::new(ipc), None).map_err(refused)?;
    let fields = batches.schema().fields().iter().map(|field| field_of(field)).collect();
    let values = |batch: RecordBatch| batch.columns().iter().map(cells).collect();
    Ok((fields, Box::new(batches.map(move |batch| batch.map(values).map_err(|error| error.to_string())))))
}

fn field_of(field: &Field) -> TableField {
    let kind = match field.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => FieldKind::Real,
        DataType::Timestamp(unit, _) => FieldKind::Timestamp(match unit {
            TimeUnit::Second => 1_000_000_000_000,
            TimeUnit::Millisecond => 1_000_000_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000,
        }),
        _ => FieldKind::Other,
    };
    TableField { name: field.name().clone(), kind }
}

fn values<T: ArrowPrimitiveType, V>(array: &ArrayRef, of: impl Fn(T::Native) -> V) -> Vec<V> {
    array.as_primitive::<T>().values().iter().map(|&value| of(value)).collect()
}

/// The values of a column, whatever type its writer chose.
fn cells(array: &ArrayRef) -> Cells {
    if let Some(row) =
        (array.null_count() > 0).then(|| (0..array.len()).find(|&row| array.is_null(row))).flatten()
    {
        return Cells::Missing(row);
    }
    let texts =
        |texts: Vec<Option<&str>>| Cells::Texts(texts.into_iter().flatten().map(Text::from).collect());
    match array.data_type() {
        DataType::Int8 => Cells::Signed(values::<Int8Type, _>(array, i64::from)),
        DataType::Int16 => Cells::Signed(values::<Int16Type, _>(array, i64::from)),
        DataType::Int32 => Cells::Signed(values::<Int32Type, _>(array, i64::from)),
        DataType::Int64 => Cells::Signed(values::<Int64Type, _>(array, |value| value)),
        DataType::UInt8 => Cells::Unsigned(values::<UInt8Type, _>(array, u64::from)),
        DataType::UInt16 => Cells::Unsigned(values::<UInt16Type, _>(array, u64::from)),
        DataType::UInt32 => Cells::Unsigned(values::<UInt32Type, _>(array, u64::from)),
        DataType::UInt64 => Cells::Unsigned(values::<UInt64Type, _>(array, |value| value)),
        DataType::Float32 => Cells::Real(values::<Float32Type, _>(array, f64::from)),
        DataType::Float64 => Cells::Real(values::<Float64Type, _>(array, |value| value)),
        DataType::Timestamp(unit, _) => Cells::Signed(match unit {
            TimeUnit::Second => values::<TimestampSecondType, _>(array, |value| value),
            TimeUnit::Millisecond => values::<TimestampMillisecondType, _>(array, |value| value),
            TimeUnit::Microsecond => values::<TimestampMicrosecondType, _>(array, |value| value),
            TimeUnit::Nanosecond => values::<TimestampNanosecondType, _>(array, |value| value),
        }),
        DataType::Boolean => Cells::Flags(array.as_boolean().iter().flatten().collect()),
        DataType::Utf8 => texts(array.as_string::<i32>().iter().collect()),
        DataType::LargeUtf8 => texts(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => texts(array.as_string_view().iter().collect()),
        DataType::Dictionary(_, _) => of_dictionary(array),
        other => Cells::Other(other.to_string()),
    }
}

/// Categories, of which each row names one.
fn of_dictionary(array: &ArrayRef) -> Cells {
    let dictionary = array.as_any_dictionary();
    match cells(dictionary.values()) {
        Cells::Texts(known) => {
            Cells::Texts(dictionary.normalized_keys().into_iter().map(|key| known[key].clone()).collect())
        }
        other => other,
    }
}

/// Some requests of a trace as a table, with the columns of its Parquet file.
pub fn table_of(columns: &Columns, rows: Range<usize>) -> RecordBatch {
    let counts = |values: &[u64]| -> ArrayRef { Arc::new(UInt64Array::from(values[rows.clone()].to_vec())) };
    let requests = || columns.rows(rows.clone());
    let ops: StringArray = requests().map(|request| Some(request.op.name())).collect();
    let volumes: StringArray =
        requests().map(|request| Some(columns.volumes()[request.volume as usize].as_str())).collect();
    let fua: BooleanArray = requests().map(|request| Some(request.fua)).collect();
    let mut named: Vec<(&str, ArrayRef)> = vec![
        ("time_ps", counts(columns.at_ps())),
        ("op", Arc::new(ops)),
        ("offset_bytes", counts(columns.offsets())),
        ("length_bytes", Arc::new(UInt32Array::from(columns.lengths()[rows.clone()].to_vec()))),
        ("volume", Arc::new(volumes)),
        ("fua", Arc::new(fua)),
    ];
    named.extend(columns.response_ps().map(|responses| ("response_ps", counts(responses))));
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), false);
    let schema = Schema::new(named.iter().map(field).collect::<Vec<_>>());
    let arrays = named.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).expect("a column has a value for each row")
}
