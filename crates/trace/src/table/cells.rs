//! The lines of a text table: cells, and what they mean.

use crate::Op;
use crate::rows::Rows;
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use std::borrow::Cow;

/// Times are kept in nanoseconds, unless one of their columns has picoseconds.
const TICK_PS: u64 = 1_000;

/// What a column is; a unit is in picoseconds or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Aside,
    Time(u64),
    Op,
    Offset(u64),
    Length(u64),
    Volume,
    Fua,
    Response(u64),
}

impl Role {
    /// True if they differ in their units at most.
    pub fn same(self, other: Role) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// The name that `columns=` has for it.
    pub name: String,
    pub role: Role,
}

/// The usual words, in lower case.
const WORDS: [(&str, Op); 15] = [
    ("r", Op::Read),
    ("w", Op::Write),
    ("read", Op::Read),
    ("write", Op::Write),
    ("rd", Op::Read),
    ("wr", Op::Write),
    ("t", Op::Trim),
    ("d", Op::Trim),
    ("trim", Op::Trim),
    ("discard", Op::Trim),
    ("unmap", Op::Trim),
    ("f", Op::Flush),
    ("flush", Op::Flush),
    ("sync", Op::Flush),
    ("fsync", Op::Flush),
];

/// A text table as a format.
#[derive(Clone, Debug)]
pub(crate) struct TextTable {
    columns: Vec<Column>,
    separator: u8,
    header: Option<Vec<u8>>,
    words: Vec<(String, Op)>,
    tick_ps: u64,
    /// How the columns are known.
    how: &'static str,
    /// The word for an operation that was read last, and what it means: it often comes again.
    last_word: (Vec<u8>, Op),
}

impl TextTable {
    /// A table with these columns, its first line if that is a header, and words for operations besides the usual ones.
    pub(crate) fn new(
        columns: Vec<Column>,
        separator: u8,
        header: Option<Vec<u8>>,
        words: Vec<(String, Op)>,
        how: &'static str,
    ) -> TextTable {
        let units = columns.iter().filter_map(|column| match column.role {
            Role::Time(unit) | Role::Response(unit) => Some(unit),
            _ => None,
        });
        let tick_ps = units.fold(TICK_PS, u64::min);
        TextTable { columns, separator, header, words, tick_ps, how, last_word: (Vec::new(), Op::Read) }
    }

    /// What its columns were taken to be.
    pub(crate) fn about(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        format!("columns={} ({})", names.join(","), self.how)
    }

    fn op(&mut self, cell: &[u8]) -> Result<Op, Problem> {
        if cell == self.last_word.0 && !cell.is_empty() {
            return Ok(self.last_word.1);
        }
        let said = self.words.iter().find(|(word, _)| cell.eq_ignore_ascii_case(word.as_bytes()));
        let said = said.map(|(_, op)| *op);
        let usual = || WORDS.iter().find(|(word, _)| cell.eq_ignore_ascii_case(word.as_bytes()));
        let Some(op) = said.or_else(|| usual().map(|(_, op)| *op)) else {
            let text = String::from_utf8_lossy(cell);
            let others = match cell.is_empty() {
                true => String::new(),
                false => {
                    format!("; if it means one of them, add read={text} or write={text}")
                }
            };
            return Err(format!("read, write, trim or flush, or their first letters{others}").into());
        };
        self.last_word.0.clear();
        self.last_word.0.extend_from_slice(cell);
        self.last_word.1 = op;
        Ok(op)
    }
}

/// What is allowed in a cell.
type Problem = Cow<'static, str>;

/// A line as it is read.
#[derive(Default)]
struct Parts<'a> {
    ticks: u64,
    op: Option<Op>,
    offset: u64,
    length: u64,
    volume: Option<Cow<'a, [u8]>>,
    fua: bool,
    response: Option<u64>,
}

impl LineFormat for TextTable {
    const TICK_PS: u64 = TICK_PS;
    const COLUMNS: &'static str = "";

