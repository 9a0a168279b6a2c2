//! MQSim ASCII trace: `nanoseconds device lba sectors kind`, separated by blanks; sectors of 512 B;
//! 0 is a write and 1 a read (the opposite of Tencent's).

use crate::rows::Rows;
use crate::text::fields::Fields;
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use std::io::Write;

#[derive(Clone, Default)]
pub(crate) struct Mqsim;

impl LineFormat for Mqsim {
    const TICK_PS: u64 = 1000;
    const COLUMNS: &'static str = "nanoseconds device lba sectors kind";

    #[inline]
    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let mut fields = Fields::<b' '>::new(line);
        let ns = fields.integer("nanoseconds")?;
        let device = fields.integer("device")?;
        let offset = fields.sectors("lba")?;
        let bytes = fields.sectors("sectors")?;
        let op = match fields.text("kind")? {
            b"0" => Op::Write,
            b"1" => Op::Read,
            other => return Err(Bad::bytes("kind", other, "0 (write) or 1 (read)")),
        };
        fields.end(Self::COLUMNS)?;
        let volume = rows.volumes.numbered(device)?;
        rows.push(ns, offset, bytes, op, volume)
    }
}

impl Writer for Mqsim {
    fn sector_bytes(&self) -> u64 {
        512
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let kind = if request.op == Op::Read { 1 } else { 0 };
        let device = volume.number;
        writeln!(out, "{} {device} {} {} {kind}", request.at.ns(), request.offset / 512, request.bytes / 512)
    }
}
