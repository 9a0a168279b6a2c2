//! Recovery: applies what is in a log to the segments and empties it.
//!
//! 1. The log is read once, as a whole, before anything is applied: if any of it is damaged, or one of its segments is not there or too
//!    short, nothing has been changed. What its records change is kept meanwhile, up to 256 MiB; the rest is read again.
//! 2. What is read is written once more, and durable before a change is applied: no segment has a part of a record that is on no disk.
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

/// Bytes of changes that are kept while the log is read.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// What opening a log found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Commits that were applied.
    pub commits: u64,
    /// Bytes of records that were read.
    pub log_bytes: u64,
    /// Bytes written to segments.
    pub applied_bytes: u64,
    /// Segments they were written to.
    pub segments: u32,
}

/// What the records of a log say.
#[derive(Default)]
struct Found {
    commits: u64,
    names: BTreeMap<u32, String>,
    /// Where the last change of each segment ends.
    ends: BTreeMap<u32, u64>,
    kept: BTreeMap<u32, Batch>,
    kept_bytes: usize,
    /// The changes of the records before this position are kept.
    kept_to: u64,
}

impl Found {
    /// Takes note of the next record.
    fn add(&mut self, position: u64, record: &Record<'_>) {
        let is_kept = self.kept_to == position && self.kept_bytes < KEPT_BYTES_MAX;
        match &record.contents {
            Contents::Name(number, name) => drop(self.names.insert(*number, name.to_string())),
            Contents::Commit(modifications) => {
                self.commits += 1;
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

/// Recovers a log.
pub(super) fn recover(
    log: &mut Mutex<Box<dyn Log>>,
    view: Option<&View>,
    segments: &dyn Segments,
) -> Result<Recovery> {
    let head = exclusive(log).status().head;
    // Records in memory are applied from where they lie.
    let mut found = Found { kept_to: if view.is_some() { u64::MAX } else { head }, ..Found::default() };
    let tail = scan_and_rewrite(log, |position, record| {
        found.add(position, record);
        Ok(())
    })?;
    let (name, offset) = (exclusive(log).name(), exclusive(log).offset(head));
    let unnamed = |number: u32| {
        let why = format!("records change segment {number}, which none names");
        Error::Damaged { what: name.clone(), offset, why }
    };
    let mut opened = BTreeMap::new();
    for (number, end) in found.ends {
        let segment = found.names.remove(&number).ok_or_else(|| unnamed(number))?;
        opened.insert(number, (open_whole(segments, &segment, end)?, segment));
    }
    exclusive(log).end_rewrite()?;
    let mut changes = Changes::default();
    let mut find = |number: u32| {
        let (store, segment) = opened.remove(&number).ok_or_else(|| unnamed(number))?;
        Ok((segment, store))
    };
    for (number, batch) in found.kept {
        changes.take(number, batch, &mut find)?;
    }
    let from = if view.is_some() { head } else { found.kept_to };
    changes.apply(Windows::new(log, view), from, tail, &mut find)?;
    let segments = changes.segments() as u32;
    let applied_bytes = changes.finish()?;
    exclusive(log).reset(tail)?;
    Ok(Recovery { commits: found.commits, log_bytes: tail - head, applied_bytes, segments })
}

/// Opens a segment, which must have `end` bytes.
fn open_whole(segments: &dyn Segments, name: &str, end: u64) -> Result<Arc<dyn Store>> {
    let store = segments.open(name)?;
    let has = store.len().map_err(Error::io("measure", &name))?;
    if has < end { Err(too_short(name, has, end)) } else { Ok(Arc::from(store)) }
}

/// The log, which nobody else uses yet.
pub(super) fn exclusive(log: &mut Mutex<Box<dyn Log>>) -> &mut dyn Log {
    log.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut()
}
