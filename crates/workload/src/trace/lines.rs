//! Lines and fields of trace text: one pass, no allocation unless something is wrong.

use crate::WorkloadError;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// No trace has longer lines.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const BUFFER_BYTES: usize = 256 << 10;

/// What is wrong in a line; file and line number are added by the loop over the lines.
#[derive(Debug)]
pub(crate) struct Bad {
    pub column: &'static str,
    pub found: String,
    pub allowed: String,
}

/// Boxed, so that the result of reading a number stays in registers.
pub(crate) type BadLine = Box<Bad>;

impl Bad {
    #[cold]
    pub fn new(column: &'static str, found: &str, allowed: impl Into<String>) -> BadLine {
        let mut found: String = found.chars().take(60).collect();
        found.retain(|c| !c.is_control());
        Box::new(Bad { column, found, allowed: allowed.into() })
    }
    #[cold]
    pub fn bytes(column: &'static str, found: &[u8], allowed: impl Into<String>) -> BadLine {
        Bad::new(column, &String::from_utf8_lossy(found), allowed)
    }
}

/// Lines of a stream, in blocks.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    pub line: u64,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Lines<R> {
        Lines { reader, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, ended: false, line: 0 }
    }

    /// The first lines, without consuming them.
    pub fn head(&mut self, count: usize, path: &Path) -> Result<Vec<Vec<u8>>, WorkloadError> {
        self.read_more(path)?;
        let text = &self.buffer[self.start..self.end];
        // The last line may be cut off: it counts if it is the only one.
        let only = if self.ended { text.len() } else { 0 };
        let whole = &text[..memchr::memrchr(b'\n', text).unwrap_or(only)];
        Ok(whole
            .split(|&b| b == b'\n')
            .map(trim_end)
            .filter(|line| !line.is_empty())
            .take(count)
            .map(<[u8]>::to_vec)
            .collect())
    }

    /// Calls `each` with every line that is not blank, and whether the line ends with a line feed. Stops at its first error,
    /// and after a block if there were at least `at_most` lines.
    pub fn for_each(
        &mut self,
        path: &Path,
        at_most: Option<u64>,
        mut each: impl FnMut(&[u8], bool) -> Result<(), BadLine>,
    ) -> Result<(), WorkloadError> {
        loop {
            if at_most.is_some_and(|most| self.line >= most) {
                return Ok(());
            }
            let mut from = self.start;
            while let Some(length) = memchr::memchr(b'\n', &self.buffer[from..self.end]) {
                self.line += 1;
                let line = trim_end(&self.buffer[from..from + length]);
                from += length + 1;
                if !line.is_empty() {
                    each(line, true).map_err(|bad| at(path, self.line, *bad))?;
                }
            }
            self.start = from;
            if self.ended {
                let line = trim_end(&self.buffer[self.start..self.end]);
                if !line.is_empty() {
                    self.line += 1;
                    each(line, false).map_err(|bad| at(path, self.line, *bad))?;
                }
                self.start = self.end;
                return Ok(());
            }
            if self.end - self.start > LINE_BYTES_MAX {
                let bad = Bad::bytes(
                    "line",
                    &self.buffer[self.start..self.start + 60],
                    "a line has at most 64 KiB",
                );
                return Err(at(path, self.line + 1, *bad));
            }
            self.read_more(path)?;
        }
    }

    /// Moves the rest to the front and refills the buffer.
    fn read_more(&mut self, path: &Path) -> Result<(), WorkloadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let is_first = self.end == 0 && self.line == 0;
        while self.end < self.buffer.len() && !self.ended {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(WorkloadError::File { path: path.to_owned(), source }),
            }
        }
        // A byte order mark is no part of the first line.
        if is_first && self.buffer[..self.end].starts_with(BYTE_ORDER_MARK) {
            self.start = BYTE_ORDER_MARK.len();
        }
        Ok(())
    }
}

#[cold]
fn at(path: &Path, line: u64, bad: Bad) -> WorkloadError {
    let file = path.display().to_string();
    WorkloadError::Line { file, line, column: bad.column, found: bad.found, allowed: bad.allowed }
}

#[inline]
fn trim_end(line: &[u8]) -> &[u8] {
    match line {
        [head @ .., b'\r' | b' ' | b'\t'] => head.trim_ascii_end(),
        _ => line,
    }
}

/// 10^0 to 10^8.
const POWERS_OF_TEN: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// How many of eight bytes are decimal digits, from the first on, and their value: eight at a time, since reading numbers digit
/// by digit was half of the time that a trace takes.
#[inline]
fn leading_digits(bytes: &[u8; 8]) -> (usize, u64) {
    // A digit becomes 0 to 9, and its sum with 0x76 stays below 0x80; what a byte above them carries comes after the first that
    // is no digit, and is not looked at.
    let values = u64::from_le_bytes(*bytes) ^ 0x3030_3030_3030_3030;
    let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    let digits = others.trailing_zeros() as usize / 8;
    if digits == 0 {
        return (0, 0);
    }
    // The last digit comes to the top, zeros before the first; then pairs, fours and all eight are added up.
    let aligned = values << (64 - 8 * digits);
    let pairs = aligned.wrapping_mul(10).wrapping_add(aligned >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (digits, low.wrapping_add(high) >> 32)
}

/// The fields of one line, from left to right. `SEPARATOR` is a byte between two fields, except that a blank
/// means any run of blanks and tabs.
pub(crate) struct Fields<'a, const SEPARATOR: u8> {
    line: &'a [u8],
    /// One past the end once the last field has been taken.
    at: usize,
}

