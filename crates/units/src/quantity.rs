//! Numbers with units, read and written: the one parser for design files, parts, workloads and options.
//!
//! 1. Decimals are exact: sizes are whole bytes, times whole picoseconds, and "0.1 us" is 100 000 ps. A fraction
//!    of one ("0.3 KiB") is an error, never rounded.
//! 2. 1024-based (`KiB`) and 1000-based (`kB`) units are distinct; `4k` of bytes is an error with a hint,
//!    because fio reads it as 4096 and most tools as 4000.
//! 3. The unit is required, with at most one space before it. Case matters.
//!
//! Format: `NUMBER [SPACE] UNIT`; NUMBER is `digits[.digits][e[-]digits]`, digits may be grouped with `_`.

use crate::time::{Rate, Span};
use std::fmt;

/// The error for a text that does not parse as the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuantityError {
    /// The text as given.
    pub read: String,
    /// The expected quantity, with article: "a size", "a time".
    pub wanted: &'static str,
    /// What is wrong with the text.
    pub problem: String,
    /// What is allowed instead, as a sentence without a full stop: `write "4 KiB" or "4 kB"`.
    pub allowed: String,
}

const TOO_LARGE: &str = "it is too large";

impl QuantityError {
    /// True if the text is a quantity of the expected kind but too large.
    pub fn is_too_large(&self) -> bool {
        self.problem == TOO_LARGE
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}: {}; {}", self.read, self.wanted, self.problem, self.allowed)
    }
}
impl std::error::Error for QuantityError {}

/// One unit: its name and its size in the base unit.
type Unit = (&'static str, u128);

const BYTES: &[Unit] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];
/// In picoseconds.
const SPANS: &[Unit] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
    ("min", 60_000_000_000_000),
    ("h", 3_600_000_000_000_000),
    ("d", 86_400_000_000_000_000),
    ("\u{b5}s", 1_000_000),
    ("\u{3bc}s", 1_000_000),
];
const COUNTS: &[Unit] = &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
const BYTES_HELP: &str = "units: B, KiB, MiB, GiB, TiB (of 1024) or kB, MB, GB, TB (of 1000)";
const SPANS_HELP: &str = "units: ps, ns, us, ms, s, min, h, d";

/// What is being read, for error messages.
#[derive(Clone, Copy)]
struct Reader<'a> {
    text: &'a str,
    wanted: &'static str,
    help: &'a str,
}

/// An exact decimal: `mantissa * 10^exponent`.
#[derive(Clone, Copy)]
struct Decimal {
    mantissa: u128,
    exponent: i32,
}

impl Decimal {
    fn value(self) -> f64 {
        // Uses the standard parser: correctly rounded, which multiplying two rounded values would not be.
        format!("{}e{}", self.mantissa, self.exponent).parse().unwrap_or(f64::INFINITY)
    }
}

