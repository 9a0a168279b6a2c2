//! State written through to SRAM, so that recovery needs nothing else.
//!
//! There are two kinds of writes. A *decision* takes an SRAM cycle from the moment it is made, and what depends on
//! it (a program, an erase) begins after it. A *fact* is the end of background work, found at the next call of the
//! controller: it lies in the past, so it is written at once. Every write begins no earlier than the previous one
//! ended, so that a cut leaves a prefix of them; results returned to the host are ordered by the time of their
//! service.
//!
//! Flash may be ahead of SRAM: a page programmed but not in the table is dead; for a copy not yet recorded the
//! source is still there, as it is not erased before. So a segment's count of programmed pages may lag; recovery
//! searches for the last page that is not blank.

use super::segments::Moving;
use super::table::Record;
use super::{Envy, NOTHING, Role, SHADOW, SLOT};
use nvlab_medium::Store;
use nvlab_units::{Die, Lpa, Ppa, Ticket, Time};

/// A queued operation that is recorded when it is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    ticket: Ticket,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A page was programmed with the contents of page `lpa`, or of its shadow, at `from`.
    Program {
        page: u32,
        lpa: Lpa,
        from: u32,
    },
    Erase {
        segment: u32,
    },
}

impl Completion {
    pub fn erase(ticket: Ticket, segment: u32) -> Completion {
        Completion { ticket, what: What::Erase { segment } }
    }
}

impl<S: Store> Envy<S> {
    /// Writes a decision: a record, in one cycle.
    fn decide(&mut self, at: Time, offset: u64, record: &[u8]) {
        let start = at.max(self.written);
        self.written = start + self.sram.config().write.first;
        if S::KEEPS {
            self.sram.write_during((start, self.written), offset, record);
        }
    }

    /// Writes a fact found at `at`.
    pub(super) fn note(&mut self, at: Time, offset: u64, record: &[u8]) {
        self.written = self.written.max(at);
        self.sram.write_during((self.written, self.written), offset, record);
    }

    pub(super) fn segment_record(&self, number: u32) -> Record<64> {
        let segment = &self.segments[number as usize];
        let role = match segment.role {
            Role::Erased => 0,
            Role::InService => 1,
            Role::Leaving => 2,
        };
        let flags = role | (segment.erasing as u32) << 8 | (segment.in_place as u32) << 9;
        Record::new()
            .with_u32(flags)
            .with_u32(segment.pool)
            .with_u32(segment.partner)
            .with_u32(segment.done)
            .with_u64(segment.order)
            .with_u64(segment.birth)
            .with_u32(segment.erases)
    }

    /// Records what a segment is used for (a decision).
    pub(super) fn record_segment(&mut self, at: Time, number: u32) {
        self.decide(at, self.map.segment(number), self.segment_record(number).bytes());
    }

    /// Records the cleaning history of a partition.
    pub(super) fn record_pool(&mut self, at: Time, pool: u32) {
        let history = self.pools[pool as usize].history;
        let record: Record<64> = Record::new()
            .with_u64(history.interval.to_bits())
            .with_u64(history.cost.to_bits())
            .with_u64(history.cleaned_at);
        self.decide(at, self.map.pool(pool), record.bytes());
    }

    /// Copies bytes out of SRAM or flash without spending time.
    pub(super) fn peek(&self, location: u32, within: u32, into: &mut [u8]) {
        match location {
            NOTHING => into.fill(0),
            slot if slot & SLOT != 0 => self.sram.peek(self.map.data(slot & !SLOT) + within as u64, into),
            page => self.nor.peek(page as u64 * self.nor.geometry().page_bytes() + within as u64, into),
        }
    }

    /// Assembles in `self.page` the page at `location`, with `data` at `within`.
    pub(super) fn assemble(&mut self, location: u32, within: u32, data: &[u8]) {
        let mut page = std::mem::take(&mut self.page);
        self.peek(location, 0, &mut page);
        page[within as usize..][..data.len()].copy_from_slice(data);
        self.page = page;
    }

    /// The location of a page according to the table in SRAM.
    pub(super) fn durable_entry(&self, lpa: Lpa) -> u32 {
        let mut bytes = [0; 4];
        self.sram.peek(self.map.entry(lpa.0), &mut bytes);
        u32::from_le_bytes(bytes).wrapping_sub(1)
    }

    fn durable_shadow(&self, shadow: u32) -> (u64, Lpa, u32) {
        let mut bytes = [0; 16];
        self.sram.peek(self.map.shadow(shadow), &mut bytes);
        let mut record = Record::from(bytes);
        (record.u64(), Lpa(record.u32()), record.u32().wrapping_sub(1))
    }

