//! The commands of a connection: each capsule is a command, whose data come with it, or are asked for by an R2T.

use super::link::{End, Link};
use super::pdu::{self, Fatal, Shape, fatal, kind};
use crate::net::incoming::WHOLE_MAX;
use crate::net::log::Log;
use crate::nvme::command::{
    COMMAND_BYTES, Command, Commands, Done, Fault, Flow, Moves, Outcome, Place, Status,
};
use crate::nvme::command::{WHOLE_BYTES_MAX, fabrics};
use nvlab_units::checksum::crc32c;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A command whose data were asked for.
struct Transfer {
    command: Command,
    bytes: u32,
    received: u32,
    /// The data so far, if they are taken as a whole.
    whole: Option<Vec<u8>>,
    outcome: Outcome,
}

/// The commands of a connection.
pub struct Queue<'a, 'l, C> {
    link: &'a mut Link<'l>,
    commands: &'a mut C,
    flow: Flow,
    /// Entries consumed so far, modulo their number.
    head: u16,
    /// By transfer tag.
    transfers: Vec<Option<Transfer>>,
    waiting: usize,
    /// Data that are complete before their digest is checked.
    collected: Vec<u8>,
    /// How long the host may be silent, as the connection knows it.
    patience: Option<Duration>,
    stopping: &'a AtomicBool,
    log: &'a Log,
}

impl<'a, 'l, C: Commands> Queue<'a, 'l, C> {
    /// A queue; `head`: entries consumed already. What has not begun when `stopping` is set is refused.
    pub fn new(
        link: &'a mut Link<'l>,
        commands: &'a mut C,
        (flow, head): (Flow, u16),
        stopping: &'a AtomicBool,
        log: &'a Log,
    ) -> Queue<'a, 'l, C> {
        let (transfers, collected) = Default::default();
        Queue { link, commands, flow, head, transfers, waiting: 0, collected, patience: None, stopping, log }
    }

    /// Serves until the host disconnects, the command set takes no more, or something fails.
    pub fn run(&mut self) -> Result<(), End> {
        while !self.commands.is_over() {
            if self.link.incoming.len() < pdu::HEAD_BYTES {
                self.link.answers.send()?;
                if !self.next()? {
                    return Ok(());
                }
            }
            let (head, shape) = self.link.header()?;
            match head.kind {
                kind::COMMAND => self.capsule(&shape)?,
                _ => self.data(&shape)?,
            }
        }
        Ok(self.link.answers.send()?)
    }

