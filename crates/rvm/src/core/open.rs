//! Opens a log: recovers it ([`super::recovery`]) and begins with an empty one. Regions are mapped here too.

use super::memory::{Memory, PAGE_BYTES};
use super::options::Options;
use super::recovery::{Recovery, exclusive, recover};
use super::recovery_time::RecoveryTime;
use super::state::{Core, Segment, State, overlap};
use super::statistics::Statistics;
use super::wake_ups::{Syncs, WakeUps};
use super::write_through::WriteThrough;
use crate::record::{Headers, SEGMENT_BYTES_MAX};
use crate::{Error, Log, Result, Segments, Store};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

impl Core {
    /// Recovers the log and the segments it names.
    pub(crate) fn open(
        log: Box<dyn Log>,
        segments: Box<dyn Segments>,
        options: Options,
    ) -> Result<(Core, Recovery)> {
        let mut log = Mutex::new(log);
        let view = exclusive(&mut log).view()?;
        let (recovery, sync) = recover(&mut log, view.as_ref(), segments.as_ref())?;
        let status = exclusive(&mut log).status();
        let as_they_are = options.headers == Headers::Compact && !options.compress;
        let write_through = (view.is_some() && as_they_are).then(WriteThrough::default);
        let (capacity, ahead_bytes_min) =
            (exclusive(&mut log).capacity(), exclusive(&mut log).ahead_bytes_min());
        let state = State {
            status,
            spool: Vec::new(),
            spare: Vec::new(),
            spool_start: status.head,
            forced: status.head,
            is_forcing: false,
            pending: 0,
            last_batch: 0,
            expected: 0,
            waiting_for_force: 0,
            is_guarded: false,
            waiting_for_space: 0,
            force_time: Duration::ZERO,
            syncs: Syncs::default(),
            is_truncating: false,
            applied: None,
            is_truncation_due: false,
            is_closing: false,
            failed: None,
            segments: Vec::new(),
            write_through,
            unstored: Vec::new(),
            names_bytes: 0,
            recovery_time: RecoveryTime::new(options.recovery_target, view.is_some(), capacity, sync),
            statistics: Statistics::default(),
        };
        let core = Core {
            options,
            ahead_bytes_min,
            capacity,
            log,
            view,
            state: Mutex::new(state),
            durable: AtomicU64::new(status.head),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
            forces_ended: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            wake_ups: WakeUps::new(),
            space: Condvar::new(),
            segments,
            changes: Mutex::default(),
        };
        Ok((core, recovery))
    }

