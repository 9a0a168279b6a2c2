//! Recoverable memory in the host and the device of its log: `ftl.kind = "rvm"`.
//!
//! There is no controller: the library `nvlab_rvm` writes its log itself. The device is one of the access models of system
//! 001 (slides 24 to 26): flash as a character device, a flash disk, battery-backed memory, a disk; or two of them.

mod keys;

use super::Kind;
use crate::Array;
use crate::Design;
use crate::HostPath;
use crate::PathKind;
use crate::Payload;
use crate::bricks::array::{self, Wiring};
use crate::bricks::memories::{self, Media};
use crate::context::Context;
use crate::part::Flash;
pub use keys::KEYS;
use nvlab_medium::flash::{NorConfig, PlaneReads};
use nvlab_rvm::record::Headers;
use nvlab_rvm::{Options, Truncation};
use nvlab_units::quantity::{display_bytes, exact_bytes};
use nvlab_units::{Geometry, Rate, Span};
use nvlab_workload::Serves;
use std::ops::Range;

const KIND: &str = "rvm";
/// Erase blocks that the format of a log on flash uses in addition to spares: two mini-logs of three.
const MINI_LOG_BLOCKS: u64 = 6;
/// A log is circular over its blocks: one is partly used at each end.
const SLACK_BLOCKS: u64 = 1;
/// Bytes of a page of recoverable memory.
const PAGE_BYTES: u32 = 4096;

/// Recoverable memory and the device of its log.
#[derive(Clone, Debug, PartialEq)]
pub struct Recoverable {
    /// The medium of the log, by name.
    pub medium: String,
    /// How the log is on it.
    pub device: LogDevice,
    /// Bytes of records, one after the other, that fit in the log before it must be truncated.
    pub log_bytes: u64,
    /// Bytes of recoverable memory.
    pub memory_bytes: u64,
    /// How the library uses the log.
    pub options: Options,
    /// Rates of compressing and of decompressing; `None`: it takes no time.
    pub compress_rate: Option<Rate>,
    /// See `compress_rate`.
    pub decompress_rate: Option<Rate>,
    /// Share of the log above which it is truncated in the background; `None`: when it is full, in the foreground.
    pub truncate_at: Option<f64>,
    /// The disk of the data, by name.
    pub data: Option<String>,
    /// The disk of a hybrid log, by name.
    pub large: Option<String>,
}

/// How a log is on its medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDevice {
    /// A character device of flash.
    Flash {
        /// Time of one program step of the array.
        program: Span,
        /// Blocks kept for worn-out ones.
        spares: u32,
    },
    /// A flash disk.
    FlashDisk {
        /// Time of one program step of the array.
        program: Span,
        /// Bytes of a sector.
        sector_bytes: u32,
    },
    /// Battery-backed memory.
    BatteryRam {
        /// Whether its access times are simulated.
        delays: bool,
    },
    /// A rotating disk.
    Disk,
    /// A character device of flash, and a disk for large records.
    Hybrid {
        /// Time of one program step of the array.
        program: Span,
        /// Blocks kept for worn-out ones.
        spares: u32,
        /// Minimum bytes of a record that goes to the disk.
        large_from: u32,
        /// Whether writing it to the disk begins before its commit.
        writes_ahead: bool,
    },
}

impl LogDevice {
    /// Its name in designs.
    pub fn name(self) -> &'static str {
        match self {
            LogDevice::Flash { .. } => "flash",
            LogDevice::FlashDisk { .. } => "flash-disk",
            LogDevice::BatteryRam { .. } => "battery-ram",
            LogDevice::Disk => "disk",
            LogDevice::Hybrid { .. } => "hybrid",
        }
    }
}

