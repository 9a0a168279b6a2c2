//! Tencent cloud block storage: `timestamp,offset,size,io_type,volume_id` in seconds and sectors of 512 B;
//! 0 is a read and 1 a write.
//!
//! A second holds thousands of requests: only their order is known, not their times.

use crate::rows::Rows;
use crate::text::fields::Fields;
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use std::io::Write;

#[derive(Clone, Default)]
pub(crate) struct Tencent;

impl LineFormat for Tencent {
    const TICK_PS: u64 = 1_000_000_000_000;
    const COLUMNS: &'static str = "timestamp,offset,size,io_type,volume_id";

    #[inline]
    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let mut fields = Fields::<b','>::new(line);
        let seconds = fields.integer("timestamp")?;
        let offset = fields.sectors("offset")?;
        let bytes = fields.sectors("size")?;
        let op = match fields.text("io_type")? {
            b"0" => Op::Read,
            b"1" => Op::Write,
            other => return Err(Bad::bytes("io_type", other, "0 (read) or 1 (write)")),
        };
        let volume = fields.integer("volume_id")?;
        fields.end(Self::COLUMNS)?;
        let volume = rows.volumes.numbered(volume)?;
        rows.push(seconds, offset, bytes, op, volume)
    }
}

impl Writer for Tencent {
    fn sector_bytes(&self) -> u64 {
        512
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let kind = if request.op == Op::Read { 0 } else { 1 };
        let (volume, seconds) = (volume.number, request.at.ps() / Self::TICK_PS);
        writeln!(out, "{seconds},{},{},{kind},{volume}", request.offset / 512, request.bytes / 512)
    }
}
