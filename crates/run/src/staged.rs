//! Requests through the host's software as stages: threads issue them, the device serves them in between.
//!
//! Latency counts from the moment a thread wanted the request, as without stages. Each thread keeps its share of a closed
//! loop's depth in flight; in an open loop the threads take the requests in turn. The device is called in order of time, and
//! a request waits for room in its queue.
//!
//! A recorded program issues a request when it would issue it (see [`nvlab_workload::Program`]). What is above the driver is
//! in the recording as computing, so its requests pass only the stages of the driver and below it
//! ([`Stack::below_recording`](nvlab_access::stack::Stack::below_recording)). A recording does not say which thread issued a
//! request: one issues all.

use super::drive::{self, ASK_EVERY, DeviceUnderTest, DriveError, Limit, Pass, Progress, Standstill, Watch};
use super::outstanding::Outstanding;
use crate::result::{SoftwareResult, StageResult};
use nvlab_access::stack::{Event, Machine, Stack, When};
use nvlab_design::Software;
use nvlab_units::{Time, Total};
use nvlab_workload::{Batch, BlockWorkload, Pacing, Request, Rerun};

/// Requests between two calls of [`Meter::batch`](super::meter::Meter::batch): as many as without stages.
const METERED: u64 = 32;

/// Requests of a workload one by one, until a limit.
struct Source<'a> {
    workload: &'a mut dyn BlockWorkload,
    batch: Batch,
    /// The next of the batch.
    next: usize,
    limit: &'a Limit,
    origin: Time,
    deadline: u64,
    /// Requests come at their own times, and do not wait for answers.
    open: bool,
    /// Of what was issued; `now` is set at the end.
    progress: Progress,
    over: bool,
}

impl<'a> Source<'a> {
    fn new(workload: &'a mut dyn BlockWorkload, origin: Time, limit: &'a Limit) -> Source<'a> {
        let deadline = origin.ps().saturating_add(limit.time.ps());
        let open = workload.pacing() == Pacing::Open;
        let progress = Progress { now: origin, ..Progress::default() };
        let (batch, next, over) = (Batch::new(), 0, false);
        Source { workload, batch, next, limit, origin, deadline, open, progress, over }
    }

    /// The next request and when it is wanted: at `now`, but in an open loop at its own time. `None` after the end.
    fn next(&mut self, now: Time) -> Option<(Request, Time)> {
        if self.over || self.limit.is_reached(&self.progress) {
            return None;
        }
        if self.next == self.batch.len() {
            self.batch.clear();
            self.next = 0;
            if self.workload.fill(&mut self.batch) == 0 {
                (self.over, self.progress.ended) = (true, true);
                return None;
            }
        }
        let request = self.batch.requests()[self.next];
        let wanted = if self.open { self.origin + request.at.since(Time::ZERO) } else { now };
        if wanted.ps() >= self.deadline {
            self.over = true;
            return None;
        }
        self.next += 1;
        self.progress = self.progress.after(&[request]);
        Some((request, wanted))
    }
}

/// A request in progress.
#[derive(Clone, Copy)]
struct InProgress {
    request: Request,
    wanted: Time,
    number: u64,
    thread: u32,
}

/// Issues requests: from the workload into the machine.
struct Issuer<'a, 'p> {
    source: Source<'a>,
    /// The program behind the requests, if they were recorded.
    program: Option<&'a mut Rerun<'p>>,
    machine: Machine,
    /// Requests in progress by slot.
    slots: Vec<Option<InProgress>>,
    free: Vec<u32>,
}

impl Issuer<'_, '_> {
    /// The next request and when it is wanted, not before `now`. `None` after the end, and while the program that issues it
    /// waits for an answer.
    fn coming(&mut self, now: Time) -> Option<(Request, Time)> {
        let now = match &mut self.program {
            Some(program) => program.asks()?.max(now),
            None => now,
        };
        self.source.next(now)
    }

