//! Recovery after a power cut, from the media alone.
//!
//! 1. The first page of every block is read. A block whose first unit belongs to a checkpoint is a map block.
//! 2. The newest of each piece of the checkpoint restores its part of the map of that time; entries that point into blocks
//!    erased or begun since are dropped. One turn must be complete, or there is no checkpoint.
//! 3. Blocks begun after the oldest of these pieces, or open then, are scanned page by page (all blocks, without a
//!    checkpoint). The readable copy with the highest sequence number wins.
//! 4. Trims recorded since the pieces are applied.
//! 5. Blocks without live units are erased; partly filled ones are closed. Units that a protected buffer held and
//!    the array does not, or not whole, are written again.
//!
//! All of this works on the individual blocks of the medium: the members of a superblock, too, were begun, programmed
//! in order and erased one by one. Their units are then counted for the superblock.
//!
//! Recovery changes nothing that a second recovery would need, so it may itself be cut at any operation.
//!
//! It needs a bit for each logical unit besides the tables of the controller, and two pieces of the map: the map of a
//! checkpoint is read into its final place, and which of two copies of a unit is newer is read from the copies.

use super::PageMap;
use super::bit_set::BitSet;
use super::buffer::Held;
use super::cache::SlcCache;
use super::clean::MoveCause;
use super::config::PageMapConfig;
use super::pieces::Checkpoint;
use super::spare::{self, Kind, Spare};
use super::trim::{self, Record};
use crate::table::BlockState;
use crate::{ControllerError, RecoveryReport};
use nvlab_medium::flash::Nand;
use nvlab_medium::{MediumError, PowerCut, Store};
use nvlab_units::{BlockId, Extent, Lpa, Ppa, Time};

/// Sequence numbers of writes and trims are smaller than this, which no device reaches in its life.
const SEQUENCES: u64 = 1 << 62;

/// What a power cut leaves of a controller: the array, and what a protected buffer held.
#[derive(Debug)]
pub struct PageMapMedia<S: Store> {
    nand: Nand<S>,
    held: Vec<Held>,
    trims: Vec<Record>,
}

impl<S: Store> PageMapMedia<S> {
    /// An array that an earlier process left behind ([`Nand::reopen`]). Add what its protected buffer held with
    /// [`PageMapMedia::hold`] and [`PageMapMedia::hold_trim`].
    pub fn new(nand: Nand<S>) -> PageMapMedia<S> {
        PageMapMedia { nand, held: Vec::new(), trims: Vec::new() }
    }

    /// Adds a unit that the protected buffer held, written with number `sequence` ([`PageMap::sequence`]).
    pub fn hold(&mut self, lpa: Lpa, sequence: u64, data: Vec<u8>) {
        self.held.push(Held::kept(lpa, sequence, data));
    }

    /// Adds a trim that the protected buffer held, received with number `sequence`.
    pub fn hold_trim(&mut self, extent: Extent, sequence: u64) {
        self.trims.push(Record { extent, sequence });
    }

    /// Checks that what was held is possible for a controller with this configuration.
    fn check(&self, config: &PageMapConfig) -> Result<(), String> {
        let (units, unit_bytes) = (config.logical_units, self.nand.geometry().unit_bytes as usize);
        let numbered = |sequence: u64| (1..SEQUENCES).contains(&sequence);
        for Held { lpa, sequence, data, .. } in &self.held {
            if lpa.0 >= units || !numbered(*sequence) || data.len() != unit_bytes {
                return Err(format!(
                    "the write buffer reports that it held unit {lpa} as write {sequence} with {} B; the device has \
                 {units} units of {unit_bytes} B",
                    data.len()
                ));
            }
        }
        for Record { extent, sequence } in &self.trims {
            if extent.count == 0 || extent.end() > units as u64 || !numbered(*sequence) {
                return Err(format!(
                    "the write buffer reports that it held a trim of {} units from {} on as number {sequence}; the \
                 device has {units} units",
                    extent.count, extent.start
                ));
            }
        }
        Ok(())
    }
}

/// The error when the controller's own metadata is damaged: without it, old versions would reappear unnoticed.
pub(super) fn damaged(what: &str, unit: Ppa) -> String {
    format!(
        "{what}, in unit {} of the array, does not match its checksum: something else changed the medium",
        unit.0
    )
}

/// The state of a block's first unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Erased,
    Unreadable,
    Says(Spare),
}

impl<S: Store> PageMap<S> {
    /// Cuts the power of array and buffer at `at`, or at the latest time passed to the array. What is left can be
    /// recovered.
    pub fn power_cut(mut self, at: Time) -> PageMapMedia<S> {
        let at = at.max(self.array.nand().latest());
        self.array.nand_mut().cut(at);
        let trims = if self.buffer.is_protected() { self.journal.survive() } else { Vec::new() };
        PageMapMedia { nand: self.array.into_nand(), held: self.buffer.survive(at), trims }
    }

