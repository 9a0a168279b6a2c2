//! Fields of a line of trace text: one pass, no allocation unless something is wrong. Their borders are found 64 bytes at a time,
//! and numbers are read eight digits at a time: one after the other, by byte, that was most of the time that a trace takes.

use crate::text::lines::{Bad, BadLine, Line};
use crate::text::windows::{BEFORE, VIEW, WINDOW, equal_to};
use bytemuck::cast;
use std::num::NonZeroU64;
use wide::{i16x8, i32x4, i32x8, u8x16};

const TEN_TO_16: u64 = 10_000_000_000_000_000;

/// By length of a number, the last bytes of sixteen that are it.
const ENDS: [[u8; 16]; 17] = {
    let mut ends = [[0; 16]; 17];
    let mut length = 1;
    while length <= 16 {
        ends[length] = ends[length - 1];
        ends[length][16 - length] = 0xff;
        length += 1;
    }
    ends
};

/// The value of the last `count` of sixteen bytes, 1 to 16, if all of them are decimal digits.
#[inline(always)]
fn digits(bytes: [u8; 16], count: usize) -> Option<u64> {
    // A digit becomes 0 to 9; bytes before the number become 0.
    let digits: u8x16 = (u8x16::new(bytes) ^ u8x16::splat(b'0')) & u8x16::new(ENDS[count]);
    if digits.max(u8x16::splat(9)).simd_eq(u8x16::splat(9)).to_bitmask() != 0xffff {
        return None;
    }
    // Pairs, fours and eights are added up.
    let digits: i16x8 = cast(digits);
    let odd: i16x8 = digits >> 8;
    let pairs = (digits & i16x8::splat(0xff)) * i16x8::splat(10) + odd;
    let fours = pairs.dot(i16x8::new([100, 1, 100, 1, 100, 1, 100, 1]));
    let fours = i16x8::from_i32x8_saturate(cast::<[i32x4; 2], i32x8>([fours, fours]));
    let eights = fours.dot(i16x8::new([10_000, 1, 10_000, 1, 10_000, 1, 10_000, 1]));
    let [both, _]: [u64; 2] = cast(eights);
    let (high, low) = (both & u64::from(u32::MAX), both >> 32);
    Some(high * 100_000_000 + low)
}

/// The bytes of a short text as a number, the first lowest: comparing it is one instruction.
pub(crate) const fn word(text: &[u8]) -> u64 {
    let (mut word, mut at) = (0, text.len());
    assert!(at <= 8, "a word has at most 8 bytes");
    while at > 0 {
        at -= 1;
        word = word << 8 | text[at] as u64;
    }
    word
}

/// Most bytes of what is known.
const KNOWN_BYTES_MAX: usize = 16;

/// Fields that were read before, with the separator behind each, to be recognised.
#[derive(Clone, Default)]
pub(crate) struct Known {
    bytes: u128,
    mask: u128,
    length: usize,
    /// How many fields are known; 0: none.
    fields: u32,
}

impl Known {
    /// These fields; nothing if they are too long.
    pub fn new(fields: &[&[u8]], separator: u8) -> Known {
        let text: Vec<u8> =
            fields.iter().flat_map(|field| field.iter().chain([&separator])).copied().collect();
        let mut bytes = [0; KNOWN_BYTES_MAX];
        let Some(known) = bytes.get_mut(..text.len()) else { return Known::default() };
        known.copy_from_slice(&text);
        let mask = u128::MAX >> (8 * (KNOWN_BYTES_MAX - text.len()));
        Known { bytes: u128::from_le_bytes(bytes), mask, length: text.len(), fields: fields.len() as u32 }
    }
}

/// The place of a field that does not end in the window from `start` on.
#[cold]
#[inline(never)]
fn long_field<const SEPARATOR: u8>(line: Line<'_>, start: usize) -> Option<(usize, usize)> {
    let text = line.text();
    let is_separator = |byte: u8| byte == SEPARATOR || SEPARATOR == b' ' && byte == b'\t';
    let blanks =
        if SEPARATOR == b' ' { text[start..].iter().position(|&byte| !is_separator(byte))? } else { 0 };
    let from = start + blanks;
    let length = text[from..].iter().position(|&byte| is_separator(byte));
    Some((from, length.map_or(text.len(), |length| from + length)))
}

