//! The callers of a listener: a thread each, as many as there is room for, and who gives up a place when there is none.
//!
//! 1. A caller has so long to say what it wants ([`Limits::greeting`]), however busily it talks.
//! 2. After that it may rest for as long as it likes while there is room: a mounted device can be idle for hours.
//! 3. When there is no room, callers wait in the socket's queue for the first place that somebody can give up: who has
//!    been greeting for some time, who has been idle for some time, and who for long has not sent the rest of a request or
//!    not taken an answer. Who has a request in progress, or an answer to come, never gives up its place.
//! 4. The place is taken from the address that has the most, so that one that fills the room is in its own way; of its
//!    callers first from those that are greeting, then from who has been so the longest.
//! 5. An address has [`Limits::of_address`] callers at most. All of this machine count as one without that limit: whoever
//!    comes by a Unix socket is of the same user (or root), and a port of loopback does not say of which.

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

/// When the server stops, what was begun is answered for so long.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// How many may call, and for how long they may do nothing when others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Callers at a time.
    pub callers: usize,
    /// Of these, of one address that is not of this machine; of IPv6, of one network of 64 bits.
    pub of_address: usize,
    /// Until a caller must have said what it wants.
    pub greeting: Duration,
    /// After so long it may be put out if others wait.
    pub greeting_least: Duration,
    /// The same of one without a request in progress.
    pub idle_least: Duration,
    /// The same of one that does not send the rest of a request, or does not take an answer.
    pub halfway_least: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            callers: 64,
            of_address: 16,
            greeting: Duration::from_secs(10),
            greeting_least: Duration::from_secs(1),
            idle_least: Duration::from_secs(5),
            halfway_least: Duration::from_secs(60),
        }
    }
}

/// Where a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// On this machine.
    Here,
    /// At an address; of IPv6, its first half.
    Address(IpAddr),
}

impl Peer {
    /// Who has an address, or none.
    fn of(address: Option<IpAddr>) -> Peer {
        match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V6(ip)) if !ip.is_loopback() => {
                Peer::Address(IpAddr::V6((ip.to_bits() & !(u64::MAX as u128)).into()))
            }
            Some(ip) if !ip.is_loopback() => Peer::Address(ip),
            _ => Peer::Here,
        }
    }
}

/// What a caller does, as far as its place goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    Greeting,
    Idle,
    Halfway,
    Working,
}

const DOINGS: [Doing; 4] = [Doing::Greeting, Doing::Idle, Doing::Halfway, Doing::Working];

/// A caller.
#[derive(Debug)]
pub(crate) struct Caller {
    pub stream: Stream,
    peer: Peer,
    /// Milliseconds since when, and what (the lowest two bits).
    doing: AtomicU64,
    /// Answers that are held.
    owed: AtomicU32,
    /// Milliseconds of the last of them.
    answered: AtomicU64,
    /// Milliseconds since when an answer is being sent; 0: none is.
    sending: AtomicU64,
    /// It was put out.
    out: AtomicBool,
    /// Its thread has nothing more to do.
    ended: AtomicBool,
}

impl Caller {
    pub fn new(stream: Stream) -> Caller {
        let caller = Caller {
            peer: Peer::of(stream.address()),
            stream,
            doing: AtomicU64::new(0),
            owed: AtomicU32::new(0),
            answered: AtomicU64::new(0),
            sending: AtomicU64::new(0),
            out: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        };
        caller.does(Doing::Greeting);
        caller
    }

    fn does(&self, doing: Doing) {
        self.doing.store(process::coarse_ms() << 2 | doing as u64, Ordering::Relaxed);
    }

    /// It said what it wants, or is to be asked nothing more; it waits for nobody but us.
    pub fn works(&self) {
        self.doing.store(Doing::Working as u64, Ordering::Relaxed);
    }

    /// It was answered, and may rest. What it sends next is a request.
    pub fn rests(&self) {
        self.does(Doing::Idle);
    }

