//! Taking and freeing blocks as part of a transaction.
//!
//! A new block's lock is taken first, so that a thread that still knows its old contents sees nothing of it, and its
//! clock follows that of the transaction that freed it. Its contents are part of the record; those of a large block
//! are written in place, past the caches, and are durable before the record is written.

use super::shadow::HEADER_KIND;
use super::state::State;
use super::{Private, RawTx, value_at};
use crate::block::{CAPACITY_AT, LIVE_AT, Meta};
use crate::error::{Error, Result};
use crate::layout::PAGE;
use crate::space::{self, HEADER, Kind, Taken};

/// Bytes written past the caches at a time.
const ZERO_WORDS: usize = 512;

impl<'t> RawTx<'t> {
    /// A new object without references to it but `strong`; the caller fills its value, of which it gets the private copy.
    pub fn allocate(self, tag: u16, strong: u64, value_words: usize) -> Result<(u64, *mut u64)> {
        let bytes = HEADER + value_words as u64 * 8;
        let at = self.take_block(bytes)?;
        let index = self.lock(at)?;
        let state = &mut *self.context.state();
        let data = state.add_shadow(index, at + 8, 2, (HEADER_KIND, true));
        // SAFETY: the shadow has two words.
        unsafe {
            *data = Meta::new(strong, 0, tag).0;
            *data.add(1) = 0;
        }
        Ok((at, state.add_shadow(index, value_at(at), value_words, (tag, true))))
    }

    /// A new array block. Its elements are placed one by one, or filled in place if it is a large block.
    pub fn allocate_array(self, tag: u16, bytes: u64, capacity: u64) -> Result<u64> {
        let at = self.take_block(bytes)?;
        let index = self.lock(at)?;
        let state = &mut *self.context.state();
        let data = state.add_shadow(index, at + 8, 2, (HEADER_KIND, true));
        // SAFETY: the shadow has two words.
        unsafe {
            *data = Meta::new(1, 0, tag).0;
            *data.add(1) = 0;
        }
        for (offset, word) in [(LIVE_AT, 0), (CAPACITY_AT, capacity)] {
            let data = state.add_shadow(index, at + offset, 1, (0, true));
            // SAFETY: the shadow has a word.
            unsafe { *data = word };
        }
        Ok(at)
    }

