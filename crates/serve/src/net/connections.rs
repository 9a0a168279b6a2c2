//! The connections of a listener: a thread each, up to a limit, and which is evicted when another one waits.
//!
//! 1. A handshake must be complete within [`ConnectionLimits::handshake`], however much the client sends.
//! 2. After that a connection may be idle for as long as it likes while there is capacity: a mounted device can be idle for
//!    hours.
//! 3. At the limit, new connections wait in the listener's queue until one can be evicted: a handshake that takes long, a
//!    connection that has been idle for some time, or one that for long has not sent the rest of a request or not read a
//!    reply. One with a request in progress, or a reply to come, is never evicted.
//! 4. The address with the most connections loses one first, so that one that fills the server only blocks itself; of its
//!    connections handshakes go first, then whichever has been waiting the longest.
//! 5. A remote address has [`ConnectionLimits::per_address`] connections at most. All local ones count as one address without
//!    that limit: a client of a Unix socket belongs to the same user (or root), and a loopback port does not tell users apart.

use super::listen::Listener;
use super::log::Log;
use super::stream::Stream;
use crate::sys::{poll, process};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After a stop, requests in progress are answered for this long.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// How many connections there may be, and how long one may be inactive while others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The most connections at a time.
    pub connections: usize,
    /// Of these, from one remote address; for IPv6, from one network of 64 bits.
    pub per_address: usize,
    /// Time that a client has to finish the handshake.
    pub handshake: Duration,
    /// A handshake that has taken this long may be evicted if others wait.
    pub handshake_min: Duration,
    /// Likewise for a connection without a request in progress.
    pub idle_min: Duration,
    /// Likewise for one that does not send the rest of a request, or does not read a reply.
    pub partial_min: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
            connections: 64,
            per_address: 16,
            handshake: Duration::from_secs(10),
            handshake_min: Duration::from_secs(1),
            idle_min: Duration::from_secs(5),
            partial_min: Duration::from_secs(60),
        }
    }
}

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A client on this machine.
    Local,
    /// At a remote address; for IPv6, its first half.
    Address(IpAddr),
}

impl Peer {
    /// A client with this address, or without one.
    fn of(address: Option<IpAddr>) -> Peer {
        match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V6(ip)) if !ip.is_loopback() => {
                Peer::Address(IpAddr::V6((ip.to_bits() & !(u64::MAX as u128)).into()))
            }
            Some(ip) if !ip.is_loopback() => Peer::Address(ip),
            _ => Peer::Local,
        }
    }
}

/// What a connection does, as far as eviction is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Activity {
    Handshake,
    Idle,
    /// The rest of a request, or the client's reading of a reply, is waited for.
    Partial,
    Busy,
}

const ACTIVITIES: [Activity; 4] = [Activity::Handshake, Activity::Idle, Activity::Partial, Activity::Busy];

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub stream: Stream,
    peer: Peer,
    /// Since when, in milliseconds, and the [`Activity`] in the lowest two bits.
    activity: AtomicU64,
    /// Replies that are held until they are due.
    owed: AtomicU32,
    /// When the last of them was sent, in milliseconds.
    answered: AtomicU64,
    /// Since when a reply is being sent, in milliseconds; 0: none is.
    sending: AtomicU64,
    /// It was closed to admit another, or because its handshake took too long.
    evicted: AtomicBool,
    /// Whether its thread is done.
    ended: AtomicBool,
}

impl Connection {
    pub fn new(stream: Stream) -> Connection {
        let connection = Connection {
            peer: Peer::of(stream.address()),
            stream,
            activity: AtomicU64::new(0),
            owed: AtomicU32::new(0),
            answered: AtomicU64::new(0),
            sending: AtomicU64::new(0),
            evicted: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        };
        connection.set(Activity::Handshake);
        connection
    }

    fn set(&self, activity: Activity) {
        self.activity.store(process::coarse_ms() << 2 | activity as u64, Ordering::Relaxed);
    }

    /// A request is being served, or no more of the handshake is expected: the client waits for the server.
    pub fn set_busy(&self) {
        self.activity.store(Activity::Busy as u64, Ordering::Relaxed);
    }

