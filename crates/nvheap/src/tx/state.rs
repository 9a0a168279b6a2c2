//! State of a thread for the transaction it runs.

use crate::arena::Arena;
use crate::core::Core;
use crate::error::Error;
use crate::lock::{self, OWNERS, Word};
use crate::snapshot::Snapshot;
use crate::space::{Active, CLASSES};
use crate::sync::AtomicU64;
use crate::tx::balances::{self, Balances};
use crate::tx::own::{Lent, Own};
use crate::tx::record::Record;
use crate::tx::shadow::Shadow;
use crate::tx::way::Way;
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

const NONE: u32 = u32::MAX;
/// Reads after which a transaction checks them for the first time, whether it has a reason to or not.
const LOOK_AROUND: usize = 1024;
/// Locks, private copies, reads or blocks for which room is kept for the next transaction.
const MANY: usize = 1 << 14;

/// A lock that is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    word: *const AtomicU64,
    pub before: Word,
    first: u32,
}

impl Held {
    /// Whether it is this one.
    #[inline]
    pub fn is(&self, word: &AtomicU64) -> bool {
        ptr::eq(self.word, word)
    }

    #[inline]
    pub fn release(&self, word: Word) {
        // SAFETY: a word of the heap's memory, which is mapped as long as the transaction runs.
        lock::release(unsafe { &*self.word }, word);
    }
}

/// Something that was read: its lock, and what that said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    word: *const AtomicU64,
    pub version: Word,
}

impl Seen {
    #[inline]
    pub fn now(&self) -> Word {
        // SAFETY: as of `Held`.
        lock::load(unsafe { &*self.word })
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub held: Vec<Held>,
    pub shadows: Vec<Shadow>,
    pub reads: Vec<Seen>,
    pub look_around_at: usize,
    /// Words without a lock: entries of the page table.
    pub words: Vec<(u64, u64)>,
    /// Blocks taken, and blocks freed.
    pub allocated: Vec<u64>,
    pub freed: Vec<u64>,
    /// Pages taken: first, count, and the size of their blocks.
    pub pages: Vec<(u64, u64, Option<usize>)>,
    /// Pages of large blocks freed: first and count.
    pub freed_pages: Vec<(u64, u64)>,
    /// Ranges written in place: large new blocks, and a record that the log does not hold.
    pub streamed: Vec<(u64, u64)>,
    /// The pages of that record: first and count.
    pub overflow: Option<(u64, u64)>,
    /// Objects without references, to be destroyed before the commit.
    pub dead: Vec<u64>,
    /// What pointers have been moved or dropped whose private copies do not show it; and the balances at the last look.
    pub moved: Balances,
    pub balances: Balances,
    pub doomed: Option<Error>,
    /// What it reads from, if not from what is there now.
    pub snapshot: Option<Arc<Snapshot>>,
    pub reads_lost: Option<usize>,
    pub record: Record,
    pub arena: Arena,
    /// The clocks of other threads' commits that this one knows to be over.
    pub seen: [u64; OWNERS],
    pub active: Vec<Active>,
}

impl State {
    /// The first error counts.
    #[cold]
    pub fn doom(&mut self, error: Error) -> Error {
        self.doomed.get_or_insert(error).clone()
    }

    #[inline]
    pub fn hold(&mut self, word: &AtomicU64, before: Word) {
        self.held.push(Held { word, before, first: NONE });
    }

    #[inline]
    pub fn has_read(&mut self, word: &AtomicU64, version: Word) {
        self.reads.push(Seen { word, version });
    }

    /// The private copy that begins at `home`.
    #[inline]
    pub fn shadow_of(&self, index: usize, home: u64) -> Option<&Shadow> {
        let mut next = self.held[index].first;
        while next != NONE {
            let shadow = &self.shadows[next as usize];
            if shadow.home == home {
                return Some(shadow);
            }
            next = shadow.next;
        }
        None
    }

    /// Room for a private copy.
    #[inline(always)]
    pub fn add_shadow(
        &mut self,
        index: usize,
        home: u64,
        words: usize,
        (kind, is_new): (u16, bool),
    ) -> *mut u64 {
        let start = self.arena.take(words + 1);
        // SAFETY: the arena has this word in front of the others.
        let data = unsafe {
            *start = 0;
            start.add(1)
        };
        let what = u32::from(kind) | if is_new { Shadow::NEW } else { 0 };
        let next = std::mem::replace(&mut self.held[index].first, self.shadows.len() as u32);
        self.shadows.push(Shadow { home, data, words: words as u32, next, what });
        data
    }

    /// Forgets the private copy at `home`: its value has been dropped.
    pub fn forget(&mut self, core: &Core, index: usize, home: u64) {
        self.forget_those(core, index, |other| other == home, false);
    }

    /// Forgets every private copy that a lock protects but the one at `home`: they have moved.
    pub fn forget_others(&mut self, core: &Core, index: usize, home: u64) {
        self.forget_those(core, index, |other| other != home, true);
    }

