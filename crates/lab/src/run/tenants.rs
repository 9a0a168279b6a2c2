//! Several streams on one device at the same time, each with its own pace ([`nvlab_workload::block::together`]).
//!
//! A closed stream wants its next request when its submitter issues it ([`super::submit`]), an open one at the request's time.
//! The stream that wants a request earliest is served next, of several that with the lowest number, and the device takes no more
//! than its queue from all together; the others wait in the host. As with a single stream, latency counts from the moment at
//! which a stream wanted the request, and the device is called in the order in which requests begin.

use super::arrivals::Arrivals;
use super::drive::{DeviceUnderTest, DriveError, Limit, Progress, Watch, ask, finished, serve};
use super::meter::{Meter, OpTotals};
use super::outstanding::Outstanding;
use super::submit::{Done, Submitter};
use super::summary::op_result;
use crate::result::TenantResult;
use nvlab_units::Time;
use nvlab_workload::block::together::Tenant;
use nvlab_workload::{Batch, Op, Pacing, Request};

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
        let Request { op, bytes, .. } = self.next;
        self.last = self.last.max(end);
        self.taken += 1;
        match &mut self.submitter {
            Some(submitter) => submitter.issued(&self.next, wanted, end, &mut self.done),
            None => {
                self.arrivals.note(wanted.since(self.begin), end.since(wanted));
                self.done.push(Done { op, bytes, wanted, at: end });
            }
        }
        self.want();
    }

    /// Measures what is done.
    fn measure(&mut self, meter: Option<&mut Meter>) {
        for &Done { op, bytes, wanted, at } in &self.done {
            self.totals[op as usize].count_one(bytes, at.since(wanted));
        }
        if let Some(meter) = meter {
            for &Done { op, bytes, wanted, at } in &self.done {
                meter.served(&Request { op, bytes, ..Request::default() }, wanted, at);
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
    let mut lanes: Vec<Lane> = tenants.iter_mut().map(Lane::new).collect();
    let measured = meter.is_some();
    let mut under_way = Outstanding::new(queue, origin);
    let mut progress = Progress { now: origin, ..Progress::default() };
    let (mut ask_at, mut uncounted) = (super::drive::ASK_EVERY, 0);
    let deadline = origin.ps().saturating_add(limit.time.ps());
    start_ready(&mut lanes, origin, measured);
    while !limit.is_reached(&progress) {
        let Some((wanted, index)) = earliest(&lanes) else {
            progress.ended = true;
            break;
        };
        let begin = wanted.max(under_way.room_at()).max(progress.now);
        if begin.is_over() && limit.time == Limit::NONE.time {
            return Err(DriveError::OutOfTime(progress.requests));
        }
        if begin.ps() >= deadline {
            lanes.iter_mut().for_each(|lane| lane.leave(Time::from_ps(deadline)));
            break;
        }
        let lane = &mut lanes[index];
        if lane.is_over(begin) {
            lane.run_out();
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
        ask(go_on, &progress, &mut ask_at)?;
    }
    for lane in &mut lanes {
        lane.end();
        lane.measure(meter.as_deref_mut());
    }
    Ok((finished(progress, under_way.last())?, results(lanes, origin)))
}

#[cfg(test)]
mod tests {
    use crate::design::Design;
    use crate::plan::{Settings, Source, Task};
    use crate::result::{RunResult, TenantResult};
    use crate::run::{RunError, State as Condition};

    /// Runs a job file, or a text, on a small device.
    fn run(text: &str) -> RunResult {
        tried(text).unwrap()
    }

    fn tried(text: &str) -> Result<RunResult, RunError> {
        let source = Source::read(text, None).unwrap();
        let design = Design::load("bench-4g", &[]).unwrap();
        let settings = Settings { seed: 1, until: None, state: Condition::Fresh.into() };
        let task = Task::new(design, "bench-4g".into(), &source, settings).unwrap();
        task.run(&mut |_, _| true)
    }

    fn job(name: &str, text: &str) -> RunResult {
        let file = std::env::temp_dir().join(format!("nvlab-tenants-{}-{name}.fio", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let result = run(&file.display().to_string());
        std::fs::remove_file(&file).unwrap();
        result
    }

    #[test]
    fn one_stream_of_several_is_what_it_would_be_alone() {
        let alone = run("uniform qd=4 until=5000io");
        let pause = "[a]\nrw=randwrite\nnorandommap\nioengine=libaio\niodepth=4\nnumber_ios=5000\n";
        let paused = job("alone", &format!("{pause}thinktime=1\nthinktime_blocks=4000000\n"));
        assert_eq!(paused.tenants.len(), 1);
        assert_eq!((paused.write.count, alone.write.count), (5000, 5000));
        assert!((paused.write.per_s / alone.write.per_s - 1.0).abs() < 0.01);
    }

    #[test]
    fn stonewall_waits_and_pauses_are_kept() {
        let text = "[global]\nrw=randwrite\nbs=4k\nnumber_ios=1000\n[a]\n[b]\nthinktime=1000\n[c]\nstonewall\n\
                    startdelay=2\n[d]\nwait_for=c\n";
        let result = job("phases", text);
        let [a, b, c, d] = &result.tenants[..] else { panic!("{:?}", result.tenants) };
        assert_eq!((a.from_s, b.from_s), (0.0, 0.0));
        // One write after the other, with a pause of a millisecond between two of them.
        let writes = |tenant: &TenantResult| tenant.write.latency.mean_ns * 1000e-9;
        assert!((a.to_s - writes(a)).abs() < 1e-6, "{} of {}", writes(a), a.to_s);
        assert!((b.to_s - writes(b) - 0.999).abs() < 1e-6, "{} of {}", writes(b), b.to_s);
        assert!((c.from_s - b.to_s - 2.0).abs() < 1e-9, "{} after {}", c.from_s, b.to_s);
        assert!((d.from_s - c.to_s).abs() < 1e-9);
        assert_eq!(result.write.count, 4000);
    }

    /// A rate that cannot be kept leaves the closed loop behind it: its depth, its latency, its end.
    #[test]
    fn a_rate_is_a_limit_in_front_of_a_closed_loop() {
        let text = "[a]\nrw=randwrite\nnorandommap\nioengine=libaio\niodepth=4\ntime_based\nruntime=1\n";
        let (plain, fast) = (job("plain", text), job("fast", &format!("{text}rate_iops=1000k\n")));
        assert!(fast.simulated_s < 1.01 && fast.closed_loop, "{}", fast.simulated_s);
        assert!((fast.write.per_s / plain.write.per_s - 1.0).abs() < 0.01, "{}", fast.write.per_s);
        let in_flight = fast.write.per_s * fast.write.latency.mean_ns * 1e-9;
        assert!((in_flight / 4.0 - 1.0).abs() < 0.02, "{in_flight}");
        let slow = job("slow", &format!("{text}rate_iops=100\n"));
        assert!((slow.write.per_s - 100.0).abs() < 2.0, "{}", slow.write.per_s);
        let alone = run("uniform qd=1 until=100io").write.latency.mean_ns;
        assert!((slow.write.latency.mean_ns / alone - 1.0).abs() < 0.02, "it waits for no other");
    }

    #[test]
    fn what_ramps_up_is_not_measured() {
        let text = "[a]\nrw=randwrite\nnorandommap\nrate_iops=1000\ntime_based\nruntime=2\n";
        let (plain, ramped) = (job("without", text), job("ramped", &format!("{text}ramp_time=3\n")));
        assert!((plain.write.count as i64 - 2000).abs() < 5, "{}", plain.write.count);
        assert!((ramped.write.count as i64 - 2000).abs() < 5, "{}", ramped.write.count);
        assert!((ramped.simulated_s - 2.0).abs() < 0.01, "{}", ramped.simulated_s);
    }

    #[test]
    fn a_group_is_one_row() {
        let text = "[global]\nrw=randread\nnumber_ios=100\nnumjobs=3\n[a]\n[b]\n";
        let apart = job("apart", text);
        let group = job("group", &text.replace("[a]", "group_reporting\n[a]"));
        assert_eq!((apart.tenants.len(), group.tenants.len()), (6, 1));
        let [row] = &group.tenants[..] else { panic!("{:?}", group.tenants) };
        assert_eq!((row.name.as_str(), row.read.count), ("a", 600));
        assert_eq!(row.read.latency, group.read.latency);
        let last = apart.tenants.iter().map(|tenant| tenant.to_s).fold(0.0, f64::max);
        assert_eq!((row.from_s, row.to_s), (0.0, last));
    }

    #[test]
    fn each_stream_has_its_own_rate_and_the_device_serves_both() {
        let text = "uniform rate=1000/s arrivals=regular until=2s + uniform rw=randread rate=3000/s until=2s arrivals=regular";
        let result = run(text);
        let [writes, reads] = &result.tenants[..] else { panic!("{:?}", result.tenants) };
        assert_eq!((writes.write.count, reads.read.count), (2000, 6000));
        assert_eq!((result.write.count, result.read.count), (2000, 6000));
        assert_eq!((writes.read.count, reads.write.count), (0, 0));
        let again = run(text);
        assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&result).unwrap());
    }

    /// The time of an overloaded stream ends whether another runs beside it or not.
    #[test]
    fn a_stream_ends_with_its_time_whatever_waits() {
        let alone = run("uniform rate=1M/s arrivals=regular until=100ms");
        let beside =
            run("uniform rate=1M/s arrivals=regular until=100ms + uniform rw=randread rate=10/s until=200ms");
        let (one, both) = (alone.arrivals.unwrap(), beside.tenants[0].arrivals.unwrap());
        assert_eq!(one.offered, 100_000, "{one:?}");
        assert_eq!(both.offered, one.offered);
        let [served, with] = [&alone.write, &beside.tenants[0].write].map(|write| write.count as f64);
        assert!(served < 90_000.0 && (with / served - 1.0).abs() < 0.05, "{served} alone, {with}");
        assert!(beside.tenants[0].to_s < 0.11, "{:?}", beside.tenants[0]);
    }

    /// Without an end in time, a run that does not come to its own end in time says why.
    #[test]
    fn pauses_beyond_the_end_of_time_are_an_error() {
        let text = "[a]\nrw=randwrite\nbs=4k\nioengine=libaio\niodepth=4\nsize=1g\nthinktime=100s\n";
        let file = std::env::temp_dir().join(format!("nvlab-tenants-{}-over.fio", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let ran = tried(&file.display().to_string());
        std::fs::remove_file(&file).unwrap();
        let why = ran.unwrap_err().to_string();
        assert!(why.contains("simulated time passed 213 days"), "{why}");
    }
}
