//! Transactions: their reads, changes, commit and abort.
//!
//! * A change locks its object at once and works on a private copy; nothing uncommitted reaches the file. A
//!   transaction that finds a lock gives up and retries, so none waits for a lock while holding one for long: no
//!   deadlock.
//! * A read copies the object, or loads some of its words, and checks its version before and after. All reads of a
//!   transaction are of one moment: an object with a version that this thread has not seen makes it check the earlier
//!   reads again. So a transaction never sees a state that no order of transactions explains, even if it is to be retried.
//! * A commit checks the reads once more, writes one record, waits for memory once, copies the changes home and
//!   releases the locks.
//!
//! Versions are (clock, log) with a clock for each thread (thread-local clocks: Avni and Shavit, 2008), so that commits of
//! different threads share no line.

mod audit;
mod balances;
mod blocks;
mod commit;
mod cut;
mod destroy;
mod header;
mod in_place;
mod lease;
mod own;
mod record;
mod shadow;
mod snapshot;
mod source;
mod state;
mod way;

pub(crate) use crate::block::{ArrayShape, CAPACITY_AT, LIVE_AT, Meta, STRONG_MAX, WEAK_MAX};
pub(crate) use cut::Cut;
pub(crate) use destroy::{List, list_at};
pub(crate) use header::Header;
pub(crate) use in_place::InPlace;
pub(crate) use lease::{Lease, any_lease, end_lease, is_elsewhere, is_inside, lease, with_current};
use own::Lent;
use shadow::Shadow;
pub(crate) use shadow::freeze;
use source::Source;
pub(crate) use state::Context;
use state::{Seen, State};

use crate::core::Core;
use crate::error::{Error, Result};
use crate::lock::{self, Word};
use crate::persist::Brand;
use crate::space::HEADER;
use crate::sync::AtomicU64;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

/// Polls of a lock before the transaction is retried.
const SPINS: u32 = 64;

/// A transaction on the heap of brand `H`. See [`crate::Heap::transaction`].
pub struct Tx<'t, H: Brand> {
    pub(crate) raw: RawTx<'t>,
    brand: PhantomData<fn(H) -> H>,
}

impl<'t, H: Brand> Tx<'t, H> {
    pub(crate) fn new(raw: RawTx<'t>) -> Self {
        Tx { raw, brand: PhantomData }
    }
}

impl<H: Brand> std::fmt::Debug for Tx<'_, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tx<{}>", std::any::type_name::<H>())
    }
}

/// A transaction on a heap of any brand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawTx<'t> {
    pub context: &'t Context,
}

/// Words of a private copy and the cell that says who has borrowed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Private<'t> {
    pub data: *mut u64,
    pub borrow: &'t Cell<i64>,
}

