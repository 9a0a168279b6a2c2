//! SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`; seconds since 1970 and seconds with decimals, `R` or `W`, bytes. A
//! request without a response message has neither a type nor a response time: what it was is not known, so it is left out.
//!
//! After the README of the traces (SNIA IOTTA, set 4928); Lee et al., Understanding Storage Traffic Characteristics on Enterprise
//! Virtual Desktop Infrastructure, SYSTOR '17.

use crate::rows::Rows;
use crate::text::fields::{Fields, decimal_seconds};
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use nvlab_units::Span;
use std::io::Write;

#[derive(Clone, Default)]
pub(crate) struct Systor;

/// Writes it, with the response time of the next request.
#[derive(Default)]
pub(crate) struct SystorWriter {
    response: Option<Span>,
}

impl LineFormat for Systor {
    const TICK_PS: u64 = 1000;
    const COLUMNS: &'static str = "Timestamp,Response,IOType,LUN,Offset,Size";

    #[inline]
    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let mut fields = Fields::<b','>::new(line);
        let ns = fields.seconds("Timestamp")?;
        let response = optional_seconds(fields.next().unwrap_or_default())?;
        let op = match fields.next().map(<[u8]>::trim_ascii) {
            Some(b"R") => Some(Op::Read),
            Some(b"W") => Some(Op::Write),
            Some(b"") => None,
            other => {
                return Err(Bad::bytes("IOType", other.unwrap_or_default(), "R, W, or nothing: no response"));
            }
        };
        let unit = fields.integer("LUN")?;
        let offset = fields.integer("Offset")?;
        let bytes = fields.integer("Size")?;
        fields.end(Self::COLUMNS)?;
        let Some(op) = op else {
            rows.report.other_lines += 1;
            return Ok(());
        };
        let volume = rows.volumes.numbered(unit)?;
        rows.push(ns, offset, bytes, op, volume)?;
        response.into_iter().for_each(|response| rows.answered(response));
        Ok(())
    }
}

/// Seconds, in nanoseconds, if there are any.
fn optional_seconds(text: &[u8]) -> Result<Option<u64>, BadLine> {
    match text.trim_ascii() {
        b"" => Ok(None),
        text => decimal_seconds(text, "Response").map(Some),
    }
}

impl Writer for SystorWriter {
    fn keeps_response(&self) -> bool {
        true
    }

    fn answered(&mut self, response: Span) {
        self.response = Some(response);
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let letter = if request.op == Op::Read { 'R' } else { 'W' };
        write_seconds(request.at.ns(), out)?;
        write!(out, ",")?;
        if let Some(response) = self.response {
            write_seconds(response.ps() / Systor::TICK_PS, out)?;
        }
        writeln!(out, ",{letter},{},{},{}", volume.number, request.offset, request.bytes)
    }
}

fn write_seconds(ns: u64, out: &mut dyn Write) -> std::io::Result<()> {
    write!(out, "{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
