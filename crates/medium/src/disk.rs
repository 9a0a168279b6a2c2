//! A magnetic disk: one arm, one spindle, sectors in a spiral.
//!
//! The position of the heads follows from the time (angle = time modulo one revolution) and from where the
//! arm was left, so nothing here is random except what a cut leaves. The spiral: sector `s` begins at slot
//! `s mod sectors_per_track` of the revolution, and the last sector of a track is followed by the first of the
//! next. Head and cylinder switches inside a transfer therefore take no extra time: the rate is the
//! sustained one, in which the datasheet has accounted for them. Rejected: zones (the seeds' disks state one
//! rate) and a track buffer with read-ahead.
//!
//! Invariants
//! 1. A request that begins where the last one ended and arrives in time continues without seek or rotation;
//!    one that arrives too late waits for the rest of the revolution.
//! 2. Sectors are written in order. After a cut those done are new, those not begun are old, and the one
//!    in progress is as [`TornSector`] says.

use crate::banks::{check_range, pieces};
use crate::tally::Tally;
use crate::undo::{Entry, Undo};
use crate::{InPlace, MediumError, PowerCut, Store};
use nvlab_units::{Interruption, Lane, Ppa, Rate, Rng, Served, Span, Time};
use std::collections::BTreeMap;

/// A disk drive without a write cache: size, speed and behaviour at a power cut.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskConfig {
    /// Capacity; a multiple of the sector size.
    pub capacity_bytes: u64,
    /// Sector size, usually 512.
    pub sector_bytes: u32,
    /// One turn of the platters (system 001 slide 32: 7200 per minute, so 8.33 ms).
    pub revolution: Span,
    /// Sustained transfer rate (system 001 slide 32: about 6 MB/s); a track holds as many whole sectors as
    /// pass the head in one revolution at this rate.
    pub rate: Rate,
    /// Recording surfaces, i.e. tracks per cylinder.
    pub surfaces: u32,
    /// Seek times of the arm.
    pub seek: Seek,
    /// From the arrival of a request until the drive acts on it. It overlaps with the previous request.
    pub overhead: Span,
    /// What a cut does to the sector being written.
    pub torn: TornSector,
    /// Seed of the random contents after a cut.
    pub seed: u64,
}

/// The three seek times of a datasheet, head settling included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seek {
    /// To the next cylinder.
    pub track_to_track: Span,
    /// The mean over random pairs of cylinders.
    pub average: Span,
    /// From the first cylinder to the last.
    pub full_stroke: Span,
}

/// What a cut does to the sector being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TornSector {
    /// The drive finishes it or does not begin it: old or new, drawn by seed.
    OldOrNew,
    /// Its check code is wrong: it cannot be read ([`MediumError::Uncorrectable`] with the sector's number)
    /// until it is written whole. Without payload it is not known which sector that is, and it stays readable.
    Unreadable,
}

impl DiskConfig {
    /// Sectors that pass the head in one revolution.
    pub const fn sectors_per_track(&self) -> u64 {
        match self.rate.transfer(self.sector_bytes as u64).ps() {
            0 => 0,
            sector => self.revolution.ps() / sector,
        }
    }

    /// Cylinders of the drive; the last may be partly used.
    pub const fn cylinders(&self) -> u64 {
        let sectors = self.capacity_bytes / self.sector_bytes as u64;
        sectors.div_ceil(self.sectors_per_track() * self.surfaces as u64)
    }

    /// Checks that the configuration is possible; otherwise returns the reason.
    pub fn check(&self) -> Result<(), String> {
        let sector = self.sector_bytes as u64;
        if sector == 0 || self.capacity_bytes == 0 || !self.capacity_bytes.is_multiple_of(sector) {
            return Err(format!("{} B are not whole sectors of {sector} B", self.capacity_bytes));
        }
        if self.surfaces == 0 {
            return Err("surfaces must be at least 1".into());
        }
        if self.sectors_per_track() == 0 {
            return Err(format!("not even one sector of {sector} B passes the head in {}", self.revolution));
        }
        Arm::new(self).map(|_| ())
    }
}

