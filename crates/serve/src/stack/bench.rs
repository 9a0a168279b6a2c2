//! Setting every layer up, and measuring them in turn.

use super::awake::Awake;
use super::disk::{FileSystem, Loop, OnLoop, direct, fill};
use super::layer::Layer;
use super::probe::{After, Call, Fault, Memory, Opened, Probe, Resident, SystemCall, buffer};
use super::sampling::{Series, Slicer};
use crate::fuse::FuseMount;
use crate::nbd::client::Client;
use crate::nbd::{Address, Export, NbdServer};
use crate::sys::process;
use crate::sys::ring::Ring;
use crate::window::{Window, WindowOptions};
use crate::{Drive, ServeError, TimeMode};
use nvlab_os::file;
use nvlab_workload::Op;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Size, number and length of the measurements.
#[derive(Clone, Debug)]
pub struct StackOptions {
    /// Bytes of a request: a multiple of 4 KiB.
    pub bytes: u32,
    /// Bytes of each file and device that requests go to.
    pub file_bytes: u64,
    /// Slices of each layer and kind of request: one a round, in turn.
    pub rounds: u32,
    /// Roughly how long one slice takes.
    pub slice: Duration,
}

impl Default for StackOptions {
    fn default() -> StackOptions {
        StackOptions { bytes: 4096, file_bytes: 64 << 20, rounds: 60, slice: Duration::from_millis(1) }
    }
}

/// The samples of all layers.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What it was measured with.
    pub options: StackOptions,
    /// Layer by layer, reads before writes.
    pub series: Vec<Series>,
    /// Layers that cannot be set up here, and why.
    pub missing: Vec<(Layer, String)>,
    /// Why idle processors slept, and what waking them takes is part of all that waits; `None`: they polled.
    pub asleep: Option<String>,
}

impl Measured {
    /// The samples of one kind of request to a layer, if it was measured.
    pub fn find(&self, layer: Layer, op: Op) -> Option<&Series> {
        self.series.iter().find(|series| series.layer == layer && series.op == op)
    }
}

/// The layers that could be set up. The order of the fields is that in which they end: files before what serves them.
struct Layers {
    ready: Vec<(Layer, Box<dyn Probe>)>,
    missing: Vec<(Layer, String)>,
    _mount: Option<FuseMount>,
    _server: Option<NbdServer>,
    _folder: tempfile::TempDir,
}

/// Where files in memory are.
const IN_MEMORY: &str = "/dev/shm";
const DEEP: usize = 32;

fn said(error: io::Error) -> String {
    error.to_string()
}