    /// Maps `range` of a segment, which no other region may overlap.
    pub(crate) fn map(&self, name: &str, range: Range<u64>) -> Result<Memory> {
        if range.is_empty() || !range.start.is_multiple_of(PAGE_BYTES) || range.end > SEGMENT_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "a region begins at a multiple of {PAGE_BYTES} B, has at least 1 B and ends before {SEGMENT_BYTES_MAX}; not {range:?}"
            )));
        }
        let mut state = self.state();
        state.check()?;
        let index;
        (state, index) = self.use_segment(state, name)?;
        state = self.wait_until_applied(state, index, &range)?;
        let has = state.segments[index].store.len().map_err(Error::io("measure", &name))?;
        if range.end > has {
            return Err(Error::Invalid(format!("{name} has {has} B, not {}", range.end)));
        }
        check_overlap(&state.segments[index], &range)?;
        state = self.lengthen(state, index, range.end)?;
        let segment = &mut state.segments[index];
        segment.take_room(&range)?;
        let debug = self.options.find_missed_ranges;
        let memory = Memory::map(index as u32, name, segment.store.as_ref(), range.clone(), debug)?;
        segment.mapped.push(range);
        Ok(memory)
    }

    /// Returns when the segment has whatever regions that had a part of `range` committed: a new region reads it from there.
    /// That is when the head has moved behind the records; a truncation under way may have applied some of them or none.
    fn wait_until_applied<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        segment: usize,
        range: &Range<u64>,
    ) -> Result<MutexGuard<'a, State>> {
        while state.segments[segment].is_behind(range, state.status.head) {
            let is_waited_for = state.is_truncating && state.applied.is_none();
            state = if is_waited_for { self.wait_for_space(state) } else { self.truncate(state)? };
            state.check()?;
        }
        Ok(state)
    }

    /// Bytes of a segment.
    pub(crate) fn segment_bytes(&self, name: &str) -> Result<u64> {
        let state = self.state();
        state.check()?;
        let (state, index) = self.use_segment(state, name)?;
        state.segments[index].store.len().map_err(Error::io("measure", &name))
    }

    /// The number of a segment, which is opened when it is first used.
    fn use_segment<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        name: &str,
    ) -> Result<(MutexGuard<'a, State>, usize)> {
        if let Some(index) = state.segments.iter().position(|segment| segment.name == name) {
            return Ok((state, index));
        }
        let store: Arc<dyn Store> = Arc::from(self.segments.open(name)?);
        let synced_bytes = store.len().map_err(Error::io("measure", &name))?;
        // A program that was killed may have lengthened it: the log must not change what a power failure takes away again.
        state = self.sync(state, name, store.as_ref())?;
        let index = state.segments.len();
        state.map_through(index, name, store.as_ref())?;
        state.names_bytes += name.len() as u64 + 24;
        state.segments.push(Segment {
            name: name.to_string(),
            store,
            synced_bytes,
            is_named: false,
            logged_at: None,
            mapped: Vec::new(),
            given_up: Vec::new(),
        });
        Ok((state, index))
    }

    /// Syncs a segment. If that fails, the log has failed: a second sync may succeed although it does not write what this one should
    /// have, which may be what a truncation under way has just stored.
    fn sync<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        name: &str,
        store: &dyn Store,
    ) -> Result<MutexGuard<'a, State>> {
        match store.sync() {
            Ok(()) => Ok(state),
            Err(error) => Err(self.fail(state, Error::io("sync", &name)(error))),
        }
    }

    /// Extends a segment to at least `bytes` bytes, durably. A failed attempt may leave it longer, until a power failure.
    fn lengthen<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        index: usize,
        bytes: u64,
    ) -> Result<MutexGuard<'a, State>> {
        let segment = &state.segments[index];
        if bytes <= segment.synced_bytes {
            return Ok(state);
        }
        let (name, store) = (segment.name.clone(), segment.store.clone());
        let has = store.len().map_err(Error::io("measure", &name))?;
        if has < bytes {
            store.set_len(bytes).map_err(Error::io("lengthen", &name))?;
        }
        state = self.sync(state, &name, store.as_ref())?;
        state.map_through(index, &name, store.as_ref())?;
        state.segments[index].synced_bytes = has.max(bytes);
        Ok(state)
    }

    /// Lengthens a region, and its segment if need be, to `bytes`.
    pub(crate) fn grow(&self, memory: &mut Memory, bytes: u64) -> Result<()> {
        let old = memory.range();
        let new = old.start..old.start + bytes;
        if bytes < memory.bytes() as u64 || new.end > SEGMENT_BYTES_MAX {
            return Err(Error::Invalid(format!("a region of {} B cannot grow to {bytes} B", memory.bytes())));
        }
        let mut state = self.state();
        state.check()?;
        let index = memory.segment as usize;
        state = self.wait_until_applied(state, index, &(old.end..new.end))?;
        check_overlap(&state.segments[index], &(old.end..new.end))?;
        state = self.lengthen(state, index, new.end)?;
        let segment = &mut state.segments[index];
        segment.take_room(&new)?;
        memory.grow(segment.store.as_ref(), bytes)?;
        segment.mapped.retain(|mapped| *mapped != old);
        segment.mapped.push(new);
        Ok(())
    }

    /// Gets the pages of a region ready for stores, and those of its segment if commits store to it.
    pub(crate) fn populate(&self, memory: &Memory) {
        memory.populate();
        if let Some(write_through) = &self.state().write_through {
            write_through.populate(memory.segment, memory.range());
        }
    }

    /// Forgets a region.
    pub(crate) fn unmap(&self, memory: &Memory) {
        let mut state = self.state();
        memory.set_unmapped();
        let head = state.status.head;
        state.segments[memory.segment as usize].give_up(memory.range(), head);
    }

    /// Makes every commit so far durable.
    pub(crate) fn flush(&self) -> Result<()> {
        let state = self.state();
        state.check()?;
        let tail = state.tail();
        self.force_to(state, tail).map(|_| ())
    }

    /// Applies every commit so far to the segments.
    pub(crate) fn truncate_now(&self) -> Result<()> {
        self.truncate(self.state()).map(|_| ())
    }

    /// Ends the background thread.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closing = true;
        self.wake_space(&state);
    }

    /// Counters so far.
    pub(crate) fn statistics(&self) -> Statistics {
        let state = self.state();
        let live_bytes = state.live_bytes();
        Statistics { live_bytes, recovery_time: state.recovery_time.of(live_bytes), ..state.statistics }
    }
}

fn check_overlap(segment: &Segment, range: &Range<u64>) -> Result<()> {
    match segment.mapped.iter().find(|mapped| overlap(mapped, range)) {
        Some(mapped) => Err(Error::Invalid(format!(
            "{mapped:?} of {} is already mapped, so {range:?} cannot be",
            segment.name
        ))),
        None => Ok(()),
    }
}
