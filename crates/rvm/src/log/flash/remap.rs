//! Retires worn-out erase blocks: a flash device whose blocks are moved to spare ones when an erase fails.
//!
//! Nothing has to be copied: a block is retired while it is erased, when nothing in it is needed any more.
//!
//! 1. A spare takes the place of a block when the table that says so is committed, and after it has been erased. A power
//!    failure before leaves the block where it was, and its erase undone: the same as for a torn erase.
//! 2. A spare that cannot be erased is never tried again; one that wears out is replaced by another.
//! 3. The table is a [`MiniLog`], which cannot be remapped itself. It is written once for each retired block, and a block
//!    of it is erased once for some hundred of those at least.
//!
//! # Format, version 1
//!
//! | blocks | what |
//! |---|---|
//! | 0, 1, 2 | mini-log of the table, kind `remp` |
//! | then as many as the table says | the blocks of this device |
//! | then as many as the table says | spares |
//!
//! The table: blocks (4 B), spares (4 B), and for each spare 4 B: the block whose place it takes, 0xffffffff if it is free, or
//! 0xfffffffe if it is worn out. Integers are little-endian.

use super::mini_log::{MiniLog, Place};
use crate::flash::{Erased, Flash, Shape, by_block};
use crate::{Error, Result};
use std::io;

const KIND: [u8; 4] = *b"remp";
const TABLE: Place = Place { first: 0, data_blocks: 2 };
const FREE: u32 = u32::MAX;
const WORN_OUT: u32 = u32::MAX - 1;

/// A flash device whose worn-out blocks are replaced by spares.
#[derive(Debug)]
pub struct Remap<F> {
    flash: F,
    table: MiniLog,
    blocks: u32,
    /// Each spare: the block it stands for, [`FREE`], or [`WORN_OUT`].
    spares: Vec<u32>,
    /// Where each block is on the device below.
    places: Vec<u32>,
}

fn encode(blocks: u32, spares: &[u32]) -> Vec<u8> {
    [blocks, spares.len() as u32].iter().chain(spares).flat_map(|field| field.to_le_bytes()).collect()
}

impl<F: Flash> Remap<F> {
    /// Lays out a device with `spares` spare blocks; durable when it returns. What was on it is lost.
    pub fn create(mut flash: F, identity: u64, spares: u32) -> Result<Remap<F>> {
        let taken = u64::from(TABLE.blocks()) + u64::from(spares);
        let blocks = u64::from(flash.shape().blocks).saturating_sub(taken) as u32;
        if blocks == 0 {
            let why =
                format!("{} erase blocks: the table and {spares} spares take {taken}", flash.shape().blocks);
            return Err(Error::Invalid(why));
        }
        let spares = vec![FREE; spares as usize];
        let table = MiniLog::create(&mut flash, TABLE, KIND, identity, &encode(blocks, &spares))?;
        Ok(Remap::new(flash, table, blocks, spares))
    }

    /// Reads the table that [`Remap::create`] wrote.
    pub fn open(mut flash: F) -> Result<Remap<F>> {
        let table = MiniLog::open(&mut flash, TABLE, KIND)?;
        let fields: Vec<u32> =
            table.value().as_chunks().0.iter().map(|&field| u32::from_le_bytes(field)).collect();
        let on_device = flash.shape().blocks;
        match *fields.as_slice() {
            [blocks, count, ref spares @ ..]
                if spares.len() == count as usize
                    && u64::from(blocks) + u64::from(count) + u64::from(TABLE.blocks())
                        == u64::from(on_device)
                    && spares.iter().all(|&spare| spare < blocks || spare >= WORN_OUT) =>
            {
                let spares = spares.to_vec();
                Ok(Remap::new(flash, table, blocks, spares))
            }
            _ => {
                let why =
                    format!("the table of spare blocks {fields:?} fits no device of {on_device} blocks");
                Err(Error::Format { what: flash.name(), offset: 0, why })
            }
        }
    }

    fn new(flash: F, table: MiniLog, blocks: u32, spares: Vec<u32>) -> Remap<F> {
        let mut places: Vec<u32> = (0..blocks).map(|block| TABLE.blocks() + block).collect();
        for (spare, &block) in (TABLE.blocks() + blocks..).zip(&spares) {
            if block < blocks {
                places[block as usize] = spare;
            }
        }
        Remap { flash, table, blocks, spares, places }
    }

    /// What [`Remap::create`] was passed.
    pub fn identity(&self) -> u64 {
        self.table.identity()
    }

