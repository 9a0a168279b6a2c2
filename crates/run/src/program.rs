//! A recorded program on another device: each request begins when the program would issue it (see
//! [`nvlab_workload::Program`]), and waits only for room in the device's queue, or passes the stages of the host's
//! software that the recording does not contain.
//!
//! Requests keep their recorded order: none begins before the one recorded before it.

use super::drive::{DeviceUnderTest, DriveError, Pass, Progress, Watch};
use super::staged;
use crate::result::{ProgramResult, SoftwareResult};
use nvlab_design::Software;
use nvlab_units::Span;
use nvlab_workload::{BlockWorkload, Program, Rerun};

/// What was driven, and what the program did.
type Ran<T> = Result<(T, ProgramResult), DriveError>;

/// Runs `program`, whose requests are those of `workload`, on `device` until it or the limit ends it.
pub fn drive(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    program: &Program,
    pass: Pass<'_>,
    watch: Watch<'_>,
) -> Ran<Progress> {
    let mut rerun = Rerun::new(program, pass.origin);
    let progress = device.paced(workload, Some(&mut rerun), pass, watch)?;
    Ok((progress, result(program, &rerun, pass, &progress)))
}

/// The same through the stages of `software` below the recording.
pub fn drive_staged(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    program: &Program,
    software: &Software,
    pass: Pass<'_>,
    watch: Watch<'_>,
) -> Ran<(Progress, SoftwareResult)> {
    let mut rerun = Rerun::new(program, pass.origin);
    let (progress, software) = staged::drive(device, workload, Some(&mut rerun), software, pass, watch)?;
    Ok(((progress, software), result(program, &rerun, pass, &progress)))
}

fn result(program: &Program, rerun: &Rerun<'_>, pass: Pass<'_>, progress: &Progress) -> ProgramResult {
    let (ran, waited) = (progress.now.since(pass.origin), rerun.waited());
    let seconds = |span: Span| span.seconds();
    ProgramResult {
        waiting_s: seconds(waited),
        computing_s: seconds(ran.saturating_sub(waited)),
        recorded_s: seconds(program.recorded),
        recorded_waiting_s: seconds(program.recorded_waiting),
    }
}
