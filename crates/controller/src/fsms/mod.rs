//! FSMS, file-system metadata separation (system 003): a driver in front of a device that keeps what the FAT file
//! system changes over and over (boot sector, FATs, directories) in PRAM, and sends the rest to the device.
//!
//! It is not a file system. It learns from the writes where FATs and directories are, without help from the host. So it
//! may be wrong, but then a sector is merely in the slower place: a table in PRAM records where each sector *is*, and
//! that alone determines what a read returns.
//!
//! Units are sectors of 512 B, whatever the units of the device behind are; a partial write of its units reads, merges
//! and writes whole ones.
//!
//! Invariants
//! 1. A sector is in PRAM iff the table names it; otherwise it is on the device behind. The table changes only after
//!    the sector is durable in its new place.
//! 2. A cluster that became free is trimmed at the next flush, if its FAT entry is still 0 and nothing was written
//!    to it since. (A client that writes the new contents of a cluster, flushes, and only then frees it for its old
//!    owner would lose them; no such client is known.)
//! 3. What was learnt is volatile: a mount reads the volume again, each cluster at most once as part of a directory and
//!    once because a directory names it, whatever the FAT says.
//!
//! It learns, and PRAM compares, only where the workload carries bytes (`iozone`, `logger`, `nvlab image`, a served device); otherwise a
//! given share of the words is assumed to differ.
//!
//! The guarantees are those of the device behind; sectors in PRAM are durable when their write is done. Trims cover
//! whole units of the device behind; sectors at the edges keep their contents.
//!
//! | file | what |
//! |---|---|
//! | [`config`], [`stats`] | its configuration and statistics |
//! | [`fat`] | the FAT formats |
//! | `learn` | learning from the writes |
//! | `slots` | sectors in PRAM |
//! | `behind` | sectors on the device behind |

mod behind;
pub mod config;
pub mod fat;
mod learn;
mod slots;
pub mod stats;

pub use config::FsmsConfig;
pub use fat::{FatKind, FileSystem, Volume};
pub use slots::Update;
pub use stats::FsmsStats;

use crate::{
    Background, BesidePram, Controller, ControllerError, Powered, RecoveryReport, read_in_one, write_in_one,
};
use learn::Bits;
use nvlab_medium::InPlace;
use nvlab_units::{Extent, Lpa, Served, Time};
use slots::{Change, Slots};

/// Bytes of a sector.
pub const SECTOR: usize = 512;

/// A separator of metadata in front of a device.
#[derive(Clone, Debug)]
pub struct Fsms<C> {
    config: FsmsConfig,
    behind: C,
    slots: Slots,
    sectors: u32,
    /// Sectors of one unit of the device behind.
    per_unit: u32,
    file_system: FileSystem,
    /// The number of the boot sector: 0, or where a partition begins.
    boot: u32,
    /// Clusters that belong to directories.
    directories: Bits,
    /// Clusters that became free and must be trimmed, and a list of them (which may be partly out of date).
    freed: Bits,
    to_trim: Vec<u32>,
    /// A slot may hold a sector that is no longer metadata.
    reclaimable: bool,
    next_reclaimed: u32,
    /// Scratch: a part of the FAT before a write; whole units of the device behind.
    before: Vec<u8>,
    whole: Vec<u8>,
    stats: FsmsStats,
}

impl<C: BesidePram> Fsms<C> {
    const KEEPS: bool = <C::Pram as InPlace>::KEEPS;

    /// A separator in front of a device with a PRAM that is factory-new (all zero) in the part the device does not
    /// use; or why this cannot work. If the device already holds a volume, call [`Fsms::learn`].
    pub fn new(config: FsmsConfig, behind: C) -> Result<Fsms<C>, String> {
        let mut fsms = Fsms::empty(config, behind)?;
        fsms.slots.format(fsms.behind.pram_mut()).map_err(|error| error.to_string())?;
        Ok(fsms)
    }

