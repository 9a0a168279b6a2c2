//! Greedy: the segment with the fewest live pages; among equals, the one filled first (section 4.2).
//!
//! Examines every full segment: there are few of them, and a list by live pages would cost time at every store.

use super::Candidates;

/// The index of the victim.
pub(super) fn choose(candidates: Candidates) -> Option<usize> {
    candidates.gaining().min_by_key(|(_, segment)| segment.live).map(|(place, _)| place)
}
