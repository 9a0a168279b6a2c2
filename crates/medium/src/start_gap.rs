//! Start-Gap wear levelling (Qureshi et al., MICRO 2009) in front of a memory that is overwritten in place: a
//! line that is written over and over moves across all cells.
//!
//! A region has one more slot than lines; the spare slot is the gap. Every `interval` line writes, the line
//! before the gap moves into it, so the gap moves down; after a full pass every line is one slot further. The
//! slot of a line follows from one number, the moves made: `gap = N - moves mod (N + 1)`,
//! `start = moves div (N + 1)`; slot = (line + start) mod N, plus one from the gap on. A fixed random permutation
//! in front spreads neighbouring lines over the regions, so that a hot range does not stay in one region.
//!
//! Invariants
//! 1. Lines map one to one to the slots other than the gap.
//! 2. After a power cut the mapping is the one before or after the move in progress, and the slot it names holds
//!    the line: the copy is done before the number of moves is written, and the slot left behind is written
//!    only by the next move.
//! 3. The memory below writes an aligned 8 bytes atomically: old or new after a cut.
//! 4. Nothing is written while a move is in progress, so a line is never written in two slots at a time.
//!
//! Cells: regions one after the other; a region is N + 1 slots, then a ring of lines that begin with a number
//! of moves (u64, little-endian). The greatest is the current one. The ring is long enough that its lines are
//! written less often than the average slot. Writes since the last move are counted in volatile memory: a cut
//! loses less than one interval of them.
//!
//! The store below keeps lines in address order, whatever slots they are in, then the move numbers of all rings, 8
//! bytes each ([`Placed`]). By invariants 2 and 4, a cut leaves the same either way. Rejected: *bytes in cell order*,
//! which spreads neighbouring lines over the whole store: each line of a write was the first access to a page of the
//! host's memory, and recovery read a page for each line of a ring (64 GB: 11 ms per line, 2.8 s per cut).

use crate::banks::{check_power_of_two, check_range, pieces};
use crate::{InPlace, MediumError, Place, Placed, PowerCut};
use nvlab_units::{Rng, Served, Time};
use std::cell::Cell;

/// How lines are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartGapConfig {
    /// Bytes that move together: the line whose wear is counted. A power of two of at least 8.
    pub line_bytes: u32,
    /// Regions, each with its own gap. A line that receives every write stays in a slot for (lines of a
    /// region) x (interval) writes: that must be far below the endurance.
    pub regions: u32,
    /// Line writes of a region between two moves (100: 1 % more writes).
    pub interval: u32,
    /// Seed of the permutation of line addresses; `None`: no permutation.
    pub permutation: Option<u64>,
}

impl StartGapConfig {
    /// Lines of a region on a memory of this capacity and atomic write size, or why it is too small.
    fn lines(&self, capacity_bytes: u64, atomic_bytes: u32) -> Result<u64, String> {
        check_power_of_two(self.line_bytes as u64, "line bytes of start-gap")?;
        if self.line_bytes < 8 || self.regions == 0 || self.interval == 0 {
            return Err(format!(
                "start-gap needs lines of at least 8 B, at least 1 region and an interval of at least 1, not \
                 {} B, {} and {}",
                self.line_bytes, self.regions, self.interval
            ));
        }
        if atomic_bytes < 8 {
            return Err(
                "start-gap needs a memory whose aligned writes of 8 B are atomic in a power cut".into()
            );
        }
        let room = capacity_bytes / self.regions as u64 / self.line_bytes as u64;
        let interval = self.interval as u64;
        let mut lines = room.saturating_sub(2) * interval / (interval + 1);
        while lines > 0 && lines + 1 + self.ring(lines) > room {
            lines -= 1;
        }
        if lines < 2 {
            return Err(format!(
                "{room} lines of {} B per region are too few for start-gap: give more memory or fewer regions",
                self.line_bytes
            ));
        }
        if lines * self.regions as u64 >= u32::MAX as u64 {
            return Err(format!(
                "{} lines of {} B are too many for start-gap: give longer lines",
                lines * self.regions as u64,
                self.line_bytes
            ));
        }
        Ok(lines)
    }

