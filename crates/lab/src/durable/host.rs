//! A host with recoverable memory, built from a design: the library, its log on a simulated device, the data.

use super::clock::{Activity, Clock};
use super::data::{Data, SEGMENT};
use super::disk::DiskStore;
use super::flash::NorFlash;
use super::flash_disk::FlashDisk;
use super::ram::RamStore;
use crate::design::{Design, LogDevice, Recoverable};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::flash_disk::FlashDiskLog;
use nvlab_rvm::log::hybrid::HybridLog;
use nvlab_rvm::log::status;
use nvlab_rvm::record::Headers;
use nvlab_rvm::{Error, Region, Result, Rvm, Store};
use nvlab_units::{Rate, Span};
use nvlab_workload::Changes;

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

/// A host. Its program is one thread.
#[derive(Debug)]
pub struct Host {
    rvm: Rvm,
    region: Region,
    headers: Headers,
    /// Rate of compressing, if records are compressed and that takes time.
    compress: Option<Rate>,
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
        let compress = host.compress_rate;
        let overhead = design.path.overhead_host + design.path.overhead_device;
        Ok(Host { rvm, region, headers: host.options.headers, compress, overhead, clock, device, data })
    }

    /// Runs a transaction until it is durable; the time of its commit.
    pub fn run(&mut self, changes: &Changes) -> Result<Span> {
        self.clock.spend(Activity::Compute, changes.compute);
        let mut transaction = self.region.begin();
        for (offset, data) in changes.iter() {
            transaction.write(offset as usize, data)?;
        }
        let began = self.clock.now();
        if let Some(rate) = self.compress {
            let ranges = changes.iter().count() * self.headers.range_bytes();
            self.clock.spend(Activity::Compress, rate.transfer(changes.bytes() + ranges as u64));
        }
        self.clock.spend(Activity::Write, self.overhead);
        transaction.commit()?;
        Ok(self.clock.now().since(began))
    }

    /// The library.
    pub fn rvm(&self) -> &Rvm {
        &self.rvm
    }

    /// The memory.
    pub fn memory(&self) -> &[u8] {
        &self.region
    }

    /// Whether the data is what the memory is, as it must be after a truncation. Takes no time.
    pub fn data_is_current(&self) -> Result<bool> {
        let mut held = vec![0; self.region.len()];
        self.data.read(&mut held, 0).map_err(Error::io("read", &SEGMENT))?;
        Ok(held == *self.region)
    }
}

/// Makes the log and opens it.
fn open(design: &Design, host: &Recoverable, seed: u64, clock: &Clock, data: &Data) -> Result<(Rvm, Device)> {
    let nor = |program| host.nor_config(design, program, seed);
    let bytes = status::BYTES + host.log_bytes;
    let disk =
        |name: &str| DiskStore::new(design.disk_config(name, seed), bytes, Activity::Write, clock.clone());
    let (data, options) = (data.clone(), host.options);
    match host.device {
        LogDevice::Flash { program, spares } => {
            let flash = NorFlash::new(nor(program), clock.clone());
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
        LogDevice::Hybrid { program, spares, large_from } => {
            let flash = NorFlash::new(nor(program), clock.clone());
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
