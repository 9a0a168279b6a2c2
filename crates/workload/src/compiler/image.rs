//! The heap in memory, with the changes of a transaction listed.

use nvlab_rvm::heap::Words;
use std::collections::BTreeSet;

/// A heap image. It may stand for recoverable memory: [`Image::changes`] lists what a transaction changed.
#[derive(Clone, Debug)]
pub struct Image {
    bytes: Vec<u8>,
    /// Offsets of the words set since the last list.
    changed: BTreeSet<u64>,
}

impl Image {
    /// An image of zeros; a multiple of 8 bytes.
    pub fn new(bytes: usize) -> Image {
        Image { bytes: vec![0; bytes / 8 * 8], changed: BTreeSet::new() }
    }

    /// The whole heap.
    pub fn contents(&self) -> &[u8] {
        &self.bytes
    }

    /// Calls `see` with each run of bytes that was set since the last call, in order: its offset and its bytes now.
    pub fn changes(&mut self, mut see: impl FnMut(u64, &[u8])) {
        let mut words = std::mem::take(&mut self.changed).into_iter().peekable();
        while let Some(start) = words.next() {
            let mut end = start + 8;
            while words.next_if_eq(&end).is_some() {
                end += 8;
            }
            see(start, &self.bytes[start as usize..end as usize]);
        }
    }
}

impl Words for Image {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn get(&self, at: u64) -> u64 {
        let bytes = self.bytes[at as usize..].first_chunk();
        u64::from_le_bytes(*bytes.expect("a word of the image"))
    }

    fn set(&mut self, at: u64, word: u64) -> nvlab_rvm::Result<()> {
        self.bytes[at as usize..at as usize + 8].copy_from_slice(&word.to_le_bytes());
        self.changed.insert(at);
        Ok(())
    }
}
