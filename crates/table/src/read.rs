//! Reading a table back from the file that it became.

use crate::{Column, Table, Values};
use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::io::{Error, Result};

/// The table in a file.
pub fn table(bytes: Bytes) -> Result<Table> {
    let file = SerializedFileReader::new(bytes).map_err(Error::other)?;
    let described = file.metadata().file_metadata();
    let pairs = described.key_value_metadata().into_iter().flatten();
    let metadata = pairs.map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default())).collect();
    let groups = (0..file.num_row_groups()).map(|at| file.get_row_group(at));
    let groups = groups.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::other)?;
    let column = |(at, of): (usize, &std::sync::Arc<ColumnDescriptor>)| column(&groups, at, of);
    let columns = described.schema_descr().columns().iter().enumerate().map(column);
    Ok(Table { columns: columns.collect::<Result<_>>()?, metadata })
}

fn column(groups: &[Box<dyn RowGroupReader + '_>], at: usize, of: &ColumnDescriptor) -> Result<Column> {
    let mut values = match of.physical_type() {
        Physical::BOOLEAN => Values::Flags(Vec::new()),
        Physical::INT64 => Values::Counts(Vec::new()),
        Physical::DOUBLE => Values::Numbers(Vec::new()),
        Physical::BYTE_ARRAY => Values::Texts(Vec::new()),
        other => return Err(Error::other(format!("its column `{}` is of {other}", of.name()))),
    };
    if of.max_rep_level() > 0 || of.path().parts().len() > 1 {
        return Err(Error::other(format!("its column `{}` is nested", of.path())));
    }
    for group in groups {
        let rows = group.metadata().num_rows() as usize;
        let reader = group.get_column_reader(at).map_err(Error::other)?;
        append(&mut values, reader, rows).map_err(Error::other)?;
    }
    Ok(Column { name: of.name().to_string(), may_miss: of.max_def_level() > 0, values })
}

fn append(values: &mut Values, reader: ColumnReader, rows: usize) -> std::result::Result<(), ParquetError> {
    match (values, reader) {
        (Values::Flags(into), ColumnReader::BoolColumnReader(reader)) => all(reader, rows, into, Ok),
        (Values::Counts(into), ColumnReader::Int64ColumnReader(reader)) => {
            all(reader, rows, into, |value| Ok(value.cast_unsigned()))
        }
        (Values::Numbers(into), ColumnReader::DoubleColumnReader(reader)) => all(reader, rows, into, Ok),
        (Values::Texts(into), ColumnReader::ByteArrayColumnReader(reader)) => {
            all(reader, rows, into, |text| text.as_utf8().map(str::to_owned))
        }
        _ => unreachable!("a reader of the column's type"),
    }
}

fn all<T: DataType, V>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    into: &mut Vec<Option<V>>,
    value: impl Fn(T::T) -> std::result::Result<V, ParquetError>,
) -> std::result::Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (read, present, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if read != rows {
        return Err(ParquetError::EOF(format!("{read} of {rows} rows")));
    }
    let mut values = values.into_iter().map(value);
    if present == rows {
        // Also where no value may be missing: then there are no levels.
        for value in values {
            into.push(Some(value?));
        }
        return Ok(());
    }
    for level in levels {
        into.push(if level > 0 { values.next().transpose()? } else { None });
    }
    Ok(())
}
