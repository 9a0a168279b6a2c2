//! The pieces that a checkpoint of the map is written in: how the map is divided, and what each holds.
//!
//! A piece is some pages of the array with the map entries of neighbouring units, as they were at one moment. It says
//! which moment that was, so that pieces of different moments make a map together.
//!
//! Format, little-endian, in the data of units of kind `Checkpoint` with the number of the turn as sequence and the
//! position in the turn as lpa. Each piece begins with: magic u32, logical units u32, stamp u64, sequence u64, open blocks
//! u32, then that many block numbers u32, padded to the most there can be; then a u32 per logical unit (0xffffffff:
//! nothing).

use nvlab_units::{BlockId, Extent, Geometry, Lpa, Ppa};
use serde::{Deserialize, Serialize};

const MAGIC: u32 = 0x5350_564e; // "NVPS"
/// Bytes of a piece before the open blocks and the map.
const HEADER_BYTES: u64 = 28;
/// A piece is at least this many times as long as what it holds besides the map.
const HEADER_SHARE: u64 = 32;
/// The host writes this many times its buffer between two pieces: a piece waits until everything it refers to is
/// programmed, and pieces must not queue up.
const BUFFERS_BETWEEN: u64 = 4;

/// How a map is divided into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pieces {
    /// Number of pieces.
    pub count: u32,
    /// Pages of each but the last, and of the last.
    pub pages: u32,
    pub pages_last: u32,
    /// Map entries of each but the last.
    pub entries: u32,
    /// Bytes before the entries.
    header_bytes: u64,
    logical_units: u32,
}

impl Pieces {
    /// The division of a map of `logical_units`, with at most `open` open blocks; the whole map is written once per
    /// `every` host units, behind a buffer of `buffer_units`.
    pub fn new(logical_units: u32, open: u32, every: u64, buffer_units: u32, geometry: &Geometry) -> Pieces {
        let page = geometry.page_bytes();
        let header_bytes = HEADER_BYTES + 4 * open as u64;
        let pages_of = |entries: u64| (header_bytes + 4 * entries).div_ceil(page);
        let all = pages_of(logical_units as u64);
        let between = buffer_units.max(geometry.units_per_page) as u64 * BUFFERS_BETWEEN;
        // Of `all` pages, each takes its share of the host's writes between two checkpoints.
        let slow = (between as u128 * all as u128).div_ceil(every.max(1) as u128);
        let long = (HEADER_SHARE * header_bytes).div_ceil(page);
        let pages = slow.max(long as u128).min(all as u128) as u64;
        let entries = ((pages * page - header_bytes) / 4).min(logical_units as u64);
        let count = (logical_units as u64).div_ceil(entries);
        let last = logical_units as u64 - (count - 1) * entries;
        Pieces {
            count: count as u32,
            pages: pages as u32,
            pages_last: pages_of(last) as u32,
            entries: entries as u32,
            header_bytes,
            logical_units,
        }
    }

    /// A map of `logical_units` in one piece.
    pub fn whole(logical_units: u32, open: u32, geometry: &Geometry) -> Pieces {
        let header_bytes = HEADER_BYTES + 4 * open as u64;
        let pages = (header_bytes + 4 * logical_units as u64).div_ceil(geometry.page_bytes()) as u32;
        Pieces { count: 1, pages, pages_last: pages, entries: logical_units, header_bytes, logical_units }
    }

    /// A map whose entries are all of one moment, wherever they were found.
    pub fn undivided(logical_units: u32) -> Pieces {
        Pieces { count: 1, pages: 0, pages_last: 0, entries: logical_units, header_bytes: 0, logical_units }
    }

    /// Pages of a piece.
    pub fn pages_of(&self, piece: u32) -> u32 {
        if piece + 1 == self.count { self.pages_last } else { self.pages }
    }
    /// Pages of all pieces.
    pub fn pages_of_all(&self) -> u64 {
        (self.count as u64 - 1) * self.pages as u64 + self.pages_last as u64
    }
    /// The piece that holds the entry of a unit.
    pub fn of(&self, lpa: Lpa) -> u32 {
        lpa.0 / self.entries
    }
    /// The units whose entries a piece holds.
    pub fn units(&self, piece: u32) -> Extent {
        let start = piece * self.entries;
        Extent { start: Lpa(start), count: self.entries.min(self.logical_units - start) }
    }

    /// The bytes of a piece, with its share `map` of the map.
    pub fn encode(&self, moment: &Moment, map: impl Iterator<Item = u32>, bytes: usize) -> Vec<u8> {
        let mut data = Vec::with_capacity(bytes);
        data.extend(MAGIC.to_le_bytes());
        data.extend(self.logical_units.to_le_bytes());
        data.extend(moment.stamp.to_le_bytes());
        data.extend(moment.sequence.to_le_bytes());
        data.extend((moment.open.len() as u32).to_le_bytes());
        data.extend(moment.open.iter().flat_map(|block| block.0.to_le_bytes()));
        data.resize(self.header_bytes as usize, 0);
        data.extend(map.flat_map(u32::to_le_bytes));
        data.resize(bytes, 0);
        data
    }

