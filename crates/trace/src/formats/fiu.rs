//! FIU: `nanoseconds process-id process lba sectors R|W major minor [hash]`, separated by blanks; sectors of 512 B. The hash of
//! the content (MD5 of each 512 or 4096 B) is not used.
//!
//! After the description of the traces (FIU IODedup and SRCMap, SNIA IOTTA); Koller and Rangaswami, I/O Deduplication, FAST '10.

use crate::rows::Rows;
use crate::text::fields::Fields;
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use std::io::Write;

/// A volume is called `major:minor`.
#[derive(Clone, Default)]
pub(crate) struct Fiu {
    name: Vec<u8>,
}

/// What is written for the hash of content that is not known.
const NO_HASH: &str = "00000000000000000000000000000000";

impl LineFormat for Fiu {
    const TICK_PS: u64 = 1000;
    const COLUMNS: &'static str = "nanoseconds pid process lba sectors op major minor [hash]";

    #[inline]
    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let mut fields = Fields::<b' '>::new(line);
        let ns = fields.integer("nanoseconds")?;
        fields.integer("pid")?;
        fields.text("process")?;
        let offset = fields.sectors("lba")?;
        let bytes = fields.sectors("sectors")?;
        let op = match fields.text("op")? {
            b"R" | b"r" => Op::Read,
            b"W" | b"w" => Op::Write,
            other => return Err(Bad::bytes("op", other, "R or W")),
        };
        let (major, minor) = (fields.digits("major")?, fields.digits("minor")?);
        let hash = fields.next();
        if let Some(hash) = hash.filter(|hash| !hash.iter().all(u8::is_ascii_alphanumeric)) {
            return Err(Bad::bytes("hash", hash, "the hash of the content, letters and digits"));
        }
        if hash.is_some() {
            fields.end(Self::COLUMNS)?;
        }
        self.name.clear();
        [major, b":", minor].iter().for_each(|part| self.name.extend_from_slice(part));
        let volume = rows.volumes.named(&self.name)?;
        rows.push(ns, offset, bytes, op, volume)
    }
}

impl Writer for Fiu {
    fn sector_bytes(&self) -> u64 {
        512
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let letter = if request.op == Op::Read { 'R' } else { 'W' };
        let number = volume.number.to_string();
        let (major, minor) = volume
            .name
            .split_once([':', ','])
            .filter(|(major, minor)| {
                let is_number =
                    |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                is_number(major) && is_number(minor)
            })
            .unwrap_or(("0", &number));
        let (at, lba, sectors) = (request.at.ns(), request.offset / 512, request.bytes / 512);
        writeln!(out, "{at} 0 nvlab {lba} {sectors} {letter} {major} {minor} {NO_HASH}")
    }
}
