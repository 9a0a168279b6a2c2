//! IOzone's modes: a client reads and writes one file. `'iozone mode=random-write record=4KiB file=16MiB fill=50%'`.
//!
//! - For every mode but `write` the file is written once before, unmeasured, as IOzone requires (`-i 0` first).
//! - FATs and directories are written after every record (a file system that survives a power cut after each operation,
//!   as TFS4 is said to do; `-o`), after every so many, or when the file is closed.
//! - Not modelled: the log of TFS4. Dates advance as if the client moved 1 MB/s.

use super::volume::{Client, Disk, Volume, set_clock};
use super::{FatClient, VolumeConfig};
use crate::WorkloadError;
use crate::words::{self, Words};
use fatfs::{Dir, File};
use nvlab_units::Rng;
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::num::NonZeroU64;

/// What a workload's text begins with.
pub const KIND: &str = "iozone";
const KEYS: [&str; 4] = ["mode", "record", "file", "sync"];
const SECTOR_BYTES: u64 = 512;
/// Requests are recorded in memory, so their number is limited.
const RECORDS_MAX: u64 = 1 << 22;
/// Bytes the client moves per second, according to the dates it writes.
const BYTES_PER_SECOND: u64 = 1_000_000;

/// What IOzone measures: one pass over its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Creates the file, record after record, allocating clusters.
    Write,
    /// Overwrites an existing file, record after record.
    Rewrite,
    /// Reads an existing file, record after record.
    Read,
    /// Reads it a second time, with what the first pass left in the cache.
    Reread,
    /// Reads every record once, in random order.
    RandomRead,
    /// Overwrites every record once, in random order.
    RandomWrite,
}

impl Mode {
    /// Each mode with its word after `mode=`.
    pub const ALL: [(&str, Mode); 6] = [
        ("write", Mode::Write),
        ("rewrite", Mode::Rewrite),
        ("read", Mode::Read),
        ("reread", Mode::Reread),
        ("random-read", Mode::RandomRead),
        ("random-write", Mode::RandomWrite),
    ];

    pub(super) fn is_read(self) -> bool {
        matches!(self, Mode::Read | Mode::Reread | Mode::RandomRead)
    }
    pub(super) fn is_random(self) -> bool {
        matches!(self, Mode::RandomRead | Mode::RandomWrite)
    }
}

/// When dirty entries of FATs and directories are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// After every this many records, and when the file is closed.
    Records(NonZeroU64),
    /// Only when the file is closed.
    Close,
}

/// `iozone` with its parameters, before it is opened on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IozoneConfig {
    /// The measured pass; what it needs before is not measured.
    pub mode: Mode,
    /// Bytes of each call to read or write.
    pub record_bytes: u32,
    /// Bytes of the only file.
    pub file_bytes: u64,
    /// When the sector cache writes its metadata back.
    pub sync: Sync,
    /// Where the file lies.
    pub volume: VolumeConfig,
}

impl Default for IozoneConfig {
    /// 16 MiB written in records of 4 KiB to an empty volume of 4 KiB clusters, synced after each.
    fn default() -> IozoneConfig {
        IozoneConfig {
            mode: Mode::Write,
            record_bytes: 4096,
            file_bytes: 16 << 20,
            sync: Sync::Records(NonZeroU64::MIN),
            volume: VolumeConfig {
                fat: None,
                cluster_bytes: 4096,
                fill: 0.0,
                cache_bytes: 256 << 10,
                span: None,
            },
        }
    }
}

