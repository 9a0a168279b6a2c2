//! Requests of one connection, after the handshake.

use super::handshake::Agreed;
use super::refusal::{Named, Refusal, check};
use super::wire::{self, Request, chunk, command, error, flag};
use crate::answers::{Answers, Outgoing};
use crate::net::connections::Connection;
use crate::net::incoming::{Incoming, WHOLE_MAX};
use crate::net::log::Log;
use crate::served::drive::pieces;
use crate::served::{Drive, DriveError, Due, Session, Zero};
use std::io::{self, Error, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Extents of one reply to a block status request.
const EXTENTS_MAX: usize = 4096;

/// Bytes of a refused write that are skipped; a client that announces more receives the error and is disconnected. No client
/// does that by accident: it knows the maximum ([`wire::PAYLOAD_MAX`]).
const SKIP_MAX: u64 = 2 * wire::PAYLOAD_MAX as u64;

/// One connection.
pub(super) struct Transmission<'a> {
    pub incoming: &'a mut Incoming,
    pub answers: &'a mut Answers,
    pub drive: &'a Drive,
    pub session: Session,
    pub agreed: Agreed,
    /// The server is stopping: requests that have not begun are refused.
    pub stopping: &'a AtomicBool,
    pub connection: &'a Connection,
    pub log: &'a Log,
}

/// Why a request has no ordinary reply.
enum Stop {
    /// It is answered with an error.
    Refused(Refusal),
    /// As `Refused`, and the connection ends: too much data would follow.
    Left(Refusal),
    /// The power failed: there is no reply.
    PowerLost,
    /// The connection failed.
    Broken(Error),
}

impl From<DriveError> for Stop {
    fn from(fault: DriveError) -> Stop {
        match fault {
            DriveError::PowerLost => Stop::PowerLost,
            fault => Stop::Refused(Refusal::Device(fault)),
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Broken(error)
    }
}

impl Transmission<'_> {
    /// Serves until the client disconnects, the power fails or the connection does.
    pub fn run(&mut self) -> io::Result<()> {
        loop {
            if self.incoming.len() < wire::REQUEST_BYTES {
                self.answers.send()?;
                self.connection.set_idle();
                if !self.incoming.wait(wire::REQUEST_BYTES)? {
                    return Ok(());
                }
                self.connection.set_busy();
            }
            let head = self.incoming.here(wire::REQUEST_BYTES).try_into().expect("a request's head");
            let Some(request) = Request::parse(head) else {
                return Err(Error::new(ErrorKind::InvalidData, "a request without magic number"));
            };
            self.incoming.consume(wire::REQUEST_BYTES);
            if request.command == command::DISCONNECT {
                return self.answers.send();
            }
            let start = self.answers.begin().len();
            let served = self.serve(&request);
            let due = match served {
                Ok(due) => due,
                Err(Stop::Refused(why)) => {
                    self.refuse(start, &request, &why);
                    None
                }
                Err(Stop::Left(why)) => {
                    self.refuse(start, &request, &why);
                    self.answers.end(None, Some(0), true)?;
                    self.answers.send()?;
                    let why = format!("the data of {} is too long to skip", Named(&request));
                    return Err(Error::new(ErrorKind::InvalidData, why));
                }
                Err(Stop::PowerLost) => return Ok(()),
                Err(Stop::Broken(error)) => return Err(error),
            };
            let more = self.incoming.len() >= wire::REQUEST_BYTES;
            self.answers.end(due, Some(0), more)?;
        }
    }

    fn serve(&mut self, request: &Request) -> Result<Due, Stop> {
        let stopping = self.stopping.load(Ordering::Relaxed);
        if let Err(why) = check(request, &self.agreed, self.drive, stopping) {
            return Err(match request.command {
                // Its data precede the next request.
                command::WRITE if request.bytes as u64 > SKIP_MAX => Stop::Left(why),
                command::WRITE => match self.skip(request.bytes as u64) {
                    Ok(()) => why.into(),
                    Err(error) => error.into(),
                },
                _ => why.into(),
            });
        }
        let (drive, session) = (self.drive, self.session);
        let (offset, bytes) = (request.offset, request.bytes as u64);
        let fua = request.flags & flag::FUA != 0;
        let due = match request.command {
            command::READ => return self.read(request),
            command::WRITE => return self.write(request),
            command::BLOCK_STATUS => return self.block_status(request),
            command::FLUSH => drive.flush(session)?,
            command::TRIM => drive.trim(session, offset, bytes, fua)?,
            command::WRITE_ZEROES => {
                let (may_trim, fast) =
                    (request.flags & flag::NO_HOLE == 0, request.flags & flag::FAST_ZERO != 0);
                drive.zero(session, (offset, bytes), Zero { may_trim, fast, fua })?
            }
            // CACHE: the device has no cache that the host could fill.
            _ => None,
        };
        self.done(request);
        Ok(due)
    }

    /// Replies with an error, in place of everything written from `start` on.
    fn refuse(&mut self, start: usize, request: &Request, why: &Refusal) {
        if !why.is_expected() {
            self.log.say(format_args!("nbd: {} was refused: {why}", Named(request)));
        }
        let (structured, error) = (self.agreed.structured, why.error(request));
        let out = self.answers.begin();
        out.truncate(start);
        refuse(out, structured, request, error);
    }

    /// The reply without data.
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
            // Before the device is locked: the socket then accepts more without a copy, and unread replies do not fill the
            // caches.
            self.connection.wait_writable()?;
            let (range, answers) = ((request.offset, bytes), &mut self.answers);
            let (due, sent) =
                self.drive.read_in_place(self.session, range, |parts| answers.payload(parts))?;
            sent?;
            return Ok(due);
        }
        let into = self.answers.begin().reserve(bytes as usize);
        Ok(self.drive.read(self.session, request.offset, into)?)
    }

    /// Skips the data of a refused request.
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.answers.send()?;
        self.connection.set_partial();
        self.incoming.skip(bytes)?;
        self.connection.set_busy();
        Ok(())
    }

    /// Writes data to the device as it arrives, in pieces if it is long. All of it is consumed, even if the first piece fails.
    fn write(&mut self, request: &Request) -> Result<Due, Stop> {
        let fua = request.flags & flag::FUA != 0;
        let (mut left, mut due) = (request.bytes as u64, None);
        for (offset, bytes) in pieces(request.offset, left, WHOLE_MAX as u64) {
            let here = bytes as usize;
            if self.incoming.len() < here {
                self.answers.send()?;
                if (request.bytes as usize) < WHOLE_MAX {
                    // The client is about to send the rest: on one core it does so now, without a wakeup.
                    std::thread::yield_now();
                }
                self.connection.set_partial();
                self.incoming.wait(here)?;
                self.connection.set_busy();
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
        // What follows the header is there already.
        out.reserve(whole - head - wire::CHUNK_BYTES);
        Ok(None)
    }
}

fn refuse(out: &mut Outgoing, structured: bool, request: &Request, error: u32) {
    if structured {
        out.push(&wire::chunk_head(chunk::ERROR, request.cookie, 6));
        out.push(&error.to_be_bytes());
        // An empty text.
        out.push(&[0, 0]);
    } else {
        out.push(&wire::simple_reply(error, request.cookie));
    }
}
