//! The one library of a process: not started, running, or terminated; with its settings and, once named, its log.

use crate::counters::Counters;
use crate::failure::{self, Outcome};
use crate::offsets;
use crate::records::is_record;
use crate::types::{Code, RVM_FALSE, rvm_length_t, rvm_offset_t, rvm_options_t};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Log, Memory, Options, RawTransaction, Restore, Rvm, Segments, Store, Truncation};
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_long};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Coda's programs set this to keep a truncation from yielding to other coroutines. Threads need no such thing.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut rvm_no_yield: c_long = 0;

/// Bytes of the longest file name, with its final zero.
pub(crate) const PATH_BYTES: usize = libc::PATH_MAX as usize;

/// Options that are not the log's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Percent of the log at which it is truncated; 0: when full.
    pub truncate: c_long,
    /// Three buffer sizes in bytes, without effect; kept for `rvm_query`.
    pub buffers: [rvm_length_t; 3],
    pub flags: rvm_length_t,
}

/// A mapped region, by its first address.
#[derive(Debug)]
pub(crate) struct Region {
    pub memory: Arc<Memory>,
    pub segment: String,
}

/// A transaction, or an ended one that keeps its buffers for the next.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub raw: RawTransaction,
    /// When it began, in microseconds since 1970; no two have the same. 0 once it has ended.
    pub began: i64,
    /// First addresses of the regions it declared ranges in.
    pub regions: Vec<usize>,
    /// Lengths of the ranges as declared.
    pub declared: Vec<usize>,
}

/// All transactions. The number of one is its place, from 1.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    places: Vec<Arc<Mutex<Transaction>>>,
    /// Ended ones: with restore, and without.
    ended: [Vec<usize>; 2],
}

impl Transactions {
    /// An ended one that began like this.
    fn reuse(&mut self, restore: Restore) -> Option<(usize, Arc<Mutex<Transaction>>)> {
        let number = self.ended[restore as usize].pop()?;
        Some((number, self.places[number - 1].clone()))
    }

    fn add(&mut self, transaction: Transaction) -> usize {
        self.places.push(Arc::new(Mutex::new(transaction)));
        self.places.len()
    }

    pub fn get(&self, number: usize) -> Option<Arc<Mutex<Transaction>>> {
        self.places.get(number.checked_sub(1)?).cloned()
    }

    /// Notes that one has ended. The caller has set its beginning to 0.
    pub fn note_end(&mut self, number: usize, restore: Restore) {
        self.ended[restore as usize].push(number);
    }

    pub fn under_way(&self) -> usize {
        self.places.len() - self.ended[0].len() - self.ended[1].len()
    }
}

/// What works on the log.
#[derive(Debug)]
pub(crate) struct Engine {
    pub rvm: Rvm,
    pub log_path: PathBuf,
    /// Bytes of records that the log can hold.
    pub capacity: u64,
    regions: RwLock<BTreeMap<usize, Region>>,
    transactions: Mutex<Transactions>,
    counters: Mutex<Counters>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Running,
    After,
}

struct Library {
    phase: Phase,
    settings: Settings,
    /// Folders, and those that have taken their place.
    moved: Vec<(PathBuf, PathBuf)>,
    engine: Option<Arc<Engine>>,
}

static LIBRARY: RwLock<Library> = RwLock::new(Library {
    phase: Phase::Before,
    settings: Settings { truncate: 50, buffers: [256 << 10, 256 << 10, 512 << 10], flags: 0 },
    moved: Vec::new(),
    engine: None,
});

fn library() -> RwLockReadGuard<'static, Library> {
    LIBRARY.read().unwrap_or_else(PoisonError::into_inner)
}

fn library_mut() -> RwLockWriteGuard<'static, Library> {
    LIBRARY.write().unwrap_or_else(PoisonError::into_inner)
}

/// Fails unless the library runs.
pub(crate) fn check_running() -> Outcome {
    if library().phase == Phase::Running { Ok(()) } else { Err(Code::EINIT) }
}

/// The engine, if the library runs and has a log.
pub(crate) fn engine() -> Result<Arc<Engine>, Code> {
    let library = library();
    match library.phase {
        Phase::Running => library.engine.clone().ok_or(Code::ELOG),
        _ => Err(Code::EINIT),
    }
}

pub(crate) fn settings() -> Settings {
    library().settings
}

/// Segments: the program names them where they are, the log where they were.
#[derive(Debug)]
struct Files {
    named: SegmentFolder,
}

impl Segments for Files {
    fn open(&self, name: &str) -> nvlab_rvm::Result<Box<dyn Store>> {
        SegmentFolder::new("/").open(name)
    }

    fn open_named(&self, name: &str) -> nvlab_rvm::Result<Box<dyn Store>> {
        self.named.open_named(name)
    }
}

