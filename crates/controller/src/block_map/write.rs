//! Host writes: in place if the page is erased, otherwise to the log, or, without one, by a merge.

use super::merge::Failed;
use super::{BlockMap, Cause, DATA, IN_PLACE, Log, NOTHING};
use crate::ControllerError;
use crate::spare::{Kind, Spare};
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Extent, Lpa, Time};

/// A page being written by the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostPage<'a> {
    pub lpa: Lpa,
    pub lbn: u32,
    pub offset: u32,
    /// Pages of the same request behind it in its logical block.
    pub rest: u32,
    /// Empty if payload is not kept.
    pub data: &'a [u8],
}

impl<S: Store> BlockMap<S> {
    /// Writes pages; returns when the last is programmed.
    #[inline]
    pub(super) fn write_extent(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
    ) -> Result<Time, ControllerError> {
        let bytes = if S::KEEPS { self.areas[DATA].geometry.unit_bytes as usize } else { 0 };
        if S::KEEPS {
            assert_eq!(data.len(), extent.count as usize * bytes);
        }
        if self.config.log == Log::None {
            return self.write_blocks(at, extent, data, bytes);
        }
        let mut end = at;
        for (i, lpa) in extent.units().enumerate() {
            let (lbn, offset) = self.split(lpa);
            let rest = (extent.count - i as u32 - 1).min(self.pages - 1 - offset);
            let page = HostPage { lpa, lbn, offset, rest, data: &data[i * bytes..(i + 1) * bytes] };
            end = end.max(self.write_page(at, page)?);
        }
        Ok(end)
    }

    #[inline]
    fn write_page(&mut self, at: Time, page: HostPage<'_>) -> Result<Time, ControllerError> {
        self.fast.follow(page.lpa);
        loop {
            let written = match self.config.log {
                _ if self.is_erased(page) => self.write_in_place(at, page)?,
                Log::PerBlock { .. } => self.write_per_block(at, page)?,
                _ => self.write_shared(at, page)?,
            };
            // Otherwise a block failed or was merged: decide again where the page goes.
            if let Some(end) = written {
                return Ok(end);
            }
        }
    }

    /// True if the page's place in its data block is erased, or there is no data block.
    #[inline]
    pub(super) fn is_erased(&self, page: HostPage<'_>) -> bool {
        match self.data[page.lbn as usize] {
            NOTHING => true,
            block => !self.areas[DATA].nand.is_programmed(BlockId(block), page.offset),
        }
    }

    fn write_in_place(&mut self, at: Time, page: HostPage<'_>) -> Result<Option<Time>, ControllerError> {
        let mut block = self.data[page.lbn as usize];
        if block == NOTHING {
            let home = self.home(page.lbn);
            // The last erased block is reserved for merges.
            if self.areas[DATA].free_blocks(home) < 2 {
                return Err(self.areas[DATA].end_of_life(home));
            }
            block = self.areas[DATA].take(home)?;
            self.data[page.lbn as usize] = block;
            self.unmapped[home.index()] -= 1;
        }
        if !self.areas[DATA].is_bad(block)
            && let Ok(end) = self.program_host(at, DATA, block, page.offset, page)
        {
            self.place[page.lpa.index()] = IN_PLACE;
            self.stats.in_place_units += 1;
            return Ok(Some(end));
        }
        self.evacuate(at, page.lbn)?;
        Ok(None)
    }

    /// Moves all pages of a logical block with a bad block to a newly taken block.
    pub(super) fn evacuate(&mut self, at: Time, lbn: u32) -> Result<(), ControllerError> {
        self.merge_into(at, lbn, None, Cause::Retire)?;
        self.drop_logs_of(at, lbn, Cause::Retire);
        Ok(())
    }

