//! Recovery after a power cut, from the spare areas alone.
//!
//! 1. Every programmed page is read. The readable copy with the highest sequence number is the newest.
//! 2. The last page of a merge is marked. Pages programmed before it that are elsewhere are old or were trimmed.
//!    A block of the data array whose pages are all at their own offsets of one logical block may be its
//!    data block. Among several (a merge was cut), the data block is one that holds everything not in a log
//!    block, or else the oldest; the others are kept only for pages that are nowhere else.
//! 3. Blocks without a newest page are erased, further blocks of a logical block are merged with its data block, and
//!    shared log blocks are adopted as full, in the order they were begun.
//!
//! Recovery erases nothing that is needed before its copies are done, so it may itself be cut at any operation.

use super::{BlockMap, BlockMapConfig, Cause, DATA, IN_PLACE, Log, NOTHING};
use crate::spare::{self, Kind, Spare};
use crate::{ControllerError, RecoveryReport};
use nvlab_medium::flash::Nand;
use nvlab_medium::{PowerCut, Store};
use nvlab_units::{BlockId, Lpa, Ppa, Time};

/// What a power cut leaves of a controller: its arrays.
#[derive(Clone, Debug)]
pub struct BlockMapMedia<S: Store> {
    nands: Vec<Nand<S>>,
}

/// A good page.
#[derive(Clone, Copy, Debug)]
struct Found {
    address: u32,
    lpa: Lpa,
    sequence: u64,
    stamp: u64,
}

/// A block with good pages.
#[derive(Clone, Debug)]
struct Scanned {
    area: usize,
    block: u32,
    /// The stamp of its first good page: when it was begun.
    begun: u64,
    /// The stamp of the last page of the merge that filled it, if one was completed.
    merged: Option<u64>,
    found: Vec<Found>,
    /// The logical block whose data block it may be.
    fits: Option<u32>,
}

impl<S: Store> BlockMapMedia<S> {
    /// Arrays that an earlier process left behind ([`Nand::reopen`]): the data array, and the log's if it has its own.
    pub fn new(data: Nand<S>, log: Option<Nand<S>>) -> BlockMapMedia<S> {
        BlockMapMedia { nands: [Some(data), log].into_iter().flatten().collect() }
    }
}

impl<S: Store> BlockMap<S> {
    /// Cuts the power at `at`. What is left can be recovered.
    pub fn power_cut(mut self, at: Time) -> BlockMapMedia<S> {
        // One power supply: both arrays are cut at the latest time passed to either.
        let at = self.areas.iter().fold(at, |at, area| at.max(area.nand.latest()));
        self.areas.iter_mut().for_each(|area| area.nand.cut(at));
        BlockMapMedia { nands: self.areas.into_iter().map(|area| area.nand).collect() }
    }

    /// Rebuilds the controller from its media, beginning at `at`; or returns why that is impossible.
    pub fn recover(
        config: BlockMapConfig,
        media: BlockMapMedia<S>,
        at: Time,
    ) -> Result<(BlockMap<S>, RecoveryReport), String> {
        assert!(S::KEEPS, "recovery reads payload");
        let mut map = BlockMap::empty(config, media.nands)?;
        let before = map.data().stats().reads;
        let (mut scanned, now) = map.scan(at);
        let found = scanned.iter().flat_map(|block| &block.found);
        map.sequence = found.map(|found| found.sequence + 1).fold(map.sequence, u64::max);
        map.drop_merged(&mut scanned);
        let mut newest = vec![0; map.place.len()];
        for found in scanned.iter().flat_map(|block| &block.found) {
            let newest = &mut newest[found.lpa.index()];
            *newest = found.sequence.max(*newest);
        }
        map.place_logged(&scanned, &newest);
        let rests = map.choose_data_blocks(&scanned, &newest);
        map.assign_roles(now, &scanned, &rests)?;
        map.merge_rests(now, &rests).map_err(|error| error.to_string())?;
        let nand_reads = map.data().stats().reads - before;
        Ok((map, RecoveryReport { time: now.since(at), nand_reads }))
    }

