//! The read buffer of a connection, encrypted or not.

use super::transport::Transport;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Bytes of the buffer: holds several requests of a deep queue, and still fits the processor's cache. (With twice as much
/// and twice [`WHOLE_MAX`] a write of 1 MiB took 12 % more processor time.)
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes that can be waited for at once.
pub(crate) const WHOLE_MAX: usize = 128 << 10;

/// Bytes received and not consumed yet.
#[derive(Debug)]
pub(crate) struct Incoming {
    transport: Arc<Transport>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Incoming {
    pub fn new(transport: Arc<Transport>) -> Incoming {
        Incoming { transport, buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Waits until this many bytes, at most [`WHOLE_MAX`], are buffered; false if the stream ended before the first.
    pub fn wait(&mut self, bytes: usize) -> io::Result<bool> {
        while self.len() < bytes {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            } else if self.start + bytes > self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.len());
            }
            match self.transport.read(&mut self.buffer[self.end..]) {
                Ok(0) if self.len() == 0 => return Ok(false),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// As [`Incoming::wait`], where the end of the stream is an error.
    pub fn need(&mut self, bytes: usize) -> io::Result<&[u8]> {
        match self.wait(bytes)? {
            true => Ok(&self.buffer[self.start..self.start + bytes]),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The next `bytes` bytes, which must be buffered.
    pub fn here(&self, bytes: usize) -> &[u8] {
        &self.buffer[self.start..self.end][..bytes]
    }

    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        assert!(self.start <= self.end, "{bytes} B were not here");
    }

    pub fn skip(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let count = bytes.min(WHOLE_MAX as u64) as usize;
            self.need(count)?;
            self.consume(count);
            bytes -= count as u64;
        }
        Ok(())
    }
}
