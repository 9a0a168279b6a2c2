//! Text of `blkparse` in its default output:
//! ```text
//!   8,0    3        1     0.000000000   697  D   WS 223490 + 8 [kjournald]
//! ```
//! device, processor, sequence, seconds, process, action, RWBS, first sector of 512 B `+` sectors, name.
//!
//! RWBS: a leading `F` is a preceding flush (emitted as a separate flush), then `R`, `W`, `D` (discard) or `N` (no
//! data: skipped and counted), then `F` (forced to the medium), `A` (read ahead), `S` (sync), `M` (metadata) and
//! others. One action is kept, `D` by default; then the completions (`C`) give the response times. The summary after the events
//! is recognised and skipped.

use crate::rows::Rows;
use crate::text::fields::{Fields, word};
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use std::io::Write;

#[derive(Clone)]
pub(crate) struct Blkparse {
    action: u8,
    in_summary: bool,
    sequence: u64,
    /// The device of the line before, and that of the request before with its volume; 0 if its name is long.
    device: u64,
    volume: (u64, Option<u16>),
    /// RWBS fields that were read, each at the place of its hash: there are few, and which one comes cannot be predicted.
    known: [(u64, Rwbs); KNOWN],
}

/// Actions: given to the driver, and done.
const ISSUED: u8 = b'D';
const COMPLETED: u8 = b'C';

/// Places for RWBS fields, a power of two.
const KNOWN: usize = 16;

impl Default for Blkparse {
    fn default() -> Blkparse {
        Blkparse::new(ISSUED)
    }
}

/// The meaning of an RWBS field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rwbs {
    flush_before: bool,
    /// `None`: no data is moved.
    op: Option<Op>,
    fua: bool,
}

/// The beginnings of the summary lines.
const SUMMARY: [&[u8]; 14] = [
    b"CPU",
    b"Total (",
    b"PC ",
    b"Reads ",
    b"Read ",
    b"Writes ",
    b"Write ",
    b"IO unplugs",
    b"Timer unplugs",
    b"Allocation wait",
    b"Dispatch wait",
    b"Throughput (",
    b"Events (",
    b"Skips:",
];

impl Blkparse {
    pub fn new(action: u8) -> Blkparse {
        let nothing = Rwbs { flush_before: false, op: None, fua: false };
        Blkparse {
            action,
            in_summary: false,
            sequence: 0,
            device: 0,
            volume: (0, None),
            known: [(0, nothing); KNOWN],
        }
    }

    /// Counts a line of the summary; `None`: it is an event.
    #[cold]
    #[inline(never)]
    fn summary(&mut self, text: &[u8], rows: &mut Rows) -> Option<Result<(), BadLine>> {
        let is_summary = Self::is_summary(text);
        if self.in_summary && !is_summary {
            let allowed = "only counts may follow the first line of the summary";
            return Some(Err(Bad::bytes("line", text, allowed)));
        }
        is_summary.then(|| {
            // The list of input files precedes the events.
            self.in_summary = !text.trim_ascii_start().starts_with(b"Input file ");
            rows.report.other_lines += 1;
            Ok(())
        })
    }

    /// The meaning of an RWBS field, also given as a word (0 if it is too long for one).
    #[inline(always)]
    fn rwbs(&mut self, word: u64, text: &[u8]) -> Result<Rwbs, BadLine> {
        let place = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % KNOWN;
        let (known, meaning) = self.known[place];
        if known != word || word == 0 { self.learn(place, word, text) } else { Ok(meaning) }
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, place: usize, word: u64, text: &[u8]) -> Result<Rwbs, BadLine> {
        let meaning = rwbs(text)?;
        self.known[place] = (word, meaning);
        Ok(meaning)
    }

    /// The volume of a device, whose name is also given as a word.
    #[inline(always)]
    fn volume_of(&mut self, name: u64, device: &[u8], rows: &mut Rows) -> Result<Option<u16>, BadLine> {
        if name != self.volume.0 || name == 0 {
            self.volume = (name, rows.volumes.named(device)?);
        }
        Ok(self.volume.1)
    }

    /// The rest of a completion.
    fn completed(
        &mut self,
        ns: u64,
        device: &[u8],
        mut fields: Fields<'_, b' '>,
        rows: &mut Rows,
    ) -> Result<(), BadLine> {
        let (letters, text) = fields.word("RWBS")?;
        let rwbs = self.rwbs(letters, text)?;
        let volume = rows.ended.named(device)?;
        if rwbs.flush_before {
            rows.completed(ns, 0, 0, Op::Flush, volume);
        }
        // Without data, or of all that was asked for with a flush: an address alone, or nothing.
        let Some(op) = rwbs.op else { return Ok(()) };
        let offset = fields.sectors("sector")?;
        if fields.next() == Some(b"+") {
            rows.completed(ns, offset, fields.sectors("sectors")?, op, volume);
        }
        Ok(())
    }

    fn is_summary(line: &[u8]) -> bool {
        let line = line.trim_ascii_start();
        if line.first().is_none_or(u8::is_ascii_digit) {
            return false;
        }
        SUMMARY.iter().any(|start| line.starts_with(start)) || line.starts_with(b"Input file ")
    }
}

impl LineFormat for Blkparse {
    const TICK_PS: u64 = 1000;
    const COLUMNS: &'static str = "device cpu sequence seconds process action RWBS sector + sectors [name]";

