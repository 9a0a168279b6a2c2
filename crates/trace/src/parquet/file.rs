//! A Parquet file as its columns, and the values of some of them in batches of rows.

use super::column::{Batch, Cells, FieldKind, TableField};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

/// The oldest kind of timestamp has the Julian day, of which this is 1970-01-01, and nanoseconds of the day.
const JULIAN_EPOCH: i64 = 2_440_588;
const DAY_NS: i64 = 86_400_000_000_000;

/// A file.
pub(super) struct TableFile<R: ChunkReader> {
    file: SerializedFileReader<R>,
    /// Its columns; of a nested one no values are read.
    pub fields: Vec<TableField>,
    /// Where each of them lies among those without parts; `None`: it is nested.
    leaves: Vec<Option<usize>>,
}

impl<R: ChunkReader + 'static> TableFile<R> {
    pub fn open(reader: R) -> Result<TableFile<R>, ParquetError> {
        let file = SerializedFileReader::new(reader)?;
        let schema = file.metadata().file_metadata().schema_descr();
        let roots = schema.root_schema().get_fields();
        let leaf = |root: usize| {
            let mut leaves =
                (0..schema.num_columns()).filter(|&leaf| schema.get_column_root_idx(leaf) == root);
            leaves.next().filter(|&leaf| is_plain(schema, leaf))
        };
        let leaves: Vec<Option<usize>> = (0..roots.len()).map(leaf).collect();
        let field = |(root, leaf): (&parquet::schema::types::TypePtr, &Option<usize>)| TableField {
            name: root.name().to_owned(),
            kind: leaf.map_or(FieldKind::Other, |leaf| kind_of(&schema.column(leaf))),
        };
        let fields = roots.iter().zip(&leaves).map(field).collect();
        Ok(TableFile { file, fields, leaves })
    }

    pub fn row_count(&self) -> u64 {
        self.file.metadata().file_metadata().num_rows().try_into().unwrap_or(0)
    }

    /// The values of these columns, in batches of at most `rows` rows; none spans two row groups.
    pub fn batches(self, columns: Vec<usize>, rows: usize) -> Batches<R> {
        Batches { table: self, columns, rows, group: 0, readers: Vec::new(), left: 0 }
    }
}

/// True if a column is no part of another, and has at most one value in each row.
fn is_plain(schema: &SchemaDescriptor, leaf: usize) -> bool {
    let column = schema.column(leaf);
    column.path().parts().len() == 1 && column.max_rep_level() == 0
}

fn kind_of(column: &ColumnDescriptor) -> FieldKind {
    let of_converted = match column.converted_type() {
        ConvertedType::TIMESTAMP_MILLIS => Some(1_000_000_000),
        ConvertedType::TIMESTAMP_MICROS => Some(1_000_000),
        _ => None,
    };
    let of_unit = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => 1_000_000_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000,
    };
    let unit = match column.logical_type_ref() {
        Some(LogicalType::Timestamp(time)) => Some(of_unit(&time.unit)),
        _ => of_converted,
    };
    match (column.physical_type(), unit) {
        (Physical::FLOAT | Physical::DOUBLE, _) => FieldKind::Real,
        (Physical::INT64, Some(ps)) => FieldKind::Timestamp(ps),
        (Physical::INT96, _) => FieldKind::Timestamp(1_000),
        _ => FieldKind::Other,
    }
}

/// How the values of a column are meant, beside how they are stored.
fn is_unsigned(column: &ColumnDescriptor) -> bool {
    let converted =
        [ConvertedType::UINT_8, ConvertedType::UINT_16, ConvertedType::UINT_32, ConvertedType::UINT_64];
    match column.logical_type_ref() {
        Some(LogicalType::Integer(whole)) => !whole.is_signed,
        _ => converted.contains(&column.converted_type()),
    }
}

/// The name of a type that no part of a request has: dates, times of day, decimal numbers, bytes of fixed length.
fn other_type(column: &ColumnDescriptor) -> Option<String> {
    let kind = column.converted_type();
    match (column.physical_type(), column.logical_type_ref()) {
        (Physical::FIXED_LEN_BYTE_ARRAY, _) => Some("bytes of fixed length".to_owned()),
        (_, Some(LogicalType::Date)) => Some("dates".to_owned()),
        (_, Some(LogicalType::Time(_))) => Some("times of day".to_owned()),
        (_, Some(LogicalType::Decimal(_))) => Some("decimal numbers".to_owned()),
        _ => match kind {
            ConvertedType::DATE => Some("dates".to_owned()),
            ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS => Some("times of day".to_owned()),
            ConvertedType::DECIMAL => Some("decimal numbers".to_owned()),
            _ => None,
        },
    }
}

