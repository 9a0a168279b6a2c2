//! A device with a clock, a power plug and counts, for several clients at once.
//!
//! 1. Requests reach the device one after the other, in order of arrival; each returns when its reply is due. A front end
//!    that holds replies until then shows the modelled device. What exceeds the device's queue waits in the host, as in a run.
//! 2. A power cut ends every session ([`DriveError::PowerLost`]): requests not answered by then never are. A new [`Session`]
//!    finds what survived.
//! 3. A device is lost if it does not recover after a cut or its controller panics; then every request is refused. The state
//!    of the controller is unknown: it is never called again, its media stay as they are, and the next start recovers them as
//!    after a kill.

mod ends;
mod outcome;
mod ranges;
#[cfg(test)]
mod tests;
mod watching;

pub use ranges::Zero;
pub(crate) use ranges::pieces;

use super::lateness::Collected;
use super::life::Life;
use super::{Aging, Built, Counts, Cut, DeviceState, DriveError, Lateness, ServedDevice, Start, Wear, build};
use crate::ServeError;
use crate::clock::{Clock, TimeMode, wait_until};
use ends::Lost;
use nvlab_controller::ControllerError;
use nvlab_design::Design;
use nvlab_os::stores::publish;
use nvlab_run::State;
use nvlab_run::meter::Totals;
use nvlab_run::outstanding::Outstanding;
use nvlab_run::result::Precondition;
use nvlab_trace::columns::{Columns, Origin};
use nvlab_units::{Rng, Span, Time};
use nvlab_workload::{Op, Request};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use watching::Gate;

/// How a design becomes a served device.
#[derive(Clone, Debug, Default)]
pub struct DriveOptions {
    /// Folder of the state; `None`: the device is forgotten at the end.
    pub state: Option<PathBuf>,
    /// Seed of the device's random choices; an existing device keeps its own.
    pub seed: u64,
    /// Whether replies are held until the modelled device would send them.
    pub time: TimeMode,
    /// The power fails during this operation, counted from 1.
    pub cut_at: Option<u64>,
    /// The device lies: FLUSH and FUA are acknowledged and not performed.
    pub ignore_flush: bool,
    /// Whether requests are recorded ([`Drive::take_record`]).
    pub record: bool,
}

/// A client's use of a device until the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    pub(crate) power: u64,
}

/// When a reply is due; `None`: at once.
pub type Due = Option<Instant>;

type OnCut = Box<dyn Fn(Cut) + Send>;

/// A device that several front ends and clients use at the same time.
pub struct Drive {
    name: String,
    design: Design,
    capacity_bytes: u64,
    unit_bytes: u32,
    trims_last: bool,
    /// Whether its bytes can be read in place.
    shows: bool,
    start: Start,
    prepared: Option<Precondition>,
    time: TimeMode,
    /// How often the power came back; changed under the lock.
    power: Arc<AtomicU64>,
    late: Collected,
    /// Set while it is paused: see `watching`.
    paused: AtomicBool,
    gate: Gate,
    inner: Mutex<Inner>,
}

struct Inner {
    name: String,
    /// `None` after it was lost.
    device: Option<Box<dyn ServedDevice>>,
    state: DeviceState,
    /// The requests in the device, as many as it takes at a time.
    under_way: Outstanding,
    queue: u32,
    clock: Clock,
    /// Shared with [`Drive`].
    power: Arc<AtomicU64>,
    operations: u64,
    cut_at: Option<u64>,
    ignore_flush: bool,
    rng: Rng,
    lost: Option<Lost>,
    /// The end of time was reported.
    is_over: bool,
    totals: Totals,
    /// The beginning of the counts.
    origin: Time,
    cuts: Vec<Cut>,
    life: Life,
    record: Option<Columns>,
    on_cut: Vec<OnCut>,
}

impl Drive {
    /// Builds the device of a design, or recovers it. `name`: of the design, with its changes.
    pub fn open(name: &str, design: &Design, options: &DriveOptions) -> Result<Drive, ServeError> {
        Drive::open_aged(name, design, options, None)
    }