/// The fields of one line, from left to right. `SEPARATOR` is a byte between two fields, except that a blank
/// means any run of blanks and tabs.
pub(crate) struct Fields<'a, const SEPARATOR: u8> {
    line: Line<'a>,
    /// Where the view begins in the line.
    start: usize,
    view: &'a [u8; VIEW],
    /// The borders in the first window of the view, a bit each: the separators and the end of the line; or, between blanks, the
    /// beginnings and ends of fields.
    borders: u64,
    /// One past the field taken last, in the view.
    at: usize,
}

impl<'a, const SEPARATOR: u8> Fields<'a, SEPARATOR> {
    #[inline(always)]
    pub fn new(line: Line<'a>) -> Self {
        Fields::from(line, 0)
    }

    /// The fields from `start` on, where one begins, or blanks before one.
    #[inline(always)]
    fn from(line: Line<'a>, start: usize) -> Self {
        let view = line.view(start);
        let window = view[BEFORE..].first_chunk().expect("a view is longer than a window");
        let second = if SEPARATOR == b' ' { b'\t' } else { SEPARATOR };
        let mut separators = equal_to(window, SEPARATOR, second);
        let left = line.bytes - start;
        if left < WINDOW {
            // What follows the line is no part of it.
            let end = 1u64 << left;
            separators = if SEPARATOR == b' ' {
                separators | end.wrapping_neg()
            } else {
                separators & (end - 1) | end
            };
        }
        // Before it, there is a blank or nothing.
        let borders = if SEPARATOR == b' ' { separators ^ (separators << 1 | 1) } else { separators };
        Fields { line, start, view, borders, at: 0 }
    }

    /// The same fields seen from the next one on. `None`: there is none.
    #[cold]
    #[inline(never)]
    fn moved(line: Line<'a>, start: usize) -> Option<Self> {
        (start <= line.bytes).then(|| Fields::from(line, start))
    }

    /// The next border in the window.
    #[inline(always)]
    fn border(&mut self) -> Option<usize> {
        let borders = NonZeroU64::new(self.borders)?;
        self.borders &= self.borders - 1;
        Some(borders.trailing_zeros() as usize)
    }

    /// The next field's place in the view, if there is one. It begins in the window; its end may be past the view, if it is long.
    #[inline(always)]
    fn place(&mut self) -> Option<(usize, usize)> {
        if let Some((from, to)) = self.place_in_window() {
            return Some((from, to));
        }
        // By value: a reference would keep the fields in memory.
        *self = Fields::moved(self.line, self.start + self.at)?;
        if let Some((from, to)) = self.place_in_window() {
            return Some((from, to));
        }
        let (from, to) = long_field::<SEPARATOR>(self.line, self.start)?;
        *self = Fields::from(self.line, from);
        (self.borders, self.at) = (0, to - from + 1);
        Some((0, to - from))
    }

    #[inline(always)]
    fn place_in_window(&mut self) -> Option<(usize, usize)> {
        let from = if SEPARATOR == b' ' { self.border()? } else { self.at };
        let to = self.border()?;
        self.at = to + 1;
        Some((from, to))
    }