    /// Spares in use or worn out.
    pub fn spares_used(&self) -> u32 {
        self.spares.iter().filter(|&&block| block != FREE).count() as u32
    }

    /// Where a byte is on the device below.
    pub(super) fn device_offset(&self, offset: u64) -> u64 {
        let block_bytes = self.flash.shape().block_bytes;
        self.place((offset / block_bytes) as u32) + offset % block_bytes
    }

    /// Where a block begins on the device below.
    fn place(&self, block: u32) -> u64 {
        u64::from(self.places[block as usize]) * self.flash.shape().block_bytes
    }

    /// Moves a block to a spare. If there is none, it stays.
    fn retire(&mut self, block: u32) -> io::Result<Erased> {
        let mut spares = self.spares.clone();
        // A spare that stood for this block is worn out itself.
        spares.iter_mut().filter(|stands_for| **stands_for == block).for_each(|spare| *spare = WORN_OUT);
        let mut place = None;
        for (spare, stands_for) in (TABLE.blocks() + self.blocks..).zip(&mut spares) {
            if *stands_for != FREE {
                continue;
            }
            if self.flash.erase(spare)? == Erased::Clean {
                (*stands_for, place) = (block, Some(spare));
                break;
            }
            *stands_for = WORN_OUT;
        }
        let Some(place) = place else { return Ok(Erased::WornOut) };
        self.table.commit(&mut self.flash, &encode(self.blocks, &spares)).map_err(io::Error::other)?;
        self.places[block as usize] = place;
        self.spares = spares;
        Ok(Erased::Clean)
    }
}

impl<F: Flash> Flash for Remap<F> {
    fn name(&self) -> String {
        self.flash.name()
    }

    fn shape(&self) -> Shape {
        Shape { blocks: self.blocks, ..self.flash.shape() }
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.shape().check(offset, into.len())?;
        for (block, within, range) in by_block(self.shape().block_bytes, offset, into.len()) {
            self.flash.read(self.place(block as u32) + within, &mut into[range])?;
        }
        Ok(())
    }

    fn program(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.shape().check(offset, data.len())?;
        for (block, within, range) in by_block(self.shape().block_bytes, offset, data.len()) {
            self.flash.program(self.place(block as u32) + within, &data[range])?;
        }
        Ok(())
    }

    fn rewrite(&mut self) -> io::Result<bool> {
        self.flash.rewrite()
    }

    fn erase(&mut self, block: u32) -> io::Result<Erased> {
        self.shape().check_block(block)?;
        match self.flash.erase(self.places[block as usize])? {
            Erased::Clean => Ok(Erased::Clean),
            Erased::WornOut => self.retire(block),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::MemoryFlash;

    const SHAPE: Shape = Shape { block_bytes: 256, blocks: 3 + 4 + 3 };

    #[test]
    fn worn_out_blocks_move_to_spares_until_none_is_left_and_a_cut_moves_them_or_not() {
        for seed in 0..10 {
            for cut in 1.. {
                let device = MemoryFlash::new(SHAPE, seed);
                let mut flash = Remap::create(device.clone(), 5, 3).unwrap();
                assert_eq!(flash.shape().blocks, 4);
                flash.program(200, &[7; 600]).unwrap();
                // Block 1 is at 4, then at the third spare: the first two cannot be erased either.
                [4, 7, 8].into_iter().for_each(|block| device.wear_out(block));
                device.cut_at(device.operations() + cut);
                let ends = [flash.erase(1), flash.erase(1), flash.erase(1)];
                let is_cut = device.is_off();
                device.power_on();
                let mut again = Remap::open(device.clone()).unwrap();
                let mut others = [0; 56 + 288];
                again.read(200, &mut others[..56]).unwrap();
                again.read(512, &mut others[56..]).unwrap();
                assert_eq!(others, [7; 344], "cut {cut} seed {seed}");
                if is_cut {
                    let _ = again.erase(1).unwrap();
                    again.program(256, &[3; 256]).unwrap();
                    continue;
                }
                let ends = ends.map(|end| end.unwrap());
                assert_eq!(ends, [Erased::Clean; 3]);
                assert_eq!((again.spares_used(), again.device_offset(300)), (3, 9 * 256 + 44));
                device.wear_out(9);
                assert_eq!(again.erase(1).unwrap(), Erased::WornOut);
                assert!(cut > 8, "{cut} operations");
                break;
            }
        }
    }
}
