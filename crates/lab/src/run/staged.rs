//! Requests through the host's software as stages: threads issue them, the device serves them in between.
//!
//! Latency counts from the moment a thread wanted the request, as without stages. Each thread keeps its share of a closed
//! loop's depth in flight; in an open loop the threads take the requests in turn. The device is called in order of time, and
//! a request waits for room in its queue.

use super::device::Observed;
use super::drive::{self, ASK_EVERY, DriveError, Limit, Outstanding, Progress, Watch};
use crate::design::Software;
use crate::result::{SoftwareResult, StageResult};
use nvlab_access::BlockDevice;
use nvlab_access::stack::{Event, Machine, When};
use nvlab_units::{Time, Total};
use nvlab_workload::{Batch, BlockWorkload, Pacing, Request};

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
    closed: bool,
    /// Of what was issued; `now` is set at the end.
    progress: Progress,
    over: bool,
}

impl<'a> Source<'a> {
    fn new(workload: &'a mut dyn BlockWorkload, origin: Time, limit: &'a Limit) -> Source<'a> {
        let deadline = origin.ps().saturating_add(limit.time.ps());
        let closed = matches!(workload.pacing(), Pacing::Closed { .. });
        let progress = Progress { now: origin, ..Progress::default() };
        let (batch, next, over) = (Batch::new(), 0, false);
        Source { workload, batch, next, limit, origin, deadline, closed, progress, over }
    }

    /// The next request and when it is wanted: in a closed loop at `now`. `None` after the end.
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
        let wanted = if self.closed { now } else { self.origin + request.at.since(Time::ZERO) };
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
struct Issuer<'a> {
    source: Source<'a>,
    machine: Machine,
    /// Requests in progress by slot.
    slots: Vec<Option<InProgress>>,
    free: Vec<u32>,
}

impl Issuer<'_> {
    /// A thread issues `request` at `wanted`.
    fn issue(&mut self, thread: u32, (request, wanted): (Request, Time), device: &impl BlockDevice) {
        device.prefetch(request.offset);
        let number = self.source.progress.requests - 1;
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

    /// Takes a request out that is complete.
    fn take(&mut self, slot: u32) -> InProgress {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a request in progress")
    }
}

/// Drives `device` with `workload` through `software` from `origin` on until the workload or the limit ends it. `queue` is
/// how many requests the device takes at a time. The workload must not be a recorded program.
pub(super) fn drive<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn BlockWorkload,
    software: &Software,
    origin: Time,
    queue: u32,
    limit: &Limit,
    mut watch: Watch<'_>,
) -> Result<(Progress, SoftwareResult), DriveError> {
    let (pacing, threads) = (workload.pacing(), workload.threads());
    let source = Source::new(workload, origin, limit);
    let machine = Machine::new(&software.stack, threads);
    let mut issuer = Issuer { source, machine, slots: Vec::new(), free: Vec::new() };
    let mut coming = None;
    if let Pacing::Closed { depth } = pacing {
        for index in 0..depth {
            let Some(next) = issuer.source.next(origin) else { break };
            issuer.issue(index % threads, next, device);
        }
    } else {
        coming = issuer.source.next(origin);
    }
    let mut at_device = Outstanding::new(queue, origin);
    let mut finished = Finished { ask_at: ASK_EVERY, ..Finished::default() };
    loop {
        // In an open loop events go on up to the next request.
        let until = coming.map_or(Time::MAX, |(_, wanted)| wanted);
        match (issuer.machine.next(until), coming) {
            (None, None) => break,
            (None, Some(next)) => {
                let thread = (issuer.source.progress.requests - 1) % threads as u64;
                issuer.issue(thread as u32, next, device);
                coming = issuer.source.next(origin);
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
                let done = issuer.take(slot);
                finished.one(&done, at, &issuer.source.progress, device, &mut watch)?;
                if issuer.source.closed
                    && let Some(next) = issuer.source.next(at)
                {
                    issuer.issue(done.thread, next, device);
                }
            }
        }
    }
    let progress = drive::finished(issuer.source.progress, finished.last)?;
    let span = progress.now.since(origin).seconds().max(1e-12);
    Ok((progress, result(software, threads, &issuer.machine, &finished, span)))
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
}

impl Finished {
    /// One more request is complete at `at`.
    fn one(
        &mut self,
        InProgress { request, wanted, .. }: &InProgress,
        at: Time,
        issued: &Progress,
        device: &impl Observed,
        watch: &mut Watch<'_>,
    ) -> Result<(), DriveError> {
        self.requests += 1;
        self.latencies += at.since(*wanted);
        self.last = at;
        if let Some(meter) = &mut watch.meter {
            meter.served(request, *wanted, at);
            let new = self.requests - self.counted;
            if new == METERED {
                meter.batch(|| device.counters(), new, at);
                self.counted = self.requests;
            }
        }
        let progress = Progress { requests: self.requests, now: at, ..*issued };
        drive::ask(watch.go_on, &progress, &mut self.ask_at)
    }
}

fn result(
    software: &Software,
    threads: u32,
    machine: &Machine,
    finished: &Finished,
    seconds: f64,
) -> SoftwareResult {
    let (stack, spent) = (&software.stack, machine.spent());
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
        stack: software.name.clone(),
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