    /// It was answered, and may be idle; what it sends next is a request.
    pub fn set_idle(&self) {
        self.set(Activity::Idle);
    }

    /// A request has begun, and the rest of it is waited for.
    pub fn set_partial(&self) {
        self.set(Activity::Partial);
    }

    /// It was evicted: what was received may be incomplete because of that.
    pub fn is_evicted(&self) -> bool {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Counts one more held reply.
    pub fn reply_held(&self) {
        self.owed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts `count` held replies as sent.
    pub fn replies_sent(&self, count: u32) {
        self.answered.store(process::coarse_ms(), Ordering::Relaxed);
        self.owed.fetch_sub(count, Ordering::Relaxed);
    }

    pub fn write_all(&self, data: &[u8]) -> io::Result<()> {
        self.while_sending(|stream| stream.write_all(data))
    }

    /// Waits until the client has read most of what was sent.
    pub fn wait_writable(&self) -> io::Result<()> {
        self.while_sending(Stream::wait_writable)
    }

    fn while_sending(&self, send: impl FnOnce(&Stream) -> io::Result<()>) -> io::Result<()> {
        self.sending.store(process::coarse_ms(), Ordering::Relaxed);
        let sent = send(&self.stream);
        self.sending.store(0, Ordering::Relaxed);
        sent
    }

    fn status(&self) -> Status {
        let (activity, owed) = (self.activity.load(Ordering::Relaxed), self.owed.load(Ordering::Relaxed));
        let since = (activity >> 2).max(self.answered.load(Ordering::Relaxed));
        let (activity, since) =
            match (ACTIVITIES[(activity & 3) as usize], self.sending.load(Ordering::Relaxed)) {
                (Activity::Handshake, _) => (Activity::Handshake, since),
                (activity, 0) if owed == 0 => (activity, since),
                (_, 0) => (Activity::Busy, since),
                (_, sending) => (Activity::Partial, sending),
            };
        Status { peer: self.peer, activity, since: Duration::from_millis(since) }
    }
}

/// A connection as eviction sees it.
#[derive(Clone, Copy, Debug)]
struct Status {
    peer: Peer,
    activity: Activity,
    since: Duration,
}

impl Status {
    /// From when on it may be evicted if others wait.
    fn evictable_from(&self, limits: &ConnectionLimits) -> Option<Duration> {
        let min = match self.activity {
            Activity::Handshake => limits.handshake_min,
            Activity::Idle => limits.idle_min,
            Activity::Partial => limits.partial_min,
            Activity::Busy => return None,
        };
        Some(self.since + min)
    }
}

/// Which of those that `of` selects is evicted, if one can be at `now`.
fn evictable(
    statuses: &[Status],
    limits: &ConnectionLimits,
    now: Duration,
    of: impl Fn(Peer) -> bool,
) -> Option<usize> {
    let can = |&&(_, status): &&(usize, &Status)| {
        of(status.peer) && status.evictable_from(limits).is_some_and(|at| at <= now)
    };
    let numbered: Vec<(usize, &Status)> = statuses.iter().enumerate().collect();
    let first = |(_, status): &&(usize, &Status)| (status.activity != Activity::Handshake, status.since);
    numbered.iter().filter(can).min_by_key(first).map(|&(number, _)| number)
}

/// Whether one more connection is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    Free,
    /// Admitted once this one is evicted.
    Replace(usize),
    Refuse,
}

/// Whether one more connection from `peer` is admitted beside these.
fn admission(statuses: &[Status], limits: &ConnectionLimits, now: Duration, peer: Peer) -> Admission {
    let count = |peer: Peer| statuses.iter().filter(|status| status.peer == peer).count();
    let found = if peer != Peer::Local && count(peer) >= limits.per_address {
        evictable(statuses, limits, now, |other| other == peer)
    } else if statuses.len() >= limits.connections {
        // One can be evicted, or none would have been accepted: perhaps none of the address with the most.
        let most = statuses.iter().map(|status| count(status.peer)).max().unwrap_or(0);
        let crowd = evictable(statuses, limits, now, |other| count(other) == most);
        crowd.or_else(|| evictable(statuses, limits, now, |_| true))
    } else {
        return Admission::Free;
    };
    found.map_or(Admission::Refuse, Admission::Replace)
}

type Worker = (Arc<Connection>, JoinHandle<()>);

/// The connections of a listener.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Name of the protocol in the log.
    name: &'static str,
    limits: ConnectionLimits,
    pub log: Log,
    stopping: AtomicBool,
    bell: File,
    open: Mutex<Vec<Arc<Connection>>>,
}

