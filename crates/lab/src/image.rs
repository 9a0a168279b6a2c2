//! A file-system image on a simulated device, used by real tools: mkfs, mtools, fsck.
//!
//! The tools access a file. After each tool, every sector it changed is written to the device, in the order of
//! addresses, adjacent sectors together, and flushed; then the whole device is read back into the file for the next
//! tool. With `cut`, the power fails before the read and the device is mounted again. (The order in which a tool
//! wrote its sectors is lost; for a mounted file system it is preserved, see `nvlab serve`.)
//!
//! The data read back must equal the data written, except for sectors that the device discarded because the file
//! system freed them ([`nvlab_run::result::RouteResult::clusters_trimmed`]): those read as zero.

use nvlab_design::Design;
use nvlab_run::device::{self, AnyDevice, BuildError, InMemory};
use nvlab_run::result::RouteResult;
use nvlab_units::{Span, Time};
use nvlab_workload::Serves;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

const SECTOR: usize = 512;
/// Maximum bytes of one request.
const TOGETHER: usize = 64 << 10;

/// What to do.
#[derive(Clone, Debug)]
pub struct ImagePlan {
    /// The image; created if missing.
    pub file: PathBuf,
    /// Bytes of an image that is created; `None`: those of the device.
    pub bytes: Option<u64>,
    /// The power fails after every tool.
    pub cut: bool,
    /// Seed of faults and of the contents after a cut.
    pub seed: u64,
}

/// What one tool did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageStep {
    /// The tool.
    pub command: String,
    /// Sectors it changed.
    pub changed_sectors: u64,
    /// Requests that wrote them.
    pub requests: u64,
    /// Sectors that read back as zero because the file system had freed them.
    pub forgotten_sectors: u64,
}

/// What the tools did.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageReport {
    /// Tool by tool.
    pub steps: Vec<ImageStep>,
    /// Statistics of FSMS, if the design has it and its power did not fail.
    pub route: Option<RouteResult>,
    /// Simulated time, s.
    pub simulated_s: f64,
    /// Power cuts.
    pub cuts: u32,
}

/// Why it ended early.
#[derive(Debug, Error)]
pub enum ImageError {
    /// The design cannot hold an image.
    #[error("design {0} is a memory: an image needs a block device with a page or block map, or hftl")]
    NotABlockDevice(String),
    /// The design cannot be built.
    #[error("{0}")]
    Unbuildable(String),
    /// This computer does not have enough memory for the device.
    #[error("{0}")]
    Memory(String),
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The path.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not an image for this device.
    #[error("{path}: {bytes} B; an image is a multiple of 512 B and at most the {capacity} B of the device")]
    Size {
        /// The path.
        path: String,
        /// Its length.
        bytes: u64,
        /// The device's.
        capacity: u64,
    },
    /// A tool failed.
    #[error("{0}")]
    Tool(String),
    /// The device failed, or returned data that differs from what was written.
    #[error("{0}")]
    Device(String),
}

/// Runs tools on an image on a device of the design. `tool` runs one, and returns the reason if it failed.
pub fn run(
    design: &Design,
    plan: &ImagePlan,
    commands: &[String],
    mut tool: impl FnMut(&str) -> Result<(), String>,
) -> Result<ImageReport, ImageError> {
    if design.ftl.kind().serves() != Serves::Blocks {
        return Err(ImageError::NotABlockDevice(design.name.clone()));
    }
    let built = device::any(design, plan.seed, Some(InMemory { filled: false }));
    let device = built.map_err(|why| match why {
        BuildError::Memory(_) => ImageError::Memory(why.to_string()),
        _ => ImageError::Unbuildable(why.to_string()),
    })?;
    let capacity = device.capacity_bytes();
    let file = &plan.file;
    let mut held = Held { device, now: Time::ZERO, image: Vec::new() };
    let mut steps = Vec::new();
    if file.exists() {
        let image = read(file, capacity)?;
        held.image = vec![0; image.len()];
        steps.push(held.write("(the image as it was)", image)?);
    } else {
        let bytes = plan.bytes.unwrap_or(capacity) as usize / SECTOR * SECTOR;
        held.image = vec![0; bytes];
        write(file, &held.image)?;
    }
    let mut cuts = 0;
    for command in commands {
        tool(command).map_err(ImageError::Tool)?;
        let image = read(file, capacity)?;
        if image.len() != held.image.len() {
            let why = format!("`{command}` changed the image from {} to {} B", held.image.len(), image.len());
            return Err(ImageError::Tool(why));
        }
        let mut step = held.write(command, image)?;
        if plan.cut {
            cuts += 1;
            let (device, mounted) = held.device.power_cycle(held.now).map_err(ImageError::Device)?;
            (held.device, held.now) = (device, held.now + mounted.time);
        }
        step.forgotten_sectors = held.read_back(command)?;
        write(file, &held.image)?;
        steps.push(step);
    }
    let insides = held.device.insides(Span::ZERO);
    // The driver's counts are lost with the power.
    let route = insides.pram.and_then(|pram| pram.route).filter(|_| cuts == 0);
    Ok(ImageReport { steps, route, simulated_s: held.now.since(Time::ZERO).seconds(), cuts })
}

