//! Lines of trace text, in blocks of whole lines.

use crate::TraceError;
use crate::text::windows::{BEFORE, VIEW, WINDOW, equal_to};
use std::borrow::Cow;
use std::io::{ErrorKind, Read, Result};
use std::path::Path;

/// No trace has longer lines.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// A block stays in a core's own cache while it is parsed. It holds more than the longest line, so that a longer one is noticed.
const BLOCK_BYTES: usize = 2 * LINE_BYTES_MAX;
/// What is wrong in a line; file and line number are added by the loop over the lines.
#[derive(Debug)]
pub(crate) struct Bad {
    pub column: Cow<'static, str>,
    pub found: String,
    pub allowed: String,
}

/// Boxed, so that the result of reading a number stays in registers.
pub(crate) type BadLine = Box<Bad>;

impl Bad {
    #[cold]
    pub fn new(column: impl Into<Cow<'static, str>>, found: &str, allowed: impl Into<String>) -> BadLine {
        let mut found: String = found.chars().take(60).collect();
        found.retain(|c| !c.is_control());
        Box::new(Bad { column: column.into(), found, allowed: allowed.into() })
    }
    #[cold]
    pub fn bytes(column: impl Into<Cow<'static, str>>, found: &[u8], allowed: impl Into<String>) -> BadLine {
        Bad::new(column, &String::from_utf8_lossy(found), allowed)
    }

    /// As the error of a file.
    #[cold]
    pub fn at(self, path: &Path, line: u64) -> TraceError {
        let file = path.display().to_string();
        TraceError::Line { file, line, column: self.column, found: self.found, allowed: self.allowed }
    }
}

/// A line without its end.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    /// [`BEFORE`] bytes, the line, and more bytes: a view around any place of the line is within.
    text: &'a [u8],
    pub(crate) bytes: usize,
}

impl<'a> Line<'a> {
    #[inline]
    pub fn text(self) -> &'a [u8] {
        self.slice(0, self.bytes)
    }

    /// Its bytes, with the blanks behind them: tabs may be the borders of empty cells.
    pub fn with_blanks(self) -> &'a [u8] {
        let behind = self.text[BEFORE + self.bytes..].iter();
        let blanks = behind.take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        self.slice(0, self.bytes + blanks)
    }

    /// What is around a place in it.
    #[inline(always)]
    pub fn view(self, place: usize) -> &'a [u8; VIEW] {
        self.text[place..].first_chunk().expect("what is around a line can be read")
    }

    /// The bytes `from..to` of the line.
    #[inline(always)]
    pub fn slice(self, from: usize, to: usize) -> &'a [u8] {
        &self.text[BEFORE + from..BEFORE + to]
    }
}

/// A line alone.
pub(crate) struct OwnLine {
    text: Vec<u8>,
    bytes: usize,
}

impl OwnLine {
    pub fn new(text: &[u8]) -> OwnLine {
        OwnLine::new_before(text, b"")
    }

    /// A line and what is behind it, which is no part of it.
    pub fn new_before(text: &[u8], behind: &[u8]) -> OwnLine {
        OwnLine { text: [&[0; BEFORE], text, behind, &[0; VIEW]].concat(), bytes: text.len() }
    }

    pub fn line(&self) -> Line<'_> {
        Line { text: &self.text, bytes: self.bytes }
    }
}

/// Whole lines of a text.
#[derive(Default)]
pub(crate) struct Block {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Nothing follows: its last line may lack its end.
    is_last: bool,
}

impl Block {
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub fn bytes(&self) -> usize {
        self.end - self.start
    }

