//! Alibaba block traces: `device_id,opcode,offset,length,timestamp` with `R`/`W`, bytes and microseconds.

use crate::rows::Rows;
use crate::text::fields::{Fields, word};
use crate::text::lines::{BadLine, Line};
use crate::text::parse::LineFormat;
use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use std::io::Write;

#[derive(Clone, Default)]
pub(crate) struct Alibaba;

impl LineFormat for Alibaba {
    const TICK_PS: u64 = 1_000_000;
    const COLUMNS: &'static str = "device_id,opcode,offset,length,timestamp";

    #[inline(always)]
    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let mut fields = Fields::<b','>::new(line);
        let device = fields.integer("device_id")?;
        let is_write = fields.is_second("opcode", [word(b"R"), word(b"W")], "R or W")?;
        let op = if is_write { Op::Write } else { Op::Read };
        let offset = fields.integer("offset")?;
        let bytes = fields.integer("length")?;
        let us = fields.integer("timestamp")?;
        fields.end(Self::COLUMNS)?;
        let volume = rows.volumes.numbered(device)?;
        rows.push(us, offset, bytes, op, volume)
    }
}

impl Writer for Alibaba {
    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let letter = if request.op == Op::Read { 'R' } else { 'W' };
        let (device, us) = (volume.number, request.at.ps() / Self::TICK_PS);
        writeln!(out, "{device},{letter},{},{},{us}", request.offset, request.bytes)
    }
}
