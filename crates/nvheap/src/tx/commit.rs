//! The end of a transaction.
//!
//! Few stores are executed between the fence of a commit and the loads of the next transaction. Stores after a fence
//! wait for it, and once the processor's store buffer is full (64 entries on Zen 4) it does not reach those loads:
//! memory and fence are waited for one after the other. TPC-B took 430 ns with 68 stores in between and 345 ns with
//! 63. So work that need not follow the fence comes before it, and values used by one function only are lent without
//! a count ([`super::own`]). A load whose lower twelve address bits equal those of a waiting store waits as well: the
//! blocks of each small page are taken from a different offset, not all from the beginning, where the locks of large
//! blocks are.

use super::RawTx;
use super::shadow::private_words;
use super::state::State;
use crate::error::{Error, Result};
use crate::layout::{LINE, PAGE};
use crate::lock::{CLOCK_MAX, Word};
use crate::log::{self, RECORD_WORDS_MAX};
use crate::region::Region;
use crate::space::{self, Active, Kind};
use crate::wait::back_off;
use nvlab_os::barrier;
use std::sync::atomic::Ordering;

/// A result whose error is in a box, so that it is returned in a register: a result in memory is a store, and what is stored behind
/// the fence waits for it.
type Thin<T> = std::result::Result<T, Box<Error>>;