    fn tick_ps(&self) -> u64 {
        self.tick_ps
    }

    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let text = line.text();
        if text.starts_with(b"#") || self.header.as_deref() == Some(text) {
            rows.report.other_lines += 1;
            return Ok(());
        }
        let mut parts = Parts::default();
        let text = if self.separator == b'\t' { line.with_blanks() } else { text };
        let mut cells = Cells::new(text, self.separator);
        for index in 0..self.columns.len() {
            let role = self.columns[index].role;
            let Some(cell) = cells.next() else {
                return Err(self.bad(index, b"", "the line ends before this column".into()));
            };
            let most = if self.tick_ps == TICK_PS { TIME } else { TIME_PS };
            let ticks = |unit| time(cell, unit, self.tick_ps).ok_or(Problem::Borrowed(most));
            let bytes = |unit| size(cell, unit).ok_or(Problem::Borrowed(SIZE));
            let read = match role {
                Role::Aside => Ok(()),
                Role::Time(unit) => ticks(unit).map(|ticks| parts.ticks = ticks),
                Role::Offset(unit) => bytes(unit).map(|bytes| parts.offset = bytes),
                Role::Length(unit) => bytes(unit).map(|bytes| parts.length = bytes),
                Role::Response(_) if cell.is_empty() => Ok(()),
                Role::Response(unit) => ticks(unit).map(|ticks| parts.response = Some(ticks)),
                Role::Op => self.op(cell).map(|op| parts.op = Some(op)),
                Role::Volume => {
                    let quoted = cells.has_quotes.then(|| with_single_quotes(cell));
                    parts.volume = Some(quoted.map_or(Cow::Borrowed(cell), Cow::Owned));
                    Ok(())
                }
                Role::Fua => flag(cell).map(|fua| parts.fua = fua),
            };
            read.map_err(|allowed| self.bad(index, cell, allowed))?;
        }
        parts.put(rows)
    }
}

const TIME: &str = "a number, from 0 to 2^64 nanoseconds";
const TIME_PS: &str = "a number, from 0 to 2^64 picoseconds";
const SIZE: &str = "a whole number of bytes, from 0 to 2^64";

impl TextTable {
    #[cold]
    fn bad(&self, index: usize, cell: &[u8], allowed: Problem) -> BadLine {
        let column = format!("column {} ({})", index + 1, self.columns[index].name);
        Bad::bytes(column, cell, allowed)
    }
}

impl Parts<'_> {
    fn put(self, rows: &mut Rows) -> Result<(), BadLine> {
        let op = self.op.expect("a table has a column for the operation");
        let volume = match self.volume.as_deref() {
            Some(name) => rows.volumes.named(name)?,
            None => rows.volumes.numbered(0)?,
        };
        if op == Op::Flush {
            rows.flush(self.ticks, volume);
        } else {
            rows.push(self.ticks, self.offset, self.length, op, volume)?;
        }
        if self.fua && op == Op::Write {
            rows.mark_fua();
        }
        self.response.into_iter().for_each(|response| rows.answered(response));
        Ok(())
    }
}

/// The text of a cell in which quotes are written twice.
#[cold]
fn with_single_quotes(cell: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(cell.len());
    let mut bytes = cell.iter();
    while let Some(&byte) = bytes.next() {
        text.push(byte);
        if byte == b'"' {
            bytes.next();
        }
    }
    text
}

fn flag(cell: &[u8]) -> Result<bool, Problem> {
    let is = |words: [&str; 3]| words.iter().any(|word| cell.eq_ignore_ascii_case(word.as_bytes()));
    match cell {
        b"" => Ok(false),
        _ if is(["1", "yes", "true"]) => Ok(true),
        _ if is(["0", "no", "false"]) => Ok(false),
        _ => Err("1 or 0, yes or no, true or false".into()),
    }
}

/// A time in ticks; what is shorter than one is cut off.
fn time(cell: &[u8], unit_ps: u64, tick_ps: u64) -> Option<u64> {
    scaled(cell, unit_ps / tick_ps).map(|(ticks, _)| ticks)
}

/// A size in whole bytes.
fn size(cell: &[u8], unit_bytes: u64) -> Option<u64> {
    scaled(cell, unit_bytes).filter(|(_, is_whole)| *is_whole).map(|(bytes, _)| bytes)
}

/// A number times a factor, rounded down, and whether nothing was cut off.
fn scaled(cell: &[u8], factor: u64) -> Option<(u64, bool)> {
    let (whole, fraction) = match memchr::memchr(b'.', cell) {
        Some(point) => (&cell[..point], &cell[point + 1..]),
        None => (cell, &cell[cell.len()..]),
    };
    if whole.len() + fraction.len() == 0 || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return scaled_slowly(cell, factor);
    }
    let digits = |text: &[u8]| {
        let step = |value: u128, digit: &u8| value.checked_mul(10)?.checked_add((digit - b'0') as u128);
        text.iter().try_fold(0u128, step)
    };
    // More digits are below what is counted.
    let fraction = &fraction[..fraction.len().min(18)];
    let whole = digits(whole)?.checked_mul(factor as u128)?;
    let (part, divisor) = (digits(fraction)? * factor as u128, 10u128.pow(fraction.len() as u32));
    let value = u64::try_from(whole.checked_add(part / divisor)?).ok()?;
    Some((value, part.is_multiple_of(divisor)))
}

