//! Threads that pass requests through a stack, on a limited number of cores.
//!
//! Model
//! 1. A thread does one thing at a time. What becomes ready meanwhile (a new request, a completion, the end of a wait)
//!    waits for it in order of arrival.
//! 2. A thread needs a core to run. It releases its core when it has nothing to run, unless it spins for a
//!    completion, and
//!    between two requests if another thread waits for a core. It is not preempted.
//! 3. A lock is a lane, booked in order of time. A thread that waits for one keeps its core: driver locks are spin locks.
//!    Stages that follow each other under the same lock are one critical section.
//!
//! Why an event heap, which devices do not need: when a thread reaches a lock or releases its core depends on the
//! completions of other requests, and locks, cores and the device must be called in time order. It costs a few
//! hundred nanoseconds per request, only in runs with stages.
//!
//! Invariant: every picosecond from [`Machine::submit`] to [`Event::Done`] is in one of the stages (processor, lock,
//! wait), in the device, or in the queue for thread and core ([`Spent`]).

use super::{Completion, Stack, When};
use nvlab_units::{Interruption, Lane, Span, Time, Total};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

/// What the caller has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Call the device for this request and pass the end to [`Machine::device_done`]. Events come in time order.
    Device {
        /// As passed to [`Machine::submit`].
        slot: u32,
        /// When the request reaches the device.
        at: Time,
    },
    /// The request is complete; its number is free.
    Done {
        /// As passed to [`Machine::submit`].
        slot: u32,
        /// When the last stage was done.
        at: Time,
    },
}

/// Time spent in one stage, over all requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageTime {
    /// Time on a core.
    pub cpu: Total,
    /// Time without a core, waiting for the stage's lock.
    pub lock: Total,
    /// Time without a core, in the stage's own wait.
    pub wait: Total,
}

/// Where the time of all requests went.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    /// Requests that passed the whole stack.
    pub requests: u64,
    /// One entry per stage, in the order of the stack.
    pub stages: Vec<StageTime>,
    /// From the call of the device to its completion.
    pub device: Total,
    /// Waiting until the request's thread was free and had a core.
    pub queue: Total,
    /// Processor time spent spinning for completions, which is also part of `device`.
    pub spin: Total,
}

/// A step of a request through the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hop {
    Work(usize),
    /// Processor time of consecutive stages that hold the same lock.
    Locked {
        stage: usize,
        end: usize,
        lock: usize,
    },
    Wait(usize),
    Device,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    thread: u32,
    bytes: u32,
    completion: Completion,
    /// Index into the hops of its kind of completion.
    next: usize,
    /// When it started to wait for its thread.
    since: Time,
    /// True if its thread spins for it.
    polled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Has nothing to run, and no core.
    Asleep,
    /// Ready to run, without a core.
    Waiting,
    Running,
    /// Occupies a core and polls, since this time.
    Spinning(Time),
}

#[derive(Clone, Debug)]
struct Thread {
    state: State,
    ready: VecDeque<u32>,
    /// Requests at the device that it spins for.
    polled: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    /// The request becomes ready for its thread.
    Ready,
    /// Its thread reaches the next hop.
    Reached,
}

/// Threads, cores and locks under a stack.
#[derive(Clone, Debug)]
pub struct Machine {
    stack: Stack,
    /// The hops of a request completed by an interrupt, and of one completed by spinning.
    ways: [Vec<Hop>; 2],
    locks: Vec<Lane>,
    threads: Vec<Thread>,
    requests: Vec<Request>,
    /// The second number keeps simultaneous events in the order in which they were caused.
    events: BinaryHeap<Reverse<(Time, u64, Happens, u32)>>,
    caused: u64,
    free_cores: u32,
    for_core: VecDeque<u32>,
    spent: Spent,
}

impl Machine {
    /// All threads idle at time 0; at least one, even for `threads` 0.
    pub fn new(stack: &Stack, threads: u32) -> Machine {
        let threads = threads.max(1);
        let thread = Thread { state: State::Asleep, ready: VecDeque::new(), polled: 0 };
        Machine {
            ways: [way(stack, Completion::Interrupt), way(stack, Completion::Spin)],
            locks: vec![Lane::new(); stack.locks.len()],
            threads: vec![thread; threads as usize],
            requests: Vec::new(),
            events: BinaryHeap::new(),
            caused: 0,
            free_cores: stack.cores.unwrap_or(threads),
            for_core: VecDeque::new(),
            spent: Spent { stages: vec![StageTime::default(); stack.stages.len()], ..Spent::default() },
            stack: stack.clone(),
        }
    }

    /// A thread submits a request of `bytes` at `at`, not before the last event. `slot` is a number chosen by the
    /// caller that no request in progress has; small numbers take little memory.
    pub fn submit(&mut self, slot: u32, thread: u32, at: Time, bytes: u32) {
        let completion = self.stack.completion_of(bytes);
        let request = Request { thread, bytes, completion, next: 0, since: at, polled: false };
        let index = slot as usize;
        if index >= self.requests.len() {
            self.requests.resize(index + 1, request);
        }
        self.requests[index] = request;
        self.cause(at, Happens::Ready, slot);
    }

    /// The device will complete the request of the last [`Event::Device`], which was at `called`, at `end`.
    pub fn device_done(&mut self, slot: u32, called: Time, end: Time) {
        self.spent.device += end.since(called);
        self.cause(end.max(called), Happens::Ready, slot);
    }

