//! Watched runs with other loops: several streams, a recorded program, requests through the host's software. The
//! loops are those of a plain run; the observer is a wrapper around the device, called before each request that
//! reaches it.
//!
//! The streams, the program or the threads set the pace themselves: the rate cannot be changed, and the power cannot
//! be cut. A run that is ended early continues at full speed until the loop next checks for its end, a few thousand
//! requests later, and has no figures of single streams, stages or the program.

use super::sight::{Controls, Onlooker, Sight, Step};
use crate::device::{AnyDevice, Counters, Fill, Insides, Maps, Observed, Twin};
use crate::drive::{DeviceUnderTest, DriveError, Progress, Watch};
use crate::error::RunError;
use crate::meter::{Meter, Totals};
use crate::precondition;
use crate::result::{ArrivalsResult, RunResult};
use crate::run_plan::{OnProgress, RunPlan};
use crate::steps::share_done;
use crate::steps::{Run, driven, failed, finish, in_whole_passes, mount, opened, started};
use nvlab_access::{Attached, BlockDevice};
use nvlab_controller::{Background, ControllerError, PageMap};
use nvlab_design::Design;
use nvlab_units::{Lpa, Served, Span, Time};
use nvlab_workload::{BlockWorkload, Op, Pacing};
use std::cell::Cell;

/// A run on the device that is built for it.
pub(super) struct Watched<'a> {
    pub design: &'a Design,
    pub plan: &'a RunPlan,
    pub workload: &'a mut dyn BlockWorkload,
    pub own: Option<&'a mut dyn BlockWorkload>,
    pub onlooker: &'a mut dyn Onlooker,
    pub on_progress: OnProgress<'a>,
}

impl Watched<'_> {
    /// Prepares the device and runs the workload on it.
    pub fn on(self, mut device: Box<dyn AnyDevice>) -> Result<RunResult, RunError> {
        let Watched { design, plan, workload, own, onlooker, on_progress } = self;
        let clock = std::time::Instant::now();
        let prepared = precondition::precondition(&mut *device, &plan.state, own, on_progress);
        let (prepared, begin) = opened(&mut *device, (design, None), prepared, plan, workload, on_progress)?;
        let origin = started(&mut *device, workload, (design, plan), begin, on_progress)?;
        onlooker.begins(Controls { plug: false, rate: false });
        let mut meter = Meter::new(origin, device.counters(), plan.requests_asked);
        let (ended, reached) = (Cell::new(false), Cell::new(None));
        let go_on = &mut |progress: &Progress| {
            reached.set(Some(*progress));
            !ended.get() && on_progress("running", share_done(plan, progress, origin))
        };
        let mut seen = Seen::new(&mut *device, (plan, onlooker), origin, &ended);
        let watch = Watch { meter: Some(&mut meter), go_on };
        let driven = driven(&mut seen, workload, design, origin, &plan.limit, watch);
        let progress = match (driven.progress, reached.get()) {
            (Err(DriveError::Stopped(_)), Some(reached)) if ended.get() => reached,
            (driven, _) => driven.map_err(|source| failed(plan, source))?,
        };
        if progress.requests == 0 {
            return Err(RunError::Nothing { design: plan.design_name.clone() });
        }
        let result = finish(Run { design, plan, prepared, origin, progress, clock }, &mut *device, meter)?;
        let result = in_whole_passes(result, workload.pass_bytes());
        let (closed_loop, client_bytes) = (workload.pacing() != Pacing::Open, workload.client_bytes());
        let (program, software, tenants) = (driven.program, driven.software, driven.tenants);
        let mount = mount(device, plan, &progress)?;
        let arrivals = ArrivalsResult::of_all(&tenants).or(result.arrivals);
        Ok(RunResult { client_bytes, closed_loop, program, software, tenants, arrivals, mount, ..result })
    }
}