/// Seek time over distance: `track_to_track + a sqrt(x) + b x`, `x` from 0 (one cylinder) to 1 (full stroke).
///
/// The full stroke fixes `a + b`. The distance of two random cylinders has the density `2 (1 - x)`, so
/// that `sqrt(x)` is 8/15 and `x` is 1/3 on average: with the average seek this determines `a` and `b`.
#[derive(Clone, Copy, Debug)]
struct Arm {
    track_to_track: Span,
    root_ps: f64,
    linear_ps: f64,
    longest: f64,
}

impl Arm {
    fn new(config: &DiskConfig) -> Result<Arm, String> {
        let Seek { track_to_track, average, full_stroke } = config.seek;
        if !(track_to_track <= average && average <= full_stroke) {
            return Err(format!("seek times must increase: {track_to_track}, {average}, {full_stroke}"));
        }
        let mean = (average - track_to_track).ps() as f64;
        let full = (full_stroke - track_to_track).ps() as f64;
        let root_ps = 5.0 * mean - full * (5.0 / 3.0);
        let linear_ps = full - root_ps;
        // Outside these bounds the curve would decrease somewhere; a picosecond of slack for rounding.
        if root_ps < -1.0 || root_ps > 2.0 * full + 1.0 {
            return Err(format!(
                "an average seek of {average} does not fit {track_to_track} to {full_stroke}: it must lie \
                 between 1/3 and 11/15 of the way"
            ));
        }
        let longest = config.cylinders().saturating_sub(2).max(1) as f64;
        Ok(Arm { track_to_track, root_ps, linear_ps, longest })
    }

    fn time(&self, cylinders: u64) -> Span {
        match cylinders {
            0 => Span::ZERO,
            _ => {
                let x = (cylinders - 1) as f64 / self.longest;
                self.track_to_track
                    + Span::from_ps((self.root_ps * x.sqrt() + self.linear_ps * x).round() as u64)
            }
        }
    }
}

/// Statistics of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Reads, by requests.
    pub read: Tally,
    /// Writes, by requests.
    pub write: Tally,
    /// Time the arm moved.
    pub seek: Span,
    /// Time spent waiting for the sector to come round.
    pub rotation: Span,
    /// Time data passed the head.
    pub transfer: Span,
    /// Writes of partial sectors, which had to read first.
    pub partial_writes: u64,
}

/// When a transfer begins: `turn` is the start of that revolution, `slot` the first sector's position in it.
#[derive(Clone, Copy, Debug)]
struct Passage {
    turn: Time,
    slot: u64,
}

impl Passage {
    /// When sector `index` of the transfer has passed the head.
    fn sector_end(self, config: &DiskConfig, sectors_per_track: u64, index: u64) -> Time {
        self.turn + slot_angle(config, sectors_per_track, self.slot + index + 1)
    }
}

/// A magnetic disk.
#[derive(Clone, Debug)]
pub struct Disk<S: Store> {
    config: DiskConfig,
    arm: Arm,
    sectors_per_track: u64,
    lane: Lane,
    cylinder: u64,
    stats: DiskStats,
    undo: Undo<Passage>,
    /// Sectors a cut left unreadable, with the time a write made them readable again: `Time::MAX` if none
    /// has. The time is kept because a cut may undo that write.
    unreadable: BTreeMap<u64, Time>,
    rng: Rng,
    store: S,
}

impl<S: Store> Disk<S> {
    /// A drive over a store of at least its capacity. Panics if [`DiskConfig::check`] fails.
    pub fn new(config: DiskConfig, store: S) -> Disk<S> {
        config.check().expect("a drive that can exist");
        Disk {
            arm: Arm::new(&config).expect("seek times that were checked"),
            sectors_per_track: config.sectors_per_track(),
            lane: Lane::new(),
            cylinder: 0,
            stats: DiskStats::default(),
            undo: Undo::new(),
            unreadable: BTreeMap::new(),
            rng: Rng::stream(config.seed, "disk"),
            config,
            store,
        }
    }

    /// The configuration it was made with.
    pub fn config(&self) -> &DiskConfig {
        &self.config
    }

