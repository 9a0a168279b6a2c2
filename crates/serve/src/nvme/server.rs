//! The NVMe/TCP server: its listener, and a thread for each connection, which is a queue.

use super::command::{Commands, Flow};
use super::connect::{Accepted, Connecting, Role};
use super::io::Io;
use super::subsystem::Subsystem;
use super::tcp::{End, Link, Queue};
use crate::ServeError;
use crate::answers::{Answers, Held, Outgoing};
use crate::net::acceptor::Acceptor;
use crate::net::connections::{Connection, ConnectionLimits, Connections};
use crate::net::incoming::Incoming;
use crate::net::listen::{Address, listen};
use crate::net::log::Log;
use crate::net::transport::Transport;
use crate::served::Drive;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A host that does not read a reply for this long is disconnected.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
/// I/O queues of a controller: a queue is a connection with a thread or two, and the device behind all is one.
const QUEUES_MAX: u16 = 16;

/// How many connections there may be, and where a server reports.
#[derive(Debug)]
pub struct Options {
    /// How many connections there may be. A queue may be idle for long, while its controller is kept alive on another.
    pub limits: ConnectionLimits,
    /// Receives what was refused, and why a connection ended.
    pub log: Log,
}

impl Default for Options {
    fn default() -> Options {
        let limits = ConnectionLimits {
            connections: 256,
            per_address: 64,
            idle_min: Duration::from_secs(3600),
            ..ConnectionLimits::default()
        };
        Options { limits, log: Log::default() }
    }
}

struct Shared {
    subsystem: Arc<Subsystem>,
    connections: Arc<Connections>,
}

/// An NVMe/TCP server with its own thread and one or two for each connection; stops when dropped.
pub struct NvmeServer {
    acceptor: Acceptor,
    subsystem: Arc<Subsystem>,
    address: SocketAddr,
}

impl NvmeServer {
    /// Listens and serves hosts; the devices are namespaces 1, 2, ... A power cut of one of them closes every connection.
    pub fn start(
        address: SocketAddr,
        drives: Vec<Arc<Drive>>,
        options: Options,
    ) -> Result<NvmeServer, ServeError> {
        assert!(!drives.is_empty(), "a server without a device");
        let Options { limits, log } = options;
        let (listener, address) = match listen(&Address::Tcp(address))? {
            (listener, Address::Tcp(address)) => (listener, address),
            (_, Address::Unix(_)) => unreachable!("a TCP listener"),
        };
        let connections = Acceptor::connections("nvme", limits, log)?;
        let subsystem = Arc::new(Subsystem::new(drives, address.port(), QUEUES_MAX));
        for namespace in &subsystem.namespaces {
            let disconnect = connections.disconnecting();
            namespace.drive.on_cut(move |_| disconnect());
        }
        let shared =
            Arc::new(Shared { subsystem: Arc::clone(&subsystem), connections: Arc::clone(&connections) });
        let serve = move |connection: &Arc<Connection>| serve_connection(&shared, connection);
        Ok(NvmeServer { acceptor: Acceptor::start(listener, connections, serve)?, subsystem, address })
    }

    /// Where it listens: with the port that the system chose, if 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The name of the subsystem.
    pub fn nqn(&self) -> &str {
        &self.subsystem.nqn
    }

    /// Answers commands in progress, then closes every connection.
    pub fn stop(&mut self) {
        self.acceptor.stop();
    }
}

fn serve_connection(shared: &Shared, connection: &Arc<Connection>) -> io::Result<()> {
    // The time for the handshake is limited by `Connections`.
    connection.stream.limit(None, Some(ANSWER_PATIENCE))?;
    let transport = Arc::new(Transport::new(Arc::clone(connection)));
    let mut incoming = Incoming::new(Arc::clone(&transport));
    let mut answers = Answers::AtOnce { transport: Arc::clone(&transport), out: Outgoing::default() };
    let mut link = Link::new(&mut incoming, &mut answers, connection);
    match serve_link(shared, connection, transport, &mut link) {
        Ok(()) | Err(End::PowerLost) => Ok(()),
        Err(End::Broken(error)) => Err(error),
        Err(End::Terminated) => Err(invalid("the host says that a PDU was wrong".into())),
        Err(End::Fatal(why, header)) => {
            link.terminate(why, &header)?;
            Err(invalid(format!("a PDU is invalid: fatal error {} ({})", why.status, why.information)))
        }
    }
}

fn invalid(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// Serves a connection, first until it is a queue, then as one.
fn serve_link(
    shared: &Shared,
    connection: &Arc<Connection>,
    transport: Arc<Transport>,
    link: &mut Link<'_>,
) -> Result<(), End> {
    if !link.initialize()? {
        return Ok(());
    }
    let address = connection.stream.local_address()?;
    let mut connecting = Connecting::new(Arc::clone(&shared.subsystem), Arc::clone(connection), address);
    serve_queue(shared, link, &mut connecting, (Flow::default(), 0))?;
    let Some(Accepted { role, flow }) = connecting.accepted() else { return Ok(()) };
    link.is_queue = true;
    connection.set_busy();
    // Connect was the first command.
    match role {
        Role::Admin(mut admin) => serve_queue(shared, link, &mut admin, (flow, 1)),
        Role::Io(mut io) if io.holds_answers() => serve_held(shared, transport, link, &mut io, flow),
        Role::Io(mut io) => serve_queue(shared, link, &mut io, (flow, 1)),
    }
}

fn serve_queue(
    shared: &Shared,
    link: &mut Link<'_>,
    commands: &mut impl Commands,
    state: (Flow, u16),
) -> Result<(), End> {
    let (stopping, log) = (shared.connections.stopping(), &shared.connections.log);
    Queue::new(link, commands, state, stopping, log).run()
}

/// An I/O queue whose replies are held, and the thread that sends them.
fn serve_held(
    shared: &Shared,
    transport: Arc<Transport>,
    link: &mut Link<'_>,
    io: &mut Io,
    flow: Flow,
) -> Result<(), End> {
    let held = Arc::new(Held::new(transport, io.devices()));
    held.while_sending(|answers| {
        let mut link = Link {
            incoming: &mut *link.incoming,
            answers,
            connection: link.connection,
            agreed: link.agreed,
            is_queue: true,
        };
        serve_queue(shared, &mut link, io, (flow, 1))
    })
}