    /// Lines of the ring after a region of `lines` lines.
    fn ring(&self, lines: u64) -> u64 {
        lines.div_ceil(self.interval as u64) + 1
    }

    /// Usable bytes of a memory of `of_bytes` with this atomic write size, or why it is too small.
    pub fn capacity_bytes(&self, of_bytes: u64, atomic_bytes: u32) -> Result<u64, String> {
        Ok(self.lines(of_bytes, atomic_bytes)? * self.regions as u64 * self.line_bytes as u64)
    }
}

/// One region: where its gap is.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    moves: u64,
    /// Line writes since the last move.
    writes: u32,
    /// Derived from the number of moves, and cached because every access needs them: the start, reduced modulo the
    /// lines of the region, and the slot of the gap.
    start: u32,
    gap: u32,
}

impl Region {
    /// A region of `lines` lines after so many moves.
    fn after(moves: u64, lines: u32) -> Region {
        let (passes, steps) = (moves / (lines as u64 + 1), moves % (lines as u64 + 1));
        Region { moves, writes: 0, start: (passes % lines as u64) as u32, gap: lines - steps as u32 }
    }
}

/// A line that will be written soon, with its place.
#[derive(Clone, Copy, Debug)]
struct Expected {
    line: u32,
    region: u32,
    /// The address of its slot in the memory below.
    slot: u64,
}

impl Expected {
    /// An impossible line number.
    const NOTHING: Expected = Expected { line: u32::MAX, region: 0, slot: 0 };
}

/// Maximum number of expected lines: twice the requests that are prefetched together.
const EXPECTED: usize = 64;

/// An empty cache of expected lines.
fn nothing_expected() -> [Cell<Expected>; EXPECTED] {
    std::array::from_fn(|_| Cell::new(Expected::NOTHING))
}

/// A memory with Start-Gap in front of it.
#[derive(Clone, Debug)]
pub struct StartGap<M> {
    config: StartGapConfig,
    medium: M,
    regions: Vec<Region>,
    /// Lines of a region, N.
    lines: u32,
    /// 2^64 / N, rounded up: a division by N as a multiplication.
    reciprocal: u64,
    /// log2 of the bytes of a line.
    line_shift: u32,
    /// Lines of the ring after a region.
    ring: u64,
    /// Lines that a region occupies in the memory below: its slots and its ring.
    region_lines: u64,
    /// Usable bytes: all lines.
    capacity_bytes: u64,
    permutation: Option<Permutation>,
    /// Lines that will be written soon, each with its place: a write then needs a look-up instead of the four rounds
    /// of the permutation, which [`InPlace::prefetch`] computes for several lines at a time. An entry may belong to
    /// another line, but is never wrong, since a move clears them all.
    expected: [Cell<Expected>; EXPECTED],
    /// End of the move in progress; nothing overtakes it.
    ready: Time,
    moved: u64,
}

impl<M: Placed> StartGap<M> {
    /// Start-Gap on a memory that was never written, or why that is impossible.
    pub fn new(config: StartGapConfig, medium: M) -> Result<StartGap<M>, String> {
        let lines = config.lines(medium.capacity(), medium.atomic_bytes())?;
        let total = lines * config.regions as u64;
        Ok(StartGap {
            permutation: config.permutation.map(|seed| Permutation::new(total, seed)),
            regions: vec![Region::after(0, lines as u32); config.regions as usize],
            ring: config.ring(lines),
            region_lines: lines + 1 + config.ring(lines),
            capacity_bytes: total * config.line_bytes as u64,
            lines: lines as u32,
            reciprocal: u64::MAX / lines + 1,
            line_shift: config.line_bytes.trailing_zeros(),
            expected: nothing_expected(),
            ready: Time::ZERO,
            moved: 0,
            medium,
            config,
        })
    }

    /// Start-Gap on a memory that was in use: reads the positions of the gaps. Also returns when that is done.
    pub fn recover(config: StartGapConfig, medium: M, at: Time) -> Result<(StartGap<M>, Time), String> {
        assert!(M::KEEPS, "recovery reads payload");
        let mut levelled = StartGap::new(config, medium)?;
        let end = levelled.reload(at).map_err(|error| error.to_string())?;
        Ok((levelled, end))
    }