    /// Reads every programmed page.
    fn scan(&mut self, at: Time) -> (Vec<Scanned>, Time) {
        let (mut scanned, mut end) = (Vec::new(), at);
        for area in 0..self.areas.len() {
            for block in 0..self.areas[area].geometry.blocks() {
                let mut found = Vec::new();
                let (mut begun, mut merged) = (u64::MAX, None);
                for index in 0..self.areas[area].nand.pages_written(BlockId(block)) {
                    let page = self.areas[area].first_page(block) + index;
                    if !self.areas[area].nand.is_programmed(BlockId(block), index) {
                        continue;
                    }
                    end = end.max(self.areas[area].nand.read_spare(at, Ppa(page)).0);
                    self.counts(area).at(Cause::Recovery).reads += 1;
                    let Some(spare) = self.decode(area, page) else { continue };
                    self.stamp = self.stamp.max(spare.stamp + 1);
                    begun = begun.min(spare.stamp);
                    merged = if spare.kind == Kind::Merged { Some(spare.stamp) } else { merged };
                    let address = if area == DATA { page } else { self.log_base + page };
                    found.push(Found {
                        address,
                        lpa: spare.lpa,
                        sequence: spare.sequence,
                        stamp: spare.stamp,
                    });
                }
                if !found.is_empty() {
                    let fits = self.fits(area, block, &found);
                    scanned.push(Scanned { area, block, begun, merged, found, fits });
                }
            }
        }
        (scanned, end)
    }

    fn decode(&mut self, area: usize, page: u32) -> Option<Spare> {
        let spare = spare::peek(&self.areas[area].nand, Ppa(page), &mut self.page).ok()?;
        (spare.lpa.0 < self.config.logical_units).then_some(spare)
    }

    /// The logical block whose data block this could be.
    fn fits(&self, area: usize, block: u32, found: &[Found]) -> Option<u32> {
        let lbn = self.split(found[0].lpa).0;
        let first = self.areas[area].first_page(block);
        let dense = !self.areas[area].nand.is_slc(BlockId(block));
        let at_home = area == DATA && dense && self.home(lbn) == self.areas[area].die_of(block);
        let in_place = |page: &Found| self.split(page.lpa) == (lbn, page.address - first);
        (at_home && found.iter().all(in_place)).then_some(lbn)
    }

    /// A completed merge copied everything live in its logical block. Drops pages programmed before it that are
    /// elsewhere: they are old or were trimmed; their block may still be there, bad or half erased.
    fn drop_merged(&self, scanned: &mut Vec<Scanned>) {
        let mut merged = vec![(0, 0); self.data.len()];
        for (index, block) in scanned.iter().enumerate() {
            if let (Some(lbn), Some(stamp)) = (block.fits, block.merged) {
                let last = &mut merged[lbn as usize];
                *last = (stamp, index).max(*last);
            }
        }
        for (index, block) in scanned.iter_mut().enumerate() {
            block.found.retain(|found| {
                let (stamp, into) = merged[self.split(found.lpa).0 as usize];
                into == index || found.stamp > stamp
            });
        }
        scanned.retain(|block| !block.found.is_empty());
    }

    /// Maps the newest pages in blocks that can only be log blocks.
    fn place_logged(&mut self, scanned: &[Scanned], newest: &[u64]) {
        let logs = scanned.iter().filter(|block| block.fits.is_none());
        for found in logs.flat_map(|block| &block.found) {
            if found.sequence == newest[found.lpa.index()] {
                self.place[found.lpa.index()] = found.address;
            }
        }
    }

    /// Chooses the data block of every logical block; returns the further blocks with newest pages, by
    /// logical block.
    fn choose_data_blocks(&mut self, scanned: &[Scanned], newest: &[u64]) -> Vec<(u32, u32)> {
        let mut candidates: Vec<&Scanned> = scanned.iter().filter(|block| block.fits.is_some()).collect();
        candidates.sort_by_key(|block| (block.fits, block.begun));
        let mut rests = Vec::new();
        for of_one in candidates.chunk_by(|a, b| a.fits == b.fits) {
            let Some(lbn) = of_one[0].fits else { continue };
            let kept = self.fewest_blocks(of_one, newest);
            let Some((data, beside)) = kept.split_first() else { continue };
            for found in data.found.iter().filter(|found| found.sequence == newest[found.lpa.index()]) {
                self.place[found.lpa.index()] = IN_PLACE;
            }
            let home = self.home(lbn).index();
            self.unmapped[home] -= 1;
            self.data[lbn as usize] = data.block;
            for rest in beside {
                for found in rest.found.iter().filter(|found| found.sequence == newest[found.lpa.index()]) {
                    let place = &mut self.place[found.lpa.index()];
                    *place = if *place == NOTHING { found.address } else { *place };
                }
                rests.push((lbn, rest.block));
            }
        }
        rests
    }

