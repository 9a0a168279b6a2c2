//! fio's iolog, versions 2 and 3.
//!
//! The first line states the version. Then, one per line, separated by blanks:
//! ```text
//! version 2:             FILE add|open|close|unlink      FILE read|write|trim|sync|datasync|wait OFFSET LENGTH
//! version 3: MICROSECOND FILE add|open|close|unlink      MICROSECOND FILE read|write|trim|sync|datasync OFFSET LENGTH
//! ```
//! A file is a volume; a replay lays them out one after another. `wait` waits OFFSET microseconds before
//! the next line; version 3 has times instead of `wait`. `sync` and `datasync` are flushes.

use crate::rows::Rows;
use crate::text::fields::{Fields, whole_number};
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use std::io::Write;

#[derive(Clone, Default)]
pub(crate) struct FioIolog {
    /// 0 before the first line.
    version: u8,
    now_us: u64,
}

impl FioIolog {
    fn first_line(&mut self, line: &[u8]) -> Result<(), BadLine> {
        self.version = match line {
            b"fio version 2 iolog" => 2,
            b"fio version 3 iolog" => 3,
            other => {
                return Err(Bad::bytes("version", other, "'fio version 2 iolog' or 'fio version 3 iolog'"));
            }
        };
        Ok(())
    }

    fn wait(&mut self, us: u64, version: u8) -> Result<(), BadLine> {
        if version == 3 {
            return Err(Bad::new("action", "wait", "version 3 has times instead of wait"));
        }
        let later = self.now_us.checked_add(us);
        self.now_us =
            later.ok_or_else(|| Bad::new("offset", &us.to_string(), "all waits together below 2^64 us"))?;
        Ok(())
    }
}

impl LineFormat for FioIolog {
    const TICK_PS: u64 = 1_000_000;
    const COLUMNS: &'static str = "[microseconds] file action [offset length]";

    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        if self.version == 0 {
            rows.report.other_lines += 1;
            return self.first_line(line.text());
        }
        let mut fields = Fields::<b' '>::new(line);
        if self.version == 3 {
            self.now_us = fields.integer("timestamp")?;
        }
        let file = fields.text("file")?;
        let action = fields.text("action")?;
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" => Op::Flush,
            b"wait" => Op::Flush,
            b"add" | b"open" | b"close" | b"unlink" => {
                rows.report.other_lines += 1;
                return fields.end("file, action");
            }
            other => {
                let allowed = "read, write, trim, sync, datasync, wait, add, open, close or unlink";
                return Err(Bad::bytes("action", other, allowed));
            }
        };
        // A flush may omit the two numbers.
        let numbers = match fields.next() {
            None if op == Op::Flush && action != b"wait" => (0, 0),
            None => return Err(Bad::new("offset", "", "the line ends before this column")),
            Some(offset) => (whole_number(offset, "offset")?, fields.integer("length")?),
        };
        fields.end(Self::COLUMNS)?;
        if action == b"wait" {
            rows.report.other_lines += 1;
            return self.wait(numbers.0, self.version);
        }
        let volume = rows.volumes.named(file)?;
        if op == Op::Flush {
            rows.flush(self.now_us, volume);
            return Ok(());
        }
        rows.push(self.now_us, numbers.0, numbers.1, op, volume)
    }

    fn is_free(&self) -> bool {
        // The first line says what the others mean.
        false
    }
}

impl Writer for FioIolog {
    fn begin(&mut self, volumes: &[String], out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "fio version 3 iolog")?;
        for (number, name) in volumes.iter().enumerate() {
            let file = file_name(name, number as u16);
            writeln!(out, "0 {file} add\n0 {file} open")?;
        }
        Ok(())
    }

    fn takes(&self, _op: Op) -> bool {
        true
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let (us, file) = (request.at.ps() / Self::TICK_PS, file_name(volume.name, request.volume));
        self.now_us = us;
        let action = if request.op == Op::Flush { "sync" } else { request.op.name() };
        writeln!(out, "{us} {file} {action} {} {}", request.offset, request.bytes)
    }

    fn end(&mut self, volumes: &[String], out: &mut dyn Write) -> std::io::Result<()> {
        for (number, name) in volumes.iter().enumerate() {
            writeln!(out, "{} {} close", self.now_us, file_name(name, number as u16))?;
        }
        Ok(())
    }
}

/// fio splits at blanks and reads at most 256 bytes of a name.
fn file_name(volume: &str, number: u16) -> std::borrow::Cow<'_, str> {
    let is_plain =
        !volume.is_empty() && volume.len() <= 256 && volume.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { volume.into() } else { format!("volume{number}").into() }
}
