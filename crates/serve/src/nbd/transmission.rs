//! Requests of one connection, after the handshake.

use super::answers::{Answers, Outgoing};
use super::handshake::Agreed;
use super::incoming::{Incoming, WHOLE_MAX};
use super::wire::{self, Request, chunk, command, error, flag};
use crate::net::room::Caller;
use crate::served::drive::pieces;
use crate::served::{Drive, Due, Fault, Session, Zero};
use std::io::{self, Error, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Extents of one answer about what is allocated.
const EXTENTS_MAX: usize = 4096;

/// One connection.
pub(super) struct Transmission<'a> {
    pub incoming: &'a mut Incoming,
    pub answers: &'a mut Answers,
    pub drive: &'a Drive,
    pub session: Session,
    pub agreed: Agreed,
    /// The server stops: what has not been begun is refused.
    pub stopping: &'a AtomicBool,
    pub caller: &'a Caller,
}

/// Why a request has no ordinary answer.
enum Stop {
    /// It is answered with this error.
    Refused(u32),
    /// The power failed: nobody answers.
    PowerLost,
    /// The connection failed.
    Broken(Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        match fault {
            Fault::Range => Stop::Refused(error::INVALID),
            Fault::NotFast => Stop::Refused(error::NOT_SUPPORTED),
            Fault::NoRoom(_) => Stop::Refused(error::NO_SPACE),
            Fault::Device(_) | Fault::Lost(_) => Stop::Refused(error::IO),
            Fault::PowerLost => Stop::PowerLost,
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Broken(error)
    }
}

impl Transmission<'_> {
    /// Serves until the client leaves, the power fails or the connection does.
    pub fn run(&mut self) -> io::Result<()> {
        loop {
            if self.incoming.len() < wire::REQUEST_BYTES {
                self.answers.send()?;
                self.caller.rests();
                if !self.incoming.wait(wire::REQUEST_BYTES)? {
                    return Ok(());
                }
                self.caller.works();
            }
            let head = self.incoming.here(wire::REQUEST_BYTES).try_into().expect("a request's head");
            let Some(request) = Request::parse(head) else {
                return Err(Error::new(ErrorKind::InvalidData, "a request without its magic"));
            };
            self.incoming.consume(wire::REQUEST_BYTES);
            if request.command == command::DISCONNECT {
                return self.answers.send();
            }
            let start = self.answers.begin().len();
            let served = self.serve(&request);
            let due = match served {
                Ok(due) => due,
                Err(Stop::Refused(error)) => {
                    let structured = self.agreed.structured;
                    let out = self.answers.begin();
                    out.truncate(start);
                    refuse(out, structured, &request, error);
                    None
                }
                Err(Stop::PowerLost) => return Ok(()),
                Err(Stop::Broken(error)) => return Err(error),
            };
            self.answers.end(due)?;
        }
    }

    fn serve(&mut self, request: &Request) -> Result<Due, Stop> {
        // First of all: its data are in the way of the next request.
        if request.command == command::WRITE {
            return self.write(request);
        }
        self.allow(request)?;
        let (drive, session) = (self.drive, self.session);
        let (offset, bytes) = (request.offset, request.bytes as u64);
        let fua = request.flags & flag::FUA != 0;
        let due = match request.command {
            command::READ => return self.read(request),
            command::BLOCK_STATUS => return self.block_status(request),
            command::FLUSH => drive.flush(session)?,
            command::TRIM => drive.trim(session, offset, bytes, fua)?,
            command::WRITE_ZEROES => {
                let (may_trim, fast) =
                    (request.flags & flag::NO_HOLE == 0, request.flags & flag::FAST_ZERO != 0);
                // The protocol asks for this error of whatever writes, for INVALID of the rest.
                drive.check(offset, bytes).map_err(|_| Stop::Refused(error::NO_SPACE))?;
                drive.zero(session, (offset, bytes), Zero { may_trim, fast, fua })?
            }
            // The device has no cache that the host could fill.
            command::CACHE => {
                drive.check(offset, bytes)?;
                None
            }
            _ => return Err(Stop::Refused(error::INVALID)),
        };
        self.done(request);
        Ok(due)
    }

