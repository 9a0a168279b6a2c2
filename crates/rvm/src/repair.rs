//! Repairs logs: what `nvlab log recover` and `nvlab log salvage` do.

use crate::core::{Core, Options, Recovery};
use crate::inspect::{Entry, Inspection};
use crate::log::battery_ram::BatteryRam;
use crate::store::{FileStore, SegmentFolder};
use crate::{Error, Log, Result};
use nvlab_os::file::sync_name;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of two files that are compared at a time.
const COMPARED_BYTES: usize = 1 << 16;

/// Applies the log in a file, of any kind except hybrid, to its segments, and empties it.
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

/// As [`recover`], for a hybrid log in two files.
pub fn recover_hybrid(large: &Path, small: &Path, segments: SegmentFolder) -> Result<Recovery> {
    let log = open_both(large, small)?;
    if let Some(damage) = log.damage() {
        return Err(damage.clone());
    }
    Core::open(log.into_log(), Box::new(segments), Options::default()).map(|(_, recovery)| recovery)
}

/// Opens the files of a hybrid log for changes.
fn open_both(large: &Path, small: &Path) -> Result<Inspection> {
    Inspection::on_both((FileStore::open(large, 0)?, large), (FileStore::open(small, 0)?, small))
}

/// The part of a damaged log that was preserved, and where the rest is.
#[derive(Debug)]
pub struct Salvage {
    /// Commits before the damage, which stay in the log.
    pub commits: u64,
    /// The file that is damaged: one of two of a hybrid log.
    pub file: String,
    /// Offset of the damage in it, in bytes.
    pub offset: u64,
    /// What does not check there.
    pub why: String,
    /// A record cannot be read. Otherwise all can be read, and only the entries of a hybrid log about them were
    /// damaged.
    pub loses_records: bool,
    /// A copy of the original log: of each of its files.
    pub copies: Vec<PathBuf>,
}

/// Truncates a damaged log at the damage, so that it can be opened; `None` if it is not damaged. `lost` is called for
/// each record of at most 1 MiB after the damage that can be read: it is lost because an earlier one is missing.
/// Unreadable records are lost, too. Segments may contain changes of lost records: of a truncation in progress, or,
/// if log and segments lie in memory, of nearly all. The original log is copied first, to a file whose name ends in
/// `.damaged`; an existing one must be identical. So the log has to be in a file, not on a raw device.
///
/// A power failure during the call changes nothing of the preserved part: repeating it has the same result, once the
/// copy has another name.
pub fn salvage(path: &Path, lost: impl FnMut(&Entry<'_>)) -> Result<Option<Salvage>> {
    check_file(path)?;
    let log = Inspection::on(FileStore::open(path, 0)?, path)?;
    salvage_inspected(log, &[path], lost)
}

/// As [`salvage`], for a hybrid log in two files.
pub fn salvage_hybrid(large: &Path, small: &Path, lost: impl FnMut(&Entry<'_>)) -> Result<Option<Salvage>> {
    [large, small].into_iter().try_for_each(check_file)?;
    let log = open_both(large, small)?;
    salvage_inspected(log, &[large, small], lost)
}

/// As [`salvage`], for a log on the program's own devices, which has a copy of it; `damage`: see
/// [`HybridLog::open_damaged`].
///
/// [`HybridLog::open_damaged`]: crate::log::hybrid::HybridLog::open_damaged
pub fn salvage_log(
    log: Box<dyn Log>,
    damage: Option<Error>,
    lost: impl FnMut(&Entry<'_>),
) -> Result<Option<Salvage>> {
    salvage_inspected(Inspection::new("", log, damage), &[], lost)
}

/// Refuses anything but regular files: a copy in the folder of a device would lie in memory.
fn check_file(path: &Path) -> Result<()> {
    if std::fs::metadata(path).map_err(Error::io("examine", &path.display()))?.is_file() {
        return Ok(());
    }
    let why = "it is not a regular file, so a copy cannot be placed next to it: copy it to a file, and salvage that";
    Err(Error::Invalid(format!("{}: {why}", path.display())))
}

/// Salvages a log that lies in these files.
fn salvage_inspected(
    log: Inspection,
    files: &[&Path],
    lost: impl FnMut(&Entry<'_>),
) -> Result<Option<Salvage>> {
    let (mut tail, mut commits) = (log.status().head, 0);
    let scanned = log.each_record(|entry| {
        tail = entry.position + entry.bytes as u64;
        commits += u64::from(matches!(entry.contents, crate::record::Contents::Commit(_)));
    });
    let loses_records = scanned.is_err();
    let (file, offset, why) = match log.explained(scanned) {
        Ok(_) => return Ok(None),
        Err(Error::Damaged { what, offset, why }) => (what, offset, why),
        Err(error) => return Err(error),
    };
    log.each_entry_behind(tail, lost)?;
    let copies = files.iter().map(|path| copy_of(path)).collect::<Result<Vec<PathBuf>>>()?;
    log.into_log().cut(tail).inspect_err(|error| {
        if matches!(error, Error::Invalid(_)) {
            // Nothing was changed: the copies would be in the way of the next attempt.
            copies.iter().for_each(|copy| drop(std::fs::remove_file(copy)));
        }
    })?;
    Ok(Some(Salvage { commits, file, offset, why, loses_records, copies }))
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
        sync_name(&copy)
    };
    match write() {
        Ok(()) => Ok(copy),
        // An earlier attempt ended before it changed anything, perhaps before the copy was durable.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_copy(path, &copy) => {
            let synced = File::open(&copy).and_then(|file| file.sync_all()).and_then(|()| sync_name(&copy));
            synced.map_err(Error::io("force", &copy.display()))?;
            Ok(copy)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let why =
                "exists: it is the log as it was before an earlier attempt. Keep it, under another name";
            Err(Error::Invalid(format!("{} {why}", copy.display())))
        }
        Err(error) => Err(Error::io("create", &copy.display())(error)),
    }
}

/// Whether a file is another one than the log, and has the same contents.
fn is_copy(path: &Path, copy: &Path) -> bool {
    let (Ok(log), Ok(found)) = (std::fs::metadata(path), std::fs::symlink_metadata(copy)) else {
        return false;
    };
    found.is_file() && (found.dev(), found.ino()) != (log.dev(), log.ino()) && is_same(path, copy)
}

/// Whether two files have the same contents, as far as they can be read.
fn is_same(one: &Path, other: &Path) -> bool {
    let same = || {
        let files = [File::open(one)?, File::open(other)?];
        let [bytes, others] = [files[0].metadata()?.len(), files[1].metadata()?.len()];
        let mut buffers = [vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]];
        let mut at = 0;
        while bytes == others && at < bytes {
            let length = (bytes - at).min(COMPARED_BYTES as u64) as usize;
            for (file, buffer) in files.iter().zip(&mut buffers) {
                file.read_exact_at(&mut buffer[..length], at)?;
            }
            if buffers[0][..length] != buffers[1][..length] {
                return Ok(false);
            }
            at += length as u64;
        }
        Ok::<bool, std::io::Error>(bytes == others)
    };
    same().unwrap_or(false)
}
