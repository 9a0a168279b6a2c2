//! Blocks directly in a memory: no map, no cleaning, nothing to recover. With the delays of another memory, it
//! emulates what software sees of that one (NVRamDisk, system 004 slide 12).
//!
//! 1. A unit is at its own place. Requests on different banks proceed in parallel. Of a request, each part that lies in one bank
//!    is a row: all are opened at once, each leaves by itself, and a row that is read stays open until it has left.
//! 2. A write is durable when it is done, if the memory has a battery or capacitor; a power cut leaves each word old or new.
//!    A memory without loses everything, and reads as random bytes.
//! 3. A trim writes zeros and takes the time of a write: there is no map to change.

use crate::{Background, Controller, ControllerError, Powered, RecoveryReport};
use nvlab_medium::ram::{Backup, Ram, RamConfig};
use nvlab_medium::{InPlace, MediumError, PowerCut, Store};
use nvlab_units::{Extent, Lpa, Served, Span, Time};
use std::ops::Range;

/// Bytes of a unit: a sector.
pub const UNIT_BYTES: u32 = 512;

/// Counts since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BareRamStats {
    /// Units the host wrote.
    pub written_units: u64,
    /// Words that crossed the memory bus to or from the host.
    pub words: u64,
}

/// Blocks in a memory.
#[derive(Clone, Debug)]
pub struct BareRam<S: Store> {
    memory: Ram<S>,
    /// Completion time of the last request.
    idle_at: Time,
    stats: BareRamStats,
}

/// A part of a request that lies in one bank.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Address in the memory.
    offset: u64,
    bytes: u64,
    /// The first of its bytes in the request.
    first: u64,
}

impl Row {
    /// Its bytes in the request.
    fn inside(self) -> Range<usize> {
        self.first as usize..(self.first + self.bytes) as usize
    }
}

/// Zeros for trims.
const ZEROS: [u8; 4096] = [0; 4096];

fn unreadable(extent: Extent) -> impl Fn(MediumError) -> ControllerError {
    move |source| ControllerError::Unreadable { lpa: extent.start, source }
}

impl<S: Store> BareRam<S> {
    /// Checks that a memory can hold blocks; otherwise returns the reason.
    pub fn check(config: &RamConfig) -> Result<(), String> {
        config.check()?;
        match config.capacity_bytes / UNIT_BYTES as u64 {
            0 => Err(format!(
                "a memory of {} B is smaller than a block of {UNIT_BYTES} B",
                config.capacity_bytes
            )),
            units if units > u32::MAX as u64 => {
                Err(format!("more than {} blocks of {UNIT_BYTES} B", u32::MAX))
            }
            _ => Ok(()),
        }
    }

    /// A device over a memory; a used store keeps its contents.
    pub fn new(memory: Ram<S>) -> BareRam<S> {
        BareRam { memory, idle_at: Time::ZERO, stats: BareRamStats::default() }
    }

    /// The same after a shutdown without power: a memory without backup has lost its contents.
    pub fn reopen(mut memory: Ram<S>) -> BareRam<S> {
        if memory.config().backup == Backup::None {
            memory.cut(Time::ZERO);
        }
        BareRam::new(memory)
    }

    /// Counts since the last reset.
    pub fn stats(&self) -> &BareRamStats {
        &self.stats
    }
    /// Resets the counts.
    pub fn reset_stats(&mut self) {
        self.stats = BareRamStats::default();
    }

    fn range(extent: Extent) -> (u64, u64) {
        (extent.start.0 as u64 * UNIT_BYTES as u64, extent.count as u64 * UNIT_BYTES as u64)
    }