impl Kind for Recoverable {
    fn medium(&self) -> &str {
        &self.medium
    }
    fn memories(&self) -> Vec<&str> {
        self.data.iter().chain(&self.large).map(String::as_str).collect()
    }
    fn unit_bytes(&self) -> u32 {
        PAGE_BYTES
    }
    fn logical_units(&self) -> u32 {
        (self.memory_bytes / PAGE_BYTES as u64) as u32
    }
    fn bought(&self, array: &Geometry) -> Vec<(&str, u64)> {
        match self.device {
            LogDevice::BatteryRam { .. } | LogDevice::Disk => Vec::new(),
            _ => vec![(&self.medium, array.bytes())],
        }
    }
    fn check(&self, design: &Design) -> Result<(), String> {
        if let LogDevice::Flash { spares, .. } | LogDevice::Hybrid { spares, .. } = self.device
            && self.truncate_at.is_some()
        {
            let faults = design.flash_config(0).faults;
            let is_limited = design.slowing().is_some_and(|slowing| slowing.has_limits());
            if spares > 0 || faults.wear_out || faults.erase_failure > 0.0 || is_limited {
                let why = "`ftl.log.truncate_at`: background erases cannot fail; leave out spares and failing erases";
                return Err(why.into());
            }
        }
        if matches!(self.device, LogDevice::FlashDisk { .. }) && design.slowing().is_some() {
            return Err("`ftl.log.on`: cells that slow down are not simulated behind a flash disk".into());
        }
        for disk in self.data.iter().chain(&self.large) {
            design.disk_config(disk, 0).check()?;
        }
        match self.device {
            LogDevice::Flash { program, .. }
            | LogDevice::FlashDisk { program, .. }
            | LogDevice::Hybrid { program, .. } => self.nor_config(design, program, 0).check(),
            LogDevice::BatteryRam { .. } => design.ram_config(&self.medium, 0).check(),
            LogDevice::Disk => design.disk_config(&self.medium, 0).check(),
        }
    }
    fn serves(&self) -> Serves {
        Serves::Commits
    }
    /// The segment, the memory that is mapped, and the log; for a restart at the end another segment and log.
    fn memory_bytes(&self, _: &Design, _: Payload) -> u64 {
        3 * self.memory_bytes + 2 * self.log_bytes
    }
}

impl Recoverable {
    /// The array of a log on flash, for [`nvlab_medium::flash::Nor`]; `program` is the time of one step.
    pub fn nor_config(&self, design: &Design, program: Span, seed: u64) -> NorConfig {
        let mut flash = design.flash_config(seed);
        let slowing = design.slowing().map(|slowing| slowing.of_step(flash.timing.program, program));
        flash.timing.program = program;
        NorConfig { flash, slowing }
    }

    /// The blocks of an array that the log wears: all but those of the status, and the spare ones, which come last.
    /// Spares replace blocks that fail early; where all wear evenly, they add nothing.
    pub fn wearing(&self, array: &Geometry) -> Range<usize> {
        let first = MINI_LOG_BLOCKS as usize;
        match self.device {
            LogDevice::Flash { spares, .. } | LogDevice::Hybrid { spares, .. } => {
                first..array.blocks() as usize - spares as usize
            }
            LogDevice::FlashDisk { .. } => 0..array.blocks() as usize,
            LogDevice::BatteryRam { .. } | LogDevice::Disk => 0..0,
        }
    }
}

/// Common to logs on any device.
struct Common {
    log_bytes: Option<u64>,
    memory_bytes: u64,
    options: Options,
    compress_rate: Option<Rate>,
    decompress_rate: Option<Rate>,
    truncate_at: Option<f64>,
    data: Option<String>,
}

/// The media a log may use.
#[derive(Clone, Copy)]
enum On {
    Flash,
    FlashDisk,
    BatteryRam,
    Disk,
    Hybrid,
}

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, Recoverable)> {
    let meanings = [
        ("flash", On::Flash),
        ("flash-disk", On::FlashDisk),
        ("battery-ram", On::BatteryRam),
        ("disk", On::Disk),
        ("hybrid", On::Hybrid),
    ];
    let on = context.named_choice("ftl.log.on", KIND, &meanings);
    let common = common(context, media);
    attached(context, path)?;
    let ((name, on), common) = (on?, common?);
    check_of(context, name)?;
    let mut large = None;
    let (medium, device, array, log_bytes) = match on {
        On::Flash => on_flash(context, media, wiring, common.log_bytes, false)?,
        On::FlashDisk => on_flash(context, media, wiring, common.log_bytes, true)?,
        On::Hybrid => {
            let large_from = context.size("ftl.log.large_from", KIND).unwrap_or(4096) as u32;
            let (large_on, disk) = memories::disk(context, media, "ftl.log.large_on", KIND)?;
            let bytes = fitting(context, common.log_bytes, disk.size_bytes, disk.sector_bytes)?;
            let (medium, device, array, _) = on_flash(context, media, wiring, None, false)?;
            let LogDevice::Flash { program, spares } = device else {
                unreachable!("a log on flash, not {device:?}")
            };
            large = Some(large_on);
            let writes_ahead = context.flag("ftl.log.write_ahead", KIND).unwrap_or(true);
            (medium, LogDevice::Hybrid { program, spares, large_from, writes_ahead }, array, bytes)
        }
        On::BatteryRam => {
            let (medium, ram) = memories::ram(context, media, "ftl.medium", KIND)?;
            let delays = context.flag("ftl.log.delays", KIND).unwrap_or(true);
            let bytes = fitting(context, common.log_bytes, ram.cells.size_bytes, 1)?;
            (medium, LogDevice::BatteryRam { delays }, array::none(), bytes)
        }
        On::Disk => {
            let (medium, disk) = memories::disk(context, media, "ftl.medium", KIND)?;
            let bytes = fitting(context, common.log_bytes, disk.size_bytes, disk.sector_bytes)?;
            (medium, LogDevice::Disk, array::none(), bytes)
        }
    };
    let Common { memory_bytes, options, compress_rate, decompress_rate, truncate_at, data, .. } = common;
    Some((
        array,
        Recoverable {
            medium,
            device,
            log_bytes,
            memory_bytes,
            options,
            compress_rate,
            decompress_rate,
            truncate_at,
            data,
            large,
        },
    ))
}

