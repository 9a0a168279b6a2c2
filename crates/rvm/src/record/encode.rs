//! Builds records.

use super::{
    BARRIER, COMPRESSED, HEADER_BYTES, Headers, LENGTH_MASK, NAME, ORIGINAL, Place, RANGE_BYTES_MAX,
};

/// Builds the record of a commit at the end of a buffer.
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    headers: Headers,
    ranges: u32,
    segment: u32,
}

impl<'a> Encoder<'a> {
    /// Begins a record after what is in `out`.
    pub fn new(out: &'a mut Vec<u8>, headers: Headers) -> Encoder<'a> {
        let start = out.len();
        let header = match headers {
            Headers::Compact => HEADER_BYTES,
            Headers::Original => 48,
        };
        out.resize(start + header, 0);
        Encoder { out, start, headers, ranges: 0, segment: 0 }
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
                    self.out.extend_from_slice(&(u64::from(segment) << 24).to_le_bytes());
                    self.segment = segment;
                }
                self.out.extend_from_slice(&(offset << 24 | data.len() as u64).to_le_bytes());
            }
            Headers::Original => {
                let start = self.out.len();
                self.out.extend_from_slice(&segment.to_le_bytes());
                self.out.extend_from_slice(&(data.len() as u32).to_le_bytes());
                self.out.extend_from_slice(&offset.to_le_bytes());
                self.out.extend_from_slice(&self.ranges.to_le_bytes());
                self.out.resize(start + self.headers.range_bytes(), 0);
            }
        }
        extend(self.out, data);
        self.ranges += 1;
    }

    /// Ends the record and returns its bytes. `number` counts transactions (only the original's headers have room for it).
    pub fn finish(self, place: Place, barrier: bool, compress: bool, number: u64) -> usize {
        let Encoder { out, start, headers, ranges, .. } = self;
        let mut flags = if barrier { BARRIER } else { 0 };
        if headers == Headers::Original {
            flags |= ORIGINAL;
            out[start + 8..start + 16].copy_from_slice(&number.to_le_bytes());
            out[start + 16..start + 20].copy_from_slice(&ranges.to_le_bytes());
            out.resize(out.len() + 28, 0);
        }
        if compress && compress_body(out, start + HEADER_BYTES) {
            flags |= COMPRESSED;
        }
        seal(out, start, place, flags)
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

/// Replaces the body by a compressed one if that is shorter.
fn compress_body(out: &mut Vec<u8>, body: usize) -> bool {
    let plain = out.len() - body;
    let packed = lz4_flex::block::compress(&out[body..]);
    if packed.len() + 4 >= plain {
        return false;
    }
    out.truncate(body);
    let fill = packed.len().wrapping_neg() as u32 & 3;
    out.extend_from_slice(&(plain as u32 | fill << 28).to_le_bytes());
    out.extend_from_slice(&packed);
    true
}

/// Adds the record that names a segment; returns its bytes.
pub fn segment_name(out: &mut Vec<u8>, place: Place, barrier: bool, segment: u32, name: &str) -> usize {
    let start = out.len();
    out.resize(start + HEADER_BYTES, 0);
    out.extend_from_slice(&segment.to_le_bytes());
    out.extend_from_slice(&(name.len() as u32).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    seal(out, start, place, if barrier { NAME | BARRIER } else { NAME })
}

/// Fills up to a multiple of 4 and writes length and checksum.
fn seal(out: &mut Vec<u8>, start: usize, place: Place, flags: u32) -> usize {
    out.resize(start + (out.len() - start).next_multiple_of(4), 0);
    let bytes = out.len() - start;
    assert!(bytes <= LENGTH_MASK as usize, "a record of {bytes} B");
    let word = bytes as u32 | flags;
    out[start + 4..start + 8].copy_from_slice(&word.to_le_bytes());
    let checksum = place.checksum(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}
