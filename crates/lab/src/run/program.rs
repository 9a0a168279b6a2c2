//! A recorded program on another device: each request begins when the program would issue it (see
//! [`nvlab_workload::Program`]), and waits only for room in the device's queue.
//!
//! Requests keep their recorded order: none begins before the one recorded before it.

use super::device::Observed;
use super::drive::{DriveError, Limit, Progress, Watch, paced};
use crate::result::ProgramResult;
use nvlab_access::BlockDevice;
use nvlab_units::{Span, Time};
use nvlab_workload::{BlockWorkload, Program, Rerun};

/// Runs `program`, whose requests are those of `workload`, on `device` from `origin` on until it or the limit ends it.
pub fn drive<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn BlockWorkload,
    program: &Program,
    origin: Time,
    queue: u32,
    limit: &Limit,
    watch: Watch<'_>,
) -> Result<(Progress, ProgramResult), DriveError> {
    let mut rerun = Rerun::new(program, origin);
    let progress = paced(device, workload, Some(&mut rerun), origin, queue, limit, watch)?;
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