fn common(context: &mut Context, media: &Media) -> Option<Common> {
    let memory_bytes = context.size("ftl.memory", KIND);
    let log_bytes = context.size("ftl.log.size", KIND);
    let headers = [("compact", Headers::Compact), ("original", Headers::Original)];
    let headers = context.choice("ftl.log.headers", KIND, &headers);
    let diff = context.flag("ftl.log.diff", KIND);
    let compress = context.flag("ftl.log.compress", KIND);
    let rates = ["ftl.log.compress_rate", "ftl.log.decompress_rate"];
    let [compress_rate, decompress_rate] = rates.map(|path| context.rate(path, KIND));
    let truncate_at = context.share("ftl.log.truncate_at", KIND);
    let data = match context.has("ftl.log.data") {
        true => Some(memories::disk(context, media, "ftl.log.data", KIND)?.0),
        false => None,
    };
    let (compress, memory_bytes) = (compress?, memory_bytes?);
    if let Some(path) = rates.into_iter().find(|path| context.has(path) && !compress) {
        context.wrong(path, format!("`{path}`: compression is off"), "compress = true");
        return None;
    }
    if !memory_bytes.is_multiple_of(PAGE_BYTES as u64) {
        let problem = format!("`ftl.memory` is not a multiple of a page of {PAGE_BYTES} B");
        context.wrong("ftl.memory", problem, "\"64 MiB\"");
        return None;
    }
    let options = Options {
        headers: headers?,
        diff: diff?,
        compress,
        truncation: Truncation::WhenFull,
        ..Options::default()
    };
    Some(Common { log_bytes, memory_bytes, options, compress_rate, decompress_rate, truncate_at, data })
}

/// The device of a log is the host's own: there is no link, only the additional time of a commit.
fn attached(context: &mut Context, path: Option<&HostPath>) -> Option<()> {
    if path?.kind == PathKind::Direct {
        return Some(());
    }
    let problem = "`path.kind`: a log device is attached to the host without a link";
    context.wrong("path.kind", problem, "leave it out; `path.overhead` applies to each commit");
    None
}

/// Refuses keys that have no effect for a log on this device.
fn check_of(context: &mut Context, on: &str) -> Option<()> {
    const OF: [(&str, &[&str]); 7] = [
        ("ftl.log.page_buffers", &["flash", "flash-disk", "hybrid"]),
        ("ftl.log.sector", &["flash-disk"]),
        ("ftl.log.spares", &["flash", "hybrid"]),
        ("ftl.log.large_on", &["hybrid"]),
        ("ftl.log.large_from", &["hybrid"]),
        ("ftl.log.write_ahead", &["hybrid"]),
        ("ftl.log.delays", &["battery-ram"]),
    ];
    let (path, of) = match OF.into_iter().find(|(path, of)| context.has(path) && !of.contains(&on)) {
        None => return Some(()),
        Some(wrong) => wrong,
    };
    let problem = format!("`{path}` does not apply to a log on \"{on}\"");
    context.wrong(path, problem, format!("leave it out; it is for {}", of.join(" and ")));
    None
}

/// Bytes of the log, whole sectors, at most those of the medium but for its status.
fn fitting(context: &mut Context, wanted: Option<u64>, medium_bytes: u64, sector_bytes: u32) -> Option<u64> {
    let most = medium_bytes.saturating_sub(nvlab_rvm::log::status::BYTES);
    let most = most - most % sector_bytes as u64;
    match wanted {
        Some(bytes) if bytes > most => {
            // Exact: the status is smaller than the precision of a displayed size.
            let [bytes, most] = [bytes, most].map(exact_bytes);
            let problem = format!("`ftl.log.size` is {bytes}, but the medium holds a log of at most {most}");
            context.wrong("ftl.log.size", problem, format!("at most {most}, next to the status block"));
            None
        }
        Some(bytes) => whole(context, bytes, sector_bytes as u64, "a sector of the disk").map(|()| bytes),
        None => Some(most),
    }
}