impl<'t> RawTx<'t> {
    /// A transaction begins.
    #[inline(always)]
    pub fn begin(self) -> Result<()> {
        self.core().check_failed()?;
        let runs = &self.core().slots[self.context.slot].runs;
        runs.store(runs.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        barrier::light();
        Ok(())
    }

    #[inline]
    fn end(self, state: &mut State) {
        if let Some(snapshot) = state.snapshot.take() {
            self.context.is_past.set(false);
            self.core().end_snapshot(snapshot);
        }
        state.clear();
        self.core().slots[self.context.slot].end_run();
    }

    /// Makes all changes durable and visible at once. After an error nothing has changed and the transaction has
    /// ended.
    pub fn commit(self) -> Thin<()> {
        match self.try_commit() {
            Ok(()) => Ok(()),
            Err(error) => {
                self.abort();
                Err(error)
            }
        }
    }

    #[inline]
    fn try_commit(self) -> Thin<()> {
        let mut state = self.context.state();
        if !state.dead.is_empty() && state.doomed.is_none() {
            drop(state);
            self.destroy_dead()?;
            state = self.context.state();
        }
        if let Some(error) = &state.doomed {
            return Err(Box::new(error.clone()));
        }
        if state.held.is_empty() && state.words.is_empty() {
            // Its reads are of one moment.
            state.clear_copies();
            self.end(&mut state);
            return Ok(());
        }
        self.commit_in(&mut state)
    }

    #[inline]
    fn commit_in(self, state: &mut State) -> Thin<()> {
        self.validate(state)?;
        self.audit(state)?;
        let (core, slot) = (self.core(), &self.core().slots[self.context.slot]);
        self.build(state)?;
        if state.record.is_empty() {
            state.held.iter().for_each(|held| held.release(held.before));
            state.clear_copies();
            self.end(state);
            return Ok(());
        }
        let last = slot.clock.load(Ordering::Relaxed);
        let clock = state.held.iter().map(|held| held.before.clock()).fold(last, u64::max) + 1;
        if clock > core.limit.load(Ordering::Relaxed) {
            assert!(clock < CLOCK_MAX, "clock {clock}");
            core.raise_limit(clock)?;
        }
        let has_more = match core.memory.region() {
            None => self.commit_to_log(state, clock)?,
            Some(region) => self.commit_to_region(region, state, clock)?,
        };
        let free = Word::free(clock, self.context.slot);
        state.held.iter().for_each(|held| held.release(free));
        slot.committing.store(0, Ordering::Release);
        if has_more {
            // If it fails, the heap takes no more work, but this transaction has happened.
            let _ = core.fail(self.settle(state));
            state.clear();
        } else {
            state.held.clear();
        }
        slot.end_run();
        Ok(())
    }

    /// Makes the record durable and brings the changes home; whether more is to be done.
    #[inline(always)]
    fn commit_to_log(self, state: &mut State, clock: u64) -> Thin<bool> {
        let memory = &self.core().memory;
        if state.record.bytes() > self.core().layout.half_bytes {
            self.take_overflow(state)?;
        }
        let has_more = state.has_more();
        let epoch = self.enter_epoch(state)?;
        // Behind the fence nothing is stored that need not be: what is waits for it, and the processor has room for a few
        // dozen stores. Once that is full, it does not get to what the next transaction loads.
        let written = self.write(state, clock, epoch).and_then(|record| match record {
            Some(record) => memory.fence(&[record]).map_err(Box::new),
            None => Ok(()),
        });
        match written {
            Ok(()) => self.apply(state),
            Err(error) => return Err(self.has_failed(error)),
        }
        Ok(has_more)
    }

    /// The same where the log is that of recoverable memory, which has another size.
    #[inline(never)]
    fn commit_to_region(self, region: &Region, state: &mut State, clock: u64) -> Thin<bool> {
        self.enter(1);
        let prepared = region.prepare(&mut state.record.homes());
        let slot = &self.core().slots[self.context.slot];
        let prepared = prepared.inspect_err(|_| slot.committing.store(0, Ordering::Release))?;
        let filled = region.fill(&state.streamed);
        self.prepare_end(state, clock);
        let done = filled.and_then(|()| {
            self.apply(state);
            region.commit(prepared)
        });
        done.map_err(|error| self.has_failed(error.into()))?;
        Ok(state.has_more())
    }

    /// It is not known what is durable.
    #[cold]
    fn has_failed(self, error: Box<Error>) -> Box<Error> {
        self.core().slots[self.context.slot].committing.store(0, Ordering::Release);
        let _ = self.core().fail::<()>(Err((*error).clone()));
        error
    }

    /// The changed words of every private copy, all of which lie in the file.
    #[inline]
    fn build(self, state: &mut State) -> Result<()> {
        let memory = &self.core().memory;
        state.record.begin();
        for shadow in &state.shadows {
            if shadow.words == 0 {
                continue;
            }
            let words = private_words(shadow.data, shadow.words as usize);
            let old = memory.held(shadow.home, words.len())?;
            match shadow.is_new() {
                true => state.record.push(shadow.home, words),
                false => state.record.push_changed(shadow.home, old, words),
            }
        }
        for &(home, word) in &state.words {
            memory.word(home)?;
            state.record.push(home, &[word]);
        }
        Ok(())
    }

    /// Finds pages for a record that no half of a log can hold.
    #[cold]
    fn take_overflow(self, state: &mut State) -> Result<()> {
        let (needed, most) = (state.record.bytes(), RECORD_WORDS_MAX * 8);
        if needed > most {
            return Err(Error::TooLarge { needed, most });
        }
        let count = needed.div_ceil(PAGE);
        let taken = self.core().space.take(&self.core().memory, &self.core().layout, None, count)?;
        state.overflow = Some((taken.page, count));
        self.clean(state, &taken)
    }

    /// Bytes that the record takes in the log.
    #[inline]
    fn log_bytes(self, state: &State) -> u64 {
        match state.overflow {
            None => state.record.bytes(),
            Some(_) => LINE,
        }
    }

    /// Announces that a commit is in progress; snapshots do not hold it up.
    #[inline(always)]
    fn enter(self, epoch: u64) {
        let (core, slot) = (self.core(), &self.core().slots[self.context.slot]);
        let mut tries = 0;
        loop {
            slot.committing.store(epoch, Ordering::Relaxed);
            barrier::light();
            if !core.is_held_up.load(Ordering::Acquire) {
                return;
            }
            slot.committing.store(0, Ordering::Release);
            back_off(tries);
            tries += 1;
        }
    }

    /// Writes the changes home.
    #[inline(always)]
    fn apply(self, state: &State) {
        let memory = &self.core().memory;
        if memory.snapshots.is_any() {
            self.save_homes(state);
        }
        // SAFETY: `build` found that they lie in the file.
        unsafe { state.record.apply(memory) }
    }

    #[cold]
    fn save_homes(self, state: &State) {
        let memory = &self.core().memory;
        // SAFETY: this commit has entered.
        unsafe { memory.save_in_commit(state.record.homes()) };
    }

    /// Announces that a commit is in progress in the current epoch, which has room for the record.
    #[inline]
    fn enter_epoch(self, state: &State) -> Thin<u64> {
        let (core, slot) = (self.core(), &self.core().slots[self.context.slot]);
        loop {
            let epoch = core.epoch.load(Ordering::Acquire);
            self.enter(epoch);
            if core.epoch.load(Ordering::Acquire) != epoch {
                continue;
            }
            let half = (epoch & 1) as usize;
            if slot.epochs[half].load(Ordering::Relaxed) != epoch {
                slot.tails[half].store(0, Ordering::Relaxed);
                slot.epochs[half].store(epoch, Ordering::Release);
            }
            if slot.tails[half].load(Ordering::Relaxed) + self.log_bytes(state) <= core.layout.half_bytes {
                return Ok(epoch);
            }
            slot.committing.store(0, Ordering::Release);
            core.checkpoint(epoch)?;
        }
    }

    /// Writes the record; returns where it lies unless it is durable already.
    #[inline]
    fn write(self, state: &mut State, clock: u64, epoch: u64) -> Thin<Option<(u64, u64)>> {
        let (core, slot) = (self.core(), &self.core().slots[self.context.slot]);
        let tail = &slot.tails[(epoch & 1) as usize];
        let offset = tail.load(Ordering::Relaxed);
        let at = core.layout.half(self.context.slot, epoch) + offset;
        let bytes = self.log_bytes(state);
        if !state.streamed.is_empty() {
            // Before the record: lines become durable in any order, and a whole record says that these are there.
            core.memory.fence(&state.streamed)?;
        }
        tail.store(offset + bytes, Ordering::Release);
        if let Some((page, _)) = state.overflow {
            self.write_overflow(state, core.layout.bytes(page), at, (clock, epoch))?;
        } else {
            core.memory.stream(at, state.record.finish(core.identity, at, clock, epoch))?;
        }
        // Meanwhile the lines are on their way.
        self.prepare_end(state, clock);
        Ok(state.overflow.is_none().then_some((at, bytes)))
    }

    /// Work that need not wait until the record is durable.
    #[inline(always)]
    fn prepare_end(self, state: &mut State, clock: u64) {
        // Whoever sees the clock finds the locks of what it changes held.
        self.core().slots[self.context.slot].clock.store(clock, Ordering::Release);
        state.seen[self.context.slot] = clock;
        state.clear_copies();
    }

    /// Writes the record to pages of its own, and to the log where it is, and waits for both.
    #[cold]
    fn write_overflow(self, state: &mut State, body: u64, at: u64, (clock, epoch): (u64, u64)) -> Result<()> {
        let core = self.core();
        let words = state.record.finish(core.identity, body, clock, epoch);
        // SAFETY: this commit has entered its epoch.
        unsafe { core.memory.save_in_commit(std::iter::once((body, words.len() as u64 * 8))) };
        core.memory.stream(body, words)?;
        let mut line = log::continued(body, words.len() as u64);
        log::seal(&mut line, core.identity, at, clock, epoch);
        core.memory.stream(at, &line)?;
        // In any order: each has a hash of its own.
        core.memory.fence(&[(body, words.len() as u64 * 8), (at, LINE)])
    }

    /// What was taken or freed is so for good.
    #[cold]
    fn settle(self, state: &mut State) -> Result<()> {
        let (memory, layout, space) = (&self.core().memory, &self.core().layout, &self.core().space);
        for (page, count, class) in state.pages.drain(..) {
            match class {
                None => space.settle(page, count),
                Some(class) if state.active[class].page == Some(page) => {}
                Some(class) => space.put_back(memory, layout, class, page, 0)?,
            }
        }
        for (page, count) in state.freed_pages.drain(..) {
            space.freed(page, count);
        }
        self.give_overflow_back(state);
        while let Some(at) = state.freed.pop() {
            give_block_back(self, &mut state.active, at)?;
        }
        Ok(())
    }

    /// Undoes everything: the file has not been touched.
    pub fn abort(self) {
        let mut state = self.context.state();
        let state = &mut *state;
        // A commit that was refused when it had begun would be waited for.
        self.core().slots[self.context.slot].committing.store(0, Ordering::Release);
        self.audit_undone(state);
        state.reads_lost = match state.snapshot {
            None if state.held.is_empty() => Some(state.reads.len()),
            _ => None,
        };
        let (layout, space) = (&self.core().layout, &self.core().space);
        if let Some(region) = self.core().memory.region() {
            // What is in memory and what the log knows must not differ.
            let _ = self.core().fail(region.fill(&state.streamed));
        }
        state.held.iter().for_each(|held| held.release(held.before));
        while let Some(at) = state.allocated.pop() {
            let page = space::page_of(layout, at);
            if !state
                .pages
                .iter()
                .any(|&(first, count, _)| page.is_some_and(|page| (first..first + count).contains(&page)))
            {
                // The block was found in a page of blocks a moment ago.
                let _ = give_block_back(self, &mut state.active, at);
            }
        }
        for (page, count, class) in state.pages.drain(..) {
            if let Some(class) = class
                && state.active[class].page == Some(page)
            {
                state.active[class] = Default::default();
            }
            space.give_back(page, count);
        }
        self.give_overflow_back(state);
        state.clear_copies();
        self.end(state);
    }

    /// The pages of the record are free, for those who wait until the epoch has ended.
    fn give_overflow_back(self, state: &mut State) {
        if let Some((page, count)) = state.overflow.take() {
            self.core().space.give_back(page, count);
        }
    }
}

/// A block of a page of blocks is free.
fn give_block_back(tx: RawTx<'_>, active: &mut [Active], at: u64) -> Result<()> {
    let (memory, layout) = (&tx.core().memory, &tx.core().layout);
    let page = space::page_of(layout, at).ok_or_else(|| Error::damaged(at, "a block outside the pages"))?;
    let Kind::Small(class) = space::kind(memory, layout, page)? else { return Ok(()) };
    if active[class].page == Some(page) {
        active[class].free.push((at - layout.bytes(page)) as u32);
    } else if space::add_hint(memory, layout, page, 1)? == 0 {
        tx.core().space.has_room(class, page);
    }
    Ok(())
}