impl Engine {
    fn open(path: &Path, settings: Settings, moved: &[(PathBuf, PathBuf)]) -> Result<Engine, Code> {
        let log = FileLog::open(path).map_err(|error| failure::of(&error))?;
        let (capacity, log_path) = (log.capacity(), full_path(path)?);
        let truncation = match u8::try_from(settings.truncate) {
            Ok(at_percent @ 1..100) => Truncation::Background { at_percent },
            _ => Truncation::WhenFull,
        };
        let options = Options { truncation, ..Options::default() };
        let named = moved.iter().fold(SegmentFolder::new("/"), |segments, (old, new)| {
            segments.relocate(old.clone(), new.clone())
        });
        let rvm = Rvm::open(log, Files { named }, options).map_err(|error| match failure::of(&error) {
            // The log names a segment that is in no folder that moved.
            Code::ERANGE => Code::EOPTIONS,
            code => code,
        })?;
        let counters = Mutex::new(Counters::new(rvm.recovery().commits > 0));
        let (regions, transactions) = (RwLock::default(), Mutex::default());
        Ok(Engine { rvm, log_path, capacity, regions, transactions, counters })
    }

    pub fn regions(&self) -> RwLockReadGuard<'_, BTreeMap<usize, Region>> {
        self.regions.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn regions_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<usize, Region>> {
        self.regions.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn transactions(&self) -> MutexGuard<'_, Transactions> {
        self.transactions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a transaction and returns its number.
    pub fn begin(&self, restore: Restore, began: i64) -> usize {
        let reused = self.transactions().reuse(restore);
        if let Some((number, transaction)) = reused {
            let mut transaction = transaction.lock().unwrap_or_else(PoisonError::into_inner);
            transaction.began = began;
            transaction.regions.clear();
            transaction.declared.clear();
            return number;
        }
        let raw = self.rvm.begin_raw(restore);
        let transaction = Transaction { raw, began, regions: Vec::new(), declared: Vec::new() };
        self.transactions().add(transaction)
    }

    /// Number and beginning of the transactions that have not ended: all, or those with ranges in the region that begins
    /// at an address; the oldest first.
    pub fn uncommitted(&self, region: Option<usize>) -> Vec<(usize, i64)> {
        // Whoever holds a transaction may wait for the list, so nobody waits for one while holding the list.
        let all = self.transactions().places.clone();
        let mut found = Vec::new();
        for (number, transaction) in (1..).zip(all) {
            let transaction = transaction.lock().unwrap_or_else(PoisonError::into_inner);
            if transaction.began != 0 && region.is_none_or(|start| transaction.regions.contains(&start)) {
                found.push((number, transaction.began));
            }
        }
        found.sort_unstable_by_key(|(_, began)| *began);
        found
    }

    pub fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path of a file that exists, from the root and without links.
pub(crate) fn full_path(path: &Path) -> Result<PathBuf, Code> {
    path.canonicalize().map_err(|error| failure::of_io(&format!("find {}", path.display()), &error))
}

/// A file name from C; `absent` if there is none.
///
/// # Safety
/// `at` is null or points to a string.
pub(crate) unsafe fn path<'a>(at: *const c_char, absent: Code) -> Result<&'a Path, Code> {
    if at.is_null() {
        return Err(absent);
    }
    // SAFETY: a string, as the caller promises.
    let bytes = unsafe { CStr::from_ptr(at) }.to_bytes();
    if bytes.len() >= PATH_BYTES {
        return Err(Code::ENAME_TOO_LONG);
    }
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// The options record of a call; `None` for null.
///
/// # Safety
/// `at` is null or points to a record, whose strings are strings.
pub(crate) unsafe fn checked_options<'a>(
    at: *const rvm_options_t,
) -> Result<Option<&'a rvm_options_t>, Code> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    match unsafe { is_record(at).then(|| &*at) } {
        None => Err(Code::EOPTIONS),
        Some(options) if !options.pager.is_null() => Err(Code::EPAGER),
        Some(options) if !(0..=100).contains(&options.truncate) => Err(Code::EOPTIONS),
        Some(options) => Ok(Some(options)),
    }
}

