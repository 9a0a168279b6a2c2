//! The NVM command set: blocks that are read and written in any order.

use super::command::{Command, DATA_BYTES_MAX, Done, Fault, Moves, Outcome, Status, nvm};
use super::namespace::{BLOCK_BYTES, Namespace};
use crate::served::drive::pieces;
use crate::served::{DriveError, Due, Session, Zero};

/// The most blocks of a command: their number has 16 bits and counts from 0.
pub const BLOCKS_MAX: u32 = 1 << 16;
/// Commands that not every controller has: Compare, Dataset Management, Write Zeroes, Verify.
pub const OPTIONAL_COMMANDS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 7;

/// Bits of double word 12.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
const DEALLOCATE: u32 = 1 << 25;
/// Protection information, which no namespace has.
const PROTECTION: u32 = 0xf << 26;
/// Dataset Management: the ranges may be deallocated.
const MAY_DEALLOCATE: u32 = 1 << 2;
/// Bytes of a range of Dataset Management.
const RANGE_BYTES: u32 = 16;
/// Bytes that Verify reads before other commands are served.
const PIECE_BYTES: u64 = 1 << 20;

/// The range of a command on its device: offset and bytes.
fn range(namespace: &Namespace, command: &Command) -> Result<(u64, u64), Status> {
    let (start, blocks) = (command.dwords(10), (command.dword(12) & 0xffff) as u64 + 1);
    if command.dword(12) & PROTECTION != 0 {
        return Err(Status::INVALID_FIELD);
    }
    match start.checked_add(blocks) {
        Some(end) if end <= namespace.blocks => Ok((start * BLOCK_BYTES as u64, blocks * BLOCK_BYTES as u64)),
        _ => Err(Status::OUT_OF_RANGE),
    }
}

/// What a command moves. Refuses invalid ones.
pub fn moves(namespace: &Namespace, command: &Command) -> Result<Moves, Status> {
    let data = || match range(namespace, command)? {
        (_, bytes) if bytes <= DATA_BYTES_MAX as u64 => Ok(bytes as u32),
        _ => Err(Status::INVALID_FIELD),
    };
    match command.opcode() {
        nvm::READ => data().map(Moves::ToHost),
        nvm::WRITE | nvm::COMPARE => data().map(Moves::FromHost),
        nvm::WRITE_ZEROES | nvm::VERIFY => range(namespace, command).map(|_| Moves::Nothing),
        nvm::FLUSH => Ok(Moves::Nothing),
        // A host may send more than the ranges.
        nvm::DATASET_MANAGEMENT if command.data_bytes() >= ranges_bytes(command) => {
            Ok(Moves::WholeFromHost(command.data_bytes()))
        }
        nvm::DATASET_MANAGEMENT => Err(Status::SGL_LENGTH),
        _ => Err(Status::INVALID_OPCODE),
    }
}

/// Whether the data of a command can be read in place.
pub fn shows(namespace: &Namespace, command: &Command) -> bool {
    let is_plain = command.opcode() == nvm::READ && command.dword(12) & FORCE_UNIT_ACCESS == 0;
    let range = range(namespace, command);
    is_plain && range.is_ok_and(|(offset, bytes)| namespace.drive.shows(offset, bytes as u32))
}

fn ranges_bytes(command: &Command) -> u32 {
    ((command.dword(10) & 0xff) + 1) * RANGE_BYTES
}

/// A namespace in a session.
pub struct Access<'a> {
    pub namespace: &'a Namespace,
    pub session: Session,
    /// Every write is durable before it is answered.
    pub is_durable: bool,
    pub scratch: &'a mut Vec<u8>,
}

