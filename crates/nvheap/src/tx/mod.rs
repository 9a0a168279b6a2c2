//! Transactions: what one reads and changes, and what becomes of it.
//!
//! * A change locks its object at once and works on a private copy; nothing uncommitted reaches the file. Whoever meets a
//!   lock gives up and retries, so nobody waits for a lock while holding one for long: no deadlock.
//! * A read copies the object and checks its version before and after. All reads of a transaction are of one moment: an object
//!   with a version that this thread has not seen makes it check the earlier reads again. So a transaction never sees a
//!   state that no order of transactions explains, even if it is to be retried.
//! * A commit checks the reads once more, writes one record, waits for memory once, copies the changes home and releases
//!   the locks.
//!
//! Versions are (clock, log) with a clock for each thread (thread-local clocks: Avni and Shavit, 2008), so that commits of
//! different threads share no line.

mod blocks;
mod commit;
mod destroy;
mod state;

pub(crate) use blocks::{ArrayShape, CAPACITY_AT, LIVE_AT};
pub(crate) use commit::freeze;
pub(crate) use destroy::{List, list_at};
pub(crate) use state::Context;
use state::{Shadow, State};

use crate::core::Core;
use crate::error::{Error, Result};
use crate::lock::{self, Word};
use crate::persist::Brand;
use crate::space::HEADER;
use std::any::TypeId;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::null;
use std::sync::atomic::{Ordering, fence};

/// How often a lock is looked at before the transaction is retried.
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
    pub core: &'t Core,
    pub context: &'t Context,
}

/// The transactions of this thread, innermost first.
struct Running {
    core: *const Core,
    context: *const Context,
    outer: *const Running,
}

thread_local! {
    static RUNNING: Cell<*const Running> = const { Cell::new(null()) };
}

