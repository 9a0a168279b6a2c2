//! Features of a controller. None is saved: each controller is new.

use crate::nvme::command::{Command, Done, Outcome, Status};
use crate::nvme::controller::Controller;
use std::sync::atomic::Ordering;

/// Bytes of a host's identifier.
pub const HOST_ID_BYTES: u32 = 16;
/// Always the same: 25 degrees, in kelvin.
pub const TEMPERATURE: u16 = 298;
/// From which it would be too warm.
pub const TEMPERATURE_WARNING: u16 = 343;

/// Features, by number.
mod feature {
    pub const ARBITRATION: u8 = 0x01;
    pub const POWER_MANAGEMENT: u8 = 0x02;
    pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
    pub const ERROR_RECOVERY: u8 = 0x05;
    pub const WRITE_CACHE: u8 = 0x06;
    pub const QUEUES: u8 = 0x07;
    pub const WRITE_ATOMICITY: u8 = 0x0a;
    pub const EVENTS: u8 = 0x0b;
    pub const KEEP_ALIVE: u8 = 0x0f;
    pub const HOST_ID: u8 = 0x81;
}

/// Selects the under-temperature threshold.
const UNDER_THRESHOLD: u32 = 1 << 20;

/// What a host can set.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    keep_alive_ms: u32,
    write_cache: bool,
    events: u32,
    /// Over and under, in kelvin.
    thresholds: [u16; 2],
}

fn number(command: &Command) -> u8 {
    command.dword(10) as u8
}

/// Whether a command asks for the host's identifier, the only feature with data.
pub fn is_host_id(command: &Command) -> bool {
    number(command) == feature::HOST_ID
}

impl Features {
    pub fn new(keep_alive_ms: u32) -> Features {
        Features { keep_alive_ms, write_cache: true, events: 0, thresholds: [TEMPERATURE_WARNING, 0] }
    }

    /// 0: there is no timer.
    pub fn keep_alive_ms(&self) -> u32 {
        self.keep_alive_ms
    }

    /// The warnings of the health log that are events.
    pub fn warnings(&self) -> u8 {
        self.events as u8
    }

    /// The bit of the health log about the temperature.
    pub fn temperature_warning(&self) -> u8 {
        let [over, under] = self.thresholds;
        u8::from(TEMPERATURE >= over || TEMPERATURE <= under) << 1
    }

    /// Makes the controller behave as they say.
    pub fn apply(&self, controller: &Controller) {
        controller.write_cache.store(self.write_cache, Ordering::Relaxed);
    }

    pub fn get(&self, controller: &Controller, queues_max: u16, command: &Command) -> Outcome {
        // Other than the current values: not supported, as identify says.
        if command.dword(10) >> 8 & 7 != 0 {
            return Err(Status::INVALID_FIELD.into());
        }
        let value = match number(command) {
            feature::ARBITRATION
            | feature::POWER_MANAGEMENT
            | feature::ERROR_RECOVERY
            | feature::WRITE_ATOMICITY => 0,
            feature::TEMPERATURE_THRESHOLD => {
                self.thresholds[usize::from(command.dword(11) & UNDER_THRESHOLD != 0)] as u32
            }
            feature::WRITE_CACHE => u32::from(controller.write_cache.load(Ordering::Relaxed)),
            feature::QUEUES => queues(queues_max),
            feature::EVENTS => self.events,
            feature::KEEP_ALIVE => self.keep_alive_ms,
            _ => return Err(Status::INVALID_FIELD.into()),
        };
        Done::with(value as u64)
    }

    pub fn set(&mut self, controller: &Controller, queues_max: u16, command: &Command) -> Outcome {
        if command.dword(10) >> 31 != 0 {
            return Err(Status::NOT_SAVEABLE.into());
        }
        let value = command.dword(11);
        match number(command) {
            feature::TEMPERATURE_THRESHOLD => {
                self.thresholds[usize::from(value & UNDER_THRESHOLD != 0)] = value as u16;
            }
            feature::WRITE_CACHE => {
                self.write_cache = value & 1 != 0;
                self.apply(controller);
            }
            // The number counts from 0; 0xffff is none.
            feature::QUEUES if value as u16 == u16::MAX || (value >> 16) as u16 == u16::MAX => {
                return Err(Status::INVALID_FIELD.into());
            }
            // As many of either kind, since a connection is one of each.
            feature::QUEUES => {
                let wanted = (value as u16).min((value >> 16) as u16);
                return Done::with(queues(queues_max.min(wanted + 1)) as u64);
            }
            feature::EVENTS => self.events = value,
            feature::KEEP_ALIVE => self.keep_alive_ms = value,
            feature::ARBITRATION
            | feature::POWER_MANAGEMENT
            | feature::ERROR_RECOVERY
            | feature::WRITE_ATOMICITY => return Err(Status::NOT_CHANGEABLE.into()),
            _ => return Err(Status::INVALID_FIELD.into()),
        }
        Done::with(0)
    }
}

/// Numbers of submission and completion queues, from 0.
fn queues(count: u16) -> u32 {
    (count as u32 - 1) << 16 | (count as u32 - 1)
}
