//! How the device of a run came to its state.

use nvlab_run::result::RunResult;

/// How the device came to its state, in one line; and whether that deserves a warning.
pub fn precondition(run: &RunResult) -> (String, bool) {
    (run.precondition.line(run.design.capacity_bytes), run.precondition.is_doubtful())
}