    /// The same; a new device is brought to a state first. Its seed is then that of its preparation.
    pub fn open_aged(
        name: &str,
        design: &Design,
        options: &DriveOptions,
        aging: Option<Aging<'_>>,
    ) -> Result<Drive, ServeError> {
        let seed = aging.as_ref().map_or(options.seed, |aging| aging.preparation.device_seed(options.seed));
        let state = DeviceState::open(options.state.as_deref(), design, seed)?;
        let life = state.find_life()?;
        let is_aged =
            |aging: &Aging| state.start() == Start::Fresh && aging.preparation.state != State::Fresh;
        let Built { mut device, ready, prepared } = build(design, &state, aging.filter(is_aged))?;
        let life = state.life(life)?;
        state.mark_open()?;
        device.observed_mut().reset_stats();
        let origin = Origin { format: "nvlab serve".into(), hash: 0 };
        let power = Arc::<AtomicU64>::default();
        let inner = Inner {
            name: name.to_string(),
            under_way: Outstanding::new(design.path.queue, ready),
            queue: design.path.queue,
            clock: Clock::new(options.time, ready),
            power: Arc::clone(&power),
            operations: 0,
            cut_at: options.cut_at,
            ignore_flush: options.ignore_flush,
            rng: Rng::stream(state.seed(), "power cuts"),
            lost: None,
            is_over: false,
            totals: Totals::default(),
            origin: ready,
            cuts: Vec::new(),
            life,
            record: options.record.then(|| Columns::new(origin)),
            on_cut: Vec::new(),
            device: None,
            state,
        };
        Ok(Drive {
            name: name.to_string(),
            design: design.clone(),
            capacity_bytes: device.capacity_bytes(),
            unit_bytes: device.unit_bytes(),
            trims_last: device.trims_last(),
            shows: device.view(0, device.unit_bytes()).is_some(),
            start: inner.state.start(),
            prepared,
            time: options.time,
            power,
            late: Collected::default(),
            paused: AtomicBool::new(false),
            gate: Gate::default(),
            inner: Mutex::new(Inner { device: Some(device), ..inner }),
        })
    }

    /// Wraps the device, which must not have been used yet.
    pub fn wrapped(self, wrap: impl FnOnce(Box<dyn ServedDevice>) -> Box<dyn ServedDevice>) -> Drive {
        let mut inner = self.inner();
        inner.device = inner.device.take().map(wrap);
        drop(inner);
        self
    }

