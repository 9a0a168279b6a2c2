//! Flash in memory: a model for tests of code that must survive power failures on flash.
//!
//! A clone is another handle of the same device, so that a test keeps the device when it drops the log on it.
//!
//! 1. A program that would set a bit is refused, and nothing changes.
//! 2. Programs and erases are counted from 1. The one that [`MemoryFlash::cut_at`] names is torn, and every call from
//!    then on fails until [`MemoryFlash::power_on`].
//! 3. A torn program has cleared a subset of the bits it was to clear: none, all, those of the first bytes, or any. A
//!    torn erase leaves the block as it was, erased in part, erased, or anything.
//! 4. What is torn, and what an erase of a worn-out block leaves, depends on the seed and the number of the operation
//!    alone.

use super::{Erased, Flash, Shape, check_clears};
use crate::draws::Draws;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How worn one erase block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Bytes programmed, those of torn programs included.
    pub bytes_programmed: u64,
    /// Erases begun, torn and failed ones included.
    pub erases: u64,
}

#[derive(Debug)]
struct State {
    cells: Vec<u8>,
    wear: Vec<Wear>,
    worn_out: BTreeSet<u32>,
    seed: u64,
    operations: u64,
    cut_at: Option<u64>,
    is_off: bool,
}

/// A flash device in memory, whose power can be cut and whose blocks can be worn out. Clones are the same device.
#[derive(Clone, Debug)]
pub struct MemoryFlash {
    shape: Shape,
    state: Arc<Mutex<State>>,
}

impl MemoryFlash {
    /// All bits set; `seed` decides what torn operations leave.
    pub fn new(shape: Shape, seed: u64) -> MemoryFlash {
        let state = State {
            cells: vec![0xff; shape.bytes() as usize],
            wear: vec![Wear::default(); shape.blocks as usize],
            worn_out: BTreeSet::new(),
            seed,
            operations: 0,
            cut_at: None,
            is_off: false,
        };
        MemoryFlash { shape, state: Arc::new(Mutex::new(state)) }
    }

    /// An independent device with the same contents, wear and planned cut.
    pub fn copy(&self) -> MemoryFlash {
        let State { cells, wear, worn_out, seed, operations, cut_at, is_off } = &*self.state();
        let state = State {
            cells: cells.clone(),
            wear: wear.clone(),
            worn_out: worn_out.clone(),
            seed: *seed,
            operations: *operations,
            cut_at: *cut_at,
            is_off: *is_off,
        };
        MemoryFlash { shape: self.shape, state: Arc::new(Mutex::new(state)) }
    }

    /// Programs and erases begun since the device was made.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Cuts the power during the operation with this number, counted from the first of the device.
    pub fn cut_at(&self, operation: u64) {
        self.state().cut_at = Some(operation);
    }

    /// Whether the planned cut has happened: every operation fails.
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// Ends a power cut; none is planned any more.
    pub fn power_on(&self) {
        let mut state = self.state();
        (state.is_off, state.cut_at) = (false, None);
    }

    /// Makes every further erase of a block fail.
    pub fn wear_out(&self, block: u32) {
        self.state().worn_out.insert(block);
    }

    /// Flips bits, as damage does: those that are set in `mask`.
    pub fn damage(&self, offset: u64, mask: u8) {
        self.state().cells[offset as usize] ^= mask;
    }

    /// By block, since the device was made.
    pub fn wear(&self) -> Vec<Wear> {
        self.state().wear.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn power_is_off() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the power is off")
}

impl State {
    fn check_power(&self) -> io::Result<()> {
        if self.is_off { Err(power_is_off()) } else { Ok(()) }
    }

    /// Counts an operation. If the power is cut during it, returns what its tearing is drawn from.
    fn begin(&mut self) -> Option<Draws> {
        self.operations += 1;
        self.is_off = self.cut_at == Some(self.operations);
        self.is_off.then(|| self.draws())
    }

    fn draws(&self) -> Draws {
        Draws::new(self.seed, self.operations)
    }
}

impl Flash for MemoryFlash {
    fn name(&self) -> String {
        "flash in memory".into()
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.shape.check(offset, into.len())?;
        let state = self.state();
        state.check_power()?;
        into.copy_from_slice(&state.cells[offset as usize..][..into.len()]);
        Ok(())
    }

    fn program(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.shape.check(offset, data.len())?;
        let mut state = self.state();
        state.check_power()?;
        check_clears(&state.cells[offset as usize..][..data.len()], data, offset)?;
        for (at, _) in (offset..).zip(data) {
            state.wear[(at / self.shape.block_bytes) as usize].bytes_programmed += 1;
        }
        let torn = state.begin();
        let cells = &mut state.cells[offset as usize..][..data.len()];
        match torn {
            None => cells.copy_from_slice(data),
            Some(mut draws) => {
                tear_program(&mut draws, cells, data);
                return Err(power_is_off());
            }
        }
        Ok(())
    }

