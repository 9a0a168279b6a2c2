//! The figures of a map that is read on demand.

use super::keep;
use nvlab_run::number;
use nvlab_run::result::MapResult;

/// The figures, in one line.
pub(super) fn line(map: &MapResult) -> String {
    let mut parts = vec![keep(&format!("{} of look-ups hit", number::share(map.hit_share())))];
    if map.host_hits > 0 {
        let host = map.host_hits as f64 / (map.reads + map.writes).max(1) as f64;
        parts.push(keep(&format!("{} in the host's memory", number::share(host))));
    }
    parts.push(keep(&format!("{} read", number::things(map.loaded + map.loaded_to_rewrite, "page"))));
    let programmed = map.written_back + map.rewritten + map.moved;
    parts.push(keep(&format!(
        "{} programmed ({} for moved units)",
        number::count(programmed),
        number::count(map.rewritten)
    )));
    parts.join(", ")
}
