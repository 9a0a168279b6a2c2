//! A host with recoverable memory, built from a design: the library, its log on a simulated device, the data.

use super::clock::{Activity, Clock};
use super::data::{Data, SEGMENT};
use super::disk::DiskStore;
use super::flash::NorFlash;
use super::flash_disk::FlashDisk;
use super::ram::RamStore;
use crate::result::MountResult;
use nvlab_design::{Design, LogDevice, Recoverable};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::flash_disk::FlashDiskLog;
use nvlab_rvm::log::hybrid::HybridLog;
use nvlab_rvm::log::status;
use nvlab_rvm::{Error, Options, Region, Result, Rvm, Store};
use nvlab_units::{Rate, Span, Time};
use nvlab_workload::Changes;
use std::sync::{Arc, Mutex, PoisonError};

/// The device of a log, to look at its counts.
#[derive(Debug)]
pub enum Device {
    /// A character device of flash.
    Flash(NorFlash),
    /// A flash disk.
    FlashDisk(FlashDisk),
    /// A disk.
    Disk(DiskStore),
    /// Battery-backed memory.
    Ram,
    /// A character device of flash, and a disk for large records.
    Hybrid(NorFlash, DiskStore),
}

impl Device {
    /// The flash whose wear is counted.
    pub fn flash(&self) -> Option<&NorFlash> {
        match self {
            Device::Flash(flash) | Device::Hybrid(flash, _) => Some(flash),
            Device::FlashDisk(_) | Device::Disk(_) | Device::Ram => None,
        }
    }
}

/// A host. Its programs are one thread here.
#[derive(Debug)]
pub struct Host {
    rvm: Rvm,
    region: Region,
    options: Options,
    /// Rates of compressing and of decompressing, if records are compressed and that takes time.
    compress: Option<Rate>,
    decompress: Option<Rate>,
    /// Bytes decompressed so far.
    decompressed: u64,
    /// Whether large records are begun before their commit.
    writes_ahead: bool,
    background: Option<Background>,
    /// The software and the link, for each commit.
    overhead: Span,
    /// What time it is.
    pub clock: Clock,
    /// What the log is on.
    pub device: Device,
    /// What the log is applied to.
    pub data: Data,
}

impl Host {
    /// A host with an empty log. Making the log takes time too.
    pub fn new(design: &Design, host: &Recoverable, seed: u64) -> Result<Host> {
        let clock = Clock::default();
        let data = match &host.data {
            None => Data::free(host.memory_bytes),
            Some(disk) => {
                let config = design.disk_config(disk, seed);
                Data::Disk(DiskStore::new(config, host.memory_bytes, Activity::Apply, clock.clone()))
            }
        };
        let (rvm, device) = open(design, host, seed, &clock, &data)?;
        let region = rvm.map(SEGMENT, 0..host.memory_bytes)?;
        if let Some(flash) = device.flash() {
            flash.drain().map_err(Error::io("erase", &NAME))?;
        }
        Ok(Host {
            rvm,
            region,
            options: host.options,
            compress: host.compress_rate,
            decompress: host.decompress_rate,
            decompressed: 0,
            writes_ahead: matches!(host.device, LogDevice::Hybrid { writes_ahead: true, .. }),
            background: host.truncate_at.map(|share| Background {
                at_bytes: (host.log_bytes as f64 * share) as u64,
                log_bytes: host.log_bytes,
                applied_at: None,
            }),
            overhead: design.path.overhead_host + design.path.overhead_device,
            clock,
            device,
            data,
        })
    }

    /// Runs a transaction that begins now until it is durable; the time of its commit.
    pub fn run(&mut self, changes: &Changes) -> Result<Span> {
        let ready = self.clock.now() + changes.compute;
        self.commit(changes, self.clock.now(), true)?;
        Ok(self.clock.now().since(ready))
    }