    /// What the design calls itself; exports and pages use it.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Bytes that the host can address.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }
    /// Bytes that are best read and written together.
    pub fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }
    /// Whether trimmed and flushed units read as zero.
    pub(crate) fn reads_trimmed_as_zero(&self) -> bool {
        self.trims_last
    }
    /// Whether it is new, was closed, or was killed.
    pub fn start(&self) -> Start {
        self.start
    }

    /// How it was prepared; `None` if it was not, or is not new.
    pub fn prepared(&self) -> Option<&Precondition> {
        self.prepared.as_ref()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| {
            // A panic outside of [`Inner::guarded`].
            let mut inner = poisoned.into_inner();
            inner.lose("a thread that used it panicked (see above)");
            self.inner.clear_poison();
            inner
        })
    }

    /// A session that ends when the power fails next.
    pub fn session(&self) -> Session {
        Session { power: self.power.load(Ordering::Acquire) }
    }

    /// False once the power failed after the session began.
    pub fn is_current(&self, session: Session) -> bool {
        self.power.load(Ordering::Acquire) == session.power
    }

    /// True if replies are held until they are due.
    pub(crate) fn holds_answers(&self) -> bool {
        self.time != TimeMode::Fast
    }

    /// Waits until a reply is due, if it is held: then the caller has waited as long as for the modelled device.
    pub fn hold(&self, due: Due) {
        if let Some(due) = due {
            self.late.add(due, wait_until(due));
        }
    }

    /// A front end that waited by itself sends a held reply at this time.
    pub(crate) fn sent(&self, due: Instant, at: Instant) {
        self.late.add(due, at);
    }

    /// By how much held replies were sent late so far.
    pub fn lateness(&self) -> Lateness {
        self.late.so_far()
    }

    /// Calls `hook` after every cut, before another request is served. It must not call this device.
    pub(crate) fn on_cut(&self, hook: impl Fn(Cut) + Send + 'static) {
        self.inner().on_cut.push(Box::new(hook));
    }

    /// Whether the device has this range.
    pub(crate) fn check(&self, offset: u64, bytes: u64) -> Result<(), DriveError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.capacity_bytes => Ok(()),
            _ => Err(DriveError::Range),
        }
    }

    /// Fills `into` before it returns; the reply may be due later.
    pub fn read(&self, session: Session, offset: u64, into: &mut [u8]) -> Result<Due, DriveError> {
        self.check(offset, into.len() as u64)?;
        let bytes = into.len() as u32;
        let request = asked(Op::Read, offset, bytes, false);
        self.entered(session).serve(session, request, |device, at| device.read(at, offset, bytes, into))
    }

    /// True if [`Drive::read_in_place`] can read this range.
    pub(crate) fn shows(&self, offset: u64, bytes: u32) -> bool {
        let unit = self.unit_bytes as u64;
        self.shows && offset.is_multiple_of(unit) && (bytes as u64).is_multiple_of(unit)
    }

    /// Reads bytes in place: calls `take` with them in parts, in order, after the device answered, and returns its result. No
    /// other request is served meanwhile.
    pub(crate) fn read_in_place<R>(
        &self,
        session: Session,
        (offset, bytes): (u64, u32),
        take: impl FnOnce(&[&[u8]]) -> R,
    ) -> Result<(Due, R), DriveError> {
        self.check(offset, bytes as u64)?;
        let request = asked(Op::Read, offset, bytes, false);
        let mut inner = self.entered(session);
        let due = inner.serve(session, request, |device, at| device.read(at, offset, bytes, &mut []))?;
        let device = inner.device.as_deref().expect("a device that answered");
        let mut parts = Vec::with_capacity((bytes / self.unit_bytes) as usize);
        let (mut at, end) = (offset, offset + bytes as u64);
        while at < end {
            let part = device.view(at, (end - at) as u32).expect("what was read can be seen");
            parts.push(part);
            at += part.len() as u64;
        }
        Ok((due, take(&parts)))
    }

    /// Writes bytes; with `fua` they are durable when the reply is due.
    pub fn write(&self, session: Session, offset: u64, data: &[u8], fua: bool) -> Result<Due, DriveError> {
        self.check(offset, data.len() as u64)?;
        let request = asked(Op::Write, offset, data.len() as u32, fua);
        self.entered(session).serve(session, request, |device, at| device.write(at, offset, data))
    }

    /// Everything answered before is durable when the reply is due.
    pub fn flush(&self, session: Session) -> Result<Due, DriveError> {
        let mut inner = self.entered(session);
        let lies = inner.ignore_flush;
        let request = asked(Op::Flush, 0, 0, false);
        inner.serve(session, request, |device, at| if lies { Ok(at) } else { device.flush(at) })
    }

    /// The power fails now and comes back.
    pub fn cut(&self) -> Result<Cut, DriveError> {
        self.inner().guarded(|inner| {
            inner.present()?;
            let now = inner.clock.now();
            if now.is_over() {
                return Err(DriveError::TimeIsOver);
            }
            inner.cut(now)
        })
    }

    /// The power fails during the operation `operations` after the last one.
    pub fn cut_after(&self, operations: u64) {
        let mut inner = self.inner();
        inner.cut_at = Some(inner.operations.saturating_add(operations));
    }

    /// What was requested and done since the power came back last.
    pub fn counts(&self) -> Counts {
        let inner = self.inner();
        let now = inner.clock.now();
        let observed = inner.device.as_ref().map(|device| device.observed());
        Counts {
            totals: inner.totals.clone(),
            device: observed.map(|observed| observed.counters()).unwrap_or_default(),
            cuts: inner.cuts.len() as u64,
            last_cut: inner.cuts.last().copied(),
            now,
            lost: inner.lost.as_ref().map(|lost| lost.why().to_string()),
            wear: observed.map(|observed| Wear::of(observed, now.since(inner.origin))),
        }
    }

    /// The requests so far, if they were recorded.
    pub fn take_record(&self) -> Option<Columns> {
        self.inner().record.take()
    }

    /// Powers it off in good order. It must not be in use.
    pub fn close(&self) -> Result<(), ServeError> {
        let mut inner = self.inner();
        let now = inner.clock.now();
        let Some(device) = &mut inner.device else {
            return Err(match inner.lost.clone() {
                Some(Lost::Panic(why)) => ServeError::Bug(why),
                lost => ServeError::Failed(lost.map(|lost| lost.why().to_string()).unwrap_or_default()),
            });
        };
        device.power_down(now).map_err(|error| ServeError::Failed(error.to_string()))?;
        let on = now.since(inner.origin);
        inner.life.off(on);
        inner.state.mark_closed()
    }
}