impl<'a, const SEPARATOR: u8> Fields<'a, SEPARATOR> {
    #[inline]
    pub fn new(line: &'a [u8]) -> Self {
        Fields { line, at: 0 }
    }

    #[inline]
    fn skip_blanks(&mut self) {
        if SEPARATOR == b' ' {
            while matches!(self.line.get(self.at), Some(b' ' | b'\t')) {
                self.at += 1;
            }
        }
    }

    #[inline]
    fn ends_at(&self, at: usize) -> bool {
        match self.line.get(at) {
            None => true,
            Some(&byte) => byte == SEPARATOR || (SEPARATOR == b' ' && byte == b'\t'),
        }
    }

    /// The next field, if there is one.
    #[inline]
    pub fn next(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let rest = self.line.get(self.at..)?;
        if SEPARATOR == b' ' && rest.is_empty() {
            return None;
        }
        let length = if SEPARATOR == b' ' {
            memchr::memchr2(b' ', b'\t', rest)
        } else {
            memchr::memchr(SEPARATOR, rest)
        }
        .unwrap_or(rest.len());
        self.at += length + 1;
        Some(&rest[..length])
    }

    /// The next field, which must exist.
    #[inline]
    pub fn text(&mut self, column: &'static str) -> Result<&'a [u8], BadLine> {
        match self.next() {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(Bad::new(column, "", "the line ends before it")),
        }
    }

    /// True if the last field was taken.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.at > self.line.len()
    }

    /// The fields that are left.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Passes fields of which `rest` begins with the first `count` bytes, and their separator.
    #[inline]
    pub fn skip(&mut self, count: usize) {
        self.at += count + 1;
    }

    /// The next field as a whole number.
    #[inline]
    pub fn integer(&mut self, column: &'static str) -> Result<u64, BadLine> {
        self.skip_blanks();
        let mut value = 0u64;
        let mut at = self.at;
        while let Some(eight) = self.line.get(at..).and_then(<[u8]>::first_chunk) {
            let (digits, number) = leading_digits(eight);
            value = value.wrapping_mul(POWERS_OF_TEN[digits]).wrapping_add(number);
            at += digits;
            if digits < 8 {
                break;
            }
        }
        while let Some(digit) = self.line.get(at).and_then(|&byte| digit(byte)) {
            value = value.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        // 19 digits cannot overflow.
        if at.wrapping_sub(self.at).wrapping_sub(1) < 19 && self.ends_at(at) {
            self.at = at + 1;
            return Ok(value);
        }
        self.integer_slowly(column)
    }

    #[cold]
    #[inline(never)]
    fn integer_slowly(&mut self, column: &'static str) -> Result<u64, BadLine> {
        whole_number(self.text(column)?, column)
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
        let text = self.text(column)?.trim_ascii();
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
        let read = |text: &str| Fields::<b','>::new(text.as_bytes()).integer("n").map_err(|bad| bad.allowed);
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
        for number in [0, 7, 10, 99, 12_345, 1_234_567, 12_345_678, 99_999_999, 128_166_372_003_061_629] {
            for rest in ["", ",", ",123456789", ";", " ", "\u{ff}\u{ff}", "/:"] {
                let text = format!("{number}{rest}");
                let mut bytes = [0xff; 8];
                let length = text.len().min(8);
                bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
                let digits = number.to_string().len().min(8);
                let value: u64 = text[..digits].parse().unwrap();
                assert_eq!(leading_digits(&bytes), (digits, value), "{text}");
            }
            let line = format!("{number},1");
            assert_eq!(Fields::<b','>::new(line.as_bytes()).integer("n").unwrap(), number);
        }
        for byte in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
            assert_eq!(leading_digits(&[b'4', b'2', byte, b'1', byte, byte, b'9', byte]), (2, 42), "{byte}");
        }
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
        let mut blanks = Fields::<b' '>::new(b"  1 \t 22  x");
        assert_eq!(blanks.integer("a").unwrap(), 1);
        assert_eq!(blanks.integer("b").unwrap(), 22);
        assert_eq!(blanks.next(), Some(&b"x"[..]));
        assert_eq!(blanks.next(), None);
        let mut commas = Fields::<b','>::new(b"1,,3");
        assert_eq!(commas.next(), Some(&b"1"[..]));
        assert!(commas.integer("b").is_err());
    }

    #[test]
    fn lines_across_block_borders() {
        struct Trickle<'a>(&'a [u8]);
        impl Read for Trickle<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                let count = self.0.len().min(3).min(into.len());
                into[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let text: String = (0..100_000).map(|n| format!("{n}\r\n")).collect::<String>() + "last";
        let mut lines = Lines::new(Trickle(text.as_bytes()));
        let mut seen = Vec::new();
        lines
            .for_each(Path::new("x"), None, |line, _| {
                seen.push(line.to_vec());
                Ok(())
            })
            .unwrap();
        assert_eq!(seen.len(), 100_001);
        assert_eq!(seen[77_777], b"77777");
        assert_eq!(seen[100_000], b"last");
        let long = vec![b'x'; 600_000];
        let error =
            Lines::new(&long[..]).for_each(Path::new("x"), None, |_, _| Ok(())).unwrap_err().to_string();
        assert!(
            error.starts_with("x:1: line 'xxx") && error.ends_with("a line has at most 64 KiB"),
            "{error}"
        );
    }
}
