//! File systems on a device, made, mounted and checked with the tools of this computer.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often, and at what interval, unmounting a busy mount is tried.
const TRIES: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(25);

/// A file system that survives power cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

/// A file as a loop device, mounted; unmounted when dropped.
pub struct Mounted {
    folder: PathBuf,
    /// A loop device that is not released with the mount.
    device: Option<String>,
    is_mounted: bool,
}

impl FileSystem {
    pub fn parse(text: &str) -> Option<FileSystem> {
        match text {
            "ext4" => Some(FileSystem::Ext4),
            "xfs" => Some(FileSystem::Xfs),
            "btrfs" => Some(FileSystem::Btrfs),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// Makes it on a file, durably.
    pub fn make(self, file: &Path) -> Result<(), Failure> {
        let make: &[&str] = match self {
            // Write everything now, not in the background by the kernel.
            FileSystem::Ext4 => &["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
            FileSystem::Xfs => &["mkfs.xfs", "-q", "-f"],
            FileSystem::Btrfs => &["mkfs.btrfs", "-q", "-f"],
        };
        needed(tool(make, file))?;
        needed(tool(&["sync"], file)).map(drop)
    }

    /// Mounts a served device at a folder.
    pub fn mount_device(self, file: &Path, folder: &Path) -> Result<Mounted, Failure> {
        // The page cache of the file below would hold a second copy and delay its writes arbitrarily.
        let device = needed(tool(&["losetup", "--direct-io=on", "--show", "-f"], file))?.trim().to_string();
        // From here on it is released whatever happens.
        let mut mounted = Mounted { folder: folder.into(), device: Some(device.clone()), is_mounted: false };
        needed(tool(&["mount", "-t", self.name(), &device], folder))?;
        mounted.is_mounted = true;
        Ok(mounted)
    }

    /// Mounts a copy of a device at a folder.
    pub fn mount_copy(self, file: &Path, folder: &Path) -> Result<Mounted, Failure> {
        let name = file.to_str().expect("nvlab named it");
        needed(tool(&["mount", "-t", self.name(), "-o", "loop", name], folder))?;
        Ok(Mounted { folder: folder.into(), device: None, is_mounted: true })
    }

    /// What fsck reports for a file, if anything is wrong.
    pub fn check(self, file: &Path) -> Result<(), Failure> {
        let check: &[&str] = match self {
            FileSystem::Ext4 => &["e2fsck", "-fn"],
            FileSystem::Xfs => &["xfs_repair", "-n"],
            FileSystem::Btrfs => &["btrfs", "check", "--readonly"],
        };
        needed(tool(check, file)).map(drop)
    }
}

impl Mounted {
    /// Unmounts it; fails if the file system cannot write what is left.
    pub fn close(mut self) -> Result<(), Failure> {
        needed(tool(&["umount"], &self.folder))?;
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Killed programs take a moment to exit.
        let mut tries = (0..TRIES).take_while(|_| self.is_mounted);
        let unmounted = tries.any(|_| {
            let done = tool(&["umount"], &self.folder).is_ok();
            if !done {
                std::thread::sleep(BETWEEN);
            }
            done
        });
        if self.is_mounted && !unmounted {
            // What is still busy is released with its last user.
            let _ = tool(&["umount", "-l"], &self.folder);
        }
        if let Some(device) = &self.device {
            let _ = tool(&["losetup", "-d"], Path::new(device));
        }
    }
}

/// A tool that could not be started, what it was not allowed to do, or what it said when it failed.
enum Trouble {
    Missing(String),
    Refused(String),
    Failed(String),
}

/// What tools say (in the C locale) when the user has no right to do something.
const REFUSALS: [&str; 4] = ["permission denied", "operation not permitted", "superuser", "only root"];

/// Runs a tool on a file and returns what it printed.
fn tool(words: &[&str], file: &Path) -> Result<String, Trouble> {
    let (program, arguments) = words.split_first().expect("a tool has a name");
    let done =
        Command::new(program).args(arguments).arg(file).env("LC_ALL", "C").stdin(Stdio::null()).output();
    let done = done.map_err(|error| Trouble::Missing(format!("cannot run {program}: {error}")))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(if done.stderr.is_empty() { &done.stdout } else { &done.stderr });
    let said = said.lines().filter(|line| !line.trim().is_empty()).take(3).collect::<Vec<_>>().join("; ");
    let why = format!("{} {}: {}: {said}", words.join(" "), file.display(), done.status);
    let said = said.to_lowercase();
    Err(match REFUSALS.iter().any(|refusal| said.contains(refusal)) {
        true => Trouble::Refused(why),
        false => Trouble::Failed(why),
    })
}

/// A missing tool or right is a problem of this machine, a failed tool one of the file system.
fn needed(outcome: Result<String, Trouble>) -> Result<String, Failure> {
    outcome.map_err(|trouble| match trouble {
        Trouble::Missing(why) => Failure::Machine(why),
        Trouble::Refused(why) => Failure::Machine(format!(
        "{why}\n       mounting a file system needs root; without fs=, the program finds the device at $NVLAB_URI, or with \
         --fuse DIR as the file $NVLAB_DEV"
        )),
        Trouble::Failed(why) => Failure::Check(why),
    })
}
