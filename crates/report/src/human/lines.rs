//! The figures of a cache of lines in front of a controller.

use super::keep;
use nvlab_run::number;
use nvlab_run::result::LinesResult;

/// The figures of a cache of lines, in one line.
pub(super) fn line(lines: &LinesResult) -> String {
    let mut parts = vec![keep(&format!("{} of accesses hit", number::share(lines.hit_share())))];
    parts.push(keep(&format!("{} fetched", number::things(lines.fetched, "line"))));
    if lines.fetched_ahead > 0 {
        let used = number::share(lines.ahead_used as f64 / lines.fetched_ahead as f64);
        parts.push(keep(&format!("{} prefetched ({used} used)", number::count(lines.fetched_ahead))));
    }
    parts.push(keep(&format!("{} written back", number::count(lines.written_back))));
    let dirty = number::share(lines.dirty as f64 / lines.lines as f64);
    parts.push(keep(&format!("{dirty} of {} dirty", number::things(lines.lines as u64, "line"))));
    parts.join(", ")
}
