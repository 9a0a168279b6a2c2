//! Management endpoints for users and tools: a control socket (one line of request, some lines of reply), and HTTP
//! ([`crate::http`]).
//!
//! | line | what it does |
//! |---|---|
//! | `status` | returns the counts so far, in the format of the metrics |
//! | `cut` | the power fails now and returns |
//! | `cut after N` | the power fails during the N-th operation from now |
//! | `stop` | shuts the server down cleanly |
//!
//! Each connection has its own thread; one that is silent or slow is closed and delays nobody else.

use crate::ServeError;
use crate::http::metrics::metrics;
use crate::http::watched::Watched;
use crate::http::{REQUEST_MAX, Reply, Site};
use crate::nbd::Address;
use crate::net::acceptor::Acceptor;
use crate::net::connections::{Connection, ConnectionLimits, Connections};
use crate::net::listen::listen;
use crate::net::log::Log;
use crate::net::stream::Stream;
use crate::served::Drive;
use crate::sys::signals;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Time to send a whole request, and to read the reply.
const PATIENCE: Duration = Duration::from_secs(2);
const LINE_MAX: usize = 4096;

/// The protocol at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The commands of the table above, one a line.
    Control,
    /// The page and the metrics of [`crate::http`].
    Http,
}

/// A listening socket and the thread that answers; closed when dropped.
#[derive(Debug)]
pub struct ManagementServer {
    address: Address,
    fragment: String,
    /// Stops when it is dropped.
    _acceptor: Acceptor,
}

impl ManagementServer {
    /// Where it listens: with the port that the system chose, if 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The address of the live page, with the token that allows changes.
    pub fn page(&self) -> String {
        format!("http://{}/{}", self.address, self.fragment)
    }

    /// Starts to answer about `drives` at an address.
    pub fn open(
        endpoint: Endpoint,
        address: &Address,
        drives: Vec<Arc<Drive>>,
    ) -> Result<ManagementServer, ServeError> {
        ManagementServer::listen(endpoint, address, drives, Vec::new())
    }

    /// A live page of something else than served devices.
    pub fn open_page(address: &Address, shown: Arc<dyn Watched>) -> Result<ManagementServer, ServeError> {
        ManagementServer::listen(Endpoint::Http, address, Vec::new(), vec![shown])
    }

    fn listen(
        endpoint: Endpoint,
        address: &Address,
        drives: Vec<Arc<Drive>>,
        others: Vec<Arc<dyn Watched>>,
    ) -> Result<ManagementServer, ServeError> {
        let (listener, address) = listen(address)?;
        let name = match endpoint {
            Endpoint::Control => "control",
            Endpoint::Http => "http",
        };
        let limits = ConnectionLimits { handshake: PATIENCE, ..ConnectionLimits::default() };
        let connections = Acceptor::connections(name, limits, Log::default())?;
        let site = Arc::new(Site::new(drives, others, address.is_remote())?);
        let fragment = site.fragment();
        let of_streams = Arc::clone(&connections);
        let serve = move |connection: &Arc<Connection>| {
            // A client that disconnects early needs no report.
            let _ = answer(endpoint, connection, &of_streams, &site);
            Ok(())
        };
        let acceptor = Acceptor::start(listener, connections, serve)?;
        Ok(ManagementServer { address, fragment, _acceptor: acceptor })
    }
}

fn answer(
    endpoint: Endpoint,
    connection: &Connection,
    connections: &Connections,
    site: &Site,
) -> io::Result<()> {
    // The time for a whole request is limited by `Connections`.
    connection.stream.limit(None, Some(PATIENCE))?;
    let (end, bytes_max): (&[u8], _) = match endpoint {
        Endpoint::Control => (b"\n", LINE_MAX),
        Endpoint::Http => (b"\r\n\r\n", REQUEST_MAX),
    };
    let request = read_until(&connection.stream, end, bytes_max)?;
    if connection.is_evicted() {
        // What was read may be half a command.
        return Err(io::ErrorKind::TimedOut.into());
    }
    connection.set_busy();
    let reply = match endpoint {
        Endpoint::Control => control(request.lines().next().unwrap_or_default(), site.drives()),
        Endpoint::Http => match site.answer(&request) {
            Reply::Whole(reply) => reply,
            Reply::Stream(head) => return site.stream(&head, connection, connections, PATIENCE),
        },
    };
    connection.write_all(reply.as_bytes())
}

/// Reads up to `end`, the end of the stream, or `bytes_max`.
fn read_until(stream: &Stream, end: &[u8], bytes_max: usize) -> io::Result<String> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 512]);
    // The end may lie between two pieces; what follows it is seen as well, and refused.
    let ended = |bytes: &[u8]| bytes.windows(end.len()).any(|window| window == end);
    while !ended(&bytes) && bytes.len() < bytes_max {
        match stream.read(&mut piece)? {
            0 => break,
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn control(line: &str, drives: &[Arc<Drive>]) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["status"] => metrics(drives),
        ["cut"] => drives
            .iter()
            .map(|drive| match drive.cut() {
                Ok(cut) => format!(
                    "{}: the power failed after {} operations; recovered in {}\n",
                    drive.name(),
                    cut.operations,
                    cut.recovery
                ),
                Err(fault) => format!("error: {}: {fault}\n", drive.name()),
            })
            .collect(),
        ["cut", "after", count] => match count.parse() {
            Ok(count) if count > 0 => {
                drives.iter().for_each(|drive| drive.cut_after(count));
                "ok\n".into()
            }
            _ => format!("error: `{count}` is not a number of operations\n"),
        },
        ["stop"] => {
            signals::end();
            "ok\n".into()
        }
        _ => "error: write status, cut, cut after N, or stop\n".into(),
    }
}
