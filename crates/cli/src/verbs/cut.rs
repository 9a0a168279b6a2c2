//! `nvlab cut`: a program on a served device whose power fails, many times; the program itself says what was lost.

use crate::args::Cut;
use crate::failure::Failure;
use crate::output::Output;
use crate::runs::Named;
use nvlab_serve::fuse::FuseMount;
use nvlab_serve::nbd::{Address, Export, NbdServer};
use nvlab_serve::{Drive, DriveOptions, TimeMode, WindowError, end_with_parent, kill_group};
use nvlab_units::Rng;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// One cut, as it can be repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moment {
    design: String,
    seed: u64,
    /// The power fails during this operation.
    operation: u64,
}

pub fn cut(output: &Output, args: &Cut) -> Result<(), Failure> {
    let named = Named::load(&args.design, &args.set)?;
    let folder = std::env::temp_dir().join(format!("nvlab-cut-{}", std::process::id()));
    let made = fs::create_dir_all(&folder);
    made.map_err(|error| Failure::machine(format_args!("cannot make {}", folder.display()), &error))?;
    let result = explore(output, args, &Bench { named: &named, args, folder: &folder });
    // It holds notes and sockets of cuts that are over.
    let _ = fs::remove_dir_all(&folder);
    result
}

fn explore(output: &Output, args: &Cut, bench: &Bench<'_>) -> Result<(), Failure> {
    if let Some(path) = &args.replay {
        let moment = read(path, &bench.named.name)?;
        return match bench.try_moment(&moment)? {
            None => {
                output.note(format_args!("operation {}: nothing was lost this time", moment.operation));
                Ok(())
            }
            Some(status) => Err(Failure::Check(format!(
                "after a cut during operation {} the check ended with {status}",
                moment.operation
            ))),
        };
    }
    let operations = bench.count()?;
    output.note(format_args!("{}: the program asks {operations} operations", bench.named.name));
    let mut rng = Rng::stream(args.seed, "moments");
    let mut losses = 0u64;
    for number in 0..args.cuts {
        let operation = 1 + rng.below(operations);
        let moment = Moment { design: bench.named.name.clone(), seed: args.seed + number, operation };
        let Some(status) = bench.try_moment(&moment)? else { continue };
        losses += 1;
        output
            .warn(format_args!("cut {number}, during operation {operation}: the check ended with {status}"));
        if losses == 1 {
            let text = serde_json::to_string_pretty(&moment).expect("plain fields");
            fs::write(&args.save, text).map_err(|error| {
                Failure::machine(format_args!("cannot write {}", args.save.display()), &error)
            })?;
        }
    }
    match losses {
        0 => {
            output.note(format_args!("{} cuts: nothing was lost", args.cuts));
            Ok(())
        }
        _ => Err(Failure::Check(format!(
            "{losses} of {} cuts lost something; the first is in {}",
            args.cuts,
            args.save.display()
        ))),
    }
}

fn read(path: &Path, design: &str) -> Result<Moment, Failure> {
    let wrong = |why: String| Failure::Input(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let moment: Moment = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match moment.design == design {
        true => Ok(moment),
        false => Err(wrong(format!("it is of the design {}, not of {design}", moment.design))),
    }
}

/// What every cut has in common.
struct Bench<'a> {
    named: &'a Named,
    args: &'a Cut,
    folder: &'a Path,
}

/// A device being served.
struct Stand {
    drive: Arc<Drive>,
    server: NbdServer,
    mount: Option<FuseMount>,
    file: Option<PathBuf>,
    notes: PathBuf,
    /// The program that runs now; 0: none.
    running: Arc<AtomicU32>,
}

impl Bench<'_> {
    /// Operations of the program without a cut.
    fn count(&self) -> Result<u64, Failure> {
        let stand = self.stand(self.args.seed, None)?;
        let status = self.run(&stand, "run")?;
        let operations = stand.drive.operations();
        if !status.success() {
            return Err(Failure::Input(format!("without any cut the program ended with {status}")));
        }
        let status = self.run(&stand, "check")?;
        stand.close()?;
        match (status.success(), operations) {
            (false, _) => Err(Failure::Input(format!(
                "without any cut the check ended with {status}: it proves nothing"
            ))),
            (true, 0) => Err(Failure::Input("the program asked nothing of the device".into())),
            (true, operations) => Ok(operations),
        }
    }

    /// What the check ended with if something was lost.
    fn try_moment(&self, moment: &Moment) -> Result<Option<ExitStatus>, Failure> {
        let stand = self.stand(moment.seed, Some(moment.operation))?;
        self.run(&stand, "run")?;
        if stand.drive.cuts().is_empty() {
            // It asked less this time: the power fails after the last operation.
            stand.drive.cut().map_err(|fault| Failure::Check(fault.to_string()))?;
        }
        let status = self.run(&stand, "check")?;
        stand.close()?;
        Ok((!status.success()).then_some(status))
    }

    fn stand(&self, seed: u64, cut_at: Option<u64>) -> Result<Stand, Failure> {
        let options = DriveOptions {
            seed,
            time: TimeMode::Fast,
            cut_at,
            ignore_flush: self.args.ignore_flush,
            ..DriveOptions::default()
        };
        let drive = Arc::new(Drive::open(&self.named.name, &self.named.design, &options)?);
        let export = Export { name: drive.name().into(), drive: Arc::clone(&drive) };
        let server = NbdServer::start(&Address::Unix(self.folder.join("socket")), vec![export])?;
        let (mut mount, mut file) = (None, None);
        if let Some(folder) = &self.args.fuse {
            let made = fs::create_dir_all(folder);
            made.map_err(|error| Failure::machine(format_args!("cannot make {}", folder.display()), &error))?;
            mount = Some(FuseMount::open(folder, vec![(drive.file_name(), Arc::clone(&drive))])?);
            file = Some(folder.join(drive.file_name()));
        }
        let notes = self.folder.join("notes");
        // Of the cut before.
        let _ = fs::remove_dir_all(&notes);
        fs::create_dir(&notes).map_err(|error| Failure::machine("cannot make a folder for notes", &error))?;
        let running = Arc::<AtomicU32>::default();
        let killed = Arc::clone(&running);
        drive.on_cut(move |_| match killed.load(Ordering::Acquire) {
            0 => {}
            process => kill_group(process),
        });
        Ok(Stand { drive, server, mount, file, notes, running })
    }

    fn run(&self, stand: &Stand, phase: &str) -> Result<ExitStatus, Failure> {
        let (program, arguments) = self.args.program.split_first().expect("a program is required");
        let mut command = Command::new(program);
        command.args(arguments).process_group(0);
        command
            .env("NVLAB_PHASE", phase)
            .env("NVLAB_URI", stand.server.uri())
            .env("NVLAB_NOTES", &stand.notes);
        stand.file.as_ref().map(|file| command.env("NVLAB_DEV", file));
        end_with_parent(&mut command);
        let started = command.spawn();
        let mut child =
            started.map_err(|source| WindowError::Program { program: program.clone(), source })?;
        stand.running.store(child.id(), Ordering::Release);
        // The power may have failed before the program was known.
        if phase == "run" && !stand.drive.cuts().is_empty() {
            kill_group(child.id());
        }
        let status = child.wait();
        stand.running.store(0, Ordering::Release);
        status.map_err(|error| Failure::machine("cannot wait for the program", &error))
    }
}

impl Stand {
    fn close(mut self) -> Result<(), Failure> {
        self.server.stop();
        Ok(self.mount.map_or(Ok(()), FuseMount::close)?)
    }
}
