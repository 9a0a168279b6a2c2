//! State shared by all flash arrays, whatever their rules for writing: wear, endurance, faults, bad blocks, lanes and
//! statistics.
//!
//! Invariants
//! 1. A block's erase count never decreases, except that a power cut undoes an erase that had not begun.
//! 2. A bad block stays bad.
//!
//! Program and erase failures grow with the square of cycles / rated cycles, raw bit errors exponentially between a
//! fresh and a worn rate. Not modelled: charge loss over time and read disturb.

mod wear;

use super::channel::Channel;
use super::config::{FlashConfig, SlcMode};
use super::planes::{Planes, Sense};
use super::retry::Retries;
use nvlab_units::{BlockId, Bus, Die, Lane, Layout, Rng, Served, Span, Ticket, Time, Total};
use serde::{Deserialize, Serialize};

/// Operations of an array, and the busy time of its dies and channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashStats {
    /// Cell-to-register reads (one may fetch several units).
    pub reads: u64,
    /// Of these, retries after the error correction failed.
    pub retries: u64,
    /// Program operations.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
    /// Pages that were not programmed when their block was erased: the unused part of the block's cycle.
    pub skipped_pages: u64,
    /// Uncorrectable reads, failed programs, failed erases.
    pub failures: [u64; 3],
    /// Total duration of all array reads.
    pub read_time: Total,
    /// Die time spent reading: [`FlashStats::read_time`], except that reads of independent planes count as their
    /// share of the die.
    pub read_busy: Total,
    /// Die time spent programming, including waits for data that the registers could not hold earlier.
    pub program_time: Total,
    /// Die time spent erasing.
    pub erase_time: Total,
    /// Channel time spent transferring.
    pub transfer_time: Total,
}

/// Most pages per word line: no part stores more than five bits per cell.
pub const LEVELS_MAX: usize = 5;

/// The level of a page in a block used with one bit per cell.
pub const SLC_LEVEL: u32 = LEVELS_MAX as u32;

/// Operations on blocks used with one bit per cell; [`FlashStats`] includes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlcOperations {
    /// Cell-to-register reads, without retries.
    pub reads: u64,
    /// Program operations.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
    /// See [`FlashStats::skipped_pages`].
    pub skipped_pages: u64,
}

/// A die's lane and the number of its channel.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct DieState {
    lane: Lane,
    channel: u32,
}

/// The shared state of a flash array.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cells {
    /// The configuration it was made with.
    pub config: FlashConfig,
    /// Statistics, except the host's reads and the programs counted below.
    pub(super) stats: FlashStats,
    /// The host's reads by page of a word line, and the units they moved over the channel; full-density programs, and
    /// those sent over the channel. They are frequent, so their times are added up only in [`Cells::stats`].
    host_reads: [u64; LEVELS_MAX + 1],
    host_units: u64,
    /// Planes sensed by the host's reads, by page of a word line, if planes read independently.
    host_planes: [u64; LEVELS_MAX + 1],
    programs: u64,
    pages_sent: u64,
    /// Address arithmetic without divisions.
    pub(super) layout: Layout,
    /// Cell-to-register time of each page of a word line.
    sense: [Span; LEVELS_MAX + 1],
    /// The mode with one bit per cell, if the part has it; operations in it, except the host's reads.
    slc: Option<SlcMode>,
    slc_done: SlcOperations,
    /// Channel time of a unit and of a page.
    unit_transfer: Span,
    page_transfer: Span,
    /// The part of a page's transfer during which its die is blocked: at full density and in SLC mode.
    loading: Span,
    slc_loading: Span,
    #[serde(with = "nvlab_units::plain")]
    erases: Vec<u32>,
    bad: Vec<bool>,
    /// Actual endurance of each block; empty if blocks do not wear out.
    #[serde(with = "nvlab_units::plain")]
    limit: Vec<u32>,
    /// Per block, the erases that ended a use in SLC mode; empty if the part has no SLC mode.
    #[serde(with = "nvlab_units::plain")]
    slc_erases: Vec<u32>,
    rng: Rng,
    dies: Vec<DieState>,
    planes: Planes,
    channels: Vec<Channel>,
    /// Starts of programs, if not all dies may program at the same time ([`super::FlashTiming::programs`]).
    staggered: Bus,
    retries: Option<Retries>,
}

