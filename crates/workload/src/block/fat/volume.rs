//! The volume of a client: formatted and filled in memory, every request recorded.

use super::image::Image;
use super::{FatClient, FatType, Recording};
use crate::words::{self, Words};
use crate::{Op, Pacing, Request, WorkloadError};
use fatfs::{
    Date, DateTime, Dir, File, FileSystem, FormatVolumeOptions, FsOptions, Time as TimeOfDay, TimeProvider,
    format_volume,
};
use nvlab_access::{BlockDevice, CachedDisk, SectorCache};
use nvlab_controller::ControllerError;
use nvlab_units::quantity::{self, told_bytes};
use nvlab_units::{Served, Time};
use std::cell::{Cell, RefCell};
use std::io::{Error, Result, Write};

pub(super) const SECTOR: usize = nvlab_access::sector_cache::SECTOR_BYTES;
/// The largest request: that of the sector cache, and a cluster.
const REQUEST_BYTES_MAX: usize = 128 * SECTOR;
/// Lengths of the volume tried to align clusters to their size.
const ALIGN_TRIES: u64 = 16;
/// A cluster fits in one request; fatgen103 allows 32 KiB everywhere and 64 KiB on most systems.
const CLUSTER_BYTES_MAX: u64 = 32 << 10;

thread_local! {
    /// The time of day of the client on this thread, s.
    static SECONDS: Cell<u64> = const { Cell::new(0) };
}

/// Sets the clock that files get their dates from.
pub(super) fn set_clock(seconds: u64) {
    SECONDS.set(seconds);
}

/// A clock that the client sets.
#[derive(Debug)]
struct Clock;

static CLOCK: Clock = Clock;

impl TimeProvider for Clock {
    fn get_current_date(&self) -> Date {
        Date { year: 2008, month: 10, day: 19 }
    }
    fn get_current_date_time(&self) -> DateTime {
        let seconds = SECONDS.get() % 86_400;
        let time = TimeOfDay {
            hour: (seconds / 3600) as u16,
            min: (seconds / 60 % 60) as u16,
            sec: (seconds % 60) as u16,
            millis: 0,
        };
        DateTime { date: self.get_current_date(), time }
    }
}

type Answer = std::result::Result<Served, ControllerError>;

/// A device that completes requests at once and records them.
pub(super) struct Recorder {
    image: Image,
    requests: Vec<Request>,
    payload: Vec<u8>,
}

impl Recorder {
    fn record(&mut self, op: Op, offset: u64, bytes: u32, payload: u32) -> Served {
        self.requests.push(Request { offset, bytes, op, payload, ..Request::default() });
        Served { start: Time::ZERO, end: Time::ZERO }
    }
}

impl BlockDevice for Recorder {
    fn capacity_bytes(&self) -> u64 {
        self.image.len()
    }
    fn read(&mut self, _: Time, offset: u64, bytes: u32, into: &mut [u8]) -> Answer {
        self.image.read(offset, into);
        Ok(self.record(Op::Read, offset, bytes, 0))
    }
    fn write(&mut self, _: Time, offset: u64, bytes: u32, data: &[u8]) -> Answer {
        self.image.write(offset, data);
        let mut payload = 0;
        if data.iter().any(|&byte| byte != 0) {
            payload = (self.payload.len() / SECTOR) as u32 + 1;
            self.payload.extend_from_slice(data);
        }
        Ok(self.record(Op::Write, offset, bytes, payload))
    }
    fn trim(&mut self, _: Time, offset: u64, bytes: u32) -> Answer {
        Ok(self.record(Op::Trim, offset, bytes, 0))
    }
    fn flush(&mut self, _: Time) -> Answer {
        Ok(self.record(Op::Flush, 0, 0, 0))
    }
}

type Cache = RefCell<SectorCache<Recorder>>;
pub(super) type Disk<'a> = CachedDisk<'a, Recorder>;

/// A volume, as the clients' texts describe it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumeConfig {
    /// The FAT variant; `None`: determined by the number of clusters.
    pub fat: Option<FatType>,
    /// A power of two from 512 B to 32 KiB.
    pub cluster_bytes: u32,
    /// Share of the volume's clusters in use when the measurement begins, or when the client's files are complete.
    pub fill: f64,
    /// Capacity of the client's sector cache, in bytes.
    pub cache_bytes: u64,
    /// Bytes of the volume; `None` for the whole device.
    pub span: Option<u64>,
}

