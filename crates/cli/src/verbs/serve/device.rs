//! `nvlab serve --nbd`, `--nvme` and `--fuse`: designs as block devices, and their statistics after a program.

use super::ended;
use crate::args::Serve;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::verbs::trace::target;
use nvlab_report::{Format, run_text};
use nvlab_run::plan::Named;
use nvlab_run::prepared::Shelf;
use nvlab_run::result::RunResult;
use nvlab_serve::fuse::FuseMount;
use nvlab_serve::management::{Endpoint, ManagementServer};
use nvlab_serve::nbd::{Address, Export, NbdServer, Options, Security, TlsMode};
use nvlab_serve::nvme::{self, NvmeServer};
use nvlab_serve::served::Start;
use nvlab_serve::{
    Aging, Drive, DriveOptions, ServeError, Signals, Woken, end_with_parent, file_name, process_file,
};
use nvlab_trace::{self as trace, Format as TraceFormat};
use nvlab_units::quantity::display_bytes;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;

pub fn serve(output: &Output, args: &Serve) -> Result<(), Failure> {
    let record = args.record.as_deref().map(target).transpose()?;
    if record.is_some() && args.designs.len() > 1 {
        return Err(Failure::Input("--record writes the requests of one device: give one design".into()));
    }
    let addresses = addresses(args)?;
    let security = security(args)?;
    let designs = load(args)?;
    let names = file_names(args, &designs)?;
    let signals = Signals::install().map_err(|error| Failure::machine("cannot handle signals", &error))?;
    let drives = {
        // A device that is being opened serves nobody yet: ending now equals being killed.
        let _deadly = signals.deadly();
        open(output, args, &designs, &names)?
    };
    let export = |drive: &Arc<Drive>| Export { name: drive.name().into(), drive: Arc::clone(drive) };
    let mut server = match &addresses.nbd {
        Some(address) => {
            let options = Options { security, ..Options::default() };
            Some(NbdServer::start_with(address, drives.iter().map(export).collect(), options)?)
        }
        None => None,
    };
    let mut nvme = match addresses.nvme {
        Some(address) => Some(NvmeServer::start(address, drives.clone(), nvme::Options::default())?),
        None => None,
    };
    let mount = args.fuse.as_deref().map(|folder| mount(folder, &names, &drives)).transpose()?;
    let mut doors = Vec::new();
    if let Some(path) = &args.control {
        doors.push(ManagementServer::open(Endpoint::Control, &Address::Unix(path.clone()), drives.clone())?);
    }
    let mut page = None;
    if let Some(address) = &addresses.http {
        let door = ManagementServer::open(Endpoint::Http, address, drives.clone())?;
        page = Some(door.page());
        doors.push(door);
    }
    let uri = server.as_ref().map(|server| server.uri().to_string());
    let subsystem = nvme.as_ref().map(|server| format!("nvme+tcp://{}/{}", server.address(), server.nqn()));
    let file = args.fuse.as_ref().map(|folder| folder.join(&names[0]));
    let fuse = file.as_ref().map(|file| file.display().to_string());
    for (what, place) in [("nbd", &uri), ("nvme", &subsystem), ("fuse", &fuse), ("page", &page)] {
        if let Some(place) = place {
            output.note(format_args!("{what:8} {place}"));
        }
    }
    let program = start(args, &[("NVLAB_URI", &uri), ("NVLAB_NVME", &subsystem), ("NVLAB_DEV", &fuse)])?;
    let status = attend(output, &signals, program, &drives)?;
    // What waits for the end of a pause can be answered.
    drives.iter().for_each(|drive| drive.resume());
    if let Some(server) = &mut server {
        server.stop();
    }
    if let Some(server) = &mut nvme {
        server.stop();
    }
    mount.map_or(Ok(()), FuseMount::close)?;
    drop(doors);
    drives.iter().for_each(|drive| note_lateness(output, drive));
    finish(output, &drives, record)?;
    status.map_or(Ok(()), ended)
}

/// By how much held replies were later than those of the modelled device.
fn note_lateness(output: &Output, drive: &Drive) {
    let late = drive.lateness();
    if late.count > 0 {
        output.note(format_args!(
            "{}: {} replies were later than simulated, by {} (mean), {} (p50), {} (p99), {} (max)",
            drive.name(),
            late.count,
            late.mean,
            late.p50,
            late.p99,
            late.max
        ));
    }
}

