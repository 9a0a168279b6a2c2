//! Replies: sent at once, or held until the modelled device would give them. A connection may use several devices.
//!
//! Held replies wait in a heap for one thread of their connection, the timer, which sleeps until shortly before the
//! first of them is due and busy-waits for the rest. A reply that is due in a few microseconds, with nothing else to
//! do, is waited for and sent by the thread that read its request: waking the timer would take longer. The lateness
//! of each is recorded.

use crate::clock;
use crate::net::transport::Transport;
use crate::served::{Drive, Due, Session};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io::{self, IoSlice};
use std::iter;
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of replies that are sent together; a payload as large is sent alone.
const SEND_AT: usize = 128 << 10;
/// A buffer that has grown beyond this is freed.
const KEEP_BYTES: usize = 2 << 20;
/// Replies and bytes held for one connection; with more, no further requests are read from it.
const HELD_MAX: usize = 1024;
/// A wait shorter than this is not left to the timer, which would wake later.
const SHORT: Duration = Duration::from_micros(10);
const HELD_BYTES_MAX: usize = 64 << 20;

/// Bytes to be sent. The buffer never shrinks below what was used, so that nothing is zeroed twice.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    used: usize,
}

impl Outgoing {
    pub fn push(&mut self, data: &[u8]) {
        self.reserve(data.len()).copy_from_slice(data);
    }

    /// The next this many bytes, for the caller to fill.
    pub fn reserve(&mut self, bytes: usize) -> &mut [u8] {
        let (start, end) = (self.used, self.used + bytes);
        if self.bytes.len() < end {
            self.bytes.resize(end.next_power_of_two(), 0);
        }
        self.used = end;
        &mut self.bytes[start..end]
    }

    pub fn len(&self) -> usize {
        self.used
    }

    /// Removes the first bytes, which were sent.
    fn consume(&mut self, bytes: usize) {
        self.bytes.copy_within(bytes..self.used, 0);
        self.used -= bytes;
    }

    /// The last this many bytes.
    pub fn last(&self, bytes: usize) -> &[u8] {
        &self.bytes[self.used - bytes..self.used]
    }

    /// Removes everything after the first `bytes`.
    pub fn truncate(&mut self, bytes: usize) {
        self.used = self.used.min(bytes);
    }

    fn here(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    fn clear(&mut self) {
        self.used = 0;
        if self.bytes.len() > KEEP_BYTES {
            self.bytes = Vec::new();
        }
    }
}

/// Where the replies of a connection go.
pub(crate) enum Answers {
    /// Sent when nothing more can be read without waiting.
    AtOnce { transport: Arc<Transport>, out: Outgoing },
    /// Held; the buffer is that of the reply being built.
    Held { held: Arc<Held>, out: Outgoing },
}

impl Answers {
    /// Where the next reply is written.
    pub fn begin(&mut self) -> &mut Outgoing {
        match self {
            Answers::AtOnce { out, .. } | Answers::Held { out, .. } => out,
        }
    }

    /// True if a payload of this size is better sent from the media: [`Answers::payload`].
    pub fn sends_in_place(&self, bytes: usize) -> bool {
        match self {
            Answers::AtOnce { transport, .. } => bytes >= SEND_AT && !transport.is_secure(),
            Answers::Held { .. } => false,
        }
    }

    /// The payload of a reply, in the media: what the socket accepts without waiting is sent from there, after everything
    /// written before; the rest is copied.
    pub fn payload(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let mut sent = 0;
        if let Answers::AtOnce { transport, out } = self {
            let all = iter::once(out.here()).chain(parts.iter().copied());
            let all: Vec<IoSlice<'_>> = all.map(IoSlice::new).collect();
            sent = transport.connection.stream.write_now(&all)?;
        }
        let out = self.begin();
        let mut skip = sent.saturating_sub(out.len());
        out.consume(sent.min(out.len()));
        for part in parts {
            let here = skip.min(part.len());
            out.push(&part[here..]);
            skip -= here;
        }
        Ok(())
    }

    /// Completes a reply, which is due at a time. `of`: the device whose lateness it counts for, by its place among those of
    /// the connection. `more`: another request has been read already.
    pub fn end(&mut self, due: Due, of: Option<usize>, more: bool) -> io::Result<()> {
        match self {
            Answers::AtOnce { out, .. } if out.len() < SEND_AT => Ok(()),
            Answers::AtOnce { .. } => self.send(),
            Answers::Held { held, out } => {
                let due = due.unwrap_or_else(Instant::now);
                if !more && due.saturating_duration_since(Instant::now()) < SHORT && held.is_idle() {
                    held.send_soon(due, of, out);
                } else {
                    *out = held.add(due, of, std::mem::take(out));
                }
                Ok(())
            }
        }
    }