/// What a client does on a formatted and filled volume.
pub(super) trait Client {
    /// The name of its directory.
    const DIRECTORY: &'static str;

    /// Clusters its files take.
    fn clusters(&self) -> u64;

    /// Works in its directory. It calls [`Volume::prepared`] when its files are as they must be before the measurement.
    fn run(&mut self, directory: &Dir<'_, Disk<'_>>, volume: &Volume<'_>) -> Result<()>;
}

/// The volume while a client runs.
pub(super) struct Volume<'a> {
    cache: &'a Cache,
    preparation: Cell<Vec<Request>>,
    /// Requests that have their times.
    stamped: Cell<usize>,
}

impl Volume<'_> {
    /// Writes what the sector cache holds, and flushes the device.
    pub fn sync(&self) -> Result<()> {
        self.cache.borrow_mut().sync()
    }

    /// Ends the preparation: requests so far are not measured.
    pub fn prepared(&self) -> Result<()> {
        self.sync()?;
        self.preparation.set(std::mem::take(&mut self.cache.borrow_mut().device_mut().requests));
        Ok(())
    }

    /// Sets the issue time of all requests since the last call.
    pub fn stamp(&self, at: Time) {
        let mut cache = self.cache.borrow_mut();
        let requests = &mut cache.device_mut().requests;
        requests[self.stamped.get()..].iter_mut().for_each(|request| request.at = at);
        self.stamped.set(requests.len());
    }
}

