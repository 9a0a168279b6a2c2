//! A channel: host transfers, each in the first gap of a [`Bus`], and transfers of relocated data, which yield to
//! them.
//!
//! A transfer that yields to all others is done when everything booked so far is. So for those transfers the channel
//! keeps only the time at which all its work ends: no gap search, and their number does not matter.
//!
//! Invariants
//! 1. Everything booked fits before the later of the end of the last host transfer and [`Channel::relocated_until`].
//! 2. A returned end is not revised. Later host transfers delay relocated data that is booked after them.
//!
//! Simplified: a host transfer does not wait for the page of relocated data in progress.

use nvlab_units::{Bus, Served, Span, Time};
use serde::{Deserialize, Serialize};

/// The channel of a group of dies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Channel {
    host: Bus,
    /// All transfers end by then.
    busy_until: Time,
    /// All transfers of relocated data end by then.
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

    /// Books transfers of relocated data, which may start at `at`.
    #[inline]
    pub fn relocate(&mut self, at: Time, span: Span) -> Served {
        let start = self.busy_until.max(at);
        self.busy_until = start + span;
        self.relocated_until = self.busy_until;
        Served { start, end: self.busy_until }
    }

    /// When all relocated data has crossed the channel, including the time that host transfers took since.
    #[inline]
    pub fn relocated_until(&self) -> Time {
        self.relocated_until
    }
}