    /// Commits a transaction whose program began to compute at `from`, after that has ended. Its stores come evenly while it computes:
    /// what they store is what it computes. Without `flush` it becomes durable with the next one that is flushed.
    pub fn commit(&mut self, changes: &Changes, from: Time, flush: bool) -> Result<()> {
        let ranges = changes.iter().count() as u64;
        let range_bytes = self.options.headers.range_bytes() as u64;
        if !self.writes_ahead {
            self.clock.spend_until(Activity::Compute, from + changes.compute);
        }
        self.go_on_truncating(changes.bytes() + (ranges + 2) * range_bytes + RECORD_BYTES)?;
        let mut transaction = self.region.begin();
        for (index, (offset, data)) in (1..).zip(changes.iter()) {
            self.clock.spend_until(Activity::Compute, from + changes.compute * index / ranges);
            transaction.write(offset as usize, data)?;
            // What it stores last it commits at once.
            if self.writes_ahead && index < ranges {
                transaction.write_ahead()?;
            }
        }
        self.clock.spend_until(Activity::Compute, from + changes.compute);
        if let Some(rate) = self.compress {
            self.clock.spend(Activity::Compress, rate.transfer(changes.bytes() + ranges * range_bytes));
        }
        self.clock.spend(Activity::Write, self.overhead);
        match flush {
            true => transaction.commit()?,
            false => transaction.commit_no_flush()?,
        }
        self.count_decompressed();
        Ok(())
    }

    /// Applies the log to the data, and waits for all deferred work.
    pub fn truncate(&mut self) -> Result<()> {
        self.wait_until_applied()?;
        self.rvm.truncate()?;
        self.count_decompressed();
        match self.device.flash() {
            Some(flash) => flash.drain().map_err(Error::io("erase", &NAME)),
            None => Ok(()),
        }
    }

    /// Truncation in the background: begins it, or ends it if it is time, before a record of at most so many bytes.
    fn go_on_truncating(&mut self, record_bytes: u64) -> Result<()> {
        let Some(Background { at_bytes, log_bytes, applied_at }) = self.background else { return Ok(()) };
        let live = self.rvm.statistics().live_bytes;
        if let Some(at) = applied_at {
            if self.clock.now() >= at || live + record_bytes > log_bytes {
                self.wait_until_applied()?;
            }
        } else if live >= at_bytes {
            let clock = self.clock.clone();
            let (applied, end) = clock.aside(|| {
                let applied = self.rvm.apply();
                self.count_decompressed();
                applied
            });
            if applied? {
                self.background = Some(Background { at_bytes, log_bytes, applied_at: Some(end) });
            }
        }
        Ok(())
    }

    /// The truncation under way in the background ends.
    fn wait_until_applied(&mut self) -> Result<()> {
        let Some(Background { applied_at, .. }) = &mut self.background else { return Ok(()) };
        let Some(at) = applied_at.take() else { return Ok(()) };
        self.clock.spend_until(Activity::Apply, at);
        if let Data::Disk(disk) = &self.data {
            disk.start_sync().map_err(Error::io("write", &SEGMENT))?;
        }
        self.rvm.discard_applied()
    }

    /// Spends the time to decompress what was applied since the last call.
    fn count_decompressed(&mut self) {
        let bytes = self.rvm.statistics().decompressed_bytes;
        if let Some(rate) = self.decompress {
            self.clock.spend(Activity::Decompress, rate.transfer(bytes - self.decompressed));
        }
        self.decompressed = bytes;
    }

