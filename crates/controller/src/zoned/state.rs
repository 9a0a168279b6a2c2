//! The states of zones and what may follow what, and the limits of open and active zones: the state machine of the NVMe
//! Zoned Namespace Command Set Specification 1.1 (section 2.1.1). It knows nothing of blocks.
//!
//! 1. `open` and `active` count the zones in the states that need those resources; neither exceeds its limit, except that
//!    a power cut may bring back more active zones than the limit (see `recover`). Then no other becomes active.
//! 2. `implicit` lists the implicitly opened zones, the one opened first at the front: it is closed for another.

use std::collections::VecDeque;
use std::fmt;
use thiserror::Error;

/// The state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Nothing is written since its reset.
    Empty,
    /// Opened by a write.
    ImplicitlyOpen,
    /// Opened by the host.
    ExplicitlyOpen,
    /// Partly written, not open.
    Closed,
    /// Nothing more can be written before a reset.
    Full,
    /// It can be read but neither written nor reset: a block failed and there was none in its place.
    ReadOnly,
    /// It holds nothing and cannot: too few good blocks are left.
    Offline,
}

impl ZoneState {
    /// Every state.
    pub const ALL: [ZoneState; 7] = [
        ZoneState::Empty,
        ZoneState::ImplicitlyOpen,
        ZoneState::ExplicitlyOpen,
        ZoneState::Closed,
        ZoneState::Full,
        ZoneState::ReadOnly,
        ZoneState::Offline,
    ];

    /// True if the zone can be written without being opened first.
    #[inline]
    pub fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
    }

    /// True if the zone takes one of the active resources.
    pub fn is_active(self) -> bool {
        self.is_open() || self == ZoneState::Closed
    }
}

impl fmt::Display for ZoneState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ZoneState::Empty => "empty",
            ZoneState::ImplicitlyOpen => "implicitly open",
            ZoneState::ExplicitlyOpen => "explicitly open",
            ZoneState::Closed => "closed",
            ZoneState::Full => "full",
            ZoneState::ReadOnly => "read only",
            ZoneState::Offline => "offline",
        })
    }
}

/// What the host can do to a zone besides reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAction {
    /// Keep it open until it is closed, finished or reset.
    Open,
    /// Give its open resource back.
    Close,
    /// Make it full as it is.
    Finish,
    /// Make it empty.
    Reset,
    /// Give a read-only zone up.
    Offline,
}

impl ZoneAction {
    /// Every action.
    pub const ALL: [ZoneAction; 5] =
        [ZoneAction::Open, ZoneAction::Close, ZoneAction::Finish, ZoneAction::Reset, ZoneAction::Offline];

    /// The state after it; `None`: it is not allowed in this state.
    pub fn after(self, state: ZoneState) -> Option<ZoneState> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
        match (self, state) {
            (ZoneAction::Open, Empty | ImplicitlyOpen | ExplicitlyOpen | Closed) => Some(ExplicitlyOpen),
            (ZoneAction::Close, ImplicitlyOpen | ExplicitlyOpen | Closed) => Some(Closed),
            (ZoneAction::Finish, Empty | ImplicitlyOpen | ExplicitlyOpen | Closed | Full) => Some(Full),
            (ZoneAction::Reset, Empty | ImplicitlyOpen | ExplicitlyOpen | Closed | Full) => Some(Empty),
            (ZoneAction::Offline, ReadOnly | Offline) => Some(Offline),
            _ => None,
        }
    }
}

impl fmt::Display for ZoneAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ZoneAction::Open => "opened",
            ZoneAction::Close => "closed",
            ZoneAction::Finish => "finished",
            ZoneAction::Reset => "reset",
            ZoneAction::Offline => "set offline",
        })
    }
}

