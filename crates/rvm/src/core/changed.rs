//! Finds the bytes of a range that changed.

/// Compared at once where nothing changed.
const BLOCK_BYTES: usize = 64;

/// The changed runs of a range, as (from, to). Unchanged bytes between two that are not more than a header stay in.
pub fn changed(before: &[u8], now: &[u8], header_bytes: usize) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (block, (old, new)) in before.chunks(BLOCK_BYTES).zip(now.chunks(BLOCK_BYTES)).enumerate() {
        if old == new {
            continue;
        }
        for at in (0..new.len()).filter(|&at| old[at] != new[at]).map(|at| block * BLOCK_BYTES + at) {
            match runs.last_mut() {
                Some((_, to)) if at - *to <= header_bytes => *to = at + 1,
                _ => runs.push((at, at + 1)),
            }
        }
    }
    runs
}
