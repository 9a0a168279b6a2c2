//! Recovery: applies the contents of a log to the segments and empties it.
//!
//! 1. The log is read once, completely, before anything is applied: if any of it is damaged, or one of its segments
//!    is missing or too short, nothing has been changed. The changes of its records are held in memory up to 256 MiB;
//!    the rest is read again.
//! 2. The records read are written once more, and are durable before a change is applied: no segment contains part of
//!    a record that is on no disk.
//! 3. Each segment is read and written from front to back, once for every 256 MiB of changes.

use super::batch::Batch;
use super::changes::Changes;
use super::pages::too_short;
use super::view::View;
use crate::record::{Contents, Modification, Record};
use crate::scan::{Windows, scan_and_rewrite};
use crate::{Error, Log, Result, Segments, Store};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of changes that are kept while the log is read.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// What opening a log found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Commits found in the log; their changes are in the segments now.
    pub commits: u64,
    /// Bytes of the log that were read as records.
    pub log_bytes: u64,
    /// Bytes written to segments: less if commits overwrite each other.
    pub applied_bytes: u64,
    /// How many segments were written to.
    pub segments: u32,
    /// Bytes after decompression; 0 unless records were compressed.
    pub decompressed_bytes: u64,
}

/// What the records of a log say.
struct Found<'s> {
    segments: &'s dyn Segments,
    commits: u64,
    decompressed_bytes: u64,
    /// The segments that are named, and opened when they are.
    named: BTreeMap<u32, (String, Result<Arc<dyn Store>>)>,
    /// Where the last change of each segment ends.
    ends: BTreeMap<u32, u64>,
    /// No segment so far lies in memory: there changes are applied from where they lie in the log.
    keeps: bool,
    kept: BTreeMap<u32, Batch>,
    kept_bytes: usize,
    /// The changes of the records before this position are kept.
    kept_to: u64,
}

impl Found<'_> {
    /// A segment is named for the first time since the head.
    fn open(&mut self, number: u32, name: &str) {
        let opened = self.segments.open_named(name).map(Arc::<dyn Store>::from);
        let file = opened.as_ref().ok().and_then(|store| store.file());
        if file.is_some_and(|file| nvlab_os::file::is_in_memory(file).is_ok_and(|is| is)) {
            self.keeps = false;
        }
        self.named.insert(number, (name.into(), opened));
    }

    /// Takes note of the next record.
    fn add(&mut self, position: u64, record: &Record<'_>) {
        let is_kept = self.keeps && self.kept_to == position && self.kept_bytes < KEPT_BYTES_MAX;
        match &record.contents {
            Contents::Name(number, name) => {
                if !self.named.contains_key(number) {
                    self.open(*number, name);
                }
            }
            Contents::Commit(modifications) => {
                self.commits += 1;
                self.decompressed_bytes += modifications.decompressed_bytes();
                let listed = modifications.each(|Modification { segment, offset, data }| {
                    let end = self.ends.entry(segment).or_default();
                    *end = (*end).max(offset.saturating_add(data.len() as u64));
                    // A change beyond all ends is refused later.
                    if is_kept && offset.checked_add(data.len() as u64).is_some() {
                        let batch = self.kept.entry(segment).or_default();
                        let before = batch.bytes();
                        batch.push(offset, data);
                        self.kept_bytes += batch.bytes() - before;
                    }
                });
                listed.expect("the list was read when the record was checked");
            }
        }
        if is_kept {
            self.kept_to = position + record.bytes as u64;
        }
    }
}

/// Recovers a log. Returns how long a sync of it takes, too.
pub(super) fn recover(
    log: &mut Mutex<Box<dyn Log>>,
    view: Option<&View>,
    segments: &dyn Segments,
) -> Result<(Recovery, Duration)> {
    exclusive(log).begin_rewrite()?;
    let head = exclusive(log).status().head;
    let mut found = Found {
        segments,
        commits: 0,
        decompressed_bytes: 0,
        named: BTreeMap::new(),
        ends: BTreeMap::new(),
        keeps: view.is_none(),
        kept: BTreeMap::new(),
        kept_bytes: 0,
        kept_to: head,
    };
    let tail = scan_and_rewrite(log, |position, record| {
        found.add(position, record);
        Ok(())
    })?;
    let (name, offset) = (exclusive(log).name_at(head), exclusive(log).offset(head));
    let unnamed = |number: u32| {
        let why = format!("records change segment {number}, but no record names it");
        Error::Damaged { what: name.clone(), offset, why }
    };
    let mut opened = BTreeMap::new();
    for (number, end) in found.ends {
        let (segment, store) = found.named.remove(&number).ok_or_else(|| unnamed(number))?;
        let store = store?;
        check_whole(store.as_ref(), &segment, end)?;
        opened.insert(number, (store, segment));
    }
    let began = Instant::now();
    exclusive(log).end_rewrite()?;
    let rewritten = began.elapsed();
    let mut changes = Changes::default();
    let mut find = |number: u32| {
        let (store, segment) = opened.remove(&number).ok_or_else(|| unnamed(number))?;
        Ok((segment, store))
    };
    let mut from = head;
    if found.keeps {
        for (number, batch) in found.kept {
            changes.take(number, batch, &mut find)?;
        }
        from = found.kept_to;
    }
    changes.apply(Windows::new(log, view), from, tail, &mut find)?;
    let segments = changes.segments() as u32;
    let applied_bytes = changes.finish()?;
    let began = Instant::now();
    exclusive(log).reset(tail)?;
    // It writes the status twice.
    let sync = rewritten.min(began.elapsed() / 2);
    // Once to be checked, and what was not kept once more.
    let decompressed_bytes = found.decompressed_bytes + changes.take_decompressed();
    let recovery = Recovery {
        commits: found.commits,
        log_bytes: tail - head,
        applied_bytes,
        segments,
        decompressed_bytes,
    };
    Ok((recovery, sync))
}

/// Refuses a segment that is shorter than `end` bytes.
fn check_whole(store: &dyn Store, name: &str, end: u64) -> Result<()> {
    let has = store.len().map_err(Error::io("measure", &name))?;
    if has < end { Err(too_short(name, has, end)) } else { Ok(()) }
}

/// The log, which nobody else uses yet.
pub(super) fn exclusive(log: &mut Mutex<Box<dyn Log>>) -> &mut dyn Log {
    log.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut()
}
