//! Fields of a line of trace text: one pass, no allocation unless something is wrong. Separators are found 64 bytes at a time,
//! and numbers are read eight digits at a time: one after the other, by byte, that was most of the time that a trace takes.

use super::lines::{Bad, BadLine, Line};
use wide::u8x16;

/// 10^0 to 10^9.
const POWERS_OF_TEN: [u64; 10] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
const WINDOW: usize = 64;

/// The value of the first `count` of eight bytes, 1 to 8, if all of them are decimal digits.
#[inline(always)]
fn digits(bytes: [u8; 8], count: usize) -> Option<u64> {
    // A digit becomes 0 to 9; bytes behind the number are shifted out, and zeros come before it.
    let values = (u64::from_le_bytes(bytes) ^ 0x3030_3030_3030_3030) << (64 - 8 * count);
    // A digit's sum with 0x76 stays below 0x80, and carries nothing to the byte above it.
    if (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    // Pairs, fours and all eight are added up.
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    Some(low.wrapping_add(high) >> 32)
}

/// A bit for each byte that equals one of two.
#[inline(always)]
fn equal_to(bytes: &[u8; WINDOW], first: u8, second: u8) -> u64 {
    let (first, second) = (u8x16::splat(first), u8x16::splat(second));
    bytes.as_chunks().0.iter().rev().fold(0, |bits, sixteen| {
        let sixteen = u8x16::new(*sixteen);
        bits << 16 | u64::from((sixteen.simd_eq(first) | sixteen.simd_eq(second)).to_bitmask())
    })
}

/// The fields of one line, from left to right. `SEPARATOR` is a byte between two fields, except that a blank
/// means any run of blanks and tabs.
pub(crate) struct Fields<'a, const SEPARATOR: u8> {
    line: Line<'a>,
    /// One past the end once the last field has been taken.
    at: usize,
    /// The separators from `window` on, a bit each.
    separators: u64,
    window: usize,
}

impl<'a, const SEPARATOR: u8> Fields<'a, SEPARATOR> {
    #[inline]
    pub fn new(line: Line<'a>) -> Self {
        let mut fields = Fields { line, at: 0, separators: 0, window: 0 };
        fields.look(0);
        fields
    }

