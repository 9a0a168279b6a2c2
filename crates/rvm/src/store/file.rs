//! Stores on files and raw devices.

use super::{Segments, Store};
use crate::{Error, Result};
use nvlab_os::file::try_lock;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file or block device, locked while it is open.
#[derive(Debug)]
pub struct FileStore {
    file: File,
}

impl FileStore {
    /// Opens what is there. `flags` are added to those of open(2).
    pub fn open(path: &Path, flags: i32) -> Result<FileStore> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(flags).open(path);
        FileStore::lock(file.map_err(Error::io("open", &path.display()))?, path)
    }

    /// Opens what is there for reading.
    pub(crate) fn open_to_read(path: &Path) -> Result<FileStore> {
        let file = File::open(path).map_err(Error::io("open", &path.display()))?;
        FileStore::lock(file, path)
    }

    /// Creates a file, which must not exist, of `bytes` zero bytes with space reserved for them and what `begin` writes;
    /// readable by its owner only. It is durable when this returns; a power failure before leaves all of it or none,
    /// besides a file whose name ends in `.new`.
    pub fn create(
        path: &Path,
        bytes: u64,
        begin: impl FnOnce(&FileStore) -> Result<()>,
    ) -> Result<FileStore> {
        let failed = || Error::io("create", &path.display());
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = Path::new(&unfinished);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(unfinished);
        let store = FileStore::lock(file.map_err(failed())?, unfinished)?;
        let begun = store.set_len(bytes).map_err(failed()).and_then(|()| begin(&store));
        // A link, unlike a new name, replaces nothing.
        let made = begun.and_then(|()| {
            let linked = store.file.sync_all().and_then(|()| std::fs::hard_link(unfinished, path));
            linked.map_err(failed())
        });
        let removed = std::fs::remove_file(unfinished);
        made?;
        let synced = removed.and_then(|()| nvlab_os::file::sync_name(path));
        synced.map_err(failed())?;
        Ok(store)
    }

    /// Writes zeros from `from` to `end`. The first write to a block that was only reserved changes the file's metadata (ext4: an
    /// extent becomes a written one), which the next sync has to write as well.
    pub(crate) fn write_zeros(&self, from: u64, end: u64) -> io::Result<()> {
        write_zeros(&self.file, from, end)
    }

    /// A file that is open already.
    pub(crate) fn lock(file: File, path: &Path) -> Result<FileStore> {
        match try_lock(&file) {
            Ok(true) => Ok(FileStore { file }),
            Ok(false) => Err(Error::Busy(path.into())),
            Err(error) => Err(Error::io("lock", &path.display())(error)),
        }
    }
}

impl Store for FileStore {
    fn len(&self) -> io::Result<u64> {
        // A device has no length but has an end.
        (&self.file).seek(SeekFrom::End(0))
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        reserve(&self.file, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Pages that the page cache lacks are read together: each would else be read when a part of it is written.
    fn prepare_parts(&self, offset: u64, bytes: usize) -> bool {
        nvlab_os::file::read_ahead(&self.file, offset, bytes as u64).is_ok()
    }

    fn file(&self) -> Option<&File> {
        Some(&self.file)
    }
}

/// Sets the length. The space of new bytes is reserved, so that no later write fails for want of it; where the file system
/// cannot reserve, they are written.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let old = file.metadata()?.len();
    if bytes <= old {
        return file.set_len(bytes);
    }
    match nvlab_os::file::reserve(file, old, bytes - old) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => write_zeros(file, old, bytes),
        result => result,
    }
}

/// Takes room for the bytes of a file in memory that are about to be mapped: a store to a page that has none would end the
/// program (SIGBUS). On other files a write that finds no room is an error.
pub(crate) fn take_room(file: &File, name: &str, range: &Range<u64>) -> Result<()> {
    let take = || {
        if !nvlab_os::file::is_in_memory(file)? || nvlab_os::file::is_whole(file)? {
            return Ok(());
        }
        match nvlab_os::file::reserve(file, range.start, range.end - range.start) {
            // Where the system reserves none (ramfs), it takes what a store needs.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
            result => result,
        }
    };
    let what = format!("{} B of {name}", range.end - range.start);
    take().map_err(Error::io("reserve", &what))
}

/// Writes zeros from `at` to `end`.
fn write_zeros(file: &File, mut at: u64, end: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    while at < end {
        let piece = (end - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..piece as usize], at)?;
        at += piece;
    }
    Ok(())
}

/// Segments that are files of a folder; their names are paths, relative to it unless they begin with `/`.
#[derive(Clone, Debug)]
pub struct SegmentFolder {
    folder: PathBuf,
    /// Folders, and those that have taken their place.
    moved: Vec<(PathBuf, PathBuf)>,
}

impl SegmentFolder {
    /// Segments are the files of this folder, by name.
    pub fn new(folder: impl Into<PathBuf>) -> SegmentFolder {
        SegmentFolder { folder: folder.into(), moved: Vec::new() }
    }

    /// The same, but what lies in folder `old` is looked for in `new`: a log that has been copied together with its segments, whose
    /// absolute paths it names, would else be recovered into the originals. What lies in `new` already is looked for there. Of several
    /// folders one of which is in another, the innermost counts. Once a folder has moved, no segment is recovered that the log names
    /// in none of all these.
    pub fn relocate(mut self, old: impl Into<PathBuf>, new: impl Into<PathBuf>) -> SegmentFolder {
        self.moved.push((old.into(), new.into()));
        self
    }

    /// Where the file of a segment is, moved folders considered.
    pub fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        self.moved_to(&path).unwrap_or(path)
    }

    /// Where a file is that lies in a folder that has moved, or in one that has taken the place of such a folder.
    fn moved_to(&self, path: &Path) -> Option<PathBuf> {
        let moved = self.moved.iter().map(|(old, new)| (old, new));
        // Of equals the first counts: what is said to have moved has.
        let all = moved.chain(self.moved.iter().map(|(_, new)| (new, new)));
        let within = all.filter_map(|(old, new)| {
            let rest = path.strip_prefix(old).ok()?;
            Some((rest.components().count(), new.join(rest)))
        });
        within.min_by_key(|(below, _)| *below).map(|(_, file)| file)
    }

    /// Creates a segment of `bytes` zero bytes; one of that name must not exist.
    pub fn create(&self, name: &str, bytes: u64) -> Result<()> {
        FileStore::create(&self.path(name), bytes, |_| Ok(())).map(|_| ())
    }
}

impl Segments for SegmentFolder {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(FileStore::open(&self.path(name), 0)?))
    }

    fn open_named(&self, name: &str) -> Result<Box<dyn Store>> {
        let path = self.folder.join(name);
        if !self.moved.is_empty() && self.moved_to(&path).is_none() {
            let why = "is in none of the folders that have moved; nothing has been changed";
            return Err(Error::Invalid(format!("segment {} {why}", path.display())));
        }
        self.open(name)
    }
}
