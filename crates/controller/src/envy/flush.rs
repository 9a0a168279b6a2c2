//! Flushes from the buffer to flash: the oldest page returns to the pool it came from.

use super::{Envy, NO_SEGMENT, NOTHING, Role};
use nvlab_medium::Store;
use nvlab_units::{BlockId, Ppa, Ticket, Time};

impl<S: Store> Envy<S> {
    /// Queues flushes of pages above `flush_at`, as far as the spare segments allow.
    #[inline]
    pub(super) fn drain(&mut self, at: Time) {
        while self.buffer.wants_flush() && self.flush_next(at, false).is_some() {}
    }

    /// Without a buffer: flushes the page just stored; returns when it is in flash.
    #[inline]
    pub(super) fn flush_through(&mut self, at: Time) -> Time {
        let place = self.buffer.flushed;
        let now = self.flush_next(at, true).expect("a flush that was forced");
        self.wait_for_place(now, place)
    }

    /// Waits until the slot for the next page is free.
    #[inline]
    pub(super) fn wait_for_slot(&mut self, at: Time) -> Time {
        let Some(oldest) = self.buffer.oldest() else { return at };
        let mut now = at;
        while self.buffer.flushed <= oldest {
            now = self.flush_next(now, true).expect("a flush that was forced");
        }
        now = self.wait_for_place(now, oldest);
        if now > at {
            self.stats.buffer_wait += now - at;
        }
        now
    }

    /// Waits until the page at a place of the FIFO is in flash.
    #[inline]
    fn wait_for_place(&mut self, at: Time, place: u64) -> Time {
        let slot = self.buffer.index(place);
        let held = self.buffer.slots[slot as usize];
        if held.ticket == Ticket::default() {
            return at;
        }
        let now = self.wait_for(held.die, held.ticket, at);
        self.buffer.slots[slot as usize].ticket = Ticket::default();
        now
    }

    /// Queues the flush of the oldest page; returns when that was possible. `None`: its die has no erased
    /// segment at `at`, and `force` is not set.
    #[inline]
    pub(super) fn flush_next(&mut self, at: Time, force: bool) -> Option<Time> {
        let slot = self.buffer.index(self.buffer.flushed);
        let held = self.buffer.slots[slot as usize];
        if held.owner == NOTHING {
            self.buffer.slots[slot as usize].ticket = Ticket::default();
            self.buffer.flushed += 1;
            return Some(at);
        }
        let now = self.make_room(at, held.origin, force)?;
        let active = self.pools[held.origin as usize].active;
        let segment = &mut self.segments[active as usize];
        let page = active * self.nor.geometry().pages_per_block + segment.next;
        segment.next += 1;
        segment.live += 1;
        segment.birth = self.flushes;
        self.p2l[page as usize] = held.owner;
        self.set_location(held.owner, page);
        let die = self.pools[held.origin as usize].die;
        let transfer = self.transfer();
        let start = match self.dies.len() {
            1 => now,
            _ => self.path.book(now, now, transfer).start,
        };
        let ticket = if S::KEEPS {
            self.program_slot(start, slot, page, held.owner)
        } else {
            self.nor.program_pages(start, Ppa(page), 1, transfer, &[]).expect("a page that is erased")
        };
        self.segments[active as usize].last = ticket;
        let slot = &mut self.buffer.slots[slot as usize];
        (slot.owner, slot.die, slot.ticket) = (NOTHING, die, ticket);
        self.buffer.flushed += 1;
        self.flushes += 1;
        self.stats.flushed_pages += 1;
        self.stats.flush_time += transfer + self.nor.program_time(BlockId(active));
        Some(now)
    }

    /// Ensures that a pool's active segment has an erased page.
    #[inline]
    fn make_room(&mut self, at: Time, pool: u32, force: bool) -> Option<Time> {
        let active = self.pools[pool as usize].active;
        if active != NO_SEGMENT && self.segments[active as usize].next < self.nor.geometry().pages_per_block {
            return Some(at);
        }
        self.open_segment(at, pool, force)
    }

    #[cold]
    fn open_segment(&mut self, at: Time, pool: u32, force: bool) -> Option<Time> {
        let mut now = at;
        loop {
            let pages = self.nor.geometry().pages_per_block;
            let state = &mut self.pools[pool as usize];
            if state.active != NO_SEGMENT {
                if self.segments[state.active as usize].next < pages {
                    return Some(now);
                }
                state.closed.push_back(state.active);
                state.active = NO_SEGMENT;
            }
            if let Some(fresh) = state.fresh.pop() {
                state.active = fresh;
                self.put_in_service(now, fresh, pool, self.begun);
                self.begun += 1;
                self.record_segment(now, fresh);
                return Some(now.max(self.written));
            }
            now = self.clean(now, pool, force)?;
        }
    }

    /// Puts an erased segment into service in a pool. One found by a recovery that is not blank (the medium is
    /// damaged) is erased first.
    pub(super) fn put_in_service(&mut self, at: Time, number: u32, pool: u32, order: u64) {
        if std::mem::take(&mut self.segments[number as usize].unseen) && !self.is_blank(number) {
            self.segments[number as usize].erases += 1;
            self.queue_erase(at, number);
        }
        let segment = &mut self.segments[number as usize];
        assert_eq!((segment.role, segment.live, segment.next), (Role::Erased, 0, 0), "{segment:?}");
        (segment.role, segment.pool, segment.order) = (Role::InService, pool, order);
    }

    fn is_blank(&self, number: u32) -> bool {
        let first = self.layout_first(number);
        let mut page = vec![0; self.nor.geometry().unit_bytes as usize];
        (first..first + self.nor.geometry().pages_per_block).all(|at| {
            self.peek(at, 0, &mut page);
            page.iter().all(|&byte| byte == 0xFF)
        })
    }
}