    /// Statistics since it was made.
    pub fn stats(&self) -> &DiskStats {
        &self.stats
    }

    /// Sectors that a cut left unreadable and no write has repaired.
    pub fn unreadable(&self) -> impl Iterator<Item = u64> {
        self.unreadable.iter().filter(|(_, repaired)| **repaired == Time::MAX).map(|(&sector, _)| sector)
    }

    /// Seek time over a number of cylinders.
    pub fn seek_time(&self, cylinders: u64) -> Span {
        self.arm.time(cylinders)
    }

    /// Number of writes that a cut may still undo.
    pub fn unsettled(&self) -> usize {
        self.undo.len()
    }

    /// The sectors a byte range overlaps: the first, and the one after the last.
    fn sectors(&self, offset: u64, bytes: u64) -> (u64, u64) {
        let sector = self.config.sector_bytes as u64;
        (offset / sector, (offset + bytes).div_ceil(sector))
    }

    fn cylinder_of(&self, sector: u64) -> u64 {
        sector / (self.sectors_per_track * self.config.surfaces as u64)
    }

    /// The first passage of `sector` under the head that does not begin before `from`.
    fn next_passage(&self, from: Time, sector: u64) -> Passage {
        let turn_ps = self.config.revolution.ps();
        let slot = sector % self.sectors_per_track;
        let mut turn = Time::from_ps(from.ps() / turn_ps * turn_ps);
        if turn + self.slot_angle(slot) < from {
            turn += self.config.revolution;
        }
        Passage { turn, slot }
    }

    /// The time from the beginning of a revolution until slot `slot` (possibly of a later one) begins. Rounded
    /// down from the exact time, so that consecutive slots never drift apart.
    fn slot_angle(&self, slot: u64) -> Span {
        slot_angle(&self.config, self.sectors_per_track, slot)
    }

    /// Occupies the arm: seek, rotation, transfer; one more pass if sectors are read before they are written.
    fn serve(&mut self, at: Time, first: u64, limit: u64, read_first: bool) -> (Served, Passage) {
        let start = at.max(self.lane.free_at());
        let ready = start.max(at + self.config.overhead);
        let seek = self.arm.time(self.cylinder_of(first).abs_diff(self.cylinder));
        let mut from = ready + seek;
        let mut passage = self.next_passage(from, first);
        let (mut begin, count) = (passage.turn + self.slot_angle(passage.slot), limit - first);
        self.stats.rotation += begin - from;
        let transfer = self.slot_angle(passage.slot + count) - self.slot_angle(passage.slot);
        self.stats.transfer += transfer;
        if read_first {
            from = begin + transfer;
            passage = self.next_passage(from, first);
            begin = passage.turn + self.slot_angle(passage.slot);
            self.stats.rotation += begin - from;
            self.stats.transfer += transfer;
        }
        let end = begin + transfer;
        self.stats.seek += seek;
        // The heads stay on the spiral: over the sector after the last one.
        self.cylinder = self.cylinder_of(limit);
        (self.lane.foreground(at, end - start, &Interruption::Wait), passage)
    }

    fn check_readable(&self, first: u64, limit: u64) -> Result<(), MediumError> {
        match self.unreadable.range(first..limit).find(|(_, repaired)| **repaired == Time::MAX) {
            None => Ok(()),
            Some((&sector, _)) => Err(MediumError::Uncorrectable(Ppa(sector as u32))),
        }
    }

    /// The sectors that a write changes only in part: none, the first, the last or both.
    fn partial_sectors(&self, offset: u64, bytes: u64) -> impl Iterator<Item = u64> + use<S> {
        let sector = self.config.sector_bytes as u64;
        let limit = offset + bytes;
        let first = (!offset.is_multiple_of(sector)).then_some(offset / sector);
        let last = (!limit.is_multiple_of(sector)).then_some(limit / sector);
        first.into_iter().chain(last)
    }
}

fn slot_angle(config: &DiskConfig, sectors_per_track: u64, slot: u64) -> Span {
    let exact = config.revolution.ps() as u128 * slot as u128 / sectors_per_track as u128;
    Span::from_ps(u64::try_from(exact).expect("a transfer that ends within 213 days"))
}