impl Layers {
    fn add<P: Probe + 'static>(&mut self, layer: Layer, made: Result<P, String>) {
        match made {
            Ok(probe) => self.ready.push((layer, Box::new(probe))),
            Err(why) => self.missing.push((layer, why)),
        }
    }

    fn set_up(options: &StackOptions, drive: &Arc<Drive>) -> Result<Layers, ServeError> {
        let folder = tempfile::tempdir().map_err(ServeError::io("cannot create a folder"))?;
        let (ready, missing) = (Vec::new(), Vec::new());
        let mut layers = Layers { ready, missing, _mount: None, _server: None, _folder: folder };
        layers.in_memory(options, drive).map_err(ServeError::io("cannot set up files in memory"))?;
        layers.on_loop(options);
        layers.served(options, drive);
        layers.kernel();
        let order = |layer: &Layer| Layer::ALL.iter().position(|other| other == layer);
        layers.ready.sort_by_key(|(layer, _)| order(layer));
        layers.missing.sort_by_key(|(layer, _)| order(layer));
        Ok(layers)
    }

    /// Sets up the layers that need neither privileges nor modules.
    fn in_memory(&mut self, options: &StackOptions, drive: &Arc<Drive>) -> io::Result<()> {
        let (bytes, all) = (options.bytes, options.file_bytes);
        let new = || -> io::Result<File> {
            let file = file::anonymous(c"nvlab-stack", false)?;
            fill(&file, all, bytes)?;
            Ok(file)
        };
        self.add(Layer::Memory, Memory::new(&new()?, all, bytes).map_err(said));
        self.add(Layer::Fault, Fault::new(new()?, all, bytes).map_err(said));
        let mut call = Call { drive: Arc::clone(drive), buffer: buffer(bytes)? };
        // Its memory is allocated now.
        let all: Vec<u64> = (0..options.file_bytes / bytes as u64).map(|at| at * bytes as u64).collect();
        call.run(Op::Write, &all)?;
        self.add(Layer::Call, Ok(call));
        self.add(Layer::SystemCall, Ok(SystemCall));
        self.add(Layer::Tmpfs, Opened::new(new()?, bytes, After::Nothing).map_err(said));
        self.add(Layer::TmpfsRing, Ring::new(new()?, bytes, 1).map_err(|error| ring_said(&error)));
        self.add(Layer::Window, resident(options));
        Ok(())
    }

    fn on_loop(&mut self, options: &StackOptions) {
        let of = [Layer::Loop, Layer::LoopRing, Layer::LoopRingDeep];
        let ext4 =
            [Layer::Ext4Cached, Layer::Ext4Direct, Layer::Ext4Ring, Layer::Ext4DataSync, Layer::Ext4Sync];
        let xfs = [Layer::XfsDirect, Layer::XfsDataSync];
        if process::user() != 0 {
            let all = of.into_iter().chain(ext4).chain(xfs);
            self.missing.extend(all.map(|layer| (layer, "loop devices and mounts need root".to_string())));
            return;
        }
        let (bytes, folder) = (options.bytes, Path::new(IN_MEMORY));
        match disk(folder, options.file_bytes, bytes) {
            Err(why) => self.missing.extend(of.map(|layer| (layer, why.clone()))),
            Ok(file) => {
                let again = || file.try_clone().map_err(said);
                self.add(Layer::Loop, again().and_then(|file| opened(file, bytes, After::Nothing)));
                self.add(Layer::LoopRing, again().and_then(|file| ring(file, bytes, 1)));
                self.add(Layer::LoopRingDeep, again().and_then(|file| ring(file, bytes, DEEP)));
            }
        }
        match OnLoop::make(folder, FileSystem::Ext4, options.file_bytes, bytes) {
            Err(why) => self.missing.extend(ext4.map(|layer| (layer, why.clone()))),
            Ok(OnLoop { direct, cached }) => {
                let past = || direct.try_clone().map_err(said);
                let through = || cached.try_clone().map_err(said);
                self.add(Layer::Ext4Cached, through().and_then(|file| opened(file, bytes, After::Nothing)));
                self.add(Layer::Ext4Direct, past().and_then(|file| opened(file, bytes, After::Nothing)));
                self.add(Layer::Ext4Ring, past().and_then(|file| ring(file, bytes, 1)));
                self.add(
                    Layer::Ext4DataSync,
                    through().and_then(|file| opened(file, bytes, After::DataSync)),
                );
                self.add(Layer::Ext4Sync, through().and_then(|file| opened(file, bytes, After::Sync)));
            }
        }
        match OnLoop::make(folder, FileSystem::Xfs, options.file_bytes, bytes) {
            Err(why) => self.missing.extend(xfs.map(|layer| (layer, why.clone()))),
            Ok(OnLoop { direct, cached }) => {
                self.add(Layer::XfsDirect, opened(direct, bytes, After::Nothing));
                self.add(Layer::XfsDataSync, opened(cached, bytes, After::DataSync));
            }
        }
    }

    /// The RAM disk by FUSE and NBD.
    fn served(&mut self, options: &StackOptions, drive: &Arc<Drive>) {
        let bytes = options.bytes;
        let folder = self._folder.path().join("fuse");
        let mounted = FuseMount::open(&folder, vec![("disk".into(), Arc::clone(drive))]);
        let fuse = mounted.map_err(|error| error.to_string()).and_then(|mount| {
            self._mount = Some(mount);
            let file = direct().open(folder.join("disk")).map_err(said)?;
            opened(file, bytes, After::Nothing)
        });
        self.add(Layer::Fuse, fuse);
        let socket = self._folder.path().join("nbd.sock");
        let export = Export { name: drive.name().into(), drive: Arc::clone(drive) };
        let started = NbdServer::start(&Address::Unix(socket.clone()), vec![export]);
        let nbd = started.map_err(|error| error.to_string()).and_then(|server| {
            self._server = Some(server);
            buffer(bytes).and_then(|buffer| Client::connect(&socket, buffer)).map_err(said)
        });
        self.add(Layer::Nbd, nbd);
    }

    /// The kernel's NBD client. It is not connected: that would outlive a killed program.
    fn kernel(&mut self) {
        let why = match Path::new("/dev/nbd0").exists() {
            true => "not connected: a connection of the kernel's client would outlive a killed program",
            false => "no /dev/nbd0: the module nbd is not loaded",
        };
        self.missing.push((Layer::NbdKernel, why.into()));
    }
}

