//! Our own trace file format, `.nvt`: written once from slow text, read at tens of millions of rows per second.
//!
//! It is not an interchange format (Parquet is for that); it is fast, compact and checksummed.
//!
//! 1. Everything is little-endian. Every byte is covered by a crc32c, which is verified before the data is used.
//! 2. A length in the file never determines an allocation by itself: memory grows as verified chunks are unpacked,
//!    and a file needs a chunk for every 65536 rows of every column.
//! 3. Rows read satisfy the invariants of [`Columns`].
//!
//! Format:
//! ```text
//! magic          8 bytes   89 "NVT" 0D 0A 1A 0A
//! version        u32       1, or 2 with a column of response times
//! header length  u32       bytes of the header
//! header                   rows u64, source hash u64, origin text, count of volumes u32, their texts,
//!                          5 or 6 x (start in the file u64, length u64, crc32c u32): time, offset, bytes, op, volume,
//!                          response time
//! header crc     u32       crc32c of everything above
//! columns                  one after another; each is a row of chunks of 65536 rows, the last one shorter
//!
//! text   u16 length, UTF-8
//! chunk  width u8 (0 to 8), codec u8 (0 as is, 1 zstd), u16 zero, stored length u32, base u64, scale u64,
//!        then width bytes per row: row = base + scale * number
//! ```
//! Times are differences to the previous row, in picoseconds. `base` is the smallest value and `scale` the greatest
//! common divisor of the differences to it, so that sector addresses and microseconds shrink before zstd.

use crate::TraceError;
use crate::columns::{Columns, Origin, ROWS_MAX};
use nvlab_units::checksum::crc32c;
use std::io::Write;

const MAGIC: [u8; 8] = *b"\x89NVT\r\n\x1a\n";
/// Without response times, and with them.
const VERSIONS: [u32; 2] = [1, 2];
const CHUNK_ROWS: usize = 1 << 16;
const CHUNK_HEADER_BYTES: usize = 24;
const ZSTD_LEVEL: i32 = 3;
const COLUMN_NAMES: [&str; 6] = ["time", "offset", "bytes", "op", "volume", "response"];

/// True if a file that begins with `head` is a column file.
pub fn is_nvt(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Writes `columns` as a column file, with response times if it has them.
pub fn encode(columns: &Columns, mut out: impl Write) -> std::io::Result<()> {
    let mut before = 0;
    let deltas = columns.at_ps.iter().map(|&at| at - std::mem::replace(&mut before, at));
    let mut parts = vec![
        encode_column(deltas)?,
        encode_column(columns.offset.iter().copied())?,
        encode_column(columns.bytes.iter().map(|&v| v as u64))?,
        encode_column(columns.op.iter().map(|&v| v as u64))?,
        encode_column(columns.volume.iter().map(|&v| v as u64))?,
    ];
    let mut version = VERSIONS[0];
    if !columns.response_ps.is_empty() {
        parts.push(encode_column(columns.response_ps.iter().copied())?);
        version = VERSIONS[1];
    }
    let mut header = Vec::new();
    header.extend_from_slice(&(columns.len() as u64).to_le_bytes());
    header.extend_from_slice(&columns.origin.hash.to_le_bytes());
    put_text(&mut header, &columns.origin.format);
    header.extend_from_slice(&(columns.volumes.len() as u32).to_le_bytes());
    for name in &columns.volumes {
        put_text(&mut header, name);
    }
    let header_bytes = header.len() + parts.len() * 20;
    let mut start = (MAGIC.len() + 8 + header_bytes + 4) as u64;
    for part in &parts {
        header.extend_from_slice(&start.to_le_bytes());
        header.extend_from_slice(&(part.len() as u64).to_le_bytes());
        header.extend_from_slice(&crc32c(&[part]).to_le_bytes());
        start += part.len() as u64;
    }
    let mut front = MAGIC.to_vec();
    front.extend_from_slice(&version.to_le_bytes());
    front.extend_from_slice(&(header_bytes as u32).to_le_bytes());
    front.extend_from_slice(&header);
    front.extend_from_slice(&crc32c(&[&front]).to_le_bytes());
    out.write_all(&front)?;
    parts.iter().try_for_each(|part| out.write_all(part))?;
    out.flush()
}

/// Names are truncated at 64 KiB, at a character boundary.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut length = text.len().min(u16::MAX as usize);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    out.extend_from_slice(&(length as u16).to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..length]);
}