/// The server's certificate and what it requires of clients, if there is TLS.
fn security(args: &Serve) -> Result<Option<Security>, Failure> {
    let required = match (args.tls, &args.tls_certificates) {
        (TlsMode::Off, None) => return Ok(None),
        (TlsMode::Off, Some(_)) => {
            return Err(Failure::Input("--tls-certificates needs --tls on or require".into()));
        }
        (mode, _) => mode == TlsMode::Require,
    };
    let Some(folder) = &args.tls_certificates else {
        return Err(Failure::Input("--tls needs --tls-certificates DIR".into()));
    };
    Ok(Some(Security::load(folder, required, args.tls_verify_peer)?))
}

/// Where to listen.
struct Addresses {
    nbd: Option<Address>,
    nvme: Option<SocketAddr>,
    http: Option<Address>,
}

fn addresses(args: &Serve) -> Result<Addresses, Failure> {
    let nbd = args.nbd.as_ref().map(|address| match address {
        Some(address) => Address::parse(address),
        None => {
            let folder = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
            Address::Unix(folder.join(format!("nvlab-{}.sock", std::process::id())))
        }
    });
    let http = args.http.as_deref().map(|text| http_address(text, args.allow_remote)).transpose()?;
    nbd.iter().try_for_each(|address| reachable(address, args.allow_remote))?;
    let nvme = args.nvme.as_deref().map(|text| match Address::parse(text) {
        Address::Tcp(address) => reachable(&Address::Tcp(address), args.allow_remote).map(|()| address),
        Address::Unix(path) => Err(Failure::Input(format!("--nvme {}: write HOST:PORT", path.display()))),
    });
    Ok(Addresses { nbd, nvme: nvme.transpose()?, http })
}

/// The address of a live page.
pub fn http_address(text: &str, allow_remote: bool) -> Result<Address, Failure> {
    let address = Address::parse(text);
    if let Address::Unix(path) = &address {
        return Err(Failure::Input(format!("--http {}: write HOST:PORT", path.display())));
    }
    reachable(&address, allow_remote).map(|()| address)
}

/// Refuses an address that other machines can reach, unless that is allowed.
fn reachable(address: &Address, allow_remote: bool) -> Result<(), Failure> {
    match address.is_remote() && !allow_remote {
        true => Err(Failure::Input(format!(
            "{address} can be reached from other machines, without a password: add --allow-remote to allow it"
        ))),
        false => Ok(()),
    }
}

fn load(args: &Serve) -> Result<Vec<Named>, Failure> {
    let mut designs: Vec<Named> = Vec::new();
    for argument in &args.designs {
        let named = Named::load(argument, &args.set)?;
        if designs.iter().any(|other| other.name == named.name) {
            return Err(Failure::Input(format!("{} is given twice", named.name)));
        }
        designs.push(named);
    }
    Ok(designs)
}

/// The names of the devices' files and folders, if any: the design; among several also its changes, so that each variant of
/// a design has its own name, whatever other devices are served.
fn file_names(args: &Serve, designs: &[Named]) -> Result<Vec<String>, Failure> {
    let several = designs.len() > 1;
    if args.fuse.is_none() && !(several && args.state.is_some()) {
        return Ok(vec![String::new(); designs.len()]);
    }
    let mut names: Vec<String> = Vec::new();
    for named in designs {
        let changes = named.changes.iter().filter(|_| several).map(|change| change.replace('/', "-"));
        let words: Vec<String> = std::iter::once(named.design.name.clone()).chain(changes).collect();
        let name = file_name(&words.join(","))?.to_string();
        if names.contains(&name) {
            let why = format!("two of these designs are called `{name}`: change design.name of one");
            return Err(Failure::Input(why));
        }
        names.push(name);
    }
    Ok(names)
}

fn open(
    output: &Output,
    args: &Serve,
    designs: &[Named],
    names: &[String],
) -> Result<Vec<Arc<Drive>>, Failure> {
    let mut drives: Vec<Arc<Drive>> = Vec::new();
    for (named, name) in designs.iter().zip(names) {
        // Several devices have one folder each.
        let state = args.state.as_ref().map(|folder| match designs.len() {
            1 => folder.clone(),
            _ => folder.join(name),
        });
        let options = DriveOptions {
            state,
            seed: args.seed,
            time: args.time,
            cut_at: args.cut_at,
            ignore_flush: args.ignore_flush,
            record: args.record.is_some(),
        };
        let drive = open_one(output, args, named, &options)?;
        let size = display_bytes(drive.capacity_bytes());
        let how = match drive.start() {
            Start::Fresh => drive.prepared().map_or("new".to_string(), |report| {
                format!("prepared: {}", report.line(drive.capacity_bytes()))
            }),
            Start::Closed => "as it was left".to_string(),
            Start::Killed => "its server was killed; recovered as after a power cut".to_string(),
        };
        output.note(format_args!("{}: {size}, {how}", drive.name()));
        if args.precondition.is_some() && drive.start() != Start::Fresh {
            output.note(format_args!("{}: --precondition is for new devices only", drive.name()));
        }
        drives.push(Arc::new(drive));
    }
    Ok(drives)
}

