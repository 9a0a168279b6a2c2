//! Host accesses: words and pages, loaded, stored and trimmed.

use super::buffer::Slot;
use super::{Envy, NOTHING, SLOT};
use crate::ControllerError;
use crate::cleaning::SegmentCleaning;
use nvlab_medium::Store;
use nvlab_medium::banks::Access;
use nvlab_units::{Die, Extent, Interruption, Lpa, Served, Span, Ticket, Time};

/// The requested part of one page.
#[derive(Clone, Copy, Debug)]
struct Part {
    lpa: Lpa,
    /// First byte within the page, and how many.
    within: u32,
    bytes: u32,
}

impl<S: Store> Envy<S> {
    /// Loads `bytes` at `offset`, word by word. `into` receives them if the media keep payload, otherwise it
    /// may be empty. Bytes never stored read as zero.
    pub fn load(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Served, ControllerError> {
        ControllerError::check_window(offset, bytes, self.capacity_bytes())?;
        self.advance(at);
        let (mut first, mut now, mut done) = (None, at, 0);
        while let Some(part) = self.part(offset, bytes, done) {
            let location = self.l2p[part.lpa.index()];
            let (die, cycle) = self.reading(location);
            let words = self.words(part);
            let span = self.lookup(part.lpa) + (self.config.control + cycle) * words;
            let served = self.access(now, die.map(|die| (die, words)), span);
            if S::KEEPS {
                self.peek(location, part.within, &mut into[done as usize..][..part.bytes as usize]);
            }
            self.stats.loads += words;
            self.stats.unwritten_loads += if location == NOTHING { words } else { 0 };
            self.stats.load_time += span;
            first.get_or_insert(served.start);
            (now, done) = (served.end, done + part.bytes);
        }
        Ok(Served { start: first.unwrap_or(at), end: now })
    }

    /// Stores `bytes` at `offset`, word by word; durable at the end; after a power cut before that every word is
    /// old or new. `data` holds them if the media keep payload, otherwise it may be empty.
    pub fn store(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        data: &[u8],
    ) -> Result<Served, ControllerError> {
        ControllerError::check_window(offset, bytes, self.capacity_bytes())?;
        self.advance(at);
        let (mut first, mut now, mut done) = (None, at, 0);
        while let Some(part) = self.part(offset, bytes, done) {
            let words = self.words(part);
            let span = (self.config.control + self.sram.config().write.first) * words;
            let data = if S::KEEPS { &data[done as usize..][..part.bytes as usize] } else { &[] };
            let crosses = words == 1 && part.bytes == self.nor.geometry().unit_bytes;
            let served = self.store_part(now, part, crosses, span, data)?;
            self.stats.stores += words;
            first.get_or_insert(served.start);
            (now, done) = (served.end, done + part.bytes);
        }
        Ok(Served { start: first.unwrap_or(at), end: now })
    }

    /// The next part, within one page, after the first `done` bytes of a range.
    #[inline]
    fn part(&self, offset: u64, bytes: u32, done: u32) -> Option<Part> {
        if done == bytes {
            return None;
        }
        let (offset, page) = (offset + done as u64, self.nor.geometry().unit_bytes);
        let (lpa, within) = (Lpa((offset / page as u64) as u32), (offset % page as u64) as u32);
        Some(Part { lpa, within, bytes: (bytes - done).min(page - within) })
    }

    /// Words of the host's bus that a part overlaps.
    #[inline]
    fn words(&self, part: Part) -> u64 {
        let shift = self.config.word_bytes.trailing_zeros();
        (((part.within + part.bytes - 1) >> shift) - (part.within >> shift) + 1) as u64
    }

    /// The die and the cycle time of a read from a location.
    #[inline]
    fn reading(&self, location: u32) -> (Option<Die>, Span) {
        match location & SLOT {
            0 => (Some(self.die_of(location)), self.nor.cells().config.timing.read[0]),
            _ => (None, self.sram.config().read.first),
        }
    }

    #[inline]
    pub(super) fn die_of(&self, page: u32) -> Die {
        self.layout.die_of(self.layout.block_of(nvlab_units::Ppa(page)))
    }

    /// The time to look up a page's mapping, on top of the access itself.
    #[inline]
    fn lookup(&mut self, lpa: Lpa) -> Span {
        if self.mappings.is_empty() {
            return Span::ZERO;
        }
        let place = lpa.index() % self.mappings.len();
        if std::mem::replace(&mut self.mappings[place], lpa.0) == lpa.0 {
            return Span::ZERO;
        }
        self.stats.mapping_misses += 1;
        self.sram.config().read.first
    }

    /// Occupies the controller for a host access, and the die that is read, if any: `flash` is the die and the number
    /// of cycles.
    #[inline]
    pub(super) fn access(&mut self, at: Time, flash: Option<(Die, u64)>, span: Span) -> Served {
        if self.dies.len() == 1 {
            return self.nor.occupy(at, Die(0), flash.map_or(0, |flash| flash.1), span);
        }
        let served = self.port.foreground(at, span, &Interruption::Wait);
        match flash {
            None => served,
            Some((die, reads)) => self.nor.occupy(served.start, die, reads, span),
        }
    }

    /// Stores a part of a page, which takes `span` once the page is in SRAM. If `crosses`, it is a whole page in one
    /// transfer and nothing is copied; the first of several words does not tell that the others follow.
    #[inline]
    fn store_part(
        &mut self,
        at: Time,
        part: Part,
        crosses: bool,
        span: Span,
        data: &[u8],
    ) -> Result<Served, ControllerError> {
        let Part { lpa, within, .. } = part;
        let location = self.l2p[lpa.index()];
        let to_hold = self.transaction.must_hold(lpa);
        self.stats.store_time += span;
        if location & SLOT != 0 && location != NOTHING && !to_hold {
            let lookup = self.lookup(lpa);
            let served = self.access(at, None, lookup + span);
            self.stats.buffer_hits += 1;
            self.written = self.written.max(served.end);
            if S::KEEPS {
                self.store_in_place((served.start, served.end), location & !SLOT, within, data);
            }
            return Ok(served);
        }
        if to_hold {
            self.transaction.check_room()?;
        }
        // Writes to SRAM are serialised, also if two hosts store at the same time.
        let ready = self.wait_for_slot(at.max(self.written)).max(self.written);
        // Only now: waiting may have moved the page.
        let location = self.l2p[lpa.index()];
        let mut copy = self.lookup(lpa);
        let mut flash = None;
        if location != NOTHING && !crosses {
            flash = self.reading(location).0.map(|die| (die, self.path_cycles()));
            copy += self.transfer();
            self.stats.copy_time += self.transfer();
            self.stats.copies_on_write += 1;
        }
        let copied = if copy.is_zero() {
            Served { start: ready, end: ready }
        } else {
            self.access(ready, flash, copy)
        };
        let stored = self.access(copied.end, None, span);
        let start = if copy.is_zero() { stored.start } else { copied.start };
        if S::KEEPS {
            self.assemble(location, within, data);
        }
        let shadow = to_hold.then(|| self.hold(lpa, location));
        if !to_hold {
            self.drop_location(location);
        }
        let place = self.take_slot(lpa, location);
        self.written = self.written.max(stored.end);
        if S::KEEPS {
            self.publish((start, stored.end), place, lpa, shadow);
        }
        if self.config.buffer_pages == 0 {
            return Ok(Served { start, end: self.flush_through(stored.end) });
        }
        self.drain(stored.end);
        Ok(Served { start, end: stored.end })
    }

    /// Takes the next slot of the ring for a page that was at `from`.
    #[inline]
    fn take_slot(&mut self, lpa: Lpa, from: u32) -> u64 {
        let origin = self.origin(lpa, from);
        let place = self.buffer.taken;
        let slot = self.buffer.index(place);
        self.buffer.slots[slot as usize] = Slot { owner: lpa.0, origin, die: Die(0), ticket: Ticket::NEVER };
        self.buffer.taken += 1;
        self.pools[origin as usize].occupied += 1;
        self.l2p[lpa.index()] = SLOT | slot;
        place
    }

    /// The pool a page will be flushed to: under locality gathering the one it came from, otherwise that of the next
    /// die. If that pool is full, the emptiest.
    #[inline]
    fn origin(&mut self, lpa: Lpa, from: u32) -> u32 {
        let pools = self.pools.len() as u32;
        let asked = match self.config.cleaning {
            SegmentCleaning::Gathering(_) => match from {
                NOTHING => {
                    let place = self.first_place(lpa);
                    self.first_pages.partition_point(|&first| first <= place) as u32 - 1
                }
                from if from & SLOT != 0 => self.buffer.slots[(from & !SLOT) as usize].origin,
                from => self.segments[self.segment_of(from) as usize].pool,
            },
            _ => {
                self.next_pool = if self.next_pool + 1 >= pools { 0 } else { self.next_pool + 1 };
                self.next_pool
            }
        };
        let pool = &self.pools[asked as usize];
        if pool.occupied < pool.limit {
            return asked;
        }
        let emptiest = (0..pools).max_by_key(|&pool| {
            let pool = &self.pools[pool as usize];
            // A pool may exceed its limit: a cut can undo a move out of it after its place was taken.
            pool.limit.saturating_sub(pool.occupied)
        });
        emptiest.expect("a pool")
    }

    /// The position, among all pages, of a page without origin, which determines its partition.
    #[inline]
    fn first_place(&mut self, lpa: Lpa) -> u32 {
        match &mut self.arrived {
            Some(arrived) if *arrived < self.config.logical_pages => {
                *arrived += 1;
                *arrived - 1
            }
            _ => lpa.0,
        }
    }

    /// Marks the version at a location dead.
    #[inline]
    pub(super) fn drop_location(&mut self, location: u32) {
        if location == NOTHING {
            return;
        }
        let pool = if location & SLOT != 0 {
            let slot = &mut self.buffer.slots[(location & !SLOT) as usize];
            slot.owner = NOTHING;
            slot.origin
        } else {
            let segment = &mut self.segments[self.layout.block_of(nvlab_units::Ppa(location)).0 as usize];
            segment.live -= 1;
            segment.pool
        };
        self.pools[pool as usize].occupied -= 1;
    }

    /// The time to transfer a whole page over the path.
    #[inline]
    fn path_span(&self, access: Access) -> Span {
        self.config.control + access.first * self.path_cycles()
    }

    #[inline]
    pub(super) fn read_pages(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Served {
        self.advance(at);
        let (mut first, mut now) = (None, at);
        for (i, lpa) in extent.units().enumerate() {
            let location = self.l2p[lpa.index()];
            let (die, cycle) = self.reading(location);
            let span = self.lookup(lpa) + self.path_span(Access::even(cycle));
            let served = self.access(now, die.map(|die| (die, self.path_cycles())), span);
            if S::KEEPS {
                let bytes = self.nor.geometry().unit_bytes as usize;
                self.peek(location, 0, &mut into[i * bytes..][..bytes]);
            }
            self.stats.loads += 1;
            self.stats.load_time += span;
            first.get_or_insert(served.start);
            now = served.end;
        }
        Served { start: first.unwrap_or(at), end: now }
    }

    #[inline]
    pub(super) fn write_pages(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
    ) -> Result<Served, ControllerError> {
        self.advance(at);
        let (mut first, mut now) = (None, at);
        let bytes = self.nor.geometry().unit_bytes;
        let span = self.path_span(self.sram.config().write);
        for (i, lpa) in extent.units().enumerate() {
            let data = if S::KEEPS { &data[i * bytes as usize..][..bytes as usize] } else { &[] };
            let served = self.store_part(now, Part { lpa, within: 0, bytes }, true, span, data)?;
            self.stats.stores += 1;
            first.get_or_insert(served.start);
            now = served.end;
        }
        Ok(Served { start: first.unwrap_or(at), end: now })
    }

    pub(super) fn trim_pages(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        self.advance(at);
        let (mut first, mut now) = (None, at.max(self.written));
        let span = self.config.control + self.sram.config().write.first;
        for lpa in extent.units() {
            let to_hold = self.transaction.must_hold(lpa);
            if to_hold {
                self.transaction.check_room()?;
            }
            let served = self.access(now, None, span);
            self.stats.store_time += span;
            self.stats.trimmed_pages += 1;
            let location = self.l2p[lpa.index()];
            let shadow = to_hold.then(|| self.hold(lpa, location));
            if !to_hold {
                self.drop_location(location);
            }
            self.l2p[lpa.index()] = NOTHING;
            self.written = self.written.max(served.end);
            if S::KEEPS {
                self.publish_trim((served.start, served.end), lpa, shadow);
            }
            first.get_or_insert(served.start);
            now = served.end;
        }
        Ok(Served { start: first.unwrap_or(at), end: now })
    }
}
