//! A client of an NBD server in this process's user space: one request at a time.

use super::probe::Probe;
use crate::nbd::wire::{self, Request, command};
use nvlab_os::Mapping;
use nvlab_workload::Op;
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection that has chosen the first export.
pub(super) struct Client {
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
    pub fn connect(socket: &Path, bytes: u32) -> io::Result<Client> {
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
        Ok(Client { stream, buffer: super::probe::buffer(bytes)?, cookie: 0 })
    }

    fn request(&mut self, op: Op, offset: u64) -> io::Result<()> {
        self.cookie += 1;
        let command = if op == Op::Write { command::WRITE } else { command::READ };
        let bytes = self.buffer.len() as u32;
        let request = Request { flags: 0, command, cookie: self.cookie, offset, bytes };
        let head = request.encode();
        match op {
            Op::Write => {
                let all = head.len() + self.buffer.len();
                let parts = [IoSlice::new(&head), IoSlice::new(self.buffer.as_slice())];
                if self.stream.write_vectored(&parts)? != all {
                    return Err(wrong("a request was not accepted whole"));
                }
            }
            _ => self.stream.write_all(&head)?,
        }
        let mut reply = [0; wire::SIMPLE_REPLY_BYTES];
        self.stream.read_exact(&mut reply)?;
        let expected = [&wire::simple_reply(wire::error::NONE, self.cookie)[..]].concat();
        if reply[..] != expected {
            return Err(wrong("not the reply to the request, or an error"));
        }
        match op {
            Op::Write => Ok(()),
            _ => self.stream.read_exact(self.buffer.as_mut_slice()),
        }
    }
}

impl Probe for Client {
    fn run(&mut self, op: Op, offsets: &[u64]) -> io::Result<()> {
        offsets.iter().try_for_each(|&offset| self.request(op, offset))
    }
}
