//! Decodes records: lengths, checksums, decompression and the list of ranges.

use super::{BARRIER, COMPRESSED, HEADER_BYTES, Headers, LENGTH_MASK, NAME, ORIGINAL, Place};
use std::borrow::Cow;

/// Of the header of a range.
const RANGE_BYTES_MASK: usize = (1 << 24) - 1;

/// A record whose checksum is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its length in the log, header and padding included.
    pub bytes: usize,
    /// Everything before it was durable when it was written.
    pub barrier: bool,
    /// A commit, or the name of a segment.
    pub contents: Contents<'a>,
}

/// What a record is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents<'a> {
    /// The segment of this number has this name.
    Name(u32, &'a str),
    /// The new bytes of a committed transaction.
    Commit(Modifications<'a>),
}

/// One range of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modification<'a> {
    /// Number that an earlier record gave the segment.
    pub segment: u32,
    /// First byte within the segment.
    pub offset: u64,
    /// What the range holds after the commit.
    pub data: &'a [u8],
}

/// The ranges of a commit, decompressed if they were compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modifications<'a> {
    body: Cow<'a, [u8]>,
    headers: Headers,
    compressed: bool,
}

impl Modifications<'_> {
    /// Bytes that were decompressed to read it.
    pub(crate) fn decompressed_bytes(&self) -> u64 {
        if self.compressed { self.body.len() as u64 } else { 0 }
    }
}

impl<'a> Record<'a> {
    /// The length a header states; `None` if no record begins so.
    pub fn length(header: &[u8; HEADER_BYTES]) -> Option<usize> {
        let bytes = (word(header) & LENGTH_MASK) as usize;
        (bytes >= HEADER_BYTES && bytes.is_multiple_of(4)).then_some(bytes)
    }

    /// The same for a record with a barrier.
    pub(crate) fn barrier_length(header: &[u8; HEADER_BYTES]) -> Option<usize> {
        if word(header) & BARRIER == 0 { None } else { Record::length(header) }
    }

    /// Checks the record that is exactly `bytes`. `None`: it is none, or not one of this place. An error says what is wrong
    /// with one whose checksum is right.
    pub fn check(bytes: &'a [u8], place: Place) -> Option<Result<Record<'a>, String>> {
        let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let stated = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        if Record::length(header)? != bytes.len() || place.checksum(&bytes[4..]) != stated {
            return None;
        }
        Some(Record::parse(word(header), body))
    }

    fn parse(flags: u32, body: &'a [u8]) -> Result<Record<'a>, String> {
        let contents = if flags & NAME != 0 {
            let (segment, rest) = take_u32(body).ok_or("it ends within the number of a segment")?;
            let (bytes, rest) = take_u32(rest).ok_or("it ends within the length of a name")?;
            let name = rest.get(..bytes as usize).ok_or("it ends within a name")?;
            Contents::Name(segment, std::str::from_utf8(name).map_err(|error| error.to_string())?)
        } else {
            let headers = if flags & ORIGINAL != 0 { Headers::Original } else { Headers::Compact };
            let compressed = flags & COMPRESSED != 0;
            let body = if compressed { Cow::Owned(decompressed(body)?) } else { Cow::Borrowed(body) };
            let modifications = Modifications { body, headers, compressed };
            modifications.each(|_| ())?;
            Contents::Commit(modifications)
        };
        Ok(Record { bytes: HEADER_BYTES + body.len(), barrier: flags & BARRIER != 0, contents })
    }
}

fn decompressed(body: &[u8]) -> Result<Vec<u8>, String> {
    let (word, packed) = take_u32(body).ok_or("it ends within the length of a compressed body")?;
    let (plain, fill) = (word & LENGTH_MASK, (word >> 28) as usize);
    let packed = &packed[..packed.len().saturating_sub(fill)];
    lz4_flex::block::decompress(packed, plain as usize).map_err(|error| error.to_string())
}

/// The second word of a header.
fn word(header: &[u8; HEADER_BYTES]) -> u32 {
    u32::from_le_bytes([header[4], header[5], header[6], header[7]])
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*word), rest))
}

fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*word), rest))
}

/// The ranges of a list that has been read already.
#[derive(Clone, Debug)]
pub(crate) struct InPlace<'a> {
    rest: &'a [u8],
    segment: u32,
}

impl<'a> Iterator for InPlace<'a> {
    type Item = Modification<'a>;

    #[inline]
    fn next(&mut self) -> Option<Modification<'a>> {
        loop {
            let (header, after) = take_u64(self.rest)?;
            let (bytes, offset) = (header as usize & RANGE_BYTES_MASK, header >> 24);
            if bytes > 0 {
                let (data, rest) = after.split_at_checked(bytes)?;
                self.rest = rest;
                return Some(Modification { segment: self.segment, offset, data });
            }
            (self.segment, self.rest) = (offset as u32, after);
        }
    }
}

/// The ranges of the record that begins here and was written by this program, and what follows it. `None`: they do not lie in it as
/// they are.
#[inline]
pub(crate) fn written_in_place(records: &[u8]) -> Option<(InPlace<'_>, &[u8])> {
    let header = records.first_chunk()?;
    let (record, others) = records.split_at_checked(Record::length(header)?)?;
    let rest = match word(header) {
        flags if flags & NAME != 0 => &[],
        flags if flags & (ORIGINAL | COMPRESSED) != 0 => return None,
        _ => &record[HEADER_BYTES..],
    };
    Some((InPlace { rest, segment: 0 }, others))
}

impl<'a> Modifications<'a> {
    /// The ranges, where their bytes lie in the record as they are: with compact headers, not compressed.
    pub(crate) fn in_place(&self) -> Option<InPlace<'a>> {
        match (&self.body, self.headers) {
            (&Cow::Borrowed(rest), Headers::Compact) => Some(InPlace { rest, segment: 0 }),
            _ => None,
        }
    }

    /// Which headers it was written with.
    pub fn headers(&self) -> Headers {
        self.headers
    }

    /// Whether its ranges are compressed with LZ4 in the log.
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Calls `each` for every range, in order. An error says what is wrong with the list.
    pub fn each(&self, mut each: impl FnMut(Modification<'_>)) -> Result<(), String> {
        match self.headers {
            Headers::Compact => self.each_compact(&mut each),
            Headers::Original => self.each_original(&mut each),
        }
    }

    fn each_compact(&self, each: &mut impl FnMut(Modification<'_>)) -> Result<(), String> {
        let (mut rest, mut segment) = (&self.body[..], 0);
        // What is left at the end is fill.
        while let Some((header, after)) = take_u64(rest) {
            let (bytes, offset) = (header as usize & RANGE_BYTES_MASK, header >> 24);
            if bytes == 0 {
                segment = u32::try_from(offset).map_err(|_| format!("segment number {offset}"))?;
                rest = after;
                continue;
            }
            let data = after.get(..bytes).ok_or("it ends within a range")?;
            each(Modification { segment, offset, data });
            rest = &after[bytes..];
        }
        Ok(())
    }

    fn each_original(&self, each: &mut impl FnMut(Modification<'_>)) -> Result<(), String> {
        const RANGE: usize = Headers::Original.range_bytes();
        let header = self.body.get(..40).ok_or("it ends within its header")?;
        let ranges = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let mut rest = &self.body[40..];
        for _ in 0..ranges {
            let header = rest.get(..RANGE).ok_or("it ends within the header of a range")?;
            let (segment, after) = take_u32(header).ok_or("no segment")?;
            let (bytes, after) = take_u32(after).ok_or("no length")?;
            let (offset, _) = take_u64(after).ok_or("no offset")?;
            let data = rest[RANGE..].get(..bytes as usize).ok_or("it ends within a range")?;
            each(Modification { segment, offset, data });
            rest = &rest[RANGE + bytes as usize..];
        }
        Ok(())
    }
}