    /// The moment of a piece and its share of the map; `None` if these bytes are no such piece.
    pub fn decode(&self, piece: u32, bytes: &[u8]) -> Option<Found> {
        let (header, rest) = bytes.split_at_checked(self.header_bytes as usize)?;
        let u32_at = |i: usize| u32::from_le_bytes(header[i..i + 4].try_into().expect("4 bytes"));
        let u64_at = |i: usize| u64::from_le_bytes(header[i..i + 8].try_into().expect("8 bytes"));
        let open = HEADER_BYTES as usize..HEADER_BYTES as usize + 4 * u32_at(24) as usize;
        if u32_at(0) != MAGIC || u32_at(4) != self.logical_units || open.end > header.len() {
            return None;
        }
        let open = entries_of(&header[open]).map(BlockId).collect();
        let map = entries_of(rest.get(..4 * self.units(piece).count as usize)?).collect();
        Some((Moment { stamp: u64_at(8), sequence: u64_at(16), open }, map))
    }
}

/// The entries of a part of the map in flash: a u32 each, little-endian.
pub(super) fn entries_of(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("4 bytes")))
}

/// The moment at which a piece was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moment {
    /// The stamp of the next program, and the number of the host's next write.
    pub stamp: u64,
    pub sequence: u64,
    /// The blocks that were open.
    pub open: Vec<BlockId>,
}

/// A piece that was read back: its moment, and its share of the map.
pub(super) type Found = (Moment, Vec<u32>);

/// The moments of the pieces that a map was put together from.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    pieces: Pieces,
    moments: Vec<Moment>,
    oldest: usize,
    /// Units that a piece of an unfinished turn says are trimmed, and where the last complete turn has them.
    pub trimmed_since: Vec<(Lpa, Ppa)>,
}

impl Checkpoint {
    /// Those of all pieces, in order.
    pub fn new(pieces: Pieces, moments: Vec<Moment>, trimmed_since: Vec<(Lpa, Ppa)>) -> Checkpoint {
        assert_eq!(moments.len(), pieces.count as usize, "pieces are missing");
        let oldest = (0..moments.len()).min_by_key(|&i| moments[i].stamp).expect("a map has a piece");
        Checkpoint { pieces, moments, oldest, trimmed_since }
    }
    /// When the entry of a unit was what the map says.
    pub fn moment_of(&self, lpa: Lpa) -> &Moment {
        &self.moments[self.pieces.of(lpa) as usize]
    }
    /// The moment of the oldest piece: whatever was programmed since lies in the blocks open then, or begun since.
    pub fn oldest(&self) -> &Moment {
        &self.moments[self.oldest]
    }
    /// The number of the host's next write when the youngest piece was written.
    pub fn sequence(&self) -> u64 {
        self.moments.iter().map(|moment| moment.sequence).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(logical_units: u32, every: u64, buffer: u32) -> (Pieces, Geometry) {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            blocks_per_die: 100,
            pages_per_block: 64,
            units_per_page: 4,
            unit_bytes: 4096,
        };
        (Pieces::new(logical_units, 8, every, buffer, &geometry), geometry)
    }

    #[test]
    fn pieces_cover_the_map_once_and_cost_little_more_than_it() {
        for (units, every, buffer) in
            [(80_000, 40_000, 64), (80_000, 1 << 30, 64), (80_000, 100, 64), (1, 50, 64), (4089, 1 << 30, 32)]
        {
            let (pieces, geometry) = divided(units, every, buffer);
            let mut next = Lpa(0);
            for piece in 0..pieces.count {
                assert_eq!(pieces.units(piece).start, next, "{pieces:?}");
                next = next + pieces.units(piece).count;
                assert!(pieces.units(piece).units().all(|lpa| pieces.of(lpa) == piece));
            }
            assert_eq!(next, Lpa(units));
            let whole = (28 + 4 * 8 + 4 * units as u64).div_ceil(geometry.page_bytes());
            let most = whole + whole / HEADER_SHARE + 1;
            assert!(pieces.pages_of_all() <= most, "{pieces:?}: {} for {whole}", pieces.pages_of_all());
            // Each piece has its share of the host's writes, some buffers' worth, unless it is the whole map.
            let between = every / pieces.count as u64;
            assert!(pieces.count == 1 || between + 1 >= BUFFERS_BETWEEN * buffer as u64, "{pieces:?}");
        }
    }

    #[test]
    fn a_piece_reads_back_and_another_does_not() {
        let (pieces, geometry) = divided(80_000, 1 << 30, 64);
        assert!(pieces.count > 2, "{pieces:?}");
        let last = pieces.count - 1;
        let moment = Moment { stamp: 1 << 40, sequence: 77, open: vec![BlockId(3), BlockId(399)] };
        for piece in [0, last] {
            let map: Vec<u32> = pieces.units(piece).units().map(|lpa| lpa.0 * 3).collect();
            let length = pieces.pages_of(piece) as u64 * geometry.page_bytes();
            let mut bytes = pieces.encode(&moment, map.iter().copied(), length as usize);
            assert_eq!(bytes.len() as u64, length);
            assert_eq!(pieces.decode(piece, &bytes), Some((moment.clone(), map)));
            assert_eq!(Pieces { logical_units: 80_001, ..pieces }.decode(piece, &bytes), None);
            // More open blocks than there can be.
            bytes[24] = 9;
            assert_eq!(pieces.decode(piece, &bytes), None);
            assert_eq!(pieces.decode(piece, &bytes[..40]), None);
        }
    }
}
