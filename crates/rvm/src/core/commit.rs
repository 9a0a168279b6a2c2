//! Commits: a record is built from the ranges and appended; a commit with flush waits until it is durable.

use super::changed::changed;
use super::memory::Memory;
use super::options::Truncation;
use super::ranges::Covered;
use super::recovery_time::RecoveryTime;
use super::state::{Core, State};
use super::transaction::{RawTransaction, Restore};
use crate::record::{Encoder, segment_name};
use crate::{Error, Result};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

/// Whether a commit waits until it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// It returns when the transaction is durable, and with it all before.
    Yes,
    /// It returns at once. The transaction is durable after the next commit with flush, flush or truncation. After a
    /// power failure, if it is not there, neither is any later one.
    No,
}

impl Core {
    /// Begins a transaction.
    pub(crate) fn begin(&self, restore: Restore) -> RawTransaction {
        let most = self.capacity.saturating_sub(self.state().names_bytes);
        RawTransaction::new(restore, self.options.headers, most)
    }

    /// Puts the record of a transaction behind the others, and returns the position at which it ends, for
    /// [`Core::wait_for`]. The transaction has ended unless there is an error, which leaves it as it was.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub(crate) unsafe fn append(&self, transaction: &mut RawTransaction, flush: Flush) -> Result<u64> {
        // SAFETY: as the caller promises.
        let (state, tail) = unsafe { self.append_and_hold(transaction, flush)? };
        if flush == Flush::Yes && state.is_memory() && !state.is_forcing {
            // To take the lock once more would take longer. Should it fail, whoever waits is told.
            let _ = self.force(state);
        }
        Ok(tail)
    }

    /// Commits a transaction. If the error is that the log has failed ([`Error::Io`]), the transaction has ended.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub(crate) unsafe fn commit(&self, transaction: &mut RawTransaction, flush: Flush) -> Result<()> {
        // SAFETY: as the caller promises.
        let (state, tail) = unsafe { self.append_and_hold(transaction, flush)? };
        if flush == Flush::Yes { self.wait_or_force(state, tail).map(|_| ()) } else { Ok(()) }
    }

    /// # Safety
    /// As for [`RawTransaction::set_range`].
    unsafe fn append_and_hold<'a>(
        &'a self,
        transaction: &mut RawTransaction,
        flush: Flush,
    ) -> Result<(MutexGuard<'a, State>, u64)> {
        transaction.settle();
        if self.options.find_missed_ranges {
            // SAFETY: as the caller promises.
            unsafe { find_missed(transaction)? };
        }
        let mut state = self.state();
        state.check()?;
        if transaction.count() > 0 {
            state = self.make_room(state, transaction)?;
            if let Some(memory) = transaction.memories().iter().find(|memory| memory.is_unmapped()) {
                return Err(unmapped(memory));
            }
            self.name_segments(&mut state, transaction);
            // SAFETY: as the caller promises.
            unsafe { self.encode(&mut state, transaction) };
        }
        let statistics = &mut state.statistics;
        match flush {
            Flush::Yes => statistics.flush_commits += 1,
            Flush::No => statistics.no_flush_commits += 1,
        }
        statistics.ranges += transaction.count() as u64;
        statistics.range_bytes += transaction.bytes as u64;
        let tail = state.tail();
        if self.options.find_missed_ranges {
            for Covered { memory, start, end } in transaction.ranges() {
                // SAFETY: as the caller promises.
                unsafe { transaction.memories()[*memory as usize].committed(*start..*end) };
            }
        }
        transaction.clear();
        if flush == Flush::Yes {
            state.pending += 1;
        } else if state.spool.len() > self.options.spool_bytes_max {
            state = self.force_to(state, tail)?;
        }
        if let Truncation::Background { at_percent } = self.options.truncation
            && !state.is_truncating
            && !state.is_truncation_due
            && self.is_due(&state, at_percent)
        {
            state.is_truncation_due = true;
            self.wake_space(&state);
        }
        Ok((state, tail))
    }

    /// Whether everything before `position` is durable.
    pub(crate) fn is_durable(&self, position: u64) -> bool {
        self.durable.load(Ordering::Acquire) >= position
    }

    /// Waits until everything before `position` is durable.
    pub(crate) fn wait_for(&self, position: u64) -> Result<()> {
        if self.is_durable(position) {
            return Ok(());
        }
        self.wait_or_force(self.state(), position).map(|_| ())
    }

    /// Undoes a transaction.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub(crate) unsafe fn abort(&self, transaction: &mut RawTransaction) -> Result<()> {
        if transaction.restore() == Restore::No && transaction.count() > 0 {
            return Err(Error::Invalid("a transaction without restore cannot be aborted".into()));
        }
        // SAFETY: as the caller promises.
        unsafe { transaction.undo() };
        transaction.clear();
        self.state().statistics.aborts += 1;
        Ok(())
    }

    /// Waits until the record of a transaction fits.
    fn make_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        transaction: &RawTransaction,
    ) -> Result<MutexGuard<'a, State>> {
        loop {
            let needed = state.names_bytes + transaction.needed();
            if needed > self.capacity {
                return Err(Error::TooLarge { needed, most: self.capacity });
            }
            if state.tail() + needed - state.status.head <= self.capacity {
                return Ok(state);
            }
            state = match self.options.truncation {
                Truncation::WhenFull if state.applied.is_some() => self.end_applied(state)?,
                Truncation::WhenFull => self.truncate(state)?,
                Truncation::Background { .. } if state.is_truncating => self.wait_for_space(state),
                Truncation::Background { .. } => self.truncate(state)?,
            };
            state.check()?;
        }
    }

    /// Names the segments that no record after the head names yet.
    fn name_segments(&self, state: &mut State, transaction: &RawTransaction) {
        for memory in transaction.memories() {
            let (place, barrier) = state.next_place();
            let at = state.tail();
            let segment = &mut state.segments[memory.segment as usize];
            segment.logged_at = Some(at);
            if !std::mem::replace(&mut segment.is_named, true) {
                let bytes = segment_name(&mut state.spool, place, barrier, memory.segment, &segment.name);
                state.statistics.name_bytes += bytes as u64;
            }
        }
    }

    /// # Safety
    /// As for [`RawTransaction::set_range`].
    unsafe fn encode(&self, state: &mut State, transaction: &RawTransaction) {
        let (place, barrier) = state.next_place();
        let number = state.statistics.flush_commits + state.statistics.no_flush_commits;
        let State { spool, write_through, statistics, recovery_time, .. } = state;
        let begin = spool.len();
        spool.resize(begin + transaction.needed() as usize, 0);
        let mut encoder = Encoder::new(&mut spool[begin..], self.options.headers);
        let bytes = if self.options.diff && transaction.restore() == Restore::Yes {
            // SAFETY: as the caller promises.
            let encoder = unsafe { self.encode_changed(encoder, transaction, recovery_time) };
            encoder.finish(place, barrier, self.options.compress, number)
        } else {
            let memories = transaction.memories();
            for &Covered { memory, start, end } in transaction.ranges() {
                let region: &Memory = &memories[memory as usize];
                // SAFETY: as the caller promises.
                let now = unsafe { region.slice(start..end) };
                let offset = region.offset + start as u64;
                match write_through {
                    Some(write_through) => write_through.prefetch(region.segment, offset, end - start),
                    None => recovery_time.add(region.segment, offset, end - start),
                }
                encoder.range(region.segment, offset, now);
            }
            encoder.finish(place, barrier, self.options.compress, number)
        };
        spool.truncate(begin + bytes);
        statistics.logged_bytes += bytes as u64;
    }

    /// Only the bytes that changed.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    unsafe fn encode_changed<'a>(
        &self,
        mut encoder: Encoder<'a>,
        transaction: &RawTransaction,
        recovery_time: &mut RecoveryTime,
    ) -> Encoder<'a> {
        let (places, old_bytes) = transaction.old();
        let mut old: Vec<(Covered, usize)> = places.collect();
        old.sort_unstable_by_key(|(covered, _)| (covered.memory, covered.start));
        let mut old = old.iter().peekable();
        let mut before = Vec::new();
        for &Covered { memory, start, end } in transaction.ranges() {
            let region: &Memory = &transaction.memories()[memory as usize];
            before.clear();
            while let Some(&(old, at)) = old.next_if(|(old, _)| old.memory == memory && old.end <= end) {
                before.extend_from_slice(&old_bytes[at..at + old.end - old.start]);
            }
            // SAFETY: as the caller promises.
            let now = unsafe { region.slice(start..end) };
            let offset = region.offset + start as u64;
            for (from, to) in changed(&before, now, self.options.headers.range_bytes()) {
                recovery_time.add(region.segment, offset + from as u64, to - from);
                encoder.range(region.segment, offset + from as u64, &now[from..to]);
            }
        }
        encoder
    }
}

#[cold]
fn unmapped(memory: &Memory) -> Error {
    let range = memory.range();
    Error::Invalid(format!(
        "{range:?} of {} is no longer mapped, so no transaction can change it",
        memory.name
    ))
}

/// # Safety
/// As for [`RawTransaction::set_range`]; nobody changes the regions meanwhile.
unsafe fn find_missed(transaction: &RawTransaction) -> Result<()> {
    for (index, memory) in transaction.memories().iter().enumerate() {
        let ranges = transaction.ranges().iter().filter(|covered| covered.memory as usize == index);
        // SAFETY: as the caller promises.
        unsafe { memory.find_missed(ranges.map(|covered| covered.start..covered.end))? };
    }
    Ok(())
}