/// Calls `body` as part of a transaction that pointers find when they are dropped.
pub(crate) fn with_running<R>(raw: RawTx<'_>, body: impl FnOnce() -> R) -> R {
    struct Restore(*const Running);
    impl Drop for Restore {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    let outer = RUNNING.get();
    let running = Running { core: raw.core, context: raw.context, outer };
    let _restore = Restore(outer);
    RUNNING.set(&running);
    body()
}

/// The running transaction of this thread on the heap of a brand.
pub(crate) fn with_current(brand: TypeId, found: impl FnOnce(RawTx<'_>)) {
    let mut at = RUNNING.get();
    // SAFETY: `with_running` keeps each of these, and the heap and context it borrows, until it has restored the outer one.
    while let Some(running) = unsafe { at.as_ref() } {
        // SAFETY: as above.
        let (core, context) = unsafe { (&*running.core, &*running.context) };
        if core.brand == brand {
            return found(RawTx { core, context });
        }
        at = running.outer;
    }
}

/// Words of a private copy and the cell that says who has borrowed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Private<'t> {
    pub data: *mut u64,
    pub borrow: &'t Cell<i64>,
}

impl<'t> RawTx<'t> {
    /// The transaction cannot commit any more.
    pub fn doom(self, error: Error) -> Error {
        self.context.state.borrow_mut().doom(error)
    }

    /// Holds the lock at `at` from now on; returns under which index.
    #[inline]
    pub fn lock(self, at: u64) -> Result<usize> {
        let mut state = self.context.state.borrow_mut();
        self.lock_in(&mut state, at)
    }

    #[inline]
    fn lock_in(self, state: &mut State, at: u64) -> Result<usize> {
        let (core, slot) = (self.core, self.context.slot);
        let word = core.memory.word(at)?;
        let mut spins = 0;
        loop {
            let now = lock::load(word);
            if let Some(index) = now.index_of(core.base, slot) {
                return match state.held.get(index) {
                    Some(held) if held.at == at => Ok(index),
                    _ => Err(state.doom(Error::damaged(at, "a lock that nobody holds"))),
                };
            }
            let index = state.held.len();
            if !now.is_held(core.base) {
                if lock::take(word, now, Word::held(core.base, slot, index)).is_ok() {
                    state.hold(at, now);
                    self.see(state, now)?;
                    return Ok(index);
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

    /// Something of this version is read: if it is newer than what this thread knows of its writer, everything read before
    /// must still be what it was.
    #[inline]
    fn see(self, state: &mut State, version: Word) -> Result<()> {
        if version.clock() <= self.core.base || version.clock() <= state.seen[version.owner()] {
            return Ok(());
        }
        self.extend(state, version)
    }

    /// Why a lock cannot be had: somebody holds it, unless nobody can.
    #[cold]
    fn held_error(self, at: u64, word: Word) -> Error {
        let slot = self.core.slots.get(word.owner());
        let is_held =
            slot.is_some_and(|slot| slot.is_leased.load(Ordering::Acquire)) && !self.is_beyond(word);
        // A thread may have ended between the two looks at the word and its log.
        let now = self.core.memory.word(at).map_or(word, lock::load);
        match is_held || now != word {
            true => Error::Conflict,
            false => Error::damaged(at, "a lock that nobody holds"),
        }
    }

    /// Whether no transaction can have had this clock.
    fn is_beyond(self, version: Word) -> bool {
        version.clock() > self.core.limit.load(Ordering::Acquire)
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
        for (seen, slot) in state.seen.iter_mut().zip(&self.core.slots) {
            *seen = (*seen).max(slot.clock.load(Ordering::Acquire));
        }
        // A writer publishes its clock before it releases a lock, so this one is among them.
        let seen = &mut state.seen[version.owner()];
        *seen = (*seen).max(version.clock());
        self.validate(state)
    }

    /// Everything read is still what it was.
    fn validate(self, state: &mut State) -> Result<()> {
        for i in 0..state.reads.len() {
            let (at, version) = state.reads[i];
            let now = lock::load(self.core.memory.word(at)?);
            let is_same = match now.index_of(self.core.base, self.context.slot) {
                Some(index) => state.held.get(index).is_some_and(|held| held.before == version),
                None => now == version,
            };
            if !is_same {
                return Err(state.doom(Error::Conflict));
            }
        }
        Ok(())
    }

    /// Copies `words` at `home` that the lock at `lock_at` protects into `into`, or returns the private copy of them.
    ///
    /// # Safety
    /// `into` has room for them.
    #[inline]
    pub unsafe fn read(
        self,
        lock_at: u64,
        home: u64,
        words: usize,
        into: *mut u64,
    ) -> Result<Option<Private<'t>>> {
        let (core, slot) = (self.core, self.context.slot);
        core.memory.check_object(lock_at, 8)?;
        let word = core.memory.word(lock_at)?;
        let mut spins = 0;
        loop {
            let before = lock::load(word);
            if before.index_of(core.base, slot).is_some() {
                let mut state = self.context.state.borrow_mut();
                let index = self.lock_in(&mut state, lock_at)?;
                let found = state.shadow_of(index, home).filter(|shadow| shadow.words as usize >= words);
                if let Some(shadow) = found {
                    return Ok(Some(self.private(shadow)));
                }
                // SAFETY: passed on. Nobody else changes it while this transaction holds the lock.
                unsafe { core.memory.load(home, into, words)? };
                return Ok(None);
            }
            if !before.is_held(core.base) {
                // SAFETY: passed on.
                unsafe { core.memory.load(home, into, words)? };
                fence(Ordering::Acquire);
                if lock::load(word) == before {
                    let mut state = self.context.state.borrow_mut();
                    state.reads.push((lock_at, before));
                    self.see(&mut state, before)?;
                    self.look_around(&mut state)?;
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

    /// A transaction that goes round in circles because of what others did meanwhile finds out.
    #[inline]
    fn look_around(self, state: &mut State) -> Result<()> {
        if state.reads.len() >= state.look_around_at {
            state.look_around_at = state.reads.len() * 2;
            self.validate(state)?;
        }
        Ok(())
    }

    /// The private copy of `words` words at `home`, which the lock at `lock_at` protects; made if there is none.
    #[inline]
    pub fn change(self, lock_at: u64, home: u64, words: usize) -> Result<Private<'t>> {
        self.core.memory.check_object(lock_at, 8)?;
        // The lock is a full barrier: what is behind it would be loaded only after it.
        self.core.memory.prefetch(home);
        let mut state = self.context.state.borrow_mut();
        let index = self.lock_in(&mut state, lock_at)?;
        if let Some(shadow) = state.shadow_of(index, home) {
            return match shadow.words as usize >= words {
                true => Ok(self.private(shadow)),
                false => Err(state.doom(Error::damaged(home, "objects overlap"))),
            };
        }
        let data = state.add_shadow(index, home, words, false);
        // SAFETY: the arena has room for the words.
        unsafe { self.core.memory.load(home, data, words)? };
        Ok(self.private_at(data))
    }

    fn private(self, shadow: &Shadow) -> Private<'t> {
        self.private_at(shadow.data)
    }

    fn private_at(self, data: *mut u64) -> Private<'t> {
        // SAFETY: `add_shadow` puts a word in front of the data; it lives until the transaction ends, which `'t` outlives
        // only in guards that borrow the transaction.
        Private { data, borrow: unsafe { &*data.sub(1).cast::<Cell<i64>>() } }
    }

    /// Something is not what it should be. If the transaction read it while others changed it, it is retried; otherwise it
    /// is damage.
    #[cold]
    pub fn distrust(self, error: Error) -> Error {
        let mut state = self.context.state.borrow_mut();
        match self.validate(&mut state) {
            Ok(()) => state.doom(error),
            Err(conflict) => conflict,
        }
    }

    /// The type that the object at `at` says it is of. What was read of it must have been checked by its lock.
    #[inline]
    pub fn tag_at(self, at: u64) -> Result<u16> {
        if let Some(index) =
            lock::load(self.core.memory.word(at)?).index_of(self.core.base, self.context.slot)
        {
            let state = self.context.state.borrow();
            if let Some(shadow) = state.held.get(index).and_then(|_| state.shadow_of(index, at + 8)) {
                // SAFETY: the private copy of a header has two words.
                return Ok(Meta(unsafe { *shadow.data }).tag());
            }
        }
        Ok(Meta(self.core.memory.word(at + 8)?.load(Ordering::Acquire)).tag())
    }

    /// The two words of an object's header behind the lock, to be read or changed.
    pub fn header(self, at: u64) -> Result<Header<'t>> {
        Ok(Header(self.change(at, at + 8, 2)?))
    }
}

/// The private copy of an object's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<'t>(Private<'t>);

/// References and type of an object: strong 28 bits, weak 20 bits, type + 1 in 16 bits; 0 if it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta(pub u64);

pub(crate) const STRONG_MAX: u64 = (1 << 28) - 1;
pub(crate) const WEAK_MAX: u64 = (1 << 20) - 1;

impl Meta {
    pub fn new(strong: u64, weak: u64, tag: u16) -> Meta {
        Meta(u64::from(tag) << 48 | weak << 28 | strong)
    }
    pub fn strong(self) -> u64 {
        self.0 & STRONG_MAX
    }
    pub fn weak(self) -> u64 {
        self.0 >> 28 & WEAK_MAX
    }
    /// 0 if the block is free.
    pub fn tag(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

impl Header<'_> {
    pub fn meta(self) -> Meta {
        // SAFETY: the private copy has two words; headers are not borrowed.
        Meta(unsafe { *self.0.data })
    }
    pub fn set_meta(self, meta: Meta) {
        // SAFETY: as above.
        unsafe { *self.0.data = meta.0 }
    }
    pub fn link(self) -> u64 {
        // SAFETY: as above.
        unsafe { *self.0.data.add(1) }
    }
    pub fn set_link(self, link: u64) {
        // SAFETY: as above.
        unsafe { *self.0.data.add(1) = link }
    }
}

/// Where an object's value lies.
pub(crate) fn value_at(at: u64) -> u64 {
    at + HEADER
}
