//! The bytes of a NOR array, and what a failed or interrupted operation leaves of them.

use super::{Nor, Unsettled};
use crate::banks::pieces;
use crate::{MediumError, Store};
use nvlab_units::{BlockId, Die, Ticket};

impl<S: Store> Nor<S> {
    /// Copies bytes out without spending time.
    pub fn peek(&self, offset: u64, into: &mut [u8]) {
        self.store.read(offset, into);
        invert(into);
    }

    pub(super) fn range_of(&self, block: BlockId) -> (u64, u64) {
        let bytes = self.geometry().block_bytes();
        (block.0 as u64 * bytes, bytes)
    }

    pub(super) fn bytes_at(&self, offset: u64, bytes: u64) -> Box<[u8]> {
        let mut held = vec![0; bytes as usize].into_boxed_slice();
        self.peek(offset, &mut held);
        held
    }

    /// Stores bytes (inverted), so that they read as `data`.
    pub(super) fn put(&mut self, offset: u64, data: &[u8]) {
        let mut inverted = [0; 256];
        for (chunk, at) in data.chunks(inverted.len()).zip((offset..).step_by(inverted.len())) {
            let part = &mut inverted[..chunk.len()];
            part.copy_from_slice(chunk);
            invert(part);
            self.store.write(at, part);
        }
    }

    pub(super) fn fill_erased(&mut self, offset: u64, bytes: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        for (at, count) in pieces(offset, bytes, ZEROS.len() as u64) {
            self.store.write(at, &ZEROS[..count as usize]);
        }
    }

    /// Rejects bytes that would set a bit.
    pub(super) fn check_bits(&self, offset: u64, data: &[u8]) -> Result<(), MediumError> {
        let mut held = [0; 256];
        for (chunk, at) in data.chunks(held.len()).zip((offset..).step_by(held.len())) {
            let held = &mut held[..chunk.len()];
            self.peek(at, held);
            // 0xFF leaves a byte unchanged: it is sent to the chips that are not addressed.
            let sets = |(new, old): (&u8, &u8)| *new != 0xFF && new & !old != 0;
            if let Some(i) = chunk.iter().zip(held.iter()).position(sets) {
                return Err(MediumError::BitsSet { offset: at + i as u64, value: chunk[i], held: held[i] });
            }
        }
        Ok(())
    }

    /// Applies a program to the stored bytes; a cut undoes it unless the die has reached `to`.
    pub(super) fn clear_bits(
        &mut self,
        (die, from, to): (Die, Ticket, Ticket),
        offset: u64,
        new: &[u8],
        fails: bool,
    ) {
        let old = self.bytes_at(offset, new.len() as u64);
        let target: Box<[u8]> = old.iter().zip(new).map(|(old, new)| old & new).collect();
        self.put(offset, &target);
        if fails {
            self.half_program(offset, &old, &target);
        }
        self.unsettled.push_back(Unsettled { die, from, to, offset, old, erase: None });
    }

    /// Clears some (by seed) of the bits that programming from `old` to `new` clears.
    pub(super) fn half_program(&mut self, offset: u64, old: &[u8], new: &[u8]) {
        let mut half = |(old, new): (&u8, &u8)| old & !(old & !new & self.cells.random() as u8);
        let reached: Box<[u8]> = old.iter().zip(new).map(&mut half).collect();
        self.put(offset, &reached);
    }

    /// Leaves a block, by seed, cleared up to some byte (a part clears before it sets), with some bits already set,
    /// with most bits set, or looking erased.
    pub(super) fn half_erase(&mut self, block: BlockId, old: &[u8]) {
        let (kind, reached) = (self.cells.random() % 4, self.cells.random() as usize % old.len());
        let mut byte = |(i, old): (usize, &u8)| match kind {
            0 if i < reached => 0,
            0 => *old,
            1 => old | self.cells.random() as u8,
            2 => !(self.cells.random() & self.cells.random() & self.cells.random()) as u8,
            _ => 0xFF,
        };
        let left: Box<[u8]> = old.iter().enumerate().map(&mut byte).collect();
        self.put(self.range_of(block).0, &left);
        self.half_erased.insert(block);
    }
}

fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}