    /// Its request has begun, and the rest of it is waited for.
    pub fn is_halfway(&self) {
        self.does(Doing::Halfway);
    }

    /// It was put out: what came from it may have been cut off by that.
    pub fn is_out(&self) -> bool {
        self.out.load(Ordering::Relaxed)
    }

    /// An answer is held for it.
    pub fn owe(&self) {
        self.owed.fetch_add(1, Ordering::Relaxed);
    }

    /// So many of them have been sent.
    pub fn pay(&self, count: u32) {
        self.answered.store(process::coarse_ms(), Ordering::Relaxed);
        self.owed.fetch_sub(count, Ordering::Relaxed);
    }

    /// Sends all of it something.
    pub fn write_all(&self, data: &[u8]) -> io::Result<()> {
        self.sends(|stream| stream.write_all(data))
    }

    /// Waits until it has taken most of what it was sent.
    pub fn wait_for_room(&self) -> io::Result<()> {
        self.sends(Stream::wait_for_room)
    }

    fn sends(&self, send: impl FnOnce(&Stream) -> io::Result<()>) -> io::Result<()> {
        self.sending.store(process::coarse_ms(), Ordering::Relaxed);
        let sent = send(&self.stream);
        self.sending.store(0, Ordering::Relaxed);
        sent
    }

    fn seen(&self) -> Seen {
        let (doing, owed) = (self.doing.load(Ordering::Relaxed), self.owed.load(Ordering::Relaxed));
        let since = (doing >> 2).max(self.answered.load(Ordering::Relaxed));
        let (doing, since) = match (DOINGS[(doing & 3) as usize], self.sending.load(Ordering::Relaxed)) {
            (Doing::Greeting, _) => (Doing::Greeting, since),
            (doing, 0) if owed == 0 => (doing, since),
            (_, 0) => (Doing::Working, since),
            (_, sending) => (Doing::Halfway, sending),
        };
        Seen { peer: self.peer, doing, since: Duration::from_millis(since) }
    }
}

/// What is seen of a caller.
#[derive(Clone, Copy, Debug)]
struct Seen {
    peer: Peer,
    doing: Doing,
    since: Duration,
}

impl Seen {
    /// From when on it may be put out if others wait.
    fn yields(&self, limits: &Limits) -> Option<Duration> {
        let least = match self.doing {
            Doing::Greeting => limits.greeting_least,
            Doing::Idle => limits.idle_least,
            Doing::Halfway => limits.halfway_least,
            Doing::Working => return None,
        };
        Some(self.since + least)
    }
}

/// Which of these gives up its place, if one can at `now`.
fn who_yields(seen: &[Seen], limits: &Limits, now: Duration, of: impl Fn(Peer) -> bool) -> Option<usize> {
    let can = |seen: &&(usize, &Seen)| of(seen.1.peer) && seen.1.yields(limits).is_some_and(|at| at <= now);
    let of_all: Vec<(usize, &Seen)> = seen.iter().enumerate().collect();
    let first = |(_, seen): &&(usize, &Seen)| (seen.doing != Doing::Greeting, seen.since);
    of_all.iter().filter(can).min_by_key(first).map(|&(number, _)| number)
}

/// What becomes of one more caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Free,
    /// That of this one.
    Of(usize),
    /// None.
    No,
}

/// The place of one more caller from `peer`, where these are.
fn place(seen: &[Seen], limits: &Limits, now: Duration, peer: Peer) -> Place {
    let count = |peer: Peer| seen.iter().filter(|seen| seen.peer == peer).count();
    let found = if peer != Peer::Here && count(peer) >= limits.of_address {
        who_yields(seen, limits, now, |other| other == peer)
    } else if seen.len() >= limits.callers {
        // Somebody can yield, or nobody would have been let in: perhaps none of those that have the most.
        let most = seen.iter().map(|seen| count(seen.peer)).max().unwrap_or(0);
        let crowd = who_yields(seen, limits, now, |other| count(other) == most);
        crowd.or_else(|| who_yields(seen, limits, now, |_| true))
    } else {
        return Place::Free;
    };
    found.map_or(Place::No, Place::Of)
}