    /// Waits for a PDU; false if the host disconnected.
    fn next(&mut self) -> io::Result<bool> {
        match self.waiting {
            0 => self.link.set_idle(),
            _ => self.link.set_partial(),
        }
        let patience = self.commands.patience();
        if patience != self.patience {
            self.link.connection.stream.limit_reads(patience)?;
            self.patience = patience;
        }
        let found = self.link.incoming.wait(pdu::HEAD_BYTES).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                io::Error::new(ErrorKind::TimedOut, "its keep-alive timer expired")
            }
            _ => error,
        })?;
        self.link.set_busy();
        Ok(found)
    }

    /// True if another PDU has been read already.
    fn has_more(&self) -> bool {
        self.link.incoming.len() >= pdu::HEAD_BYTES
    }

    fn capsule(&mut self, shape: &Shape) -> Result<(), End> {
        let bytes = self.link.incoming.here(pdu::HEAD_BYTES + COMMAND_BYTES);
        let command = Command::new(bytes[pdu::HEAD_BYTES..].try_into().expect("an entry"));
        let is_admin = self.flow.queue == 0 || command.opcode() == fabrics::OPCODE;
        if is_admin && shape.data > pdu::ADMIN_IN_CAPSULE_BYTES {
            return Err(self.link.fatal(Fatal { status: fatal::LIMIT, information: 4 }));
        }
        self.link.consume_header(shape);
        self.head = (self.head + 1) % self.flow.entries.max(1);
        let moves = match self.stopping.load(Ordering::Relaxed) {
            true => Err(Status::QUEUE_DELETED),
            false => self.admit(&command, shape.data),
        };
        let outcome = match moves {
            Err(status) => {
                self.link.skip(shape.data)?;
                Err(status.into())
            }
            Ok(Moves::Nothing) => {
                self.link.skip(shape.data)?;
                self.commands.run(&command)
            }
            Ok(Moves::ToHost(bytes)) => {
                self.link.skip(shape.data)?;
                return self.deliver(&command, bytes);
            }
            Ok(Moves::FromHost(bytes)) if shape.data == 0 => return self.ask(command, bytes, None),
            Ok(Moves::WholeFromHost(bytes)) if shape.data == 0 => {
                return self.ask(command, bytes, Some(Vec::new()));
            }
            // Complete data of at most this length arrive in one piece.
            Ok(Moves::FromHost(bytes) | Moves::WholeFromHost(bytes)) => {
                self.receive(&command, 0, bytes, Ok(None))?
            }
        };
        self.complete(&command, outcome)
    }

    /// What a command moves, if that fits its descriptor and the data in its capsule.
    fn admit(&mut self, command: &Command, inline: u32) -> Result<Moves, Status> {
        command.check_flags()?;
        let moves = self.commands.moves(command)?;
        let bytes = match moves {
            Moves::Nothing => return Ok(moves),
            Moves::ToHost(bytes) => match command.place()? {
                Place::Transport if bytes == command.data_bytes() => return Ok(moves),
                Place::Transport => return Err(Status::SGL_LENGTH),
                Place::Capsule(_) => return Err(Status::SGL_TYPE),
            },
            Moves::FromHost(bytes) => bytes,
            Moves::WholeFromHost(bytes) if bytes > WHOLE_BYTES_MAX => return Err(Status::SGL_LENGTH),
            Moves::WholeFromHost(bytes) => bytes,
        };
        match command.place()? {
            _ if bytes == 0 || bytes != command.data_bytes() => Err(Status::SGL_LENGTH),
            Place::Capsule(0) if bytes == inline => Ok(moves),
            Place::Capsule(0) => Err(Status::SGL_LENGTH),
            Place::Capsule(_) => Err(Status::SGL_OFFSET),
            Place::Transport if inline == 0 => Ok(moves),
            Place::Transport => Err(Status::SGL_TYPE),
        }
    }

    /// Sends the data of a command and its completion.
    fn deliver(&mut self, command: &Command, bytes: u32) -> Result<(), End> {
        let (agreed, without_response) = (self.link.agreed, self.flow.disabled);
        let out = self.link.answers.begin();
        let start = out.len();
        pdu::data_to_host(out, &agreed, command.id(), bytes, without_response);
        let in_place = !agreed.digests.data && self.link.answers.sends_in_place(bytes as usize);
        let outcome = match in_place && self.commands.shows(command) {
            true => self.show(command)?,
            false => self.commands.fill(command, self.link.answers.begin().reserve(bytes as usize)),
        };
        let out = self.link.answers.begin();
        let Ok(Some(done)) = outcome else {
            out.truncate(start);
            return self.complete(command, outcome);
        };
        if agreed.digests.data {
            let digest = crc32c(&[out.last(bytes as usize)]);
            out.push(&digest.to_le_bytes());
        }
        if without_response {
            let more = self.has_more();
            return Ok(self.link.answers.end(done.due, done.of, more)?);
        }
        self.complete(command, outcome)
    }

    /// Sends data from the media, after what was written before.
    fn show(&mut self, command: &Command) -> Result<Outcome, End> {
        // Before the device is locked: the socket then accepts more without a copy.
        self.link.connection.wait_writable()?;
        let (answers, mut sent) = (&mut *self.link.answers, Ok(()));
        let outcome = self.commands.show(command, &mut |parts| sent = answers.payload(parts));
        sent?;
        Ok(outcome)
    }

    /// Asks for the data of a command.
    fn ask(&mut self, command: Command, bytes: u32, whole: Option<Vec<u8>>) -> Result<(), End> {
        let same = |transfer: &Transfer| transfer.command.id() == command.id();
        if self.transfers.iter().flatten().any(same) {
            return self.complete(&command, Err(Status::ID_CONFLICT.into()));
        }
        let free = self.transfers.iter().position(Option::is_none);
        let tag = free.unwrap_or(self.transfers.len());
        if tag == self.flow.entries.max(1) as usize {
            // More commands than the queue has entries.
            return Err(End::Fatal(Fatal { status: fatal::SEQUENCE, information: 0 }, Vec::new()));
        }
        if free.is_none() {
            self.transfers.push(None);
        }
        self.transfers[tag] = Some(Transfer { command, bytes, received: 0, whole, outcome: Ok(None) });
        self.waiting += 1;
        let (digests, more) = (self.link.agreed.digests, self.has_more());
        pdu::ready_to_transfer(self.link.answers.begin(), digests, command.id(), tag as u16, bytes);
        Ok(self.link.answers.end(None, None, more)?)
    }

    /// A PDU of data that were asked for.
    fn data(&mut self, shape: &Shape) -> Result<(), End> {
        let header = self.link.incoming.here(shape.header_bytes);
        let (id, tag, offset, bytes) = pdu::data_from_host(header);
        let last = header[1] & pdu::flag::LAST != 0;
        let slot = self.transfers.get_mut(tag as usize);
        let transfer = slot.filter(|slot| slot.as_ref().is_some_and(|asked| asked.command.id() == id));
        let fault = |status, information| Err(self.link.fatal(Fatal { status, information }));
        let Some(transfer) = transfer else { return fault(fatal::HEADER_FIELD, 10) };
        let asked = transfer.as_ref().expect("it was found");
        let end = offset.checked_add(bytes);
        match end {
            _ if bytes != shape.data => return fault(fatal::HEADER_FIELD, 16),
            _ if offset != asked.received => return fault(fatal::OUT_OF_RANGE, 12),
            Some(end) if end > asked.bytes => return fault(fatal::OUT_OF_RANGE, 16),
            None => return fault(fatal::OUT_OF_RANGE, 16),
            // The last PDU, and only that, ends what was asked for.
            Some(end) if last != (end == asked.bytes) => return fault(fatal::HEADER_FIELD, 1),
            Some(_) => {}
        }
        let mut asked = transfer.take().expect("it was found");
        self.link.consume_header(shape);
        match &mut asked.whole {
            None => asked.outcome = self.receive(&asked.command, offset, bytes, asked.outcome)?,
            Some(whole) => {
                if !self.collect(bytes)? {
                    asked.outcome = Err(Status::TRANSIENT_TRANSPORT.into());
                }
                whole.extend_from_slice(&self.collected);
            }
        }
        asked.received += bytes;
        if !last {
            self.transfers[tag as usize] = Some(asked);
            return Ok(());
        }
        self.waiting -= 1;
        let outcome = match (asked.outcome, &asked.whole) {
            (Ok(_), Some(whole)) => self.commands.take(&asked.command, 0, whole),
            (outcome, _) => outcome,
        };
        self.complete(&asked.command, outcome)
    }

    /// Passes the data of a PDU to the command set, in pieces if they are long. All of them are consumed, even if the first
    /// piece fails. With a digest, nothing is passed on before that was checked.
    fn receive(
        &mut self,
        command: &Command,
        offset: u32,
        bytes: u32,
        before: Outcome,
    ) -> Result<Outcome, End> {
        if self.link.agreed.digests.data {
            let intact = self.collect(bytes)?;
            return Ok(match before {
                Ok(_) if intact => after(before, self.commands.take(command, offset, &self.collected)),
                Ok(_) => Err(Status::TRANSIENT_TRANSPORT.into()),
                failed => failed,
            });
        }
        let (mut outcome, mut done) = (before, 0);
        while done < bytes {
            let here = (bytes - done).min(WHOLE_MAX as u32);
            self.link.wait(here as usize)?;
            if outcome.is_ok() {
                let piece = self.link.incoming.here(here as usize);
                outcome = after(outcome, self.commands.take(command, offset + done, piece));
            }
            self.link.incoming.consume(here as usize);
            done += here;
        }
        Ok(outcome)
    }

    /// Collects the data of a PDU; false if their digest is wrong.
    fn collect(&mut self, bytes: u32) -> Result<bool, End> {
        self.collected.clear();
        let mut left = bytes as usize;
        while left > 0 {
            let here = left.min(WHOLE_MAX);
            self.link.wait(here)?;
            self.collected.extend_from_slice(self.link.incoming.here(here));
            self.link.incoming.consume(here);
            left -= here;
        }
        if !self.link.agreed.digests.data {
            return Ok(true);
        }
        self.link.wait(pdu::DIGEST_BYTES)?;
        let found = self.link.incoming.here(pdu::DIGEST_BYTES).try_into().expect("4 bytes");
        let intact = u32::from_le_bytes(found) == crc32c(&[&self.collected]);
        self.link.incoming.consume(pdu::DIGEST_BYTES);
        Ok(intact)
    }

    /// Ends a command, and those of earlier that end with it.
    fn complete(&mut self, command: &Command, outcome: Outcome) -> Result<(), End> {
        match outcome {
            Ok(Some(done)) => self.respond(command.id(), Status::SUCCESS, done)?,
            Ok(None) => {}
            Err(Fault::PowerLost) => return Err(End::PowerLost),
            Err(Fault::Failed(status, result)) => {
                if !status.is_expected() {
                    self.log.say(format_args!(
                        "nvme: command {:#04x} on queue {} failed: {status}",
                        command.opcode(),
                        self.flow.queue
                    ));
                }
                self.commands.failed(command, status);
                self.respond(command.id(), status, Done { result, ..Done::default() })?;
            }
        }
        while let Some((id, ended)) = self.commands.later() {
            let (status, result) =
                ended.map_or_else(|status| (status, 0), |result| (Status::SUCCESS, result));
            self.respond(id, status, Done { result, ..Done::default() })?;
        }
        Ok(())
    }

    fn respond(&mut self, id: u16, status: Status, done: Done) -> Result<(), End> {
        let mut entry = [0; 16];
        entry[..8].copy_from_slice(&done.result.to_le_bytes());
        let head = if self.flow.disabled { 0 } else { self.head };
        entry[8..10].copy_from_slice(&head.to_le_bytes());
        entry[12..14].copy_from_slice(&id.to_le_bytes());
        entry[14..].copy_from_slice(&status.bits().to_le_bytes());
        let (digests, more) = (self.link.agreed.digests, self.has_more());
        pdu::response(self.link.answers.begin(), digests, &entry);
        Ok(self.link.answers.end(done.due, done.of, more)?)
    }
}

/// The outcome of two pieces of a command: the latest time counts.
fn after(before: Outcome, piece: Outcome) -> Outcome {
    match (before, piece) {
        (Ok(Some(before)), Ok(Some(piece))) => Ok(Some(Done { due: before.due.max(piece.due), ..piece })),
        (Ok(_), piece) => piece,
        (failed, _) => failed,
    }
}