impl IozoneConfig {
    /// Reads a text such as `'iozone mode=rewrite record=512 file=4MiB sync=close'`.
    pub fn parse(whole: &str) -> std::result::Result<IozoneConfig, WorkloadError> {
        let words = Words::new(whole, &[&KEYS[..], &VolumeConfig::KEYS].concat(), &[])?;
        let default = IozoneConfig::default();
        let mode = words.choice("mode", &Mode::ALL)?.unwrap_or(default.mode);
        let bytes = |key, default| words.quantity(key, words::size).map(|found| found.unwrap_or(default));
        let record_bytes = bytes("record", default.record_bytes as u64)?;
        if record_bytes == 0 || record_bytes > 1 << 20 || !record_bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(words.wrong("record", "a multiple of 512 B, at most 1 MiB"));
        }
        let file_bytes = bytes("file", default.file_bytes)?;
        let records = file_bytes / record_bytes;
        if !file_bytes.is_multiple_of(record_bytes)
            || !(1..=RECORDS_MAX).contains(&records)
            || file_bytes >> 32 > 0
        {
            return Err(
                words.wrong("file", "whole records, at least one, at most 4 Mi of them, less than 4 GiB")
            );
        }
        let volume = VolumeConfig::parse(&words, default.volume)?;
        let sync = match words.value("sync") {
            None => default.sync,
            Some("record") => Sync::Records(NonZeroU64::MIN),
            Some("close") => Sync::Close,
            Some(number) => match number.parse() {
                Ok(records) => Sync::Records(records),
                Err(_) => {
                    return Err(words.wrong("sync", "record, a whole number of records from 1, or close"));
                }
            },
        };
        Ok(IozoneConfig { mode, record_bytes: record_bytes as u32, file_bytes, sync, volume })
    }

    /// The workload on a device of `capacity` bytes; `what` is its name in messages.
    pub fn open(
        &self,
        what: &str,
        capacity: u64,
        seed: u64,
    ) -> std::result::Result<FatClient, WorkloadError> {
        let mut client = Iozone { config: self, rng: Rng::stream(seed, KIND), moved: 0 };
        let workload = self.volume.open(what, capacity, self.file_bytes, &mut client)?;
        Ok(FatClient { client_bytes: self.file_bytes, ..workload })
    }
}

struct Iozone<'a> {
    config: &'a IozoneConfig,
    rng: Rng,
    /// Bytes it has written.
    moved: u64,
}

impl Iozone<'_> {
    /// Accesses every record once.
    fn go_through(
        &mut self,
        file: &mut File<'_, Disk<'_>>,
        volume: &Volume<'_>,
        mode: Mode,
        sync: Sync,
    ) -> Result<()> {
        let record = self.config.record_bytes as usize;
        let mut order: Vec<u64> = (0..self.config.file_bytes / record as u64).collect();
        if mode.is_random() {
            for last in (1..order.len()).rev() {
                order.swap(last, self.rng.below(last as u64 + 1) as usize);
            }
        }
        let mut bytes = vec![0; record];
        for (done, number) in (1..).zip(order) {
            file.seek(SeekFrom::Start(number * record as u64))?;
            if mode.is_read() {
                file.read_exact(&mut bytes)?;
            } else {
                file.write_all(&bytes)?;
                self.moved += record as u64;
                set_clock(self.moved / BYTES_PER_SECOND);
            }
            if let Sync::Records(records) = sync
                && !mode.is_read()
                && done % records == 0
            {
                file.flush()?;
                volume.sync()?;
            }
        }
        file.flush()?;
        volume.sync()
    }
}

impl Client for Iozone<'_> {
    const DIRECTORY: &'static str = KIND;

    fn clusters(&self) -> u64 {
        self.config.file_bytes.div_ceil(self.config.volume.cluster_bytes as u64)
    }

    fn run(&mut self, directory: &Dir<'_, Disk<'_>>, volume: &Volume<'_>) -> Result<()> {
        let mut file = directory.create_file("iozone.tmp")?;
        if self.config.mode != Mode::Write {
            self.go_through(&mut file, volume, Mode::Write, Sync::Close)?;
        }
        if self.config.mode == Mode::Reread {
            self.go_through(&mut file, volume, Mode::Read, Sync::Close)?;
        }
        volume.prepared()?;
        self.go_through(&mut file, volume, self.config.mode, self.config.sync)
    }
}
