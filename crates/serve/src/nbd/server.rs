//! Listeners and connections.

use super::answers::{Answers, Held, Outgoing};
use super::handshake::shake;
use super::incoming::Incoming;
use super::link::Link;
use super::tls::Security;
use super::transmission::Transmission;
use crate::WindowError;
use crate::net::listen::{Address, Listener, listen};
use crate::served::Drive;
use crate::sys::file;
use nvlab_units::{Histogram, Span};
use std::fs::File;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 64;
/// Whoever is silent so long before it has chosen an export is left.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(20);
/// Whoever does not take an answer for so long is left.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
/// When the server stops, what was begun is answered for so long.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// A device and its name.
pub struct Export {
    /// The name; the first export is also the one without a name.
    pub name: String,
    /// The device.
    pub drive: Arc<Drive>,
}

/// How late answers were that were held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Answers held.
    pub count: u64,
    /// Half were no later.
    pub p50: Span,
    /// 99 of 100 were no later.
    pub p99: Span,
    /// None was later.
    pub max: Span,
}

struct Shared {
    exports: Vec<Export>,
    security: Option<Security>,
    stopping: AtomicBool,
    bell: File,
    open: Mutex<Vec<(u64, Arc<Link>)>>,
    late: Mutex<Histogram>,
}

/// A server.
pub struct NbdServer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    uri: String,
}

impl NbdServer {
    /// Listens, and serves whoever comes. Every cut of one of the devices closes the connections.
    pub fn start(address: &Address, exports: Vec<Export>) -> Result<NbdServer, WindowError> {
        NbdServer::start_with(address, exports, None)
    }

    /// The same, where clients may or must use TLS.
    pub fn start_with(
        address: &Address,
        exports: Vec<Export>,
        security: Option<Security>,
    ) -> Result<NbdServer, WindowError> {
        assert!(!exports.is_empty(), "a server without an export");
        let (listener, mut uri) = listen(address)?;
        if security.as_ref().is_some_and(|security| security.required) {
            uri.insert("nbd".len(), 's');
        }
        let bell = file::event().map_err(WindowError::io("cannot make an event counter"))?;
        let shared = Arc::new(Shared {
            exports,
            security,
            stopping: AtomicBool::new(false),
            bell,
            open: Mutex::default(),
            late: Mutex::new(Histogram::new()),
        });
        for export in &shared.exports {
            let weak = Arc::downgrade(&shared);
            export.drive.on_cut(move |_| {
                if let Some(shared) = weak.upgrade() {
                    shared.disconnect();
                }
            });
        }
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("nvlab-nbd".into())
            .spawn(move || accept(&of_thread, &listener))
            .map_err(WindowError::io("cannot start a thread"))?;
        Ok(NbdServer { shared, thread: Some(thread), uri })
    }

    /// Where clients come, as a URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// How late answers were that were held, on the connections that ended.
    pub fn lateness(&self) -> Lateness {
        let late = lock(&self.shared.late);
        match late.count() {
            0 => Lateness::default(),
            count => Lateness { count, p50: late.quantile(0.5), p99: late.quantile(0.99), max: late.max() },
        }
    }

    /// Answers what was begun, then closes every connection.
    pub fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.stopping.store(true, Ordering::Release);
        let rung = (&self.shared.bell).write_all(&1u64.to_ne_bytes());
        let _ = rung.is_ok().then(|| thread.join());
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Every connection is closed as it is.
    fn disconnect(&self) {
        lock(&self.open).iter().for_each(|(_, link)| link.socket.shutdown(Shutdown::Both));
    }
}

fn accept(shared: &Arc<Shared>, listener: &Listener) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut number = 0;
    let mut waiting = [file::readable(shared.bell.as_raw_fd()), file::readable(listener.fd())];
    while !shared.stopping.load(Ordering::Acquire) {
        if file::wait_readable(&mut waiting).is_err() || waiting[1].revents == 0 {
            continue;
        }
        // A caller that has gone again, or no descriptor left: others may come.
        let Ok(stream) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        threads.retain(|thread| !thread.is_finished());
        if threads.len() >= CONNECTIONS_MAX {
            eprintln!("nvlab: nbd: {CONNECTIONS_MAX} connections are open: one more is refused");
            continue;
        }
        number += 1;
        let (link, shared) = (Arc::new(Link::new(stream)), Arc::clone(shared));
        lock(&shared.open).push((number, Arc::clone(&link)));
        let body = move || {
            match connection(&shared, &link) {
                Ok(()) => link.end(),
                Err(_) if shared.stopping.load(Ordering::Acquire) => {}
                Err(error) => eprintln!("nvlab: nbd: a connection ended: {error}"),
            }
            link.socket.shutdown(Shutdown::Both);
            lock(&shared.open).retain(|(other, _)| *other != number);
        };
        match std::thread::Builder::new().name("nvlab-nbd-client".into()).spawn(body) {
            Ok(thread) => threads.push(thread),
            Err(error) => eprintln!("nvlab: nbd: cannot start a thread: {error}"),
        }
    }
    // What was sent is still served, what comes is not read any more.
    lock(&shared.open).iter().for_each(|(_, link)| link.socket.shutdown(Shutdown::Read));
    let until = Instant::now() + STOP_PATIENCE;
    while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    shared.disconnect();
    for thread in threads {
        // It said why, if it panicked.
        let _ = thread.join();
    }
}

fn connection(shared: &Shared, link: &Arc<Link>) -> io::Result<()> {
    link.socket.limit(Some(HANDSHAKE_PATIENCE), Some(ANSWER_PATIENCE))?;
    let mut incoming = Incoming::new(Arc::clone(link));
    let agreed = shake(&mut incoming, link, &shared.exports, shared.security.as_ref())?;
    let Some(agreed) = agreed else { return Ok(()) };
    link.socket.limit(None, Some(ANSWER_PATIENCE))?;
    let drive = &*shared.exports[agreed.export].drive;
    let session = drive.session();
    let mut serve = |answers: &mut Answers| {
        let stopping = &shared.stopping;
        Transmission { incoming: &mut incoming, answers, drive, session, agreed, stopping }.run()
    };
    if !drive.holds_answers() {
        return serve(&mut Answers::AtOnce { link: Arc::clone(link), out: Outgoing::default() });
    }
    let held = Arc::new(Held::default());
    std::thread::scope(|scope| {
        let timer = scope.spawn(|| held.run(link, drive, session));
        let served = serve(&mut Answers::Held { held: Arc::clone(&held), out: Outgoing::default() });
        held.end();
        if let Ok(late) = timer.join() {
            lock(&shared.late).merge(&late);
        }
        served
    })
}