/// Puts options into force, and opens the log if they name the first.
///
/// # Safety
/// The strings of `options` are strings.
unsafe fn apply(library: &mut Library, options: &rvm_options_t) -> Outcome {
    const BUFFER_BYTES_MIN: rvm_length_t = 64 << 10;
    const SECTOR_BYTES: rvm_length_t = 512;
    let read_len = match options.max_read_len / SECTOR_BYTES * SECTOR_BYTES {
        0 => 512 << 10,
        bytes => bytes,
    };
    let [recovery, flush] =
        [options.recovery_buf_len, options.flush_buf_len].map(|bytes| bytes.max(BUFFER_BYTES_MIN));
    // An open log is truncated as it was opened.
    let truncate = if library.engine.is_some() { library.settings.truncate } else { options.truncate };
    let settings = Settings { truncate, buffers: [recovery, flush, read_len], flags: options.flags & 0b1011 };
    if !options.log_dev.is_null() {
        // SAFETY: as the caller promises.
        let path = unsafe { path(options.log_dev, Code::ELOG)? };
        match &library.engine {
            None => library.engine = Some(Arc::new(Engine::open(path, settings, &library.moved)?)),
            Some(engine) if full_path(path)? != engine.log_path => return Err(Code::ELOG),
            Some(_) => {}
        }
    }
    library.settings = settings;
    Ok(())
}

/// Creates a log.
///
/// # Safety
/// `options` is null or points to a record, whose strings are strings; `bytes` is null or points to an offset.
pub(crate) unsafe fn create_log(
    options: *const rvm_options_t,
    bytes: *const rvm_offset_t,
    mode: c_long,
) -> Outcome {
    // SAFETY: as the caller promises.
    let (options, bytes) = unsafe { (checked_options(options)?.ok_or(Code::EOPTIONS)?, bytes.as_ref()) };
    // SAFETY: as the caller promises.
    let path = unsafe { path(options.log_dev, Code::EOPTIONS)? };
    let bytes = offsets::bytes(*bytes.ok_or(Code::EOPTIONS)?)
        .filter(|&bytes| bytes < 1 << 62)
        .ok_or(Code::ETOO_BIG)?;
    FileLog::create(path, bytes).map_err(|error| failure::of(&error))?;
    let permissions = std::fs::Permissions::from_mode(u32::try_from(mode).unwrap_or(0o600) & 0o777);
    std::fs::set_permissions(path, permissions)
        .map_err(|error| failure::of_io(&format!("set the permissions of {}", path.display()), &error))
}

/// Segments that the log names in folder `old` are those in folder `new`.
///
/// # Safety
/// Both are null or strings.
pub(crate) unsafe fn relocate(old: *const c_char, new: *const c_char) -> Outcome {
    // SAFETY: as the caller promises.
    let [old, new] = unsafe { [path(old, Code::EOPTIONS)?, path(new, Code::EOPTIONS)?] };
    if !old.is_absolute() {
        return Err(Code::EOPTIONS);
    }
    let new = full_path(new)?;
    let mut library = library_mut();
    if library.engine.is_some() || library.phase == Phase::After {
        return Err(Code::EINIT);
    }
    // The log has names without links.
    library.moved.extend(old.canonicalize().map(|old| (old, new.clone())));
    library.moved.push((old.to_path_buf(), new));
    Ok(())
}

/// Starts the library.
///
/// # Safety
/// `options` is null or points to a record, whose strings are strings.
pub(crate) unsafe fn start(options: *const rvm_options_t) -> Outcome {
    // SAFETY: as the caller promises.
    let options = unsafe { checked_options(options)? };
    let mut library = library_mut();
    match library.phase {
        Phase::Running => return Ok(()),
        Phase::After => return Err(Code::EINIT),
        Phase::Before => {}
    }
    if let Some(options) = options {
        if options.create_log_file != RVM_FALSE {
            // SAFETY: as the caller promises.
            unsafe { create_log(options, &options.create_log_size, options.create_log_mode)? };
        }
        // SAFETY: as the caller promises.
        unsafe { apply(&mut library, options)? };
    }
    library.phase = Phase::Running;
    Ok(())
}

/// Changes the options.
///
/// # Safety
/// `options` is null or points to a record, whose strings are strings.
pub(crate) unsafe fn change(options: *const rvm_options_t) -> Outcome {
    check_running()?;
    // SAFETY: as the caller promises.
    match unsafe { checked_options(options)? } {
        // SAFETY: as the caller promises.
        Some(options) => unsafe { apply(&mut library_mut(), options) },
        None => Err(Code::EOPTIONS),
    }
}

/// Ends the library. What was mapped stays readable.
pub(crate) fn terminate() -> Outcome {
    let mut library = library_mut();
    match library.phase {
        Phase::After => return Ok(()),
        Phase::Before => return Err(Code::EINIT),
        Phase::Running => {}
    }
    let Some(engine) = &library.engine else {
        library.phase = Phase::After;
        return Ok(());
    };
    if engine.transactions().under_way() > 0 {
        return Err(Code::EUNCOMMIT);
    }
    let flushed = engine.rvm.flush().map_err(|error| failure::of(&error));
    for (_, region) in std::mem::take(&mut *engine.regions_mut()) {
        std::mem::forget(region.memory);
    }
    (library.engine, library.phase) = (None, Phase::After);
    flushed
}
