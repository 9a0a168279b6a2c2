//! Several streams on one device at the same time, each with its own pace ([`nvlab_workload::block::together`]).
//!
//! A closed stream issues its next request when its submitter does ([`super::submit`]), an open one at the request's
//! time. The stream whose next request is earliest is served next (of several, the one with the lowest number), and
//! the device accepts no more than its queue from all together; the others wait in the host. As with a single stream,
//! latency counts from the time of issue, and the device is called in the order in which requests begin.

use super::arrivals::Arrivals;
use super::drive::{DeviceUnderTest, DriveError, Limit, Progress, Standstill, Watch, ask, finished, serve};
use super::meter::{Commit, Meter, OpTotals};
use super::outstanding::Outstanding;
use super::submit::{Done, Submitter};
use super::summary::op_result;
use crate::result::TenantResult;
use nvlab_units::{Span, Time};
use nvlab_workload::block::together::Tenant;
use nvlab_workload::{Batch, BlockWorkload, Op, Pacing, Request};

/// Requests between two looks at the counters of the device.
const BATCH: u64 = 32;

/// Whether a stream has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Others must end first.
    Waiting,
    /// It wants its next request then.
    Wanting(Time),
    /// It has no further request.
    Ended,
}

/// A stream and what it has in flight.
struct Lane<'a> {
    tenant: &'a mut Tenant,
    batch: Batch,
    taken: usize,
    state: State,
    /// The next request.
    next: Request,
    /// Of a closed stream.
    submitter: Option<Submitter>,
    /// What is done and not measured yet.
    done: Vec<Done>,
    begin: Time,
    /// When the last of its requests is done.
    last: Time,
    /// Times of requests count from this one.
    first_at: Time,
    totals: [OpTotals; 4],
    commit: Commit,
    arrivals: Arrivals,
}

