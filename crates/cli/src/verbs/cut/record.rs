//! The one real run: the program on a served device that records its changes.

use super::check::{Checks, command};
use crate::args::Cut;
use crate::failure::Failure;
use crate::output::Output;
use nvlab_run::plan::Named;
use nvlab_serve::cuts::{Journal, SharedJournal};
use nvlab_serve::fuse::FuseMount;
use nvlab_serve::nbd::{Address, Export, NbdServer};
use nvlab_serve::{Drive, DriveOptions, ServeError, TimeMode, file_name};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

/// What the program did, and the first operation at which to cut: those before it made the file system.
pub struct Recording {
    pub journal: Journal,
    pub first: u64,
}

/// Runs the program and records it.
pub fn record(
    output: &Output,
    args: &Cut,
    named: &Named,
    checks: &Checks<'_>,
    folder: &Path,
) -> Result<Recording, Failure> {
    let journal = SharedJournal::default();
    let options = DriveOptions { seed: args.seed, time: TimeMode::Fast, ..DriveOptions::default() };
    let drive = Arc::new(journal.record(Drive::open(&named.name, &named.design, &options)?));
    let export = Export { name: drive.name().into(), drive: Arc::clone(&drive) };
    let mut server = NbdServer::start(&Address::Unix(folder.join("socket")), vec![export])?;
    // A file system needs the device as a file, wherever that is.
    let own = checks.filesystem.map(|_| folder.join("dev"));
    let files = args.fuse.as_ref().or(own.as_ref());
    let (mut mount, mut file) = (None, None);
    if let Some(files) = files {
        let name = file_name(&named.design.name)?;
        mount = Some(FuseMount::open(files, vec![(name.into(), Arc::clone(&drive))])?);
        let path = files.join(name);
        file = Some(fs::canonicalize(&path).map_err(|error| Failure::machine(path.display(), &error))?);
    }
    let mut first = 1;
    let mut mounted = None;
    if let (Some(filesystem), Some(file)) = (checks.filesystem, &file) {
        filesystem.make(file)?;
        first = journal.lock().len() + 1;
        mounted = Some(filesystem.mount_device(file, checks.mount_point())?);
    }
    let mount_point = mounted.is_some().then(|| checks.mount_point());
    let status = run(args, checks, &journal, (server.uri(), file.as_deref(), mount_point))?;
    mounted.map_or(Ok(()), |mounted| mounted.close())?;
    server.stop();
    mount.map_or(Ok(()), FuseMount::close)?;
    if !status.success() {
        return Err(Failure::Input(format!("even without a cut, the program ended with {status}")));
    }
    let journal = journal.take();
    if journal.len() < first {
        return Err(Failure::Input("the program wrote nothing to the device".into()));
    }
    let (changes, marks) = (journal.len() + 1 - first, journal.marks().len());
    output.note(format_args!(
        "{}: the program issued {changes} operations and printed {marks} lines",
        named.name
    ));
    Ok(Recording { journal, first })
}

/// Runs the program on the device at (address, file, mount point).
fn run(
    args: &Cut,
    checks: &Checks<'_>,
    journal: &SharedJournal,
    (uri, file, mount_point): (&str, Option<&Path>, Option<&Path>),
) -> Result<ExitStatus, Failure> {
    let mut command = command(&args.program, "run", mount_point);
    command.env("NVLAB_URI", uri).stdout(Stdio::piped());
    file.map(|file| command.env("NVLAB_DEV", file));
    let started = command.spawn();
    let mut child =
        started.map_err(|source| ServeError::Program { program: args.program[0].clone(), source })?;
    let lines = BufReader::new(child.stdout.take().expect("it is piped"));
    let marks = journal.clone();
    let reader = std::thread::spawn(move || {
        // They end when the program and everything it started have closed their output.
        lines.split(b'\n').try_for_each(|line| {
            marks.lock().mark(String::from_utf8_lossy(&line?).into_owned());
            Ok(())
        })
    });
    let status = checks.watch.wait(&mut child)?;
    checks.watch.join(reader, child.id())?;
    Ok(status)
}
