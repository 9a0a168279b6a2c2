//! CloudPhysics vscsi: binary records, little-endian, of SCSI commands as VMware ESX saw them; sectors of 512 B, microseconds.
//!
//! ```text
//! version 1, 32 bytes: sn u32, len u32, nSG u32, cmd u16, ver u16, lbn u64, ts u64
//! version 2, 40 bytes: cmd u16, ver u16, sn u32, len u32, nSG u32, lbn u64, ts u64, rt u64
//! ```
//!
//! `len` is in bytes, `cmd` the operation code, `ver` the version in its upper byte, `rt` the response time. Other commands than
//! reads, writes and the flush of the cache are left out: the records do not hold their parameters.
//!
//! After the record layouts published with libCacheSim and mimircache, and the operation codes of SBC-3; Waldspurger et al.,
//! Efficient MRC Construction with SHARDS, FAST '15.

use crate::columns::{Columns, Origin};
use crate::format::Format;
use crate::options::ReadOptions;
use crate::report::ReadReport;
use crate::rows::Rows;
use crate::text::lines::{Bad, BadLine};
use crate::{Op, TraceError};
use std::io::Read;
use std::path::Path;

const TICK_PS: u64 = 1_000_000;
/// Bytes that show the version: two of the longer records.
pub(crate) const HEAD_BYTES: u64 = 80;
const SECTOR_BYTES: u64 = 512;
/// Records read at once.
const RECORDS: usize = 4096;

/// The version of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// The fields of a record that are used.
struct Record {
    op_code: u16,
    version: u16,
    bytes: u32,
    sector: u64,
    us: u64,
    response_us: Option<u64>,
}

impl Version {
    const fn record_bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    fn record(self, bytes: &[u8]) -> Record {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        match self {
            Version::One => Record {
                op_code: half(12),
                version: half(14),
                bytes: word(4),
                sector: long(16),
                us: long(24),
                response_us: None,
            },
            Version::Two => Record {
                op_code: half(0),
                version: half(2),
                bytes: word(8),
                sector: long(16),
                us: long(24),
                response_us: Some(long(32)),
            },
        }
    }

    fn is_of(self, record: &Record) -> bool {
        record.version >> 8 == if self == Version::One { 1 } else { 2 }
    }
}

/// The version of the records of a file that begins so, if it holds records: a byte in each is one that no text has.
pub(crate) fn version(head: &[u8]) -> Option<Version> {
    [Version::Two, Version::One].into_iter().find(|version| {
        let mut records = head.chunks_exact(version.record_bytes()).take(2).peekable();
        records.peek().is_some() && records.all(|record| version.is_of(&version.record(record)))
    })
}

/// Reads records.
pub(crate) fn read(
    mut reader: impl Read,
    version: Version,
    report: ReadReport,
    path: &Path,
    options: &ReadOptions,
) -> Result<(Columns, ReadReport), TraceError> {
    let file = path.display().to_string();
    let report = ReadReport { format: Some(Format::Vscsi), ..report };
    let mut rows = Rows::new(&options.volumes, report);
    let size = version.record_bytes();
    let mut block = Vec::with_capacity(size * RECORDS);
    let mut number = 0;
    loop {
        block.clear();
        let count = reader.by_ref().take((size * RECORDS) as u64).read_to_end(&mut block);
        count.map_err(|source| TraceError::File { path: path.to_owned(), source })?;
        for bytes in block.chunks(size) {
            number += 1;
            let put = if bytes.len() == size {
                put(&version.record(bytes), version, &mut rows)
            } else {
                Err(cut())
            };
            let put = put.or_else(|bad| rows.forgive(bad, bytes.len() == size, options.skip_bad));
            put.map_err(|bad| TraceError::Row {
                file: file.clone(),
                row: number,
                column: bad.column.into_owned(),
                found: bad.found,
                allowed: bad.allowed,
            })?;
        }
        if block.len() < size * RECORDS || options.lines_max.is_some_and(|most| number >= most) {
            break;
        }
    }
    rows.report.lines = number;
    rows.finish(&file, TICK_PS, Origin::default())
}

fn cut() -> BadLine {
    Bad::new("record", "", "the file ends within it")
}

fn put(record: &Record, version: Version, rows: &mut Rows) -> Result<(), BadLine> {
    if !version.is_of(record) {
        return Err(Bad::new(
            "ver",
            &format!("{:#06x}", record.version),
            "the version of the earlier records",
        ));
    }
    if rows.is_full() {
        return Err(Bad::new("record", "", "at most 2^30 requests"));
    }
    let volume = rows.volumes.numbered(0)?;
    let op = match record.op_code {
        0x08 | 0x28 | 0x88 | 0xa8 => Op::Read,
        // The second of each: with a verification.
        0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae => Op::Write,
        0x35 | 0x91 => {
            rows.flush(record.us, volume);
            record.response_us.into_iter().for_each(|us| rows.answered(us));
            return Ok(());
        }
        _ => {
            rows.report.other_lines += 1;
            return Ok(());
        }
    };
    let offset = record.sector.checked_mul(SECTOR_BYTES);
    let offset = offset.ok_or_else(|| Bad::new("lbn", &record.sector.to_string(), "a sector below 2^55"))?;
    rows.push(record.us, offset, record.bytes.into(), op, volume)?;
    record.response_us.into_iter().for_each(|us| rows.answered(us));
    Ok(())
}
