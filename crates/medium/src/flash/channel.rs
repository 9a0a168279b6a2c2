//! A channel: the host's transfers, each in the first gap of a [`Bus`], and those of relocated data, which yield to them.
//!
//! What yields to all others is done when everything is that was booked so far. So of those transfers the channel keeps only
//! the time at which all its work ends: no gap is looked for, and how many they are does not matter.
//!
//! Invariants
//! 1. All that was booked fits into the time until the last transfer of the host ends and [`Channel::relocated_until`].
//! 2. An end that was returned stays. Later transfers of the host delay those of relocated data that are booked after them.
//!
//! Simplified: a transfer of the host does not wait for the page of relocated data that is just under way.

use nvlab_units::{Bus, Served, Span, Time};
use serde::{Deserialize, Serialize};

/// The transfers of the dies of a channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Channel {
    host: Bus,
    /// All transfers end by then.
    busy_until: Time,
    /// Those of relocated data do.
    relocated_until: Time,
}

impl Channel {
    /// Books a transfer of the host ([`Bus::book`]).
    #[inline(always)]
    pub fn book(&mut self, now: Time, at: Time, span: Span) -> Served {
        self.busy_until = self.busy_until.max(at) + span;
        if self.relocated_until > now {
            self.relocated_until = self.busy_until;
        }
        self.host.book(now, at, span)
    }

    /// Books transfers of relocated data, which may begin at `at`.
    #[inline]
    pub fn relocate(&mut self, at: Time, span: Span) -> Served {
        let start = self.busy_until.max(at);
        self.busy_until = start + span;
        self.relocated_until = self.busy_until;
        Served { start, end: self.busy_until }
    }

    /// When all relocated data has crossed, later than was returned by what the host's transfers took of it.
    #[inline]
    pub fn relocated_until(&self) -> Time {
        self.relocated_until
    }
}
