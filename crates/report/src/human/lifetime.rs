//! The lifetime of the flash of a run, as text.

use super::keep;
use nvlab_run::number;
use nvlab_run::result::{LaterLevelling, MediumResult, RunResult};

/// The lifetime, in one line: in years at the rate of the workload; if the device set the pace, in bytes first.
pub fn lifetime(run: &RunResult) -> String {
    let lifetime = &run.lifetime;
    let Some(years) = lifetime.years else { return unworn(run).to_string() };
    let load = if run.closed_loop { "at this speed" } else { "at this load" };
    let days = match run.memory {
        Some(_) => format!(" ({} days)", number::three(years * 365.25)),
        None => String::new(),
    };
    let mut text = keep(&format!("{}{days} {load}", number::years(years)));
    if let Some(worst) = lifetime.years_worst_block {
        text += &keep(&format!(" ({} by the most worn block)", number::years(worst)));
    }
    let bytes = lifetime.host_bytes.map(|bytes| format!("{} can be written", number::bytes_decimal(bytes)));
    let per_day = lifetime.drive_writes_per_day;
    let per_day = per_day.map(|count| format!("{} drive writes per day for 5 years", number::three(count)));
    let mut parts: Vec<String> = [bytes, per_day].into_iter().flatten().map(|part| keep(&part)).collect();
    parts.insert(if run.closed_loop { parts.len() } else { 0 }, text);
    if let Some(limit) = lifetime.limited_by_retention() {
        parts.push(format!(
            "limited by retention: cells keep data for {limit} years; the rest considers wear alone"
        ));
    }
    parts.join("; ")
}

/// The wear of flash whose blocks are not simulated.
pub fn levelled_evenly(medium: &MediumResult) -> String {
    let (cycles, rated) = (number::three(medium.cycles), number::count(medium.rated_cycles as u64));
    format!(
        "cycles mean {cycles}, assuming that its controller wears all blocks evenly; {}",
        keep(&format!("rated {rated}"))
    )
}

/// The validity of the lifetime: how long write amplification stays as in the run.
pub fn levelled_later(later: &LaterLevelling) -> String {
    let LaterLevelling { from_life_share, write_amplification } = *later;
    let share = number::share(from_life_share);
    format!(
        "until about {share} of its life or later; then at most {}, with wear levelling",
        number::two(write_amplification)
    )
}

/// The reason that a run has no lifetime.
pub fn unworn(run: &RunResult) -> &'static str {
    match run.without_end() {
        true => "unlimited: nothing was programmed",
        false => "undetermined: no host data has been programmed yet",
    }
}