    /// The memory below.
    pub fn medium(&self) -> &M {
        &self.medium
    }
    /// The memory below, to reset its statistics.
    pub fn medium_mut(&mut self) -> &mut M {
        &mut self.medium
    }
    /// Returns the memory below.
    pub fn into_medium(self) -> M {
        self.medium
    }
    /// Its configuration.
    pub fn config(&self) -> &StartGapConfig {
        &self.config
    }
    /// Lines moved so far; a move writes the line and the number of moves.
    pub fn moved(&self) -> u64 {
        self.moved
    }
    /// Bytes of registers a controller needs besides the memory, counted as in the paper: per region start, gap and
    /// the writes since the last move, each as wide as its values; and the key of the permutation. The number of
    /// moves, from which recovery computes start and gap, is in the memory.
    pub fn register_bytes(&self) -> u64 {
        let bits = |largest: u32| (u32::BITS - largest.leading_zeros()) as u64;
        let region = bits(self.lines - 1) + bits(self.lines) + bits(self.config.interval - 1);
        let key = if self.permutation.is_some() { u64::BITS as u64 } else { 0 };
        (region * self.regions.len() as u64 + key).div_ceil(8)
    }

    fn reload(&mut self, at: Time) -> Result<Time, MediumError> {
        let mut end = at;
        let mut word = [0; 8];
        for region in 0..self.regions.len() as u64 {
            let mut moves = 0;
            for entry in 0..self.ring {
                let place = self.ring_place(region, entry);
                end = end.max(self.medium.read_at(at, place, 8, &mut word)?.end);
                moves = moves.max(u64::from_le_bytes(word));
            }
            self.regions[region as usize] = Region::after(moves, self.lines);
        }
        self.expected = nothing_expected();
        self.ready = end;
        Ok(end)
    }

    fn slot_offset(&self, region: u64, slot: u64) -> u64 {
        (region * self.region_lines + slot) << self.line_shift
    }

    /// Place of an entry of a ring.
    fn ring_place(&self, region: u64, entry: u64) -> Place {
        Place {
            cells: self.slot_offset(region, self.lines as u64 + 1 + entry),
            kept: self.capacity_bytes + (region * self.ring + entry) * 8,
        }
    }

    /// The region of a line and its slot in it; `permuted` is the line after the permutation.
    #[inline(always)]
    fn slot_of(&self, permuted: u32) -> (u64, u64) {
        let line = permuted;
        // Exact for numbers of 32 bits (Lemire et al., Faster remainder by direct computation, 2019); more lines are refused.
        let number = ((line as u128 * self.reciprocal as u128) >> 64) as u32;
        let place = line - number * self.lines;
        let region = &self.regions[number as usize];
        // Less than 2^33, so no addition wraps.
        let turned = place as u64 + region.start as u64;
        let slot = if turned >= self.lines as u64 { turned - self.lines as u64 } else { turned };
        (number as u64, slot + (slot >= region.gap as u64) as u64)
    }

    /// The address of a byte in the memory below: for tests and wear maps.
    pub fn locate(&self, offset: u64) -> u64 {
        self.place_of(offset).cells
    }

    /// Place of a byte in the memory below.
    #[inline]
    fn place_of(&self, offset: u64) -> Place {
        let cells = self.find(offset >> self.line_shift).slot + self.inside(offset);
        Place { cells, kept: offset }
    }

    /// Place of a line.
    #[inline(always)]
    fn find(&self, line: u64) -> Expected {
        let permuted = self.permutation.as_ref().map_or(line as u32, |permutation| permutation.apply(line));
        let (region, slot) = self.slot_of(permuted);
        Expected { line: line as u32, region: region as u32, slot: self.slot_offset(region, slot) }
    }

    /// Place of a line to be written, possibly an expected one.
    #[inline(always)]
    fn find_expected(&self, line: u64) -> Expected {
        let expected = self.expected[line as usize % EXPECTED].get();
        if expected.line == line as u32 { expected } else { self.find_unexpected(line) }
    }

    #[cold]
    fn find_unexpected(&self, line: u64) -> Expected {
        self.find(line)
    }

