//! A connected socket of either kind.

use crate::sys::stream;
use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// The address of the other side, if it has one.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Stream::Unix(_) => None,
            // A client that has gone meanwhile has no address.
            Stream::Tcp(stream) => {
                Some(stream.peer_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip()))
            }
        }
    }

    /// The address of this side.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        match self {
            Stream::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
            Stream::Tcp(stream) => stream.local_addr(),
        }
    }

    pub fn shutdown(&self, how: Shutdown) {
        // It may be closed already.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(how),
            Stream::Tcp(stream) => stream.shutdown(how),
        };
    }

    /// A read or write that takes longer fails.
    pub fn limit(&self, reads: Option<Duration>, writes: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => {
                stream.set_read_timeout(reads).and_then(|()| stream.set_write_timeout(writes))
            }
            Stream::Tcp(stream) => {
                stream.set_read_timeout(reads).and_then(|()| stream.set_write_timeout(writes))
            }
        }
    }

    /// A read that takes longer fails.
    pub fn limit_reads(&self, reads: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(reads),
            Stream::Tcp(stream) => stream.set_read_timeout(reads),
        }
    }

    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).read(into),
            Stream::Tcp(stream) => (&*stream).read(into),
        }
    }

    /// Sends what can be sent of these parts without waiting; returns the number of bytes.
    pub fn write_now(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream::send_now(stream, parts),
            Stream::Tcp(stream) => stream::send_now(stream, parts),
        }
    }

    /// Waits until a large part of a reply can be sent without waiting, no longer than a write may take.
    pub fn wait_writable(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream::wait_writable(stream, stream.write_timeout()?),
            Stream::Tcp(stream) => stream::wait_writable(stream, stream.write_timeout()?),
        }
    }

    pub fn write_all(&self, data: &[u8]) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => (&*stream).write_all(data),
            Stream::Tcp(stream) => (&*stream).write_all(data),
        }
    }
}
