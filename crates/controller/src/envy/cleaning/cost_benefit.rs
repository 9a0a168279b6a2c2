//! Cost-benefit: the segment with the greatest (1 - u) * age / (1 + u), u its live share, age that of its
//! youngest data in pages flushed (Rosenblum and Ousterhout, LFS: 1 to read the segment, u to copy).

use super::Candidates;

/// The index of the victim at `now`.
pub(super) fn choose(candidates: Candidates, now: u64) -> Option<usize> {
    let benefit = |live: u32, birth: u64| {
        let (live, pages) = (live as f64, candidates.pages as f64);
        (pages - live) * now.saturating_sub(birth) as f64 / (pages + live)
    };
    let best = candidates
        .gaining()
        .max_by(|(_, a), (_, b)| benefit(a.live, a.birth).total_cmp(&benefit(b.live, b.birth)));
    best.map(|(place, _)| place)
}