impl<'a> Lane<'a> {
    fn new(tenant: &'a mut Tenant) -> Lane<'a> {
        Lane {
            tenant,
            batch: Batch::new(),
            taken: 0,
            state: State::Waiting,
            next: Request::default(),
            submitter: None,
            done: Vec::new(),
            begin: Time::ZERO,
            last: Time::ZERO,
            first_at: Time::ZERO,
            totals: Default::default(),
            commit: Commit::default(),
            arrivals: Arrivals::default(),
        }
    }

    /// Begins at `at`; if not `measured`, with its first request.
    fn start(&mut self, at: Time, measured: bool) {
        (self.begin, self.last) = (at, at);
        self.submitter = match self.tenant.workload.pacing() {
            Pacing::Closed { depth } => Some(Submitter::new(self.tenant.issue.clone(), depth, at)),
            Pacing::Open | Pacing::Program => None,
        };
        self.refill();
        if !measured {
            self.first_at = self.batch.requests().first().map_or(Time::ZERO, |request| request.at);
        }
        self.want();
    }

    fn refill(&mut self) {
        self.batch.clear();
        self.taken = 0;
        self.tenant.workload.fill(&mut self.batch);
    }

    /// Finds out which request is next, and when it is wanted.
    fn want(&mut self) {
        if self.taken == self.batch.len() {
            self.refill();
        }
        let Some(&next) = self.batch.requests().get(self.taken) else {
            self.end();
            return;
        };
        self.next = next;
        let wanted = match &mut self.submitter {
            Some(submitter) => submitter.next(&mut self.next, &mut self.done),
            None => self.begin + next.at.since(self.first_at),
        };
        match self.is_over(wanted) {
            true => self.end(),
            false => self.state = State::Wanting(wanted),
        }
    }

    /// When its own time is over, if it has a limit.
    fn deadline(&self) -> Option<Time> {
        self.tenant.workload.time_limit().map(|limit| self.begin + limit)
    }

    fn is_over(&self, at: Time) -> bool {
        self.deadline().is_some_and(|deadline| at >= deadline)
    }

    /// Its own time is over before its next request could begin: as if the whole run ended then, with this stream alone.
    fn run_out(&mut self) {
        if let Some(deadline) = self.deadline() {
            self.leave(deadline);
        }
        self.end();
    }

    /// Waits for what is in flight.
    fn end(&mut self) {
        if let Some(submitter) = &mut self.submitter {
            submitter.take_all(&mut self.done);
        }
        self.state = State::Ended;
    }

    /// Its next request, wanted at `wanted`, is done at `end`.
    fn served(&mut self, wanted: Time, end: Time) {
        let Request { op, bytes, fua, .. } = self.next;
        self.last = self.last.max(end);
        self.taken += 1;
        match &mut self.submitter {
            Some(submitter) => submitter.issued(&self.next, wanted, end, &mut self.done),
            None => {
                self.arrivals.note(wanted.since(self.begin), end.since(wanted));
                self.done.push(Done { op, fua, bytes, wanted, at: end });
            }
        }
        self.want();
    }

    /// Measures what is done.
    fn measure(&mut self, meter: Option<&mut Meter>) {
        for &Done { op, bytes, wanted, at, .. } in &self.done {
            self.totals[op as usize].count_one(bytes, at.since(wanted));
        }
        if let Some(meter) = meter {
            for &Done { op, fua, bytes, wanted, at } in &self.done {
                meter.counted(op, bytes, at.since(wanted));
                if let Some(took) = self.commit.note((op, fua), wanted, at) {
                    meter.committed(took);
                }
            }
        }
        self.done.clear();
    }

    /// Adds what another stream did, which is reported with this one.
    fn add(&mut self, other: &Lane) {
        if other.state == State::Waiting {
            return;
        }
        (self.begin, self.last) = (self.begin.min(other.begin), self.last.max(other.last));
        self.totals.iter_mut().zip(&other.totals).for_each(|(mine, theirs)| mine.merge(theirs));
        self.arrivals.add(&other.arrivals);
    }

    /// It is ended at `deadline`: what an open stream wanted before that was not served.
    fn leave(&mut self, deadline: Time) {
        while let State::Wanting(wanted) = self.state
            && self.submitter.is_none()
            && wanted < deadline
        {
            self.arrivals.leave(1, deadline.since(self.begin));
            self.taken += 1;
            self.want();
        }
    }

    fn result(&self, origin: Time) -> TenantResult {
        let seconds = self.last.since(self.begin).seconds().max(1e-12);
        let op = |op: Op| op_result(&self.totals[op as usize], seconds);
        let served = self.totals.iter().map(OpTotals::count).sum();
        TenantResult {
            arrivals: self.arrivals.result(served, seconds),
            name: self.tenant.name.clone(),
            from_s: self.begin.since(origin).seconds(),
            to_s: self.last.since(origin).seconds(),
            read: op(Op::Read),
            write: op(Op::Write),
            trim: op(Op::Trim),
            flush: op(Op::Flush),
        }
    }
}

/// The results of the streams, a row for those that are reported together.
fn results(mut lanes: Vec<Lane>, origin: Time) -> Vec<TenantResult> {
    for index in (0..lanes.len()).rev() {
        if let Some(with) = lanes[index].tenant.reported_with {
            let (before, rest) = lanes.split_at_mut(index);
            before[with].add(&rest[0]);
        }
    }
    let rows = lanes.iter().filter(|lane| lane.tenant.reported_with.is_none());
    rows.map(|lane| lane.result(origin)).collect()
}

/// Starts the streams for which those they wait for have ended, from `origin` on.
fn start_ready(lanes: &mut [Lane], origin: Time, measured: bool) {
    for index in 0..lanes.len() {
        let lane = &lanes[index];
        let after = &lane.tenant.after;
        if lane.state != State::Waiting || after.iter().any(|&before| lanes[before].state != State::Ended) {
            continue;
        }
        let ready = after.iter().map(|&before| lanes[before].last).fold(origin, Time::max);
        let at = ready + lane.tenant.delay;
        lanes[index].start(at, measured);
    }
}

/// The stream that wants a request earliest.
fn earliest(lanes: &[Lane]) -> Option<(Time, usize)> {
    let wanting = lanes.iter().enumerate().filter_map(|(index, lane)| match lane.state {
        State::Wanting(wanted) => Some((wanted, index)),
        State::Waiting | State::Ended => None,
    });
    wanting.min()
}

/// Takes the delay that all streams have before any of them begins: the device rests so long before the run, as before a job of fio,
/// whose figures begin with its first request.
pub(super) fn delay_of_all(workload: &mut dyn BlockWorkload) -> Span {
    let first = workload.tenants().unwrap_or_default().iter_mut().filter(|tenant| tenant.after.is_empty());
    let mut delays: Vec<&mut Span> = first.map(|tenant| &mut tenant.delay).collect();
    let least = delays.iter().map(|delay| **delay).min().unwrap_or(Span::ZERO);
    delays.iter_mut().for_each(|delay| **delay -= least);
    least
}

/// Drives `device` with `tenants` from `origin` on until all of them have ended, or the limit is reached. `queue` is how many
/// requests the device takes at a time.
pub(super) fn drive(
    device: &mut dyn DeviceUnderTest,
    tenants: &mut [Tenant],
    origin: Time,
    queue: u32,
    limit: &Limit,
    Watch { mut meter, go_on }: Watch<'_>,
) -> Result<(Progress, Vec<TenantResult>), DriveError> {
    device.expect_appends(tenants.iter().all(|tenant| tenant.workload.appends()));
    let mut lanes: Vec<Lane> = tenants.iter_mut().map(Lane::new).collect();
    let measured = meter.is_some();
    let mut under_way = Outstanding::new(queue, origin);
    let mut progress = Progress { now: origin, ..Progress::default() };
    let (mut ask_at, mut uncounted) = (super::drive::ASK_EVERY, 0);
    let deadline = origin.ps().saturating_add(limit.time.ps());
    let has_limit = |lane: &Lane| lane.tenant.workload.time_limit().is_some();
    let mut still = Standstill::new(limit.is_timed() || lanes.iter().any(has_limit));
    start_ready(&mut lanes, origin, measured);
    while !limit.is_reached(&progress) {
        let Some((wanted, index)) = earliest(&lanes) else {
            progress.ended = true;
            break;
        };
        let begin = wanted.max(under_way.room_at()).max(progress.now);
        if begin.is_over() && !limit.is_timed() {
            return Err(DriveError::OutOfTime(progress.requests));
        }
        if begin.ps() >= deadline {
            lanes.iter_mut().for_each(|lane| lane.leave(Time::from_ps(deadline)));
            break;
        }
        let lane = &mut lanes[index];
        if lane.is_over(begin) {
            lane.run_out();
            lane.measure(meter.as_deref_mut());
            start_ready(&mut lanes, origin, measured);
            continue;
        }
        let request = lane.next;
        progress = Progress { now: begin, ..progress.after(&[request]) };
        let end = serve(device, begin, &request, &*lane.tenant.workload)
            .map_err(|why| DriveError::failed(progress.requests, 0, &request, begin, why))?;
        under_way.add(end);
        lane.served(wanted, end);
        lane.measure(meter.as_deref_mut());
        if lane.state == State::Ended {
            start_ready(&mut lanes, origin, measured);
        }
        uncounted += 1;
        if let Some(meter) = &mut meter {
            meter.queue_wait += begin - wanted;
        }
        if let Some(meter) = &mut meter
            && uncounted == BATCH
        {
            meter.batch(|| device.counters(), BATCH, begin);
            uncounted = 0;
            if meter.is_reached() {
                break;
            }
        }
        still.check(&progress)?;
        ask(go_on, &progress, &mut ask_at)?;
    }
    for lane in &mut lanes {
        lane.end();
        lane.measure(meter.as_deref_mut());
    }
    Ok((finished(progress, under_way.last())?, results(lanes, origin)))
}
