//! Units of metrics.

use crate::number::{self, Shown};

/// What a metric counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Ratio,
    /// A count.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bytes in powers of ten, as endurance is sold.
    BytesDecimal,
    /// Bytes per second.
    BytesPerSecond,
    /// Events per second.
    PerSecond,
    /// A share of 1.
    Share,
    /// Years.
    Years,
    /// US dollars.
    Usd,
    /// US dollars per GiB.
    UsdPerGib,
}

impl Unit {
    /// Formats a value for people.
    pub fn shown(self, value: f64) -> Shown {
        match self {
            Unit::Ratio => number::ratio(value),
            Unit::Count => number::short_count(value),
            Unit::Nanoseconds => number::time_ns(value),
            Unit::Seconds => number::time_s(value),
            Unit::Bytes => number::bytes(value),
            Unit::BytesDecimal => number::bytes_decimal(value),
            Unit::BytesPerSecond => number::bandwidth(value),
            Unit::PerSecond => number::per_second(value),
            Unit::Share => number::share(value),
            Unit::Years => number::years(value),
            Unit::Usd | Unit::UsdPerGib => number::usd(value),
        }
    }

    /// The suffix of a metric's name where a column has no other place for its unit.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Ratio | Unit::Count | Unit::Share => "",
            Unit::Nanoseconds => "_ns",
            Unit::Seconds => "_s",
            Unit::Bytes | Unit::BytesDecimal => "_bytes",
            Unit::BytesPerSecond => "_bytes_per_s",
            Unit::PerSecond => "_per_s",
            Unit::Years => "_years",
            Unit::Usd => "_usd",
            Unit::UsdPerGib => "_usd_per_gib",
        }
    }
}
