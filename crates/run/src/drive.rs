//! The inner loop: requests from a workload into a device, completions back.
//!
//! A closed loop keeps a number of requests in flight: the next is issued when the earliest completes. An open loop
//! issues each at its own time. A request begins when it is issued, or waits in the host until the device's queue has
//! room (`host`). Latency counts from the time of issue. The device is called in the order in which requests begin.

use super::arrivals::still_wanted;
use super::device::Observed;
use super::host::Host;
use super::meter::{Goal, Meter};
use super::outstanding::Outstanding;
use nvlab_access::BlockDevice;
use nvlab_controller::ControllerError;
use nvlab_units::{Served, Span, Time, Total};
use nvlab_workload::{Batch, BlockWorkload, Op, Pacing, Request, Rerun};
use serde::{Deserialize, Serialize};

/// Where a run ends, whichever comes first; `u64::MAX` and [`Time::MAX`]: no such limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Requests.
    pub requests: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Simulated time since the run began.
    pub time: Span,
    /// A figure is known exactly enough; the meter of the run looks for that.
    pub goal: Option<Goal>,
}

impl Limit {
    /// Until the workload ends.
    pub const NONE: Limit = Limit {
        requests: u64::MAX,
        bytes: u64::MAX,
        written_bytes: u64::MAX,
        time: Span::from_ps(u64::MAX),
        goal: None,
    };

    /// True if no further request is served; ignores the limit of time.
    pub(super) fn is_reached(&self, progress: &Progress) -> bool {
        progress.requests >= self.requests
            || progress.bytes >= self.bytes
            || progress.written_bytes >= self.written_bytes
    }

    /// The share of it that is done, from 0 on; ignores the limit of time.
    pub fn share_done(&self, progress: &Progress) -> f64 {
        share(progress.requests, self.requests)
            .max(share(progress.bytes, self.bytes))
            .max(share(progress.written_bytes, self.written_bytes))
    }

    /// Whether it is one of time.
    pub(super) fn is_timed(&self) -> bool {
        self.time != Limit::NONE.time
    }

    /// Those of `requests` that are served before the limit is reached by a run that is at `progress`, and its progress
    /// after them. Ignores the limit of time.
    #[inline]
    fn admits<'a>(&self, progress: &Progress, requests: &'a [Request]) -> (&'a [Request], Progress) {
        let after = progress.after(requests);
        if !self.is_reached(&after) {
            return (requests, after);
        }
        let reached = |count: &usize| self.is_reached(&progress.after(&requests[..*count]));
        let count = (0..requests.len()).find(reached).unwrap_or(requests.len());
        (&requests[..count], progress.after(&requests[..count]))
    }
}

/// The share of `all` that is done; of no limit nothing is.
pub(super) fn share(done: u64, all: u64) -> f64 {
    if all == u64::MAX { 0.0 } else { done as f64 / all.max(1) as f64 }
}

/// What watches a run: a meter, if it is measured, and a callback that may stop it.
pub struct Watch<'a> {
    /// Measures the requests; `None` during preconditioning.
    pub meter: Option<&'a mut Meter>,
    /// Returns false to stop the run; called every few thousand requests.
    pub go_on: &'a mut dyn FnMut(&Progress) -> bool,
}

/// Calls `go_on` once `ask_at` requests are served, and sets when to call it next.
#[inline]
pub(super) fn ask(
    go_on: &mut dyn FnMut(&Progress) -> bool,
    progress: &Progress,
    ask_at: &mut u64,
) -> Result<(), DriveError> {
    if progress.requests < *ask_at {
        return Ok(());
    }
    *ask_at = progress.requests + ASK_EVERY;
    if go_on(progress) { Ok(()) } else { Err(DriveError::Stopped(progress.requests)) }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Requests served.
    pub requests: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Simulated time.
    pub now: Time,
    /// The workload came to its own end, before any limit.
    pub ended: bool,
}