    /// The next field, if there is one.
    #[inline(always)]
    pub fn next(&mut self) -> Option<&'a [u8]> {
        let (from, to) = self.place()?;
        Some(self.slice(from, to))
    }

    #[inline(always)]
    fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.line.slice(self.start + from, self.start + to)
    }

    /// `N` bytes from `at` on, which is in the window.
    #[inline(always)]
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        debug_assert!(at < WINDOW && N <= WINDOW);
        // The remainder tells the compiler what it would have to check.
        *self.view[at % WINDOW + BEFORE..].first_chunk().expect("within the view")
    }

    /// The sixteen bytes before `to`, which is in the window.
    #[inline(always)]
    fn bytes_before(&self, to: usize) -> [u8; 16] {
        debug_assert!(to < WINDOW);
        *self.view[to % WINDOW + BEFORE - 16..].first_chunk().expect("within the view")
    }

    /// The next field, which must exist.
    #[inline(always)]
    pub fn text(&mut self, column: &'static str) -> Result<&'a [u8], BadLine> {
        match self.next() {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(missing(column)),
        }
    }

    /// The next field, which must exist and may be empty.
    #[inline(always)]
    pub fn cell(&mut self, column: &'static str) -> Result<&'a [u8], BadLine> {
        self.next().ok_or_else(|| missing(column))
    }

    /// The next field, a whole number, as it is written: part of a name.
    pub fn digits(&mut self, column: &'static str) -> Result<&'a [u8], BadLine> {
        let text = self.text(column)?;
        match text.iter().all(u8::is_ascii_digit) {
            true => Ok(text),
            false => Err(Bad::bytes(column, text, "a whole number")),
        }
    }

    /// The next field, and as a [`word`]; 0 if it is longer than one.
    #[inline(always)]
    pub fn word(&mut self, column: &'static str) -> Result<(u64, &'a [u8]), BadLine> {
        let (word, (from, to)) = self.placed_word(column)?;
        Ok((word, self.slice(from, to)))
    }

    #[inline(always)]
    fn placed_word(&mut self, column: &'static str) -> Result<(u64, (usize, usize)), BadLine> {
        let Some((from, to)) = self.place().filter(|(from, to)| from < to) else {
            return Err(missing(column));
        };
        let bytes = u64::from_le_bytes(self.bytes(from));
        let unused = 64 - 8 * (to - from).min(8);
        let word = if to - from > 8 { 0 } else { bytes << unused >> unused };
        Ok((word, (from, to)))
    }

    /// The next field, which must be this word.
    #[inline(always)]
    pub fn must_be(&mut self, column: &'static str, word: u64, allowed: &'static str) -> Result<(), BadLine> {
        let (found, (from, to)) = self.placed_word(column)?;
        if found == word { Ok(()) } else { Err(self.other_word(column, (from, to), allowed)) }
    }

    /// The next field, which must be one of two words; true if it is the second. Which of them, no processor can predict, so
    /// nothing branches on it.
    #[inline(always)]
    pub fn is_second(
        &mut self,
        column: &'static str,
        words: [u64; 2],
        allowed: &'static str,
    ) -> Result<bool, BadLine> {
        let (word, place) = self.placed_word(column)?;
        if (word ^ words[0]).min(word ^ words[1]) != 0 {
            return Err(self.other_word(column, place, allowed));
        }
        Ok(word == words[1])
    }

    #[inline(always)]
    fn other_word(&self, column: &'static str, (from, to): (usize, usize), allowed: &'static str) -> BadLine {
        Bad::bytes(column, self.slice(from, to), allowed)
    }

    /// True if the last field was taken.
    #[inline(always)]
    pub fn is_at_end(&self) -> bool {
        self.start + self.at > self.line.bytes
    }

    /// Passes the next fields if they are these.
    #[inline(always)]
    pub fn pass(&mut self, known: &Known) -> bool {
        // Their separators are in the window.
        if known.fields == 0 || self.at > WINDOW - KNOWN_BYTES_MAX {
            return false;
        }
        let next = u128::from_le_bytes(self.bytes(self.at));
        if (next ^ known.bytes) & known.mask != 0 {
            return false;
        }
        self.at += known.length;
        (0..known.fields).for_each(|_| self.borders &= self.borders - 1);
        true
    }

    /// The bytes from `from` to `to` as a number, if they are 1 to 19 digits: so many cannot overflow.
    #[inline(always)]
    fn number(&self, from: usize, to: usize) -> Option<u64> {
        match to - from {
            count @ 1..=16 => digits(self.bytes_before(to), count),
            count @ 17..=19 => {
                // The first one to three of them are the last three of sixteen.
                let high = digits(self.bytes_before(to - 16), count - 16)?;
                Some(high * TEN_TO_16 + digits(self.bytes_before(to), 16)?)
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
                None => integer_slowly(self.slice(from, to), column),
            };
        }
        Err(missing(column))
    }

    /// The next field as sectors of 512 B, in bytes.
    #[inline(always)]
    pub fn sectors(&mut self, column: &'static str) -> Result<u64, BadLine> {
        let sectors = self.integer(column)?;
        if sectors >> 55 != 0 {
            let allowed = format!("at most {} sectors of 512 B", (1u64 << 55) - 1);
            return Err(Bad::new(column, &sectors.to_string(), allowed));
        }
        Ok(sectors << 9)
    }

    /// The next field as seconds with a decimal point, in nanoseconds; further digits are cut off.
    #[inline(always)]
    pub fn seconds(&mut self, column: &'static str) -> Result<u64, BadLine> {
        let Some((from, to)) = self.place() else { return Err(missing(column)) };
        // As blkparse and most others write it.
        if (11..=20).contains(&(to - from)) && self.view[to % WINDOW + BEFORE - 10] == b'.' {
            let whole = self.number(from, to - 10);
            if let (Some(seconds), Some(ns)) = (whole, self.number(to - 9, to)) {
                return Ok(seconds * 1_000_000_000 + ns);
            }
        }
        seconds_slowly(self.slice(from, to), column)
    }

    /// Returns an error if there is a further field.
    #[inline(always)]
    pub fn end(&mut self, columns: &'static str) -> Result<(), BadLine> {
        if self.is_at_end() {
            return Ok(());
        }
        self.next().map_or(Ok(()), |text| Err(further_column(text, columns)))
    }
}

#[cold]
fn missing(column: &'static str) -> BadLine {
    Bad::new(column, "", "the line ends before this column")
}

#[cold]
fn further_column(text: &[u8], columns: &'static str) -> BadLine {
    Bad::bytes("further column", text, format!("the columns are {columns}"))
}

#[cold]
#[inline(never)]
fn integer_slowly(text: &[u8], column: &'static str) -> Result<u64, BadLine> {
    if text.is_empty() { Err(missing(column)) } else { whole_number(text, column) }
}

#[cold]
#[inline(never)]
fn seconds_slowly(text: &[u8], column: &'static str) -> Result<u64, BadLine> {
    if text.is_empty() { Err(missing(column)) } else { decimal_seconds(text.trim_ascii(), column) }
}

/// Seconds with or without decimals, in nanoseconds.
pub(crate) fn decimal_seconds(text: &[u8], column: &'static str) -> Result<u64, BadLine> {
    nanoseconds(text)
        .ok_or_else(|| Bad::bytes(column, text, "seconds, e.g. 12.345678, from 0 to 18446744073"))
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
    use crate::text::lines::OwnLine;
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    #[test]
    fn numbers_up_to_their_limits() {
        let read = |text: &str| {
            Fields::<b','>::new(OwnLine::new(text.as_bytes()).line()).integer("n").map_err(|bad| bad.allowed)
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
        assert_eq!(read(""), Err("the line ends before this column".to_owned()));
    }

    #[test]
    fn digits_are_read_sixteen_at_a_time() {
        for number in [
            0u64,
            7,
            10,
            99,
            12_345,
            1_234_567,
            12_345_678,
            99_999_999,
            123_456_789_012_345,
            9_999_999_999_999_999,
        ] {
            for before in [b'0', b'9', b',', b' ', b'/', b':', 0, 0xff] {
                let text = number.to_string();
                let mut bytes = [before; 16];
                bytes[16 - text.len()..].copy_from_slice(text.as_bytes());
                assert_eq!(digits(bytes, text.len()), Some(number), "{text}");
            }
        }
        for byte in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
            for at in 0..16 {
                let mut bytes = [b'4'; 16];
                bytes[at] = byte;
                for count in 1..=16 {
                    let fours = (count <= 15 - at).then(|| "4".repeat(count).parse().unwrap());
                    assert_eq!(digits(bytes, count), fours, "byte {byte} at {at}, {count} digits");
                }
            }
        }
        let mut number = 1u64;
        for _ in 0..20 {
            for padding in [
                "",
                ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,",
            ] {
                let line = format!("{number},1{padding}");
                assert_eq!(
                    Fields::<b','>::new(OwnLine::new(line.as_bytes()).line()).integer("n").unwrap(),
                    number
                );
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
        let line = OwnLine::new(line.as_bytes());
        let mut fields = Fields::<b' '>::new(line.line());
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
        let line = OwnLine::new(b"  1 \t 22  x");
        let mut blanks = Fields::<b' '>::new(line.line());
        assert_eq!(blanks.integer("a").unwrap(), 1);
        assert_eq!(blanks.integer("b").unwrap(), 22);
        assert_eq!(blanks.next(), Some(&b"x"[..]));
        assert_eq!(blanks.next(), None);
        let line = OwnLine::new(b"1,,3");
        let mut commas = Fields::<b','>::new(line.line());
        assert_eq!(commas.next(), Some(&b"1"[..]));
        assert!(commas.integer("b").is_err());
    }

    /// The fields of a text as the library splits them.
    fn plainly<const SEPARATOR: u8>(text: &[u8]) -> Vec<&[u8]> {
        match SEPARATOR {
            b' ' => text.split(|byte| b" \t".contains(byte)).filter(|field| !field.is_empty()).collect(),
            _ => text.split(|&byte| byte == SEPARATOR).collect(),
        }
    }

    fn same<const SEPARATOR: u8>(text: &[u8], behind: &[u8], kinds: &[u8]) -> Result<(), TestCaseError> {
        let own = OwnLine::new_before(text, behind);
        let plain = plainly::<SEPARATOR>(text);
        let mut fields = Fields::<SEPARATOR>::new(own.line());
        let said = |bad: BadLine| (bad.found, bad.allowed);
        for (number, &expected) in plain.iter().enumerate() {
            prop_assert!(!fields.is_at_end());
            match kinds[number % kinds.len()] % 4 {
                0 => prop_assert_eq!(fields.next(), Some(expected)),
                1 => prop_assert_eq!(
                    fields.integer("n").map_err(said),
                    integer_slowly(expected, "n").map_err(said)
                ),
                2 => prop_assert_eq!(
                    fields.seconds("n").map_err(said),
                    seconds_slowly(expected, "n").map_err(said)
                ),
                _ => {
                    let short = if expected.len() > 8 { 0 } else { word(expected) };
                    let expected =
                        if expected.is_empty() { Err(missing("n")) } else { Ok((short, expected)) };
                    prop_assert_eq!(fields.word("n").map_err(said), expected.map_err(said));
                }
            }
        }
        prop_assert_eq!(fields.next(), None);
        prop_assert!(fields.end("").is_ok());
        Ok(())
    }

    proptest! {
        /// Fields, numbers and errors are those of the plain way, whatever stands in the line and behind it.
        #[test]
        fn fields_are_those_of_the_plain_way(
            line in "([0-9]{1,21}|[0-9]{1,12}\\.[0-9]{0,12}|[a-zA-Z+:/\u{7f}-\u{ff}]{0,70}|[, \t]{1,3}|,){0,40}",
            behind in "[0-9, a]{0,20}",
            kinds in proptest::collection::vec(0..4u8, 1..9),
        ) {
            let text = line.trim_end().as_bytes();
            same::<b','>(text, behind.as_bytes(), &kinds)?;
            same::<b' '>(text, behind.as_bytes(), &kinds)?;
        }
    }

    #[test]
    fn known_fields_are_passed_whole_only() {
        let known = Known::new(&[b"h", b"1"], b',');
        let after = |text: &[u8], known: &Known| {
            let own = OwnLine::new(text);
            let mut fields = Fields::<b','>::new(own.line());
            fields.next();
            let passed = fields.pass(known);
            (passed, fields.next().map(<[u8]>::to_vec))
        };
        assert_eq!(after(b"7,h,1,Read", &known), (true, Some(b"Read".to_vec())));
        // Disk 1 is not the beginning of disk 10.
        assert_eq!(after(b"7,h,10,Read", &known), (false, Some(b"h".to_vec())));
        assert_eq!(after(b"7,h,1", &known), (false, Some(b"h".to_vec())));
        assert_eq!(after(b"7,h,1,", &Known::default()), (false, Some(b"h".to_vec())));
        // Far from the beginning, and too long: both are read in the usual way.
        let far = [&[b'7'; 50][..], b",h,1,Read"].concat();
        assert_eq!(after(&far, &known), (false, Some(b"h".to_vec())));
        let long = Known::new(&[b"a-long-host-name", b"1"], b',');
        assert_eq!(after(b"7,a-long-host-name,1,Read", &long), (false, Some(b"a-long-host-name".to_vec())));
    }
}