impl VolumeConfig {
    /// The keys that [`VolumeConfig::parse`] reads.
    pub(super) const KEYS: [&'static str; 5] = ["fat", "cluster", "fill", "cache", "span"];

    /// Reads the keys of a volume; those not said are as in `default`.
    pub(super) fn parse(
        words: &Words<'_>,
        default: VolumeConfig,
    ) -> std::result::Result<VolumeConfig, WorkloadError> {
        let bytes = |key, default| words.quantity(key, words::size).map(|found| found.unwrap_or(default));
        let cluster_bytes = bytes("cluster", default.cluster_bytes as u64)?;
        if !cluster_bytes.is_power_of_two() || !(SECTOR as u64..=CLUSTER_BYTES_MAX).contains(&cluster_bytes) {
            return Err(words.wrong("cluster", "a power of two from 512 B to 32 KiB"));
        }
        Ok(VolumeConfig {
            fat: match words.value("fat") {
                None => None,
                Some("12") => Some(FatType::Fat12),
                Some("16") => Some(FatType::Fat16),
                Some("32") => Some(FatType::Fat32),
                Some(_) => return Err(words.wrong("fat", "12, 16 or 32")),
            },
            cluster_bytes: cluster_bytes as u32,
            fill: words.quantity("fill", quantity::fraction)?.unwrap_or(default.fill),
            cache_bytes: bytes("cache", default.cache_bytes)?,
            span: words.quantity("span", words::size)?,
        })
    }

    /// Runs a client of `file_bytes` of files on a device of `capacity` bytes; `what` is its name in messages.
    pub(super) fn open(
        &self,
        what: &str,
        capacity: u64,
        file_bytes: u64,
        client: &mut impl Client,
    ) -> std::result::Result<FatClient, WorkloadError> {
        let refuse = |reason: String| Err(WorkloadError::DoesNotFit { what: what.to_owned(), reason });
        let volume = self.span.unwrap_or(capacity) / SECTOR as u64 * SECTOR as u64;
        if volume > capacity {
            let (volume, capacity) = (told_bytes(volume), told_bytes(capacity));
            return refuse(format!(
                "its volume of {volume} extends past the end of the device at {capacity}"
            ));
        }
        if file_bytes >= volume {
            let (file, volume) = (told_bytes(file_bytes), told_bytes(volume));
            return refuse(format!("a file of {file} does not fit in a volume of {volume}"));
        }
        record(self, volume, client).or_else(|error| refuse(format!("the FAT file system refuses: {error}")))
    }
}

/// Runs a client on a volume of `volume_bytes`, in a closed loop.
fn record(config: &VolumeConfig, volume_bytes: u64, client: &mut impl Client) -> Result<FatClient> {
    set_clock(0);
    // Shortens the FAT (of FAT32) by one sector at a time until its end is aligned to a cluster.
    let step = SECTOR as u64 / 4 * config.cluster_bytes as u64;
    let shorter = (0..ALIGN_TRIES).map(|i| volume_bytes.saturating_sub(i * step)).filter(|&bytes| bytes > 0);
    let aligned = shorter.map(|bytes| format(config, volume_bytes, bytes)).find(|formatted| {
        formatted.as_ref().is_ok_and(|cache| data_offset(cache).is_multiple_of(config.cluster_bytes as u64))
    });
    let cache = aligned.unwrap_or_else(|| format(config, volume_bytes, volume_bytes))?;
    let [preparation, measured] = run(config, &cache, client)?;
    let volume = FileSystem::new(CachedDisk::new(&cache), FsOptions::new())?.stats()?;
    let clusters = (volume.total_clusters() - volume.free_clusters(), volume.total_clusters());
    let payload = cache.into_inner().into_device().payload;
    let zeros = vec![0; REQUEST_BYTES_MAX];
    let recording = Recording { preparation, measured, payload, zeros, clusters };
    let pacing = Pacing::Closed { depth: 1 };
    Ok(FatClient {
        client_bytes: 0,
        pacing,
        recording: recording.into(),
        volume_bytes,
        prepared: 0,
        issued: 0,
    })
}

/// Fills a formatted volume and runs the client; returns the requests of both phases.
fn run<C: Client>(config: &VolumeConfig, cache: &Cache, client: &mut C) -> Result<[Vec<Request>; 2]> {
    let volume = FileSystem::new(CachedDisk::new(cache), FsOptions::new().time_provider(&CLOCK))?;
    let statistics = volume.stats()?;
    // The formatter writes any variant; a client derives it from the number of clusters alone.
    if let Some(asked) = config.fat.filter(|&asked| asked != volume.fat_type()) {
        let (clusters, is) = (statistics.total_clusters(), volume.fat_type());
        return Err(Error::other(format!("a volume of {clusters} clusters is {is:?}, not {asked:?}")));
    }
    let wanted = (statistics.total_clusters() as f64 * config.fill) as u64;
    // Two clusters hold the directory and the entries of the filler.
    let filler = wanted.saturating_sub(client.clusters() + 2);
    let root = volume.root_dir();
    let directory = root.create_dir(C::DIRECTORY)?;
    fill(root.create_file("filler.bin")?, filler * config.cluster_bytes as u64)?;
    let volume = Volume { cache, preparation: Cell::default(), stamped: Cell::default() };
    client.run(&directory, &volume)?;
    let measured = std::mem::take(&mut cache.borrow_mut().device_mut().requests);
    Ok([volume.preparation.take(), measured])
}

/// A volume of `bytes` on a device of `device_bytes`, formatted.
fn format(config: &VolumeConfig, device_bytes: u64, bytes: u64) -> Result<Cache> {
    let too_large = |_| Error::other("a FAT volume has fewer than 2^32 sectors of 512 B: span=2TB, or less");
    let sectors = u32::try_from(bytes / SECTOR as u64).map_err(too_large)?;
    let recorder = Recorder { image: Image::new(device_bytes), requests: Vec::new(), payload: Vec::new() };
    let cache = RefCell::new(SectorCache::new(recorder, config.cache_bytes));
    let options = FormatVolumeOptions::new().bytes_per_cluster(config.cluster_bytes).total_sectors(sectors);
    let options = match config.fat {
        Some(kind) => options.fat_type(kind),
        None => options,
    };
    format_volume(CachedDisk::new(&cache), options)?;
    cache.borrow_mut().sync()?;
    Ok(cache)
}

/// The offset of the first cluster of a formatted volume, from its boot sector (fatgen103: reserved sectors, FATs,
/// root).
fn data_offset(cache: &Cache) -> u64 {
    let cache = cache.borrow();
    let mut boot = [0; SECTOR];
    cache.device().image.read(0, &mut boot);
    let number = |offset: usize| u16::from_le_bytes([boot[offset], boot[offset + 1]]) as u64;
    let fat = if number(22) != 0 { number(22) } else { number(36) | number(38) << 16 };
    (number(14) + boot[16] as u64 * fat) * SECTOR as u64 + number(17) * 32
}

/// Writes one file that stands for the other files on the volume.
fn fill(mut file: File<'_, Disk<'_>>, bytes: u64) -> Result<()> {
    let zeros = [0; REQUEST_BYTES_MAX];
    let mut left = bytes;
    while left > 0 {
        let count = left.min(zeros.len() as u64);
        file.write_all(&zeros[..count as usize])?;
        left -= count;
    }
    file.flush()
}
