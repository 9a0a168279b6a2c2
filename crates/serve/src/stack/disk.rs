//! Loop devices and file systems that are there as long as something of them is open, and gone afterwards.
//!
//! 1. A loop device is detached as soon as it is open: the kernel frees it when the last user closes it. So is a file system
//!    unmounted, lazily, as soon as its file is open.
//! 2. What is attached or mounted for a moment is undone by `Drop`: also after an error. A process that is killed in that
//!    moment leaves it behind; no other does.

use nvlab_os::file::DIRECT;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bytes of a file system beyond its file: XFS needs 300 MiB. The image has holes: it takes what is written.
const ROOM_BYTES: u64 = 320 << 20;

/// Runs a tool; returns what it prints, or why it failed.
fn tool(name: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', "; ");
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(format!("{name}: {}", said(&output.stderr))),
    }
}

/// Why a system call or file operation failed.
fn because(what: &str) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// Options to open a file or a device for transfers past the page cache.
pub(super) fn direct() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(DIRECT);
    options
}

/// A loop device over a file in memory, attached until this is dropped, and then as long as it is open.
pub(super) struct Loop {
    path: PathBuf,
}

impl Loop {
    /// Attaches one to a new file in `folder`.
    pub fn attach(folder: &Path, bytes: u64) -> Result<Loop, String> {
        let image = tempfile::NamedTempFile::new_in(folder).map_err(because("cannot create a file"))?;
        image.as_file().set_len(bytes).map_err(because("cannot extend a file"))?;
        let path = image.path().to_string_lossy().into_owned();
        let device = tool("losetup", &["--find", "--show", &path])?;
        Ok(Loop { path: PathBuf::from(device) })
    }

    /// Opens it past the page cache.
    pub fn open(&self) -> Result<File, String> {
        direct().open(&self.path).map_err(because("cannot open the loop device"))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = tool("losetup", &["--detach", &self.path.to_string_lossy()]);
    }
}

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileSystem {
    Ext4,
    Xfs,
}

impl FileSystem {
    fn make(self, device: &str) -> Result<(), String> {
        // Without lazy initialisation, which would go on in the background while something is measured.
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        match self {
            FileSystem::Ext4 => tool("mkfs.ext4", &["-q", "-F", "-E", lazy, device]),
            FileSystem::Xfs => tool("mkfs.xfs", &["-q", "-f", device]),
        }
        .map(|_| ())
    }

    fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        }
    }
}

/// A mounted folder.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = tool("umount", &["--lazy", &self.0.to_string_lossy()]);
    }
}

/// Two files of so many bytes in a new file system on a loop device, for requests of `request` bytes, one past the page cache and one through it: past the cache
/// of one file, requests would write its dirty pages first. All of both was written.
pub(super) struct OnLoop {
    pub direct: File,
    pub cached: File,
}

impl OnLoop {
    pub fn make(folder: &Path, kind: FileSystem, bytes: u64, request: u32) -> Result<OnLoop, String> {
        let device = Loop::attach(folder, 2 * bytes + ROOM_BYTES)?;
        let name = device.path.to_string_lossy();
        kind.make(&name)?;
        let place = tempfile::tempdir().map_err(because("cannot create a folder"))?;
        tool("mount", &["-t", kind.name(), &name, &place.path().to_string_lossy()])?;
        // Unmounted before the folder is removed.
        let mounted = Mounted(place.path().to_path_buf());
        let path = |name| mounted.0.join(name);
        let filled = |name| -> Result<File, String> {
            let file = File::options().read(true).write(true).create_new(true).open(path(name));
            let file = file.map_err(because("cannot create a file"))?;
            fill(&file, bytes, request).map_err(because("cannot fill a file"))?;
            Ok(file)
        };
        let cached = filled("cached")?;
        filled("direct")?;
        let direct = direct().open(path("direct")).map_err(because("cannot open a file with O_DIRECT"))?;
        drop(mounted);
        Ok(OnLoop { direct, cached })
    }
}

/// Writes all of a file in requests of so many bytes, so that no later one finds a hole. The page cache keeps what was written in
/// pieces of that size: to write 4 KiB into one of 2 MiB takes ext4 100 us, as it looks at each of its blocks.
pub(super) fn fill(file: &File, bytes: u64, request: u32) -> io::Result<()> {
    let piece = super::probe::buffer(request)?;
    for offset in (0..bytes).step_by(piece.len()) {
        let count = (bytes - offset).min(piece.len() as u64) as usize;
        file.write_all_at(&piece.as_slice()[..count], offset)?;
    }
    file.sync_all()
}
