//! Storage-class memory in place: every unit has a fixed address in one of several memories, each behind its own
//! controller. There is no map and no cleaning; recovery is limited to what a memory's wear levelling recovers by
//! itself ([`nvlab_medium::StartGap`]). Striped disks are modelled in the same way.
//!
//! A request is split in parts of [`ScmConfig::split_bytes`], which go round the memory controllers (Moneta: 8 KiB).
//! A part takes a tag, the banks of its memory, the channel of that memory, and the ring that all share. Each serves
//! one part at a time, and a part is on one of them at a time: it is stored and forwarded. Behind the ring each part
//! is sent by itself ([`Controller::read_in_pieces`]): a link sends one while the next is on the ring. With
//! [`ScmConfig::bursts`] no device moves data by itself: the processor does, a few bursts at a time.
//!
//! Pessimistic: a part is not forwarded before it is complete (up to a microsecond for 4 KiB). A write programs its
//! row once, whatever part of it changes; its whole line wears. Optimistic: on a processor's memory channel, bursts
//! of other requests do not close an open row; a memory controller that alternates between requests would wait more
//! often. Nothing depends on earlier writes, so preconditioning writes nothing.
//!
//! Invariants
//! 1. A unit is where its address says, in every state of the device; a power cut changes no address.
//! 2. A cut leaves every aligned [`InPlace::atomic_bytes`] of a unit old or new. A unit may be longer: then a unit that
//!    was being written may hold old and new ones.
//! 3. What was acknowledged is durable at once, unless writes are posted without protection: then after a flush, which
//!    waits for the cells. A protected room is programmed when the power fails.
//! 4. A trim overwrites the units with zeros, since no map could say that they are empty: it takes the time of a write,
//!    wears the cells, and lasts like one. With [`ScmConfig::trim`] off it does nothing at all.

mod config;
mod posted;

pub use config::{Bursts, Posting, ScmConfig};

use crate::{Background, Controller, ControllerError, Powered, RecoveryReport};
use nvlab_medium::{InPlace, MediumError, PowerCut};
use nvlab_units::{Bus, Extent, Lpa, Served, Time};
use posted::Posted;

/// Counts since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScmStats {
    /// Units read.
    pub read_units: u64,
    /// Units the host wrote.
    pub written_units: u64,
    /// Units overwritten with zeros because of trims.
    pub trimmed_units: u64,
    /// Transfers between memories and host: bursts if the processor moves the data, otherwise parts of requests.
    pub transfers: u64,
}

/// A memory, its controller, and the channel between them.
#[derive(Clone, Debug)]
struct Behind<M> {
    memory: M,
    channel: Bus,
    posted: Option<Posted>,
}

/// Memories that are used in place.
#[derive(Clone, Debug)]
pub struct Scm<M> {
    config: ScmConfig,
    behind: Box<[Behind<M>]>,
    ring: Bus,
    /// When the part with each tag ends; the next part takes tag `next_tag`.
    tags: Box<[Time]>,
    next_tag: usize,
    /// Instead of divisions, if bytes of a unit, bytes of a part and memories are powers of two.
    shifts: Option<Shifts>,
    /// When the last write is programmed.
    written: Time,
    stats: ScmStats,
    /// A part of zeros, for trims.
    zeros: Box<[u8]>,
}

/// Powers of two as shifts and masks.
#[derive(Clone, Copy, Debug)]
struct Shifts {
    unit: u32,
    split: u32,
    count: u32,
    split_mask: u64,
    count_mask: u64,
}

/// When a part of a request is done.
#[derive(Clone, Copy, Debug)]
struct Done {
    /// Its tag is free.
    tag: Time,
    /// The host has it, or it is durable.
    end: Time,
    /// The next part of the request may begin; at once, if that is over.
    next: Time,
}

/// The part of a request behind one memory controller.
#[derive(Clone, Copy, Debug)]
struct Part {
    controller: usize,
    /// Address in its memory.
    offset: u64,
    bytes: u64,
    /// The first of its bytes in the request.
    first: u64,
}