    /// A thread issues `request` at `wanted`.
    fn issue(&mut self, thread: u32, (request, wanted): (Request, Time), device: &dyn DeviceUnderTest) {
        device.prefetch(request.offset);
        let number = self.source.progress.requests - 1;
        if let Some(program) = &mut self.program {
            program.issued(wanted);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(InProgress { request, wanted, number, thread });
        self.machine.submit(slot, thread, wanted, request.bytes);
    }

    fn in_progress(&self, slot: u32) -> InProgress {
        self.slots[slot as usize].expect("a request in progress")
    }

    /// Takes a request out that is complete at `at`.
    fn take(&mut self, slot: u32, at: Time) -> InProgress {
        self.free.push(slot);
        let done = self.slots[slot as usize].take().expect("a request in progress");
        if let Some(program) = &mut self.program {
            program.answered(done.number as usize, at);
        }
        done
    }
}

/// Drives `device` with `workload` through `software` from `origin` on until the workload or the limit ends it. `queue` is
/// how many requests the device takes at a time. The requests of a recorded `program` are issued when it would issue them.
pub(super) fn drive<'a>(
    device: &mut dyn DeviceUnderTest,
    workload: &'a mut dyn BlockWorkload,
    program: Option<&'a mut Rerun<'_>>,
    software: &Software,
    Pass { origin, queue, limit }: Pass<'a>,
    mut watch: Watch<'_>,
) -> Result<(Progress, SoftwareResult), DriveError> {
    device.expect_appends(workload.appends());
    let (pacing, threads) = (workload.pacing(), workload.threads());
    let stack = if program.is_some() { software.stack.below_recording() } else { software.stack.clone() };
    let source = Source::new(workload, origin, limit);
    let machine = Machine::new(&stack, threads);
    let mut issuer = Issuer { source, program, machine, slots: Vec::new(), free: Vec::new() };
    let (mut coming, mut issued) = (None, origin);
    if let Pacing::Closed { depth } = pacing {
        for index in 0..depth {
            let Some(next) = issuer.coming(origin) else { break };
            issuer.issue(index % threads, next, device);
        }
    } else {
        coming = issuer.coming(origin);
    }
    let mut at_device = Outstanding::new(queue, origin);
    let open_from = (pacing == Pacing::Open).then_some(origin);
    let still = Standstill::new(issuer.source.limit.is_timed());
    let mut finished = Finished { ask_at: ASK_EVERY, open_from, still, ..Finished::default() };
    loop {
        // Events go on up to the next request, if it is known when that comes.
        let until = coming.map_or(Time::MAX, |(_, wanted)| wanted);
        match (issuer.machine.next(until), coming) {
            (None, None) => break,
            (None, Some(next)) => {
                let thread = (issuer.source.progress.requests - 1) % threads as u64;
                issuer.issue(thread as u32, next, device);
                issued = next.1;
                coming = issuer.coming(issued);
            }
            (Some(Event::Device { slot, at }), _) => {
                let InProgress { request, number, .. } = issuer.in_progress(slot);
                let begin = at.max(at_device.room_at());
                let end = drive::serve(device, begin, &request, issuer.source.workload)
                    .map_err(|why| DriveError::failed(number + 1, 0, &request, begin, why))?;
                at_device.add(end);
                issuer.machine.device_done(slot, at, end);
            }
            (Some(Event::Done { slot, at }), _) => {
                let done = issuer.take(slot, at);
                finished.one(&done, at, &issuer.source.progress, device, &mut watch)?;
                issuer.source.over |= watch.meter.as_ref().is_some_and(|meter| meter.is_reached());
                match pacing {
                    Pacing::Closed { .. } => {
                        if let Some(next) = issuer.coming(at) {
                            issuer.issue(done.thread, next, device);
                        }
                    }
                    // It may have waited for this answer.
                    Pacing::Program if coming.is_none() => coming = issuer.coming(issued),
                    Pacing::Program | Pacing::Open => {}
                }
            }
        }
    }
    let progress = drive::finished(issuer.source.progress, finished.last)?;
    let span = progress.now.since(origin).seconds().max(1e-12);
    Ok((progress, result((&software.name, &stack), threads, &issuer.machine, &finished, span)))
}

/// What is complete.
#[derive(Default)]
struct Finished {
    requests: u64,
    latencies: Total,
    last: Time,
    /// Requests that the meter has counted in its windows.
    counted: u64,
    ask_at: u64,
    /// When an open loop began.
    open_from: Option<Time>,
    still: Standstill,
}

impl Finished {
    /// One more request is complete at `at`.
    fn one(
        &mut self,
        InProgress { request, wanted, .. }: &InProgress,
        at: Time,
        issued: &Progress,
        device: &dyn DeviceUnderTest,
        watch: &mut Watch<'_>,
    ) -> Result<(), DriveError> {
        self.requests += 1;
        self.latencies += at.since(*wanted);
        self.last = at;
        if let Some(meter) = &mut watch.meter {
            meter.served(request, *wanted, at);
            if let Some(origin) = self.open_from {
                meter.arrivals.note(wanted.since(origin), at.since(*wanted));
            }
            let new = self.requests - self.counted;
            if new == METERED {
                meter.batch(|| device.counters(), new, at);
                self.counted = self.requests;
            }
        }
        let progress = Progress { requests: self.requests, now: at, ..*issued };
        self.still.check(&progress)?;
        drive::ask(watch.go_on, &progress, &mut self.ask_at)
    }
}

fn result(
    (name, stack): (&str, &Stack),
    threads: u32,
    machine: &Machine,
    finished: &Finished,
    seconds: f64,
) -> SoftwareResult {
    let spent = machine.spent();
    let requests = finished.requests.max(1) as f64;
    let each = |total: Total| total.ps() as f64 / 1000.0 / requests;
    let stages: Vec<StageResult> = stack
        .stages
        .iter()
        .zip(&spent.stages)
        .map(|(stage, time)| StageResult {
            name: stage.name.clone(),
            submits: stage.when == When::Submit,
            cpu_ns: each(time.cpu),
            lock_ns: each(time.lock),
            wait_ns: each(time.wait),
        })
        .collect();
    let sum = |of: fn(&StageResult) -> f64| stages.iter().map(of).sum::<f64>();
    let (cpu_ns, lock_ns) = (sum(|stage| stage.cpu_ns), sum(|stage| stage.lock_ns));
    let (latency_ns, device_ns, spin_ns) = (each(finished.latencies), each(spent.device), each(spent.spin));
    SoftwareResult {
        stack: name.to_string(),
        threads,
        cores: stack.cores,
        locks: stack.locks.len() as u32,
        latency_ns: latency_ns - device_ns,
        device_ns,
        queue_ns: each(spent.queue),
        cpu_ns,
        spin_ns,
        lock_ns,
        cores_used: (cpu_ns + spin_ns + lock_ns) * 1e-9 * requests / seconds,
        lock_share: if latency_ns > 0.0 { lock_ns / latency_ns } else { 0.0 },
        stages,
    }
}
