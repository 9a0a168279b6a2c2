//! Repairs logs: what `nvlab log recover` and `nvlab log salvage` do.

use crate::core::{Core, Options, Recovery};
use crate::inspect::{Entry, Inspection};
use crate::log::battery_ram::BatteryRam;
use crate::store::{FileStore, SegmentFolder};
use crate::{Error, Log, Result};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Applies the log in a file, of whatever kind but hybrid, to its segments, and empties it.
pub fn recover(path: &Path, segments: SegmentFolder) -> Result<Recovery> {
    let log = Inspection::on(FileStore::open(path, 0)?, path)?;
    let log: Box<dyn Log> = match log.kind() {
        "battery-ram" => {
            drop(log);
            Box::new(BatteryRam::open(path)?)
        }
        _ => log.into_log(),
    };
    Core::open(log, Box::new(segments), Options::default()).map(|(_, recovery)| recovery)
}

/// What was kept of a damaged log, and where the rest is.
#[derive(Debug)]
pub struct Salvage {
    /// Commits before the damage, which stay in the log.
    pub commits: u64,
    /// Where the damage begins in the file, in bytes.
    pub offset: u64,
    /// What is wrong there.
    pub why: String,
    /// A copy of the log as it was.
    pub copy: PathBuf,
}

/// Keeps of a damaged log what is before the damage, so that it can be opened; `None` if it is not damaged. `lost` is called for
/// each record of at most 1 MiB behind that which can be read: it is given up because an earlier one is missing. What cannot be
/// read is lost, too. Segments may hold changes of lost records: of a truncation that was under way, or, where log and segments lie
/// in memory, of nearly all. The log as it was is copied first, to a file whose name ends in `.damaged` and which must not exist. So
/// the log has to be in a file, not on a raw device.
pub fn salvage(path: &Path, lost: impl FnMut(&Entry<'_>)) -> Result<Option<Salvage>> {
    if !std::fs::metadata(path).map_err(Error::io("examine", &path.display()))?.is_file() {
        // Beside a device a copy would lie in memory.
        let why = "it is no regular file, so there is no safe place for a copy beside it: copy it to a file, and salvage that";
        return Err(Error::Invalid(format!("{}: {why}", path.display())));
    }
    let log = Inspection::on(FileStore::open(path, 0)?, path)?;
    let (mut tail, mut commits) = (log.status().head, 0);
    let scanned = log.each_entry(|entry| {
        tail = entry.position + entry.bytes as u64;
        commits += u64::from(matches!(entry.contents, crate::record::Contents::Commit(_)));
    });
    let (offset, why) = match scanned {
        Ok(_) => return Ok(None),
        Err(Error::Damaged { offset, why, .. }) => (offset, why),
        Err(error) => return Err(error),
    };
    log.each_entry_behind(tail, lost)?;
    let copy = copy_of(path)?;
    log.into_log().cut(tail).inspect_err(|error| {
        if matches!(error, Error::Invalid(_)) {
            // Nothing was changed: the copy would be in the way of the next attempt.
            let _ = std::fs::remove_file(&copy);
        }
    })?;
    Ok(Some(Salvage { commits, offset, why, copy }))
}

/// Copies the log, durably: all of it or, after a power failure, none, besides a file whose name ends in `.new`.
fn copy_of(path: &Path) -> Result<PathBuf> {
    let named = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let (copy, unfinished) = (named(".damaged"), named(".damaged.new"));
    let write = || {
        let mut into = nvlab_os::file::private().create(true).truncate(true).open(&unfinished)?;
        std::io::copy(&mut File::open(path)?, &mut into)?;
        into.sync_all()?;
        // A link, unlike a new name, replaces nothing.
        let linked = std::fs::hard_link(&unfinished, &copy);
        std::fs::remove_file(&unfinished)?;
        linked?;
        let folder = copy.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    };
    match write() {
        Ok(()) => Ok(copy),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let why =
                "exists: it is the log as it was before an earlier attempt. Keep it, under another name";
            Err(Error::Invalid(format!("{} {why}", copy.display())))
        }
        Err(error) => Err(Error::io("create", &copy.display())(error)),
    }
}
