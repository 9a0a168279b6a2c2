//! Shows the contents of a log without recovering it: `nvlab log`. Only a status on flash that a power failure has
//! torn is completed, as at every opening.

use crate::heap::{self, Heap, Words};
use crate::log::file::FileLog;
use crate::log::flash::FlashLog;
use crate::log::flash_disk::FlashDiskLog;
use crate::log::hybrid::{self, HybridLog};
use crate::log::{battery_ram, file, flash_disk, status};
use crate::record::{Contents, Modification, Record};
use crate::scan::{scan, scan_behind};
use crate::store::FileStore;
use crate::{Error, Log, PAGE_BYTES, Result, Status, Store};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A log opened for reading. Nobody else may have it open.
#[derive(Debug)]
pub struct Inspection {
    kind: &'static str,
    name: String,
    status: Status,
    capacity: u64,
    /// The first damage of the entries of a hybrid log.
    damage: Option<Error>,
    log: Mutex<Box<dyn Log>>,
}

/// A record of a log and where it lies.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Its position, counted as [`Status::head`] is.
    pub position: u64,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Its length in the log, header included.
    pub bytes: usize,
    /// Everything before it was durable when it was written.
    pub barrier: bool,
    /// A commit, or the name of a segment.
    pub contents: &'a Contents<'a>,
}

impl Entry<'_> {
    /// Calls `each` for every range of a commit; never for other records.
    pub fn each_range(&self, each: impl FnMut(Modification<'_>)) {
        if let Contents::Commit(modifications) = self.contents {
            modifications.each(each).expect("the list was read when the record was checked");
        }
    }
}

impl Inspection {
    /// Opens the log in a file, of whatever kind but hybrid.
    pub fn open(path: &Path) -> Result<Inspection> {
        Inspection::on(FileStore::open_to_read(path)?, path)
    }

    /// Opens a hybrid log, whose large part is in one file and whose small log is in another. Its entries may be damaged.
    pub fn open_hybrid(large: &Path, small: &Path) -> Result<Inspection> {
        Inspection::on_both(
            (FileStore::open_to_read(large)?, large),
            (FileStore::open_to_read(small)?, small),
        )
    }

    /// The log on a file that is open already.
    pub(crate) fn on(store: FileStore, path: &Path) -> Result<Inspection> {
        let (kind, mut log) = open_log(store, path)?;
        if hybrid::has_entry(log.as_mut())? {
            let why =
                "it is the small part of a hybrid log, which can only be read with the large one: --small";
            return Err(Error::Invalid(format!("{}: {why}", path.display())));
        }
        Ok(Inspection::new(kind, log, None))
    }

    /// The hybrid log on two files that are open already.
    pub(crate) fn on_both(large: (FileStore, &Path), small: (FileStore, &Path)) -> Result<Inspection> {
        let (_, small) = open_log(small.0, small.1)?;
        let name = large.1.display().to_string();
        let (log, damage) = HybridLog::open_damaged(small, Box::new(large.0), &name)?;
        Ok(Inspection::new("hybrid", Box::new(log), damage))
    }

    /// A log that is open already.
    pub(crate) fn new(kind: &'static str, log: Box<dyn Log>, damage: Option<Error>) -> Inspection {
        let (name, status, capacity) = (log.name(), log.status(), log.capacity());
        Inspection { kind, name, status, capacity, damage, log: Mutex::new(log) }
    }