/// The values of some columns, batch by batch.
pub(super) struct Batches<R: ChunkReader> {
    table: TableFile<R>,
    columns: Vec<usize>,
    rows: usize,
    /// Index of the next row group.
    group: usize,
    /// Of the row group that is being read; `None`: the column is nested.
    readers: Vec<Option<ColumnReader>>,
    /// Rows of this row group that are left.
    left: usize,
}

impl<R: ChunkReader + 'static> Iterator for Batches<R> {
    type Item = Batch;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left == 0 {
            if self.group == self.table.file.num_row_groups() {
                return None;
            }
            if let Err(error) = self.open_group() {
                self.group = self.table.file.num_row_groups();
                return Some(Err(error.to_string()));
            }
        }
        let rows = self.left.min(self.rows);
        self.left -= rows;
        let schema = self.table.file.metadata().file_metadata().schema_descr();
        let columns = self.columns.iter().zip(&mut self.readers);
        let cells = columns.map(|(&column, reader)| match (self.table.leaves[column], reader) {
            (Some(leaf), Some(reader)) => cells(reader, &schema.column(leaf), rows),
            _ => Ok(Cells::Other("nested values".to_owned())),
        });
        Some(cells.collect::<Result<Vec<Cells>, ParquetError>>().map_err(|error| error.to_string()))
    }
}

impl<R: ChunkReader + 'static> Batches<R> {
    fn open_group(&mut self) -> Result<(), ParquetError> {
        let group = self.table.file.get_row_group(self.group)?;
        let rows = group.metadata().num_rows();
        let rows = usize::try_from(rows).map_err(|_| ParquetError::General(format!("{rows} rows")))?;
        let reader =
            |&column: &usize| self.table.leaves[column].map(|leaf| group.get_column_reader(leaf)).transpose();
        self.readers = self.columns.iter().map(reader).collect::<Result<_, _>>()?;
        self.group += 1;
        self.left = rows;
        Ok(())
    }
}

/// The next `rows` values of a column.
fn cells(reader: &mut ColumnReader, column: &ColumnDescriptor, rows: usize) -> Result<Cells, ParquetError> {
    if let Some(name) = other_type(column) {
        return Ok(Cells::Other(name));
    }
    let unsigned = is_unsigned(column);
    match reader {
        ColumnReader::BoolColumnReader(reader) => values(reader, rows, Cells::Flags),
        ColumnReader::Int32ColumnReader(reader) => values(reader, rows, |values| match unsigned {
            true => Cells::Unsigned(values.into_iter().map(|value| value.cast_unsigned().into()).collect()),
            false => Cells::Signed(values.into_iter().map(i64::from).collect()),
        }),
        ColumnReader::Int64ColumnReader(reader) => values(reader, rows, |values| match unsigned {
            true => Cells::Unsigned(values.into_iter().map(i64::cast_unsigned).collect()),
            false => Cells::Signed(values),
        }),
        ColumnReader::FloatColumnReader(reader) => {
            values(reader, rows, |values| Cells::Real(values.into_iter().map(f64::from).collect()))
        }
        ColumnReader::DoubleColumnReader(reader) => values(reader, rows, Cells::Real),
        ColumnReader::ByteArrayColumnReader(reader) => values(reader, rows, Cells::Texts),
        ColumnReader::Int96ColumnReader(reader) => values(reader, rows, |values| {
            let ns = |[low, high, day]: [u32; 3]| {
                let of_day = (u64::from(high) << 32 | u64::from(low)).cast_signed();
                (i64::from(day) - JULIAN_EPOCH).saturating_mul(DAY_NS).saturating_add(of_day)
            };
            let words = |value: &[u32]| [value[0], value[1], value[2]];
            Cells::Signed(values.iter().map(|value| ns(words(value.data()))).collect())
        }),
        ColumnReader::FixedLenByteArrayColumnReader(_) => {
            Ok(Cells::Other("bytes of fixed length".to_owned()))
        }
    }
}

fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    cells: impl FnOnce(Vec<T::T>) -> Cells,
) -> Result<Cells, ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::with_capacity(rows));
    let mut read = 0;
    while read < rows {
        let (records, ..) = reader.read_records(rows - read, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("{read} of {rows} rows")));
        }
        read += records;
    }
    if values.len() < rows {
        return Ok(Cells::Missing(levels.iter().position(|&level| level == 0).unwrap_or(0)));
    }
    Ok(cells(values))
}