fn opened(file: File, bytes: u32, after: After) -> Result<Opened, String> {
    Opened::new(file, bytes, after).map_err(said)
}

fn ring(file: File, bytes: u32, depth: usize) -> Result<Ring, String> {
    Ring::new(file, bytes, depth).map_err(|error| ring_said(&error))
}

fn ring_said(error: &io::Error) -> String {
    format!("io_uring is not available (kernel.io_uring_disabled): {error}")
}

/// A loop device, open and detached: it ends with its last file.
fn disk(folder: &Path, bytes: u64, request: u32) -> Result<File, String> {
    let device = Loop::attach(folder, bytes)?;
    let file = device.open()?;
    fill(&file, bytes, request).map_err(said)?;
    Ok(file)
}

fn resident(options: &StackOptions) -> Result<Resident, String> {
    // Room for every page, so that nothing is evicted.
    let window = WindowOptions {
        bytes: Some(options.file_bytes),
        resident_bytes: Some(options.file_bytes),
        time: TimeMode::Fast,
        ..WindowOptions::default()
    };
    let mut window = Window::open(&window).map_err(|error| error.to_string())?;
    window.as_mut_slice().fill(0xa5);
    Ok(Resident { window, buffer: buffer(options.bytes).map_err(said)? })
}

/// Measures every layer that this machine has. `drive`: a RAM disk that answers at once, of at least the bytes of a file;
/// `goes_on` is asked between slices, with the share that is done. `None`: it said no.
pub fn measure(
    options: &StackOptions,
    drive: &Arc<Drive>,
    mut goes_on: impl FnMut(f64) -> bool,
) -> Result<Option<Measured>, ServeError> {
    let mut layers = Layers::set_up(options, drive)?;
    let mut slicer = Slicer::new(options.file_bytes, options.bytes);
    let (mut series, mut failed) = (Vec::new(), Vec::new());
    for (at, (layer, probe)) in layers.ready.iter_mut().enumerate() {
        for op in [Op::Read, Op::Write].into_iter().filter(|op| layer.has(*op)) {
            match slicer.count(&mut **probe, op, options.slice) {
                Ok(requests) => {
                    series.push((
                        at,
                        Series { layer: *layer, op, requests, samples: Vec::new(), disturbed: 0 },
                    ));
                }
                Err(error) => failed.push((*layer, format!("{op}: {error}"))),
            }
            if !goes_on(0.0) {
                return Ok(None);
            }
        }
    }
    series.retain(|(_, series)| failed.iter().all(|(layer, _)| *layer != series.layer));
    layers.missing.extend(failed);
    let awake = Awake::keep();
    slicer.look();
    slicer.calibrate();
    let count = series.len();
    for round in 0..options.rounds as usize {
        for turn in 0..count {
            // Another first one each round: what follows a long slice is not always the same.
            let (at, series) = &mut series[(turn + round) % count];
            let (layer, probe) = &mut layers.ready[*at];
            let what = format!("{layer} failed during the measurement");
            slicer.sample(&mut **probe, series).map_err(ServeError::io(what))?;
            if !goes_on((round * count + turn + 1) as f64 / (options.rounds as usize * count) as f64) {
                return Ok(None);
            }
        }
        slicer.look();
    }
    let series = series.into_iter().map(|(_, series)| series).collect();
    let asleep = awake.err().map(|error| Awake::said(&error));
    Ok(Some(Measured { options: options.clone(), series, missing: layers.missing, asleep }))
}