    /// The shadows of the transaction in SRAM: page and old location.
    pub(super) fn durable_shadows(&self) -> Vec<(Lpa, u32)> {
        let number = self.transaction.number;
        let all = (0..self.config.transaction_pages).map(|shadow| self.durable_shadow(shadow));
        all.take_while(|shadow| shadow.0 == number).map(|(_, lpa, old)| (lpa, old)).collect()
    }

    fn shadow_record(&self, lpa: Lpa, old: u32) -> Record<16> {
        Record::new().with_u64(self.transaction.number).with_u32(lpa.0).with_u32(old.wrapping_add(1))
    }

    /// Publishes a copy on write: page, slot record and shadow during the transfer of the page, then the table entry in
    /// one word. The bytes are in `self.page`, including the stored words: all of it becomes visible at once.
    pub(super) fn publish(&mut self, (start, end): (Time, Time), place: u64, lpa: Lpa, shadow: Option<u32>) {
        let commit = end.before(self.sram.config().write.first).max(start);
        let slot = self.buffer.index(place);
        let origin = self.buffer.slots[slot as usize].origin;
        self.sram.write_during((start, commit), self.map.data(slot), &self.page);
        let record: Record<16> = Record::new().with_u32(lpa.0).with_u32(origin).with_u64(place + 1);
        self.sram.write_during((start, commit), self.map.slot(slot), record.bytes());
        self.publish_shadow((start, commit), lpa, shadow);
        self.publish_entry((commit, end), lpa, SLOT | slot);
    }

    fn publish_shadow(&mut self, times: (Time, Time), lpa: Lpa, shadow: Option<u32>) {
        let Some(shadow) = shadow else { return };
        let record = self.shadow_record(lpa, self.durable_entry(lpa));
        self.sram.write_during(times, self.map.shadow(shadow), record.bytes());
    }

    pub(super) fn publish_entry(&mut self, times: (Time, Time), lpa: Lpa, location: u32) {
        let entry = location.wrapping_add(1).to_le_bytes();
        self.sram.write_during(times, self.map.entry(lpa.0), &entry);
        self.written = self.written.max(times.1);
    }

    pub(super) fn publish_trim(&mut self, (start, end): (Time, Time), lpa: Lpa, shadow: Option<u32>) {
        let commit = end.before(self.sram.config().write.first).max(start);
        self.publish_shadow((start, commit), lpa, shadow);
        self.publish_entry((commit, end), lpa, NOTHING);
    }

    /// Points the table entry of a page back to its shadow.
    pub(super) fn publish_rollback(&mut self, times: (Time, Time), lpa: Lpa, shadow: u32) {
        let (_, _, old) = self.durable_shadow(shadow);
        self.publish_entry(times, lpa, old);
    }

    pub(super) fn publish_transaction(&mut self, times: (Time, Time)) {
        let record: Record<64> =
            Record::new().with_u64(self.transaction.number).with_u32(self.transaction.open as u32);
        if S::KEEPS {
            self.sram.write_during(times, self.map.transaction(), record.bytes());
        }
        self.written = self.written.max(times.1);
    }

    /// Stores to a page in SRAM.
    pub(super) fn store_in_place(&mut self, times: (Time, Time), slot: u32, within: u32, data: &[u8]) {
        self.sram.write_during(times, self.map.data(slot) + within as u64, data);
        self.written = self.written.max(times.1);
    }

    /// Programs a page with the contents of a slot.
    pub(super) fn program_slot(&mut self, at: Time, slot: u32, page: u32, owner: u32) -> Ticket {
        self.program(at, SLOT | slot, page, owner)
    }

    /// Programs pages with the contents of others, which are not erased before this is recorded.
    pub(super) fn program_copies(&mut self, at: Time, moving: &[Moving], first: u32) -> Ticket {
        let mut last = Ticket::default();
        for (&Moving { from, owner }, page) in moving.iter().zip(first..) {
            let source = self.segment_of(from);
            self.segments[source as usize].pinned += 1;
            last = self.program(at, from, page, owner);
        }
        last
    }

    fn program(&mut self, at: Time, from: u32, page: u32, owner: u32) -> Ticket {
        let mut data = std::mem::take(&mut self.page);
        self.peek(from, 0, &mut data);
        let programmed = self.nor.program_pages(at, Ppa(page), 1, self.transfer(), &data);
        self.page = data;
        let ticket = programmed.unwrap_or_else(|error| panic!("page {page} was to be erased: {error}"));
        let lpa = match owner & SHADOW {
            0 => Lpa(owner),
            _ => self.transaction.shadows[(owner & !SHADOW) as usize].lpa,
        };
        let what = What::Program { page, lpa, from };
        let die = self.die_of(page);
        self.dies[die.index()].in_flight.push_back(Completion { ticket, what });
        ticket
    }

