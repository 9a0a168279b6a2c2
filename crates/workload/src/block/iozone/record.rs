//! Runs the client over an image in memory and records its requests.

use super::image::Image;
use super::{Iozone, IozoneConfig, Mode, Recording, Sync};
use crate::{Op, Request};
use fatfs::{
    Date, DateTime, File, FileSystem, FormatVolumeOptions, FsOptions, Time as TimeOfDay, TimeProvider,
    format_volume,
};
use nvlab_access::{BlockDevice, CachedDisk, SectorCache};
use nvlab_controller::ControllerError;
use nvlab_units::{Rng, Served, Time};
use std::cell::{Cell, RefCell};
use std::io::{Error, Read, Result, Seek, SeekFrom, Write};

pub(super) const SECTOR: usize = nvlab_access::sector_cache::SECTOR_BYTES;
/// The largest request: that of the sector cache, and a cluster.
const REQUEST_BYTES_MAX: usize = 128 * SECTOR;
/// Lengths of the volume tried to align clusters to their size.
const ALIGN_TRIES: u64 = 16;
/// Bytes the client moves per second, according to the dates it writes.
const BYTES_PER_SECOND: u64 = 1_000_000;

thread_local! {
    /// Bytes the client on this thread has moved, which determine the time of its clock.
    static MOVED: Cell<u64> = const { Cell::new(0) };
}

/// A clock that advances with the bytes moved.
#[derive(Debug)]
struct Clock;

static CLOCK: Clock = Clock;

impl TimeProvider for Clock {
    fn get_current_date(&self) -> Date {
        Date { year: 2008, month: 10, day: 19 }
    }
    fn get_current_date_time(&self) -> DateTime {
        let seconds = MOVED.get() / BYTES_PER_SECOND % 86_400;
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
struct Recorder {
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
type Disk<'a> = CachedDisk<'a, Recorder>;

/// Runs the client on a volume of `volume_bytes`.
pub(super) fn record(config: &IozoneConfig, volume_bytes: u64, seed: u64) -> Result<Iozone> {
    MOVED.set(0);
    // Shortens the FAT (of FAT32) by one sector at a time until its end is aligned to a cluster.
    let step = SECTOR as u64 / 4 * config.cluster_bytes as u64;
    let shorter = (0..ALIGN_TRIES).map(|i| volume_bytes.saturating_sub(i * step)).filter(|&bytes| bytes > 0);
    let aligned = shorter.map(|bytes| format(config, volume_bytes, bytes)).find(|formatted| {
        formatted.as_ref().is_ok_and(|cache| data_offset(cache).is_multiple_of(config.cluster_bytes as u64))
    });
    let cache = aligned.unwrap_or_else(|| format(config, volume_bytes, volume_bytes))?;
    let [preparation, measured] = run(config, &cache, seed)?;
    let volume = FileSystem::new(CachedDisk::new(&cache), FsOptions::new())?.stats()?;
    let clusters = (volume.total_clusters() - volume.free_clusters(), volume.total_clusters());
    let payload = cache.into_inner().into_device().payload;
    let zeros = vec![0; REQUEST_BYTES_MAX];
    let recording = Recording { preparation, measured, payload, zeros, clusters };
    Ok(Iozone { config: *config, recording: recording.into(), volume_bytes, prepared: 0, issued: 0 })
}

/// A volume of `bytes` on a device of `device_bytes`, formatted.
fn format(config: &IozoneConfig, device_bytes: u64, bytes: u64) -> Result<Cache> {
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

/// Prepares a formatted volume and accesses the file; returns the requests of both phases.
fn run(config: &IozoneConfig, cache: &Cache, seed: u64) -> Result<[Vec<Request>; 2]> {
    let volume = FileSystem::new(CachedDisk::new(cache), FsOptions::new().time_provider(&CLOCK))?;
    let statistics = volume.stats()?;
    // The formatter writes any variant; a client derives it from the number of clusters alone.
    if let Some(asked) = config.fat.filter(|&asked| asked != volume.fat_type()) {
        let (clusters, is) = (statistics.total_clusters(), volume.fat_type());
        return Err(Error::other(format!("a volume of {clusters} clusters is {is:?}, not {asked:?}")));
    }
    let file_clusters = config.file_bytes.div_ceil(config.cluster_bytes as u64);
    let wanted = (statistics.total_clusters() as f64 * config.fill) as u64;
    // Two clusters hold the directory and the entries of the filler.
    let filler = wanted.saturating_sub(file_clusters + 2);
    let root = volume.root_dir();
    root.create_dir("iozone")?;
    fill(root.create_file("filler.bin")?, filler * config.cluster_bytes as u64)?;
    let mut file = root.create_file("iozone/iozone.tmp")?;
    let mut client = Client { config, cache, rng: Rng::stream(seed, "iozone") };
    if config.mode != Mode::Write {
        client.go_through(&mut file, Mode::Write, Sync::Close)?;
    }
    if config.mode == Mode::Reread {
        client.go_through(&mut file, Mode::Read, Sync::Close)?;
    }
    cache.borrow_mut().sync()?;
    let taken = || std::mem::take(&mut cache.borrow_mut().device_mut().requests);
    let preparation = taken();
    client.go_through(&mut file, config.mode, config.sync)?;
    Ok([preparation, taken()])
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

struct Client<'a> {
    config: &'a IozoneConfig,
    cache: &'a Cache,
    rng: Rng,
}

impl Client<'_> {
    /// Accesses every record once.
    fn go_through(&mut self, file: &mut File<'_, Disk<'_>>, mode: Mode, sync: Sync) -> Result<()> {
        let record = self.config.record_bytes as usize;
        let mut order: Vec<u64> = (0..self.config.file_bytes / record as u64).collect();
        if mode.is_random() {
            for last in (1..order.len()).rev() {
                order.swap(last, self.rng.below(last as u64 + 1) as usize);
            }
        }
        let mut bytes = vec![0; record];
        for number in order {
            file.seek(SeekFrom::Start(number * record as u64))?;
            if mode.is_read() {
                file.read_exact(&mut bytes)?;
            } else {
                file.write_all(&bytes)?;
                MOVED.set(MOVED.get() + record as u64);
            }
            if sync == Sync::Record && !mode.is_read() {
                file.flush()?;
                self.cache.borrow_mut().sync()?;
            }
        }
        file.flush()?;
        self.cache.borrow_mut().sync()
    }
}