    /// What a restart costs if the power fails now, found on copies of the devices: reading and checking the log, decompressing
    /// its records, applying them and erasing its blocks. `None` unless the log is on flash alone and the data costs no
    /// time: a disk here reads from the host's cache, which is empty then.
    pub fn restart(&self) -> Result<Option<MountResult>> {
        let (Device::Flash(flash), Data::Memory(data)) = (&self.device, &self.data) else { return Ok(None) };
        let clock = Clock::at(self.clock.now());
        let flash = flash.after_cut(clock.clone());
        let data = data.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reads = flash.array().stats().reads;
        let log = FlashLog::open(flash.clone())?;
        let rvm = Rvm::open(log, Data::Memory(Arc::new(Mutex::new(data))), self.options)?;
        if let Some(rate) = self.decompress {
            clock.spend(Activity::Decompress, rate.transfer(rvm.recovery().decompressed_bytes));
        }
        let time_s = clock.now().since(self.clock.now()).seconds();
        Ok(Some(MountResult { time_s, nand_reads: flash.array().stats().reads - reads }))
    }

    /// The library.
    pub fn rvm(&self) -> &Rvm {
        &self.rvm
    }

    /// The memory.
    pub fn memory(&self) -> &[u8] {
        &self.region
    }

    /// True if the data equals the memory, as it must after a truncation. Takes no time.
    pub fn data_is_current(&self) -> Result<bool> {
        let mut held = vec![0; self.region.len()];
        self.data.read(&mut held, 0).map_err(Error::io("read", &SEGMENT))?;
        Ok(held == *self.region)
    }
}

/// Truncation in the background.
#[derive(Clone, Copy, Debug)]
struct Background {
    /// It begins when so many bytes are in the log, which takes so many.
    at_bytes: u64,
    log_bytes: u64,
    /// When what it applies is in the data, if one is under way.
    applied_at: Option<Time>,
}

/// A record has no more bytes beside its ranges, with the record that names the segment.
const RECORD_BYTES: u64 = 256;

/// Makes the log and opens it.
fn open(design: &Design, host: &Recoverable, seed: u64, clock: &Clock, data: &Data) -> Result<(Rvm, Device)> {
    let nor = |program| host.nor_config(design, program, seed);
    let bytes = status::BYTES + host.log_bytes;
    let disk =
        |name: &str| DiskStore::new(design.disk_config(name, seed), bytes, Activity::Write, clock.clone());
    let (data, options) = (data.clone(), host.options);
    match host.device {
        LogDevice::Flash { program, spares } => {
            let flash = NorFlash::new(nor(program), host.truncate_at.is_some(), clock.clone());
            let log = FlashLog::create(flash.clone(), seed, spares)?;
            Ok((Rvm::open(log, data, options)?, Device::Flash(flash)))
        }
        LogDevice::FlashDisk { program, sector_bytes } => {
            let bytes = bytes + sector_bytes as u64;
            let disk = FlashDisk::new(nor(program), sector_bytes, bytes, clock.clone());
            let log = FlashDiskLog::create(Box::new(disk.clone()), NAME.into(), seed, sector_bytes)?;
            Ok((Rvm::open(log, data, options)?, Device::FlashDisk(disk)))
        }
        LogDevice::Disk => {
            let disk = disk(&host.medium);
            Ok((Rvm::open(on_store(disk.clone())?, data, options)?, Device::Disk(disk)))
        }
        LogDevice::BatteryRam { delays } => {
            let config = design.ram_config(&host.medium, seed);
            let ram = RamStore::new(config, bytes, delays, clock.clone());
            Ok((Rvm::open(on_store(ram)?, data, options)?, Device::Ram))
        }
        LogDevice::Hybrid { program, spares, large_from, .. } => {
            let flash = NorFlash::new(nor(program), host.truncate_at.is_some(), clock.clone());
            let disk = disk(host.large.as_ref().expect("a hybrid log has a disk"));
            let small = FlashLog::create(flash.clone(), seed, spares)?;
            let log = HybridLog::create(small, Box::new(disk.clone()), NAME, large_from as usize)?;
            Ok((Rvm::open(log, data, options)?, Device::Hybrid(flash, disk)))
        }
    }
}

const NAME: &str = "the simulated log";

fn on_store(store: impl Store + 'static) -> Result<FileLog> {
    FileLog::create_on(Box::new(store), NAME.into())
}