    /// Sends what can be sent: the connection is about to wait for the client.
    pub fn send(&mut self) -> io::Result<()> {
        match self {
            Answers::AtOnce { transport, out } if out.len() > 0 => {
                let sent = transport.write_all(out.here());
                out.clear();
                sent
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Reply {
    due: Instant,
    number: u64,
    of: Option<usize>,
    out: Outgoing,
}

impl PartialEq for Reply {
    fn eq(&self, other: &Reply) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Reply {}
impl PartialOrd for Reply {
    fn partial_cmp(&self, other: &Reply) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Reply {
    fn cmp(&self, other: &Reply) -> Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

#[derive(Debug, Default)]
struct Queue {
    replies: BinaryHeap<Reverse<Reply>>,
    bytes: usize,
    number: u64,
    unused: Vec<Outgoing>,
    /// Whether the timer is sending a reply.
    sending: bool,
    /// No more replies will be added.
    ended: bool,
    /// The client has gone: replies are dropped.
    broken: bool,
}

impl Queue {
    /// Disconnects the client, and drops its replies.
    fn give_up(&mut self, transport: &Transport) {
        self.broken = true;
        self.replies.clear();
        transport.connection.stream.shutdown(Shutdown::Both);
    }
}

/// Replies that are not due yet, and the notifications of the timer.
pub(crate) struct Held {
    transport: Arc<Transport>,
    devices: Vec<(Arc<Drive>, Session)>,
    queue: Mutex<Queue>,
    added: Condvar,
    taken: Condvar,
}

impl Held {
    /// Empty; for the replies of devices, each in one session.
    pub fn new(transport: Arc<Transport>, devices: Vec<(Arc<Drive>, Session)>) -> Held {
        let (added, taken) = (Condvar::new(), Condvar::new());
        Held { transport, devices, queue: Mutex::default(), added, taken }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Replies are added and removed whole: the queue is consistent after a panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if nothing is held and nothing is being sent: only the thread that adds can change that.
    fn is_idle(&self) -> bool {
        let queue = self.queue();
        queue.replies.is_empty() && !queue.sending && !queue.broken
    }

    /// Sends a reply when it is due. Nothing else must be held.
    fn send_soon(&self, due: Instant, of: Option<usize>, out: &mut Outgoing) {
        self.transport.connection.reply_held();
        let sent_at = clock::wait_until(due);
        self.count(of, due, sent_at);
        let sent = self.send(out.here());
        self.transport.connection.replies_sent(1);
        out.clear();
        if !sent {
            self.give_up();
        }
    }

    /// Sends bytes, unless the power has failed meanwhile; false if they were not sent.
    fn send(&self, bytes: &[u8]) -> bool {
        let powered = self.devices.iter().all(|(drive, session)| drive.is_current(*session));
        powered && self.transport.write_all(bytes).is_ok()
    }

    /// Counts how late a reply was sent.
    fn count(&self, of: Option<usize>, due: Instant, sent_at: Instant) {
        if let Some((drive, _)) = of.and_then(|of| self.devices.get(of)) {
            drive.sent(due, sent_at);
        }
    }

    /// Queues a reply and returns a buffer for the next.
    fn add(&self, due: Instant, of: Option<usize>, mut out: Outgoing) -> Outgoing {
        let mut queue = self.queue();
        if queue.broken {
            out.clear();
            return out;
        }
        while queue.replies.len() >= HELD_MAX || (queue.bytes > HELD_BYTES_MAX && !queue.broken) {
            queue = self.taken.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.number += 1;
        queue.bytes += out.len();
        self.transport.connection.reply_held();
        let number = queue.number;
        let first = queue.replies.peek().is_none_or(|Reverse(reply)| due < reply.due);
        queue.replies.push(Reverse(Reply { due, number, of, out }));
        if first {
            self.added.notify_one();
        }
        queue.unused.pop().unwrap_or_default()
    }

    /// Calls `serve` with answers that are held here, and sends them; returns once the last was sent.
    pub fn while_sending<R>(self: &Arc<Held>, serve: impl FnOnce(&mut Answers) -> R) -> R {
        std::thread::scope(|scope| {
            let timer = scope.spawn(|| {
                let run = catch_unwind(AssertUnwindSafe(|| self.run()));
                run.inspect_err(|_| self.give_up())
            });
            let mut answers = Answers::Held { held: Arc::clone(self), out: Outgoing::default() };
            let served = catch_unwind(AssertUnwindSafe(|| serve(&mut answers)));
            // Also after a panic: otherwise the timer would wait for more for ever.
            self.end();
            // A panic of the timer was reported by the thread itself.
            let _ = timer.join();
            served.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// No more replies will be added; those that are held are still sent.
    fn end(&self) {
        self.queue().ended = true;
        self.added.notify_one();
    }

    /// The timer: sends each reply when it is due, until the last.
    fn run(&self) {
        clock::sleep_precisely();
        let spin = clock::spin();
        let mut queue = self.queue();
        loop {
            let Some(Reverse(first)) = queue.replies.peek() else {
                if queue.ended {
                    return;
                }
                queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (due, now) = (first.due, Instant::now());
            if due > now {
                let left = due - now;
                if left > spin {
                    let waited = self.added.wait_timeout(queue, left - spin);
                    queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                } else {
                    drop(queue);
                    // Another thread may use the core meanwhile: often the client that was answered last.
                    while Instant::now() < due {
                        std::thread::yield_now();
                    }
                    queue = self.queue();
                }
                continue;
            }
            let Some(Reverse(mut reply)) = queue.replies.pop() else { continue };
            let mut together = 1;
            queue.bytes -= reply.out.len();
            self.count(reply.of, reply.due, now);
            // Other replies that are due go with it: waking the client takes longer than a copy.
            while reply.out.len() < SEND_AT
                && queue.replies.peek().is_some_and(|Reverse(next)| next.due <= now)
            {
                let Some(Reverse(mut next)) = queue.replies.pop() else { break };
                queue.bytes -= next.out.len();
                self.count(next.of, next.due, now);
                reply.out.push(next.out.here());
                next.out.clear();
                queue.unused.push(next.out);
                together += 1;
            }
            queue.sending = true;
            drop(queue);
            let sent = self.send(reply.out.here());
            self.transport.connection.replies_sent(together);
            reply.out.clear();
            queue = self.queue();
            queue.sending = false;
            queue.unused.push(reply.out);
            if !sent {
                queue.give_up(&self.transport);
            }
            self.taken.notify_one();
        }
    }

    /// The timer ended early: no reply is sent any more, and no thread waits for one.
    fn give_up(&self) {
        self.queue().give_up(&self.transport);
        self.taken.notify_one();
    }
}
