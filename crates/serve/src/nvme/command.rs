//! Commands, statuses, and the interface between a transport and a command set.

use crate::served::{DriveError, Due};
use std::fmt;
use std::time::Duration;

/// Bytes of a submission queue entry.
pub const COMMAND_BYTES: usize = 64;

/// Opcodes of admin queues.
pub mod admin {
    pub const GET_LOG_PAGE: u8 = 0x02;
    pub const IDENTIFY: u8 = 0x06;
    pub const ABORT: u8 = 0x08;
    pub const SET_FEATURES: u8 = 0x09;
    pub const GET_FEATURES: u8 = 0x0a;
    pub const ASYNC_EVENT_REQUEST: u8 = 0x0c;
    pub const KEEP_ALIVE: u8 = 0x18;
}

/// Opcodes of the NVM command set.
pub mod nvm {
    pub const FLUSH: u8 = 0x00;
    pub const WRITE: u8 = 0x01;
    pub const READ: u8 = 0x02;
    pub const COMPARE: u8 = 0x05;
    pub const WRITE_ZEROES: u8 = 0x08;
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    pub const VERIFY: u8 = 0x0c;
}

/// The opcode of every fabrics command, and their types.
pub mod fabrics {
    pub const OPCODE: u8 = 0x7f;
    pub const PROPERTY_SET: u8 = 0x00;
    pub const CONNECT: u8 = 0x01;
    pub const PROPERTY_GET: u8 = 0x04;
    pub const DISCONNECT: u8 = 0x08;
}

/// A namespace that stands for all of them.
pub const ALL_NAMESPACES: u32 = u32::MAX;

/// A submission queue entry.
#[derive(Clone, Copy, Debug)]
pub struct Command([u8; COMMAND_BYTES]);

/// Where the data of a command are, from the descriptor in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the capsule, from this offset on.
    Capsule(u64),
    /// Moved by the transport.
    Transport,
}

impl Command {
    pub fn new(bytes: [u8; COMMAND_BYTES]) -> Command {
        Command(bytes)
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0[at..at + N].try_into().expect("inside the entry")
    }

    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// Chosen by the host and repeated in the completion.
    pub fn id(&self) -> u16 {
        u16::from_le_bytes(self.bytes(2))
    }

    /// The type of a fabrics command.
    pub fn fabrics_type(&self) -> u8 {
        self.0[4]
    }

    pub fn namespace(&self) -> u32 {
        u32::from_le_bytes(self.bytes(4))
    }

    /// The double word with this number, as the specification counts: 10 to 15 are those of the command.
    pub fn dword(&self, number: usize) -> u32 {
        u32::from_le_bytes(self.bytes(4 * number))
    }

    /// Two double words, the lower first.
    pub fn dwords(&self, number: usize) -> u64 {
        u64::from_le_bytes(self.bytes(4 * number))
    }

    /// The length in its data descriptor.
    pub fn data_bytes(&self) -> u32 {
        self.dword(8)
    }

    /// Where its data are. Over fabrics a command has one descriptor, of one of two types.
    pub fn place(&self) -> Result<Place, Status> {
        match self.0[39] {
            0x01 => Ok(Place::Capsule(self.dwords(6))),
            0x5a => Ok(Place::Transport),
            _ => Err(Status::SGL_TYPE),
        }
    }

    /// Refuses fused commands, and those whose descriptor is not a scatter-gather list.
    pub fn check_flags(&self) -> Result<(), Status> {
        match self.0[1] & 0xc3 {
            0x40 => Ok(()),
            _ => Err(Status::INVALID_FIELD),
        }
    }
}

/// The status of a completion, as in its last 15 bits: type and code, and whether the host should not retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

/// The same command would fail again.
const DO_NOT_RETRY: u16 = 1 << 14;

impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const INVALID_OPCODE: Status = Status(0x001 | DO_NOT_RETRY);
    pub const INVALID_FIELD: Status = Status(0x002 | DO_NOT_RETRY);
    pub const ID_CONFLICT: Status = Status(0x003 | DO_NOT_RETRY);
    pub const INTERNAL: Status = Status(0x006 | DO_NOT_RETRY);
    pub const ABORT_REQUESTED: Status = Status(0x007 | DO_NOT_RETRY);
    /// The server is stopping.
    pub const QUEUE_DELETED: Status = Status(0x008);
    pub const INVALID_NAMESPACE: Status = Status(0x00b | DO_NOT_RETRY);
    pub const SEQUENCE: Status = Status(0x00c | DO_NOT_RETRY);
    pub const SGL_LENGTH: Status = Status(0x00f | DO_NOT_RETRY);
    pub const SGL_TYPE: Status = Status(0x011 | DO_NOT_RETRY);
    pub const SGL_OFFSET: Status = Status(0x016 | DO_NOT_RETRY);
    /// The data's digest is wrong: sent again they may be right.
    pub const TRANSIENT_TRANSPORT: Status = Status(0x022);
    pub const OUT_OF_RANGE: Status = Status(0x080 | DO_NOT_RETRY);
    pub const CAPACITY_EXCEEDED: Status = Status(0x081 | DO_NOT_RETRY);
    pub const EVENT_LIMIT: Status = Status(0x105 | DO_NOT_RETRY);
    pub const INVALID_LOG_PAGE: Status = Status(0x109 | DO_NOT_RETRY);
    pub const NOT_SAVEABLE: Status = Status(0x10d | DO_NOT_RETRY);
    pub const NOT_CHANGEABLE: Status = Status(0x10e | DO_NOT_RETRY);
    pub const CONNECT_FORMAT: Status = Status(0x180 | DO_NOT_RETRY);
    pub const CONNECT_PARAMETERS: Status = Status(0x182 | DO_NOT_RETRY);
    pub const CONNECT_HOST: Status = Status(0x184 | DO_NOT_RETRY);
    pub const WRITE_FAULT: Status = Status(0x280 | DO_NOT_RETRY);
    pub const UNRECOVERED_READ: Status = Status(0x281 | DO_NOT_RETRY);
    pub const COMPARE_FAILURE: Status = Status(0x285 | DO_NOT_RETRY);

    /// As in a completion, above the phase bit.
    pub fn bits(self) -> u16 {
        self.0 << 1
    }

    /// True if an operator has nothing to do about it: the server is stopping, or two versions were compared.
    pub fn is_expected(self) -> bool {
        matches!(self, Status::QUEUE_DELETED | Status::COMPARE_FAILURE | Status::ABORT_REQUESTED)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "status type {}, code {:#04x}", self.0 >> 8 & 7, self.0 & 0xff)
    }
}

/// A submission queue, as its transport knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Number of the queue; 0 is the admin queue.
    pub queue: u16,
    /// Its entries.
    pub entries: u16,
    /// The host does not want to know the head: then a read needs no response beside its data.
    pub disabled: bool,
}

/// What a command moves between host and controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    Nothing,
    ToHost(u32),
    /// Taken in pieces, in order, as they arrive.
    FromHost(u32),
    /// Taken as a whole; at most [`WHOLE_BYTES_MAX`].
    WholeFromHost(u32),
}

/// The most data of a command.
pub const DATA_BYTES_MAX: u32 = 1 << 20;
/// The longest data that are taken as a whole.
pub const WHOLE_BYTES_MAX: u32 = 4096;

/// A command that was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The first two double words of the completion.
    pub result: u64,
    pub due: Due,
    /// The device that served it, by its place among the namespaces.
    pub of: Option<usize>,
}

impl Done {
    /// Done at once, with a result.
    pub fn with(result: u64) -> Outcome {
        Ok(Some(Done { result, ..Done::default() }))
    }
}

/// Why a command was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It completes with an error and this result.
    Failed(Status, u64),
    /// The power failed: it never completes.
    PowerLost,
}

impl From<Status> for Fault {
    fn from(status: Status) -> Fault {
        Fault::Failed(status, 0)
    }
}

impl Fault {
    /// Of a request to a device; `failed`: the status if the medium did.
    pub fn of(error: &DriveError, failed: Status) -> Fault {
        match error {
            DriveError::PowerLost => Fault::PowerLost,
            DriveError::Range => Status::OUT_OF_RANGE.into(),
            DriveError::NoRoom(_) => Status::CAPACITY_EXCEEDED.into(),
            DriveError::Device(_) => failed.into(),
            DriveError::NotFast | DriveError::TimeIsOver | DriveError::Lost(_) => Status::INTERNAL.into(),
        }
    }
}

/// How a command ended; `None`: it completes later ([`Commands::later`]).
pub type Outcome = Result<Option<Done>, Fault>;

/// The commands of a queue, whatever transport carries them: a transport asks what a command moves, then calls the method for
/// that.
pub trait Commands {
    /// What a command moves. Refuses invalid ones before anything was done for them.
    fn moves(&mut self, command: &Command) -> Result<Moves, Status>;
    /// Serves a command without data.
    fn run(&mut self, command: &Command) -> Outcome;
    /// Serves a command with data for the host, which it fills in.
    fn fill(&mut self, command: &Command, into: &mut [u8]) -> Outcome;
    /// Whether [`Commands::show`] can serve a command with data for the host.
    fn shows(&self, _command: &Command) -> bool {
        false
    }
    /// As `fill`, with the data in place: calls `take` with them in parts, if the command is served.
    fn show(&mut self, _command: &Command, _take: &mut dyn FnMut(&[&[u8]])) -> Outcome {
        unreachable!("a command set that shows nothing")
    }
    /// Serves a piece of the data of a command, from the offset `at` on. The last result counts, and the latest time.
    fn take(&mut self, command: &Command, at: u32, data: &[u8]) -> Outcome;
    /// A command failed.
    fn failed(&mut self, _command: &Command, _status: Status) {}
    /// A command of earlier that completes now, with its result.
    fn later(&mut self) -> Option<(u16, Result<u64, Status>)> {
        None
    }
    /// How long the host may be silent; `None`: for ever.
    fn patience(&self) -> Option<Duration> {
        None
    }
    /// True once the queue takes no more commands.
    fn is_over(&self) -> bool;
}
