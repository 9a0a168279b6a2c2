//! A controller: a host's association with a subsystem, shared by its queues.

use super::command::{Command, Status};
use crate::net::connections::Connection;
use std::collections::VecDeque;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Errors that the error log holds.
pub const ERRORS_MAX: usize = 64;

/// What a controller offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The namespaces.
    Io,
    /// Only where subsystems are.
    Discovery,
}

/// Who uses a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub id: [u8; 16],
    pub nqn: Vec<u8>,
}

/// A command that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Counted from 1 over the controller's life.
    pub number: u64,
    pub queue: u16,
    pub command: Command,
    pub status: Status,
}

/// Bits of the property CC.
mod configuration {
    pub const ENABLE: u32 = 1;
    pub const SHUTDOWN: u32 = 3 << 14;
}

/// Bits of the property CSTS.
mod state {
    pub const READY: u32 = 1;
    pub const SHUTDOWN_COMPLETE: u32 = 2 << 2;
}

/// A controller. Queues are connections; each belongs to one thread.
pub struct Controller {
    pub id: u16,
    pub kind: Kind,
    pub host: Host,
    configuration: AtomicU32,
    state: AtomicU32,
    /// Without it every write is durable before it is answered.
    pub write_cache: AtomicBool,
    /// The connections of its I/O queues, by number.
    queues: Mutex<Vec<(u16, Arc<Connection>)>>,
    failures: Mutex<VecDeque<Failure>>,
    failed: AtomicU64,
}

/// A change of the property CC that needs more than a changed bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    /// The controller was reset: its I/O queues are gone.
    Reset,
    /// The host is about to leave: what was answered must be durable.
    Shutdown,
}

impl Controller {
    pub fn new(id: u16, kind: Kind, host: Host) -> Controller {
        Controller {
            id,
            kind,
            host,
            configuration: AtomicU32::new(0),
            state: AtomicU32::new(0),
            write_cache: AtomicBool::new(true),
            queues: Mutex::default(),
            failures: Mutex::default(),
            failed: AtomicU64::new(0),
        }
    }

    /// The property CC.
    pub fn configuration(&self) -> u32 {
        self.configuration.load(Ordering::Relaxed)
    }

    /// The property CSTS.
    pub fn state(&self) -> u32 {
        self.state.load(Ordering::Relaxed)
    }

    /// True if it serves commands other than those of fabrics.
    pub fn is_ready(&self) -> bool {
        self.state() & state::READY != 0
    }

    /// Sets the property CC. Only its admin queue's thread does.
    pub fn configure(&self, value: u32) -> Change {
        let before = self.configuration.swap(value, Ordering::Relaxed);
        let changed = before ^ value;
        let mut state = self.state();
        let change = if changed & configuration::ENABLE != 0 && value & configuration::ENABLE == 0 {
            state = 0;
            self.close_queues();
            Change::Reset
        } else if changed & configuration::SHUTDOWN != 0 && value & configuration::SHUTDOWN != 0 {
            state |= state::SHUTDOWN_COMPLETE;
            Change::Shutdown
        } else {
            if value & configuration::ENABLE != 0 {
                state |= state::READY;
            }
            Change::None
        };
        self.state.store(state, Ordering::Relaxed);
        change
    }

    fn queues(&self) -> MutexGuard<'_, Vec<(u16, Arc<Connection>)>> {
        // A list is consistent after a panic, too.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an I/O queue; false if there is one with this number, or the controller is not ready.
    pub fn add_queue(&self, number: u16, connection: &Arc<Connection>) -> bool {
        let mut queues = self.queues();
        let free = self.is_ready() && queues.iter().all(|(other, _)| *other != number);
        if free {
            queues.push((number, Arc::clone(connection)));
        }
        free
    }

    /// The connection of a queue has ended.
    pub fn remove_queue(&self, connection: &Arc<Connection>) {
        self.queues().retain(|(_, other)| !Arc::ptr_eq(other, connection));
    }

    /// Disconnects its I/O queues.
    pub fn close_queues(&self) {
        self.queues().iter().for_each(|(_, connection)| connection.stream.shutdown(Shutdown::Both));
    }

    /// It serves nothing more.
    pub fn end(&self) {
        self.state.store(0, Ordering::Relaxed);
        self.close_queues();
    }

    /// Adds a failed command to the error log.
    pub fn log_failure(&self, queue: u16, command: &Command, status: Status) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
        failures.push_front(Failure { number, queue, command: *command, status });
        failures.truncate(ERRORS_MAX);
    }

    /// Failed commands, the latest first, and how many there were in all.
    pub fn failures(&self) -> (Vec<Failure>, u64) {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        (failures.iter().copied().collect(), self.failed.load(Ordering::Relaxed))
    }
}