impl Progress {
    /// The progress of two runs, the `later` one right behind this.
    pub(super) fn and(&self, later: &Progress) -> Progress {
        Progress {
            requests: self.requests + later.requests,
            bytes: self.bytes + later.bytes,
            written_bytes: self.written_bytes + later.written_bytes,
            ..*later
        }
    }

    /// The progress after `requests`; the time is left as it is.
    #[inline]
    pub(super) fn after(mut self, requests: &[Request]) -> Progress {
        self.requests += requests.len() as u64;
        for request in requests {
            // Without a branch: in a mix of reads and writes it would be hard to predict.
            let is_write = (request.op == Op::Write) as u64;
            let is_moved = is_write | (request.op == Op::Read) as u64;
            self.bytes += is_moved * request.bytes as u64;
            self.written_bytes += is_write * request.bytes as u64;
        }
        self
    }
}

/// Why a run did not reach its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// The device refused or failed a request.
    #[error("request {number} ({op} of {bytes} B at {offset}) failed after {} simulated: {source}", at)]
    Failed {
        /// Which one, from 0.
        number: u64,
        /// What was asked.
        op: Op,
        /// How much.
        bytes: u32,
        /// Where.
        offset: u64,
        /// When.
        at: Time,
        /// Why.
        source: ControllerError,
    },
    /// What was accepted cannot be finished.
    #[error("background work accepted at {at} of simulated time cannot be finished: {source}")]
    Unfinished {
        /// When it was to finish.
        at: Time,
        /// Why.
        source: ControllerError,
    },
    /// The simulated clock has reached its end.
    #[error("simulated time exceeded its maximum of 213 days after {0} requests")]
    OutOfTime(u64),
    /// A closed loop whose requests take no time never comes to a limit of time.
    #[error(
        "{0} consecutive requests took no time, so the run never reaches its time limit: reads of unwritten addresses access no \
         flash, and nothing else takes time here; give the device data (--precondition full), or limit requests (--until 1e6io)"
    )]
    Timeless(u64),
    /// The callback stopped it.
    #[error("stopped after {0} requests")]
    Stopped(u64),
}

impl DriveError {
    /// `request` failed; there would be `after` requests after its batch, of which `rest` follow it.
    #[cold]
    pub(super) fn failed(
        after: u64,
        rest: usize,
        request: &Request,
        at: Time,
        source: ControllerError,
    ) -> DriveError {
        let Request { op, bytes, offset, .. } = *request;
        let number = after - rest as u64 - 1;
        DriveError::Failed { number, op, bytes, offset, at, source }
    }
}

/// Notices a run whose time does not go on.
#[derive(Default)]
pub(super) struct Standstill {
    /// Only time ends it.
    is_timed: bool,
    now: Time,
    /// The requests until then.
    requests: u64,
}

impl Standstill {
    /// Of a run that has a limit of time, or none.
    pub fn new(is_timed: bool) -> Standstill {
        Standstill { is_timed, now: Time::ZERO, requests: 0 }
    }

    /// Fails if it lasts so long that a run with a limit of time would never end.
    #[inline]
    pub fn check(&mut self, progress: &Progress) -> Result<(), DriveError> {
        if progress.now != self.now {
            (self.now, self.requests) = (progress.now, progress.requests);
        }
        let stands = self.is_timed && progress.requests - self.requests >= TIMELESS;
        if stands { Err(DriveError::Timeless(TIMELESS)) } else { Ok(()) }
    }
}

/// So many requests that take no time are none of a device: some seconds of real time.
const TIMELESS: u64 = 1 << 24;

/// Requests between two calls of `go_on`.
pub(super) const ASK_EVERY: u64 = 8192;

/// From when on a device is driven, how many requests it takes at a time, and until when.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    /// From when on.
    pub origin: Time,
    /// How many requests the device takes at a time.
    pub queue: u32,
    /// Where the run ends.
    pub limit: &'a Limit,
}