impl Connections {
    pub fn new(name: &'static str, limits: ConnectionLimits, log: Log) -> io::Result<Connections> {
        let (stopping, open) = (AtomicBool::new(false), Mutex::default());
        Ok(Connections { name, limits, log, stopping, bell: poll::event()?, open })
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Accepts no more connections; those that are open get their replies.
    pub fn stop(&self) -> io::Result<()> {
        self.stopping.store(true, Ordering::Release);
        self.ring()
    }

    pub fn stopping(&self) -> &AtomicBool {
        &self.stopping
    }

    /// What disconnects them, for as long as they are served.
    pub fn disconnecting(self: &Arc<Connections>) -> impl Fn() + Send + Sync + 'static {
        let weak = Arc::downgrade(self);
        move || {
            if let Some(connections) = weak.upgrade() {
                connections.disconnect();
            }
        }
    }

    pub fn disconnect(&self) {
        self.open().iter().for_each(|connection| connection.stream.shutdown(Shutdown::Both));
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        // A list is consistent after a panic, too.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) -> io::Result<()> {
        (&self.bell).write_all(&1u64.to_ne_bytes())
    }

    /// Serves connections until stopped; `serve` returns why one was closed early, if it was.
    pub fn serve<S>(self: &Arc<Connections>, listener: &Listener, serve: S)
    where
        S: Fn(&Arc<Connection>) -> io::Result<()> + Clone + Send + 'static,
    {
        let mut workers: Vec<Worker> = Vec::new();
        while !self.stopping.load(Ordering::Acquire) {
            let statuses = self.sweep(&mut workers);
            let (accepts, alarm) = self.next_wait(&statuses);
            let mut waiting = vec![poll::readable(self.bell.as_raw_fd())];
            waiting.extend(accepts.then(|| poll::readable(listener.fd())));
            if poll::wait_readable(&mut waiting, alarm).is_err() {
                continue;
            }
            // A connection ended, or the server stops.
            let _ = (&self.bell).read(&mut [0; 8]);
            if waiting.get(1).is_some_and(|listener| listener.revents != 0) {
                self.admit(listener, &mut workers, &serve);
            }
        }
        self.drain(workers);
    }

    /// Joins ended threads, closes handshakes that took too long, and returns the status of the others.
    fn sweep(&self, workers: &mut Vec<Worker>) -> Vec<Status> {
        for (_, thread) in workers.extract_if(.., |(connection, _)| connection.ended.load(Ordering::Acquire))
        {
            // It caught its own panics.
            let _ = thread.join();
        }
        let mut here = self.open();
        here.retain(|connection| !connection.ended.load(Ordering::Acquire) && !connection.is_evicted());
        let now = Duration::from_millis(process::coarse_ms());
        let late = |status: &Status| {
            status.activity == Activity::Handshake && now >= status.since + self.limits.handshake
        };
        here.retain(|connection| {
            let stays = !late(&connection.status());
            if !stays {
                self.evict(connection, format_args!("sent no request within {:?}", self.limits.handshake));
            }
            stays
        });
        here.iter().map(|connection| connection.status()).collect()
    }

    fn evict(&self, connection: &Connection, why: std::fmt::Arguments<'_>) {
        connection.evicted.store(true, Ordering::Relaxed);
        connection.stream.shutdown(Shutdown::Both);
        self.log.say(format_args!("{}: a connection is closed: it {why}", self.name));
    }

