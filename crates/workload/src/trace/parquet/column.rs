//! The values of a column, whatever type the writer chose.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use std::borrow::Cow;

/// A value that cannot be used.
#[derive(Debug)]
pub(super) struct Problem {
    /// Its row in the batch.
    pub row: usize,
    pub found: String,
    pub allowed: String,
}

type Values<T> = Result<Vec<T>, Problem>;

fn problem<T>(row: usize, found: impl ToString, allowed: &str) -> Values<T> {
    Err(Problem { row, found: found.to_string(), allowed: allowed.to_owned() })
}

fn no_nulls(array: &ArrayRef) -> Result<(), Problem> {
    match (array.null_count() > 0).then(|| (0..array.len()).find(|&row| array.is_null(row))).flatten() {
        Some(row) => Err(Problem { row, found: "null".into(), allowed: "a value in every row".into() }),
        None => Ok(()),
    }
}

const WHOLE: &str = "a number from 0 to 18446744073709551615 in its base unit";

/// Numbers of a unit that is worth `unit`, in ticks that are worth `tick`.
pub(super) fn whole(array: &ArrayRef, unit: u64, tick: u64) -> Values<u64> {
    no_nulls(array)?;
    let exact = |value: i64| u64::try_from(value).ok().and_then(|value| scaled(value, unit, tick));
    let real = |value: f64| {
        let ticks = (value * (unit as f64 / tick as f64)).round();
        (ticks >= 0.0 && ticks < u64::MAX as f64).then_some(ticks as u64)
    };
    match array.data_type() {
        DataType::Int8 => read::<Int8Type>(array, |value| exact(value.into())),
        DataType::Int16 => read::<Int16Type>(array, |value| exact(value.into())),
        DataType::Int32 => read::<Int32Type>(array, |value| exact(value.into())),
        DataType::Int64 => read::<Int64Type>(array, exact),
        DataType::UInt8 => read::<UInt8Type>(array, |value| scaled(value.into(), unit, tick)),
        DataType::UInt16 => read::<UInt16Type>(array, |value| scaled(value.into(), unit, tick)),
        DataType::UInt32 => read::<UInt32Type>(array, |value| scaled(value.into(), unit, tick)),
        DataType::UInt64 => read::<UInt64Type>(array, |value| scaled(value, unit, tick)),
        DataType::Float32 => read::<Float32Type>(array, |value| real(value.into())),
        DataType::Float64 => read::<Float64Type>(array, real),
        DataType::Timestamp(TimeUnit::Second, _) => read::<TimestampSecondType>(array, exact),
        DataType::Timestamp(TimeUnit::Millisecond, _) => read::<TimestampMillisecondType>(array, exact),
        DataType::Timestamp(TimeUnit::Microsecond, _) => read::<TimestampMicrosecondType>(array, exact),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => read::<TimestampNanosecondType>(array, exact),
        other => problem(0, other, "a numeric column"),
    }
}

/// Where a unit is a tick nothing is multiplied, so that large absolute times do not overflow.
fn scaled(value: u64, unit: u64, tick: u64) -> Option<u64> {
    if unit == tick { Some(value) } else { value.checked_mul(unit).map(|value| value / tick) }
}

fn read<T: ArrowPrimitiveType>(array: &ArrayRef, of: impl Fn(T::Native) -> Option<u64>) -> Values<u64>
where
    T::Native: std::fmt::Debug,
{
    let values = array.as_primitive::<T>().values();
    let value = |(row, value): (usize, &T::Native)| {
        of(*value).ok_or_else(|| Problem { row, found: format!("{value:?}"), allowed: WHOLE.to_owned() })
    };
    values.iter().enumerate().map(value).collect()
}

/// Texts, or whole numbers as texts.
pub(super) fn texts(array: &ArrayRef) -> Values<Cow<'_, [u8]>> {
    no_nulls(array)?;
    Ok(match array.data_type() {
        DataType::Utf8 => {
            array.as_string::<i32>().iter().flatten().map(|text| Cow::Borrowed(text.as_bytes())).collect()
        }
        DataType::LargeUtf8 => {
            array.as_string::<i64>().iter().flatten().map(|text| Cow::Borrowed(text.as_bytes())).collect()
        }
        DataType::Utf8View => {
            array.as_string_view().iter().flatten().map(|text| Cow::Borrowed(text.as_bytes())).collect()
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let known = texts(dictionary.values())?;
            dictionary.normalized_keys().into_iter().map(|key| known[key].clone()).collect()
        }
        DataType::Binary => array.as_binary::<i32>().iter().flatten().map(Cow::Borrowed).collect(),
        kind if kind.is_integer() => {
            whole(array, 1, 1)?.into_iter().map(|n| Cow::Owned(n.to_string().into_bytes())).collect()
        }
        other => return problem(0, other, "a text column"),
    })
}

/// True or false.
pub(super) fn flags(array: &ArrayRef) -> Values<bool> {
    no_nulls(array)?;
    match array.data_type() {
        DataType::Boolean => Ok(array.as_boolean().iter().flatten().collect()),
        other => problem(0, other, "a Boolean column"),
    }
}
