//! SPC, as in the UMass collection: `asu,lba,size,opcode,timestamp`; sectors of 512 B, size in bytes, `r`/`w`
//! in either case, seconds with decimals. Further columns are allowed by the specification and not used.

use super::fields::Fields;
use super::lines::{Bad, BadLine, Line};
use super::parse::LineFormat;
use super::rows::Rows;
use super::writer::{Volume, Writer};
use crate::{Op, Request};
use std::io::Write;

#[derive(Clone, Default)]
pub(super) struct Spc;

impl Spc {
    pub const TICK_PS: u64 = 1000;
}

impl LineFormat for Spc {
    const TICK_PS: u64 = Spc::TICK_PS;
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
    const SECTOR_BYTES: u64 = 512;

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let letter = if request.op == Op::Read { 'r' } else { 'w' };
        let (unit, ns) = (volume.number, request.at.ns());
        let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
        writeln!(out, "{unit},{},{},{letter},{seconds}.{rest:09}", request.offset / 512, request.bytes)
    }
}