impl<'t> RawTx<'t> {
    /// The heap.
    #[inline(always)]
    pub fn core(self) -> &'t Core {
        // SAFETY: whoever runs a transaction borrows the heap as long as it runs.
        unsafe { &*self.context.core }
    }

    /// The transaction can no longer commit.
    pub fn doom(self, error: Error) -> Error {
        self.context.state().doom(error)
    }

    /// Holds the lock at `at` from now on; returns under which index.
    #[inline]
    pub fn lock(self, at: u64) -> Result<usize> {
        let mut state = self.context.state();
        self.lock_in(&mut state, at)
    }

    #[inline]
    fn lock_in(self, state: &mut State, at: u64) -> Result<usize> {
        let word = self.core().memory.word(at)?;
        self.lock_word(state, at, word).map(|(index, _)| index)
    }

    /// The same, and whether the lock has been taken just now.
    #[inline(always)]
    fn lock_word(self, state: &mut State, at: u64, word: &AtomicU64) -> Result<(usize, bool)> {
        let now = lock::load(word);
        if now.is_free() && !self.context.is_past.get() {
            let index = state.held.len();
            if lock::take(word, now, Word::held(self.core().base, self.context.slot, index)).is_ok() {
                state.hold(word, now);
                self.see(state, now)?;
                return Ok((index, true));
            }
        }
        self.lock_slowly(state, at, word)
    }

    /// A lock that this transaction holds, or another, or a killed program.
    #[inline(never)]
    fn lock_slowly(self, state: &mut State, at: u64, word: &AtomicU64) -> Result<(usize, bool)> {
        let (core, slot) = (self.core(), self.context.slot);
        if state.snapshot.is_some() {
            // Changes are made to what is there now.
            return Err(state.doom(Error::Conflict));
        }
        let mut spins = 0;
        loop {
            let now = lock::load(word);
            if let Some(index) = now.index_of(core.base, slot) {
                return match state.held.get(index) {
                    Some(held) if held.is(word) => Ok((index, false)),
                    _ => Err(state.doom(Error::damaged(at, "a lock without an owner"))),
                };
            }
            let index = state.held.len();
            if !now.is_held(core.base) {
                if lock::take(word, now, Word::held(core.base, slot, index)).is_ok() {
                    state.hold(word, now);
                    self.see(state, now)?;
                    return Ok((index, true));
                }
                continue;
            }
            spins += 1;
            if spins > SPINS {
                return Err(state.doom(self.held_error(at, now)));
            }
            std::hint::spin_loop();
        }
    }

    /// Called when something of this version is read: if the version is newer than this thread knows of its writer,
    /// everything read before must be unchanged.
    #[inline(always)]
    fn see(self, state: &mut State, version: Word) -> Result<()> {
        if version.clock() <= self.core().base || version.clock() <= state.seen[version.owner()] {
            return Ok(());
        }
        self.extend(state, version)
    }

    /// The error for a lock that cannot be taken: another transaction holds it, or it is damaged.
    #[cold]
    fn held_error(self, at: u64, word: Word) -> Error {
        let slot = self.core().slots.get(word.owner());
        let is_held =
            slot.is_some_and(|slot| slot.is_leased.load(Ordering::Acquire)) && !self.is_beyond(word);
        // A thread may have ended between the two looks at the word and its log.
        let now = self.core().memory.word(at).map_or(word, lock::load);
        match is_held || now != word {
            true => Error::Conflict,
            false => Error::damaged(at, "a lock without an owner"),
        }
    }

    /// Whether no transaction can have had this clock.
    fn is_beyond(self, version: Word) -> bool {
        version.clock() > self.core().limit.load(Ordering::Acquire)
    }

    #[cold]
    fn extend(self, state: &mut State, version: Word) -> Result<()> {
        if self.is_beyond(version) {
            return Err(state
                .doom(Error::damaged(0, format!("a version {} that no transaction made", version.clock()))));
        }
        if state.reads.is_empty() {
            state.seen[version.owner()] = version.clock();
            return Ok(());
        }
        // The clocks first: what they name was locked before the reads are checked.
        for (seen, slot) in state.seen.iter_mut().zip(&self.core().slots) {
            *seen = (*seen).max(slot.clock.load(Ordering::Acquire));
        }
        // A writer publishes its clock before it releases a lock, so this one is among them.
        let seen = &mut state.seen[version.owner()];
        *seen = (*seen).max(version.clock());
        self.validate(state)
    }

    /// Everything read is still what it was.
    #[inline]
    fn validate(self, state: &mut State) -> Result<()> {
        match state.reads.iter().all(|read| read.now() == read.version || self.is_mine(state, read)) {
            true => Ok(()),
            false => Err(state.doom(Error::Conflict)),
        }
    }

    /// Whether what was read is locked by this transaction, and was the same then.
    #[cold]
    fn is_mine(self, state: &State, read: &Seen) -> bool {
        let index = read.now().index_of(self.core().base, self.context.slot);
        index.and_then(|index| state.held.get(index)).is_some_and(|held| held.before == read.version)
    }

    /// Copies `words` at `home` that the lock at `lock_at` protects into `into`, or returns the private copy of them. If it is
    /// an object, it must be of the type `tag`.
    ///
    /// # Safety
    /// `into` has room for them.
    #[inline(always)]
    pub unsafe fn read(
        self,
        lock_at: u64,
        home: u64,
        words: usize,
        into: *mut u64,
        tag: Option<u16>,
    ) -> Result<Option<Private<'t>>> {
        // SAFETY: passed on.
        unsafe { self.read_in(self.context.state(), lock_at, home, words, into, tag) }
    }

    /// # Safety
    /// As of [`RawTx::read`].
    #[inline(always)]
    unsafe fn read_in(
        self,
        mut state: Lent<'_, State>,
        lock_at: u64,
        home: u64,
        words: usize,
        into: *mut u64,
        tag: Option<u16>,
    ) -> Result<Option<Private<'t>>> {
        let source = self.source(lock_at, home, words, tag).map_err(|error| state.doom(error))?;
        let before = lock::load(source.lock);
        if before.is_free() && !self.context.is_past.get() {
            // SAFETY: passed on.
            let found = unsafe { self.copy(&source, into) };
            if lock::load(source.lock) == before {
                self.has_read(&mut state, source.lock, before)?;
                drop(state);
                return match found == tag {
                    true => Ok(None),
                    false => Err(self.other_type(lock_at)),
                };
            }
        }
        drop(state);
        // SAFETY: passed on.
        unsafe { self.read_slowly((lock_at, source), home, words, into, tag) }
    }

    /// The same into a copy of its own, which is lent until its cell says 0; or the private copy.
    #[inline(always)]
    pub fn read_lent(
        self,
        lock_at: u64,
        home: u64,
        words: usize,
        tag: Option<u16>,
    ) -> Result<(Private<'t>, bool)> {
        let mut state = self.context.state();
        // SAFETY: the word in front of a copy that was lent; guards that count in it are of this thread.
        let start = state.arena.lend(words, |last| unsafe { *last } != 0);
        // SAFETY: the arena has this word in front of the others.
        let copy = self.private_at(unsafe {
            *start = 1;
            start.add(1)
        });
        // SAFETY: the copy has the words.
        match unsafe { self.read_in(state, lock_at, home, words, copy.data, tag) } {
            Ok(None) => Ok((copy, true)),
            other => {
                copy.borrow.set(0);
                let Some(private) = other? else { unreachable!("a copy is handled above") };
                Ok((private, false))
            }
        }
    }

    #[inline(always)]
    fn has_read(self, state: &mut State, word: &AtomicU64, version: Word) -> Result<()> {
        state.has_read(word, version);
        self.see(state, version)?;
        self.look_around(state)
    }

    /// # Safety
    /// As of [`RawTx::read`].
    #[inline(never)]
    unsafe fn read_slowly(
        self,
        (lock_at, source): (u64, Source<'_>),
        home: u64,
        words: usize,
        into: *mut u64,
        tag: Option<u16>,
    ) -> Result<Option<Private<'t>>> {
        let word = source.lock;
        if self.context.state().snapshot.is_some() {
            // SAFETY: passed on.
            return unsafe { self.read_snapshot((lock_at, tag), home, words, into) };
        }
        let (base, slot) = (self.core().base, self.context.slot);
        let check = |found| match found == tag {
            true => Ok(()),
            false => Err(self.other_type(lock_at)),
        };
        let mut spins = 0;
        loop {
            let before = lock::load(word);
            if before.index_of(base, slot).is_some() {
                let found = {
                    let mut state = self.context.state();
                    let (index, _) = self.lock_slowly(&mut state, lock_at, word)?;
                    state.shadow_of(index, home).filter(|shadow| shadow.words as usize >= words).copied()
                };
                // SAFETY: passed on. Nobody else changes it while this transaction holds the lock.
                let said = unsafe { self.copy(&source, into) };
                check(said.map(|said| self.private_tag(lock_at).unwrap_or(said)))?;
                return Ok(found.map(|shadow| self.private(&shadow)));
            }
            if !before.is_held(base) {
                // SAFETY: passed on.
                let found = unsafe { self.copy(&source, into) };
                if lock::load(word) == before {
                    self.has_read(&mut self.context.state(), word, before)?;
                    check(found)?;
                    return Ok(None);
                }
            }
            spins += 1;
            if spins > SPINS {
                return Err(self.doom(self.held_error(lock_at, before)));
            }
            std::hint::spin_loop();
        }
    }

    /// Detects a transaction that loops because of changes that others made since.
    #[inline(always)]
    fn look_around(self, state: &mut State) -> Result<()> {
        if state.reads.len() >= state.look_around_at {
            state.look_around_at = state.reads.len() * 2;
            self.validate(state)?;
        }
        Ok(())
    }

    /// The private copy of `words` words at `home`, which the lock at `lock_at` protects; made if there is none. `kind` is the number
    /// of the type whose value it is, if that has pointers.
    #[inline]
    pub fn change(self, lock_at: u64, home: u64, words: usize, kind: u16) -> Result<Private<'t>> {
        self.change_of(lock_at, home, words, kind, None)
    }

    /// The same of an object, which must be of the type `tag`.
    #[inline(always)]
    pub fn change_of(
        self,
        lock_at: u64,
        home: u64,
        words: usize,
        kind: u16,
        tag: Option<u16>,
    ) -> Result<Private<'t>> {
        let memory = &self.core().memory;
        let source = self.source(lock_at, home, words, tag).map_err(|error| self.doom(error))?;
        // The lock is a full barrier: what is behind it would be loaded only after it.
        memory.prefetch(home);
        let mut state = self.context.state();
        let (index, is_new) = self.lock_word(&mut state, lock_at, source.lock)?;
        if !is_new {
            drop(state);
            return self.change_again(index, (lock_at, home), words, kind, tag);
        }
        let data = state.add_shadow(index, home, words, (kind, false));
        drop(state);
        // SAFETY: the arena has room for the words.
        let found = unsafe { self.copy(&source, data) };
        match found == tag {
            true => Ok(self.private_at(data)),
            false => Err(self.other_type(lock_at)),
        }
    }

    /// The same if the transaction holds the lock already.
    #[inline(never)]
    fn change_again(
        self,
        index: usize,
        (lock_at, home): (u64, u64),
        words: usize,
        kind: u16,
        tag: Option<u16>,
    ) -> Result<Private<'t>> {
        if let Some(tag) = tag
            && self.tag_at(lock_at)? != tag
        {
            return Err(self.other_type(lock_at));
        }
        let mut state = self.context.state();
        if let Some(shadow) = state.shadow_of(index, home) {
            return match shadow.words as usize >= words {
                true => Ok(self.private(shadow)),
                false => Err(state.doom(Error::damaged(home, "objects overlap"))),
            };
        }
        let data = state.add_shadow(index, home, words, (kind, false));
        // SAFETY: the arena has room for the words.
        unsafe { self.core().memory.load(home, data, words)? };
        Ok(self.private_at(data))
    }

    fn private(self, shadow: &Shadow) -> Private<'t> {
        self.private_at(shadow.data)
    }

    fn private_at(self, data: *mut u64) -> Private<'t> {
        // SAFETY: `add_shadow` and `lend` put a word in front of the data; it lives until the transaction ends, which `'t` outlives
        // only in guards that borrow the transaction.
        Private { data, borrow: unsafe { &*data.sub(1).cast::<Cell<i64>>() } }
    }

    /// A value is not what it should be. If the transaction read it while others changed it, it is retried; otherwise
    /// it is damage.
    #[cold]
    pub fn distrust(self, error: Error) -> Error {
        let mut state = self.context.state();
        if state.snapshot.is_some() {
            return state.doom(Error::Conflict);
        }
        match self.validate(&mut state) {
            Ok(()) => state.doom(error),
            Err(conflict) => conflict,
        }
    }

    /// The type that the object at `at`, of which the transaction holds the lock, says it is of.
    fn tag_at(self, at: u64) -> Result<u16> {
        match self.private_tag(at) {
            Some(tag) => Ok(tag),
            None => Ok(Meta(self.core().memory.word(at + 8)?.load(Ordering::Acquire)).tag()),
        }
    }

    /// What the private copy of a header says, if there is one.
    fn private_tag(self, at: u64) -> Option<u16> {
        let word = lock::load(self.core().memory.word(at).ok()?);
        let state = self.context.state();
        let index =
            word.index_of(self.core().base, self.context.slot).filter(|&index| index < state.held.len())?;
        // SAFETY: the private copy of a header has two words.
        state.shadow_of(index, at + 8).map(|shadow| Meta(unsafe { *shadow.data }).tag())
    }

    #[cold]
    fn other_type(self, at: u64) -> Error {
        self.distrust(Error::damaged(at, "a pointer points to an object of another type"))
    }
}

/// Where an object's value lies.
pub(crate) fn value_at(at: u64) -> u64 {
    at + HEADER
}
