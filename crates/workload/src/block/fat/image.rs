//! The contents of a client's volume. A volume may be larger than this machine's memory: parts never written, or
//! written only with zeros, take none.

use std::collections::BTreeMap;

const PIECE_BYTES: usize = 64 << 10;

/// The bytes of a volume, sparse: what was never written is zero.
#[derive(Clone, Debug)]
pub(super) struct Image {
    bytes: u64,
    /// Pieces by number; missing ones are zero.
    pieces: BTreeMap<u64, Box<[u8]>>,
}

impl Image {
    pub fn new(bytes: u64) -> Image {
        Image { bytes, pieces: BTreeMap::new() }
    }

    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// The piece that holds byte `at` of a request at `offset`, the position in the piece, and how many of the
    /// request's `bytes` follow there.
    fn place(offset: u64, at: usize, bytes: usize) -> (u64, usize, usize) {
        let byte = offset + at as u64;
        let within = (byte % PIECE_BYTES as u64) as usize;
        (byte / PIECE_BYTES as u64, within, (bytes - at).min(PIECE_BYTES - within))
    }

    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let mut at = 0;
        while at < into.len() {
            let (number, within, count) = Image::place(offset, at, into.len());
            let part = &mut into[at..at + count];
            match self.pieces.get(&number) {
                Some(piece) => part.copy_from_slice(&piece[within..within + count]),
                None => part.fill(0),
            }
            at += count;
        }
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let mut at = 0;
        while at < data.len() {
            let (number, within, count) = Image::place(offset, at, data.len());
            let part = &data[at..at + count];
            // By lines: a test byte by byte was a third of an iozone run.
            let zero = || part.chunks(64).all(|line| line.iter().fold(0, |or, byte| or | byte) == 0);
            if self.pieces.contains_key(&number) || !zero() {
                let piece = self.pieces.entry(number).or_insert_with(|| vec![0; PIECE_BYTES].into());
                piece[within..within + count].copy_from_slice(part);
            }
            at += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Rng;

    /// Against a plain array, over the borders of pieces.
    #[test]
    fn an_image_is_a_plain_array() {
        const BYTES: usize = 3 * PIECE_BYTES + 512;
        let (mut image, mut plain, mut rng) = (Image::new(BYTES as u64), vec![0; BYTES], Rng::new(5));
        for _ in 0..300 {
            let offset = rng.below(BYTES as u64) as usize;
            let count = rng.below(2 * PIECE_BYTES as u64).min((BYTES - offset) as u64) as usize;
            let byte = rng.below(3) as u8;
            image.write(offset as u64, &vec![byte; count]);
            plain[offset..offset + count].fill(byte);
            let from = rng.below(BYTES as u64) as usize;
            let mut read = vec![9; BYTES - from];
            image.read(from as u64, &mut read);
            assert!(read == plain[from..], "from {from}");
        }
        assert_eq!(Image::new(1 << 50).len(), 1 << 50);
    }
}
