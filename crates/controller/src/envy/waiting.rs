//! What must be done before a page or a segment may be reused.
//!
//! The queue of a die is done in order, so one ticket describes the state of that die. Only copies between dies
//! depend on two queues: a copy is recorded only after its source is, and the source is kept until then. Both are
//! tracked here, with and without payload, so that times never depend on whether payload is kept. Waiting promises
//! the end of what is required, and of nothing else that is queued.

use super::{Envy, NO_SEGMENT};
use nvlab_medium::Store;
use nvlab_units::{Die, Ticket, Time};

/// Copies from a segment of one die to another die.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    segment: u32,
    /// The last of the programs that wrote the sources.
    source: (Die, Ticket),
    /// The last of the copies.
    target: (Die, Ticket),
}

impl<S: Store> Envy<S> {
    /// Notes copies out of `from`, the last queued at `last`, if they go to another die.
    pub(super) fn crossed(&mut self, from: u32, to: u32, last: Ticket) {
        let (source, target) = (self.die_of_segment(from), self.die_of_segment(to));
        if source != target {
            let source = (source, self.segments[from as usize].last);
            self.crossings.push_back(Crossing { segment: from, source, target: (target, last) });
        }
    }

    /// Drops the crossings that are done at `at`.
    #[cold]
    pub(super) fn drop_finished_crossings(&mut self, at: Time) {
        while let Some(&Crossing { source, target, .. }) = self.crossings.front() {
            if !self.nor.is_done(source.0, source.1, at) || !self.nor.is_done(target.0, target.1, at) {
                break;
            }
            self.crossings.pop_front();
        }
    }

    /// Waits until everything queued on a die up to a ticket is done and recorded, and promises its end.
    #[inline]
    pub(super) fn wait_for(&mut self, die: Die, ticket: Ticket, at: Time) -> Time {
        self.wait_for_leaving(NO_SEGMENT, die, ticket, at)
    }

    /// [`Envy::wait_for`], and waits also for every copy out of `segment`.
    #[inline]
    pub(super) fn wait_for_leaving(&mut self, segment: u32, die: Die, ticket: Ticket, at: Time) -> Time {
        self.require(segment, die, ticket);
        let mut end = at;
        for die in 0..self.required.len() {
            if self.required[die] != Ticket::default() {
                end = end.max(self.nor.finish(Die(die as u32), self.required[die], at));
            }
        }
        self.record_required(end);
        end
    }

    /// True if a wait would be over at `at`; then records what it would wait for. Promises nothing.
    pub(super) fn has_left(&mut self, segment: u32, die: Die, ticket: Ticket, at: Time) -> bool {
        self.require(segment, die, ticket);
        for die in 0..self.required.len() {
            let ticket = self.required[die];
            if ticket != Ticket::default() && !self.nor.is_done(Die(die as u32), ticket, at) {
                return false;
            }
        }
        self.record_required(at);
        true
    }

    /// Sets `required`: the ticket on each die up to which everything must be done. A crossing depends only on work
    /// queued before it, so one pass from the last to the first finds all of them.
    #[inline]
    fn require(&mut self, segment: u32, die: Die, ticket: Ticket) {
        self.required.fill(Ticket::default());
        self.required[die.index()] = ticket;
        for crossing in self.crossings.iter().rev() {
            let (source, target) = (crossing.source, crossing.target);
            if crossing.segment == segment || target.1 <= self.required[target.0.index()] {
                let copied = &mut self.required[target.0.index()];
                *copied = target.1.max(*copied);
                let written = &mut self.required[source.0.index()];
                *written = source.1.max(*written);
            }
        }
    }

    /// Records everything required, which is done at `at`.
    #[inline]
    fn record_required(&mut self, at: Time) {
        self.written = self.written.max(at);
        if S::KEEPS {
            self.complete_required(at);
        }
    }
}
