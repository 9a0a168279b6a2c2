//! Simulated time. Not a clock: nothing below the serving edge reads one.
//!
//! The unit is the picosecond, because a 64 B transfer over a fast link takes 2.3 ns and rounding to nanoseconds
//! would be wrong by a quarter. A `u64` of picoseconds lasts 213 days; arithmetic saturates at [`Time::MAX`]. So the
//! code that drives a device detects at the end that time ran out ([`Time::is_over`]) and rejects the result, without
//! a check in every addition.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A moment of simulated time, in picoseconds since the device was switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(u64);

/// A length of simulated time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span(u64);

impl Time {
    /// The moment the device was switched on.
    pub const ZERO: Time = Time(0);
    /// The last representable moment: stands for "never", and for every sum beyond 213 days.
    pub const MAX: Time = Time(u64::MAX);

    /// A moment from picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// A moment from nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Time {
        Time(Span::from_ns(ns).0)
    }
    /// Picoseconds since power-on.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds since power-on, rounded down.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0 / 1000
    }
    /// Seconds since power-on.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// The time from `earlier` to `self`, zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
    /// True if the 213 days have run out; also one picosecond before [`Time::MAX`], where endless work of a lane
    /// ends.
    #[inline]
    pub const fn is_over(self) -> bool {
        self.0 >= u64::MAX - 1
    }
    /// The moment `span` before this one, or [`Time::ZERO`] if that would be earlier.
    #[inline]
    pub const fn before(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// Zero length.
    pub const ZERO: Span = Span(0);

    /// A span from picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Span {
        Span(ps)
    }
    /// A span from nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns.saturating_mul(1000))
    }
    /// A span from microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us.saturating_mul(1_000_000))
    }
    /// A span from milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms.saturating_mul(1_000_000_000))
    }
    /// A span from seconds, rounded to a picosecond. Panics if negative or not a number.
    pub fn from_seconds(seconds: f64) -> Span {
        assert!(seconds >= 0.0, "a span of {seconds} s");
        Span((seconds * 1e12).round() as u64)
    }
    /// Picoseconds.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds, rounded down.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0 / 1000
    }
    /// Seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// True if the length is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// `self - other`, or zero.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
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
        Span(self.0.saturating_add(other.0))
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
        Span(self.0.saturating_mul(count))
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
    /// Three significant digits with a suitable unit: `182 ns`, `4.16 us`, `51.0 ms`, `3.10 s`.
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

/// A sum of spans over many resources or requests, which may exceed the 213 days of [`Time`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Total(u128);

impl Total {
    /// The sum in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// The sum in picoseconds.
    #[inline]
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

/// Start and end of an operation; the time from its request to its start is waiting time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When the resource started to work on it.
    pub start: Time,
    /// When it was completed.
    pub end: Time,
}

/// A transfer rate, stored as the time for 2^20 bytes so that the time per byte keeps its fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    ps_per_mib: u64,
}

impl Rate {
    /// A rate from bytes per second; zero means "no limit": transfers take no time.
    pub fn from_bytes_per_second(bytes_per_second: u64) -> Rate {
        match bytes_per_second {
            0 => Rate { ps_per_mib: 0 },
            rate => Rate { ps_per_mib: ((1u128 << 20) * 1_000_000_000_000 / rate as u128) as u64 },
        }
    }
    /// A rate from the time per byte, which must be below 8 s.
    pub(crate) fn from_span_per_byte(per_byte: Span) -> Rate {
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
    fn time_that_runs_out_stays_at_its_end() {
        let last = Time::MAX.before(Span::from_ps(2));
        assert!(
            !last.is_over()
                && (last + Span::from_ps(1)).is_over()
                && (Time::MAX + Span::from_ns(1)).is_over()
        );
        let day = Span::from_ms(24 * 3600 * 1000);
        assert!(!(Time::ZERO + day * 213).is_over() && (Time::ZERO + day * 214).is_over());
        assert!((Time::ZERO + (day * 200 + day * 200)).is_over());
        assert!((Time::ZERO + Span::from_seconds(1e30)).is_over() && Time::from_ns(u64::MAX).is_over());
    }
}