impl Cells {
    /// A factory-new array. Panics if the geometry is invalid (check it first).
    pub fn new(config: FlashConfig) -> Cells {
        config.geometry.check().expect("a geometry that was checked");
        let levels = config.timing.read.len();
        assert!((1..=LEVELS_MAX).contains(&levels), "a flash array with {levels} read times");
        let mut sense = [Span::ZERO; LEVELS_MAX + 1];
        sense[..levels].copy_from_slice(&config.timing.read);
        let (geometry, faults) = (config.geometry, config.faults);
        let mut rng = Rng::stream(faults.seed, "flash faults");
        let bad = (0..geometry.blocks()).map(|_| faults.factory_bad > 0.0 && rng.chance(faults.factory_bad));
        let bad = bad.collect();
        let mut limit = Vec::new();
        if faults.wear_out {
            let rated = config.endurance.cycles as f64;
            let draw = |_| rng.normal(rated, rated * config.endurance.spread).max(1.0) as u32;
            limit = (0..geometry.blocks()).map(draw).collect();
        }
        Cells {
            stats: FlashStats::default(),
            host_reads: [0; LEVELS_MAX + 1],
            host_units: 0,
            host_planes: [0; LEVELS_MAX + 1],
            programs: 0,
            pages_sent: 0,
            slc: None,
            slc_done: SlcOperations::default(),
            layout: Layout::new(&geometry),
            sense,
            unit_transfer: config.timing.transfer.transfer(geometry.unit_bytes as u64),
            page_transfer: config.timing.transfer.transfer(geometry.page_bytes()),
            loading: config.loading(),
            slc_loading: Span::ZERO,
            erases: vec![0; geometry.blocks() as usize],
            bad,
            limit,
            slc_erases: Vec::new(),
            rng,
            dies: geometry
                .all_dies()
                .map(|die| DieState { lane: Lane::new(), channel: geometry.channel_of(die) })
                .collect(),
            planes: Planes::new(config.timing.reads, geometry.dies()),
            retries: faults.bit_errors.map(Retries::new),
            channels: vec![Channel::default(); geometry.channels as usize],
            staggered: Bus::new(),
            config,
        }
    }

    /// Statistics since power-on or the last reset.
    pub fn stats(&self) -> FlashStats {
        let mut stats = self.stats;
        let independent = self.config.timing.reads.independent;
        let planes = self.config.timing.reads.planes as u64;
        for ((&sense, &reads), &sensed) in self.sense.iter().zip(&self.host_reads).zip(&self.host_planes) {
            stats.reads += reads;
            stats.read_time.add_many(sense, reads);
            match independent {
                true => stats.read_busy.add_many(sense / planes, sensed),
                false => stats.read_busy.add_many(sense, reads),
            }
        }
        stats.transfer_time.add_many(self.unit_transfer, self.host_units);
        stats.programs += self.programs;
        stats.program_time.add_many(self.config.timing.program, self.programs);
        stats.program_time.add_many(self.loading, self.pages_sent);
        stats.transfer_time.add_many(self.page_transfer, self.pages_sent);
        stats
    }
    /// The part of [`Cells::stats`] on blocks used with one bit per cell.
    pub fn slc_operations(&self) -> SlcOperations {
        let host_reads = self.host_reads[SLC_LEVEL as usize];
        SlcOperations { reads: self.slc_done.reads + host_reads, ..self.slc_done }
    }
    /// Allows blocks to be used with one bit per cell.
    pub(super) fn allow_slc(&mut self, mode: SlcMode) {
        self.sense[SLC_LEVEL as usize] = mode.read;
        self.slc_loading = self.config.slc_loading(&mode);
        self.slc_erases = vec![0; self.erases.len()];
        self.slc = Some(mode);
    }
    /// The mode with one bit per cell, if the part has it.
    pub fn slc_mode(&self) -> Option<&SlcMode> {
        self.slc.as_ref()
    }
    /// Resets the statistics; wear stays.
    pub fn reset_stats(&mut self) {
        self.stats = FlashStats::default();
        (self.host_reads, self.host_planes) = ([0; LEVELS_MAX + 1], [0; LEVELS_MAX + 1]);
        self.slc_done = SlcOperations::default();
        (self.host_units, self.programs, self.pages_sent) = (0, 0, 0);
    }
    /// Erase count of a block.
    pub fn erase_count(&self, block: BlockId) -> u32 {
        self.erases[block.0 as usize]
    }
    /// The erase counts of every block.
    pub fn erase_counts(&self) -> &[u32] {
        &self.erases
    }
    /// True if the block is a factory bad block or was marked bad.
    pub fn is_bad(&self, block: BlockId) -> bool {
        self.bad[block.0 as usize]
    }
    /// Marks a block bad, permanently.
    pub fn mark_bad(&mut self, block: BlockId) {
        self.bad[block.0 as usize] = true;
    }
    /// The lane of a die.
    pub fn die(&mut self, die: Die) -> &mut Lane {
        &mut self.dies[die.index()].lane
    }
    /// When a die will have done everything queued, if nothing else arrives ([`Lane::idle_from`]).
    #[inline]
    pub fn idle_from(&self, die: Die) -> Time {
        self.dies[die.index()].lane.idle_from()
    }
    /// True if programs may fail, so that each must be checked.
    pub fn programs_may_fail(&self) -> bool {
        self.config.faults.program_failure > 0.0
    }

