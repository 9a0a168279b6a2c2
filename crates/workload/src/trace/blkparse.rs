//! Text of `blkparse` in its default output:
//! ```text
//!   8,0    3        1     0.000000000   697  D   WS 223490 + 8 [kjournald]
//! ```
//! device, processor, sequence, seconds, process, action, RWBS, first sector of 512 B `+` sectors, name.
//!
//! RWBS: a leading `F` is a preceding flush (emitted as a separate flush), then `R`, `W`, `D` (discard) or `N` (no
//! data: skipped and counted), then `F` (forced to the medium), `A` (read ahead), `S` (sync), `M` (metadata) and
//! others. One action is kept, `D` by default; the summary after the events is recognised and skipped.

use super::fields::Fields;
use super::lines::{Bad, BadLine, Line};
use super::parse::LineFormat;
use super::rows::Rows;
use super::writer::{Volume, Writer};
use crate::{Op, Request};
use std::io::Write;

#[derive(Clone)]
pub(super) struct Blkparse {
    action: u8,
    in_summary: bool,
    sequence: u64,
}

impl Default for Blkparse {
    fn default() -> Blkparse {
        Blkparse::new(b'D')
    }
}

/// The meaning of an RWBS field.
#[derive(Debug, PartialEq, Eq)]
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
    pub const TICK_PS: u64 = 1000;

    pub fn new(action: u8) -> Blkparse {
        Blkparse { action, in_summary: false, sequence: 0 }
    }

    fn is_summary(line: &[u8]) -> bool {
        let line = line.trim_ascii_start();
        if line[0].is_ascii_digit() {
            return false;
        }
        SUMMARY.iter().any(|start| line.starts_with(start)) || line.starts_with(b"Input file ")
    }
}

impl LineFormat for Blkparse {
    const TICK_PS: u64 = Blkparse::TICK_PS;
    const COLUMNS: &'static str = "device cpu sequence seconds process action RWBS sector + sectors [name]";

    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let text = line.text();
        if self.in_summary || Self::is_summary(text) {
            if !Self::is_summary(text) {
                return Err(Bad::bytes("line", text, "only counts may follow the first line of the summary"));
            }
            // The list of input files precedes the events.
            self.in_summary = !text.trim_ascii_start().starts_with(b"Input file ");
            rows.report.other_lines += 1;
            return Ok(());
        }
        let mut fields = Fields::<b' '>::new(line);
        let device = fields.text("device")?;
        if !is_device(device) {
            return Err(Bad::bytes("device", device, "major,minor as in 8,0"));
        }
        fields.integer("cpu")?;
        fields.integer("sequence")?;
        let ns = fields.seconds("seconds")?;
        fields.integer("process")?;
        let action = fields.text("action")?;
        if !(1..=2).contains(&action.len()) || !action.iter().all(u8::is_ascii_alphabetic) {
            return Err(Bad::bytes(
                "action",
                action,
                "a letter, as D (given to the driver) or C (completed)",
            ));
        }
        if action != [self.action] {
            rows.report.other_lines += 1;
            return Ok(());
        }
        let rwbs = rwbs(fields.text("RWBS")?)?;
        let volume = rows.volumes.named(device)?;
        if rwbs.flush_before {
            rows.flush(ns, volume);
        }
        let Some(op) = rwbs.op else {
            rows.report.without_data += u64::from(!rwbs.flush_before);
            return Ok(());
        };
        let offset = fields.sectors("sector")?;
        let plus = fields.text("+")?;
        if plus != b"+" {
            return Err(Bad::bytes("+", plus, "'+' between the first sector and their number"));
        }
        let bytes = fields.sectors("sectors")?;
        if bytes == 0 && rwbs.flush_before {
            return Ok(());
        }
        let kept = rows.report.without_bytes;
        rows.push(ns, offset, bytes, op, volume)?;
        if rwbs.fua && op == Op::Write && volume.is_some() && rows.report.without_bytes == kept {
            rows.mark_fua();
        }
        Ok(())
    }

    fn is_free(&self) -> bool {
        !self.in_summary
    }
}

fn is_device(text: &[u8]) -> bool {
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    text.iter()
        .position(|&byte| byte == b',')
        .is_some_and(|comma| is_number(&text[..comma]) && is_number(&text[comma + 1..]))
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
    const SECTOR_BYTES: u64 = 512;
    const KEEPS_FUA: bool = true;

    fn takes(_op: Op) -> bool {
        true
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        self.sequence += 1;
        let device = match is_device(volume.name.as_bytes()) {
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
