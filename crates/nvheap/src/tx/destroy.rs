//! Objects without references: destroyed as part of the transaction that removed the last one, and the rest after it.
//!
//! Destroying one may remove the last reference to others, and so on through a list of any length. A transaction
//! destroys a few; the rest is linked, through the objects' headers, into a list of the log, and destroyed by further
//! transactions. After a crash the destruction continues where it stopped. The state needed does not grow with the
//! list.

use super::{CAPACITY_AT, LIVE_AT, Meta, RawTx, value_at};
use crate::compare::WRONG;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::lock;
use crate::mutex::locked;
use crate::persist::TypeEntry;
use crate::space::HEADER;
use std::sync::atomic::Ordering;

/// Objects or elements destroyed in one transaction.
const BUDGET: u32 = 64;

/// The lists of a log: each a lock and the first object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List {
    /// To be destroyed.
    Dead,
    /// To be destroyed when their last handle goes.
    Kept,
}

/// Where the lock of a list is; the first object is named behind it.
pub(crate) fn list_at(layout: &Layout, log: usize, list: u64) -> u64 {
    layout.log_head(log) + list * 16
}

impl RawTx<'_> {
    fn list(self, log: usize, list: List) -> u64 {
        list_at(&self.core().layout, log, list as u64)
    }

    /// Whether a log's lists must not be used.
    fn are_lists_wrong(self, log: usize) -> bool {
        self.core().memory.is_head_wrong(self.core().layout.log_head(log))
    }

    fn change_list(self, log: usize, list: List) -> Result<*mut u64> {
        let lock = self.list(log, list);
        if self.are_lists_wrong(log) {
            return Err(self.doom(Error::damaged(self.core().layout.log_head(log), WRONG)));
        }
        let mut state = self.context.state();
        let index = self.lock_in(&mut state, lock)?;
        if let Some(shadow) = state.shadow_of(index, lock + 8) {
            return Ok(shadow.data);
        }
        let data = state.add_shadow(index, lock + 8, 1, (0, false));
        // SAFETY: room for a word.
        unsafe { self.core().memory.load(lock + 8, data, 1)? };
        Ok(data)
    }

    fn push(self, log: usize, list: List, at: u64) -> Result<()> {
        let first = self.change_list(log, list)?;
        let header = self.header(at)?;
        self.context.has_dead.set(true);
        // SAFETY: the private copy of the list's head has a word.
        unsafe {
            header.set_link(*first);
            *first = at;
        }
        Ok(())
    }

    /// The first object of a list, taken off it.
    fn pop(self, log: usize, list: List) -> Result<Option<u64>> {
        let first = self.change_list(log, list)?;
        // SAFETY: the private copy of the list's head has a word.
        let at = unsafe { *first };
        if at == 0 {
            return Ok(None);
        }
        let header = self.header(at)?;
        // SAFETY: as above.
        unsafe { *first = header.link() };
        header.set_link(0);
        Ok(Some(at))
    }

    /// Removes a reference. Called when a pointer is dropped, so errors are reported at the end of the transaction.
    pub fn release_strong(self, at: u64) {
        let released = self.header(at).and_then(|header| {
            let meta = header.meta();
            let Some(strong) = meta.strong().checked_sub(1) else {
                return Err(Error::damaged(at, "an object has more references than it counts"));
            };
            header.set_meta(Meta::new(strong, meta.weak(), meta.tag()));
            if strong == 0 {
                self.context.state().dead.push(at);
            }
            Ok(())
        });
        self.released(at, false, released);
    }

    /// A pointer was dropped, whether or not that could be counted.
    fn released(self, at: u64, is_weak: bool, released: Result<()>) {
        if let Err(error) = released {
            self.allow(at, is_weak, 1);
            self.doom(error);
        }
    }

    /// Removes a weak reference.
    pub fn release_weak(self, at: u64) {
        let released = self.header(at).and_then(|header| {
            let meta = header.meta();
            let Some(weak) = meta.weak().checked_sub(1) else {
                return Err(Error::damaged(at, "an object has more weak references than it counts"));
            };
            header.set_meta(Meta::new(meta.strong(), weak, meta.tag()));
            // Destroyed already, and kept for this reference only.
            match meta.strong() == 0 && weak == 0 && header.link() == at {
                true => self.free(at),
                false => Ok(()),
            }
        });
        self.released(at, true, released);
    }

    /// Before a commit: destroys objects that lost their last reference, or moves the rest to the list.
    pub(super) fn destroy_dead(self) -> Result<()> {
        let mut budget = BUDGET;
        loop {
            let next = self.context.state().dead.pop();
            let Some(at) = next else { return Ok(()) };
            if self.header(at)?.meta().strong() > 0 {
                continue;
            }
            if locked(&self.core().handles).contains_key(&at) {
                self.push(self.context.slot, List::Kept, at)?;
            } else if budget == 0 || !self.destroy(at, &mut budget)? {
                self.push(self.context.slot, List::Dead, at)?;
            }
        }
    }

    /// Destroys objects of a log's lists; true if there were any.
    pub fn reap(self, log: usize, list: List) -> Result<bool> {
        let Some(at) = self.pop(log, list)? else { return Ok(false) };
        self.context.state().dead.push(at);
        Ok(true)
    }

    /// True if a list of a log is empty or damaged.
    #[inline]
    pub fn is_list_empty(self, log: usize, list: List) -> Result<bool> {
        Ok(self.are_lists_wrong(log)
            || self.core().memory.word(self.list(log, list) + 8)?.load(Ordering::Acquire) == 0)
    }

    /// True if an object is kept alive only by its handles. A conflict while another transaction holds it, which may
    /// be about to drop its last pointer and has found a handle.
    pub fn is_kept(self, at: u64) -> Result<bool> {
        let word = self.core().memory.word(at)?;
        let before = lock::load(word);
        let meta = Meta(self.core().memory.word(at + 8)?.load(Ordering::Acquire));
        match before.is_held(self.core().base) || lock::load(word) != before {
            true => Err(Error::Conflict),
            false => Ok(meta.tag() != 0 && meta.strong() == 0),
        }
    }

    /// Takes an object off the list of those with handles only; it is destroyed by this transaction.
    pub fn unlink_kept(self, at: u64) -> Result<()> {
        for log in (0..self.core().slots.len()).filter(|&log| !self.are_lists_wrong(log)) {
            let first = self.change_list(log, List::Kept)?;
            // SAFETY: the private copy of the list's head has a word.
            let (mut next, mut previous) = (unsafe { *first }, None);
            let mut left = self.core().memory.bytes() / HEADER;
            while next != 0 && next != at {
                left -= 1;
                if left == 0 {
                    return Err(self.doom(Error::damaged(next, "a list leads back to itself")));
                }
                previous = Some(self.header(next)?);
                next = self.header(next)?.link();
            }
            if next == at {
                let after = self.header(at)?.link();
                match previous {
                    // SAFETY: as above.
                    None => unsafe { *first = after },
                    Some(header) => header.set_link(after),
                }
                self.header(at)?.set_link(0);
                self.context.state().dead.push(at);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Destroys an object; false if the budget ended before it was done.
    fn destroy(self, at: u64, budget: &mut u32) -> Result<bool> {
        let header = self.header(at)?;
        let tag = header.meta().tag();
        let entry = self.core().entry(tag);
        let entry =
            entry.ok_or_else(|| self.doom(Error::damaged(at, format!("no type has number {tag}"))))?;
        *budget -= 1;
        if entry.needs_drop {
            let words = entry.bytes.div_ceil(8);
            if !entry.is_array {
                self.drop_value(at, value_at(at), words, (tag, entry))?;
            } else if !self.drop_elements(at, (tag, entry), budget)? {
                return Ok(false);
            }
        }
        if self.header(at)?.meta().weak() > 0 {
            // Upgrading fails from now on; the mark tells the last weak reference that nothing is left to destroy.
            self.header(at)?.set_link(at);
        } else {
            self.free(at)?;
        }
        Ok(true)
    }

    fn drop_elements(self, at: u64, (tag, entry): (u16, &TypeEntry), budget: &mut u32) -> Result<bool> {
        let live = self.change(at, at + LIVE_AT, 1, 0)?.data;
        let capacity = self.change(at, at + CAPACITY_AT, 1, 0)?.data;
        // SAFETY: private copies of a word each.
        let (mut left, capacity) = unsafe { (*live, *capacity) };
        let shape = super::ArrayShape::new(capacity, entry.bytes as u64).filter(|_| left <= capacity);
        let shape = shape.ok_or_else(|| self.doom(Error::damaged(at, "an array longer than its block")))?;
        while left > 0 && *budget > 0 {
            left -= 1;
            *budget -= 1;
            let (lock, home) = shape.element(at, left);
            self.drop_value(lock, home, entry.bytes / 8, (tag, entry))?;
        }
        // SAFETY: as above.
        unsafe { *live = left };
        Ok(left == 0)
    }

    /// Releases what a value points to.
    fn drop_value(self, lock: u64, home: u64, words: usize, (tag, entry): (u16, &TypeEntry)) -> Result<()> {
        let private = self.change(lock, home, words, tag)?;
        if private.borrow.get() != 0 {
            return Err(self.doom(Error::Borrowed));
        }
        super::freeze(private.data);
        // SAFETY: the private copy has the words of the type.
        if !unsafe { (entry.is_valid)(private.data.cast()) } {
            return Err(self.doom(Error::damaged(home, format!("this is not a valid {}", entry.name))));
        }
        let depth = &self.context.depth;
        depth.set(depth.get() + 1);
        // SAFETY: it is a value, nobody has borrowed it, and it is forgotten afterwards.
        unsafe { (entry.drop)(private.data.cast()) };
        depth.set(depth.get() - 1);
        let mut state = self.context.state();
        let index = self.lock_in(&mut state, lock)?;
        state.forget(self.core(), index, home);
        Ok(())
    }
}