/// A device that is watched: looked at before each request.
struct Seen<'a> {
    device: &'a mut dyn DeviceUnderTest,
    plan: &'a RunPlan,
    onlooker: &'a mut dyn Onlooker,
    origin: Time,
    totals: Totals,
    progress: Progress,
    /// The run is to end: nobody is asked any more.
    ended: &'a Cell<bool>,
}

impl<'a> Seen<'a> {
    fn new(
        device: &'a mut dyn DeviceUnderTest,
        (plan, onlooker): (&'a RunPlan, &'a mut dyn Onlooker),
        origin: Time,
        ended: &'a Cell<bool>,
    ) -> Seen<'a> {
        let progress = Progress { now: origin, ..Progress::default() };
        Seen { device, plan, onlooker, origin, totals: Totals::default(), progress, ended }
    }

    /// Shows the device before a request of so many bytes.
    fn look(&mut self, at: Time) {
        if self.ended.get() {
            return;
        }
        self.progress.now = at;
        let done = share_done(self.plan, &self.progress, self.origin);
        let sight = Sight {
            at,
            origin: self.origin,
            totals: &self.totals,
            device: self.device,
            done,
            queue_growth: 0.0,
        };
        self.ended.set(self.onlooker.before(sight) == Step::End);
    }

    fn count(&mut self, op: Op, at: Time, bytes: u32, served: &Served) {
        self.totals[op as usize].count_one(bytes, served.end.since(at));
        let (read, written) = (op == Op::Read, op == Op::Write);
        self.progress.requests += 1;
        self.progress.bytes += if read || written { bytes as u64 } else { 0 };
        self.progress.written_bytes += if written { bytes as u64 } else { 0 };
    }
}

impl BlockDevice for Seen<'_> {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }
    fn read(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Served, ControllerError> {
        self.look(at);
        let served = self.device.read(at, offset, bytes, into)?;
        self.count(Op::Read, at, bytes, &served);
        Ok(served)
    }
    fn write(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError> {
        self.look(at);
        let served = self.device.write(at, offset, bytes, data)?;
        self.count(Op::Write, at, bytes, &served);
        Ok(served)
    }
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Served, ControllerError> {
        self.look(at);
        let served = self.device.trim(at, offset, bytes)?;
        self.count(Op::Trim, at, bytes, &served);
        Ok(served)
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        self.look(at);
        let served = self.device.flush(at)?;
        self.count(Op::Flush, at, 0, &served);
        Ok(served)
    }
    fn wants_payload(&self) -> bool {
        self.device.wants_payload()
    }
    fn prefetch(&self, offset: u64) {
        self.device.prefetch(offset);
    }
    /// Nothing: a device behind a pointer takes no iterator.
    fn prefetch_writes(&self, _offsets: impl Iterator<Item = u64>) {}
    fn view(&self, offset: u64, bytes: u32) -> Option<&[u8]> {
        self.device.view(offset, bytes)
    }
}

impl Background for Seen<'_> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.device.settle(upto);
    }
}

impl Observed for Seen<'_> {
    fn counters(&self) -> Counters {
        self.device.counters()
    }
    fn reset_stats(&mut self) {
        self.device.reset_stats();
    }
    fn expect_scattered_fill(&mut self) {
        self.device.expect_scattered_fill();
    }
    fn unit_bytes(&self) -> u32 {
        self.device.unit_bytes()
    }
    fn blocks(&self) -> u32 {
        self.device.blocks()
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        self.device.insides(span)
    }
    fn maps(&self) -> Maps {
        self.device.maps()
    }
    fn buffered(&mut self, at: Time) -> Option<Fill> {
        self.device.buffered(at)
    }
    fn is_log_full(&self) -> Option<bool> {
        self.device.is_log_full()
    }
    fn rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device.rest(at)
    }
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        self.device.page_map()
    }
    fn twin(&self, requests: &[u32], flushes: bool) -> Option<Twin> {
        self.device.twin(requests, flushes)
    }
    fn split(&mut self, twin: &Twin, member: &mut dyn FnMut(Lpa, u32) -> Option<Lpa>) -> bool {
        self.device.split(twin, member)
    }
}