/// Refuses a log that does not end at a sector or erase block: it would use more than it states.
fn whole(context: &mut Context, bytes: u64, unit: u64, of: &str) -> Option<()> {
    if bytes.is_multiple_of(unit) {
        return Some(());
    }
    let problem =
        format!("`ftl.log.size`: {} is not a multiple of {of}, {}", exact_bytes(bytes), exact_bytes(unit));
    let more = exact_bytes(bytes.next_multiple_of(unit));
    context.wrong("ftl.log.size", problem, format!("\"{more}\", the next larger multiple"));
    None
}

fn on_flash(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    log_bytes: Option<u64>,
    is_disk: bool,
) -> Option<(String, LogDevice, Array, u64)> {
    let flash = memories::data_nor(context, media, KIND, "a log on flash");
    let spares = context.count("ftl.log.spares", KIND).unwrap_or(0);
    let sector = context.size("ftl.log.sector", KIND).unwrap_or(512);
    let buffered = context.flag("ftl.log.page_buffers", KIND).unwrap_or(false);
    let (medium, flash) = flash?;
    let gang = wiring.gang?;
    let width = flash.page_bytes * gang as u64;
    let block = width * flash.pages_per_block as u64;
    let has =
        flash.blocks_per_plane as u64 * flash.planes as u64 * wiring.channels? as u64 * wiring.ways? as u64;
    if let Some(bytes) = log_bytes {
        // A flash disk hides its blocks.
        let (unit, of) = if is_disk { (sector, "a sector") } else { (block, "an erase block of the array") };
        whole(context, bytes, unit, of)?;
    }
    // The log of a flash disk begins with a status as on a disk.
    let reserved = if is_disk { 1 } else { MINI_LOG_BLOCKS + SLACK_BLOCKS + spares as u64 };
    let blocks = log_bytes.map_or(has, |bytes| bytes.div_ceil(block) + reserved);
    if blocks > has || blocks <= reserved {
        let problem = format!(
            "the log takes {blocks} erase blocks of {}, {reserved} of them for status and reserve; the array has {has}",
            display_bytes(block)
        );
        context.wrong("ftl.log.size", problem, "a smaller log, or more `array.ways`");
        return None;
    }
    let program = program_time(context, &flash, gang, buffered, is_disk.then_some(sector))?;
    let planes = array::planes(context, Some(1), &flash)?;
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: u32::try_from(blocks).ok()?,
        pages_per_block: flash.pages_per_block,
        units_per_page: 1,
        unit_bytes: u32::try_from(width).ok()?,
    };
    if let Err(problem) = geometry.check() {
        context.wrong("ftl.log.size", problem, "a smaller log");
        return None;
    }
    let device = match is_disk {
        true if !sector.is_power_of_two() => {
            context.wrong("ftl.log.sector", "`ftl.log.sector` is not a power of two", "\"512 B\", \"4 KiB\"");
            return None;
        }
        true => LogDevice::FlashDisk { program, sector_bytes: sector as u32 },
        false => LogDevice::Flash { program, spares },
    };
    let transfer = array::ganged(&flash, gang);
    let usable = log_bytes.unwrap_or((blocks - reserved) * block);
    Some((
        medium,
        device,
        Array { gang, planes, transfer, programs: None, geometry, units_per_read: 1, reads: PlaneReads::ONE },
        usable,
    ))
}

/// The time of one program step, a byte of each chip: by itself, or as part of the contents of the page buffers.
fn program_time(
    context: &mut Context,
    flash: &Flash,
    gang: u32,
    buffered: bool,
    sector: Option<u64>,
) -> Option<Span> {
    if !buffered {
        return Some(flash.program);
    }
    let Some((buffer, rate)) = flash.page_buffer else {
        context.wrong("ftl.log.page_buffers", "`ftl.log.page_buffers`: the part has none", "leave it out");
        return None;
    };
    let together = buffer * gang as u64;
    if let Some(sector) = sector.filter(|&sector| sector >= together) {
        let problem = format!(
            "`ftl.log.page_buffers`: a sector of {} is not smaller than the page buffers of a gang, {}",
            display_bytes(sector),
            display_bytes(together)
        );
        context.wrong("ftl.log.page_buffers", problem, "more chips in a gang (system 001 slide 37)");
        return None;
    }
    Some(rate.transfer(flash.page_bytes))
}