    /// Whether one more connection can be accepted now, and after which time to look again.
    fn next_wait(&self, statuses: &[Status]) -> (bool, Option<Duration>) {
        let now = Duration::from_millis(process::coarse_ms());
        let late = statuses.iter().filter(|status| status.activity == Activity::Handshake);
        let late = late.map(|status| status.since + self.limits.handshake);
        let full = statuses.len() >= self.limits.connections;
        // A busy connection may become idle without a notification.
        let soon = full.then_some(now + self.limits.idle_min.min(self.limits.handshake_min));
        let evictions =
            statuses.iter().filter(|_| full).filter_map(|status| status.evictable_from(&self.limits));
        let alarm = late.chain(evictions).chain(soon).min();
        let accepts = !full || evictable(statuses, &self.limits, now, |_| true).is_some();
        // The clock is coarse: a little more is never too early.
        (accepts, alarm.map(|alarm| alarm.saturating_sub(now) + Duration::from_millis(10)))
    }

    fn admit<S>(self: &Arc<Connections>, listener: &Listener, workers: &mut Vec<Worker>, serve: &S)
    where
        S: Fn(&Arc<Connection>) -> io::Result<()> + Clone + Send + 'static,
    {
        // The client has gone again, or no descriptor is left: others may connect later.
        let Ok(stream) = listener.accept() else {
            return std::thread::sleep(Duration::from_millis(10));
        };
        let connection = Arc::new(Connection::new(stream));
        let mut open = self.open();
        let statuses: Vec<Status> = open.iter().map(|connection| connection.status()).collect();
        let now = Duration::from_millis(process::coarse_ms());
        match admission(&statuses, &self.limits, now, connection.peer) {
            Admission::Free => {}
            Admission::Replace(number) => {
                let idle = now.saturating_sub(statuses[number].since);
                let old = open.swap_remove(number);
                self.evict(&old, format_args!("was idle for {idle:?} while others wait"));
            }
            Admission::Refuse => {
                return self.log.say(format_args!(
                    "{}: a connection from {:?} is refused: it has reached its limit of connections",
                    self.name, connection.peer
                ));
            }
        }
        let (connections, of_thread, serve) = (Arc::clone(self), Arc::clone(&connection), serve.clone());
        let body = move || connections.serve_one(&of_thread, &serve);
        match std::thread::Builder::new().name(format!("nvlab-{}", self.name)).spawn(body) {
            Ok(thread) => {
                open.push(Arc::clone(&connection));
                workers.push((connection, thread));
            }
            Err(error) => self.log.say(format_args!("{}: cannot start a thread: {error}", self.name)),
        }
    }

    fn serve_one(&self, connection: &Arc<Connection>, serve: impl Fn(&Arc<Connection>) -> io::Result<()>) {
        let quiet = || self.stopping.load(Ordering::Acquire) || connection.is_evicted();
        match catch_unwind(AssertUnwindSafe(|| serve(connection))) {
            Ok(Ok(())) => {}
            Ok(Err(_)) if quiet() => {}
            Ok(Err(error)) => self.log.say(format_args!("{}: a connection ended: {error}", self.name)),
            Err(_) => {
                self.log
                    .say(format_args!("{}: a connection ended: its thread panicked (see above)", self.name));
            }
        }
        connection.stream.shutdown(Shutdown::Both);
        connection.ended.store(true, Ordering::Release);
        // If that fails, nobody listens any more.
        let _ = self.ring();
    }

