//! Greedy: the segment with the fewest live pages; among equals, the one filled first (section 4.2).
//!
//! Every full segment is looked at: there are few of them, and a list by live pages would cost every store.

use super::Candidates;

/// The place of the victim.
pub(super) fn choose(candidates: Candidates) -> Option<usize> {
    candidates.gaining().min_by_key(|(_, segment)| segment.live).map(|(place, _)| place)
}