    /// A private copy of words that hold nothing yet, for a value of type `kind` if that has pointers; what the file has there is
    /// not read.
    pub fn place(self, lock: u64, home: u64, words: usize, kind: u16) -> Result<Private<'t>> {
        self.core().memory.examine_locked(lock, home, words).map_err(|error| self.doom(error))?;
        let index = self.lock(lock)?;
        let mut state = self.context.state();
        if let Some(shadow) = state.shadow_of(index, home) {
            return Ok(self.private(shadow));
        }
        let data = state.add_shadow(index, home, words, (kind, true));
        Ok(self.private_at(data))
    }

    /// Writes in place into a large block that this transaction has taken: whole lines behind the first.
    pub fn fill_large(self, at: u64, words: &[u64]) -> Result<()> {
        self.core().memory.save(at, words.len() as u64 * 8);
        self.core().memory.stream(at, words)?;
        self.context.state().streamed.push((at, words.len() as u64 * 8));
        Ok(())
    }

    /// Frees a block whose lock this transaction holds and whose value has been destroyed.
    pub fn free(self, at: u64) -> Result<()> {
        let header = self.header(at)?;
        header.set_meta(Meta(0));
        header.set_link(0);
        let (memory, layout) = (&self.core().memory, &self.core().layout);
        let page =
            space::page_of(layout, at).ok_or_else(|| Error::damaged(at, "a block outside the pages"))?;
        let table = layout.page_table() + page * 8;
        let mut state = self.context.state();
        let index = self.lock_in(&mut state, at)?;
        state.forget_others(self.core(), index, at + 8);
        // The last word about the page, which this transaction itself may have said.
        let said =
            state.words.iter().rev().find(|&&(home, _)| home == table).map(|&(_, word)| Kind::of(word));
        match said.map_or_else(|| space::kind(memory, layout, page), Ok)? {
            Kind::Small(_) => state.freed.push(at),
            Kind::Large(pages) if at == layout.bytes(page) => {
                // Of a page that is free nobody knows any more what it should be.
                memory.examine(at, pages.saturating_mul(PAGE)).map_err(|error| state.doom(error))?;
                state.words.push((table, 0));
                state.freed_pages.push((page, pages));
            }
            _ => return Err(state.doom(Error::damaged(at, "a block in a page without blocks"))),
        }
        Ok(())
    }

    fn take_block(self, bytes: u64) -> Result<u64> {
        let state = &mut *self.context.state();
        let taken = match space::class_of(bytes) {
            Some(class) => self.take_small(state, class),
            None => {
                self.take_pages(state, None, bytes.div_ceil(PAGE)).map(|page| self.core().layout.bytes(page))
            }
        };
        let at = taken.map_err(|error| state.doom(error))?;
        if space::class_of(bytes).is_some() {
            state.allocated.push(at);
        }
        Ok(at)
    }

    #[inline]
    fn take_small(self, state: &mut State, class: usize) -> Result<u64> {
        loop {
            let active = &mut state.active[class];
            if let (Some(page), Some(offset)) = (active.page, active.free.pop()) {
                return Ok(self.core().layout.bytes(page) + u64::from(offset));
            }
            self.refill(state, class)?;
        }
    }

    #[cold]
    fn refill(self, state: &mut State, class: usize) -> Result<()> {
        let (memory, layout, space) = (&self.core().memory, &self.core().layout, &self.core().space);
        if let Some(page) = state.active[class].page.take() {
            // Others may have freed some of its blocks.
            let free = self.free_blocks(state, class, page)?;
            if !free.is_empty() {
                state.active[class] = space::Active { page: Some(page), free };
                return Ok(());
            }
            // A page that this transaction took stays with it until it ends.
            if !state.pages.iter().any(|&(first, _, _)| first == page) {
                space.put_back(memory, layout, class, page, 0)?;
            }
        }
        let page = self.take_pages(state, Some(class), 1)?;
        let free = self.free_blocks(state, class, page)?;
        state.active[class] = space::Active { page: Some(page), free };
        Ok(())
    }

    /// The free blocks of a page of this thread, beginning at a different one in each page. Objects read by a
    /// transaction and others changed by the previous one are then seldom at the same offset of their pages: a
    /// processor takes a load for a store that waits behind a fence if the lower twelve bits of their addresses are
    /// the same, and the load waits for the fence.
    fn free_blocks(self, state: &State, class: usize, page: u64) -> Result<Vec<u32>> {
        let (memory, layout) = (&self.core().memory, &self.core().layout);
        let (start, size) = (layout.bytes(page), space::block_bytes(class));
        let mut free = Vec::new();
        let (blocks, middle) = (PAGE / size, PAGE / size / 2);
        for offset in (0..blocks).map(|block| (block + page * 5 + middle) % blocks * size) {
            let at = start + offset;
            let is_free = memory.word(at + 8)?.load(std::sync::atomic::Ordering::Acquire) == 0;
            if is_free
                && !crate::lock::load(memory.word(at)?).is_held(self.core().base)
                && !state.freed.contains(&at)
            {
                free.push(offset as u32);
            }
        }
        Ok(free)
    }

    /// Pages for blocks of a size, or for one large block; what is in them is zero, unless they have blocks of the size.
    fn take_pages(self, state: &mut State, class: Option<usize>, count: u64) -> Result<u64> {
        let (memory, layout, space) = (&self.core().memory, &self.core().layout, &self.core().space);
        let taken = loop {
            let taken = space.take(memory, layout, class, count)?;
            match taken.is_partial {
                true if memory.examine(layout.bytes(taken.page), PAGE).is_ok() => return Ok(taken.page),
                // It is damaged: nobody gives it back, so nobody is given it again.
                true => {}
                false => break taken,
            }
        };
        let page = taken.page;
        memory.taken(page..page + count);
        state.pages.push((page, count, class));
        self.clean(state, &taken)?;
        if !taken.is_zero {
            let (at, bytes, zeros) = (layout.bytes(page), count * PAGE, [0; ZERO_WORDS]);
            let is_logged = memory.region().is_some();
            for at in (at..at + bytes).step_by(ZERO_WORDS * 8) {
                // Where a log has the last word, what is zero is so for good.
                if is_logged && memory.load_words(at, ZERO_WORDS)? == zeros {
                    continue;
                }
                memory.save(at, ZERO_WORDS as u64 * 8);
                memory.stream(at, &zeros)?;
                if is_logged {
                    state.streamed.push((at, ZERO_WORDS as u64 * 8));
                }
            }
            if !is_logged {
                state.streamed.push((at, bytes));
            }
        }
        let kind = class.map_or(Kind::Large(count), Kind::Small);
        state.words.push((layout.page_table() + page * 8, kind.entry()));
        Ok(page)
    }

    /// Waits until the old contents of pages that were just taken are no longer needed: no record of them is left to
    /// be replayed, and no other transaction may know them.
    pub(super) fn clean(self, state: &State, taken: &Taken) -> Result<()> {
        let Some(until) = taken.unclean_until else { return Ok(()) };
        self.core().checkpoint(self.core().epoch.load(std::sync::atomic::Ordering::Acquire))?;
        if !self.core().is_quiet(self.context.slot) {
            return Err(Error::Conflict);
        }
        // Only this transaction may know what was there.
        if state.freed_pages.is_empty() {
            self.core().space.cleaned(until);
        }
        Ok(())
    }
}
