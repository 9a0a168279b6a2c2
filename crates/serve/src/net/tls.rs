//! TLS on a connection, by rustls: authentication, and encrypted bytes in both directions.
//!
//! One thread reads a connection, another may write it meanwhile: the session is locked only while bytes are encrypted or
//! decrypted, never while a socket waits. Messages of rustls itself (the reply to a key update) are sent with the next
//! reply, as TLS 1.3 allows.

use super::connections::Connection;
use super::stream::Stream;
use crate::ServeError;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard};

/// Encrypted bytes read at once.
const INCOMING_BYTES: usize = 128 << 10;

/// Whether clients use TLS, as `--tls` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// STARTTLS is refused.
    #[default]
    Off,
    /// Clients may use STARTTLS; exports are there without it, too.
    On,
    /// They must: without it every export is refused.
    Require,
}

impl FromStr for TlsMode {
    type Err = String;

    fn from_str(text: &str) -> Result<TlsMode, String> {
        match text {
            "off" => Ok(TlsMode::Off),
            "on" => Ok(TlsMode::On),
            "require" => Ok(TlsMode::Require),
            _ => Err("write off, on or require".into()),
        }
    }
}

/// How a server authenticates itself and its clients.
#[derive(Clone, Debug)]
pub struct Security {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) required: bool,
}

impl Security {
    /// From a folder with `server-cert.pem` and `server-key.pem`. With `verify_peer` a client must present a certificate
    /// signed by `ca-cert.pem` there; `required` should be true then, or clients without TLS bypass that.
    pub fn load(folder: &Path, required: bool, verify_peer: bool) -> Result<Security, ServeError> {
        let chain = certificates(&folder.join("server-cert.pem"))?;
        let path = folder.join("server-key.pem");
        let key = PrivateKeyDer::from_pem_file(&path).map_err(|error| unusable(&path, error))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(folder, error))?;
        let builder = if verify_peer {
            let path = folder.join("ca-cert.pem");
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&path)? {
                roots.add(certificate).map_err(|error| unusable(&path, error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().map_err(|error| unusable(&path, error))?)
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| unusable(folder, error))?;
        // Sessions are not resumed.
        config.send_tls13_tickets = 0;
        Ok(Security { config: Arc::new(config), required })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read.map_err(|error| unusable(path, error))? {
        none if none.is_empty() => Err(unusable(path, "it contains no certificate")),
        some => Ok(some),
    }
}

fn unusable(path: &Path, why: impl Display) -> ServeError {
    ServeError::Options(format!("{}: cannot be used for TLS: {why}", path.display()))
}

/// Encrypted bytes received and not decrypted yet.
#[derive(Debug)]
struct Incoming {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

/// A TLS session.
#[derive(Debug)]
pub(crate) struct Tls {
    session: Mutex<ServerConnection>,
    incoming: Mutex<Incoming>,
    /// Encrypted bytes to send, in order: locked before the session, until they are sent.
    outgoing: Mutex<Vec<u8>>,
}

/// The error after a panic: what was encrypted by then is unknown.
fn lock<T>(mutex: &Mutex<T>) -> io::Result<MutexGuard<'_, T>> {
    mutex.lock().map_err(|_| io::Error::other("TLS panicked"))
}

/// A socket as rustls requires it for the handshake.
struct BothWays<'a>(&'a Stream);

impl Read for BothWays<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for BothWays<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.write_all(data).map(|()| data.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tls {
    pub fn begin(socket: &Stream, config: Arc<ServerConfig>) -> io::Result<Tls> {
        let mut session = ServerConnection::new(config).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut BothWays(socket))?;
        }
        let buffer = vec![0; INCOMING_BYTES].into_boxed_slice();
        Ok(Tls {
            session: Mutex::new(session),
            incoming: Mutex::new(Incoming { buffer, start: 0, end: 0 }),
            outgoing: Mutex::default(),
        })
    }

    /// Reads decrypted bytes; 0: the end of the stream. Requests have lengths, so a truncated stream is noticed without a
    /// closing message.
    pub fn read(&self, connection: &Connection, into: &mut [u8]) -> io::Result<usize> {
        let mut incoming = lock(&self.incoming)?;
        let incoming = &mut *incoming;
        loop {
            let mut session = lock(&self.session)?;
            match session.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if incoming.start == incoming.end {
                drop(session);
                let count = connection.stream.read(&mut incoming.buffer)?;
                if count == 0 {
                    return Ok(0);
                }
                (incoming.start, incoming.end) = (0, count);
                continue;
            }
            let mut here = &incoming.buffer[incoming.start..incoming.end];
            incoming.start += session.read_tls(&mut here)?;
            if let Err(error) = session.process_new_packets() {
                drop(session);
                // The client is told why, if it still reads.
                let _ = self.write_all(connection, &[]);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    pub fn write_all(&self, connection: &Connection, mut data: &[u8]) -> io::Result<()> {
        let mut outgoing = lock(&self.outgoing)?;
        loop {
            outgoing.clear();
            let mut session = lock(&self.session)?;
            let taken = session.writer().write(data)?;
            data = &data[taken..];
            while session.wants_write() {
                session.write_tls(&mut *outgoing)?;
            }
            drop(session);
            connection.write_all(&outgoing)?;
            if data.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends close_notify, so that the client can tell the end from a cut.
    pub fn end(&self, connection: &Connection) {
        let Ok(mut session) = lock(&self.session) else { return };
        session.send_close_notify();
        drop(session);
        // The client may have gone.
        let _ = self.write_all(connection, &[]);
    }
}
