//! Checks that a transaction's pointers and its reference counts agree.
//!
//! Safe code can keep a pointer beyond its transaction, in a thread-local variable, and can forget one. Both are
//! detected here, at the end of every transaction: the *balance* of an object is the change of its count less the
//! change of the number of pointers to it. It is 0 if pointers were made, copied, moved and dropped correctly.
//!
//! 1. Below 0: a pointer was stored or dropped that this transaction neither made nor found. The commit is refused.
//! 2. Above 0: a pointer was neither stored nor dropped. The object is lost if nothing else points to it, which is
//!    harmless; its place is remembered ([`crate::strays`]).
//! 3. A pointer to such a place is followed only if it is part of the file's contents, or if the balance shows that
//!    the transaction has one. So one of another transaction, heap or opening reaches nothing, whatever its place is
//!    used for by then.
//!
//! Rejected: a lifetime in the types of pointers. Every type stored in a heap would have it as a parameter.

use super::balances::{Balances, add_pointers, key};
use super::shadow::{HEADER_KIND, Shadow, private_words};
use super::state::State;
use super::{Meta, RawTx};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::lock;
use crate::pointer::offset;
use crate::strays;
use std::num::NonZeroU64;
use std::ops::Range;

/// The balance of what a private copy changes.
fn add_shadow(core: &Core, shadow: &Shadow, into: &mut Balances) -> Result<()> {
    // What the file has of something new is no value.
    let old = match shadow.is_new() {
        true => &[][..],
        false => core.memory.held(shadow.home, shadow.words as usize)?,
    };
    let new = private_words(shadow.data, shadow.words as usize);
    if shadow.kind() == HEADER_KIND {
        let (old, new) = (Meta(old.first().copied().unwrap_or(0)), Meta(new[0]));
        let at = shadow.home - 8;
        for (is_weak, old, new) in [(false, old.strong(), new.strong()), (true, old.weak(), new.weak())] {
            if old != new {
                into.push((key(at, is_weak), new as i64 - old as i64));
            }
        }
        return Ok(());
    }
    let Some(entry) = core.entry(shadow.kind()) else { return Ok(()) };
    for pointer in &entry.pointers {
        let at = pointer.word as usize;
        let (old, new) = (old.get(at).copied().unwrap_or(0), new.get(at).copied().unwrap_or(0));
        if old == new {
            continue;
        }
        for (word, sign) in [(old, 1), (new, -1)] {
            if let Some(word) = NonZeroU64::new(word) {
                into.push((key(offset(word), pointer.is_weak), sign));
            }
        }
    }
    Ok(())
}

/// Whether a private copy is that of a value with the pointers that the file has. Nothing is said of what is new, or a header.
#[inline]
fn has_same_pointers(core: &Core, shadow: &Shadow) -> bool {
    let Some(entry) = core.entry(shadow.kind()).filter(|_| !shadow.is_new()) else { return false };
    let words = shadow.words as usize;
    let Ok(old) = core.memory.held(shadow.home, words) else { return false };
    let new = private_words(shadow.data, words);
    entry.pointers.iter().map(|pointer| pointer.word as usize).all(|at| old.get(at) == new.get(at))
}

/// Computes the balances that there are.
fn balances<'s>(core: &Core, state: &'s mut State) -> Result<&'s Balances> {
    let State { shadows, moved, balances: found, .. } = state;
    found.clear();
    for shadow in shadows.iter().filter(|shadow| shadow.kind() != 0 && shadow.words != 0) {
        add_shadow(core, shadow, found)?;
    }
    found.extend_from_slice(moved);
    found.sort_unstable();
    found.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        kept.1 += if is_same { next.1 } else { 0 };
        is_same
    });
    Ok(found)
}

