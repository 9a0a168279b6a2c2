//! fio's numbers: sizes with its own idea of prefixes, times in seconds.

use super::expression;
use crate::Span;

/// Picoseconds of a second, and of a microsecond.
pub(super) const SECOND_PS: u64 = 1_000_000_000_000;
pub(super) const MICROSECOND_PS: u64 = 1_000_000;

/// A number with a suffix, or sums, products, quotients and powers of some, as `8*1g` and `(5*1m - 4k)/8`, rounded down.
pub(super) fn size(text: &str, kb_base: u64) -> Option<u64> {
    expression::value(text, |number| plain_size(number, kb_base))
}

/// A whole number with a suffix. With `kb_base` 1024, `k`, `kb` and `ki` are 1024 and `kib` is 1000; with 1000 it is the other
/// way round: only an `i` with a `b` behind it is the other base, as measured with fio 3.33. `0x` begins a hexadecimal number.
fn plain_size(text: &str, kb_base: u64) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let suffix = text[end..].trim_start();
    let (letter, is_other) = match suffix.strip_suffix("ib") {
        Some(letter) => (letter, true),
        None => (suffix.strip_suffix(['b', 'i']).unwrap_or(suffix), false),
    };
    let power = match letter {
        "" if !is_other && suffix != "i" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let base: u64 = if (kb_base == 1024) != is_other { 1024 } else { 1000 };
    number.checked_mul(base.pow(power))
}

/// A time; without a unit, a multiple of `unit_ps`, or of microseconds in an expression in brackets.
pub(super) fn time(text: &str, unit_ps: u64) -> Option<Span> {
    let text = text.trim().to_ascii_lowercase();
    if text.starts_with('(') {
        let us = |number: &str| Some(time(number, MICROSECOND_PS)?.ps() / MICROSECOND_PS);
        return Some(Span::from_ps(expression::value(&text, us)?.saturating_mul(MICROSECOND_PS)));
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let ps = match text[end..].trim_start() {
        "us" | "usec" => MICROSECOND_PS,
        "ms" | "msec" => 1_000_000_000,
        "" => unit_ps,
        "s" | "sec" => SECOND_PS,
        "m" => 60_000_000_000_000,
        "h" => 3_600_000_000_000_000,
        "d" => 86_400_000_000_000_000,
        _ => return None,
    };
    // Longer than simulated time: without an end.
    Some(Span::from_ps(number.saturating_mul(ps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_numbers_are_those_of_fio() {
        for (text, bytes) in [
            ("512", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4ki", 4096),
            ("6ki", 6144),
            ("1mi", 1_048_576),
            ("6kib", 6000),
            ("4KiB", 4000),
            ("1m", 1 << 20),
            ("2g", 2 << 30),
            ("1t", 1 << 40),
            ("10b", 10),
            ("0x1000", 4096),
            ("8*1m", 8 << 20),
            ("(2 * 4k)", 8192),
            ("5*1024*1024*24105/8", 15_797_452_800),
            ("((1m + 4k) / 3) * 3", 1_052_672),
            ("2^10 - 1k % 1000", 1000),
            ("10 / 4 * 2", 5),
        ] {
            assert_eq!(size(text, 1024), Some(bytes), "{text}");
        }
        let by_thousands = ["4k", "4ki", "4kb", "4KiB"].map(|text| size(text, 1000));
        assert_eq!(by_thousands, [Some(4000), Some(4000), Some(4000), Some(4096)]);
        for wrong in [
            "",
            "k",
            "4q",
            "1.5k",
            "-1",
            "4i",
            "4ib",
            "99999999p",
            "4 k x",
            "4*",
            "(4",
            "4)",
            "1/0",
            "4-8",
            "2^999",
        ] {
            assert_eq!(size(wrong, 1024), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_seconds_unless_said() {
        for (text, ms) in
            [("60", 60_000), ("60s", 60_000), ("2m", 120_000), ("1h", 3_600_000), ("500ms", 500)]
        {
            assert_eq!(time(text, SECOND_PS), Some(Span::from_ms(ms)), "{text}");
        }
        assert_eq!(time("2000", MICROSECOND_PS), Some(Span::from_ms(2)));
        assert_eq!(time("(2 * 500)", SECOND_PS), Some(Span::from_ms(1)));
        assert_eq!(time("(1s + 500)", SECOND_PS), Some(Span::from_us(1_000_500)));
        assert_eq!(time("10 parsecs", SECOND_PS), None);
    }
}
