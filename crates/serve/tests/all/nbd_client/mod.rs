//! A client that says exactly what a test wants said.

// Each test program uses some of it.
#![allow(dead_code)]

use nvlab_serve::Drive;
use nvlab_serve::nbd::wire::{self, Request, command, option, reply};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A connection.
pub struct Client<S = UnixStream> {
    /// The socket, or what encrypts before it.
    pub stream: S,
    /// Structured replies were agreed.
    pub structured: bool,
    cookie: u64,
}

/// A client that has chosen the first export.
pub fn connect(path: &Path, structured: bool) -> Client {
    let mut client = Client::connect(path);
    if structured {
        client.option(option::STRUCTURED_REPLY, b"");
        assert_eq!(client.option_reply(option::STRUCTURED_REPLY).0, reply::ACK);
        client.structured = true;
    }
    client.go("").unwrap();
    client
}

/// Waits until so many operations were asked of a device.
pub fn wait_for_operations(drive: &Drive, count: u64) {
    let begun = Instant::now();
    while drive.operations() < count {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} of {count} operations", drive.operations());
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Client {
    /// After the greeting.
    pub fn connect(path: &Path) -> Client {
        Client::connect_with(path, true)
    }

    /// The same, with the flag or without.
    pub fn connect_with(path: &Path, no_zeroes: bool) -> Client {
        let mut client = Client::connect_raw(path);
        let flags = wire::FIXED_NEWSTYLE | if no_zeroes { wire::NO_ZEROES } else { 0 };
        client.stream.write_all(&(flags as u32).to_be_bytes()).unwrap();
        client
    }

    /// The greeting was read, nothing was said.
    pub fn connect_raw(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut client = Client { stream, structured: false, cookie: 0 };
        let greeting = client.bytes(18);
        assert_eq!(greeting[..8], wire::MAGIC.to_be_bytes());
        client
    }

    /// An option as it is sent.
    pub fn option_bytes(number: u32, data: &[u8]) -> Vec<u8> {
        let head = [&wire::OPTION_MAGIC.to_be_bytes()[..], &number.to_be_bytes()].concat();
        [&head, &(data.len() as u32).to_be_bytes()[..], data].concat()
    }

    /// Goes on over something else.
    pub fn over<S>(self, wrap: impl FnOnce(UnixStream) -> S) -> Client<S> {
        Client { stream: wrap(self.stream), structured: false, cookie: self.cookie }
    }
}

impl<S: Read + Write> Client<S> {
    /// The next so many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }

    /// Sends an option.
    pub fn option(&mut self, number: u32, data: &[u8]) {
        self.stream.write_all(&Client::option_bytes(number, data)).unwrap();
    }

    /// Kind and data of the next reply to an option.
    pub fn option_reply(&mut self, number: u32) -> (u32, Vec<u8>) {
        assert_eq!(self.bytes(8), wire::OPTION_REPLY_MAGIC.to_be_bytes());
        assert_eq!(self.u32(), number);
        let (kind, length) = (self.u32(), self.u32());
        (kind, self.bytes(length as usize))
    }

    /// Chooses an export: size and flags, or the error.
    pub fn go(&mut self, name: &str) -> Result<(u64, u16), u32> {
        let length = (name.len() as u32).to_be_bytes();
        self.option(option::GO, &[&length[..], name.as_bytes(), &[0, 0]].concat());
        let mut told = (0, 0);
        loop {
            match self.option_reply(option::GO) {
                (reply::ACK, _) => return Ok(told),
                (reply::INFO, data) if data[..2] == [0, 0] => {
                    let bytes = u64::from_be_bytes(data[2..10].try_into().unwrap());
                    told = (bytes, u16::from_be_bytes(data[10..12].try_into().unwrap()));
                }
                (reply::INFO, _) => {}
                (kind, _) => return Err(kind),
            }
        }
    }

    /// The next reply is of the request with this cookie.
    pub fn expect_cookie(&mut self, cookie: u64) {
        self.cookie = cookie;
    }

    /// Sends a request.
    pub fn request(&mut self, command: u16, flags: u16, offset: u64, bytes: u32) {
        self.cookie += 1;
        let request = Request { flags, command, cookie: self.cookie, offset, bytes };
        self.stream.write_all(&request.encode()).unwrap();
    }

    /// Sends a write with its data.
    pub fn write(&mut self, offset: u64, data: &[u8], flags: u16) {
        self.request(command::WRITE, flags, offset, data.len() as u32);
        self.stream.write_all(data).unwrap();
    }

    /// A simple reply with so much data.
    pub fn simple(&mut self, bytes: usize) -> Result<Vec<u8>, u32> {
        assert_eq!(self.u32(), wire::SIMPLE_REPLY_MAGIC);
        let error = self.u32();
        assert_eq!(self.bytes(8), self.cookie.to_be_bytes());
        if error == 0 { Ok(self.bytes(bytes)) } else { Err(error) }
    }

    /// The only chunk of a structured reply: kind and data, or the error.
    fn chunk(&mut self) -> Result<(u16, Vec<u8>), u32> {
        assert_eq!(self.u32(), wire::CHUNK_MAGIC);
        let kind = self.u32();
        assert_eq!(kind >> 16, 1, "one chunk is the last");
        assert_eq!(self.bytes(8), self.cookie.to_be_bytes());
        let length = self.u32();
        let data = self.bytes(length as usize);
        match kind as u16 {
            wire::chunk::ERROR => Err(u32::from_be_bytes(data[..4].try_into().unwrap())),
            kind => Ok((kind, data)),
        }
    }

    /// The answer of what has no data.
    pub fn done(&mut self) -> Result<(), u32> {
        if !self.structured {
            return self.simple(0).map(|_| ());
        }
        self.chunk().map(|(kind, data)| assert_eq!((kind, data.len()), (wire::chunk::NONE, 0)))
    }

    /// What a read brought.
    pub fn data(&mut self, offset: u64, bytes: usize) -> Result<Vec<u8>, u32> {
        if !self.structured {
            return self.simple(bytes);
        }
        let (kind, data) = self.chunk()?;
        assert_eq!(kind, wire::chunk::OFFSET_DATA);
        assert_eq!((&data[..8], data.len()), (&offset.to_be_bytes()[..], bytes + 8));
        Ok(data[8..].to_vec())
    }

    /// What block status told: bytes and flags.
    pub fn extents(&mut self) -> Vec<(u32, u32)> {
        let (kind, data) = self.chunk().unwrap();
        assert_eq!((kind, &data[..4]), (wire::chunk::BLOCK_STATUS, &wire::ALLOCATION_ID.to_be_bytes()[..]));
        let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        data[4..].chunks_exact(8).map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect()
    }
}