    /// Records everything that is done at `at`.
    pub(super) fn complete(&mut self, at: Time) {
        loop {
            let mut waits_for_other = false;
            for die in 0..self.dies.len() {
                while let Some(&Completion { ticket, what }) = self.dies[die].in_flight.front() {
                    if !self.nor.is_done(Die(die as u32), ticket, at) {
                        break;
                    }
                    if self.source_is_open(what) {
                        waits_for_other = true;
                        break;
                    }
                    self.dies[die].in_flight.pop_front();
                    self.apply(at, what);
                }
            }
            if !waits_for_other || !self.can_apply(at) {
                return;
            }
        }
    }

    /// Records everything required, all done at `at` (see `waiting`).
    pub(super) fn complete_required(&mut self, at: Time) {
        let mut recorded = true;
        while std::mem::take(&mut recorded) {
            for die in 0..self.dies.len() {
                while let Some(&Completion { ticket, what }) = self.dies[die].in_flight.front()
                    && ticket <= self.required[die]
                    && !self.source_is_open(what)
                {
                    self.dies[die].in_flight.pop_front();
                    self.apply(at, what);
                    recorded = true;
                }
            }
        }
        for (die, &required) in self.dies.iter().zip(&self.required) {
            let open = die.in_flight.front().filter(|completion| completion.ticket <= required);
            assert!(open.is_none(), "{open:?} is required and its source is not: {:?}", self.crossings);
        }
    }

    /// True if the next completion of some die can be recorded.
    fn can_apply(&mut self, at: Time) -> bool {
        (0..self.dies.len()).any(|die| match self.dies[die].in_flight.front() {
            Some(&Completion { ticket, what }) => {
                self.nor.is_done(Die(die as u32), ticket, at) && !self.source_is_open(what)
            }
            None => false,
        })
    }

    /// True for a copy whose source on another die is itself not yet recorded: the table does not point to the source.
    fn source_is_open(&self, what: What) -> bool {
        match what {
            What::Program { from, .. } if from & SLOT == 0 => {
                let segment = self.segment_of(from);
                from - self.layout_first(segment) >= self.segments[segment as usize].done
            }
            _ => false,
        }
    }

    fn apply(&mut self, at: Time, what: What) {
        match what {
            What::Program { page, lpa, from } => {
                if self.durable_entry(lpa) == from {
                    self.note(at, self.map.entry(lpa.0), &page.wrapping_add(1).to_le_bytes());
                }
                self.move_shadow(at, lpa, from, page);
                let segment = self.segment_of(page);
                self.segments[segment as usize].done = page - self.layout_first(segment) + 1;
                self.note(at, self.map.segment(segment), self.segment_record(segment).bytes());
                if from & SLOT == 0 {
                    let source = self.segment_of(from);
                    self.segments[source as usize].pinned -= 1;
                }
            }
            What::Erase { segment } => {
                self.segments[segment as usize].erasing = false;
                self.note(at, self.map.segment(segment), self.segment_record(segment).bytes());
            }
        }
    }

    /// If the transaction holds the version that was copied, updates its location.
    fn move_shadow(&mut self, at: Time, lpa: Lpa, from: u32, page: u32) {
        if !self.transaction.open || !self.transaction.holds(lpa) {
            return;
        }
        let held = self.transaction.shadows.iter().position(|shadow| shadow.lpa == lpa);
        let shadow = held.expect("the shadow of a page that is held") as u32;
        if self.durable_shadow(shadow).2 == from {
            let record = self.shadow_record(lpa, page);
            self.note(at, self.map.shadow(shadow), record.bytes());
        }
    }

    /// Checks that the table in SRAM differs from the one in memory only by queued operations; for tests.
    pub(super) fn check_durable(&self) {
        for lpa in (0..self.config.logical_pages).map(Lpa) {
            let (durable, current) = (self.durable_entry(lpa), self.l2p[lpa.index()]);
            let queued = |page: u32| {
                self.dies.iter().flat_map(|die| &die.in_flight).any(|completion| {
                    matches!(completion.what, What::Program { page: to, lpa: of, .. } if (to, of) == (page, lpa))
                })
            };
            assert!(
                durable == current || queued(current),
                "page {lpa} is at {current:#x}, the table in SRAM says {durable:#x}"
            );
        }
    }
}