    /// Of the blocks that may be the data block of one logical block, oldest first, those that are needed: one
    /// that holds every newest page not in a log block, or else the oldest ones that together hold them (a
    /// younger one is the target of a cut merge and holds only copies). The first is the data block.
    fn fewest_blocks<'a>(&self, of_one: &[&'a Scanned], newest: &[u64]) -> Vec<&'a Scanned> {
        let is_newest = |found: &&Found| found.sequence == newest[found.lpa.index()];
        let held = |block: &Scanned| block.found.iter().filter(is_newest).count();
        let wanted = |block: &'a Scanned| {
            let found = block.found.iter().filter(is_newest).map(|found| found.lpa);
            found.filter(|&lpa| self.place[lpa.index()] == NOTHING).collect::<Vec<Lpa>>()
        };
        let mut all: Vec<Lpa> = of_one.iter().flat_map(|block| wanted(block)).collect();
        all.sort_unstable();
        all.dedup();
        let complete = of_one.iter().filter(|block| wanted(block).len() == all.len() && held(block) > 0);
        if let Some(block) = complete.max_by_key(|block| held(block)) {
            return vec![block];
        }
        let mut kept = Vec::new();
        for &block in of_one {
            let before = all.len();
            let holds = wanted(block);
            all.retain(|lpa| !holds.contains(lpa));
            if all.len() < before {
                kept.push(block);
            }
        }
        kept
    }

    /// Assigns a role to every block; erases those that hold nothing needed.
    fn assign_roles(&mut self, at: Time, scanned: &[Scanned], rests: &[(u32, u32)]) -> Result<(), String> {
        let mut used: Vec<Vec<bool>> =
            self.areas.iter().map(|area| vec![false; area.geometry.blocks() as usize]).collect();
        let data = self.data.iter().copied().filter(|&block| block != NOTHING);
        data.chain(rests.iter().map(|&(_, block)| block)).for_each(|block| used[DATA][block as usize] = true);
        let mut logs: Vec<&Scanned> = scanned
            .iter()
            .filter(|block| block.found.iter().any(|found| self.place[found.lpa.index()] == found.address))
            .filter(|block| !used[block.area][block.block as usize])
            .collect();
        logs.sort_by_key(|block| block.begun);
        for log in logs {
            used[log.area][log.block as usize] = true;
            self.adopt_log_block(log)?;
        }
        for (area, used) in used.iter().enumerate() {
            for block in 0..self.areas[area].geometry.blocks() {
                if used[block as usize] || self.areas[area].is_bad(block) {
                    continue;
                }
                if self.areas[area].nand.pages_written(BlockId(block)) == 0 {
                    let die = self.areas[area].die_of(block);
                    // It may have been opened in SLC mode and not written to.
                    self.areas[area].nand.set_slc(BlockId(block), false);
                    self.areas[area].free[die.index()].push(block);
                } else {
                    self.release(at, area, block, Cause::Recovery);
                }
            }
        }
        Ok(())
    }

    /// Adopts a block of newest pages out of place as a log block, or returns why this controller cannot have such a
    /// block.
    fn adopt_log_block(&mut self, log: &Scanned) -> Result<(), String> {
        let named = |found: &&Found| self.place[found.lpa.index()] == found.address;
        let strange = |why| Err(format!("block {} of array {} {why}", log.block, log.area));
        let die = self.areas[log.area].die_of(log.block);
        match self.config.log {
            Log::Shared { .. } if log.area != self.log_area() => return strange("is not a log block"),
            Log::Shared { .. } => {
                for found in &log.found {
                    self.owner[(found.address - self.log_base) as usize] = found.lpa;
                }
                self.found_log_block(die, log.block);
            }
            Log::PerBlock { .. } => {
                let mut owners = log.found.iter().filter(named).map(|found| self.split(found.lpa).0);
                let Some(lbn) = owners.next() else { return strange("holds no newest version of any page") };
                if owners.any(|other| other != lbn) || self.home(lbn) != die {
                    return strange("holds pages of several logical blocks, or of another die");
                }
                if self.bast.of(lbn).is_some() {
                    return strange("is the second log block of a logical block");
                }
                self.bast.assign(lbn, die, log.block, false);
            }
            Log::None => return strange("holds pages out of place"),
        }
        Ok(())
    }

    /// Merges logical blocks that occupy more blocks than they may, or bad ones.
    fn merge_rests(&mut self, at: Time, rests: &[(u32, u32)]) -> Result<(), ControllerError> {
        for of_one in rests.chunk_by(|a, b| a.0 == b.0) {
            self.merge_into(at, of_one[0].0, None, Cause::Recovery)?;
            of_one.iter().for_each(|&(_, block)| self.release(at, DATA, block, Cause::Recovery));
        }
        for lbn in 0..self.data.len() as u32 {
            let block = self.data[lbn as usize];
            if block != NOTHING && self.areas[DATA].is_bad(block) {
                self.evacuate(at, lbn)?;
            }
        }
        Ok(())
    }
}