    /// The address of a byte in its line.
    #[inline(always)]
    fn inside(&self, offset: u64) -> u64 {
        offset & (self.config.line_bytes as u64 - 1)
    }

    /// Moves the line before the gap into it.
    #[cold]
    fn step(&mut self, at: Time, region: u64) -> Result<(), MediumError> {
        let Region { moves, gap, .. } = self.regions[region as usize];
        // At slot 0 the gap has completed a pass: the line of the last slot moves to it.
        let from = if gap == 0 { self.lines } else { gap - 1 };
        let bytes = self.config.line_bytes as u64;
        let (from, to) = (self.slot_offset(region, from as u64), self.slot_offset(region, gap as u64));
        let copied = self.medium.move_cells(at, from, to, bytes)?;
        let place = self.ring_place(region, (moves + 1) % self.ring);
        let before = (moves + 1).saturating_sub(self.ring).to_le_bytes();
        let noted = self.medium.update_at(copied.end, place, &before, &(moves + 1).to_le_bytes())?;
        self.regions[region as usize] = Region::after(moves + 1, self.lines);
        self.expected = nothing_expected();
        self.ready = noted.end;
        self.moved += 1;
        Ok(())
    }

    /// True if a range is inside one line.
    #[inline]
    fn is_in_one_line(&self, offset: u64, bytes: u64) -> bool {
        bytes > 0 && offset < self.capacity_bytes && (offset ^ (offset + bytes - 1)) >> self.line_shift == 0
    }

    /// Writes a part of one line, and moves the gap of its region when due. `old` and `new` are empty if unknown.
    #[inline(always)]
    fn put_in_line(
        &mut self,
        at: Time,
        (offset, bytes): (u64, u64),
        old: &[u8],
        new: &[u8],
    ) -> Result<Served, MediumError> {
        let start = at.max(self.ready);
        let Expected { region, slot, .. } = self.find_expected(offset >> self.line_shift);
        let to = Place { cells: slot + self.inside(offset), kept: offset };
        let one = match old.is_empty() {
            true => self.medium.write_at(start, to, bytes, new)?,
            false => self.medium.update_at(start, to, old, new)?,
        };
        let writes = &mut self.regions[region as usize].writes;
        *writes += 1;
        if *writes >= self.config.interval {
            self.step(one.end, region as u64)?;
        }
        Ok(one)
    }

    /// Writes several lines, line by line. `old` is empty if unknown.
    fn put<'a>(
        &mut self,
        at: Time,
        (offset, bytes): (u64, u64),
        old: &'a [u8],
        new: &'a [u8],
    ) -> Result<Served, MediumError> {
        check_range(offset, bytes, self.capacity())?;
        let mut all: Option<Served> = None;
        for piece in pieces(offset, bytes, self.config.line_bytes as u64) {
            let inside = (piece.0 - offset) as usize..(piece.0 - offset + piece.1) as usize;
            let part = |bytes: &'a [u8]| bytes.get(inside.clone()).unwrap_or(&[]);
            all = Some(join(all, self.put_in_line(at, piece, part(old), part(new))?));
        }
        Ok(all.unwrap_or(Served { start: at, end: at }))
    }
}

fn join(all: Option<Served>, one: Served) -> Served {
    all.map_or(one, |all| Served { start: all.start.min(one.start), end: all.end.max(one.end) })
}

impl<M: Placed> InPlace for StartGap<M> {
    const KEEPS: bool = M::KEEPS;

    fn capacity(&self) -> u64 {
        self.capacity_bytes
    }

    fn atomic_bytes(&self) -> u32 {
        self.medium.atomic_bytes().min(self.config.line_bytes)
    }

    #[inline]
    fn read(&mut self, at: Time, offset: u64, bytes: u64, into: &mut [u8]) -> Result<Served, MediumError> {
        let start = at.max(self.ready);
        if self.is_in_one_line(offset, bytes) {
            return self.medium.read_at(start, self.place_of(offset), bytes, into);
        }
        check_range(offset, bytes, self.capacity())?;
        let mut all: Option<Served> = None;
        for piece in pieces(offset, bytes, self.config.line_bytes as u64) {
            let from = self.place_of(piece.0);
            let inside = (piece.0 - offset) as usize..(piece.0 - offset + piece.1) as usize;
            let one = self.medium.read_at(start, from, piece.1, into.get_mut(inside).unwrap_or(&mut []))?;
            all = Some(join(all, one));
        }
        Ok(all.unwrap_or(Served { start: at, end: at }))
    }

