//! How the device of a run was preconditioned.

use nvlab_run::result::RunResult;

/// How the device was preconditioned, in one line; and whether that deserves a warning.
pub fn precondition(run: &RunResult) -> (String, bool) {
    (run.precondition.line(run.design.capacity_bytes), run.precondition.is_doubtful())
}
