//! Commands of an admin queue: of I/O controllers and of discovery controllers.
//!
//! Events are noticed when the host sends a command, which it does at least as often as it keeps the controller alive.

mod discovery;
mod features;
mod identify;
mod logs;

use super::command::{Command, Commands, Done, Fault, Moves, Outcome, Status, admin, fabrics};
use super::controller::{Change, Controller, Kind};
use super::subsystem::{QUEUE_ENTRIES, Subsystem};
use features::Features;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Event requests that a controller holds.
const EVENTS_MAX: usize = 4;
/// A discovery controller without a keep-alive timer ends after this long without a command.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(120);
/// The version of the specification: 2.0.
const VERSION: u32 = 2 << 16;

/// Properties, by their offset.
mod property {
    pub const CAPABILITIES: u32 = 0x00;
    pub const VERSION: u32 = 0x08;
    pub const CONFIGURATION: u32 = 0x14;
    pub const STATE: u32 = 0x1c;
    pub const READY_TIMEOUTS: u32 = 0x68;
}

/// Units of 500 ms in which a controller becomes ready: it is at once.
const READY_TIMEOUT: u64 = 1;

/// The admin queue of a controller, which ends with it.
pub struct Admin {
    subsystem: Arc<Subsystem>,
    controller: Arc<Controller>,
    /// Where the host connected to.
    address: SocketAddr,
    features: Features,
    /// Event requests that wait, by command.
    waiting: VecDeque<u16>,
    /// Commands of earlier that complete now.
    ended: VecDeque<(u16, Result<u64, Status>)>,
    /// Warnings that were reported, until the host reads the health log.
    reported: u8,
}

impl Admin {
    pub fn new(
        subsystem: Arc<Subsystem>,
        controller: Arc<Controller>,
        address: SocketAddr,
        keep_alive_ms: u32,
    ) -> Admin {
        let features = Features::new(keep_alive_ms);
        let (waiting, ended) = Default::default();
        Admin { subsystem, controller, address, features, waiting, ended, reported: 0 }
    }

    fn is_discovery(&self) -> bool {
        self.controller.kind == Kind::Discovery
    }

    fn capabilities(&self) -> u64 {
        // Command sets: NVM, and those that identify themselves; a queue is contiguous.
        let sets: u64 = if self.is_discovery() { 1 } else { 1 | 1 << 6 };
        let waits_for_media = 1 << 59;
        (QUEUE_ENTRIES as u64 - 1) | 1 << 16 | READY_TIMEOUT << 24 | sets << 37 | waits_for_media
    }

    fn property(&self, command: &Command) -> Outcome {
        let is_long = command.dword(10) & 7 == 1;
        let value = match command.dword(11) {
            property::CAPABILITIES if is_long => self.capabilities(),
            _ if is_long => return Err(Status::INVALID_FIELD.into()),
            property::VERSION => VERSION as u64,
            property::CONFIGURATION => self.controller.configuration() as u64,
            property::STATE => self.controller.state() as u64,
            property::READY_TIMEOUTS => READY_TIMEOUT,
            _ => return Err(Status::INVALID_FIELD.into()),
        };
        Done::with(value)
    }

    fn set_property(&mut self, command: &Command) -> Outcome {
        let (size, offset, value) = (command.dword(10) & 7, command.dword(11), command.dwords(12));
        if size != 0 || offset != property::CONFIGURATION {
            return Err(Status::INVALID_FIELD.into());
        }
        match self.controller.configure(value as u32) {
            Change::Shutdown => self.flush_all()?,
            Change::Reset => {
                self.waiting.clear();
                self.features = Features::new(self.features.keep_alive_ms());
                self.features.apply(&self.controller);
            }
            Change::None => {}
        }
        Done::with(0)
    }

    /// Returns when what was answered is durable.
    fn flush_all(&self) -> Result<(), Fault> {
        for namespace in &self.subsystem.namespaces {
            let drive = &namespace.drive;
            let flushed = drive.flush(drive.session());
            drive.hold(flushed.map_err(|error| Fault::of(&error, Status::WRITE_FAULT))?);
        }
        Ok(())
    }

    fn abort(&mut self, command: &Command) -> Outcome {
        let (queue, id) = (command.dword(10) as u16, (command.dword(10) >> 16) as u16);
        let found = self.waiting.iter().position(|&waiting| queue == 0 && waiting == id);
        if let Some(found) = found {
            self.waiting.remove(found);
            self.ended.push_back((id, Err(Status::ABORT_REQUESTED)));
        }
        // Everything else is answered as soon as the device has done it. 1: not aborted.
        Done::with(u64::from(found.is_none()))
    }