/// A device with the inner loop, which alone is compiled for each kind of controller: whatever else is done with a device in
/// a run is compiled once.
pub trait DeviceUnderTest: BlockDevice + Observed {
    /// Drives the device with `workload` until that or the limit ends the run; the requests of a recorded `program` are
    /// issued when it would issue them. The workload is called once for each batch, through `dyn`.
    fn paced(
        &mut self,
        workload: &mut dyn BlockWorkload,
        program: Option<&mut Rerun<'_>>,
        pass: Pass<'_>,
        watch: Watch<'_>,
    ) -> Result<Progress, DriveError>;
}

/// Drives `device` with `workload` from `origin` on until the workload or the limit ends it. `queue` is how
/// many requests the device takes at a time.
pub fn drive(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    origin: Time,
    queue: u32,
    limit: &Limit,
    watch: Watch<'_>,
) -> Result<Progress, DriveError> {
    device.paced(workload, None, Pass { origin, queue, limit }, watch)
}

impl<D: BlockDevice + Observed> DeviceUnderTest for D {
    fn paced(
        &mut self,
        workload: &mut dyn BlockWorkload,
        program: Option<&mut Rerun<'_>>,
        Pass { origin, queue, limit }: Pass<'_>,
        Watch { mut meter, go_on }: Watch<'_>,
    ) -> Result<Progress, DriveError> {
        self.expect_appends(workload.appends());
        let (host, depth) = Host::new(workload.pacing(), queue, origin);
        let mut host = program.map_or(host, Host::Program);
        let is_open = workload.pacing() == Pacing::Open;
        let (mut under_way, mut ask_at) = (Outstanding::new(depth, origin), ASK_EVERY);
        let (mut queue_wait, mut still) = (Total::default(), Standstill::new(limit.is_timed()));
        let mut progress = Progress { now: origin, ..Progress::default() };
        let deadline = origin.ps().saturating_add(limit.time.ps());
        // The next batch is known while this one is served, unless a limit is sure to end the run in this one.
        let (mut batch, mut coming) = (&mut Batch::new(), &mut Batch::new());
        // They are counted batch by batch: in between, each request waits for the one before, and counting for both.
        let (mut moments, mut latencies) = ([Time::ZERO; Batch::LEN], [Span::ZERO; Batch::LEN]);
        fill_ahead(self, workload, coming);
        loop {
            std::mem::swap(&mut batch, &mut coming);
            if batch.is_empty() {
                progress.ended = true;
                break;
            }
            let (requests, mut after) = limit.admits(&progress, batch.requests());
            coming.clear();
            if requests.len() == batch.len() {
                fill_ahead(self, workload, coming);
            }
            if after.written_bytes > progress.written_bytes {
                self.prefetch_writes(requests.iter().filter(|r| r.op == Op::Write).map(|r| r.offset));
            }
            let times = (&mut moments, &mut latencies);
            let loop_of = (&mut host, &mut under_way, &mut queue_wait, deadline);
            let (count, now) =
                serve_batch(self, workload, (requests, after.requests), loop_of, progress.now, times)?;
            if count < requests.len() {
                after = progress.after(&requests[..count]);
            }
            progress = Progress { now, ..after };
            if let Some(meter) = &mut meter {
                meter.served_all(&requests[..count], &moments, &latencies);
                if is_open {
                    if let Some(last) = count.checked_sub(1) {
                        meter.arrivals.note(requests[last].at.since(Time::ZERO), latencies[last]);
                    }
                    if count < requests.len() {
                        // Only the limit of time can have ended it here.
                        let rest = &batch.requests()[count..];
                        meter.arrivals.leave(still_wanted(rest, coming, workload, limit.time), limit.time);
                    }
                }
            }
            if count < batch.len() {
                break;
            }
            if let Some(meter) = &mut meter {
                meter.batch(|| self.counters(), count as u64, progress.now);
                if meter.is_reached() {
                    break;
                }
            }
            still.check(&progress).and_then(|()| ask(go_on, &progress, &mut ask_at))?;
        }
        meter.into_iter().for_each(|meter| meter.queue_wait = queue_wait);
        finished(progress, under_way.last())
    }
}