    /// Calls `each` with every line that is not blank, and whether it has an end. Stops at its first error. Returns how many lines
    /// there were up to then.
    #[inline]
    pub fn for_each(
        &self,
        mut each: impl FnMut(Line<'_>, bool) -> std::result::Result<(), BadLine>,
    ) -> (u64, std::result::Result<(), BadLine>) {
        let (mut at, mut count) = (self.start, 0);
        while at < self.end {
            let text = &self.buffer[at - BEFORE..];
            let bytes = line_bytes(&text[BEFORE..], self.end - at);
            let has_end = at + bytes < self.end;
            at += bytes + 1;
            let line = Line { text, bytes: trim_end(&text[BEFORE..BEFORE + bytes]).len() };
            if line.bytes == 0 {
                count += u64::from(has_end);
                continue;
            }
            count += 1;
            let result = if bytes > LINE_BYTES_MAX {
                Err(Bad::bytes("line", line.slice(0, 60), "a line has at most 64 KiB"))
            } else {
                each(line, has_end)
            };
            if result.is_err() {
                return (count, result);
            }
        }
        (count, Ok(()))
    }
}

/// Bytes up to the end of the line; `most` if there is none.
#[inline(always)]
fn line_bytes(text: &[u8], most: usize) -> usize {
    // Nearly every line ends in its first two windows.
    let windows: Option<&[u8; 2 * WINDOW]> = text.first_chunk();
    for (number, window) in windows.iter().flat_map(|windows| windows.as_chunks().0).enumerate() {
        let ends = equal_to(window, b'\n', b'\n');
        if ends != 0 {
            return (number * WINDOW + ends.trailing_zeros() as usize).min(most);
        }
    }
    memchr::memchr(b'\n', &text[..most]).unwrap_or(most)
}

#[inline]
fn trim_end(line: &[u8]) -> &[u8] {
    match line {
        [head @ .., b'\r' | b' ' | b'\t'] => head.trim_ascii_end(),
        _ => line,
    }
}

/// A stream as blocks of lines.
pub(crate) struct Blocks<R> {
    reader: R,
    /// The first one, if it was looked at already.
    first: Option<Block>,
    /// The beginning of a line whose end was not read yet.
    rest: Vec<u8>,
    has_begun: bool,
    has_ended: bool,
}

impl<R: Read> Blocks<R> {
    pub fn new(reader: R) -> Blocks<R> {
        Blocks { reader, first: None, rest: Vec::new(), has_begun: false, has_ended: false }
    }

    /// The first lines, without consuming them: `count` behind those that begin with `#`, and these.
    pub fn head(&mut self, count: usize) -> Result<Vec<Vec<u8>>> {
        let mut block = Block::default();
        self.fill(&mut block)?;
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut comments = 0;
        let is_only = block.is_last;
        let taken = block.for_each(|line, has_end| {
            // A last line that was cut off counts if it is the only one.
            if has_end || (is_only && lines.is_empty()) {
                comments += usize::from(comments == lines.len() && line.text().starts_with(b"#"));
                lines.push(line.text().to_vec());
            }
            if lines.len() == comments + count { Err(Bad::new("", "", "")) } else { Ok(()) }
        });
        drop(taken);
        self.first = Some(block);
        Ok(lines)
    }

    /// Fills `block` with the next lines; it is empty when there are no more.
    pub fn fill(&mut self, block: &mut Block) -> Result<()> {
        if let Some(first) = self.first.take() {
            *block = first;
            return Ok(());
        }
        (block.start, block.end) = (BEFORE, BEFORE);
        if self.has_ended {
            return Ok(());
        }
        block.buffer.resize(BLOCK_BYTES + VIEW, 0);
        let mut end = BEFORE + self.rest.len();
        block.buffer[BEFORE..end].copy_from_slice(&self.rest);
        self.rest.clear();
        while end < BLOCK_BYTES && !self.has_ended {
            match self.reader.read(&mut block.buffer[end..BLOCK_BYTES]) {
                Ok(0) => self.has_ended = true,
                Ok(count) => end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        block.is_last = self.has_ended;
        // Without any end the line is too long, which is found when it is read.
        let text = &block.buffer[BEFORE..end];
        let whole = if self.has_ended { None } else { memchr::memrchr(b'\n', text) };
        block.end = whole.map_or(end, |at| BEFORE + at + 1);
        self.rest.extend_from_slice(&block.buffer[block.end..end]);
        block.buffer[end..end + VIEW].fill(0);
        // A byte order mark is no part of the first line.
        if !std::mem::replace(&mut self.has_begun, true)
            && block.buffer[BEFORE..end].starts_with(BYTE_ORDER_MARK)
        {
            block.start += BYTE_ORDER_MARK.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_across_block_borders() {
        struct Trickle<'a>(&'a [u8]);
        impl Read for Trickle<'_> {
            fn read(&mut self, into: &mut [u8]) -> Result<usize> {
                let count = self.0.len().min(3).min(into.len());
                into[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let text: String = (0..100_000).map(|n| format!("{n}\r\n")).collect::<String>() + "last";
        let mut blocks = Blocks::new(Trickle(text.as_bytes()));
        let (mut seen, mut block) = (Vec::new(), Block::default());
        loop {
            blocks.fill(&mut block).unwrap();
            if block.is_empty() {
                break;
            }
            let before = seen.len() as u64;
            let (count, result) = block.for_each(|line, has_end| {
                assert_eq!(has_end, line.text() != b"last");
                seen.push(line.text().to_vec());
                Ok(())
            });
            result.unwrap();
            assert_eq!(seen.len() as u64, before + count);
        }
        assert_eq!(seen.len(), 100_001);
        assert_eq!(seen[77_777], b"77777");
        assert_eq!(seen[100_000], b"last");
    }
}
