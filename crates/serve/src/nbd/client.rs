//! An NBD client for measurements: requests of one size, one at a time or several in flight.

use super::wire::{self, Request, command};
use nvlab_os::Mapping;
use nvlab_workload::Op;
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection that has chosen the first export.
pub(crate) struct Client {
    stream: UnixStream,
    buffer: Mapping,
    cookie: u64,
}

/// The server's greeting, and its description of an export without the zeros after it.
const GREETING_BYTES: usize = 18;
const EXPORT_BYTES: usize = 10;

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Client {
    /// Connects to the server at a path. Requests are as long as `buffer`, which writes send and reads fill.
    pub(crate) fn connect(socket: &Path, buffer: Mapping) -> io::Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        let mut greeting = [0; GREETING_BYTES];
        stream.read_exact(&mut greeting)?;
        if greeting[..8] != wire::MAGIC.to_be_bytes() {
            return Err(wrong("not an NBD server"));
        }
        let flags = (wire::FIXED_NEWSTYLE | wire::NO_ZEROES) as u32;
        let mut hello = flags.to_be_bytes().to_vec();
        hello.extend(wire::OPTION_MAGIC.to_be_bytes());
        hello.extend(wire::option::EXPORT_NAME.to_be_bytes());
        // A name of no bytes: the first export.
        hello.extend(0u32.to_be_bytes());
        stream.write_all(&hello)?;
        stream.read_exact(&mut [0; EXPORT_BYTES])?;
        Ok(Client { stream, buffer, cookie: 0 })
    }

    /// Makes a request at each offset, all of them before the first reply is read: they must be so few that the server can
    /// send its replies meanwhile. Replies may come in any order.
    pub(crate) fn together(&mut self, op: Op, offsets: &[u64]) -> io::Result<()> {
        let first = self.cookie + 1;
        offsets.iter().try_for_each(|&offset| self.ask(op, offset))?;
        for _ in offsets {
            let mut reply = [0; wire::SIMPLE_REPLY_BYTES];
            self.stream.read_exact(&mut reply)?;
            let [.., a, b, c, d, e, f, g, h] = reply;
            let cookie = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            let expected = [&wire::simple_reply(wire::error::NONE, cookie)[..]].concat();
            if reply[..] != expected || !(first..=self.cookie).contains(&cookie) {
                return Err(wrong("not the reply to a request, or an error"));
            }
            if op == Op::Read {
                self.stream.read_exact(self.buffer.as_mut_slice())?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, op: Op, offset: u64) -> io::Result<()> {
        self.cookie += 1;
        let command = if op == Op::Write { command::WRITE } else { command::READ };
        let bytes = self.buffer.len() as u32;
        let request = Request { flags: 0, command, cookie: self.cookie, offset, bytes };
        let head = request.encode();
        if op == Op::Read {
            return self.stream.write_all(&head);
        }
        let all = head.len() + self.buffer.len();
        let parts = [IoSlice::new(&head), IoSlice::new(self.buffer.as_slice())];
        match self.stream.write_vectored(&parts)? == all {
            true => Ok(()),
            false => Err(wrong("a request was not accepted whole")),
        }
    }
}