/// Serves requests, of which the last has the number `last`, until one would begin at the deadline of the loop; returns how many
/// were served, and when the last of them began.
#[inline(always)]
fn serve_batch<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn BlockWorkload,
    (requests, last): (&[Request], u64),
    (host, under_way, queue_wait, deadline): (&mut Host<'_, '_>, &mut Outstanding, &mut Total, u64),
    mut now: Time,
    (moments, latencies): (&mut [Time; Batch::LEN], &mut [Span; Batch::LEN]),
) -> Result<(usize, Time), DriveError> {
    let at_room = matches!(host, Host::AtRoom);
    // Neither list is indexed by the number of the request: only a failure needs it, and counting costs instructions.
    let mut rest = requests.iter().zip(moments.iter_mut().zip(latencies));
    while let Some((request, (moment, latency))) = rest.next() {
        let room = under_way.room_at();
        let wanted = if at_room { room } else { host.wanted(request, room, now) };
        // In a closed loop there is never room before the last request began.
        let begin = if at_room { room } else { wanted.max(room).max(now) };
        if begin.ps() >= deadline {
            return Ok((requests.len() - rest.len() - 1, now));
        }
        let end = serve(device, begin, request, workload)
            .map_err(|why| DriveError::failed(last, rest.len(), request, begin, why))?;
        under_way.add(end);
        (*moment, *latency) = (wanted, end - wanted);
        if !at_room {
            *queue_wait += begin - wanted;
            host.served(wanted, end);
        }
        now = begin;
    }
    Ok((requests.len(), now))
}

/// Fills a batch, and prefetches the map entries of its requests.
#[inline(always)]
fn fill_ahead<D: BlockDevice>(device: &D, workload: &mut dyn BlockWorkload, batch: &mut Batch) {
    workload.fill(batch);
    batch.requests().iter().for_each(|request| device.prefetch(request.offset));
}

/// The progress of a run whose last request ends at `end`.
pub(super) fn finished(progress: Progress, end: Time) -> Result<Progress, DriveError> {
    let now = within_time(progress.now.max(end), progress.requests)?;
    Ok(Progress { now, ..progress })
}

/// Fails if a moment after `requests` lies past the end of simulated time. Sums saturate at the end and no request begins
/// there, so checking once at the end of a run is enough.
pub(super) fn within_time(moment: Time, requests: u64) -> Result<Time, DriveError> {
    if moment.is_over() { Err(DriveError::OutOfTime(requests)) } else { Ok(moment) }
}

/// When a device has done all work of the `requests` requests made until `at`.
pub(super) fn idle_at(
    device: &mut (impl Observed + ?Sized),
    at: Time,
    requests: u64,
) -> Result<Time, DriveError> {
    let idle = device.idle_at(at).map_err(|source| DriveError::Unfinished { at, source })?;
    within_time(idle, requests)
}

/// Has the device serve one request; returns when it is done.
#[inline(always)]
pub(super) fn serve<D: BlockDevice + ?Sized>(
    device: &mut D,
    at: Time,
    request: &Request,
    workload: &dyn BlockWorkload,
) -> Result<Time, ControllerError> {
    let served = match request.op {
        Op::Read => device.read(at, request.offset, request.bytes, &mut [])?,
        Op::Write => {
            let payload = if device.wants_payload() { workload.payload(request) } else { &[] };
            let written = device.write(at, request.offset, request.bytes, payload)?;
            if request.fua { device.flush(written.end)? } else { written }
        }
        Op::Trim | Op::Flush => serve_rarely(device, at, request)?,
    };
    Ok(served.end)
}

/// [`serve`] of what is neither read nor written; apart from it, so that no table of jumps is needed.
#[cold]
fn serve_rarely<D: BlockDevice + ?Sized>(
    device: &mut D,
    at: Time,
    request: &Request,
) -> Result<Served, ControllerError> {
    match request.op {
        Op::Trim => device.trim(at, request.offset, request.bytes),
        _ => device.flush(at),
    }
}