    /// Rebuilds the controller from its media, beginning at `at`; or why the configuration cannot work.
    pub fn recover(
        config: PageMapConfig,
        cache: Option<SlcCache>,
        media: PageMapMedia<S>,
        at: Time,
    ) -> Result<(PageMap<S>, RecoveryReport), String> {
        assert!(S::KEEPS, "recovery reads payload");
        media.check(&config)?;
        let mut map = PageMap::empty(config, media.nand)?;
        let before = map.array.nand().stats().reads;
        let (firsts, mut now) = map.read_first_units(at);
        let checkpoint = match &map.demand {
            Some(_) => map.newest_directory(&mut now, &firsts)?,
            None => map.newest_checkpoint(&mut now, &firsts)?,
        };
        if let Some(checkpoint) = &checkpoint {
            map.adopt(checkpoint, &firsts);
        }
        let scanned = map.scan(&mut now, &firsts, checkpoint.as_ref());
        let trims = map.find_trims(&mut now, &firsts, media.trims)?;
        map.replay_trims(&trims, checkpoint.as_ref(), &scanned);
        let newest = map.newest_of_held(&media.held, &trims, &scanned);
        drop((scanned, trims));
        map.note_found()?;
        let half_written = map.half_written(&media.held);
        let unrecorded = map.unrecorded_trims(checkpoint.as_ref());
        let rebuilt = map.rebuild_tables(now, &firsts, &unrecorded.places);
        let held = rebuilt.and_then(|()| map.hold_trims(now, unrecorded));
        let filled = held.and_then(|()| map.fill_log(now));
        let restored =
            filled.and_then(|()| map.restore(now, media.held, checkpoint.as_ref(), (&newest, &half_written)));
        restored.map_err(|error| error.to_string())?;
        let nand_reads = map.array.nand().stats().reads - before;
        if let Some(cache) = cache {
            map = map.with_cache(cache)?;
        }
        Ok((map, RecoveryReport { time: now.since(at), nand_reads }))
    }