    /// Up to `N` bytes from `at` on, and zeros.
    #[inline]
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        match self.line.text.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => *bytes,
            None => self.last_bytes(at),
        }
    }

    #[cold]
    fn last_bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        let rest = self.line.text.get(at..).unwrap_or_default();
        bytes[..rest.len()].copy_from_slice(rest);
        bytes
    }

    /// Finds the separators from `at` on.
    #[inline]
    fn look(&mut self, at: usize) {
        self.window = at;
        let second = if SEPARATOR == b' ' { b'\t' } else { SEPARATOR };
        self.separators = equal_to(&self.bytes(at), SEPARATOR, second);
    }

    /// The first place from `at` on, within the line, that is a separator or is none; else the end of the line.
    #[inline(always)]
    fn find(&mut self, mut at: usize, is_separator: bool) -> usize {
        loop {
            if at >= self.window + WINDOW {
                self.look(at);
            }
            let bits = if is_separator { self.separators } else { !self.separators };
            let ahead = bits >> (at - self.window);
            if ahead != 0 {
                return (at + ahead.trailing_zeros() as usize).min(self.line.bytes);
            }
            at = self.window + WINDOW;
            if at >= self.line.bytes {
                return self.line.bytes;
            }
        }
    }

    /// The next field's place, if there is one.
    #[inline(always)]
    fn place(&mut self) -> Option<(usize, usize)> {
        if self.at > self.line.bytes {
            return None;
        }
        let mut from = self.at;
        if SEPARATOR == b' ' {
            from = self.find(from, false);
            if from == self.line.bytes {
                self.at = from + 1;
                return None;
            }
        }
        let to = self.find(from, true);
        self.at = to + 1;
        Some((from, to))
    }

    /// The next field, if there is one.
    #[inline]
    pub fn next(&mut self) -> Option<&'a [u8]> {
        let (from, to) = self.place()?;
        Some(&self.line.text[from..to])
    }

    /// The next field, which must exist.
    #[inline]
    pub fn text(&mut self, column: &'static str) -> Result<&'a [u8], BadLine> {
        match self.next() {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(missing(column)),
        }
    }

    /// True if the last field was taken.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.at > self.line.bytes
    }

    /// The fields that are left.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.line.text().get(self.at..).unwrap_or_default()
    }

    /// Passes fields of which `rest` begins with the first `count` bytes, and their separator.
    #[inline]
    pub fn skip(&mut self, count: usize) {
        self.at += count + 1;
    }

    /// The bytes from `from` to `to` as a number, if they are 1 to 19 digits: so many cannot overflow.
    #[inline(always)]
    fn number(&self, from: usize, to: usize) -> Option<u64> {
        match to - from {
            count @ 1..=8 => digits(self.bytes(from), count),
            count @ 9..=16 => {
                let high = digits(self.bytes(from), 8)?;
                Some(high * POWERS_OF_TEN[count - 8] + digits(self.bytes(from + 8), count - 8)?)
            }
            count @ 17..=19 => {
                let high = digits(self.bytes(from), 8)? * POWERS_OF_TEN[8] + digits(self.bytes(from + 8), 8)?;
                Some(high * POWERS_OF_TEN[count - 16] + digits(self.bytes(from + 16), count - 16)?)
            }
            _ => None,
        }
    }

    /// The next field as a whole number.
    #[inline(always)]
    pub fn integer(&mut self, column: &'static str) -> Result<u64, BadLine> {
        if let Some((from, to)) = self.place() {
            return match self.number(from, to) {
                Some(number) => Ok(number),
                None => self.integer_slowly(from, to, column),
            };
        }
        Err(missing(column))
    }

    #[cold]
    #[inline(never)]
    fn integer_slowly(&self, from: usize, to: usize, column: &'static str) -> Result<u64, BadLine> {
        if from == to {
            return Err(missing(column));
        }
        whole_number(&self.line.text[from..to], column)
    }

    /// The next field as sectors of 512 B, in bytes.
    #[inline]
    pub fn sectors(&mut self, column: &'static str) -> Result<u64, BadLine> {
        let sectors = self.integer(column)?;
        if sectors >> 55 != 0 {
            let allowed = format!("at most {} sectors of 512 B", (1u64 << 55) - 1);
            return Err(Bad::new(column, &sectors.to_string(), allowed));
        }
        Ok(sectors << 9)
    }

    /// The next field as seconds with a decimal point, in nanoseconds; further digits are cut off.
    #[inline]
    pub fn seconds(&mut self, column: &'static str) -> Result<u64, BadLine> {
        let Some((from, to)) = self.place() else { return Err(missing(column)) };
        // As blkparse and most others write it.
        if to - from > 10 && self.line.text[to - 10] == b'.' && to - from <= 20 {
            let whole = self.number(from, to - 10);
            if let (Some(seconds), Some(ns)) = (whole, self.number(to - 9, to)) {
                return Ok(seconds * 1_000_000_000 + ns);
            }
        }
        self.seconds_slowly(from, to, column)
    }

    #[cold]
    #[inline(never)]
    fn seconds_slowly(&self, from: usize, to: usize, column: &'static str) -> Result<u64, BadLine> {
        let text = self.line.text[from..to].trim_ascii();
        if from == to {
            return Err(missing(column));
        }
        nanoseconds(text)
            .ok_or_else(|| Bad::bytes(column, text, "seconds, as in 12.345678, from 0 to 18446744073"))
    }

    /// Returns an error if there is a further field.
    #[inline]
    pub fn end(&mut self, columns: &'static str) -> Result<(), BadLine> {
        match self.next() {
            None => Ok(()),
            Some(text) => Err(Bad::bytes("further column", text, format!("the columns are {columns}"))),
        }
    }
}

#[cold]
fn missing(column: &'static str) -> BadLine {
    Bad::new(column, "", "the line ends before it")
}

/// A whole number below 2^64, possibly surrounded by blanks.
pub(crate) fn whole_number(text: &[u8], column: &'static str) -> Result<u64, BadLine> {
    let trimmed = text.trim_ascii();
    let is_number = !trimmed.is_empty() && trimmed.iter().all(u8::is_ascii_digit);
    let parsed = std::str::from_utf8(trimmed).ok().filter(|_| is_number).and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| Bad::bytes(column, text, "a whole number from 0 to 18446744073709551615"))
}