    #[inline(always)]
    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let mut fields = Fields::<b' '>::new(line);
        let (name, device) = fields.word("device")?;
        if (self.in_summary || !device[0].is_ascii_digit())
            && let Some(result) = self.summary(line.text(), rows)
        {
            return result;
        }
        if name != self.device || name == 0 {
            is_device(device)?;
            self.device = name;
        }
        fields.integer("cpu")?;
        fields.integer("sequence")?;
        let ns = fields.seconds("seconds")?;
        fields.integer("process")?;
        let (action, text) = fields.word("action")?;
        if action != u64::from(self.action) {
            is_action(text)?;
            rows.report.other_lines += 1;
            if action == u64::from(COMPLETED) && self.action == ISSUED {
                return self.completed(ns, device, fields, rows);
            }
            return Ok(());
        }
        let (letters, text) = fields.word("RWBS")?;
        let rwbs = self.rwbs(letters, text)?;
        let volume = self.volume_of(name, device, rows)?;
        if rwbs.flush_before {
            rows.flush(ns, volume);
        }
        let Some(op) = rwbs.op else {
            rows.report.without_data += u64::from(!rwbs.flush_before);
            return Ok(());
        };
        let offset = fields.sectors("sector")?;
        fields.must_be("+", word(b"+"), "'+' between the first sector and their number")?;
        let bytes = fields.sectors("sectors")?;
        if bytes == 0 && rwbs.flush_before {
            return Ok(());
        }
        rows.push(ns, offset, bytes, op, volume)?;
        if rwbs.fua && op == Op::Write {
            rows.mark_fua();
        }
        Ok(())
    }

    fn is_free(&self) -> bool {
        !self.in_summary
    }
}

#[cold]
#[inline(never)]
fn is_device(text: &[u8]) -> Result<(), BadLine> {
    match is_device_name(text) {
        true => Ok(()),
        false => Err(Bad::bytes("device", text, "major,minor, e.g. 8,0")),
    }
}

fn is_device_name(text: &[u8]) -> bool {
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    text.iter()
        .position(|&byte| byte == b',')
        .is_some_and(|comma| is_number(&text[..comma]) && is_number(&text[comma + 1..]))
}

#[inline(never)]
fn is_action(text: &[u8]) -> Result<(), BadLine> {
    match text.len() <= 2 && text.iter().all(u8::is_ascii_alphabetic) {
        true => Ok(()),
        false => Err(Bad::bytes("action", text, "a letter, e.g. D (issued to the driver) or C (completed)")),
    }
}

fn rwbs(text: &[u8]) -> Result<Rwbs, BadLine> {
    let wrong = || Bad::bytes("RWBS", text, "[F] then R, W, D or N, then any of F A S M E B U V");
    let flush_before = text[0] == b'F';
    let rest = &text[usize::from(flush_before)..];
    let (op, modifiers) = match rest {
        [b'R', rest @ ..] => (Some(Op::Read), rest),
        [b'W', rest @ ..] => (Some(Op::Write), rest),
        [b'D', rest @ ..] => (Some(Op::Trim), rest),
        [b'N', rest @ ..] => (None, rest),
        _ if flush_before => (None, rest),
        _ => return Err(wrong()),
    };
    if !modifiers.iter().all(|letter| b"FASMEBUV".contains(letter)) {
        return Err(wrong());
    }
    Ok(Rwbs { flush_before, op, fua: modifiers.contains(&b'F') })
}

impl Writer for Blkparse {
    fn sector_bytes(&self) -> u64 {
        512
    }

    fn keeps_fua(&self) -> bool {
        true
    }

    fn takes(&self, _op: Op) -> bool {
        true
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        self.sequence += 1;
        let device = match is_device_name(volume.name.as_bytes()) {
            true => volume.name.to_owned(),
            false => format!("259,{}", request.volume),
        };
        let rwbs = match (request.op, request.fua) {
            (Op::Read, _) => "R",
            (Op::Write, false) => "W",
            (Op::Write, true) => "WF",
            (Op::Trim, _) => "D",
            (Op::Flush, _) => "FN",
        };
        let (seconds, rest) = (request.at.ns() / 1_000_000_000, request.at.ns() % 1_000_000_000);
        write!(out, "{device:>6}  0 {:>8} {seconds:>5}.{rest:09}     0  D {rwbs:>3} ", self.sequence)?;
        if request.op != Op::Flush {
            write!(out, "{} + {} ", request.offset / 512, request.bytes / 512)?;
        }
        writeln!(out, "[nvlab]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letters_of_rwbs() {
        for (text, flush_before, op, fua) in [
            ("R", false, Some(Op::Read), false),
            ("RA", false, Some(Op::Read), false),
            ("RSM", false, Some(Op::Read), false),
            ("WS", false, Some(Op::Write), false),
            ("WFS", false, Some(Op::Write), true),
            ("FWFS", true, Some(Op::Write), true),
            ("FWS", true, Some(Op::Write), false),
            ("D", false, Some(Op::Trim), false),
            ("DE", false, Some(Op::Trim), false),
            ("N", false, None, false),
            ("FN", true, None, false),
            ("FFS", true, None, true),
            ("F", true, None, false),
        ] {
            assert_eq!(rwbs(text.as_bytes()).unwrap(), Rwbs { flush_before, op, fua }, "{text}");
        }
        for wrong in ["X", "S", "WX", "FZ", "rw"] {
            assert!(rwbs(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
