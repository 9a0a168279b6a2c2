//! Values with units as data sheets write them.

use nvlab_units::quantity;

/// What a value counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Requests per second.
    PerSecond,
    /// A share of 1.
    Share,
    /// A plain number.
    Count,
    /// Capacities written a day.
    Dwpd,
}

impl Unit {
    /// A value for people.
    pub fn shown(self, value: f64) -> String {
        use nvlab_run::number;
        match self {
            Unit::Seconds => number::time_s(value).to_string(),
            Unit::Bytes => number::bytes_decimal(value).to_string(),
            Unit::BytesPerSecond => number::bandwidth(value).to_string(),
            Unit::PerSecond => number::per_second(value).to_string(),
            Unit::Share => number::share(value).to_string(),
            Unit::Count => number::three(value),
            Unit::Dwpd => format!("{} DWPD", number::three(value)),
        }
    }

    /// An interval for people.
    pub fn between(self, (low, high): (f64, f64)) -> String {
        format!("{} to {}", self.shown(low), self.shown(high))
    }
}

/// A value in its base unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// Reads a value: `600k IOPS`, `3.5 GB/s`, `85 us`, `600 TB`, `0.9 DWPD`, `4 %`, `12`.
pub fn amount(text: &str) -> Option<Amount> {
    let text = text.trim();
    let of = |value: f64, unit| Some(Amount { value, unit });
    if let Some(number) = text.strip_suffix("IOPS") {
        return quantity::count(number.trim()).ok().and_then(|count| of(count as f64, Unit::PerSecond));
    }
    if let Some(number) = text.strip_suffix("DWPD") {
        return number.trim().parse().ok().and_then(|value| of(value, Unit::Dwpd));
    }
    // As endurance is stated; no size in a design is as large.
    if let Some(number) = text.strip_suffix("PB") {
        return number.trim().parse::<f64>().ok().and_then(|value| of(value * 1e15, Unit::Bytes));
    }
    if let Ok(value) = text.parse::<f64>() {
        return of(value, Unit::Count);
    }
    if text.ends_with('%') {
        return quantity::fraction(text).ok().and_then(|share| of(share, Unit::Share));
    }
    if let Ok(rate) = quantity::bandwidth(text) {
        return of(rate as f64, Unit::BytesPerSecond);
    }
    if let Ok(rate) = quantity::rate_per_second(text) {
        return of(rate, Unit::PerSecond);
    }
    if let Ok(bytes) = quantity::bytes(text) {
        return of(bytes as f64, Unit::Bytes);
    }
    quantity::span(text).ok().and_then(|span| of(span.seconds(), Unit::Seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_data_sheets() {
        let read = |text: &str| amount(text).map(|amount| (amount.value, amount.unit));
        assert_eq!(read("279500 IOPS"), Some((279_500.0, Unit::PerSecond)));
        assert_eq!(read("600k IOPS"), Some((600_000.0, Unit::PerSecond)));
        assert_eq!(read("3.2 GB/s"), Some((3.2e9, Unit::BytesPerSecond)));
        assert_eq!(read("1.38 PB"), Some((1.38e15, Unit::Bytes)));
        assert_eq!(read("0.9 DWPD"), Some((0.9, Unit::Dwpd)));
        assert_eq!(read("4 %"), Some((0.04, Unit::Share)));
        assert_eq!(read("32"), Some((32.0, Unit::Count)));
        let seconds = read("85 us").unwrap();
        assert!((seconds.0 - 85e-6).abs() < 1e-12 && seconds.1 == Unit::Seconds);
        assert_eq!(read("fast"), None);
    }
}
