//! Whether a run stayed at the write amplification to which its device was prepared.
//!
//! A device is prepared by writes until its write amplification is constant, which is taken for its steady state.
//! Effects that begin only later (wear levelling, a cache that fills) or depend on properties the preparation lacks
//! (another mix of requests, flushes) appear in the run: its last quarter is compared with the converged value. The
//! quarter is divided into parts of equal writes, whose scatter gives the standard error of its mean.

use nvlab_run::number;
use nvlab_run::result::{RunResult, Window, WriteAmplification};

/// A difference of this share of the converged value is worth a warning.
const APART: f64 = 0.05;
/// Data moved for wear levelling is mentioned from this share of the converged value on.
const WEAR_WORTH: f64 = 0.01;
/// Minimum parts of a quarter of the run. Each erases [`ERASES`] blocks or more on average: cleaning comes in blocks.
const PARTS: usize = 8;
const ERASES: u64 = 8;
/// Standard errors attributed to chance.
const ERRORS: f64 = 3.0;

/// A warning if the write amplification of the last quarter of the run differs from the converged one.
pub fn departure(run: &RunResult) -> Option<String> {
    let state = &run.precondition;
    let expected = state.last_windows[1];
    if !state.converged || expected == 0.0 {
        return None;
    }
    let (mean, error) = last_quarter(&run.series)?;
    if (mean - expected).abs() - ERRORS * error <= APART * expected {
        return None;
    }
    let when =
        if (run.write_amplification.total - mean).abs() > APART * expected { " at the end" } else { "" };
    let mut text = format!(
        "write amplification was {}{when}, but {} at the end of preconditioning",
        number::two(mean),
        number::two(expected)
    );
    if let Some(before) = &state.last_window {
        text += &causes(before, &run.write_amplification, mean > expected);
    }
    let wear = run.write_amplification.wear;
    if mean > expected && wear >= WEAR_WORTH * expected && !text.contains("wear levelling") {
        text += "; wear levelling also moved cold data";
    }
    Some(text + "; the lifetime is that of this run, not of steady state")
}

/// ` (cleaning 1.75 there, 3.40 in the run)`: the part that changed most, and others that changed at least half as
/// much.
fn causes(before: &WriteAmplification, after: &WriteAmplification, grew: bool) -> String {
    let sign = if grew { 1.0 } else { -1.0 };
    let parts = WriteAmplification::CAUSES.into_iter().zip(before.parts().into_iter().zip(after.parts()));
    let mut changed: Vec<_> =
        parts.map(|(name, (before, after))| (sign * (after - before), name, before, after)).collect();
    changed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most = changed[0].0;
    let worth = changed.into_iter().filter(|part| part.0 > 0.0 && part.0 >= most / 2.0);
    let worth = worth.map(|(_, name, before, after)| {
        format!("{name} {} there, {} in the run", number::two(before), number::two(after))
    });
    match worth.collect::<Vec<_>>() {
        none if none.is_empty() => String::new(),
        some => format!(" ({})", some.join("; ")),
    }
}

/// The mean write amplification of the last quarter of the writes of a run, and its standard error; `None`: too
/// short.
fn last_quarter(series: &[Window]) -> Option<(f64, f64)> {
    let written: u64 = series.iter().map(|window| window.write_bytes).sum();
    let mut seen = 0;
    let begin = series.iter().position(|window| {
        seen += window.write_bytes;
        4 * seen > 3 * written
    })?;
    let last = &series[begin..];
    let per_part = last.len() / PARTS;
    let erases: u64 = last.iter().map(|window| window.erases).sum();
    if per_part == 0 || erases < PARTS as u64 * ERASES {
        return None;
    }
    let parts: Vec<f64> = last.chunks(per_part).filter(|part| part.len() == per_part).map(mean).collect();
    let of_parts = parts.iter().sum::<f64>() / parts.len() as f64;
    let squares: f64 = parts.iter().map(|part| (part - of_parts).powi(2)).sum();
    let count = parts.len() as f64;
    Some((mean(last), (squares / (count - 1.0) / count).sqrt()))
}

/// The write amplification of windows, weighted by the bytes written in them.
fn mean(windows: &[Window]) -> f64 {
    let weighted = windows.iter().map(|window| window.write_bytes as f64 * window.write_amplification);
    weighted.sum::<f64>() / windows.iter().map(|window| window.write_bytes as f64).sum::<f64>().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_run::sample;

    /// A run of 200 windows on a device that converged at 2.97, of which cleaning was 1.95.
    fn with(amplification: impl Fn(usize) -> f64) -> RunResult {
        let window = |n| Window {
            requests: 1000,
            write_bytes: 1 << 20,
            write_amplification: amplification(n),
            erases: 10,
            ..Window::default()
        };
        let mut run = sample::run("ssd-tlc", 1);
        run.series = (0..200).map(window).collect();
        let total = run.series.iter().map(|window| window.write_amplification).sum::<f64>() / 200.0;
        let wear = 0.05;
        run.write_amplification = WriteAmplification {
            total,
            host: 1.0,
            clean: total - 1.07,
            wear,
            map: 0.02,
            ..run.write_amplification
        };
        run
    }

    #[test]
    fn more_than_a_twentieth_and_more_than_chance() {
        // Scatter of a tenth: a quarter of 50 windows knows its mean within 1.4 %.
        let scatter = |n: usize| if n.is_multiple_of(2) { 0.3 } else { -0.3 };
        assert_eq!(departure(&with(|n| 2.97 + scatter(n))), None);
        assert_eq!(departure(&with(|n| 2.97 * 1.03 + scatter(n))), None);
        let text = departure(&with(|n| 3.57 + scatter(n))).unwrap();
        assert_eq!(
            text,
            "write amplification was 3.57, but 2.97 at the end of preconditioning (cleaning 1.95 there, 2.50 in \
             the run); wear levelling also moved cold data; the lifetime is that of this run, not of \
             steady state"
        );
        // Only the end counts, and it is said to be the end.
        let late = departure(&with(|n| if n < 140 { 2.97 } else { 4.6 })).unwrap();
        assert!(
            late.starts_with("write amplification was 4.60 at the end, but 2.97 at the end of"),
            "{late}"
        );
        assert_eq!(departure(&with(|n| if n < 140 { 4.6 } else { 2.97 })), None);
        // Less than before is as wrong.
        assert!(departure(&with(|_| 1.4)).unwrap().contains("(cleaning 1.95 there, 0.33 in the run)"));
    }

    #[test]
    fn nothing_is_said_without_enough_data_or_a_converged_value() {
        let mut short = with(|_| 4.6);
        short.series.truncate(20);
        assert_eq!(departure(&short), None);
        let mut drifting = with(|_| 4.6);
        drifting.precondition.converged = false;
        assert_eq!(departure(&drifting), None);
        let mut fresh = with(|_| 4.6);
        fresh.precondition.last_windows = [0.0; 2];
        assert_eq!(departure(&fresh), None);
        let wild = with(|n| if n % 8 < 4 { 1.0 } else { 5.5 });
        assert_eq!(departure(&wild), None, "chance");
    }
}