impl Reader<'_> {
    fn error<T>(&self, problem: impl Into<String>, allowed: impl Into<String>) -> Result<T, QuantityError> {
        let (read, wanted) = (self.text.to_string(), self.wanted);
        Err(QuantityError { read, wanted, problem: problem.into(), allowed: allowed.into() })
    }

    /// The number and the text of the unit.
    fn split(&self) -> Result<(Decimal, &str), QuantityError> {
        let text = self.text.trim();
        if text.starts_with('-') {
            return self.error("it is negative", self.help);
        }
        let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
        let mut end = text.find(|c| !is_number(c)).unwrap_or(text.len());
        let digits = &text[..end];
        let mut exponent = 0i32;
        if let Some(rest) = text[end..].strip_prefix(['e', 'E']) {
            let sign = rest.starts_with(['-', '+']) as usize;
            let length = rest[sign..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - sign);
            if length > 0 {
                exponent = rest[..sign + length].parse().unwrap_or(i32::MAX);
                end += 1 + sign + length;
            }
        }
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let bad = |digits: &str| digits.starts_with('_') || digits.ends_with('_') || digits.contains('.');
        if whole.is_empty() || bad(whole) || bad(part) || (digits.contains('.') && part.is_empty()) {
            return self.error("it does not begin with a number", self.help);
        }
        let (mut mantissa, mut decimals) = (0u128, 0);
        for digit in whole.bytes().chain(part.bytes()).filter(u8::is_ascii_digit) {
            let Some(next) = mantissa.checked_mul(10).and_then(|m| m.checked_add((digit - b'0') as u128))
            else {
                return self.error("the number has too many digits", self.help);
            };
            mantissa = next;
        }
        decimals += part.bytes().filter(u8::is_ascii_digit).count() as i32;
        let Some(exponent) = exponent.checked_sub(decimals).filter(|e| e.abs() <= 60) else {
            return self.error("the exponent is out of range", self.help);
        };
        let rest = &text[end..];
        let unit = rest.strip_prefix(' ').unwrap_or(rest);
        if unit.starts_with(char::is_whitespace) {
            return self.error("there is more than one space before the unit", self.help);
        }
        Ok((Decimal { mantissa, exponent }, unit))
    }

    fn factor(&self, unit: &str, units: &[Unit]) -> Result<u128, QuantityError> {
        match units.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => Ok(*factor),
            None => {
                let problem = match unit {
                    "" => "it has no unit".to_string(),
                    unit => format!("there is no unit `{unit}`"),
                };
                self.error(problem, self.hint(unit))
            }
        }
    }

    /// `4k` and `4KB` are ambiguous: offer both readings.
    fn hint(&self, unit: &str) -> String {
        let (name, per) = unit.split_once('/').map_or((unit, String::new()), |(n, p)| (n, format!("/{p}")));
        let letter = match name.to_ascii_lowercase().as_str() {
            "k" | "kb" | "kib" => "k",
            "m" | "mb" | "mib" => "M",
            "g" | "gb" | "gib" => "G",
            "t" | "tb" | "tib" => "T",
            _ => return self.help.to_string(),
        };
        if !self.help.contains("KiB") {
            return self.help.to_string();
        }
        let text = self.text.trim();
        let number = text.strip_suffix(unit).unwrap_or(text).trim_end();
        let per = if self.help.contains("/s") && per.is_empty() { "/s".to_string() } else { per };
        format!("write \"{number} {}iB{per}\" or \"{number} {letter}B{per}\"", letter.to_uppercase())
    }

    /// `number * factor` as a whole number of `base` units, exactly.
    fn whole(&self, number: Decimal, factor: u128, base: &str) -> Result<u64, QuantityError> {
        let too_large = || self.error(TOO_LARGE, format!("at most {} {base}", u64::MAX));
        let Some(mut value) = number.mantissa.checked_mul(factor) else { return too_large() };
        for _ in 0..number.exponent.unsigned_abs() {
            if number.exponent > 0 {
                let Some(next) = value.checked_mul(10) else { return too_large() };
                value = next;
            } else if !value.is_multiple_of(10) {
                return self.error(format!("it is not a whole number of {base}"), self.help);
            } else {
                value /= 10;
            }
        }
        u64::try_from(value).or_else(|_| too_large())
    }

    fn read(&self, units: &[Unit], base: &str) -> Result<u64, QuantityError> {
        let (number, unit) = self.split()?;
        self.whole(number, self.factor(unit, units)?, base)
    }
}

/// A size in bytes: "16 MiB", "512 B", "1.92 TB".
pub fn bytes(text: &str) -> Result<u64, QuantityError> {
    Reader { text, wanted: "a size", help: BYTES_HELP }.read(BYTES, "bytes")
}

/// A length of time: "4 us", "0.1 us", "8.33 ms". At most 213 days, see [`Span`].
pub fn span(text: &str) -> Result<Span, QuantityError> {
    let read = Reader { text, wanted: "a time", help: SPANS_HELP }.read(SPANS, "picoseconds");
    read.map(Span::from_ps).map_err(|error| match error.is_too_large() {
        true => QuantityError {
            allowed: "at most 213 days, since time is counted in picoseconds".into(),
            ..error
        },
        false => error,
    })
}