impl<S: Store> InPlace for Disk<S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity(&self) -> u64 {
        self.config.capacity_bytes
    }

    /// Whole sectors pass the head, whatever part of them was requested.
    fn read(&mut self, at: Time, offset: u64, bytes: u64, into: &mut [u8]) -> Result<Served, MediumError> {
        check_range(offset, bytes, self.config.capacity_bytes)?;
        let (first, limit) = self.sectors(offset, bytes);
        self.check_readable(first, limit)?;
        if S::KEEPS {
            assert_eq!(into.len() as u64, bytes, "a read of {bytes} B into {} B", into.len());
            self.store.read(offset, into);
        }
        if bytes == 0 {
            return Ok(Served { start: at, end: at });
        }
        let (served, _) = self.serve(at, first, limit, false);
        self.stats.read.add(bytes, served.end - served.start);
        Ok(served)
    }

    /// A write that changes a sector in part reads it first, and so takes another revolution.
    fn write(&mut self, at: Time, offset: u64, bytes: u64, data: &[u8]) -> Result<Served, MediumError> {
        check_range(offset, bytes, self.config.capacity_bytes)?;
        if S::KEEPS {
            assert_eq!(data.len() as u64, bytes, "a write of {bytes} B from {} B", data.len());
        }
        if bytes == 0 {
            return Ok(Served { start: at, end: at });
        }
        let mut partial = false;
        for sector in self.partial_sectors(offset, bytes) {
            self.check_readable(sector, sector + 1)?;
            partial = true;
        }
        let (first, limit) = self.sectors(offset, bytes);
        let (served, passage) = self.serve(at, first, limit, partial);
        if S::KEEPS {
            let begin = passage.turn + self.slot_angle(passage.slot);
            self.undo.remember(&self.store, (offset, bytes), (begin, served.end), passage);
            self.store.write(offset, data);
            let (config, per_track) = (&self.config, self.sectors_per_track);
            for (&sector, repaired) in self.unreadable.range_mut(first..limit) {
                let end = passage.sector_end(config, per_track, sector - first);
                *repaired = end.min(*repaired);
            }
        }
        self.stats.partial_writes += partial as u64;
        self.stats.write.add(bytes, served.end - served.start);
        Ok(served)
    }
}

impl<S: Store> PowerCut for Disk<S> {
    fn settle(&mut self, upto: Time) {
        self.undo.settle(upto);
        self.unreadable.retain(|_, repaired| *repaired > upto);
    }

    /// Afterwards the arm is parked at the first cylinder.
    fn cut(&mut self, at: Time) {
        self.lane = Lane::new();
        self.cylinder = 0;
        self.unreadable.retain(|_, repaired| *repaired > at);
        self.unreadable.values_mut().for_each(|repaired| *repaired = Time::MAX);
        let (config, per_track) = (&self.config, self.sectors_per_track);
        let (rng, unreadable) = (&mut self.rng, &mut self.unreadable);
        self.undo.cut(&mut self.store, at, |store, entry: &Entry<Passage>| {
            // The sectors of the write in order, up to the first whose last bit was not yet on the platter.
            let Passage { turn, slot } = entry.how;
            let mut done = 0;
            let mut under_way = entry.offset;
            for (offset, _) in pieces(entry.offset, entry.old.len() as u64, config.sector_bytes as u64) {
                under_way = offset;
                if entry.how.sector_end(config, per_track, done) > at {
                    break;
                }
                done += 1;
            }
            let begun = turn + slot_angle(config, per_track, slot + done) < at;
            match config.torn {
                TornSector::OldOrNew if begun && rng.chance(0.5) => {
                    let sector = config.sector_bytes as u64;
                    entry.restore_from(store, (under_way / sector + 1) * sector);
                }
                TornSector::Unreadable if begun => {
                    unreadable.insert(under_way / config.sector_bytes as u64, Time::MAX);
                    entry.restore_from(store, under_way);
                }
                _ => entry.restore_from(store, under_way),
            }
        });
    }
}