    /// Requests that were read are still answered; nothing more is read.
    fn drain(&self, workers: Vec<Worker>) {
        workers.iter().for_each(|(connection, _)| connection.stream.shutdown(Shutdown::Read));
        let until = Instant::now() + STOP_PATIENCE;
        while workers.iter().any(|(_, thread)| !thread.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        for (connection, thread) in workers {
            connection.stream.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        connections: 6,
        per_address: 3,
        handshake: Duration::from_secs(10),
        handshake_min: Duration::from_secs(1),
        idle_min: Duration::from_secs(5),
        partial_min: Duration::from_secs(60),
    };

    fn status(peer: Peer, activity: Activity, since: u64) -> Status {
        Status { peer, activity, since: Duration::from_secs(since) }
    }

    fn far(last: u8) -> Peer {
        Peer::of(Some([192, 0, 2, last].into()))
    }

    #[test]
    fn below_the_limit_nothing_is_evicted() {
        let five = [status(Peer::Local, Activity::Idle, 0); 5];
        let now = Duration::from_secs(1_000_000);
        assert_eq!(admission(&five, &LIMITS, now, Peer::Local), Admission::Free);
        assert_eq!(admission(&five, &LIMITS, now, far(1)), Admission::Free);
    }

    #[test]
    fn the_longest_idle_is_evicted_and_none_that_is_busy() {
        let at = |seconds: u64| Duration::from_secs(100 + seconds);
        let mut all = [status(Peer::Local, Activity::Busy, 0); 6];
        assert_eq!(admission(&all, &LIMITS, at(1000), Peer::Local), Admission::Refuse);
        (all[3], all[4]) =
            (status(Peer::Local, Activity::Idle, 101), status(Peer::Local, Activity::Idle, 100));
        assert_eq!(admission(&all, &LIMITS, at(4), Peer::Local), Admission::Refuse, "not idle for long");
        assert_eq!(admission(&all, &LIMITS, at(5), Peer::Local), Admission::Replace(4));
        all[1] = status(Peer::Local, Activity::Handshake, 104);
        assert_eq!(
            admission(&all, &LIMITS, at(5), Peer::Local),
            Admission::Replace(1),
            "a handshake is evicted first"
        );
        all[1].activity = Activity::Partial;
        assert_eq!(admission(&all, &LIMITS, at(5), Peer::Local), Admission::Replace(4));
        assert_eq!(evictable(&all[1..2], &LIMITS, at(63), |_| true), None);
        assert_eq!(evictable(&all[1..2], &LIMITS, at(64), |_| true), Some(0));
    }

    #[test]
    fn an_address_that_fills_the_server_blocks_only_itself() {
        let now = Duration::from_secs(1000);
        let mut all = [status(far(1), Activity::Idle, 500); 6];
        // Local, and idle for the longest of all.
        all[5] = status(Peer::Local, Activity::Idle, 0);
        assert_eq!(admission(&all[3..], &LIMITS, now, far(1)), Admission::Free);
        assert_eq!(
            admission(&all[2..5], &LIMITS, now, far(1)),
            Admission::Replace(0),
            "it has as many as it may"
        );
        assert_eq!(
            admission(&[status(far(1), Activity::Busy, 0); 3], &LIMITS, now, far(1)),
            Admission::Refuse
        );
        assert_eq!(admission(&all, &LIMITS, now, far(2)), Admission::Replace(0));
        (0..5).for_each(|i| all[i].activity = Activity::Busy);
        assert_eq!(admission(&all, &LIMITS, now, far(2)), Admission::Replace(5), "better than none");
    }

    #[test]
    fn a_held_reply_keeps_a_connection_busy_and_one_that_is_not_read_does_not() {
        let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let connection = Connection::new(Stream::Unix(stream));
        assert_eq!(connection.status().activity, Activity::Handshake);
        connection.reply_held();
        connection.sending.store(5, Ordering::Relaxed);
        assert_eq!(connection.status().activity, Activity::Handshake, "until the handshake is complete");
        connection.set_idle();
        assert_eq!(
            (connection.status().activity, connection.status().since.as_millis()),
            (Activity::Partial, 5)
        );
        connection.sending.store(0, Ordering::Relaxed);
        assert_eq!(connection.status().activity, Activity::Busy);
        connection.replies_sent(1);
        assert_eq!(connection.status().activity, Activity::Idle);
        assert_eq!(connection.status().since.as_millis() as u64, connection.answered.load(Ordering::Relaxed));
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let peer = |text: &str| Peer::of(Some(text.parse().unwrap()));
        assert_eq!(peer("2001:db8:1:2:3::4"), peer("2001:db8:1:2:ffff::1"));
        assert_ne!(peer("2001:db8:1:2:3::4"), peer("2001:db8:1:3:3::4"));
        assert_eq!(peer("::ffff:192.0.2.1"), far(1));
        assert_eq!(
            [peer("::1"), peer("127.0.0.9"), peer("::ffff:127.0.0.1"), Peer::of(None)],
            [Peer::Local; 4]
        );
    }
}