impl RawTx<'_> {
    /// True if this transaction may have changed an object: a change holds its lock until the end.
    #[inline]
    pub fn has_changed(self, word: NonZeroU64) -> Result<bool> {
        let lock = lock::load(self.core().memory.lock_word(offset(word))?);
        Ok(!lock.is_free() && lock.index_of(self.core().base, self.context.slot).is_some())
    }

    /// How many objects it has read.
    #[inline]
    pub fn reads(self) -> usize {
        self.context.state().reads.len()
    }

    /// Whether these reads are of objects that nobody has changed since, nor this transaction.
    #[inline]
    pub fn are_unchanged(self, reads: Range<usize>) -> bool {
        let state = self.context.state();
        state.reads.get(reads).is_some_and(|reads| reads.iter().all(|read| read.now() == read.version))
    }

    /// Before a commit: refuses pointers that are not this transaction's.
    #[inline]
    pub(super) fn audit(self, state: &mut State) -> Result<()> {
        // Nothing is stored that need not be: a commit's fence waits for it.
        let is_same = |shadow: &Shadow| shadow.kind() == 0 || has_same_pointers(self.core(), shadow);
        match state.moved.is_empty() && state.shadows.iter().all(is_same) {
            true => Ok(()),
            false => self.audit_pointers(state),
        }
    }

    #[inline(never)]
    fn audit_pointers(self, state: &mut State) -> Result<()> {
        let found = balances(self.core(), state)?;
        if let Some(&(key, _)) = found.iter().find(|&&(_, balance)| balance < 0) {
            return Err(state.doom(Error::Stray { offset: key >> 1 }));
        }
        self.remember(found);
        Ok(())
    }

    fn remember(self, found: &Balances) {
        let strays = found.iter().filter(|&&(_, balance)| balance > 0);
        strays.for_each(|&(key, _)| strays::add(self.core().brand, key >> 1));
    }

    /// Before everything is undone: remembers the pointers that outlive it.
    #[inline(never)]
    pub(super) fn audit_undone(self, state: &mut State) {
        if let Ok(found) = balances(self.core(), state) {
            self.remember(found);
        }
    }

    /// A pointer without a count, or a count without a pointer, is as it should be: `gained` more are counted.
    pub fn allow(self, at: u64, is_weak: bool, gained: i64) {
        self.context.state().moved.push((key(at, is_weak), -gained));
    }

    /// Pointers of a value were written in place, or (`sign` is 1) are about to be stored a second time.
    pub fn note_pointers(self, tag: u16, words: &[u64], sign: i64) {
        if let Some(entry) = self.core().entry(tag) {
            add_pointers(entry, words, sign, &mut self.context.state().moved);
        }
    }

    /// Refuses to follow a pointer, which lies at `place`, if it is not this transaction's.
    #[inline(always)]
    pub fn trust<P>(self, place: *const P, word: NonZeroU64, is_weak: bool) -> Result<()> {
        match strays::any() {
            false => Ok(()),
            true => self.examine(place.cast(), word, is_weak),
        }
    }

    /// Whether the reference of a pointer that is being dropped may be given back: a stray pointer's is not, and the transaction is
    /// refused.
    ///
    /// # Safety
    /// The pointer lies at `place`, and nobody looks at it again.
    #[inline(always)]
    pub unsafe fn trust_dropped(self, place: *mut u64, word: NonZeroU64, is_weak: bool) -> bool {
        // SAFETY: passed on.
        !strays::any() || unsafe { self.examine_dropped(place, word, is_weak) }
    }

    /// # Safety
    /// As of [`RawTx::trust_dropped`].
    #[cold]
    unsafe fn examine_dropped(self, place: *mut u64, word: NonZeroU64, is_weak: bool) -> bool {
        let examined = self.examine(place, word, is_weak);
        if self.context.state().arena.contains(place) {
            // The value stays there until another replaces it: its balance is that of a value without this pointer.
            // SAFETY: the word of the pointer.
            unsafe { *place = 0 };
        }
        if let Err(error) = &examined {
            self.allow(offset(word), is_weak, 1);
            self.doom(error.clone());
        }
        examined.is_ok()
    }

    #[cold]
    fn examine(self, place: *const u64, word: NonZeroU64, is_weak: bool) -> Result<()> {
        let (core, at) = (self.core(), offset(word));
        if !strays::has(core.brand, at) {
            return Ok(());
        }
        let mut state = self.context.state();
        let state = &mut *state;
        let least = if state.arena.contains(place) {
            let copy = |shadow: &&Shadow| {
                let behind = shadow.data.wrapping_add(shadow.words as usize);
                (shadow.data.cast_const()..behind.cast_const()).contains(&place)
            };
            // Other copies are those of what the file holds.
            let Some(shadow) = state.shadows.iter().find(copy) else { return Ok(()) };
            let index = (place.addr() - shadow.data.addr()) / 8;
            let old = core.memory.held(shadow.home, shadow.words as usize)?;
            if !shadow.is_new() && old[index] == word.get() {
                return Ok(());
            }
            0
        } else {
            1
        };
        let found = balances(core, state)?;
        let balance =
            found.iter().find(|&&(of, _)| of == key(at, is_weak)).map_or(0, |&(_, balance)| balance);
        match balance >= least {
            true => Ok(()),
            false => Err(state.doom(Error::Stray { offset: at })),
        }
    }
}
