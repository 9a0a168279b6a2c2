//! Which requests are refused, and why: decided here alone, before anything is done for them.

use super::handshake::Agreed;
use super::wire::{self, Request, command, error, flag};
use crate::served::{Drive, DriveError};
use std::fmt;

/// Why a request is answered with an error.
#[derive(Debug)]
pub(super) enum Refusal {
    Command,
    /// The command does not have these flags.
    Flags(u16),
    /// The command cannot have this many bytes.
    Bytes,
    /// It reaches past the end of the device.
    PastEnd,
    /// It was not negotiated.
    NotAgreed,
    /// The server is stopping.
    Stopping,
    /// The device failed the request.
    Device(DriveError),
}

impl Refusal {
    pub fn error(&self, request: &Request) -> u32 {
        match self {
            // The protocol requires this error for writes, and INVALID for other commands.
            Refusal::PastEnd if matches!(request.command, command::WRITE | command::WRITE_ZEROES) => {
                error::NO_SPACE
            }
            Refusal::Command | Refusal::Flags(_) | Refusal::Bytes | Refusal::PastEnd | Refusal::NotAgreed => {
                error::INVALID
            }
            Refusal::Stopping => error::SHUTDOWN,
            Refusal::Device(DriveError::Range) => error::INVALID,
            Refusal::Device(DriveError::NotFast) => error::NOT_SUPPORTED,
            Refusal::Device(DriveError::NoRoom(_)) => error::NO_SPACE,
            Refusal::Device(
                DriveError::Device(_) | DriveError::TimeIsOver | DriveError::Lost(_) | DriveError::PowerLost,
            ) => error::IO,
        }
    }

    /// True if it need not be logged: a lost device, or the end of its time, was reported once, a client may probe whether
    /// zeroing is fast, and a stop was requested.
    pub fn is_expected(&self) -> bool {
        let reported = |fault: &DriveError| {
            matches!(fault, DriveError::Lost(_) | DriveError::TimeIsOver | DriveError::NotFast)
        };
        match self {
            Refusal::Stopping => true,
            Refusal::Device(fault) => reported(fault),
            _ => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Command => out.write_str("unknown command"),
            Refusal::Flags(flags) => write!(out, "invalid flags {flags:#x}"),
            Refusal::Bytes => write!(
                out,
                "reads and writes need 1 to {} B, a flush no length and no offset, other commands at least 1 B",
                wire::PAYLOAD_MAX
            ),
            Refusal::PastEnd => out.write_str("it extends past the end of the device"),
            Refusal::NotAgreed => out.write_str("block status was not negotiated"),
            Refusal::Stopping => out.write_str("the server is shutting down"),
            Refusal::Device(fault) => fault.fmt(out),
        }
    }
}

/// Whether a request may be passed to a device.
pub(super) fn check(
    request: &Request,
    agreed: &Agreed,
    drive: &Drive,
    stopping: bool,
) -> Result<(), Refusal> {
    let allowed = match request.command {
        command::READ if agreed.structured => flag::FUA | flag::DF,
        command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
        command::BLOCK_STATUS if !agreed.allocation => return Err(Refusal::NotAgreed),
        command::BLOCK_STATUS => flag::FUA | flag::REQ_ONE,
        command::READ | command::WRITE | command::FLUSH | command::TRIM | command::CACHE => flag::FUA,
        _ => return Err(Refusal::Command),
    };
    let sized = match request.command {
        command::FLUSH => request.bytes == 0 && request.offset == 0,
        command::READ | command::WRITE => (1..=wire::PAYLOAD_MAX).contains(&request.bytes),
        _ => request.bytes > 0,
    };
    match request.flags & !allowed {
        _ if stopping => Err(Refusal::Stopping),
        0 if !sized => Err(Refusal::Bytes),
        0 => drive.check(request.offset, request.bytes as u64).map_err(|_| Refusal::PastEnd),
        others => Err(Refusal::Flags(others)),
    }
}

/// A request as it is logged.
pub(super) struct Named<'a>(pub &'a Request);

impl fmt::Display for Named<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { command, bytes, offset, .. } = *self.0;
        let name = match command {
            command::READ => "a read",
            command::WRITE => "a write",
            command::FLUSH => "a flush",
            command::TRIM => "a trim",
            command::CACHE => "a cache",
            command::WRITE_ZEROES => "a write of zeros",
            command::BLOCK_STATUS => "a block status",
            _ => return write!(out, "command {command} of {bytes} B at {offset}"),
        };
        write!(out, "{name} of {bytes} B at {offset}")
    }
}