impl<M: InPlace> Scm<M> {
    /// Takes the memories, new or recovered, or says why it cannot work. They must be alike.
    pub fn new(config: ScmConfig, memories: Vec<M>) -> Result<Scm<M>, String> {
        let least = memories.iter().map(M::capacity).min().unwrap_or(0);
        config.check(memories.len() as u32, least)?;
        let log2 = |value: u64| value.is_power_of_two().then(|| value.trailing_zeros());
        let unit = log2(config.unit_bytes as u64);
        let shifts = unit.zip(log2(config.split_bytes)).zip(log2(memories.len() as u64));
        let zeros = if M::KEEPS && config.trim { config.split_bytes as usize } else { 0 };
        Ok(Scm {
            behind: memories.into_iter().map(|memory| Behind::new(&config, memory)).collect(),
            ring: Bus::new(),
            tags: vec![Time::ZERO; config.tags as usize].into(),
            next_tag: 0,
            shifts: shifts.map(|((unit, split), count)| Shifts {
                unit,
                split,
                count,
                split_mask: (1 << split) - 1,
                count_mask: (1 << count) - 1,
            }),
            written: Time::ZERO,
            stats: ScmStats::default(),
            zeros: vec![0; zeros].into(),
            config,
        })
    }

    /// The memories.
    pub fn memories(&self) -> impl Iterator<Item = &M> {
        self.behind.iter().map(|behind| &behind.memory)
    }
    /// The memories, to reset their statistics.
    pub fn memories_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.behind.iter_mut().map(|behind| &mut behind.memory)
    }
    /// What it has done so far.
    pub fn stats(&self) -> ScmStats {
        self.stats
    }
    /// Resets the statistics.
    pub fn reset_stats(&mut self) {
        self.stats = ScmStats::default();
    }

    /// The part of `bytes` from `offset` on that is behind one memory controller; `first` is its place in the request.
    #[inline]
    fn part(&self, offset: u64, bytes: u64, first: u64) -> Part {
        let (inside, controller, nth) = match self.shifts {
            Some(Shifts { split, count, split_mask, count_mask, .. }) => {
                let number = offset >> split;
                (offset & split_mask, number & count_mask, number >> count)
            }
            None => {
                let (split, count) = (self.config.split_bytes, self.behind.len() as u64);
                let number = offset / split;
                (offset % split, number % count, number / count)
            }
        };
        let split = self.config.split_bytes;
        Part {
            controller: controller as usize,
            offset: nth * split + inside,
            bytes: bytes.min(split - inside),
            first,
        }
    }

    /// The first byte of units, and how many they are.
    #[inline]
    fn bytes_of(&self, extent: Extent) -> (u64, u64) {
        match self.shifts {
            Some(Shifts { unit, .. }) => ((extent.start.0 as u64) << unit, (extent.count as u64) << unit),
            None => {
                let unit = self.config.unit_bytes as u64;
                (extent.start.0 as u64 * unit, extent.count as u64 * unit)
            }
        }
    }

    /// Runs `serve` for every part of a request, each not before its tag is free. Returns the end of the last.
    #[inline]
    fn each_part(
        &mut self,
        at: Time,
        extent: Extent,
        mut serve: impl FnMut(&mut Self, Time, Part) -> Result<Done, MediumError>,
    ) -> Result<Served, (u64, MediumError)> {
        let (mut offset, mut left) = self.bytes_of(extent);
        let (mut next, mut end) = (at, at);
        let mut first = 0;
        while left > 0 {
            let part = self.part(offset, left, first);
            let tag = self.next_tag;
            let begin = next.max(self.tags[tag]);
            let done = serve(self, begin, part).map_err(|source| (offset, source))?;
            self.tags[tag] = done.tag;
            self.next_tag = if tag + 1 == self.tags.len() { 0 } else { tag + 1 };
            (next, end) = (at.max(done.next), end.max(done.end));
            offset += part.bytes;
            first += part.bytes;
            left -= part.bytes;
        }
        Ok(Served { start: at, end })
    }

    #[inline]
    fn read_part(
        &mut self,
        (now, at): (Time, Time),
        part: Part,
        into: &mut [u8],
    ) -> Result<Done, MediumError> {
        let behind = &mut self.behind[part.controller];
        let into = into.get_mut(part.first as usize..(part.first + part.bytes) as usize);
        let mut end = behind.memory.read(at, part.offset, part.bytes, into.unwrap_or(&mut []))?.end;
        if let Some(rate) = self.config.channel {
            end = behind.channel.book(now, end, rate.transfer(part.bytes)).end;
        }
        let mut next = now;
        if let Some(bursts) = self.config.bursts {
            if bursts.row_bytes.is_some() {
                behind.memory.hold(part.offset, part.bytes, end);
            }
            next = bursts.next_at(next, end, part.bytes);
        }
        if let Some(rate) = self.config.ring {
            end = self.ring.book(now, end, rate.transfer(part.bytes)).end;
        }
        let end = self.moved(at, end, part.bytes);
        Ok(Done { tag: end, end, next })
    }

    #[inline]
    fn write_part(&mut self, (now, at): (Time, Time), part: Part, data: &[u8]) -> Result<Done, MediumError> {
        let mut arrived = at;
        if let Some(rate) = self.config.ring {
            arrived = self.ring.book(now, arrived, rate.transfer(part.bytes)).end;
        }
        let behind = &mut self.behind[part.controller];
        if let Some(rate) = self.config.channel {
            arrived = behind.channel.book(now, arrived, rate.transfer(part.bytes)).end;
        }
        let data =
            if M::KEEPS { &data[part.first as usize..(part.first + part.bytes) as usize] } else { &[] };
        let Some(posted) = &mut behind.posted else {
            let end = behind.memory.write(arrived, part.offset, part.bytes, data)?.end;
            self.written = self.written.max(end);
            let end = self.moved(at, end, part.bytes);
            return Ok(Done { tag: end, end, next: now });
        };
        let accepted = posted.room_at(arrived, part.bytes);
        let end = behind.memory.write(accepted, part.offset, part.bytes, data)?.end;
        posted.add(end, part.bytes);
        self.written = self.written.max(end);
        let end = self.moved(at, accepted, part.bytes);
        Ok(Done { tag: end, end, next: now })
    }

    /// Counts the transfers of a part, and returns its end: if the processor itself moves it, not before all its bursts have
    /// had their turn.
    #[inline]
    fn moved(&mut self, at: Time, end: Time, bytes: u64) -> Time {
        let Some(bursts) = self.config.bursts else {
            self.stats.transfers += 1;
            return end;
        };
        let count = bursts.count(bytes);
        self.stats.transfers += count;
        end.max(at + bursts.time(count))
    }

    fn unit_at(&self, offset: u64) -> Lpa {
        Lpa((offset / self.config.unit_bytes as u64) as u32)
    }

    fn checked(&self, extent: Extent) -> Result<(), ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_units)
    }
}