    /// Counts a read whose data is not what was programmed.
    pub(super) fn count_failed_read(&mut self) {
        self.stats.failures[0] += 1;
    }

    /// Draws whether one program operation on `block` fails.
    pub(crate) fn program_fails(&mut self, block: BlockId) -> bool {
        let rate = self.config.faults.program_failure;
        let fails = rate > 0.0 && {
            let probability = rate * self.wear_ratio(block).powi(2);
            self.rng.chance(probability)
        };
        self.stats.failures[1] += fails as u64;
        fails
    }

    /// Counts one erase of `block`, used with one bit per cell or not, and draws whether it fails.
    pub(crate) fn erase_fails(&mut self, block: BlockId, slc: bool) -> bool {
        self.erases[block.0 as usize] += 1;
        if slc {
            self.slc_erases[block.0 as usize] += 1;
        }
        self.stats.erases += 1;
        let rate = self.config.faults.erase_failure;
        let worn = self.limit.get(block.0 as usize).is_some_and(|&limit| self.worn_by(block) > limit as f64);
        let fails = worn
            || rate > 0.0 && {
                let probability = rate * self.wear_ratio(block).powi(2);
                self.rng.chance(probability)
            };
        self.stats.failures[2] += fails as u64;
        fails
    }

    /// Reverses the count of an erase that had not started when power failed. If the statistics were reset since it
    /// was queued, they do not include it.
    pub(super) fn unerase(&mut self, block: BlockId, skipped: u32) {
        self.erases[block.0 as usize] -= 1;
        self.stats.erases = self.stats.erases.saturating_sub(1);
        self.stats.skipped_pages = self.stats.skipped_pages.saturating_sub(skipped as u64);
    }

    /// [`Cells::unerase`] for a block used with one bit per cell.
    pub(super) fn unerase_slc(&mut self, block: BlockId, skipped: u32) {
        self.slc_done.erases = self.slc_done.erases.saturating_sub(1);
        self.slc_done.skipped_pages = self.slc_done.skipped_pages.saturating_sub(skipped as u64);
        self.slc_erases[block.0 as usize] -= 1;
        self.unerase(block, skipped);
    }