    /// Whether a request is one that may be asked.
    fn allow(&self, request: &Request) -> Result<(), Stop> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(Stop::Refused(error::SHUTDOWN));
        }
        let allowed = match request.command {
            command::READ if self.agreed.structured => flag::FUA | flag::DF,
            command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
            command::BLOCK_STATUS => flag::FUA | flag::REQ_ONE,
            _ => flag::FUA,
        };
        let sized = match request.command {
            command::FLUSH => request.bytes == 0 && request.offset == 0,
            command::READ | command::WRITE => (1..=wire::PAYLOAD_MAX).contains(&request.bytes),
            _ => request.bytes > 0,
        };
        match request.flags & !allowed == 0 && sized {
            true => Ok(()),
            false => Err(Stop::Refused(error::INVALID)),
        }
    }

    /// The answer of whatever has no data.
    fn done(&mut self, request: &Request) {
        let structured = self.agreed.structured;
        let out = self.answers.begin();
        match structured {
            true => out.push(&wire::chunk_head(chunk::NONE, request.cookie, 0)),
            false => out.push(&wire::simple_reply(error::NONE, request.cookie)),
        }
    }

    fn read(&mut self, request: &Request) -> Result<Due, Stop> {
        let (structured, bytes) = (self.agreed.structured, request.bytes);
        let out = self.answers.begin();
        if structured {
            out.push(&wire::chunk_head(chunk::OFFSET_DATA, request.cookie, bytes + 8));
            out.push(&request.offset.to_be_bytes());
        } else {
            out.push(&wire::simple_reply(error::NONE, request.cookie));
        }
        if self.drive.shows(request.offset, bytes) && self.answers.sends_in_place(bytes as usize) {
            let (range, answers) = ((request.offset, bytes), &mut self.answers);
            let (due, sent) =
                self.drive.read_in_place(self.session, range, |parts| answers.payload(parts))?;
            sent?;
            return Ok(due);
        }
        let into = self.answers.begin().reserve(bytes as usize);
        Ok(self.drive.read(self.session, request.offset, into)?)
    }

    /// Data go to the device as they come, in pieces if there are many. All of them are taken, whatever becomes of the
    /// first.
    fn write(&mut self, request: &Request) -> Result<Due, Stop> {
        let bytes = request.bytes as u64;
        let refused = match (self.allow(request), self.drive.check(request.offset, bytes)) {
            (Ok(()), Ok(())) => return self.write_pieces(request),
            (Ok(()), Err(_)) => Stop::Refused(error::NO_SPACE),
            (Err(why), _) => why,
        };
        self.skip(bytes)?;
        Err(refused)
    }

    /// Nobody wants these data any more.
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.answers.send()?;
        self.caller.is_halfway();
        self.incoming.skip(bytes)?;
        self.caller.works();
        Ok(())
    }

    fn write_pieces(&mut self, request: &Request) -> Result<Due, Stop> {
        let fua = request.flags & flag::FUA != 0;
        let (mut left, mut due) = (request.bytes as u64, None);
        for (offset, bytes) in pieces(request.offset, left, WHOLE_MAX as u64) {
            let here = bytes as usize;
            if self.incoming.len() < here {
                self.answers.send()?;
                if (request.bytes as usize) < WHOLE_MAX {
                    // The client is about to send the rest: on one core it does so now, and need not wake anybody.
                    std::thread::yield_now();
                }
                self.caller.is_halfway();
                self.incoming.wait(here)?;
                self.caller.works();
            }
            let written = self.drive.write(self.session, offset, self.incoming.need(here)?, fua);
            self.incoming.consume(here);
            left -= bytes;
            match written {
                Ok(piece_due) => due = due.max(piece_due),
                Err(fault) => {
                    self.skip(left)?;
                    return Err(fault.into());
                }
            }
        }
        self.done(request);
        Ok(due)
    }

    fn block_status(&mut self, request: &Request) -> Result<Due, Stop> {
        if !self.agreed.allocation {
            return Err(Stop::Refused(error::INVALID));
        }
        let most = if request.flags & flag::REQ_ONE != 0 { 1 } else { EXTENTS_MAX };
        let out = self.answers.begin();
        let head = out.len();
        out.push(&wire::chunk_head(chunk::BLOCK_STATUS, request.cookie, 0));
        out.push(&wire::ALLOCATION_ID.to_be_bytes());
        let mut extents = 0;
        self.drive.mapped(self.session, (request.offset, request.bytes as u64), |bytes, mapped| {
            out.push(&(bytes as u32).to_be_bytes());
            out.push(&(if mapped { 0 } else { wire::HOLE_AND_ZERO }).to_be_bytes());
            extents += 1;
            extents < most
        })?;
        let whole = out.len();
        out.truncate(head);
        out.push(&wire::chunk_head(chunk::BLOCK_STATUS, request.cookie, 4 + 8 * extents as u32));
        // What follows the head is there already.
        out.reserve(whole - head - wire::CHUNK_BYTES);
        Ok(None)
    }
}

fn refuse(out: &mut Outgoing, structured: bool, request: &Request, error: u32) {
    if structured {
        out.push(&wire::chunk_head(chunk::ERROR, request.cookie, 6));
        out.push(&error.to_be_bytes());
        // A text of no bytes.
        out.push(&[0, 0]);
    } else {
        out.push(&wire::simple_reply(error, request.cookie));
    }
}