    /// The next event up to `until`; `None` if there is none yet.
    pub fn next(&mut self, until: Time) -> Option<Event> {
        while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= until) {
            let Reverse((at, _, happens, slot)) = self.events.pop().expect("an event was seen");
            match happens {
                Happens::Ready => self.ready(slot, at),
                Happens::Reached => {
                    let event = self.reached(slot, at);
                    if event.is_some() {
                        return event;
                    }
                }
            }
        }
        None
    }

    /// Where the time of completed requests was spent so far.
    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    fn cause(&mut self, at: Time, happens: Happens, slot: u32) {
        self.caused += 1;
        self.events.push(Reverse((at, self.caused, happens, slot)));
    }

    /// A request waits for its thread from `at` on.
    fn ready(&mut self, slot: u32, at: Time) {
        let request = &mut self.requests[slot as usize];
        request.since = at;
        let number = request.thread;
        let thread = &mut self.threads[number as usize];
        if std::mem::take(&mut request.polled) {
            thread.polled -= 1;
        }
        thread.ready.push_back(slot);
        match thread.state {
            State::Spinning(since) => {
                self.spent.spin += at.since(since);
                self.run(number, at);
            }
            State::Asleep if self.free_cores > 0 => {
                self.free_cores -= 1;
                self.run(number, at);
            }
            State::Asleep => {
                thread.state = State::Waiting;
                self.for_core.push_back(number);
            }
            State::Waiting | State::Running => {}
        }
    }

    /// A thread with a core continues with the first request that is ready.
    fn run(&mut self, number: u32, at: Time) {
        let thread = &mut self.threads[number as usize];
        let slot = thread.ready.pop_front().expect("something is ready");
        thread.state = State::Running;
        self.spent.queue += at.since(self.requests[slot as usize].since);
        self.cause(at, Happens::Reached, slot);
    }

    /// A thread continues with a request until the next point at which a shared resource is needed.
    fn reached(&mut self, slot: u32, now: Time) -> Option<Event> {
        let mut at = now;
        let Request { thread, bytes, completion, .. } = self.requests[slot as usize];
        loop {
            let hop = self.ways[completion as usize].get(self.requests[slot as usize].next).copied();
            match hop {
                Some(Hop::Work(stage)) => {
                    let cost = self.stack.stages[stage].cost(bytes);
                    self.spent.stages[stage].cpu += cost;
                    at += cost;
                }
                _ if at > now => {
                    self.cause(at, Happens::Reached, slot);
                    return None;
                }
                Some(Hop::Locked { stage, end, lock }) => at = self.locked(stage..end, lock, bytes, now),
                Some(Hop::Wait(stage)) => {
                    let wait = self.stack.stages[stage].wait;
                    self.spent.stages[stage].wait += wait;
                    self.requests[slot as usize].next += 1;
                    self.cause(now + wait, Happens::Ready, slot);
                    self.leave(thread, now);
                    return None;
                }
                Some(Hop::Device) => {
                    let request = &mut self.requests[slot as usize];
                    request.next += 1;
                    request.polled = completion == Completion::Spin;
                    self.threads[thread as usize].polled += u32::from(request.polled);
                    self.leave(thread, now);
                    return Some(Event::Device { slot, at: now });
                }
                None => {
                    self.spent.requests += 1;
                    self.yield_core(thread, now);
                    return Some(Event::Done { slot, at: now });
                }
            }
            self.requests[slot as usize].next += 1;
        }
    }

    /// Runs stages whose lock is reached at `now`; returns their end. The first of them waits for the lock.
    fn locked(&mut self, stages: Range<usize>, lock: usize, bytes: u32, now: Time) -> Time {
        let mut cost = Span::ZERO;
        for stage in stages.clone() {
            let own = self.stack.stages[stage].cost(bytes);
            self.spent.stages[stage].cpu += own;
            cost += own;
        }
        let held = self.locks[lock].foreground(now, cost, &Interruption::Wait);
        self.spent.stages[stages.start].lock += held.start.since(now);
        held.end
    }

    /// A thread has completed a request: it yields its core if others wait for one.
    fn yield_core(&mut self, number: u32, at: Time) {
        let Some(next) = self.for_core.pop_front() else { return self.leave(number, at) };
        let thread = &mut self.threads[number as usize];
        if thread.ready.is_empty() {
            thread.state = State::Asleep;
        } else {
            thread.state = State::Waiting;
            self.for_core.push_back(number);
        }
        self.run(next, at);
    }

    /// A thread cannot continue with a request for now: it runs another one, spins, or releases its core.
    fn leave(&mut self, number: u32, at: Time) {
        let thread = &mut self.threads[number as usize];
        if !thread.ready.is_empty() {
            self.run(number, at);
        } else if thread.polled > 0 {
            thread.state = State::Spinning(at);
        } else {
            thread.state = State::Asleep;
            match self.for_core.pop_front() {
                Some(next) => self.run(next, at),
                None => self.free_cores += 1,
            }
        }
    }
}

/// The hops of a request with this kind of completion, without those that take no time.
fn way(stack: &Stack, completion: Completion) -> Vec<Hop> {
    let mut way = Vec::new();
    for when in [When::Submit, When::Complete] {
        if when == When::Complete {
            way.push(Hop::Device);
        }
        for (index, stage) in stack.stages.iter().enumerate() {
            if stage.when != when || stage.only.is_some_and(|only| only != completion) {
                continue;
            }
            match (stage.lock, way.last_mut()) {
                // Nothing is between them: neither the device nor another stage.
                (Some(lock), Some(Hop::Locked { end, lock: held, .. })) if *held == lock && *end == index => {
                    *end = index + 1;
                }
                (Some(lock), _) => way.push(Hop::Locked { stage: index, end: index + 1, lock }),
                (None, _) if stage.cpu == Span::ZERO && stage.per_4k == Span::ZERO => {}
                (None, _) => way.push(Hop::Work(index)),
            }
            if stage.wait > Span::ZERO {
                way.push(Hop::Wait(index));
            }
        }
    }
    way
}