fn asked(op: Op, offset: u64, bytes: u32, fua: bool) -> Request {
    Request { op, offset, bytes, fua, ..Request::default() }
}

impl Inner {
    fn available(&mut self, session: Session) -> Result<&mut dyn ServedDevice, DriveError> {
        if self.power.load(Ordering::Relaxed) != session.power {
            return Err(DriveError::PowerLost);
        }
        self.present()
    }

    fn present(&mut self) -> Result<&mut dyn ServedDevice, DriveError> {
        match &mut self.device {
            Some(device) => Ok(device.as_mut()),
            None => Err(DriveError::Lost(
                self.lost.as_ref().map(|lost| lost.why().to_string()).unwrap_or_default(),
            )),
        }
    }

    #[inline]
    fn serve(
        &mut self,
        session: Session,
        request: Request,
        ask: impl FnOnce(&mut dyn ServedDevice, Time) -> Result<Time, ControllerError>,
    ) -> Result<Due, DriveError> {
        self.guarded(|inner| inner.serve_unguarded(session, request, ask))
    }

    #[inline]
    fn serve_unguarded(
        &mut self,
        session: Session,
        request: Request,
        ask: impl FnOnce(&mut dyn ServedDevice, Time) -> Result<Time, ControllerError>,
    ) -> Result<Due, DriveError> {
        let (at, lies) = (self.clock.now(), self.ignore_flush);
        let begin = at.max(self.under_way.room_at());
        self.available(session)?;
        if begin.is_over() {
            return Err(self.time_is_over());
        }
        let device = self.present()?;
        let answered = ask(device, begin).and_then(|end| match request.fua && !lies {
            true => device.flush(end),
            false => Ok(end),
        });
        // Another thread may have the lock next.
        publish();
        let end = answered?;
        if end.is_over() {
            return Err(self.time_is_over());
        }
        self.under_way.add(end);
        self.operations += 1;
        let totals = &mut self.totals[request.op as usize];
        totals.bytes += request.bytes as u64;
        totals.latency.add(end.since(at));
        self.life.count(request.op, request.bytes);
        if let Some(record) = &mut self.record {
            record.push_answered(Request { at, ..request }, end.since(at));
        }
        if self.cut_at == Some(self.operations) {
            let within = Span::from_ps(self.rng.below(end.since(at).ps() + 1));
            self.cut(at + within)?;
            return Err(DriveError::PowerLost);
        }
        let due = self.clock.due(end);
        let now = self.clock.now();
        self.device.as_mut().expect("a device that answered").settle(now);
        Ok(due)
    }

    fn cut(&mut self, at: Time) -> Result<Cut, DriveError> {
        self.power.fetch_add(1, Ordering::Release);
        let device = self.device.as_mut().expect("a device that was not lost");
        let cycled = device.power_cycle(at);
        publish();
        let ready = match cycled {
            Ok(ready) => ready,
            Err(why) => {
                self.device = None;
                self.lost = Some(Lost::Recovery(why.clone()));
                return Err(DriveError::Lost(why));
            }
        };
        // Controllers count from their recovery on; so does this.
        device.observed_mut().reset_stats();
        self.life.cut(at.since(self.origin.min(at)));
        self.totals = Totals::default();
        self.under_way = Outstanding::new(self.queue, ready);
        self.origin = ready;
        self.clock.skip(ready);
        let cut = Cut { operations: self.operations, at, recovery: ready.since(at) };
        self.cuts.push(cut);
        self.on_cut.iter().for_each(|hook| hook(cut));
        Ok(cut)
    }
}
