//! A logger: small records, appended to a file and forced one by one. `'logger record=200B rate=1/s file=1MiB files=8'`.
//!
//! - After each record the client syncs (fsync): the sector of the data, the directory entry with the new length and date,
//!   and, whenever a cluster is full, the sector of each FAT are written; then the device is flushed.
//! - Logs rotate: a file that is full is closed, the oldest of `files` is deleted, and a new one is begun, in the clusters that
//!   the FAT implementation allocates next. The measurement begins with all but the last file full.
//! - With `rate` the requests of a record are all issued at its time; without it each waits for the one before.
//! - The sector cache reads a sector before the first record in it, which the file system of an operating system, knowing
//!   that nothing is there, spares itself.

use super::volume::{Client, Disk, Volume, set_clock};
use super::{FatClient, VolumeConfig};
use crate::words::{self, Words};
use crate::{Pacing, Time, WorkloadError};
use fatfs::{Dir, File};
use nvlab_units::{Span, quantity};
use std::io::{Result, Write};

/// What a workload's text begins with.
pub const KIND: &str = "logger";
const KEYS: [&str; 5] = ["record", "rate", "file", "files", "until"];
/// Requests are recorded in memory with the sectors they write: 1.3 KB for each record of 200 B.
const RECORDS_MAX: u64 = 1 << 19;
const RECORDS_ALLOWED: &str = "a number of records up to 2^19, such as 1e5records, or with rate= a time";
/// The names of files end with a number of five digits.
const FILES_MAX: u64 = 99_999;

/// `logger` with its parameters, before it is opened on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoggerConfig {
    /// Bytes appended at once.
    pub record_bytes: u32,
    /// Records per second; `None`: each begins when the one before is done.
    pub per_second: Option<f64>,
    /// Bytes at which a file is full and the next one begins.
    pub file_bytes: u64,
    /// Files kept, the one that is being written included.
    pub files: u64,
    /// Records until it ends, in all files together.
    pub records: u64,
    /// Where the files lie.
    pub volume: VolumeConfig,
}

impl Default for LoggerConfig {
    /// 100,000 records of 200 B to 8 files of 1 MiB, on an empty volume with clusters of 32 KiB, as cards have.
    fn default() -> LoggerConfig {
        LoggerConfig {
            record_bytes: 200,
            per_second: None,
            file_bytes: 1 << 20,
            files: 8,
            records: 100_000,
            volume: VolumeConfig {
                fat: None,
                cluster_bytes: 32 << 10,
                fill: 0.0,
                cache_bytes: 256 << 10,
                span: None,
            },
        }
    }
}

impl LoggerConfig {
    /// Reads a text such as `'logger record=200B rate=1/s fill=50%'`.
    pub fn parse(whole: &str) -> std::result::Result<LoggerConfig, WorkloadError> {
        let words = Words::new(whole, &[&KEYS[..], &VolumeConfig::KEYS].concat(), &[])?;
        let default = LoggerConfig::default();
        let record_bytes = words.quantity("record", words::size)?.unwrap_or(default.record_bytes as u64);
        if !(1..=1 << 20).contains(&record_bytes) {
            return Err(words.wrong("record", "from 1 B to 1 MiB"));
        }
        let per_second = words.quantity("rate", quantity::rate_per_second)?;
        if per_second.is_some_and(|rate| rate <= 0.0) {
            return Err(words.wrong("rate", "more than 0 per second"));
        }
        let file_bytes = words.quantity("file", words::size)?.unwrap_or(default.file_bytes);
        if file_bytes < record_bytes || file_bytes >> 32 > 0 {
            return Err(words.wrong("file", "at least one record, less than 4 GiB"));
        }
        let files = words.number("files", 1..=FILES_MAX)?.unwrap_or(default.files);
        let records = match words.value("until") {
            None => default.records,
            Some(value) => {
                let count =
                    value.strip_suffix("records").and_then(|count| quantity::count(count.trim()).ok());
                let span = quantity::span(value).ok().map(Span::seconds);
                let in_span = span.zip(per_second).map(|(seconds, rate)| (seconds * rate).ceil() as u64);
                let records = count.or(in_span).filter(|records| (1..=RECORDS_MAX).contains(records));
                records.ok_or_else(|| words.wrong("until", RECORDS_ALLOWED))?
            }
        };
        let volume = VolumeConfig::parse(&words, default.volume)?;
        let record_bytes = record_bytes as u32;
        Ok(LoggerConfig { record_bytes, per_second, file_bytes, files, records, volume })
    }

    /// The workload on a device of `capacity` bytes; `what` is its name in messages.
    pub fn open(&self, what: &str, capacity: u64) -> std::result::Result<FatClient, WorkloadError> {
        let mut client = Logger { config: self, number: 0, filled: 0 };
        let workload = self.volume.open(what, capacity, self.file_bytes * self.files, &mut client)?;
        let pacing = self.per_second.map_or(workload.pacing, |_| Pacing::Open);
        Ok(FatClient { client_bytes: self.records * self.record_bytes as u64, pacing, ..workload })
    }
}

struct Logger<'a> {
    config: &'a LoggerConfig,
    /// Files begun.
    number: u64,
    /// Bytes of the last one.
    filled: u64,
}

impl Logger<'_> {
    /// Begins the next file, and deletes the oldest if there would be too many.
    fn rotate<'d, 'c>(&mut self, directory: &Dir<'d, Disk<'c>>) -> Result<File<'d, Disk<'c>>> {
        let name = |number: u64| format!("log{:05}.txt", number % (FILES_MAX + 1));
        if self.number >= self.config.files {
            directory.remove(&name(self.number - self.config.files))?;
        }
        let file = directory.create_file(&name(self.number))?;
        self.number += 1;
        self.filled = 0;
        Ok(file)
    }

    /// When a record arrives.
    fn at(&self, record: u64) -> Time {
        let seconds = self.config.per_second.map_or(0.0, |rate| record as f64 / rate);
        Time::ZERO + Span::from_seconds(seconds)
    }
}

impl Client for Logger<'_> {
    const DIRECTORY: &'static str = KIND;

    fn clusters(&self) -> u64 {
        self.config.files * self.config.file_bytes.div_ceil(self.config.volume.cluster_bytes as u64)
    }

    fn run(&mut self, directory: &Dir<'_, Disk<'_>>, volume: &Volume<'_>) -> Result<()> {
        let mut record = vec![0; self.config.record_bytes as usize];
        let mut next = 0u64;
        // Records differ: a sector that does not change is not written again.
        let mut append = |file: &mut File<'_, Disk<'_>>| {
            next += 1;
            record.chunks_mut(8).for_each(|part| part.copy_from_slice(&next.to_le_bytes()[..part.len()]));
            file.write_all(&record)
        };
        let record_bytes = self.config.record_bytes as u64;
        let records_of_file = self.config.file_bytes / record_bytes;
        let mut file = self.rotate(directory)?;
        for _ in 1..self.config.files {
            (0..records_of_file).try_for_each(|_| append(&mut file))?;
            file.flush()?;
            file = self.rotate(directory)?;
        }
        volume.prepared()?;
        for number in 0..self.config.records {
            set_clock((self.at(number) - Time::ZERO).seconds() as u64);
            if self.filled + record_bytes > self.config.file_bytes {
                file.flush()?;
                file = self.rotate(directory)?;
            }
            append(&mut file)?;
            self.filled += record_bytes;
            file.flush()?;
            volume.sync()?;
            volume.stamp(self.at(number));
        }
        Ok(())
    }
}
