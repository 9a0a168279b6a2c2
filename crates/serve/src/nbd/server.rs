//! Listeners and connections.

use super::answers::{Answers, Held, Outgoing};
use super::handshake::shake;
use super::incoming::Incoming;
use super::link::Link;
use super::tls::Security;
use super::transmission::Transmission;
use crate::ServeError;
use crate::net::listen::{Address, listen};
use crate::net::log::Log;
use crate::net::room::{Caller, Limits, Room};
use crate::served::Drive;
use nvlab_units::{Histogram, Span};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Whoever does not take an answer for so long is left.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

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

/// How a server treats its clients.
#[derive(Debug, Default)]
pub struct Options {
    /// Whether they may or must use TLS.
    pub security: Option<Security>,
    /// How many may come, and how long they may be silent.
    pub limits: Limits,
    /// Where it says what it refused, and why a connection ended.
    pub log: Log,
}

struct Shared {
    exports: Vec<Export>,
    security: Option<Security>,
    room: Arc<Room>,
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
    pub fn start(address: &Address, exports: Vec<Export>) -> Result<NbdServer, ServeError> {
        NbdServer::start_with(address, exports, Options::default())
    }

    /// The same, as the options say.
    pub fn start_with(
        address: &Address,
        exports: Vec<Export>,
        options: Options,
    ) -> Result<NbdServer, ServeError> {
        assert!(!exports.is_empty(), "a server without an export");
        let Options { security, limits, log } = options;
        let (listener, mut uri) = listen(address)?;
        if security.as_ref().is_some_and(|security| security.required) {
            uri.insert("nbd".len(), 's');
        }
        let room = Room::new("nbd", limits, log).map_err(ServeError::io("cannot make an event counter"))?;
        let late = Mutex::new(Histogram::new());
        let shared = Arc::new(Shared { exports, security, room: Arc::new(room), late });
        for export in &shared.exports {
            let weak = Arc::downgrade(&shared);
            export.drive.on_cut(move |_| {
                if let Some(shared) = weak.upgrade() {
                    shared.room.disconnect();
                }
            });
        }
        let of_thread = Arc::clone(&shared);
        let body = move || {
            let room = Arc::clone(&of_thread.room);
            room.attend(&listener, move |caller| connection(&of_thread, caller));
        };
        let thread = std::thread::Builder::new()
            .name("nvlab-nbd".into())
            .spawn(body)
            .map_err(ServeError::io("cannot start a thread"))?;
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
        if self.shared.room.stop().is_ok() {
            // It said why, if it panicked.
            let _ = thread.join();
        }
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Lists and counts: whole after a panic, too.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connection(shared: &Shared, caller: &Arc<Caller>) -> io::Result<()> {
    // How long it may greet is the room's affair.
    caller.stream.limit(None, Some(ANSWER_PATIENCE))?;
    let link = Arc::new(Link::new(Arc::clone(caller)));
    let mut incoming = Incoming::new(Arc::clone(&link));
    let log = &shared.room.log;
    let agreed = shake(&mut incoming, &link, &shared.exports, shared.security.as_ref(), log)?;
    let Some(agreed) = agreed else {
        link.end();
        return Ok(());
    };
    caller.works();
    let drive = &*shared.exports[agreed.export].drive;
    let session = drive.session();
    let mut serve = |answers: &mut Answers| {
        let (stopping, caller) = (shared.room.stopping(), &**caller);
        Transmission { incoming: &mut incoming, answers, drive, session, agreed, stopping, caller, log }.run()
    };
    if !drive.holds_answers() {
        serve(&mut Answers::AtOnce { link: Arc::clone(&link), out: Outgoing::default() })?;
        link.end();
        return Ok(());
    }
    let held = Arc::new(Held::new(Arc::clone(&link)));
    std::thread::scope(|scope| {
        let timer = scope.spawn(|| {
            let run = catch_unwind(AssertUnwindSafe(|| held.run(drive, session)));
            run.inspect_err(|_| held.give_up())
        });
        let mut answers = Answers::Held { held: Arc::clone(&held), out: Outgoing::default() };
        let served = catch_unwind(AssertUnwindSafe(|| serve(&mut answers)));
        // Also after a panic, or the timer would wait for more for ever.
        held.end();
        if let Ok(Ok(late)) = timer.join() {
            lock(&shared.late).merge(&late);
        }
        served.unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    link.end();
    Ok(())
}