impl Access<'_> {
    fn done(&self, served: Result<Due, DriveError>, failed: Status) -> Outcome {
        match served {
            Ok(due) => Ok(Some(Done { due, ..Done::default() })),
            Err(error) => {
                self.namespace.count_error(&error);
                Err(Fault::of(&error, failed))
            }
        }
    }

    fn forces(&self, command: &Command) -> bool {
        self.is_durable || command.dword(12) & FORCE_UNIT_ACCESS != 0
    }

    /// Serves a command without data.
    pub fn run(&mut self, command: &Command) -> Outcome {
        let (drive, session) = (&self.namespace.drive, self.session);
        match command.opcode() {
            nvm::FLUSH => self.done(drive.flush(session), Status::WRITE_FAULT),
            nvm::WRITE_ZEROES => {
                let range = range(self.namespace, command)?;
                let may_trim = command.dword(12) & DEALLOCATE != 0;
                let how = Zero { may_trim, fast: false, fua: self.forces(command) };
                self.done(drive.zero(session, range, how), Status::WRITE_FAULT)
            }
            nvm::VERIFY => self.verify(range(self.namespace, command)?),
            _ => Err(Status::INVALID_OPCODE.into()),
        }
    }

    /// Reads a range, and no more.
    fn verify(&mut self, (offset, bytes): (u64, u64)) -> Outcome {
        let mut due = None;
        for (offset, bytes) in pieces(offset, bytes, PIECE_BYTES) {
            due = due.max(self.load(offset, bytes as usize)?);
        }
        self.done(Ok(due), Status::UNRECOVERED_READ)
    }

    /// Reads a range into the first bytes of the scratch buffer.
    fn load(&mut self, offset: u64, bytes: usize) -> Result<Due, Fault> {
        if self.scratch.len() < bytes {
            self.scratch.resize(bytes, 0);
        }
        let read = self.namespace.drive.read(self.session, offset, &mut self.scratch[..bytes]);
        let done = self.done(read, Status::UNRECOVERED_READ)?;
        Ok(done.and_then(|done| done.due))
    }

    /// Reads into a buffer of the command's length.
    pub fn read(&mut self, command: &Command, into: &mut [u8]) -> Outcome {
        let (drive, session) = (&self.namespace.drive, self.session);
        let (offset, _) = range(self.namespace, command)?;
        let mut flushed = None;
        if command.dword(12) & FORCE_UNIT_ACCESS != 0 {
            // What is returned must be durable.
            let done = self.done(drive.flush(session), Status::WRITE_FAULT)?;
            flushed = done.and_then(|done| done.due);
        }
        let read = drive.read(session, offset, into);
        self.done(read.map(|due| due.max(flushed)), Status::UNRECOVERED_READ)
    }

    /// Reads in place.
    pub fn show(&mut self, command: &Command, take: &mut dyn FnMut(&[&[u8]])) -> Outcome {
        let (offset, bytes) = range(self.namespace, command)?;
        let range = (offset, bytes as u32);
        let read = self.namespace.drive.read_in_place(self.session, range, |parts| take(parts));
        self.done(read.map(|(due, ())| due), Status::UNRECOVERED_READ)
    }

    /// Takes data of a command, from the byte `at` of them on.
    pub fn take(&mut self, command: &Command, at: u32, data: &[u8]) -> Outcome {
        if command.opcode() == nvm::DATASET_MANAGEMENT {
            return self.manage(command, data);
        }
        let (start, _) = range(self.namespace, command)?;
        let offset = start + at as u64;
        if command.opcode() == nvm::COMPARE {
            let due = self.load(offset, data.len())?;
            return match self.scratch[..data.len()] == *data {
                true => self.done(Ok(due), Status::UNRECOVERED_READ),
                false => Err(Status::COMPARE_FAILURE.into()),
            };
        }
        let written = self.namespace.drive.write(self.session, offset, data, self.forces(command));
        self.done(written, Status::WRITE_FAULT)
    }

    /// Dataset Management: deallocates, and takes no other hint.
    fn manage(&mut self, command: &Command, data: &[u8]) -> Outcome {
        let ranges = || {
            data[..ranges_bytes(command) as usize].chunks_exact(RANGE_BYTES as usize).map(|range| {
                let blocks = u32::from_le_bytes(range[4..8].try_into().expect("4 bytes")) as u64;
                (u64::from_le_bytes(range[8..].try_into().expect("8 bytes")), blocks)
            })
        };
        let fits = |(start, blocks): (u64, u64)| {
            start.checked_add(blocks).is_some_and(|end| end <= self.namespace.blocks)
        };
        if !ranges().all(fits) {
            return Err(Status::OUT_OF_RANGE.into());
        }
        let mut due = None;
        if command.dword(11) & MAY_DEALLOCATE != 0 {
            let block = BLOCK_BYTES as u64;
            for (start, blocks) in ranges() {
                let drive = &self.namespace.drive;
                let trimmed = drive.trim(self.session, start * block, blocks * block, self.is_durable);
                let done = self.done(trimmed, Status::WRITE_FAULT)?;
                due = due.max(done.and_then(|done| done.due));
            }
        }
        self.done(Ok(due), Status::WRITE_FAULT)
    }
}