    /// A separator in front of a device that was mounted after a power cut. Returns also when it is ready.
    pub fn mount(config: FsmsConfig, behind: C, at: Time) -> Result<(Fsms<C>, Time), String> {
        assert!(Self::KEEPS, "a mount reads payload");
        let mut fsms = Fsms::empty(config, behind)?;
        let loaded = fsms.slots.load(fsms.behind.pram_mut(), at)?;
        fsms.reclaimable = true;
        let end = fsms.learn(loaded).map_err(|error| error.to_string())?;
        Ok((fsms, end))
    }

    fn empty(config: FsmsConfig, behind: C) -> Result<Fsms<C>, String> {
        crate::pram::check_atomic(behind.pram(), "fsms changes its table in place")?;
        let device = (behind.capacity_units(), behind.unit_bytes());
        let part = config.check(device, behind.pram().capacity(), behind.pram_taken())?;
        let per_unit = behind.unit_bytes() / SECTOR as u32;
        let sectors = behind.capacity_units() * per_unit;
        Ok(Fsms {
            slots: Slots::empty(part, config.journal_records, config.update, sectors),
            file_system: FileSystem::Unknown,
            boot: 0,
            directories: Bits::default(),
            freed: Bits::default(),
            to_trim: Vec::new(),
            reclaimable: false,
            next_reclaimed: 0,
            before: Vec::new(),
            whole: Vec::new(),
            stats: FsmsStats::default(),
            config,
            behind,
            sectors,
            per_unit,
        })
    }

    /// What it has done so far.
    pub fn stats(&self) -> &FsmsStats {
        &self.stats
    }
    /// Resets the statistics; the device behind has its own.
    pub fn reset_stats(&mut self) {
        self.stats = FsmsStats::default();
    }
    /// Its configuration.
    pub fn config(&self) -> &FsmsConfig {
        &self.config
    }
    /// The file system it found on the device.
    pub fn file_system(&self) -> FileSystem {
        self.file_system
    }
    /// The device behind.
    pub fn behind(&self) -> &C {
        &self.behind
    }
    /// The device behind, to reset its statistics or settle it.
    pub fn behind_mut(&mut self) -> &mut C {
        &mut self.behind
    }
    /// Returns the device behind without the separator.
    pub fn into_behind(self) -> C {
        self.behind
    }
    /// The part of the PRAM it uses: offset and bytes.
    pub fn pram_part(&self) -> (u64, u64) {
        self.slots.part()
    }
    /// Sectors now in PRAM, and how many fit.
    pub fn sectors_in_pram(&self) -> (u32, u32) {
        (self.slots.count(), self.slots.len())
    }
    /// True if the table says that a sector is in PRAM.
    pub fn is_in_pram(&self, sector: Lpa) -> bool {
        self.slots.of(sector).is_some()
    }
    /// Bytes of volatile memory the driver needs, without the device behind.
    pub fn memory_bytes(&self) -> u64 {
        self.slots.memory_bytes()
            + self.directories.bytes()
            + self.freed.bytes()
            + 4 * self.to_trim.len() as u64
    }
    /// Checks every invariant; for tests.
    pub fn check(&self) {
        self.slots.check();
    }

    #[inline]
    fn begin(&self, at: Time, extent: Extent) -> Result<Time, ControllerError> {
        ControllerError::check_extent(extent, self.sectors)?;
        Ok(at + self.config.overhead)
    }

    /// True if writes of a sector go to PRAM.
    #[inline]
    fn is_metadata(&self, sector: Lpa) -> bool {
        let learnt = match &self.file_system {
            FileSystem::Fat(volume) if sector.0 < volume.data => sector.0 >= volume.base || sector.0 == 0,
            FileSystem::Fat(volume) => {
                volume.cluster_of(sector.0).is_some_and(|cluster| self.directories.get(cluster))
            }
            _ => false,
        };
        learnt
            || self
                .config
                .regions
                .iter()
                .any(|region| sector >= region.start && (sector.0 as u64) < region.end())
    }

