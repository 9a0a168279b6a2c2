//! Prepared devices, stored between runs: the longest step is done once for each design and kind of writes.
//!
//! 1. A key names everything that the state of a device depends on, including the program that computed it. The same
//!    key is the same device, bit for bit: a run on a stored one has the same result as without it.
//! 2. A stored device that cannot be read, or is damaged, counts as absent. It may be deleted at any time.
//! 3. A file is complete or absent: written under another name and renamed. A checksum covers all of it.
//! 4. All files together stay below a limit: the least recently used are deleted first.
//!
//! The format: `MAGIC`, the XXH3-128 of the rest (16 B, little endian), then in postcard's encoding what the caller keeps beside
//! the device, its dead owners ([`PageMap::dead_owners`]) and the device. Not compressed: the maps are nearly random
//! numbers (zstd at level 1 saves 12 % of `ssd-tlc` after random writes and takes 0.6 s; a copy in the page cache takes 0.07 s).

use nvlab_access::Attached;
use nvlab_controller::PageMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

const MAGIC: &[u8; 16] = b"nvlab device 2\n\0";
const HEAD: usize = 32;
const ENDING: &str = "device";

/// A folder of prepared devices.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    bytes_max: u64,
    patience: Patience,
    /// Keys whose device is being prepared in this program: another run that wants it waits.
    busy: Mutex<HashMap<String, Arc<Mutex<u32>>>>,
    part_kept: AtomicBool,
    trouble: Mutex<Option<String>>,
}

/// When keeping a device is worth it.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A preparation that takes less is repeated, once.
    pub worth: Duration,
    /// A device on its way is not kept more often than this.
    pub part_every: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { worth: Duration::from_millis(200), part_every: Duration::from_secs(10) }
    }
}

/// The folder of prepared devices of this user: `nvlab` in `$XDG_CACHE_HOME` or `~/.cache`; `None` without a home.
pub fn user_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    caches.map(|caches| caches.join("nvlab"))
}

impl Shelf {
    /// In a folder, which is created when something is kept; all files together take at most `bytes_max`.
    pub fn new(folder: PathBuf, bytes_max: u64) -> Shelf {
        Shelf {
            folder,
            bytes_max,
            patience: Patience::default(),
            busy: Mutex::default(),
            part_kept: AtomicBool::new(false),
            trouble: Mutex::default(),
        }
    }

    /// With another patience.
    pub fn with_patience(self, patience: Patience) -> Shelf {
        Shelf { patience, ..self }
    }

    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    /// True if a device was kept before it was prepared completely.
    pub fn has_part(&self) -> bool {
        self.part_kept.load(Ordering::Relaxed)
    }

    /// Why a device could not be kept, if that happened.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the outcome of storing a device, partly or fully prepared.
    pub(crate) fn note(&self, kept: io::Result<bool>, part: bool) {
        match kept {
            Ok(kept) => self.part_kept.store(part && kept, Ordering::Relaxed),
            Err(error) => {
                let why =
                    format!("preconditioned devices cannot be cached in {}: {error}", self.folder.display());
                *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
        }
    }

    /// Held while the device of a key is looked for or prepared: how often it was prepared in this program.
    pub(crate) fn turn(&self, key: &str) -> Arc<Mutex<u32>> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.entry(key.to_string()).or_default().clone()
    }

    /// The device kept under a key, and what was kept beside it.
    pub(crate) fn find<T: DeserializeOwned>(&self, key: &str) -> Option<(Attached<PageMap>, T)> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        let found = read(&bytes);
        match &found {
            // When it was last used decides which go first.
            Some(_) => drop(File::open(&path).and_then(|file| file.set_modified(SystemTime::now()))),
            None => drop(fs::remove_file(&path)),
        }
        found
    }

    /// Keeps a device under a key, with `beside`; returns false if it is too large.
    pub(crate) fn keep<T: Serialize>(
        &self,
        key: &str,
        device: &Attached<PageMap>,
        beside: &T,
    ) -> io::Result<bool> {
        // The maps are nearly all of it, at most five bytes an entry.
        if device.controller().memory_bytes() / 2 > self.bytes_max {
            return Ok(false);
        }
        fs::create_dir_all(&self.folder)?;
        let own = self.folder.join(format!(".{key}.{}", std::process::id()));
        let written = write(&own, device, beside).and_then(|bytes| match bytes <= self.bytes_max {
            true => {
                self.make_room(bytes);
                fs::rename(&own, self.path(key)).map(|()| true)
            }
            false => Ok(false),
        });
        if !matches!(written, Ok(true)) {
            let _ = fs::remove_file(&own);
        }
        written
    }

    /// Drops the device kept under a key.
    pub(crate) fn drop_kept(&self, key: &str) {
        let _ = fs::remove_file(self.path(key));
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.{ENDING}"))
    }

    /// Removes the files not used for longest until `bytes` more fit, and what killed programs left behind.
    fn make_room(&self, bytes: u64) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let meta = entry.metadata().ok()?;
                Some((meta.modified().ok()?, meta.len(), entry.path()))
            })
            .collect();
        files.retain(|(_, _, path)| {
            let left = is_left_behind(path);
            if left {
                let _ = fs::remove_file(path);
            }
            !left && path.extension().is_some_and(|ending| ending == ENDING)
        });
        files.sort();
        let mut total: u64 = bytes + files.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
        for (_, bytes, path) in files {
            if total <= self.bytes_max {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                total -= bytes;
            }
        }
    }
}

/// True for a file that a program that no longer runs was writing: `.KEY.PID`.
fn is_left_behind(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let pid = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.')).map(|(_, pid)| pid);
    pid.and_then(|pid| pid.parse::<u32>().ok())
        .is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<(Attached<PageMap>, T)> {
    let (head, body) = bytes.split_at_checked(HEAD)?;
    if !head.starts_with(MAGIC) || head[MAGIC.len()..] != xxh3_128(body).to_le_bytes() {
        return None;
    }
    let (beside, dead, mut device): (T, Vec<_>, Attached<PageMap>) = postcard::from_bytes(body).ok()?;
    device.controller_mut().restore_owners(&dead).ok()?;
    Some((device, beside))
}

/// Writes the file; returns its bytes.
fn write<T: Serialize>(path: &Path, device: &Attached<PageMap>, beside: &T) -> io::Result<u64> {
    let mut file = File::create(path)?;
    file.write_all(&[0; HEAD])?;
    // Hashed behind the buffer: the encoder writes a few bytes at a time.
    let to = BufWriter::with_capacity(1 << 18, Hashed { to: file, hash: Xxh3::new(), bytes: 0 });
    let dead = device.controller().dead_owners();
    let to = postcard::to_io(&(beside, dead, device), to).map_err(io::Error::other)?;
    let Hashed { to: mut file, hash, bytes } = to.into_inner().map_err(|error| error.into_error())?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(MAGIC)?;
    file.write_all(&hash.digest128().to_le_bytes())?;
    Ok(bytes + HEAD as u64)
}

/// A file, the hash of what was written to it, and how much that is.
struct Hashed {
    to: File,
    hash: Xxh3,
    bytes: u64,
}

impl Write for Hashed {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let count = self.to.write(data)?;
        self.hash.update(&data[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