    /// Reads `units` units in the foreground by one command to a die, over its channel and through the error
    /// correction. `Err` holds the end of the last failed retry.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        at: Time,
        block: BlockId,
        sense: Sense,
        units: u32,
    ) -> Result<Served, Time> {
        let die = self.layout.die_of(block);
        let served = self.fetch(at, die, &sense, units);
        self.host_reads[sense.level as usize] += 1;
        self.host_units += units as u64;
        // The result is destructured so that the common case stays in registers.
        let (served, is_corrected) = match self.retries {
            None => (served, true),
            Some(_) => self.read_again(served, block, &sense, units),
        };
        if is_corrected { Ok(served) } else { Err(served.end) }
    }

    /// One read of the cells, its transfer and its decoding.
    #[inline(always)]
    fn fetch(&mut self, at: Time, die: Die, sense: &Sense, units: u32) -> Served {
        let span = self.sense[sense.level as usize];
        let transfer = self.unit_transfer * units as u64;
        let interruption = &self.config.timing.interruption;
        let DieState { lane, channel } = &mut self.dies[die.index()];
        let channel = &mut self.channels[*channel as usize];
        let mut served = if self.planes.are_plain() {
            let served = lane.foreground(at, span, interruption);
            Served { start: served.start, end: channel.book(at, served.end, transfer).end }
        } else {
            self.host_planes[sense.level as usize] += sense.planes as u64;
            self.planes.read(at, (die, lane), channel, sense, (span, transfer), interruption)
        };
        served.end += self.config.timing.decode;
        served
    }

    /// Repeats a read until its bit errors can be corrected; false if they cannot.
    fn read_again(&mut self, first: Served, block: BlockId, sense: &Sense, units: u32) -> (Served, bool) {
        let (die, wear) = (self.layout.die_of(block), self.wear_ratio(block));
        let Some(retries) = &mut self.retries else { return (first, true) };
        let (codewords, most) = (retries.codewords(units * self.config.geometry.unit_bytes), retries.most());
        let drawn = retries.draw(wear, codewords, || self.rng.unit());
        let mut end = first.end;
        for _ in 0..drawn.unwrap_or(most) {
            end = self.fetch(end, die, sense, units).end;
            let span = self.sense[sense.level as usize];
            self.stats.reads += 1;
            self.stats.retries += 1;
            self.stats.read_time += span;
            if !self.config.timing.reads.independent {
                self.stats.read_busy += span;
            }
            self.stats.transfer_time.add_many(self.unit_transfer, units as u64);
        }
        self.stats.failures[0] += u64::from(drawn.is_none());
        (Served { start: first.start, end }, drawn.is_some())
    }

    /// Background array reads on one die (relocation): `reads[i]` reads of page `i` of a word line, fetching `units`
    /// units in total. Unless the part has copy-back, they cross the channel, where they yield to the host; while the
    /// channel is busy with more than the die can read meanwhile, the reads wait.
    pub fn relocation_reads(&mut self, at: Time, die: Die, reads: &[u32], units: u32) {
        let mut start = at;
        if !self.config.timing.copy_back {
            self.stats.transfer_time.add_many(self.unit_transfer, units as u64);
            let spans = reads.iter().zip(&self.sense).map(|(&count, &sense)| sense * count as u64);
            let sensing = spans.fold(Span::ZERO, |sum, span| sum + span);
            let transfer = self.unit_transfer * units as u64;
            let moved = self.channel(die).relocate(at, transfer);
            start = at.max(moved.start.before(sensing));
        }
        for (level, &count) in reads.iter().enumerate().filter(|(_, count)| **count > 0) {
            let sense = self.sense[level];
            self.slc_done.reads += if level as u32 == SLC_LEVEL { count as u64 } else { 0 };
            self.die(die).background(start, sense, count);
            self.stats.reads += count as u64;
            self.stats.read_time.add_many(sense, count as u64);
            self.stats.read_busy.add_many(sense, count as u64);
        }
    }

    /// Background programs on one die, of host or relocated data.
    #[inline(always)]
    pub fn program(&mut self, at: Time, die: Die, count: u32, host: bool) -> Ticket {
        self.programs += count as u64;
        let is_sent = host || !self.config.timing.copy_back;
        self.pages_sent += if is_sent { count as u64 } else { 0 };
        let loading = if is_sent { self.loading } else { Span::ZERO };
        let each = loading + self.config.timing.program;
        let sent = is_sent.then_some(self.page_transfer);
        self.queue_programs(at, die, host, (sent, loading, each), count)
    }

    /// One program of host data that takes `program`.
    pub(super) fn program_for(&mut self, at: Time, die: Die, program: Span) -> Ticket {
        self.stats.programs += 1;
        self.stats.program_time += program;
        self.pages_sent += 1;
        let sent = Some(self.page_transfer);
        self.queue_programs(at, die, true, (sent, self.loading, self.loading + program), 1)
    }

    /// [`Cells::program`] in a block used with one bit per cell.
    pub(super) fn program_slc(&mut self, at: Time, die: Die, count: u32, host: bool) -> Ticket {
        let Some(mode) = self.slc else { panic!("the part has no SLC mode") };
        let transfer = self.unit_transfer * mode.units_per_page as u64;
        self.slc_done.programs += count as u64;
        self.stats.programs += count as u64;
        let is_sent = host || !self.config.timing.copy_back;
        if is_sent {
            self.stats.transfer_time.add_many(transfer, count as u64);
        }
        let loading = if is_sent { self.slc_loading } else { Span::ZERO };
        let each = loading + mode.program;
        self.stats.program_time.add_many(each, count as u64);
        self.queue_programs(at, die, host, (is_sent.then_some(transfer), loading, each), count)
    }

    /// Queues programs that last `each`, including their `loading`, of pages that take the channel for `sent`;
    /// `None`: copied inside the die.
    #[inline(always)]
    fn queue_programs(
        &mut self,
        at: Time,
        die: Die,
        host: bool,
        (sent, loading, each): (Option<Span>, Span, Span),
        count: u32,
    ) -> Ticket {
        let start = match sent {
            Some(page) if host => self.send(at, die, page, count).before(loading),
            Some(page) => self.send_relocated(at, die, (page, loading, each), count),
            None => at,
        };
        let start = self.stagger(at, start, each, count);
        self.die(die).background(start, each, count)
    }

    /// The channel of a die.
    #[inline(always)]
    fn channel(&mut self, die: Die) -> &mut Channel {
        &mut self.channels[self.dies[die.index()].channel as usize]
    }

    /// Sends pages over the channel of a die; returns when they have arrived.
    #[inline]
    fn send(&mut self, at: Time, die: Die, page: Span, count: u32) -> Time {
        self.channel(die).book(at, at, page * count as u64).end
    }

    /// Sends relocated pages over the channel of a die as they are programmed, each taking `each`. Returns the
    /// earliest start of the first program such that every page has arrived, except for its `loading`, when its
    /// program starts.
    fn send_relocated(
        &mut self,
        at: Time,
        die: Die,
        (page, loading, each): (Span, Span, Span),
        count: u32,
    ) -> Time {
        let moved = self.channel(die).relocate(at, page * count as u64);
        let first = (moved.start + page).before(loading);
        let last = moved.end.before(loading + each * count.saturating_sub(1) as u64);
        at.max(first).max(last)
    }

    /// When a die has done everything queued and its relocated data has crossed the channel, including the time that
    /// reads took from both ([`Lane::idle_at`]).
    pub(super) fn idle_at(&mut self, die: Die, at: Time) -> Time {
        let channel = self.channel(die).relocated_until();
        self.die(die).idle_at(at).max(channel)
    }

    /// The earliest start at or after `start` for `count` consecutive programs of length `each`, given the limit of
    /// concurrent programs.
    #[inline]
    fn stagger(&mut self, at: Time, start: Time, each: Span, count: u32) -> Time {
        let Some(programs) = self.config.timing.programs else { return start };
        self.staggered.book(at, start, each * count as u64 / programs.max(1) as u64).start
    }

    /// Queues an erase on one die, of a block with `skipped` pages that were never programmed.
    pub(super) fn erase(&mut self, at: Time, die: Die, skipped: u32) -> Ticket {
        self.erase_for(at, die, self.config.timing.erase, skipped)
    }

    /// [`Cells::erase`] of a block used with one bit per cell.
    pub(super) fn erase_slc(&mut self, at: Time, die: Die, skipped: u32) -> Ticket {
        let Some(mode) = self.slc else { panic!("the part has no SLC mode") };
        self.slc_done.erases += 1;
        self.slc_done.skipped_pages += skipped as u64;
        self.erase_for(at, die, mode.erase, skipped)
    }

    /// [`Cells::erase`] that takes `erase`.
    pub(super) fn erase_for(&mut self, at: Time, die: Die, erase: Span, skipped: u32) -> Ticket {
        self.stats.skipped_pages += skipped as u64;
        self.stats.erase_time += erase;
        self.die(die).background(at, erase, 1)
    }

    /// Makes all lanes idle after a power cut.
    pub(super) fn reset_lanes(&mut self, at: Time) {
        for die in &mut self.dies {
            die.lane = Lane::new();
            die.lane.advance(at);
        }
        self.planes.reset();
        self.channels.fill_with(Channel::default);
        self.staggered = Bus::new();
    }

    /// One random number from the fault stream.
    pub(super) fn random(&mut self) -> u64 {
        self.rng.bits()
    }
}