/// A share between 0 and 1: "80 %", "0.8", "1e-4". A bare "1" is refused: it may mean 1 % or 100 %.
pub fn fraction(text: &str) -> Result<f64, QuantityError> {
    let help = "a share from \"0 %\" to \"100 %\"";
    let reader = Reader { text, wanted: "a share", help };
    let (mut number, unit) = reader.split()?;
    match unit {
        "%" => number.exponent -= 2,
        "" if number.mantissa == 0 || number.value() < 1.0 => {}
        "" => {
            return reader.error("it has no unit", format!("write \"{} %\" for a percentage", text.trim()));
        }
        unit => return reader.error(format!("there is no unit `{unit}`"), help),
    }
    match number.value() {
        value if value <= 1.0 => Ok(value),
        _ => reader.error("it is more than 100 %", help),
    }
}

/// A whole number of things: "1_000_000", "15.5M", "1e6". k, M and G are of 1000: nobody counts accounts in 1024s.
pub fn count(text: &str) -> Result<u64, QuantityError> {
    let help = "a whole number, with k, M or G for thousands, millions or billions if you like";
    Reader { text, wanted: "a count", help }.read(COUNTS, "things")
}

/// How often something happens, per second: "20k/s", "0.5 /s", "90/min".
pub fn rate_per_second(text: &str) -> Result<f64, QuantityError> {
    let help = "so many per second, minute or hour: \"20k/s\", \"90/min\", \"2/h\"";
    let reader = Reader { text, wanted: "a rate", help };
    let (number, unit) = reader.split()?;
    let Some((prefix, per)) = unit.split_once('/') else {
        return reader.error("it does not say per what time", format!("write \"{}/s\"", text.trim()));
    };
    let seconds = match per {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return reader.error(format!("there is no time `{per}`"), help),
    };
    Ok(number.value() * reader.factor(prefix, COUNTS)? as f64 / seconds)
}

/// A transfer rate in bytes per second: "7 GB/s", "2400 MB/s", "64 KiB/s".
pub fn bandwidth(text: &str) -> Result<u64, QuantityError> {
    let help = "bytes per second: \"40 MB/s\", \"7 GB/s\", \"64 KiB/s\"";
    let reader = Reader { text, wanted: "a transfer rate", help };
    let (number, unit) = reader.split()?;
    let Some(size) = unit.strip_suffix("/s") else {
        let problem = if unit.is_empty() { "it has no unit" } else { "it is not per second" };
        return reader.error(
            problem,
            if BYTES.iter().any(|(name, _)| *name == unit) {
                format!("write \"{}/s\"", text.trim())
            } else {
                reader.hint(unit)
            },
        );
    };
    match BYTES.iter().find(|(name, _)| *name == size) {
        Some((_, factor)) => reader.whole(number, *factor, "bytes per second"),
        None => reader.error(format!("there is no unit `{unit}`"), reader.hint(unit)),
    }
}

/// A transfer rate in either form: "40 MB/s", or the time per byte as datasheets state it, "30 ns/B". Never
/// zero, since a [`Rate`] of 0 means "no limit"; and never so slow that 4 GiB would take more than 213 days.
pub fn rate(text: &str) -> Result<Rate, QuantityError> {
    let help = "bytes per second (\"40 MB/s\"), at least 1 kB/s, or the time of one byte (\"30 ns/B\"), at most 1 ms";
    let reader = Reader { text, wanted: "a transfer rate", help };
    let Some(each) = text.trim().strip_suffix("/B") else {
        return match bandwidth(text)? {
            0 => reader.error("nothing would ever arrive", help),
            1..1000 => reader.error("it is too slow", help),
            bytes_per_second => Ok(Rate::from_bytes_per_second(bytes_per_second)),
        };
    };
    let read = text.to_string();
    match span(each).map_err(|error| QuantityError { read, wanted: reader.wanted, ..error })? {
        each if each <= Span::from_ms(1) => Ok(Rate::from_span_per_byte(each)),
        _ => reader.error("it is too slow", help),
    }
}

