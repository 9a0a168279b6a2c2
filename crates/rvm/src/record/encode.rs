//! Encodes records in place: headers, and the new bytes of ranges.

use super::{
    BARRIER, COMPRESSED, HEADER_BYTES, Headers, LENGTH_MASK, NAME, ORIGINAL, Place, RANGE_BYTES_MAX,
};

const WORD: usize = 8;

/// Builds the record of a commit at the beginning of a slice of zeros.
///
/// The slice has room for all of it from the start: to make sure of room for each range costs as much as what is put there.
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut [u8],
    end: usize,
    headers: Headers,
    ranges: u32,
    segment: u32,
}

impl<'a> Encoder<'a> {
    /// Begins a commit record at the start of `out`, which holds zeros and has room for all of it.
    #[inline(always)]
    pub fn new(out: &'a mut [u8], headers: Headers) -> Encoder<'a> {
        Encoder { out, end: headers.before_ranges(), headers, ranges: 0, segment: 0 }
    }

    /// Adds the new bytes of a range.
    #[inline(always)]
    pub fn range(&mut self, segment: u32, offset: u64, data: &[u8]) {
        if data.len() <= RANGE_BYTES_MAX {
            return self.piece(segment, offset, data);
        }
        for (index, piece) in data.chunks(RANGE_BYTES_MAX).enumerate() {
            self.piece(segment, offset + (index * RANGE_BYTES_MAX) as u64, piece);
        }
    }

    #[inline(always)]
    fn piece(&mut self, segment: u32, offset: u64, data: &[u8]) {
        match self.headers {
            Headers::Compact => {
                if segment != self.segment {
                    self.next(8).copy_from_slice(&(u64::from(segment) << 24).to_le_bytes());
                    self.segment = segment;
                }
                self.next(8).copy_from_slice(&(offset << 24 | data.len() as u64).to_le_bytes());
            }
            Headers::Original => self.original_header(segment, offset, data.len()),
        }
        copy(self.next(data.len()), data);
        self.ranges += 1;
    }

    #[inline(never)]
    fn original_header(&mut self, segment: u32, offset: u64, bytes: usize) {
        let ranges = self.ranges;
        let header = self.next(Headers::Original.range_bytes());
        header[..4].copy_from_slice(&segment.to_le_bytes());
        header[4..8].copy_from_slice(&(bytes as u32).to_le_bytes());
        header[8..16].copy_from_slice(&offset.to_le_bytes());
        header[16..20].copy_from_slice(&ranges.to_le_bytes());
    }

    /// The next bytes of the record.
    #[inline(always)]
    fn next(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.end;
        self.end += bytes;
        &mut self.out[start..self.end]
    }

    /// Where the next range begins.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Ends the record and returns its bytes. `number` counts transactions (only the original's headers have room for it).
    #[inline(always)]
    pub fn finish(self, place: Place, barrier: bool, compress: bool, number: u64) -> usize {
        let Encoder { out, mut end, headers, ranges, .. } = self;
        let mut flags = if barrier { BARRIER } else { 0 };
        if headers == Headers::Original {
            flags |= ORIGINAL;
            out[8..16].copy_from_slice(&number.to_le_bytes());
            out[16..20].copy_from_slice(&ranges.to_le_bytes());
            end += 28;
        }
        if compress && let Some(shorter) = compress_body(&mut out[HEADER_BYTES..end]) {
            end = HEADER_BYTES + shorter;
            flags |= COMPRESSED;
        }
        seal(out, end, place, flags)
    }
}

/// Appends bytes. Most ranges are a word or two, whose copy needs no call.
#[inline]
pub fn extend(out: &mut Vec<u8>, data: &[u8]) {
    if let Ok(word) = <&[u8; 8]>::try_from(data) {
        out.extend_from_slice(word);
    } else if let Ok(words) = <&[u8; 16]>::try_from(data) {
        out.extend_from_slice(words);
    } else {
        out.extend_from_slice(data);
    }
}

/// Copies as many bytes as there are on both sides. Most ranges are a word or two: the first word and the last one, which may
/// overlap. That is not a copy the compiler knows, so it does not become a call.
#[inline(always)]
pub fn copy(into: &mut [u8], data: &[u8]) {
    const SHORT: usize = 2 * WORD;
    assert_eq!(into.len(), data.len());
    if let (WORD..=SHORT, Some(first), Some(last)) = (data.len(), data.first_chunk(), data.last_chunk()) {
        let [first, last] = [first, last].map(|word: &[u8; WORD]| u64::from_ne_bytes(*word));
        into[..WORD].copy_from_slice(&first.to_ne_bytes());
        let at = into.len() - WORD;
        into[at..].copy_from_slice(&last.to_ne_bytes());
    } else {
        into.copy_from_slice(data);
    }
}

/// Replaces the body by a compressed one if that is shorter; returns its bytes. Zeros follow it.
#[inline(never)]
fn compress_body(body: &mut [u8]) -> Option<usize> {
    let packed = lz4_flex::block::compress(body);
    let bytes = packed.len() + 4;
    if bytes >= body.len() {
        return None;
    }
    let fill = packed.len().wrapping_neg() as u32 & 3;
    let word = body.len() as u32 | fill << 28;
    body[..4].copy_from_slice(&word.to_le_bytes());
    body[4..bytes].copy_from_slice(&packed);
    body[bytes..].fill(0);
    Some(bytes)
}

/// Adds the record that names a segment; returns its bytes.
pub fn segment_name(out: &mut Vec<u8>, place: Place, barrier: bool, segment: u32, name: &str) -> usize {
    let start = out.len();
    let end = HEADER_BYTES + 8 + name.len();
    out.resize(start + end.next_multiple_of(4), 0);
    let record = &mut out[start..];
    record[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&segment.to_le_bytes());
    record[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&(name.len() as u32).to_le_bytes());
    record[HEADER_BYTES + 8..end].copy_from_slice(name.as_bytes());
    seal(record, end, place, if barrier { NAME | BARRIER } else { NAME })
}

/// Writes length and checksum of a record of `end` bytes, which zeros fill up to a multiple of 4; returns its bytes with them.
#[inline(always)]
fn seal(out: &mut [u8], end: usize, place: Place, flags: u32) -> usize {
    let bytes = end.next_multiple_of(4);
    assert!(bytes <= LENGTH_MASK as usize && bytes <= out.len(), "a record of {bytes} B");
    let record = &mut out[..bytes];
    record[4..8].copy_from_slice(&(bytes as u32 | flags).to_le_bytes());
    let checksum = place.checksum(&record[4..]);
    record[..4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}
