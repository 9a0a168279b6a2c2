//! The inner loop of a program on a memory: transactions arrive, one processor runs them one after the other, in order of
//! arrival, and each access begins when the one before it has ended.
//!
//! The latency of an access counts from its own beginning: the processor cannot issue it earlier. The latency of a
//! transaction counts from its arrival, including the wait for the processor; in a closed loop it arrives when the
//! one before it ends.

use super::arrivals::still_arriving;
use super::device::Observed;
use super::drive::{DriveError, Limit, Progress, Standstill, within_time};
use super::meter::Meter;
use nvlab_access::MemoryWindow;
use nvlab_units::{Span, Time};
use nvlab_workload::{AccessKind, AnyMemoryWorkload, Op, Pacing};

/// Transactions between two updates of the windows of the run.
const BATCH: u64 = 32;
/// Transactions between two calls of `go_on`: a transaction is about a hundred accesses.
const ASK_EVERY: u64 = 512;

/// Runs `workload` on `memory` from `origin` on until the workload or the limit ends it.
pub fn drive(
    memory: &mut (impl MemoryWindow + Observed),
    workload: &mut AnyMemoryWorkload,
    origin: Time,
    limit: &Limit,
    meter: &mut Meter,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Progress, DriveError> {
    let open = matches!(workload.pacing(), Pacing::Open);
    let mut accesses = Vec::new();
    let mut progress = Progress { now: origin, ..Progress::default() };
    let deadline = origin.ps().saturating_add(limit.time.ps());
    let mut still = Standstill::new(limit.is_timed());
    loop {
        let Some(arrival) = workload.next(&mut accesses) else {
            progress.ended = true;
            break;
        };
        let wanted = if open { origin + Span::from_ps(arrival.ps()) } else { progress.now };
        let mut now = wanted.max(progress.now);
        let over = progress.requests >= limit.requests
            || now.ps() >= deadline
            || progress.bytes >= limit.bytes
            || progress.written_bytes >= limit.written_bytes;
        if over {
            if open && now.ps() >= deadline {
                let waiting = still_arriving(arrival, limit.time, || workload.next(&mut accesses));
                meter.arrivals.leave(waiting, limit.time);
            }
            break;
        }
        for access in &accesses {
            let bytes = access.bytes as u32;
            let (op, served) = match access.kind {
                AccessKind::Load => (Op::Read, memory.load(now, access.offset, bytes, &mut [])),
                AccessKind::Store => (Op::Write, memory.store(now, access.offset, bytes, &[])),
            };
            let (number, offset, at) = (progress.requests, access.offset, now);
            let failed = |source| DriveError::Failed { number, op, bytes, offset, at, source };
            let end = served.map_err(failed)?.end;
            meter.access(access, end.since(now));
            progress.bytes += bytes as u64;
            progress.written_bytes += if op == Op::Write { bytes as u64 } else { 0 };
            now = end;
        }
        meter.transaction(now.since(wanted));
        if open {
            meter.arrivals.note(arrival.since(Time::ZERO), now.since(wanted));
        }
        progress.requests += 1;
        progress.now = now;
        if progress.requests.is_multiple_of(BATCH) {
            meter.batch(|| memory.counters(), BATCH, now);
            if meter.is_reached() {
                break;
            }
        }
        still.check(&progress)?;
        if progress.requests.is_multiple_of(ASK_EVERY) && !go_on(&progress) {
            return Err(DriveError::Stopped(progress.requests));
        }
    }
    within_time(progress.now, progress.requests)?;
    Ok(progress)
}