impl<M> Behind<M> {
    fn new(config: &ScmConfig, memory: M) -> Behind<M> {
        Behind {
            memory,
            channel: Bus::new(),
            posted: config.posted.map(|posting| Posted::new(posting.bytes)),
        }
    }
}

impl<M: InPlace + PowerCut> Background for Scm<M> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        Ok(at.max(self.written))
    }
    fn settle(&mut self, upto: Time) {
        self.behind.iter_mut().for_each(|behind| behind.memory.settle(upto));
    }
}

impl<M: InPlace + PowerCut> Powered for Scm<M> {
    /// A recovery ends when every memory has answered a read of its first unit: by then its wear levelling has read its
    /// registers.
    fn power_cycle(self, at: Time) -> Result<(Scm<M>, RecoveryReport), String> {
        let protected = self.config.posted.is_some_and(|posting| posting.protected);
        // Stored energy programs what was accepted. A write that was still on its way then counts as accepted too: nobody
        // was told about it, so new is as good as old.
        let cut = if protected { at.max(self.written) } else { at };
        let unit = self.config.unit_bytes;
        let mut first = vec![0; if M::KEEPS { unit as usize } else { 0 }];
        let (mut ready, mut memories) = (cut, Vec::with_capacity(self.behind.len()));
        for Behind { mut memory, .. } in self.behind {
            memory.cut(cut);
            let read = memory.read(cut, 0, unit as u64, &mut first);
            ready = ready.max(read.map_err(|error| error.to_string())?.end);
            memories.push(memory);
        }
        let report = RecoveryReport { time: ready.since(at), nand_reads: 0 };
        Ok((Scm::new(self.config, memories)?, report))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.idle_at(at)
    }
    fn trims_last(&self) -> bool {
        self.config.trim
    }
}

