//! How the device of a run came to its state.

use crate::report::number;
use crate::result::RunResult;

/// How the device came to its state, in one line; and whether that deserves a warning.
pub fn precondition(run: &RunResult) -> (String, bool) {
    let state = &run.precondition;
    let written = number::bytes(state.host_bytes as f64);
    let times = state.host_bytes as f64 / run.design.capacity_bytes.max(1) as f64;
    let volume = format!("{written} ({} x capacity)", number::three(times));
    let [before, last] = state.last_windows.map(|value| format!("{value:.2}"));
    let (kind, how) = state.kind.split_once(',').unwrap_or((&state.kind, ""));
    let (text, is_wrong) = match (kind, state.converged) {
        ("fresh", _) => ("fresh: every block erased, nothing written before".to_string(), false),
        ("steady", true) if run.durable.is_some() => {
            ("none needed: an empty log is in its steady state".to_string(), false)
        }
        ("steady", true) => {
            let coarse = match state.twin_units {
                1 => String::new(),
                units => format!(", most of it with {units} units as one"),
            };
            (format!("steady after {volume}{coarse}: write amplification converged at {last}"), false)
        }
        ("steady", false) => {
            let drift = format!("write amplification still went from {before} to {last}");
            (format!("not steady after {volume}: {drift}"), true)
        }
        (kind, _) => (format!("{kind}: {volume} written before"), false),
    };
    let text = match how {
        "" => text,
        how => format!("{text} ({})", how.replace(',', ", ")),
    };
    match state.rested_s {
        0.0 => (text, is_wrong),
        rested => {
            (format!("{text}; then idle for {} to fold its SLC cache", number::time_s(rested)), is_wrong)
        }
    }
}