/// A caller and its thread.
type Seat = (Arc<Caller>, JoinHandle<()>);

/// The callers of a listener.
#[derive(Debug)]
pub(crate) struct Room {
    /// What they come for, in the log.
    name: &'static str,
    limits: Limits,
    pub log: Log,
    stopping: AtomicBool,
    bell: File,
    open: Mutex<Vec<Arc<Caller>>>,
}

impl Room {
    pub fn new(name: &'static str, limits: Limits, log: Log) -> io::Result<Room> {
        let (stopping, open) = (AtomicBool::new(false), Mutex::default());
        Ok(Room { name, limits, log, stopping, bell: poll::event()?, open })
    }

    /// No more callers; those that are here are answered what they have asked.
    pub fn stop(&self) -> io::Result<()> {
        self.stopping.store(true, Ordering::Release);
        self.ring()
    }

    /// True from then on.
    pub fn stopping(&self) -> &AtomicBool {
        &self.stopping
    }

    /// Every connection is closed as it is.
    pub fn disconnect(&self) {
        self.open().iter().for_each(|caller| caller.stream.shutdown(Shutdown::Both));
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Caller>>> {
        // A list: whole after a panic, too.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) -> io::Result<()> {
        (&self.bell).write_all(&1u64.to_ne_bytes())
    }

    /// Serves callers until the room is stopped; `serve` says why one was left, if it was.
    pub fn attend<S>(self: &Arc<Room>, listener: &Listener, serve: S)
    where
        S: Fn(&Arc<Caller>) -> io::Result<()> + Clone + Send + 'static,
    {
        let mut seats: Vec<Seat> = Vec::new();
        while !self.stopping.load(Ordering::Acquire) {
            let seen = self.sweep(&mut seats);
            let (admits, alarm) = self.outlook(&seen);
            let mut waiting = vec![poll::readable(self.bell.as_raw_fd())];
            waiting.extend(admits.then(|| poll::readable(listener.fd())));
            if poll::wait_readable(&mut waiting, alarm).is_err() {
                continue;
            }
            // Somebody has gone, or we are to stop.
            let _ = (&self.bell).read(&mut [0; 8]);
            if waiting.get(1).is_some_and(|listener| listener.revents != 0) {
                self.admit(listener, &mut seats, &serve);
            }
        }
        self.empty(seats);
    }

    /// Leaves whoever has been greeting for too long, and gives what is seen of those that keep their place.
    fn sweep(&self, seats: &mut Vec<Seat>) -> Vec<Seen> {
        for (_, thread) in seats.extract_if(.., |(caller, _)| caller.ended.load(Ordering::Acquire)) {
            // It caught its own panics.
            let _ = thread.join();
        }
        let mut here = self.open();
        here.retain(|caller| !caller.ended.load(Ordering::Acquire) && !caller.is_out());
        let now = Duration::from_millis(process::coarse_ms());
        let late = |seen: &Seen| seen.doing == Doing::Greeting && now >= seen.since + self.limits.greeting;
        here.retain(|caller| {
            let stays = !late(&caller.seen());
            if !stays {
                self.put_out(
                    caller,
                    format_args!("has not said within {:?} what it wants", self.limits.greeting),
                );
            }
            stays
        });
        here.iter().map(|caller| caller.seen()).collect()
    }

    fn put_out(&self, caller: &Caller, why: std::fmt::Arguments<'_>) {
        caller.out.store(true, Ordering::Relaxed);
        caller.stream.shutdown(Shutdown::Both);
        self.log.say(format_args!("{}: a connection is closed: it {why}", self.name));
    }

    /// Whether one more may come now, and after which time to look again.
    fn outlook(&self, seen: &[Seen]) -> (bool, Option<Duration>) {
        let now = Duration::from_millis(process::coarse_ms());
        let late = seen.iter().filter(|seen| seen.doing == Doing::Greeting);
        let late = late.map(|seen| seen.since + self.limits.greeting);
        let full = seen.len() >= self.limits.callers;
        // Who works now may rest soon: nobody rings then.
        let soon = full.then_some(now + self.limits.idle_least.min(self.limits.greeting_least));
        let yields = seen.iter().filter(|_| full).filter_map(|seen| seen.yields(&self.limits));
        let alarm = late.chain(yields).chain(soon).min();
        let admits = !full || who_yields(seen, &self.limits, now, |_| true).is_some();
        // The clock is coarse: a little later is surely not too early.
        (admits, alarm.map(|alarm| alarm.saturating_sub(now) + Duration::from_millis(10)))
    }

    fn admit<S>(self: &Arc<Room>, listener: &Listener, seats: &mut Vec<Seat>, serve: &S)
    where
        S: Fn(&Arc<Caller>) -> io::Result<()> + Clone + Send + 'static,
    {
        // A caller that has gone again, or no descriptor left: others may come.
        let Ok(stream) = listener.accept() else {
            return std::thread::sleep(Duration::from_millis(10));
        };
        let caller = Arc::new(Caller::new(stream));
        let mut open = self.open();
        let seen: Vec<Seen> = open.iter().map(|caller| caller.seen()).collect();
        let now = Duration::from_millis(process::coarse_ms());
        match place(&seen, &self.limits, now, caller.peer) {
            Place::Free => {}
            Place::Of(number) => {
                let idle = now.saturating_sub(seen[number].since);
                let old = open.swap_remove(number);
                self.put_out(&old, format_args!("asked nothing for {idle:?}, and others wait"));
            }
            Place::No => {
                return self.log.say(format_args!(
                    "{}: one more of {:?} is refused: it has as many connections as it may have",
                    self.name, caller.peer
                ));
            }
        }
        let (room, of_thread, serve) = (Arc::clone(self), Arc::clone(&caller), serve.clone());
        let body = move || room.serve_one(&of_thread, &serve);
        match std::thread::Builder::new().name(format!("nvlab-{}", self.name)).spawn(body) {
            Ok(thread) => {
                open.push(Arc::clone(&caller));
                seats.push((caller, thread));
            }
            Err(error) => self.log.say(format_args!("{}: cannot start a thread: {error}", self.name)),
        }
    }

    fn serve_one(&self, caller: &Arc<Caller>, serve: impl Fn(&Arc<Caller>) -> io::Result<()>) {
        let quiet = || self.stopping.load(Ordering::Acquire) || caller.is_out();
        match catch_unwind(AssertUnwindSafe(|| serve(caller))) {
            Ok(Ok(())) => {}
            Ok(Err(_)) if quiet() => {}
            Ok(Err(error)) => self.log.say(format_args!("{}: a connection ended: {error}", self.name)),
            Err(_) => {
                self.log
                    .say(format_args!("{}: a connection ended: its thread panicked (see above)", self.name));
            }
        }
        caller.stream.shutdown(Shutdown::Both);
        caller.ended.store(true, Ordering::Release);
        // Nobody listens any more if that fails.
        let _ = self.ring();
    }

    /// What was sent is still served, what comes is not read any more.
    fn empty(&self, seats: Vec<Seat>) {
        seats.iter().for_each(|(caller, _)| caller.stream.shutdown(Shutdown::Read));
        let until = Instant::now() + STOP_PATIENCE;
        while seats.iter().any(|(_, thread)| !thread.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        for (caller, thread) in seats {
            caller.stream.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        callers: 6,
        of_address: 3,
        greeting: Duration::from_secs(10),
        greeting_least: Duration::from_secs(1),
        idle_least: Duration::from_secs(5),
        halfway_least: Duration::from_secs(60),
    };

    fn seen(peer: Peer, doing: Doing, since: u64) -> Seen {
        Seen { peer, doing, since: Duration::from_secs(since) }
    }

    fn far(last: u8) -> Peer {
        Peer::of(Some([192, 0, 2, last].into()))
    }

    #[test]
    fn while_there_is_room_nobody_gives_up_a_place() {
        let five = [seen(Peer::Here, Doing::Idle, 0); 5];
        let now = Duration::from_secs(1_000_000);
        assert_eq!(place(&five, &LIMITS, now, Peer::Here), Place::Free);
        assert_eq!(place(&five, &LIMITS, now, far(1)), Place::Free);
    }

    #[test]
    fn the_longest_idle_goes_and_none_that_works() {
        let at = |seconds: u64| Duration::from_secs(100 + seconds);
        let mut all = [seen(Peer::Here, Doing::Working, 0); 6];
        assert_eq!(place(&all, &LIMITS, at(1000), Peer::Here), Place::No);
        (all[3], all[4]) = (seen(Peer::Here, Doing::Idle, 101), seen(Peer::Here, Doing::Idle, 100));
        assert_eq!(place(&all, &LIMITS, at(4), Peer::Here), Place::No, "not idle for long");
        assert_eq!(place(&all, &LIMITS, at(5), Peer::Here), Place::Of(4));
        all[1] = seen(Peer::Here, Doing::Greeting, 104);
        assert_eq!(place(&all, &LIMITS, at(5), Peer::Here), Place::Of(1), "who said nothing goes first");
        all[1].doing = Doing::Halfway;
        assert_eq!(place(&all, &LIMITS, at(5), Peer::Here), Place::Of(4));
        assert_eq!(who_yields(&all[1..2], &LIMITS, at(63), |_| true), None);
        assert_eq!(who_yields(&all[1..2], &LIMITS, at(64), |_| true), Some(0));
    }

    #[test]
    fn an_address_that_fills_the_room_is_in_its_own_way() {
        let now = Duration::from_secs(1000);
        let mut all = [seen(far(1), Doing::Idle, 500); 6];
        // At home and idle for the longest of all.
        all[5] = seen(Peer::Here, Doing::Idle, 0);
        assert_eq!(place(&all[3..], &LIMITS, now, far(1)), Place::Free);
        assert_eq!(place(&all[2..5], &LIMITS, now, far(1)), Place::Of(0), "it has as many as it may");
        assert_eq!(place(&[seen(far(1), Doing::Working, 0); 3], &LIMITS, now, far(1)), Place::No);
        assert_eq!(place(&all, &LIMITS, now, far(2)), Place::Of(0));
        (0..5).for_each(|i| all[i].doing = Doing::Working);
        assert_eq!(place(&all, &LIMITS, now, far(2)), Place::Of(5), "better than nobody");
    }

    #[test]
    fn who_is_owed_an_answer_works_and_who_does_not_take_it_is_halfway() {
        let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let caller = Caller::new(Stream::Unix(stream));
        assert_eq!(caller.seen().doing, Doing::Greeting);
        caller.owe();
        caller.sending.store(5, Ordering::Relaxed);
        assert_eq!(caller.seen().doing, Doing::Greeting, "until it says what it wants");
        caller.rests();
        assert_eq!((caller.seen().doing, caller.seen().since.as_millis()), (Doing::Halfway, 5));
        caller.sending.store(0, Ordering::Relaxed);
        assert_eq!(caller.seen().doing, Doing::Working);
        caller.pay(1);
        assert_eq!(caller.seen().doing, Doing::Idle);
        assert_eq!(caller.seen().since.as_millis() as u64, caller.answered.load(Ordering::Relaxed));
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let peer = |text: &str| Peer::of(Some(text.parse().unwrap()));
        assert_eq!(peer("2001:db8:1:2:3::4"), peer("2001:db8:1:2:ffff::1"));
        assert_ne!(peer("2001:db8:1:2:3::4"), peer("2001:db8:1:3:3::4"));
        assert_eq!(peer("::ffff:192.0.2.1"), far(1));
        assert_eq!(
            [peer("::1"), peer("127.0.0.9"), peer("::ffff:127.0.0.1"), Peer::of(None)],
            [Peer::Here; 4]
        );
    }
}
