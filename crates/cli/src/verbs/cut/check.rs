//! Checks after a cut: the promise of the device, the file system on it, the program's own check.

use super::filesystem::FileSystem;
use super::private_folder;
use super::watch::Watch;
use crate::args::Cut;
use crate::failure::{Failure, save};
use nvlab_serve::cuts::{Journal, Moment, Promise, Recovered};
use nvlab_serve::{ServeError, end_with_parent};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The checks requested; the device is always checked.
pub struct Checks<'a> {
    pub watch: &'a Watch,
    pub filesystem: Option<FileSystem>,
    /// Program and arguments.
    pub program: Option<Vec<OsString>>,
    /// The copy of the device, the mount point, the marks.
    image: PathBuf,
    mount_point: PathBuf,
    marks: PathBuf,
    /// Where the copy lies, if not in the folder with the others.
    _memory: Option<TempDir>,
}

impl Checks<'_> {
    /// Reads `--check`; `folder` is for copies of the device.
    pub fn new<'a>(args: &Cut, folder: &Path, watch: &'a Watch) -> Result<Checks<'a>, Failure> {
        let (mut filesystem, mut program) = (None, None);
        for what in args.check.iter().flat_map(|list| split(list)) {
            let slot_taken = match what.split_once('=') {
                None if what == "device" => false,
                None if what == "program" && args.program.is_empty() => {
                    return Err(Failure::Input("--check program needs the program: -- PROGRAM".into()));
                }
                None if what == "program" => program.replace(args.program.clone()).is_some(),
                Some(("program", script)) => {
                    program.replace(["sh", "-c", script].map(OsString::from).to_vec()).is_some()
                }
                Some(("fs", kind)) if FileSystem::parse(kind).is_some() => {
                    filesystem.replace(FileSystem::parse(kind).expect("just parsed")).is_some()
                }
                Some(("fs", kind)) => {
                    let why = format!("--check fs={kind}: write fs=ext4, fs=xfs or fs=btrfs");
                    return Err(Failure::Input(why));
                }
                _ => {
                    let why =
                        format!("--check {what}: write device, fs=ext4|xfs|btrfs, program or program=SCRIPT");
                    return Err(Failure::Input(why));
                }
            };
            if slot_taken {
                return Err(Failure::Input(format!("--check {what}: there already is a check of this kind")));
            }
        }
        let (mount_point, marks) = (folder.join("mnt"), folder.join("marks"));
        // Written and mounted for every cut: in memory if possible.
        let memory = Path::new("/dev/shm");
        let memory = memory.is_dir().then(|| private_folder(memory)).transpose()?;
        let image = memory.as_ref().map_or(folder, TempDir::path).join("image");
        fs::create_dir(&mount_point).map_err(|error| Failure::machine(mount_point.display(), &error))?;
        Ok(Checks { watch, filesystem, program, image, mount_point, marks, _memory: memory })
    }

    /// Where file systems are mounted.
    pub fn mount_point(&self) -> &Path {
        &self.mount_point
    }

    /// What was lost at a moment, if anything. The promise is moved on to the moment.
    pub fn lost(
        &self,
        recovered: Result<Recovered, String>,
        promise: &mut Promise,
        (journal, moment): (&Journal, &Moment),
    ) -> Result<Option<Loss>, Failure> {
        promise.advance(journal, moment);
        let mut recovered = match recovered {
            Ok(recovered) => recovered,
            Err(why) => return Ok(Some(Loss::of_device(format!("the device does not recover: {why}")))),
        };
        let broken = match promise.check(&mut recovered) {
            Ok(broken) => broken,
            Err(why) => return Ok(Some(Loss::of_device(why))),
        };
        let marks = journal.marks().iter().filter(|mark| mark.operations <= moment.answered());
        let above = self.above(recovered, marks.map(|mark| mark.line.as_str()))?;
        let Some(broken) = broken else { return Ok(above) };
        // Would any other check have noticed?
        let (what, on_it) = match above {
            Some(above) => (format!("{broken}; {}", above.what), true),
            None => (broken.to_string(), false),
        };
        Ok(Some(Loss { what, of_device: true, on_it, shrinks: true }))
    }

    /// What the checks of the file system and the program report, with these marks acknowledged.
    pub fn above<'a>(
        &self,
        mut recovered: Recovered,
        marks: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Loss>, Failure> {
        if self.filesystem.is_none() && self.program.is_none() {
            return Ok(None);
        }
        let image =
            File::create(&self.image).map_err(|error| Failure::machine(self.image.display(), &error))?;
        if let Err(why) = recovered.copy_to(&image) {
            return Ok(Some(Loss::of_device(why)));
        }
        drop(image);
        let marks: String = marks.flat_map(|line| [line, "\n"]).collect();
        save(&self.marks, marks)?;
        match self.of_copy() {
            Ok(()) => Ok(None),
            Err(Failure::Check(what)) => {
                Ok(Some(Loss { what, of_device: false, on_it: true, shrinks: false }))
            }
            Err(other) => Err(other),
        }
    }

    fn of_copy(&self) -> Result<(), Failure> {
        let Some(filesystem) = self.filesystem else { return self.run(None) };
        let mounted = filesystem.mount_copy(&self.image, &self.mount_point)?;
        self.run(Some(&self.mount_point))?;
        mounted.close()?;
        filesystem.check(&self.image)
    }

    fn run(&self, mount_point: Option<&Path>) -> Result<(), Failure> {
        let Some(words) = &self.program else { return Ok(()) };
        let mut command = command(words, "check", mount_point);
        command.env("NVLAB_DEV", &self.image).env("NVLAB_MARKS", &self.marks).stdout(Stdio::null());
        let started = command.spawn();
        let mut started =
            started.map_err(|source| ServeError::Program { program: words[0].clone(), source })?;
        let status = self.watch.wait(&mut started)?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::Check(format!("the check of the program ended with {status}"))),
        }
    }
}

