//! The newest bytes of a segment: what the records of an epoch leave of it, as disjoint pieces in order.

use crate::Store;
use std::collections::BTreeMap;
use std::io;

/// Pieces by offset; neither overlapping nor empty.
#[derive(Debug, Default)]
pub struct Overlay {
    pieces: BTreeMap<u64, Vec<u8>>,
}

/// Adjacent pieces are written together up to this many bytes.
const WRITE_BYTES_MAX: usize = 1 << 20;

impl Overlay {
    /// Puts `data` over what is there.
    pub fn insert(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        if let Some((&start, piece)) = self.pieces.range_mut(..=offset).next_back() {
            let piece_end = start + piece.len() as u64;
            if end <= piece_end {
                let at = (offset - start) as usize;
                piece[at..at + data.len()].copy_from_slice(data);
                return;
            }
            if offset < piece_end {
                piece.truncate((offset - start) as usize);
                if piece.is_empty() {
                    self.pieces.remove(&start);
                }
            }
        }
        while let Some((&start, piece)) = self.pieces.range(offset..end).next() {
            let covered = (end - start) as usize;
            let rest = piece.get(covered..).filter(|rest| !rest.is_empty()).map(<[u8]>::to_vec);
            self.pieces.remove(&start);
            if let Some(rest) = rest {
                self.pieces.insert(end, rest);
            }
        }
        if !data.is_empty() {
            self.pieces.insert(offset, data.to_vec());
        }
    }

    /// The first byte after the last piece.
    pub fn end(&self) -> u64 {
        self.pieces.last_key_value().map_or(0, |(start, piece)| start + piece.len() as u64)
    }

    /// Writes the pieces in order, adjacent ones together. Returns their bytes.
    pub fn write_to(&self, store: &dyn Store) -> io::Result<u64> {
        let (mut buffer, mut at, mut bytes) = (Vec::new(), 0, 0);
        for (&start, piece) in &self.pieces {
            let is_adjacent = at + buffer.len() as u64 == start;
            if !buffer.is_empty() && (!is_adjacent || buffer.len() + piece.len() > WRITE_BYTES_MAX) {
                store.write(&buffer, at)?;
                buffer.clear();
            }
            if buffer.is_empty() {
                at = start;
            }
            buffer.extend_from_slice(piece);
            bytes += piece.len() as u64;
        }
        if !buffer.is_empty() {
            store.write(&buffer, at)?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_newest_bytes_win(inserts in prop::collection::vec((0usize..200, 0usize..60), 1..60)) {
            let mut overlay = Overlay::default();
            let mut model = [0u8; 260];
            for (number, (offset, bytes)) in inserts.into_iter().enumerate() {
                let data = vec![number as u8 + 1; bytes];
                overlay.insert(offset as u64, &data);
                model[offset..offset + bytes].copy_from_slice(&data);
            }
            let mut plain = [0u8; 260];
            let mut last = 0;
            for (&start, piece) in &overlay.pieces {
                prop_assert!(start >= last && !piece.is_empty());
                last = start + piece.len() as u64;
                plain[start as usize..last as usize].copy_from_slice(piece);
            }
            prop_assert_eq!(plain, model);
        }
    }
}
