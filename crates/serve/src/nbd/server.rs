//! The NBD server: its listener, and a thread for each connection.

use super::export::Export;
use super::handshake::shake;
use super::transmission::Transmission;
use crate::ServeError;
use crate::answers::{Answers, Held, Outgoing};
use crate::net::acceptor::Acceptor;
use crate::net::connections::{Connection, ConnectionLimits, Connections};
use crate::net::incoming::Incoming;
use crate::net::listen::{Address, listen};
use crate::net::log::Log;
use crate::net::tls::Security;
use crate::net::transport::Transport;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A client that does not read a reply for this long is disconnected.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// What a server demands of its clients, and what it reports.
#[derive(Debug, Default)]
pub struct Options {
    /// Whether clients may or must use TLS; `None`: they cannot.
    pub security: Option<Security>,
    /// How many connections there may be, and how long one may be inactive.
    pub limits: ConnectionLimits,
    /// Receives what was refused, and why a connection ended.
    pub log: Log,
}

struct Shared {
    exports: Vec<Export>,
    security: Option<Security>,
    connections: Arc<Connections>,
}

/// An NBD server with its own thread and one for each connection; stops when dropped.
pub struct NbdServer {
    acceptor: Acceptor,
    uri: String,
}

impl NbdServer {
    /// Listens and serves clients. A power cut of one of the devices closes every connection.
    pub fn start(address: &Address, exports: Vec<Export>) -> Result<NbdServer, ServeError> {
        NbdServer::start_with(address, exports, Options::default())
    }

    /// As `start`, with TLS, limits of connections and a log.
    pub fn start_with(
        address: &Address,
        exports: Vec<Export>,
        options: Options,
    ) -> Result<NbdServer, ServeError> {
        assert!(!exports.is_empty(), "a server without an export");
        let Options { security, limits, log } = options;
        let (listener, address) = listen(address)?;
        let mut uri = match address {
            Address::Unix(path) => format!("nbd+unix:///?socket={}", path.display()),
            Address::Tcp(address) => format!("nbd://{address}"),
        };
        if security.as_ref().is_some_and(|security| security.required) {
            uri.insert("nbd".len(), 's');
        }
        let connections = Acceptor::connections("nbd", limits, log)?;
        for export in &exports {
            let disconnect = connections.disconnecting();
            export.drive.on_cut(move |_| disconnect());
        }
        let shared = Arc::new(Shared { exports, security, connections: Arc::clone(&connections) });
        let serve = move |connection: &Arc<Connection>| serve_connection(&shared, connection);
        Ok(NbdServer { acceptor: Acceptor::start(listener, connections, serve)?, uri })
    }

    /// What clients connect to: `nbd+unix:`, `nbd://`, with TLS required `nbds`.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Answers requests in progress, then closes every connection.
    pub fn stop(&mut self) {
        self.acceptor.stop();
    }
}

fn serve_connection(shared: &Shared, connection: &Arc<Connection>) -> io::Result<()> {
    // The time for the handshake is limited by `Connections`.
    connection.stream.limit(None, Some(ANSWER_PATIENCE))?;
    let transport = Arc::new(Transport::new(Arc::clone(connection)));
    let mut incoming = Incoming::new(Arc::clone(&transport));
    let log = &shared.connections.log;
    let agreed = shake(&mut incoming, &transport, &shared.exports, shared.security.as_ref(), log)?;
    let Some(agreed) = agreed else {
        transport.end();
        return Ok(());
    };
    connection.set_busy();
    let drive = &shared.exports[agreed.export].drive;
    let session = drive.session();
    let mut serve = |answers: &mut Answers| {
        let (stopping, connection) = (shared.connections.stopping(), &**connection);
        Transmission { incoming: &mut incoming, answers, drive, session, agreed, stopping, connection, log }
            .run()
    };
    if !drive.holds_answers() {
        serve(&mut Answers::AtOnce { transport: Arc::clone(&transport), out: Outgoing::default() })?;
        transport.end();
        return Ok(());
    }
    let held = Arc::new(Held::new(Arc::clone(&transport), vec![(Arc::clone(drive), session)]));
    held.while_sending(|answers| serve(answers))?;
    transport.end();
    Ok(())
}
