//! One request to a device.

use nvlab_units::Time;
use std::fmt;

/// What a request does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// Transfers bytes to the host.
    #[default]
    Read = 0,
    /// Transfers bytes to the device.
    Write = 1,
    /// The contents of a range are discarded.
    Trim = 2,
    /// Everything that was acknowledged before becomes durable. Has neither offset nor bytes.
    Flush = 3,
}

impl Op {
    /// All of them, in the order of their numbers.
    pub const ALL: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Flush];

    /// The operation with number `code`, if there is one.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Op> {
        match code {
            0 => Some(Op::Read),
            1 => Some(Op::Write),
            2 => Some(Op::Trim),
            3 => Some(Op::Flush),
            _ => None,
        }
    }

    /// `read`, `write`, `trim` or `flush`.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "flush",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One request to a device. 32 bytes, so that two fit in a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// When it is issued; zero in a closed loop.
    pub at: Time,
    /// The first byte; 0 for a flush.
    pub offset: u64,
    /// How many bytes; 0 for a flush.
    pub bytes: u32,
    /// What it does.
    pub op: Op,
    /// A write that must be durable before it is acknowledged (force unit access).
    pub fua: bool,
    /// The volume it was recorded on, or the tenant, for separate statistics. Its address is already that on the
    /// device.
    pub volume: u16,
    /// The workload it came from when several run at once.
    pub stream: u8,
    /// The payload of a write, as numbered by its workload; 0 for all zeros.
    pub payload: u32,
}

const _: () = assert!(size_of::<Request>() == 32);

impl Request {
    /// End of the range: the byte after its last.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.offset + self.bytes as u64
    }
}
