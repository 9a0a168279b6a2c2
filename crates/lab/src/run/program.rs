//! The inner loop of a recorded program on another device: each request begins when the program would ask it
//! ([`nvlab_workload::Program`] says how that is known), what was asked waits only for room in the device's queue.
//!
//! Requests keep their recorded order, so that one never begins before the one above it.

use super::drive::{DriveError, Limit, Outstanding, Progress, Watch, serve};
use crate::result::ProgramResult;
use nvlab_access::BlockDevice;
use nvlab_units::{Span, Time};
use nvlab_workload::{Batch, Op, Program, Rerun, Workload};

/// Requests between two questions whether to go on.
const ASK_EVERY: u64 = 8192;

/// Runs `program`, whose requests are those of `workload`, on `device` from `origin` on until it or the limit ends it.
pub fn drive<D: BlockDevice, W: Workload>(
    device: &mut D,
    (workload, program): (&mut W, &Program),
    origin: Time,
    queue: u32,
    limit: &Limit,
    watch: &mut impl Watch<D>,
) -> Result<(Progress, ProgramResult), DriveError> {
    let mut rerun = Rerun::new(program, origin);
    let mut under_way = Outstanding::new(queue);
    let mut progress = Progress { now: origin, ..Progress::default() };
    let mut batch = Batch::new();
    let deadline = origin.ps().saturating_add(limit.time.ps());
    'run: loop {
        batch.clear();
        if workload.fill(&mut batch) == 0 {
            progress.ended = true;
            break;
        }
        device.expect(batch.requests().iter().map(|request| request.offset));
        for request in batch.requests() {
            let wanted = rerun.asks().max(progress.now);
            let begin = wanted.max(under_way.room_at());
            let over = progress.requests >= limit.requests
                || begin.ps() >= deadline
                || progress.bytes >= limit.bytes
                || progress.written_bytes >= limit.written_bytes;
            if over {
                break 'run;
            }
            let &nvlab_workload::Request { op, bytes, offset, .. } = request;
            let number = progress.requests;
            let failed = |source| DriveError::Failed { number, op, bytes, offset, at: begin, source };
            let end = serve(device, begin, request, &[]).map_err(failed)?;
            under_way.add(end);
            rerun.answered(wanted, end);
            watch.served(request, wanted, end);
            progress.requests += 1;
            progress.now = begin;
            let moved = if matches!(op, Op::Read | Op::Write) { bytes as u64 } else { 0 };
            progress.bytes += moved;
            progress.written_bytes += if op == Op::Write { moved } else { 0 };
        }
        watch.batch(device, progress.now);
        if progress.requests.is_multiple_of(ASK_EVERY) && !watch.go_on(&progress) {
            return Err(DriveError::Stopped(progress.requests));
        }
    }
    progress.now = progress.now.max(under_way.last());
    let (ran, waited) = (progress.now.since(origin), rerun.waited());
    let seconds = |span: Span| span.seconds();
    let result = ProgramResult {
        waiting_s: seconds(waited),
        computing_s: seconds(ran.saturating_sub(waited)),
        recorded_s: seconds(program.recorded),
        recorded_waiting_s: seconds(program.recorded_waiting),
    };
    Ok((progress, result))
}
