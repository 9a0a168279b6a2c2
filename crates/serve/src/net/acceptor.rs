//! A listener and the thread that accepts its connections.

use super::connections::{Connection, ConnectionLimits, Connections};
use super::listen::Listener;
use super::log::Log;
use crate::ServeError;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Accepts connections on a thread of its own, each of which gets another; stops when dropped.
#[derive(Debug)]
pub(crate) struct Acceptor {
    connections: Arc<Connections>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// What the connections of a protocol have in common, before the first.
    pub fn connections(
        name: &'static str,
        limits: ConnectionLimits,
        log: Log,
    ) -> Result<Arc<Connections>, ServeError> {
        let connections = Connections::new(name, limits, log);
        Ok(Arc::new(connections.map_err(ServeError::io("cannot create an eventfd"))?))
    }

    /// Starts the thread; `serve` returns why a connection was closed early, if it was.
    pub fn start<S>(
        listener: Listener,
        connections: Arc<Connections>,
        serve: S,
    ) -> Result<Acceptor, ServeError>
    where
        S: Fn(&Arc<Connection>) -> io::Result<()> + Clone + Send + 'static,
    {
        let of_thread = Arc::clone(&connections);
        let thread = std::thread::Builder::new()
            .name(format!("nvlab-{}", connections.name()))
            .spawn(move || of_thread.serve(&listener, serve))
            .map_err(ServeError::io("cannot start a thread"))?;
        Ok(Acceptor { connections, thread: Some(thread) })
    }

    /// What is in progress is answered, then every connection is closed.
    pub fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.connections.stop().is_ok() {
            // A panic was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop();
    }
}