    /// Reads sectors from where they are; returns when that is done.
    fn read_sectors(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Time, ControllerError> {
        let (mut sector, end_sector, mut end) = (extent.start, Lpa(extent.end() as u32), at);
        while sector < end_sector {
            let from = (sector - extent.start) as usize * SECTOR;
            if let Some(slot) = self.slots.of(sector) {
                let into = if Self::KEEPS { &mut into[from..from + SECTOR] } else { &mut [][..] };
                end = end.max(self.slots.read(self.behind.pram_mut(), at, slot, into)?);
                sector = sector + 1;
                continue;
            }
            let rest = Extent { start: sector, count: end_sector - sector };
            let run = rest.units().take_while(|&sector| self.slots.of(sector).is_none()).count() as u32;
            let into = if Self::KEEPS { &mut into[from..from + run as usize * SECTOR] } else { &mut [][..] };
            end = end.max(self.read_behind(at, Extent { start: sector, count: run }, into)?);
            sector = sector + run;
        }
        Ok(end)
    }

    /// Writes sectors to where they belong; returns when all are done.
    fn write_sectors(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Time, ControllerError> {
        let (mut sector, end_sector, mut end) = (extent.start, Lpa(extent.end() as u32), at);
        while sector < end_sector {
            let from = (sector - extent.start) as usize * SECTOR;
            let bytes =
                |count: u32| if Self::KEEPS { &data[from..from + count as usize * SECTOR] } else { &[] };
            if self.is_metadata(sector) {
                end = end.max(self.write_metadata(at, sector, bytes(1))?);
                sector = sector + 1;
                continue;
            }
            let rest = Extent { start: sector, count: end_sector - sector };
            let run = rest.units().take_while(|&sector| !self.is_metadata(sector)).count() as u32;
            end = end.max(self.write_data(at, Extent { start: sector, count: run }, bytes(run))?);
            sector = sector + run;
        }
        Ok(end)
    }

    fn write_metadata(&mut self, at: Time, sector: Lpa, data: &[u8]) -> Result<Time, ControllerError> {
        self.keep_clusters(Extent::one(sector));
        if let Some(slot) = self.slots.of(sector) {
            let Change { end, words } = self.slots.overwrite(self.behind.pram_mut(), at, slot, data)?;
            self.stats.overwritten_words += SECTOR as u64 / 2;
            self.stats.changed_words += words;
            self.stats.pram_written_sectors += 1;
            return Ok(end);
        }
        if self.slots.is_full() && !self.reclaim(at)? {
            self.stats.spilled_sectors += 1;
            return self.write_behind(at, Extent::one(sector), data);
        }
        self.stats.claimed += 1;
        self.stats.pram_written_sectors += 1;
        self.slots.claim(self.behind.pram_mut(), at, sector, data)
    }

    /// Writes sectors that are not metadata; those still in PRAM, from when they were, are removed from it.
    fn write_data(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Time, ControllerError> {
        self.keep_clusters(extent);
        let mut end = self.write_behind(at, extent, data)?;
        if self.slots.count() > 0 {
            for sector in extent.units() {
                if let Some(slot) = self.slots.of(sector) {
                    let durable = self.behind.flush(end)?.end;
                    end = self.slots.release(self.behind.pram_mut(), durable, slot)?;
                    self.stats.released += 1;
                }
            }
        }
        Ok(end)
    }

    /// Moves a sector that is no longer metadata out of PRAM; returns false if there is none.
    fn reclaim(&mut self, at: Time) -> Result<bool, ControllerError> {
        if !self.reclaimable {
            return Ok(false);
        }
        for _ in 0..self.slots.len() {
            let slot = self.next_reclaimed;
            self.next_reclaimed = if slot + 1 == self.slots.len() { 0 } else { slot + 1 };
            let Some(sector) = self.slots.held(slot).filter(|&sector| !self.is_metadata(sector)) else {
                continue;
            };
            let mut data = [0; SECTOR];
            let into = if Self::KEEPS { &mut data[..] } else { &mut [] };
            let read = self.slots.read(self.behind.pram_mut(), at, slot, into)?;
            let written =
                self.write_behind(read, Extent::one(sector), &data[..SECTOR * Self::KEEPS as usize])?;
            let durable = self.behind.flush(written)?.end;
            self.slots.release(self.behind.pram_mut(), durable, slot)?;
            self.stats.released += 1;
            return Ok(true);
        }
        self.reclaimable = false;
        Ok(false)
    }
}

impl<C: BesidePram> Background for Fsms<C> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.behind.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.behind.settle(upto);
    }
}

impl<C: BesidePram> Powered for Fsms<C> {
    fn power_cycle(self, at: Time) -> Result<(Fsms<C>, RecoveryReport), String> {
        let (behind, report) = self.behind.power_cycle(at)?;
        let (fsms, end) = Fsms::mount(self.config, behind, at + report.time)?;
        Ok((fsms, RecoveryReport { time: end.since(at), ..report }))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.behind.power_down(at)
    }
    fn trims_last(&self) -> bool {
        self.behind.trims_last()
    }
}

impl<C: BesidePram> Controller for Fsms<C> {
    const KEEPS: bool = Self::KEEPS;