fn nanoseconds(text: &[u8]) -> Option<u64> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &text[text.len()..]),
    };
    if whole.len() + fraction.len() == 0 || whole.len() > 11 {
        return None;
    }
    let mut seconds = 0u64;
    for &byte in whole {
        seconds = seconds * 10 + digit(byte)?;
    }
    let mut ns = 0u64;
    let mut unit = 100_000_000;
    for &byte in fraction {
        ns += digit(byte)? * unit;
        unit /= 10;
    }
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

#[inline]
fn digit(byte: u8) -> Option<u64> {
    let digit = byte.wrapping_sub(b'0');
    (digit < 10).then_some(digit as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_up_to_their_limits() {
        let read = |text: &str| {
            Fields::<b','>::new(Line::new(text.as_bytes())).integer("n").map_err(|bad| bad.allowed)
        };
        assert_eq!(read("0,"), Ok(0));
        assert_eq!(read("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(read(" 7 ,"), Ok(7));
        for wrong in ["18446744073709551616", "-1", "+1", "1.5", "0x10", "abc", "1 2"] {
            assert_eq!(
                read(wrong),
                Err("a whole number from 0 to 18446744073709551615".to_owned()),
                "{wrong}"
            );
        }
        assert_eq!(read(""), Err("the line ends before it".to_owned()));
    }

    #[test]
    fn digits_are_read_eight_at_a_time() {
        for number in [0u64, 7, 10, 99, 12_345, 1_234_567, 12_345_678, 99_999_999] {
            for rest in ["", ",", ",123456789", ";", " ", "\u{ff}\u{ff}", "/:", "9"] {
                let text = format!("{number}{rest}");
                let mut bytes = [0xff; 8];
                let length = text.len().min(8);
                bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
                assert_eq!(digits(bytes, number.to_string().len()), Some(number), "{text}");
            }
        }
        for byte in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
            let bytes = [b'4', b'2', byte, b'1', byte, byte, b'9', byte];
            assert_eq!(digits(bytes, 2), Some(42), "{byte}");
            assert_eq!(digits(bytes, 3), None, "{byte}");
            assert_eq!(digits(bytes, 8), None, "{byte}");
        }
        let mut number = 1u64;
        for _ in 0..20 {
            for padding in [
                "",
                ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,",
            ] {
                let line = format!("{number},1{padding}");
                assert_eq!(Fields::<b','>::new(Line::new(line.as_bytes())).integer("n").unwrap(), number);
            }
            number = number.wrapping_mul(10).wrapping_add(number % 7 + 1);
        }
    }

    #[test]
    fn separators_of_all_bytes() {
        for byte in 0..=255u8 {
            let mut bytes = [byte.wrapping_add(1); WINDOW];
            let mut expected = 0;
            for at in [0, 1, 7, 8, 9, 31, 32, 62, 63] {
                bytes[at] = byte;
                expected |= 1 << at;
            }
            assert_eq!(equal_to(&bytes, byte, byte), expected);
            bytes[40] = byte ^ 0x80;
            assert_eq!(equal_to(&bytes, byte, byte ^ 0x80), expected | 1 << 40);
        }
    }

    #[test]
    fn long_lines_have_many_windows() {
        let line = (0..100).map(|n| format!("{}{n}", " ".repeat(n % 70 + 1))).collect::<String>();
        let mut fields = Fields::<b' '>::new(Line::new(line.as_bytes()));
        for n in 0..100 {
            assert_eq!(fields.integer("n").unwrap(), n);
        }
        assert_eq!(fields.next(), None);
    }

    #[test]
    fn seconds_become_nanoseconds() {
        for (text, ns) in [
            ("0.551706", 551_706_000),
            ("12", 12_000_000_000),
            (".5", 500_000_000),
            ("1.0000000019", 1_000_000_001),
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), Some(ns), "{text}");
        }
        for wrong in ["", ".", "-1", "1e3", "1.2.3", "99999999999"] {
            assert_eq!(nanoseconds(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn blanks_run_together_and_commas_do_not() {
        let mut blanks = Fields::<b' '>::new(Line::new(b"  1 \t 22  x"));
        assert_eq!(blanks.integer("a").unwrap(), 1);
        assert_eq!(blanks.integer("b").unwrap(), 22);
        assert_eq!(blanks.next(), Some(&b"x"[..]));
        assert_eq!(blanks.next(), None);
        let mut commas = Fields::<b','>::new(Line::new(b"1,,3"));
        assert_eq!(commas.next(), Some(&b"1"[..]));
        assert!(commas.integer("b").is_err());
    }
}
