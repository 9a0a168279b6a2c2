//! A connection: a socket, and TLS on it once that was negotiated.

use super::connections::Connection;
use super::tls::Tls;
use rustls::ServerConfig;
use std::io;
use std::sync::{Arc, OnceLock};

/// A connected client.
#[derive(Debug)]
pub(crate) struct Transport {
    pub connection: Arc<Connection>,
    tls: OnceLock<Tls>,
}

impl Transport {
    pub fn new(connection: Arc<Connection>) -> Transport {
        Transport { connection, tls: OnceLock::new() }
    }

    pub fn is_secure(&self) -> bool {
        self.tls.get().is_some()
    }

    /// Begins TLS: from now on everything is encrypted.
    pub fn secure(&self, config: Arc<ServerConfig>) -> io::Result<()> {
        let tls = Tls::begin(&self.connection.stream, config)?;
        self.tls.set(tls).map_err(|_| io::Error::other("TLS was begun twice"))
    }

    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self.tls.get() {
            None => self.connection.stream.read(into),
            Some(tls) => tls.read(&self.connection, into),
        }
    }

    pub fn write_all(&self, data: &[u8]) -> io::Result<()> {
        match self.tls.get() {
            None => self.connection.write_all(data),
            Some(tls) => tls.write_all(&self.connection, data),
        }
    }

    /// Announces the end of the stream, where TLS can.
    pub fn end(&self) {
        if let Some(tls) = self.tls.get() {
            tls.end(&self.connection);
        }
    }
}