fn encode_column(mut values: impl Iterator<Item = u64>) -> std::io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
    let mut chunk = Vec::with_capacity(CHUNK_ROWS);
    let mut plain = Vec::new();
    let mut out = Vec::new();
    loop {
        chunk.clear();
        chunk.extend(values.by_ref().take(CHUNK_ROWS));
        let Some(&base) = chunk.iter().min() else { return Ok(out) };
        let scale = chunk.iter().fold(0, |divisor, &value| common_divisor(divisor, value - base)).max(1);
        let largest = chunk.iter().map(|&value| (value - base) / scale).max().unwrap_or(0);
        let width = (u64::BITS - largest.leading_zeros()).div_ceil(8) as usize;
        plain.clear();
        for &value in &chunk {
            plain.extend_from_slice(&((value - base) / scale).to_le_bytes()[..width]);
        }
        let packed = compressor.compress(&plain)?;
        // Saving less than an eighth is not worth the time to unpack it.
        let is_worth_it = packed.len() < plain.len() - plain.len() / 8;
        let (codec, stored) = if is_worth_it { (1u8, &packed) } else { (0u8, &plain) };
        out.extend_from_slice(&[width as u8, codec, 0, 0]);
        out.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        out.extend_from_slice(&base.to_le_bytes());
        out.extend_from_slice(&scale.to_le_bytes());
        out.extend_from_slice(stored);
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Reads a column file from `bytes`; `file` is its name in messages.
pub fn decode(bytes: &[u8], file: &str) -> Result<Columns, TraceError> {
    unfold(bytes).map_err(|reason| TraceError::Damaged { file: file.to_owned(), reason })
}

fn unfold(bytes: &[u8]) -> Result<Columns, String> {
    let mut front = Bytes(bytes);
    if front.take(MAGIC.len())? != MAGIC {
        return Err("it does not start like an nvt file".to_owned());
    }
    let version = front.u32()?;
    if !VERSIONS.contains(&version) {
        let [oldest, newest] = VERSIONS;
        return Err(format!("its version is {version}; this nvlab reads versions {oldest} and {newest}"));
    }
    let header_bytes = front.u32()? as usize;
    let mut header = Bytes(front.take(header_bytes)?);
    if front.u32()? != crc32c(&[&bytes[..MAGIC.len() + 8 + header_bytes]]) {
        return Err("the checksum of its header is wrong".to_owned());
    }
    let rows = header.u64()?;
    if rows > ROWS_MAX {
        return Err(format!("its header states {rows} requests; at most {ROWS_MAX} can be read"));
    }
    let hash = header.u64()?;
    let origin = Origin { format: header.text()?, hash };
    let volume_count = header.u32()?;
    if volume_count > 1 << 16 {
        return Err(format!("its header states {volume_count} volumes; the limit is 65536"));
    }
    let volumes = (0..volume_count).map(|_| header.text()).collect::<Result<Vec<_>, _>>()?;
    let mut parts = [&[][..]; COLUMN_NAMES.len()];
    let names = &COLUMN_NAMES[..COLUMN_NAMES.len() - usize::from(version == VERSIONS[0])];
    for (part, name) in parts.iter_mut().zip(names) {
        let (start, length, crc) = (header.u64()?, header.u64()?, header.u32()?);
        let range = usize::try_from(start)
            .ok()
            .zip(start.checked_add(length).and_then(|end| usize::try_from(end).ok()));
        *part = range
            .and_then(|(start, end)| bytes.get(start..end))
            .ok_or_else(|| format!("the file ends inside its {name} column"))?;
        if crc32c(&[part]) != crc {
            return Err(format!("the checksum of its {name} column is wrong"));
        }
    }
    let mut columns = Columns { volumes, origin, ..Columns::default() };
    let rows = rows as usize;
    decode_column(parts[0], rows, "time", &mut columns.at_ps)?;
    decode_column(parts[1], rows, "offset", &mut columns.offset)?;
    decode_column(parts[2], rows, "bytes", &mut columns.bytes)?;
    decode_column(parts[3], rows, "op", &mut columns.op)?;
    decode_column(parts[4], rows, "volume", &mut columns.volume)?;
    if version == VERSIONS[1] {
        decode_column(parts[5], rows, "response", &mut columns.response_ps)?;
    }
    let mut now = 0u64;
    for at in &mut columns.at_ps {
        now = now.checked_add(*at).ok_or("its times exceed 2^64 ps")?;
        *at = now;
    }
    match (0..rows).find_map(|row| columns.check_row(row).err().map(|reason| (row, reason))) {
        Some((row, reason)) => Err(format!("request {row} has {reason}")),
        None => Ok(columns),
    }
}

/// A number type of columns.
trait Cell: Copy {
    const MAX: u64;
    fn from_u64(value: u64) -> Self;
}
macro_rules! cells {
    ($($number:ty),*) => {$(
        impl Cell for $number {
            const MAX: u64 = <$number>::MAX as u64;
            #[inline]
            fn from_u64(value: u64) -> Self {
                value as $number
            }
        }
    )*};
}
cells!(u8, u16, u32, u64);

fn decode_column<T: Cell>(part: &[u8], rows: usize, name: &str, out: &mut Vec<T>) -> Result<(), String> {
    let damaged = |what: &str| format!("its {name} column {what}");
    let mut decompressor = zstd::bulk::Decompressor::new().map_err(|error| error.to_string())?;
    let mut plain = Vec::new();
    let mut part = Bytes(part);
    if part.0.len() / CHUNK_HEADER_BYTES < rows.div_ceil(CHUNK_ROWS) {
        return Err(damaged("is too short for its rows"));
    }
    // Memory is allocated up front only in proportion to the file; the rest grows step by step.
    out.reserve_exact(rows.min(part.0.len().saturating_mul(16)));
    while out.len() < rows {
        let count = (rows - out.len()).min(CHUNK_ROWS);
        let &[width, codec, 0, 0] = part.take(4)? else {
            return Err(damaged("has a chunk of an unknown kind"));
        };
        let stored_bytes = part.u32()? as usize;
        let (base, scale) = (part.u64()?, part.u64()?);
        let stored = part.take(stored_bytes)?;
        let wanted = count * width as usize;
        let numbers = match codec {
            0 => stored,
            1 => {
                plain.clear();
                plain.reserve(8 * CHUNK_ROWS);
                decompressor
                    .decompress_to_buffer(stored, &mut plain)
                    .map_err(|_| damaged("does not decompress"))?;
                &plain[..]
            }
            _ => return Err(damaged("has a chunk of an unknown kind")),
        };
        if numbers.len() != wanted {
            return Err(damaged("has a chunk of the wrong length"));
        }
        let fits = match width {
            0 => widen::<0, T>(numbers, count, base, scale, out),
            1 => widen::<1, T>(numbers, count, base, scale, out),
            2 => widen::<2, T>(numbers, count, base, scale, out),
            3 => widen::<3, T>(numbers, count, base, scale, out),
            4 => widen::<4, T>(numbers, count, base, scale, out),
            5 => widen::<5, T>(numbers, count, base, scale, out),
            6 => widen::<6, T>(numbers, count, base, scale, out),
            7 => widen::<7, T>(numbers, count, base, scale, out),
            8 => widen::<8, T>(numbers, count, base, scale, out),
            _ => return Err(damaged("has a chunk of an unknown kind")),
        };
        if !fits {
            return Err(damaged("has a number that is too large"));
        }
    }
    if !part.0.is_empty() {
        return Err(damaged("is longer than its rows"));
    }
    Ok(())
}

/// Appends `base + scale * number` for every number of `WIDTH` bytes. False if one does not fit `T`.
fn widen<const WIDTH: usize, T: Cell>(
    numbers: &[u8],
    count: usize,
    base: u64,
    scale: u64,
    out: &mut Vec<T>,
) -> bool {
    if WIDTH == 0 {
        out.resize(out.len() + count, T::from_u64(base));
        return base <= T::MAX;
    }
    let (numbers, _) = numbers.as_chunks::<WIDTH>();
    let fits = |largest: u64| base as u128 + scale as u128 * largest as u128 <= T::MAX as u128;
    if WIDTH > 4 {
        let number =
            |bytes: &[u8; WIDTH]| bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | byte as u64);
        let largest = numbers.iter().map(number).max().unwrap_or(0);
        if !fits(largest) {
            return false;
        }
        out.extend(numbers.iter().map(|bytes| T::from_u64(base + scale * number(bytes))));
        return true;
    }
    // Numbers and scales of at most 32 bits, nearly all of them, are vectorised.
    let number =
        |bytes: &[u8; WIDTH]| bytes.iter().rev().fold(0u32, |number, &byte| number << 8 | byte as u32);
    let largest = numbers.iter().map(number).max().unwrap_or(0);
    if !fits(largest as u64) {
        return false;
    }
    match u32::try_from(scale) {
        Ok(1) => out.extend(numbers.iter().map(|bytes| T::from_u64(base + number(bytes) as u64))),
        Ok(scale) => {
            out.extend(numbers.iter().map(|bytes| T::from_u64(base + scale as u64 * number(bytes) as u64)));
        }
        // A scale this large leaves room for few numbers.
        Err(_) => out.extend(numbers.iter().map(|bytes| T::from_u64(base + scale * number(bytes) as u64))),
    }
    true
}

/// The rest of a byte string.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("the file is truncated")?;
        self.0 = rest;
        Ok(taken)
    }
    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("4 bytes were taken")))
    }
    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("8 bytes were taken")))
    }
    fn text(&mut self) -> Result<String, String> {
        let length = u16::from_le_bytes(self.take(2)?.try_into().expect("2 bytes were taken"));
        let text = self.take(length as usize)?;
        String::from_utf8(text.to_vec()).map_err(|_| "a name is not UTF-8".to_owned())
    }
}