    /// Programs a host page and promises its end. If it fails, the block is bad.
    #[inline]
    pub(super) fn program_host(
        &mut self,
        at: Time,
        area: usize,
        block: u32,
        index: u32,
        page: HostPage<'_>,
    ) -> Result<Time, Failed> {
        let (lpa, sequence, stamp) = (page.lpa, self.sequence, self.stamp);
        let spare = Spare { kind: Kind::Data, damaged: false, lpa, sequence, stamp };
        let encoded;
        let payload = if S::KEEPS {
            encoded = spare.encode(page.data);
            self.stamp += 1;
            Payload::new(page.data, &encoded)
        } else {
            Payload::default()
        };
        self.sequence += 1;
        self.counts(area).at(Cause::Host).programs += 1;
        let die = self.areas[area].die_of(block);
        match self.areas[area].nand.program(at, BlockId(block), index, 1, payload, true) {
            Ok(ticket) => {
                let end = self.areas[area].nand.finish(die, ticket, at);
                self.promised = self.promised.max(end);
                Ok(end)
            }
            Err(MediumError::ProgramFailed(_)) => {
                self.mark_bad(area, block);
                Err(Failed)
            }
            Err(other) => panic!("page {} broke a rule of the medium: {other}", page.lpa),
        }
    }

    /// Writes without a log: pages of one logical block in place, or together by one merge.
    fn write_blocks(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
        bytes: usize,
    ) -> Result<Time, ControllerError> {
        let (mut done, mut end) = (0, at);
        while done < extent.count {
            let (lbn, offset) = self.split(extent.start + done);
            let count = (self.pages - offset).min(extent.count - done);
            let part = Extent { start: extent.start + done, count };
            let data = &data[done as usize * bytes..(done + count) as usize * bytes];
            let page = |i: u32| HostPage {
                lpa: part.start + i,
                lbn,
                offset: offset + i,
                rest: count - i - 1,
                data: &data[i as usize * bytes..(i as usize + 1) * bytes],
            };
            if (0..count).all(|i| self.is_erased(page(i))) {
                for i in 0..count {
                    end = end.max(self.write_page(at, page(i))?);
                }
            } else {
                end = end.max(self.write_by_merge(at, lbn, count, page)?);
            }
            done += count;
        }
        Ok(end)
    }

    /// Writes new pages and copies the newest of the others to a newly taken block.
    fn write_by_merge<'a>(
        &mut self,
        at: Time,
        lbn: u32,
        count: u32,
        page: impl Fn(u32) -> HostPage<'a>,
    ) -> Result<Time, ControllerError> {
        let home = self.home(lbn);
        let mut end = at;
        let target = 'fresh: loop {
            // The last erased block is reserved for a recovery that finds the target torn.
            if self.areas[DATA].free_blocks(home) < 2 {
                return Err(self.areas[DATA].end_of_life(home));
            }
            let target = self.areas[DATA].take(home)?;
            for page in (0..count).map(&page) {
                match self.program_host(at, DATA, target, page.offset, page) {
                    Ok(programmed) => end = end.max(programmed),
                    Err(Failed) => continue 'fresh,
                }
            }
            break target;
        };
        // Only now: until all are programmed, the old pages are the newest.
        for page in (0..count).map(&page) {
            self.place[page.lpa.index()] = self.areas[DATA].first_page(target) + page.offset;
        }
        self.merge_into(at, lbn, Some(target), Cause::Full)?;
        self.stats.full_merges += 1;
        Ok(end)
    }

    /// Erases the blocks of a logical block without mapped pages.
    pub(super) fn drop_if_empty(&mut self, at: Time, lbn: u32) {
        if self.place[self.pages_of(lbn)].iter().any(|&place| place != NOTHING) {
            return;
        }
        self.drop_logs_of(at, lbn, Cause::Trim);
        let block = std::mem::replace(&mut self.data[lbn as usize], NOTHING);
        if block != NOTHING {
            let home = self.home(lbn).index();
            self.unmapped[home] += 1;
            self.release(at, DATA, block, Cause::Trim);
        }
    }

    /// Erases the log blocks of a logical block, which are no longer needed.
    pub(super) fn drop_logs_of(&mut self, at: Time, lbn: u32, cause: Cause) {
        if let Some(block) = self.fast.take_sequential_of(lbn) {
            self.release(at, DATA, block, cause);
        }
        if let Some(block) = self.bast.take(lbn, self.home(lbn)) {
            self.release(at, DATA, block, cause);
        }
    }
}
