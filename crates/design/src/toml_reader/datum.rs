//! From a written [`Value`] to a typed [`Datum`], by the [`Shape`] its key asks for; and back to text.

use super::Value;
use nvlab_units::quantity::{self, Price, QuantityError};
use nvlab_units::suggest::nearest;
use nvlab_units::{Rate, Span};
use std::fmt;

/// The type and range of a key.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A size in bytes.
    Size {
        /// The smallest allowed.
        min: u64,
        /// The largest allowed.
        max: u64,
    },
    /// A size, a share of the host's capacity, or "none".
    SizeShareOrNone,
    /// A length of time.
    Time,
    /// A length of time, or "none".
    TimeOrNone,
    /// One or more lengths of time.
    Times,
    /// A share from 0 to `max` (at most 1).
    Share {
        /// The largest allowed.
        max: f64,
    },
    /// A whole number.
    Count {
        /// The smallest allowed.
        min: u64,
        /// The largest allowed.
        max: u64,
    },
    /// A transfer rate, or the time of one byte.
    Rate,
    /// A price by capacity.
    Price,
    /// Any text.
    Text,
    /// `true` or `false`.
    Flag,
    /// One of these names; each with what it means.
    OneOf(&'static [(&'static str, &'static str)]),
    /// The name of a medium of the design.
    Medium,
}

impl Shape {
    /// The description that follows "expected ...".
    pub fn wanted(self) -> &'static str {
        match self {
            Shape::Size { .. } => "a size",
            Shape::SizeShareOrNone => "a size, a share or \"none\"",
            Shape::Time => "a time",
            Shape::TimeOrNone => "a time or \"none\"",
            Shape::Times => "a time or an array of times",
            Shape::Share { .. } => "a share",
            Shape::Count { .. } => "a whole number",
            Shape::Rate => "a transfer rate",
            Shape::Price => "a price",
            Shape::Text => "a text",
            Shape::Flag => "true or false",
            Shape::OneOf(_) => "a name",
            Shape::Medium => "the name of a medium",
        }
    }

    /// The allowed values, in full.
    pub fn allowed(self) -> String {
        match self {
            Shape::Size { min, max: u64::MAX } if min <= 1 => "a size with its unit: \"4 KiB\"".into(),
            Shape::Size { min, max: u64::MAX } => {
                format!("a size, at least {}: \"4 KiB\"", quantity::exact_bytes(min))
            }
            Shape::Size { min, max } => {
                format!("a size from {} to {}", quantity::exact_bytes(min), quantity::exact_bytes(max))
            }
            Shape::SizeShareOrNone => {
                "a share of the host's capacity (\"7 %\"), a size with its unit (\"4 GiB\"), or \"none\""
                    .into()
            }
            Shape::Time => "a time with its unit: \"4 us\"".into(),
            Shape::TimeOrNone => "a time with its unit (\"20 us\"), or \"none\"".into(),
            Shape::Times => {
                "a time (\"60 us\"), or one per page of a word line ([\"45 us\", \"60 us\"])".into()
            }
            Shape::Share { max } => format!("a share from 0 % to {}", quantity::display_fraction(max)),
            Shape::Count { min, max } => format!("a whole number from {min} to {max}"),
            Shape::Rate => "a transfer rate (\"1200 MB/s\"), or the time per byte (\"30 ns/B\")".into(),
            Shape::Price => "US dollars per capacity: \"0.06 USD/GiB\"".into(),
            Shape::Text => "a text".into(),
            Shape::Flag => "true or false".into(),
            Shape::OneOf(names) => {
                let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                format!("one of: {}", names.join(", "))
            }
            Shape::Medium => "the name of a medium under [media]".into(),
        }
    }
}

/// A value that its key accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// Bytes.
    Size(u64),
    /// A time.
    Time(Span),
    /// Several times.
    Times(Vec<Span>),
    /// "none".
    None,
    /// A share of 1.
    Share(f64),
    /// A whole number.
    Count(u64),
    /// A transfer rate, and how it is written.
    Rate(Rate, String),
    /// A price.
    Price(Price),
    /// A text or a name.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

impl fmt::Display for Datum {
    /// As in a design file: the text reads back as exactly this value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Size(bytes) => write!(f, "\"{}\"", quantity::exact_bytes(*bytes)),
            Datum::Time(span) => write!(f, "\"{}\"", quantity::exact_span(*span)),
            Datum::Times(spans) => {
                let spans: Vec<String> =
                    spans.iter().map(|span| format!("\"{}\"", quantity::exact_span(*span))).collect();
                write!(f, "[{}]", spans.join(", "))
            }
            Datum::None => f.write_str("\"none\""),
            Datum::Share(share) => match quantity::display_fraction(*share) {
                text if quantity::fraction(&text) == Ok(*share) => write!(f, "\"{text}\""),
                _ => write!(f, "\"{share}\""),
            },
            Datum::Count(count) => write!(f, "{count}"),
            Datum::Rate(_, text) => write!(f, "\"{text}\""),
            Datum::Price(price) => write!(f, "\"{price}\""),
            Datum::Text(text) => write!(f, "\"{}\"", escaped(text)),
            Datum::Flag(flag) => write!(f, "{flag}"),
        }
    }
}

fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '"' => "\\\"".to_string(),
        '\\' => "\\\\".to_string(),
        '\n' => "\\n".to_string(),
        c if c.is_control() => format!("\\u{:04X}", c as u32),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Why a value does not fit its key.
#[derive(Debug)]
pub struct Wrong {
    /// Follows the name of the key: "`4k` is not a size: ...".
    pub problem: String,
    /// What to write instead.
    pub help: String,
}

impl From<QuantityError> for Wrong {
    fn from(error: QuantityError) -> Wrong {
        let problem = format!("`{}` is not {}: {}", error.read, error.wanted, error.problem);
        Wrong { problem, help: error.allowed }
    }
}

fn refused(shape: Shape, value: &Value) -> Wrong {
    Wrong { problem: format!("{} is not {}", value.written(), shape.wanted()), help: shape.allowed() }
}

/// Reads a value as its key asks.
pub fn read(shape: Shape, value: &Value) -> Result<Datum, Wrong> {
    let out_of_range =
        || Wrong { problem: format!("{} is out of range", value.written()), help: shape.allowed() };
    if let (Shape::SizeShareOrNone | Shape::TimeOrNone, Value::Flag(false)) = (shape, value) {
        return Ok(Datum::None);
    }
    if let (Shape::Times, Value::List(items)) = (shape, value) {
        return times(shape, value, items.iter().map(|item| &item.value));
    }
    let text = match (shape, value) {
        (Shape::Flag, Value::Flag(flag)) => return Ok(Datum::Flag(*flag)),
        (Shape::Flag, _) | (_, Value::Flag(_) | Value::List(_) | Value::Table(_) | Value::Other(_)) => {
            return Err(refused(shape, value));
        }
        (Shape::Text | Shape::OneOf(_) | Shape::Medium, Value::Number(_)) => {
            return Err(refused(shape, value));
        }
        (_, Value::Text(text) | Value::Number(text)) => text.as_str(),
    };
    Ok(match shape {
        Shape::SizeShareOrNone | Shape::TimeOrNone if text == "none" => Datum::None,
        Shape::SizeShareOrNone if text.trim_end().ends_with('%') => match quantity::fraction(text)? {
            share if share > 0.0 => Datum::Share(share),
            _ => return Err(out_of_range()),
        },
        Shape::Size { .. } | Shape::SizeShareOrNone => {
            let bytes = quantity::bytes(text)?;
            match shape {
                Shape::Size { min, max } if !(min..=max).contains(&bytes) => return Err(out_of_range()),
                Shape::SizeShareOrNone if bytes == 0 => return Err(out_of_range()),
                _ => Datum::Size(bytes),
            }
        }
        Shape::Time | Shape::TimeOrNone => time(text)?,
        Shape::Times => times(shape, value, std::iter::once(value))?,
        Shape::Share { max } => match quantity::fraction(text)? {
            share if share <= max => Datum::Share(share),
            _ => return Err(out_of_range()),
        },
        Shape::Count { min, max } => match quantity::count(text)? {
            count if (min..=max).contains(&count) => Datum::Count(count),
            _ => return Err(out_of_range()),
        },
        Shape::Rate => rate(text)?,
        Shape::Price => Datum::Price(quantity::price(text)?),
        Shape::OneOf(names) if !names.iter().any(|(name, _)| *name == text) => {
            return Err(unknown_name(names, text));
        }
        Shape::Text | Shape::OneOf(_) | Shape::Medium => Datum::Text(text.to_string()),
        Shape::Flag => return Err(refused(shape, value)),
    })
}

fn times<'v>(
    shape: Shape,
    value: &Value,
    items: impl ExactSizeIterator<Item = &'v Value>,
) -> Result<Datum, Wrong> {
    if !(1..=8).contains(&items.len()) {
        return Err(refused(shape, value));
    }
    let mut spans = Vec::new();
    for item in items {
        match read(Shape::Time, item)? {
            Datum::Time(span) => spans.push(span),
            _ => return Err(refused(shape, value)),
        }
    }
    Ok(Datum::Times(spans))
}

fn rate(text: &str) -> Result<Datum, Wrong> {
    let rate = quantity::rate(text)?;
    let written = match quantity::bandwidth(text) {
        Ok(bytes_per_second) => quantity::exact_bandwidth(bytes_per_second),
        Err(_) => {
            let each = quantity::span(text.trim().trim_end_matches("/B"))?;
            format!("{}/B", quantity::exact_span(each))
        }
    };
    Ok(Datum::Rate(rate, written))
}

/// Maximum time in a design; it keeps sums far from the end of [`Span`].
const TIME_MAX: Span = Span::from_ms(24 * 3600 * 1000);

fn time(text: &str) -> Result<Datum, Wrong> {
    match quantity::span(text)? {
        span if span <= TIME_MAX => Ok(Datum::Time(span)),
        _ => {
            Err(Wrong { problem: format!("`{text}` is out of range"), help: "a time of at most 24 h".into() })
        }
    }
}

fn unknown_name(names: &[(&'static str, &'static str)], text: &str) -> Wrong {
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let meant = nearest(text, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    Wrong {
        problem: format!("`{text}` is not a kind this version knows"),
        help: format!("known: {}{}", known.join(", "), meant.unwrap_or_default()),
    }
}