/// `a,b` are two checks, unless the comma is part of a script.
fn split(list: &str) -> Vec<&str> {
    match list.find("program=") {
        None => list.split(',').collect(),
        Some(0) => vec![list],
        Some(at) => list[..at - 1].split(',').chain([&list[at..]]).collect(),
    }
}

/// The program in one of its phases, in a process group of its own, so that everything it starts can be ended with it; its
/// working directory is the mount point if there is one.
pub fn command(words: &[OsString], phase: &str, mount_point: Option<&Path>) -> Command {
    let (program, arguments) = words.split_first().expect("a program has a name");
    // Relative to nvlab's working directory, not the program's.
    let found = Path::new(program);
    let path = found.components().count() > 1 && found.is_relative();
    let absolute = path.then(|| fs::canonicalize(found).ok()).flatten();
    let mut command = Command::new(absolute.as_deref().unwrap_or(found));
    command.args(arguments).env("NVLAB_PHASE", phase);
    if let Some(folder) = mount_point {
        command.current_dir(folder).env("NVLAB_MNT", folder);
    }
    command.process_group(0);
    // A background process group that reads from a terminal would be stopped.
    if std::io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    end_with_parent(&mut command);
    command
}

/// What a cut lost, and whose fault that is.
pub struct Loss {
    /// For the user, in a sentence.
    pub what: String,
    /// The device broke its own promise.
    pub of_device: bool,
    /// The file system or the program noticed.
    pub on_it: bool,
    /// Fewer operations may reproduce it.
    pub shrinks: bool,
}

impl Loss {
    fn of_device(what: String) -> Loss {
        Loss { what, of_device: true, on_it: false, shrinks: false }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn checks_stand_in_a_list_and_scripts_keep_their_commas() {
        assert_eq!(super::split("device,fs=xfs,program"), ["device", "fs=xfs", "program"]);
        assert_eq!(super::split("fs=ext4,program=a, b"), ["fs=ext4", "program=a, b"]);
        assert_eq!(super::split("program=a,b"), ["program=a,b"]);
    }
}