    /// The rows of a request, whose words are counted: pieces that lie in one bank.
    fn rows(&mut self, extent: Extent) -> Result<impl Iterator<Item = Row> + use<S>, ControllerError> {
        ControllerError::check_extent(extent, self.capacity_units())?;
        let (offset, bytes) = BareRam::<S>::range(extent);
        self.stats.words += bytes.div_ceil(self.memory.config().word_bytes as u64);
        let stripe = self.memory.stripe_bytes();
        let mut next = Row { offset, bytes: 0, first: 0 };
        Ok(std::iter::from_fn(move || {
            next = Row { offset: next.offset + next.bytes, bytes: 0, first: next.first + next.bytes };
            next.bytes = (stripe - next.offset % stripe).min(bytes - next.first);
            (next.bytes > 0).then_some(next)
        }))
    }

    fn done(&mut self, served: Served) -> Served {
        self.idle_at = self.idle_at.max(served.end);
        served
    }
}

impl<S: Store> Background for BareRam<S> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        Ok(self.idle_at.max(at))
    }
    fn settle(&mut self, upto: Time) {
        self.memory.settle(upto);
    }
}

impl<S: Store> Powered for BareRam<S> {
    fn power_cycle(mut self, at: Time) -> Result<(BareRam<S>, RecoveryReport), String> {
        self.memory.cut(at);
        Ok((BareRam { idle_at: at, ..self }, RecoveryReport { time: Span::ZERO, nand_reads: 0 }))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.idle_at(at)
    }
    fn trims_last(&self) -> bool {
        self.memory.config().backup != Backup::None
    }
}