    fn forget_those(&mut self, core: &Core, index: usize, is_one: impl Fn(u64) -> bool, is_moved: bool) {
        let mut next = self.held[index].first;
        while next != NONE {
            let shadow = &mut self.shadows[next as usize];
            if is_one(shadow.home) && shadow.words > 0 {
                balances::forgotten(core, shadow, &mut self.moved, is_moved);
                (shadow.home, shadow.words) = (0, 0);
            }
            next = shadow.next;
        }
    }

    /// Private copies and reads are not needed any more. Nothing is stored that is what it should be.
    #[inline(always)]
    pub fn clear_copies(&mut self) {
        clear(&mut self.shadows);
        clear(&mut self.reads);
        if self.look_around_at != LOOK_AROUND {
            self.look_around_at = LOOK_AROUND;
        }
        self.arena.clear();
    }

    /// Whether the end of a commit takes more than releasing the locks.
    #[inline(always)]
    pub fn has_more(&self) -> bool {
        self.has_blocks() || self.overflow.is_some() || self.held.capacity() > MANY || self.record.is_large()
    }

    /// The transaction has ended; its copies have been cleared.
    pub fn clear(&mut self) {
        clear(&mut self.held);
        if self.has_blocks() {
            clear(&mut self.words);
            clear(&mut self.allocated);
            clear(&mut self.freed);
            clear(&mut self.pages);
            clear(&mut self.freed_pages);
            clear(&mut self.streamed);
            clear(&mut self.dead);
            clear(&mut self.moved);
        }
        if self.doomed.is_some() {
            self.doomed = None;
        }
        self.record.release();
    }

    /// Whether blocks were taken or freed.
    #[inline]
    pub fn has_blocks(&self) -> bool {
        let pages = self.pages.len() | self.freed_pages.len() | self.streamed.len();
        let blocks = self.words.len() | self.allocated.len() | self.freed.len() | self.dead.len();
        blocks | self.moved.len() | pages > 0
    }
}

/// What a large transaction needed is returned to the system.
#[inline(always)]
fn clear<T>(list: &mut Vec<T>) {
    if list.capacity() > MANY {
        *list = Vec::new();
    }
    if !list.is_empty() {
        list.clear();
    }
}

/// A log's thread and the transaction it runs.
#[derive(Debug)]
pub(crate) struct Context {
    /// The heap, for as long as it is borrowed.
    pub core: *const Core,
    pub slot: usize,
    /// Whether a transaction is running in which pointers can be dropped, and parts of it, one inside the other.
    pub depth: Cell<u32>,
    /// Whether the list of objects to be destroyed may have some.
    pub has_dead: Cell<bool>,
    /// Whether it reads from a snapshot.
    pub is_past: Cell<bool>,
    /// What the next try of the transaction reads.
    pub(super) way: Cell<Way>,
    /// Objects whose last handle this thread has dropped, to be looked at.
    pub dropped: RefCell<Vec<u64>>,
    state: Own<State>,
}

impl Context {
    pub fn new(core: &Core, slot: usize) -> Context {
        let state = State {
            held: Vec::new(),
            shadows: Vec::new(),
            reads: Vec::new(),
            look_around_at: LOOK_AROUND,
            words: Vec::new(),
            allocated: Vec::new(),
            freed: Vec::new(),
            pages: Vec::new(),
            freed_pages: Vec::new(),
            streamed: Vec::new(),
            overflow: None,
            dead: Vec::new(),
            moved: Vec::new(),
            balances: Vec::new(),
            doomed: None,
            snapshot: None,
            reads_lost: None,
            record: Record::default(),
            arena: Arena::default(),
            seen: [0; OWNERS],
            active: (0..CLASSES).map(|_| Active::default()).collect(),
        };
        let (dropped, state) = (RefCell::default(), Own::new(state));
        Context {
            core,
            slot,
            depth: Cell::new(0),
            has_dead: Cell::new(true),
            is_past: Cell::new(false),
            way: Cell::new(Way::Current),
            dropped,
            state,
        }
    }

    /// What the thread keeps for its transaction, for one function at a time.
    #[inline(always)]
    pub(super) fn state(&self) -> Lent<'_, State> {
        // SAFETY: functions that lend it give it back before they call one that does, and none calls the program meanwhile; tests
        // find one that does.
        unsafe { self.state.lend() }
    }

    /// The thread is done with the heap: others may use its pages.
    pub fn give_back(&self, core: &Core) {
        let mut state = self.state();
        for (class, active) in state.active.iter_mut().enumerate() {
            if let Some(page) = active.page.take() {
                // Only a hint is lost if it fails.
                let _ =
                    core.space.put_back(&core.memory, &core.layout, class, page, active.free.len() as u64);
            }
        }
    }

    /// Why the transaction cannot commit, if so.
    pub fn doomed(&self) -> Option<Error> {
        self.state().doomed.clone()
    }
}
