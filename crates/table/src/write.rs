//! Writing Parquet: the schema, then row group after row group, in each column after column.

use crate::{Column, Values};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::io::{Error, Result, Write};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a row group: what a reader holds at least.
const GROUP_ROWS: usize = 1 << 20;
/// Values handed over at once.
const CHUNK: usize = 1 << 16;

/// A column of a file.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its values are.
    pub kind: Kind,
    /// True if some may be missing.
    pub may_miss: bool,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Flag,
    /// Whole numbers from 0 on, of 64 bits.
    Count,
    /// Whole numbers from 0 on, of 32 bits.
    Small,
    /// Real numbers.
    Number,
    /// Texts.
    Text,
}

/// The cells of a column in some rows, of the kind that its [`Field`] says; `None` is missing.
pub enum Cells<'a> {
    /// [`Kind::Flag`].
    Flags(Box<dyn Iterator<Item = Option<bool>> + 'a>),
    /// [`Kind::Count`].
    Counts(Box<dyn Iterator<Item = Option<u64>> + 'a>),
    /// [`Kind::Small`].
    Smalls(Box<dyn Iterator<Item = Option<u32>> + 'a>),
    /// [`Kind::Number`].
    Numbers(Box<dyn Iterator<Item = Option<f64>> + 'a>),
    /// [`Kind::Text`].
    Texts(Box<dyn Iterator<Item = Option<&'a str>> + 'a>),
}

impl<'a> Field<'a> {
    pub(crate) fn of(column: &Column) -> Field<'_> {
        let kind = match column.values {
            Values::Flags(_) => Kind::Flag,
            Values::Counts(_) => Kind::Count,
            Values::Numbers(_) => Kind::Number,
            Values::Texts(_) => Kind::Text,
        };
        Field { name: &column.name, kind, may_miss: column.may_miss }
    }

    fn parquet(&self) -> std::result::Result<Type, ParquetError> {
        let whole = |bits| Some(LogicalType::integer(bits, false));
        let (physical, logical) = match self.kind {
            Kind::Flag => (Physical::BOOLEAN, None),
            Kind::Count => (Physical::INT64, whole(64)),
            Kind::Small => (Physical::INT32, whole(32)),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if self.may_miss { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let column = Type::primitive_type_builder(self.name, physical);
        column.with_logical_type(logical).with_repetition(repetition).build()
    }
}

impl<'a> Cells<'a> {
    pub(crate) fn of(values: &'a Values, rows: Range<usize>) -> Cells<'a> {
        match values {
            Values::Flags(values) => Cells::Flags(Box::new(values[rows].iter().copied())),
            Values::Counts(values) => Cells::Counts(Box::new(values[rows].iter().copied())),
            Values::Numbers(values) => Cells::Numbers(Box::new(values[rows].iter().copied())),
            Values::Texts(values) => Cells::Texts(Box::new(values[rows].iter().map(|text| text.as_deref()))),
        }
    }
}

/// Writes a table of `rows` rows. `cells` gives those of a column, counted from 0, in some rows; it is asked for one column after
/// the other, for at most 2^20 rows at once. Equal tables give equal bytes.
pub fn write<'a>(
    out: impl Write + Send,
    fields: &[Field<'_>],
    rows: usize,
    cells: impl Fn(usize, Range<usize>) -> Cells<'a>,
    metadata: &[(String, String)],
) -> Result<()> {
    write_groups(out, fields, rows, cells, metadata).map_err(Error::other)
}

fn write_groups<'a>(
    out: impl Write + Send,
    fields: &[Field<'_>],
    rows: usize,
    cells: impl Fn(usize, Range<usize>) -> Cells<'a>,
    metadata: &[(String, String)],
) -> std::result::Result<(), ParquetError> {
    let columns =
        fields.iter().map(|field| field.parquet().map(Arc::new)).collect::<std::result::Result<_, _>>()?;
    let schema = Type::group_type_builder("schema").with_fields(columns).build()?;
    let pair = |(key, value): &(String, String)| KeyValue::new(key.clone(), value.clone());
    let metadata: Vec<KeyValue> = metadata.iter().map(pair).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_key_value_metadata(Some(metadata).filter(|pairs| !pairs.is_empty()))
        .build();
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    for first in (0..rows).step_by(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        for (at, field) in fields.iter().enumerate() {
            let mut column = group.next_column()?.expect("a column for each field");
            put(&mut column, field.may_miss, cells(at, first..rows.min(first + GROUP_ROWS)))?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn put(
    column: &mut SerializedColumnWriter<'_>,
    may_miss: bool,
    cells: Cells<'_>,
) -> std::result::Result<(), ParquetError> {
    match cells {
        Cells::Flags(cells) => put_all::<BoolType, _>(column, may_miss, cells, |flag| flag),
        Cells::Counts(cells) => put_all::<Int64Type, _>(column, may_miss, cells, u64::cast_signed),
        Cells::Smalls(cells) => put_all::<Int32Type, _>(column, may_miss, cells, u32::cast_signed),
        Cells::Numbers(cells) => put_all::<DoubleType, _>(column, may_miss, cells, |number| number),
        Cells::Texts(cells) => put_all::<ByteArrayType, _>(column, may_miss, cells, ByteArray::from),
    }
}

fn put_all<T: DataType, V>(
    column: &mut SerializedColumnWriter<'_>,
    may_miss: bool,
    mut cells: Box<dyn Iterator<Item = Option<V>> + '_>,
    stored: impl Fn(V) -> T::T,
) -> std::result::Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
    loop {
        values.clear();
        levels.clear();
        for cell in cells.by_ref().take(CHUNK) {
            levels.push(cell.is_some() as i16);
            values.extend(cell.map(&stored));
        }
        if levels.is_empty() {
            return Ok(());
        }
        assert!(may_miss || values.len() == levels.len(), "a column without missing values");
        column.typed::<T>().write_batch(&values, may_miss.then_some(&levels), None)?;
    }
}