    /// The kind of log: `file`, `battery-ram`, `flash`, `flash-disk` or `hybrid`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The path it was opened by; of a hybrid log, that of its large part.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Head, generation and identity, as stored.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Bytes of records that it can hold.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Calls `see` for every record from the head on and returns the tail. An error says where the log is damaged; what is
    /// before that has been seen.
    pub fn each_entry(&self, see: impl FnMut(&Entry<'_>)) -> Result<u64> {
        self.explained(self.each_record(see))
    }

    /// What a scan of the records came to, or what is wrong with the entries of a hybrid log: a record whose entry in the small log is
    /// damaged cannot be read either.
    pub(crate) fn explained(&self, scanned: Result<u64>) -> Result<u64> {
        match (scanned, &self.damage) {
            (Ok(_) | Err(Error::Damaged { .. }), Some(damage)) => Err(damage.clone()),
            (scanned, _) => scanned,
        }
    }

    /// As [`Inspection::each_entry`]; the entries of a hybrid log may be damaged, if every record can be read.
    pub(crate) fn each_record(&self, mut see: impl FnMut(&Entry<'_>)) -> Result<u64> {
        scan(&self.log, |position, record| {
            see(&self.entry(position, record));
            Ok(())
        })
    }

    /// What is wrong with the entries of a hybrid log.
    pub(crate) fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Calls `see` for the records of at most 1 MiB that can be read behind `position`, where the log is damaged.
    pub(crate) fn each_entry_behind(&self, position: u64, mut see: impl FnMut(&Entry<'_>)) -> Result<()> {
        scan_behind(&self.log, position, |position, record| see(&self.entry(position, record)))
    }

    fn entry<'a>(&self, position: u64, record: &'a Record<'_>) -> Entry<'a> {
        let offset = self.log.lock().unwrap_or_else(PoisonError::into_inner).offset(position);
        let Record { bytes, barrier, ref contents } = *record;
        Entry { position, offset, bytes, barrier, contents }
    }

    /// The log itself.
    pub(crate) fn into_log(self) -> Box<dyn Log> {
        self.log.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the log in a file, of whatever kind but hybrid, and says which it is.
fn open_log(store: FileStore, path: &Path) -> Result<(&'static str, Box<dyn Log>)> {
    let name = path.display().to_string();
    let kind = match status::kind(&store, &name) {
        Ok(kind) => kind,
        // The header of a log on flash begins with the same bytes.
        Err(Error::Format { .. }) if FlashLog::is_in_file(path) => None,
        Err(error) => return Err(error),
    };
    let log: (_, Box<dyn Log>) = match kind {
        None => {
            drop(store);
            ("flash", Box::new(FlashLog::open_file(path)?))
        }
        Some(file::KIND) => ("file", Box::new(FileLog::open_on(Box::new(store), name)?)),
        Some(battery_ram::KIND) => {
            ("battery-ram", Box::new(FileLog::open_as(Box::new(store), name, battery_ram::KIND)?))
        }
        Some(flash_disk::KIND) => ("flash-disk", Box::new(FlashDiskLog::open(Box::new(store), name)?)),
        Some(hybrid::KIND) => {
            let why =
                "it is the large part of a hybrid log, which cannot be read without the small one: --small";
            return Err(Error::Invalid(format!("{name}: {why}")));
        }
        Some(other) => {
            let why = format!("a log of unknown kind \"{}\"", other.escape_ascii());
            return Err(Error::Format { what: name, offset: 16, why });
        }
    };
    Ok(log)
}

/// The bytes of a segment from a page on, read-only.
struct SegmentWords<'a>(&'a [u8]);

impl Words for SegmentWords<'_> {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn get(&self, at: u64) -> u64 {
        let at = at as usize;
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("8 bytes"))
    }

    fn set(&mut self, _: u64, _: u64) -> Result<()> {
        Err(Error::Invalid("the segment is only read".into()))
    }
}

/// The first persistent heap in a segment, which begins at a page: where, its statistics, and what is wrong with it.
pub fn heap(path: &Path) -> Result<Option<FoundHeap>> {
    let store = FileStore::open_to_read(path)?;
    let bytes = store.len().map_err(Error::io("measure", &path.display()))?;
    let mut segment = vec![0; bytes as usize];
    store.read(&mut segment, 0).map_err(Error::io("read", &path.display()))?;
    for offset in (0..bytes).step_by(PAGE_BYTES as usize) {
        let rest = &segment[offset as usize..];
        if rest.len() >= 16 && rest.starts_with(&heap::MAGIC.to_le_bytes()) {
            let words = SegmentWords(rest);
            let length = Heap::length(&words).unwrap_or(0).min(rest.len() as u64);
            let words = SegmentWords(&rest[..length as usize]);
            let Ok(heap) = Heap::open(&words) else { continue };
            let (statistics, checked) = (heap.statistics(&words), heap.check(&words));
            return Ok(Some(FoundHeap { offset, statistics, checked }));
        }
    }
    Ok(None)
}

/// A heap that was found in the bytes of a segment.
#[derive(Debug)]
pub struct FoundHeap {
    /// Where its header is, in bytes from the start of the segment.
    pub offset: u64,
    /// The counters it keeps.
    pub statistics: heap::Statistics,
    /// The first inconsistency of its lists and blocks, if there is one.
    pub checked: std::result::Result<(), heap::Error>,
}
