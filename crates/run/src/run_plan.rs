//! The parameters of a run and its end; the phases of a run.

use crate::drive::Limit;
use crate::preparation::Preparation;

/// What to run, and how far.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The design's name as the user wrote it, with the changes of `--set`.
    pub design_name: String,
    /// The workload's text.
    pub workload_text: String,
    /// One line: what the workload is, its pace, its size and its end.
    pub workload_about: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// How the device is prepared.
    pub state: Preparation,
    /// The argument of `--until`, if there is one.
    pub until: Option<String>,
    /// Where the run ends.
    pub limit: Limit,
    /// Requests the run must serve, if that is known: fewer is an error.
    pub requests_asked: Option<u64>,
}

/// The phase of a run, for a progress bar, and its progress (1 = done, where that is known).
pub type OnProgress<'a> = &'a mut dyn FnMut(&str, f64) -> bool;