    fn request_event(&mut self, command: &Command) -> Outcome {
        if self.waiting.len() == EVENTS_MAX {
            return Err(Status::EVENT_LIMIT.into());
        }
        self.waiting.push_back(command.id());
        Ok(None)
    }

    /// Reports warnings that the host wants to know and was not told yet.
    fn notice(&mut self) {
        if self.waiting.is_empty() || self.is_discovery() || self.features.warnings() == 0 {
            return;
        }
        let health = logs::health(&self.subsystem);
        let warnings = health.warnings | self.features.temperature_warning();
        let new = warnings & self.features.warnings() & !self.reported;
        if new == 0 {
            return;
        }
        let Some(id) = self.waiting.pop_front() else { return };
        self.reported |= new;
        // Of the type SMART: what happened, and the log page that tells more.
        let what = match new {
            new if new & 1 != 0 => 2,
            new if new & 2 != 0 => 1,
            _ => 0,
        };
        self.ended.push_back((id, Ok(1 | what << 8 | (logs::HEALTH as u64) << 16)));
    }

    fn page(&mut self, command: &Command) -> Result<Vec<u8>, Status> {
        match command.opcode() {
            admin::IDENTIFY => identify::page(&self.subsystem, &self.controller, command),
            admin::GET_FEATURES => Ok(self.controller.host.id.to_vec()),
            _ if self.is_discovery() => discovery::page(&self.subsystem, self.address, command),
            _ => {
                let temperature = self.features.temperature_warning();
                let page = logs::page(&self.subsystem, &self.controller, temperature, command)?;
                if logs::clears_event(command) {
                    self.reported = 0;
                }
                Ok(page)
            }
        }
    }
}

impl Commands for Admin {
    fn moves(&mut self, command: &Command) -> Result<Moves, Status> {
        if command.opcode() == fabrics::OPCODE {
            return Ok(Moves::Nothing);
        }
        if !self.controller.is_ready() {
            return Err(Status::SEQUENCE);
        }
        match command.opcode() {
            admin::IDENTIFY => Ok(Moves::ToHost(identify::BYTES)),
            admin::GET_LOG_PAGE => logs::bytes(command).map(Moves::ToHost),
            admin::GET_FEATURES if features::is_host_id(command) => {
                Ok(Moves::ToHost(features::HOST_ID_BYTES))
            }
            admin::GET_FEATURES
            | admin::SET_FEATURES
            | admin::KEEP_ALIVE
            | admin::ABORT
            | admin::ASYNC_EVENT_REQUEST => Ok(Moves::Nothing),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    fn run(&mut self, command: &Command) -> Outcome {
        match command.opcode() {
            fabrics::OPCODE => match command.fabrics_type() {
                fabrics::PROPERTY_GET => self.property(command),
                fabrics::PROPERTY_SET => self.set_property(command),
                fabrics::CONNECT => Err(Status::SEQUENCE.into()),
                _ => Err(Status::INVALID_OPCODE.into()),
            },
            admin::GET_FEATURES => self.features.get(&self.controller, self.subsystem.queues_max, command),
            admin::SET_FEATURES => self.features.set(&self.controller, self.subsystem.queues_max, command),
            admin::ABORT => self.abort(command),
            admin::ASYNC_EVENT_REQUEST => self.request_event(command),
            // KEEP_ALIVE: any command does.
            _ => Done::with(0),
        }
    }

    fn fill(&mut self, command: &Command, into: &mut [u8]) -> Outcome {
        let page = self.page(command)?;
        // The host may ask for a part of a page, or for more than there is.
        let from = if command.opcode() == admin::GET_LOG_PAGE { logs::offset(command)? } else { 0 };
        let rest = usize::try_from(from).ok().and_then(|from| page.get(from..));
        let rest = rest.ok_or(Status::INVALID_FIELD)?;
        let bytes = rest.len().min(into.len());
        into[..bytes].copy_from_slice(&rest[..bytes]);
        into[bytes..].fill(0);
        Done::with(0)
    }

    fn take(&mut self, _: &Command, _: u32, _: &[u8]) -> Outcome {
        Err(Status::INVALID_OPCODE.into())
    }

    fn failed(&mut self, command: &Command, status: Status) {
        self.controller.log_failure(0, command, status);
    }

    fn later(&mut self) -> Option<(u16, Result<u64, Status>)> {
        self.notice();
        self.ended.pop_front()
    }

    fn patience(&self) -> Option<Duration> {
        match (self.features.keep_alive_ms(), self.controller.kind) {
            (0, Kind::Io) => None,
            (0, Kind::Discovery) => Some(DISCOVERY_PATIENCE),
            (ms, _) => Some(Duration::from_millis(ms as u64)),
        }
    }

    fn is_over(&self) -> bool {
        false
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.subsystem.remove_controller(self.controller.id);
    }
}