/// Opens a device; a new one in the state that was asked for.
fn open_one(output: &Output, args: &Serve, named: &Named, options: &DriveOptions) -> Result<Drive, Failure> {
    let Some(preparation) = args.precondition else {
        return Ok(Drive::open(&named.name, &named.design, options)?);
    };
    let shelf = output.cache.as_ref().map(|(folder, bytes_max)| Shelf::new(folder.clone(), *bytes_max));
    let width = named.name.chars().count();
    let progress = Progress::new(output.progress, width, output.progress_lines);
    let mut bar = progress.begin(&named.name);
    let on_progress = &mut |phase: &str, share: f64| {
        bar.at(phase, share);
        true
    };
    let aging = Aging { preparation, shelf: shelf.as_ref(), on_progress };
    let opened = Drive::open_aged(&named.name, &named.design, options, Some(aging));
    drop(bar);
    progress.end();
    shelf.as_ref().and_then(Shelf::trouble).iter().for_each(|trouble| output.warn(trouble));
    Ok(opened?)
}

fn mount(folder: &Path, names: &[String], drives: &[Arc<Drive>]) -> Result<FuseMount, Failure> {
    let devices = names.iter().zip(drives).map(|(name, drive)| (name.clone(), Arc::clone(drive)));
    Ok(FuseMount::open(folder, devices.collect())?)
}

/// Starts the program; `places`: where it finds the device, by variable.
fn start(args: &Serve, places: &[(&str, &Option<String>)]) -> Result<Option<Child>, Failure> {
    let Some((program, arguments)) = args.program.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(arguments);
    for (variable, place) in places {
        place.as_ref().map(|place| command.env(variable, place));
    }
    end_with_parent(&mut command);
    let started = command.spawn();
    Ok(Some(started.map_err(|source| ServeError::Program { program: program.clone(), source })?))
}

/// Waits for the end of the program or for a signal; cuts the power when asked.
fn attend(
    output: &Output,
    signals: &Signals,
    mut program: Option<Child>,
    drives: &[Arc<Drive>],
) -> Result<Option<ExitStatus>, Failure> {
    let failed = |error| Failure::machine("cannot wait for the program", &error);
    let file = program.as_ref().map(|program| process_file(program.id())).transpose().map_err(failed)?;
    loop {
        match signals.wait(file.as_ref()).map_err(failed)? {
            Woken::Plug => {
                for drive in drives {
                    match drive.cut() {
                        Ok(cut) => output.note(format_args!(
                            "{}: the power failed after {} operations; recovered in {}",
                            drive.name(),
                            cut.operations,
                            cut.recovery
                        )),
                        Err(fault) => output.error(format_args!("{}: {fault}", drive.name())),
                    }
                }
            }
            Woken::Program => {
                let status = program.as_mut().map(|program| program.wait()).transpose().map_err(failed)?;
                return Ok(status);
            }
            Woken::End => {
                // Ctrl-C reached the program as well; whatever it does now, the device is shut down properly.
                if let Some(program) = &mut program {
                    let _ = program.kill();
                    return program.wait().map(Some).map_err(failed);
                }
                return Ok(None);
            }
        }
    }
}

/// Closes the devices and prints what was done to them.
fn finish(
    output: &Output,
    drives: &[Arc<Drive>],
    record: Option<(PathBuf, TraceFormat)>,
) -> Result<(), Failure> {
    let mut results: Vec<RunResult> = Vec::new();
    let mut closed = Ok(());
    for drive in drives {
        let cuts = drive.cuts();
        if !cuts.is_empty() {
            output.note(format_args!(
                "{}: {} power cuts; the figures below are since the last",
                drive.name(),
                cuts.len()
            ));
        }
        if let (Some((path, format)), Some(columns)) = (&record, drive.take_record()) {
            let mut columns = columns;
            columns.rebase();
            let report = trace::write_file(&columns, *format, path)?;
            output.note(format_args!("{}: {report}", path.display()));
        }
        results.extend(drive.result());
        // The others are shut down properly all the same.
        closed = closed.and(drive.close());
    }
    match output.format {
        Format::Json | Format::JsonLines => {
            output.note(json!({ "schema": "nvlab.served/1", "devices": results }))
        }
        // stdout belongs to the program.
        _ => results.iter().for_each(|result| output.note(run_text(result, output.style()))),
    }
    closed.map_err(Failure::from)
}
