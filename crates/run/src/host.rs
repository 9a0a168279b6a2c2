//! When the host issues its next request, and its requests in flight.
//!
//! A closed loop keeps a fixed number of requests in flight, whatever the size of the device's queue: those beyond it
//! wait in the host, and their latency counts from the time the host issued them. By Little's law the depth is then
//! the throughput times the mean latency.

use super::outstanding::Outstanding;
use nvlab_units::{Span, Time};
use nvlab_workload::{Pacing, Request, Rerun};

/// When requests are issued.
pub(super) enum Host<'a, 'p> {
    /// In a closed loop no deeper than the device's queue: as soon as the device has room.
    AtRoom,
    /// In a deeper one: as soon as one of the requests in flight, which these are, is done.
    Deeper(Outstanding),
    /// In an open loop: each at its time, which counts from this one.
    AtTimes(Time),
    /// When a recorded program would issue them.
    Program(&'a mut Rerun<'p>),
}

impl Host<'_, '_> {
    /// What issues the requests of a workload of this pace from `origin` on, and how many of them a device with such a `queue`
    /// takes at a time. A recorded program is not known by its pace.
    pub fn new(pacing: Pacing, queue: u32, origin: Time) -> (Self, u32) {
        match pacing {
            Pacing::Closed { depth } if depth <= queue => (Host::AtRoom, depth),
            Pacing::Closed { depth } => (Host::Deeper(Outstanding::new(depth, origin)), queue),
            Pacing::Open | Pacing::Program => (Host::AtTimes(origin), queue),
        }
    }

    /// When it issues `request`, if the device has room from `room` on and the request before began at `now`.
    #[inline(never)]
    pub fn wanted(&mut self, request: &Request, room: Time, now: Time) -> Time {
        match self {
            Host::AtRoom => room,
            Host::Deeper(in_flight) => in_flight.room_at(),
            Host::AtTimes(origin) => *origin + Span::from_ps(request.at.ps()),
            Host::Program(program) => {
                program.asks().expect("the ends of all earlier requests are known").max(now)
            }
        }
    }

    /// A request issued at `wanted` is done at `end`.
    #[inline(never)]
    pub fn served(&mut self, wanted: Time, end: Time) {
        match self {
            Host::AtRoom | Host::AtTimes(_) => {}
            Host::Deeper(in_flight) => in_flight.add(end),
            Host::Program(program) => program.served(wanted, end),
        }
    }
}