impl<S: Store> Controller for BareRam<S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity_units(&self) -> u32 {
        (self.memory.config().capacity_bytes / UNIT_BYTES as u64) as u32
    }
    fn unit_bytes(&self) -> u32 {
        UNIT_BYTES
    }
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        self.read_in_pieces(at, extent, into, |end, _| end)
    }
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        self.write_in_pieces(at, extent, data, |_| at)
    }
    fn read_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        into: &mut [u8],
        mut send: impl FnMut(Time, u64) -> Time,
    ) -> Result<Served, ControllerError> {
        let mut end = at;
        for row in self.rows(extent)? {
            let into = into.get_mut(row.inside()).unwrap_or(&mut []);
            let opened = self.memory.read(at, row.offset, row.bytes, into).map_err(unreadable(extent))?.end;
            let left = send(opened, row.bytes);
            self.memory.hold(row.offset, row.bytes, left);
            end = end.max(left);
        }
        Ok(self.done(Served { start: at, end }))
    }
    fn write_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
        mut receive: impl FnMut(u64) -> Time,
    ) -> Result<Served, ControllerError> {
        let mut served = Served { start: at, end: at };
        for row in self.rows(extent)? {
            let data = data.get(row.inside()).unwrap_or(&[]);
            let written = self.memory.write(receive(row.bytes), row.offset, row.bytes, data);
            served.end = served.end.max(written.map_err(unreadable(extent))?.end);
        }
        self.stats.written_units += extent.count as u64;
        Ok(self.done(served))
    }
    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.capacity_units())?;
        let (mut offset, mut left) = BareRam::<S>::range(extent);
        let mut end = at;
        while left > 0 {
            let bytes = left.min(ZEROS.len() as u64);
            let zeros = if S::KEEPS { &ZEROS[..bytes as usize] } else { &[] };
            end = self.memory.write(end, offset, bytes, zeros).map_err(unreadable(extent))?.end;
            (offset, left) = (offset + bytes, left - bytes);
        }
        Ok(self.done(Served { start: at, end }))
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        Ok(Served { start: at, end: self.idle_at.max(at) })
    }
    fn view(&self, _: Extent) -> Option<&[u8]> {
        None
    }
    fn is_mapped(&self, _: Lpa) -> bool {
        true
    }
    fn prefetch(&self, _: Lpa) {}
    fn prefetch_writes(&self, _: impl Iterator<Item = Lpa>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_medium::MemStore;
    use nvlab_medium::banks::Access;
    use nvlab_units::Rng;

    fn config(backup: Backup) -> RamConfig {
        let each = |first| Access { first: Span::from_ns(first), next: Span::from_ns(10) };
        RamConfig {
            capacity_bytes: 64 << 10,
            word_bytes: 64,
            read: each(67),
            write: each(215),
            backup,
            banks: 2,
            stripe_bytes: 8 << 10,
            seed: 5,
        }
    }

    fn device(backup: Backup) -> BareRam<MemStore> {
        BareRam::new(Ram::new(config(backup), MemStore::new(64 << 10)))
    }

    fn extent(start: u32, count: u32) -> Extent {
        Extent { start: Lpa(start), count }
    }

    #[test]
    fn a_request_takes_its_latency_and_its_words_and_banks_work_in_parallel() {
        let mut ram = device(Backup::Battery { hold: None });
        let data = [7; 4096];
        let ns = |ns| Time::ZERO + Span::from_ns(ns);
        assert_eq!(ram.write(Time::ZERO, extent(0, 8), &data).unwrap().end, ns(215 + 63 * 10));
        // The other bank is free; the first one is not.
        assert_eq!(ram.write(Time::ZERO, extent(16, 8), &data).unwrap().end, ns(215 + 63 * 10));
        let mut into = [0; 512];
        let served = ram.read(Time::ZERO, extent(1, 1), &mut into).unwrap();
        assert_eq!((served.end, into), (ns(845 + 67 + 7 * 10), [7; 512]));
        assert_eq!(ram.flush(Time::ZERO).unwrap().end, served.end);
        assert!(ram.read(Time::ZERO, extent(127, 2), &mut [0; 1024]).is_err());
    }

    /// Whole units against an array, with power cuts in between: what was done stays, the last write is a mixture of old and
    /// new words.
    #[test]
    fn what_is_done_survives_a_power_cut() {
        for seed in 0..30 {
            let mut rng = Rng::new(seed);
            let (mut ram, mut now) = (device(Backup::Battery { hold: None }), Time::ZERO);
            let mut model = vec![0u8; 64 << 10];
            for _ in 0..60 {
                let (start, count) = (rng.below(120) as u32, 1 + rng.below(8) as u32);
                let (offset, bytes) = (start as usize * 512, count as usize * 512);
                if rng.chance(0.2) {
                    now = ram.trim(now, extent(start, count)).unwrap().end;
                    model[offset..][..bytes].fill(0);
                    continue;
                }
                let data = vec![1 + rng.below(255) as u8; bytes];
                let served = ram.write(now, extent(start, count), &data).unwrap();
                let (cut, half) = (rng.chance(0.2), rng.chance(0.5));
                if cut && half {
                    let within = now + Span::from_ps(rng.below(served.end.since(now).ps()));
                    ram = ram.power_cycle(within).unwrap().0;
                    let mut found = vec![0; bytes];
                    let read = ram.read(served.end, extent(start, count), &mut found).unwrap();
                    let words = found.chunks(64).zip(data.chunks(64)).zip(model[offset..].chunks(64));
                    for ((found, new), old) in words {
                        assert!(found == new || found == old, "seed {seed}: a word that was never written");
                    }
                    model[offset..][..bytes].copy_from_slice(&found);
                    now = read.end;
                    continue;
                }
                model[offset..][..bytes].copy_from_slice(&data);
                now = served.end;
                if cut {
                    ram = ram.power_cycle(now).unwrap().0;
                }
            }
            let mut all = vec![0; 64 << 10];
            ram.read(now, extent(0, 128), &mut all).unwrap();
            assert!(all == model, "seed {seed}");
        }
    }

    #[test]
    fn without_a_battery_everything_is_lost() {
        let mut ram = device(Backup::None);
        ram.write(Time::ZERO, extent(0, 8), &[7; 4096]).unwrap();
        let (mut ram, _) = ram.power_cycle(Time::from_ns(100_000)).unwrap();
        let mut into = [7; 4096];
        ram.read(Time::from_ns(100_000), extent(0, 8), &mut into).unwrap();
        assert!(into.iter().filter(|&&byte| byte == 7).count() < 100, "contents survived");
        assert!(!ram.trims_last());
    }
}