    fn erase(&mut self, block: u32) -> io::Result<Erased> {
        let offset = self.shape.check_block(block)? as usize;
        let mut state = self.state();
        state.check_power()?;
        state.wear[block as usize].erases += 1;
        let (torn, mut draws) = (state.begin().is_some(), state.draws());
        let is_worn_out = state.worn_out.contains(&block);
        let cells = &mut state.cells[offset..][..self.shape.block_bytes as usize];
        if torn || is_worn_out {
            tear_erase(&mut draws, cells);
        } else {
            cells.fill(0xff);
        }
        match (torn, is_worn_out) {
            (true, _) => Err(power_is_off()),
            (false, true) => Ok(Erased::WornOut),
            (false, false) => Ok(Erased::Clean),
        }
    }
}

/// Clears a subset of the bits that are to be cleared.
fn tear_program(draws: &mut Draws, cells: &mut [u8], data: &[u8]) {
    let (how, prefix) = (draws.next() % 4, draws.next() as usize % (data.len() + 1));
    for (at, (cell, &new)) in cells.iter_mut().zip(data).enumerate() {
        *cell &= match how {
            0 => 0xff,
            1 => new,
            2 if at < prefix => new,
            2 => 0xff,
            _ => new | draws.next() as u8,
        };
    }
}

/// Leaves any bits in the block.
fn tear_erase(draws: &mut Draws, cells: &mut [u8]) {
    let (how, prefix) = (draws.next() % 6, draws.next() as usize % (cells.len() + 1));
    for (at, cell) in cells.iter_mut().enumerate() {
        match how {
            0 => {}
            1 => *cell = 0xff,
            2 if at < prefix => *cell = 0xff,
            2 => {}
            3 if at >= prefix => *cell = 0xff,
            3 => {}
            4 => *cell |= draws.next() as u8,
            _ => *cell = draws.next() as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { block_bytes: 64, blocks: 4 };

    fn read(flash: &mut MemoryFlash, offset: u64, bytes: usize) -> Vec<u8> {
        let mut into = vec![0; bytes];
        flash.read(offset, &mut into).unwrap();
        into
    }

    #[test]
    fn a_program_that_would_set_a_bit_changes_nothing() {
        let mut flash = MemoryFlash::new(SHAPE, 1);
        flash.program(10, &[0xf0, 0x0f]).unwrap();
        flash.program(10, &[0x30]).unwrap();
        let error = flash.program(9, &[0x00, 0x30, 0x1f]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "programming 0x1f over 0x0f at offset 11 would set bits");
        assert_eq!(read(&mut flash, 9, 3), [0xff, 0x30, 0x0f]);
        flash.program(250, &[0; 7]).unwrap_err();
        assert_eq!(flash.erase(0).unwrap(), Erased::Clean);
        assert_eq!(read(&mut flash, 9, 3), [0xff; 3]);
        assert_eq!(flash.wear()[0], Wear { bytes_programmed: 3, erases: 1 });
        assert_eq!(flash.operations(), 3);
    }

    #[test]
    fn a_torn_program_clears_only_bits_that_it_was_to_clear() {
        let mut outcomes = BTreeSet::new();
        for seed in 0..200 {
            let mut flash = MemoryFlash::new(SHAPE, seed);
            flash.program(0, &[0xf3; 8]).unwrap();
            flash.cut_at(2);
            flash.program(0, &[0x51; 8]).unwrap_err();
            assert!(flash.is_off() && flash.program(20, &[0]).is_err() && flash.erase(1).is_err());
            flash.power_on();
            let torn = read(&mut flash, 0, 8);
            assert!(torn.iter().all(|byte| byte & !0xf3 == 0 && byte & 0x51 == 0x51), "{torn:x?}");
            assert_eq!(read(&mut flash, 8, 56), [0xff; 56]);
            outcomes.insert(torn);
        }
        assert!(outcomes.contains(&vec![0xf3; 8]) && outcomes.contains(&vec![0x51; 8]));
        assert!(outcomes.len() > 40, "{}", outcomes.len());
    }

    #[test]
    fn a_torn_or_failed_erase_leaves_anything_in_its_block_alone() {
        let mut outcomes = BTreeSet::new();
        for seed in 0..100 {
            let mut flash = MemoryFlash::new(SHAPE, seed);
            flash.program(0, &[0; 256]).unwrap();
            flash.wear_out(2);
            assert_eq!(flash.erase(2).unwrap(), Erased::WornOut);
            flash.cut_at(3);
            flash.erase(1).unwrap_err();
            flash.power_on();
            outcomes.insert(read(&mut flash, 64, 64));
            outcomes.insert(read(&mut flash, 128, 64));
            assert_eq!((read(&mut flash, 0, 64), read(&mut flash, 192, 64)), (vec![0; 64], vec![0; 64]));
        }
        assert!(outcomes.contains(&vec![0; 64]) && outcomes.contains(&vec![0xff; 64]));
        assert!(outcomes.len() > 40, "{}", outcomes.len());
    }
}