fn read(file: &Path, capacity: u64) -> Result<Vec<u8>, ImageError> {
    let path = file.display().to_string();
    let image = std::fs::read(file).map_err(|source| ImageError::File { path: path.clone(), source })?;
    let bytes = image.len() as u64;
    match bytes <= capacity && image.len().is_multiple_of(SECTOR) {
        true => Ok(image),
        false => Err(ImageError::Size { path, bytes, capacity }),
    }
}

fn write(file: &Path, image: &[u8]) -> Result<(), ImageError> {
    std::fs::write(file, image)
        .map_err(|source| ImageError::File { path: file.display().to_string(), source })
}

/// A device, and what was written to it.
struct Held {
    device: Box<dyn AnyDevice>,
    now: Time,
    image: Vec<u8>,
}

impl Held {
    /// Writes every sector in which `image` differs from what the device was given, and flushes.
    fn write(&mut self, command: &str, image: Vec<u8>) -> Result<ImageStep, ImageError> {
        let failed = |error| ImageError::Device(format!("`{command}`: the device failed: {error}"));
        let differs = |at: usize| self.image[at..at + SECTOR] != image[at..at + SECTOR];
        let changed: Vec<usize> = (0..image.len()).step_by(SECTOR).filter(|&at| differs(at)).collect();
        let mut requests = 0;
        for run in changed.chunk_by(|a, b| a + SECTOR == *b).flat_map(|run| run.chunks(TOGETHER / SECTOR)) {
            let data = &image[run[0]..run[0] + run.len() * SECTOR];
            let served = self.device.write(self.now, run[0] as u64, data.len() as u32, data);
            self.now = served.map_err(failed)?.end;
            requests += 1;
        }
        self.now = self.device.flush(self.now).map_err(failed)?.end;
        self.image = image;
        let command = command.to_string();
        Ok(ImageStep { command, changed_sectors: changed.len() as u64, requests, forgotten_sectors: 0 })
    }

    /// Reads the whole image back and compares; returns the number of sectors that were discarded.
    fn read_back(&mut self, command: &str) -> Result<u64, ImageError> {
        let mut bytes = vec![0; TOGETHER];
        let mut forgotten = 0;
        for at in (0..self.image.len()).step_by(TOGETHER) {
            let end = (at + TOGETHER).min(self.image.len());
            let told = &mut self.image[at..end];
            let bytes = &mut bytes[..told.len()];
            let served = self.device.read(self.now, at as u64, told.len() as u32, bytes);
            let failed =
                |error| ImageError::Device(format!("after `{command}`, reading {at} failed: {error}"));
            self.now = served.map_err(failed)?.end;
            for (i, (told, found)) in told.chunks_mut(SECTOR).zip(bytes.chunks(SECTOR)).enumerate() {
                if told == found {
                    continue;
                }
                if found.iter().any(|&byte| byte != 0) {
                    let sector = at / SECTOR + i;
                    return Err(ImageError::Device(format!(
                        "after `{command}`, sector {sector} does not hold what was last written"
                    )));
                }
                told.fill(0);
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }
}
