//! What a power cut does to an array: operations that had not begun never happened, those in progress are torn.

use super::{Damage, Erasing, Nand, Payload, SPARE_BYTES, Undo, Unsettled};
use crate::flash::programmed::Pages;
use crate::{PowerCut, Store};
use nvlab_units::{BlockId, Ppa, Time};

impl<S: Store> Nand<S> {
    /// Unprogrammed pages of a block.
    pub(super) fn skipped_pages(&self, block: BlockId) -> u32 {
        let pages = self.modes.pages_per_block(block, self.geometry());
        pages.saturating_sub(self.programmed.count(block))
    }
}

impl<S: Store> PowerCut for Nand<S> {
    fn settle(&mut self, upto: Time) {
        while let Some(oldest) = self.unsettled.front() {
            if !self.cells.die(oldest.die).is_done(oldest.to, upto) {
                break;
            }
            if let Some(Unsettled { undo: Undo::Erase { .. }, .. }) = self.unsettled.pop_front()
                && let Some(Erasing { block, overwritten }) = self.erasing.pop_front()
            {
                self.discard_erased(block, &overwritten);
            }
        }
    }

    fn cut(&mut self, at: Time) {
        // Lanes are advanced to `latest` (a request waits for the controller and its transfer); what one
        // die did by then must not be undone on another.
        let at = at.max(self.latest);
        self.superseded.clear();
        let (mut undone, mut erased) = (Vec::new(), Vec::new());
        while let Some(Unsettled { die, from, to, undo }) = self.unsettled.pop_back() {
            let progress = self.cells.die(die).progress(at);
            if to <= progress {
                if let Undo::Erase { block, .. } = undo {
                    self.erasing.pop_back();
                    erased.push(block);
                }
                continue;
            }
            let begun = from < progress;
            match undo {
                Undo::Program { block, page } if begun => self.tear_program(block, page),
                Undo::Program { block, page } => {
                    let number = block.0 * self.geometry().pages_per_block + page;
                    self.damaged.retain(|&(damaged, _)| damaged != number);
                    self.programmed.unset(block, page);
                    undone.push((block, page));
                }
                Undo::Erase { block, slc, pages, damage } if begun => {
                    self.modes.set(block, slc);
                    // Pages that were unreadable stay unreadable.
                    self.damaged.extend(damage);
                    self.tear_erase(block, &pages);
                }
                Undo::Erase { block, slc, pages, damage } => {
                    self.modes.set(block, slc);
                    self.restore(block, &pages);
                    self.damaged.extend(damage);
                    let skipped = self.skipped_pages(block);
                    match slc {
                        true => self.cells.unerase_slc(block, skipped),
                        false => self.cells.unerase(block, skipped),
                    }
                }
            }
        }
        self.cells.reset_lanes(at);
        self.record_all();
        // Only now: after an earlier kill, everything queued counts as done.
        for (block, page) in undone {
            if !self.is_programmed(block, page) {
                self.discard_pages(block, page, page + 1);
            }
        }
        erased.into_iter().for_each(|block| self.discard_unprogrammed(block));
        self.discard_damaged();
    }
}

impl<S: Store> Nand<S> {
    /// Undoes the newest erase.
    fn restore(&mut self, block: BlockId, pages: &Pages) {
        let erasing = self.erasing.pop_back().expect("an entry for each unsettled erase");
        assert_eq!(erasing.block, block, "the newest erase");
        for (page, held) in &erasing.overwritten {
            let (first, data_bytes, _) = self.page_place(block, *page);
            let (data, spare) = held.split_at(data_bytes);
            self.store.write(self.offset_of(first), data);
            self.store.write(self.spare_offset(first), spare);
            self.doubt_page(block, *page);
        }
        self.programmed.put_back(block, pages);
    }

    /// Tears a program in progress: by seed, the page is unreadable, garbled, or was just completed.
    fn tear_program(&mut self, block: BlockId, page: u32) {
        let draw = self.cells.random();
        match draw % 4 {
            0 => {}
            1 => {
                let units = self.modes.units_per_page(block, self.geometry()) as usize;
                let mut data = vec![0xff; units * self.geometry().unit_bytes as usize];
                let mut spare = vec![0xff; units * SPARE_BYTES];
                let first = self.geometry().first_unit(block).0 + page * self.geometry().units_per_page;
                let first = Ppa(first);
                self.store.read(self.offset_of(first), &mut data);
                self.store.read(self.spare_offset(first), &mut spare);
                // From a random byte of payload and spare on, some cells are still at 1: not yet programmed.
                let reached = (draw >> 8) as usize % (data.len() + spare.len());
                for (i, byte) in data.iter_mut().chain(&mut spare).enumerate() {
                    if i >= reached {
                        *byte |= self.cells.random() as u8;
                    }
                }
                // The payload of a failed program was discarded.
                if !self.is_damaged(block, page) {
                    self.put(block, page, Payload::new(&data, &spare));
                }
            }
            _ => self.damage(block, page, Damage::Torn),
        }
    }

    /// Tears an erase in progress: by seed, each page still reads as before or is unreadable; the block must
    /// be erased again.
    fn tear_erase(&mut self, block: BlockId, pages: &Pages) {
        self.restore(block, pages);
        for page in 0..self.geometry().pages_per_block {
            if !self.is_programmed(block, page) || !self.cells.random().is_multiple_of(3) {
                self.damage(block, page, Damage::HalfErased);
            }
        }
        self.programmed.set(block, 0, self.geometry().pages_per_block);
    }
}