impl<M: InPlace + PowerCut> Controller for Scm<M> {
    const KEEPS: bool = M::KEEPS;

    fn capacity_units(&self) -> u32 {
        self.config.logical_units
    }
    fn unit_bytes(&self) -> u32 {
        self.config.unit_bytes
    }

    #[inline]
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        self.read_in_pieces(at, extent, into, |end, _| end)
    }

    #[inline]
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        self.write_in_pieces(at, extent, data, |_| at)
    }

    /// A part is a piece. Its tag is free when it has left: what waits for the link holds none.
    #[inline]
    fn read_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        into: &mut [u8],
        mut send: impl FnMut(Time, u64) -> Time,
    ) -> Result<Served, ControllerError> {
        self.checked(extent)?;
        self.stats.read_units += extent.count as u64;
        let start = at + self.config.overhead;
        let read = self.each_part(start, extent, |scm, begin, part| {
            let done = scm.read_part((at, begin), part, into)?;
            Ok(Done { end: send(done.end, part.bytes), ..done })
        });
        read.map_err(|(offset, source)| ControllerError::Unreadable { lpa: self.unit_at(offset), source })
    }

    #[inline]
    fn write_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
        mut receive: impl FnMut(u64) -> Time,
    ) -> Result<Served, ControllerError> {
        self.checked(extent)?;
        self.stats.written_units += extent.count as u64;
        let overhead = self.config.overhead;
        let wrote = self.each_part(at + overhead, extent, |scm, begin, part| {
            let begin = begin.max(receive(part.bytes) + overhead);
            scm.write_part((at, begin), part, data)
        });
        wrote.map_err(|(offset, source)| ControllerError::Unwritable { lpa: self.unit_at(offset), source })
    }

    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        self.checked(extent)?;
        let start = at + self.config.overhead;
        if !self.config.trim {
            return Ok(Served { start, end: start });
        }
        self.stats.trimmed_units += extent.count as u64;
        // The zeros come from the memory controller itself: they cross neither ring nor channel.
        let wrote = self.each_part(start, extent, |scm, begin, part| {
            let zeros = scm.zeros.get(..part.bytes as usize).unwrap_or(&[]);
            let end = scm.behind[part.controller].memory.write(begin, part.offset, part.bytes, zeros)?.end;
            scm.written = scm.written.max(end);
            Ok(Done { tag: end, end, next: at })
        });
        wrote.map_err(|(offset, source)| ControllerError::Unwritable { lpa: self.unit_at(offset), source })
    }

    /// Waits for what was posted: everything else is programmed when it is acknowledged.
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        let start = at + self.config.overhead;
        Ok(Served { start, end: start.max(self.written) })
    }

    fn view(&self, _: Extent) -> Option<&[u8]> {
        None
    }
    /// Nothing says which units are empty.
    fn is_mapped(&self, _: Lpa) -> bool {
        true
    }
    /// No map, nothing to prefetch; a read touches no table.
    fn prefetch(&self, _: Lpa) {}
    #[inline]
    fn prefetch_writes(&self, units: impl Iterator<Item = Lpa>) {
        for unit in units {
            let (offset, _) = self.bytes_of(Extent::one(unit));
            let part = self.part(offset, 1, 0);
            self.behind[part.controller].memory.prefetch(part.offset);
        }
    }
}
