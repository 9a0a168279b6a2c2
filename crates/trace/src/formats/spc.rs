//! SPC, as in the UMass collection: `asu,lba,size,opcode,timestamp`; sectors of 512 B, size in bytes, `r`/`w`
//! in either case, seconds with decimals. Further columns are allowed by the specification and not used.

use crate::rows::Rows;
use crate::text::fields::Fields;
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use std::io::Write;

#[derive(Clone, Default)]
pub(crate) struct Spc;

impl LineFormat for Spc {
    const TICK_PS: u64 = 1000;
    const COLUMNS: &'static str = "asu,lba,size,opcode,timestamp";

    #[inline]
    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let mut fields = Fields::<b','>::new(line);
        let unit = fields.integer("asu")?;
        let offset = fields.sectors("lba")?;
        let bytes = fields.integer("size")?;
        let op = match fields.text("opcode")?.trim_ascii() {
            b"r" | b"R" => Op::Read,
            b"w" | b"W" => Op::Write,
            other => return Err(Bad::bytes("opcode", other, "r or w")),
        };
        let ns = fields.seconds("timestamp")?;
        let volume = rows.volumes.numbered(unit)?;
        rows.push(ns, offset, bytes, op, volume)
    }
}

impl Writer for Spc {
    fn sector_bytes(&self) -> u64 {
        512
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let letter = if request.op == Op::Read { 'r' } else { 'w' };
        let (unit, ns) = (volume.number, request.at.ns());
        let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
        writeln!(out, "{unit},{},{},{letter},{seconds}.{rest:09}", request.offset / 512, request.bytes)
    }
}