    fn capacity_units(&self) -> u32 {
        self.sectors
    }
    fn unit_bytes(&self) -> u32 {
        SECTOR as u32
    }

    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        let start = self.begin(at, extent)?;
        let end = self.read_sectors(start, extent, into)?;
        self.stats.read_sectors += extent.count as u64;
        if self.slots.count() > 0 {
            let in_pram = extent.units().filter(|&sector| self.slots.of(sector).is_some()).count();
            self.stats.pram_read_sectors += in_pram as u64;
        }
        Ok(Served { start, end })
    }

    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        let start = self.begin(at, extent)?;
        self.stats.written_sectors += extent.count as u64;
        if !Self::KEEPS {
            let end = self.write_sectors(start, extent, data)?;
            return Ok(Served { start, end });
        }
        assert_eq!(data.len(), extent.count as usize * SECTOR, "the payload of {extent:?}");
        let mut before = std::mem::take(&mut self.before);
        let now = self.prepare_for_write(start, extent, data, &mut before);
        let end = self.write_sectors(now, extent, data);
        if let Ok(end) = end {
            self.learn_from(end, extent, data, &mut before);
        }
        self.before = before;
        Ok(Served { start, end: end? })
    }

    /// A request is one piece: its sectors may be on two devices.
    fn read_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        into: &mut [u8],
        send: impl FnMut(Time, u64) -> Time,
    ) -> Result<Served, ControllerError> {
        read_in_one(self, at, extent, into, send)
    }
    fn write_in_pieces(
        &mut self,
        _: Time,
        extent: Extent,
        data: &[u8],
        receive: impl FnMut(u64) -> Time,
    ) -> Result<Served, ControllerError> {
        write_in_one(self, extent, data, receive)
    }

    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        let start = self.begin(at, extent)?;
        let end = self.trim_sectors(start, extent)?;
        Ok(Served { start, end })
    }

    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        let start = self.begin(at, Extent { start: Lpa(0), count: 0 })?;
        let end = self.behind.flush(start)?.end.max(self.slots.end);
        self.trim_freed(end)?;
        Ok(Served { start, end })
    }

    fn prefetch(&self, sector: Lpa) {
        self.behind.prefetch(self.unit_of(sector));
    }
    fn prefetch_writes(&self, sectors: impl Iterator<Item = Lpa>) {
        self.behind.prefetch_writes(sectors.map(|sector| self.unit_of(sector)));
    }
    /// Sectors may lie in PRAM, between others that do not.
    fn view(&self, _: Extent) -> Option<&[u8]> {
        None
    }
    /// Trims cover whole units of the device behind, so whole units are mapped.
    fn is_mapped(&self, sector: Lpa) -> bool {
        let unit = self.unit_of(sector);
        let mut sectors = self.sectors_of(Extent::one(unit)).units();
        self.behind.is_mapped(unit) || sectors.any(|sector| self.is_in_pram(sector))
    }
}
