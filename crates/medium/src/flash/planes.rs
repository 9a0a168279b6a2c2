//! How reads use the planes of a die and their page registers, and where in a page each unit lies.
//!
//! Invariants
//! 1. A die senses one page at a time, or one per plane if planes read independently; a command that senses the same
//!    page of
//!    several planes waits for all of them.
//! 2. A plane starts no sense before its registers can hold the result ([`Registers`]).
//!
//! Layout of a page of the array: plane by plane, then page by page of the word line, so that consecutive units are
//! in the same page of all planes, which one command can sense. With one plane, the pages of a word line alternate.
//!
//! Simplified: the data of a program in transfer occupies no register, and the decoder keeps up with the channel.

use super::channel::Channel;
use super::config::{FlashTiming, PlaneReads, Registers};
use nvlab_units::{Die, Interruption, Lane, Served, Span, Time};
use serde::{Deserialize, Serialize};

/// One array read: the page of the word line and the planes sensed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sense {
    /// Page of the word line; [`super::cells::SLC_LEVEL`] in SLC mode.
    pub level: u32,
    /// First plane.
    pub plane: u32,
    /// Number of planes.
    pub planes: u32,
}

impl Sense {
    /// The only page of a word line, in the only plane.
    pub const ONLY: Sense = Sense { level: 0, plane: 0, planes: 1 };
}

/// Placement of the units of a page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Slots {
    /// Page of the word line and plane of every unit; empty if all are 0.
    places: Vec<(u8, u8)>,
    /// Maximum number of units per command.
    together: u32,
}

impl Slots {
    /// The units of a page of `units` units. Panics if there are no planes or more than 256, or if the planes hold
    /// different numbers of units.
    pub fn new(timing: &FlashTiming, units: u32) -> Slots {
        let (levels, per_read) = (timing.read.len() as u32, timing.units_per_read.max(1));
        let planes = timing.reads.planes;
        assert!((1..=256).contains(&planes), "a die with {planes} planes");
        assert!(planes == 1 || units.is_multiple_of(planes * per_read), "{units} units on {planes} planes");
        let place = |slot: u32| ((slot / per_read / planes % levels) as u8, (slot / per_read % planes) as u8);
        let places = if levels == 1 && planes == 1 { Vec::new() } else { (0..units).map(place).collect() };
        Slots { places, together: per_read * if timing.reads.together { planes } else { 1 } }
    }

    /// True if all units are in the only plane and the only page of a word line.
    pub fn are_alike(&self) -> bool {
        self.places.is_empty()
    }

    /// The page of the word line that holds a unit of a page written with all bits.
    #[inline]
    pub fn level(&self, slot: u32) -> u32 {
        self.places.get(slot as usize).map_or(0, |place| place.0 as u32)
    }

    /// The planes that hold `count` units from `slot` on: first and number.
    #[inline]
    pub fn planes(&self, slot: u32, count: u32) -> (u32, u32) {
        let plane = |slot: u32| self.places.get(slot as usize).map_or(0, |place| place.1 as u32);
        let first = plane(slot);
        (first, plane(slot + count - 1).saturating_sub(first) + 1)
    }

    /// Maximum number of units per command; a page holds a whole number of such groups.
    #[inline]
    pub fn together(&self) -> u32 {
        self.together
    }
}

/// Registers of a plane.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Plane {
    /// Earliest start of the next sense.
    ready: Time,
    /// End of the last transfer.
    transferred: Time,
}

/// The planes of all dies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Planes {
    reads: PlaneReads,
    /// Plane `p` of die `d` at `d * planes + p`; empty if planes need not be distinguished.
    planes: Vec<Plane>,
}

impl Planes {
    pub fn new(reads: PlaneReads, dies: u32) -> Planes {
        let plain = !reads.independent && reads.registers == Registers::Unlimited;
        let count = if plain { 0 } else { dies * reads.planes };
        Planes { reads, planes: vec![Plane::default(); count as usize] }
    }

    /// True if a read occupies its die only for the time of the sense.
    #[inline(always)]
    pub fn are_plain(&self) -> bool {
        self.planes.is_empty()
    }

    /// Senses planes of die `number` for `span` and moves the data over the channel.
    #[inline]
    pub fn read(
        &mut self,
        at: Time,
        (number, die): (Die, &mut Lane),
        channel: &mut Channel,
        sense: &Sense,
        (span, transfer): (Span, Span),
        interruption: &Interruption,
    ) -> Served {
        let first = number.0 * self.reads.planes + sense.plane;
        let touched = &mut self.planes[first as usize..][..sense.planes as usize];
        let ready = touched.iter().fold(at, |ready, plane| ready.max(plane.ready));
        let served = match self.reads.independent {
            true => die.overlapping(at, ready, span, interruption),
            false => die.foreground_from(at, ready, span, interruption),
        };
        // With two registers the data waits in the first until the second is free.
        let last = touched.iter().fold(Time::ZERO, |last, plane| last.max(plane.transferred));
        let moved = if self.reads.registers == Registers::Two { served.end.max(last) } else { served.end };
        let end = channel.book(at, moved, transfer).end;
        let ready = if self.reads.registers == Registers::One { end } else { moved };
        touched.fill(Plane { ready, transferred: end });
        Served { start: served.start, end }
    }

    /// Makes all registers free after a power cut.
    pub fn reset(&mut self) {
        self.planes.fill(Plane::default());
    }
}
