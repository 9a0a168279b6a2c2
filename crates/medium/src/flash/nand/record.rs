//! The state of pages and blocks besides their payload: kept in the store, so that a process that exits
//! between two calls, or is killed during one, leaves an array that can be reopened ([`Nand::reopen`]).
//!
//! Layout, after the spare areas, from the next multiple of 8 on: 8 bytes per block: erases u32, flags u32 (1 bad,
//! 2 used with one bit per cell), little-endian; then a byte per page (0 erased, 1 programmed, 2 torn, 3 half
//! erased).
//!
//! A record is written after what it describes: a page counts as programmed only once its payload is stored. An erase
//! first clears the records of the block's pages; if only some are cleared, the block is as after a torn erase
//! whose remaining pages are all readable.

use super::{Damage, Nand, SlcMode};
use crate::Store;
use crate::flash::FlashConfig;
use nvlab_units::{BlockId, Geometry};

const ERASED: u8 = 0;
const PROGRAMMED: u8 = 1;
const TORN: u8 = 2;
const HALF_ERASED: u8 = 3;

const BLOCK_BYTES: u64 = 8;
/// Sanity limit: a record with a larger count is damaged.
const ERASES_MAX: u32 = 1 << 31;
const BAD: u32 = 1;
const SLC: u32 = 2;
/// Shift of the SLC erase count above the flags.
const SLC_ERASES_SHIFT: u32 = 2;
const SLC_ERASES_MAX: u32 = (1 << 30) - 1;

/// Offset of the first record.
fn start(geometry: &Geometry) -> u64 {
    let spares_end = geometry.units() * (geometry.unit_bytes as u64 + super::SPARE_BYTES as u64);
    spares_end.next_multiple_of(BLOCK_BYTES)
}

/// Offset after the last record.
pub(super) fn end(geometry: &Geometry) -> u64 {
    start(geometry) + geometry.blocks() as u64 * (BLOCK_BYTES + geometry.pages_per_block as u64)
}

fn state(damage: Option<Damage>) -> u8 {
    match damage {
        None => PROGRAMMED,
        Some(Damage::Torn) => TORN,
        Some(Damage::HalfErased) => HALF_ERASED,
    }
}

impl<S: Store> Nand<S> {
    /// Reopens an array as an earlier process left it in `store`. Everything queued then counts as done. `slc`: the
    /// SLC mode, as for [`Nand::with_slc_mode`].
    pub fn reopen(config: FlashConfig, store: S, slc: Option<SlcMode>) -> Nand<S> {
        assert!(S::KEEPS, "an array that keeps nothing cannot be found again");
        let mut nand = Nand::new_over(config, store);
        if let Some(mode) = slc {
            nand = nand.with_slc_mode(mode);
        }
        let geometry = *nand.geometry();
        let mut erases = vec![0; geometry.blocks() as usize];
        let mut pages = vec![0; geometry.pages_per_block as usize];
        for block in (0..geometry.blocks()).map(BlockId) {
            let mut record = [0; BLOCK_BYTES as usize];
            nand.store.read(nand.block_record(block), &mut record);
            let [count, flags] =
                [0, 4].map(|i| u32::from_le_bytes(record[i..i + 4].try_into().expect("4 B")));
            erases[block.0 as usize] = count.min(ERASES_MAX);
            if flags & BAD != 0 {
                nand.cells.mark_bad(block);
            }
            if slc.is_some() {
                let of_slc = (flags >> SLC_ERASES_SHIFT).min(erases[block.0 as usize]);
                nand.cells.set_slc_erase_count(block, of_slc);
            }
            let mode = slc.filter(|_| flags & SLC != 0);
            nand.modes.set(block, mode.is_some());
            nand.store.read(nand.page_record(block, 0), &mut pages);
            let pages = &pages[..mode.map_or(pages.len(), |mode| mode.pages_per_block as usize)];
            for (page, &state) in (0..).zip(pages).filter(|(_, state)| **state != ERASED) {
                nand.programmed.set(block, page, 1);
                match state {
                    TORN => nand.damage(block, page, Damage::Torn),
                    HALF_ERASED => nand.damage(block, page, Damage::HalfErased),
                    _ => {}
                }
            }
        }
        nand.cells.set_erase_counts(&erases);
        // Discards payload of interrupted programs, and of blocks whose erase counts as done.
        (0..geometry.blocks()).map(BlockId).for_each(|block| nand.discard_unprogrammed(block));
        nand.discard_damaged();
        nand
    }

    fn block_record(&self, block: BlockId) -> u64 {
        start(self.geometry()) + block.0 as u64 * BLOCK_BYTES
    }

    fn page_record(&self, block: BlockId, page: u32) -> u64 {
        let geometry = self.geometry();
        let number = block.0 as u64 * geometry.pages_per_block as u64 + page as u64;
        start(geometry) + geometry.blocks() as u64 * BLOCK_BYTES + number
    }

    /// Records the state of a programmed page.
    pub(super) fn record_page(&mut self, block: BlockId, page: u32, damage: Option<Damage>) {
        if S::KEEPS {
            self.store.write(self.page_record(block, page), &[state(damage)]);
        }
    }

    /// Records that no page of a block is programmed.
    pub(super) fn record_erased(&mut self, block: BlockId) {
        const ZEROS: [u8; 64] = [ERASED; 64];
        if S::KEEPS {
            let pages = self.geometry().pages_per_block;
            for page in (0..pages).step_by(ZEROS.len()) {
                let count = (pages - page).min(ZEROS.len() as u32);
                self.store.write(self.page_record(block, page), &ZEROS[..count as usize]);
            }
        }
    }

    /// Records the erase count, the mode and the bad mark of a block.
    pub(super) fn record_block(&mut self, block: BlockId) {
        if S::KEEPS {
            let bad = if self.cells.is_bad(block) { BAD } else { 0 };
            let slc = if self.modes.is_slc(block) { SLC } else { 0 };
            let slc_erases = self.cells.slc_erase_count(block).min(SLC_ERASES_MAX) << SLC_ERASES_SHIFT;
            let record = self.cells.erase_count(block) as u64 | ((bad | slc | slc_erases) as u64) << 32;
            self.store.write(self.block_record(block), &record.to_le_bytes());
        }
    }

    /// Records everything, after a power cut.
    pub(super) fn record_all(&mut self) {
        let geometry = *self.geometry();
        for block in (0..geometry.blocks()).map(BlockId) {
            self.record_block(block);
            self.record_erased(block);
            for page in 0..self.pages_written(block) {
                if self.is_programmed(block, page) {
                    self.record_page(block, page, None);
                }
            }
        }
        for i in 0..self.damaged.len() {
            let (number, damage) = self.damaged[i];
            let (block, page) = (number / geometry.pages_per_block, number % geometry.pages_per_block);
            // Damage of a page that the cut left erased is dropped.
            if self.is_programmed(BlockId(block), page) {
                self.record_page(BlockId(block), page, Some(damage));
            }
        }
    }
}

impl Nand {
    /// The same array with a fresh store, to which its state is recorded. Programmed units and their spare areas read
    /// as zeros until they are inscribed ([`Nand::inscribe`]).
    pub fn with_store<S: Store>(self, store: S) -> Nand<S> {
        let Nand { cells, store: (), programmed, modes, slots, is_plain, damaged, latest, .. } = self;
        let (unsettled, erasing, superseded, doubtful) = Default::default();
        let mut nand = Nand {
            cells,
            store,
            programmed,
            modes,
            slots,
            is_plain,
            unsettled,
            erasing,
            damaged,
            superseded,
            doubtful,
            latest,
        };
        nand.record_all();
        nand
    }
}
