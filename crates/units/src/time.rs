//! Simulated time. Not a clock: nothing below the serving edge reads one.
//!
//! The unit is the picosecond, because a 64 B transfer over a fast link takes 2.3 ns and a nanosecond would
//! be wrong by a quarter. A `u64` of picoseconds reaches 213 days; arithmetic that would pass it panics
//! rather than wrap, so a run that is too long fails loudly.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A moment of simulated time, in picoseconds since the device was switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of simulated time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

const OVERFLOW: &str = "simulated time passed 213 days (2^64 ps)";

impl Time {
    /// The moment the device was switched on.
    pub const ZERO: Time = Time(0);
    /// The last representable moment; "never" where a moment is wanted.
    pub const MAX: Time = Time(u64::MAX);

    /// A moment from picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// A moment from nanoseconds. Panics past 213 days.
    pub const fn from_ns(ns: u64) -> Time {
        Time(Span::from_ns(ns).0)
    }
    /// Picoseconds since the beginning.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds since the beginning, rounded down.
    pub const fn ns(self) -> u64 {
        self.0 / 1000
    }
    /// Seconds since the beginning.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// The time from `earlier` to `self`, zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
    /// The moment `span` before this one, or the beginning.
    pub const fn before(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span from picoseconds.
    pub const fn from_ps(ps: u64) -> Span {
        Span(ps)
    }
    /// A span from nanoseconds. Panics past 213 days.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns.checked_mul(1000).expect(OVERFLOW))
    }
    /// A span from microseconds. Panics past 213 days.
    pub const fn from_us(us: u64) -> Span {
        Span(us.checked_mul(1_000_000).expect(OVERFLOW))
    }
    /// A span from milliseconds. Panics past 213 days.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms.checked_mul(1_000_000_000).expect(OVERFLOW))
    }
    /// A span from seconds, rounded to a picosecond. Panics if negative, not finite or past 213 days.
    pub fn from_seconds(seconds: f64) -> Span {
        let ps = (seconds * 1e12).round();
        assert!(ps >= 0.0 && ps < u64::MAX as f64, "{seconds} s: {OVERFLOW}");
        Span(ps as u64)
    }
    /// Picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds, rounded down.
    pub const fn ns(self) -> u64 {
        self.0 / 1000
    }
    /// Seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// True if this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.checked_add(span.0).expect(OVERFLOW))
    }
}
impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub<Time> for Time {
    type Output = Span;
    /// Panics if `other` is later; use [`Time::since`] where that is possible.
    #[inline]
    fn sub(self, other: Time) -> Span {
        Span(self.0.checked_sub(other.0).expect("a span that ends before it begins"))
    }
}
impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.checked_add(other.0).expect(OVERFLOW))
    }
}
impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0.checked_sub(other.0).expect("a negative span"))
    }
}
impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Span) {
        *self = *self - other;
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, count: u64) -> Span {
        Span(self.0.checked_mul(count).expect(OVERFLOW))
    }
}
impl Div<u64> for Span {
    type Output = Span;
    #[inline]
    fn div(self, count: u64) -> Span {
        Span(self.0 / count)
    }
}
impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, |a, b| a + b)
    }
}

impl fmt::Display for Span {
    /// Three significant digits with the fitting unit: `182 ns`, `4.16 us`, `51.0 ms`, `3.10 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0 => return f.write_str("0"),
            1..1_000 => return write!(f, "{} ps", self.0),
            1_000..999_500 => (self.0 as f64 / 1e3, "ns"),
            999_500..999_500_000 => (self.0 as f64 / 1e6, "us"),
            999_500_000..999_500_000_000 => (self.0 as f64 / 1e9, "ms"),
            _ => (self.0 as f64 / 1e12, "s"),
        };
        let digits = if value >= 99.95 {
            0
        } else if value >= 9.995 {
            1
        } else {
            2
        };
        write!(f, "{value:.digits$} {unit}")
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// A sum of spans of many resources or requests, which may pass the 213 days of one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Total(u128);

impl Total {
    /// Seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// Picoseconds.
    pub const fn ps(self) -> u128 {
        self.0
    }
    /// Adds a span `count` times.
    #[inline]
    pub fn add_many(&mut self, span: Span, count: u64) {
        self.0 += span.0 as u128 * count as u128;
    }
}
impl AddAssign<Span> for Total {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0 as u128;
    }
}

/// When an operation really began and when it was done; the difference to the moment it was asked for is
/// waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The moment the resource began to work on it.
    pub start: Time,
    /// The moment it was done.
    pub end: Time,
}

/// A transfer rate, kept as the time for 2^20 bytes so that small transfers do not round to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    ps_per_mib: u64,
}

impl Rate {
    /// A rate from bytes per second; zero bytes per second means "no limit": every transfer takes no time.
    pub fn from_bytes_per_second(bytes_per_second: u64) -> Rate {
        match bytes_per_second {
            0 => Rate { ps_per_mib: 0 },
            rate => Rate { ps_per_mib: ((1u128 << 20) * 1_000_000_000_000 / rate as u128) as u64 },
        }
    }
    /// A rate from the time one byte takes.
    pub fn from_span_per_byte(per_byte: Span) -> Rate {
        Rate { ps_per_mib: per_byte.ps() << 20 }
    }
    /// The time `bytes` take at this rate, rounded up to a picosecond.
    #[inline]
    pub const fn transfer(self, bytes: u64) -> Span {
        Span::from_ps(((self.ps_per_mib as u128 * bytes as u128 + 0xF_FFFF) >> 20) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_print_with_three_digits() {
        for (ps, text) in [
            (0, "0"),
            (12, "12 ps"),
            (182_000, "182 ns"),
            (999_499, "999 ns"),
            (999_500, "1.00 us"),
            (4_160_000, "4.16 us"),
            (50_000_000_000, "50.0 ms"),
            (3_100_000_000_000, "3.10 s"),
        ] {
            assert_eq!(Span::from_ps(ps).to_string(), text);
        }
    }

    #[test]
    fn a_small_transfer_is_not_free() {
        let cxl = Rate::from_bytes_per_second(28_000_000_000);
        assert_eq!(cxl.transfer(64).ps(), 2286);
        let nand = Rate::from_span_per_byte(Span::from_ns(30));
        assert_eq!(nand.transfer(2048), Span::from_ns(61_440));
    }

    #[test]
    #[should_panic(expected = "213 days")]
    fn time_does_not_wrap() {
        let _ = Time::MAX + Span::from_ps(1);
    }
}