/// A price by capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// US dollars per byte.
    pub usd_per_byte: f64,
}

impl Price {
    /// US dollars for `bytes` bytes.
    pub fn of(self, bytes: u64) -> f64 {
        self.usd_per_byte * bytes as f64
    }
}

impl fmt::Display for Price {
    /// The shortest text in USD/GiB that [`price`] reads back as the same price, if there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |digits| format!("{} USD/GiB", significant(self.of(1 << 30), digits));
        let exact = (3..17).map(text).find(|text| price(text) == Ok(*self));
        f.write_str(&exact.unwrap_or_else(|| text(17)))
    }
}

/// A price by capacity: "0.06 USD/GiB", "30 USD/MB".
pub fn price(text: &str) -> Result<Price, QuantityError> {
    let help = "US dollars by capacity: \"0.06 USD/GiB\", \"30 USD/MB\"";
    let reader = Reader { text, wanted: "a price", help };
    let (number, unit) = reader.split()?;
    let size = unit.strip_prefix("USD/").and_then(|size| BYTES.iter().find(|(name, _)| *name == size));
    match size {
        Some((_, factor)) => Ok(Price { usd_per_byte: number.value() / *factor as f64 }),
        None if unit.is_empty() => reader.error("it has no unit", help),
        None => reader.error(format!("there is no unit `{unit}`"), help),
    }
}

/// `value` with about `digits` significant digits, without trailing zeros after the point.
fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let decimals = (digits - 1 - value.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A size for display, three digits: `4 KiB`, `119 GiB`, `1.5 TiB`.
pub fn display_bytes(bytes: u64) -> String {
    let (name, factor) = BYTES[..5].iter().rev().find(|(_, f)| bytes as u128 >= *f).unwrap_or(&BYTES[0]);
    format!("{} {name}", significant(bytes as f64 / *factor as f64, 3))
}

/// The shortest text that reads back as exactly the same value, at most three decimals.
fn exact(value: u64, units: &[Unit], base: &str) -> String {
    let candidates =
        units.iter().rev().filter(|(_, factor)| value as u128 >= *factor).filter_map(|(name, factor)| {
            let thousandths = value as u128 * 1000;
            let text = || significant_thousandths(thousandths / factor);
            thousandths.is_multiple_of(*factor).then(|| format!("{} {name}", text()))
        });
    candidates.min_by_key(String::len).unwrap_or_else(|| format!("{value} {base}"))
}

fn significant_thousandths(value: u128) -> String {
    let text = format!("{}.{:03}", value / 1000, value % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A size that [`bytes`] reads back exactly: `16 MiB`, `1.92 TB`, `12345 B`.
pub fn exact_bytes(bytes: u64) -> String {
    exact(bytes, BYTES, "B")
}

/// A size for messages: exact if that is short, otherwise three digits and the bytes: `114 GiB (122245505024 B)`.
pub fn told_bytes(bytes: u64) -> String {
    let exact = exact_bytes(bytes);
    match exact.bytes().filter(u8::is_ascii_digit).count() {
        ..=6 => exact,
        _ => format!("{} ({bytes} B)", display_bytes(bytes)),
    }
}

/// A time that [`span`] reads back exactly: `8.33 ms`, `100 ns`.
pub fn exact_span(span: Span) -> String {
    exact(span.ps(), &SPANS[..5], "ps")
}

/// A transfer rate that [`bandwidth`] reads back exactly: `7 GB/s`.
pub fn exact_bandwidth(bytes_per_second: u64) -> String {
    format!("{}/s", exact_bytes(bytes_per_second))
}

/// A share for display, which [`fraction`] reads back: `12 %`.
pub fn display_fraction(fraction: f64) -> String {
    format!("{} %", significant(fraction * 100.0, 9))
}

#[cfg(test)]
mod tests;