/// Why a zone refuses a command: each is a status of the command set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ZoneError {
    /// Zone Invalid Write.
    #[error("a write at unit {at} of the zone, whose write pointer is at {pointer}")]
    NotAtPointer {
        /// Where the write begins, from the start of the zone.
        at: u32,
        /// Where it would have to begin.
        pointer: u32,
    },
    /// Zone Boundary Error.
    #[error("{units} units at unit {at} reach past its capacity of {capacity} units")]
    Boundary {
        /// Where the write begins.
        at: u32,
        /// Its units.
        units: u32,
        /// Units of the zone that can be written.
        capacity: u32,
    },
    /// Zone Is Full.
    #[error("it is full: reset it first")]
    Full,
    /// Zone Is Read Only.
    #[error("it is read only")]
    ReadOnly,
    /// Zone Is Offline.
    #[error("it is offline")]
    Offline,
    /// Too Many Open Zones.
    #[error("{max} zones are explicitly open, the maximum (ftl.zone.open_max): close or finish one first")]
    TooManyOpen {
        /// The limit.
        max: u32,
    },
    /// Too Many Active Zones.
    #[error("{max} zones are open or closed, the maximum (ftl.zone.active_max): finish or reset one first")]
    TooManyActive {
        /// The limit.
        max: u32,
    },
    /// Invalid Zone State Transition.
    #[error("it is {state} and cannot be {action}")]
    Transition {
        /// Its state.
        state: ZoneState,
        /// What was asked.
        action: ZoneAction,
    },
}

/// The states of all zones.
#[derive(Clone, Debug)]
pub(super) struct States {
    of: Vec<ZoneState>,
    open: u32,
    active: u32,
    /// `u32::MAX`: no limit.
    open_max: u32,
    active_max: u32,
    implicit: VecDeque<u32>,
}

impl States {
    /// Empty zones.
    pub fn new(zones: u32, open_max: Option<u32>, active_max: Option<u32>) -> States {
        States {
            of: vec![ZoneState::Empty; zones as usize],
            open: 0,
            active: 0,
            open_max: open_max.unwrap_or(u32::MAX),
            active_max: active_max.unwrap_or(u32::MAX),
            implicit: VecDeque::new(),
        }
    }

    #[inline]
    pub fn of(&self, zone: u32) -> ZoneState {
        self.of[zone as usize]
    }

    /// Sets a state, whatever the limits.
    pub fn set(&mut self, zone: u32, state: ZoneState) {
        let before = std::mem::replace(&mut self.of[zone as usize], state);
        self.open = self.open + state.is_open() as u32 - before.is_open() as u32;
        self.active = self.active + state.is_active() as u32 - before.is_active() as u32;
        if before == ZoneState::ImplicitlyOpen {
            self.implicit.retain(|&other| other != zone);
        }
        if state == ZoneState::ImplicitlyOpen {
            self.implicit.push_back(zone);
        }
    }

    /// Whether a zone could be opened now: the resources it lacks are free, or can be by closing another.
    pub fn check_open(&self, zone: u32) -> Result<(), ZoneError> {
        let state = self.of(zone);
        if !state.is_active() && self.active >= self.active_max {
            return Err(ZoneError::TooManyActive { max: self.active_max });
        }
        if !state.is_open() && self.open >= self.open_max && self.implicit.is_empty() {
            return Err(ZoneError::TooManyOpen { max: self.open_max });
        }
        Ok(())
    }

    /// Opens a zone that [`States::check_open`] allowed; closes another if all open resources are taken. True if it did.
    pub fn open(&mut self, zone: u32, state: ZoneState) -> bool {
        let closes = !self.of(zone).is_open() && self.open >= self.open_max;
        if closes && let Some(&first) = self.implicit.front() {
            self.set(first, ZoneState::Closed);
        }
        self.set(zone, state);
        closes
    }

    /// Whether a zone can be written at all in its state.
    pub fn check_writable(&self, zone: u32) -> Result<(), ZoneError> {
        match self.of(zone) {
            ZoneState::Full => Err(ZoneError::Full),
            ZoneState::ReadOnly => Err(ZoneError::ReadOnly),
            ZoneState::Offline => Err(ZoneError::Offline),
            _ => Ok(()),
        }
    }

    /// Checks the counts against the states.
    pub fn check(&self) {
        let count = |is: fn(ZoneState) -> bool| self.of.iter().filter(|&&state| is(state)).count() as u32;
        assert_eq!(self.open, count(ZoneState::is_open));
        assert_eq!(self.active, count(ZoneState::is_active));
        assert_eq!(self.implicit.len() as u32, count(|state| state == ZoneState::ImplicitlyOpen));
        assert!(self.open <= self.open_max, "{} zones are open", self.open);
    }
}