/// A number as others write it: `1.5e-05`.
#[cold]
fn scaled_slowly(cell: &[u8], factor: u64) -> Option<(u64, bool)> {
    let text =
        std::str::from_utf8(cell).ok().filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))?;
    let value = text.parse::<f64>().ok()? * factor as f64;
    (value < u64::MAX as f64).then_some((value.round() as u64, value.fract() == 0.0))
}

/// The cells of a line: between separators, or runs of blanks; without the double quotes around them and blanks at their ends. A
/// double quote within quotes is written twice, and is left so.
pub(crate) struct Cells<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
    /// The last cell was in quotes, and there are more in it.
    pub has_quotes: bool,
}

impl<'a> Cells<'a> {
    pub fn new(line: &'a [u8], separator: u8) -> Cells<'a> {
        Cells { rest: Some(line), separator, has_quotes: false }
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut rest = self.rest?;
        if self.separator == b' ' {
            rest = rest.trim_ascii_start();
            if rest.is_empty() {
                return None;
            }
        }
        while let [b' ', behind @ ..] = rest {
            rest = behind;
        }
        self.has_quotes = false;
        if let [b'"', quoted @ ..] = rest
            && let Some(end) = self.end_of_quotes(quoted)
        {
            let behind = &quoted[end + 1..];
            let next = behind.iter().position(|byte| self.divides(*byte));
            self.rest = next.map(|next| &behind[next + 1..]);
            return Some(&quoted[..end]);
        }
        let end = match self.separator {
            b' ' => rest.iter().position(|byte| self.divides(*byte)),
            separator => memchr::memchr(separator, rest),
        };
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(rest[..end.unwrap_or(rest.len())].trim_ascii())
    }
}

impl Cells<'_> {
    /// Where the quotes end that `quoted` is within.
    fn end_of_quotes(&mut self, quoted: &[u8]) -> Option<usize> {
        let mut end = memchr::memchr(b'"', quoted)?;
        while quoted.get(end + 1) == Some(&b'"') {
            self.has_quotes = true;
            end += 2 + memchr::memchr(b'"', &quoted[end + 2..])?;
        }
        Some(end)
    }

    fn divides(&self, byte: u8) -> bool {
        byte == self.separator || self.separator == b' ' && byte == b'\t'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_divided_and_freed_of_quotes() {
        let cells = |text: &'static str, separator| -> Vec<&str> {
            Cells::new(text.as_bytes(), separator).map(|cell| std::str::from_utf8(cell).unwrap()).collect()
        };
        assert_eq!(cells("1,\"a,b\", R ,,5", b','), ["1", "a,b", "R", "", "5"]);
        assert_eq!(cells("  1 0\t48   W", b' '), ["1", "0", "48", "W"]);
        assert_eq!(cells("a;\"b\"", b';'), ["a", "b"]);
        assert_eq!(cells("a,", b','), ["a", ""]);
        assert_eq!(cells(" \"a,\"\"b\" ,\"\",\"c", b','), ["a,\"\"b", "", "\"c"]);
        assert_eq!(cells("a\t \"b\tc\"\t", b'\t'), ["a", "b\tc", ""]);
        assert_eq!(cells("\"a b\" c", b' '), ["a b", "c"]);
    }

    #[test]
    fn numbers_are_scaled_exactly() {
        const S: u64 = 1_000_000_000_000;
        for (text, unit, expected) in [
            ("1456135200.013118000", S, Some(1_456_135_200_013_118_000)),
            ("0.0000000019", S, Some(1)),
            ("1.5e-05", S, Some(15_000)),
            ("128166372003061629", 100_000, Some(12_816_637_200_306_162_900)),
            (".25", 1_000_000, Some(250)),
            ("18446744073709551616", 1000, None),
            ("-1", S, None),
            ("", S, None),
            (".", S, None),
            ("nan", S, None),
        ] {
            assert_eq!(time(text.as_bytes(), unit, 1000), expected, "{text} of {unit} ps");
        }
        for (text, unit, expected) in [
            ("8", 512, Some(4096)),
            ("0.5", 4096, Some(2048)),
            ("4096.0", 1, Some(4096)),
            ("4096.5", 1, None),
        ] {
            assert_eq!(size(text.as_bytes(), unit), expected, "{text} of {unit} B");
        }
    }
}
