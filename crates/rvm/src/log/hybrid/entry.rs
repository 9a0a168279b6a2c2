//! The entries of the small log of a hybrid; their format is that of [`super`].

use crate::Status;
use crate::checksum::crc32c;

/// Bytes of an entry without the data that may follow it.
pub const HEADER: usize = 24;
/// Bytes of an entry that its checksum covers.
const CHECKED: usize = 20;
const LARGE: u32 = 1;
const GOES_ON: u32 = 2;

/// An append that the small log knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub position: u64,
    pub bytes: u32,
    /// Whether its bytes are on the store.
    pub is_large: bool,
    /// Whether the append goes on with the next entry.
    pub goes_on: bool,
    pub crc: u32,
}

impl Entry {
    pub fn end(&self) -> u64 {
        self.position + u64::from(self.bytes)
    }

    /// The header of the entry, at a position of the small log.
    pub fn encode(&self, status: Status, at: u64) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&self.position.to_le_bytes());
        header[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        let flags = (u32::from(self.is_large) * LARGE) | (u32::from(self.goes_on) * GOES_ON);
        header[12..16].copy_from_slice(&flags.to_le_bytes());
        header[16..20].copy_from_slice(&self.crc.to_le_bytes());
        let crc = Self::header_crc(&header, status, at);
        header[CHECKED..].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// The entry, if this is one of this generation at this position of the small log.
    pub fn decode(header: &[u8; HEADER], status: Status, at: u64) -> Option<Entry> {
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let position = u64::from_le_bytes(header[..8].try_into().expect("8 bytes"));
        // The checksum last: entries are looked for at every byte.
        let flags = word(12);
        let is_valid = flags & !(LARGE | GOES_ON) == 0
            && word(8) > 0
            && word(CHECKED) == Self::header_crc(header, status, at);
        let (is_large, goes_on) = (flags & LARGE != 0, flags & GOES_ON != 0);
        let entry = Entry { position, bytes: word(8), is_large, goes_on, crc: word(16) };
        is_valid.then_some(entry)
    }

    fn header_crc(header: &[u8; HEADER], status: Status, at: u64) -> u32 {
        let Status { identity, generation, .. } = status;
        let seeds = [identity, generation, at].map(u64::to_le_bytes);
        crc32c(&[seeds.as_flattened(), &header[..CHECKED]])
    }
}