    fn hold(&mut self, offset: u64, bytes: u64, until: Time) {
        for (offset, bytes) in pieces(offset, bytes, self.config.line_bytes as u64) {
            self.medium.hold(self.place_of(offset).cells, bytes, until);
        }
    }

    #[inline(always)]
    fn prefetch(&self, offset: u64) {
        let line = offset >> self.line_shift;
        let found = self.find(line);
        self.expected[line as usize % EXPECTED].set(found);
        self.medium.prefetch(found.slot + self.inside(offset));
    }

    // Always inlined: as a call, with its result in memory, a line write takes half as many instructions again.
    #[inline(always)]
    fn write(&mut self, at: Time, offset: u64, bytes: u64, data: &[u8]) -> Result<Served, MediumError> {
        if self.is_in_one_line(offset, bytes) {
            return self.put_in_line(at, (offset, bytes), &[], data);
        }
        self.put(at, (offset, bytes), &[], data)
    }

    fn update(&mut self, at: Time, offset: u64, old: &[u8], new: &[u8]) -> Result<Served, MediumError> {
        assert_eq!(old.len(), new.len(), "{} B are to replace {} B", new.len(), old.len());
        let bytes = new.len() as u64;
        if self.is_in_one_line(offset, bytes) {
            return self.put_in_line(at, (offset, bytes), old, new);
        }
        self.put(at, (offset, bytes), old, new)
    }
}

impl<M: Placed + PowerCut> PowerCut for StartGap<M> {
    fn settle(&mut self, upto: Time) {
        self.medium.settle(upto);
    }

    fn cut(&mut self, at: Time) {
        self.medium.cut(at);
        if M::KEEPS {
            self.reload(at).unwrap_or_else(|error| panic!("the moves of start-gap are gone: {error}"));
        }
    }
}

/// A fixed random permutation of `0..count`: a Feistel network over as many bits as `count` needs (at least two),
/// repeated until the result is in range. If the number of bits is odd, the right half has one more; the halves swap
/// in every round, of which there is an even number. The round keys are rotations of one key, the only one a
/// controller has to store.
#[derive(Clone, Debug)]
struct Permutation {
    count: u64,
    right_bits: u32,
    /// The bits of the left and of the right half.
    masks: [u64; 2],
    keys: [u64; 4],
}

impl Permutation {
    fn new(count: u64, seed: u64) -> Permutation {
        let mut rng = Rng::stream(seed, "start-gap");
        let bits = (u64::BITS - (count - 1).leading_zeros()).max(2);
        let key = rng.bits();
        let keys = [0, 16, 32, 48].map(|by| key.rotate_left(by));
        let (left_bits, right_bits) = (bits / 2, bits.div_ceil(2));
        let masks = [(1 << left_bits) - 1, (1 << right_bits) - 1];
        Permutation { count, right_bits, masks, keys }
    }

    /// The place of a line; both are numbers of 32 bits, more lines are refused.
    #[inline]
    fn apply(&self, number: u64) -> u32 {
        let mut number = number;
        loop {
            let (mut left, mut right) = (number >> self.right_bits, number & self.masks[1]);
            for (round, key) in self.keys.into_iter().enumerate() {
                // The odd constant of splitmix64: any good mixer would do.
                let mixed = (right ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                (left, right) = (right, left ^ (mixed >> 32 & self.masks[round & 1]));
            }
            number = left << self.right_bits | right;
            if number < self.count {
                return number as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permutation_is_one_whatever_the_count() {
        for count in (2..70).chain([127, 128, 129, 1000, 4096, 5000]) {
            let permutation = Permutation::new(count, 3);
            let mut places: Vec<u32> = (0..count).map(|number| permutation.apply(number)).collect();
            assert!(count < 10 || places.iter().enumerate().any(|(number, &place)| number as u32 != place));
            places.sort_unstable();
            assert!(places.into_iter().eq(0..count as u32), "{count}");
        }
    }
}
