//! A connection: its read buffer, its replies, and what its two sides agreed on.

use super::pdu::{self, Digests, Fatal, Head, Initialize, Shape, fatal, kind};
use crate::answers::Answers;
use crate::net::connections::Connection;
use crate::net::incoming::Incoming;
use nvlab_units::checksum::crc32c;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// After a fatal error the host has this long, and this many bytes, to read why and to disconnect.
const LEAVE_PATIENCE: Duration = Duration::from_secs(1);
const LEAVE_BYTES: u64 = 4 << 20;

/// Why a connection ends.
#[derive(Debug)]
pub enum End {
    /// The host sent something wrong, with this header: it is told.
    Fatal(Fatal, Vec<u8>),
    /// The host says that we did.
    Terminated,
    /// The power failed: nothing more is sent.
    PowerLost,
    /// The connection failed.
    Broken(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Broken(error)
    }
}

/// A connection with a host.
pub struct Link<'a> {
    pub incoming: &'a mut Incoming,
    pub answers: &'a mut Answers,
    pub connection: &'a Connection,
    pub agreed: Initialize,
    /// It is a queue; before that it is in its handshake, for which there is not much time.
    pub is_queue: bool,
}

impl<'a> Link<'a> {
    /// A connection on which nothing was sent yet.
    pub fn new(incoming: &'a mut Incoming, answers: &'a mut Answers, connection: &'a Connection) -> Link<'a> {
        let agreed = Initialize { digests: Digests::default(), alignment: 4 };
        Link { incoming, answers, connection, agreed, is_queue: false }
    }

    /// Answers the host's ICReq; false: it disconnected before.
    pub fn initialize(&mut self) -> Result<bool, End> {
        if !self.incoming.wait(pdu::HEAD_BYTES)? {
            return Ok(false);
        }
        let (head, shape) = self.head(true)?;
        if head.kind == kind::TERMINATE_BY_HOST {
            return Err(End::Terminated);
        }
        let bytes = self.incoming.need(shape.header_bytes)?;
        let agreed = Initialize::parse(bytes).map_err(|why| End::Fatal(why, bytes.to_vec()))?;
        if shape.data > 0 {
            let why = Fatal { status: fatal::HEADER_FIELD, information: 4 };
            return Err(End::Fatal(why, bytes.to_vec()));
        }
        self.incoming.consume(shape.header_bytes);
        self.agreed = agreed;
        self.answers.begin().push(&agreed.response());
        self.answers.end(None, None, false)?;
        self.answers.send()?;
        Ok(true)
    }

    /// The host has nothing to wait for.
    pub fn set_idle(&self) {
        if self.is_queue {
            self.connection.set_idle();
        }
    }

    /// The rest of something is waited for.
    pub fn set_partial(&self) {
        if self.is_queue {
            self.connection.set_partial();
        }
    }

    /// A command is being served.
    pub fn set_busy(&self) {
        if self.is_queue {
            self.connection.set_busy();
        }
    }

    /// The common header of the next PDU, which is buffered, and its parts.
    fn head(&self, first: bool) -> Result<(Head, Shape), End> {
        let head = Head::parse(self.incoming.here(pdu::HEAD_BYTES));
        match head.check(self.agreed.digests, first) {
            Ok(shape) => Ok((head, shape)),
            Err(why) => Err(self.fatal(why)),
        }
    }

    /// The end because of the PDU that is buffered.
    pub fn fatal(&self, why: Fatal) -> End {
        let here = self.incoming.len().min(pdu::INITIALIZE_BYTES);
        End::Fatal(why, self.incoming.here(here).to_vec())
    }

    /// Reads the header of a PDU whose common header is buffered, and checks its digest. Header, digest and padding are
    /// consumed by [`Link::consume_header`].
    pub fn header(&mut self) -> Result<(Head, Shape), End> {
        let (head, shape) = self.head(false)?;
        if head.kind == kind::TERMINATE_BY_HOST {
            return Err(End::Terminated);
        }
        let all = self.before_data(&shape);
        self.wait(all)?;
        if self.agreed.digests.header {
            let bytes = self.incoming.here(all);
            let (header, rest) = bytes.split_at(shape.header_bytes);
            let found = u32::from_le_bytes(rest[..pdu::DIGEST_BYTES].try_into().expect("4 bytes"));
            if found != crc32c(&[header]) {
                return Err(self.fatal(Fatal { status: fatal::HEADER_DIGEST, information: found }));
            }
        }
        Ok((head, shape))
    }

    fn before_data(&self, shape: &Shape) -> usize {
        let digest = if self.agreed.digests.header { pdu::DIGEST_BYTES } else { 0 };
        shape.header_bytes + digest + shape.padding
    }

    /// Removes everything before the data.
    pub fn consume_header(&mut self, shape: &Shape) {
        self.incoming.consume(self.before_data(shape));
    }

    /// Waits until so many bytes of a PDU that has begun are buffered.
    pub fn wait(&mut self, bytes: usize) -> io::Result<()> {
        if self.incoming.len() < bytes {
            self.answers.send()?;
            // The host is about to send the rest: on one core it does so now, without a wakeup.
            std::thread::yield_now();
            self.set_partial();
            self.incoming.need(bytes)?;
            self.set_busy();
        }
        Ok(())
    }

    /// Skips data, and their digest.
    pub fn skip(&mut self, bytes: u32) -> io::Result<()> {
        let digest = if self.agreed.digests.data && bytes > 0 { pdu::DIGEST_BYTES as u64 } else { 0 };
        if (self.incoming.len() as u64) < bytes as u64 + digest {
            self.answers.send()?;
            self.set_partial();
        }
        self.incoming.skip(bytes as u64 + digest)?;
        self.set_busy();
        Ok(())
    }

    /// Tells the host why its connection ends, and gives it time to read that.
    pub fn terminate(&mut self, why: Fatal, faulty: &[u8]) -> io::Result<()> {
        pdu::terminate(self.answers.begin(), why, faulty);
        self.answers.end(None, None, true)?;
        self.answers.send()?;
        // What was sent and is never read would turn the end into a reset, which discards the reason.
        self.set_idle();
        self.connection.stream.limit(Some(LEAVE_PATIENCE), Some(LEAVE_PATIENCE))?;
        self.connection.stream.shutdown(Shutdown::Write);
        let (begun, mut left) = (Instant::now(), LEAVE_BYTES);
        while left > 0 && begun.elapsed() < LEAVE_PATIENCE {
            match self.connection.stream.read(&mut [0; 4096]) {
                Ok(0) => break,
                Ok(count) => left = left.saturating_sub(count as u64),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        Ok(())
    }
}
