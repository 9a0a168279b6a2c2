//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`; the timestamp is a Windows
//! one (100 ns since 1601), offset and size are bytes. The response time is that of the recorded disks; it may be
//! missing.
//!
//! A volume is called `host_disk`, like the files: `src1_0`.

use crate::rows::Rows;
use crate::text::fields::{Fields, Known, word};
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use nvlab_units::Span;
use std::io::Write;

#[derive(Clone, Default)]
pub(crate) struct Msr {
    name: Vec<u8>,
    /// `Hostname,DiskNumber,` of the line before, and their volume.
    last: (Known, Option<u16>),
    /// The response time of the next request to be written.
    response: Span,
}

/// Host and number of a disk.
type Disk<'a> = (&'a [u8], &'a [u8]);

/// 22 February 2007, when the recording began: written files begin there too.
const FIRST_TICK: u64 = 128_166_372_000_000_000;

impl Msr {
    /// The volume of a disk, which is remembered: most lines are of the volume of the line before.
    #[cold]
    fn volume(&mut self, (host, disk): Disk<'_>, rows: &mut Rows) -> Result<Option<u16>, BadLine> {
        let Msr { name, last: (known, volume), .. } = self;
        name.clear();
        for part in [host, b"_", disk] {
            name.extend_from_slice(part);
        }
        *volume = rows.volumes.named(name)?;
        *known = Known::new(&[host, disk], b',');
        Ok(*volume)
    }
}

/// `Hostname,DiskNumber`, and the fields behind them.
#[cold]
#[inline(never)]
fn host_and_disk(mut fields: Fields<'_, b','>) -> Result<(Fields<'_, b','>, Disk<'_>), BadLine> {
    let host = fields.text("Hostname")?;
    let disk = fields.text("DiskNumber")?;
    match disk.iter().all(u8::is_ascii_digit) {
        true => Ok((fields, (host, disk))),
        false => Err(Bad::bytes("DiskNumber", disk, "a whole number")),
    }
}

impl LineFormat for Msr {
    const TICK_PS: u64 = 100_000;
    const COLUMNS: &'static str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

    #[inline(always)]
    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let mut fields = Fields::<b','>::new(line);
        let ticks = fields.integer("Timestamp")?;
        let mut other = None;
        if !fields.pass(&self.last.0) {
            let (behind, disk) = host_and_disk(fields)?;
            (fields, other) = (behind, Some(disk));
        }
        let is_write = fields.is_second("Type", [word(b"Read"), word(b"Write")], "Read or Write")?;
        let op = if is_write { Op::Write } else { Op::Read };
        let offset = fields.integer("Offset")?;
        let bytes = fields.integer("Size")?;
        let response = if fields.is_at_end() { None } else { Some(fields.integer("ResponseTime")?) };
        fields.end(Self::COLUMNS)?;
        let volume = match other {
            None => self.last.1,
            Some(disk) => self.volume(disk, rows)?,
        };
        rows.push(ticks, offset, bytes, op, volume)?;
        if let Some(response) = response {
            rows.answered(response);
        }
        Ok(())
    }
}

impl Writer for Msr {
    fn keeps_response(&self) -> bool {
        true
    }

    fn answered(&mut self, response: Span) {
        self.response = response;
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let kind = if request.op == Op::Read { "Read" } else { "Write" };
        let ticks = FIRST_TICK + request.at.ps() / Self::TICK_PS;
        write!(out, "{ticks},")?;
        match volume.name.rsplit_once('_').filter(|(host, disk)| is_plain(host) && is_number(disk)) {
            Some((host, disk)) => write!(out, "{host},{disk}")?,
            None => write!(out, "volume,{}", request.volume)?,
        }
        let response = self.response.ps() / Self::TICK_PS;
        writeln!(out, ",{kind},{},{},{response}", request.offset, request.bytes)
    }
}

fn is_plain(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}

fn is_number(disk: &str) -> bool {
    !disk.is_empty() && disk.bytes().all(|byte| byte.is_ascii_digit())
}