    fn read_first_units(&mut self, at: Time) -> (Vec<First>, Time) {
        let (mut firsts, mut end) = (Vec::new(), at);
        let mut data = vec![0; self.geometry.unit_bytes as usize];
        // A bad block may still hold the only copy of units that were being moved out of it.
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if self.array.capacity(block) == 0 {
                self.table.set_state(block, BlockState::Bad);
            }
        }
        for block in self.array.every_member() {
            let unit = self.array.nand().geometry().first_unit(block);
            let (ready, spare) = self.array.nand_mut().read_spare(at, unit);
            end = end.max(ready);
            firsts.push(match spare {
                Err(MediumError::Erased(_)) => First::Erased,
                Err(_) => First::Unreadable,
                Ok(_) => match spare::peek(self.array.nand(), unit, &mut data) {
                    Ok(spare) => {
                        self.numbers.found_stamp(&spare);
                        First::Says(spare)
                    }
                    Err(_) => First::Unreadable,
                },
            });
        }
        (firsts, end)
    }

    /// The programmed units of a block of the medium.
    pub(super) fn written_units(&self, block: BlockId) -> impl Iterator<Item = Ppa> + use<S> {
        let nand = self.array.nand();
        let first = nand.geometry().first_unit(block).0;
        let (per_page, slots) = (self.geometry.units_per_page, nand.units_per_page(block));
        let units = nand.pages_written(block) * per_page;
        (first..first + units).filter(move |unit| (unit - first) % per_page < slots).map(Ppa)
    }

    /// Accounts for the time to read every written page of a block.
    pub(super) fn read_block(&mut self, at: Time, block: BlockId) -> Time {
        let together = self.array.nand().units_per_read() as usize;
        let units: Vec<Ppa> = self.written_units(block).step_by(together).collect();
        units.into_iter().map(|unit| self.array.nand_mut().read_spare(at, unit).0).max().unwrap_or(at)
    }

    /// The sequence number and the stamp of the copy of a unit that a scan entered in the map; zeros if none was, or if it
    /// was trimmed since. They are read where the copy is: a table of them would take four times the bytes of the map.
    pub(super) fn scanned_numbers(&self, scanned: &BitSet, lpa: Lpa) -> (u64, u64) {
        let unit = self.map.find(lpa);
        if unit == Ppa::NONE || !scanned.holds(lpa.0) {
            return (0, 0);
        }
        let spare = self.array.nand().spare(self.array.place(unit));
        let spare = Spare::of_known(&spare.expect("a unit that was read before"));
        (spare.sequence, spare.stamp)
    }

    /// Scans the blocks not covered by the checkpoint; the newest copy of each unit enters the map. Returns the logical units
    /// whose entries come from here.
    fn scan(&mut self, now: &mut Time, firsts: &[First], checkpoint: Option<&Checkpoint>) -> BitSet {
        let mut scanned = BitSet::new(self.config.logical_units as u64);
        let (at, mut end) = (*now, *now);
        let mut data = vec![0; self.geometry.unit_bytes as usize];
        for block in self.array.every_member() {
            let of_map = self.array.block_with(block);
            let unknown = match (firsts[block.0 as usize], checkpoint) {
                (First::Erased, _) => false,
                (First::Unreadable, _) | (_, None) => true,
                (First::Says(spare), Some(checkpoint)) => {
                    spare.stamp >= checkpoint.oldest().stamp || checkpoint.oldest().open.contains(&of_map)
                }
            };
            let is_map = matches!(firsts[block.0 as usize], First::Says(Spare { kind: Kind::Map, .. }));
            if !unknown || is_map || self.table.state(of_map) == BlockState::Map {
                continue;
            }
            end = end.max(self.read_block(at, block));
            for place in self.written_units(block) {
                let Ok(spare) = spare::peek(self.array.nand(), place, &mut data) else { continue };
                let unit = self.array.unit_at(place);
                // Even damaged, it is the newest: an older version must not reappear in its place.
                self.numbers.found_stamp(&spare);
                if spare.kind != Kind::Data || spare.lpa.0 >= self.config.logical_units {
                    continue;
                }
                self.numbers.found_sequence(spare.sequence);
                // A half-erased block may hold a copy older than that of the checkpoint.
                let before = checkpoint.is_some_and(|checkpoint| {
                    let known = checkpoint.moment_of(spare.lpa).stamp;
                    spare.stamp < known && self.map.find(spare.lpa) != unit
                });
                let numbers = (spare.sequence, spare.stamp);
                if !before && numbers > self.scanned_numbers(&scanned, spare.lpa) {
                    self.map.claim(spare.lpa, unit);
                    scanned.add(spare.lpa.0);
                }
            }
        }
        *now = end;
        scanned
    }

    /// The trims in the journal and those a protected buffer held, which are pending again.
    fn find_trims(
        &mut self,
        now: &mut Time,
        firsts: &[First],
        held: Vec<Record>,
    ) -> Result<Vec<Record>, String> {
        let (at, mut end) = (*now, *now);
        let mut data = vec![0; self.geometry.unit_bytes as usize];
        let mut records = held.clone();
        for block in self.array.every_member() {
            match firsts[block.0 as usize] {
                First::Says(spare) if spare.kind == Kind::Trim => {}
                // The first page of a journal may have failed while the rest is valid.
                First::Unreadable => {}
                _ => continue,
            }
            end = end.max(self.read_block(at, block));
            let before = records.len();
            for unit in self.written_units(block) {
                match spare::peek(self.array.nand(), unit, &mut data) {
                    Ok(Spare { kind: Kind::Trim, damaged: true, .. }) => {
                        return Err(damaged("the journal of trims", unit));
                    }
                    Ok(Spare { kind: Kind::Trim, .. }) => records.extend(trim::decode(&data)),
                    _ => {}
                }
            }
            let (bad, block) = (self.array.nand().cells().is_bad(block), self.array.block_with(block));
            if records.len() > before && !bad && self.table.state(block) != BlockState::Map {
                self.table.set_state(block, BlockState::Map);
                self.journal.blocks.push(block);
            }
        }
        self.journal.pending = held;
        *now = end;
        Ok(records)
    }

    /// Applies the trims since the pieces of the checkpoint.
    fn replay_trims(&mut self, trims: &[Record], checkpoint: Option<&Checkpoint>, scanned: &BitSet) {
        let known = |lpa: Lpa| checkpoint.map_or(0, |checkpoint| checkpoint.moment_of(lpa).sequence);
        for &record in trims {
            self.numbers.found_sequence(record.sequence);
            self.apply_trim(record, known, scanned);
        }
    }

    /// For each unit that the buffer held: the number of the newest write or trim of it that the array knows and the
    /// checkpoint does not.
    fn newest_of_held(&self, held: &[Held], trims: &[Record], scanned: &BitSet) -> Vec<u64> {
        let mut newest: Vec<u64> =
            held.iter().map(|held| self.scanned_numbers(scanned, held.lpa).0).collect();
        let mut by_unit: Vec<usize> = (0..held.len()).collect();
        by_unit.sort_unstable_by_key(|&i| held[i].lpa);
        for trim in trims {
            let first = by_unit.partition_point(|&i| held[i].lpa < trim.extent.start);
            let within = |i: &&usize| (held[**i].lpa.0 as u64) < trim.extent.end();
            by_unit[first..]
                .iter()
                .take_while(within)
                .for_each(|&i| newest[i] = newest[i].max(trim.sequence));
        }
        newest
    }

    /// For each unit that the buffer held: whether its newest copy is neither the older nor the newer version,
    /// because the process ended while the buffer absorbed an overwrite of it (`absorb`). The checkpoint may cover
    /// the block of that copy: then there is no other sign of the overwrite.
    fn half_written(&mut self, held: &[Held]) -> Vec<bool> {
        let mut data = vec![0; self.geometry.unit_bytes as usize];
        let mut is_half_written = |held: &Held| {
            let unit = self.map.find(held.lpa);
            if unit == Ppa::NONE {
                return false;
            }
            match spare::peek(self.array.nand(), self.array.place(unit), &mut data) {
                Ok(found) => {
                    self.numbers.found_sequence(found.sequence);
                    found.damaged && found.sequence <= held.sequence
                }
                Err(error) => matches!(error, MediumError::Uncorrectable(_)),
            }
        };
        held.iter().map(&mut is_half_written).collect()
    }

    /// Rebuilds live counts, block states, the cleaning policy's order and the free blocks from the map. `needed`: places of
    /// dead versions that are needed.
    fn rebuild_tables(&mut self, at: Time, firsts: &[First], needed: &[Ppa]) -> Result<(), ControllerError> {
        let (layout, table) = (self.layout, &mut self.table);
        self.map.derive(|unit| table.gain(layout.block_of(unit)));
        self.forget_dead(needed);
        let (mut in_use, mut leaving) = (Vec::new(), Vec::new());
        for block in (0..self.geometry.blocks()).map(BlockId) {
            match self.table.state(block) {
                BlockState::Map => {}
                BlockState::Bad if self.table.live(block) > 0 => leaving.push(block),
                BlockState::Bad => {}
                _ if self.table.live(block) > 0 && self.bad_part_lives(block) => leaving.push(block),
                _ if self.table.live(block) > 0 => in_use.push(block),
                _ if self.array.is_erased(block) => {
                    // It may have been opened in SLC mode and not written to.
                    self.array.set_slc(block, false);
                    self.dies[self.geometry.die_of(block).index()].free.push(block);
                }
                _ => self.erase(at, block),
            }
        }
        let age = |member: BlockId| match firsts[member.0 as usize] {
            First::Says(spare) => (spare.stamp, spare.sequence),
            _ => (0, 0),
        };
        let mut in_use: Vec<_> =
            in_use.into_iter().map(|block| (self.array.members(block).map(age).max(), block)).collect();
        in_use.sort_by_key(|&(age, _)| age);
        for (age, block) in in_use {
            self.table.set_birth(block, age.map_or(0, |(_, sequence)| sequence));
            self.offer(block);
        }
        for block in leaving {
            self.table.set_state(block, BlockState::Cleaning);
            self.move_live(at, block, &mut 0, u32::MAX, MoveCause::Retire)?;
            if self.array.capacity(block) == 0 {
                self.table.set_state(block, BlockState::Bad);
            } else {
                self.erase(at, block);
            }
        }
        self.replenish(at);
        Ok(())
    }

    /// True if a bad member of a superblock holds live units: they were being moved out when the power failed.
    fn bad_part_lives(&self, block: BlockId) -> bool {
        let nand = self.array.nand();
        let bad = self.array.members(block).filter(|&member| nand.cells().is_bad(member));
        bad.into_iter()
            .flat_map(|member| self.written_units(member))
            .any(|place| self.map.is_live(self.array.unit_at(place)))
    }

    /// Writes again the units that a protected buffer held and the array does not.
    fn restore(
        &mut self,
        at: Time,
        held: Vec<Held>,
        checkpoint: Option<&Checkpoint>,
        (newest, half_written): (&[u64], &[bool]),
    ) -> Result<(), ControllerError> {
        let known = |lpa: Lpa| checkpoint.map_or(0, |checkpoint| checkpoint.moment_of(lpa).sequence);
        self.numbers.sequence =
            held.iter().map(|held| held.sequence + 1).fold(self.numbers.sequence, u64::max);
        for ((held, &newest), &half_written) in held.into_iter().zip(newest).zip(half_written) {
            if half_written || held.sequence >= known(held.lpa) && held.sequence > newest {
                self.rewrite(at, held)?;
                self.stats.restored_units += 1;
            }
        }
        Ok(())
    }
}
